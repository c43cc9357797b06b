"""Every limit by name; whatever hits one says so. The reasons are in docs/limits.md."""

__all__ = [
    "ADDRESS_CHARS",
    "ADDRESS_SEGMENTS",
    "CACHE_FROM",
    "CACHE_ROWS",
    "CACHE_WAIT_SECONDS",
    "CHECKED_DIRECTORIES",
    "CHECKED_PAGES",
    "CHECKED_SCRIPTS",
    "CONFIG_BYTES",
    "COPIED_BYTES",
    "DESCRIPTION_SHOWN",
    "FIRST_READ",
    "FRONTMATTER_BYTES",
    "FRONTMATTER_DEPTH",
    "FRONTMATTER_KEYS",
    "LISTED_CHILDREN",
    "LISTED_ENTRIES",
    "NAMES_IN_SCHEMA",
    "RESOURCE_BYTES",
    "SETTLED_NS",
    "SKILL_FILE_BYTES",
    "SURVEY_DIRECTORIES",
    "WALK_DEPTH",
    "WALK_DIRECTORIES",
]

SKILL_FILE_BYTES = 1024 * 1024
"""A larger SKILL.md is refused by its size, unread."""

FIRST_READ = 4096
"""What discovery reads of a SKILL.md; more only if the closing fence is not in it."""

FRONTMATTER_BYTES = 64 * 1024
FRONTMATTER_DEPTH = 8
FRONTMATTER_KEYS = 256

DESCRIPTION_SHOWN = 1024
"""Characters of a description that a model or a person is shown."""

WALK_DIRECTORIES = 20_000
"""Folders without a skill that one root may hold before its walk stops."""

COPIED_BYTES = 64 * 1024 * 1024
"""What `link` copies at most where a host follows no links."""

SURVEY_DIRECTORIES = 5_000
"""Folders without a skill that one root may hold before a survey of all hosts goes on with the next root."""

WALK_DEPTH = 64
"""Where a walk ends whose profile sets no depth: each level holds one descriptor open."""

CHECKED_DIRECTORIES = 200_000
"""Folders without a skill that a path given to `check` may hold before its walk stops; five files count as one."""

CHECKED_PAGES = 64
"""Pages of one skill that `check` reads to see where their links lead."""

CHECKED_SCRIPTS = 256
"""Scripts of one skill that `check` looks at."""

RESOURCE_BYTES = 1024 * 1024
"""A resource read, unless more is asked for."""

LISTED_CHILDREN = 512
"""Names that an address of a folder lists."""

LISTED_ENTRIES = 20_000
"""Entries of one skill's folder that are looked at to list its files."""

ADDRESS_CHARS = 4096
ADDRESS_SEGMENTS = 32

NAMES_IN_SCHEMA = 50
"""Up to so many skills a tool's schema names them all."""

CONFIG_BYTES = 1024 * 1024

CACHE_FROM = 64
"""Files of one root from which on the cache is asked: reading fewer is faster than opening it."""

CACHE_ROWS = 256
"""Roots that the cache holds; the ones written longest ago leave first."""

CACHE_WAIT_SECONDS = 0.05
"""How long a command waits for a cache that another one is writing."""

SETTLED_NS = 2_000_000_000
"""A file that changed less than this before it was read is read again next time."""
