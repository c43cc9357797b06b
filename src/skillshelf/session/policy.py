"""Decide by rules and `allowed-tools` patterns whether a tool may be called.

A pattern is `Tool`, `Tool(argument)`, `Tool(prefix:*)`, `Tool(prefix *)`, `Tool(prefix*)`, `server__*` or `*`. A prefix
before `:*` or ` *` covers itself, alone or followed by a blank and plain words; one directly before the star covers
what begins with it. No prefix covers a command that could start a second one.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

from skillshelf.catalog.prompt import EXTRA_FIELDS
from skillshelf.catalog.rules import tool_groups
from skillshelf.config.permission_rules import (
    InvalidRule,
    PermissionRule,
    RuleSubject,
    allows,
    denies,
    expanded,
    is_kebab_case,
    parse_rule,
    rule_to_dict,
)
from skillshelf.config.settings import OnOff, Settings
from skillshelf.core.environment import Environment
from skillshelf.core.patterns import lazy_pattern
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import did_you_mean
from skillshelf.core.values import Wall
from skillshelf.errors import ConfigurationError

__all__ = [
    "Confirm",
    "Decision",
    "Policy",
    "PolicyName",
    "SkillToolLimits",
    "ToolPattern",
    "Verdict",
    "can_run",
    "common",
    "covered",
    "covers_run",
    "decide",
    "decide_tool",
    "effective_tools",
    "is_granted",
    "make_policy",
    "parse_patterns",
    "policy_to_dict",
    "rule_without_effect",
]


# The beginning of an entry of its own, valid or not: a name, or a name and a parenthesis.
_OWN_ENTRY = lazy_pattern(r"[A-Za-z_][\w.:/-]*(?:\(.*)?", re.DOTALL)
# A star stands for all tools, or after `server__` for the tools of a server.
_PATTERN = lazy_pattern(r"(\*|[A-Za-z_][\w.-]*|[A-Za-z_][\w.-]*__[\w.-]*\*)(?:\(([^()]*)\))?")
# Characters that let a shell do more than start one program with plain arguments.
_SHELL = lazy_pattern(r"[;&|<>$`\\(){}!\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
_PARTS = lazy_pattern(r"[/\s]")
_COMMAND_KEYS = ("command", "cmd", "file_path", "path", "url", "uri", "query", "pattern")


class ToolPattern(NamedTuple):
    """One entry of `allowed-tools`; without argument and prefix it covers the whole tool.

    `tool` may end in a star, for all tools whose names begin so. With `joined` the prefix need not end with a word.
    """

    tool: str
    argument: str | None = None
    prefix: str | None = None
    joined: bool = False

    def __str__(self) -> str:
        star = "*" if self.joined else ":*"
        inner = self.argument if self.prefix is None else f"{self.prefix}{star}"
        return self.tool if inner is None else f"{self.tool}({inner})"

    def covers_tool(self, tool: str) -> bool:
        """Return True if the pattern is about this tool, or about all tools that another pattern names."""
        return tool.startswith(self.tool[:-1]) if self.tool.endswith("*") else self.tool == tool

    def covers_text(self, text: str | None) -> bool:
        """Return True if the pattern covers a call with this argument; None is an unknown argument."""
        if self.prefix is not None:
            return text is not None and self._begins(text) and not _SHELL.search(text)
        return self.argument is None or self.argument == text

    def covers_call(self, tool: str, text: str | None) -> bool:
        """Return True if the pattern covers a call of a tool with this argument."""
        return self.covers_tool(tool) and self.covers_text(text)

    def covers(self, other: "ToolPattern") -> bool:
        """Return True if this pattern covers every call that the other one covers."""
        if not self.covers_tool(other.tool):
            return False
        if other.prefix is None:
            return self.covers_text(other.argument)
        if (self.argument, self.prefix) == (None, None):
            return True
        # `git:*` covers less than `git*`, which covers `gitx`, too.
        words_only = other.joined and not self.joined and other.prefix == self.prefix
        return (
            self.prefix is not None
            and self._begins(other.prefix)
            and not words_only
            and not _SHELL.search(other.prefix)
        )

    def _begins(self, text: str) -> bool:
        prefix = self.prefix or ""
        if self.joined:
            # A path that begins in a folder must not lead out of it.
            return text.startswith(prefix) and ".." not in _PARTS.split(text[len(prefix) :])
        return text == prefix or text.startswith((prefix + " ", prefix + "\t"))


def parse_patterns(value: Any) -> tuple[tuple[ToolPattern, ...], tuple[str, ...]] | None:
    """Return the patterns of `allowed-tools` and the entries that are not valid; None if the field is empty."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    # Joined, so that a parenthesis that one item of a list leaves open takes in the next ones.
    text = ",".join(str(item) for item in value) if isinstance(value, list) else str(value)
    found = dict(_entries(tool_groups(text)))
    invalid = tuple(word for word, pattern in found.items() if pattern is None)
    return tuple(pattern for pattern in found.values() if pattern is not None), invalid


