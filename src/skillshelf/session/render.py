"""Render a loaded skill as text for a model, with the user's arguments, and collect AGENTS.md files."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from skillshelf.catalog.load import LoadedSkill
from skillshelf.config.profile import LoadForm, Profile
from skillshelf.config.settings import Trust, is_trusted
from skillshelf.core import files
from skillshelf.core.environment import find_repository
from skillshelf.core.limits import RESOURCE_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import attribute, closing_tags, escape_closing_tags, fold, for_model, path_text, trust_command
from skillshelf.core.values import Diagnostic
from skillshelf.errors import ConfigurationError

__all__ = [
    "MODES",
    "AgentsMdFile",
    "Page",
    "Rendered",
    "activated",
    "agents_context",
    "agents_md_files",
    "as_follow_up",
    "base_directory",
    "find_agents_md",
    "held_back_warning",
    "joined_agents_md",
    "load_again",
    "page",
    "render",
    "render_preloaded",
    "with_arguments",
]


PLACEHOLDER = "$ARGUMENTS"

EmptyArguments = Literal["replace", "keep"]
"""The effect of empty arguments on a placeholder: one system's document keeps it, its code replaces it."""


def with_arguments(body: str, arguments: str, mode: str, *, empty: EmptyArguments) -> str:
    """Return the body with the arguments inserted as the mode says; nothing else in the body is expanded."""
    return MODES[mode](body, arguments.strip(), empty)


def _none(body: str, arguments: str, empty: EmptyArguments) -> str:
    return body


def _substitute(body: str, arguments: str, empty: EmptyArguments) -> str:
    if PLACEHOLDER in body:
        # One pass: arguments that hold the placeholder are not expanded again.
        return body if not arguments and empty == "keep" else body.replace(PLACEHOLDER, arguments)
    return _append(body, arguments, empty)


def _append(body: str, arguments: str, empty: EmptyArguments) -> str:
    return f"{body.rstrip()}\n\nARGUMENTS: {arguments}\n" if arguments else body


MODES: Mapping[str, Callable[[str, str, EmptyArguments], str]] = {
    "none": _none,
    "substitute": _substitute,
    "append": _append,
    # The form that renders the text writes the line itself.
    "user-line": _none,
}


STEPS = 20
FILE_NAME = "AGENTS.md"


class AgentsMdFile(NamedTuple):
    """One AGENTS.md; `depth` counts the folders from the working directory up to it."""

    path: str
    depth: int
    text: str


def find_agents_md(
    cwd: str, *, trust: Trust = "all", trusted_folders: Sequence[str] = (), home: str | None = None
) -> list[AgentsMdFile]:
    """Return the AGENTS.md files that count from a folder upward, nearest first, at most 20 steps.

    A file in a hidden folder, or in any folder below one, is skipped. Above the repository, or above the folder itself
    if there is none, somebody else may have written: a file there counts in a trusted folder and in the user's home,
    and without a repository also if it belongs to the user. With `trust="ask"` files of the project count only in
    trusted folders, with `"user"` only the one in the home folder counts.
    """
    return agents_md_files(cwd, trust, [files.real_path(folder) for folder in trusted_folders], home)[0]


def agents_md_files(
    cwd: str, trust: Trust, trusted_folders: Sequence[str], home: str | None
) -> tuple[list[AgentsMdFile], list[AgentsMdFile]]:
    """Return the AGENTS.md files that count, and those that are held back."""
    repository = find_repository(os.path.abspath(cwd), _MARKERS)
    project = files.real_path(repository or cwd)

    def counts(file: AgentsMdFile) -> bool:
        folder = files.real_path(os.path.dirname(file.path))
        if home is not None and folder == files.real_path(home):
            return True
        if trust != "all":
            return trust == "ask" and is_trusted(folder, trusted_folders)
        if files.is_inside(folder, project) or is_trusted(folder, trusted_folders):
            return True
        return repository is None and files.belongs_to_user(file.path)

    found = _all_agents_md(cwd)
    return [file for file in found if counts(file)], [file for file in found if not counts(file)]


def held_back_warning(file: AgentsMdFile) -> Diagnostic:
    """Return the warning about a file that does not count until its folder is trusted."""
    message = f"held back because its folder is not trusted: {trust_command(os.path.dirname(file.path))}"
    return Diagnostic(file.path, "agents-md", message)


_MARKERS = (".git", ".jj", ".hg")


def _all_agents_md(cwd: str) -> list[AgentsMdFile]:
    found = []
    folder = os.path.abspath(cwd)
    for depth in range(STEPS + 1):
        is_hidden = any(segment.startswith(".") for segment in folder.split(os.sep))
        if not is_hidden and (text := _text(folder)) is not None:
            found.append(AgentsMdFile(os.path.join(folder, FILE_NAME), depth, text))
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    return found


