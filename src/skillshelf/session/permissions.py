"""Permissions: decide by the rules, ask the user where they say so, remember answers and record decisions."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from skillshelf.catalog.build_context import hidden_by_author
from skillshelf.catalog.source import is_remote
from skillshelf.catalog.tree import PROBLEMS, SkillTree
from skillshelf.config.permission_rules import (
    LOAD_TOOLS,
    InvalidRule,
    PermissionRule,
    RuleSubject,
    is_kebab_case,
    parse_rule,
)
from skillshelf.config.profile import Profile
from skillshelf.config.system_policy import is_banned, is_from_above, is_kept_untrusted, is_without_lock
from skillshelf.core.environment import Environment
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import TRUST_FOR_MODELS, trust_command, visible
from skillshelf.core.values import CatalogSkill
from skillshelf.errors import PermissionDenied, SkillError
from skillshelf.session.effects import Answer, Effects, RuleNotWritten
from skillshelf.session.policy import ASKED_ALWAYS, Confirm, Decision, Policy, decide, rule_without_effect
from skillshelf.session.recorder import Recorder

if TYPE_CHECKING:
    from skillshelf.config.approvals import Approval
    from skillshelf.journal.events import By
    from skillshelf.sandbox.run import Script

__all__ = [
    "APPROVALS_UNREADABLE",
    "NAMES_OF_TOOLS",
    "NOT_ASKED",
    "NOT_REMEMBERED",
    "NO_RULE",
    "SESSION_ONLY",
    "AnswerFailed",
    "Permissions",
]

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

_OTHER_NAMES = {"skill_load": LOAD_TOOLS[1:]}
"""Names that deny a tool in every profile."""

_NAMES_OF_HOSTS = {"skill_read": ("read",)}
"""Names of ours that hosts have for a tool of their own."""


class AnswerFailed(Exception):
    """The failure of a host's question, with the text that is recorded."""


