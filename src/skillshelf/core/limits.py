"""Define every limit by name; exceeding one is always reported. docs/reference/limits.md lists them."""

__all__ = [
    "ADDRESS_CHARS",
    "ADDRESS_SEGMENTS",
    "APPROVALS_BYTES",
    "ARCHIVE_RATIO",
    "ARCHIVE_RATIO_FROM",
    "BASELINE_BYTES",
    "BODY_CHUNKS",
    "BODY_SECONDS",
    "BUFFERED_BYTES",
    "CACHE_FROM",
    "CACHE_ROWS",
    "CACHE_WAIT_SECONDS",
    "CHECKED_BYTES",
    "CHECKED_DIRECTORIES",
    "CHECKED_MENTIONS",
    "CHECKED_PAGES",
    "CHECKED_SCRIPTS",
    "CLIENT_IDLE_SECONDS",
    "CLIENT_SESSIONS",
    "CLIENT_TEXT_CHARS",
    "CONFIG_BYTES",
    "CONNECTIONS_AT_ONCE",
    "COPIED_BYTES",
    "DESCRIPTION_SHOWN",
    "DIFF_LINES",
    "FIRST_READ",
    "FOREIGN_BYTES",
    "FRONTMATTER_BYTES",
    "FRONTMATTER_DEPTH",
    "FRONTMATTER_KEYS",
    "GENERATIONS_KEPT",
    "GIT_LISTING_BYTES",
    "GIT_MEMORY_BYTES",
    "GIT_PACK_RATIO",
    "HELPER_BYTES",
    "HTTP_HEADER_BYTES",
    "HTTP_REDIRECTS",
    "IGNORE_COMMENTS",
    "IGNORE_RULES",
    "IGNORE_STEPS",
    "INDEXES_KEPT",
    "INDEX_WAIT_SECONDS",
    "INSTALLED_NAME_BYTES",
    "INSTALL_WAIT_SECONDS",
    "JOURNAL_ARGUMENT_BYTES",
    "JOURNAL_DEPTH",
    "JOURNAL_LINE_BYTES",
    "JOURNAL_LISTED_SKILLS",
    "JOURNAL_LOCK_SECONDS",
    "JOURNAL_MEMBER_BYTES",
    "JOURNAL_NAMES",
    "JOURNAL_PART_BYTES",
    "JOURNAL_PROBLEMS",
    "JOURNAL_SESSIONS",
    "KEPT_DOCUMENT_BYTES",
    "LINKED_FOLDERS",
    "LINKS_FOLLOWED",
    "LISTED_CHILDREN",
    "LISTED_ENTRIES",
    "LOCK_BYTES",
    "MCP_ANSWER_BYTES",
    "MCP_PAGES",
    "NAMES_IN_SCHEMA",
    "NETRC_BYTES",
    "OCI_MANIFEST_BYTES",
    "OTLP_CLOSE_SECONDS",
    "OTLP_EXPORT_SECONDS",
    "OTLP_QUEUE",
    "OTLP_SECONDS",
    "OUTPUT_BLOCK",
    "OUTSIDE_STAMPS",
    "PACKED_BYTES",
    "PACKED_KEPT",
    "PAGE_BYTES",
    "PAGE_ENTRIES",
    "PROMPTS_LISTED",
    "PUBLISHED_BYTES",
    "PUBLISHED_FILES",
    "QUERY_CHARS",
    "QUERY_TERMS",
    "RECORDS_BYTES",
    "REMOTE_BYTES",
    "REPOSITORY_FOLDERS",
    "REQUESTS_AT_ONCE",
    "REQUESTS_WAITING",
    "REQUEST_BYTES",
    "REQUEST_SECONDS",
    "REQUEST_WAIT_SECONDS",
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
    "RPC_WAIT_SECONDS",
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
    "SECURITY_BYTES",
    "SECURITY_FILES",
    "SECURITY_FILE_BYTES",
    "SECURITY_HITS",
    "SECURITY_WINDOWS",
    "SESSION_REST_SECONDS",
    "SETTLED_NS",
    "SILENT_SECONDS",
    "SKILL_FILE_BYTES",
    "SOURCE_ENTRIES",
    "SOURCE_INDEX_BYTES",
    "SOURCE_LABEL_CHARS",
    "SOURCE_REST_SECONDS",
    "SOURCE_SECONDS",
    "SOURCE_WHOLE_SECONDS",
    "STRAY_FOLDERS",
    "STREAMS_AT_ONCE",
    "SURVEY_DIRECTORIES",
    "TREE_BYTES",
    "TREE_FILES",
    "TREE_MANIFEST_BYTES",
    "UNFINISHED_AT_ONCE",
    "UNREAD_BYTES",
    "UNREAD_SECONDS",
    "UNSEEN_SHOWN",
    "WALK_DEPTH",
    "WALK_DIRECTORIES",
    "WARNINGS_TOLD",
]

