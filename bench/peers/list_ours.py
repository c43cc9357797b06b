"""skillshelf as a library, called as the peers are: a third argument `warm` lets it use its cache."""

import os
import sys

from clock import report

import skillshelf

WARM = sys.argv[3:] == ["warm"]


def listing(root: str) -> tuple[object, ...]:
    """The catalog of a home folder whose skills lie in `.agents/skills`."""
    home = os.path.dirname(os.path.dirname(root))
    return skillshelf.open_shelf(f"{home}/work", home=home, env={}, use_cache=WARM).catalog.skills


report(listing)
