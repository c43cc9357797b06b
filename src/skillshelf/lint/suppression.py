"""Decide which findings are reported: by the rules that were chosen, and by comments in the files themselves.

A comment counts for its own file, and never for rules about security or rules that reject a skill: a file must not
vouch for itself. Whatever is left out is kept apart and counted.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from skillshelf.config.builtin_profiles import author_severities
from skillshelf.config.profile import Profile
from skillshelf.config.rules import RULES, rules_like, unknown_rule
from skillshelf.config.settings import CheckSeverity, Settings
from skillshelf.core.limits import IGNORE_COMMENTS
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Finding, Severity
from skillshelf.errors import ConfigurationError
from skillshelf.lint.checks import SkillPage, without_code

__all__ = [
    "IgnoreComment",
    "RuleChoice",
    "can_ignore_inline",
    "choose_rules",
    "comment_findings",
    "comments_in",
    "may_have_comments",
    "without_project",
]


# The choice of rules ------------------------------------------------------------------------------


class RuleChoice(NamedTuple):
    """The severity of each rule for this check, and the rules whose findings are left out."""

    severities: Mapping[str, Severity]
    left_out: frozenset[str] = frozenset()


_SEVERITIES: Mapping[CheckSeverity, Severity] = {"error": "reject", "warning": "warn", "info": "info"}


def choose_rules(
    profile: Profile, settings: Settings, select: Iterable[str] = (), ignore: Iterable[str] = ()
) -> RuleChoice:
    """Return the rules that a command line and the configuration choose together.

    `select` takes the place of the configured one, `ignore` is added to it. A word is the id of a rule, the beginning
    of some before `*`, or a group; raise ConfigurationError for any other.
    """
    selected = _named(select, "--select") or _named(settings.check_select, "check.select")
    left_out = _named(ignore, "--ignore") | _named(settings.check_ignore, "check.ignore")
    if selected:
        left_out |= RULES.keys() - selected
    return _choice(profile, settings.check_rules, left_out)


def without_project(profile: Profile, settings: Settings) -> RuleChoice:
    """Return the rules for a check in which a project has no say: only the user's own file switches some off."""
    return _choice(profile, settings.own_check_rules, _named(settings.own_check_ignore, "check.ignore"))


def _choice(profile: Profile, given: Mapping[str, CheckSeverity], left_out: frozenset[str]) -> RuleChoice:
    severities = dict(author_severities(profile))
    severities |= {rule: _SEVERITIES[severity] for rule, severity in given.items() if severity != "off"}
    # A rule that is off still finds something, so that it can be counted.
    return RuleChoice(severities, left_out.union(rule for rule, severity in given.items() if severity == "off"))


def _named(words: Iterable[str], option: str) -> frozenset[str]:
    """Return the rules that words stand for; each word may be a list with commas."""
    found: set[str] = set()
    for word in (part.strip() for one in words for part in one.split(",")):
        if not word:
            continue
        if not (rules := rules_like(word)):
            raise ConfigurationError(f"{option}: {unknown_rule(word)}")
        found.update(rules)
    return frozenset(found)


# Comments -----------------------------------------------------------------------------------------


class IgnoreComment(NamedTuple):
    """A word of a comment that ignores a rule, with its position in the file."""

    rule: str
    line: int
    column: int


_MARK = "skillshelf:"
_VERB = "ignore"


def may_have_comments(data: bytes) -> bool:
    """Return whether a file may have comments that ignore rules; most have none, and cost one search."""
    return _MARK.encode() in data


def comments_in(page: SkillPage) -> list[IgnoreComment]:
    """Return what the comments of a SKILL.md ignore; at most one more than count."""
    return [*islice(chain(_in_frontmatter(page.document.text), _in_body(page)), IGNORE_COMMENTS + 1)]


def _in_frontmatter(text: str) -> Iterator[IgnoreComment]:
    """Yield what comments of YAML ignore: at the beginning of a line, or after the value of a field."""
    for number, line in enumerate(text.split("\n"), 2):
        at = line.rfind("#", 0, max(0, line.find(_MARK)))
        words = _words(line[at + 1 :]) if at >= 0 else []
        if words and _is_comment(line[:at]):
            yield from (IgnoreComment(word, number, line.find(word, at) + 1) for word in dict.fromkeys(words))


def _is_comment(before: str) -> bool:
    """Return whether a `#` after this begins a comment: an indented line may be part of a text."""
    if not before:
        return True
    key, colon, value = before.partition(":")
    if not colon or not before[-1].isspace() or not key.replace("-", "").replace("_", "").strip().isalnum():
        return False
    value = value.strip()
    return not value.startswith(("'", '"')) or (len(value) > 1 and value.endswith(value[0]))


def _in_body(page: SkillPage) -> Iterator[IgnoreComment]:
    """Yield what comments of Markdown ignore; in a code block or span there are none."""
    text = without_code(page.body.decode("utf-8", "replace"))
    end = 0
    while (at := text.find("<!--", end)) >= 0 and (end := text.find("-->", at + 4)) >= 0:
        for word in dict.fromkeys(_words(text[at + 4 : end])):
            place = text.find(word, at + 4) if word else at
            column = place - text.rfind("\n", 0, place)
            yield IgnoreComment(word, page.start + text.count("\n", 0, place), column)


def _words(comment: str) -> list[str]:
    """Return the rules that the text of a comment ignores; none if it is another comment."""
    words = comment.replace(",", " ").split()
    if words[:1] != [_MARK] or words[1:2] != [_VERB]:
        return []
    return words[2:] or [""]


def can_ignore_inline(rule: str, profile: Profile) -> bool:
    """Return whether a comment in a file may ignore a rule."""
    if rule.startswith(("security-", "ignore-")) or RULES[rule].fixed:
        return False
    return profile.rules[rule] != "reject"


def comment_findings(
    comments: Sequence[IgnoreComment], found: Iterable[str], profile: Profile
) -> tuple[frozenset[str], list[Finding]]:
    """Return the rules that comments of a file ignore, and findings about the comments.

    `found` are the rules that have findings in the file.
    """
    ignored: set[str] = set()
    findings = []
    present = frozenset(found)
    for rule, line, column in comments[:IGNORE_COMMENTS]:
        if rule not in RULES:
            message = unknown_rule(rule) if rule else "the comment names no rule; write `skillshelf: ignore RULE`"
            findings.append(Finding("ignore-unknown", message, line, column))
        elif not can_ignore_inline(rule, profile):
            message = f"no comment can ignore {rule}; a baseline, --ignore or the configuration can"
            findings.append(Finding("ignore-refused", message, line, column))
        else:
            ignored.add(rule)
            if rule not in present:
                findings.append(Finding("ignore-unused", f"{rule} finds nothing here", line, column))
    if len(comments) > IGNORE_COMMENTS:
        message = f"comments ignore more than {IGNORE_COMMENTS} rules; the others do not count"
        findings.append(Finding("check-limit", message, *comments[IGNORE_COMMENTS][1:]))
    return frozenset(ignored), findings
