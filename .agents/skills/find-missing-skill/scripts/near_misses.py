#!/usr/bin/env python3
"""Folders to near misses: files and folders that almost are Agent Skills.

Reads names and the first mebibyte of candidate files. Follows no links and
changes nothing.
"""

import argparse
import codecs
import json
import os
import stat
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice, takewhile

SKILL_FILE = "SKILL.md"
FENCE = "---"
MAX_FILE_BYTES = 1024 * 1024
MAX_ENTRIES = 200_000
SKIPPED_FOLDERS = frozenset({".git", ".hg", ".jj", ".svn", "node_modules"})

# A look-alike that is also a plausible name for ordinary documentation. It
# counts only where a skill would live, or when it starts with a fence.
LOOK_ALIKES = frozenset({"skills.md", "skill.mdx", "skill.markdown", "skill.txt", "skill.md.txt", "skill"})

# Folders in which agents keep a `skills` folder.
AGENT_FOLDERS = frozenset(
    {".agent", ".agents", ".claude", ".codex", ".copilot", ".cursor", ".gemini", ".goose"}
    | {".kiro", ".omp", ".opencode", ".pi", ".qwen"}
)

# These parents give a folder called `skill` a meaning of its own.
SINGULAR_PARENTS = frozenset({".opencode", "opencode"})

EPILOG = """\
exit status:
  0  no near miss found
  1  at least one near miss found
  2  wrong usage, or a given folder cannot be read

.git, .hg, .jj, .svn and node_modules are not entered. Folders are visited
breadth first, so a walk that hits --max-entries has missed the deepest ones;
it says so.
"""


@dataclass(frozen=True, slots=True)
class NearMiss:
    """One thing that keeps a file or folder from being a skill."""

    path: str
    kind: str
    message: str
    fix: str


@dataclass(frozen=True, slots=True)
class Folder:
    """A listed folder; entries are sorted by name."""

    path: str
    entries: tuple[os.DirEntry[str], ...]

    @property
    def parts(self) -> list[str]:
        return self.path.split(os.sep)

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    @property
    def parent(self) -> str:
        return os.path.basename(os.path.dirname(self.path))

    def entry(self, name: str) -> os.DirEntry[str] | None:
        return next((entry for entry in self.entries if entry.name == name), None)


@dataclass(slots=True)
class Walk:
    """What a walk saw, and what it had to leave out."""

    max_entries: int
    folders: int = 0
    entries: int = 0
    truncated: bool = False
    skipped: list[dict[str, str]] = field(default_factory=list)

    def list_folder(self, path: str) -> Folder | None:
        """List one folder within the budget; None if it cannot be read."""
        budget = self.max_entries - self.entries
        try:
            with os.scandir(path) as listing:
                entries = list(islice(listing, budget + 1))
        except OSError as error:
            self.skipped.append({"path": path, "reason": reason(error)})
            return None
        if len(entries) > budget:
            self.truncated = True
            del entries[budget:]
        self.folders += 1
        self.entries += len(entries)
        return Folder(path, tuple(sorted(entries, key=lambda entry: entry.name)))

    def visit(self, starts: Sequence[str]) -> Iterator[Folder]:
        """Yield every folder at or below the starts, each once."""
        queue = deque(starts)
        seen: set[tuple[int, int]] = set()
        while queue and not self.truncated:
            path = queue.popleft()
            try:
                status = os.stat(path)
            except OSError as error:
                self.skipped.append({"path": path, "reason": reason(error)})
                continue
            identity = (status.st_dev, status.st_ino)
            if identity in seen:
                continue
            seen.add(identity)
            folder = self.list_folder(path)
            if folder is None:
                continue
            queue.extend(entry.path for entry in folder.entries if is_walkable(entry))
            yield folder


def reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


def is_walkable(entry: os.DirEntry[str]) -> bool:
    return entry.name not in SKIPPED_FOLDERS and kind_of(entry) == "folder"


