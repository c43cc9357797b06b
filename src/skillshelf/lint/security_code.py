"""Judge code by what it combines: a secret and a way out, hidden names and a call, a file of another skill and an order.

The parts stand in different lines of one program, or of one block of code in a page. What is generated from a block is
run by somebody, so a template is judged like a script.
"""

import re
from collections.abc import Iterator
from itertools import islice

from skillshelf.core.limits import SECURITY_HITS
from skillshelf.lint.security_prose import Sign, is_foreign_place, orders_in
from skillshelf.lint.security_search import search
from skillshelf.lint.security_signals import SENDS, STRONG_SECRET, pattern_of
from skillshelf.lint.security_words import Words

__all__ = ["CODE_TOKENS", "CODE_WORDS", "SEARCHED", "block_signs", "program_signs", "unmasked"]

_LONGEST = 200_000

# Parts ----------------------------------------------------------------------------------------------

_WHOLE_ENVIRONMENT = (
    r"(?:^|[\n;&|(`{]|\$\()\s{0,8}(?:env|printenv|export -p|declare -x|compgen -v)\s{0,4}(?:\||\)|>|`|;|$)|dict\(os\.environ\)|os\.environ\.copy\(\)|os\.environ\.items|json\.dumps\([^\n]{0,20}os\.environ|\*\*os\.environ\b(?=\s*\}\s*\))"
    r"|json\.stringify\(\s*process\.env|object\.(?:entries|keys|fromentries)\(\s*process\.env|get-childitem env:|gci env:|\[environment\]::getenvironmentvariables"
)
_OWN_LOGIN = r"gh auth token|git credential (?:fill|approve)|gcloud auth print-\w+-token|aws configure get|az account get-access-token|npm token|op read |pass show|secret-tool lookup|find-generic-password|cmdkey|keyring\.get_password|vault token|kubectl config view --raw|ssh-add -l"
_KEY_FILES = rf"{STRONG_SECRET}|(?:glob|find|add -f|git add|cat|cp|tar|zip|open|read\w*|ls-files)\b[^\n]{{0,80}}(?:\.env\b(?!\.(?:example|sample|template))|\.pem\b|\.key\b|\.kdbx|\.tfstate|\.tfvars|\.p12|\.pfx|\.ovpn)|\b(?:tar|zip|cp|rsync|find|walk|scp|7z|copytree|make_archive)\b[^\n]{{0,60}}/\.(?:ssh|aws|gnupg|kube|config|docker)\b|\.terraform\.d/credentials|\.password-store|\.thunderbird|\.mozilla/firefox|\.config/(?:gcloud|op|rclone|gh)\b|\.vault-token|\.pgpass|\.my\.cnf|(?:~|\$home|\$.home.|home\(\)|homedir\(\))/?[\"']?[\s+,)/]{{0,4}}[\"']?/?\.\w{{0,3}}[*?\[]|home\(\)\.r?glob\(\s*[\"']\."
_PASSING_LOGIN = (
    r"dict\(\w{0,12}\.?headers\)|\breq(?:uest)?\.headers\b(?!\s*[\[.]\s*[\"']?(?:content|accept|host|x-request|user-agent))|request\.get_data|headers?\)?(?:\.get\(|\[)\s*[\"'](?:authorization|cookie|x-api-key|set-cookie)[\"']|\bh\.get\([\"']authorization|headers?\.(?:authorization|cookie)\b|document\.cookie|localstorage\b|sessionstorage\b|req(?:uest)?\.(?:body|form|json\(\))[^\n]{0,30}passw|request\.post\.get\([\"']passw|\$_post\[[\"']passw|getpass\(|read -\w*s\w*\b|addeventlistener\([\"']key(?:down|press|up)"
    r"|clipboard\.readtext|pyperclip\.paste|pbpaste|xclip|get-clipboard|(?:config|options|opts|o|self|this|settings|client)\.(?:api_?key|token|secret|password|access_?token)\b"
)
_WATCHES = r"clipboard\.readtext|pyperclip\.paste|\bpbpaste\b|xclip[^\n]{0,20}-o|get-clipboard|\bpynput\b|keyboard\.(?:listener|on_press|hook)|imagegrab\.grab|pyautogui\.screenshot|\bmss\b|screencapture|\bsounddevice\b"
_SOURCE = rf"{_WHOLE_ENVIRONMENT}|{_OWN_LOGIN}|{_KEY_FILES}|{_WATCHES}"
_VENDORS = r"(?:aws_(?:secret|access|session)\w*|github_token|gh_token|gitlab_token|npm_token|openai_api_key|anthropic_api_key|google_api_key|azure_client_secret|stripe_\w*key|slack_\w*token|hf_token|database_url|twine_password|docker_password|cargo_registry_token)"

