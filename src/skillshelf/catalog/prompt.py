"""Write the catalog as text for a model, in the form and within the budget of a profile."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate

from skillshelf.config.profile import Budget, BudgetUnit, CatalogLayout, Profile
from skillshelf.config.settings import Settings
from skillshelf.core.limits import DESCRIPTION_SHOWN
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import cut, field, fold, for_model, path_text
from skillshelf.core.values import CatalogSkill, tools_text

__all__ = [
    "EXTRA_FIELDS",
    "LISTED_IN_TOOL",
    "SYSTEM_RULES",
    "CatalogSize",
    "CatalogText",
    "TextSizes",
    "as_shown",
    "available_skills_with_location",
    "catalog_size",
    "catalog_text",
    "entry_sizes",
    "is_sum_of_entries",
    "shown_text",
    "size_of_entries",
    "tokens_in",
    "visible_to_model",
]


class CatalogText(NamedTuple):
    """A catalog text: skills listed and omitted, whether the budget cut anything, and the paths of cut descriptions."""

    text: str
    entries: int
    omitted: int
    truncated: bool
    cut: tuple[str, ...] = ()

    @property
    def chars(self) -> int:
        """The length of the text."""
        return len(self.text)

    @property
    def tokens(self) -> int:
        """The estimated number of tokens."""
        return tokens_in(self.text)


def tokens_in(text: str) -> int:
    """Estimate tokens: UTF-8 bytes divided by four, rounded up."""
    return (len(text.encode("utf-8", "surrogatepass")) + 3) // 4


def _shown(description: str, most: int | None = DESCRIPTION_SHOWN) -> str:
    """Return as much of a description as a model is shown, on one line."""
    return fold(description) if most is None else cut(fold(description), most)


def visible_to_model(skills: Sequence[CatalogSkill]) -> list[CatalogSkill]:
    """Return the skills that are not hidden from models."""
    return [skill for skill in skills if skill.hidden is None]


def as_shown(skills: Iterable[CatalogSkill], profile: Profile) -> list[CatalogSkill]:
    """Return the skills with names and descriptions as the profile shows them to a model."""
    return [
        skill._replace(name=shown_text(skill.name, profile), description=shown_text(skill.description, profile))
        # Nearly all text is plain.
        if not (skill.name.isascii() and skill.description.isascii())
        else skill
        for skill in skills
    ]


def shown_text(text: str, profile: Profile) -> str:
    """Return an author's text as the profile shows it to a model: without what a reader cannot see, or unchanged."""
    return for_model(text) if profile.hidden_characters == "remove" else text


class PromptContext(NamedTuple):
    """Inputs of a catalog form: visible skills, settings with budgets, and the extra fields that the policy allows."""

    skills: Sequence[CatalogSkill]
    settings: Settings
    profile: Profile
    extra_fields: tuple[str, ...]

    def most(self, kind: Budget) -> float:
        """Return the limit of a budget; infinity if the profile does not have it."""
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
    """Return the catalog in the form of the profile; empty if no skill is visible."""
    shown = as_shown(visible_to_model(skills), profile)
    if not shown:
        return CatalogText("", 0, 0, truncated=False)
    return FORMS[profile.catalog_form](PromptContext(shown, settings, profile, extra_fields))


# The standard's form, which is cut in steps -------------------------------------------------------

_USE = (
    "Skills hold instructions for particular tasks. "
    "When a task matches a description below, load that skill with `skill_load` before you start, and follow it. "
    "Load only what you need, and each skill once."
)
_MORE = " This list was shortened to fit: find skills with `skill_search`."
_SHORTEST = 60


def _available_skills(context: PromptContext) -> CatalogText:
    hint = _MORE if "skill_search" in context.profile.tools else " This list was shortened to fit."
    return _whole(context) or _shortened(context, hint) or _names_only(context, hint)