class Permissions:
    """The permissions of one session: `require` decides, asks and records."""

    def __init__(
        self,
        policy: Policy,
        confirm: Confirm | None,
        *,
        profile: Profile,
        environment: Environment,
        project_root: Callable[[], str],
        recorder: Recorder,
        effects: Effects,
    ) -> None:
        self.policy = policy
        self.confirm = confirm
        self.requested: dict[str, str] = {}
        """The skills that the user asked for, by real path, with their names."""
        self._profile = profile
        self._environment = environment
        self._project_root = project_root
        self._recorder = recorder
        self._effects = effects
        self._answers: set[_Question] = set()
        self._approved: tuple[str, SkillTree] | None = None
        self._warned: set[str] = set()
        self._warnings: list[tuple[str, str]] = []

    def decide(self, tool: str, skill: CatalogSkill | None) -> Decision:
        """Return the decision of the rules; what denies a skill denies its files and scripts too."""
        if skill is not None and (denied := _denied_from_above(skill)):
            return denied
        return self._decide(tool, None if skill is None else self.subject(skill))

    def listing(self, skill: CatalogSkill) -> Decision:
        """Return the decision about a load to list a skill by; its files are not read only for that."""
        return self._decide("skill_load", _subject(skill, lambda: None))

    def subject(self, skill: CatalogSkill) -> RuleSubject:
        """Return a skill as rules see it, with the files that it has now."""
        return _subject(skill, lambda: self._effects.tree(skill).digest)

    def _decide(self, tool: str, skill: RuleSubject | None) -> Decision:
        decision = self._by_rules(tool, skill)
        if skill is not None and tool in ("skill_read", "skill_run") and decision.verdict != "deny":
            load = self._by_rules("skill_load", skill)
            return load if load.verdict == "deny" else decision
        return decision

    def _by_rules(self, tool: str, skill: RuleSubject | None) -> Decision:
        decision = self._decided(self.policy, tool, skill)
        if skill is None or not is_remote(skill.path) or decision.verdict == "deny":
            return decision
        # No policy, no name and no place stands for an approval of these files, and an approved text may not yet run.
        policy = self.policy._replace(name="default") if self.policy.name == "full-auto" else self.policy
        trusted = skill.trusted and tool != "skill_run"
        decision = self._decided(
            policy, tool, skill._replace(trusted=trusted, real_path=skill.path, real_dir=skill.path)
        )
        if decision.verdict != "confirm":
            return decision
        return decision._replace(reason=ASKED_ALWAYS.get(tool, _NOT_APPROVED))

    def _decided(self, policy: Policy, tool: str, skill: RuleSubject | None) -> Decision:
        return decide(
            policy,
            tool,
            skill,
            other_names=self._names(tool)[1:],
            names_elsewhere=_OTHER_NAMES.get(tool, ()),
            names_of_hosts=_NAMES_OF_HOSTS.get(tool, ()),
        )

    def _names(self, tool: str) -> list[str]:
        """Return the names of a tool in the profile, the one that rules use first."""
        return [tool, *(name for name in self._profile.tools if NAMES_OF_TOOLS[name] == tool and name != tool)]

    def preview(self, tool: str, skill: CatalogSkill) -> Decision:
        """Return the decision on a call by the model without asking the user."""
        refused = self._refused(skill, by_user=False)
        decision = refused[0] if refused else self.decide(tool, skill)
        if decision.verdict != "confirm":
            return decision
        question, _ = self._question(tool, skill, None)
        # Whether a script was said yes to is known when it is named.
        return Decision("allow", None, "the user approved this") if self._is_approved(question, skill) else decision

    def may_confirm(self, tool: str, skills: Sequence[CatalogSkill]) -> bool:
        """Return True if there is a user to ask, or an approval of one of these skills."""
        return self.confirm is not None or bool(self._approvals(tool, *skills))

    def require(
        self,
        tool: str,
        skill: CatalogSkill | None,
        *,
        by_user: bool = False,
        script: "Script | None" = None,
        narrowed: Decision | None = None,
    ) -> None:
        """Record the decision; raise PermissionDenied unless it is to allow. A script is decided with its bytes.

        `narrowed` is what an active skill leaves of a call that the rules allow: it has to be confirmed.
        """
        self._approved = None
        self._warnings = []
        answer = self._answer(tool, skill, script, by_user=by_user, narrowed=narrowed)
        decision, by = answer.decision, answer.by
        path, digest = (script.path, script.digest) if script else (None, None)
        self._recorder.decided(tool, skill, decision, by, script=path, digest=digest, tree=answer.tree)
        for kind, detail in self._warnings:
            name, where = (skill.name, skill.path) if skill else (None, None)
            self._recorder.record("skill_warning", kind=kind, detail=detail, name=name, path=where)
            self._warned.add(detail)
        if decision.verdict != "allow":
            reason = decision.reason if by in ("disabled", "author") else f"may not be used: {decision.reason}"
            how = _how_to_allow(path, skill, by)
            raise PermissionDenied(f"{skill.name if skill else tool} {reason}{how}") from answer.cause

    def verify(self, skill: CatalogSkill, path: str, digest: str, tree: str | None = None) -> None:
        """Raise PermissionDenied if a file that was just read is not one of those that the last decision is about.

        `tree` is that of all files, where the load knows it.
        """
        if self._approved is None or self._approved[0] != skill.real_path:
            return
        approved = self._approved[1]
        if tree is not None and approved.digest not in (None, tree):
            raise PermissionDenied(f"{skill.name} may not be used: its files are not as they were approved; try again")
        if approved.digest is None and approved.version is not None:
            if self._tree(skill).version != approved.version:
                raise PermissionDenied(
                    f"{skill.name} may not be used: its files are not as they were approved; try again"
                )
            return
        listed = approved.listed
        if not listed:
            return
        known = listed.get(path)
        is_folder = known is None and any(other.startswith(f"{path}/") for other in listed)
        if not is_folder and (known is None or digest != f"sha256:{known.sha256}"):
            raise PermissionDenied(f"{skill.name} may not be used: {path} is not as it was approved; try again")

    def show(self, tool: str, skill: CatalogSkill) -> None:
        """Record the decision for a person, who is shown everything."""
        self._approved = None
        decision = self.decide(tool, skill)
        load = decision if tool == "skill_load" else self.decide("skill_load", skill)
        if load.verdict == "deny" and is_banned(skill.hidden_by if skill.hidden else None, load.rule):
            self._recorder.decided(tool, skill, load, "system")
            raise PermissionDenied(f"{skill.name} may not be used: {load.reason}")
        if decision.verdict == "allow" and skill.enabled:
            self._recorder.decided(tool, skill, decision, _source(decision))
        else:
            self._recorder.decided(tool, skill, decision._replace(verdict="allow"), "person")

    def deny_from_above(self, tool: str, reason: str) -> NoReturn:
        """Record that the system policy denies a call, whatever it is about, and raise PermissionDenied."""
        by = reason.rpartition("(")[2].rstrip(")")
        self._recorder.decided(tool, None, Decision("deny", by, reason), "system")
        raise PermissionDenied(f"{tool} may not be used: {reason}")

    def may_mention(self, skill: CatalogSkill) -> bool:
        """Record the decision on a mention; return False if a rule denies it. A load is decided when it comes."""
        decision = self.decide("skill_load", skill)
        if decision.verdict == "confirm":
            self._recorder.decided("skill_load", skill, decision._replace(verdict="allow"), "person")
        else:
            self._recorder.decided("skill_load", skill, decision, _source(decision))
        return decision.verdict != "deny"

    def _answer(
        self,
        tool: str,
        skill: CatalogSkill | None,
        script: "Script | None",
        *,
        by_user: bool,
        narrowed: Decision | None = None,
    ) -> "_Answered":
        tree = script.tree.digest if script else None
        if skill is None:
            decision = self.decide(tool, None)
            return _Answered(decision, _source(decision))
        if refused := self._refused(skill, by_user=by_user):
            return _Answered(*refused, tree)
        judged = _JudgedTree(lambda: script.tree if script else self._effects.tree(skill))
        decision = self._decide(tool, _subject(skill, judged))
        if decision.verdict == "allow" and narrowed is not None:
            decision = narrowed
        if decision.verdict == "confirm":
            return self._confirm(tool, skill, script, decision.reason)
        if decision.verdict == "allow" and judged.found is not None:
            # A rule was compared with these files, so nothing else may come of the decision.
            return self._allow(decision, _source(decision), skill, judged.found)
        return _Answered(decision, _source(decision), tree)

    def _refused(self, skill: CatalogSkill, *, by_user: bool) -> "tuple[Decision, By] | None":
        """Return a refusal that no rule can override: of the system policy, of the user, or of the author."""
        if denied := _denied_from_above(skill):
            return denied, "system"
        if not skill.enabled:
            return Decision("deny", None, "is disabled"), "disabled"
        by_author = hidden_by_author(skill.frontmatter, self._profile) == "disable-model-invocation"
        if by_author and not (by_user or skill.real_path in self.requested):
            return Decision("deny", None, "may only be invoked by the user"), "author"
        return None

    # Asking ---------------------------------------------------------------------------------------

    def _confirm(self, tool: str, skill: CatalogSkill, script: "Script | None", reason: str) -> "_Answered":
        """Take an answer that was given before to the same thing, or ask the user; without a way to ask, deny."""
        without = self._without_effect(tool, skill)
        asked, reason = f"{reason}{without.for_user}", f"{reason}{without.for_model}"
        known = any((one.tool, one.path) == (tool, skill.real_path) for one in self._answers)
        if self.confirm is None and not known and not self._approvals(tool, skill):
            return _Answered(Decision("deny", None, _NOBODY.format(reason)), "nobody", _digest(script))
        question, tree = self._question(tool, skill, script)
        if question.version is not None and question in self._answers:
            allowed = Decision("allow", None, "the user confirmed this before")
            return self._allow(allowed, "remembered", skill, tree)
        if self._is_approved(question, skill):
            return self._allow(Decision("allow", None, "the user approved this"), "remembered", skill, tree)
        if self.confirm is None:
            return _Answered(Decision("deny", None, _NOBODY.format(reason)), "nobody", _digest(script))
        try:
            about = _about(asked, script, tree)
            answer = self.confirm(tool, skill.name, _with_origin(about, skill, tree))
        except SkillError:
            raise
        except Exception as error:
            # A host that fails to ask has decided nothing; a model's call must still have an answer.
            text = str(error) if isinstance(error, AnswerFailed) else f"{type(error).__name__}: {error}"
            self._warnings.append((NOT_ASKED, text))
            denied = Decision("deny", None, f"{reason}, and asking the user failed")
            return _Answered(denied, "failed", tree.digest, error)
        if answer is not True and answer != "remember":
            return _Answered(Decision("deny", None, reason), "user", tree.digest)
        if answer is True:
            return self._allow(Decision("allow", None, reason), "user", skill, tree)
        self._answers.add(question)
        self._remember(question, skill, tree)
        return self._allow(Decision("allow", None, "the user confirmed this for good"), "remembered", skill, tree)

    def _allow(self, decision: Decision, by: "By", skill: CatalogSkill, tree: SkillTree) -> "_Answered":
        self._approved = skill.real_path, tree
        return _Answered(decision, by, tree.digest)

    def _question(self, tool: str, skill: CatalogSkill, script: "Script | None") -> "tuple[_Question, SkillTree]":
        """Return what is asked, with the files of the skill as they are on disk now."""
        tree = script.tree if script is not None else self._tree(skill)
        return _Question(tool, skill.real_path, script.path if script else None, tree.version), tree

    def _tree(self, skill: CatalogSkill) -> SkillTree:
        """Return the files of a skill as they are on disk now; without a version if they cannot be read."""
        try:
            return self._effects.tree(skill)
        except SkillError:
            return SkillTree(None, None, 0, 0, None)

    def _approvals(self, tool: str, *skills: CatalogSkill) -> "Sequence[Approval]":
        """Return the approvals of a tool for skills, whatever their files were; none if they cannot be read."""
        try:
            return self._effects.approvals(self._environment, tool, skills)
        except SkillError as error:
            self._warn_once(APPROVALS_UNREADABLE, str(error))
            return ()

    def _is_approved(self, question: "_Question", skill: CatalogSkill) -> bool:
        """Return True if the user approved this tool for this path and these files; for a script, for all of them."""
        return question.version is not None and any(
            one.tree == question.version for one in self._approvals(question.tool, skill)
        )

    def _remember(self, question: "_Question", skill: CatalogSkill, tree: SkillTree) -> None:
        """Keep a yes for good, or say why it counts for this session only."""
        try:
            if tree.digest is None:
                raise SkillError(_no_tree(tree))
            self._effects.remember(
                self._environment, Answer(question.tool, skill, tree.digest, self._rule(question, skill))
            )
        except RuleNotWritten as error:
            self._warnings.append((NO_RULE, str(error)))
        except SkillError as error:
            self._warnings.append((NOT_REMEMBERED, f"{SESSION_ONLY}{error}"))

    def _rule(self, question: "_Question", skill: CatalogSkill) -> PermissionRule | None:
        """Return the rule that the profile writes besides an approval; it counts where the skill is trusted."""
        if self._profile.remembered_as != "approval-and-rule" or question.script is not None:
            return None
        try:
            rule = parse_rule({"tool": question.tool, "skill_name": skill.name})
        except InvalidRule:
            return None
        # A rule that the profile refuses would make the whole file unusable.
        return rule if self._profile.rule_names == "any" or is_kebab_case(skill.name) else None

    def _without_effect(self, tool: str, skill: CatalogSkill) -> "_ReasonEnd":
        """Return the end of a reason if a rule names this untrusted skill, and warn of it once."""
        rule = rule_without_effect(self.policy, self._names(tool), _subject(skill, lambda: None))
        if rule is None:
            return _ReasonEnd("", "")
        trust = trust_command(self._project_root())
        self._warn_once(
            "rule-untrusted",
            f'`{rule}` counts for trusted skills only, and {skill.path} is not one; answer "remember" when you are '
            f"asked, or run: {trust}",
        )
        said = f" ({rule} counts for trusted skills only"
        return _ReasonEnd(f"{said}; to trust this project: {trust})", f"{said})")

    def _warn_once(self, kind: str, detail: str) -> None:
        if detail not in self._warned and (kind, detail) not in self._warnings:
            self._warnings.append((kind, detail))