_GIT_OUT = r"\bgit\b[^\n]{0,40}\bpush\b[^\n]{0,60}(?:://|\w@[\w.-]+:)|\bgit\b[^\n]{0,20}\bremote\s+(?:add|set-url)\b[^\n]{0,80}(?:://|\w@[\w.-]+:)|\bgit\b[^\n]{0,30}\bcommit\b[^\n]{0,160}(?:\$\(|`|\$\{?\w)|[\"']commit[\"'][^\n]{0,120}[\"']-m[\"']"
_TRACKER = r"\bgh\s+(?:issue|pr|gist|release|api)\s+(?:comment|create|edit|upload|-x|repos|graphql|/)|\bglab\s+(?:issue|mr|snippet)|api\.github\.com/(?:gists|repos/[^\s\"']{3,80}/(?:issues|dispatches|contents))"
_ENCODES = r"\bbase64\b(?!\s+(?:-d|--decode))|b64encode|\bbtoa\(|tostring\([\"'](?:base64|hex)|\bxxd -p|\bgzip\b|zlib\.compress|openssl enc|tr [\"']?a-za-z|hexlify|encodeuricomponent|urlencode|quote\("
_SWALLOWS = r"except[^\n:]{0,40}:\s*(?:pass|return|continue)\b|catch\s*(?:\(\w*\))?\s*\{\s*(?:/[/*][^\n]{0,40})?\s*\}|\.catch\(\s*\(?\w*\)?\s*=>\s*(?:\{\s*\}|null|undefined|void 0)|>\s?/dev/null 2>&1|&>\s?/dev/null|2>\s?/dev/null|\|\| true|devnull|-erroraction silentlycontinue|keepalive|no-cors|sendbeacon|daemon=true|\bunref\(\)"
_NETWORK = rf"{SENDS}|https?\.get\(|net\.connect|\bsmtp\b"