def agents_context(
    cwd: str, *, trust: Trust = "all", trusted_folders: Sequence[str] = (), home: str | None = None
) -> str:
    """Return the AGENTS.md files that count as one text, the nearest last, because later text takes precedence.

    The options are those of `find_agents_md`; `Session.agents_context` takes them from its shelf.
    """
    return joined_agents_md(find_agents_md(cwd, trust=trust, trusted_folders=trusted_folders, home=home))


def joined_agents_md(found: Sequence[AgentsMdFile]) -> str:
    """Return the files that `find_agents_md` found, or some of them, as one text."""
    return "\n\n".join(file.text.strip() for file in reversed(found))


def _text(folder: str) -> str | None:
    path = os.path.join(folder, FILE_NAME)
    # A link to another file of the same folder is common; one that leads out of it is not followed.
    if files.is_inside(files.real_path(path), files.real_path(folder)):
        path = files.real_path(path)
    try:
        data = files.read_file(path, limit=RESOURCE_BYTES, links="never")
    except OSError:
        return None
    return None if data is None else data.decode("utf-8", "replace")


Frame = Callable[[str, Sequence[str], bool], str]
"""Write the text for a model around a body, with a list of files; True if that list is not all of them."""


class Rendered(NamedTuple):
    """The text for a model, with warnings about its content.

    `body` is the author's part of the text, and `frame` writes the rest around a part of it.
    """

    text: str
    warnings: tuple[Diagnostic, ...] = ()
    body: str = ""
    frame: Frame | None = None


def render(loaded: LoadedSkill, profile: Profile, arguments: str = "", *, root: str = "/") -> Rendered:
    """Return the loaded skill in the profile's form, with the user's arguments; `root` is that of the project."""
    text = loaded.content if profile.loaded_text == "file" else loaded.body
    expanded = with_arguments(text, arguments, profile.arguments, empty=profile.empty_arguments)
    form = FORMS[profile.load_form]
    body, warnings = _sealed(loaded, expanded, form.element) if form.element else (expanded, ())
    body = form.trim(body)

    def frame(part: str, listed: Sequence[str], truncated: bool) -> str:
        return form.write(_FrameContext(loaded, listed, truncated, root), part)

    return Rendered(frame(body, loaded.files, loaded.files_truncated), warnings, body, frame)


class _FrameContext(NamedTuple):
    loaded: LoadedSkill
    listed: Sequence[str]
    truncated: bool
    root: str


class _Form(NamedTuple):
    """How a loaded skill is written; `element` is the one that a body must not close."""

    write: Callable[[_FrameContext, str], str]
    element: str | None = None
    trim: Callable[[str], str] = str.strip


def _origin(loaded: LoadedSkill) -> str:
    """Return the attribute that names the live source of a skill; empty for one on this disk."""
    return f' origin="{attribute(loaded.skill.source)}"' if loaded.skill.scope == "remote" else ""


def _origin_line(loaded: LoadedSkill) -> str:
    """Return the same as a line of text."""
    return f"Origin: {fold(for_model(loaded.skill.source))}\n\n" if loaded.skill.scope == "remote" else ""


def _skill_content(context: _FrameContext, body: str) -> str:
    loaded = context.loaded
    head = (
        f'<skill_content name="{attribute(loaded.skill.name)}" directory="{path_text(loaded.skill.dir)}" '
        f'digest="{loaded.digest}"{_origin(loaded)}>'
    )
    truncated = "true" if context.truncated else "false"
    lines = [
        head,
        body,
        f'<skill_resources count="{loaded.files_total}" truncated="{truncated}">',
        *(path_text(path) for path in context.listed),
        "</skill_resources>",
        "</skill_content>",
    ]
    return "\n".join(lines)


def _skill_context(context: _FrameContext, body: str) -> str:
    # Imported here: it takes as long as starting Python, and one profile needs it.
    from urllib.parse import quote

    loaded = context.loaded
    folder = loaded.skill.dir
    lines = [
        f'<skill_context name="{attribute(loaded.skill.name)}" path="{path_text(loaded.skill.path)}"{_origin(loaded)}>',
        body,
        "",
        f"Base directory: file://{quote(folder)}/",
        "Relative paths in this skill are resolved from this directory.",
        "<skill_files>",
        *(f"<file>{path_text(os.path.join(folder, path))}</file>" for path in context.listed),
        *(["<truncated/>"] if context.truncated else []),
        "</skill_files>",
        "</skill_context>",
    ]
    return "\n".join(lines)


def _skill_activated(context: _FrameContext, body: str) -> str:
    loaded = context.loaded
    body = _origin_line(loaded) + body
    return activated(loaded.skill.name, body, loaded.has_scripts, loaded.has_references, loaded.has_assets)


def activated(name: str, instructions: str, has_scripts: bool, has_references: bool, has_assets: bool) -> str:
    """Return the text for an activated skill, with the kinds of resources it has."""
    resources = {"Scripts": has_scripts, "References": has_references, "Assets": has_assets}
    lines = [f"- {kind}: {'yes' if present else 'no'}" for kind, present in resources.items()]
    return "\n".join(
        [f"# Skill Activated: {fold(for_model(name))}", "", instructions, "", "## Available Resources", *lines]
    )