APPROVALS_UNREADABLE = "approvals"
NOT_ASKED = "not-asked"
NOT_REMEMBERED = "not-remembered"
NO_RULE = "rule-not-written"
SESSION_ONLY = "the answer holds for this session only: "
_NOT_APPROVED = "the user has not approved this version of a skill that is not on this machine"
_NOBODY = "{}, and there is no way to ask the user"


class _JudgedTree:
    """The tree of a skill for its rules, read at the first use; `found` is what they were compared with."""

    def __init__(self, read: Callable[[], SkillTree]) -> None:
        self.found: SkillTree | None = None
        self._read = read

    def __call__(self) -> str | None:
        if self.found is None:
            self.found = self._read()
        return self.found.digest


def _subject(skill: CatalogSkill, tree: Callable[[], str | None]) -> RuleSubject:
    declared = skill.frontmatter.get("name")
    return RuleSubject(skill.name, skill.path, skill.real_path, skill.real_dir, skill.trusted, tree, declared)


class _ReasonEnd(NamedTuple):
    """The end of a reason, for the user and for a model, which is not told where a project lies."""

    for_user: str
    for_model: str


class _Question(NamedTuple):
    """A question to the user; "remember" counts for exactly this, and only once if there is no version."""

    tool: str
    path: str
    script: str | None
    version: str | None


