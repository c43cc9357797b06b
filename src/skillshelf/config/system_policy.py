"""The policy of the machine: what its administrator forbids and requires, as every part of the program asks it.

Each question has one answer: None, or the file and the key that say no. Several files all count, so the strictest wins.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from skillshelf.config.permission_rules import PermissionRule, denies_name
from skillshelf.core import files
from skillshelf.core.environment import Environment, account_home, policy_stamps
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import folded_name, holds_back, matches_glob
from skillshelf.errors import PermissionDenied, SkillError

__all__ = [
    "RECORDED",
    "PolicyFile",
    "Required",
    "SystemPolicy",
    "host_refusal",
    "is_banned",
    "is_from_above",
    "is_home_of_account",
    "is_kept_untrusted",
    "is_outdated",
    "is_required",
    "is_without_lock",
    "lock_required",
    "policy_of",
    "require_host",
    "require_permitted_change",
    "require_source",
    "source_refusal",
    "trust_refusal",
]


_BANNED = ": skills.forbidden"
_NOT_TRUSTED = ": trust.folders_below"
_NO_LOCK = ": lock.required"


class PolicyFile(NamedTuple):
    """One file of the policy; None for a list of what is allowed means that the file leaves it open.

    `problem` says why the file cannot be used. No model is served then, since nobody knows what the file forbids.
    """

    path: str
    problem: str = ""
    deny: tuple[PermissionRule, ...] = ()
    required: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    sources_allowed: tuple[str, ...] | None = None
    sources_denied: tuple[str, ...] = ()
    hosts_allowed: tuple[str, ...] | None = None
    run_allowed: bool = True
    folders_below: tuple[str, ...] | None = None
    lock_required: bool = False


class Required(NamedTuple):
    """A skill that the policy requires, by name, path or tree, and the file and key that require it."""

    entry: str
    by: str


class SystemPolicy(NamedTuple):
    """All files of the policy. `rules` are what they deny; `stamps` tell whether a file has changed since."""

    files: tuple[PolicyFile, ...] = ()
    rules: tuple[PermissionRule, ...] = ()
    stamps: tuple[tuple[str, tuple[int, ...] | None], ...] = ()

    @property
    def problem(self) -> str:
        """Why models are not served: the first file that cannot be used; empty if all can."""
        return next((f"{file.path}: {file.problem}" for file in self.files if file.problem), "")

    @property
    def required(self) -> tuple[Required, ...]:
        """Every skill that a file requires."""
        return tuple(Required(entry, f"{file.path}: skills.required") for file in self.files for entry in file.required)

    @property
    def looks_at_files(self) -> bool:
        """Whether a decision about a skill needs more than its name: links on its way, or the bytes of its files."""
        entries = [entry for file in self.files for entry in (*file.forbidden, *file.required)]
        return any(
            [
                *(rule.names_thing for rule in self.rules),
                *("/" in entry or entry.startswith("sha256:") for entry in entries),
                *(file.folders_below is not None for file in self.files),
            ]
        )


def policy_of(found: Iterable[PolicyFile], stamps: tuple[tuple[str, tuple[int, ...] | None], ...]) -> SystemPolicy:
    """Return the policy of all files together."""
    read = tuple(found)
    return SystemPolicy(read, tuple(dict.fromkeys(rule for file in read for rule in _rules(file))), stamps)


def _rules(file: PolicyFile) -> Iterator[PermissionRule]:
    """Yield what a file denies, each rule with the file and the key that say so."""
    for entry in file.forbidden:
        member = "tree" if entry.startswith("sha256:") else "path" if entry.startswith("/") else "skill_name"
        yield PermissionRule("skill_load", **{member: entry}, system=file.path + _BANNED)
    if not file.run_allowed:
        yield PermissionRule("skill_run", system=f"{file.path}: run.allow")
    for rule in file.deny:
        yield rule._replace(system=f"{file.path}: permissions.deny")


RECORDED = (("recorded", None),)
"""The stamps of a policy that comes from a journal: it does not change."""


def is_outdated(policy: SystemPolicy, environment: Environment) -> bool:
    """Return whether a file of the policy came, went or changed since it was read."""
    return policy.stamps != RECORDED and policy.stamps != policy_stamps(environment)


# Skills -------------------------------------------------------------------------------------------


def is_banned(*said_by: str | None) -> bool:
    """Return whether one of those that hide or deny a skill is the list of what the policy forbids to everybody."""
    return any(by is not None and is_from_above(by) and _BANNED in by for by in said_by)


def is_kept_untrusted(hidden_by: str | None) -> bool:
    """Return whether a skill is hidden because the policy lets nobody trust its folder."""
    return hidden_by is not None and hidden_by.endswith(_NOT_TRUSTED)


def is_without_lock(hidden_by: str | None) -> bool:
    """Return whether a skill is hidden because the policy requires a lock, and none names it."""
    return hidden_by is not None and hidden_by.endswith(_NO_LOCK)


def is_from_above(rule: str | None) -> bool:
    """Return whether the rule behind a decision is one of the policy: those are named by their file."""
    return rule is not None and rule.startswith("/")


def is_required(
    entry: str, name: str, path: str, real_path: str, real_dir: str, tree: Callable[[], str | None]
) -> bool:
    """Return whether an entry of `skills.required` means a skill; a name is folded, of a path the real one decides."""
    if entry.startswith("sha256:"):
        try:
            return tree() == entry
        except SkillError:
            return False
    if entry.startswith("/"):
        place = files.real_path(entry.removesuffix("/SKILL.md"))
        return files.is_inside(real_path, place) and files.is_inside(real_dir, place)
    return holds_back(entry, name)


def trust_refusal(policy: SystemPolicy, *folders: str) -> str | None:
    """Return the file and key that let nobody trust these real folders; None if they may be trusted."""
    for file in policy.files:
        below = file.folders_below
        if below is not None and not all(any(files.is_inside(one, place) for place in below) for one in folders):
            return file.path + _NOT_TRUSTED
    return None


def is_home_of_account(home: str | None) -> bool:
    """Return whether a home folder is that of the account, and no other that somebody named."""
    own = account_home()
    return home is not None and bool(own) and files.real_path(home) == files.real_path(own)


# Hosts, sources, locks ----------------------------------------------------------------------------


def host_refusal(policy: SystemPolicy, host: str) -> str | None:
    """Return the file and key that do not allow a host; None if it is allowed."""
    closed = (file.path for file in policy.files if file.hosts_allowed is not None and host not in file.hosts_allowed)
    path = next(closed, None)
    return f"{path}: hosts.allow" if path is not None else None


def require_host(policy: SystemPolicy, hosts: Sequence[str]) -> None:
    """Raise PermissionDenied for the first of these hosts that is not allowed."""
    for host in hosts:
        if by := host_refusal(policy, host):
            raise PermissionDenied(f"host {host} is not allowed by the system policy ({by})")


def source_refusal(policy: SystemPolicy, source: str, *others: str) -> str | None:
    """Return the file and key that do not allow to install from a source; None if it is allowed.

    A pattern is compared with the whole source as it is written without its reference; `*` stands for any text.
    `others` are further names of the same source: one that is denied denies it, one that is allowed allows it.
    """
    names = (source, *others)
    for file in policy.files:
        if any(denies_name(pattern, name) for pattern in file.sources_denied for name in names):
            return f"{file.path}: sources.deny"
        allowed = file.sources_allowed
        if allowed is not None and not any(matches_glob(name, pattern) for pattern in allowed for name in names):
            return f"{file.path}: sources.allow"
    return None


def require_source(policy: SystemPolicy, source: str, *others: str) -> None:
    """Raise PermissionDenied if nothing may be installed from a source, or if no policy can tell."""
    if policy.problem:
        raise PermissionDenied(f"nothing is installed: the system policy cannot be used: {policy.problem}")
    if by := source_refusal(policy, source, *others):
        raise PermissionDenied(f"source {source} is not allowed by the system policy ({by})")


def require_permitted_change(
    policy: SystemPolicy, name: str, folder: str, before: str | None, after: str | None
) -> None:
    """Raise PermissionDenied if the system policy forbids the new tree of a skill in a folder, or requires the old one.

    Without `after` the skill is removed, without `before` there is none.
    """
    for file in policy.files:
        for entry in file.forbidden if after is not None else ():
            if _means(entry, name, folder, after):
                raise PermissionDenied(f"{name} is forbidden by the system policy ({file.path}: skills.forbidden)")
    for one in policy.required:
        if before in (None, after) or not _means(one.entry, name, folder, before):
            continue
        if after is None:
            raise PermissionDenied(f"{name} cannot be removed: the system policy requires it ({one.by})")
        if one.entry == before:
            raise PermissionDenied(f"{name} cannot be changed: the system policy requires {before} ({one.by})")


def _means(entry: str, name: str, folder: str, tree: str | None) -> bool:
    """Return whether an entry of the policy, a tree, a path or a name, means an installed skill."""
    if entry.startswith("/"):
        return files.is_inside(files.real_path(folder), files.real_path(entry.removesuffix("/SKILL.md")))
    return entry == tree or folded_name(entry) == folded_name(name)


def lock_required(policy: SystemPolicy) -> str | None:
    """Return the file and key that keep skills from models which no lock names; None if none does."""
    path = next((file.path for file in policy.files if file.lock_required), None)
    return path + _NO_LOCK if path is not None else None
