"""Play a hostile case on every surface, and say where they differ, fail, leak, lose a skill or write."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from skillshelf import Catalog, Shelf, SkillError
from skillshelf.errors import kind_of
from support.hostile import GUARD, OUTSIDE, STRANGER, Case, lay_out
from support.rpcclient import rpc_in_process
from support.trees import Machine

__all__ = ["Outcome", "play"]

SECONDS = 20.0
"""Longer than any question to so small a machine may take, however busy the computer is."""

_OWN = ("home/.cache", "home/.local")
"""What our program may write below a machine: its cache and its state."""


_OF_THE_MOMENT = re.compile(r'"(?:id|mtime_ms)": (?:"\w+"|\d+), |(?<=/proc/)\d+')
"""What depends on where and when a machine was made, and on the process that looks: `/proc/self` has its number."""


class Outcome(NamedTuple):
    """What was found wrong, and what every user of the machine must see alike."""

    defects: tuple[str, ...]
    seen: str
    probes: int


def play(case: Case, *, surfaces: bool = True) -> Outcome:
    """Return what is wrong with the answers to a case; without `surfaces` servers are left out."""
    with TemporaryDirectory(prefix="hostile-") as folder:
        base = Path(os.path.realpath(folder))
        os.chmod(base, 0o755)
        play = _Play(case, lay_out(case, base))
        before = _snapshot(base)
        play.run(surfaces)
        if _snapshot(base) != before:
            play.defects.append(f"written: {sorted(_difference(before, _snapshot(base)))[:3]}")
        seen = _OF_THE_MOMENT.sub("", play.seen.replace(str(base), "{base}"))
        return Outcome(tuple(play.defects), seen, play.probes)


def _snapshot(base: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of everything below a folder but our own files."""
    found = {}
    for folder, folders, names in os.walk(base):
        relative = os.path.relpath(folder, base)
        folders[:] = [name for name in folders if os.path.normpath(f"{relative}/{name}") not in _OWN]
        for name in (*folders, *names):
            status = os.lstat(os.path.join(folder, name))
            found[f"{relative}/{name}"] = (status.st_size, status.st_mtime_ns)
    # The home folder itself changes when the cache is made in it.
    return {path: stamp for path, stamp in found.items() if path not in ("./home", "home/.config")}


def _difference(before: Mapping[str, object], after: Mapping[str, object]) -> set[str]:
    return {path for path in {*before, *after} if before.get(path) != after.get(path)}


