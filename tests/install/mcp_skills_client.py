"""A host of MCP skills as a program, for the client scenarios of the MCP conformance suite.

The suite starts it with the address of its server; `MCP_CONFORMANCE_SCENARIO` has the name of the scenario. It opens
a shelf with the server as a live source, and then, unless the scenario is about listing alone, loads every skill and
reads each of its files, as a user would who approves everything. What happened is one line of JSON.

    node .../dist/index.js client --command "python tests/install/mcp_skills_client.py" \\
        --scenario sep-2640-client-verify-digest --spec-version 2026-07-28 --force
"""

from __future__ import annotations

import json
import os
import sys
import tempfile

import skillshelf
from skillshelf.core.environment import make_environment
from skillshelf.install.mcp_source import McpSource


def main(url: str, scenario: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        config = {"mcp": {"servers": {"suite": {"url": url}}}}
        environment = make_environment(folder, folder, {}, config=config)
        shelf = skillshelf.open_shelf(
            folder, home=folder, env={}, config=config, sources=[McpSource.named("suite", environment)]
        )
        session = shelf.session(confirm=lambda *_: True)
        happened: dict[str, object] = {"listed": [skill.name for skill in shelf.catalog.skills]}
        happened["errors"] = [error.message for error in (*shelf.catalog.errors, *shelf.catalog.warnings)]
        if "no-prefetch" not in scenario:
            for skill in shelf.catalog.skills:
                loaded = session.call("skill_load", {"name": skill.name})
                happened[skill.name] = "loaded" if loaded.ok else loaded.text
                for path in loaded.data.get("files", ()) if loaded.ok else ():
                    read = session.call("skill_read", {"uri": f"skill://{skill.name}/{path}"})
                    happened[f"{skill.name}/{path}"] = "read" if read.ok else read.text
        print(json.dumps(happened))
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[-1], os.environ.get("MCP_CONFORMANCE_SCENARIO", "")))