SKILL_FILE_BYTES = 1024 * 1024
"""Largest SKILL.md that is read."""

FIRST_READ = 4096
"""Bytes of a SKILL.md that discovery reads first; more only if the closing fence is missing."""

FRONTMATTER_BYTES = 64 * 1024
FRONTMATTER_DEPTH = 8
FRONTMATTER_KEYS = 256

DESCRIPTION_SHOWN = 1024
"""Characters of a description that a model or a person is shown."""

WALK_DIRECTORIES = 20_000
"""Folders without a skill that one root may hold before its walk stops."""

COPIED_BYTES = 64 * 1024 * 1024
"""Bytes that `link` copies at most for a host that follows no links."""

SURVEY_DIRECTORIES = 100_000
"""Folders without a skill in one root after which a survey of all hosts goes on to the next root."""

LINKED_FOLDERS = 64
"""Folders without a skill behind all links of one root of a project, where hosts follow links out of it."""

UNSEEN_SHOWN = 3
"""Places that could not be scanned which `why` and `hosts` name; more are counted."""

REPOSITORY_FOLDERS = 20_000
"""Folders of a repository that the inventory walks; those that git ignores do not count."""

IGNORE_RULES = 1_000
"""Lines of one `.gitignore` that the walk of a repository follows."""

IGNORE_STEPS = 5_000_000
"""Parts of patterns in `.gitignore` files that are compared with folders before the walk of a repository ends."""

STRAY_FOLDERS = 1_000
"""Folders of a project that `why` searches for a skill that no host finds."""

WALK_DEPTH = 64
"""Depth at which a walk ends if the profile sets none: each level keeps one descriptor open."""

LINKS_FOLLOWED = 40
"""Links that one path inside a skill may lead through, as in the kernel."""

CHECKED_DIRECTORIES = 200_000
"""Folders without a skill that a path given to `check` may hold before its walk stops; five files count as one."""

CHECKED_BYTES = 64 * 1024 * 1024
"""Bytes of the SKILL.md files that `check` keeps as it finds them; others are read again when they are checked."""

IGNORE_COMMENTS = 64
"""Rules that the comments of one SKILL.md can ignore; `check` does not read more."""

BASELINE_BYTES = 16 * 1024 * 1024
"""Bytes of a baseline of `check` that are read."""

CHECKED_MENTIONS = 2_000
"""Links of one page, and as many paths in its text, that `check` looks up on the disk."""

CHECKED_PAGES = 64
"""Pages of one skill whose links `check` follows."""

CHECKED_SCRIPTS = 256
"""Scripts of one skill that `check` inspects."""

SECURITY_FILES = 512
"""Files of one skill in which the security rules search."""

SECURITY_FILE_BYTES = 1024 * 1024
"""Largest file in which they search."""

SECURITY_BYTES = 16 * 1024 * 1024
"""Bytes of all files of one skill in which they search."""

SECURITY_HITS = 10
"""Findings of one security rule that are reported for one file."""

SECURITY_WINDOWS = 200
"""Places of one file at which one sign of an attack is looked for."""

RESOURCE_BYTES = 1024 * 1024
"""Bytes of a resource that are read unless the caller sets another limit."""

