"""Find the roots of a whole machine: those of hosts, plugins and the configuration, and the repository to walk."""

from skillshelf.catalog.search_roots import resolve_roots
from skillshelf.config.builtin_profiles import DEFAULT_PROFILE, SYSTEMS, find_profile
from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import RootRule
from skillshelf.config.settings import Settings
from skillshelf.core import files
from skillshelf.core.environment import Environment, below_home, find_repository
from skillshelf.core.values import Diagnostic, Root
from skillshelf.hosts.near_misses import misspelt_roots
from skillshelf.hosts.survey import MachineRoots

__all__ = ["machine_roots", "plugin_lists"]


def machine_roots(environment: Environment, settings: Settings) -> tuple[MachineRoots, tuple[Diagnostic, ...]]:
    """Return where skills may be besides the roots of hosts, and the problems of finding that out."""
    standard = find_profile(DEFAULT_PROFILE)
    own = resolve_roots(standard, environment, settings, trust="all")
    plugins = resolve_roots(standard._replace(roots=_plugin_rules()), environment, settings, trust="all")
    plugin_roots = [root._replace(kind="user", source="plugin") for root in plugins.roots]
    misspelt = [
        Root(miss.path, files.real_path(miss.path), "user", "user", "misspelt", "follow", trusted=True)
        for miss in (misspelt_roots(environment.home) if environment.home else ())
        if miss.rename and files.kind_at(files.real_path(miss.path)) == "folder"
    ]
    repository = find_repository(environment.cwd, standard.markers)
    top = _walked(environment, repository) if repository else None
    roots = (*plugin_roots, *own.roots, *misspelt)
    return MachineRoots(roots, top, repository, files.real_path(environment.cwd)), (*own.problems, *plugins.problems)


def _plugin_rules() -> tuple[RootRule, ...]:
    profiles = (*HOSTS.values(), *SYSTEMS.values())
    return tuple(dict.fromkeys(rule for profile in profiles for rule in profile.roots if rule.plugin_list))


def plugin_lists(environment: Environment) -> list[str]:
    """Return the files that say where plugins are, also where a variable moves them."""
    if environment.home is None:
        return []
    found: dict[str, None] = {}
    for profile in (find_profile(DEFAULT_PROFILE), *HOSTS.values(), *SYSTEMS.values()):
        for rule in _plugin_rules():
            for path in (rule.plugin_list, rule.plugins.markets if rule.plugins else None):
                if path is not None:
                    found[below_home(path, profile.moved, environment)] = None
    return list(found)


def _walked(environment: Environment, repository: str) -> str | None:
    """Return the folder to walk: the repository, or the working directory if the home folder lies in the repository."""
    home = files.real_path(environment.home) if environment.home else None
    folders = (files.real_path(repository), files.real_path(environment.cwd))
    return next((folder for folder in folders if home is None or not files.is_inside(home, folder)), None)
