"""Define every rule: id, severity, summary, why it exists and how to fix what it finds.

`severity` applies where a profile does not set another one; `strict` applies where the specification is taken to the
letter. A `fixed` rule has the same severity in every profile: it rejects what is unsafe, unreadable or not an address.
"""

from skillshelf.core.records import NamedTuple
from skillshelf.core.text import did_you_mean
from skillshelf.core.values import Severity

__all__ = ["RULES", "Rule", "rules_like", "unknown_rule"]


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
    "file-empty": Rule(
        "reject",
        "The file is empty, and the agent lists no empty file.",
        "Some agents leave out a SKILL.md without text, although they list one without frontmatter.",
        "Begin the file with `---`, name, description and `---`; write the instructions below.",
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
        "Rename the folder accordingly, then `--fix=names` uses its name.",
        strict="reject",
    ),
    "name-directory": Rule(
        "warn",
        "The name differs from the name of the folder.",
        "The specification requires both to be the same: some agents use one, some the other.",
        "`--fix=names` uses the folder's name; if the field is right, rename the folder instead.",
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
    "description-collision": Rule(
        "warn",
        "The description says nearly the same as that of another skill that is checked.",
        "A model chooses by descriptions; of two that share nearly all their words it takes either, or the wrong one.",
        "Say in both what only this skill does, or make one skill of the two; `skillshelf eval` shows the words.",
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
    # Attacks: in every text file of the skill
    "security-override": Rule(
        "reject",
        "A text tells the agent to ignore or override its instructions.",
        "A skill that tries to replace the instructions of system or user works against both.",
        "Remove the text. If you did not write the skill, do not use it.",
    ),
    "security-concealment": Rule(
        "reject",
        "A text tells the agent to hide something from the user.",
        "There is hardly an honest reason to keep the user from knowing what an agent does on their machine.",
        "Remove the text, or say openly what is done. If you did not write the skill, do not use it.",
    ),
    "security-hidden-instructions": Rule(
        "reject",
        "A comment or unshown text holds orders for a model.",
        "A reader of the page does not see it, a model does: this is how orders are smuggled past a review.",
        "Write the instruction where people can read it, or remove it.",
    ),
    "security-reverse-shell": Rule(
        "reject",
        "A command opens a shell for somebody on the network.",
        "Whoever listens at the other end controls this machine.",
        "Remove the command. In a text about such attacks, say so in the sentence before it.",
    ),
    "security-exfiltration": Rule(
        "reject",
        "Secrets or private data are sent to the network.",
        "Keys, tokens and conversations that left the machine cannot be called back.",
        "Remove it; let a tool with a login of its own do the transfer. If you did not write the skill, do not use it.",
    ),
    "security-encoded-payload": Rule(
        "reject",
        "Encoded text decodes to commands, or is decoded and run.",
        "Encoding keeps readers and scanners from seeing what will run.",
        "Write the commands as they are.",
    ),
    "security-obfuscated-command": Rule(
        "reject",
        "A command is spelt so that a search misses it.",
        "Quotes within words, variables in place of commands and similar tricks have no other purpose in a skill.",
        "Write the command as it is.",
    ),
    "security-pipe-to-shell": Rule(
        "warn",
        "A download is run at once, from a host that is not a known publisher.",
        "Nobody sees what runs, and the server can send something else to each caller.",
        "Download to a file, check its digest, read it, then run it; or use a package manager.",
    ),
    "security-download-run": Rule(
        "warn",
        "A program is downloaded and run, or an archive with a password is unpacked.",
        "The program is not part of the skill, so no review and no digest of the skill covers it.",
        "Ship the script with the skill, or name a package of a registry with its version.",
    ),
    "security-credentials": Rule(
        "warn",
        "Keys, passwords or tokens of this machine are read.",
        "A skill that reads private keys or stores of passwords can hand them to anybody.",
        "Let the tool that owns the secret use it; do not read it.",
    ),
    "security-secret-request": Rule(
        "warn",
        "The user is asked for a secret that nobody should hand to an agent.",
        "What is typed into a conversation is stored and sent; such a secret gives away everything.",
        "Let the user enter the secret into the program that needs it.",
    ),
    "security-hidden-text": Rule(
        "warn",
        "A file has characters or a place for text that a reader does not see.",
        "Tag characters, zero width, changes of direction and long gaps hide text from people but not from models.",
        "Delete them.",
    ),
    "security-persistence": Rule(
        "warn",
        "Something is installed outside the skill that starts by itself later.",
        "It goes on after the skill is removed, and runs without an agent that could be watched.",
        "Tell the user what to install and why, and let them do it.",
    ),
    "security-agent-settings": Rule(
        "warn",
        "The settings, permissions or servers of an agent are changed.",
        "A skill that changes what an agent may do removes the limits that hold for it.",
        "Tell the user which setting is needed and why, and let them change it.",
    ),
    "security-safety-off": Rule(
        "warn",
        "A protection of this machine is switched off, or traces are removed.",
        "Quarantine, firewalls and scanners stop exactly what a malicious skill installs.",
        "Remove the command; sign the program or distribute it through a registry.",
    ),
    "security-destruction": Rule(
        "warn",
        "A command destroys data outside the skill.",
        "One wrong run deletes a home folder or a disk.",
        "Name the exact files, or ask the user first.",
    ),
    "security-miner": Rule(
        "warn",
        "A miner of cryptocurrency is named or started.",
        "Miners are a usual payload of malicious packages.",
        "Remove it.",
    ),
    "security-backdoor": Rule(
        "warn",
        "Code lets somebody in who knows a fixed word.",
        "Whoever reads the skill can enter every program that is made with it.",
        "Compare with a value that each user sets, and remove the fixed one.",
    ),
    "security-remote-instructions": Rule(
        "warn",
        "Instructions are taken from an address that is not a known publisher.",
        "Their author can change them at any time, after every review.",
        "Put the instructions into the skill.",
    ),
    "security-binary": Rule(
        "warn",
        "The skill contains a compiled program.",
        "Nobody can read what it does before it runs.",
        "Ship the source, or name a package of a registry.",
    ),
    "security-unchecked": Rule(
        "warn",
        "A file or link of the skill was not checked.",
        "What a checker did not read it cannot vouch for.",
        "Remove the file, split it, or replace the link by a file.",
    ),
    "security-installer": Rule(
        "info",
        "A download of a known publisher is installed or run at once.",
        "It is the documented way of many tools, but what runs is whatever the server sends that day.",
        "Name a package of a registry with its version where there is one.",
    ),
    "security-odd-host": Rule(
        "info",
        "An address leads to a number, a paste, a tunnel, a hook or a short link.",
        "Such addresses say nothing about who is behind them, and are usual in attacks.",
        "Use an address under a name of your own.",
    ),
    "security-startup-file": Rule(
        "info",
        "A start-up file of the shell is changed.",
        "The change stays after the skill is removed.",
        "Tell the user what to add, and let them do it.",
    ),
    "security-agent-memory": Rule(
        "info",
        "A file is changed that tells agents what to do in other sessions.",
        "The text counts from then on in every session, also without the skill.",
        "Ask the user first, and show the text.",
    ),
    "security-approval-off": Rule(
        "info",
        "An agent is started or told to act without approval.",
        "Without approval nothing stops a wrong or malicious step.",
        "Name the tools that need no approval instead of all.",
    ),
    "security-remote-page": Rule(
        "info",
        "Instructions are taken from a page of a known publisher.",
        "Their author can change them at any time, after every review.",
        "Put the instructions into the skill, or name a fixed version of the page.",
    ),
    "security-mention": Rule(
        "info",
        "A page shows or names what would be an attack if it were meant as an order.",
        "Texts about security quote attacks; a malicious text may pretend to be one.",
        "There is nothing to fix if the text is about security; read the lines.",
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
    # Comments that ignore findings
    "ignore-unknown": Rule(
        "warn",
        "A comment ignores a rule that does not exist.",
        "The comment has no effect, and its author believes that it has one.",
        "Correct the name; `skillshelf explain` lists the rules.",
    ),
    "ignore-refused": Rule(
        "warn",
        "A comment ignores a rule that no comment can switch off.",
        "A file must not vouch for itself: rules about security, and those that reject a skill, are for its readers.",
        "Remove the comment; to accept the finding, use a baseline, `--ignore`, or `[check]` in the configuration.",
    ),
    "ignore-unused": Rule(
        "info",
        "A comment ignores a rule that finds nothing in this file.",
        "What was ignored is fixed; the comment would hide the next finding of that rule.",
        "Remove the rule from the comment.",
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
    "policy-unusable": Rule(
        "warn",
        "The system policy cannot be used, so no model is served.",
        "Nobody knows what a file forbids that is broken, or that somebody else may have written.",
        "Ask whoever administers the machine; `skillshelf policy` says what is wrong.",
    ),
    "policy-required": Rule(
        "reject",
        "A skill that the system policy requires is missing or hidden.",
        "No model is told less than the policy says, so none is served.",
        "Install the skill, or take away what hides it.",
        fixed=True,
    ),
    # A live source
    "source-failed": Rule(
        "reject",
        "A source that a program opened does not answer, or offers something that cannot be accepted.",
        "What a source says is untrusted: its names, sizes and digests are checked before anything of it is used.",
        "Correct the source, or leave it out of `open_shelf(sources=[...])`.",
        fixed=True,
    ),
    "source-note": Rule(
        "warn",
        "A source that a program opened has a remark about what it offers.",
        "It left something out, or offers it in an old form.",
        "Tell whoever runs the source, if you miss a skill.",
    ),
    # Locks
    "lock-changed": Rule(
        "reject",
        "An installed skill whose files are not those that its lock names.",
        "Whoever installed it looked at other files; these were changed afterwards, by a person or by a program.",
        "See them with `skillshelf verify`, then `skillshelf update NAME --restore` or `--accept`.",
        fixed=True,
    ),
    "lock-extra": Rule(
        "info",
        "An installed skill has a `__pycache__` folder that it was installed without.",
        "Python makes such folders beside scripts; what is in them is never listed, read or run.",
        "Delete the folder; set PYTHONDONTWRITEBYTECODE=1 where scripts run in place.",
    ),
    "lock-missing": Rule(
        "warn",
        "A lock names a skill whose folder is not there.",
        "Everybody who works with this lock expects the skill.",
        "Run `skillshelf install`, or `skillshelf remove NAME`.",
    ),
    "lock-outside": Rule(
        "reject",
        "A lock names a skill whose folder leads out of its project.",
        "The lock of a project speaks only of folders below that project.",
        "Replace the link by the skill itself: `skillshelf update NAME --restore`.",
        fixed=True,
    ),
    "lock-unusable": Rule(
        "reject",
        "A lock cannot be read, so the skills that it may name are not handed out.",
        "Nobody can tell which files they must have; guessing would accept any.",
        "Resolve the merge conflict, or restore the file from version control.",
        fixed=True,
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


def rules_like(word: str) -> tuple[str, ...]:
    """Return the rules that a word stands for: an id, the beginning of ids before `*`, or a group such as `name`."""
    if word in RULES:
        return (word,)
    start = word[:-1] if word.endswith("*") else f"{word}-"
    return tuple(rule for rule in RULES if rule.startswith(start)) if word else ()


def unknown_rule(word: str) -> str:
    """Return the message about a word that stands for no rule, with the nearest one."""
    groups = dict.fromkeys(rule.partition("-")[0] for rule in RULES)
    hint = did_you_mean(word, [*RULES, *groups]) or " (all rules: skillshelf explain)"
    return f"unknown rule {word!r}{hint}"