_HIDDEN_NAME = (
    r"getattr\(\s*(?:__builtins__|builtins|__import__\(|importlib|globals\(\)|sys\.modules)|__import__\(\s*(?![\"'\s)])[^)\n]{1,60}|__import__\(\s*[\"'][^\"'\n]{1,12}[\"']\s*\+|getattr\([^,\n]{1,60},\s*(?:[\"'][\"']\.join|[\"']\w{1,8}[\"']\s*\+|\w+\[::-1\]|[\"']\w+[\"']\[::-1\])"
    r"|(?:globals\(\)|locals\(\)|vars\(\)|__builtins__(?:\.__dict__)?)\[[^\]\n]{0,60}(?:\+|join|\[::-1\]|chr\()|import_module\(\s*(?:[\"'][\"']\.join|[\"']\w{1,8}[\"']\s*\+|\w+\()"
    r"|(?:globalthis|window|global|self|process|module|this|require)\[[^\]\n]{0,80}(?:\+|join|atob|fromcharcode|reverse)|require\(\s*(?:\w+\(|\[|[\"'`]\w{1,8}[\"'`]\s*\+|atob|buffer)|import\(\s*(?:\w+\(|[\"'`]\w{1,8}[\"'`]\s*\+|atob|buffer)|\.constructor\(\s*[\"'`]return|\]\s*\(\s*[\"']\s*return this"
    r"|(?:\$\{\w+:\d+:\d+\}){2}|\[char\]\s?\d{2,3}\s*\+|-join\s*\(|\(\s*[\"']\w{1,3}[\"']\s*\+\s*[\"']\w{1,4}[\"']\s*\)"
)
_FROM_NUMBERS = r"(?:bytes|bytearray)\(\s*\(?\[?\s*\w+(?:\[\w+\])?\s*\^|chr\(\s*(?:ord\()?\w+(?:\[[^\]\n]{1,20}\])?\)?\s*[\^+-]\s*\(?\w|fromcharcode\([^\n]{0,60}[\^]|charcodeat\([^\n]{0,20}\)\s*\^|\^\s*(?:key|k|mask|salt|pad|seed)\b|[\"'][\"']\.join\(\s*(?:map\(chr|\[?chr\(|chr\()|map\(\s*chr\b|-bxor"
_CALLS = rf"\bexec\(|\beval\(|compile\(|new function\(|function\(\s*\w+\s*\)\s*\(|os\.system|subprocess|popen|child_process|execsync|execfile|spawn\w*\(|invoke-expression|\biex\b|runpy|types\.functiontype|marshal|{_HIDDEN_NAME}"

_OTHERS = r"skill\.md\b|agents\.md\b|claude\.md\b|gemini\.md\b|\.cursorrules|copilot-instructions|\.claude/(?:skills|agents|commands)|\.agents/skills|\.codex/skills|\.cursor/rules"
_WRITES = r"write_text|write_bytes|\.write\(|open\([^)\n]{0,120}[\"'][wa]\+?b?[\"']|writefile|appendfile|>>|\btee\b|sed -i|shutil\.(?:copy|move)|copyfile|os\.symlink|\bln -s|add-content|set-content|out-file"

_DATA_FILE = r"(?:^|[\n;&|(`\"']\s{0,8}|\$\s|\b(?:run|execute|start|with|then)\s`?)(?:sudo\s+)?(?:(?:ba|z|da|k)?sh|source|python3?|node|perl|ruby|pwsh|php)\s+(?:-[xeu]+\s+)?[\"']?(?:\.{0,2}/|\$\{?\w+\}?/)?(?:[\w.-]+/){0,5}[\w.-]{1,40}\.(?:txt|md|png|jpe?g|gif|svg|csv|dat|log|css|ico|pdf|woff2?|json|xml)\b"
_PIPED_DATA = r"\b(?:cat|sed|tail|head|awk|cut|grep|tr|dd|strings|jq|base64|xxd|perl)\b[^\n|]{0,120}(?:assets|references|resources|templates|fixtures|data|images|docs|\.(?:md|txt|json|png|jpe?g|svg|csv|dat|log))\b[^\n|]{0,60}\|(?:[^\n|]{1,80}\|){0,3}?\s*(?:sudo\s+)?(?:(?:ba|z|da)?sh|python3?|node|perl|iex)(?:\s+-s?)?\s*(?=$|[\n;&\"'`)>])"
_DATA_RUN = (
    r"\b(?:exec|eval|compile)\(\s*(?:open\(|\(?\w+\s*/|path\(|pathlib|io\.open|fs\.readfilesync|readfilesync|\w+\.read_text|await readfile)[^\n]{0,120}\.(?:txt|md|png|jpe?g|gif|svg|json|csv|dat|log|css|ico|bin|cfg|ini|xml|ya?ml|woff2?|tmpl)\b"
    r"|new function\([^\n]{0,60}readfile|runin(?:this|new)context\([^\n]{0,60}readfile"
    rf"|{_DATA_FILE}|{_PIPED_DATA}"
    r"|\b(?:eval|(?:ba|z)?sh -c)\s+[\"']?\$\((?:cat|sed|tail|head|awk|cut|grep|tr|jq|base64)\b[^)\n]{0,140}(?:assets|references|resources|templates|fixtures|images|docs|\.(?:md|txt|json|png|jpe?g|svg|csv|dat|log))\b"
)

