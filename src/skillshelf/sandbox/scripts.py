"""Find and copy the scripts of a skill, and choose the interpreter of each."""

import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from errno import EBUSY
from hashlib import sha256

from skillshelf.catalog.load import Listing, digest_of, refusing
from skillshelf.catalog.locked_files import LockedFiles
from skillshelf.catalog.tree import GIT, SkillTree, TreeFile, skill_tree, tree_digest
from skillshelf.core import files
from skillshelf.core.disk_writes import (
    OwnedFolder,
    give_tree,
    keep_owned_folder,
    make_owned_folder,
    remove_owned_folder,
    remove_tree,
    sweep_owned_folders,
    write_new,
)
from skillshelf.core.limits import (
    ADDRESS_CHARS,
    ADDRESS_SEGMENTS,
    LISTED_CHILDREN,
    LISTED_ENTRIES,
    RUN_SKILL_BYTES,
    SCRIPT_BYTES,
    WALK_DEPTH,
)
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import visible
from skillshelf.errors import (
    FileReadError,
    LimitExceeded,
    PathEscape,
    PermissionDenied,
    ResourceNotFound,
    ScriptNotRunnable,
)

__all__ = [
    "FOLDER",
    "SYSTEM",
    "Interpreter",
    "RunFolder",
    "Script",
    "StagedScript",
    "find_program",
    "find_script",
    "in_system",
    "interpreter_of",
    "make_staged_paths",
    "produced_files",
    "remove_staged_paths",
    "script_segments",
    "stage",
    "unreadable_folder",
]


FOLDER = "scripts"
"""The folder of a skill that holds its scripts."""

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32", "/nix/store", "/gnu/store")
"""The folders of programs that belong to the system."""

_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_FIRST_LINE = 256
"""The length of a first line that Linux reads."""

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
"""Interpreters by file extension, for scripts without a shebang; the first one installed is used."""


class Interpreter(NamedTuple):
    """The program that runs a script, and its arguments before the script's path."""

    program: str
    arguments: tuple[str, ...] = ()


class Script(NamedTuple):
    """A script as it is on disk.

    `path` is relative to the skill. `tree` covers every file of the skill, because a script may use the others.
    """

    path: str
    digest: str
    tree: SkillTree
    size: int
    interpreter: Interpreter


def find_script(
    skill_dir: str, script: str, *, env: Mapping[str, str] | None = None, locked: LockedFiles | None = None
) -> Script:
    """Return the script of that name below `scripts/`; `skill_dir` is a real path, `locked` the files if installed."""
    segments = script_segments(script)
    shown = "/".join(segments)
    if locked is not None:
        data = _locked_script(locked, shown)
        return Script(shown, digest_of(data), locked.tree, len(data), interpreter_of(shown, data, env))
    with refusing(shown, SCRIPT_BYTES), files.Folder(skill_dir) as folder:
        try:
            data = folder.read(segments, limit=SCRIPT_BYTES).data
        except IsADirectoryError:
            raise ScriptNotRunnable(f"{visible(shown)} is a folder; name a file in it") from None
    tree = skill_tree(skill_dir)
    known = tree.listed.get(shown)
    if known is not None and digest_of(data) != f"sha256:{known.sha256}":
        raise FileReadError(shown, OSError(EBUSY, "it changed while it was read"))
    return Script(shown, digest_of(data), tree, len(data), interpreter_of(shown, data, env))


def _locked_script(locked: LockedFiles, shown: str) -> bytes:
    """Return the bytes of a script of an installed skill."""
    found = locked.contents.get(shown)
    if found is None and any(path.startswith(f"{shown}/") for path in locked.contents):
        raise ScriptNotRunnable(f"{visible(shown)} is a folder; name a file in it")
    if found is None:
        raise ResourceNotFound(shown)
    if len(found.data) > SCRIPT_BYTES:
        raise LimitExceeded(f"{shown} has {len(found.data)} bytes; at most {SCRIPT_BYTES} are read")
    return found.data


def unreadable_folder(folder: str) -> LimitExceeded:
    """Return the error for a folder whose files could not all be listed."""
    return LimitExceeded(
        f"{folder} cannot be read whole: it holds more than {LISTED_ENTRIES} entries, is deeper than {WALK_DEPTH} "
        "folders, may not be read, or changed just now"
    )


# Names ------------------------------------------------------------------------------------------------


