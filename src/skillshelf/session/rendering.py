"""A loaded skill to what a model gets of it."""

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import quote

from skillshelf.catalog.load import LoadedSkill
from skillshelf.config.profile import LoadForm, Profile
from skillshelf.core.text import attribute, path_text, sealed
from skillshelf.core.values import Diagnostic
from skillshelf.session.arguments import with_arguments

__all__ = ["Rendered", "activated", "as_follow_up", "render", "render_preloaded"]


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
    inner, count = sealed(text, element)
    if not count:
        return inner, ()
    message = f"the text closes <{element}> {count} time(s); there it reads <\\/{element}>"
    return inner, (Diagnostic(loaded.skill.path, "closing-tag", message),)