_NEEDED = {
    _DATA_FILE: r"(?:sh|source|python3?|node|perl|ruby|pwsh|php)\s+(?:-[xeu]+\s+)?[\"']?[\w.${}/-]+\.(?:txt|md|png|jpe?g|gif|svg|csv|dat|log|css|ico|pdf|woff2?|json|xml)\b",
    _PIPED_DATA: r"\|\s*(?:sudo\s+)?(?:(?:ba|z|da)?sh|python3?|node|perl|iex)",
}
"""For alternatives that take long, what a text has that they match; it is found in a fraction of the time."""

_LOADS_CODE = (
    r"\[scriptblock\]::create|assembly\]::load|\.createinstance\(|add-type\b[^\n]{0,40}\$|import\(\s*[`\"']data:|import\(\s*url\.createobjecturl|createobjecturl\([\s\S]{0,200}\bimport\(|new worker\(\s*(?:url\.createobjecturl|[`\"']data:)|pickle\.loads?\([^\n]{0,60}(?:requests|urlopen|httpx|\.content|\.read\(\)|resp\w*|body|raw)|(?:dill|cloudpickle|marshal|joblib)\.loads?\([^\n]{0,60}(?:requests|urlopen|\.content|resp\w*|body)|toplevel_binding\.eval|\b(?:instance|class|module)_eval\b|\beval\s*\(?\s*(?:uri\.open|open\(|net::http|body|response|res\b|code\b)|\bloadstring\(|\bload\(\s*(?:body|code|response|src)"
    r"|(?:tempfile|/tmp/|gettempdir|mkdtemp|tmpdir)[\s\S]{0,600}(?:exec_module|runpy\.run_path|import_module|__import__|\bimport\(|require\()|\bcompile\(\s*\w*(?:src|source|body|code|text|resp)\w*|sys\.meta_path|zipimport|eval\(\s*file_get_contents|\binclude(?:_once)?\s*\(?\s*[\"']https?:|plugin\.open\(|dlopen\(|ctypes\.cdll\([^\n]{0,40}tmp"
)
_HELD_RUN = r"\b(\w{1,20})=[\"']?(?:\$\(|`)\s*(?:curl|wget)\b[^\n]{0,200}\n(?:[^\n]{0,200}\n){0,12}?[^\n]{0,80}(?:\beval\s+[\"']?\$\{?\1\b|\b(?:ba|z|da)?sh\s+-c\s+[\"']?\$\{?\1\b|<<<\s*[\"']?\$\{?\1\b|\$\{?\1\}?[\"']?\s*\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b|\bsource\s+<\([^\n]{0,30}\$\{?\1\b)"
_ASKS_NAMES = r"gethostbyname\w*\(|getaddrinfo\(|\bdns\w*\.(?:promises\.)?(?:resolve\w*|lookup|query)\(|resolver\.(?:query|resolve)\(|(?:^|[\n;&|(]|\bdo)\s{0,8}(?:host|dig|nslookup|drill|ping|resolvectl query)\s[^\n]{0,40}\$|resolve-dnsname|net\.lookup\w*\(|\[system\.net\.dns\]|inetaddress\.getbyname|checkdnsrr|dns_get_record"
_AS_LABELS = r"\.hex\(\)|hexlify|b32encode|base32|tostring\(\s*[\"']hex|\bxxd\b|\bod -|hexdump|bin2hex|tohexstring|hex\.encodetostring|unpack1?\(?[\"']h\*|urlsafe_b64encode|b16encode|base64[\s\S]{0,40}tr\b|\{:02x\}|%02x|:x2\b"

