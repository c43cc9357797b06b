"""A body and what the user typed to the body a model gets."""

import os
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple
from urllib.parse import quote

from skillshelf.catalog.load import LoadedSkill
from skillshelf.config.profile import LoadForm, Profile
from skillshelf.core import files
from skillshelf.core.limits import RESOURCE_BYTES
from skillshelf.core.text import attribute, escape_closing_tags, path_text
from skillshelf.core.values import Diagnostic

__all__ = [
    "MODES",
    "ContextFile",
    "Rendered",
    "activated",
    "agents_context",
    "as_follow_up",
    "find_agents_md",
    "render",
    "render_preloaded",
    "with_arguments",
]


PLACEHOLDER = "$ARGUMENTS"

EmptyArguments = Literal["replace", "keep"]
"""What an empty text does to a placeholder: the plan of one system says nothing happens, its code replaces."""


def with_arguments(body: str, arguments: str, mode: str, *, empty: EmptyArguments) -> str:
    """The body with the arguments in it, as the mode says; nothing else in the body is expanded."""
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


class ContextFile(NamedTuple):
    """One AGENTS.md, and how far above the working directory it lies."""

    path: str
    depth: int
    text: str


def find_agents_md(cwd: str) -> list[ContextFile]:
    """The files from here upward, nearest first, at most 20 steps; hidden folders are passed over."""
    found = []
    folder = os.path.abspath(cwd)
    for depth in range(STEPS + 1):
        if not os.path.basename(folder).startswith(".") and (text := _text(folder)) is not None:
            found.append(ContextFile(os.path.join(folder, FILE_NAME), depth, text))
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    return found


def agents_context(cwd: str) -> str:
    """All of them as one text, the farthest first, so that what is nearer has the last word."""
    return "\n\n".join(file.text.strip() for file in reversed(find_agents_md(cwd)))


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


class Rendered(NamedTuple):
    """The text for a model, and what had to be said about making it."""

    text: str
    warnings: tuple[Diagnostic, ...] = ()


def render(loaded: LoadedSkill, profile: Profile, arguments: str = "") -> Rendered:
    """The loaded skill in the profile's form, with the user's arguments in it."""
    text = loaded.content if profile.loaded_text == "file" else loaded.body
    expanded = with_arguments(text, arguments, profile.arguments, empty=profile.empty_arguments)
    return FORMS[profile.load_form](loaded, expanded, arguments)


def _skill_content(loaded: LoadedSkill, text: str, arguments: str) -> Rendered:
    inner, warnings = _sealed(loaded, text, "skill_content")
    head = (
        f'<skill_content name="{attribute(loaded.skill.name)}" directory="{path_text(loaded.skill.dir)}" '
        f'digest="{loaded.digest}">'
    )
    truncated = "true" if loaded.files_truncated else "false"
    lines = [
        head,
        inner.removesuffix("\n"),
        f'<skill_resources count="{loaded.files_total}" truncated="{truncated}">',
        *(path_text(path) for path in loaded.files),
        "</skill_resources>",
        "</skill_content>",
    ]
    return Rendered("\n".join(lines), warnings)


def _skill_context(loaded: LoadedSkill, text: str, arguments: str) -> Rendered:
    inner, warnings = _sealed(loaded, text, "skill_context")
    folder = loaded.skill.dir
    lines = [
        f'<skill_context name="{attribute(loaded.skill.name)}" path="{path_text(loaded.skill.path)}">',
        inner.removesuffix("\n"),
        "",
        f"Base directory: file://{quote(folder)}/",
        "Relative paths in this skill are resolved from this directory.",
        "<skill_files>",
        *(f"<file>{path_text(os.path.join(folder, path))}</file>" for path in loaded.files),
        *(["<truncated/>"] if loaded.files_truncated else []),
        "</skill_files>",
        "</skill_context>",
    ]
    return Rendered("\n".join(lines), warnings)


def _skill_activated(loaded: LoadedSkill, text: str, arguments: str) -> Rendered:
    has = (loaded.has_scripts, loaded.has_references, loaded.has_assets)
    return Rendered(activated(loaded.skill.name, text.strip(), *has))


def activated(name: str, instructions: str, has_scripts: bool, has_references: bool, has_assets: bool) -> str:
    """The text that says that a skill is active, and what else it brings."""
    resources = {"Scripts": has_scripts, "References": has_references, "Assets": has_assets}
    lines = [f"- {kind}: {'yes' if there else 'no'}" for kind, there in resources.items()]
    return "\n".join([f"# Skill Activated: {name}", "", instructions, "", "## Available Resources", *lines])


def _base_directory(loaded: LoadedSkill, text: str, arguments: str) -> Rendered:
    """The content that goes into the response envelope."""
    return Rendered(f"Base directory for this skill: {loaded.skill.dir}\n\n{text.strip()}")


def _raw(loaded: LoadedSkill, text: str, arguments: str) -> Rendered:
    return Rendered(text)


FORMS: Mapping[LoadForm, Callable[[LoadedSkill, str, str], Rendered]] = {
    "skill-content": _skill_content,
    "skill-context": _skill_context,
    "skill-activated": _skill_activated,
    "envelope": _base_directory,
    "raw": _raw,
}


def as_follow_up(loaded: LoadedSkill, arguments: str) -> Rendered:
    """The message a `/skill:` command injects where the user's words follow as a line of their own."""
    lines = [loaded.body.strip(), "", "---", "", f"Skill: {loaded.skill.path}"]
    return Rendered("\n".join([*lines, *([f"User: {arguments.strip()}"] if arguments.strip() else [])]))


def render_preloaded(skills: list[LoadedSkill]) -> Rendered:
    """Skills in full, for an agent that starts with them."""
    lines = ["<preloaded_skills>"]
    warnings: tuple[Diagnostic, ...] = ()
    for loaded in skills:
        inner, more = _sealed(loaded, loaded.content, "preloaded_skills")
        inner, also = _sealed(loaded, inner, "skill")
        warnings += (*more, *also)
        lines += [f'<skill name="{attribute(loaded.skill.name)}">', inner.rstrip("\n"), "</skill>"]
    return Rendered("\n".join([*lines, "</preloaded_skills>"]), warnings)


def _sealed(loaded: LoadedSkill, text: str, element: str) -> tuple[str, tuple[Diagnostic, ...]]:
    inner, count = escape_closing_tags(text, element)
    if not count:
        return inner, ()
    message = f"the text closes <{element}> {count} time(s); there it reads <\\/{element}>"
    return inner, (Diagnostic(loaded.skill.path, "closing-tag", message),)
