"""Render a loaded skill as text for a model, with the user's arguments, and collect AGENTS.md files."""

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
    "AgentsMdFile",
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


def find_agents_md(cwd: str) -> list[AgentsMdFile]:
    """Return the AGENTS.md files from a folder upward, nearest first, at most 20 steps.

    A file in a hidden folder, or in any folder below one, is skipped.
    """
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


def agents_context(cwd: str) -> str:
    """Return all AGENTS.md files as one text, the nearest last, because later text takes precedence."""
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
    """The text for a model, with warnings about its content."""

    text: str
    warnings: tuple[Diagnostic, ...] = ()


def render(loaded: LoadedSkill, profile: Profile, arguments: str = "") -> Rendered:
    """Return the loaded skill in the profile's form, with the user's arguments."""
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
    """Return the text for an activated skill, with the kinds of resources it has."""
    resources = {"Scripts": has_scripts, "References": has_references, "Assets": has_assets}
    lines = [f"- {kind}: {'yes' if present else 'no'}" for kind, present in resources.items()]
    return "\n".join([f"# Skill Activated: {name}", "", instructions, "", "## Available Resources", *lines])


def _base_directory(loaded: LoadedSkill, text: str, arguments: str) -> Rendered:
    """Return the content of a response envelope."""
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
    """Return the message of a `/skill:` command in profiles where the arguments are a line of their own."""
    lines = [loaded.body.strip(), "", "---", "", f"Skill: {loaded.skill.path}"]
    return Rendered("\n".join([*lines, *([f"User: {arguments.strip()}"] if arguments.strip() else [])]))


def render_preloaded(skills: list[LoadedSkill]) -> Rendered:
    """Return the whole files of skills, for a system prompt."""
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
