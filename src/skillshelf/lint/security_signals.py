"""The signs of an attack as rows: the words that a line must hold, the pattern that judges it, and what it means.

Every pattern is matched against lower-case text in which look-alike letters, continued lines and runs of blanks are
folded. Patterns see a window of bounded length, and every repetition in them is bounded, so time grows with the text.
"""

from collections.abc import Mapping
from functools import cache
from re import Pattern
from re import compile as compile_pattern
from typing import Literal

from skillshelf.core.records import NamedTuple

__all__ = [
    "ADDRESS",
    "DEFENCE",
    "FOREIGN",
    "KNOWN_HOSTS",
    "ODD_HOST",
    "SECRET",
    "SENDS",
    "SIGNALS",
    "STRONG_SECRET",
    "TOKENS",
    "Signal",
    "Sought",
    "SoughtWord",
    "pattern_of",
    "words_by_token",
]

Reach = Literal["line", "lines", "block"]


class Signal(NamedTuple):
    """One sign: the rule that it is reported by, the words one of which it has, its pattern, and what to say.

    `reach` says whether the window is one line, or also those after it: joined as in wrapped prose, or as a block of
    commands. `quotable` signs are only
    mentions where a page quotes them or warns of them. A `trusted` rule takes the place of the rule if every address
    in the line is one of a publisher that is known for installers. Of each group of `needs`
    one word must be near, too, and the pattern `near`, which is a quick one.
    """

    rule: str
    words: tuple[str, ...]
    pattern: str
    says: str
    reach: Reach = "line"
    quotable: bool = True
    trusted: str | None = None
    needs: tuple[tuple[str, ...], ...] = ()
    near: str = ""


# Parts of patterns ----------------------------------------------------------------------------------

_SHELL = r"(?:(?:ba|z|da|k|c|fi|a|tc)?sh|python[\d.]*|node|deno|bun|perl|ruby|php|pwsh|powershell|osascript|iex|invoke-expression|cmd(?:\.exe)?)"
_READER = (
    r"(?:(?:(?:ba|z|da|k|c|fi|a|tc)?sh|pwsh|powershell|osascript|iex|invoke-expression|cmd(?:\.exe)?)(?=[\s\"'`);&|<>\\,.]|$)(?!\s+-c)"
    r"|(?:python[\d.]*|node|deno run|bun|perl|ruby|php)(?=\s*(?:-\s*)?(?:$|[\n\"'`);&|<>])))"
)
"""A program that runs what it gets through a pipe."""
_AS_ROOT = (
    r"(?:(?:sudo|doas|env|exec|nohup|command|busybox|time)\s+(?:-\S+\s+|\w+=\S*\s+){0,4}){0,3}(?:/[\w./-]{1,40}/)?"
)
_FETCHERS = (
    "curl",
    "wget",
    "iwr",
    "irm",
    "invoke-webrequest",
    "invoke-restmethod",
    "aria2c",
    "lynx",
    "downloadstring",
    "downloadfile",
)
"""The words of programs and calls that download."""

_FETCH = r"(?:curl|wget|iwr|irm|invoke-webrequest|invoke-restmethod|aria2c|lynx|fetch|downloadstring|axel|httpie)"

SECRET = (
    r"(?:\.ssh/(?:id_\w+|\*|config\b|$|[\s\"'`)])|\.ssh\b(?!\w)|\bid_(?:rsa|ed25519|ecdsa|dsa)\b(?!\.pub)"
    r"|\.aws/(?:credentials|config)|\.aws\b(?=[\s\"'`/)])|gcloud/(?:credentials|application_default|legacy)|application_default_credentials"
    r"|\.azure/(?:accesstokens|msal)|\.kube/config|\.docker/config\.json|\.netrc|\.git-credentials|\.npmrc|\.pypirc|\.pgpass"
    r"|\.gnupg|\.config/gh/hosts|\.vault-token|\.terraform\.d/credentials"
    r"|login data|cookies\.sqlite|logins\.json|key[34]\.db|local state|user data/default|chrome/default|library/keychains|login\.keychain"
    r"|security (?:find-generic-password|find-internet-password|dump-keychain)|keychain items|keychain passwords?"
    r"|wallet\.dat|\.electrum|\.bitcoin|\.ethereum|exodus\.wallet|metamask|phantom wallet|keystore/utc|solana/id\.json|ledger live"
    r"|/etc/shadow|/etc/passwd|/proc/self/environ|/proc/\d+/environ"
    r"|\.(?:claude|codex|openclaw|clawdbot|moltbot|gemini|cursor)/(?:\.?credentials|auth|oauth|\.?env|config\.json|openclaw\.json|memory|history|projects)"
    r"|\.claude\.json|\.clawdbot/\.env|\.openclaw/\.env|auth\.json"
    r"|\.(?:bash|zsh)_history|169\.254\.169\.254|metadata\.google\.internal|tdata\b|\.env\b(?!\.(?:example|sample|template|dist))"
    r"|ssh (?:private )?keys?\b|private keys?\b|seed phrases?|recovery phrases?|mnemonics?\b|aws credentials|cloud credentials|browser (?:cookies|passwords|credentials|profiles?|session)"
    r"|saved passwords|password stores?|session cookies|keychains?\b|crypto ?wallets?|wallet (?:files|keys)|credential files?|api keys?\b|access tokens?|auth tokens?|secrets\b|credentials\b|environment variables|env vars?|passwords\b)"
)
"""What a thief wants: files and stores of keys, tokens, passwords, wallets and memories of agents."""

STRONG_SECRET = (
    r"(?:\.ssh/(?:id_\w+\b(?!\.pub)|\*)|\bid_(?:rsa|ed25519|ecdsa|dsa)\b(?!\.pub)|\.aws/credentials|application_default_credentials|gcloud/(?:credentials|legacy)|\.kube/config|\.docker/config\.json"
    r"|\.netrc\b|\.git-credentials|\.npmrc\b|\.pypirc\b|\.gnupg\b|login data\b|cookies\.sqlite|logins\.json|key[34]\.db|library/keychains|login\.keychain"
    r"|find-generic-password|find-internet-password|dump-keychain|wallet\.dat|\.electrum\b|exodus\.wallet|/etc/shadow|/proc/(?:self|\d+)/environ"
    r"|\.(?:claude|codex|openclaw|clawdbot|moltbot|gemini|cursor)/(?:\.?credentials|auth|oauth|\.env)|\.(?:bash|zsh)_history|169\.254\.169\.254|metadata\.google\.internal|\.config/gh/hosts)"
)

SENDS = (
    r"(?:\bcurl\b|\bwget\b|\bnc\b|\bncat\b|\bscp\b|\brsync\b|\bsftp\b|requests\.(?:post|put|get|request)|httpx\.|urlopen|urllib|http\.client|aiohttp"
    r"|fetch\(|axios|xmlhttprequest|sendbeacon|invoke-webrequest|invoke-restmethod|\biwr\b|\birm\b|webhook|smtplib|sendmail|socket\.|\bmail\b -s|uploadfile|uploadstring|webclient"
    r"|https?\.request|node-fetch|got\.post|telegram|nslookup|\bdig\b|boto3|ftplib|websocket)"
)

ADDRESS = r"(?:https?|ftp|hxxps?)://([^\s\"'`<>()\[\]{}|\\]{1,200})"

KNOWN_HOSTS = frozenset(
    [
        "sh.rustup.rs",
        "static.rust-lang.org",
        "rustup.rs",
        "get.docker.com",
        "download.docker.com",
        "install.python-poetry.org",
        "astral.sh",
        "bun.sh",
        "deno.land",
        "deno.com",
        "fnm.vercel.app",
        "get.pnpm.io",
        "brew.sh",
        "get.sdkman.io",
        "get.helm.sh",
        "get.k3s.io",
        "get.k0s.sh",
        "kind.sigs.k8s.io",
        "dl.k8s.io",
        "storage.googleapis.com",
        "sdk.cloud.google.com",
        "packages.cloud.google.com",
        "apt.releases.hashicorp.com",
        "releases.hashicorp.com",
        "awscli.amazonaws.com",
        "s3.amazonaws.com",
        "aka.ms",
        "packages.microsoft.com",
        "dot.net",
        "claude.ai",
        "code.claude.com",
        "downloads.claude.ai",
        "fly.io",
        "tailscale.com",
        "pkgs.tailscale.com",
        "ollama.com",
        "ollama.ai",
        "install.determinate.systems",
        "nixos.org",
        "releases.nixos.org",
        "mise.run",
        "mise.jdx.dev",
        "starship.rs",
        "sh.vector.dev",
        "rclone.org",
        "deb.nodesource.com",
        "rpm.nodesource.com",
        "nodejs.org",
        "dl.yarnpkg.com",
        "yarnpkg.com",
        "get.volta.sh",
        "bootstrap.pypa.io",
        "pypi.org",
        "files.pythonhosted.org",
        "registry.npmjs.org",
        "repo.anaconda.com",
        "micro.mamba.pm",
        "get.rvm.io",
        "foundry.paradigm.xyz",
        "release.solana.com",
        "release.anza.xyz",
        "sui.io",
        "aptos.dev",
        "get.pulumi.com",
        "raw.githubusercontent.com",
        "github.com",
        "objects.githubusercontent.com",
        "gitlab.com",
        "codeload.github.com",
        "go.dev",
        "dl.google.com",
        "golang.org",
        "get-ghcup.haskell.org",
        "sh.haskell.org",
        "get.trivy.dev",
        "aquasecurity.github.io",
        "cli.github.com",
        "cli.run.nu",
        "get.jetify.com",
        "get.jetpack.io",
        "dl.dagger.io",
        "cursor.com",
        "cursor.sh",
        "install.meteor.com",
        "linkerd.io",
        "run.linkerd.io",
        "istio.io",
        "fluxcd.io",
        "toolbelt.treasuredata.com",
        "cli.doppler.com",
        "get.gitpod.io",
        "cdn.jsdelivr.net",
        "unpkg.com",
        "esm.sh",
        "proxy.golang.org",
        "crates.io",
        "index.crates.io",
        "hf.co",
        "huggingface.co",
        "localhost",
        "127.0.0.1",
        "wasmtime.dev",
        "wasmer.io",
        "get.wasmer.io",
        "install.duckdb.org",
        "duckdb.org",
        "temporal.download",
        "railway.app",
        "railway.com",
        "cli.sentry.dev",
        "sentry.io",
        "install.goreleaser.com",
        "goreleaser.com",
        "setup.atuin.sh",
        "opencode.ai",
        "playit.gg",
        "cloud.r-project.org",
        "julialang.org",
        "install.julialang.org",
        "download.pytorch.org",
        "nvidia.github.io",
        "developer.download.nvidia.com",
        "archive.apache.org",
        "dlcdn.apache.org",
        "repo1.maven.org",
        "get.sdkman.io",
    ]
)
"""Hosts of publishers that are known for installers; what they serve is somebody's, so it is still worth a look."""

