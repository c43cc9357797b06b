"""A tool and the skill it was resolved to, to a decision: deny beats allow beats confirm."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from skillshelf.config import PermissionRule, Settings
from skillshelf.errors import ConfigurationError
from skillshelf.values import CatalogSkill

__all__ = ["Confirm", "Decision", "Policy", "decide", "make_policy"]

Verdict = Literal["allow", "deny", "confirm"]
Confirm = Callable[[str, str, str], bool]
"""Asked with the tool, the skill's name and the reason; anything but True means no."""


class Decision(NamedTuple):
    """What may happen, the rule that says so, and why in words."""

    verdict: Verdict
    rule: str | None
    reason: str


class Policy(NamedTuple):
    """Rules, and which fields of a frontmatter a catalog may tell beyond name and description."""

    name: str = "default"
    allow: tuple[PermissionRule, ...] = ()
    deny: tuple[PermissionRule, ...] = ()
    catalog_fields: tuple[str, ...] = ()


def make_policy(given: "Policy | Mapping[str, Any] | str | None", settings: Settings) -> Policy:
    """The policy somebody gave, with the rules of the configuration under it."""
    if isinstance(given, Policy):
        # What the configuration denies stays denied, whoever made the policy.
        return given._replace(deny=(*settings.deny, *given.deny))
    wishes = dict(given) if isinstance(given, Mapping) else {}
    if isinstance(given, str) and given != "default":
        raise ConfigurationError(f"no policy {given!r}; there is: default")
    if unknown := sorted(set(wishes) - {"allow", "deny", "catalog_fields"}):
        raise ConfigurationError(f"a policy has allow, deny and catalog_fields, not {', '.join(unknown)}")
    fields = wishes.get("catalog_fields", ())
    if isinstance(fields, str):
        raise ConfigurationError("catalog_fields is a list, of compatibility and allowed-tools")
    return Policy(
        allow=(*settings.allow, *(_rule(entry) for entry in wishes.get("allow", ()))),
        deny=(*settings.deny, *(_rule(entry) for entry in wishes.get("deny", ()))),
        catalog_fields=tuple(fields),
    )


def _rule(entry: Any) -> PermissionRule:
    if isinstance(entry, PermissionRule):
        return entry
    if isinstance(entry, Mapping) and isinstance(entry.get("tool"), str) and set(entry) <= {"tool", "skill_name"}:
        return PermissionRule(entry["tool"], entry.get("skill_name"))
    raise ConfigurationError(f"not a rule: {entry!r}; a rule is a tool and, if it is for one skill, a skill_name")


def decide(policy: Policy, tool: str, skill: CatalogSkill) -> Decision:
    """Whether a tool may have that skill, by the skill it was resolved to and not by what was asked."""
    for verdict, rules in (("deny", policy.deny), ("allow", policy.allow)):
        for rule in rules:
            if rule.tool == tool and rule.skill_name in (None, skill.name):
                words = f"permissions.{verdict}: {rule.tool}" + (f" {rule.skill_name}" if rule.skill_name else "")
                return Decision("deny" if verdict == "deny" else "allow", words, f"a rule says {verdict}")
    if not skill.trusted:
        return Decision("confirm", None, "the skill belongs to a project that is not trusted")
    return Decision("allow", None, "the skill is trusted and no rule speaks of it")
