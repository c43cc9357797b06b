"""Draw docs/picker.svg: the picker in a terminal of 100 columns and 30 lines."""

import asyncio
import re
import sys
from contextlib import closing
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY / "src"), str(REPOSITORY / "tests")]


async def draw() -> str:
    """Return the picker after a few keys as SVG, without links to fonts."""
    from support.pickertrees import SHOWN_AS, picker_machine

    from skillshelf.cli.picker.app import Picker
    from skillshelf.cli.picker.model import PickerModel
    from skillshelf.cli.picker.widgets import Pane

    with picker_machine() as machine, closing(PickerModel(machine.shelf)) as model:
        app = Picker(model)
        async with app.run_test(size=(100, 30)) as pilot:
            await pilot.press("ctrl+p", "ctrl+p", "down", "down")
            # What is asked in threads has arrived when no worker is left and the pane is as it was a moment ago.
            before, shown = "", ""
            while not ("not by" in shown and shown == before):
                before = shown
                await app.workers.wait_for_complete()
                await pilot.pause(0.2)
                shown = "".join(app.query_one(Pane).render_line(y).text for y in range(16))
            picture = app.export_screenshot(title="skillshelf pick")
            await pilot.press("escape")
        picture = picture.replace(str(machine.base), SHOWN_AS)
    picture = re.sub(r"terminal-\d+-", "picker-", picture)
    return re.sub(r"\s*@font-face \{.*?\}", "", picture, flags=re.DOTALL)


if __name__ == "__main__":
    (REPOSITORY / "docs" / "picker.svg").write_text(asyncio.run(draw()), encoding="utf-8")
