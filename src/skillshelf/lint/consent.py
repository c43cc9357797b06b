"""Decide what somebody has to agree to before skills of a stranger are trusted, linked or added."""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence

from skillshelf.config.rules import RULES
from skillshelf.core.json_types import SecurityFindingForm
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import did_you_mean, plural, visible
from skillshelf.errors import ConfigurationError
from skillshelf.lint.security import SecurityFinding

__all__ = ["Consent", "accepted_rules", "consent_needed"]


class Consent(NamedTuple):
    """The findings of the security rules in skills, by the path of each, and which of the rules nobody accepted yet.

    Findings are errors and warnings. `rules` are all rules that were not accepted, `errors` those of severity error,
    which no general yes accepts.
    """

    findings: Mapping[str, Sequence[SecurityFinding]]
    rules: tuple[str, ...]
    errors: tuple[str, ...]

    @property
    def warning(self) -> str:
        """The text that a question or a refusal adds about errors that nobody accepted; empty without any."""
        found = [one for ones in self.findings.values() for one in ones if one.rule in self.errors]
        if not found:
            return ""
        return f"; {plural(len(found), 'finding')} of severity error, which honest skills hardly ever have"

    def lines(self, folder: str) -> list[str]:
        """Return a line for each finding, with paths from a folder."""
        return [
            visible(
                f"{os.path.relpath(os.path.join(os.path.dirname(skill), one.path), folder)}:{one.line}: "
                f"{_level(one)}: {one.rule}: {one.message}"
            )
            for skill, ones in self.findings.items()
            for one in ones
        ]

    def rows(self) -> list[SecurityFindingForm]:
        """Return the JSON form of the findings."""
        return [
            {
                "skill": skill,
                "path": one.path,
                "line": one.line,
                "column": one.column,
                "rule": one.rule,
                "severity": _level(one),
                "message": one.message,
                "evidence": one.evidence,
            }
            for skill, ones in self.findings.items()
            for one in ones
        ]


def _level(finding: SecurityFinding) -> str:
    return "error" if finding.severity == "reject" else "warning"


def consent_needed(
    findings: Mapping[str, Iterable[SecurityFinding]], accepted: Collection[str] = frozenset()
) -> Consent:
    """Return what has to be asked about the findings in skills, if these rules are accepted already."""
    grave = {skill: [one for one in ones if one.severity != "info"] for skill, ones in findings.items()}
    grave = {skill: ones for skill, ones in grave.items() if ones}
    left = [one for ones in grave.values() for one in ones if one.rule not in accepted]
    errors = {one.rule for one in left if one.severity == "reject"}
    return Consent(grave, tuple(sorted({one.rule for one in left})), tuple(sorted(errors)))


def accepted_rules(given: Iterable[str]) -> frozenset[str]:
    """Return the rules that `--accept-rule` was given; raise ConfigurationError for one that is no security rule."""
    names = {name for words in given for name in words.split(",") if name}
    known = [rule for rule in RULES if rule.startswith("security-")]
    for name in sorted(names.difference(known)):
        raise ConfigurationError(f"unknown security rule {name!r}{did_you_mean(name, known)}")
    return frozenset(names)
