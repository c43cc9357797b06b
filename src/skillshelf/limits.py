"""Every limit by name; whatever hits one says so. The reasons are in docs/limits.md."""

__all__ = [
    "CONFIG_BYTES",
    "DESCRIPTION_SHOWN",
    "FIRST_READ",
    "FRONTMATTER_BYTES",
    "FRONTMATTER_DEPTH",
    "FRONTMATTER_KEYS",
    "SKILL_FILE_BYTES",
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

WALK_DEPTH = 64
"""Where a walk ends whose profile sets no depth: each level holds one descriptor open."""

CONFIG_BYTES = 1024 * 1024
