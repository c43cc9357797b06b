"""The peers and parsers to compare with: what each is, its pinned version, and an environment of its own.

An environment is a folder `DIR/NAME`, made once and used again as long as it holds the pinned version.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal, NamedTuple

__all__ = ["PARSERS", "PEERS", "Peer", "Unavailable", "command_of", "python_of", "set_up"]

DRIVERS = Path(__file__).parent / "peers"


class Peer(NamedTuple):
    """Something to compare with, and where it comes from."""

    name: str
    package: str
    version: str
    installer: Literal["pip", "npm"] = "pip"
    driver: str = ""
    python: tuple[int, int] = (3, 11)


PEERS = (
    Peer("Codex", "@openai/codex", "0.166.0", "npm", "list_codex.py"),
    Peer("pi", "@mariozechner/pi-coding-agent", "0.73.1", "npm", "list_pi.mjs"),
    Peer("google-adk", "google-adk", "2.13.0", driver="list_google_adk.py"),
    Peer("agno", "agno", "3.1.10", driver="list_agno.py"),
    Peer("strands-agents", "strands-agents", "1.62.0", driver="list_strands_agents.py"),
    Peer("deepagents", "deepagents", "0.7.32", driver="list_deepagents.py"),
    Peer("agent-framework-core", "agent-framework-core", "1.23.0", driver="list_agent_framework_core.py"),
    Peer("pydantic-ai-skills", "pydantic-ai-skills", "2.1.0", driver="list_pydantic_ai_skills.py"),
    Peer("skills-ref", "skills-ref", "0.1.1", driver="list_skills_ref.py"),
    Peer("agentskills-fs", "agentskills-fs", "0.7.0", driver="list_agentskills_fs.py", python=(3, 12)),
)

PARSERS = (Peer("PyYAML", "PyYAML", "6.0.3"), Peer("ruamel.yaml", "ruamel.yaml", "0.19.1"))


class Unavailable(Exception):
    """Why a peer cannot be measured on this machine."""


def set_up(peer: Peer, folder: Path) -> str:
    """Install a peer unless it is there; returns the version that is installed, which is the pinned one."""
    home = folder / peer.name.lower()
    if _installed(peer, home) != peer.version:
        print(f"installing {peer.package} {peer.version}", file=sys.stderr)
        _INSTALL[peer.installer](peer, home)
    if (found := _installed(peer, home)) != peer.version:
        raise Unavailable(f"asked for {peer.version}, got {found or 'nothing'}")
    return found


def command_of(peer: Peer, folder: Path) -> list[str]:
    """The words before the two folders with which a driver is called."""
    home, driver = folder / peer.name.lower(), str(DRIVERS / peer.driver)
    if peer.installer == "pip":
        return [str(python_of(peer, folder)), driver]
    if driver.endswith(".mjs"):
        return ["node", driver, str(home / "node_modules" / peer.package)]
    # The program itself, not the script in front of it, which would add a start of Node.
    programs = sorted(home.glob("node_modules/@openai/codex-*/vendor/*/bin/codex"))
    if not programs:
        raise Unavailable("the package holds no program for this platform")
    return [sys.executable, driver, str(programs[0])]


def python_of(peer: Peer, folder: Path) -> Path:
    """The interpreter of a peer's environment."""
    return folder / peer.name.lower() / "bin" / "python"


def is_installed(peer: Peer, folder: Path) -> bool:
    """Return whether the right version of a peer is there already."""
    return _installed(peer, folder / peer.name.lower()) == peer.version


def _installed(peer: Peer, home: Path) -> str | None:
    if peer.installer == "npm":
        manifest = home / "node_modules" / peer.package / "package.json"
        return str(json.loads(manifest.read_text(encoding="utf-8"))["version"]) if manifest.exists() else None
    python = home / "bin" / "python"
    if not python.exists():
        return None
    question = f"from importlib.metadata import version; print(version({peer.package!r}))"
    done = subprocess.run([str(python), "-c", question], capture_output=True, text=True)
    return done.stdout.strip() or None


def _install_by_pip(peer: Peer, home: Path) -> None:
    if not (home / "bin" / "python").exists():
        _run([_python_at_least(peer.python), "-m", "venv", str(home)])
    _run([str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", f"{peer.package}=={peer.version}"])


def _install_by_npm(peer: Peer, home: Path) -> None:
    if not (shutil.which("node") and shutil.which("npm")):
        raise Unavailable("Node.js with npm is not installed")
    home.mkdir(parents=True, exist_ok=True)
    wanted = f"{peer.package}@{peer.version}"
    _run(["npm", "install", "--prefix", str(home), "--no-audit", "--no-fund", "--loglevel=error", wanted])


_INSTALL = {"pip": _install_by_pip, "npm": _install_by_npm}


def _python_at_least(version: tuple[int, int]) -> str:
    """This interpreter if it is new enough, or one from the PATH that is."""
    if sys.version_info[:2] >= version:
        return sys.executable
    for minor in range(version[1], version[1] + 4):
        program = shutil.which(f"python3.{minor}")
        if program and subprocess.run([program, "-c", "pass"], capture_output=True).returncode == 0:
            return program
    raise Unavailable(f"needs Python {version[0]}.{version[1]} or later, and none is on the PATH")


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise Unavailable(f"cannot be installed: {lines[-1][:160]}")
