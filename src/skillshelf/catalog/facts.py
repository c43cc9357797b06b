"""Keep what is known of each SKILL.md, so that many profiles can judge one scan: parsed documents, and findings."""

from skillshelf.catalog.document import (
    DEFAULT_OPTIONS,
    ParsedFrontmatter,
    ParseOptions,
    parse,
    parse_again,
    parse_options,
)
from skillshelf.catalog.prompt import TextSizes
from skillshelf.catalog.rules import check
from skillshelf.config.profile import Profile
from skillshelf.core.values import Candidate, Finding

__all__ = ["Facts"]


class Facts:
    """The documents of files under each way of parsing, and the findings of all rules under each profile.

    `sizes` are those of their names and descriptions in catalogs; `top` is the folder that they are measured from.
    """

    def __init__(self, top: str | None = None) -> None:
        self._documents: dict[tuple[str, ParseOptions], ParsedFrontmatter] = {}
        self._findings: dict[tuple[str, str, str], tuple[Finding, ...]] = {}
        self._options: dict[str, ParseOptions] = {}
        self.sizes = TextSizes(top)

    def plain(self, candidate: Candidate) -> ParsedFrontmatter:
        """Return a file as it is parsed without the peculiarities of any profile."""
        return self._parsed(candidate, DEFAULT_OPTIONS)

    def document(self, candidate: Candidate, profile: Profile) -> ParsedFrontmatter:
        """Return a file as this profile parses it; profiles that parse alike share one document."""
        options = self._options.get(profile.name)
        if options is None:
            options = self._options[profile.name] = parse_options(profile)
        return self._parsed(candidate, options)

    def parsed_before(self, real_path: str, options: ParseOptions) -> ParsedFrontmatter | None:
        """Return a document that is known already."""
        return self._documents.get((real_path, options))

    def findings(self, candidate: Candidate, directory: str, profile: Profile) -> tuple[Finding, ...]:
        """Return what all rules say about a file in a folder of that name; the profile decides what it means."""
        if not profile.unknown:
            # Nothing asks again: kept findings would only take room.
            return tuple(check(self.document(candidate, profile), directory, profile))
        key = (candidate.real_path, directory, profile.name)
        found = self._findings.get(key)
        if found is None:
            found = self._findings[key] = tuple(check(self.document(candidate, profile), directory, profile))
        return found

    def _parsed(self, candidate: Candidate, options: ParseOptions) -> ParsedFrontmatter:
        key = (candidate.real_path, options)
        document = self._documents.get(key)
        if document is None:
            head, whole = candidate.head, len(candidate.head) >= candidate.size
            plain = self._documents.get((candidate.real_path, DEFAULT_OPTIONS))
            if plain is not None:
                document = parse_again(plain, head, whole=whole, options=options)
            if document is None:
                document = parse(head, whole=whole, options=options)
            self._documents[key] = document
        return document