class _Answered(NamedTuple):
    """A decision, its source, the tree that it is about, and the failure behind it."""

    decision: Decision
    by: "By"
    tree: str | None = None
    cause: Exception | None = None


def _denied_from_above(skill: CatalogSkill) -> Decision | None:
    """Return the denial that nobody can confirm away: the system policy trusts no folder there, or requires a lock."""
    if skill.hidden == "denied" and is_without_lock(skill.hidden_by):
        return Decision("deny", skill.hidden_by, f"the system policy requires a lock that names it ({skill.hidden_by})")
    if not (skill.hidden == "untrusted" and is_kept_untrusted(skill.hidden_by)):
        return None
    return Decision("deny", skill.hidden_by, f"the system policy trusts no folder there ({skill.hidden_by})")


def _source(decision: Decision) -> "By":
    if is_from_above(decision.rule):
        return "system"
    return "rule" if decision.rule else "default"


def _digest(script: "Script | None") -> str | None:
    return script.tree.digest if script else None


def _about(reason: str, script: "Script | None", tree: SkillTree) -> str:
    """Return the reason with what the user should know of the answer's reach."""
    text = f"{reason}: {script.path} {script.digest}" if script else reason
    if tree.digest is None:
        return f"{text} (the answer cannot be remembered: {_no_tree(tree)})"
    if script is None:
        return text
    return f"{text} (an answer to remember is for every script of this skill, as its files are now: {tree.digest})"


def _with_origin(text: str, skill: CatalogSkill, tree: SkillTree) -> str:
    """Return a question with the live source of a skill, and the files that it is about."""
    if not is_remote(skill.path):
        return text
    count = f", {tree.files} files with {tree.size} bytes" if tree.files else ""
    return f"{text}; it comes from {visible(skill.source)}: {tree.digest}{count}"


def _no_tree(tree: SkillTree) -> str:
    return PROBLEMS[tree.problem] if tree.problem else "its files cannot be read"


def _how_to_allow(script: str | None, skill: CatalogSkill | None, by: "By") -> str:
    """Return a way to allow a call that was denied only because it was not confirmed."""
    if skill is None or by not in ("nobody", "user"):
        return ""
    if is_remote(skill.path):
        return f"; the user of this program can approve it, as {skill.source} offers it"
    if not skill.trusted:
        return f". To allow all skills of this project: {TRUST_FOR_MODELS}"
    if script is None:
        return ""
    rule = f'{{ tool = "skill_run", skill_name = {json.dumps(skill.name, ensure_ascii=False)} }}'
    return f"; ask in a terminal, or allow it in your configuration: permissions.allow = [{rule}]"