def kind_of(entry: os.DirEntry[str]) -> str:
    """Say what an entry is without following it."""
    try:
        if entry.is_symlink():
            return "link"
        if entry.is_dir(follow_symlinks=False):
            return "folder"
        return "file" if entry.is_file(follow_symlinks=False) else "special file"
    except OSError:
        return "unknown"


def is_skills_root(parts: Sequence[str]) -> bool:
    """True for a folder called `skills`, but not for a skill of that name in one."""
    run = sum(1 for _ in takewhile(lambda part: part == "skills", reversed(parts)))
    return run % 2 == 1


def is_agent_root(folder: Folder) -> bool:
    return is_skills_root(folder.parts) and folder.parent in AGENT_FOLDERS


def read_head(path: str) -> tuple[bytes, bool]:
    """Return the first mebibyte of a regular file, and whether that is all of it."""
    # O_NONBLOCK and the second look at the type: the entry may have become a
    # FIFO since it was listed, and opening one for reading would wait forever.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    handle = os.open(path, flags | getattr(os, "O_BINARY", 0))
    with open(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(0, "not a regular file")
        data = stream.read(MAX_FILE_BYTES + 1)
    return data[:MAX_FILE_BYTES], len(data) <= MAX_FILE_BYTES


def starts_with_fence(entry: os.DirEntry[str]) -> bool:
    if kind_of(entry) != "file":
        return False
    try:
        data, _ = read_head(entry.path)
    except OSError:
        return False
    return data.removeprefix(codecs.BOM_UTF8).split(b"\n", 1)[0].rstrip() == FENCE.encode()


def check_text(path: str, data: bytes, complete: bool) -> Iterator[NearMiss]:
    """Look for bytes and fences that make hosts miss the frontmatter."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        yield NearMiss(path, "bom", "the file is UTF-16", "save it as UTF-8 without BOM")
        return
    if data.startswith(codecs.BOM_UTF8):
        yield NearMiss(
            path,
            "bom",
            "a byte order mark stands before the opening fence",
            "save it as UTF-8 without BOM",
        )
        data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(data, final=complete)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        yield NearMiss(path, "encoding", f"line {line} is not UTF-8", "convert it to UTF-8")
        text = data.decode("utf-8", errors="replace")
    yield from check_fences(path, [line.removesuffix("\r") for line in text.split("\n")], complete)


def check_fences(path: str, lines: list[str], complete: bool) -> Iterator[NearMiss]:
    if lines[0].rstrip() != FENCE:
        yield NearMiss(path, "opening-fence", *explain_opening(lines))
        return
    if lines[0] != FENCE:
        yield NearMiss(path, "fence-space", "blanks follow the opening fence", "remove them")
    closing = next((n for n, line in enumerate(lines[1:], 2) if line.rstrip() == FENCE), None)
    if closing is None:
        where = "" if complete else " in the first mebibyte"
        yield NearMiss(
            path,
            "closing-fence",
            f"no line after the first is '---'{where}{explain_closing(lines)}",
            "put '---' alone on the line below the last field",
        )
    elif lines[closing - 1] != FENCE:
        message = f"blanks follow the closing fence on line {closing}"
        yield NearMiss(path, "fence-space", message, "remove them")


def explain_opening(lines: list[str]) -> tuple[str, str]:
    """Return message and fix for a first line that is no fence."""
    if not any(line.strip() for line in lines):
        return "the file is empty", "write the frontmatter and the instructions"
    below = next((n for n, line in enumerate(lines[:50], 1) if line.rstrip() == FENCE), None)
    if below is not None and any(line.startswith("name:") for line in lines[below : below + 50]):
        return (
            f"the opening fence is on line {below}, not on line 1",
            "move everything above it below the closing fence, or delete it",
        )
    return (
        f"line 1 is {clip(lines[0])!r}, not '---'",
        "start the file with '---', the fields name and description, and '---'",
    )


def explain_closing(lines: list[str]) -> str:
    """Point at a line that was perhaps meant as the closing fence."""
    for number, line in enumerate(islice(lines, 1, 200), 2):
        if line.strip() and not line.strip().strip("-.\u2013\u2014"):
            return f"; line {number} is {clip(line)!r}"
    return ""


def clip(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "\u2026"


def check_skill_file(entry: os.DirEntry[str]) -> Iterator[NearMiss]:
    kind = kind_of(entry)
    if kind == "link" and not os.path.exists(entry.path):
        yield NearMiss(entry.path, "broken-link", "the link leads nowhere or in a circle", "repair the link")
    elif kind == "link":
        yield NearMiss(
            entry.path,
            "linked-file",
            "SKILL.md is a link, and some hosts skip linked files without a word",
            "put the real file here, or link the whole folder instead",
        )
    elif kind != "file":
        yield NearMiss(entry.path, "not-a-file", f"a {kind}, not a regular file", "replace it by a regular file")
    else:
        try:
            data, complete = read_head(entry.path)
        except OSError as error:
            yield NearMiss(entry.path, "unreadable", reason(error), "give the user who runs the agent access")
            return
        yield from check_text(entry.path, data, complete)


def check_file_names(folder: Folder) -> Iterator[NearMiss]:
    """Report files that were probably meant to be SKILL.md."""
    real = folder.entry(SKILL_FILE)
    in_place = is_skills_root(folder.parts) or is_skills_root(folder.parts[:-1])
    for entry in folder.entries:
        folded = entry.name.casefold()
        if entry.name == SKILL_FILE or kind_of(entry) == "folder":
            continue
        if folded == SKILL_FILE.casefold():
            message = "lies beside SKILL.md and is never read" if real else "wrong upper or lower case"
        elif folded in LOOK_ALIKES and not real and (in_place or starts_with_fence(entry)):
            message = "wrong file name"
        else:
            continue
        fix = "merge it into SKILL.md" if real else "rename it to SKILL.md, exactly"
        yield NearMiss(entry.path, "file-name", message, fix)


def check_folder_names(folder: Folder) -> Iterator[NearMiss]:
    """Report folders that were probably meant to be a skills root."""
    if not folder.entries:
        return
    name, parent = folder.name.casefold(), folder.parent.casefold()
    if name == "skills" and parent in {".agent", ".agents"} and folder.parent != ".agents":
        yield NearMiss(
            folder.path,
            "folder-name",
            f"{folder.parent!r} is read by few hosts",
            "move the skills to .agents/skills",
        )
    if name not in {"skill", "skills"} or folder.name == "skills":
        return
    if folder.parent in SINGULAR_PARENTS and folder.name == "skill":
        return
    if parent in AGENT_FOLDERS or holds_skills(folder):
        yield NearMiss(
            folder.path,
            "folder-name",
            f"{folder.name!r} is not 'skills'",
            "rename the folder to skills",
        )


def holds_skills(folder: Folder) -> bool:
    """True if a direct child folder holds a SKILL.md, in the usual spellings."""
    return any(
        os.path.lexists(os.path.join(entry.path, name))
        for entry in islice(folder.entries, 200)
        if kind_of(entry) == "folder"
        for name in (SKILL_FILE, "skill.md", "Skill.md", "SKILL.MD")
    )


def check_place(folder: Folder) -> Iterator[NearMiss]:
    """Report skills that lie one level too high."""
    entry = folder.entry(SKILL_FILE)
    if entry is not None and is_skills_root(folder.parts):
        yield NearMiss(
            entry.path,
            "root-file",
            "SKILL.md lies directly in a skills root; several hosts want a folder around it",
            "move it to skills/<name>/SKILL.md",
        )
    elif entry is not None and folder.parent in AGENT_FOLDERS and folder.name.casefold() not in {"skill", "skills"}:
        yield NearMiss(
            entry.path,
            "no-skills-folder",
            f"the skill lies directly in {folder.parent}",
            f"move the folder to {folder.parent}/skills/{folder.name}",
        )


def check_root_entries(folder: Folder) -> Iterator[NearMiss]:
    """Report flat skill files and dead links in a skills root of an agent."""
    if not is_agent_root(folder):
        return
    for entry in folder.entries:
        if entry.name.casefold() in LOOK_ALIKES or entry.name.casefold() == SKILL_FILE.casefold():
            continue
        if kind_of(entry) == "link" and not os.path.exists(entry.path):
            yield NearMiss(
                entry.path,
                "broken-link",
                "the link leads nowhere or in a circle",
                "repair or remove it",
            )
        elif entry.name.endswith(".md") and starts_with_fence(entry):
            stem = entry.name.removesuffix(".md")
            yield NearMiss(
                entry.path,
                "flat-file",
                "a skill is a folder; most hosts ignore a file here",
                f"move it to {stem}/SKILL.md",
            )


def check_folder(folder: Folder) -> Iterator[NearMiss]:
    yield from check_folder_names(folder)
    yield from check_file_names(folder)
    yield from check_place(folder)
    yield from check_root_entries(folder)
    entry = folder.entry(SKILL_FILE)
    if entry is not None:
        yield from check_skill_file(entry)


def printable(text: str) -> str:
    """Escape what a terminal might obey: file names belong to strangers."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def print_text(walk: Walk, found: Sequence[NearMiss]) -> None:
    for miss in found:
        print(printable(f"{miss.path}: {miss.kind}: {miss.message}"))
        print(printable(f"    fix: {miss.fix}"))
    for skipped in walk.skipped:
        print(printable(f"skipped {skipped['path']}: {skipped['reason']}"), file=sys.stderr)
    if walk.truncated:
        limit = f"stopped after {walk.entries} entries; raise --max-entries or give a smaller folder"
        print(limit, file=sys.stderr)
    print(f"near misses: {len(found)}; folders: {walk.folders}", file=sys.stderr)


def print_json(walk: Walk, found: Sequence[NearMiss]) -> None:
    answer = {
        "folders": walk.folders,
        "truncated": walk.truncated,
        "near_misses": [asdict(miss) for miss in found],
        "skipped": walk.skipped,
    }
    print(json.dumps(answer, indent=2))


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"not a number above 0: {printable(text)}")
    return int(text)