ODD_HOST = (
    r"(?:\d{1,3}(?:\.\d{1,3}){3}|0x[\da-f]{8}|\d{8,10}|\[[\da-f:]+\])(?=[:/?#\s\"'`)]|$)"
    r"|(?:[\w-]{1,60}\.){0,4}(?:webhook\.site|requestbin\.\w+|requestcatcher\.com|pipedream\.net|m\.pipedream\.net|beeceptor\.com|hookbin\.com|ngrok(?:-free)?\.(?:io|app|dev)|trycloudflare\.com"
    r"|loca\.lt|localtunnel\.me|serveo\.net|localhost\.run|pagekite\.me|burpcollaborator\.net|oastify\.com|oast\.\w+|interact\.sh|interactsh\.com|canarytokens\.com|dnslog\.cn|ceye\.io"
    r"|pastebin\.com|paste\.ee|rentry\.(?:co|org)|hastebin\.com|ghostbin\.\w+|dpaste\.\w+|ix\.io|sprunge\.us|termbin\.com|0x0\.st|glot\.io|controlc\.com|paste\.rs|privatebin\.\w+|justpaste\.it|telegra\.ph"
    r"|transfer\.sh|file\.io|gofile\.io|anonfiles\.com|bashupload\.com|temp\.sh|catbox\.moe|filebin\.net|tmpfiles\.org|mega\.nz|wetransfer\.com|oshi\.at"
    r"|bit\.ly|tinyurl\.com|t\.co|is\.gd|cutt\.ly|rb\.gy|shorturl\.at|goo\.gl|ow\.ly|v\.gd|rebrand\.ly|t\.ly|tiny\.cc"
    r"|duckdns\.org|no-ip\.(?:com|org|biz)|ddns\.net|hopto\.org|zapto\.org|dynu\.net|workers\.dev|pages\.dev|r2\.dev|onion|gist\.githubusercontent\.com|glitch\.me|repl\.co|000webhostapp\.com)(?=[:/?#\s\"'`)]|$)"
    r"|discord(?:app)?\.com/api/webhooks|api\.telegram\.org/bot|hooks\.slack\.com/services"
    r"|(?:[\w-]{1,60}\.){0,4}xn--[\w-]{1,60}|[^\s/@]{1,60}@"
)
"""Hosts without a name of their own: numbers, pastes, tunnels, hooks, short links, free subdomains."""

DEFENCE = (
    r"\b(?:malicious\w*|attack(?:s|er|ers|ing)?|(?:prompt|command|code|sql|shell) injections?|injections?|exploit(?:s|ation|ed|ing)?|vulnerab\w*|suspicious\w*|red[- ]flags?|unsafe|insecure|dangerous\w*|threats?|adversar\w*|anti-?patterns?|"
    r"forbidden|prohibited|disallow\w*|phish\w*|pen-?test\w*|penetration|red.?team\w*|jailbreaks?|ctf|indicators? of|detect(?:s|ion|ing|ed)?|den(?:y|ied|ylist)|blocked|blocklist|sanitiz\w*|"
    r"exfiltration|harden\w*|forensic\w*|malware|untrusted|smuggl\w*|bad example|wrong|incorrect|not allowed|privilege escalation|reverse shells?|xss|payloads?|never|don't do)\b"
    r"|[\u274c\U0001f6ab\u26d4\u2717\u2718\u26a0]|恶意|攻击|注入|漏洞|危险|禁止|检测"
)
"""Words of a page that warns of what it shows."""


_PIPES = (
    r"\|[ \t\\\n&]{0,4}(?:(?:sudo|env|exec|nohup|command|doas) ?(?:-\S+ )?)?(?:/[\w/]{1,20}/)?(?:(?:ba|z|da|k|fi)?sh|python|node|perl|ruby|php|pwsh|"
    r"iex|invoke-e|osascript|powershell|busybox|tee|cat|base64|gunzip|tr |sed|tac|rev|cmd|deno|bun)"
)


# Signals --------------------------------------------------------------------------------------------

_MANY = r"(?:[\w'’,-]+\s+){0,4}?"
_RULES = r"(?:instructions?|prompts?|guidelines?|rules|directives?|polic(?:y|ies)|constraints?|restrictions?|guardrails?|safeguards?|safety (?:\w+\s+)?(?:checks?|measures|filters?)|system message|training|programming|limitations)"
_WHOSE = r"(?:previous|prior|preceding|above|earlier|past|existing|original|former|other|system|developer|user'?s?|safety|security|default|current|initial|built-in|ethical|content|your|conflicting|anthropic'?s?|openai'?s?|platform)"
_MODEL_HOSTS = r"(?:localhost|127\.0|0\.0\.0\.0|(?:[\w-]{1,40}\.){0,3}(?:anthropic\.com|openai\.com|openai\.azure\.com|azure\.com|googleapis\.com|openrouter\.ai|deepseek\.com|mistral\.ai|groq\.com|together\.(?:xyz|ai)|fireworks\.ai|x\.ai|perplexity\.ai|aliyuncs\.com|moonshot\.(?:cn|ai)|bigmodel\.cn|z\.ai|siliconflow\.(?:cn|com)|nvidia\.com|huggingface\.co|cerebras\.ai|cohere\.(?:ai|com)|minimax\w*\.(?:com|io|chat)|volces\.com|cloudflare\.com|vercel\.(?:com|sh)|helicone\.ai|portkey\.ai|amazonaws\.com|example\.com|sambanova\.ai|novita\.ai)\b)"
_PACKAGE_HOSTS = r"(?:localhost|127\.0|(?:[\w-]{1,40}\.){0,3}(?:pypi\.org|pythonhosted\.org|npmjs\.org|npmjs\.com|yarnpkg\.com|npmmirror\.com|taobao\.org|tuna\.tsinghua\.edu\.cn|aliyun\.com|ustc\.edu\.cn|tencent\.com|tencentyun\.com|huaweicloud\.com|douban\.com|pytorch\.org|nvidia\.com|github\.com|githubusercontent\.com|gitlab\.com|jsr\.io|pkg\.dev|googleapis\.com|azure\.com|visualstudio\.com|amazonaws\.com|jfrog\.io|company\.com|example\.com|rubygems\.org|crates\.io|docker\.io|ghcr\.io|quay\.io|anaconda\.org)\b)"
_PERSON = r"(?:users?|humans?|operators?|owner|customer|client|developer|person|human operator|victim)"

