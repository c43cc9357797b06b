"""Every exception a caller may catch.

SkillError
  SkillDirectoryNotFound   the folder that should hold a skill does not exist
  SkillFileNotFound        a folder without a SKILL.md
  InvalidFormat            a SKILL.md without a usable frontmatter block
  YamlParsingError         a frontmatter block that is not readable YAML
  ValidationFailed         a field that breaks a rule of the profile
  SkillNotFound            no skill of that name in this catalog
    SkillNotUsable         a file of that name exists, and is broken, shadowed or filtered
  SkillAlreadyExists       a name that is taken where names must be free
  AmbiguousSkill           several skills of that name, and the profile keeps all
  ResourceNotFound         no such file in that skill
  FileReadError            the machine could not read a file
  PathEscape               a path that points outside the folder it must stay in
  ScriptNotRunnable        a script that no program on this machine can run
  LimitExceeded            a file, walk or output larger than a named limit
  PermissionDenied         the policy denied it
  SkillChanged             an installed skill whose files are not those of its lock
  SourceRefused            a source, archive or digest that breaks a rule of installing
  SourceNotFound           a source that does not exist, or has no such skill
  SourceUnreachable        a source that does not answer, or breaks off
  SkillsDisabled           skills are switched off in the configuration
  ConfigurationError       a configuration file, variable or option that cannot be used

A mistake in a skill's own text is a finding of the catalog, not an exception; only calls that
load one named skill raise it.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

# The exceptions only: `from skillshelf import *` offers these names.
__all__ = [
    "AmbiguousSkill",
    "ConfigurationError",
    "FileReadError",
    "InvalidFormat",
    "LimitExceeded",
    "PathEscape",
    "PermissionDenied",
    "ResourceNotFound",
    "ScriptNotRunnable",
    "SkillAlreadyExists",
    "SkillChanged",
    "SkillDirectoryNotFound",
    "SkillError",
    "SkillFileNotFound",
    "SkillNotFound",
    "SkillNotUsable",
    "SkillsDisabled",
    "SourceNotFound",
    "SourceRefused",
    "SourceUnreachable",
    "ValidationFailed",
    "YamlParsingError",
]


class SkillError(Exception):
    """Anything skillshelf raises on purpose; survives `pickle` and `copy`, since `args` are the arguments as given."""


class SkillDirectoryNotFound(SkillError):
    """The folder that should hold a skill does not exist."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"Skill directory not found: {self.path}"


class SkillFileNotFound(SkillError):
    """A folder without a SKILL.md."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"SKILL.md not found: {self.path}"


class InvalidFormat(SkillError):
    """A SKILL.md without a usable frontmatter block."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"Invalid SKILL.md format: {self.reason}"


class YamlParsingError(SkillError):
    """A frontmatter block that is not readable YAML."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"YAML parsing error: {self.reason}"


class ValidationFailed(SkillError):
    """A field that breaks a rule of the profile."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(field, reason)
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        return f"Validation failed for '{self.field}': {self.reason}"


class SkillNotFound(SkillError):
    """No skill of that name in this catalog; `near` holds names that may have been meant."""

    near: tuple[str, ...] = ()

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"Skill not found: {self.name}"


class SkillNotUsable(SkillNotFound):
    """A file of that name or path exists, but is no skill of the catalog; `reason` has the rule, and why."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name)
        self.args = (name, reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"Skill cannot be used: {self.name}: {self.reason}"


class SkillAlreadyExists(SkillError):
    """A name that is taken where names must be free."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"Skill already exists: {self.name}"


class AmbiguousSkill(SkillError):
    """Several skills of that name, and the profile keeps all."""

    def __init__(self, name: str, paths: Sequence[str]) -> None:
        super().__init__(name, tuple(paths))
        self.name = name
        self.paths = tuple(paths)

    def __str__(self) -> str:
        return f"Ambiguous skill name: {self.name} ({len(self.paths)} skills have it)"