def _entries(groups: Iterable[Sequence[str]]) -> Iterator[tuple[str, ToolPattern | None]]:
    """Yield each entry with its pattern, or None if it is not understood.

    A word that cannot be an entry of its own takes the one before it along: `Bash (npm *)` is not all of `Bash`. If it
    begins with a letter or a star, it does so only to a bare tool of the same part between commas.
    """
    before: tuple[str, ToolPattern] | None = None
    for group in groups:
        for number, word in enumerate(group):
            # A star among other words may be the end of an argument: `Bash: git *`.
            entry, pattern = word, _parse(word) if word != "*" or len(group) == 1 else None
            if before is not None:
                is_bare = before[1] == ToolPattern(before[0])
                reaches = (number > 0 and is_bare) or not (word[0].isalnum() or word[0] == "*")
                if pattern is None and not _OWN_ENTRY.fullmatch(word) and reaches:
                    entry = f"{before[0]} {word}"
                else:
                    yield before
            before = None if pattern is None else (entry, pattern)
            if pattern is None:
                yield entry, None
    if before is not None:
        yield before


def _parse(word: str) -> ToolPattern | None:
    """Return the pattern of an entry, or None; a star is valid only at the end of a name or of an argument."""
    match = _PATTERN.fullmatch(word)
    if match is None:
        return None
    tool, inner = match.groups()
    if inner is None or (inner == "*" and not tool.endswith("*")):
        return ToolPattern(tool)
    if tool.endswith("*") or not inner.strip() or "*" in inner[:-1]:
        return None
    if not inner.endswith("*"):
        return ToolPattern(tool, argument=inner)
    prefix = inner[:-1].removesuffix(":")
    words = prefix.rstrip()
    if not words:
        return None
    joined = prefix == words and not inner.endswith(":*")
    return ToolPattern(tool, prefix=words.lstrip(), joined=joined)


def covered(patterns: Iterable[ToolPattern], tool: str, arguments: Mapping[str, Any]) -> bool:
    """Return True if one of the patterns covers this call."""
    text = _text_of(arguments)
    return any(pattern.covers_call(tool, text) for pattern in patterns)


def covers_run(patterns: Iterable[ToolPattern], name: str, script: str, args: Sequence[str]) -> bool:
    """Return True if the patterns cover a script of a skill: as `skill_run`, or as a command of the shell."""
    texts = {"skill_run": " ".join([name, script, *args]), "Bash": " ".join([script, *args])}
    return any(pattern.covers_call(tool, text) for pattern in patterns for tool, text in texts.items())


def _text_of(arguments: Mapping[str, Any]) -> str | None:
    """Return the argument that patterns are compared with; None if there is none or several could be meant."""
    texts = [arguments[key] for key in _COMMAND_KEYS if key in arguments]
    if not texts and len(arguments) == 1:
        texts = list(arguments.values())
    return texts[0] if len(texts) == 1 and isinstance(texts[0], str) else None


def common(lists: Sequence[Sequence[ToolPattern]]) -> tuple[ToolPattern, ...]:
    """Return the patterns that all lists allow: of two patterns that overlap, the narrower."""
    kept = list(lists[0]) if lists else []
    for patterns in lists[1:]:
        pairs = [(one, other) for one in kept for other in patterns]
        kept = [one if other.covers(one) else other for one, other in pairs if other.covers(one) or one.covers(other)]
    return tuple(dict.fromkeys(kept))


Verdict = Literal["allow", "deny", "confirm"]
PolicyName = Literal["default", "read-only", "full-auto"]
Confirm = Callable[[str, str, str], "bool | Literal['remember']"]
"""Ask the user about a tool, a skill's name and a reason. True allows it once; `"remember"` allows it until a file
of the skill changes, in later sessions too; anything else denies. If it raises, nothing is decided, and the call is
denied."""


