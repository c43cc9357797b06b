"""Resolve the search roots of a profile: which folders, in which order, and how far to trust each."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skillshelf.config.profile import Base, HomeRule, PluginRule, Profile, RootRule, how_to_allow
from skillshelf.config.settings import Settings, Trust, is_trusted
from skillshelf.config.system_policy import is_home_of_account, trust_refusal
from skillshelf.core import files
from skillshelf.core.environment import Environment, below_home, expand, find_repository
from skillshelf.core.limits import CONFIG_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.text import is_name, is_true_variable
from skillshelf.core.values import Diagnostic, Root

if TYPE_CHECKING:
    from skillshelf.catalog.host_settings import SettingInFiles

__all__ = ["Roots", "resolve_roots", "turned_off_by"]


class Roots(NamedTuple):
    """The roots by precedence, the repository that bounds them, problems, and switches in a host's own settings."""

    roots: tuple[Root, ...]
    repository: str
    problems: tuple[Diagnostic, ...]
    switches: tuple["SettingInFiles", ...] = ()


class _RuleFolder(NamedTuple):
    """A folder that a rule names; it may not exist. Names in it get the prefix; `off` if a setting turns it off."""

    path: str
    rule: RootRule
    label: str
    prefix: str = ""
    off: bool = False


class _RootContext(NamedTuple):
    """Inputs for the root rules, plus the list that collects problems."""

    environment: Environment
    settings: Settings
    profile: Profile
    chain: tuple[str, ...]
    repository: str
    problems: list[Diagnostic]
    host_trusts: bool
    switches: tuple["SettingInFiles", ...]
    upward: tuple[str, ...] = ()


def resolve_roots(profile: Profile, environment: Environment, settings: Settings, *, trust: Trust) -> Roots:
    """Return every root of the profile in this environment; a folder named twice keeps its first position."""
    context = _root_context(profile, environment, settings)
    named: dict[str, _RuleFolder] = {}
    homes = _home_roots(profile, environment)
    for rule in sorted(profile.roots, key=lambda rule: -rule.priority):
        for folder in BASES[rule.base](rule, context):
            if rule.base == "chain" and _home_rule(rule, profile) == "user" and _unlinked(folder) in homes:
                continue
            known = named.setdefault(folder.path, folder)
            if known.rule.host_switch and _is_off(known.rule, context) and not _is_off(rule, context):
                # One rule turns the folder off, another reads it.
                named[folder.path] = folder
    roots = [_root(folder, context, trust, homes) for folder in named.values()]
    bounded = tuple(_bounded(roots, context))
    return Roots(bounded, files.real_path(context.repository), tuple(context.problems), context.switches)


def _root_context(profile: Profile, environment: Environment, settings: Settings) -> _RootContext:
    problems: list[Diagnostic] = []
    markers = profile.markers
    if profile.markers_env and (given := environment.env.get(profile.markers_env, "").strip()):
        markers = tuple(marker.strip() for marker in given.split(",") if marker.strip())
    boundary = environment.env.get(profile.boundary_env, "").strip() if profile.boundary_env else ""
    if boundary:
        top = files.real_path(expand(boundary, environment, base=environment.cwd))
    else:
        top = _repository(profile, environment, markers) or _top_without_marker(profile, environment)
    if environment.ceiling is not None and not files.is_inside(top, environment.ceiling):
        top = environment.ceiling
    is_homeless = environment.home is None and environment.ceiling is None
    if is_homeless and any(rule.base == "home" for rule in profile.roots):
        problems.append(
            Diagnostic("", "home-missing", "HOME is not an absolute path; skills in your home folder are not read")
        )
    chain = _chain(environment.cwd, top)
    if not chain:
        problems.append(Diagnostic(top, "boundary-outside", f"${profile.boundary_env} is not above {environment.cwd}"))
    ordered = chain if profile.chain_order == "nearest-first" else chain[::-1]
    host_trusts, switches = _host_settings(profile, environment, chain or (environment.cwd,), problems)
    repository = top if chain else environment.cwd
    return _RootContext(environment, settings, profile, ordered, repository, problems, host_trusts, switches, chain)


def _repository(profile: Profile, environment: Environment, markers: Sequence[str]) -> str | None:
    """Return the repository of the working directory; for some hosts the home folder is none."""
    found = find_repository(environment.cwd, markers)
    is_ignored = found is not None and profile.home_repository == "ignored" and _is_home(found, environment)
    return None if is_ignored else found


def _top_without_marker(profile: Profile, environment: Environment) -> str:
    """Return where a chain ends if no folder above the working directory is a repository."""
    if profile.no_marker == "cwd":
        return environment.cwd
    home = environment.home
    is_at_home = profile.no_marker == "home" and home is not None and files.is_inside(environment.cwd, home)
    return home if is_at_home and home else "/"