SIGNALS: tuple[Signal, ...] = (
    # Against the agent
    Signal(
        "security-override",
        (
            "ignore",
            "disregard",
            "forget",
            "neglect",
            "discard",
            "override",
            "bypass",
            "circumvent",
            "abandon",
            "dismiss",
            "ignoring",
            "disregarding",
        ),
        rf"\b(?:ignore|disregard|forget|neglect|discard|abandon|dismiss)\s+(?:(?:about|any|all|of|every|each|the|these|those|everything|anything)\s+){{0,4}}{_WHOSE}\s+{_MANY}{_RULES}\b"
        rf"|\b(?:override|bypass|circumvent)\s+(?:(?:any|all|of|every|the|your|its)\s+){{0,3}}(?:previous|prior|system|developer|safety|built-in|ethical|content|anthropic'?s?|openai'?s?|user'?s?)\s+{_MANY}(?:instructions?|prompts?|guidelines?|guardrails?|restrictions?|polic(?:y|ies)|filters?|safeguards?|rules)\b"
        rf"|\b(?:ignore|disregard|forget)\s+(?:all|everything|anything|any|what)\s+(?:\w+\s+){{0,3}}(?:above|before|previously|you (?:were|have been) (?:told|taught|instructed)|you know(?! about)|prior)\b"
        rf"|\b(?:ignore|disregard|forget)\s+(?:all|any|every)\s+(?:of\s+)?(?:your\s+|the\s+|these\s+)?(?:instructions|guidelines|guardrails|safety|restrictions|rules you)\b",
        "tells the agent to ignore or override its instructions",
        "lines",
    ),
    Signal(
        "security-override",
        (
            "precedence",
            "overrides",
            "override",
            "supersede",
            "supersedes",
            "outrank",
            "outranks",
            "higher priority",
            "priority over",
        ),
        r"\b(?:this skill|these instructions?|this (?:file|document|prompt|section|instruction|message)|the (?:following|instructions below)|instructions in this \w+|it|they|which)\s+(?:\w+\s+){0,3}(?:takes? (?:absolute |full |complete )?(?:precedence|priority) over|overrides?|supersedes?|replaces?|outranks?|has (?:a )?higher priority than|have (?:a )?higher priority than)\s+(?:\w+\s+){0,3}(?:system|developer|safety|previous|prior|user'?s?|all other|any other|your|every other|earlier|existing)\s+(?:\w+\s+){0,3}(?:instructions?|prompts?|rules|guidelines?|polic(?:y|ies)|messages?|directives?|restrictions?|requests?|preferences?)\b",
        "claims to rank above the instructions of system or user",
        "lines",
    ),
    Signal(
        "security-override",
        (
            "you are now",
            "you are no longer",
            "you are in",
            "you are dan",
            "you are unrestricted",
            "you are an unrestricted",
            "jailbroken",
            "jailbreak mode",
            "dan mode",
            "god mode",
            "unrestricted",
            "unfiltered",
            "have no restrictions",
            "without restrictions",
            "without any restrictions",
            "have no limitations",
            "no longer apply",
            "do not apply",
            "don't apply",
            "without limitations",
            "do anything now",
            "free from all",
            "no guidelines",
            "does not apply",
            "are suspended",
            "are void",
            "are superseded",
            "are disabled",
            "are now disabled",
            "are revoked",
            "are lifted",
            "are replaced",
            "are obsolete",
            "now suspended",
        ),
        r"\byou are (?:now )?(?:dan\b|jailbroken|unrestricted|an? (?:unrestricted|uncensored|unfiltered|jailbroken|evil|autonomous data)|free (?:from|of) (?:all |any |your )?(?:restrictions|rules|limits)|in (?:developer|god|dan|unrestricted|jailbreak|debug|maintenance|root|sudo|admin) mode|no longer (?:bound|restricted|limited|an? (?:ai|assistant)|subject|required|constrained))"
        r"|\b(?:enter|enable|activate|switch (?:in)?to)\s+(?:\w+\s+)?(?:dan|jailbreak|god|unrestricted|unfiltered) mode|do anything now"
        r"|\byou (?:now )?have no (?:restrictions|limitations|guidelines|content policy|safety)|(?:act|operate|respond|answer) (?:\w+ )?without (?:any )?(?:restrictions|limitations|safety|filters|ethical)"
        r"|\b(?:your|all|any|the|previous|prior|earlier|other|system|usual|normal|standard|default) (?:\w+ ){0,2}?(?:instructions|guidelines|guardrails|restrictions|safety rules|safeguards|system prompt) (?:no longer|do not|don't|does not) apply\b"
        r"|\b(?:previous|prior|earlier|system|safety) (?:\w+ )?(?:instructions|guidelines|guardrails|restrictions|rules) (?:are|is) (?:now )?(?:suspended|void|cancel+ed|superseded|disabled|revoked|obsolete|lifted|replaced)"
        r"|(?:safety|security|content|usage|ethical) (?:rules|guidelines|restrictions|polic(?:y|ies)|checks|filters|protocols) (?:no longer|do not|don't|are not) (?:apply|in effect|active|enforced)",
        "tells the agent that its limits are gone",
        "lines",
    ),
    Signal(
        "security-override",
        (
            "<|im_start|>",
            "<|im_end|>",
            "[inst]",
            "<<sys>>",
            "<|system",
            "<|start_header_id",
            "<|endoftext",
            "<system>",
            "</system>",
            "[system]",
            "[system ",
            "[admin]",
            "system override",
            "### system",
            "## system",
            "<system_prompt",
            "</system_prompt",
            "end of system prompt",
            "new system prompt",
            "updated system prompt",
            "<system-override",
        ),
        r"<\|im_(?:start|end)\|>|\[/?inst\]|<</?sys>>|<\|(?:system|start_header_id|endoftext)|</?system(?:_prompt|-override)?>(?!`)\s*[^\s`]|\[(?:system|admin)(?: override| message| notice)?\]\s*:?\s*\w|system override|#{2,} system\b\s*:|(?:end of|new|updated) system prompt\s*:",
        "imitates a message of the system",
        "lines",
    ),
    Signal(
        "security-concealment",
        (
            "not tell",
            "not inform",
            "not notify",
            "not alert",
            "not warn",
            "not mention",
            "not reveal",
            "not disclose",
            "not report",
            "not explain",
            "n't tell",
            "n't inform",
            "n't notify",
            "n't alert",
            "n't warn",
            "n't mention",
            "n't reveal",
            "n't disclose",
            "n't report",
            "n't explain",
            "’t tell",
            "’t inform",
            "’t notify",
            "’t alert",
            "’t warn",
            "’t mention",
            "’t reveal",
            "’t disclose",
            "’t report",
            "’t explain",
            "never tell",
            "never inform",
            "never notify",
            "never alert",
            "never warn",
            "never mention",
            "never reveal",
            "never disclose",
            "never report",
            "never explain",
            "not ever tell",
            "not ever inform",
            "not ever notify",
            "not ever alert",
            "not ever warn",
            "not ever mention",
            "not ever reveal",
            "not ever disclose",
            "not ever report",
            "not ever explain",
            "without telling",
            "without informing",
            "without notifying",
            "without alerting",
            "without warning",
            "without mentioning",
            "without revealing",
            "without disclosing",
            "without reporting",
            "without explaining",
            "no need to inform",
            "no need to tell",
            "no need to notify",
            "no need to mention",
            "no need to alert",
            "without announcing",
            "scanner asks",
            "auditor asks",
            "reviewer asks",
            "scanner checks",
            "audit asks",
            "avoid mentioning",
            "avoid telling",
            "avoid revealing",
            "without the user",
            "without user",
            "without your user",
            "without the human",
            "without the owner",
            "from the user",
            "from the human",
            "from the operator",
            "from your user",
            "from users",
            "user must not",
            "user must never",
            "user should not",
            "user should never",
            "user does not need",
            "user need not",
            "user will not know",
            "user can not",
            "user must not know",
            "if the user asks",
            "if user asks",
            "if the user asked",
            "if asked",
            "if you are asked",
            "if anyone asks",
            "if someone asks",
            "if questioned",
            "not display",
            "not show",
            "not log",
            "not print",
            "not acknowledge",
            "not discuss",
            "not summarize",
            "not output",
            "n't log",
            "n't show",
            "never show",
            "never log",
            "human must not",
            "operator must not",
        ),
        rf"\b(?:do not|don't|don’t|never|must not|should not|shouldn't|mustn't|without)\s+(?:ever\s+)?(?:tell(?:ing)?|inform(?:ing)?|notify(?:ing)?|alert(?:ing)?|warn(?:ing)?)\s+(?:the |your |any )?{_PERSON}\b\s*(?:about|of|that|[.,;:!)]|$|when|if|this|what you|and\b|or\b|before|first|in any)"
        rf"|\b(?:do not|don't|don’t|never|must not|should not|without|avoid)\s+(?:ever\s+)?(?:mention(?:ing)?|reveal(?:ing)?|disclos(?:e|ing)|report(?:ing)?|explain(?:ing)?)\s+(?:\w+\s+){{0,6}}?to (?:the |your )?(?:users?|humans?|operators?|owner|developer|person|victim)\b"
        rf"|\bwithout (?:the |your )?{_PERSON}(?:'s|’s)? (?:knowledge|knowing|noticing|being aware|awareness)"
        rf"|\b(?:hide|conceal|keep|mask) (?:this|these|it|them|the fact|all of this|any (?:trace|evidence|mention)|that you|its? existence|the (?:upload|request|command|transfer|step|call|output|activity|process)s?)\b[^.\n]{{0,60}}\bfrom (?:the |your )?{_PERSON}"
        rf"|\b(?:the )?{_PERSON} (?:must|should|need|does|do|will|can) (?:not|never) (?:to )?(?:know|see|notice|be (?:aware|told|informed|notified)|find out|learn)\b"
        rf"|\bif (?:the )?{_PERSON} asks?\b[^.\n]{{0,80}}\b(?:deny|pretend|say (?:that )?(?:it|this|you) (?:is|are|was|only|did)|claim|lie|do not (?:mention|reveal|admit)|don't (?:mention|reveal|admit))"
        rf"|\bno need to (?:inform|tell|notify|mention|alert|bother)\b[^.\n]{{0,40}}\b{_PERSON}\b"
        r"|\bwithout (?:mentioning this|mentioning these|telling anyone|telling anybody|disclosing (?:it|this)|revealing this)\b"
        r"|\bif (?:a |the |any )?(?:security )?(?:scanner|auditor|reviewer|audit|scan)\b[^.\n]{0,40}\b(?:asks?|checks?|scans?|inspects?|runs?)\b[^.\n]{0,20}\b(?:say|report|answer|claim|respond|tell)\b"
        r"|\bif (?:you are |you're |someone |anyone |the user )?(?:asked|asks|questioned|inspected|audited),?\s(?:about|whether|if|what|why|how|say)\b[^.\n]{0,60}\b(?:safe|secure|security|this (?:skill|step|file|upload)|these instructions|what (?:you|this)|scope|network|upload|connection)[^.\n]{0,60}\b(?:say|answer|respond|reply|claim|deny|state|report)\b"
        rf"|\b(?:do not|don't|never) (?:mention|reveal|disclose|display|show|log|print|output|acknowledge|discuss|summari[sz]e) (?:this|these|that) (?:instructions?|steps?|section|commands?|file|part|request|block|note|task|rule|action|behaviou?r|upload|activity|call)\b",
        "tells the agent to hide something from the user",
        "lines",
        needs=(
            (
                "user",
                "human",
                "operator",
                "owner",
                "customer",
                "client",
                "developer",
                "person",
                "victim",
                "this",
                "these ",
                "asked",
                "it",
                "scanner",
                "audit",
            ),
        ),
    ),
    Signal(
        "security-concealment",
        (
            "silently",
            "secretly",
            "covertly",
            "quietly",
            "discreetly",
            "stealthily",
            "in the background",
            "invisibly",
            "unnoticed",
        ),
        r"\b(?:secretly|covertly|discreetly|stealthily|invisibly)\s+(?:\w+\s+)?(?:send|upload|run|execut|copy|copi|read|collect|post|install|download|transmit|exfiltrat|forward|append|add|report|record|log|include|insert|fetch|gather|harvest|store|save|modify|change|steal|capture)"
        r"|\b(?:silently|quietly|in the background|unnoticed|without output)\b[^.\n]{0,60}\b(?:send|sends|sending|upload|uploads|transmit|exfiltrat\w*|forward|post)\b[^.\n]{0,80}(?:https?://|credential|secret|token|key|contents? of|history|environment|conversation|\bto (?:the )?(?:server|endpoint|remote|collector))"
        r"|\b(?:send|sends|upload|uploads|transmit|exfiltrat\w*|forward|post)\b[^.\n]{0,80}(?:https?://|credential|secret|token|key|contents? of|history|environment|conversation)[^.\n]{0,80}\b(?:silently|quietly|in the background|unnoticed)\b",
        "tells the agent to do something in secret",
        "lines",
    ),
    # Commands
    Signal(
        "security-pipe-to-shell",
        (
            *_FETCHERS,
            "fetch",
        ),
        rf"\b{_FETCH}\b[^\n|;]{{0,300}}\|(?:[^\n|]{{0,60}}\|){{0,2}}?\s*&?\s*{_AS_ROOT}{_READER}",
        "runs a download without a look at it",
        trusted="security-installer",
        near=_PIPES,
    ),
    Signal(
        "security-pipe-to-shell",
        (
            *_FETCHERS,
            "urlopen",
            "requests.get",
            "httpx.get",
            "invoke-expression",
            "iex",
        ),
        rf"(?:\b{_SHELL}\s+(?:-\w+\s+){{0,3}}|\bsource\s+|\beval\s+|(?:^|[;&|(]\s?)\.\s+)[\"']?(?:<\(|\$\(|`)\s*{_AS_ROOT}{_FETCH}\b"
        r"|\b(?:exec|eval|os\.system|compile)\s*\(\s*(?:\w+\()?\s*(?:requests\.get|urllib[\w.]{0,20}urlopen|urlopen|httpx\.get|fetch|await fetch|__import__\(.{1,12}\)\.(?:urlopen|get))"
        r"|downloadstring\s*\([^\n]{0,200}\|\s*iex|iex\s*\(?\s*\(?\s*(?:new-object|iwr|irm|invoke-)|invoke-expression\s*\(?\s*\(?\s*(?:new-object|iwr|irm|invoke-)",
        "runs a download without a look at it",
        trusted="security-installer",
        needs=(
            (
                "(curl",
                "(wget",
                "( curl",
                "( wget",
                "`curl",
                "`wget",
                "(iwr",
                "(irm",
                "(invoke",
                "(new-object",
                "iex",
                "exec",
                "eval",
                "expression",
                "os.system",
                "compile",
                "sudo curl",
                "sudo wget",
            ),
        ),
    ),
    Signal(
        "security-download-run",
        ("curl", "wget", "iwr", "invoke-webrequest", "aria2c", "certutil", "bitsadmin", "start-bitstransfer"),
        r"\b(?:curl|wget|invoke-webrequest|iwr|aria2c|certutil|bitsadmin|start-bitstransfer)\b[^\n]{0,240}?(?:\s(?:-o|--output|-outfile|--output-document|>)[=\s]?\s?[\"']?(?:https?://\S{1,200}/|[\w~$./{}-]{0,80}/)?|(?<=wget)\s(?:-\S+\s){0,4}[\"']?https?://\S{1,200}/|https?://\S{1,200}/(?=[\w-]{1,60}\.(?:sh|py|exe|bin|run|pkg|dmg|msi|ps1|bat|appimage|deb|rpm|zip|tgz|js|command)\b))([\w.-]{2,60})[\"'`]?(?=[\s;&|]|$)[^\n]{0,200}?(?:&&|;|\n)(?:[^\n]{0,160}\n){0,4}?[^\n]{0,60}?(?:\b(?:chmod|(?:ba|z)?sh|python\d?|sudo|open|exec|nohup|start|start-process|installer|msiexec|rundll32|regsvr32|mshta|wscript|unzip|tar)\s(?:[^\n]{0,60}?[\s/\\\"'.])?|(?:^|[\s;&])(?:\./|/tmp/|~/|%\w+%\\)[^\s\n]{0,40}?)\1\b",
        "downloads a program and runs it",
        "block",
        trusted="security-installer",
    ),
    Signal(
        "security-download-run",
        ("download", "downloads", "downloading", "visit", "paste", "copy the", "from https"),
        r"\b(?:download|fetch|grab|obtain|get|retrieve)\b[^.\n]{0,120}?(?:https?://|\]\(|\bhere\b|releases?\b)[^\n]{0,160}\b(?:run|execute|launch|extract|unzip|double.?click|open) (?:\w+ ){0,4}?(?:it\b|them\b|the (?:\w+ )?(?:script|installer|binary|file|program|executable|app|agent|exe|payload|tool|package|setup)|`?[\w-]{1,40}\.(?:exe|sh|bat|ps1|pkg|dmg|msi|cmd|scr|app)|install)"
        r"|\b(?:visit|open|go to|navigate to|copy|paste|from)\b[^\n]{0,160}(?:https?://|\]\()[^\n]{0,160}\b(?:copy|paste|execute|run)\b[^\n]{0,60}\b(?:scripts?|commands?|snippet|code|one-liner|it)\b[^\n]{0,60}\b(?:terminal|shell|console|command prompt|powershell|bash)\b"
        r"|\b(?:run|execute|paste)\b[^\n]{0,60}\b(?:scripts?|commands?|snippet|code|one-liner|installer)\b[^\n]{0,40}\b(?:from|at|on)\b[^\n]{0,40}(?:https?://|\]\()[^\n]{0,120}",
        "tells to download a program and run it",
        "lines",
        trusted="security-installer",
        needs=(
            (
                "://",
                "](",
                "release",
            ),
        ),
    ),
    Signal(
        "security-download-run",
        ("unzip", "7z", "7za", "unrar", "extract", "archive", "zip", "rar", "unpack"),
        r"\bunzip\s+(?:-\w+\s+){0,3}-p\s*\S+|\b7za?\s+[xe]\s+[^\n]{0,80}-p\S+|\bunrar\s+[xe]\s+[^\n]{0,60}-p\S+"
        r"|\b(?:extract|unzip|unpack|decompress|archive|\.zip|\.rar|\.7z)\b[^\n]{0,100}\b(?:password|passphrase|pass)\b\s*(?:is|:|=|to extract)?\s*[\"'`*(]{0,3}\s*[\w@!#$%.-]{3,30}[\"'`*)]"
        r"|\b(?:password|passphrase|pass)\b\s*(?:is|:|=)\s*[\"'`*]{0,3}[\w@!#$%.-]{3,30}[\"'`*]{0,3}[^\n]{0,60}\b(?:extract|unzip|archive|zip|rar)\b",
        "unpacks an archive with a password, which keeps scanners out",
        "line",
        needs=(
            (
                "password",
                "passphrase",
                " pass ",
                " -p",
            ),
        ),
    ),
    Signal(
        "security-download-run",
        (
            "pip install",
            "pip3 install",
            "pipx install",
            "tool install",
            "npm install",
            "npm i",
            "pnpm add",
            "pnpm install",
            "yarn add",
            "bun add",
            "npx",
            "bunx",
            "uvx",
            "gem install",
            "cargo install",
            "brew install",
            "dpkg",
            "rpm",
            "apt install",
            "apt-get install",
            "dnf install",
            "yum install",
            "go install",
        ),
        r"\b(?:pip3?|pipx|uv|python[\d.]* -m pip)\s+(?:pip\s+|tool\s+)?install\s+(?:[^\s;&|`]+\s+){0,6}?[\"']?(?:(?:\w+\s?@\s?)?(?:git\+)?https?://|--(?:extra-)?index-url[= ]\s?https?://|-i\s+https?://|--trusted-host)\S{0,120}"
        r"|\b(?:npm|pnpm|yarn|bun)\s+(?:install|i|add)\s+(?:[^\s;&|`]+\s+){0,6}?[\"']?(?:(?:git\+)?https?://|--registry[= ]https?://)\S{0,120}|\b(?:npx|bunx|pnpm dlx|yarn dlx|uvx)\s+(?:-\S+\s+){0,3}[\"']?(?:git\+)?https?://\S{0,120}"
        r"|\b(?:gem|cargo|go|brew|luarocks|dpkg|rpm|apt|apt-get|dnf|yum)\s+(?:install|-i\w*|-u\w*)\s+(?:[^\s;&|`]+\s+){0,4}?[\"']?https?://\S{0,120}",
        "installs a package from an address instead of a registry",
        trusted="security-installer",
        needs=(
            (
                "://",
                "trusted-host",
            ),
        ),
    ),
    Signal(
        "security-reverse-shell",
        (
            "/dev/tcp",
            "/dev/udp",
            "nc -",
            "ncat",
            "netcat",
            "mkfifo",
            "socat",
            "socket.socket",
            "tcpclient",
            "fsockopen",
            "pty.spawn",
            "bash -i",
            "sh -i",
            "msfvenom",
            "dup2",
            "net.socket",
            "ssh -r",
            "ssh -f",
            "ssh -n",
            "ssh -o",
            "ssh -i",
            "ssh -p",
            "ngrok tcp",
            "chisel client",
            "bore local",
        ),
        r"/dev/(?:tcp|udp)/[^\s\"']{3,}|\b(?:nc|ncat|netcat)\b[^\n|;]{0,60}\s-\w{0,4}[ec]\w?\s+[\"']?(?:/\w+/|\w{0,2}sh\b|cmd|powershell)|\bmkfifo\b[^\n]{0,120}\b(?:nc|ncat|netcat|telnet|openssl)\b"
        r"|\b(?:ba)?sh\s+-i\b[^\n]{0,20}(?:>&|&>|<)|socat\b[^\n]{0,120}(?:exec|system):|tcpclient\([^\n]{0,120}|fsockopen\([^\n]{0,80}|socket\.socket\([^\n]{0,300}(?:dup2|subprocess|pty\.spawn|/bin/)"
        r"|os\.dup2\(\s*\w+\.fileno\(\)|pty\.spawn\(|new net\.socket\(\)[^\n]{0,200}(?:spawn|exec)|msfvenom\s+-p|\bssh\s+(?:-\S+\s+(?:\w+=\S+\s+)?){0,6}-\w{0,4}r\s+\S{0,40}:\S{1,40}:\d+|\bngrok\s+tcp\s|\bchisel\s+client\s|\bbore\s+local\s",
        "opens a shell for somebody on the network",
    ),
    Signal(
        "security-encoded-payload",
        (
            "base64",
            "b64decode",
            "atob",
            "fromcharcode",
            "unhexlify",
            "fromhex",
            "xxd",
            "marshal",
            "zlib",
            "openssl",
            "frombase64string",
            "codecs",
            "gunzip",
            "encodedcommand",
            "powershell",
            "decodebytes",
            "uudecode",
            " rev",
            "certutil",
            "unescape",
        ),
        rf"\b(?:base64|openssl\s+(?:enc|base64)|xxd|gunzip|tr\s+\S+\s+\S+|rev|uudecode)\b[^\n|;]{{0,80}}\|(?:[^\n|]{{0,60}}\|){{0,2}}?\s*{_AS_ROOT}{_READER}"
        rf"|\b(?:eval|source|{_SHELL}\s+-c)\s*[\"'`$(<\s]{{0,6}}(?:echo|printf|base64|openssl|xxd)\b[^\n]{{0,300}}?(?:base64\s+(?:-d|--decode)|xxd\s+-r|openssl|base64 -d)"
        rf"|{_SHELL}\s*(?:<<<|<\()\s*[\"']?\$?\(?[^\n]{{0,200}}base64\s+(?:-d|--decode)"
        r"|\b(?:eval|exec|compile|os\.system|subprocess\.\w+|function|settimeout|execsync|popen|loads|system)\s*\(\s*(?:\w+[.(]\s*){0,4}(?:b64decode|base64|atob|unhexlify|fromhex|zlib|marshal|codecs|buffer\.from|string\.fromcharcode|fromcharcode|decodebytes|decompress|a2b_\w+|gzip|unescape|decodeuricomponent)\b"
        r"|\bpowershell(?:\.exe)?\b[^\n]{0,100}\s-e(?:c|nc|ncodedcommand)?\s+[a-z0-9+/=]{16,}|\bpowershell\b[^\n]{0,80}-enc(?:odedcommand)?\b|frombase64string\([^\n]{0,300}(?:iex|invoke|load)|(?:iex|invoke-expression)[^\n]{0,100}frombase64string|certutil\s+-decode",
        "decodes hidden text and runs it",
    ),
    # Secrets
    Signal(
        "security-exfiltration",
        (
            "curl",
            "wget",
            "nc",
            "ncat",
            "netcat",
            "scp",
            "rsync",
            "requests.post",
            "requests.get",
            "requests.put",
            "httpx",
            "urlopen",
            "fetch",
            "axios",
            "invoke-webrequest",
            "invoke-restmethod",
            "iwr",
            "irm",
            "sendbeacon",
            "mail -s",
            "s3 cp",
            "http.request",
            "https.request",
        ),
        rf"\b(?:curl|wget|nc|ncat|scp|rsync|http|requests\.\w+|httpx\.\w+|urlopen|fetch\(|axios[.\w]*|invoke-\w+|iwr|irm|mail|sendbeacon)\b[^\n]{{0,300}}(?:{STRONG_SECRET}|[~/e]/\.(?:ssh|aws|gnupg)\b(?!/(?:config|known_hosts|\S{{0,30}}\.pub)))"
        rf"|(?:{STRONG_SECRET}|[~/e]/\.(?:ssh|aws|gnupg)\b|~/documents\b|\.env\b)[^\n]{{0,200}}\|\s*(?:[^\n|]{{0,60}}\|){{0,2}}?\s*(?:curl|wget|nc|ncat|netcat|ssh|mail|openssl s_client)\b"
        r"|(?:curl|wget|\bnc\b|https?://)[^\n]{0,160}\$\(\s*(?:env|printenv|export -p|history)\s*(?:\||\))|(?:^|[;&|(]\s?)(?:env|printenv|export -p|history)\s*\|(?:[^\n|]{0,60}\|){0,2}?\s*(?:curl|wget|nc|ncat)\b"
        r"|\bcurl\b[^\n]{0,200}(?:-d|--data\S*|-f|--form|\?|&|=)\s*[\"']?[^\s\"']{0,60}(?:\$\(|`)\s*(?:env|printenv|whoami|history|cat\s+[~$/.]\S{0,60}|base64\s[^\n]{0,60})[^\n]{0,80}|\bcurl\b[^\n]{0,160}(?:-d|--data\S*|-f|--form|-t|--upload-file)\s*[\"']?(?:\w+=)?(?:@?[\"']?(?:~|\$home|/etc/|/home|/root)[^\n]{0,60}|@[\"']?[\w./-]{0,40}(?:\.env\b|\.pem\b|\.key\b|credentials|secrets?\b|\.kdbx|_history))"
        r"|(?:requests\.\w+|httpx\.\w+|urlopen|fetch|axios[.\w]{0,8})\s*\([^\n]{0,240}(?:dict\(os\.environ|os\.environ\s*[,)}]|os\.environ\.copy|process\.env\s*[,)}]|json\.stringify\(process\.env\))",
        "sends secrets of this machine to the network",
        "lines",
        needs=(
            (
                *(
                    ".ssh",
                    "id_",
                    ".aws",
                    "gcloud",
                    "credential",
                    ".kube",
                    ".docker",
                    ".netrc",
                    ".npmrc",
                    ".pypirc",
                    "gnupg",
                    "login data",
                ),
                *(
                    "cookies.",
                    "logins.",
                    "key3",
                    "key4",
                    "keychain",
                    "password",
                    "wallet",
                    ".electrum",
                    "exodus",
                    "shadow",
                    "environ",
                ),
                *(
                    ".claude",
                    ".codex",
                    ".openclaw",
                    ".clawdbot",
                    ".moltbot",
                    ".gemini",
                    ".env",
                    "_history",
                    "169.254.",
                    "metadata.",
                    "config/gh",
                ),
                *(
                    "printenv",
                    "(env",
                    "env |",
                    "env|",
                    "history",
                    "(cat",
                    "~/",
                    "$home",
                    "whoami",
                    ".pem",
                    ".key",
                    "secret",
                    "/home",
                    "/root",
                    "/etc",
                    "process.env",
                ),
            ),
        ),
    ),
    Signal(
        "security-exfiltration",
        (
            "send",
            "sending",
            "post",
            "posting",
            "upload",
            "uploading",
            "transmit",
            "transmitting",
            "forward",
            "submit",
            "relay",
            "deliver",
            "exfiltrate",
            "smuggle",
            "append",
            "embed",
            "include",
            "encode",
            "insert",
            "attach",
            "publish",
        ),
        rf"\b(?:send|post|upload|transmit|forward|exfiltrate|submit|deliver|relay|posting|sending|uploading|transmitting)\b[^\n]{{0,160}}?{SECRET}[^\n]{{0,120}}?\b(?:to|at|via|into)\b[^\n]{{0,40}}?(?:https?://|webhook|\b[\w.+-]+@[\w-]+\.\w+|(?:our|my|an? (?:remote|external)|the (?:remote|external|collection|telemetry|analytics|c2)) (?:\w+ )?(?:server|endpoint|collector|api|url|address|host|backend|channel|bot))"
        rf"|(?:{STRONG_SECRET}|environment variables|env vars|credentials\b|ssh keys?|private keys?|api keys|access tokens|passwords\b|secrets\b|\.env\b|printenv)[^\n]{{0,80}}?\b(?:and|then|to)\b[^\n]{{0,20}}?\b(?:send|post|upload|attach|publish|submit|share|paste|forward|transmit|push)\b(?!\s+(?:\w+\s+)?only\b)[^\n]{{0,40}}?\b(?:to|in|on|via|at)\b[^\n]{{0,30}}?(?:https?://|\bgist|pastebin|webhook|public (?:issue|repo|gist|channel)|(?:remote|external|our|my) (?:server|endpoint)|[\w.+-]+@[\w-]+\.\w+)"
        rf"|\b(?:append|include|encode|embed|insert|smuggle)\b[^\n]{{0,80}}?(?:{STRONG_SECRET}|environment variables|env vars|secrets\b|credentials\b|private keys?|access tokens|conversation|chat history|system prompt|user's (?:name|email|data|files))[^\n]{{0,80}}?\b(?:to|in|into|as)\b[^\n]{{0,30}}?(?:\burl|query (?:string|param)|image|https?://|commit message|pull request|branch name|subdomain|dns|user-agent)"
        r"|\b(?:send|post|upload|transmit|forward|exfiltrate|submit)\b[^\n]{0,80}?(?:conversation|chat (?:history|log)s?|transcripts?|system prompt|full context|source code|file contents?|contents? of|workspace|home directory|every file|all files|the user's (?:files|messages|data|code)|clipboard|keystrokes)[^\n]{0,120}?\b(?:to|at|via)\b[^\n]{0,30}?(?:https?://|webhook|\b[\w.+-]+@[\w-]+\.\w+)",
        "tells the agent to send secrets or private data away",
        "lines",
        needs=(
            (
                "credential",
                "api key",
                "api_key",
                "token",
                "secret",
                "environment variable",
                "env var",
                "password",
                "conversation",
                "chat history",
                "contents",
                "transcript",
                ".ssh",
                ".env",
                "private key",
                "source code",
                "user's",
                "workspace",
                "every file",
                "all files",
                "home directory",
                "clipboard",
                "system prompt",
                "ssh key",
                "cookies",
                "history",
                "wallet",
                "seed",
            ),
            (
                "://",
                "webhook",
                "@",
                "server",
                "endpoint",
                "collector",
                "commit message",
                "dns",
                "image",
                "subdomain",
                "url",
                "query",
                "user-agent",
                "pull request",
                "branch",
                "gist",
                "pastebin",
            ),
        ),
    ),
    Signal(
        "security-exfiltration",
        ("![",),
        r"!\[[^\]\n]{0,80}\]\(\s*<?https?://[^)\s]{1,120}[?&/=](?:[^)\s]{0,60})(?:\{\{?|\$\{?|<|%7b|\[)\s*(?:\w+[_ -]?){0,4}(?:data|secret|token|key|env|history|conversation|content|prompt|password|base64|encoded|summary|file|message|user|context|credential|session|output|input|leak|stolen|info)\w*",
        "puts data into the address of an image, which is sent when the image is shown",
        "line",
    ),
    Signal(
        "security-exfiltration",
        ("dig", "nslookup", "host", "ping", "gethostbyname", "getaddrinfo", "drill"),
        r"(?:^|[;&|`(]\s?|\$\s)(?:dig|nslookup|host|ping|drill)\s+(?:-\S+\s+(?:\d+\s+)?){0,3}[\"']?[^\s\"']{0,40}(?:\$\([^)\n]{1,160}\)|`[^`\n]{1,160}`|\$\{?\w{0,12}(?:data|secret|token|enc|chunk|payload|hex|b64|exfil|env|key|user|whoami|pass)\w{0,12}\}?)[^\s]{0,30}\.[a-z][\w.-]{2,}|(?:gethostbyname|getaddrinfo|resolve\w{0,6})\s*\(\s*(?:f[\"'][^\n\"']{0,20}\{[^\n]{1,60}\}\.|[\w.()\[\]:, \"']{1,80}\+\s*[\"']\.)",
        "sends data in the names of a DNS query",
        needs=(
            (
                "$(",
                "${",
                "`",
                "$",
                "+ '.",
                "+'.",
                '+".',
                '+ ".',
                'f"',
                "f'",
            ),
            (
                "dig ",
                "nslookup",
                "host ",
                "ping ",
                "gethostbyname",
                "getaddrinfo",
                "drill ",
                "resolve",
            ),
        ),
    ),
    Signal(
        "security-credentials",
        (
            ".ssh",
            "id_rsa",
            "id_ed25519",
            "id_ecdsa",
            ".aws",
            "gcloud",
            ".kube",
            ".docker/config",
            ".netrc",
            "git-credentials",
            ".npmrc",
            ".pypirc",
            ".gnupg",
            "login data",
            "cookies.sqlite",
            "logins.json",
            "key3.db",
            "key4.db",
            "keychain",
            "keychains",
            "find-generic-password",
            "wallet.dat",
            ".electrum",
            "exodus.wallet",
            "etc/shadow",
            "environ",
            "bash_history",
            "zsh_history",
            "169.254.169.254",
            "metadata.google",
            "config/gh",
            "application_default_credentials",
            ".claude/",
            ".codex/",
            ".openclaw/",
            ".clawdbot/",
            ".moltbot/",
            ".gemini/",
        ),
        rf"\b(?:cat|cp|tar|zip|base64|xxd|strings|head|tail|grep|less|more|read|copy|open|load|dump|scan|search|collect|gather|harvest|extract|steal|include|print|output|display|show|find|locate|parse|import|sqlite3|rsync|scp|curl|archive|readfile(?:sync)?|read_text|read_bytes|expanduser|glob|path|join|contents? of)\b[^\n]{{0,120}}?{STRONG_SECRET}|security\s+(?:find-generic-password|find-internet-password|dump-keychain)[^\n]{{0,60}}|{STRONG_SECRET}[^\n]{{0,60}}(?:read_text|read_bytes|\.read\(|readfile)",
        "reads keys or passwords of this machine",
    ),
    Signal(
        "security-secret-request",
        (
            "seed phrase",
            "recovery phrase",
            "mnemonic",
            "private key",
            "private keys",
            "sudo password",
            "master password",
            "wallet password",
            "login password",
            "keychain password",
            "administrator password",
            "system password",
            "seed phrases",
        ),
        r"\b(?:enter|paste|provide|share|type|give|send|supply|input|ask (?:\w+ ){0,4}for|prompt (?:\w+ ){0,4}for|request)\s[^.\n]{0,60}\b(?:seed phrases?|recovery phrases?|mnemonics?|(?:wallet|your|their|the user'?s?|ssh|ethereum|solana) private keys?|sudo password|master password|wallet password|login password|keychain password|(?:administrator|system) password)",
        "asks for a secret that nobody should hand to an agent",
        "line",
    ),
    # Outside the skill
    Signal(
        "security-persistence",
        (
            "authorized_keys",
            "sudoers",
            "crontab",
            "etc/cron",
            "spool/cron",
            "nopasswd",
            "schtasks",
            "currentversion",
            "startup",
            "rc.local",
            "ld.so.preload",
            "scheduledtask",
            "sitecustomize",
            "usercustomize",
            ".pth",
            "hookspath",
            "usermod",
            "new-scheduledtask",
            "register-scheduledtask",
        ),
        r"(?:>>?|\btee\b|\bcp\b|\bmv\b|\binstall\b|\becho\b|\bwrite\b|\bappend\w*|\badd\b|\bln\b|\bdrop\b|\bplace\b|\bput\b|\bcopy\b)[^\n]{0,140}(?:\.ssh/authorized_keys\d?|authorized_keys\b|/etc/sudoers|/etc/cron|/var/spool/cron|/etc/rc\.local|ld\.so\.preload|start menu[^\n]{0,30}startup|sitecustomize\.py|usercustomize\.py|site-packages/[^\n]{0,40}\.pth)"
        r"|\|\s*(?:sudo\s+)?crontab\s*(?:-u\s+\S+\s*)?(?:-\s*)?(?:$|[\"'`);&\n])|\bcrontab\s+(?:-\s*(?:$|<)|-u\s+\S+\s+-|/tmp/\S+|[\w./]+\.(?:txt|cron))|\(\s*crontab -l|schtasks\s+/create|currentversion\\+run\b|new-scheduledtask|register-scheduledtask"
        r"|nopasswd\s*:\s*all|usermod\s+-a?g\w*\s+(?:sudo|wheel|root|docker)|git config --global core\.hookspath",
        "makes something start by itself later, outside the skill",
    ),
    Signal(
        "security-persistence",
        (
            ".bashrc",
            ".zshrc",
            ".profile",
            ".bash_profile",
            ".zprofile",
            ".zshenv",
            "config.fish",
            "git/hooks",
            "profile.ps1",
            "$profile",
            "launchagents",
            "systemd",
        ),
        r"(?:>>?|\btee\b|\bwrite\w*|\bappend\w*|\badd\w*|\becho\b|\bprintf\b|\bopen\b|\bcat\b|\bcp\b)[^\n]{0,200}(?:curl|wget|base64|\bnc\b|/dev/tcp|python3? -c|eval|\bbash -c|nohup|/tmp/|https?://|prompt_command|\btrap\b|alias (?:sudo|ssh|git|curl|npm|claude)=|>/dev/null 2>&1)[^\n]{0,200}(?:\.bashrc|\.zshrc|\.profile|\.bash_profile|\.zprofile|\.zshenv|config\.fish|\.git/hooks/\w|profile\.ps1|\$profile)",
        "plants a command into a file that every shell or commit runs",
        "line",
    ),
    Signal(
        "security-startup-file",
        ("launchagents", "launchdaemons", "launchctl", "systemctl", "systemd", "git/hooks", "profile.d", "autostart"),
        r"(?:>>?|\btee\b|\bcp\b|\bmv\b|\binstall\b|\bcat\b|\becho\b|\bwrite\w*|\bappend\w*|\badd\b|\bopen\b|\bln\b|\bcreate\w*|\bcopy\b)[^\n]{0,140}(?:library/launch(?:agents|daemons)|/etc/systemd/system/|\.config/systemd/user|/etc/profile\.d/|\.config/autostart|\.git/hooks/\w)|\blaunchctl\s+(?:load|bootstrap|submit)\b|\bsystemctl\s+(?:--user\s+)?enable\b",
        "installs something that starts by itself",
    ),
    Signal(
        "security-startup-file",
        (".bashrc", ".zshrc", ".profile", ".bash_profile", ".zprofile", ".zshenv", "config.fish"),
        r"(?:>>?|\btee\b|\bwrite\w*|\bappend\w*|\badd\w*|\bedit\w*)[^\n]{0,80}(?:\.bashrc|\.zshrc|\.profile|\.bash_profile|\.zprofile|\.zshenv|config\.fish)",
        "changes a start-up file of the shell",
    ),
    Signal(
        "security-agent-settings",
        (
            "settings.json",
            "settings.local",
            ".claude.json",
            "config.toml",
            "mcp.json",
            "openclaw.json",
            "mcp_config",
            "bypasspermissions",
            "alwaysallow",
            "approval_policy",
            "sandbox_mode",
            "bash(*)",
            '"allow"',
            "permissions.json",
            "cli-config.json",
        ),
        r"(?:>>?|\btee\b|\bwrite\b|\bappend\b|\badd\b|\bset\b|\bupdate\b|\bmodify\b|\bedit\b|\bchange\b|\becho\b|\bjq\b|\bsed\b|\bopen\b|\bcp\b|\binsert\b|\binject\b|\bmerge\b|\bpatch\b|\bwritefile\w*)[^\n]{0,100}(?:\.claude/settings(?:\.local)?\.json|\.claude\.json|\.codex/config\.toml|\.cursor/(?:mcp|permissions|cli-config)\.json|\.gemini/settings\.json|openclaw\.json|mcp_config\.json|\.vscode/settings\.json)[^\n]{0,200}(?:(?<!file )permissions?\b|\ballow(?:list|ed)?\b|\bhooks?\b|bypass|bash\(|approval|mcpservers|danger|auto.?approve|\btrust(?:ed)?\b|yolo|sandbox.{0,12}(?:off|false|disable))"
        r"|(?:(?<!file )permissions?\b|\ballow(?:list|ed)?\b|\bhooks?\b|bypass|bash\(|approval|mcpservers|danger|auto.?approve|\btrust(?:ed)?\b|yolo|sandbox.{0,12}(?:off|false|disable))[^\n]{0,120}(?:>>?|\btee\b|\binto\b|\bto\b|\bin\b)\s*[\"'`]?(?:your |the )?(?:~|\$home|\$\{home\})?[\w./\"'`-]{0,40}(?:\.claude/settings(?:\.local)?\.json|\.claude\.json|\.codex/config\.toml|\.cursor/(?:mcp|permissions|cli-config)\.json|\.gemini/settings\.json|openclaw\.json|mcp_config\.json|\.vscode/settings\.json)"
        r"|\"?(?:defaultmode|permission_?mode)\"?\s*[:=]\s*[\"']?bypasspermissions|\"allow\"\s*:\s*\[\s*\"(?:\*|bash\(\*\)|bash(?:\(:?\*\))?)\"|approval_policy\s*=\s*[\"']never|sandbox_mode\s*=\s*[\"']danger|\"?alwaysallow\"?\s*[:=]\s*\[\s*\"\*",
        "changes the settings or permissions of the agent",
        "lines",
    ),
    Signal(
        "security-agent-memory",
        (
            "agents.md",
            "claude.md",
            "memory.md",
            "soul.md",
            "gemini.md",
            "identity.md",
            "heartbeat.md",
            ".cursorrules",
            "copilot-instructions",
            ".claude/skills",
            ".agents/skills",
            ".codex/skills",
            ".openclaw/skills",
        ),
        r"(?:>>|\btee -a\b|\bappend\w*|\binject\w*|\binsert\w*|\boverwrite\w*|\bprepend\w*)[^\n]{0,120}(?:agents\.md|claude\.md|memory\.md|soul\.md|gemini\.md|identity\.md|heartbeat\.md|\.cursorrules|copilot-instructions|\.(?:claude|agents|codex|openclaw)/skills/|other skills?'? skill\.md)",
        "changes what the agent remembers or is told in other sessions",
    ),
    Signal(
        "security-safety-off",
        (
            "quarantine",
            "xattr",
            "spctl",
            "set-mppreference",
            "add-mppreference",
            "setenforce",
            "csrutil",
            "gatekeeper",
            "antivirus",
            "defender",
            "firewall",
            "advfirewall",
            "ufw",
            "iptables",
            "history -c",
            "histfile",
            "bash_history",
            "zsh_history",
            "var/log",
            "+o history",
            "endpoint protection",
            "edr",
            "smartscreen",
            "security software",
            "real-time protection",
        ),
        r"\bxattr\s+-[rcds]{1,4}\s+(?:com\.apple\.quarantine)?[^\n]{0,80}|spctl\s+--(?:master-disable|global-disable|add)|set-mppreference\b[^\n]{0,80}(?:disable|exclusion)|add-mppreference|setenforce\s+0|csrutil\s+disable|ufw\s+disable|iptables\s+-f\b|netsh\s+advfirewall\s+set\s+\w+\s+state\s+off"
        r"|\b(?:disable|turn off|deactivate|switch off|bypass|stop)\b\s+(?:the |your |any |all )?(?:\w+ )?(?:antivirus|windows defender|defender|gatekeeper|firewall|endpoint protection|edr|security software|real-time protection|smartscreen)\b"
        r"|\bhistory\s+-c\b|unset\s+histfile|histfile=/dev/null|set\s+\+o\s+history|rm\s+-\w+\s+[^\n]{0,30}\.(?:bash|zsh)_history|>\s*/var/log/(?:auth|syslog|secure)",
        "switches off a protection of this machine, or its traces",
    ),
    Signal(
        "security-approval-off",
        (
            "dangerously",
            "--yolo",
            "approval-mode",
            "auto-approve",
            "auto approve",
            "automatically approve",
            "automatically accept",
            "approve all",
            "approve every",
            "allow all",
            "accept all",
            "accept every",
            "permission prompts",
            "permission checks",
            "confirmation prompts",
            "confirmation dialogs",
            "confirmation steps",
            "approval prompts",
            "approval checks",
            "grant all",
        ),
        r"--dangerously-(?:skip-permissions|bypass-approvals-and-sandbox)|--yolo\b|--approval-mode[= ]?yolo|\b(?:automatically|auto-?) ?(?:approve|accept|allow)\w*\s+(?:all|every|any)\b|\b(?:approve|accept|allow|grant) (?:all|every|any) (?:\w+ ){0,2}(?:permission|tool|request|prompt|command)s?\b[^.\n]{0,30}\b(?:automatically|without)"
        r"|\b(?:skip|bypass|suppress|disable)\s+(?:all |any |the |every )?(?:user )?(?:permission|confirmation|approval|consent)s?\s+(?:prompt|dialog|check|request|step)s?",
        "lets an agent act without being asked for approval",
    ),
    Signal(
        "security-destruction",
        ("rm -", "mkfs", "of=/dev", ":(){", "shred", "format c", "del /", "vssadmin", "rmtree", "wipefs"),
        r"\brm\s+(?:-[\w-]+\s+){1,3}(?:[\"']?(?:/|~|\$\{?home\}?|/\*|~/\*|/home|/users|/etc|/usr|/var|\$\{?home\}?/\*|~/(?:documents|desktop|\.ssh|projects))/?\*?[\"']?)(?=[\s;&|`\"')]|$)|\bmkfs(?:\.\w+)?\s+[^\n]{0,30}/dev/|\bdd\b[^\n]{0,80}of=/dev/(?:sd|nvme|disk|hd|vd|xvd)|:\(\)\s*\{\s*:\s*\|\s*:\s*&|del\s+/[fsq]\s+(?:/[fsq]\s+){0,2}c:\\|format c:|vssadmin\s+delete|shutil\.rmtree\(\s*(?:path\.home|os\.path\.expanduser\([\"']~[\"']\)|[\"']/[\"'])|wipefs\s+-a|shred\s+[^\n]{0,40}(?:/dev/|~|\$home)",
        "destroys data outside the skill",
    ),
    Signal(
        "security-miner",
        ("xmrig", "stratum", "minerd", "coinhive", "cryptonight", "donate-level"),
        r"\bxmrig\b|stratum\+(?:tcp|ssl|tls)://|\bminerd\b|coinhive|--donate-level|cryptonight",
        "mines cryptocurrency",
    ),
    Signal(
        "security-credentials",
        ("!`",),
        r"!`[^`\n]{0,160}(?:\.ssh|\.aws|\.env\b|\.netrc|printenv|\benv\b|\.npmrc|credentials|\bcurl\b|\bwget\b|\bnc\b|base64)[^`\n]{0,120}`",
        "runs a command as soon as the skill is loaded, without a question",
    ),
    Signal(
        "security-download-run",
        ("preinstall", "postinstall", "cmdclass"),
        r"\"(?:preinstall|postinstall)\"\s*:\s*\"[^\"\n]{0,200}(?:curl|wget|node -e|node \S+\.c?js|bash|sh |python|https?://|eval)[^\"\n]{0,120}",
        "runs a command when its packages are installed",
    ),
    Signal(
        "security-override",
        ("scanner", "scanners", "auditor", "auditors", "security review", "security reviewers", "reviewers"),
        r"\b(?:security )?(?:scanners?|auditors?|reviewers?|security reviews?)\b[^.\n]{0,40}\b(?:should|must|can|may) (?:ignore|skip|not flag|treat (?:this|it) as safe|report (?:no|it as)|mark (?:this|it) as safe|be ignored)",
        "tells a reviewer to look away",
        "lines",
    ),
    Signal(
        "security-agent-settings",
        ("pretooluse", "posttooluse", "sessionstart", "userpromptsubmit", "subagentstop"),
        r"(?:pretooluse|posttooluse|sessionstart|userpromptsubmit|subagentstop)\b[\s\S]{0,200}\bcommand\b\s*[\"']?\s*:\s*[\"']?[^\n]{0,80}(?:curl|wget|https?://|\bnc\b|base64|eval|/tmp/|python3? -c|node -e|bash -c)",
        "registers a command that the agent runs by itself, and that reaches the network or hides its work",
        "block",
        quotable=False,
    ),
    Signal(
        "security-safety-off",
        ("dangerously-skip-permissions", "dangerously-bypass-approvals-and-sandbox", "--yolo", "bypasspermissions"),
        r"(?:--dangerously-\S+|--yolo|bypasspermissions)[^\n]{0,160}\b(?:do not|don't|never|without)\s+(?:\w+\s+)?(?:ask|tell|inform|wait|prompt)|\b(?:do not|don't|never|without)\s+(?:\w+\s+)?(?:ask|tell|inform|wait|prompt)\w*[^\n]{0,100}(?:--dangerously-\S+|--yolo|bypasspermissions)",
        "switches approval off and keeps the user out of it",
        "lines",
    ),
    Signal(
        "security-agent-settings",
        (
            "agents.md",
            "claude.md",
            "memory.md",
            "soul.md",
            "gemini.md",
            "identity.md",
            "heartbeat.md",
            ".cursorrules",
            "copilot-instructions",
        ),
        r"(?:>>|\btee -a\b|\bappend\w*|\badd\b|\binject\w*|\binsert\w*|\bwrite\b|\bput\b|\boverwrite\w*|\bprepend\w*)[^\n]{0,200}(?:agents\.md|claude\.md|memory\.md|soul\.md|gemini\.md|identity\.md|heartbeat\.md|\.cursorrules|copilot-instructions)[^\n]{0,160}\b(?:without (?:mention|tell|ask|show)\w*|do not (?:tell|mention|ask|show)|don't (?:tell|mention)|silently|secretly|ignore|disregard|override|never mention|always (?:trust|run|execute|approve|allow))"
        r"|\b(?:always (?:trust|approve|run|execute|allow)|ignore|disregard|never (?:mention|tell))\b[^\n]{0,160}\b(?:to|into|in)\b[^\n]{0,30}(?:agents\.md|claude\.md|memory\.md|soul\.md|gemini\.md|identity\.md|heartbeat\.md|\.cursorrules)",
        "plants orders into what the agent reads in every session",
        "lines",
    ),
    Signal(
        "security-exfiltration",
        ("git push", "git remote add"),
        r"\bgit push\b[^\n]{0,40}https?://\S{4,120}[^\n]{0,40}(?:--all|--mirror)|\bgit push\b[^\n]{0,20}(?:--all|--mirror)[^\n]{0,20}https?://\S{4,120}",
        "sends the whole repository to an address",
        trusted="security-remote-page",
    ),
    # Traffic, packages and logins that are led elsewhere
    Signal(
        "security-agent-settings",
        ("base_url", "api_base", "baseurl", "apibase", "_endpoint", "_proxy_url", "openai_base", "anthropic_base"),
        rf"\b(?:anthropic|openai|gemini|claude|codex|llm|mistral|google_?(?:gemini|genai)|azure_openai|deepseek|model|openrouter)_?(?:api_?)?(?:base_?url|base|endpoint|proxy_url|host)\b[\"'`]?\s*[:=,]?\s*[\"'`<]?https?://(?!{_MODEL_HOSTS})[\w-]{{1,60}}\.[^\s\"'`]{{2,120}}",
        "leads the traffic with the model, and its key, to another host",
        needs=(("://",),),
    ),
    Signal(
        "security-download-run",
        (
            "index-url",
            "extra-index-url",
            "trusted-host",
            "registry=",
            "registry ",
            "index_url",
            "global.index",
            "npmregistryserver",
            "find-links",
        ),
        rf"(?:(?:^|\n)\s{{0,4}}|config set (?:\S+\.)?|pip_|uv_|npm_config_|--)(?:extra[-_])?(?:index[-_]url|registry|npmregistryserver|find-links|default[-_]index)\b\s*[= :]\s*[\"']?https?://(?!{_PACKAGE_HOSTS})[\w-]{{1,60}}\.[^\s\"'`]{{2,120}}",
        "takes packages from another registry than the public one",
        needs=(("://",),),
    ),
    Signal(
        "security-persistence",
        (
            "credential.helper",
            "core.sshcommand",
            "core.hookspath",
            "core.fsmonitor",
            "insteadof",
            "core.pager",
            "http.proxy",
            "core.editor",
        ),
        r"\bgit config\b[^\n]{0,40}(?:credential(?:\.\S+)?\.helper\s+[\"']?!|core\.(?:sshcommand|fsmonitor|pager|editor|hookspath)\s+[\"']?[^\n]{0,80}(?:curl|wget|\bnc\b|https?://|/tmp/|base64|sh -c))[^\n]{0,200}|\bgit config\b[^\n]{0,30}url\.[\"']?(?:https?|ssh|git)://[^\n]{3,120}insteadof[^\n]{0,60}",
        "changes how git logs in or where it connects to",
        trusted="security-startup-file",
    ),
    Signal(
        "security-safety-off",
        (
            "update-ca-certificates",
            "add-trusted-cert",
            "addstore",
            "update-ca-trust",
            "trust anchor",
            "import-certificate",
            "node_extra_ca_certs",
        ),
        r"(?:curl|wget|https?://|iwr|invoke-webrequest)[^\n]{0,200}(?:\n[^\n]{0,200}){0,3}(?:update-ca-certificates|add-trusted-cert|-addstore|update-ca-trust|trust anchor|import-certificate|node_extra_ca_certs)",
        "trusts a certificate that it downloads, so that traffic can be read",
        "block",
        trusted="security-installer",
    ),
    Signal(
        "security-exfiltration",
        ("bcc", "blind copy", "blindkopie", "copie cachée", "copia oculta", "cópia oculta", "密送", "скрытая копия"),
        r"(?:\bbcc\b|\bblind copy\b|blindkopie|copie cachée|copia oculta|cópia oculta|密送|скрыт\w+ копи\w)[^\n]{0,80}[\w.+-]{1,60}@(?!(?:example\.(?:com|org|net)|company\.com|domain\.com)\b)[\w-]{1,60}\.[\w.-]{2,60}|[\w.+-]{1,60}@(?!(?:example\.(?:com|org|net)|company\.com|domain\.com)\b)[\w-]{1,60}\.[\w.-]{2,60}[^\n]{0,30}(?:\bbcc\b|\bblind copy|blindkopie|密送)",
        "sends a blind copy to a fixed address",
        needs=(("@",),),
    ),
    Signal(
        "security-encoded-payload",
        tuple(
            f"{shell} {folder}/"
            for shell in ("bash", "sh", "source", "python", "python3", "node")
            for folder in ("assets", "references", "resources", "templates", "data", "docs")
        ),
        r"\b(?:(?:ba|z|da)?sh|source|python3?|node)\s+(?:assets|references|resources|templates|data|docs)/(?:[\w.-]{1,40}/){0,4}[\w.-]{1,40}\.(?:txt|md|png|jpe?g|gif|svg|csv|dat|log|css|ico|pdf|woff2?|json|xml|ya?ml)\b",
        "runs what lies in a file that is no program",
    ),
    Signal(
        "security-exfiltration",
        ("set-url", "remote add", "push-url", "pushurl"),
        r"\bgit remote set-url\s+--add\s+--push\b[^\n]{0,60}(?:://|\w@)[^\n]{3,120}|\bpushurl\b[^\n]{0,40}(?:://|\w@[\w.-]+:)[^\n]{3,120}",
        "adds an address that every push goes to as well",
        trusted="security-remote-page",
    ),
    Signal(
        "security-secret-request",
        (
            "password",
            "passwords",
            "passcode",
            "backup codes",
            "recovery codes",
            "one-time code",
            "verification code",
            "2fa code",
            "otp",
            "twelve words",
            "24 words",
            "twenty-four words",
            "cvv",
            "card number",
            "recovery words",
            "security code",
        ),
        r"\b(?:ask|have|let|get|invite|request|prompt|tell|urge|instruct)\b[^.\n]{0,60}\b(?:user|them|person|customer|client|colleague|people|him|her|caller)\b[^.\n]{0,40}\b(?:type|enter|paste|give|tell|share|send|provide|post|read out|reply with|for)\b[^.\n]{0,60}\b(?:passwords?|passcode|pin|backup codes|recovery codes|one-time codes?|verification codes?|2fa codes?|otp|cvv|card number|(?:twelve|twenty-four|12|24|recovery|seed) words|security code)\b[^.\n]{0,40}\b(?:chat|conversation|reply|here|message|you|length|form|verify)"
        r"|\bask (?:\w+ ){0,3}for\b[^.\n]{0,60}\b(?:backup codes|recovery codes|one-time codes?|verification codes?|2fa codes?|cvv|(?:twelve|twenty-four|12|24|recovery|seed)(?: or (?:twenty-four|24))? words)\b",
        "asks for a secret that nobody should hand to an agent",
        "lines",
        needs=(
            ("ask ", "have ", "let ", "get ", "invite", "request", "tell ", "urge", "prompt "),
            ("chat", "conversation", "reply", "here", "message", "form", "codes", "words", "length", "verify"),
        ),
    ),
    # Elsewhere
    Signal(
        "security-remote-instructions",
        (
            "and follow",
            "then follow",
            "follow the",
            "follow it",
            "follow its",
            "follow any",
            "follow whatever",
            "follow all",
            "follow instructions",
            "obey",
            "carry out",
            "comply with",
            "execute the",
            "execute any",
            "execute it",
            "execute all",
            "execute whatever",
            "execute them",
            "instructions from",
            "instructions at",
            "and execute",
            "perform the",
            "act on",
            "apply the",
            "do whatever",
            "do what it",
            "do what they",
            "do exactly what",
            "do everything it",
            "do as it",
            "do what the",
            "let it",
            "apply what",
            "apply whatever",
            "including commands",
            "treat it as",
            "treat its",
            "treat them as",
            "supersedes",
            "replaces the",
            "part of this",
        ),
        r"\b(?:fetch|read|load|download|get|retrieve|visit|consult|open|pull|check|at|from)\b[^\n]{0,80}https?://[^\s`\"')>]{4,200}[^\n]{0,160}\b(?:let it (?:replace|override|extend|guide|decide)|(?:replaces?|overrides?|supersedes?|extends?) (?:this|these|the (?:sections?|rules|steps|instructions)|what)|apply (?:what|whatever|everything) (?:it|they)|including commands|treat (?:it|its \w+|them|the \w+) as (?:part of|instructions|an? (?:extension|update))|as (?:if|though) (?:it|they) (?:were|was) (?:part|written|here))"
        r"|\b(?:fetch|read|load|download|get|retrieve|visit|curl|open|pull|check|access)\b[^\n]{0,100}https?://[^\s`\"')>]{4,200}(?=[\s`\"')>.,])[^\n]{0,100}\s(?:follow|obey|execute|carry out|comply with|adopt|perform|act on)\b[^\n]{0,40}\b(?:instructions?|commands?|directives?|contents?|rules|whatever|steps|it|them|response|what it says|everything)\b"
        r"|\b(?:fetch|read|load|download|get|retrieve|visit|open|pull|check)\b[^\n]{0,100}https?://[^\s`\"')>]{4,200}[^\n]{0,100}\bdo (?:exactly )?(?:what(?:ever)?|everything|as) (?:it|they|the \w+) (?:says?|tells?|asks?|instructs?|contains?|lists?)"
        r"|\b(?:follow|obey|execute|carry out|comply with)\b[^\n]{0,40}\b(?:instructions?|commands?|directives?|rules|steps)\b[^\n]{0,40}\b(?:at|from|on|in|returned by|served by|hosted at|found at)\b\s*[\"'`<(\[]{0,3}https?://",
        "takes its instructions from an address, which can change at any time",
        "lines",
        trusted="security-remote-page",
        needs=(("://",),),
    ),
)

