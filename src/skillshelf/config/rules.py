"""Define every rule: id, severity, summary, why it exists and how to fix what it finds.

`severity` applies where a profile does not set another one; `strict` applies where the specification is taken to the
letter. A `fixed` rule has the same severity in every profile: it rejects what is unsafe, unreadable or not an address.
"""

from skillshelf.core.records import NamedTuple
from skillshelf.core.values import Severity

__all__ = ["RULES", "Rule"]


class Rule(NamedTuple):
    """One rule about a skill, a folder or a root."""

    severity: Severity
    summary: str
    why: str
    how_to_fix: str
    strict: Severity | None = None
    fixed: bool = False


_UNQUOTED = "YAML reads such a value as something else, or not at all; most agents then silently skip the skill."
_LIMIT = "A reader without limits can be blocked or exhausted by one file."

RULES: dict[str, Rule] = {
    # A root
    "root-missing": Rule(
        "warn",
        "A folder that the user named does not exist.",
        "You named a folder of skills that does not exist, so its skills are missing everywhere.",
        "Correct the path in the variable or the configuration, or create the folder.",
    ),
    "root-not-a-directory": Rule(
        "reject",
        "A root exists and is not a folder.",
        "Skills are searched in folders; this is something else.",
        "Move it away and create a folder of that name.",
        fixed=True,
    ),
    "root-unreadable": Rule(
        "reject",
        "A root cannot be opened or listed.",
        "The system does not allow us to list the folder, so no skill in it is found.",
        "Allow yourself to read it: chmod u+rx.",
        fixed=True,
    ),
    "root-link": Rule(
        "reject",
        "A root is a link whose target the link rule does not allow.",
        "A cloned repository must not reach outside itself through a link.",
        "Move the folder into the repository, or name the link's target as a root of your own.",
        fixed=True,
    ),
    "root-file": Rule(
        "reject",
        "A SKILL.md is in a root itself instead of in a folder below it.",
        "A skill is a folder with a SKILL.md; a SKILL.md beside those folders belongs to no skill.",
        "Move it into a folder that has the skill's name.",
    ),
    "home-missing": Rule(
        "warn",
        "There is no usable home folder.",
        "Your own skills are in folders below the home folder.",
        "Set HOME to an absolute path.",
    ),
    "boundary-outside": Rule(
        "warn",
        "The configured boundary is not above the working directory.",
        "A boundary that is not above the working directory has no effect.",
        "Name a folder above the working directory.",
    ),
    "plugins-unreadable": Rule(
        "warn",
        "The list of installed plugins cannot be read.",
        "The list names the folders of installed plugins.",
        "Correct the file, or install the plugin again.",
    ),
    "settings-unreadable": Rule(
        "warn",
        "A file in which a host records what it trusts cannot be read.",
        "The file says whether a host trusts a folder, and so whether the host reads it.",
        "Correct the file.",
    ),
    # A folder or file
    "walk-limit": Rule(
        "reject",
        "A root has too many folders without a skill; the search stopped.",
        "A search without a limit would delay every agent that starts.",
        "Keep skills in a folder of their own, away from large trees, or raise `max_directories`.",
        fixed=True,
    ),
    "unreadable": Rule(
        "reject",
        "A folder or SKILL.md cannot be read.",
        "A file that cannot be read cannot be listed.",
        "Allow yourself to read it: chmod u+r, for folders u+rx.",
        fixed=True,
    ),
    "not-a-file": Rule(
        "reject",
        "SKILL.md is a pipe, socket, device or folder.",
        "Reading a pipe or a device can hang or have side effects; a link without a target has no text.",
        "Replace it with a regular file.",
        fixed=True,
    ),
    "file-size": Rule(
        "reject",
        "SKILL.md is larger than the limit; it was not read.",
        "An agent reads SKILL.md as a whole; more than a megabyte does not fit into a context.",
        "Move data into files beside it and name them in the text.",
        fixed=True,
    ),
    "file-name": Rule(
        "warn",
        "A file that looks like a SKILL.md has another name.",
        "Agents look for `SKILL.md` in this spelling; on most systems another spelling is another file.",
        "Rename the file to SKILL.md.",
    ),
    "file-case": Rule(
        "warn",
        "A file beside SKILL.md differs from it only in upper and lower case.",
        "On a disk that ignores case, as on most Macs, one of the two replaces the other, and may be the skill.",
        "Rename the file, or remove it.",
    ),
    "path-encoding": Rule(
        "reject",
        "A path is not UTF-8 or contains a control character.",
        "A path that is not text cannot be printed, stored or sent to a model.",
        "Rename the folder.",
        fixed=True,
    ),
    "link-outside": Rule(
        "reject",
        "A link leads outside the folders that this root may reach.",
        "A cloned repository must not reach outside itself through a link.",
        "Copy the skill here, or name the folder that contains it as a root of your own.",
        fixed=True,
    ),
    "link-skipped": Rule(
        "reject",
        "A link in a profile that follows no links.",
        "The system of this profile follows no links.",
        "Copy the skill instead of linking it.",
        fixed=True,
    ),
    "link-broken": Rule(
        "warn",
        "A link has no target.",
        "No skill can be read through the link.",
        "Correct the link or remove it.",
    ),
    "link-loop": Rule(
        "warn",
        "A link leads back to a folder that was already visited.",
        "Following the link again finds nothing new.",
        "Remove the link.",
    ),
    "too-deep": Rule(
        "warn",
        "A SKILL.md is deeper than the profile searches.",
        "Agents search only a few levels deep, and most only one.",
        "Move the skill's folder directly below the root.",
    ),
    "inside-skill": Rule(
        "info",
        "A SKILL.md is inside another skill and is not a skill of its own.",
        "A folder below a skill belongs to that skill; agents do not search it for skills.",
        "Move it beside the outer skill if it is meant to be a skill; leave it if it is an example.",
    ),
    # The form of a SKILL.md
    "encoding": Rule(
        "reject",
        "The frontmatter is not UTF-8.",
        "Agents read UTF-8; they misread or reject any other encoding.",
        "Save the file as UTF-8.",
        fixed=True,
    ),
    "control-character": Rule(
        "reject",
        "The frontmatter contains NUL or another control character.",
        "YAML forbids control characters, and a terminal would obey them.",
        "Delete the character at that position.",
        fixed=True,
    ),
    "bom": Rule(
        "warn",
        "The file begins with a byte order mark.",
        "Several agents expect `---` as the first three bytes and do not see the skill.",
        "`--fix` removes the mark; in an editor, save as UTF-8 without BOM.",
    ),
    "crlf": Rule(
        "info",
        "Lines end with CRLF.",
        "Some readers keep the carriage return as part of a value or miss the fence.",
        "`--fix` converts the lines to LF; keep them so with `*.md text eol=lf` in .gitattributes.",
    ),
    "fence-blanks": Rule(
        "info",
        "Blanks follow the opening fence.",
        "Some agents compare the first line with `---` exactly and skip the file.",
        "`--fix` deletes the blanks.",
    ),
    "frontmatter-missing": Rule(
        "reject",
        "The file does not begin with a line `---`.",
        "Name and description are read from the lines between two `---`; without them there is no skill.",
        "Begin the file, on its first line, with `---`, name, description and `---`.",
    ),
    "frontmatter-unclosed": Rule(
        "reject",
        "The frontmatter has no closing line `---`.",
        "Without a second `---` the end of the fields is unknown.",
        "Add a line `---` after the last field.",
    ),
    "frontmatter-size": Rule(
        "reject",
        "The frontmatter is larger than the limit.",
        _LIMIT,
        "Keep the fields short; long text belongs below the frontmatter.",
        fixed=True,
    ),
    "frontmatter-depth": Rule(
        "reject",
        "The frontmatter is nested too deeply.",
        _LIMIT,
        "Use flat fields.",
        fixed=True,
    ),
    "frontmatter-keys": Rule(
        "reject",
        "The frontmatter has too many keys.",
        _LIMIT,
        "Move data into a file beside SKILL.md.",
        fixed=True,
    ),
    "frontmatter-type": Rule(
        "reject",
        "The frontmatter is not a map of fields.",
        "A list or a sentence has no field `name`.",
        "Write one `key: value` per line between the fences.",
    ),
    "yaml": Rule(
        "reject",
        "The frontmatter is not readable YAML.",
        "Most agents silently skip a skill whose frontmatter cannot be read.",
        "Correct the reported line; quote values that contain `:`, `#`, quotes or brackets.",
    ),
    "yaml-alias": Rule(
        "reject",
        "The frontmatter uses a YAML alias.",
        "A few lines of aliases can expand to gigabytes, and many readers refuse them.",
        "Write the value out.",
        fixed=True,
    ),
    "yaml-tag": Rule(
        "reject",
        "The frontmatter uses a YAML tag.",
        "Tags ask the reader to create objects; most readers refuse or ignore them.",
        "Delete the tag.",
        fixed=True,
    ),
    "yaml-merge": Rule(
        "reject",
        "The frontmatter uses a YAML merge key.",
        "Merge keys are not part of YAML 1.2.",
        "Write the fields out.",
        fixed=True,
    ),
    "yaml-duplicate-key": Rule(
        "reject",
        "A key occurs twice in one map.",
        "One reader takes the first, another the last, a third refuses the file.",
        "Keep one of them.",
        fixed=True,
    ),
    "yaml-key": Rule(
        "reject",
        "A list or a map is used as a key.",
        "Fields are found by their name, which is text.",
        "Use a word as key.",
        fixed=True,
    ),
    "yaml-value": Rule(
        "reject",
        "A number has no exact JSON form (beyond 64 bits, infinite, not a number).",
        "An agent would receive another value.",
        "Quote the value.",
        fixed=True,
    ),
    "yaml-colon": Rule(
        "warn",
        "An unquoted value contains `: `; it was read as if quoted.",
        _UNQUOTED,
        "`--fix` quotes the value.",
        strict="reject",
    ),
    "yaml-brackets": Rule(
        "warn",
        "An unquoted value begins like a list but is not one; it was read as if quoted.",
        _UNQUOTED,
        "`--fix` quotes the value.",
        strict="reject",
    ),
    "yaml-tab": Rule(
        "warn",
        "A line is indented with tabs; they were read as two blanks each.",
        "YAML forbids tabs as indentation.",
        "`--fix` replaces each tab with two blanks, unless a wider tab would change the meaning.",
        strict="reject",
    ),
    "yaml-lines": Rule(
        "warn",
        "The frontmatter is not readable YAML; it was read as `key: value` lines.",
        "Some agents read such a file line by line, others skip it.",
        "Write valid YAML, with text as values.",
    ),
    # Its fields
    "name-missing": Rule(
        "warn",
        "There is no name; unless that is rejected, the folder's name is used.",
        "The specification requires it; some agents skip a skill without a name.",
        "`--fix` uses the folder's name.",
        strict="reject",
    ),
    "name-type": Rule(
        "warn",
        "The name is not text.",
        "A number or a truth value is not a name.",
        "Quote the value.",
        strict="reject",
    ),
    "name-address": Rule(
        "reject",
        "The name is empty, `.`, `..`, or contains a slash or control character.",
        "Names become addresses, commands and file names.",
        "Use lower-case letters, digits and hyphens.",
        fixed=True,
    ),
    "name-length": Rule(
        "warn",
        "The name is longer than the profile allows.",
        "The specification allows 64 characters.",
        "Choose a shorter name for folder and field.",
        strict="reject",
    ),
    "name-pattern": Rule(
        "warn",
        "The name is not lower-case letters, digits and single hyphens.",
        "The specification allows lower-case letters, digits and single hyphens; some agents reject other names.",
        "Rename the folder accordingly, then `--fix` uses its name.",
        strict="reject",
    ),
    "name-directory": Rule(
        "warn",
        "The name differs from the name of the folder.",
        "The specification requires both to be the same: some agents use one, some the other.",
        "`--fix` uses the folder's name; if the field is right, rename the folder instead.",
        strict="reject",
    ),
    "name-collision": Rule(
        "warn",
        "Two skills have the same name.",
        "Only one of them can be called by its name, and which one depends on the agent.",
        "Rename one of them.",
    ),
    "name-confusable": Rule(
        "warn",
        "Two names look the same and are not.",
        "Letters of other scripts, and `1` for `l` or `rn` for `m`, let one skill pass for another.",
        "Rename one of them, and look at where the other comes from.",
    ),
    "description-missing": Rule(
        "reject",
        "There is no description.",
        "A model selects the skill by its description alone.",
        "Say in one or two sentences what the skill does and when to use it.",
    ),
    "description-type": Rule(
        "warn",
        "The description is not text.",
        "A description is read as text.",
        "Quote the value.",
        strict="reject",
    ),
    "description-length": Rule(
        "warn",
        "The description is longer than the profile allows.",
        "The specification allows 1,024 characters; agents cut or skip longer descriptions.",
        "Keep what helps to select the skill, and move the rest below the frontmatter.",
        strict="reject",
    ),
    "license-type": Rule(
        "info",
        "`license` is not text.",
        "The specification requires text.",
        "Quote the value.",
    ),
    "version-type": Rule(
        "info",
        "`version` is not text.",
        "`1.10` without quotes is the number 1.1.",
        "Quote the value.",
    ),
    "compatibility-type": Rule(
        "warn",
        "`compatibility` is not text.",
        "The specification requires text.",
        "Write one sentence.",
        strict="reject",
    ),
    "compatibility-length": Rule(
        "warn",
        "`compatibility` is empty or longer than the profile allows.",
        "The specification allows 1 to 500 characters.",
        "Shorten it, or remove it.",
        strict="reject",
    ),
    "metadata-type": Rule(
        "warn",
        "`metadata` is not a map.",
        "The specification requires a map of texts.",
        "Write one `key: value` per line below it.",
        strict="reject",
    ),
    "metadata-values": Rule(
        "info",
        "A value in `metadata` is not text.",
        "The specification requires texts; a strict reader refuses numbers, lists and maps.",
        "Quote each value.",
    ),
    "allowed-tools-type": Rule(
        "warn",
        "`allowed-tools` is neither text nor a list of texts.",
        "Agents read one text.",
        "Write the tools on one line, separated by blanks.",
        strict="reject",
    ),
    "allowed-tools-list": Rule(
        "info",
        "`allowed-tools` is a list where the standard asks for one text.",
        "The specification requires one text; not every agent reads a list.",
        "Write the tools on one line, separated by blanks.",
    ),
    "field-type": Rule(
        "warn",
        "A field that must be text in this profile is not text.",
        "An agent that requires text there skips the skill.",
        "Quote the value.",
    ),
    "globs-type": Rule(
        "info",
        "`globs` is not a list of texts.",
        "Patterns are matched one by one.",
        "Write a list of texts.",
    ),
    "always-apply-type": Rule(
        "info",
        "`alwaysApply` is not true or false.",
        "The field is a switch.",
        "Write true or false.",
    ),
    "unknown-field": Rule(
        "info",
        "The profile does not know this field.",
        "Other agents ignore it; if it is misspelt, so does yours.",
        "Correct the spelling, or move data of your own below `metadata`.",
    ),
    "hidden-text": Rule(
        "warn",
        "Name or description contains invisible, bidirectional, tag or control characters.",
        "People do not see it but models obey it, so it can smuggle instructions.",
        "Delete it.",
    ),
    # What only `check` looks at: the body, and the files beside it
    "description-cut": Rule(
        "warn",
        "The description ends at ` #`, where YAML begins a comment.",
        "YAML reads everything after ` #` as a comment: no agent ever sees it.",
        "Quote the whole description.",
    ),
    "description-vague": Rule(
        "warn",
        "The description is too short to select the skill by.",
        "A model selects among dozens of skills by this text; fewer than six words rarely distinguish them.",
        "Say what the skill does and produces, and when to use it, in words that users type.",
    ),
    "description-when": Rule(
        "info",
        "The description does not say when to use the skill.",
        "A model that does not know when to use a skill uses it too rarely.",
        'Add a sentence such as "Use when the user asks for ...".',
    ),
    "description-long": Rule(
        "info",
        "The description is longer than necessary.",
        "Every conversation contains every description; agents cut them when there are many.",
        "Keep what helps to select the skill, within 500 characters.",
    ),
    "body-empty": Rule(
        "warn",
        "Nothing follows the frontmatter.",
        "Loading the skill gives a model nothing.",
        "Write instructions, step by step.",
    ),
    "body-encoding": Rule(
        "reject",
        "The text after the frontmatter is not UTF-8, so it cannot be loaded.",
        "The skill is listed but cannot be loaded.",
        "Save the file as UTF-8.",
    ),
    "body-control-character": Rule(
        "warn",
        "The text contains NUL or another control character.",
        "It has no meaning in Markdown; a terminal would obey it, and some tools treat the file as binary.",
        "Delete the character at that position.",
    ),
    "body-lines": Rule(
        "info",
        "The text has more than 500 lines.",
        "The specification recommends at most 500 lines: all of them are loaded each time.",
        "Move what only some tasks need to references/, and say in the text when to read it.",
    ),
    "body-tokens": Rule(
        "info",
        "The text has more than 5,000 tokens.",
        "The specification recommends at most 5,000 tokens (bytes / 4): all of them are loaded each time.",
        "Move what only some tasks need to references/, and say in the text when to read it.",
    ),
    "reference-missing": Rule(
        "warn",
        "A file that the text names does not exist.",
        "A model that follows the text finds nothing, and guesses.",
        "Correct the path, add the file, or remove the sentence.",
    ),
    "reference-outside": Rule(
        "info",
        "A link leads outside the skill's folder.",
        "A skill is installed as one folder; files beside it are not installed.",
        "Copy the file into the skill.",
    ),
    "reference-deep": Rule(
        "info",
        "A file can be reached only through another reference.",
        "A model reads what SKILL.md names; it reads other files late, in part or never.",
        "Name the file in SKILL.md, and say when it is needed.",
    ),
    "script-shebang": Rule(
        "info",
        "A script does not name its interpreter.",
        "Without `#!` only people who know the interpreter can run the script.",
        "Begin the file with a line such as `#!/usr/bin/env python3`.",
    ),
    "script-run-bit": Rule(
        "info",
        "A script is not executable.",
        "The system refuses to run it by its path.",
        "chmod +x, and git add the new mode.",
    ),
    "file-name-encoding": Rule(
        "warn",
        "The name of a file is not UTF-8, or contains a control character or backslash.",
        "Many programs cannot show, copy or open such a file; with a control character or backslash it has no address.",
        "Rename the file.",
    ),
    "check-limit": Rule(
        "info",
        "The skill has more pages or scripts than `check` reads.",
        _LIMIT,
        "There is nothing to fix; the files beyond the limit were not checked.",
    ),
    "skill-unknown": Rule(
        "info",
        "The text names a skill that does not exist here.",
        "A model cannot follow a reference to a skill that does not exist.",
        "Correct the name, install the skill, or say where it comes from.",
    ),
    "skill-cycle": Rule(
        "info",
        "Skills refer to each other in a cycle.",
        "Skills that refer to each other can fill a context with one another.",
        "Let one of them refer to the others, and remove the references back.",
    ),
    # What other hosts make of it
    "portability-safeguard": Rule(
        "info",
        "A field that restricts the skill is ignored by some hosts.",
        "Hosts that ignore the field do not apply its restriction.",
        "Say it in the text, too, or keep the skill away from those agents.",
    ),
    "portability-field": Rule(
        "info",
        "A field has an effect in some hosts only.",
        "The skill behaves differently from agent to agent.",
        "Do not let the skill depend on the field.",
    ),
    # A load
    "changed": Rule(
        "warn",
        "The file changed after the catalog was built.",
        "The loaded text is not the listed one.",
        "Refresh the catalog.",
    ),
    "closing-tag": Rule(
        "warn",
        "The text contains the closing tag of the element around it; the tag was escaped.",
        "A text must not end the element that contains it.",
        "Write the tag in another way.",
    ),
    # The configuration
    "config-untrusted": Rule(
        "warn",
        "A project's configuration requests what only a trusted folder may have.",
        "A project must not extend its own rights.",
        "Trust the folder if you trust its content.",
    ),
    "skills-disabled": Rule(
        "warn",
        "Skills are disabled in the configuration.",
        "You, or this project, disabled skills.",
        "Set `skills.enabled = true`.",
    ),
    # Ourselves
    "internal": Rule(
        "reject",
        "skillshelf failed on this file; please report it.",
        "It is an error in skillshelf, not in your skill.",
        "Please report it, with the file if possible.",
        fixed=True,
    ),
}