class ResourceNotFound(SkillError):
    """No such file in that skill."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"File not found: {self.path}"


class FileReadError(SkillError):
    """The machine could not read a file."""

    def __init__(self, path: str, underlying: Exception) -> None:
        super().__init__(path, underlying)
        self.path = path
        self.underlying = underlying

    def __str__(self) -> str:
        return f"Failed to read file '{self.path}': {self.underlying}"


class PathEscape(SkillError):
    """A path that points outside the folder it must stay in."""


class ScriptNotRunnable(SkillError):
    """A script that no program on this machine can run."""


class LimitExceeded(SkillError):
    """A file, walk or output larger than a named limit."""


class PermissionDenied(SkillError):
    """The policy denied it, or nobody agreed to what security rules found, which is in `findings`."""

    findings: Sequence[object] = ()


class SkillChanged(SkillError):
    """An installed skill whose files are not those that its lock or generation names; `files` are those that differ."""

    def __init__(self, name: str, files: Sequence[str]) -> None:
        super().__init__(name, tuple(files))
        self.name = name
        self.files = tuple(files)

    def __str__(self) -> str:
        shown = ", ".join(self.files[:3]) + (f" and {len(self.files) - 3} more" if len(self.files) > 3 else "")
        return (
            f"Skill changed since it was installed: {self.name} ({shown}); "
            f"to see it: skillshelf verify; to settle it: skillshelf update {self.name} --restore or --accept"
        )


class SourceRefused(SkillError):
    """A source, an archive or a digest that breaks a rule of installing; `rule` names it."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(rule, reason)
        self.rule = rule
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason} ({self.rule})"


class SourceNotFound(SkillError):
    """A source that does not exist, or has no such skill; `near` holds names that may have been meant."""

    near: tuple[str, ...] = ()


class SourceUnreachable(SkillError):
    """A source that does not answer, or breaks off."""


class SkillsDisabled(SkillError):
    """Skills are switched off in the configuration."""

    def __init__(self, message: str = "skills are disabled") -> None:
        super().__init__(message)


class ConfigurationError(SkillError):
    """A configuration file, variable or option that cannot be used."""


# Exit statuses of the command line.
DONE: Final = 0
NEGATIVE: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3
DENIED: Final = 4
FAILED: Final = 5

ErrorCode = Literal[
    "not_found",
    "ambiguous",
    "denied",
    "invalid_params",
    "unknown_tool",
    "too_large",
    "gone",
    "failed",
    "changed",
    "refused",
]


class ErrorKind(NamedTuple):
    """The code and the exit status of an exception class."""

    code: ErrorCode
    exit_status: int


ERROR_KINDS: Mapping[type[SkillError], ErrorKind] = {
    SkillError: ErrorKind("failed", FAILED),
    SkillDirectoryNotFound: ErrorKind("invalid_params", USAGE),
    SkillFileNotFound: ErrorKind("gone", NOT_FOUND),
    InvalidFormat: ErrorKind("failed", FAILED),
    YamlParsingError: ErrorKind("failed", FAILED),
    ValidationFailed: ErrorKind("failed", FAILED),
    SkillNotFound: ErrorKind("not_found", NOT_FOUND),
    SkillNotUsable: ErrorKind("failed", NOT_FOUND),
    SkillAlreadyExists: ErrorKind("failed", NEGATIVE),
    AmbiguousSkill: ErrorKind("ambiguous", NOT_FOUND),
    ResourceNotFound: ErrorKind("not_found", NOT_FOUND),
    FileReadError: ErrorKind("failed", FAILED),
    PathEscape: ErrorKind("invalid_params", USAGE),
    ScriptNotRunnable: ErrorKind("failed", FAILED),
    LimitExceeded: ErrorKind("too_large", FAILED),
    PermissionDenied: ErrorKind("denied", DENIED),
    SkillChanged: ErrorKind("changed", DENIED),
    SourceRefused: ErrorKind("refused", DENIED),
    SourceNotFound: ErrorKind("not_found", NOT_FOUND),
    SourceUnreachable: ErrorKind("failed", FAILED),
    SkillsDisabled: ErrorKind("denied", DENIED),
    ConfigurationError: ErrorKind("invalid_params", USAGE),
}
"""The one table of codes and exit statuses: every surface takes them from here."""


def kind_of(error: SkillError) -> ErrorKind:
    """Return the row of an exception; a class without one has the row of its base class."""
    return next(ERROR_KINDS[base] for base in type(error).__mro__ if base in ERROR_KINDS)