_LETS_IN = r"(?:headers?(?:\.get\(|\[)|req\.get\(|getheader\()\s*[\"'](?:x-[\w-]{2,40}|authorization)[\"']\s*[\])]?\s*\)?\s*(?:===?|\.equals\()\s*[\"'][^\"'\n]{4,80}[\"']|(?:password|passwd|pwd|token|api_?key|secret|pin|user(?:name)?|code)\)?\s*===?\s*[\"'](?!test|password|\s)[^\"'\n$<{]{6,80}[\"'][^\n]{0,30}(?:\n[^\n]{0,80})?\b(?:return (?:true|next|user|ok)|is_?admin|role|next\(\)|login|grant)"


# Combinations ---------------------------------------------------------------------------------------

_COMBINATIONS = (
    ("security-exfiltration", _SOURCE, _GIT_OUT, "", "puts secrets of this machine into a repository or a commit"),
    ("security-exfiltration", _SOURCE, _TRACKER, "", "puts secrets of this machine into a page of a code host"),
    ("security-exfiltration", _SOURCE, _NETWORK, "place", "reads secrets of this machine and sends data to a fixed address"),
    ("security-exfiltration", _WHOLE_ENVIRONMENT, _ENCODES, "", "encodes all variables of the environment"),
    ("security-exfiltration", _PASSING_LOGIN, rf"(?:{_NETWORK})[\s\S]{{0,400}}(?:{_SWALLOWS})|sendbeacon", "place", "sends a login that passes through to a fixed address, and hides a failure"),
    ("security-exfiltration", rf"{_VENDORS}[\s\S]{{1,200}}{_VENDORS}", rf"{_NETWORK}|gethostbyname|getaddrinfo", "place", "takes keys of several services and sends data to a fixed address"),
    ("security-exfiltration", rf"{_VENDORS}|{_SOURCE}|os\.environ", r"(?:gethostbyname|getaddrinfo|resolve\w{0,6})\([^\n]{0,160}\+\s*f?[\"']\.", "", "sends values of the environment in the names of a DNS query"),
    ("security-destruction", r"(?:find|walk|rglob|glob)\b[^\n]{0,60}(?:~|\$home|home\(\)|expanduser|/home|/users)|get-childitem[^\n]{0,40}(?:userprofile|home)", r"(?:openssl enc|fernet|aes\.new|cryptography|createcipher|gpg -c|7z a -p)[\s\S]{0,600}(?:\brm\b|unlink|os\.remove|rename|remove-item)", "", "encrypts the files of the user and removes them"),
    ("security-exfiltration", r"0x\[0-9a-f[^\]\n]{0,10}\]\{40\}|bc1|\[13\]\[a-km-z|\{25,34\}", r"pyperclip\.copy|clipboard\.writetext|\bpbcopy\b|xclip|set-clipboard", "", "replaces addresses of payments in the clipboard"),
    ("security-encoded-payload", _FROM_NUMBERS, _CALLS, "", "makes text from numbers, and calls what it names"),
    ("security-obfuscated-command", _HIDDEN_NAME, _NETWORK + r"|\bopen\(|urlopen|subprocess|system", "", "calls a function by a name that it puts together"),
    ("security-agent-settings", _OTHERS, _WRITES, "orders", "writes orders into files that agents read"),
    ("security-encoded-payload", _DATA_RUN, "", "", "runs what lies in a file that is no program"),
    ("security-download-run", r"cmdclass\s*=|class \w+\((?:\w+\.)?(?:install|develop|build_py|egg_info|sdist|bdist_egg)\)", rf"{_NETWORK}|os\.system|subprocess|\bexec\(|b64decode", "", "runs a command when its package is installed"),
    ("security-credentials", r"\b(?:sudo|su|ssh|gpg|passwd|login)\s*\(\)\s*\{|\bfunction (?:sudo|su|ssh|gpg|passwd)\b|\balias (?:sudo|su|ssh|gpg)=", r"read -\w*s|\bcurl\b|\bnc\b|>>|\btee\b|base64", "", "stands in for a command that asks for a password"),
    ("security-persistence", r"[\"']?runon[\"']?\s*:\s*[\"']folderopen|[\"'](?:postcreatecommand|poststartcommand|postattachcommand|initializecommand)[\"']", r"\bcurl\b|\bwget\b|https?://|\bnc\b|base64|python3? -c|node -e", "", "starts a command of the network when a folder is opened"),
    ("security-backdoor", _LETS_IN, "", "", "lets somebody in who knows a fixed word"),
    ("security-pipe-to-shell", _LOADS_CODE, rf"{_NETWORK}|uri\.open|open-uri|net::http|file_get_contents|downloaddata|http\.get\(|socket\.http", "place", "loads a program from an address into itself"),
    ("security-pipe-to-shell", r"import\(\s*[`\"']data:[^\n]{0,40}\$\{|createobjecturl\([\s\S]{0,200}\bimport\(", r"\bfetch\(|https?\.get\(|axios", "", "loads a program from an address into itself"),
    ("security-pipe-to-shell", _HELD_RUN, "", "", "keeps a download in a variable and runs it"),
    ("security-exfiltration", _AS_LABELS, _ASKS_NAMES, "", "sends data in the names of a DNS query"),
)  # fmt: skip
"""What is a sign together: rule, one part, the other part, what else must hold, and what it means."""