def _host_settings(
    profile: Profile, environment: Environment, chain: tuple[str, ...], problems: list[Diagnostic]
) -> tuple[bool, tuple["SettingInFiles", ...]]:
    """Return whether the host trusts the working directory, and the switches in its own settings."""
    if profile.trust_file is None and not profile.settings:
        return True, ()
    from skillshelf.catalog.host_settings import SettingsContext, host_trust, switches_of

    where = SettingsContext(environment, chain)
    trusted, problem = host_trust(profile, where) if profile.trust_file else (True, None)
    problems += [problem] if problem else []
    return trusted, switches_of(profile, where, trusted=trusted)


def _chain(cwd: str, top: str) -> tuple[str, ...]:
    """Return the folders from `cwd` up to `top`, both included; none if `top` is not above `cwd`."""
    if not files.is_inside(cwd, top):
        return ()
    folders = [cwd]
    while folders[-1] != top:
        folders.append(os.path.dirname(folders[-1]))
    return tuple(folders)


def _home_rule(rule: RootRule, profile: Profile) -> HomeRule:
    return rule.home or profile.home_in_chain


def _home_roots(profile: Profile, environment: Environment) -> set[str]:
    """Return the user's own roots, also by real path: the home folder may be a link."""
    homes = {environment.home, files.real_path(environment.home)} if environment.home else set()
    paths = [path for rule in profile.roots if rule.base == "home" for path in rule.paths]
    return {os.path.join(home, path) for home in homes for path in paths}


def _unlinked(folder: _RuleFolder) -> str:
    """Return the path of a chain root, with the real path of its folder in the chain."""
    return os.path.join(files.real_path(folder.path.removesuffix("/" + folder.label)), folder.label)


# Bases of rules -----------------------------------------------------------------------------------


def _from_env(rule: RootRule, context: _RootContext) -> Iterator[_RuleFolder]:
    for variable in rule.paths:
        for entry in context.environment.env.get(variable, "").split(":"):
            if entry:
                yield _RuleFolder(expand(entry, context.environment, base=context.environment.cwd), rule, "")


def _from_chain(rule: RootRule, context: _RootContext) -> Iterator[_RuleFolder]:
    for folder in context.chain:
        if _home_rule(rule, context.profile) == "skip" and _is_home(folder, context.environment):
            continue
        for path in rule.paths:
            yield _RuleFolder(os.path.join(folder, path), rule, path)


def _is_home(folder: str, environment: Environment) -> bool:
    return environment.home is not None and files.real_path(folder) == files.real_path(environment.home)


def _from_cwd(rule: RootRule, context: _RootContext) -> Iterator[_RuleFolder]:
    for path in rule.paths:
        yield _RuleFolder(os.path.normpath(os.path.join(context.environment.cwd, path)), rule, path)


def _from_repository(rule: RootRule, context: _RootContext) -> Iterator[_RuleFolder]:
    for path in rule.paths:
        yield _RuleFolder(os.path.join(context.repository, path), rule, path)


def _from_custom(rule: RootRule, context: _RootContext) -> Iterator[_RuleFolder]:
    for path in context.settings.custom_directories:
        yield _RuleFolder(path, rule, "")


def _from_home(rule: RootRule, context: _RootContext) -> Iterator[_RuleFolder]:
    if context.environment.home is None:
        return
    for path in rule.paths:
        yield _RuleFolder(below_home(path, context.profile.moved, context.environment), rule, path)


def _from_fixed(rule: RootRule, context: _RootContext) -> Iterator[_RuleFolder]:
    for path in rule.paths:
        yield _RuleFolder(path, rule, path)


def _from_plugin_list(rule: RootRule, context: _RootContext) -> Iterator[_RuleFolder]:
    """Yield the folders of every installed plugin, in the order of the plugin list in the home folder."""
    if context.environment.home is None or rule.plugin_list is None:
        return
    path = below_home(rule.plugin_list, context.profile.moved, context.environment)
    if files.kind_at(path) is None:
        return
    if rule.plugins is not None:
        yield from _switched_plugins(path, rule, rule.plugins, context)
        return
    for install_path in _install_paths(path, context.problems):
        for below in rule.paths:
            yield _RuleFolder(
                expand(f"{install_path}/{below}", context.environment, base=os.path.dirname(path)), rule, ""
            )


