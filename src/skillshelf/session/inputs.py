"""Keep the inputs of a session beside its journal, and give them back to replay without the disk of that day.

The folder `JOURNAL.d/sha256` holds contents by their digest: files that were read, and JSON documents. An event names
its document in `inputs`, so the chain of the journal covers it: `skill_catalog_updated` names `ShelfInputs`,
`tool_ended` and `tool_failed` name `CallInputs`. A kept folder is untrusted: every content is compared with its
digest, and every document with its type.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, get_args, get_origin

from skillshelf import errors
from skillshelf.catalog.build_context import required_first
from skillshelf.catalog.load import Listing, LoadedSkill, Resource, SkillFolder, digest_of, loaded_from
from skillshelf.catalog.lock_places import EXTRA
from skillshelf.catalog.prompt import catalog_text
from skillshelf.catalog.tree import SkillTree
from skillshelf.config.builtin_profiles import find_profile
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings, Trust
from skillshelf.config.system_policy import RECORDED, PolicyFile, SystemPolicy, policy_of
from skillshelf.core.disk_writes import kept_content
from skillshelf.core.environment import Environment
from skillshelf.core.limits import KEPT_DOCUMENT_BYTES, RESOURCE_BYTES, SKILL_FILE_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.validation import members_of, validate
from skillshelf.core.values import Catalog, CatalogSkill, Diagnostic, RejectedFile
from skillshelf.errors import ConfigurationError, FileReadError, SkillError
from skillshelf.session.effects import Effects, ShelfProtocol

if TYPE_CHECKING:
    from skillshelf.sandbox.run import Script
    from skillshelf.search.query import SearchReport
    from skillshelf.search.usage_prior import QueryPrior

__all__ = [
    "KEPT_VERSION",
    "CallInputs",
    "KeptContents",
    "KeptEffects",
    "KeptInputError",
    "KeptShelf",
    "ShelfInputs",
    "as_document",
    "recorded_policy",
    "recorded_prior",
    "shelf_inputs",
    "taped",
]

Keep = Callable[[bytes], object]
"""Store a content under its digest."""

KEPT_VERSION = 2
"""The version of the documents in a kept folder. A folder of version 1 holds contents only, and no document."""


class KeptInputError(SkillError):
    """A kept content that is missing, changed, or not what the call asks for."""


class ShelfInputs(NamedTuple):
    """The catalog of a session, and the part of its configuration that decides what a model gets.

    `profile` is missing for one that is part of this program, `env` has only variables that the profile reads,
    `max_chars` is the budget with the variable of the profile, and `rejected` has the names that rejected files give
    themselves, by path.
    """

    version: int
    home: str | None
    project_root: str
    env: Mapping[str, str]
    profile: Profile | None
    settings: Settings
    max_chars: int
    catalog: Catalog
    rejected: Mapping[str, str] = {}

    def known_catalog(self) -> Catalog:
        """Return the catalog with the names of rejected files."""
        return self.catalog._replace(errors=tuple(map(self._error, self.catalog.errors)))

    def _error(self, error: Diagnostic) -> Diagnostic:
        if error.path not in self.rejected:
            return error
        known = RejectedFile(*error)
        known.name = self.rejected[error.path]
        return known


class CallInputs(NamedTuple):
    """The results of the effects of one call, in their order."""

    version: int
    effects: tuple[Mapping[str, Any], ...]


class _KeptResult(NamedTuple):
    """A result of a search, with the path of its skill."""

    score: float | int
    reason: str
    skill: str
    why: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()


class _KeptReport(NamedTuple):
    """A report of a search, as it is kept."""

    query: str
    count: int  # type: ignore[assignment]  # as in the report itself
    truncated: bool
    results: tuple[_KeptResult, ...]
    notes: tuple[str, ...]
    terms: tuple[str, ...]
    total: int | None
    confidence: float | int = 0
    weak: bool = False
    prior: str | None = None
    """The digest of what earlier use added, which is a content of its own."""


# Documents ----------------------------------------------------------------------------------------


def _encoded(value: Any) -> Any:
    """Return a value of named tuples, mappings and sequences as a JSON value."""
    if hasattr(value, "_asdict"):
        return {key: _encoded(item) for key, item in value._asdict().items()}
    if isinstance(value, Mapping):
        return {key: _encoded(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return [_encoded(item) for item in sorted(value)]
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_encoded(item) for item in value]
    return value


_LISTS = (tuple, Sequence)
"""The types that a JSON array may have been."""


def _decoded(value: Any, expected: Any) -> Any:
    """Return a JSON value that has this type as named tuples and tuples."""
    if value is None:
        return None
    if hasattr(expected, "_field_defaults"):
        members, _ = members_of(expected)
        return expected(**{key: _decoded(item, members[key]) for key, item in value.items()})
    arguments = get_args(expected)
    if isinstance(value, list) and get_origin(expected) in _LISTS:
        return tuple(_decoded(item, arguments[0]) for item in value)
    if isinstance(value, dict) and get_origin(expected) in (Mapping, dict):
        return {key: _decoded(item, arguments[1]) for key, item in value.items()}
    records = [one for one in arguments if hasattr(one, "_field_defaults") or get_origin(one) in _LISTS]
    return _decoded(value, records[0]) if records and isinstance(value, dict | list) else value


def as_document(value: Any) -> bytes:
    """Return a value as JSON, with the same bytes for equal values; lone surrogates of file names stay."""
    return json.dumps(_encoded(value), sort_keys=True, separators=(",", ":")).encode()


class KeptContents(NamedTuple):
    """The contents in a kept folder, each compared with its digest when it is read."""

    folder: str

    def data(self, digest: str, *, limit: int) -> bytes:
        """Return a content, or raise KeptInputError."""
        data = kept_content(self.folder, digest, limit=limit)
        if data is None:
            raise KeptInputError(f"the kept content {digest[:80]} is missing or was changed")
        return data

    def document(self, digest: str | None, expected: Any) -> Any:
        """Return a document as a value of its type, or raise KeptInputError."""
        if digest is None:
            raise KeptInputError("the journal names no kept inputs here")
        data = self.data(digest, limit=KEPT_DOCUMENT_BYTES)
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            raise KeptInputError(f"the kept inputs {digest} are not JSON") from None
        version = value.get("version") if isinstance(value, dict) else None
        if version != KEPT_VERSION:
            raise KeptInputError(f"the kept inputs have version {str(version)[:20]}; this program reads {KEPT_VERSION}")
        if wrong := validate(value, expected):
            raise KeptInputError(f"the kept inputs {digest} are not valid: {wrong}")
        return _decoded(value, expected)


# Keeping ------------------------------------------------------------------------------------------

_SETTINGS = ("enabled", "switched_off_by", "commands", "default_limit", "max_limit", "deny", "files")
_BUDGETS = ("max_entries", "max_bytes", "max_tokens", "max_chars")


def shelf_inputs(shelf: ShelfProtocol, catalog: Catalog) -> ShelfInputs:
    """Return the inputs of a session from its shelf and the catalog that it uses."""
    profile, settings, environment = shelf.profile, shelf.settings, shelf.environment
    variables = (*profile.env, profile.markers_env, profile.boundary_env, profile.budget_env, profile.refresh_env)
    return ShelfInputs(
        version=KEPT_VERSION,
        home=environment.home,
        project_root=shelf.project_root,
        env={name: environment.env[name] for name in variables if name and name in environment.env},
        profile=None if _is_built_in(profile) else profile,
        settings=Settings(**{name: getattr(settings, name) for name in (*_SETTINGS, *_BUDGETS)}),
        max_chars=shelf.settings_in_force.max_chars,
        catalog=catalog,
        rejected={e.path: e.name for e in catalog.errors if isinstance(e, RejectedFile) and e.name is not None},
    )


def _is_built_in(profile: Profile) -> bool:
    try:
        return find_profile(profile.name) == profile
    except ConfigurationError:
        return False


_LATER = ("require_not_changed",)
"""The effects without a result that sessions of earlier versions did not have."""

_FROM_JOURNAL = ("run", "artifact", "approvals", "remember", "learn_load")
"""The effects whose results are in the events, or that have none."""


def taped(effects: Effects, keep: Keep, tape: Callable[[dict[str, Any]], None]) -> Effects:
    """Return the effects with every result passed to `tape`, and every content to `keep`."""

    def watch(name: str, effect: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            entry: dict[str, Any] = {"effect": name, "of": _subject(given, named)}
            try:
                result = effect(*given, **named)
            except SkillError as error:
                tape({**entry, "error": _error_to_dict(error)})
                raise
            tape({**entry, "result": _result_to_json(result, keep)})
            return result

        return call

    fields = effects._asdict().items()
    return Effects(**{name: effect if name in _FROM_JOURNAL else watch(name, effect) for name, effect in fields})


def _subject(given: Sequence[Any], named: Mapping[str, Any]) -> list[str]:
    """Return what an effect is about: the texts among its arguments, and the paths of skills."""
    values = [*given, *(named[key] for key in sorted(named))]
    texts = [value.path if isinstance(value, CatalogSkill) else value for value in values]
    return [text for text in texts if isinstance(text, str)]


def _result_to_json(result: Any, keep: Keep) -> Any:
    if isinstance(result, LoadedSkill):
        keep(result.data)
        folder = SkillFolder(
            Listing(result.files, result.files_total, result.files_truncated),
            result.has_scripts,
            result.has_references,
            result.has_assets,
        )
        kept = {"digest": result.digest, "mtime_ns": result.mtime_ns, "folder": _encoded(folder)}
        if result.tree is None:
            return kept
        return {
            **kept,
            "tree": result.tree,
            "warnings": [one._asdict() for one in result.warnings if one.rule == EXTRA],
        }
    if isinstance(result, Resource):
        keep(result.content.encode() if result.encoding == "utf-8" else b64decode(result.content))
        return {key: value for key, value in result._asdict().items() if key != "content"}
    if hasattr(result, "results"):
        found = [{**one._asdict(), "skill": one.skill.path} for one in result.results]
        if result.prior is not None:
            keep(result.prior.document())
        prior = result.prior.digest if result.prior is not None else None
        return _encoded({**result._asdict(), "results": found, "prior": prior})
    return _encoded(result)


def _error_to_dict(error: SkillError) -> dict[str, Any]:
    cause = error.underlying if isinstance(error, FileReadError) else None
    number = cause.errno if isinstance(cause, OSError) else None
    return {"kind": type(error).__name__, "text": str(error), "errno": number}


# Giving back --------------------------------------------------------------------------------------


class KeptShelf:
    """A shelf as it was kept, with the catalog of each `skill_catalog_updated` in its turn.

    `upcoming` returns the document that the next event names, or None if the catalog does not change there.
    """

    def __init__(
        self,
        kept: KeptContents,
        first: str,
        upcoming: Callable[[], str | None],
        *,
        cwd: str,
        profile: str,
        trust: Trust,
    ) -> None:
        self.attachments: dict[str, object] = {}
        self._kept = kept
        self._upcoming = upcoming
        inputs: ShelfInputs = kept.document(first, ShelfInputs)
        self.catalog = inputs.known_catalog()
        self.profile = inputs.profile or find_profile(profile)
        self.environment = Environment(cwd, inputs.home, inputs.env)
        self.settings = inputs.settings
        self.settings_in_force = inputs.settings._replace(max_chars=inputs.max_chars)
        self.project_root = inputs.project_root
        self.trust: Trust = trust

    def search(self, query: str, **options: Any) -> "SearchReport":
        """Raise: the answers of searches are inputs of their calls."""
        raise KeptInputError("a kept shelf has no search index")

    def load(self, name: str | None = None, *, path: str | None = None) -> LoadedSkill:
        """Raise: loaded skills are inputs of their calls."""
        raise KeptInputError("a kept shelf loads no skills")

    def prompt(self) -> str:
        """Return the catalog text for a model."""
        skills = required_first(self.catalog.skills, self.settings.system)[0]
        return catalog_text(skills, self.profile, self.settings_in_force).text

    def renew_policy(self) -> bool:
        """Return False: the system policy is the recorded one."""
        return False

    def refresh(self, *, sources_after: float = 0.0) -> bool:
        """Take the catalog that was recorded at this place, if there is one."""
        digest = self._upcoming()
        if digest is None:
            return False
        before = self.catalog
        self.catalog = self._kept.document(digest, ShelfInputs).known_catalog()
        return before != self.catalog


class KeptEffects:
    """Effects that give back the results that were kept; each result is given once.

    `inputs_now` returns the call that runs and the document with its inputs.
    """

    def __init__(
        self,
        kept: KeptContents,
        inputs_now: Callable[[], tuple[str, str | None]],
        catalog: Callable[[], Catalog],
    ) -> None:
        self._kept = kept
        self._inputs_now = inputs_now
        self._catalog = catalog
        self._call = ""
        self._left: list[Mapping[str, Any]] = []

    def over(self, effects: Effects) -> Effects:
        """Return these effects with every result of a kept call in the place of theirs."""
        return Effects(
            **{
                name: effect if name in _FROM_JOURNAL else self._give(name)
                for name, effect in effects._asdict().items()
            }
        )

    def _give(self, name: str) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            try:
                entry = self._entry(name, _subject(given, named))
            except KeptInputError:
                if name in _LATER:
                    return None
                raise
            try:
                if "error" in entry:
                    raise _error_from(entry["error"])
                return _RESULTS[name](self, entry["result"], *given)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise KeptInputError(f"the kept result of {name} is not valid: {error}") from None

        return call

    def _entry(self, name: str, subject: list[str]) -> Mapping[str, Any]:
        call, digest = self._inputs_now()
        if call != self._call:
            self._call = call
            self._left = list(self._kept.document(digest, CallInputs).effects)
        for number, entry in enumerate(self._left):
            if entry.get("effect") == name and entry.get("of") == subject:
                return self._left.pop(number)
        about = f" of {', '.join(subject)[:200]}" if subject else ""
        raise KeptInputError(f"the kept inputs of this call have no {name}{about}")

    def load(self, value: Mapping[str, Any], skill: CatalogSkill, profile: Profile) -> LoadedSkill:
        """Return a skill with the file and the list of files that were kept."""
        folder = _checked(value["folder"], SkillFolder)
        data = self._kept.data(value["digest"], limit=SKILL_FILE_BYTES)
        loaded = loaded_from(skill, data, int(value["mtime_ns"]), profile, folder=folder)
        extra = _checked(value.get("warnings", []), tuple[Diagnostic, ...])
        return loaded._replace(tree=_checked(value.get("tree"), str | None), warnings=(*loaded.warnings, *extra))

    def read(self, value: Mapping[str, Any], *given: Any) -> Resource:
        """Return a file that was kept."""
        data = self._kept.data(value["digest"], limit=max(RESOURCE_BYTES, int(value["size"])))
        content = data.decode() if value["encoding"] == "utf-8" else b64encode(data).decode()
        return Resource(**{**value, "content": content, "size": len(data), "digest": digest_of(data)})

    def search(self, value: Mapping[str, Any], *given: Any) -> "SearchReport":
        """Return the answer of a search, with the skills of the catalog."""
        from skillshelf.search.query import SearchReport, SearchResult

        kept: _KeptReport = _checked(value, _KeptReport)
        skills = {skill.path: skill for skill in self._catalog().skills}
        results = tuple(SearchResult(**{**one._asdict(), "skill": skills[one.skill]}) for one in kept.results)
        prior = recorded_prior(self._kept.folder, kept.prior) if kept.prior is not None else None
        return SearchReport(**{**kept._asdict(), "results": results, "terms": frozenset(kept.terms), "prior": prior})

    def find_script(self, value: Mapping[str, Any], *given: Any) -> "Script":
        """Return a script as it was found."""
        from skillshelf.sandbox.run import Script

        return cast("Script", _checked(value, Script))


def _checked(value: Any, expected: Any) -> Any:
    """Return a JSON value as one of its type; raise ValueError if it is none."""
    if wrong := validate(value, expected):
        raise ValueError(str(wrong))
    return _decoded(value, expected)


_RESULTS: Mapping[str, Callable[..., Any]] = {
    "load": KeptEffects.load,
    "read": KeptEffects.read,
    "search": KeptEffects.search,
    "find_script": KeptEffects.find_script,
    "tree": lambda effects, value, *given: _checked(value, SkillTree),
    "real_path": lambda effects, value, *given: _checked(value, str),
    "require_not_changed": lambda effects, value, *given: None,
    "untrusted_roots": lambda effects, value, *given: _checked(value, list[str]),
}
"""How the result of each effect is made from what was kept."""


def recorded_prior(folder: str, digest: str) -> "QueryPrior | None":
    """Return what earlier use added to a recorded search, from the folder by its journal; None if it is not there."""
    from skillshelf.search.usage_prior import QueryPrior

    data = kept_content(folder, digest, limit=KEPT_DOCUMENT_BYTES)
    try:
        return QueryPrior.parse(data) if data is not None else None
    except ValueError:
        return None


def recorded_policy(record: Sequence[Mapping[str, Any]]) -> SystemPolicy:
    """Return the system policy of a recorded session; raise ValueError if it is none."""
    return policy_of([_checked(one, PolicyFile) for one in record], RECORDED)


def _error_from(value: Mapping[str, Any]) -> SkillError:
    """Return an error of the kind that was kept, with its text."""
    kind = getattr(errors, str(value["kind"]), None)
    if not (isinstance(kind, type) and issubclass(kind, SkillError)):
        kind = SkillError
    text, number = str(value["text"]), value["errno"]
    # A class of its own, since the members from which an error makes its text were not kept.
    kept: type[SkillError] = type(kind.__name__, (kind,), {"__str__": lambda self: text})
    error = kept.__new__(kept, text)
    if isinstance(error, FileReadError):
        error.underlying = OSError(number, text) if isinstance(number, int) else OSError(text)
    return error
