"""Every rule by id: what it says, and how much it weighs where a profile does not say otherwise.

A rule that is `fixed` weighs the same in every profile: what it refuses is unsafe, unreadable or no address.
"""

from collections.abc import Mapping
from typing import NamedTuple

from skillshelf.core.values import Severity

__all__ = ["RULES", "Rule", "severities"]


class Rule(NamedTuple):
    """One thing that can be said about a skill, a folder or a root."""

    summary: str
    severity: Severity
    fixed: bool = False


RULES: dict[str, Rule] = {
    # A root
    "root-missing": Rule("A folder that the user named does not exist.", "warn"),
    "root-not-a-directory": Rule("A root exists and is not a folder.", "reject", fixed=True),
    "root-unreadable": Rule("A root cannot be opened or listed.", "reject", fixed=True),
    "root-link": Rule("A root is a link whose target the link rule does not allow.", "reject", fixed=True),
    "root-file": Rule("A SKILL.md lies in a root itself instead of in a folder below it.", "reject"),
    "home-missing": Rule("There is no usable home folder.", "warn"),
    "boundary-outside": Rule("The configured boundary is not above the working directory.", "warn"),
    "plugins-unreadable": Rule("The list of installed plugins cannot be read.", "warn"),
    "settings-unreadable": Rule("A file in which a host records what it trusts cannot be read.", "warn"),
    # A folder or file
    "walk-limit": Rule("A root holds too many folders without a skill; the walk stopped.", "reject", fixed=True),
    "unreadable": Rule("A folder or SKILL.md cannot be read.", "reject", fixed=True),
    "not-a-file": Rule("SKILL.md is a pipe, socket, device or folder.", "reject", fixed=True),
    "file-size": Rule("SKILL.md is larger than the limit; it was not read.", "reject", fixed=True),
    "file-name": Rule("A file that looks like a SKILL.md has another name.", "warn"),
    "path-encoding": Rule("A path is not UTF-8 or holds a control character.", "reject", fixed=True),
    "link-outside": Rule("A link leads out of what this root may reach.", "reject", fixed=True),
    "link-skipped": Rule("A link, in a profile that follows none.", "reject", fixed=True),
    "link-broken": Rule("A link leads nowhere.", "warn"),
    "link-loop": Rule("A link leads back to a folder that was already visited.", "warn"),
    "too-deep": Rule("A SKILL.md lies deeper than the profile looks.", "warn"),
    "inside-skill": Rule("A SKILL.md lies inside another skill and is no skill of its own.", "info"),
    # The form of a SKILL.md
    "encoding": Rule("The frontmatter is not UTF-8.", "reject", fixed=True),
    "control-character": Rule("The frontmatter holds NUL or another control character.", "reject", fixed=True),
    "bom": Rule("The file begins with a byte order mark.", "warn"),
    "crlf": Rule("The line ends are CRLF.", "info"),
    "fence-blanks": Rule("Blanks follow the opening fence.", "info"),
    "frontmatter-missing": Rule("The file does not begin with a line `---`.", "reject"),
    "frontmatter-unclosed": Rule("The frontmatter has no closing line `---`.", "reject"),
    "frontmatter-size": Rule("The frontmatter is larger than the limit.", "reject", fixed=True),
    "frontmatter-depth": Rule("The frontmatter is nested too deeply.", "reject", fixed=True),
    "frontmatter-keys": Rule("The frontmatter has too many keys.", "reject", fixed=True),
    "frontmatter-type": Rule("The frontmatter is not a map of fields.", "reject"),
    "yaml": Rule("The frontmatter is not readable YAML.", "reject"),
    "yaml-alias": Rule("The frontmatter uses a YAML alias.", "reject", fixed=True),
    "yaml-tag": Rule("The frontmatter uses a YAML tag.", "reject", fixed=True),
    "yaml-merge": Rule("The frontmatter uses a YAML merge key.", "reject", fixed=True),
    "yaml-duplicate-key": Rule("A key stands twice in one map.", "reject", fixed=True),
    "yaml-key": Rule("A list or a map is used as a key.", "reject", fixed=True),
    "yaml-value": Rule(
        "A number has no exact JSON form (beyond 64 bits, infinite, not a number).", "reject", fixed=True
    ),
    "yaml-colon": Rule("An unquoted value holds `: `; it was read as if quoted.", "warn"),
    "yaml-brackets": Rule("An unquoted value begins like a list and is none; it was read as if quoted.", "warn"),
    "yaml-tab": Rule("A line is indented with tabs; they were read as two blanks each.", "warn"),
    "yaml-lines": Rule("The frontmatter is not readable YAML; it was read as `key: value` lines.", "warn"),
    # Its fields
    "name-missing": Rule("There is no name; the folder's name is taken where this does not reject.", "warn"),
    "name-type": Rule("The name is not text.", "warn"),
    "name-address": Rule("The name is empty, `.`, `..`, or holds a slash or control character.", "reject", fixed=True),
    "name-length": Rule("The name is longer than the profile allows.", "warn"),
    "name-pattern": Rule("The name is not lower-case letters, digits and single hyphens.", "warn"),
    "name-directory": Rule("The name differs from the name of the folder.", "warn"),
    "name-collision": Rule("Two skills have one name.", "warn"),
    "description-missing": Rule("There is no description.", "reject"),
    "description-type": Rule("The description is not text.", "warn"),
    "description-length": Rule("The description is longer than the profile allows.", "warn"),
    "license-type": Rule("`license` is not text.", "info"),
    "version-type": Rule("`version` is not text.", "info"),
    "compatibility-type": Rule("`compatibility` is not text.", "warn"),
    "compatibility-length": Rule("`compatibility` is empty or longer than the profile allows.", "warn"),
    "metadata-type": Rule("`metadata` is not a map.", "warn"),
    "metadata-values": Rule("A value in `metadata` is not text.", "info"),
    "allowed-tools-type": Rule("`allowed-tools` is neither text nor a list of texts.", "warn"),
    "allowed-tools-list": Rule("`allowed-tools` is a list where the standard asks for one text.", "info"),
    "field-type": Rule("A field that the profile wants as text is something else.", "warn"),
    "globs-type": Rule("`globs` is not a list of texts.", "info"),
    "always-apply-type": Rule("`alwaysApply` is not true or false.", "info"),
    "unknown-field": Rule("A field is not one that the profile knows.", "info"),
    "hidden-text": Rule("Name or description holds invisible, bidirectional, tag or control characters.", "warn"),
    # What only `check` looks at: the body, and the files beside it
    "description-cut": Rule("The description ends at ` #`, where YAML begins a comment.", "warn"),
    "description-vague": Rule("The description is too short to choose the skill by.", "warn"),
    "description-when": Rule("The description does not say when to use the skill.", "info"),
    "description-long": Rule("The description is longer than it needs to be.", "info"),
    "body-empty": Rule("Nothing follows the frontmatter.", "warn"),
    "body-encoding": Rule("The text after the frontmatter is not UTF-8, so it cannot be loaded.", "reject"),
    "body-control-character": Rule("The text holds NUL or another control character.", "warn"),
    "body-lines": Rule("The text has more than 500 lines.", "info"),
    "body-tokens": Rule("The text has more than 5,000 tokens.", "info"),
    "reference-missing": Rule("A file that the text names does not exist.", "warn"),
    "reference-outside": Rule("A link leads out of the skill's folder.", "info"),
    "reference-deep": Rule("A file can be reached only by way of another reference.", "info"),
    "script-shebang": Rule("A script does not say what runs it.", "info"),
    "script-run-bit": Rule("A script cannot be run: its file mode does not allow it.", "info"),
    "check-limit": Rule("The skill has more pages or scripts than `check` looks at.", "info"),
    "skill-unknown": Rule("The text names a skill that is not here.", "info"),
    "skill-cycle": Rule("Skills name each other in a circle.", "info"),
    # What other hosts make of it
    "portability-safeguard": Rule("A field that holds something back is ignored by some hosts.", "info"),
    "portability-field": Rule("A field has an effect in some hosts only.", "info"),
    # A load
    "changed": Rule("The file changed since the catalog was made.", "warn"),
    "closing-tag": Rule("The text holds the closing tag of the element around it, which was made harmless.", "warn"),
    # The configuration
    "config-untrusted": Rule("A project's configuration asks for what only a trusted folder may.", "warn"),
    "skills-disabled": Rule("Skills are switched off in the configuration.", "warn"),
    # Ourselves
    "internal": Rule("skillshelf failed on this file; please report it.", "reject", fixed=True),
}


def severities(deviations: Mapping[str, Severity], base: Mapping[str, Severity] | None = None) -> dict[str, Severity]:
    """A weight for every rule: those given, over those of the base or of the rule book."""
    whole = dict(base) if base else {rule: entry.severity for rule, entry in RULES.items()}
    return {**whole, **deviations}
