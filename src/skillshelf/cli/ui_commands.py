"""Run the commands `ui` and `site`: the pages in a browser of this machine, and as static files."""

import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from skillshelf.cli.commands import Values, shelf_for
from skillshelf.core import files
from skillshelf.core.console import as_json, note, write
from skillshelf.core.environment import find_repository
from skillshelf.core.text import plural, visible
from skillshelf.errors import DONE, ConfigurationError

if TYPE_CHECKING:
    from skillshelf.servers.web.local import LocalCatalogue
    from skillshelf.servers.web.local_state import LocalOptions

__all__ = ["site", "ui"]

_EXTRA = ("starlette", "uvicorn", "jinja2", "markdown_it", "nh3")


def _require_extra(command: str) -> None:
    """Raise `ConfigurationError` if a package of the extra `web` is missing; nothing is imported."""
    if not all(find_spec(package) for package in _EXTRA):
        raise ConfigurationError(f"{command} needs the extra web: run pip install 'skillshelf[web]'")


def ui(values: Values) -> int:
    """Serve the pages to a browser on this machine."""
    _require_extra("ui")
    port = values["port"] or "0"
    if not (port.isascii() and port.isdecimal() and int(port) < 65536):
        raise ConfigurationError(f"--port takes a number below 65536, not {port!r}")
    options = _options(values)
    from skillshelf.servers.web.ui import serve_ui

    serve_ui(lambda: _catalogue(options), port=int(port), open_browser=not values["no_open"])
    return DONE


def site(values: Values) -> int:
    """Write the pages as static files."""
    _require_extra("site")
    options = _options(values)._replace(waits=True)
    if not values["user"]:
        options = _of_repository(options)
    from skillshelf.servers.web.site import write_site

    folder = os.path.abspath(values["out"])
    count = write_site(_catalogue(options), folder, progress=sys.stderr)
    if values["json"]:
        write(as_json({"folder": folder, "files": count}))
    else:
        write(f"{visible(values['out'])}: {plural(count, 'file')}, begin with index.html\n")
    return DONE


def _options(values: Values) -> "LocalOptions":
    from skillshelf.servers.web.local_state import LocalOptions

    shelf = shelf_for(values)
    journals = tuple(os.path.abspath(path) for path in values["journal"])
    for path in journals:
        if files.kind_at(files.real_path(path)) is None:
            note(f"there is no journal {path} yet")
    return LocalOptions(
        shelf.environment, shelf.settings, shelf.profile, shelf.cache, journals, all_hosts=values["all_hosts"]
    )


def _of_repository(options: "LocalOptions") -> "LocalOptions":
    """Return options that see the repository alone: no home folder, variable or setting of whoever writes the site.

    Without a home folder many hosts would be taken to read all folders above, and the home folder is often one.
    """
    from skillshelf.config.settings import Settings
    from skillshelf.install.scope import MARKERS

    environment = options.environment
    root = find_repository(environment.cwd, MARKERS) or environment.cwd
    real = files.real_path(root)
    if environment.home is not None and files.is_inside(files.real_path(environment.home), real):
        raise ConfigurationError(
            "the home folder is part of this folder, so a site would show the skills of the user (go to a repository, "
            "or write them too with --user)"
        )
    alone = environment._replace(cwd=root, home=None, env={}, home_moved=True, config=None, ceiling=root)
    return options._replace(
        environment=alone, settings=Settings(), cache=None, hidden_home=environment.home, within=real
    )


def _catalogue(options: "LocalOptions") -> "LocalCatalogue":
    from skillshelf.servers.web.local import LocalCatalogue

    return LocalCatalogue(options)