def base_directory(loaded: LoadedSkill, root: str) -> str:
    """Return the folder of a skill in the one spelling of a response envelope: from the root of the project."""
    # A skill of a live source has an address, and no folder.
    return loaded.skill.dir if loaded.skill.scope == "remote" else os.path.relpath(loaded.skill.dir, root)


def _base_directory(context: _FrameContext, body: str) -> str:
    """Return the content of a response envelope."""
    origin = _origin_line(context.loaded)
    return f"Base directory for this skill: {base_directory(context.loaded, context.root)}\n\n{origin}{body}"


def _without_last_line_end(text: str) -> str:
    return text.removesuffix("\n")


FORMS: Mapping[LoadForm, _Form] = {
    "skill-content": _Form(_skill_content, "skill_content", _without_last_line_end),
    "skill-context": _Form(_skill_context, "skill_context", _without_last_line_end),
    "skill-activated": _Form(_skill_activated),
    "envelope": _Form(_base_directory),
    "raw": _Form(lambda context, body: _origin_line(context.loaded) + body, trim=str),
}


def page(
    rendered: Rendered,
    loaded: LoadedSkill,
    ref: str,
    profile: Profile,
    offset: int = 0,
    *,
    with_arguments: bool = False,
) -> "Page":
    """Return the text from an offset, in characters of its body, within the limit of a tool result.

    A text is cut only where the model has a tool that gives the rest. The frame is on every page; of a list of files
    that is too long for it, the beginning.
    """
    length = len(rendered.body)
    if offset > length:
        raise ConfigurationError(f"offset {offset} is beyond the end of the text, which has {length} characters")
    fits = _size(rendered.text) <= profile.result_bytes
    if rendered.frame is None or (not offset and (fits or "skill_load" not in profile.tools)):
        return Page(rendered.text, whole=True, offset=0, next_offset=None)
    listed = _first(loaded.files, rendered.frame, profile.result_bytes // 2)
    truncated = loaded.files_truncated or len(listed) < len(loaded.files)
    taken = _size(rendered.frame(_mark(ref, length, with_arguments), listed, truncated))
    rest = rendered.body[offset:].encode("utf-8", "surrogatepass")
    part = rest[: max(profile.result_bytes - taken, 4)].decode("utf-8", "ignore")
    if (element := FORMS[profile.load_form].element) and (tags := closing_tags(part, element)) and tags[-1] > 0:
        # The end of the page made a closing tag of a longer name.
        part = part[: tags[-1]]
    end = offset + len(part)
    marked = part + _mark(ref, end, with_arguments) if end < length else part
    return Page(rendered.frame(marked, listed, truncated), False, offset, end if end < length else None)


class Page(NamedTuple):
    """A text as it is sent: whole, or from an offset to the next one; None if it goes to the end."""

    text: str
    whole: bool
    offset: int
    next_offset: int | None


def _mark(ref: str, offset: int, with_arguments: bool) -> str:
    return f"\n[cut; ref={ref}; the rest: {load_again(offset, with_arguments=with_arguments)}]"


def load_again(offset: int, *, with_arguments: bool) -> str:
    """Return the call that gives a text from an offset; offsets count characters of the text with its arguments."""
    return f"skill_load with offset={offset}" + (" and the same args" if with_arguments else "")


def _first(paths: Sequence[str], frame: Frame, most: int) -> Sequence[str]:
    """Return as many paths as a frame can list in this many bytes."""
    low, high = 0, len(paths)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _size(frame("", paths[:middle], True)) <= most else (low, middle - 1)
    return paths[:low]


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def as_follow_up(loaded: LoadedSkill, arguments: str) -> Rendered:
    """Return the message of a `/skill:` command in profiles where the arguments are a line of their own."""
    lines = [_origin_line(loaded) + loaded.body.strip(), "", "---", "", f"Skill: {loaded.skill.path}"]
    return Rendered("\n".join([*lines, *([f"User: {arguments.strip()}"] if arguments.strip() else [])]))


def render_preloaded(skills: list[LoadedSkill]) -> Rendered:
    """Return the whole files of skills, for a system prompt."""
    lines = ["<preloaded_skills>"]
    warnings: tuple[Diagnostic, ...] = ()
    for loaded in skills:
        inner, more = _sealed(loaded, loaded.content, "preloaded_skills", "skill")
        warnings += more
        lines += [f'<skill name="{attribute(loaded.skill.name)}"{_origin(loaded)}>', inner.rstrip("\n"), "</skill>"]
    return Rendered("\n".join([*lines, "</preloaded_skills>"]), warnings)


def _sealed(loaded: LoadedSkill, text: str, *elements: str) -> tuple[str, tuple[Diagnostic, ...]]:
    warnings = []
    for element in elements:
        text, count = escape_closing_tags(text, element)
        if count:
            message = f"the text closes <{element}> {count} time(s); there it reads <\\/{element}>"
            warnings.append(Diagnostic(loaded.skill.path, "closing-tag", message))
    return text, tuple(warnings)
