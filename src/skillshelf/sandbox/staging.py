"""A skill to a private copy of it, beside folders that its script may write in.

The copy is made file by file through the door to the disk, and what is compared with an approval is the copy:
whatever happens to the skill's folder meanwhile changes nothing.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from skillshelf.catalog.load import Listing, digest_of, refusing
from skillshelf.core import files
from skillshelf.core.atomic_write import give_tree, make_private_folder, remove_tree, write_new
from skillshelf.core.limits import LISTED_CHILDREN, LISTED_ENTRIES, RUN_SKILL_BYTES, SCRIPT_BYTES
from skillshelf.errors import PermissionDenied, ResourceNotFound, ScriptNotRunnable
from skillshelf.sandbox.scripts import FOLDER, Interpreter, folder_digest, interpreter_of, not_whole

__all__ = ["Place", "Staged", "make_place", "produced", "remove_place", "stage"]


class Place(NamedTuple):
    """The private folder of one run, and the user who gets it, where that is not the one we are."""

    path: str
    user: int | None = None

    @property
    def skill(self) -> str:
        """The copy of the skill."""
        return f"{self.path}/skill"

    @property
    def work(self) -> str:
        """The folder the script starts in."""
        return f"{self.path}/work"

    @property
    def temporary(self) -> str:
        """What the script sees as /tmp."""
        return f"{self.path}/tmp"

    @property
    def shared_memory(self) -> str:
        """What the script sees as /dev/shm: a folder, so that what lies there takes disk and not memory."""
        return f"{self.path}/shm"


class Staged(NamedTuple):
    """A script in its copy: its path from the skill's folder, its digest, and who runs it."""

    path: str
    digest: str
    interpreter: Interpreter


def make_place(user: int | None) -> Place:
    """A new private folder with its four parts."""
    try:
        place = Place(make_private_folder("skillshelf-run-"), user)
        for path in (place.skill, place.work, place.temporary, place.shared_memory):
            os.mkdir(path)
            # What keeps others out is the private folder; behind the walls root needs a way in without its rights.
            os.chmod(path, 0o755)
    except OSError as error:
        raise ScriptNotRunnable(f"no work folder can be made for it: {error}") from error
    return place


def remove_place(place: Place, *, keep_work: bool) -> None:
    """Remove the private folder, or all of it but the work folder."""
    parts = (place.skill, place.temporary, place.shared_memory) if keep_work else (place.path,)
    if keep_work and place.user is not None:
        give_tree(place.work, os.geteuid())
    for path in parts:
        # What a script did to its folders must not hide how it ended; it is a temporary folder anyway.
        with suppress(OSError):
            remove_tree(path)


def produced(place: Place) -> Listing:
    """The regular files in the work folder; links that a script made are not followed, and not listed."""
    with files.Folder(place.work) as work:
        found, complete = work.files(LISTED_ENTRIES)
    paths = sorted(found, key=os.fsencode)
    return Listing(tuple(paths[:LISTED_CHILDREN]), len(paths), not complete or len(paths) > LISTED_CHILDREN)


def stage(
    skill_dir: str, segments: Sequence[str], place: Place, *, digest: str | None, folder_digest: str | None
) -> Staged:
    """Copy a skill; PermissionDenied if the copied script is not the one that was approved."""
    script = "/".join(segments)
    data, digests = _copy(skill_dir, segments, place)
    if digest not in (None, digests[script]):
        raise PermissionDenied(f"{script} changed since it was approved; look at it and approve it again")
    if folder_digest not in (None, _of_folder(digests)):
        raise PermissionDenied(
            f"a file in {FOLDER}/ changed since it was approved; look at them and approve them again"
        )
    interpreter = interpreter_of(script, data)
    if place.user is not None:
        for path in (place.skill, place.work, place.temporary, place.shared_memory):
            give_tree(path, place.user)
    return Staged(script, digests[script], interpreter)


def _copy(skill_dir: str, segments: Sequence[str], place: Place) -> tuple[bytes, dict[str, str]]:
    """The bytes of the script, and the digest of every file that was copied."""
    script = "/".join(segments)
    with refusing(script, SCRIPT_BYTES), files.Folder(skill_dir) as skill:
        try:
            data = _copy_file(skill, segments, place, SCRIPT_BYTES)
        except IsADirectoryError:
            raise ScriptNotRunnable(f"{script} is a folder; name a file in it") from None
        digests = {script: digest_of(data)}
        found, complete = skill.files(LISTED_ENTRIES)
        if not complete:
            raise not_whole("the skill's folder")
        left = RUN_SKILL_BYTES
        for path in found:
            if path != script:
                # One that went away since it was listed is not there, and the copy is without it.
                with suppress(ResourceNotFound), refusing(path, left):
                    other = _copy_file(skill, path.split("/"), place, left)
                    left -= len(other)
                    digests[path] = digest_of(other)
    return data, digests


def _copy_file(skill: files.Folder, segments: Sequence[str], place: Place, limit: int) -> bytes:
    """The bytes of a regular file, which are now those of a new file too; only its right to be run is kept."""
    contents = skill.read(segments, limit=limit)
    mode = 0o755 if contents.runnable else 0o644
    write_new(f"{place.skill}/{'/'.join(segments)}", contents.data, mode=mode)
    return contents.data


def _of_folder(digests: dict[str, str]) -> str:
    start = f"{FOLDER}/"
    return folder_digest({path[len(start) :]: known for path, known in digests.items() if path.startswith(start)})