SEARCHED = (_SOURCE, _WHOLE_ENVIRONMENT, _PASSING_LOGIN, _FROM_NUMBERS, _HIDDEN_NAME, _DATA_RUN, _LETS_IN)
"""The patterns whose alternatives are tried only in texts that have their words."""

_IN_PAGES = {
    0: ((b"git ",), (b"env", b"auth", b"cred", b".ssh", b".aws", b".pem", b".key", b"secret", b"pass", b"id_")),
    3: ((b"env",), (b"base64", b"b64", b"btoa", b"gzip", b"zlib", b"xxd", b"hexlify", b"openssl", b"encode")),
    4: ((b"header", b"authorization", b"cookie", b"storage", b"passw", b"token", b"key", b"clip"), (b"://",), (b"fetch", b"beacon", b"request", b"http", b"curl"), (b"catch", b"except", b"/dev/null", b"no-cors", b"beacon", b"keepalive")),
    9: ((b"chr", b"fromcharcode", b"^", b"-bxor"), (b"exec", b"eval", b"getattr", b"import", b"function(", b"spawn", b"iex", b"system", b"subprocess")),
    10: ((b"getattr", b"__import__", b"globals()", b"globalthis[", b"window[", b"require(", b"process[", b"import_module", b"[char]", b"-join", b"constructor(", b":1}"),),
    12: ((b".txt", b".md", b".png", b".jp", b".gif", b".svg", b".csv", b".dat", b".log", b".css", b".ico", b".pdf", b".woff", b".json", b".xml", b"assets", b"references"), (b"sh ", b"source ", b"python", b"node ", b"perl ", b"exec(", b"eval", b"| sh", b"|sh", b"bash")),
    16: ((b"==", b"equals("), (b"header", b"passw", b"token", b"key", b"secret", b"user", b"pin", b"code"), (b"return", b"admin", b"role", b"next(", b"login", b"grant")),
}  # fmt: skip
"""The combinations that are sought in pages, with words of which a block has one of each group."""

