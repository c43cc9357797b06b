"""The name of a script to its bytes, their digest, and the program that runs them."""

import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import NamedTuple

from skillshelf.catalog.load import Listing, digest_of, refusing
from skillshelf.core import files
from skillshelf.core.atomic_write import give_tree, make_private_folder, remove_tree, write_new
from skillshelf.core.limits import (
    ADDRESS_CHARS,
    ADDRESS_SEGMENTS,
    LISTED_CHILDREN,
    LISTED_ENTRIES,
    RUN_SKILL_BYTES,
    SCRIPT_BYTES,
    WALK_DEPTH,
)
from skillshelf.core.text import visible
from skillshelf.errors import LimitExceeded, PathEscape, PermissionDenied, ResourceNotFound, ScriptNotRunnable

__all__ = [
    "FOLDER",
    "SYSTEM",
    "Interpreter",
    "Script",
    "Staged",
    "StagedPaths",
    "find_script",
    "folder_digest",
    "in_system",
    "interpreter_of",
    "make_place",
    "not_whole",
    "produced",
    "remove_place",
    "script_segments",
    "stage",
]


FOLDER = "scripts"
"""The folder of a skill that holds its scripts."""

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32", "/nix/store", "/gnu/store")
"""Where programs lie that belong to the system."""

_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_FIRST_LINE = 256
"""As much of a first line as Linux looks at."""

PROGRAMS: Mapping[str, tuple[str, ...]] = {
    ".bash": ("bash",),
    ".cjs": ("node",),
    ".fish": ("fish",),
    ".jl": ("julia",),
    ".js": ("node",),
    ".lua": ("lua",),
    ".mjs": ("node",),
    ".php": ("php",),
    ".pl": ("perl",),
    ".ps1": ("pwsh",),
    ".py": ("python3", "python"),
    ".r": ("Rscript",),
    ".rb": ("ruby",),
    ".sh": ("bash", "sh"),
    ".zsh": ("zsh",),
}
"""Who runs a script without a first line that says so, by the end of its name; the first that is installed."""


class Interpreter(NamedTuple):
    """The program that runs a script, and the arguments that stand before the script's path."""

    program: str
    arguments: tuple[str, ...] = ()


class Script(NamedTuple):
    """A script as it was read just now.

    `path` is relative to the skill. `folder_digest` covers every file below `scripts/`, because a script may use
    the others: it is the digest of the lines that `sha256sum` writes for them, sorted by path.
    """

    path: str
    digest: str
    folder_digest: str
    size: int
    interpreter: Interpreter


def find_script(skill_dir: str, script: str, *, env: Mapping[str, str] | None = None) -> Script:
    """The script of that name below `scripts/`; the folder of the skill is named by its real path."""
    segments = script_segments(script)
    shown = "/".join(segments)
    with refusing(shown, SCRIPT_BYTES), files.Folder(skill_dir) as folder:
        try:
            data = folder.read(segments, limit=SCRIPT_BYTES).data
        except IsADirectoryError:
            raise ScriptNotRunnable(f"{visible(shown)} is a folder; name a file in it") from None
        digests = _digests(folder)
    return Script(shown, digest_of(data), folder_digest(digests), len(data), interpreter_of(shown, data, env))


def _digests(folder: files.Folder) -> dict[str, str]:
    """The digest of every file below `scripts/`, by its path in there."""
    found, complete = folder.files(LISTED_ENTRIES, (FOLDER,))
    if not complete:
        raise not_whole(f"{FOLDER}/")
    left = RUN_SKILL_BYTES
    digests = {}
    for path in found:
        with suppress(ResourceNotFound), refusing(path, left):
            data = folder.read(path.split("/"), limit=left).data
            left -= len(data)
            digests[path.removeprefix(f"{FOLDER}/")] = digest_of(data)
    return digests


def not_whole(folder: str) -> LimitExceeded:
    """The refusal of a folder of which not every file was found."""
    return LimitExceeded(
        f"{folder} cannot be read whole: it holds more than {LISTED_ENTRIES} entries, is deeper than {WALK_DEPTH} "
        "folders, may not be read, or changed just now"
    )


def folder_digest(digests: Mapping[str, str]) -> str:
    """One digest for many files, given theirs by path."""
    lines = sha256()
    for path in sorted(digests, key=os.fsencode):
        lines.update(f"{digests[path].removeprefix('sha256:')}  ".encode() + os.fsencode(path) + b"\n")
    return f"sha256:{lines.hexdigest()}"


# Names ------------------------------------------------------------------------------------------------


