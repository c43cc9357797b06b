"""What was found to the skills whose text the profile accepts; everything else goes to where it is explained."""

from collections.abc import Iterable, Sequence

from skillshelf.catalog.discovery import Found, Repeat
from skillshelf.catalog.standing import Ground, hidden_by, report
from skillshelf.core.values import Candidate, CatalogSkill, Diagnostic, Entry, Filtered, Kept

__all__ = ["accept"]


def accept(found: Iterable[Found], ground: Ground) -> list[CatalogSkill]:
    """The skills among what was found, in the same order."""
    accepted: list[CatalogSkill] = []
    by_file: dict[str, CatalogSkill] = {}
    refused: dict[str, Candidate] = {}
    parts, notes = ground.parts, ground.notes
    for item in found:
        if isinstance(item, Kept):
            kept = _remembered(item, ground)
            accepted.append(kept)
            by_file[kept.real_path] = kept
            if notes:
                notes[item.root][item.path] = item.entry
        elif isinstance(item, Candidate):
            # Imported here: the parser and its rules take longer to load than a thousand entries of the cache.
            from skillshelf.catalog.judging import judge

            told = len(parts.warnings)
            skill = judge(item, ground)
            if skill is None:
                refused[item.real_path] = item
            else:
                accepted.append(skill)
                by_file[item.real_path] = skill
                if notes:
                    notes[item.root][item.path] = _entry(skill, item, parts.warnings[told:])
        elif isinstance(item, Repeat):
            from skillshelf.catalog.judging import judge_again

            again = judge_again(item, by_file, refused, ground)
            if again is not None:
                accepted.append(again)
                by_file.setdefault(item.real_path, again)
        elif isinstance(item, Filtered):
            parts.filtered.append(item)
        else:
            report(parts, item, ground.profile)
    return accepted


def _entry(skill: CatalogSkill, candidate: Candidate, warnings: Sequence[Diagnostic]) -> Entry:
    return Entry(
        stamp=candidate.stamp,
        real_path=skill.real_path,
        name=skill.name,
        description=skill.description,
        fields=skill.frontmatter,
        warnings=tuple((warning.rule, warning.message, warning.line) for warning in warnings),
    )


def _remembered(kept: Kept, ground: Ground) -> CatalogSkill:
    """The skill that an unchanged file is: what the rules said stands, what the settings say is asked anew."""
    entry = kept.entry
    root = ground.roots[kept.root]
    for rule, message, line in entry.warnings:
        ground.parts.warnings.append(Diagnostic(kept.path, rule, message, line))
    _, _, size, mtime_ns, _ = entry.stamp
    hidden = hidden_by(entry.name, kept.path, entry.real_path, entry.fields, root, ground.settings, ground.profile)
    return CatalogSkill(
        name=entry.name,
        description=entry.description,
        path=kept.path,
        real_path=entry.real_path,
        real_dir=kept.real_dir,
        scope=root.scope,
        source=root.source,
        root=kept.root,
        mtime_ns=mtime_ns,
        size=size,
        enabled=hidden != "disabled",
        trusted=root.trusted,
        hidden=hidden,
        frontmatter=entry.fields,
    )