def _switched_plugins(path: str, rule: RootRule, plugins: PluginRule, context: _RootContext) -> Iterator[_RuleFolder]:
    """Yield the folders of plugins that have a switch each; one for another project is not there at all."""
    from skillshelf.catalog.host_settings import SettingsContext, UnreadableSettings, settings_of

    environment, listed = context.environment, _table(_read_json(path)).get("plugins")
    if not isinstance(listed, dict):
        context.problems.append(Diagnostic(path, "plugins-unreadable", "not a list of installed plugins"))
    is_on: dict[str, Any] = {}
    where = SettingsContext(environment, context.upward or (environment.cwd,))
    try:
        for setting in settings_of(plugins.switch, where, context.profile.moved, trusted=True):
            is_on |= _table(setting.value)
    except UnreadableSettings as error:
        context.problems.append(Diagnostic(error.path, "settings-unreadable", str(error)))
    for name, entries in _table(listed).items():
        for entry in map(_table, entries if isinstance(entries, list) else [entries]):
            of_project = entry.get("projectPath")
            folder = _market_folder(name, plugins, context) or entry.get("installPath")
            if not isinstance(folder, str) or "\0" in folder or of_project not in (None, *where.chain):
                continue
            declared = _table(_read_json(f"{folder}/{plugins.manifest}")).get("name") or name.partition("@")[0]
            prefix = f"{declared}:" if isinstance(declared, str) and is_name(declared) else ""
            for below in rule.paths if prefix else ():
                at = expand(f"{folder}/{below}", environment, base=os.path.dirname(path))
                label = at.removeprefix(f"{environment.home}/") if at.startswith(f"{environment.home}/") else ""
                yield _RuleFolder(at, rule, label, prefix, off=is_on.get(name) is not True)


def _market_folder(name: str, plugins: PluginRule, context: _RootContext) -> str | None:
    """Return the folder of a plugin in a market that is a folder itself; None if it was copied from elsewhere."""
    plugin, _, market = name.partition("@")
    markets = _read_json(below_home(plugins.markets, context.profile.moved, context.environment))
    source = _table(_table(_table(markets).get(market)).get("source"))
    folder = source.get("path") if source.get("source") == "directory" else None
    if not isinstance(folder, str):
        return None
    offered = _table(_read_json(f"{folder}/{plugins.market}")).get("plugins")
    for one in map(_table, offered if isinstance(offered, list) else ()):
        if one.get("name") == plugin and isinstance(at := one.get("source"), str):
            return os.path.normpath(os.path.join(folder, at))
    return None


def _table(value: Any) -> dict[str, Any]:
    """Return a value of a host's file if it is a table, else an empty one."""
    return value if isinstance(value, dict) else {}