def script_segments(script: str) -> tuple[str, ...]:
    """The names on the way to a script, from its skill's folder; `scripts/` in front may be left out."""
    if not script or len(script) > ADDRESS_CHARS:
        raise PathEscape(f"a script is named by 1 to {ADDRESS_CHARS} characters")
    if any(c < " " or "\x7f" <= c < "\xa0" or "\ud800" <= c <= "\udfff" or c == "\\" for c in script):
        raise PathEscape("the name of a script may not hold control characters, backslashes or broken characters")
    segments = script.removeprefix(f"{FOLDER}/").split("/")
    if any(name in ("", ".", "..") for name in segments):
        raise PathEscape(f"a script is named by its path below {FOLDER}/, without `.`, `..` or empty names")
    if len(segments) > ADDRESS_SEGMENTS or any(len(name.encode()) > 255 for name in segments):
        raise PathEscape(f"the path of a script has at most {ADDRESS_SEGMENTS} names of 255 bytes")
    return (FOLDER, *segments)


# Interpreters -------------------------------------------------------------------------------------------


def interpreter_of(shown: str, data: bytes, env: Mapping[str, str] | None = None) -> Interpreter:
    """Who runs these bytes: the first line says it, or else the end of the name."""
    search = _search_path(os.environ if env is None else env)
    if data.startswith(b"#!"):
        words = _first_line(shown, data)
        program = _installed(words[0], search)
        if program is None:
            raise ScriptNotRunnable(_missing(shown, f"its first line asks for {visible(words[0])}", words[0]))
        return Interpreter(program, tuple(words[1:]))
    if data.startswith(b"\x7fELF"):
        raise ScriptNotRunnable(f"{shown} is a compiled program; only scripts that can be read are run")
    names = PROGRAMS.get(os.path.splitext(shown)[1].lower())
    if names is None:
        known = " ".join(PROGRAMS)
        raise ScriptNotRunnable(
            f"nothing says who runs {shown}: begin it with a line like `#!/usr/bin/env python3`, "
            f"or end its name with one of {known}"
        )
    for name in names:
        if program := _installed(name, search):
            return Interpreter(program)
    raise ScriptNotRunnable(_missing(shown, f"a name like this is run by {names[0]}", names[0]))


def _missing(shown: str, why: str, program: str) -> str:
    return f"{shown}: {why}, which is not on this machine; install {visible(os.path.basename(program))} or change that"


def _first_line(shown: str, data: bytes) -> list[str]:
    """The program and arguments of a `#!` line; as in the kernel all after the program is one argument."""
    line, ended, _ = data[2:_FIRST_LINE].partition(b"\n")
    if not ended and len(data) > _FIRST_LINE:
        raise ScriptNotRunnable(f"{shown}: its first line has more than {_FIRST_LINE} bytes")
    try:
        text = line.decode("utf-8").strip(" \t\r")
    except UnicodeDecodeError:
        raise ScriptNotRunnable(f"{shown}: its first line is not UTF-8") from None
    if "\0" in text:
        raise ScriptNotRunnable(f"{shown}: its first line holds a NUL")
    program, _, argument = text.replace("\t", " ").partition(" ")
    argument = argument.strip(" ")
    if not program.startswith("/"):
        raise ScriptNotRunnable(f"{shown}: its first line must name a program by its whole path, as /usr/bin/env does")
    if os.path.basename(program) == "env":
        return _asked_of_env(shown, argument)
    return [program, argument] if argument else [program]


def _asked_of_env(shown: str, argument: str) -> list[str]:
    """What `env` would start: one name, or with `-S` a name and arguments."""
    split = next((argument.removeprefix(flag) for flag in ("--split-string=", "-S") if argument.startswith(flag)), None)
    if split is None:
        words = [argument]
    else:
        try:
            words = shlex.split(split)
        except ValueError as error:
            raise ScriptNotRunnable(f"{shown}: its first line cannot be read: {error}") from None
    if not words or not words[0] or words[0].startswith("-") or any(c in words[0] for c in "/= ${}\\"):
        raise ScriptNotRunnable(
            f"{shown}: its first line must give env the name of one program, or -S and a program with arguments"
        )
    return words


def _search_path(env: Mapping[str, str]) -> Sequence[str]:
    return [folder for folder in (env.get("PATH") or _DEFAULT_PATH).split(":") if folder.startswith("/")]


def in_system(path: str) -> bool:
    """Whether a path lies in a folder of the system."""
    return any(files.is_inside(path, folder) for folder in SYSTEM)


def _installed(program: str, search: Sequence[str]) -> str | None:
    """The path of a program that may be used: one of the system's, or one that the user's PATH leads to."""
    if program.startswith("/"):
        # A skill chooses this path, and what it names can be seen in the sandbox.
        known = in_system(os.path.normpath(program)) or os.path.dirname(program) in search
        return program if known and _is_program(program) else None
    for folder in search:
        path = os.path.join(folder, program)
        if _is_program(path):
            return path
    if program in ("python", "python3"):
        import sys

        return sys.executable or None
    return None


