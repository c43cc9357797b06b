"""Open a source by its text for a program that reads skills from it without installing them."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from skillshelf.core.environment import make_environment
from skillshelf.install.reference import SourceContext, parse_reference
from skillshelf.install.sources import open_source

if TYPE_CHECKING:
    from skillshelf.catalog.source import InstallableSource

__all__ = ["live_source"]


def live_source(
    text: str,
    *,
    cwd: str | os.PathLike[str] | None = None,
    home: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    config: str | Mapping[str, Any] | None = None,
    allow_http: bool = False,
) -> "InstallableSource":
    """Return the source that a text means, to be passed to `open_shelf(sources=[...])`; nothing is fetched yet.

    The text is written as for the command `add`: `./team.zip`, `https://site`, `mcp:LABEL`. The folders and the
    environment are those of `open_shelf`. Plain HTTP is allowed to this machine alone, and only with `allow_http`.
    Raise ConfigurationError for a text outside the grammar, SourceRefused for one that must not be used.
    """
    here, home = (None if folder is None else os.fspath(folder) for folder in (cwd, home))
    environment = make_environment(here, home, env, config=config)
    context = SourceContext(environment, allow_http=allow_http)
    return open_source(parse_reference(text, environment), context)