class Decision(NamedTuple):
    """A verdict, the rule behind it, and the reason."""

    verdict: Verdict
    rule: str | None
    reason: str


class Policy(NamedTuple):
    """Rules, the default where no rule matches, and grants for skills and scripts.

    `catalog_fields` are frontmatter fields that the catalog text may show besides name and description. A script
    gets the network, more folders, all system calls, or no sandbox only if a `run_*` field grants it, and runs only
    where every part of the sandbox in `run_require` is available.
    """

    name: PolicyName = "default"
    allow: tuple[PermissionRule, ...] = ()
    deny: tuple[PermissionRule, ...] = ()
    grant_from_skills: tuple[str, ...] = ()
    catalog_fields: tuple[str, ...] = ()
    run_network: bool = False
    run_read: tuple[str, ...] = ()
    run_write: tuple[str, ...] = ()
    run_unsandboxed: bool = False
    run_seccomp: OnOff = "on"
    run_require: tuple[Wall, ...] = ()


class SkillToolLimits(NamedTuple):
    """The `allowed-tools` of an active skill; None for `patterns` narrows nothing."""

    skill: RuleSubject
    patterns: tuple[ToolPattern, ...] | None

    @property
    def name(self) -> str:
        """The name of the skill."""
        return self.skill.name


def policy_to_dict(policy: Policy) -> dict[str, Any]:
    """Return the JSON form, which `make_policy` accepts."""
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in policy._asdict().items()}
    for key in ("allow", "deny"):
        plain[key] = [rule_to_dict(rule) for rule in plain[key]]
    # Journals of earlier versions lack these members, and must compare equal.
    for key in ("run_seccomp", "run_require"):
        if getattr(policy, key) == Policy._field_defaults[key]:
            del plain[key]
    return plain


# Policies ----------------------------------------------------------------------------------------

_NAMES: tuple[PolicyName, ...] = ("default", "read-only", "full-auto")


def make_policy(
    given: "Policy | Mapping[str, Any] | str | None",
    settings: Settings,
    *,
    environment: Environment | None = None,
    names: Literal["any", "kebab-case"] = "any",
) -> Policy:
    """Return the given policy combined with the rules of the configuration.

    Relative paths in its rules start from the working directory of the `environment`. `names` are those that a rule
    may allow.
    """
    policy = _combined(given, settings)
    odd = [rule.skill_name for rule in policy.allow if rule.skill_name and not is_kebab_case(rule.skill_name)]
    if odd and names == "kebab-case":
        raise ConfigurationError(
            f"`allow` of a policy holds skill_name {odd[0]!r}; it must be a kebab-case name in this profile"
        )
    if environment is None:
        return policy
    allow, deny = (
        _once(expanded(rule, environment, base=environment.cwd) for rule in rules)
        for rules in (policy.allow, policy.deny)
    )
    return policy._replace(allow=allow, deny=deny)


def _combined(given: "Policy | Mapping[str, Any] | str | None", settings: Settings) -> Policy:
    if isinstance(given, Policy):
        # A policy cannot allow what the configuration denies, nor waive what it requires.
        checked = _checked(given)
        return checked._replace(
            deny=_once(settings.deny, checked.deny), run_require=_once(settings.run_require, checked.run_require)
        )
    members = {"name": given} if isinstance(given, str) else dict(given or {})
    if unknown := sorted(str(key) for key in members if key not in Policy._fields):
        raise ConfigurationError(f"a policy has {', '.join(Policy._fields)}, not {', '.join(unknown)}")
    policy = _checked(Policy(**members))
    return policy._replace(
        allow=_once(settings.allow, policy.allow),
        deny=_once(settings.deny, policy.deny),
        grant_from_skills=_once(settings.grant_from_skills, policy.grant_from_skills),
        run_network=policy.run_network or settings.run_network,
        run_read=_once(settings.run_read, policy.run_read),
        run_write=_once(settings.run_write, policy.run_write),
        run_unsandboxed=policy.run_unsandboxed or settings.run_unsandboxed,
        run_seccomp="off" if "off" in (policy.run_seccomp, settings.run_seccomp) else "on",
        run_require=_once(settings.run_require, policy.run_require),
    )


def _once(*lists: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(item for items in lists for item in items))