LISTED_CHILDREN = 512
"""Names that reading the address of a folder lists."""

LISTED_ENTRIES = 20_000
"""Entries of one skill's folder that are visited to list its files."""

APPROVALS_BYTES = 8 * 1024 * 1024
"""Largest file of approvals that is read."""

RECORDS_BYTES = 32 * 1024 * 1024
"""Largest file of records of links and copies that is read or written."""

TREE_FILES = 512
"""Files of a skill whose tree digest decides something; the command `digest` has no such limit."""

TREE_BYTES = 16 * 1024 * 1024
"""Bytes of all files of such a skill, by their sizes before any is read."""

TREE_MANIFEST_BYTES = 1024 * 1024
"""The text with the names and digests of all files of such a skill, which the store keeps beside it."""

LOCK_BYTES = 8 * 1024 * 1024
"""Largest `skillshelf.lock`, and largest list of a generation, that is read."""

DIFF_LINES = 2000
"""Lines of a text that are compared one by one; a longer text that changed is shown as removed and added."""

GENERATIONS_KEPT = 20
"""Generations of installed skills that `rollback` can go back to; older ones are removed."""

INSTALL_WAIT_SECONDS = 60.0
"""Time to wait for another process that installs in the same scope."""

SOURCE_ENTRIES = 4096
"""Skills that one source may offer."""

SOURCE_SECONDS = 10.0
"""Time for one request to a source of skills."""

MCP_PAGES = 256
"""Pages of a list of skills that are asked for at one MCP server."""

MCP_ANSWER_BYTES = 32 * 1024 * 1024
"""Bytes of one answer of an MCP server; the text of a file takes more than the file."""

SOURCE_LABEL_CHARS = 512
"""Characters of the label of a live source."""

SOURCE_REST_SECONDS = 60.0
"""Time in which a server that reads the disk again does not ask live sources again."""

REMOTE_BYTES = 64 * 1024 * 1024
"""Bytes of files of live sources that one shelf holds in memory."""
SOURCE_INDEX_BYTES = 8 * 1024 * 1024
"""Largest index of a site that is read."""

HTTP_HEADER_BYTES = 64 * 1024
"""Bytes of the headers of one answer of a site or registry."""

HTTP_REDIRECTS = 5
"""Redirects that one request to a site or registry follows."""

NETRC_BYTES = 64 * 1024
"""Largest `.netrc` that is read."""

HELPER_BYTES = 64 * 1024
"""Bytes that a credential helper may print."""

OCI_MANIFEST_BYTES = 4 * 1024 * 1024
"""Largest manifest or configuration of a registry that is read."""

FOREIGN_BYTES = 8 * 1024 * 1024
"""Largest lock or list of another program that is imported."""

SOURCE_WHOLE_SECONDS = 60.0
"""Time for the whole fetch of a repository, and for each answer of git about it."""

ARCHIVE_RATIO = 200
"""Size of what an archive holds, as a multiple of its own size."""

ARCHIVE_RATIO_FROM = 1024 * 1024
"""Bytes that an archive may hold whatever its own size is."""

GIT_PACK_RATIO = 16
"""Bytes that git may write to disk for one version of a repository, as a multiple of those of the largest skill."""

GIT_MEMORY_BYTES = 1024 * 1024 * 1024
"""Memory of each process of git, where the system can limit it."""

GIT_LISTING_BYTES = 64 * 1024 * 1024
"""Bytes of the list of all files of a repository."""

PUBLISHED_FILES = 512
"""Files of one skill that a server publishes by the skills extension of MCP."""

PUBLISHED_BYTES = 16 * 1024 * 1024
"""Bytes of all files of such a skill."""

PAGE_ENTRIES = 50
"""Entries on one page of a server's listing."""

PAGE_BYTES = 1024 * 1024
"""Approximate size of a page of a listing; the entry that exceeds it is its last."""

PROMPTS_LISTED = 30
"""Largest number of skills that a server offers as prompts, one each."""

REQUEST_BYTES = 1024 * 1024
"""Bytes of one message to a server."""

REQUEST_SECONDS = 150
"""Time for one request over HTTP; longer than a script may run."""

