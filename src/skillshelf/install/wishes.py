"""Read and change the tables `[[install]]` of a configuration file, keeping comments, order and everything else."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from skillshelf.catalog.lock import is_installable_name
from skillshelf.config.settings import Wish, parse_wishes
from skillshelf.core import files
from skillshelf.core.limits import CONFIG_BYTES
from skillshelf.core.patterns import lazy_pattern
from skillshelf.errors import ConfigurationError, SkillError
from skillshelf.install.scope import InstallScope

__all__ = ["Wish", "changed_wishes", "read_wishes", "wishes_in", "with_wishes", "without_wishes"]

_KEY = "install"
_EMPTY = f"[[{_KEY}]]\n"


def read_wishes(scope: InstallScope) -> tuple[Wish, ...]:
    """Return the wishes of a scope; raise ConfigurationError if its file is not what it should be."""
    if (kind := files.kind_at(scope.wishes_path)) is None:
        return ()
    if kind == "link" and scope.kind == "project":
        raise ConfigurationError(f"{scope.wishes_path}: it is a link, not a file; put a file in its place")
    links = "follow" if scope.kind == "user" else "never"
    try:
        data = files.read_file(scope.wishes_path, limit=CONFIG_BYTES, links=links)  # type: ignore[arg-type]
    except OSError as error:
        raise ConfigurationError(f"{scope.wishes_path}: cannot be read: {error.strerror}") from None
    if data is None:
        raise ConfigurationError(f"{scope.wishes_path}: not a regular file of at most {CONFIG_BYTES} bytes")
    return wishes_in(data, scope.wishes_path)


@lru_cache(maxsize=2)
def wishes_in(data: bytes, path: str) -> tuple[Wish, ...]:
    """Return the wishes in the bytes of a file, which is named in errors; a change asks for them several times."""
    wishes = parse_wishes(data, path)
    for wish in wishes:
        if wish.name is not None and not is_installable_name(wish.name):
            raise ConfigurationError(f"{path}: `install.name` {wish.name!r} is not a name to install a skill as")
    return wishes


def changed_wishes(wishes: Sequence[Wish], name: str, wish: Wish) -> tuple[Wish, ...]:
    """Return the wishes with one for a skill; it takes the place of the one that was there for it."""
    if wish in wishes:
        return tuple(wishes)
    new = wish._replace(name=name)
    known = [n for n, one in enumerate(wishes) if _is_for(one, name, wish.source, wish.path)]
    if not known:
        return (*wishes, new)
    return tuple(new if n == known[0] else one for n, one in enumerate(wishes) if n == known[0] or n not in known)


def without_wishes(wishes: Sequence[Wish], name: str, source: str, path: str) -> tuple[Wish, ...]:
    """Return the wishes without those for a skill that was installed from a source."""
    return tuple(one for one in wishes if not _is_for(one, name, source, path))


def _is_for(wish: Wish, name: str, source: str, path: str) -> bool:
    return wish.name == name if wish.name is not None else (wish.source, wish.path) == (source, path)


def with_wishes(data: bytes, wishes: Sequence[Wish], path: str) -> bytes:
    """Return the bytes of a configuration file with exactly these wishes; raise a SkillError if that fails."""
    before = wishes_in(data, path)
    if list(before) == list(wishes):
        return data
    import tomllib

    from tomlkit.exceptions import TOMLKitError

    text = data.decode("utf-8")
    try:
        after = _edited(text, before, wishes)
    except (TOMLKitError, RecursionError, TypeError, ValueError) as error:
        raise SkillError(f"{path}: {error}; change its [[install]] tables by hand") from None
    changed = after.encode()
    # A library that edits text may be wrong about it: nothing else in the file may have changed.
    try:
        others = [{key: value for key, value in tomllib.loads(one).items() if key != _KEY} for one in (text, after)]
        is_right = others[0] == others[1] and sorted(wishes_in(changed, path), key=str) == sorted(wishes, key=str)
    except (ValueError, ConfigurationError):
        is_right = False
    if not is_right:
        raise SkillError(f"{path}: its [[install]] tables cannot be changed; change them by hand")
    if len(changed) > CONFIG_BYTES:
        raise SkillError(f"{path} would have more than {CONFIG_BYTES} bytes")
    return changed


def _edited(text: str, before: Sequence[Wish], after: Sequence[Wish]) -> str:
    """Return the text with changed, removed and added tables; those that stay are not touched.

    tomlkit takes a comment above a table for the end of the table before, so it sees each table by itself.
    """
    parts = _parts(text)
    if len(parts) != 2 * len(before) + 1:
        return _edited_whole(text, before, after)
    left = list(after)
    kept = [_taken(left, wish) for wish in before]
    made = [parts[0]]
    for n, (old, new) in enumerate(zip(before, kept, strict=True)):
        table, rest = parts[2 * n + 1 : 2 * n + 3]
        if new is None:
            # The blank line before the table goes with it.
            made[-1] = made[-1].removesuffix("\n") if f"\n{made[-1]}".endswith("\n\n") else made[-1]
            made += ["", rest.removeprefix("\n") if not "".join(made) else rest]
        else:
            made += [table if new == old else _table_text(table, new), rest]
    added = "".join(f"\n{_table_text(_EMPTY, wish)}" for wish in left)
    # After the last table, before the comments that belong to what follows.
    end = len(made) - 1 if before else len(made)
    text = "".join(made[:end])
    tail = "".join(made[end:])
    return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{added if text else added[1:]}{tail}"


def _parts(text: str) -> list[str]:
    """Return a text cut before and behind each table of wishes: others, table, others, table, others."""
    parts, lines = [""], text.splitlines(keepends=True)
    n = 0
    while n < len(lines):
        if not _TABLE.match(lines[n]):
            parts[-1] += lines[n]
            n += 1
            continue
        end = next((m for m in range(n + 1, len(lines)) if lines[m].lstrip()[:1] == "["), len(lines))
        while not lines[end - 1].strip() or lines[end - 1].lstrip()[0] == "#":
            end -= 1
        parts += ["".join(lines[n:end]), ""]
        n = end
    return parts


_TABLE = lazy_pattern(rf"[ \t]*\[\[[ \t]*{_KEY}[ \t]*\]\]")


def _table_text(text: str, wish: Wish) -> str:
    """Return the text of one table with the members of a wish."""
    import tomlkit

    document = tomlkit.parse(text)
    _fill(document[_KEY][0], wish)
    made = document.as_string()
    return made if made.endswith("\n") else f"{made}\n"


def _edited_whole(text: str, before: Sequence[Wish], after: Sequence[Wish]) -> str:
    """Return the text of a file whose wishes are not written as tables, with changes."""
    import tomlkit

    document = tomlkit.parse(text)
    left = list(after)
    kept = [_taken(left, wish) for wish in before]
    tables: Any = document[_KEY]
    for n in reversed(range(len(before))):
        if (wish := kept[n]) is None:
            del tables[n]
        elif wish != before[n]:
            _fill(tables[n], wish)
    for wish in left:
        table = tomlkit.table() if isinstance(tables, tomlkit.items.AoT) else tomlkit.inline_table()
        _fill(table, wish)
        tables.append(table)
    if not tables:
        del document[_KEY]
    return document.as_string()


def _taken(left: list[Wish], wish: Wish) -> Wish | None:
    """Take the wish that stands for one that was there out of those that are left; None if there is none."""
    same = [one for one in left if one == wish]
    named = [one for one in left if one.name is not None and one.name == wish.name]
    unnamed = [one for one in left if wish.name is None and (one.source, one.path) == (wish.source, wish.path)]
    found = next(iter((*same, *named, *unnamed)), None)
    if found is not None:
        left.remove(found)
    return found


def _fill(table: Any, wish: Wish) -> None:
    """Set the members of a table; one that has its value already keeps its spelling and its comment."""
    members = dict(_members(wish))
    for key in [key for key in table if key not in members]:
        del table[key]
    for key, value in members.items():
        if key not in table or table[key] != value:
            table[key] = value


def _members(wish: Wish) -> Iterator[tuple[str, Any]]:
    yield "source", wish.source
    if wish.path:
        yield "path", wish.path
    if wish.ref is not None:
        yield "ref", wish.ref
    if wish.name is not None:
        yield "name", wish.name
    if wish.hosts:
        yield "hosts", list(wish.hosts)
