"""What agent hosts have in common, and how a row about one is written; the rows are in `hosts`."""

from skillshelf.config.profile import Profile, RootRule, Telling
from skillshelf.config.rulebook import severities
from skillshelf.core.values import Severity

__all__ = ["DOCUMENTED", "HOST", "NOT_RUN", "NO_REPAIR", "roots_of", "rules_of", "told_where"]

_RUN = "2026-11-15"

_CARELESS = (
    *("name-missing", "name-type", "name-length", "name-pattern", "name-directory"),
    *("description-type", "description-length", "compatibility-type", "compatibility-length"),
    *("metadata-type", "allowed-tools-type", "bom", "crlf", "fence-blanks"),
)
"""What most hosts do not look at."""

NO_REPAIR = ("yaml-colon", "yaml-brackets", "yaml-tab")
_OPEN_FORM = (
    *("bom", "fence-blanks", "frontmatter-missing", "frontmatter-unclosed", "frontmatter-type"),
    *("yaml", *NO_REPAIR, "description-type", "name-type"),
)
"""Mistakes in the form of a file that nobody tried on a host which was not run."""


def rules_of(*, reject: tuple[str, ...] = (), off: tuple[str, ...] = ()) -> dict[str, Severity]:
    """The weight of every rule: by which a host leaves a skill out, and what it does not mind besides the usual."""
    weights: dict[str, Severity] = {**dict.fromkeys((*_CARELESS, *off), "off"), "root-file": "reject"}
    return severities({**weights, **dict.fromkeys(reject, "reject")})


def told_where(*, invalid: Telling, collision: Telling, budget: Telling | None = None) -> dict[str, Telling]:
    """Where a host says what: nobody says that it does not look somewhere, follow a link or trust a folder."""
    told: dict[str, Telling] = {"place": "nothing", "link": "nothing", "trust": "nothing"}
    told |= {"invalid": invalid, "collision": collision}
    return told if budget is None else {**told, "budget": budget}


def roots_of(*rules: tuple[str, str, str]) -> tuple[RootRule, ...]:
    """Root rules from `kind base path` triples."""
    return tuple(RootRule(kind, base, (path,)) for kind, base, path in rules)  # type: ignore[arg-type]


HOST = Profile(
    name="",
    summary="",
    evidence="",
    as_of=_RUN,
    grade="R",
    markers=(".git",),
    max_depth=1,
    root_file="report",
    skip_directories=(),
    user_links="follow",
    other_links="follow",
    fields=("name", "description"),
    hides_on=(),
    rules=rules_of(),
    order=("name", "root", "path"),
    catalog_budget=(),
    catalog_form="with-location",
    description_shown=None,
    tells=told_where(invalid="nothing", collision="nothing"),
)
"""What hosts have in common: one level, every link followed, hardly anything checked."""

NOT_RUN = HOST._replace(
    as_of="2026-08-22",
    grade="D",
    name_source="directory",
    rules=rules_of(off=("description-missing", "frontmatter-missing", "yaml")),
    unknown=(*_OPEN_FORM, "linked_file", "encoding"),
)
"""A host of which only source or documentation is known."""

DOCUMENTED = NOT_RUN._replace(
    tells={"place": "nothing", "link": "unknown", "trust": "unknown", "invalid": "unknown", "collision": "unknown"},
    unknown=(
        *(*NOT_RUN.unknown, "fields", "links", "below_skill", "root-file", "skip_directories"),
        *("name-missing", "name-pattern", "name-directory", "name-length"),
        *("description-missing", "description-length"),
    ),
)
"""A host whose documentation is all that is known."""
