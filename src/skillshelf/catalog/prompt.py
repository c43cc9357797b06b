"""Skills to a list with one line each, kept within a number of characters the way hosts do it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

from skillshelf.config.profile import Budget, CatalogLayout, Profile
from skillshelf.config.settings import Settings
from skillshelf.core.limits import DESCRIPTION_SHOWN
from skillshelf.core.text import cut, field, fold, path_text
from skillshelf.core.values import CatalogSkill, tools_text

__all__ = [
    "SYSTEM_RULES",
    "Bullets",
    "CatalogText",
    "available_skills_with_location",
    "bullets",
    "catalog_text",
    "tokens_in",
    "visible_to_model",
]


class Bullets(NamedTuple):
    """The lines, how many skills are not among them, and the paths of those that lost some of their description."""

    lines: list[str]
    omitted: int
    cut: tuple[str, ...] = ()


def bullets(
    skills: Sequence[CatalogSkill],
    *,
    most: float,
    overflow: Literal["none", "shorten", "drop-descriptions", "drop-least-used"],
    shown: int | None,
    with_file: bool,
) -> Bullets:
    """One line a skill; what does not fit is settled as `overflow` says."""
    entries = [_Entry(skill, _description(skill, shown), skill.path if with_file else "") for skill in skills]
    lines = [entry.line() for entry in entries]
    if _size(lines) <= most:
        return Bullets(lines, 0)
    return OVERFLOWS[overflow](entries, most)


class _Entry(NamedTuple):
    skill: CatalogSkill
    description: str
    file: str

    def line(self, length: int | None = None) -> str:
        """The line of a skill with so much of its description; nothing of it at 0."""
        text = self.description if length is None else cut(self.description, length) if length else ""
        file = f" (file: {self.file})" if self.file else ""
        return f"- {fold(self.skill.name)}{': ' if text else ''}{text}{file}"


def _description(skill: CatalogSkill, shown: int | None) -> str:
    text = fold(skill.description)
    return text if shown is None else cut(text, shown)


def _size(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _everything(entries: Sequence[_Entry], most: float) -> Bullets:
    return Bullets([entry.line() for entry in entries], 0)


def _shortened(entries: Sequence[_Entry], most: float) -> Bullets:
    """Paths from their root, then all descriptions cut to one length; if even none fit, the last entries go."""
    entries = [entry._replace(file="/".join(["r", *entry.file.split("/")[-2:]])) for entry in entries]
    low, high = 0, max((len(entry.description) for entry in entries), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _size([e.line(middle) for e in entries]) <= most else (low, middle - 1)
    lines = [entry.line(low) for entry in entries]
    kept = 0
    room = most
    while kept < len(lines) and room >= len(lines[kept]) + 1:
        room -= len(lines[kept]) + 1
        kept += 1
    shorter = [entry.skill.path for entry in entries[:kept] if len(entry.description) > low]
    return Bullets(lines[:kept], len(lines) - kept, tuple(shorter))


def _without_descriptions(entries: Sequence[_Entry], most: float) -> Bullets:
    """Every name stays; descriptions stay in order as long as there is room."""
    room = most - _size([entry.line(0) for entry in entries])
    lines = []
    lost = []
    for entry in entries:
        needed = len(entry.line()) - len(entry.line(0))
        if needed <= room:
            room -= needed
            lines.append(entry.line())
        else:
            room = min(room, 0)
            lost += [entry.skill.path] if entry.description else []
            lines.append(entry.line(0))
    return Bullets(lines, 0, tuple(lost))


OVERFLOWS: Mapping[str, Callable[[Sequence[_Entry], float], Bullets]] = {
    "none": _everything,
    "shorten": _shortened,
    "drop-descriptions": _without_descriptions,
    "drop-least-used": _without_descriptions,
}


class CatalogText(NamedTuple):
    """The text, how many skills are in it, how many are not, whether anything was cut for the budget, and in which."""

    text: str
    entries: int
    omitted: int
    truncated: bool
    cut: tuple[str, ...] = ()

    @property
    def chars(self) -> int:
        """Characters of the text."""
        return len(self.text)

    @property
    def tokens(self) -> int:
        """An estimate of its tokens."""
        return tokens_in(self.text)


def tokens_in(text: str) -> int:
    """UTF-8 bytes by four, rounded up."""
    return (len(text.encode("utf-8", "surrogatepass")) + 3) // 4


def _shown(description: str, most: int | None = DESCRIPTION_SHOWN) -> str:
    """As much of a description as a model is shown, on one line."""
    return fold(description) if most is None else cut(fold(description), most)


def visible_to_model(skills: Sequence[CatalogSkill]) -> list[CatalogSkill]:
    """The skills a model may know of."""
    return [skill for skill in skills if skill.hidden is None]


class Told(NamedTuple):
    """What a form is given: the skills, the settings that bound them, and which gated fields are open."""

    skills: Sequence[CatalogSkill]
    settings: Settings
    profile: Profile
    extra_fields: tuple[str, ...]

    def most(self, kind: Budget) -> float:
        """The number that bounds the text, if the profile has that budget."""
        numbers = {
            "entries": self.settings.max_entries,
            "bytes": self.settings.max_bytes,
            "tokens": self.settings.max_tokens,
            "chars": self.profile.budget_chars or self.settings.max_chars,
        }
        return numbers[kind] if kind in self.profile.catalog_budget else float("inf")


def catalog_text(
    skills: Sequence[CatalogSkill], profile: Profile, settings: Settings, *, extra_fields: tuple[str, ...] = ()
) -> CatalogText:
    """The catalog as the profile writes it; empty where there is no skill to tell of."""
    told = visible_to_model(skills)
    if not told:
        return CatalogText("", 0, 0, truncated=False)
    return FORMS[profile.catalog_form](Told(told, settings, profile, extra_fields))


# The standard's form, which degrades in steps -----------------------------------------------------

_USE = (
    "Skills hold instructions for particular tasks. "
    "When a task matches a description below, load that skill with `skill_load` before you start, and follow it. "
    "Load only what you need, and each skill once."
)
_MORE = " This list was shortened to fit: find skills with `skill_search`."
_SHORTEST = 60


def _available_skills(told: Told) -> CatalogText:
    hint = _MORE if "skill_search" in told.profile.tools else " This list was shortened to fit."
    return _whole(told) or _shortened_prompt(told, hint) or _names_only(told, hint)


def _whole(told: Told) -> CatalogText | None:
    if _least(told, DESCRIPTION_SHOWN) > told.most("tokens") * 4:
        return None
    text = _element(told, DESCRIPTION_SHOWN, len(told.skills), hint="")
    fits = tokens_in(text) <= told.most("tokens")
    return CatalogText(text, len(told.skills), 0, truncated=False) if fits else None


def _shortened_prompt(told: Told, hint: str) -> CatalogText | None:
    """All descriptions cut to the largest length that fits, if that is not too short to be of use."""
    if _least(told, _SHORTEST) > told.most("tokens") * 4:
        return None
    texts = [fold(skill.description) for skill in told.skills]
    frame = len(_element(told, 0, len(told.skills), hint=hint).encode()) - sum(_bytes_at(text)[0] for text in texts)
    sizes = [_bytes_at(text) for text in texts]
    for length in range(DESCRIPTION_SHOWN - 1, _SHORTEST - 1, -1):
        # Not a search by halves: an ellipsis has three bytes, so that a longer text may be the smaller one.
        if (frame + sum(size[min(length, len(size) - 1)] for size in sizes) + 3) // 4 <= told.most("tokens"):
            text = _element(told, length, len(told.skills), hint=hint)
            return CatalogText(text, len(told.skills), 0, truncated=True)
    return None


def _bytes_at(text: str) -> list[int]:
    """The bytes of a description cut to each length, up to its own or the most that is shown."""
    ellipsis = len("…".encode())
    whole = [0, *accumulate(len(field(c).encode()) if c != " " else 1 for c in text[:DESCRIPTION_SHOWN])]
    lengths = range(1, min(len(text), DESCRIPTION_SHOWN + 1))
    cuts = [ellipsis, *(whole[length - 1] - text.startswith(" ", length - 2) + ellipsis for length in lengths)]
    return [*cuts, whole[-1]] if len(text) <= DESCRIPTION_SHOWN else cuts


def _names_only(told: Told, hint: str) -> CatalogText:
    """As many names as fit, in order."""
    frame = len("  <skill>\n    <name></name>\n  </skill>\n")
    most = int(min(len(told.skills), told.most("tokens") * 4 // frame + 1))

    def fits(count: int) -> bool:
        return tokens_in(_element(told, None, count, hint=hint)) <= told.most("tokens")

    count = _longest(0, most, fits)
    if count is None:
        return CatalogText("", 0, len(told.skills), truncated=True)
    text = _element(told, None, count, hint=hint)
    return CatalogText(text, count, len(told.skills) - count, truncated=True)


def _least(told: Told, length: int) -> int:
    """Bytes that the entries take at the least, to see at once that thousands of them do not fit."""
    frame = len("  <skill>\n    <name></name>\n    <description></description>\n  </skill>\n")
    return sum(frame + max(0, min(length, len(fold(skill.description))) - 2) for skill in told.skills)


def _longest(low: int, high: int, fits: Callable[[int], bool]) -> int | None:
    """The largest number in the range that fits, where every smaller one fits too; None if none does."""
    if not fits(low):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _element(told: Told, length: int | None, count: int, *, hint: str) -> str:
    """The first skills with descriptions of at most that length, or with none."""
    lines = [_USE + hint, f'<available_skills truncated="{"true" if hint else "false"}">']
    for skill in told.skills[:count]:
        lines += ["  <skill>", f"    <name>{field(skill.name)}</name>"]
        if length is not None:
            lines.append(f"    <description>{field(cut(fold(skill.description), length))}</description>")
            lines += _extra(skill, told.extra_fields)
        lines.append("  </skill>")
    if count < len(told.skills):
        lines.append(f'  <omitted count="{len(told.skills) - count}"/>')
    return "\n".join([*lines, "</available_skills>"])


def _extra(skill: CatalogSkill, names: tuple[str, ...]) -> list[str]:
    """Fields that are told only where the policy opened them."""
    values = {
        "compatibility": skill.metadata.compatibility,
        "allowed-tools": tools_text(skill.frontmatter.get("allowed-tools")),
    }
    return [f"    <{name}>{field(value)}</{name}>" for name in names if (value := values.get(name))]


# The other forms ----------------------------------------------------------------------------------

_RULES = (
    "The user may name a skill as $skill-name: load it with `skill_load` before anything else.",
    "Load a skill when the task clearly matches its description.",
    "`skill_load` takes a name or the path below; use the path when a name is ambiguous.",
    "Do not read a SKILL.md again that is already loaded, unless it changed.",
    "Relative paths in a skill start from the skill's directory.",
    "Prefer scripts that a skill brings over writing them anew.",
    "`skill_search` looks among the skills on this machine; nothing is fetched from elsewhere.",
)


def _skills_context(told: Told) -> CatalogText:
    blocks: list[str] = []
    used = 0
    for skill in told.skills:
        if len(blocks) >= told.most("entries"):
            break
        block = "\n".join(
            [
                "  <skill>",
                f"    <name>{field(skill.name)}</name>",
                f"    <description>{field(_shown(skill.description))}</description>",
                f"    <path>{path_text(skill.path)}</path>",
                f"    <scope>{field(skill.scope)}</scope>",
                "  </skill>",
            ]
        )
        used += len(block.encode("utf-8", "surrogatepass")) + 1
        if used > told.most("bytes"):
            break
        blocks.append(block)
    omitted = len(told.skills) - len(blocks)
    note = [f"  <note>{omitted} more skills are not listed; find them with skill_search.</note>"] if omitted else []
    lines = [
        "<skills_context>",
        "<skills_usage>",
        *(f"  <rule>{field(rule)}</rule>" for rule in _RULES),
        "</skills_usage>",
        f'<skills_catalog scope="initial" truncated="{"true" if omitted else "false"}">',
        *blocks,
        *note,
        "</skills_catalog>",
        "</skills_context>",
    ]
    return CatalogText("\n".join(lines), len(blocks), omitted, truncated=omitted > 0)


def _with_location(told: Told) -> CatalogText:
    skills = [(skill.name, skill.description, skill.path) for skill in told.skills]
    text = available_skills_with_location(skills, shown=told.profile.description_shown)
    return CatalogText(text, len(told.skills), 0, truncated=False)


def available_skills_with_location(
    skills: Iterable[tuple[str, str, str]], *, shown: int | None = DESCRIPTION_SHOWN
) -> str:
    """Name, description and path of each skill; empty where there is none."""
    lines = []
    for name, description, path in skills:
        lines += [
            "  <skill>",
            f"    <name>{field(name)}</name>",
            f"    <description>{field(_shown(description, shown))}</description>",
            f"    <location>{path_text(path)}</location>",
            "  </skill>",
        ]
    return "\n".join(["<available_skills>", *lines, "</available_skills>"]) if lines else ""


_TOOL_PROMPT = """\
Tool: Skill
Loads the instructions of a skill by its name. Use it when the user names a skill, or when a task clearly matches a \
description below. Load a skill only when it is needed; never load all of them first.

