"""A file in a host's list to an answer: whether its model is told, and what is odd about it."""

import os
from collections.abc import Iterator, Sequence

from skillshelf.catalog.discovery import SKILL_FILE
from skillshelf.catalog.document import body_problem
from skillshelf.catalog.rules import check, description_of, placed
from skillshelf.config.profile import Profile
from skillshelf.core import files
from skillshelf.core.limits import SKILL_FILE_BYTES
from skillshelf.core.text import fold
from skillshelf.core.values import CatalogSkill, Root
from skillshelf.hosts.survey import base_of
from skillshelf.hosts.verdict import SAFEGUARD, Answer, Question, document_of, ignored_safeguard, own_root, shown_path

__all__ = ["NO_WINNER", "is_open", "listed", "no_winner"]

NO_WINNER = "no-winner"
"""The rule of an answer that is open because the host takes one of several, and nobody can say which."""


def listed(question: Question) -> Answer | None:
    """A file in the host's list: whether its model is told, and what is odd about it."""
    skill = question.view.by_file.get(question.sighting.real_path)
    if skill is None:
        return None
    at = skill.path
    off = question.view.switched.get(at)
    if off is not None and off.verdict == "disabled-by-config":
        return Answer(off.verdict, off.detail, at)
    if skill.hidden is not None:
        is_bare = skill.hidden == "no-description"
        why = "it has no description" if is_bare else "disable-model-invocation is set"
        rule = "description-missing" if is_bare else ""
        return Answer("hidden-from-model", f"{why}; people can still call it", at, rule)
    if off is not None:
        return Answer(off.verdict, off.detail, at)
    if skill.path in question.view.dropped:
        budget = question.profile.budget_chars
        said = f"its list ends before this one, at {budget:,} characters" if budget else "its list ends before this one"
        return Answer("over-budget", said, at)
    for found in (_rivalry(question, skill), _open_question(question, skill), _body(question)):
        if found is not None:
            return found._replace(at=at)
    return next(_notes(question, skill), Answer("visible"))._replace(at=at)


def _rivalry(question: Question, skill: CatalogSkill) -> Answer | None:
    """What others of the same name mean for one that is listed."""
    view = question.view
    losers = view.losers.get(skill.path, ())
    if losers and is_open(question.profile, skill.path, losers[0], view.roots):
        return Answer("unknown", no_winner(question.profile, len(losers) + 1), rule=NO_WINNER)
    return None


def is_open(profile: Profile, path: str, other: str, roots: Sequence[Root]) -> bool:
    """Whether nobody can say which of two copies this host takes."""
    if profile.collision == "race" or profile.collision_doubt == "always":
        return True
    mine, theirs = own_root(path, roots), own_root(other, roots)
    if mine is None or theirs is None or profile.collision_doubt == "none":
        return False
    one_root = mine.path == theirs.path
    return one_root if profile.collision_doubt == "same-root" else not one_root and mine.kind == theirs.kind


def no_winner(profile: Profile, copies: int) -> str:
    """What is known of a name that so many skills have."""
    if profile.collision == "race":
        return f"{copies} skills have this name, and which one wins differs from run to run"
    return f"{copies} skills have this name; which one wins is not established"


def _open_question(question: Question, skill: CatalogSkill) -> Answer | None:
    """Something about a listed file that nobody has tried on this host."""
    profile = question.profile
    if not profile.unknown:
        return None
    for what, field in _oddities(question, skill):
        if field in profile.unknown:
            return Answer("unknown", f"nobody has tried it: {what}")
    document = document_of(question.sighting, profile, question.survey)
    for finding in check(document, question.sighting.folder, profile):
        if finding.rule in profile.unknown:
            found = placed(finding, document)
            return Answer("unknown", f"nobody has tried it: {finding.message}", rule=found.rule)
    return None