REQUESTS_AT_ONCE = 64
"""Concurrent requests over HTTP; a request counts from the moment its body is complete."""

REQUESTS_WAITING = 2_048
"""Complete requests over HTTP that wait in line for their turn; further ones are refused with status 503."""

REQUEST_WAIT_SECONDS = 30
"""Time that a request waits in line, and the opening of a client session for room, before status 503."""

UNFINISHED_AT_ONCE = 512
"""Requests over HTTP without a complete body; beyond it the slowest of them are ended, and nobody else."""

BUFFERED_BYTES = 64 * 1024 * 1024
"""Bytes of all bodies that are incomplete or wait in line; beyond it incomplete ones are ended, the largest first."""

BODY_CHUNKS = 100
"""Chunks of a body with chunked encoding, and one more for each 64 bytes; with more the connection is closed."""

UNREAD_BYTES = 128 * 1024 * 1024
"""Bytes of responses over HTTP that clients have not read; beyond it the largest are cut off."""

UNREAD_SECONDS = 60
"""Time for a client to read a response over HTTP."""

CONNECTIONS_AT_ONCE = 4_096
"""Open connections over HTTP, or as many as the system allows; beyond it those without a request are closed."""

STREAMS_AT_ONCE = 1_024
"""Concurrent event streams over HTTP, and clients that are notified of changes."""

CLIENT_SESSIONS = 1_024
"""Client sessions of the older era of MCP over HTTP; a new one ends the one that was idle longest."""

SESSION_REST_SECONDS = 3
"""Time without a request before which no such client session is ended for a new one, which waits instead."""

CLIENT_IDLE_SECONDS = 3600
"""Time without a request after which such a client session is ended."""

CLIENT_TEXT_CHARS = 2 * 1024 * 1024
"""Characters of texts that a client session of the MCP server keeps; after that it drops them."""

BODY_SECONDS = 30
"""Time for a client to send one request."""

SILENT_SECONDS = 15
"""Time after which a connection over HTTP without complete request headers is closed."""

INSTALLED_NAME_BYTES = 200
"""Longest name of an installed skill: a file system takes 255 bytes, and temporary names beside it are longer."""

ADDRESS_CHARS = 4096
ADDRESS_SEGMENTS = 32

NAMES_IN_SCHEMA = 50
"""Largest number of skills whose names a tool's schema lists."""

CONFIG_BYTES = 1024 * 1024

CACHE_FROM = 64
"""Files of one root from which on the cache is used: reading fewer is faster than opening it."""

CACHE_ROWS = 256
"""Roots in the cache; the oldest entries are removed first."""

PACKED_KEPT = 64
"""Packed catalogs in the cache, one for each set of roots and settings; the oldest are removed first."""

PACKED_BYTES = 1 << 28
"""The largest packed catalog that is written or read."""

CACHE_WAIT_SECONDS = 0.05
"""Time that a command waits for a cache that another one is writing."""

OUTSIDE_STAMPS = 4_000
"""Folders of the inventory up to which other views say how many skills they leave out: each of them is looked at."""

SETTLED_NS = 2_000_000_000
"""A file that changed less than this before it was read is read again next time."""

WARNINGS_TOLD = 200
"""Findings of one catalog that are recorded as events; one more event counts the rest."""

OUTPUT_BLOCK = 16 * 1024
"""Characters of a script's output in one event."""

JOURNAL_LINE_BYTES = 1024 * 1024
"""Bytes of a line of a journal: a longer event is shortened, a longer line in a file is not read."""

JOURNAL_MEMBER_BYTES = 16 * 1024
"""Bytes of a member of an event that is too long as a whole; a longer member is cut and its digest kept."""

JOURNAL_ARGUMENT_BYTES = 4 * 1024
"""Bytes of the arguments of a host's tool in an event; of longer ones the event has the digest."""

JOURNAL_DEPTH = 32
"""Levels of nesting in an event."""

JOURNAL_LOCK_SECONDS = 10
"""Time that an event waits for other writers of its journal before it counts as lost."""

