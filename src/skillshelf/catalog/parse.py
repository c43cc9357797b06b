"""Candidates to skills: read, checked and weighed by the profile; what is none gets an error that says why."""

import os
from collections.abc import Mapping, Sequence

from skillshelf.catalog.build_context import BuildContext, Diagnostics, Documents, hidden_by, is_disabled
from skillshelf.catalog.discovery import Repeat
from skillshelf.catalog.document import PLAIN_FORM, Document, body, form_of, parse, reads_alike
from skillshelf.catalog.rules import check, description_of, name_of, placed
from skillshelf.config.profile import Profile
from skillshelf.core.values import Candidate, CatalogSkill, Diagnostic, Finding, Root, Shadowed

__all__ = ["parse_candidate", "parse_repeat", "read_document"]


def read_document(candidate: Candidate, profile: Profile, documents: Documents) -> Document:
    """The candidate as this profile takes it apart, parsed once for all profiles that do it alike."""
    key = (candidate.real_path, form_of(profile))
    document: Document | None = documents.get(key)
    if document is None:
        plain = documents.get((candidate.real_path, PLAIN_FORM))
        if plain is not None and reads_alike(candidate.head, plain, key[1]):
            document = plain
        else:
            document = parse(candidate.head, whole=len(candidate.head) >= candidate.size, form=key[1])
        documents[key] = document
    return document


def parse_candidate(candidate: Candidate, ground: BuildContext) -> CatalogSkill | None:
    """The skill a candidate is, or None with an error that says why it is none."""
    _, profile, settings, parts, _, documents = ground
    root = ground.roots[candidate.root]
    directory = os.path.basename(os.path.dirname(candidate.path))
    try:
        document = read_document(candidate, profile, documents)
        findings = check(document, directory, profile)
    except Exception as error:
        # One file must never cost the listing, not even by a mistake of ours.
        parts.errors.append(Diagnostic(candidate.path, "internal", f"{type(error).__name__}: {error}"))
        return None
    if findings and not _weigh(findings, document, candidate.path, root, profile, parts):
        return None
    fields = document.fields
    name = root.prefix + name_of(fields, directory, profile)
    description = description_of(fields)
    if not description and profile.description_from == "or-body":
        description = _first_line(candidate.head)
    hidden = hidden_by(name, candidate.path, candidate.real_path, fields, root, settings, profile)
    return CatalogSkill(
        name=name,
        description=description,
        path=candidate.path,
        real_path=candidate.real_path,
        real_dir=candidate.real_dir,
        scope=root.scope,
        source=root.source,
        root=candidate.root,
        mtime_ns=candidate.stamp[3],
        size=candidate.size,
        enabled=hidden != "disabled",
        trusted=root.trusted,
        hidden=hidden,
        frontmatter=fields,
    )


def parse_repeat(
    repeat: Repeat, by_file: Mapping[str, CatalogSkill], refused: Mapping[str, Candidate], ground: BuildContext
) -> CatalogSkill | None:
    """The same file by another way: its folder, and so the verdict on it, may be another one."""
    _, profile, settings, parts, _, _ = ground
    root = ground.roots[repeat.root]
    known = by_file.get(repeat.real_path)
    if known is None:
        candidate = refused[repeat.real_path]
        return parse_candidate(candidate._replace(root=repeat.root, path=repeat.path, real_dir=repeat.real_dir), ground)
    directory = os.path.basename(os.path.dirname(repeat.path))
    document = Document(dict(known.frontmatter), "", ())
    # What it is warned about was said where it was found first; and it is in the catalog, so this way is no loss.
    unsaid = parts._replace(errors=[], warnings=[])
    if not _weigh(check(document, directory, profile), document, repeat.path, root, profile, unsaid):
        parts.shadowed.append(Shadowed(known.name, repeat.path, known.path, same_file=True))
        return None
    return known._replace(
        name=root.prefix + name_of(known.frontmatter, directory, profile),
        path=repeat.path,
        real_dir=repeat.real_dir,
        scope=root.scope,
        source=root.source,
        root=repeat.root,
        enabled=not is_disabled(known.name, repeat.path, known.real_path, settings),
        trusted=root.trusted,
        hidden=hidden_by(known.name, repeat.path, known.real_path, known.frontmatter, root, settings, profile),
    )


def _weigh(
    findings: Sequence[Finding], document: Document, path: str, root: Root, profile: Profile, parts: Diagnostics
) -> bool:
    """Report the findings as the profile weighs them; False if one of them rejects the skill."""
    warnings = []
    for finding in findings:
        weight = profile.rules[finding.rule]
        if weight not in ("reject", "warn") or (
            finding.rule == "description-missing" and not root.description_required
        ):
            continue
        _, message, line, _ = finding if finding.line is not None else placed(finding, document)
        if weight == "reject":
            parts.errors.append(Diagnostic(path, finding.rule, message, line))
            return False
        warnings.append(Diagnostic(path, finding.rule, message, line))
    parts.warnings.extend(warnings)
    return True


def _first_line(head: bytes) -> str:
    """The first line of the body that says something, without the marks of a heading."""
    lines = body(head).decode("utf-8", "replace").splitlines()
    return next((text for line in lines if (text := line.strip().lstrip("#").strip())), "")
