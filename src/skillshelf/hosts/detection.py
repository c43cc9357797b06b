"""Decide which hosts are the user's own: those that the configuration names, or else those that are installed.

A host is installed if one of its programs is on PATH, or if something that only it makes lies in the home folder.
"""

import os
from collections.abc import Mapping
from typing import Literal

from skillshelf.config.hosts import HOSTS
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings
from skillshelf.core import files
from skillshelf.core.environment import Environment, below_home
from skillshelf.core.records import NamedTuple

__all__ = ["ChosenBy", "DetectedHost", "chosen_by", "chosen_hosts", "host_states"]

ChosenBy = Literal["set", "detected", "all"]
"""The reason why hosts are chosen: the user's file names them, they are installed, or neither is so."""


class DetectedHost(NamedTuple):
    """One host: whether it is installed, the path that shows it, and whether it is one of the user's hosts."""

    host: str
    detected: bool
    by: str | None
    enabled: bool


def host_states(environment: Environment, settings: Settings) -> tuple[DetectedHost, ...]:
    """Return the state of every host, in the order of the table of hosts."""
    traces = _traces(environment)
    chosen = settings.hosts or traces.keys() or HOSTS.keys()
    return tuple(DetectedHost(host, host in traces, traces.get(host), host in chosen) for host in HOSTS)


def chosen_hosts(environment: Environment, settings: Settings, *, all_hosts: bool = False) -> tuple[str, ...]:
    """Return the hosts to speak of: those that are set, else those that are installed, else all."""
    if all_hosts:
        return tuple(HOSTS)
    return tuple(state.host for state in host_states(environment, settings) if state.enabled)


def chosen_by(environment: Environment, settings: Settings) -> ChosenBy:
    """Return why `chosen_hosts` returns these hosts."""
    return "set" if settings.hosts else "detected" if _traces(environment) else "all"


def _traces(environment: Environment) -> Mapping[str, str]:
    """Return the path that shows each installed host."""
    found = ((host, _trace(profile, environment)) for host, profile in HOSTS.items())
    return {host: path for host, path in found if path is not None}


def _trace(profile: Profile, environment: Environment) -> str | None:
    """Return the program of a host, else the first of its own paths in the home folder, or None."""
    # An empty or relative folder on PATH means another one in every working directory.
    folders = [folder for folder in environment.env.get("PATH", "").split(":") if os.path.isabs(folder)]
    for program in profile.programs:
        for folder in folders:
            if files.is_program(path := os.path.join(folder, program)):
                return path
    paths = (below_home(path, profile.moved, environment) for path in profile.home_paths)
    return next((path for path in paths if files.kind_at(path) is not None), None)