def folder_argument(text: str) -> str:
    """Check a folder given on the command line, which may itself be a link."""
    path = os.path.abspath(text)
    if not os.path.exists(path):
        raise argparse.ArgumentTypeError(f"no such folder: {printable(text)}")
    if not os.path.isdir(path):
        raise argparse.ArgumentTypeError(f"not a folder, give the one it is in: {printable(text)}")
    if not os.access(path, os.R_OK | os.X_OK):
        raise argparse.ArgumentTypeError(f"cannot be read: {printable(text)}")
    return path


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        description="Find files and folders that almost are Agent Skills.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument(
        "folders",
        nargs="*",
        type=folder_argument,
        metavar="FOLDER",
        help="where to look (default: the working directory)",
    )
    result.add_argument("--json", action="store_true", help="print one JSON object")
    result.add_argument(
        "--max-entries",
        type=positive,
        default=MAX_ENTRIES,
        metavar="N",
        help="stop after N files and folders (default: %(default)s)",
    )
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    walk = Walk(max_entries=options.max_entries)
    starts = options.folders or [os.path.abspath(os.curdir)]
    found = sorted(
        (miss for folder in walk.visit(starts) for miss in check_folder(folder)),
        key=lambda miss: (miss.path, miss.kind, miss.message),
    )
    (print_json if options.json else print_text)(walk, found)
    return 1 if found else 0


if __name__ == "__main__":
    # A terminal that cannot show a character gets an escape, not a traceback.
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, `head` for example, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)