def _checked(policy: Policy) -> Policy:
    """Return the policy with every member checked; raise ConfigurationError that names an invalid one."""
    if policy.name not in _NAMES:
        raise ConfigurationError(
            f"unknown policy {policy.name!r}{did_you_mean(str(policy.name), _NAMES)} (known: {', '.join(_NAMES)})"
        )
    changes: dict[str, Any] = {}
    for key in ("allow", "deny"):
        changes[key] = tuple(_rule(key, entry) for entry in _items(policy, key))
    for key in ("grant_from_skills", "catalog_fields", "run_read", "run_write", "run_require"):
        changes[key] = tuple(_items(policy, key))
        if wrong := [item for item in changes[key] if not isinstance(item, str)]:
            raise ConfigurationError(f"`{key}` of a policy holds {wrong[0]!r}; it is a list of texts")
    if unknown := [name for name in changes["catalog_fields"] if name not in EXTRA_FIELDS]:
        known = ", ".join(EXTRA_FIELDS)
        raise ConfigurationError(f"`catalog_fields` of a policy holds {unknown[0]!r}; the catalog can show {known}")
    if unknown := [name for name in changes["run_require"] if name not in get_args(Wall)]:
        known = ", ".join(get_args(Wall))
        raise ConfigurationError(f"`run_require` of a policy holds {unknown[0]!r}; the parts are {known}")
    if policy.run_seccomp not in get_args(OnOff):
        raise ConfigurationError(f"`run_seccomp` of a policy is on or off, not {policy.run_seccomp!r}")
    for key in ("run_network", "run_unsandboxed"):
        if not isinstance(getattr(policy, key), bool):
            raise ConfigurationError(f"`{key}` of a policy is True or False, not {getattr(policy, key)!r}")
    return policy._replace(**changes)


def _items(policy: Policy, key: str) -> Sequence[Any]:
    value = getattr(policy, key)
    if not isinstance(value, list | tuple):
        raise ConfigurationError(f"`{key}` of a policy is a list, not {value!r}")
    return value


def _rule(key: str, entry: Any) -> PermissionRule:
    given = entry._asdict() if isinstance(entry, PermissionRule) else entry
    known: dict[str, Any] = {"within": None, "system": None}
    if isinstance(given, Mapping):
        known = {member: given.get(member) for member in known}
        given = {name: value for name, value in given.items() if name not in known}
    for member, value in known.items():
        if value is not None and (key != "deny" or not isinstance(value, str)):
            raise ConfigurationError(f"`{key}` of a policy holds {member} = {value!r}; only a denial may have it")
    try:
        return parse_rule(given)._replace(**known)
    except InvalidRule as error:
        raise ConfigurationError(f"`{key}` of a policy {error}") from None


# Skills -------------------------------------------------------------------------------------------


def decide(
    policy: Policy,
    tool: str,
    skill: RuleSubject | None,
    *,
    other_names: Sequence[str] = (),
    names_elsewhere: Sequence[str] = (),
    names_of_hosts: Sequence[str] = (),
) -> Decision:
    """Decide whether a tool may use the skill that its arguments were resolved to.

    `other_names` are the profile's other names for the tool, `names_elsewhere` those of other profiles: a rule with
    one of the latter denies here too, but does not allow. `names_of_hosts` are those that hosts use for a tool of
    their own: a rule with one of them denies here if it names a skill. Without a skill, as for a search, only rules for
    the whole tool count.
    """
    names = (tool, *other_names)
    denied = {False: (*names, *names_elsewhere), True: (*names, *names_elsewhere, *names_of_hosts)}
    if rule := next((r for r in policy.deny if denies(r, denied[r.names_skill], skill)), None):
        return _denied_by(rule)
    if tool == "skill_run" and policy.name == "read-only":
        return Decision("deny", None, "the policy read-only runs no script")
    if rule := next((r for r in policy.allow if allows(r, names, skill)), None):
        return Decision("allow", _rule_text("allow", rule), "a rule allows it")
    if skill is None:
        return Decision("allow", None, "no rule matches")
    if not skill.trusted and (policy.name != "full-auto" or tool == "skill_run"):
        return Decision("confirm", None, "the skill belongs to a project that is not trusted")
    if policy.name == "full-auto":
        return Decision("allow", None, "the policy full-auto allows it")
    if tool in ASKED_ALWAYS:
        return Decision("confirm", None, ASKED_ALWAYS[tool])
    return Decision("allow", None, "the skill is trusted and no rule matches")


