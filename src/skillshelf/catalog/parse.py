"""Parse candidates into skills: read, check and apply severities; every rejected file gets an error that says why."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skillshelf.catalog.build_context import BuildContext, Diagnostics, hidden_state, make_skill
from skillshelf.catalog.discovery import Repeat
from skillshelf.catalog.document import ParsedFrontmatter, body, parse, parse_options
from skillshelf.catalog.rules import check, description_of, is_kept_empty, name_of, placed
from skillshelf.config.profile import DescriptionSource, Profile
from skillshelf.core.values import Candidate, CatalogSkill, Diagnostic, Finding, RejectedFile, Root, Shadowed

__all__ = ["parse_candidate", "parse_repeat"]


def parse_candidate(candidate: Candidate, context: BuildContext) -> CatalogSkill | None:
    """Return the skill of a candidate; None, with an error reported, if the profile rejects it."""
    _, profile, settings, diagnostics, _, facts = context
    root = context.roots[candidate.root]
    directory = os.path.basename(os.path.dirname(candidate.path))
    try:
        if facts is None:
            whole = len(candidate.head) >= candidate.size
            document = parse(candidate.head, whole=whole, options=parse_options(profile))
            findings: Sequence[Finding] = check(document, directory, profile)
        else:
            document = facts.document(candidate, profile)
            findings = facts.findings(candidate, directory, profile)
    except Exception as error:
        # One file must never prevent the listing, not even through an internal error.
        diagnostics.errors.append(Diagnostic(candidate.path, "internal", f"{type(error).__name__}: {error}"))
        return None
    if findings and not _apply_severities(findings, document, candidate.path, root, profile, diagnostics):
        rejected = diagnostics.errors[-1] = RejectedFile(*diagnostics.errors[-1])
        rejected.name = _written_name(document, candidate.head)
        return None
    fields = document.fields
    return make_skill(
        root.prefix + name_of(fields, directory, profile),
        _described(fields, candidate.head, profile),
        candidate.path,
        real_path=candidate.real_path,
        real_dir=candidate.real_dir,
        root=root,
        root_index=candidate.root,
        stamp=candidate.stamp,
        fields=fields,
        settings=settings,
        profile=profile,
    )


def _described(fields: Mapping[str, Any], head: bytes, profile: Profile) -> str:
    """Return the description of a skill, with the other fields that a profile adds to it, or what stands in for it."""
    is_kept = is_kept_empty(fields.get("description"), profile)
    description = "" if is_kept and profile.empty_description == "of-other-types" else description_of(fields)
    if not description and not is_kept and profile.description_from in DESCRIPTIONS:
        # Only a line feed ends a line there.
        lines = [" ".join(line.split()) for line in body(head).decode("utf-8", "replace").split("\n")]
        description = DESCRIPTIONS[profile.description_from](lines)
    added = [text for field in profile.description_parts if (text := fields.get(field)) and isinstance(text, str)]
    return " - ".join([description, *(text.strip() for text in added)]) if added else description


_LINE_SHOWN = 100
"""Characters of a line that stands in for a description, as runs of two hosts showed."""


def _first_line(lines: Sequence[str]) -> str:
    """Return the first line that is not empty, without the marks of a heading; a long one is cut."""
    text = next((text for line in lines if (text := line.lstrip("#").strip())), "")
    return text if len(text) <= _LINE_SHOWN else f"{text[: _LINE_SHOWN - 3]}..."


def _first_text(lines: Sequence[str]) -> str:
    """Return the first three lines that are neither empty nor headings."""
    text = " ".join([line for line in lines if line and not line.startswith("#")][:3])
    return text[: Profile._field_defaults["description_max"]]


DESCRIPTIONS: Mapping[DescriptionSource, Callable[[Sequence[str]], str]] = {
    "or-body": _first_line,
    "or-text": _first_text,
}
"""Return what stands in for a missing description, from the lines of the text."""


def _written_name(document: ParsedFrontmatter, head: bytes) -> str | None:
    """Return the name that a rejected file gives itself, even if its frontmatter cannot be parsed."""
    name = document.fields.get("name")
    if name is None:
        line = re.search(rb"^name:[ \t]*(\S[^\r\n]*)", head, re.MULTILINE)
        name = line[1].decode("utf-8", "replace").strip().strip("\"'") if line else None
    return name if isinstance(name, str) else None


def parse_repeat(
    repeat: Repeat, by_file: Mapping[str, CatalogSkill], rejected: Mapping[str, Candidate], context: BuildContext
) -> CatalogSkill | None:
    """Return the skill of a file reached by a second path: its folder, and so what the rules say, may differ."""
    _, profile, settings, diagnostics, _, _ = context
    root = context.roots[repeat.root]
    known = by_file.get(repeat.real_path)
    if known is None:
        candidate = rejected[repeat.real_path]
        moved = candidate._replace(root=repeat.root, path=repeat.path, real_dir=repeat.real_dir)
        return parse_candidate(moved, context)
    directory = os.path.basename(os.path.dirname(repeat.path))
    document = ParsedFrontmatter(dict(known.frontmatter), "", ())
    # Its warnings were reported for the first path; and the skill is in the catalog, so nothing is lost here.
    unreported = diagnostics._replace(errors=[], warnings=[])
    if not _apply_severities(check(document, directory, profile), document, repeat.path, root, profile, unreported):
        diagnostics.shadowed.append(Shadowed(known.name, repeat.path, known.path, same_file=True))
        return None
    name = root.prefix + name_of(known.frontmatter, directory, profile)
    hidden, by = hidden_state(
        name, repeat.path, known.real_path, repeat.real_dir, known.frontmatter, root, settings, profile
    )
    return known._replace(
        name=name,
        path=repeat.path,
        real_dir=repeat.real_dir,
        scope=root.scope,
        source=root.source,
        root=repeat.root,
        enabled=hidden != "disabled",
        trusted=root.trusted,
        hidden=hidden,
        hidden_by=by,
    )


def _apply_severities(
    findings: Sequence[Finding],
    document: ParsedFrontmatter,
    path: str,
    root: Root,
    profile: Profile,
    diagnostics: Diagnostics,
) -> bool:
    """Report findings by their severity in the profile; return False if one of them rejects the skill."""
    warnings = []
    for finding in findings:
        severity = profile.rules[finding.rule]
        if severity not in ("reject", "warn") or (
            finding.rule == "description-missing" and not root.description_required
        ):
            continue
        _, message, line, _ = finding if finding.line is not None else placed(finding, document)
        if severity == "reject":
            diagnostics.errors.append(Diagnostic(path, finding.rule, message, line))
            return False
        warnings.append(Diagnostic(path, finding.rule, message, line))
    diagnostics.warnings.extend(warnings)
    return True