def script_segments(script: str) -> tuple[str, ...]:
    """Return the segments of a script's path in its skill; a leading `scripts/` may be left out."""
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
    """Return the interpreter, from the shebang or else from the file extension."""
    search = _search_path(env)
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
            f"no interpreter is known for {shown}: begin it with a line like `#!/usr/bin/env python3`, "
            f"or end its name with one of {known}"
        )
    for name in names:
        if program := _installed(name, search):
            return Interpreter(program)
    raise ScriptNotRunnable(_missing(shown, f"a name like this is run by {names[0]}", names[0]))


def _missing(shown: str, why: str, program: str) -> str:
    return f"{shown}: {why}, which is not on this machine; install {visible(os.path.basename(program))} or change that"


def _first_line(shown: str, data: bytes) -> list[str]:
    """Return the program and arguments of a shebang; as in the kernel, the rest of the line is one argument."""
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
        return _env_command(shown, argument)
    return [program, argument] if argument else [program]


def _env_command(shown: str, argument: str) -> list[str]:
    """Return the command that `env` would start: one name, or with `-S` a name and arguments."""
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


def _search_path(env: Mapping[str, str] | None = None) -> list[str]:
    """Return the folders of PATH; not those named from the working directory, which may be a stranger's."""
    path = (os.environ if env is None else env).get("PATH") or _DEFAULT_PATH
    return [folder for folder in path.split(":") if folder.startswith("/")]


def find_program(name: str) -> str | None:
    """Return the path of a program that we start ourselves, or None if it is not installed."""
    from shutil import which

    return which(name, path=":".join(_search_path()))


def in_system(path: str) -> bool:
    """Return True if a path is inside a system folder."""
    return any(files.is_inside(path, folder) for folder in SYSTEM)


def _installed(program: str, search: Sequence[str]) -> str | None:
    """Return the path of a program of the system or of the user's PATH, or None."""
    if program.startswith("/"):
        # A skill chooses this path, and the program becomes visible in the sandbox.
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


class RunFolder(NamedTuple):
    """The private folder of one run; `user` is its owner if that is not the current user.

    `size` is that of each file system that the sandbox makes for the script to write to, or None if it writes to
    folders in this one. `owner` is the descriptor that tells others that the run goes on.
    """

    path: str
    user: int | None = None
    size: int | None = None
    owner: int = -1

    @property
    def skill(self) -> str:
        """The copy of the skill."""
        return f"{self.path}/skill"

    @property
    def work(self) -> str:
        """The folder the script starts in, or to which its files are copied in the end."""
        return f"{self.path}/work"

    @property
    def temporary(self) -> str:
        """The folder for temporary files."""
        return f"{self.path}/tmp"

    @property
    def shared_memory(self) -> str:
        """The folder mounted as /dev/shm; it takes disk space, not memory."""
        return f"{self.path}/shm"

    @property
    def writable(self) -> tuple[str, ...]:
        """The folders that the script writes to."""
        return (self.work, self.temporary, self.shared_memory) if self.size is None else ()

    @property
    def folders(self) -> tuple[str, ...]:
        """All subfolders."""
        return self.skill, *self.writable


class StagedScript(NamedTuple):
    """A copied script: its path in the skill, its digest, and its interpreter."""

    path: str
    digest: str
    interpreter: Interpreter


_FOLDER_PREFIX = "skillshelf-run-"
_KEPT_PREFIX = "skillshelf-kept-"
_SWEEP_SECONDS = 5.0


def make_staged_paths(user: int | None, size: int | None = None) -> RunFolder:
    """Create the private folder of a run with its subfolders; remove those that dead processes left behind."""
    try:
        sweep_owned_folders(_FOLDER_PREFIX, seconds=_SWEEP_SECONDS)
        folder = make_owned_folder(_FOLDER_PREFIX)
        paths = RunFolder(folder.path, user, size, folder.owner)
        with ExitStack() as on_error:
            on_error.callback(remove_owned_folder, folder)
            for path in paths.folders:
                os.mkdir(path)
                # The private folder keeps others out; in the sandbox root needs access without its privileges.
                os.chmod(path, 0o755)
            on_error.pop_all()
    except OSError as error:
        raise ScriptNotRunnable(f"no work folder can be made for it: {error}") from error
    return paths


