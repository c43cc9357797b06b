"""Codex: `skills/list` of its app server, asked to read anew. Called with the program, then as clock.py describes."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


class Server:
    """A running app server, spoken to in lines of JSON."""

    def __init__(self, program: str) -> None:
        self.process = subprocess.Popen(
            [program, "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        self.asked = 0

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a request; notifications in between are passed over."""
        self.asked += 1
        self.tell(method, id=self.asked, params=params)
        assert self.process.stdout
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.asked and "method" not in answer:
                return answer["result"] if "result" in answer else sys.exit(f"{method}: {answer['error']}")
        sys.exit(f"{method}: the server ended")

    def tell(self, method: str, **rest: Any) -> None:
        """Send a message that needs no answer."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"method": method, **rest}) + "\n")
        self.process.stdin.flush()

    def cpu(self) -> float:
        """Seconds of CPU time so far, in the ticks the kernel counts."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def skills_below(self, root: str) -> list[str]:
        """The paths of the skills it lists from this root; its own bundled ones are not counted."""
        self.ask("skills/extraRoots/set", extraRoots=[root])
        listed = self.ask("skills/list", cwds=[os.getcwd()], forceReload=True)
        return [skill["path"] for entry in listed["data"] for skill in entry["skills"] if root in skill["path"]]


program, small, measured = sys.argv[1:4]
server = Server(program)
server.ask("initialize", clientInfo={"name": "bench", "title": "bench", "version": "1"})
server.tell("initialized")
server.skills_below(small)
wall, cpu = time.perf_counter(), server.cpu()
skills = server.skills_below(measured)
wall, cpu = time.perf_counter() - wall, server.cpu() - cpu
assert server.process.stdin
server.process.stdin.close()
server.process.wait(20)
print(json.dumps({"listed": len(skills), "wall_ms": wall * 1e3, "cpu_ms": cpu * 1e3}))