JOURNAL_PROBLEMS = 1_000
"""Broken lines of a journal, or breaks in its chain, after which reading stops."""

OTLP_QUEUE = 10_000
"""Events that wait to be sent to an OpenTelemetry receiver; more are lost."""

OTLP_SECONDS = 2.5
"""Time that a receiver has for one request of a session, with its repetitions."""

OTLP_EXPORT_SECONDS = 15
"""The same time when a journal is exported."""

OTLP_CLOSE_SECONDS = 5
"""Time that a session waits at its end until its events are sent."""

JOURNAL_LISTED_SKILLS = 5_000
"""Skills of a catalog that a journal lists."""

JOURNAL_PART_BYTES = 4096
"""The least size at which a journal may be rotated."""

JOURNAL_SESSIONS = 100_000
"""Sessions of one journal that are counted separately."""

JOURNAL_NAMES = 10_000
"""Skills, and tools, of one journal that are counted separately."""

KEPT_DOCUMENT_BYTES = 256 * 1024 * 1024
"""Bytes of a document with kept inputs, of which the one with a catalog is the largest: about 1 KiB for each skill."""

SCRIPT_BYTES = 1024 * 1024
"""Largest script that is run."""

RUN_SKILL_BYTES = 64 * 1024 * 1024
"""Bytes of all files of a skill, which are copied before one of its scripts runs."""

RUN_ARGUMENTS = 256
RUN_ARGUMENT_BYTES = 64 * 1024
"""Bytes of all arguments of a script."""

RUN_SECONDS = 120

RUN_OUTPUT_BYTES = 256 * 1024
"""Bytes of each of a script's two streams that are returned."""

RUN_ARTIFACT_BYTES = 64 * 1024 * 1024
"""Bytes of a cut output that are kept in a file."""

RUN_MEMORY_BYTES = 1024 * 1024 * 1024
"""Memory of each process of a script, and of all of them together, without what its files take."""

RUN_FILE_BYTES = 64 * 1024 * 1024
"""Bytes of one file that a script writes."""

RUN_WORK_BYTES = 256 * 1024 * 1024
"""Bytes of all files that a script writes, and the size of each file system that it writes to."""

RUN_WORK_FILES = 20_000

RUN_PROCESSES = 128
"""Concurrent processes and threads of a script."""

RUN_OPEN_FILES = 256
"""Open files of one process of a script."""

QUERY_CHARS = 8192
"""Characters of a query; a longer one is cut, and the result says so."""

QUERY_TERMS = 64
"""Terms of a query that are searched for: the rarest."""

INDEX_WAIT_SECONDS = 5
"""Time that a search waits for another process to update the index before it builds one in memory."""

INDEXES_KEPT = 32
"""Search indexes in the cache folder; a new one replaces the one unchanged for longest."""

CONVERSATIONS_KEPT = 1_024
"""Sessions that an adapter keeps for conversations; the least recently used ends first."""

CONVERSATION_IDLE_SECONDS = 3_600
"""Time after which the session of a conversation without calls ends."""

RPC_LINE_BYTES = 16 * 1024 * 1024
"""Bytes of one message to `skillshelf rpc`; a longer line is refused unread."""

RPC_DEPTH = 64
"""Levels of nesting in a message."""

RPC_BATCH = 1_000
"""Messages of one batch."""

RPC_WAITING_BYTES = 64 * 1024 * 1024
"""Bytes of all requests that wait for their answers; further ones are not read until there is room."""

RPC_WAIT_SECONDS = 20
"""Time that the server waits for room before it refuses a request; it does not while the client must confirm."""

RPC_SESSIONS = 256
"""Open sessions."""

RPC_SHELVES = 64
"""Folders whose catalogs are kept; the least recently used is removed first."""

RPC_ASKING = 32
"""Requests without a session that wait for a confirmation at one time; further ones queue."""

RPC_CONFIRM_SECONDS = 60
"""Time for a client to confirm; after it the answer is no."""

RPC_END_SECONDS = 5
"""Time for running requests to end after a signal, and for a client to read its answers then."""
