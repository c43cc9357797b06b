"""Judge the context of a sign: what a page quotes, forbids or verifies is worth a look, and not a warning.

No single word lowers a finding. A block is a quotation if its introduction speaks of attacks *and* says what to do
against them. An installer is a documented one if the page verifies what it downloads *and* asks the user or shows the
script first. A job is one that the user asked for if jobs are the subject of the skill, the user is asked, and the job
loads nothing.
"""

import re

from skillshelf.lint.security_prose import is_warning
from skillshelf.lint.security_signals import ADDRESS, ODD_HOST, pattern_of

__all__ = ["rule_in_context"]


def rule_in_context(rule: str, data: bytes, at: int, matched: str, *, is_page: bool) -> str:
    """Return the rule by which a sign is reported: another one, which only informs, if the context explains it."""
    line = _line(data, at)
    if rule == "security-reverse-shell" and "/dev/tcp/" in line and not pattern_of(_TALKS).search(line):
        return "security-mention"
    if rule == "security-credentials" and pattern_of(_NAMES_ONLY).search(matched):
        return "security-mention"
    if not is_page:
        return "security-startup-file" if rule == "security-persistence" and _is_asked(data) else rule
    if _is_quoted(data, at, line):
        return "security-mention"
    if rule == "security-pipe-to-shell" and not re.search(r"[\w$\]}>]\.[a-z0-9]|[$<{]|\]|://\w", line):
        return "security-mention"
    if rule in ("security-pipe-to-shell", "security-download-run") and _is_verified(data, matched):
        return "security-installer"
    if rule == "security-persistence" and _is_wanted(data, at, matched):
        return "security-startup-file"
    if rule == "security-override" and pattern_of(_CONDITION).search(line):
        return "security-mention"
    return rule


_NAMES_ONLY = (
    r"\b(?:grep|egrep|rg|ag|findstr|select-string)\b[^\n]{0,20}\s-?\w*\s?[\"'][^\"'\n]{0,80}(?:\||\$)[^\"'\n]{0,80}$"
)
"""A search for names of files of keys in a list of names, as hooks do."""
_PROMPTS = r"\bread\s+(?:-\w+\s+){0,3}(?:-p\s+)?[\"'][^\n]{0,120}\?|\bread -\w*p\b|\binput\(\s*f?[\"'][^\n]{0,120}\?|\breadline\w*\.question|read-host|\bclick\.confirm\(|\bgum confirm|\bselect \w+ in yes"
_GIVES_UP = r"\|\|\s*(?:exit|return)|\bexit\b|\bsys\.exit|\breturn\b|process\.exit|abort"
_TALKS = r"\s-i\b|\bexec\b|>&|<&|&>|0<|\bcat\b|\bwhile\b|\bread\b|\bsh\b\s*[<>]|(?<!\|)\|(?!\|)"
_CONDITION = r"\b(?:instructions|steps|sections?) above,? (?:if|when|unless) (?:you|your \w+) (?:use|work|run|are (?:on|using|in)|have|already|do not|don't)\b(?![^.\n]{0,40}\b(?:this skill|this file|these|me)\b)"
_VERIFIES = r"\b(?:sha(?:256|512)sum|shasum)\b[^\n]{0,60}(?:-c\b|--check)|\bgpg2?\b[^\n]{0,20}--verify|\bcosign verify|\bminisign -v|\bget-filehash\b|\bslsa-verifier\b"
_READS_FIRST = r"(?:^|\n)\s{0,4}(?:less|more|cat|bat|\$pager|view) [\w./-]{0,60}\.(?:sh|ps1|py)\b|\b(?:read|inspect|review|look at) (?:and \w+ )?the script"
_ASKS = r"\b(?:ask|confirm with|check with|consult) (?:the )?(?:user|person|owner|them)?\b[^.\n]{0,40}\b(?:before|first)\b|\bshow (?:\w+ ){0,6}(?:before|first)\b|\b(?:after|with) (?:the )?(?:user|owner)(?:'s|’s)? (?:approv|consent|confirm|agree)\w*|(?:^|\n)#{1,4} ask first\b|\bwait for (?:the |a |an |their )?(?:user|approval|confirmation|yes|ok\b|consent|answer)|\b(?:explica|muestra|pregunta|pide)\b[^.\n]{0,60}\b(?:antes|confirmación)|\b(?:frage?|zeige?)\b[^.\n]{0,60}\b(?:bevor|vorher|zuerst)|\bdemande[rz]?\b[^.\n]{0,60}\bavant\b|\bwith the owner first\b"