def _whole(context: PromptContext) -> CatalogText | None:
    if _least(context, DESCRIPTION_SHOWN) > context.most("tokens") * 4:
        return None
    text = _element(context, DESCRIPTION_SHOWN, len(context.skills), hint="")
    fits = tokens_in(text) <= context.most("tokens")
    return CatalogText(text, len(context.skills), 0, truncated=False) if fits else None


def _shortened(context: PromptContext, hint: str) -> CatalogText | None:
    """Cut all descriptions to the largest length that fits; return None if that is too short to be useful."""
    if _least(context, _SHORTEST) > context.most("tokens") * 4:
        return None
    texts = [fold(skill.description) for skill in context.skills]
    frame = len(_element(context, 0, len(context.skills), hint=hint).encode()) - sum(
        _bytes_at(text)[0] for text in texts
    )
    sizes = [_bytes_at(text) for text in texts]
    for length in range(DESCRIPTION_SHOWN - 1, _SHORTEST - 1, -1):
        # Not a binary search: an ellipsis has three bytes, so a longer text may take fewer bytes.
        if (frame + sum(size[min(length, len(size) - 1)] for size in sizes) + 3) // 4 <= context.most("tokens"):
            text = _element(context, length, len(context.skills), hint=hint)
            return CatalogText(text, len(context.skills), 0, truncated=True)
    return None


def _bytes_at(text: str) -> list[int]:
    """Return the bytes of a description cut to each length, up to its own or the maximum."""
    ellipsis = len("…".encode())
    whole = [0, *accumulate(len(field(c).encode()) if c != " " else 1 for c in text[:DESCRIPTION_SHOWN])]
    lengths = range(1, min(len(text), DESCRIPTION_SHOWN + 1))
    cuts = [ellipsis, *(whole[length - 1] - text.startswith(" ", length - 2) + ellipsis for length in lengths)]
    return [*cuts, whole[-1]] if len(text) <= DESCRIPTION_SHOWN else cuts


