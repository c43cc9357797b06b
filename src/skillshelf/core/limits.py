"""Define every limit by name; exceeding one is always reported. docs/reference/limits.md lists them."""

__all__ = [
    "ADDRESS_CHARS",
    "ADDRESS_SEGMENTS",
    "APPROVALS_BYTES",
    "ARCHIVE_RATIO",
    "ARCHIVE_RATIO_FROM",
    "AUTHORIZED_SECONDS",
    "BASELINE_BYTES",
    "BLOB_BYTES",
    "BLOB_CHECK_SECONDS",
    "BLOB_SECONDS",
    "BODY_CHUNKS",
    "BODY_SECONDS",
    "BUFFERED_BYTES",
    "CACHE_FROM",
    "CACHE_ROWS",
    "CACHE_WAIT_SECONDS",
    "CALLERS_KEPT",
    "CATALOG_POLL_SECONDS",
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
    "COPIES_BYTES",
    "COPIES_COMPARED",
    "DATABASE_CONNECTIONS",
    "DATABASE_WAIT_SECONDS",
    "DESCRIPTION_SHOWN",
    "DIFF_LINES",
    "DISK_LEAST_BYTES",
    "EMBEDDINGS_AT_ONCE",
    "EMBEDDINGS_KEPT",
    "EMBEDDING_ANSWER_BYTES",
    "EMBEDDING_CHARS",
    "EMBEDDING_NUMBERS",
    "EMBEDDING_REST_SECONDS",
    "EMBEDDING_SECONDS",
    "EMBEDDING_TRIES",
    "EMBEDDING_WAIT_SECONDS",
    "EMBEDDING_WHOLE_SECONDS",
    "EVAL_COLLISION_SKILLS",
    "EVAL_CONCURRENT_RUNS",
    "EVAL_DEPTH",
    "EVAL_FILE_BYTES",
    "EVAL_INDEX_BYTES",
    "EVAL_JUDGED_CHARS",
    "EVAL_JUDGE_SECONDS",
    "EVAL_OUTPUTS",
    "EVAL_PATTERN_SECONDS",
    "EVAL_QUERIES",
    "EVAL_RUNS",
    "EVAL_RUN_REQUESTS",
    "EVAL_RUN_SECONDS",
    "EVAL_RUN_TOKENS",
    "EVAL_RUN_TOOL_CALLS",
    "EVAL_TASK_FILES",
    "EVAL_WORK_BYTES",
    "EVAL_WORK_FILES",
    "EVAL_YAML_KEYS",
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
    "HOST_VERDICTS_KEPT",
    "HTTP_HEADER_BYTES",
    "HTTP_REDIRECTS",
    "IGNORE_COMMENTS",
    "IGNORE_RULES",
    "IGNORE_STEPS",
    "INDEXES_KEPT",
    "INDEX_WAIT_SECONDS",
    "INSTALLED_NAME_BYTES",
    "INSTALL_WAIT_SECONDS",
    "ISSUER_BYTES",
    "ISSUER_FIRST_SECONDS",
    "ISSUER_KEYS",
    "ISSUER_SECONDS",
    "JOURNAL_ALARMS",
    "JOURNAL_ARGUMENT_BYTES",
    "JOURNAL_BATCH_BYTES",
    "JOURNAL_BATCH_LINES",
    "JOURNAL_DEPTH",
    "JOURNAL_LINE_BYTES",
    "JOURNAL_LISTED_SKILLS",
    "JOURNAL_LOCK_SECONDS",
    "JOURNAL_MEMBER_BYTES",
    "JOURNAL_NAMES",
    "JOURNAL_PAGE_BYTES",
    "JOURNAL_PART_BYTES",
    "JOURNAL_PROBLEMS",
    "JOURNAL_PUSH_SECONDS",
    "JOURNAL_PUSH_TRIES",
    "JOURNAL_ROWS",
    "JOURNAL_SESSIONS",
    "JOURNAL_STORED_SECONDS",
    "JOURNAL_STORE_SECONDS",
    "KEPT_DOCUMENT_BYTES",
    "KEY_REFETCH_SECONDS",
    "KNOWN_AWAY_SECONDS",
    "KNOWN_SECONDS",
    "LINKED_FOLDERS",
    "LINKS_FOLLOWED",
    "LISTED_CHILDREN",
    "LISTED_ENTRIES",
    "LOCK_BYTES",
    "LOGINS_PER_SUBJECT",
    "LOGIN_SECONDS",
    "MCP_ANSWER_BYTES",
    "MCP_PAGES",
    "MIGRATION_WAIT_SECONDS",
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
    "QUERY_RAREST",
    "QUERY_SEGMENTS",
    "QUERY_SINGLES",
    "QUERY_TERMS",
    "RECORDS_BYTES",
    "RELEASES_LISTED",
    "RELEASE_FINDINGS",
    "RELEASE_PAGES",
    "RELEASE_VERSION_CHARS",
    "REMOTE_BYTES",
    "REPOSITORY_FOLDERS",
    "REQUESTS_AT_ONCE",
    "REQUESTS_WAITING",
    "REQUEST_BYTES",
    "REQUEST_SECONDS",
    "REQUEST_WAIT_SECONDS",
    "RESOURCE_BYTES",
    "RETENTION_LOCK_SECONDS",
    "RETENTION_SECONDS",
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
    "SECRET_FILE_BYTES",
    "SECURITY_BYTES",
    "SECURITY_FILES",
    "SECURITY_FILE_BYTES",
    "SECURITY_HITS",
    "SECURITY_WINDOWS",
    "SERVERS_BYTES",
    "SESSION_REST_SECONDS",
    "SETTLED_NS",
    "SILENT_SECONDS",
    "SKILL_FILE_BYTES",
    "SNAPSHOTS_KEPT",
    "SNAPSHOT_LAG",
    "SOURCE_ENTRIES",
    "SOURCE_INDEX_BYTES",
    "SOURCE_LABEL_CHARS",
    "SOURCE_REST_SECONDS",
    "SOURCE_SECONDS",
    "SOURCE_WHOLE_SECONDS",
    "STATEMENT_SECONDS",
    "STRAY_FOLDERS",
    "STREAMS_AT_ONCE",
    "SURVEY_DIRECTORIES",
    "TEAM_CATALOGS",
    "TEAM_PAGE",
    "TEAM_THREADS",
    "TENANTS_OPEN",
    "TOKEN_CHARS",
    "TREE_BYTES",
    "TREE_FILES",
    "TREE_MANIFEST_BYTES",
    "UNFINISHED_AT_ONCE",
    "UNREAD_BYTES",
    "UNREAD_SECONDS",
    "UNSEEN_SHOWN",
    "UPLOAD_BYTES",
    "USAGE_A_DAY",
    "USAGE_BYTES",
    "USAGE_QUESTION_SECONDS",
    "USAGE_ROWS",
    "USAGE_SEARCHES",
    "USAGE_SECONDS",
    "USAGE_TERMS",
    "USAGE_WAIT_SECONDS",
    "WALK_DEPTH",
    "WALK_DIRECTORIES",
    "WARNINGS_TOLD",
    "WEB_CONNECTIONS",
    "WEB_DIFF_CHARS",
    "WEB_DIFF_LINES",
    "WEB_FILES",
    "WEB_FILE_BYTES",
    "WEB_HIT_CHARS",
    "WEB_MARKDOWN_CHARS",
    "WEB_PEOPLE_DAYS",
    "WEB_REFRESH_SECONDS",
    "WEB_ROWS",
    "WEB_SEARCH_CHARS",
    "WEB_SESSIONS",
    "WEB_SITE_FILE_BYTES",
    "WEB_SITE_MARKER_BYTES",
    "WEB_STORY_EVENTS",
    "WEB_TABLE_COLUMNS",
    "WEB_TOKEN_SECONDS",
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
"""Concurrent requests over HTTP; a request counts from the moment its body is complete. A person has at most half."""

PROBES_AT_ONCE = 8
"""Concurrent requests of operators to a team server: health, readiness, metrics. Other requests never take these."""

FILE_THREADS = 8
"""Requests that may wait for the blob store of a team server, and run at one time; others have threads of their own."""

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
"""Bytes of responses over HTTP that clients have not read; beyond it those that took most for longest are cut off."""

AUTHORIZED_SECONDS = 2
"""Time after which a server looks again whether the sender of an open stream may have it."""

UNREAD_SECONDS = 60
"""Time for a client to read a response over HTTP."""

CONNECTIONS_AT_ONCE = 4_096
"""Open connections over HTTP, or as many as the system allows; beyond it those without a request are closed."""

STREAMS_AT_ONCE = 1_024
"""Concurrent event streams over HTTP, and clients that are notified of changes."""

CLIENT_SESSIONS = 1_024
"""Client sessions of the older era of MCP over HTTP; a new one ends the longest idle of whoever has most."""

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

USAGE_ROWS = 5_000
"""Rows of the history of use; the oldest are removed first."""

USAGE_SEARCHES = 50
"""Rows of it that are searches after which nothing was loaded yet; the oldest are removed first."""

USAGE_TERMS = 64
"""Terms of a search that the history keeps: the rarest."""

USAGE_BYTES = 16 * 1024 * 1024
"""The largest history of use that is read."""

USAGE_SECONDS = 600
"""Time after a search in which a load of one of its results counts as its success."""

USAGE_A_DAY = 3
"""Loads of one skill that count on one day."""

USAGE_QUESTION_SECONDS = 20
"""Time after which the question whether searches may learn stays open: a program may sit at the terminal."""

USAGE_WAIT_SECONDS = 5.0
"""Time that a search or a load waits for a history of use that another process is writing."""

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
"""Characters of a query; of a longer one its beginning and its end are searched for, and the result says so."""

QUERY_RAREST = 64
"""Terms of a query that are searched for where terms are plain: the rarest."""

QUERY_SEGMENTS = 64
"""Segments of a query that are scored each; of more, those that ask for something and those near both ends."""

QUERY_SINGLES = 32
"""Single characters of a script without blanks that a query of nothing else is searched for."""

QUERY_TERMS = 400
"""Different terms of a query that are searched for; of more, those of the segments that ask for something."""

COPIES_COMPARED = 1024
"""Results of a search among which copies of one text are looked for."""

COPIES_BYTES = 8 * 1024 * 1024
"""Bytes that one search reads to compare texts; a file counts for 16 KiB more than it has."""

EVAL_FILE_BYTES = 8 * 1024 * 1024
"""Largest file of test cases of a skill, and largest former result of `eval`, that is read."""

EVAL_QUERIES = 1_000
"""Queries of one skill, or of one file given to `eval`, that are tried."""

EVAL_OUTPUTS = 200
"""Tasks with expected results of one skill that are read."""

EVAL_TASK_FILES = 200
"""Files with one task each of one skill that are read."""

EVAL_YAML_KEYS = 10_000
"""Keys of one YAML file of test cases."""

EVAL_DEPTH = 100
"""Places of a ranking among which `eval` looks for a skill; one further down counts as not found."""

EVAL_COLLISION_SKILLS = 5_000
"""Skills that are searched for by their own descriptions to find similar ones."""

INDEX_WAIT_SECONDS = 5
"""Time that a search waits for another process to update the index before it builds one in memory."""

INDEXES_KEPT = 32
"""Search indexes in the cache folder; a new one replaces the one unchanged for longest."""

EMBEDDINGS_AT_ONCE = 32
"""Texts in one request to a server of embeddings; some servers take no more."""

EMBEDDING_CHARS = 2_000
"""Characters of the description of a skill, and of a query, that are embedded."""

EMBEDDING_NUMBERS = 4_096
"""Numbers of one embedding."""

EMBEDDING_ANSWER_BYTES = 8 * 1024 * 1024
"""Bytes of one answer of a server of embeddings."""

EMBEDDING_TRIES = 2
"""Times that one request is sent to a server of embeddings which is busy or fails."""

EMBEDDING_SECONDS = 10.0
"""Time for one request to a server of embeddings, and the longest pause that it may ask for."""

EMBEDDING_WHOLE_SECONDS = 20.0
"""Time that one search spends on embeddings of skills; the next one goes on."""

EMBEDDING_REST_SECONDS = 60.0
"""Time in which a server of embeddings that failed is not asked again."""

EMBEDDING_WAIT_SECONDS = 2.0
"""Time that a search waits while another one asks for the embeddings of skills, or another process stores some."""

EMBEDDINGS_KEPT = 50_000
"""Embeddings in the cache folder, and skills of a catalog that are embedded; the oldest are removed first."""

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

EVAL_RUNS = 100
"""Runs of one test case with a model."""

EVAL_CONCURRENT_RUNS = 4
"""Runs with a model at one time."""

EVAL_RUN_REQUESTS = 16
"""Requests to a model in one run; a run that needs more has ended in an error."""

EVAL_RUN_TOOL_CALLS = 48
"""Tool calls of a model in one run."""

EVAL_RUN_TOKENS = 500_000
"""Tokens of one run, read and written."""

EVAL_RUN_SECONDS = 300
"""Time of one run."""

EVAL_JUDGE_SECONDS = 120
"""Time for a model to judge one assertion."""

EVAL_JUDGED_CHARS = 60_000
"""Characters of an answer, and of each file, that a judging model is shown."""

EVAL_WORK_FILES = 200
"""Files in the working folder of a run: those that a case brings, and those that a model writes."""

EVAL_WORK_BYTES = 20 * 1024 * 1024
"""Bytes of one file in the working folder of a run."""

EVAL_PATTERN_SECONDS = 5
"""Time for the regular expression of an assertion; one that takes longer has ended in an error."""

EVAL_INDEX_BYTES = 64 * 1024 * 1024
"""Bytes of the index of a folder of recorded runs."""

SECRET_FILE_BYTES = 4096
"""Bytes of a file with a token, a password, or the address of a team database."""

DATABASE_CONNECTIONS = 8
"""Connections of one server to PostgreSQL, and unused ones to each SQLite file; further transactions wait."""

DATABASE_WAIT_SECONDS = 5
"""Time to wait for the database, for a connection to it, and for another writer."""

MIGRATION_WAIT_SECONDS = 60
"""Time to wait for another process that migrates the database."""

STATEMENT_SECONDS = 20
"""Time of one statement in PostgreSQL."""

TENANTS_OPEN = 64
"""Tenants whose SQLite files stay open; the least recently used is closed first."""

BLOB_BYTES = 256 * 1024 * 1024
"""Bytes of one blob of a team server: an archive of a skill, or a snapshot of a search index."""

BLOB_CHECK_SECONDS = 10
"""Time after which `/ready` looks again whether the blob store can be used."""

DISK_LEAST_BYTES = 1 << 20
"""Free bytes on a disk below which a team server says that there is no space left."""

BLOB_SECONDS = 60
"""Time for one request to a blob store."""

UPLOAD_BYTES = TREE_BYTES + 1024 * 1024
"""Bytes of the archive that a release is published with."""

RELEASES_LISTED = 1000
"""Releases in one answer of a team server; `next` leads to those after them."""

RELEASE_FINDINGS = 200
"""Findings of `check` that a team server keeps of a release; of the others it keeps how many there are."""

RELEASE_PAGES = 100
"""Pages of releases that `release list` reads of a team server."""

RELEASE_VERSION_CHARS = 128
"""Characters of the version of a release."""

CATALOG_POLL_SECONDS = 2
"""Time after which a team server looks for a new revision of a catalog, if nobody tells it before."""

SNAPSHOTS_KEPT = 3
"""Snapshots of the search index that a team server keeps unpacked for each tenant."""

SNAPSHOT_LAG = 1000
"""Releases newer than the snapshot whose text a team server searches at once; of more, the oldest wait for the next."""

KNOWN_SECONDS = 60
"""Time for which the team server takes a checked token and the keys of an issuer as valid without asking again."""

KNOWN_AWAY_SECONDS = 600
"""Time for which known tokens work while the database or the issuer does not answer."""

KEY_REFETCH_SECONDS = 10
"""Time between two requests to an issuer for its keys, however many tokens name unknown ones."""

CALLERS_KEPT = 10_000
"""Checked tokens in memory; the least recently used is forgotten first."""

TOKEN_CHARS = 8_192
"""Characters of a token; a longer one is refused unread."""

ISSUER_BYTES = 256 * 1024
"""Bytes of a document of an issuer."""

ISSUER_KEYS = 64
"""Keys of an issuer; further ones do not count."""

ISSUER_FIRST_SECONDS = 1
"""Time that a token waits while another one fetches the first keys of an issuer."""

ISSUER_SECONDS = 5
"""Time for an issuer to answer."""

LOGIN_SECONDS = 12 * 3600
"""Time of a login in a browser."""

LOGINS_PER_SUBJECT = 16
"""Logins of one subject; a further one ends the oldest."""

JOURNAL_BATCH_BYTES = 4 * 1024 * 1024
"""Bytes of the lines of a journal that are sent to a server at once, before they are compressed."""

JOURNAL_BATCH_LINES = 2_000
"""Lines of a journal that are sent to a server at once."""

RETENTION_SECONDS = 3600.0
"""Time after which a server with `--keep-lines` looks again whether lines of journals are too old."""

RETENTION_LOCK_SECONDS = 2
"""Time for which retention in PostgreSQL waits for those who read lines; whoever stores some waits behind it."""

JOURNAL_ALARMS = 100
"""Alarms of one kind about one journal that a server keeps; more are not recorded."""

JOURNAL_PUSH_TRIES = 6
"""Times that `log push` sends a batch to a server that is away, with pauses that double; then it gives up."""

JOURNAL_PUSH_SECONDS = 10
"""Time that a command waits at its end for its journal to be sent, if the configuration says so."""

JOURNAL_ROWS = 1_000
"""Lines, sessions, streams, alarms or counts in one answer of a team server; the next request goes on from there."""

JOURNAL_PAGE_BYTES = 4 * 1024 * 1024
"""Bytes of the lines of a journal in one answer or page of a team server; one line is always in it."""

TEAM_CATALOGS = 64
"""Catalogs of the team server in memory, one for each tenant and subset of names in use; the least recently used is
closed first."""

TEAM_THREADS = 16
"""Requests to the API and the pages that run at one time; further ones wait."""

TEAM_PAGE = 200
"""Entries on one page of a listing of the API."""

TEAM_SKILL_TEXT = 1024 * 1024
"""Bytes of a SKILL.md that the API gives."""

SERVERS_BYTES = 1024 * 1024
"""Bytes of the file with the revisions of team servers that were seen."""

WEB_ROWS = 200
"""Rows of one page of a list in a browser."""

HOST_VERDICTS_KEPT = 1_000
"""Skills of a catalog for which a team server keeps what each host makes of them; it is found out again for others."""

WEB_MARKDOWN_CHARS = 60_000
"""Characters of a SKILL.md that its page shows as formatted text; the rest is in the raw file."""

WEB_TABLE_COLUMNS = 60
"""Columns of a table on the page of a skill; with a wider one the tables of that text are shown as they are written."""

WEB_DIFF_LINES = 3_000
"""Lines of a difference on one page; files with few are shown whole, and long ones share the rest."""

WEB_DIFF_CHARS = 500_000
"""Characters of a difference on one page, shared in the same way."""

WEB_SEARCH_CHARS = 400
"""Characters of a query that is typed into a page."""

WEB_HIT_CHARS = 280
"""Characters of the beginning of a description among the results of a search; matches after it are shown, too."""

WEB_FILES = 500
"""Files of a skill that its page lists."""

WEB_FILE_BYTES = 16 * 1024 * 1024
"""Bytes of a file of a skill that a page gives."""

WEB_SITE_FILE_BYTES = 256 * 1024
"""Bytes of a file of a skill that a static site has a copy of."""

WEB_SESSIONS = 5_000
"""Sessions of all journals that the pages know; older ones are left out."""

WEB_STORY_EVENTS = 1_000
"""Events of one session on its page."""

WEB_PEOPLE_DAYS = 30
"""Days of which the page of a team server counts the use by people; the API counts those that are asked for."""

WEB_TOKEN_SECONDS = 60
"""Time in which the address that `ui` prints must be opened."""

WEB_REFRESH_SECONDS = 5
"""Age from which on a page has the disk read again, behind its answer."""

WEB_CONNECTIONS = 64
"""Requests that `ui` answers at one time."""

WEB_SITE_MARKER_BYTES = 64 * 1024 * 1024
"""Bytes of the list of files that a static site keeps in its folder."""

JOURNAL_STORE_SECONDS = 1
"""Time after which a team server stores what it recorded of its own sessions."""

JOURNAL_STORED_SECONDS = 600
"""Time after which a team server removes stored lines of its own sessions from its folder."""