Parameters:
- name (string, required): the skill to load, exactly as listed
- args (string, optional): text for the skill; it replaces $ARGUMENTS in the instructions or is appended to them

Examples:
- {{"name": "code-review"}}
- {{"name": "code-review", "args": "src/app.py"}}

Available skills:
{skills}"""


SYSTEM_RULES: Mapping[CatalogLayout, str] = {
    "tool-prompt": "# Skills\n"
    "- When the user names a skill ($code-review, or 'use the code-review skill'), load it with the Skill tool.\n"
    "- When a task clearly matches the description of a skill, consider loading that skill.\n"
    "- Load a skill only when it is needed; never load all skills in advance."
}
"""What a system prompt says besides the catalog, in forms whose catalog is part of a tool."""


def _tool_prompt(told: Told) -> CatalogText:
    lines: list[str] = []
    used = 0
    for skill in told.skills:
        line = f"- {fold(skill.name)}: {_shown(skill.description)}"
        used += len(line) + 1
        if used > told.most("chars"):
            break
        lines.append(line)
    omitted = len(told.skills) - len(lines)
    note = [f"({omitted} more are not listed: ask for one by its name)"] if omitted else []
    text = _TOOL_PROMPT.format(skills="\n".join([*(lines or ["(none)"]), *note]))
    return CatalogText(text, len(lines), omitted, truncated=omitted > 0)


def _skills_list(told: Told) -> CatalogText:
    lines = [
        "Skills hold instructions for particular tasks. When a task matches one, read skill://<name> first.",
        "<skills>",
    ]
    for skill in told.skills:
        lines += [f'<skill name="{field(skill.name)}">', field(_shown(skill.description)), "</skill>"]
    return CatalogText("\n".join([*lines, "</skills>"]), len(told.skills), 0, truncated=False)


def _bullets(told: Told) -> CatalogText:
    profile = told.profile
    made = bullets(
        told.skills,
        most=told.most("chars"),
        overflow=profile.overflow,
        shown=profile.description_shown,
        with_file=profile.catalog_form == "bullets-with-file",
    )
    entries = len(made.lines)
    return CatalogText("\n".join(made.lines), entries, made.omitted, bool(made.omitted or made.cut), made.cut)


FORMS: Mapping[CatalogLayout, Callable[[Told], CatalogText]] = {
    "available-skills": _available_skills,
    "skills-context": _skills_context,
    "with-location": _with_location,
    "tool-prompt": _tool_prompt,
    "skills-list": _skills_list,
    "bullets": _bullets,
    "bullets-with-file": _bullets,
}
