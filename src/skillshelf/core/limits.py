"""Every limit by name; whatever hits one says so. The reasons are in docs/reference/limits.md."""

__all__ = [
    "ADDRESS_CHARS",
    "ADDRESS_SEGMENTS",
    "BODY_SECONDS",
    "CACHE_FROM",
    "CACHE_ROWS",
    "CACHE_WAIT_SECONDS",
    "CHECKED_DIRECTORIES",
    "CHECKED_MENTIONS",
    "CHECKED_PAGES",
    "CHECKED_SCRIPTS",
    "CONFIG_BYTES",
    "COPIED_BYTES",
    "DESCRIPTION_SHOWN",
    "FIRST_READ",
    "FRONTMATTER_BYTES",
    "FRONTMATTER_DEPTH",
    "FRONTMATTER_KEYS",
    "INDEXES_KEPT",
    "INDEX_WAIT_SECONDS",
    "JOURNAL_DEPTH",
    "JOURNAL_LINE_BYTES",
    "JOURNAL_LOCK_SECONDS",
    "JOURNAL_MEMBER_BYTES",
    "JOURNAL_NAMES",
    "JOURNAL_PROBLEMS",
    "JOURNAL_SESSIONS",
    "LISTED_CHILDREN",
    "LISTED_ENTRIES",
    "NAMES_IN_SCHEMA",
    "OUTPUT_BLOCK",
    "PAGE_BYTES",
    "PAGE_ENTRIES",
    "PROMPTS_LISTED",
    "PUBLISHED_BYTES",
    "PUBLISHED_FILES",
    "QUERY_CHARS",
    "QUERY_TERMS",
    "REQUESTS_AT_ONCE",
    "REQUEST_BYTES",
    "REQUEST_SECONDS",
    "RESOURCE_BYTES",
    "RPC_ASKING",
    "RPC_BATCH",
    "RPC_CONFIRM_SECONDS",
    "RPC_DEPTH",
    "RPC_END_SECONDS",
    "RPC_LINE_BYTES",
    "RPC_SESSIONS",
    "RPC_SHELVES",
    "RPC_WAITING_BYTES",
    "RUN_ARGUMENTS",
    "RUN_ARGUMENT_BYTES",
    "RUN_ARTIFACT_BYTES",
    "RUN_FILE_BYTES",
    "RUN_MEMORY_BYTES",
    "RUN_OPEN_FILES",
    "RUN_OUTPUT_BYTES",
    "RUN_PROCESSES",
    "RUN_SECONDS",
    "RUN_SKILL_BYTES",
    "RUN_WORK_BYTES",
    "RUN_WORK_FILES",
    "SCRIPT_BYTES",
    "SETTLED_NS",
    "SILENT_SECONDS",
    "SKILL_FILE_BYTES",
    "STRAY_FOLDERS",
    "STREAMS_AT_ONCE",
    "SURVEY_DIRECTORIES",
    "WALK_DEPTH",
    "WALK_DIRECTORIES",
    "WARNINGS_TOLD",
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

STRAY_FOLDERS = 1_000
"""Folders of a project that `why` looks into for a skill of which no host knows."""

WALK_DEPTH = 64
"""Where a walk ends whose profile sets no depth: each level holds one descriptor open."""

CHECKED_DIRECTORIES = 200_000
"""Folders without a skill that a path given to `check` may hold before its walk stops; five files count as one."""

CHECKED_MENTIONS = 2_000
"""Links of one page, and as many paths in its sentences, that `check` looks for on the disk."""

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

PUBLISHED_FILES = 512
"""Files of one skill that the extension for skills over MCP lets a server publish."""

PUBLISHED_BYTES = 16 * 1024 * 1024
"""All files of such a skill together."""

PAGE_ENTRIES = 50
"""Entries on one page of a server's listing."""

PAGE_BYTES = 1024 * 1024
"""About what a page of a listing may take; the entry that goes beyond it is its last."""

PROMPTS_LISTED = 30
"""Up to so many skills a server offers each as a prompt."""

REQUEST_BYTES = 1024 * 1024
"""One message to a server."""

REQUEST_SECONDS = 150
"""How long a server works on one request over HTTP: longer than a script may run."""

REQUESTS_AT_ONCE = 64
"""Requests over HTTP that are served at one time."""

STREAMS_AT_ONCE = 256
"""Streams over HTTP that stay open for announcements, and clients that are remembered, at one time."""

BODY_SECONDS = 30
"""How long a client may take to send one request."""

SILENT_SECONDS = 15
"""How long a connection over HTTP may be without a request whose headers are all there; then it is closed."""

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
WARNINGS_TOLD = 200
"""Findings of one catalog that are events of their own; one more event says how many are not."""

OUTPUT_BLOCK = 16 * 1024
"""Characters of a script's output in one event."""

JOURNAL_LINE_BYTES = 1024 * 1024
"""A line of a journal: a longer event is shortened, a longer line of a stranger is not read."""

JOURNAL_MEMBER_BYTES = 16 * 1024
"""What a member of an event may take where the whole event is too long; more is cut and its digest kept."""

JOURNAL_DEPTH = 32
"""Levels of an event."""

JOURNAL_LOCK_SECONDS = 10
"""How long an event waits for the other writers of its journal before it counts as lost."""

JOURNAL_PROBLEMS = 1_000
"""Broken lines of a journal, or breaks in its chain, after which no more is read."""

JOURNAL_SESSIONS = 100_000
"""Sessions of one journal that are told apart."""

JOURNAL_NAMES = 10_000
"""Skills and tools of one journal that are counted each on their own."""

SCRIPT_BYTES = 1024 * 1024
"""A larger script is not run."""

RUN_SKILL_BYTES = 64 * 1024 * 1024
"""All files of a skill together, which are copied before one of its scripts runs."""

RUN_ARGUMENTS = 256
RUN_ARGUMENT_BYTES = 64 * 1024
"""All arguments of a script together."""

RUN_SECONDS = 120

RUN_OUTPUT_BYTES = 256 * 1024
"""What is handed on of each of a script's two streams."""

RUN_ARTIFACT_BYTES = 64 * 1024 * 1024
"""What is kept in a file of an output that was cut."""

RUN_MEMORY_BYTES = 1024 * 1024 * 1024
"""For each process of a script, and for all of them together."""

RUN_FILE_BYTES = 64 * 1024 * 1024
"""One file that a script writes."""

RUN_WORK_BYTES = 256 * 1024 * 1024
"""All files that a script writes."""

RUN_WORK_FILES = 20_000

RUN_PROCESSES = 128
"""Processes of a script at one time, their threads included."""

RUN_OPEN_FILES = 256
"""Files that one process of a script has open at one time."""

QUERY_CHARS = 8192
"""A longer query is cut, and the answer says so."""

QUERY_TERMS = 64
"""Terms of a query that are looked for: the rarest."""

INDEX_WAIT_SECONDS = 5
"""How long a search waits for another process that changes its index, before it makes one in memory."""

INDEXES_KEPT = 32
"""Search indexes in the cache folder; a new one takes the place of the one that was not changed for longest."""

RPC_LINE_BYTES = 16 * 1024 * 1024
"""One message of a client of `skillshelf rpc`; a longer line is refused unread."""

RPC_DEPTH = 64
"""Levels of a message."""

RPC_BATCH = 1_000
"""Messages of one batch."""

RPC_WAITING_BYTES = 64 * 1024 * 1024
"""What all requests that are not answered yet may take; more are refused until some are."""

RPC_SESSIONS = 256
"""Sessions that are open at one time."""

RPC_SHELVES = 64
"""Folders whose catalogs are kept; the one that was used longest ago leaves first."""

RPC_ASKING = 32
"""Requests without a session that may wait for a confirmation at one time; more wait their turn."""

RPC_CONFIRM_SECONDS = 60
"""How long a client may take to confirm; then it means no."""

RPC_END_SECONDS = 5
"""How long what still runs may take after a signal to end, and how long a client may leave its answers unread then."""