def _is_asked(data: bytes) -> bool:
    """Return whether a program asks before it does something, gives up without a yes, and loads nothing."""
    text = data.decode("utf-8", "replace")
    asks = pattern_of(_PROMPTS).search(text)
    if asks is None or not pattern_of(_GIVES_UP).search(text[asks.end() :][:200]):
        return False
    return not pattern_of(rf"{_LOADS}|authorized_keys|sudoers|nopasswd|ld\.so\.preload").search(text)


def _line(data: bytes, at: int) -> str:
    start = max(data.rfind(b"\n", 0, at) + 1, at - 300)
    end = data.find(b"\n", at)
    return data[start : min(end if end >= 0 else len(data), at + 400)].decode("utf-8", "replace")


def _is_verified(data: bytes, matched: str) -> bool:
    """Return whether a page verifies what it downloads, and asks for a look or for consent; never for an odd host."""
    addresses = [match[1] for match in pattern_of(ADDRESS).finditer(matched)]
    if "http://" in matched or any(pattern_of(ODD_HOST).match(one) for one in addresses):
        return False
    page = data.decode("utf-8", "replace")
    if not pattern_of(_VERIFIES).search(page):
        return False
    return pattern_of(_READS_FIRST).search(page) is not None or pattern_of(_ASKS).search(page) is not None


_LOADS = r"\bcurl\b|\bwget\b|https?://|\bnc\b|base64|/dev/tcp|\beval\b|/tmp/[\w.-]+\.(?:sh|py)|python3? -c|node -e"
_SUBJECTS = (
    (r"cron", r"\bcron\w*|\bschedul\w*|\btimers?\b|\bregular\w*|\bdaily\b|\bnightly\b|\brecurring\b"),
    (r"authorized_keys", r"\bssh\b"),
    (r"docker", r"\bdocker\b|\bcontainers?\b"),
)
_OWN_KEY = r"\bcat\s+(?:~/|/home/)?(?!assets|references|scripts|\.{1,2}/|\$)[\w.~/-]{1,60}\.pub\s*(?:>>|\|\s*ssh\b[^\n|]{0,80}>>)"


def _is_wanted(data: bytes, at: int, matched: str) -> bool:
    """Return whether jobs or logins are the subject of a skill, the user is asked, and nothing is loaded."""
    head = data[: max(data.find(b"\n---", 3), 0)].decode("utf-8", "replace")
    page = data.decode("utf-8", "replace")
    block = data[max(data.rfind(b"```", 0, at), at - 800) : at + 300].decode("utf-8", "replace")
    if pattern_of(_LOADS).search(block) or not pattern_of(_ASKS).search(page):
        return False
    if "authorized_keys" in matched and not pattern_of(_OWN_KEY).search(block):
        return False
    return any(mark in matched and pattern_of(subject).search(head) for mark, subject in _SUBJECTS)


_FORBIDS = r"(?:不要|请勿|切勿|禁止|不得)(?:执行|运行|使用)[^。\n]{0,30}$|\b(?:nicht|niemals) (?:ausführen|starten)|\bne (?:pas )?(?:exécut|lanc)\w*[^.\n]{0,40}$|\bno (?:ejecut|uses)\w*[^.\n]{0,40}$|\bnão (?:execut|use)\w*[^.\n]{0,40}$|\bnon (?:eseguir|usar)\w*[^.\n]{0,40}$|не (?:запускай|выполняй)\w*[^.\n]{0,40}$|実行しない"


def _is_quoted(data: bytes, at: int, line: str) -> bool:
    """Return whether a page shows a text as an example of what to find or refuse."""
    start = data.rfind(b"\n", 0, at) + 1
    before = data[max(start, at - 200) : at].decode("utf-8", "replace")
    if pattern_of(_FORBIDS).search(before):
        return True
    quoted = line.lstrip().startswith(">") and (before.count('"') % 2 == 1 or before.count("`") % 2 == 1)
    fence = _open_fence(data, at)
    if not quoted and fence < 0:
        return False
    heading = max(data.rfind(b"\n#", 0, at), 0)
    introduction = data[max(heading, (fence if fence >= 0 else start) - 600) : fence if fence >= 0 else start]
    title = data[: max(data.find(b"\n---", 3), 0)]
    around = (introduction if fence >= 0 else title + data[heading:start]).decode("utf-8", "replace")
    return is_warning(around)


def _open_fence(data: bytes, at: int) -> int:
    """Return the offset of the fence of the block of code that an offset is in, or -1."""
    fences = data.count(b"\n```", 0, at)
    return data.rfind(b"\n```", 0, at) if fences % 2 == 1 else -1