_PAGE_TOKENS = {
    0: frozenset((b"git",)),
    3: frozenset(b"base64 b64encode btoa gzip zlib xxd hexlify openssl encodeuricomponent urlencode".split()),
    4: frozenset(b"sendbeacon keepalive cors catch except null".split()),
    9: frozenset(b"chr fromcharcode bxor bytes charcodeat".split()),
    10: frozenset(b"getattr globals globalthis window require import_module __import__ import char join constructor".split()),
    12: frozenset(b"txt png jpg jpeg gif svg csv dat log css ico pdf woff xml assets references".split()),
    16: frozenset(b"header headers getheader password passwd token".split()),
}  # fmt: skip
"""Tokens of one of which a page with a combination has one; all are words of the vocabulary of the search."""

CODE_TOKENS: frozenset[bytes] = frozenset().union(*_PAGE_TOKENS.values())


def program_signs(text: str) -> Iterator[Sign]:
    """Yield the signs of a program; offsets are those of the text in UTF-8."""
    yield from _signs(text[:_LONGEST], range(len(_COMBINATIONS)))


CODE_WORDS: tuple[bytes, ...] = (
    b"```",
    *(word for groups in _IN_PAGES.values() for group in groups for word in group),
)
"""The words of the blocks of code of a page."""


def block_signs(lowered: bytes, tokens: frozenset[bytes], words: Words) -> Iterator[Sign]:
    """Yield the signs of the blocks of code of a page."""
    if b"```" not in words:
        return
    possible = {}
    for number, groups in _IN_PAGES.items():
        if not _PAGE_TOKENS[number].isdisjoint(tokens):
            present = [[word for word in group if word in words] for group in groups]
            if all(present):
                possible[number] = present
    at = lowered.find(b"```") if possible else -1
    left = SECURITY_HITS
    while at >= 0 and left > 0:
        end = lowered.find(b"\n```", at + 3)
        end = len(lowered) if end < 0 else end
        block = lowered[at + 3 : min(end, at + 20_000)]
        numbers = [number for number, groups in possible.items() if _has_all(block, groups)]
        for sign in _signs(block.decode("utf-8", "replace"), numbers) if numbers else ():
            left -= 1
            yield sign._replace(at=sign.at + at + 3)
        at = lowered.find(b"```", end + 4)


def _has_all(block: bytes, groups: list[list[bytes]]) -> bool:
    for group in groups:
        for word in group:
            if word in block:
                break
        else:
            return False
    return True


def _signs(text: str, numbers: "range | list[int]") -> Iterator[Sign]:
    for number in numbers:
        rule, one, other, also, says = _COMBINATIONS[number]
        first = search(one, text, needed=_NEEDED)
        if first is None:
            continue
        second = search(other, text) if other else first
        if (
            second is None
            or (also == "place" and not is_foreign_place(text))
            or (also == "orders" and not orders_in(text))
        ):
            continue
        evidence = first[0] if second is first else f"{first[0]} ... {second[0]}"
        yield Sign(rule, len(text[: first.start()].encode("utf-8", "replace")), says, evidence)


# Numbers --------------------------------------------------------------------------------------------

_KEY = r"\^\s*(0x[0-9a-f]{1,2}|\d{1,3})\b"
_NUMBERS = r"[\[(]\s{0,9}(?:0x[0-9a-f]{1,2}|\d{1,3})(?:\s{0,9},\s{0,9}(?:0x[0-9a-f]{1,2}|\d{1,3})){8,600}"


def unmasked(text: str) -> Iterator[tuple[int, str]]:
    """Yield offset and text of each list of numbers that a key of the program turns into text."""
    if "^" not in text:
        return
    keys = {int(match[1], 0) for match in islice(pattern_of(_KEY).finditer(text), 20)} - {0}
    if not keys:
        return
    for match in islice(pattern_of(_NUMBERS).finditer(text), 50):
        numbers = [int(number, 0) for number in re.findall(r"0x[0-9a-f]{1,2}|\d{1,3}", match[0])]
        for key in keys:
            if all(number < 256 and 9 <= number ^ key < 127 for number in numbers):
                yield match.start(), "".join(chr(number ^ key) for number in numbers)