def _oddities(question: Question, skill: CatalogSkill) -> Iterator[tuple[str, str]]:
    """What is unusual about where a listed file lies, with the field of the profile that decides about it."""
    root = own_root(skill.path, question.view.roots)
    assert root is not None
    assert root.real_path is not None
    below = skill.path[len(root.path) + 1 :]
    if root.kind == "project" and not files.is_inside(root.path, question.survey.place.cwd):
        yield "a skill above the working directory", "above-cwd"
    if os.path.basename(skill.real_path) != SKILL_FILE or os.path.dirname(skill.real_path) != skill.real_dir:
        yield "SKILL.md is a link", "linked_file"
    elif f"{root.real_path}/{below}" != skill.real_path and own_root(skill.real_path, question.view.roots) is None:
        yield "the folder is a link", "links"
    elif _is_linked_root(root) and own_root(skill.real_path, question.view.roots) is None:
        yield "the root is a link", "links"
    if any(part.startswith(".") for part in below.split("/")):
        yield "a folder that begins with a dot", "hidden"
    if "node_modules" in below.split("/"):
        yield "a skill below node_modules", "skip_directories"
    declared = skill.frontmatter.get("name")
    if declared is not None and declared != os.path.basename(skill.dir):
        yield f"a name ({declared!r}) that is not the folder's", "name-directory"
    if below.count("/") > 1:
        yield "a folder of folders", "max_depth"
    if "hides_on" in question.profile.unknown and "disable-model-invocation" in skill.frontmatter:
        yield "what disable-model-invocation does", "hides_on"


def _is_linked_root(root: Root) -> bool:
    """Whether a root, or a folder of its name, is a link; what leads to the folder it is in does not count."""
    return root.real_path != f"{files.real_path(base_of(root))}/{root.label}"


def _body(question: Question) -> Answer | None:
    """A file whose rest, which a listing does not read, is not UTF-8, for a host that insists on it."""
    sighting, bodies = question.sighting, question.survey.bodies
    if question.profile.body_text == "any" or len(sighting.head) >= sighting.size:
        return None
    if sighting.real_path not in bodies:
        try:
            data = files.read_file(sighting.real_path, limit=SKILL_FILE_BYTES, links="never")
        except OSError:
            return Answer("unknown", "the file cannot be read")
        bodies[sighting.real_path] = body_problem(data or b"")
    found = bodies[sighting.real_path]
    return Answer("wrong-type", found.message, rule=found.rule, line=found.line) if found else None


def _notes(question: Question, skill: CatalogSkill) -> Iterator[Answer]:
    """What a person should know about a skill that is visible."""
    view, profile = question.view, question.profile
    if SAFEGUARD in skill.frontmatter and ignored_safeguard(skill.frontmatter, profile):
        yield Answer("visible", f"ignores {SAFEGUARD}: its model may call it")
    if len(view.by_name[skill.name]) > 1:
        others = [other.path for other in view.by_name[skill.name] if other is not skill]
        yield Answer("ambiguous", f"as is {shown_path(others[0], question)}; both are listed")
    document = document_of(question.sighting, profile, question.survey)
    for finding in document.findings:
        if finding.rule in ("yaml-colon", "yaml-brackets", "yaml-tab", "yaml-lines", "yaml", "frontmatter-missing"):
            yield Answer("repaired", finding.message, rule=finding.rule, line=finding.line)
    if ":" in skill.name and (root := own_root(skill.path, view.roots)) is not None and root.prefix:
        yield Answer("renamed-by-plugin", f"called {skill.name!r} here")
    if lost := _lost(question, skill):
        yield Answer("description-cut", lost)
    declared = document.fields.get("name")
    if skill.name == os.path.basename(skill.dir) != declared:
        yield Answer("name-from-folder", f"called {skill.name!r} here" + (f", not {declared!r}" if declared else ""))
    if cut := _cut(question, skill):
        yield Answer("description-cut", cut)
    if losers := view.losers.get(skill.path):
        yield Answer("shadows", f"in front of {shown_path(losers[0], question)}")


def _lost(question: Question, skill: CatalogSkill) -> str:
    """What a list that is too long for this host does to the description."""
    view, profile = question.view, question.profile
    if not view.cut:
        return ""
    full = f"its list is full at {profile.budget_chars:,} characters"
    if profile.overflow == "drop-least-used":
        return f"{full}: {len(view.cut)} of {view.text.entries} lose the description, the least used first"
    if skill.path not in view.cut:
        return ""
    return f"{full}: {'a part' if profile.overflow == 'shorten' else 'none'} of the description is left"


def _cut(question: Question, skill: CatalogSkill) -> str:
    """What this host leaves of a description, where that is not all of it."""
    profile, most = question.profile, question.profile.description_shown
    if profile.closing_fence == "anywhere":
        shown = len(fold(skill.description))
        whole = description_of(document_of(question.sighting, _PLAIN, question.survey).fields)
        if 0 < shown < len(fold(whole)):
            return f"ends at the `---` inside it, after {shown} of {len(fold(whole))} characters"
    if most is not None and len(skill.description) > most and (shown := len(fold(skill.description))) > most:
        return f"shows {most:,} of {shown:,} characters"
    return ""


_PLAIN = Profile(name="", summary="", evidence="", as_of="")