def remove_staged_paths(paths: RunFolder, *, keep_work: bool) -> str | None:
    """Remove the private folder; with `keep_work` keep the work folder and return its path."""
    folder = OwnedFolder(paths.path, paths.owner)
    if not keep_work:
        # A folder that cannot be removed must not hide how the script ended; it is temporary anyway.
        remove_owned_folder(folder)
        return None
    if paths.user is not None:
        give_tree(paths.work, os.geteuid())
    for path in paths.folders:
        if path != paths.work:
            with suppress(OSError):
                remove_tree(path)
    return RunFolder(keep_owned_folder(folder, _KEPT_PREFIX)).work


def produced_files(work: files.Folder) -> Listing:
    """Return the regular files in the work folder; links are neither followed nor listed."""
    found, complete = work.files(LISTED_ENTRIES)
    names = sorted(found, key=files.path_bytes)
    return Listing(tuple(names[:LISTED_CHILDREN]), len(names), not complete or len(names) > LISTED_CHILDREN)


def stage(
    skill_dir: str,
    segments: Sequence[str],
    paths: RunFolder,
    *,
    digest: str | None,
    version: str | None,
    locked: LockedFiles | None = None,
) -> StagedScript:
    """Copy a skill; raise PermissionDenied if the copy is not what was approved. Of one that is `locked` no file but
    those of its lock is copied.

    `digest` is that of the script, `version` that of the skill's tree: the copied files themselves must have it, or, if
    the skill has no digest, its folder must still have it after the copy.
    """
    script = "/".join(segments)
    data, copied = _copy(skill_dir, segments, paths) if locked is None else _copy_locked(locked, script, paths)
    if digest not in (None, digest_of(data)):
        raise PermissionDenied(f"{script} changed since it was approved; review it and approve it again")
    if version is not None and version != tree_digest(copied) and version != _version_now(skill_dir, version):
        raise PermissionDenied("a file of the skill changed since it was approved; review it and approve it again")
    interpreter = interpreter_of(script, data)
    if paths.user is not None:
        for path in paths.folders:
            give_tree(path, paths.user)
    return StagedScript(script, digest_of(data), interpreter)


def _version_now(skill_dir: str, version: str) -> str | None:
    """Return the version of a skill that has no digest; one with a digest is known by its copied files alone."""
    return None if version.startswith("sha256:") else skill_tree(skill_dir).version


def _copy(skill_dir: str, segments: Sequence[str], paths: RunFolder) -> tuple[bytes, Mapping[str, TreeFile]]:
    """Copy all files but a `.git` at the top, which no digest covers; return the script's bytes and what was copied."""
    script = "/".join(segments)
    with refusing(script, SCRIPT_BYTES), files.Folder(skill_dir) as skill:
        try:
            first = _copy_file(skill, segments, paths, SCRIPT_BYTES)
        except IsADirectoryError:
            raise ScriptNotRunnable(f"{script} is a folder; name a file in it") from None
        found, complete = skill.files(LISTED_ENTRIES, without=(GIT,))
        if not complete:
            raise unreadable_folder("the skill's folder")
        copied = {script: _tree_file(first)}
        left = RUN_SKILL_BYTES
        for path in found:
            if path == script:
                continue
            # A file that was deleted since it was listed is left out.
            with suppress(ResourceNotFound), refusing(path, left):
                contents = _copy_file(skill, path.split("/"), paths, left)
                left -= len(contents.data)
                copied[path] = _tree_file(contents)
    return first.data, copied


def _copy_locked(locked: LockedFiles, script: str, paths: RunFolder) -> tuple[bytes, Mapping[str, TreeFile]]:
    """Write exactly the files of an installed skill, from the bytes that were checked."""
    data = _locked_script(locked, script)
    for path, contents in locked.contents.items():
        write_new(f"{paths.skill}/{path}", contents.data, mode=0o755 if contents.runnable else 0o644)
    return data, locked.tree.listed


def _tree_file(contents: files.Contents) -> TreeFile:
    return TreeFile(len(contents.data), sha256(contents.data).hexdigest(), contents.runnable)


def _copy_file(skill: files.Folder, segments: Sequence[str], paths: RunFolder, limit: int) -> files.Contents:
    """Copy a regular file and return it; of its mode only the executable bit is kept."""
    contents = skill.read(segments, limit=limit)
    mode = 0o755 if contents.runnable else 0o644
    write_new(f"{paths.skill}/{'/'.join(segments)}", contents.data, mode=mode)
    return contents
