"""Permissions: decide by the rules, ask the user where they say so, remember answers and record decisions."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from skillshelf.config.profile import Profile
from skillshelf.config.settings import InvalidRule, parse_rule
from skillshelf.core.environment import Environment
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import PermissionDenied, SkillError
from skillshelf.session.effects import Effects
from skillshelf.session.policy import Confirm, Decision, Policy, Verdict, decide
from skillshelf.session.recorder import Recorder

if TYPE_CHECKING:
    from skillshelf.journal.events import By

__all__ = ["NAMES_OF_TOOLS", "Permissions"]

NAMES_OF_TOOLS: Mapping[str, str] = {
    "skill_load": "skill_load",
    "activate_skill": "skill_load",
    "Skill": "skill_load",
    "skill_read": "skill_read",
    "read": "skill_read",
    "skill_run": "skill_run",
    "skill_search": "skill_search",
}
"""Every tool name of a profile, with the name that rules use for it."""

_OTHER_LOAD_NAMES = {"skill_load": ("activate_skill", "Skill")}
"""Names that mean a load in every profile; `read` is not one, since hosts have a tool of that name."""


class Permissions:
    """The permissions of one session: `require` decides, asks and records."""

    def __init__(
        self,
        policy: Policy,
        confirm: Confirm | None,
        *,
        profile: Profile,
        environment: Environment,
        recorder: Recorder,
        effects: Effects,
        shadows_another: Callable[[CatalogSkill], bool],
    ) -> None:
        self.policy = policy
        self.confirm = confirm
        self.requested: set[str] = set()
        self._profile = profile
        self._environment = environment
        self._recorder = recorder
        self._effects = effects
        self._shadows_another = shadows_another
        self._confirmed: set[_Question] = set()

    def decide(self, tool: str, skill: CatalogSkill | None) -> Decision:
        """Return the decision of the rules; what denies a skill denies its files and scripts too."""
        decision = self._by_rules(tool, skill)
        if skill is not None and tool in ("skill_read", "skill_run") and decision.verdict != "deny":
            load = self._by_rules("skill_load", skill)
            return load if load.verdict == "deny" else decision
        return decision

    def _by_rules(self, tool: str, skill: CatalogSkill | None) -> Decision:
        others = [name for name in self._profile.tools if NAMES_OF_TOOLS[name] == tool and name != tool]
        policy = self.policy
        if skill is not None and not skill.trusted and self._shadows_another(skill):
            # The user allowed a name; an untrusted skill that shadows another of that name is not the one they meant.
            policy = policy._replace(allow=tuple(rule for rule in policy.allow if rule.skill_name is None))
        return decide(policy, tool, skill, other_names=others, names_elsewhere=_OTHER_LOAD_NAMES.get(tool, ()))

    def preview(self, tool: str, skill: CatalogSkill) -> Decision:
        """Return the decision on a call by the model without asking the user."""
        refused = self._refused(skill, by_user=False)
        return refused[0] if refused else self.decide(tool, skill)

    def require(
        self,
        tool: str,
        skill: CatalogSkill | None,
        *,
        by_user: bool = False,
        script: str | None = None,
        digest: str | None = None,
        folder_digest: str | None = None,
        narrowed: Decision | None = None,
    ) -> None:
        """Record the decision; raise PermissionDenied unless it is to allow. A script is decided with its digest.

        `narrowed` is what an active skill leaves of a call that the rules allow: it has to be confirmed.
        """
        question = _Question(tool, skill.path if skill else None, script, digest, folder_digest)
        decision, by = self._answer(question, skill, by_user=by_user, narrowed=narrowed)
        self._recorder.decided(tool, skill, decision, by, script=script, digest=digest, folder_digest=folder_digest)
        if decision.verdict != "allow":
            reason = decision.reason if by in ("disabled", "author") else f"may not be used: {decision.reason}"
            raise PermissionDenied(f"{skill.name if skill else tool} {reason}{_how_to_allow(question, skill, by)}")

    def show(self, tool: str, skill: CatalogSkill) -> None:
        """Record the decision for a person, who is shown everything."""
        decision = self.decide(tool, skill)
        if decision.verdict == "allow" and skill.enabled:
            self._recorder.decided(tool, skill, decision, _source(decision))
        else:
            self._recorder.decided(tool, skill, decision._replace(verdict="allow"), "person")

    def may_mention(self, skill: CatalogSkill) -> bool:
        """Record the decision on a mention; return False if a rule denies it. A load is decided when it comes."""
        decision = self.decide("skill_load", skill)
        if decision.verdict == "confirm":
            self._recorder.decided("skill_load", skill, decision._replace(verdict="allow"), "person")
        else:
            self._recorder.decided("skill_load", skill, decision, _source(decision))
        return decision.verdict != "deny"

    def _answer(
        self, question: "_Question", skill: CatalogSkill | None, *, by_user: bool, narrowed: Decision | None = None
    ) -> "tuple[Decision, By]":
        if skill is None:
            decision = self.decide(question.tool, None)
            return decision, _source(decision)
        if refused := self._refused(skill, by_user=by_user):
            return refused
        decision = self.decide(question.tool, skill)
        if decision.verdict == "allow" and narrowed is not None:
            decision = narrowed
        if decision.verdict == "confirm":
            return self._confirm(question, skill, decision.reason)
        return decision, _source(decision)

    def _refused(self, skill: CatalogSkill, *, by_user: bool) -> "tuple[Decision, By] | None":
        """Return a refusal that no rule can override: a disabled skill, or one that models may not invoke."""
        if not skill.enabled:
            return Decision("deny", None, "is disabled"), "disabled"
        if skill.hidden == "disable-model-invocation" and not (by_user or skill.name in self.requested):
            return Decision("deny", None, "may only be invoked by the user"), "author"
        return None

    # Asking ---------------------------------------------------------------------------------------

    def _confirm(self, question: "_Question", skill: CatalogSkill, reason: str) -> "tuple[Decision, By]":
        """Ask the user; without a way to ask, deny."""
        if question in self._confirmed:
            return Decision("allow", None, "the user confirmed this before"), "remembered"
        if self.confirm is None:
            return Decision("deny", None, f"{reason}, and there is no way to ask the user"), "nobody"
        about = f"{reason}: {question.script} {question.digest}" if question.script else reason
        answer = self.confirm(question.tool, skill.name, about)
        if answer == "remember":
            self._remember(question, skill)
            return Decision("allow", None, "the user confirmed this for good"), "remembered"
        verdict: Verdict = "allow" if answer is True else "deny"
        return Decision(verdict, None, reason), "user"

    def _remember(self, question: "_Question", skill: CatalogSkill) -> None:
        """Keep a yes: for a load or read as a rule in the user's file, for a script in this session only."""
        self._confirmed.add(question)
        if question.script is not None:
            # A rule would allow every script of the skill, and every later version of them.
            return
        try:
            rule = parse_rule({"tool": question.tool, "skill_name": skill.name})
            self._effects.remember(self._environment, rule)
        except (InvalidRule, SkillError) as error:
            detail = f"the answer holds for this session only: {error}"
            self._recorder.record(
                "skill_warning", kind="not-remembered", detail=detail, name=skill.name, path=skill.path
            )


class _Question(NamedTuple):
    """A question to the user; a yes counts for exactly this."""

    tool: str
    path: str | None
    script: str | None = None
    digest: str | None = None
    folder_digest: str | None = None


def _source(decision: Decision) -> "By":
    return "rule" if decision.rule else "default"


def _how_to_allow(question: _Question, skill: CatalogSkill | None, by: "By") -> str:
    """Return a way to allow a call that was denied only because it was not confirmed."""
    if skill is None or by not in ("nobody", "user"):
        return ""
    if question.script is not None:
        rule = f'{{ tool = "skill_run", skill_name = "{skill.name}" }}'
        return f"; ask in a terminal, or allow it in your configuration: permissions.allow = [{rule}]"
    return "" if skill.trusted else ". To allow all skills of this project: skillshelf trust"
