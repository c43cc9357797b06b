"""The table of commands: what each one does, its options and arguments, and the function that runs it.

Functions are named and not imported, so that a command loads only what it needs, and may look into this table.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any

from skillshelf.core.records import NamedTuple

__all__ = [
    "COMMANDS",
    "GROUPS",
    "HELP",
    "KINDS",
    "NO_PAGER",
    "SHARED",
    "Command",
    "Option",
    "command_again",
    "usage_of",
]


KINDS = ("skill", "uri", "host", "profile", "scope", "rule", "event", "command", "action", "dir", "file")
"""The kinds of names that a word can be."""


class Option(NamedTuple):
    """One option or argument of a command; without `value` it is a flag, with `many` it may be repeated.

    The name of a flag may have a value in it, as `--fix=names`. An argument with `dashes` also takes words that look
    like options, unless they are options of the command. An argument may be `required`; unless it `may_be_empty`, an
    empty word counts as missing. `of` is for completion: the possible words, separated by blanks, or what they are
    names of, one of `KINDS`. `form` is for a value that is easily forgotten: its pattern, so that no other word is
    taken for it, and what it is. An option that is `never_empty` refuses an empty value, which is most often a variable
    that is not set: its default would do something else than what was meant.
    """

    name: str
    help: str
    value: str | None = None
    many: bool = False
    dashes: bool = False
    required: bool = False
    may_be_empty: bool = False
    of: str = ""
    form: tuple[str, str] | None = None
    never_empty: bool = False

    @property
    def key(self) -> str:
        """The key of its value after parsing."""
        return self.name.lstrip("-").replace("-", "_").replace("=", "_").lower()


class Command(NamedTuple):
    """One command: its summary, its options and arguments, the function that runs it, and where help shows it.

    An example is a line as it is typed, and what it does; so is an action, without the name of the command. A command
    with the option `--no-pager` shows a long output in a pager.
    """

    help: str
    options: tuple[Option, ...]
    arguments: tuple[Option, ...]
    run: Callable[[Mapping[str, Any]], int]
    group: str = ""
    examples: tuple[tuple[str, str], ...] = ()
    actions: tuple[tuple[str, str], ...] = ()


_LOOK = "Look around"
_AGENTS = "Compare and connect agents"
_GET = "Get and share skills"
_WRITE = "Write skills"
_MODEL = "See what a model gets"
_CHOOSE = "Choose what is used"
_SERVE = "Serve, try and record"
_SELF = "About this program"
GROUPS = (_LOOK, _AGENTS, _GET, _WRITE, _MODEL, _CHOOSE, _SERVE, _SELF)
"""The groups of commands, in the order in which help shows them."""


SHARED = (
    Option("--profile", "the system whose rules apply (default: standard)", "NAME", of="profile"),
    Option("--cwd", "start from this folder (default: the working directory)", "DIR"),
    Option("--home", "use another home folder, with its configuration and cache", "DIR"),
    Option("--config", "read this configuration file instead of the user's and the project's", "FILE"),
    Option("--json", "print one JSON value"),
    Option("--no-cache", "ignore the cache"),
)


NO_PAGER = Option("--no-pager", "print everything at once, even if it is longer than the terminal")

_TRUST = Option("--trust", "for this run, show this project's skills to the model too")

_ALL_HOSTS = Option("--all-hosts", "all known hosts, not only those that are set or found on this machine")

_DRY_RUN = Option("--dry-run", "say what would be done, and do nothing")
_YES = Option("--yes", "do not ask")
_ACCEPT_RULE = Option(
    "--accept-rule",
    "link skills of a folder that is not trusted although this security rule finds something; may be repeated",
    "RULE,...",
    many=True,
    of="rule",
)
_USER = Option("--user", "for you in every project (default: for this project)")
_ALLOW_HTTP = Option("--allow-http", "allow plain HTTP to this machine")
_TOKEN_FILE = Option(
    "--token-file", "the token for a team server; $SKILLSHELF_TOKEN works too", "FILE", never_empty=True
)
_ACCEPT_INSTALL = Option(
    "--accept-rule",
    "install skills although this security rule finds something; may be repeated",
    "RULE,...",
    many=True,
    of="rule",
)
_ACCEPT_PUBLISH = Option(
    "--accept-rule",
    "publish a skill although this security rule finds something; may be repeated",
    "RULE,...",
    many=True,
    of="rule",
)
_ACCEPT_APPROVE = Option(
    "--accept-rule",
    "approve: approve a release although this security rule finds something; may be repeated",
    "RULE,...",
    many=True,
    of="rule",
)
_FORCE = Option("--force", "give up what was edited on the disk")
_IN_HOST = Option("--in", "in this host, by its own settings; may be repeated", "HOST,...", many=True, of="host")

_CHECKS = (
    "python packages native folders cache embeddings packed index runs approvals usage configuration policy store "
    "locks links hosts sandbox"
)
"""The checks of `doctor`."""

_JOURNAL = (
    Option("--journal", "record what happens in this file, as events", "FILE", never_empty=True),
    Option("--keep", "keep all inputs beside the journal, for `log replay`"),
    Option(
        "--rotate", "begin a new part of the journal by size or age, such as 10MB,7d,keep=8", "LIMITS", never_empty=True
    ),
    Option(
        "--otlp",
        "send the use of skills, without content, to the OpenTelemetry receiver at this address",
        "URL",
        never_empty=True,
    ),
    Option("--otlp-content", "send arguments, queries and paths to it, too"),
)


def _later(module: str, name: str) -> Callable[[Mapping[str, Any]], int]:
    """Return a command that imports its module when it is run."""

    def run(values: Mapping[str, Any]) -> int:
        # Not `importlib`, whose own import takes longer.
        path = f"skillshelf.{module}"
        __import__(path)
        status: int = getattr(sys.modules[path], name)(values)
        return status

    return run


_WEB_JOURNAL = Option(
    "--journal",
    "show the use and the sessions of this journal, or of all in this folder; may be repeated",
    "FILE",
    True,
)

COMMANDS: Mapping[str, Command] = {
    "": Command(
        "print one screen: problems, all skills by place, next commands",
        (*SHARED, _ALL_HOSTS, Option("--version", "print the version")),
        (),
        _later("cli.inventory", "overview"),
        group=_LOOK,
        examples=(
            ("skillshelf", "what there is here, and what to do next"),
            ("skillshelf --all-hosts", "the same for every known agent, also those that are not installed"),
        ),
    ),
    "inventory": Command(
        "list every skill of the machine, with its copies, the hosts that see it, and its problems",
        (*SHARED, _ALL_HOSTS, NO_PAGER),
        (),
        _later("cli.inventory", "inventory"),
        group=_LOOK,
        examples=(
            ("skillshelf inventory", "every skill, by place"),
            ("skillshelf inventory --json", "the same for a program, with digests"),
        ),
    ),
    "list": Command(
        "list the skills of the catalog",
        (
            *SHARED,
            NO_PAGER,
            Option("--scope", "only skills of this scope", "S", of="scope"),
            Option("--all", "also errors, shadowed and filtered skills, with the reason for each"),
        ),
        (),
        _later("cli.commands", "list_skills"),
        group=_LOOK,
        examples=(
            ("skillshelf list --scope user", "only the skills in your home folder"),
            ("skillshelf list --all", "also what is missing, and why"),
        ),
    ),
    "search": Command(
        "find the skills that fit a query, best first",
        (
            *SHARED,
            Option("--limit", "return at most N results (default: 8)", "N"),
            Option("--scope", "only skills of this scope", "S", of="scope"),
            Option("--everywhere", "search all skills of the inventory, not only those of the profile"),
        ),
        (Option("QUERY", "words of a task in quotes, a name, or a path", "QUERY", required=True, may_be_empty=True),),
        _later("cli.commands", "search"),
        group=_LOOK,
        examples=(
            ('skillshelf search "draft release notes"', "the skills for a task"),
            ("skillshelf search pdf --limit 3", "the best three"),
        ),
    ),
    "pick": Command(
        "choose a skill in the terminal (search, preview, enable, disable) and print its name",
        (
            *SHARED,
            Option("--path", "print the folder of the skill instead of its name"),
            Option("--plain", "list skills as numbered lines, for screen readers and simple terminals"),
        ),
        (Option("QUERY", "the first query", "QUERY"),),
        _later("cli.commands", "pick"),
        group=_LOOK,
        examples=(
            ("skillshelf pick", "search, look and choose, on the whole terminal"),
            ("skillshelf pick --plain notes", "the same as numbered lines"),
        ),
    ),
    "show": Command(
        "print exactly what a model gets when it loads a skill",
        (
            *SHARED,
            *_JOURNAL,
            Option("--args", "what the user asks the skill to work on", "TEXT"),
            Option("--raw", "print the file itself"),
            NO_PAGER,
        ),
        (Option("NAME-or-PATH", "a skill, its folder or its SKILL.md", "NAME", required=True, of="skill"),),
        _later("cli.commands", "show"),
        group=_LOOK,
        examples=(
            ("skillshelf show release-notes", "what a model gets"),
            ("skillshelf show .agents/skills/release-notes --raw", "the file as it is"),
        ),
    ),
    "read": Command(
        "print one file of a skill",
        (*SHARED, *_JOURNAL, NO_PAGER),
        (Option("URI", "skill://NAME or skill://NAME/PATH; a folder lists its files", "URI", required=True, of="uri"),),
        _later("cli.commands", "read"),
        group=_LOOK,
        examples=(
            ("skillshelf read skill://release-notes", "the files of a skill"),
            ("skillshelf read skill://release-notes/references/style.md", "one of them"),
        ),
    ),
    "digest": Command(
        "print the digest of all files of a skill (skill-tree-v1)",
        SHARED,
        (Option("PATH", "the folder of a skill, or its SKILL.md", "PATH", required=True),),
        _later("cli.commands", "digest"),
        group=_WRITE,
        examples=(
            ("skillshelf digest .agents/skills/release-notes", "one line to compare or to keep"),
            ("skillshelf digest .agents/skills/release-notes --json", "with the number of files and bytes"),
        ),
    ),
    "why": Command(
        "explain which agent hosts see a skill, and why the others do not",
        (
            *SHARED,
            Option("--host", "only this host; may be given several times", "H", many=True, of="host"),
            _ALL_HOSTS,
            Option("--fix", "apply safe fixes, and link the skill for every --host"),
            Option("--dry-run", "say what --fix would do, and do nothing"),
        ),
        (Option("NAME-or-PATH", "a skill, its folder or its SKILL.md", "NAME", required=True, of="skill"),),
        _later("cli.host_commands", "why"),
        group=_AGENTS,
        examples=(
            ("skillshelf why release-notes", "who sees it, and what the others lack"),
            ("skillshelf why release-notes --host claude-code --fix", "make one host see it"),
        ),
    ),
    "hosts": Command(
        "compare agent hosts: the skills that each one sees, and what its catalog costs",
        (
            *SHARED,
            Option("--diff", "show only what two hosts see differently: --diff A B", "A", of="host"),
            _ALL_HOSTS,
            Option(
                "--set", "your hosts, separated by commas; auto: those found on this machine", "HOST,...", of="host"
            ),
            Option("--dry-run", "say what --set would write, and write nothing"),
            NO_PAGER,
        ),
        (Option("B", "the second host of --diff", "B", of="host"),),
        _later("cli.host_commands", "hosts"),
        group=_AGENTS,
        examples=(
            ("skillshelf hosts", "what each host sees here"),
            ("skillshelf hosts --diff claude-code codex", "what only one of the two sees"),
        ),
    ),
    "link": Command(
        "make a skill visible to another agent host, by a link or a copy",
        (
            *SHARED,
            Option(
                "--to", "the hosts, separated by commas (default: yours); may be repeated", "HOST,...", True, of="host"
            ),
            _ALL_HOSTS,
            Option("--force", "also for a host that ignores disable-model-invocation, so that its model may call it"),
            Option("--even-so", "the old name of --force"),
            Option("--remove", "remove the links and copies made for these hosts"),
            _ACCEPT_RULE,
            _DRY_RUN,
        ),
        (Option("NAME-or-PATH", "a skill, its folder or its SKILL.md", "NAME", many=True, required=True, of="skill"),),
        _later("cli.link_commands", "link"),
        group=_AGENTS,
        examples=(
            ("skillshelf link release-notes --to claude-code", "let a host see it"),
            ("skillshelf link release-notes --to claude-code --remove", "undo that"),
        ),
    ),
    "sync": Command(
        "make skills visible to agent hosts in one plan, which is shown first and carried out whole or not at all",
        (
            *SHARED,
            Option(
                "--to", "the hosts, separated by commas (default: yours); may be repeated", "HOST,...", True, of="host"
            ),
            _DRY_RUN,
            Option("--remove", "remove the links and copies that were made, and the folders made for them"),
            _ACCEPT_RULE,
            _YES,
        ),
        (
            Option(
                "NAME",
                "a skill, or its path (default: all of the project and the home folder)",
                "NAME",
                True,
                of="skill",
            ),
        ),
        _later("cli.link_commands", "sync"),
        group=_AGENTS,
        examples=(
            ("skillshelf sync --to claude-code,codex --dry-run", "show what would be linked for two hosts"),
            ("skillshelf sync release-notes --remove", "undo what was done for one skill"),
        ),
    ),
    "add": Command(
        "install skills of a folder, archive, repository, site or registry, after showing what they are",
        (
            *SHARED,
            Option("--skill", "only the skills of these names, * for all; may be repeated", "NAME,...", many=True),
            Option("--path", "the folder inside the source", "PATH"),
            Option("--ref", "a branch, a tag or a commit", "REF"),
            Option(
                "--host", "agents that shall see it, by links or copies; may be repeated", "HOST,...", True, of="host"
            ),
            _USER,
            _ALLOW_HTTP,
            _TOKEN_FILE,
            _ACCEPT_INSTALL,
            _DRY_RUN,
            _YES,
        ),
        (
            Option(
                "SOURCE",
                "./folder, ./file.zip, owner/repo, git+https://..., https://site, oci://..., mcp:LABEL/NAME "
                "or plugin:MARKETPLACE/PLUGIN",
                "SOURCE",
                required=True,
            ),
        ),
        _later("cli.install_commands", "add"),
        group=_GET,
        examples=(
            ("skillshelf add anthropics/skills --skill pdf", "one skill of a repository on GitHub"),
            (
                "skillshelf add ./drafts/review --user --yes",
                "a folder of yours, for all your projects, without a question",
            ),
        ),
    ),
    "install": Command(
        "make the disk what the lock says, and lock the wishes of skillshelf.toml that are not locked yet",
        (
            *SHARED,
            Option("--frozen", "only what the lock names, byte for byte; resolve nothing, and never write the lock"),
            Option("--offline", "open no connection: only the store, and sources on this disk"),
            _USER,
            _ALLOW_HTTP,
            _TOKEN_FILE,
            _ACCEPT_INSTALL,
            _DRY_RUN,
            _YES,
        ),
        (),
        _later("cli.install_commands", "install"),
        group=_GET,
        examples=(
            ("skillshelf install", "bring back what is missing"),
            ("skillshelf install --frozen --yes", "in CI: the locked bytes, or a failure"),
        ),
    ),
    "outdated": Command(
        "list installed skills whose sources have other files now",
        (*SHARED, _USER, _ALLOW_HTTP, _TOKEN_FILE),
        (Option("NAME", "an installed skill (default: all)", "NAME", True, of="skill"),),
        _later("cli.verify_commands", "outdated"),
        group=_GET,
        examples=(
            ("skillshelf outdated", "those of this project"),
            ("skillshelf outdated --user --json", "your own, for a program"),
        ),
    ),
    "update": Command(
        "take what the sources have now, after showing every difference; or settle what was edited on the disk",
        (
            *SHARED,
            Option("--restore", "bring the locked files back"),
            Option("--accept", "take what lies on the disk as the new version"),
            _FORCE,
            _USER,
            _ALLOW_HTTP,
            _TOKEN_FILE,
            _ACCEPT_INSTALL,
            _DRY_RUN,
            _YES,
        ),
        (Option("NAME", "an installed skill (default: all)", "NAME", True, of="skill"),),
        _later("cli.update_commands", "update"),
        group=_GET,
        examples=(
            ("skillshelf update", "show what is new, and ask"),
            ("skillshelf update review --restore --yes", "undo what was edited in one skill"),
        ),
    ),
    "diff": Command(
        "show how an installed skill differs from its lock, or else from what its source has now",
        (*SHARED, NO_PAGER, _USER, _ALLOW_HTTP, _TOKEN_FILE),
        (
            Option("NAME", "an installed skill", "NAME", required=True, of="skill"),
            Option(
                "A", "one side: locked (default), disk, source, or a tree of the store", "A", of="locked disk source"
            ),
            Option(
                "B",
                "the other side (default: the disk if it was edited, else the source)",
                "B",
                of="locked disk source",
            ),
        ),
        _later("cli.verify_commands", "diff"),
        group=_GET,
        examples=(
            ("skillshelf diff review", "what you changed, or what is new in the source"),
            ("skillshelf diff review locked disk", "only what was changed on the disk"),
        ),
    ),
    "verify": Command(
        "check that every installed skill is what the lock says, and name each file that is not",
        (*SHARED, Option("--all", "those of this project and your own"), _USER),
        (Option("NAME", "an installed skill (default: all)", "NAME", True, of="skill"),),
        _later("cli.verify_commands", "verify"),
        group=_GET,
        examples=(
            ("skillshelf verify", "those of this project"),
            ("skillshelf verify --all --json", "all of them, for a program"),
        ),
    ),
    "remove": Command(
        "remove installed skills, with their links and wishes",
        (*SHARED, _FORCE, _USER, _DRY_RUN, _YES),
        (Option("NAME", "an installed skill", "NAME", True, required=True, of="skill"),),
        _later("cli.update_commands", "remove"),
        group=_GET,
        examples=(
            ("skillshelf remove review --dry-run", "show what would go"),
            ("skillshelf remove review --yes", "remove it from this project"),
        ),
    ),
    "rollback": Command(
        "bring back what was installed before the last change, or after an earlier one",
        (*SHARED, _FORCE, _USER, _DRY_RUN, _YES),
        (Option("N", "the number of a generation (default: the one before)", "N"),),
        _later("cli.update_commands", "rollback"),
        group=_GET,
        examples=(
            ("skillshelf rollback --dry-run", "show what would change"),
            ("skillshelf rollback 0 --yes", "as it was before the first change"),
        ),
    ),
    "gc": Command(
        "remove the files from the store that no generation and no known lock names",
        (*SHARED, _USER, _DRY_RUN, _YES),
        (),
        _later("cli.update_commands", "gc"),
        group=_GET,
        examples=(
            ("skillshelf gc --dry-run", "show what nothing names"),
            ("skillshelf gc --yes", "remove it"),
        ),
    ),
    "import": Command(
        "install what the lock or list of another tool names: skills-lock.json, apm.yml, skills.json",
        (*SHARED, _USER, _ALLOW_HTTP, _TOKEN_FILE, _ACCEPT_INSTALL, _DRY_RUN, _YES),
        (Option("FILE", "a lock or list of another tool", "FILE", required=True, of="file"),),
        _later("cli.install_commands", "import_lock"),
        group=_GET,
        examples=(
            ("skillshelf import skills-lock.json --dry-run", "show what would be installed"),
            ("skillshelf import skills-lock.json --yes", "install it, and lock it"),
        ),
    ),
    "export": Command(
        "write the lock or list of another tool from this project's lock: skills-lock.json, apm.yml, skills.json",
        (
            *SHARED,
            Option("--format", "vercel, apm or oci", "FORMAT", of="vercel apm oci"),
            Option("-o", "the folder to write to (default: that of the lock)", "DIR"),
            _USER,
            _DRY_RUN,
            _YES,
        ),
        (),
        _later("cli.publish_commands", "export"),
        group=_GET,
        examples=(
            ("skillshelf export --format vercel --dry-run", "show which skills skills-lock.json would list"),
            ("skillshelf export --format apm -o out", "write out/apm.yml"),
        ),
    ),
    "pack": Command(
        "write a skill into one archive, with the same bytes on every machine",
        (
            *SHARED,
            Option("-o", "the archive, ending in .skill or .zip (default: NAME.skill)", "FILE"),
            _USER,
            _DRY_RUN,
            _YES,
        ),
        (Option("NAME", "a skill, or its path", "NAME", required=True, of="skill"),),
        _later("cli.publish_commands", "pack"),
        group=_GET,
        examples=(
            ("skillshelf pack release-notes", "write release-notes.skill"),
            ("skillshelf pack release-notes -o out/release-notes.zip --dry-run", "only say where it would go"),
        ),
    ),
    "publish": Command(
        "publish a skill, after showing what it is: as files of a web site, in a registry, or to a team server",
        (
            *SHARED,
            Option("--site", "a folder that a web server serves", "DIR", never_empty=True),
            Option(
                "--to",
                "a registry, oci://HOST/REPOSITORY[:TAG], or a team server, https://HOST",
                "ADDRESS",
                never_empty=True,
            ),
            Option(
                "--version",
                "the version of the release on a server (default: that of its frontmatter)",
                "V",
                never_empty=True,
            ),
            _USER,
            _ALLOW_HTTP,
            _TOKEN_FILE,
            _ACCEPT_PUBLISH,
            _DRY_RUN,
            _YES,
        ),
        (Option("NAME", "a skill, or its path", "NAME", required=True, of="skill"),),
        _later("cli.publish_commands", "publish"),
        group=_GET,
        examples=(
            ("skillshelf publish release-notes --site public --yes", "add it to the index of a site"),
            ("skillshelf publish release-notes --to oci://ghcr.io/acme/release-notes:1.0 --dry-run", "show it first"),
        ),
    ),
    "release": Command(
        "list the releases of a team server, approve or yank one, move a channel, or show and change the policy",
        (
            *SHARED,
            Option("--yanked", "list: also yanked releases"),
            Option("--why", "yank: the reason, which others see", "TEXT"),
            _ALLOW_HTTP,
            _TOKEN_FILE,
            _ACCEPT_APPROVE,
            _DRY_RUN,
            _YES,
            NO_PAGER,
        ),
        (
            Option(
                "ACTION",
                "list, approve, yank, channel or policy",
                "ACTION",
                required=True,
                of="list approve yank channel policy",
            ),
            Option("SERVER", "the team server, https://HOST, or the address of a release there", "URL", required=True),
            Option("WORD", "what the action takes", "WORD", True, of="action"),
        ),
        _later("cli.release_commands", "release"),
        group=_GET,
        examples=(
            ("skillshelf release list https://skills.example", "every release, with its channels and approvals"),
            ("skillshelf release approve https://skills.example release-notes 1.2", "show its files, then ask"),
        ),
        actions=(
            ("list SERVER [NAME]", "list the releases, or those of a skill"),
            ("approve SERVER NAME VERSION", "show the files of a release, and approve them"),
            ("yank SERVER NAME VERSION", "take a release out of channels and lists"),
            ("channel SERVER NAME latest|approved VERSION", "let a channel mean another release"),
            ("policy SERVER [KEY=VALUE ...]", "show or change the rules of the team"),
        ),
    ),
    "prompt": Command(
        "print the catalog text that a model gets",
        (*SHARED, _TRUST),
        (),
        _later("cli.commands", "prompt"),
        group=_MODEL,
        examples=(
            ("skillshelf prompt --trust", "as if you trusted this folder"),
            ("skillshelf prompt --json", "with the number of characters and tokens"),
        ),
    ),
    "tools": Command(
        "print the tools that a model gets, with their schemas",
        (*SHARED, _TRUST),
        (),
        _later("cli.commands", "tools"),
        group=_MODEL,
        examples=(
            ("skillshelf tools", "the tools of the default profile"),
            ("skillshelf tools --profile codelia --json", "those of another system, as schemas"),
        ),
    ),
    "check": Command(
        "check skills against the standard and good practice, with the line and the fix of each finding",
        (
            *SHARED,
            Option("--fix", "apply safe fixes, and show what changed; a name is never changed"),
            Option("--fix=names", "the same, and give skills the names of their folders"),
            Option("--diff", "show what --fix would change, and change nothing"),
            Option("--dry-run", "the same as --diff"),
            Option("--select", "only these rules: ids, groups such as name, beginnings such as yaml*", "R,...", True),
            Option("--ignore", "leave out these rules; may be repeated", "R,...", many=True),
            Option(
                "--severity",
                "show, and fail on, this severity and above (default: show all, fail on warnings)",
                "LEVEL",
                of="error warning info",
            ),
            Option("--baseline", "report only what is not in this file of known findings", "FILE"),
            Option(
                "--write-baseline", "write all findings to FILE; with --baseline, only those of it not fixed", "FILE"
            ),
            Option("--user", "also the skills in your home folder, and those that you named elsewhere"),
            NO_PAGER,
            Option("--format", "text, json, sarif or github (default: text)", "F", of="text json sarif github"),
        ),
        (Option("PATH", "a skill, its SKILL.md, or a folder of skills (default: the repository)", "PATH", True),),
        _later("cli.check_commands", "check"),
        group=_WRITE,
        examples=(
            ("skillshelf check --fix --dry-run", "what a fix would change"),
            (
                "skillshelf check --write-baseline known.json",
                "take what exists as known; then use --baseline known.json",
            ),
        ),
    ),
    "explain": Command(
        "explain a rule of `check`: why it exists, an example, how to fix what it finds, how to switch it off",
        (*SHARED, NO_PAGER),
        (Option("RULE", "the rule (default: list all rules)", "RULE", of="rule"),),
        _later("cli.check_commands", "explain"),
        group=_WRITE,
        examples=(
            ("skillshelf explain description-vague", "one rule"),
            ("skillshelf explain", "every rule in a line, by groups"),
        ),
    ),
    "eval": Command(
        "test whether skills are found: by search, in what hosts show, and with a model if you name one",
        (
            *SHARED,
            Option("--queries", "also try the queries in this file", "FILE", of="file"),
            Option(
                "--against", "test against the skills of this folder instead of the other ones here", "ROOT", of="dir"
            ),
            Option("--host", "test on the text that this host shows; may be repeated", "H", many=True, of="host"),
            Option("--model", "also ask this model, as openai:gpt-5-mini", "M"),
            Option("--runs", "ask it N times for each query (default: 3)", "N"),
            Option("--journals", "keep the journals of its runs in this folder", "DIR", of="dir"),
            Option(
                "--output", "let it do the tasks with and without each skill; write the results here", "DIR", of="dir"
            ),
            Option("--judge", "judge the results by this model instead", "M"),
            _TRUST,
            Option("--format", "text, json or junit (default: text)", "F", of="text json junit"),
            Option("--baseline", "fail only on what is worse than in this file, made by --json", "FILE", of="file"),
            NO_PAGER,
        ),
        (Option("NAME", "a skill, its folder or its SKILL.md (default: all)", "NAME", many=True, of="skill"),),
        _later("cli.eval_commands", "evaluate"),
        group=_WRITE,
        examples=(
            ("skillshelf eval", "every skill with queries, and descriptions that are nearly the same"),
            ("skillshelf eval release-notes --host claude-code", "what a host's model can find it by"),
        ),
    ),
    "new": Command(
        "create a skill that passes `check`, in this repository or in the home folder",
        (
            *SHARED,
            Option("--root", "create it in this folder of skills", "DIR"),
            Option("--user", "create it in the home folder"),
            Option("--description", "what it does and when to use it", "TEXT"),
            Option("--scripts", "include a script"),
            Option("--references", "include a page that is read on demand"),
            Option("--assets", "include a template"),
            Option("--for", "make it visible to these hosts, separated by commas", "HOST,...", many=True, of="host"),
            _ALL_HOSTS,
            _DRY_RUN,
        ),
        (Option("NAME", "lower-case letters, digits and single hyphens", "NAME", required=True),),
        _later("cli.link_commands", "new"),
        group=_WRITE,
        examples=(
            (
                'skillshelf new triage-issues --description "Sorts issues. Use for new ones."',
                "a skill that passes `check`",
            ),
            ("skillshelf new triage-bugs --user --scripts", "in your home folder, with a script"),
        ),
    ),
    "run": Command(
        "run a script of a skill in a sandbox, after you confirm",
        (
            *SHARED,
            *_JOURNAL,
            Option(
                "--yes",
                "run it without a question if all files of the skill have this digest",
                "DIGEST",
                form=("sha256:[0-9a-f]{64}", "the digest of the skill's files (sha256:...)"),
            ),
        ),
        (
            Option("NAME", "a skill of the catalog", "NAME", required=True, of="skill"),
            Option("SCRIPT", "a file below its scripts folder", "SCRIPT", required=True),
            Option(
                "ARGS",
                "arguments of the script; put options that this command has too after --",
                "ARGS",
                True,
                True,
            ),
        ),
        _later("cli.commands", "run"),
        group=_SERVE,
        examples=(
            ("skillshelf run release-notes collect.py", "asks first, then runs it in a sandbox"),
            ("skillshelf run release-notes collect.py -- --since v2.0", "with an option for the script"),
        ),
    ),
    "enable": Command(
        "enable a disabled skill for agents that get their skills from skillshelf, or in a host itself",
        (*SHARED, _IN_HOST, _DRY_RUN),
        (Option("NAME", "a skill, or its path", "NAME", required=True, of="skill"),),
        _later("cli.settings_commands", "enable"),
        group=_CHOOSE,
        examples=(
            ("skillshelf enable release-notes", "by its name"),
            ("skillshelf enable .agents/skills/release-notes", "by its folder"),
        ),
    ),
    "disable": Command(
        "disable a skill for agents that get their skills from skillshelf, or in a host itself",
        (*SHARED, _IN_HOST, _DRY_RUN),
        (Option("NAME", "a skill, or its path", "NAME", required=True, of="skill"),),
        _later("cli.settings_commands", "disable"),
        group=_CHOOSE,
        examples=(
            ("skillshelf disable release-notes", "every skill of this name"),
            ("skillshelf disable release-notes --in claude-code --dry-run", "what would turn it off in that host"),
        ),
    ),
    "trust": Command(
        "trust a folder and everything below it, so that models that skillshelf serves see its skills",
        (
            *SHARED,
            Option("--list", "list the trusted folders and the approvals"),
            Option("--remove", "stop trusting the folder, and take back the approvals of the skills below it"),
            Option(
                "--accept-rule",
                "trust the folder although this security rule finds something in its skills; may be repeated",
                "RULE,...",
                many=True,
                of="rule",
            ),
            _DRY_RUN,
        ),
        (Option("DIR", "a folder, or a skill whose approvals are taken back (default: the working directory)", "DIR"),),
        _later("cli.settings_commands", "trust"),
        group=_CHOOSE,
        examples=(
            ("skillshelf trust", "this folder and everything below it"),
            ("skillshelf trust --accept-rule security-pipe-to-shell", "although a skill runs a download"),
        ),
    ),
    "profile": Command(
        "print every field of a profile, or list the profiles",
        (*SHARED, NO_PAGER),
        (Option("NAME", "a profile", "NAME", of="profile"),),
        _later("cli.commands", "profile"),
        group=_CHOOSE,
        examples=(
            ("skillshelf profile", "every profile in a line"),
            ("skillshelf profile host:codex --json", "every field of one"),
        ),
    ),
    "policy": Command(
        "show the rules in force, where each comes from, and what the machine's administrator forbids",
        (*SHARED, NO_PAGER),
        (),
        _later("cli.policy", "policy"),
        group=_CHOOSE,
        examples=(
            ("skillshelf policy", "who allows and forbids what here"),
            ("skillshelf policy --json", "the same for a program"),
        ),
    ),
    "log": Command(
        "show a journal, verify that nothing was changed, count which skills are used, replay, export or push it",
        (
            *SHARED,
            Option("--session", "show, stats: only sessions whose id begins with S", "S"),
            Option("--type", "show: only events of this type; may be repeated", "T", many=True, of="event"),
            Option("--skill", "show: only events about this skill", "NAME", of="skill"),
            Option("--since", "show, stats, export: from this date on, or the last 12h, 7d or 4w", "WHEN"),
            Option("--until", "show, stats, export: before this date or time (UTC)", "WHEN"),
            Option(
                "--by",
                "stats: one view, whole: skill, user, week, search, denial, error or tool",
                "VIEW",
                of="skill user week search denial error tool",
            ),
            Option("--otlp", "export: the address of an OpenTelemetry receiver", "URL"),
            Option("--otlp-content", "export: send arguments, queries and paths, too"),
            Option("--last", "show: only the last N events", "N"),
            Option("--head", "verify: a sum that you kept elsewhere; its line must still be there", "SUM"),
            Option(
                "--server",
                "verify: a team server that has the journal; its last line must still be there",
                "URL",
                never_empty=True,
            ),
            Option("--stream", "verify: with --server, what it stores of the journal with this id, or of all", "ID"),
            Option(
                "--token-file",
                "push, verify: the token for the server; $SKILLSHELF_TOKEN works too",
                "FILE",
                never_empty=True,
            ),
            _ALLOW_HTTP,
            Option(
                "--against",
                "replay: `kept` inputs (the default where there are some), or the `disk` as it is now",
                "WHAT",
                of="kept disk",
            ),
            Option("--disk", "replay: the same as --against=disk"),
            Option("--trust", "replay: treat the journal's project as trusted"),
            NO_PAGER,
        ),
        (
            Option(
                "ACTION",
                "show, verify, stats, replay, export or push",
                "ACTION",
                required=True,
                of="show verify stats replay export push",
            ),
            Option(
                "FILE",
                "the journal; of stats and export also several, or folders; of push after the address of the server",
                "FILE",
                True,
            ),
        ),
        _later("cli.log", "log"),
        group=_SERVE,
        examples=(
            ("skillshelf log show run.jsonl --last 20", "the last events"),
            ("skillshelf log stats run.jsonl", "which skills are never used, and who uses the others"),
        ),
    ),
    "ui": Command(
        "show the skills in a browser of this machine: problems, search, who sees each skill, use; read-only",
        (
            *SHARED,
            _ALL_HOSTS,
            Option("--port", "listen on this port of 127.0.0.1 (default: a free one)", "N"),
            Option("--no-open", "only print the address, and open no browser"),
            _WEB_JOURNAL,
        ),
        (),
        _later("cli.ui_commands", "ui"),
        group=_SERVE,
        examples=(
            ("skillshelf ui", "the pages of this project and your home folder"),
            ("skillshelf ui --no-open --journal run.jsonl", "with the use that a journal recorded"),
        ),
    ),
    "site": Command(
        "write the same pages as static files, with relative links only",
        (
            *SHARED,
            _ALL_HOSTS,
            Option("--user", "also the skills of the home folder (default: those of the repository alone)"),
            _WEB_JOURNAL,
        ),
        (Option("OUT", "a folder that is empty, or a site that this command wrote", "OUT", required=True, of="dir"),),
        _later("cli.ui_commands", "site"),
        group=_SERVE,
        examples=(
            ("skillshelf site public", "for a web server, or to open from the disk"),
            ("skillshelf site public --user --journal runs", "with your own skills, and their use"),
        ),
    ),
    "mcp": Command(
        "serve the skills to agents over the Model Context Protocol, on standard input and output or over HTTP",
        (
            *SHARED,
            *_JOURNAL,
            _TRUST,
            Option("--http", "serve over HTTP at this address, such as 127.0.0.1:8000; port 0: a free one", "ADDRESS"),
            Option(
                "--token-file",
                "HTTP: require the token in this file; $SKILLSHELF_MCP_TOKEN works too",
                "FILE",
                never_empty=True,
            ),
            Option("--allow-host", "HTTP: another name of this server; may be repeated", "NAME", True),
            Option("--paths", "HTTP: show clients the paths of the skills on this machine"),
        ),
        (),
        _later("cli.commands", "mcp"),
        group=_SERVE,
        examples=(
            ("skillshelf mcp --trust", "for an agent that starts this program"),
            ("skillshelf mcp --http 127.0.0.1:8000 --journal run.jsonl", "for agents that connect, recorded"),
        ),
    ),
    "serve": Command(
        "serve the skills of a team over HTTP: people with tokens, tenants, a database; or manage these",
        (
            *SHARED,
            *_JOURNAL,
            _TRUST,
            Option(
                "--listen",
                "serve at this address (default: 127.0.0.1:8000); port 0: a free one",
                "HOST:PORT",
                never_empty=True,
            ),
            Option("--database", "sqlite:///FILE (default: one in the data folder) or postgresql://...", "URL"),
            Option(
                "--database-file", "a file with this address and its password; $SKILLSHELF_DATABASE works too", "FILE"
            ),
            Option(
                "--blobs",
                "where published files are kept: a folder (default), s3://... or oci://...",
                "URL",
                never_empty=True,
            ),
            Option("--issuer", "accept tokens that this issuer signs", "URL", never_empty=True),
            Option("--audience", "the audience that such a token must name", "A", never_empty=True),
            Option("--tenant-claim", "the claim that names the tenant (default: tenant)", "CLAIM", never_empty=True),
            Option("--roles-claim", "the claim that names the roles (default: roles)", "CLAIM", never_empty=True),
            Option("--allow-host", "another name of this server; may be repeated", "NAME", True, never_empty=True),
            Option(
                "--access-log",
                "write a line a request to this file (default: standard error), or none",
                "FILE",
                never_empty=True,
            ),
            Option(
                "--scope",
                "token create: a scope of the token; may be repeated",
                "S",
                True,
                of="skills:read skills:publish journal:write journal:read metrics:read admin",
                never_empty=True,
            ),
            Option(
                "--tenant",
                "the tenant of a token, member or journal (default: default); retention: only this one",
                "T",
                never_empty=True,
            ),
            Option(
                "--expires", "token create: when the token ends, such as 90d or 2027-01-31", "WHEN", never_empty=True
            ),
            Option(
                "--keep-lines",
                "how long lines of journals are kept, such as 90d, 12w or 2y: older ones are removed every day, "
                "or by retention once (default: for ever)",
                "TIME",
                never_empty=True,
            ),
            Option(
                "--password-file",
                "migrate: the password of the role that the server connects as",
                "FILE",
                never_empty=True,
            ),
            Option(
                "--write-address",
                "migrate: write the address for the server into this file; one with a password there is kept",
                "FILE",
                never_empty=True,
            ),
        ),
        (
            Option(
                "ACTION",
                "token, tenant, member, migrate, journal, retention or forget (default: serve)",
                "ACTION",
                of="token tenant member migrate journal retention forget",
            ),
            Option("WORD", "what the action takes", "WORD", True, of="action"),
        ),
        _later("cli.serve_commands", "serve"),
        group=_SERVE,
        examples=(
            ("skillshelf serve token create ada --scope skills:read", "a token for a person, shown once"),
            ("skillshelf serve --listen 127.0.0.1:8000", "serve a team from this machine"),
        ),
        actions=(
            ("token create SUBJECT", "make a token for a person or a program, and show it once"),
            ("token list", "list tokens with their scopes, and when they end"),
            ("token revoke ID|SUBJECT", "end a token, or all tokens and logins of a subject"),
            ("member list", "list who has which role"),
            ("member set SUBJECT ROLE", "give a role: reader, member, publisher, auditor or admin"),
            ("member remove SUBJECT", "take the role away"),
            ("tenant create SLUG", "make a tenant"),
            ("tenant list", "list the tenants; in PostgreSQL as a role that reads all rows"),
            ("migrate", "bring the database to this version, as its owner, and print the address for the server"),
            ("journal full|digest", "take whole lines of journals, or sizes and digests only"),
            ("retention --keep-lines TIME", "remove older lines of journals once"),
            ("forget SUBJECT", "remove what the journals know about a person"),
        ),
    ),
    "rpc": Command(
        "serve another program with JSON-RPC 2.0 on standard input and output, one message a line",
        (*SHARED, *_JOURNAL, _TRUST),
        (),
        _later("servers.rpc.server", "rpc"),
        group=_SERVE,
        examples=(
            ("skillshelf rpc", "for another program, message by message"),
            ("skillshelf rpc --journal run.jsonl", "the same, recorded"),
        ),
    ),
    "chat": Command(
        "try your skills with a small agent, line by line or for one answer",
        (
            *SHARED,
            *_JOURNAL,
            _TRUST,
            Option("--model", "the model, such as anthropic:NAME, openai:NAME, or the NAME at a local server", "M"),
            Option("--once", "answer TEXT and exit; the same as a MESSAGE", "TEXT"),
        ),
        (Option("MESSAGE", "answer this and exit (default: a conversation)", "MESSAGE", True),),
        _later("cli.commands", "chat"),
        group=_SERVE,
        examples=(
            ("skillshelf chat --model openai:gpt-5", "a conversation"),
            ('skillshelf chat "Which skills do you have?" --trust', "one answer"),
        ),
    ),
    "completion": Command(
        "print the completion script of a shell; it completes the names of skills, hosts and profiles, too",
        SHARED,
        (Option("SHELL", "bash, zsh or fish", "SHELL", required=True, of="bash zsh fish"),),
        _later("cli.completion", "completion"),
        group=_SELF,
        examples=(
            ("skillshelf completion bash", "print the script for bash"),
            ("skillshelf completion fish", "print the script for fish"),
        ),
    ),
    "doctor": Command(
        "check this installation: cache, approvals, configuration, links and copies, sandbox, Python",
        (*SHARED, Option("--fix", "repair what can be made again"), _DRY_RUN),
        (Option("CHECK", "only this check, such as cache or links (default: all)", "CHECK", True, of=_CHECKS),),
        _later("cli.doctor", "doctor"),
        group=_SELF,
        examples=(
            ("skillshelf doctor", "check everything"),
            ("skillshelf doctor cache links --fix", "repair what can be made again"),
        ),
    ),
    "usage": Command(
        "show what searches learned from use: the skills that were loaded after a search, and how often",
        (*SHARED, Option("--clear", "forget all of it")),
        (),
        _later("cli.use_history", "usage"),
        group=_SELF,
        examples=(
            ("skillshelf usage", "what is kept, and since when"),
            ("skillshelf usage --clear", "remove it; searches rank by words alone again"),
        ),
    ),
    "uninstall": Command(
        "remove the links and copies that skillshelf made, its cache and its state, and list what is left",
        (
            *SHARED,
            _DRY_RUN,
            _YES,
        ),
        (),
        _later("cli.uninstall", "uninstall"),
        group=_SELF,
        examples=(
            ("skillshelf uninstall --dry-run", "show what would be removed"),
            ("skillshelf uninstall --yes", "remove it"),
        ),
    ),
    "help": Command(
        "explain the commands, or one of them",
        (NO_PAGER,),
        (Option("COMMAND", "the command to explain", "COMMAND", of="command"),),
        _later("cli.help", "show_help"),
        group=_SELF,
        examples=(
            ("skillshelf help", "every command"),
            ("skillshelf help why", "one command"),
        ),
    ),
}


HELP = (Option("-h", "explain this command"), Option("--help", "explain this command"))


# Command lines ------------------------------------------------------------------------------------


def usage_of(name: str) -> str:
    """Return the command with its arguments and the options that it needs, as it is typed."""
    words = ["skillshelf", *filter(None, [name])]
    for argument in COMMANDS[name].arguments:
        text = f"{argument.name} ..." if argument.many else argument.name
        words.append(text if argument.required else f"[{text}]")
    words += [f"{option.name} {option.value}" for option in COMMANDS[name].options if option.required]
    return " ".join(words)


_NOT_REPEATED = frozenset({"json", "no_cache", "no_pager"})
"""Options that change how a command answers and not what it answers about."""


def command_again(values: Mapping[str, Any], name: str, **changes: Any) -> str:
    """Return the line that runs a command with the options of the one that ran, as far as it takes them.

    `values` are those of the command that ran, `changes` replace some of them by their keys; None leaves one out. The
    line can be pasted into a shell, whatever the values are: words for a reader to replace are written in capitals.
    """
    command, options, arguments = COMMANDS[name], [], []
    given = {key: value for key, value in values.items() if key not in _NOT_REPEATED} | changes
    for option in (*command.options, *command.arguments):
        value = given.get(option.key)
        for one in value if isinstance(value, list | tuple) else (value,):
            if one is True:
                options.append(option.name)
            elif one not in (None, False) and not option.name.startswith("-"):
                arguments.append(str(one))
            elif one not in (None, False):
                options += [f"{option.name}={one}"] if str(one).startswith("-") else [option.name, str(one)]
    dashes = ["--"] if any(word.startswith("-") for word in arguments) else []
    return " ".join(["skillshelf", *filter(None, [name]), *map(_quoted, [*options, *dashes, *arguments])])


def _quoted(word: str) -> str:
    """Return a word as it is typed in a shell."""
    if word.replace("-", "").replace("/", "").replace(".", "").isalnum() and word.isascii():
        return word
    from shlex import quote

    return quote(word)