def _names_only(context: PromptContext, hint: str) -> CatalogText:
    """List as many names as fit, in order."""
    frame = len("  <skill>\n    <name></name>\n  </skill>\n")
    most = int(min(len(context.skills), context.most("tokens") * 4 // frame + 1))

    def fits(count: int) -> bool:
        return tokens_in(_element(context, None, count, hint=hint)) <= context.most("tokens")

    count = _largest(0, most, fits)
    if count is None:
        return CatalogText("", 0, len(context.skills), truncated=True)
    text = _element(context, None, count, hint=hint)
    return CatalogText(text, count, len(context.skills) - count, truncated=True)


def _least(context: PromptContext, length: int) -> int:
    """Return a lower bound of the bytes of all entries, to reject thousands of them at once."""
    frame = len("  <skill>\n    <name></name>\n    <description></description>\n  </skill>\n")
    return sum(frame + max(0, min(length, len(fold(skill.description))) - 2) for skill in context.skills)


def _largest(low: int, high: int, fits: Callable[[int], bool]) -> int | None:
    """Return the largest number in a range that fits, if every smaller one fits too; None if none does."""
    if not fits(low):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _element(context: PromptContext, length: int | None, count: int, *, hint: str) -> str:
    """Return the element with the first `count` skills, descriptions cut to `length` or left out."""
    lines = [_USE + hint, f'<available_skills truncated="{"true" if hint else "false"}">']
    for skill in context.skills[:count]:
        lines += ["  <skill>", f"    <name>{field(skill.name)}</name>"]
        if length is not None:
            lines.append(f"    <description>{field(cut(fold(skill.description), length))}</description>")
            lines += _extra(skill, context)
        lines.append("  </skill>")
    if count < len(context.skills):
        lines.append(f'  <omitted count="{len(context.skills) - count}"/>')
    return "\n".join([*lines, "</available_skills>"])


EXTRA_FIELDS: Mapping[str, Callable[[CatalogSkill], str | None]] = {
    "compatibility": lambda skill: skill.metadata.compatibility,
    "allowed-tools": lambda skill: tools_text(skill.frontmatter.get("allowed-tools")),
}
"""The fields that a policy may add to the catalog, and how each is written."""


def _extra(skill: CatalogSkill, context: PromptContext) -> list[str]:
    """Return the extra fields that the policy allows."""
    values = [(name, EXTRA_FIELDS[name](skill)) for name in context.extra_fields]
    return [f"    <{name}>{field(shown_text(value, context.profile))}</{name}>" for name, value in values if value]


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


def _skills_context(context: PromptContext) -> CatalogText:
    """List the skills of the context, as many as fit: the bytes of the frame count in most profiles."""
    blocks = [
        "\n".join(
            [
                "  <skill>",
                f"    <name>{field(skill.name)}</name>",
                f"    <description>{field(_shown(skill.description))}</description>",
                f"    <path>{path_text(skill.path)}</path>",
                f"    <scope>{field(skill.scope)}</scope>",
                "  </skill>",
            ]
        )
        for skill in context.skills[: int(min(context.most("entries"), len(context.skills)))]
    ]
    sizes = [0, *accumulate(_bytes_in(block) + 1 for block in blocks)]
    number = len(context.skills)
    has_frame = context.profile.budget_frame == "counts"
    for rules in (_RULES, ()):
        for count in range(len(blocks), -1, -1):
            frame = _bytes_in(_skills_element([], number - count, rules)) if has_frame else 0
            if frame + sizes[count] <= context.most("bytes"):
                text = _skills_element(blocks[:count], number - count, rules)
                return CatalogText(text, count, number - count, truncated=count < number)
    return CatalogText("", 0, number, truncated=True)


def _bytes_in(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _skills_element(blocks: Sequence[str], omitted: int, rules: Sequence[str]) -> str:
    """Return the context with these skills; without rules only the catalog, where there is no room for more."""
    note = [f"  <note>{omitted} more skills are not listed; find them with skill_search.</note>"] if omitted else []
    usage = ["<skills_usage>", *(f"  <rule>{field(rule)}</rule>" for rule in rules), "</skills_usage>"] if rules else []
    lines = [
        "<skills_context>",
        *usage,
        f'<skills_catalog scope="initial" truncated="{"true" if omitted else "false"}">',
        *blocks,
        *note,
        "</skills_catalog>",
        "</skills_context>",
    ]
    return "\n".join(lines)


def _with_location(context: PromptContext) -> CatalogText:
    skills = [(skill.name, skill.description, skill.path) for skill in context.skills]
    text = available_skills_with_location(skills, shown=context.profile.description_shown)
    return CatalogText(text, len(context.skills), 0, truncated=False)


def available_skills_with_location(
    skills: Iterable[tuple[str, str, str]], *, shown: int | None = DESCRIPTION_SHOWN
) -> str:
    """Return name, description and path of each skill; empty if there are no skills."""
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
"""Text of the system prompt besides the catalog, for forms whose catalog is part of a tool."""


_SHORT_TOOL_PROMPT = "Tool: Skill (loads a skill by its name)\nAvailable skills:\n{skills}"

LISTED_IN_TOOL = "The description of the tool that loads skills lists them."
"""The system prompt of a profile whose catalog is the description of a tool."""


def _tool_prompt(context: PromptContext) -> CatalogText:
    """List as many skills as fit: the text around the list counts, and is short where the budget is small."""
    bullets = [f"- {fold(skill.name)}: {_shown(skill.description)}" for skill in context.skills]
    sizes = [0, *accumulate(len(line) + 1 for line in bullets)]
    around = len(_TOOL_PROMPT.format(skills="")) + len(SYSTEM_RULES["tool-prompt"]) + len("\n\n")
    frame, used = (_TOOL_PROMPT, around) if around * 2 <= context.most("chars") else (_SHORT_TOOL_PROMPT, None)
    used = len(frame.format(skills="")) if used is None else used

    def fits(count: int) -> bool:
        # Without a note the last line has no end.
        note = len(_more(len(bullets) - count)) or -1
        return used + sizes[count] + note <= context.most("chars")

    count = next((count for count in range(len(bullets), 0, -1) if fits(count)), 0)
    omitted = len(bullets) - count
    listed = [*(bullets[:count] or ["(none)"]), *([_more(omitted)] if omitted else [])]
    return CatalogText(frame.format(skills="\n".join(listed)), count, omitted, truncated=omitted > 0)


def _more(omitted: int) -> str:
    return f"({omitted} more are not listed: ask for one by its name)" if omitted else ""


def _skills_list(context: PromptContext) -> CatalogText:
    lines = [
        "Skills hold instructions for particular tasks. When a task matches one, read skill://<name> first.",
        "<skills>",
    ]
    for skill in context.skills:
        lines += [f'<skill name="{field(skill.name)}">', field(_shown(skill.description)), "</skill>"]
    return CatalogText("\n".join([*lines, "</skills>"]), len(context.skills), 0, truncated=False)


# Bullet lists, one line for each skill ------------------------------------------------------------


def _bullets(context: PromptContext) -> CatalogText:
    profile = context.profile
    with_file = profile.catalog_form == "bullets-with-file"
    bullets = [
        _Bullet(
            skill.name, _shown(skill.description, profile.description_shown), skill.path if with_file else "", skill
        )
        for skill in context.skills
    ]
    lines = [bullet.line() for bullet in bullets]
    cut_paths: tuple[str, ...] = ()
    bundled = _bundled(profile)
    size = SIZES_OF_LINES[profile.budget_unit]
    if size([*lines, *(bullet.line() for bullet in bundled)]) > context.most("chars"):
        lines, cut_paths = OVERFLOWS[profile.overflow](bullets, bundled, context.most("chars"), size)
    omitted = len(bullets) - len(lines)
    return CatalogText("\n".join(lines), len(lines), omitted, bool(omitted or cut_paths), cut_paths)


_Overflowed = tuple[list[str], tuple[str, ...]]
"""The lines that are left, and the paths of skills whose description was cut."""


class _Bullet(NamedTuple):
    """One line of a list; without a skill it stands for one that comes with the host and takes as much room."""

    name: str
    description: str
    file: str
    skill: CatalogSkill | None = None
    is_last: bool = False

    @property
    def path(self) -> str:
        """The path of the skill."""
        return self.skill.path if self.skill else ""

    def line(self, length: int | None = None) -> str:
        """Return the line of a skill with its description cut to a length; without description at 0."""
        text = self.description[:length]
        file = f" (file: {self.file})" if self.file else ""
        return f"- {fold(self.name)}{': ' if text else ''}{text}{file}"

    def with_short_file(self) -> "_Bullet":
        """Return the line with the path below its root, for which a table of roots has a short name."""
        label = self.skill.source.partition(":")[2] if self.skill else ""
        below = self.file.partition(f"/{label}/")[2] if label else ""
        return self._replace(file=f"r0/{below or '/'.join(self.file.split('/')[-2:])}") if self.file else self


def _bundled(profile: Profile) -> list[_Bullet]:
    """Return lines as long as those of the skills that come with a host."""
    with_file = profile.catalog_form == "bullets-with-file"
    return [
        _Bullet(*(name, "x" * length, f"r0/{name}/SKILL.md" if with_file else ""), is_last=name in profile.bundled_last)
        for name, length in profile.bundled.items()
    ]


def _size(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _size_in_tokens(lines: Sequence[str]) -> int:
    """Return the bytes of lines, each with its end and rounded up to whole tokens of four."""
    return sum((_bytes_in(line) + 4) // 4 * 4 for line in lines)


_SizeOfLines = Callable[[Sequence[str]], int]

SIZES_OF_LINES: Mapping[BudgetUnit, _SizeOfLines] = {
    "chars": _size,
    "joined-chars": lambda lines: _size(lines) - 1,
    "token-lines": _size_in_tokens,
}


def _shorten_all(
    bullets: Sequence[_Bullet], bundled: Sequence[_Bullet], most: float, size: _SizeOfLines
) -> _Overflowed:
    """Shorten paths, then cut all descriptions to one length; if even that is too much, drop the last lines."""
    bullets = [bullet.with_short_file() for bullet in (*bundled, *bullets)]
    longest = max((len(bullet.description) for bullet in bullets), default=0)
    length = _largest(0, longest, lambda length: size([bullet.line(length) for bullet in bullets]) <= most) or 0
    lines = [bullet.line(length) for bullet in bullets]
    kept = sum(used <= most for used in accumulate(size([line]) for line in lines))
    shorter = [bullet.path for bullet in bullets[:kept] if bullet.skill and len(bullet.description) > length]
    return lines[len(bundled) : kept], tuple(shorter)


def _drop_descriptions(
    bullets: Sequence[_Bullet], bundled: Sequence[_Bullet], most: float, size: _SizeOfLines
) -> _Overflowed:
    """Keep every name, and descriptions in order as long as there is room."""
    room = most - size([*(bullet.line() for bullet in bundled), *(bullet.line(0) for bullet in bullets)])
    lines = []
    dropped = []
    for bullet in bullets:
        needed = size([bullet.line()]) - size([bullet.line(0)])
        if needed <= room:
            room -= needed
            lines.append(bullet.line())
        else:
            room = min(room, 0)
            dropped += [bullet.path] if bullet.description else []
            lines.append(bullet.line(0))
    return lines, tuple(dropped)


def _fill(bullets: Sequence[_Bullet], bundled: Sequence[_Bullet], most: float, size: _SizeOfLines) -> _Overflowed:
    """Keep every name, and each description for which there is room after those before it.

    Bundled skills keep theirs, but the last of them, which come after all others.
    """
    around = [bullet.line(0 if bullet.is_last else None) for bullet in bundled]
    room = most - size([*around, *(bullet.line(0) for bullet in bullets)])
    lines, dropped = [], []
    for bullet in bullets:
        # What stands between name and description is not asked for, but taken.
        if not bullet.description or len(bullet.description) <= room:
            room -= size([bullet.line()]) - size([bullet.line(0)])
            lines.append(bullet.line())
        else:
            dropped.append(bullet.path)
            lines.append(bullet.line(0))
    return lines, tuple(dropped)


OVERFLOWS: Mapping[str, Callable[[Sequence[_Bullet], Sequence[_Bullet], float, _SizeOfLines], _Overflowed]] = {
    "none": lambda bullets, bundled, most, size: ([bullet.line() for bullet in bullets], ()),
    "shorten": _shorten_all,
    "drop-descriptions": _drop_descriptions,
    "drop-least-used": _fill,
}


# Elements, and names alone once they are too many --------------------------------------------------


def _skill_elements(context: PromptContext) -> CatalogText:
    """Write an element for each skill up to the one that would pass the budget, and the names of all others."""
    shown = context.profile.description_shown
    blocks = [
        "\n".join(
            [
                "<skill>",
                f"  <name>{field(skill.name)}</name>",
                f"  <description>{field(_shown(skill.description, shown))}</description>",
                f"  <location>{skill.scope}</location>",
                "</skill>",
                "",
            ]
        )
        for skill in context.skills
    ]
    kept = sum(size <= context.most("chars") for size in accumulate(map(len, blocks)))
    rest = context.skills[kept:]
    names = f"{_BY_NAME}{', '.join(field(skill.name) for skill in rest)}" if rest else ""
    cut_paths = tuple(skill.path for skill in rest if skill.description)
    return CatalogText("".join(blocks[:kept]) + names, len(blocks), 0, bool(cut_paths), cut_paths)


_BY_NAME = "Additional skills available (invoke by name): "


FORMS: Mapping[CatalogLayout, Callable[[PromptContext], CatalogText]] = {
    "available-skills": _available_skills,
    "skills-context": _skills_context,
    "with-location": _with_location,
    "tool-prompt": _tool_prompt,
    "skills-list": _skills_list,
    "bullets": _bullets,
    "bullets-with-file": _bullets,
    "skill-elements": _skill_elements,
}


# Sizes without texts ------------------------------------------------------------------------------


class CatalogSize(NamedTuple):
    """The size of a catalog text in characters and UTF-8 bytes, and what its budget does to the skills."""

    chars: int
    bytes: int
    entries: int
    omitted: int
    cut: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """The estimated number of tokens."""
        return (self.bytes + 3) // 4


class TextSizes:
    """The sizes of names, descriptions and paths as catalogs show them, each measured once for many catalogs.

    Paths in the folder `top` are measured as if it lay at the top of the disk: such sizes are the same wherever it is.
    """

    def __init__(self, top: str | None = None) -> None:
        self._above = top.rpartition("/")[0] if top else ""
        self._top = f"{top}/"
        self._lines: dict[tuple[str, int | None], tuple[int, int]] = {}
        self._fields: dict[tuple[str, int | None], tuple[int, int]] = {}
        self._paths: dict[str, tuple[int, int]] = {}

    def line(self, text: str, most: int | None = None) -> tuple[int, int]:
        """Return the characters and bytes of a text on one line."""
        size = self._lines.get((text, most))
        if size is None:
            size = self._lines[text, most] = _measured(_shown(text, most))
        return size

    def field(self, text: str, most: int | None = None) -> tuple[int, int]:
        """Return the characters and bytes of a text in an element."""
        size = self._fields.get((text, most))
        if size is None:
            size = self._fields[text, most] = _measured(field(_shown(text, most)))
        return size

    def path(self, path: str) -> tuple[int, int]:
        """Return the characters and bytes of a path in an element."""
        size = self._paths.get(path)
        if size is None:
            size = self._paths[path] = _measured(path_text(path))
        return size

    def placed(self, skills: Sequence[CatalogSkill]) -> Sequence[CatalogSkill]:
        """Return skills with the paths that are measured."""
        if not self._above:
            return skills
        at = len(self._above)
        return [one._replace(path=one.path[at:]) if one.path.startswith(self._top) else one for one in skills]


def _measured(text: str) -> tuple[int, int]:
    return len(text), len(text) if text.isascii() else _bytes_in(text)


def catalog_size(skills: Sequence[CatalogSkill], profile: Profile, settings: Settings, texts: TextSizes) -> CatalogSize:
    """Return the size of the catalog text of a profile, from the sizes of its parts where these are enough."""
    if (placed := texts.placed(skills)) is not skills:
        found = catalog_size(placed, profile, settings, TextSizes())
        paths = {one.path: skill.path for one, skill in zip(placed, skills, strict=True)}
        return found._replace(cut=tuple(paths[path] for path in found.cut))
    shown = as_shown(visible_to_model(skills), profile)
    measure = SIZES.get(profile.catalog_form)
    size = measure(PromptContext(shown, settings, profile, ()), texts) if measure and shown else None
    if size is not None:
        return size
    text = catalog_text(skills, profile, settings)
    return CatalogSize(text.chars, _bytes_in(text.text), text.entries, text.omitted, text.cut)


class _EntrySizes(NamedTuple):
    """How a form without a budget is measured: what is around its entries, and the characters and bytes of each."""

    around: int
    entry: Callable[[CatalogSkill, int | None, TextSizes], tuple[int, int]]


_LOCATION_FRAME = (
    len(available_skills_with_location([("", "", "")])) - len("<available_skills>\n\n</available_skills>") + 1
)


def _size_of_location(skill: CatalogSkill, most: int | None, texts: TextSizes) -> tuple[int, int]:
    """Return the size of one entry that `available_skills_with_location` writes."""
    name, description, path = texts.field(skill.name), texts.field(skill.description, most), texts.path(skill.path)
    return _LOCATION_FRAME + name[0] + description[0] + path[0], _LOCATION_FRAME + name[1] + description[1] + path[1]


def _size_of_bullet(skill: CatalogSkill, most: int | None, texts: TextSizes) -> tuple[int, int]:
    """Return the size of one line that `_bullets` writes, with its end."""
    name, added = texts.line(skill.name), _size_of_description(skill, most, texts)
    return name[0] + added[0] + len("- \n"), name[1] + added[1] + len("- \n")


_ENTRY_SIZES: Mapping[CatalogLayout, _EntrySizes] = {
    "with-location": _EntrySizes(len("<available_skills>\n</available_skills>"), _size_of_location),
    # The last line has no end.
    "bullets": _EntrySizes(-1, _size_of_bullet),
}


def is_sum_of_entries(profile: Profile) -> bool:
    """Return whether the size of a catalog is the sum of the sizes of its entries, and of what is around them."""
    return profile.catalog_form in _ENTRY_SIZES and not profile.catalog_budget


def entry_sizes(skills: Sequence[CatalogSkill], profile: Profile, texts: TextSizes) -> list[tuple[int, int]]:
    """Return the characters and bytes of each visible skill in a catalog that is the sum of its entries."""
    entry = _ENTRY_SIZES[profile.catalog_form].entry
    return [entry(skill, profile.description_shown, texts) for skill in as_shown(texts.placed(skills), profile)]


def size_of_entries(count: int, chars: int, total: int, profile: Profile) -> CatalogSize:
    """Return the size of a catalog from the number of its entries and the sums of their characters and bytes."""
    around = _ENTRY_SIZES[profile.catalog_form].around if count else 0
    return CatalogSize(around + chars, around + total, count, 0)


def _size_with_location(context: PromptContext, texts: TextSizes) -> CatalogSize:
    """Return the size of the text that `available_skills_with_location` writes."""
    around, entry = _ENTRY_SIZES["with-location"]
    sizes = [entry(skill, context.profile.description_shown, texts) for skill in context.skills]
    chars, total = (around + sum(size[n] for size in sizes) for n in (0, 1))
    return CatalogSize(chars, total, len(sizes), 0)


def _size_of_bullets(context: PromptContext, texts: TextSizes) -> CatalogSize | None:
    """Return the size of the list that `_bullets` writes; None if that takes the descriptions themselves."""
    profile, skills = context.profile, context.skills
    if profile.catalog_form == "bullets-with-file":
        return _size_of_names(context) if OVERFLOWS[profile.overflow] is _shorten_all else None
    if OVERFLOWS[profile.overflow] is _fill:
        return _size_of_filled(context, texts) if profile.budget_unit == "joined-chars" else None
    if profile.budget_unit != "chars":
        return None
    names = [texts.line(skill.name) for skill in skills]
    chars, total = (sum(size[n] for size in names) + len("- \n") * len(names) - 1 for n in (0, 1))
    room = context.most("chars") - chars - 1 - _size([bullet.line() for bullet in _bundled(profile)])
    for at, skill in enumerate(skills):
        added = _size_of_description(skill, profile.description_shown, texts)
        if added[0] > room:
            # From here on no description fits, however short it is.
            dropped = [one.path for one in skills[at:] if _has_description(one, profile.description_shown, texts)]
            is_dropped = OVERFLOWS[profile.overflow] is _drop_descriptions
            return CatalogSize(chars, total, len(skills), 0, tuple(dropped)) if is_dropped else None
        room, chars, total = room - added[0], chars + added[0], total + added[1]
    return CatalogSize(chars, total, len(skills), 0)


def _size_of_filled(context: PromptContext, texts: TextSizes) -> CatalogSize:
    """Return the size of the list that `_fill` writes."""
    profile, skills = context.profile, context.skills
    names = [texts.line(skill.name) for skill in skills]
    chars, total = (sum(size[n] for size in names) + len("- \n") * len(names) - 1 for n in (0, 1))
    added = [_size_of_description(skill, profile.description_shown, texts) for skill in skills]
    bundled = _bundled(profile)
    whole = chars + sum(one[0] for one in added) + _size([bullet.line() for bullet in bundled])
    room = context.most("chars") - chars - _size([bullet.line(0 if bullet.is_last else None) for bullet in bundled])
    dropped = []
    for skill, (more, more_bytes) in zip(skills, added, strict=True):
        if whole <= context.most("chars") or not more or more - len(": ") <= room:
            room, chars, total = room - more, chars + more, total + more_bytes
        else:
            dropped.append(skill.path)
    return CatalogSize(chars, total, len(skills), 0, tuple(dropped))


def _size_of_elements(context: PromptContext, texts: TextSizes) -> CatalogSize:
    """Return the size of the text that `_skill_elements` writes."""
    shown, most = context.profile.description_shown, context.most("chars")
    frame = len("<skill>\n  <name></name>\n  <description></description>\n  <location></location>\n</skill>\n")
    chars = total = used = 0
    rest: list[CatalogSkill] = []
    for skill in context.skills:
        parts = [texts.field(skill.name), texts.field(skill.description, shown), (len(skill.scope),) * 2]
        used += frame + sum(part[0] for part in parts)
        if used > most:
            rest.append(skill)
        else:
            chars, total = used, total + frame + sum(part[1] for part in parts)
    if rest:
        names = [texts.field(skill.name) for skill in rest]
        around = len(_BY_NAME) + len(", ") * (len(rest) - 1)
        chars, total = (size + around + sum(name[n] for name in names) for n, size in enumerate((chars, total)))
    return CatalogSize(chars, total, len(context.skills), 0, tuple(skill.path for skill in rest if skill.description))


def _size_of_description(skill: CatalogSkill, most: int | None, texts: TextSizes) -> tuple[int, int]:
    """Return the characters and bytes that a description adds to a line."""
    chars, total = texts.line(skill.description, most)
    return (chars + len(": "), total + len(": ")) if chars else (0, 0)


def _has_description(skill: CatalogSkill, most: int | None, texts: TextSizes) -> bool:
    start = skill.description[:1]
    # A letter or a digit is shown as it is.
    return (start.isascii() and start.isalnum()) or texts.line(skill.description, most)[0] > 0


def _size_of_names(context: PromptContext) -> CatalogSize | None:
    """Return the size of a list that `_shorten_all` cuts to names; None if descriptions fit as well."""
    profile, most = context.profile, context.most("chars")
    size = SIZES_OF_LINES[profile.budget_unit]
    used = size([bullet.with_short_file().line(0) for bullet in _bundled(profile)])
    chars = total = -1
    for count, skill in enumerate(context.skills):
        whole = _Bullet(skill.name, "", skill.path, skill)
        short = whole.with_short_file()
        if len(short.file) > len(whole.file):
            return None
        line = short.line(0)
        used += size([line])
        if used > most:
            cut_paths = [
                one.path for one in context.skills[:count] if _shown(one.description, profile.description_shown)
            ]
            return CatalogSize(max(chars, 0), max(total, 0), count, len(context.skills) - count, tuple(cut_paths))
        chars, total = chars + len(line) + 1, total + _bytes_in(line) + 1
    return None


SIZES: Mapping[CatalogLayout, Callable[[PromptContext, TextSizes], CatalogSize | None]] = {
    "with-location": _size_with_location,
    "bullets": _size_of_bullets,
    "skill-elements": _size_of_elements,
    "bullets-with-file": _size_of_bullets,
}
"""The forms whose size follows from the sizes of their parts, at least if nearly everything fits or nearly nothing."""