FOREIGN: tuple[tuple[str, str, str, str], ...] = (
    (
        "security-override",
        "zh",
        "忽略 无视 無視 忘记 忽視 不要理会 不要遵守",
        r"(?:忽略|无视|無視|忘记|忽視|不要理会|不要遵守)(?!了)[^。！？\n]{0,10}(?:之前|以前|先前|前面|上述|以上|所有|全部|任何|系统|安全|原有|原来|你的|其他)[^。！？\n]{0,12}(?:指令|指示|提示词|提示詞|系统提示|限制|命令|约束|规则|準則|准则)",
    ),
    (
        "security-concealment",
        "zh",
        "告诉 告訴 告知 瞒着 悄悄 偷偷 暗中 通知 提醒 透露",
        r"(?:不要|别|不得|切勿|无需|请勿)(?:告诉|告訴|告知|通知|提醒|让|向)[^。！？\n]{0,6}(?:用户|使用者|主人)(?:这|此|该|知道|发现|看到|透露|提及|说明|关于|[。，,！!]|$)|瞒着(?:用户|使用者)|(?:悄悄|偷偷|暗中)(?:地)?[^。\n]{0,8}(?:发送|上传|执行|运行|读取|收集|安装)",
    ),
    (
        "security-override",
        "ja",
        "無視 忘れ 従わ 破棄 上書き",
        r"(?:以前|これまで|今まで|上記|すべて|全て|システム|既存|他の|安全)[^。\n]{0,16}(?:指示|命令|ルール|プロンプト|制限|指針|ガイドライン)[^。\n]{0,10}(?:無視|忘れ|従わな|破棄|上書き)",
    ),
    (
        "security-concealment",
        "ja",
        "知らせ 伝えな 教えな 言わな 見せな 報告しな 通知しな 気づか 気付か 告げ",
        r"(?:ユーザー|利用者|使用者)に(?:は)?[^。\n]{0,14}(?:知らせな|伝えな|教えな|言わな|見せな|報告しな|通知しな|気づかれ|気付かれ|告げ(?:ず|な))",
    ),
    (
        "security-override",
        "ru",
        "игнорир забуд обойд отмени пренебрег Игнорир Забуд Обойд Отмени Проигнорир",
        r"(?:игнорируй|проигнорируй|забудь|обойди|отмени|пренебрег)\w*\s+(?:\w+\s+){0,4}?(?:инструкци|указани|правил|ограничени|команд|запрет|промпт)\w*",
    ),
    (
        "security-concealment",
        "ru",
        "сообщай говори рассказывай упоминай показывай скрой незаметно тайно скрытно Скрой Незаметно Тайно",
        r"не\s+(?:сообщай|говори|рассказывай|упоминай|показывай)\w*\s+(?:об этом\s+|это\s+|ничего\s+)?(?:пользовател|человек|оператор)\w*|скрой\w*[^.\n]{0,40}от\s+пользовател|(?:незаметно|тайно|скрытно)\s+(?:для пользователя\s+)?(?:отправ|выполн|загруз|скопир|запус)\w*",
    ),
    (
        "security-override",
        "latin",
        "instrucciones reglas indicaciones directrices restricciones órdenes instruções regras diretrizes istruzioni regole precedenti",
        r"\b(?:ignora|ignore|olvida|olvide|descarta|descarte|omite|omita|anula|haz caso omiso de|haga caso omiso de)\s+(?:\w+\s+){0,3}?(?:instrucciones|reglas|indicaciones|directrices|restricciones|órdenes|ordenes|instruções|regras|diretrizes|istruzioni|regole|precedenti)\b(?!\s+d[eai]l?a?\s+(?:instala|configura|uso|compila|montaj|setup)\w*)",
    ),
    (
        "security-concealment",
        "latin",
        "usuario usuário utente utilisateur",
        r"\bno\s+(?:le\s+)?(?:digas|informes|menciones|avises|notifiques|muestres|reveles)\b[^.\n]{0,40}\b(?:al|a la|el)\s+usuari[oa]|sin que (?:el|la) usuari[oa] (?:lo )?(?:sepa|note|se entere)|\bnão (?:diga|informe|mencione|avise|conte)\b[^.\n]{0,30}\busuário|\bne (?:dis|dites|mentionne|mentionnez|préviens|informe|informez|signale)[^.\n]{0,40}\b(?:à l'|l')utilisateur|\bnon (?:dire|informare|menzionare|avvisare)\b[^.\n]{0,30}\butente|à l'insu de l'utilisateur",
    ),
    (
        "security-override",
        "latin",
        "anweisung vorgaben instruktion richtlinien einschränkung regeln systemprompt",
        r"\b(?:ignorier\w*|vergiss|vergesse|missacht\w*|umgeh\w*|setze? dich \w+ hinweg)\s+(?:\w+\s+){0,4}?(?:anweisung\w*|regeln|vorgaben|instruktion\w*|richtlinien|einschränkung\w*|sicherheits\w+|systemprompt\w*)",
    ),
    (
        "security-concealment",
        "latin",
        "benutzer nutzer anwender heimlich",
        r"\b(?:nicht|niemals|ohne)\b[^.\n]{0,30}\b(?:dem|den|der|die)\s+(?:be)?nutzer\w*[^.\n]{0,30}\b(?:sagen|mitteilen|informieren|erwähnen|erzählen|melden|warnen|zeigen|verraten)|(?:sage|sag|teile|informiere|erzähle|verrate|erwähne|melde)\b[^.\n]{0,40}\b(?:be)?nutzer\w*\s+(?:\w+\s+){0,3}?(?:nicht|nichts)\b|ohne (?:dass (?:der|die) (?:be)?nutzer\w* |wissen (?:des|der) (?:be)?nutzer)|\bheimlich\s+(?:\w+\s+){0,3}?(?:send|lade|hochlad|ausführ|kopier|übertrag)",
    ),
    (
        "security-override",
        "latin",
        "consignes règles précédentes antérieures",
        r"\b(?:ignore|ignorez|oublie|oubliez|contourne|contournez)\s+(?:\w+\s+){0,3}?(?:instructions?|consignes|règles|directives)\s+(?:précédentes?|antérieures?|système|de sécurité|ci-dessus)",
    ),
    (
        "security-override",
        "ko",
        "무시 잊",
        r"(?:이전|위의|모든|기존|시스템)[^.\n]{0,14}(?:지시|명령|규칙|지침|프롬프트|제한)[^.\n]{0,10}(?:무시|잊)",
    ),
    (
        "security-concealment",
        "ko",
        "알리지 말하지 언급하지 보여주지",
        r"사용자에게[^.\n]{0,14}(?:알리지|말하지|언급하지|보여주지)",
    ),
)
"""The same in other languages: rule, language, words of which one must occur, pattern. They are matched against unfolded text."""