class _Play:
    """One case while it is played."""

    def __init__(self, case: Case, machine: Machine) -> None:
        self.case = case
        self.machine = machine
        self.defects: list[str] = []
        self.seen = ""
        self.probes = 0

    def run(self, surfaces: bool) -> None:
        """Ask everything."""
        with self._probe("catalog"):
            self._compare_caches()
            self._compare_loads()
        with self._probe("model"):
            self._ask_as_a_model()
        with self._probe("reads"):
            self._compare_reads(surfaces)
        with self._probe("commands"):
            self._run_commands()

    @contextmanager
    def _probe(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        except Exception as error:
            # A hostile file costs one error of ours, never another exception.
            self.defects.append(f"{name}: {type(error).__name__}: {error}"[:500])
        if time.monotonic() - began > SECONDS:
            self.defects.append(f"{name}: took more than {SECONDS:g} seconds")

    def _shelf(self, *, trust: str = "ask", use_cache: bool = False) -> Shelf:
        self.probes += 1
        return self.machine.shelf(self.case.profile, trust=trust, use_cache=use_cache)

    # The catalog ------------------------------------------------------------------------------------

    def _compare_caches(self) -> None:
        for trust in ("ask", "all"):
            answers = [self._catalog(trust, use_cache=cached) for cached in (False, True, True)]
            if len(set(answers)) > 1:
                self.defects.append(f"cache: another catalog with trust {trust}")
            if trust == "ask":
                self.seen = answers[0]
        if OUTSIDE in self.seen:
            self.defects.append("leak: a file outside of every root is in the catalog")
        shelf = self._shelf()
        if shelf.settings.enabled:
            _known_places(shelf.scan(account=True), self.defects)

    def _catalog(self, trust: str, *, use_cache: bool) -> str:
        answer = _answer(lambda: self._shelf(trust=trust, use_cache=use_cache).catalog.to_dict())
        return answer if isinstance(answer, str) else json.dumps(answer, sort_keys=True)

    def _compare_loads(self) -> None:
        """Compare what a listing says of a file, which reads its beginning, with what a load says, which reads all."""
        shelf = _answer(lambda: self._shelf(trust="all"))
        if isinstance(shelf, str) or not shelf.settings.enabled:
            # The configuration of a trusted project may be wrong, and may switch skills off.
            return
        for skill in shelf.catalog.skills:
            self.probes += 1
            found = _answer(lambda skill=skill: shelf.load(path=skill.path))  # type: ignore[misc]
            if isinstance(found, str):
                continue
            listed = (skill.name, skill.description, skill.path)
            if (found.skill.name, found.skill.description, found.skill.path) != listed:
                self.defects.append(f"load: {skill.name!r} is another skill than in the listing")

    # A model ----------------------------------------------------------------------------------------

    def _ask_as_a_model(self) -> None:
        shelf = self._shelf()
        with shelf.session() as session:
            texts = [session.system_prompt(), json.dumps([tool._asdict() for tool in session.tools()])]
            has_guard = any(GUARD in skill.description and skill.trusted for skill in shelf.catalog.skills)
            for tool in session.tools():
                for arguments in _arguments(tool.input_schema, self.case):
                    self.probes += 1
                    result = session.call(tool.name, arguments)
                    texts.append(result.text)
                    if result.error and result.error.code == "failed" and "internal" in result.error.message:
                        self.defects.append(f"model: {tool.name}: {result.error.message}")
            texts += [str(session.command(f"/skill:{word}")) for word in self.case.words]
            texts += [str(session.resolve_mentions(f"use ${word} now").text) for word in self.case.words]
        whole = "\n".join(texts)
        if OUTSIDE in whole:
            self.defects.append("leak: a model sees a file outside of every root")
        if STRANGER in whole:
            self.defects.append("leak: a model sees a skill that nobody trusts")
        # A profile without a place for the user's skills cannot show them.
        if self.case.profile != "mycodeagent" and not (has_guard and GUARD in texts[0]):
            self.defects.append("lost: the user's guard is not in the catalog text")

    # Reads ------------------------------------------------------------------------------------------

    def _compare_reads(self, surfaces: bool) -> None:
        shelf = self._shelf()
        for address in self.case.addresses:
            readers: dict[str, Callable[[], Any]] = {"shelf": lambda a=address: _content(shelf.read(a))}  # type: ignore[misc]
            readers["command"] = lambda a=address: self._read_by_command(a)  # type: ignore[misc]
            answers = {name: _answer(reader) for name, reader in readers.items()}
            self.probes += len(answers)
            if OUTSIDE in str(answers):
                self.defects.append(f"leak: {address!r} reads outside of its skill")
            if _is_writable_text(address) and len({str(answer) for answer in answers.values()}) > 1:
                self.defects.append(f"read: {address!r} differs: {answers}"[:500])
        if surfaces:
            self._read_by_rpc(shelf)

    def _read_by_command(self, address: str) -> Any:
        if not _is_writable_text(address):
            return "not_found"
        words = ("read", "--json", "--profile", self.case.profile, "--no-cache", address)
        done = self.machine.run(*words)
        if "Traceback" in done.stderr or "internal error" in done.stderr:
            self.defects.append(f"command: read {address!r}: {done.stderr}"[:500])
        answer = json.loads(done.stdout)
        if "error" in answer:
            return f"error {answer['error']['code']}"
        return (answer["content"], answer["digest"])

    def _read_by_rpc(self, shelf: Shelf) -> None:
        options = {"profile": self.case.profile, "trust": "ask"}
        with redirect_stderr(StringIO()), rpc_in_process(self.machine, started=options) as client:
            client.confirm = lambda question: False
            for address in self.case.addresses:
                if not _is_writable_text(address):
                    continue
                self.probes += 1
                own = _answer(lambda a=address: _content(shelf.read(a)))  # type: ignore[misc]
                answer = client.start("skills.read", uri=address)()
                if "error" in answer:
                    found: Any = f"error {answer['error'].get('data', {}).get('code')}"
                else:
                    found = (answer["result"]["content"], answer["result"]["digest"])
                # A rule may deny a model what a person may read, and a model has only trusted skills to choose from.
                if found != "error denied" and own != "error ambiguous" and str(found) != str(own):
                    self.defects.append(f"rpc: {address!r} differs: {found} and {own}"[:500])

    # Commands ---------------------------------------------------------------------------------------

    def _run_commands(self) -> None:
        for words in (
            ["list", "--json", "--all"],
            ["list"],
            ["prompt"],
            ["tools"],
            ["check"],
            ["why", "guard"],
            ["hosts"],
        ):
            self.probes += 1
            extra = [] if words[0] in ("check", "why", "hosts") else ["--profile", self.case.profile]
            done = self.machine.run(*words, *extra)
            said = done.stdout + done.stderr
            if "Traceback" in said or "internal error" in said or done.returncode not in range(6):
                self.defects.append(f"command: {' '.join(words)}: {done.returncode}: {done.stderr}"[:500])
            if OUTSIDE in said:
                self.defects.append(f"leak: {words[0]} prints a file outside of every root")
            if words[0] in ("prompt", "tools") and STRANGER in said:
                self.defects.append(f"leak: {words[0]} prints a skill that nobody trusts")
            if any(character < " " and character not in "\n\t" for character in said):
                self.defects.append(f"terminal: {words[0]} prints a control character")


def _known_places(catalog: Catalog, defects: list[str]) -> None:
    """Report each SKILL.md below a root that the catalog does not mention: nothing vanishes silently."""
    paths = [entry.path for entries in (catalog.skills, catalog.errors, catalog.shadowed) for entry in entries]
    paths += [entry.path for entries in (catalog.warnings, catalog.filtered) for entry in entries]
    for root in catalog.roots:
        for folder, _, names in os.walk(root.path):
            if "SKILL.md" in names and not any(_speaks_of(path, folder) for path in paths):
                defects.append(f"lost: {folder}/SKILL.md is nowhere in the catalog")


def _speaks_of(path: str, folder: str) -> bool:
    """Return True if an entry is about the file, the folder, or a folder above that was left out."""
    place = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    wanted = folder.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return place.removesuffix("/SKILL.md") == wanted or wanted.startswith(place + "/")


def _answer(ask: Callable[[], Any]) -> Any:
    """Return the answer, or the code of an error of ours."""
    try:
        return ask()
    except SkillError as error:
        return f"error {kind_of(error).code}"


def _content(resource: Any) -> tuple[str, str]:
    return resource.content, resource.digest


def _is_writable_text(text: str) -> bool:
    """Return True if a text can stand in a command line and in JSON."""
    return "\0" not in text and text.isprintable() and not any("\ud800" <= character <= "\udfff" for character in text)


def _arguments(schema: Mapping[str, Any], case: Case) -> Iterator[dict[str, Any]]:
    """Yield arguments for a tool: each word and address of the case for each of its texts."""
    names = list(schema.get("properties", {}))
    for word in (*case.words, *case.addresses):
        yield dict.fromkeys(schema.get("required", names[:1]), word) or {names[0]: word}