def _is_program(path: str) -> bool:
    try:
        if not os.access(path, os.X_OK) or os.path.isdir(path):
            return False
        return in_system(path) or not files.begins_with(path, b"#!")
    except (OSError, ValueError):
        return False


class StagedPaths(NamedTuple):
    """The private folder of one run, and the user who gets it, where that is not the one we are."""

    path: str
    user: int | None = None

    @property
    def skill(self) -> str:
        """The copy of the skill."""
        return f"{self.path}/skill"

    @property
    def work(self) -> str:
        """The folder the script starts in."""
        return f"{self.path}/work"

    @property
    def temporary(self) -> str:
        """What the script sees as /tmp."""
        return f"{self.path}/tmp"

    @property
    def shared_memory(self) -> str:
        """What the script sees as /dev/shm: a folder, so that what lies there takes disk and not memory."""
        return f"{self.path}/shm"


class Staged(NamedTuple):
    """A script in its copy: its path from the skill's folder, its digest, and who runs it."""

    path: str
    digest: str
    interpreter: Interpreter


def make_place(user: int | None) -> StagedPaths:
    """A new private folder with its four parts."""
    try:
        place = StagedPaths(make_private_folder("skillshelf-run-"), user)
        for path in (place.skill, place.work, place.temporary, place.shared_memory):
            os.mkdir(path)
            # What keeps others out is the private folder; behind the walls root needs a way in without its rights.
            os.chmod(path, 0o755)
    except OSError as error:
        raise ScriptNotRunnable(f"no work folder can be made for it: {error}") from error
    return place


def remove_place(place: StagedPaths, *, keep_work: bool) -> None:
    """Remove the private folder, or all of it but the work folder."""
    parts = (place.skill, place.temporary, place.shared_memory) if keep_work else (place.path,)
    if keep_work and place.user is not None:
        give_tree(place.work, os.geteuid())
    for path in parts:
        # What a script did to its folders must not hide how it ended; it is a temporary folder anyway.
        with suppress(OSError):
            remove_tree(path)


def produced(place: StagedPaths) -> Listing:
    """The regular files in the work folder; links that a script made are not followed, and not listed."""
    with files.Folder(place.work) as work:
        found, complete = work.files(LISTED_ENTRIES)
    paths = sorted(found, key=os.fsencode)
    return Listing(tuple(paths[:LISTED_CHILDREN]), len(paths), not complete or len(paths) > LISTED_CHILDREN)


def stage(
    skill_dir: str, segments: Sequence[str], place: StagedPaths, *, digest: str | None, folder_digest: str | None
) -> Staged:
    """Copy a skill; PermissionDenied if the copied script is not the one that was approved."""
    script = "/".join(segments)
    data, digests = _copy(skill_dir, segments, place)
    if digest not in (None, digests[script]):
        raise PermissionDenied(f"{script} changed since it was approved; look at it and approve it again")
    if folder_digest not in (None, _of_folder(digests)):
        raise PermissionDenied(
            f"a file in {FOLDER}/ changed since it was approved; look at them and approve them again"
        )
    interpreter = interpreter_of(script, data)
    if place.user is not None:
        for path in (place.skill, place.work, place.temporary, place.shared_memory):
            give_tree(path, place.user)
    return Staged(script, digests[script], interpreter)


def _copy(skill_dir: str, segments: Sequence[str], place: StagedPaths) -> tuple[bytes, dict[str, str]]:
    """The bytes of the script, and the digest of every file that was copied."""
    script = "/".join(segments)
    with refusing(script, SCRIPT_BYTES), files.Folder(skill_dir) as skill:
        try:
            data = _copy_file(skill, segments, place, SCRIPT_BYTES)
        except IsADirectoryError:
            raise ScriptNotRunnable(f"{script} is a folder; name a file in it") from None
        digests = {script: digest_of(data)}
        found, complete = skill.files(LISTED_ENTRIES)
        if not complete:
            raise not_whole("the skill's folder")
        left = RUN_SKILL_BYTES
        for path in found:
            if path != script:
                # One that went away since it was listed is not there, and the copy is without it.
                with suppress(ResourceNotFound), refusing(path, left):
                    other = _copy_file(skill, path.split("/"), place, left)
                    left -= len(other)
                    digests[path] = digest_of(other)
    return data, digests


def _copy_file(skill: files.Folder, segments: Sequence[str], place: StagedPaths, limit: int) -> bytes:
    """The bytes of a regular file, which are now those of a new file too; only its right to be run is kept."""
    contents = skill.read(segments, limit=limit)
    mode = 0o755 if contents.runnable else 0o644
    write_new(f"{place.skill}/{'/'.join(segments)}", contents.data, mode=mode)
    return contents.data


def _of_folder(digests: dict[str, str]) -> str:
    start = f"{FOLDER}/"
    return folder_digest({path[len(start) :]: known for path, known in digests.items() if path.startswith(start)})