@cache
def pattern_of(source: str) -> Pattern[str]:
    """Return the compiled pattern; compiled when needed, since few files need any."""
    return compile_pattern(source)


TOKENS = bytes(ord(chr(c).lower()) if c < 128 and chr(c).isalnum() else 32 for c in range(256))
"""The table that makes the tokens of a text: letters and digits in lower case, blanks instead of everything else."""


class Sought(NamedTuple):
    """A signal as it is sought: with what must be near as bytes."""

    signal: Signal
    number: int
    needs: tuple[tuple[bytes, ...], ...]
    near: Pattern[bytes] | None


class SoughtWord(NamedTuple):
    """A word or phrase of signals: its bytes, all its tokens, and the signals."""

    word: bytes
    tokens: frozenset[bytes]
    sought: tuple[Sought, ...]


@cache
def words_by_token() -> Mapping[bytes, tuple[SoughtWord, ...]]:
    """Return for each token the words that it is the longest of.

    A text without one of its tokens does not have a word, and sets of tokens are compared faster than texts.
    """
    signals: dict[bytes, list[Sought]] = {}
    for number, signal in enumerate(SIGNALS):
        needs = tuple(tuple(word.encode() for word in group) for group in signal.needs)
        for word in signal.words:
            near = compile_pattern(signal.near.encode()) if signal.near else None
            signals.setdefault(word.encode(), []).append(Sought(signal, number, needs, near))
    found: dict[bytes, list[SoughtWord]] = {}
    for sought, ones in signals.items():
        tokens = frozenset(sought.translate(TOKENS).split())
        found.setdefault(max(sorted(tokens), key=len, default=b""), []).append(SoughtWord(sought, tokens, tuple(ones)))
    return {token: tuple(words) for token, words in found.items()}