ASKED_ALWAYS: Mapping[str, str] = {
    "skill_run": "a script runs only after the user confirms it",
    "skill_override": "only the host can choose its model, its tools and its context",
}


def rule_without_effect(policy: Policy, names: Sequence[str], skill: RuleSubject) -> str | None:
    """Return the rule that names an untrusted skill and would allow it if it were trusted, or None."""
    rules = [rule for rule in policy.allow if rule.skill_name is not None and not rule.names_thing]
    trusted = skill._replace(trusted=True)
    rule = None if skill.trusted else next((rule for rule in rules if allows(rule, names, trusted)), None)
    return _rule_text("allow", rule) if rule else None


def _denied_by(rule: PermissionRule) -> Decision:
    reason = f"the system policy denies it ({rule.system})" if rule.system else "a rule denies it"
    return Decision("deny", _rule_text("deny", rule), reason)


def _rule_text(verdict: str, rule: PermissionRule) -> str:
    named = [rule.skill_name, rule.path and f"path {rule.path}", rule.tree and f"tree {rule.tree}"]
    if rule.system:
        tool = rule.tool if rule.system.endswith("permissions.deny") else ""
        return ": ".join(filter(None, [rule.system, " ".join(text for text in (tool, *named) if text)]))
    return " ".join([f"permissions.{verdict}: {rule.tool}", *(text for text in named if text)])


def can_run(policy: Policy, *, can_ask: bool) -> bool:
    """Return True if the policy can ever allow a script; `can_ask` is True if there is a user to confirm it."""
    rules = [rule for rule in policy.allow if rule.tool == "skill_run"]
    closed = any(denies(rule, ("skill_run",), None) for rule in policy.deny)
    return not closed and policy.name != "read-only" and (can_ask or bool(rules) or policy.name == "full-auto")


# Tools of the host --------------------------------------------------------------------------------

_DEFAULTS: Mapping[PolicyName, Decision] = {
    "default": Decision("confirm", None, "no rule matches this tool"),
    "read-only": Decision("deny", None, "the policy read-only allows a tool only by a rule"),
    "full-auto": Decision("allow", None, "the policy full-auto allows it"),
}


def decide_tool(
    policy: Policy, tool: str, arguments: Mapping[str, Any], windows: Sequence[SkillToolLimits]
) -> Decision:
    """Decide whether a tool of the host may be called while these skills are active."""
    active = [None, *(window.skill for window in windows)]
    if rule := _denial(policy, tool, active):
        return _denied_by(rule)
    for window in windows:
        if window.patterns is not None and not covered(window.patterns, tool, arguments):
            reason = f"it is not among the allowed-tools of {window.name}, which is active"
            return Decision("deny", f"allowed-tools: {window.name}", reason)
    if rule := next((r for r in policy.allow for skill in active if allows(r, (tool,), skill)), None):
        return Decision("allow", _rule_text("allow", rule), "a rule allows it")
    if granted := [window.name for window in windows if is_granted(policy, window)]:
        rule_text = f"permissions.grant_from_skills: {granted[0]}"
        return Decision("allow", rule_text, f"the policy lets {granted[0]} allow its own tools")
    return _DEFAULTS[policy.name]


def _denial(policy: Policy, tool: str, active: Sequence[RuleSubject | None]) -> PermissionRule | None:
    """Return the rule that denies a tool of the host; a rule about a skill counts while that skill is active."""
    return next((rule for rule in policy.deny for skill in active if denies(rule, (tool,), skill)), None)


def is_granted(policy: Policy, window: SkillToolLimits) -> bool:
    """Return True if the policy lets this skill allow its own tools; an untrusted skill of that name never may."""
    return window.skill.trusted and window.patterns is not None and window.name in policy.grant_from_skills


def effective_tools(policy: Policy, windows: Sequence[SkillToolLimits]) -> tuple[str, ...] | None:
    """Return the patterns left for the host's tools while these skills are active; None if none of them narrows."""
    lists = [window.patterns for window in windows if window.patterns is not None]
    if not lists:
        return None
    active = [None, *(window.skill for window in windows)]
    return tuple(str(pattern) for pattern in common(lists) if not _denial(policy, pattern.tool, active))
