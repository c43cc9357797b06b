"""The skills of the releases that a tenant serves: made once for each release, and kept on disk for the next start.

A publish changes a few of them, and the others stay the same objects. What is kept lies in the folder of the snapshot
of the very revision that it is of: a database that was set back names another snapshot.
"""

import marshal
from collections.abc import Iterable, Mapping
from typing import Any
from zlib import crc32

from skillshelf import __version__
from skillshelf.catalog.build_context import make_skill
from skillshelf.catalog.source import PUBLISHED_SCHEME
from skillshelf.catalog.store import Store
from skillshelf.config.profile import Profile
from skillshelf.config.settings import Settings
from skillshelf.core import files
from skillshelf.core.disk_writes import replace_file
from skillshelf.core.limits import BLOB_BYTES
from skillshelf.core.records import NamedTuple
from skillshelf.core.values import CatalogSkill, Root
from skillshelf.search.index import digest_stamp
from skillshelf.servers.team.releases import PUBLISHED, ServedRelease

__all__ = ["KeptSkills", "MadeSkill", "ReleaseSkills", "SkillMaker", "keep_skills", "kept_skills"]

_FORMAT = 1
_ROOT = Root(PUBLISHED_SCHEME, None, "custom", "custom", PUBLISHED, "never", trusted=True)


class MadeSkill(NamedTuple):
    """The skill of a release, the digest of its archive, and the number that the search index knows it by."""

    skill: CatalogSkill
    artifact: str
    stamp: int


class SkillMaker(NamedTuple):
    """What a skill is made with besides its release."""

    settings: Settings
    profile: Profile
    root_index: int
    store: Store

    def made(self, release: ServedRelease) -> MadeSkill:
        """Return the skill of a release."""
        skill = self._skill(release.name, release.description, release.tree, release.frontmatter, release.size)
        return MadeSkill(skill, release.artifact, digest_stamp(skill, release.tree))

    def made_again(self, before: MadeSkill) -> MadeSkill:
        """Return a skill that was made with other settings."""
        old = before.skill
        assert old.tree is not None
        return before._replace(skill=self._skill(old.name, old.description, old.tree, old.frontmatter, old.size))

    def _skill(self, name: str, description: str, tree: str, fields: Mapping[str, Any], size: int) -> CatalogSkill:
        real_dir = self.store.path_of(tree)
        skill = make_skill(
            name,
            description,
            f"{PUBLISHED_SCHEME}{name}/SKILL.md",
            real_path=f"{real_dir}/SKILL.md",
            real_dir=real_dir,
            root=_ROOT,
            root_index=self.root_index,
            stamp=None,
            fields=fields,
            settings=self.settings,
            profile=self.profile,
        )
        return skill._replace(tree=tree, size=size)

    @property
    def key(self) -> str:
        """A text that differs whenever skills would."""
        return repr((_FORMAT, __version__, self.settings, self.profile, self.root_index, self.store.folder))


class ReleaseSkills:
    """The skills of the releases of one revision, by name. It never changes; `changed` returns another."""

    def __init__(self, maker: SkillMaker, by_name: Mapping[str, MadeSkill]) -> None:
        self.maker = maker
        self.by_name = by_name

    @classmethod
    def of(cls, maker: SkillMaker, releases: Iterable[ServedRelease]) -> "ReleaseSkills":
        """Return the skills of some releases."""
        return cls(maker, {release.name: maker.made(release) for release in releases})

    def changed(self, changes: Mapping[str, ServedRelease | None]) -> "ReleaseSkills":
        """Return the skills after some names changed; None for one that is served no longer."""
        by_name = dict(self.by_name)
        for name, release in changes.items():
            # The newest are last.
            by_name.pop(name, None)
            if release is not None:
                by_name[name] = self.maker.made(release)
        return ReleaseSkills(self.maker, by_name)

    def made_with(self, maker: SkillMaker) -> "ReleaseSkills":
        """Return the skills as another maker makes them."""
        if maker == self.maker:
            return self
        return ReleaseSkills(maker, {name: maker.made_again(one) for name, one in self.by_name.items()})

    @property
    def artifacts(self) -> dict[str, str]:
        """The digests of the archives, by tree."""
        return {one.skill.tree or "": one.artifact for one in self.by_name.values()}


# On disk ------------------------------------------------------------------------------------------


class KeptSkills(NamedTuple):
    """Skills that were kept, with the revision and the channel that they are of."""

    rev: int
    channel: str
    skills: ReleaseSkills


def keep_skills(path: str, kept: KeptSkills) -> None:
    """Write skills into a file; raise OSError if that is not possible."""
    rows = [_row(one) for one in kept.skills.by_name.values()]
    try:
        data = marshal.dumps((kept.skills.maker.key, kept.rev, kept.channel, rows))
    except ValueError as error:
        raise OSError(f"skills cannot be kept: {error}") from None
    replace_file(path, crc32(data).to_bytes(4, "big") + data)


def kept_skills(path: str, maker: SkillMaker) -> KeptSkills | None:
    """Return the skills in a file of ours; None if there are none, or others would be made now."""
    try:
        data = files.read_file(path, limit=BLOB_BYTES, links="never") or b""
    except OSError:
        return None
    content = memoryview(data)[4:]
    if len(data) < 4 or crc32(content).to_bytes(4, "big") != data[:4]:
        return None
    try:
        key, rev, channel, rows = marshal.loads(content)
        if key != maker.key:
            return None
        skills = {row[0]: _made(row, maker.root_index, maker.store.folder) for row in rows}
    except (EOFError, ValueError, TypeError):
        return None
    return KeptSkills(rev, channel, ReleaseSkills(maker, skills))


def _row(made: MadeSkill) -> tuple[Any, ...]:
    """Return a skill without what is the same for all of them or follows from the rest."""
    skill, digest = made.skill, (made.skill.tree or "").removeprefix("sha256:")
    fields: Any = dict(skill.frontmatter)
    if [*fields.items()][:2] == [("name", skill.name), ("description", skill.description)]:
        fields = {name: fields[name] for name in [*fields][2:]}
    else:
        fields = [fields]
    state = (skill.enabled, skill.trusted, skill.hidden, skill.hidden_by)
    return skill.name, skill.description, digest, skill.size, *state, fields, made.artifact, made.stamp


def _made(row: tuple[Any, ...], root_index: int, store: str) -> MadeSkill:
    name, description, digest, size, enabled, trusted, hidden, by, fields, artifact, stamp = row
    folder = f"{store}/{digest[:2]}/{digest[2:]}"
    whole = {"name": name, "description": description, **fields} if type(fields) is dict else fields[0]
    path = f"{PUBLISHED_SCHEME}{name}/SKILL.md"
    place = (path, f"{folder}/SKILL.md", folder, _ROOT.scope, PUBLISHED, root_index, 0, size)
    skill = CatalogSkill(name, description, *place, enabled, trusted, hidden, whole, by, None, f"sha256:{digest}")
    return MadeSkill(skill, artifact, stamp)