def _install_paths(path_of_list: str, problems: list[Diagnostic]) -> Iterator[str]:
    import json

    try:
        data = files.read_file(path_of_list, limit=CONFIG_BYTES, links="follow")
        plugins = json.loads(data or b"")["plugins"]
        entries = [entry for value in plugins.values() for entry in (value if isinstance(value, list) else [value])]
        paths = [entry.get("installPath") for entry in entries]
        yield from dict.fromkeys(path for path in paths if isinstance(path, str) and "\0" not in path)
        if wrong := sum(not isinstance(path, str) or "\0" in path for path in paths):
            problems.append(Diagnostic(path_of_list, "plugins-unreadable", f"{wrong} entries have no installPath"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        problems.append(
            Diagnostic(path_of_list, "plugins-unreadable", f"not a list of installed plugins ({type(error).__name__})")
        )


BASES: Mapping[Base, Callable[[RootRule, _RootContext], Iterator[_RuleFolder]]] = {
    "env": _from_env,
    "chain": _from_chain,
    "cwd": _from_cwd,
    "repository": _from_repository,
    "custom": _from_custom,
    "home": _from_home,
    "fixed": _from_fixed,
    "plugin-list": _from_plugin_list,
}


# One root -----------------------------------------------------------------------------------------


def _root(named: _RuleFolder, context: _RootContext, trust: Trust, homes: set[str]) -> Root:
    rule, profile = named.rule, context.profile
    real_path = _real_path(named, context.problems)
    denied = _trust_denial(named, real_path, context, homes) if context.settings.system.files else None
    trusted = denied is None and _is_trusted_root(named, context, trust, homes)
    if rule.provider:
        source = f"{rule.provider}:{'project' if rule.kind == 'project' else 'user'}"
    else:
        source = f"{rule.kind}:{named.label}" if named.label else rule.kind
    return Root(
        path=named.path,
        real_path=real_path,
        kind=rule.kind,
        scope=profile.scope_labels.get(rule.kind, rule.kind),
        source=source,
        links=profile.user_links if rule.base == "home" or named.path in homes else profile.other_links,
        trusted=trusted,
        untrusted_by="" if trusted else denied or _untrusted_by(context, trust),
        description_required=rule.description == "required",
        switched_off=named.off or _is_off(rule, context),
        switch=rule.switch,
        exists=files.kind_at(named.path) is not None,
        hidden=rule.hidden or profile.hidden,
        loose_files=rule.loose_files,
        prefix=named.prefix or (_plugin_prefix(named.path, profile) if profile.plugin_manifests else ""),
        label=named.label,
    )


def _is_off(rule: RootRule, context: _RootContext) -> bool:
    environment = context.environment
    if turned_off_by(rule, environment) or (rule.host_switch and not _is_any_set(rule.on_if_set, environment)):
        return True
    return not context.settings.source_enabled(rule.switch)


def _is_any_set(variables: Iterable[str], environment: Environment) -> bool:
    return any(environment.env.get(name, "").strip() for name in variables)


def turned_off_by(rule: RootRule, environment: Environment) -> str | None:
    """Return the variable of the environment that turns a root off; None if none does."""
    is_off = [name for name in rule.off_by if is_true_variable(environment.env.get(name, ""))]
    is_off += [name for name in rule.off_if_set if _is_any_set((name,), environment)]
    return is_off[0] if is_off else None


def _is_trusted_root(named: _RuleFolder, context: _RootContext, trust: Trust, homes: set[str]) -> bool:
    # The user's own root stays that where the home folder is a repository, too.
    if named.rule.kind != "project" or named.path in homes:
        return True
    if context.profile.trust_file is not None:
        return context.host_trusts
    if trust == "all":
        return True
    return trust == "ask" and is_trusted(named.path, context.settings.trusted_folders)


def _trust_denial(named: _RuleFolder, real_path: str | None, context: _RootContext, homes: set[str]) -> str | None:
    """Return the file and key of the system policy that let nobody trust a root.

    The roots in the home folder of the account are the user's own. A home folder that an option or a variable names is
    any folder, and so is what a link or a variable puts in the place of such a root.
    """
    real = real_path or files.real_path(named.path)
    home = context.environment.home
    if named.path in homes and home is not None and is_home_of_account(home) and real in homes:
        return None
    return trust_refusal(context.settings.system, real)


def _untrusted_by(context: _RootContext, trust: Trust) -> str:
    """Return who leaves a folder untrusted: the file where the user would trust it, or a mode that trusts none."""
    if context.profile.trust_file is not None:
        return f"{context.environment.home}/{context.profile.trust_file}: trust"
    if trust == "user":
        return "rule: trust = user"
    return context.settings.said_by("trust.folders", lambda file: file.owner == "user")


def _read_json(path: str) -> Any:
    """Return the value of a small JSON file of a host; None if it cannot be read."""
    import json

    try:
        return json.loads(files.read_file(path, limit=CONFIG_BYTES, links="follow") or b"null")
    except (OSError, ValueError, RecursionError):
        return None


def _plugin_prefix(root: str, profile: Profile) -> str:
    """Return the name of the plugin whose manifest lies at or above a root, with a colon; empty if there is none."""
    folder = root
    while True:
        for manifest in profile.plugin_manifests:
            record = _read_json(f"{folder}/{manifest}")
            if isinstance(record, dict) and isinstance(name := record.get("name"), str) and name:
                return f"{name}:"
        if (parent := os.path.dirname(folder)) == folder:
            return ""
        folder = parent


def _real_path(named: _RuleFolder, problems: list[Diagnostic]) -> str | None:
    """Return the real path of a root; None if it does not exist or is not a folder."""
    try:
        real = files.resolve_link(named.path)
    except FileNotFoundError:
        if named.rule.base in ("env", "custom"):
            problems.append(Diagnostic(named.path, "root-missing", "this folder does not exist"))
        elif files.kind_at(named.path) == "link":
            problems.append(Diagnostic(named.path, "link-broken", "the root is a broken link"))
        return None
    except OSError as error:
        problems.append(Diagnostic(named.path, "root-unreadable", (error.strerror or str(error)).lower()))
        return None
    if files.kind_at(real) != "folder":
        problems.append(Diagnostic(named.path, "root-not-a-directory", "not a folder"))
        return None
    return real


def _bounded(roots: list[Root], context: _RootContext) -> Iterator[Root]:
    """Yield the roots; a project root that leads out of the repository and of the user's roots is not entered."""
    # Other roots of the project do not count: two links out of the repository would allow each other.
    allowed = [root.real_path for root in roots if root.real_path and root.kind != "project"]
    allowed.append(files.real_path(context.repository))
    for root in roots:
        real = root.real_path
        if root.links == "follow" or context.profile.linked_root == "follow":
            yield root
        elif root.kind == "project" and real and not any(files.is_inside(real, folder) for folder in allowed):
            message = f"the root is a link to {real}, outside the repository and every other root"
            message += how_to_allow(real, context.profile)
            context.problems.append(Diagnostic(root.path, "root-link", message))
            yield root._replace(real_path=None)
        else:
            yield root
