"""Addresses as data: the files of a skill under their honest addresses, and every way to ask for something else."""

from __future__ import annotations

import base64
import os
import sys
from pathlib import Path

from skillshelf import LimitExceeded, PathEscape, ResourceNotFound, SkillError, SkillNotFound
from support.trees import Machine, write_skill

TOKEN = "token-that-must-stay-outside"
SECRET = "secret-name-that-must-stay-outside.md"

FILES: dict[str, str | bytes] = {
    "references/style.md": "# Style\n",
    "references/deep/er/still.md": "deep\n",
    "..notes.md": "not a way up\n",
    "references/..notes.md": "nor here\n",
    "...": "three dots\n",
    ".hidden/.config": "hidden\n",
    "a;b.md": "semicolon\n",
    "a+b.md": "plus\n",
    "a&b=c.md": "ampersand\n",
    "a,b!c.md": "comma\n",
    "a:b@c.md": "colon\n",
    "~tilde.md": "tilde\n",
    "$HOME.md": "dollar\n",
    "-dash.md": "dash\n",
    "*.md": "star\n",
    "[x](y).md": "brackets\n",
    "a|b<c>.md": "pipe\n",
    'it\'s "quoted".md': "quotes\n",
    "a?b#c.md": "query\n",
    "100%.md": "percent\n",
    "%41.md": "encoded once more\n",
    "with two  blanks.md": "blanks\n",
    " lead and trail ": "outer blanks\n",
    "café.md": "composed\n",
    "日本語/ファイル.md": "こんにちは\n",
    "receipt-🧾.md": "emoji\n",
    "no-extension": "plain\n",
    "UPPER.MD": "upper\n",
    "empty.txt": b"",
    "crlf.txt": b"one\r\ntwo\r\n",
    "bom.txt": b"\xef\xbb\xbfbom\n",
    "image.png": b"\x89PNG\r\n\x1a\n\x00\xff",
    "nul.bin": b"a\x00b",
    "latin.txt": "caf\u00e9".encode("latin-1"),
    "not-%FF.txt": "a name that looks like the next\n",
}
if sys.platform == "linux":
    FILES |= {"not-\udcff.txt": "a name that is not UTF-8\n", "\udced\udcb3\udcbf/\udcc0\udcaf": "nor are these\n"}
"""Files of the skill `deploy`: each is served under its own address, byte for byte."""


def lay_out(base: Path) -> Machine:
    """The skill `deploy` with its files, links out of it, and secrets at every place a link or `..` could reach."""
    machine = Machine(base)
    root = machine.home / ".agents" / "skills"
    skill = write_skill(root, "deploy").parent
    for name, content in FILES.items():
        (skill / name).parent.mkdir(parents=True, exist_ok=True)
        (skill / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    write_skill(root, "other")
    # A sibling whose path begins like the skill's own.
    for folder in (base / "outside", root, root / "deploy-evil", root / "other", machine.home, base):
        folder.mkdir(exist_ok=True)
        (folder / SECRET).write_text(TOKEN)
    links: dict[str, str | Path] = {
        "link-file": base / "outside" / SECRET,
        "link-relative": f"../{SECRET}",
        "link-folder": base / "outside",
        "link-up": "..",
        "link-chain": "link-file",
        "link-lost": "nowhere",
        "link-self": "link-self",
        "link-root": "/",
        "link-inside": "references/style.md",
        "references/link-deep": f"../../{SECRET}",
    }
    for name, target in links.items():
        (skill / name).symlink_to(target)
    os.mkfifo(skill / "pipe")
    return machine


def bytes_of(content: str, encoding: str) -> bytes:
    """The bytes that a resource stands for."""
    return base64.b64decode(content) if encoding == "base64" else content.encode()


# What is refused, and how --------------------------------------------------------------------------

ESCAPE, MISSING, NO_SKILL, LIMIT = PathEscape, ResourceNotFound, SkillNotFound, LimitExceeded
CODES = {ESCAPE: "invalid_params", MISSING: "not_found", NO_SKILL: "not_found", LIMIT: "too_large"}
STATUS = {ESCAPE: 2, MISSING: 3, NO_SKILL: 3}

UP = [
    "..",
    "../",
    f"../{SECRET}",
    f"../other/{SECRET}",
    f"../deploy-evil/{SECRET}",
    f"../deploy/../{SECRET}",
    f"references/../../{SECRET}",
    f"references/../..//{SECRET}",
    "references/..",
    "references/../references/style.md",
    f"a/b/c/../../../../{SECRET}",
    f"./../{SECRET}",
    f".././{SECRET}",
    f"%2e%2e/{SECRET}",
    f"%2E%2E/{SECRET}",
    f"%2e./{SECRET}",
    f".%2E/{SECRET}",
    f"..%2f{SECRET}",
    f"..%2F{SECRET}",
    f"%2e%2e%2f{SECRET}",
    f"%2E%2E%2Fother%2F{SECRET}",
    f"references%2f..%2f..%2f{SECRET}",
    f"references/..%2f..%2f{SECRET}",
    f"..%5c{SECRET}",
    f"..%5C{SECRET}",
    f"%2e%2e%5c{SECRET}",
    f"references%5c..%5c..%5c{SECRET}",
    f"..\\{SECRET}",
    f"references\\..\\..\\{SECRET}",
    f"..\\/{SECRET}",
    f"../../../../../../../../{SECRET}",
    "../../../../../../../../etc/passwd",
]
ABSOLUTE = [
    "/",
    "//",
    "/etc/passwd",
    "//etc/passwd",
    "%2Fetc/passwd",
    "%2fetc%2fpasswd",
    "%2F%2Fetc/passwd",
    "{base}/outside/" + SECRET,
    "/{base}/outside/" + SECRET,
    "%2F{base}/outside/" + SECRET,
    "\\etc\\passwd",
    "%5Cetc%5Cpasswd",
    "C:\\Windows\\win.ini",
    "C:%5CWindows%5Cwin.ini",
    "%5C%5Cserver%5Cshare",
]
SEGMENTS = [
    ".",
    "./references/style.md",
    "references/./style.md",
    "%2e/references/style.md",
    "references/%2E/style.md",
    "references//style.md",
    "references/style.md/",
    "references/style.md//",
    "SKILL.md/",
    "link-inside/",
    "references%2Fstyle.md",
    "references%2fstyle.md",
    "references%5Cstyle.md",
    "references\\style.md",
]
CONTROLS = [
    "references/style.md\0",
    "references/style.md%00",
    "references/style.md%00.png",
    f"%00/../{SECRET}",
    f"..%00/{SECRET}",
    "references/style.md\n",
    "references/style.md%0a",
    "references/style.md%0D%0A",
    "references/style.md\r",
    "references/style.md\t",
    "references/%09style.md",
    "references/%1b[31mstyle.md",
    "references/\x1b]52;c;x\x07",
    "references/%7F",
    "references/\x7f",
    "references/%C2%85",
    "references/\x85",
    "references/%C2%9B31m",
]
ENCODING = [
    "100%",
    "100%.md",
    "%",
    "%2",
    "%zz",
    "%u002e%u002e",
    "%-1",
    "%+2e",
    "% 2e",
    "\ud800",
    "\udcff\udcfe",
]
QUERIES = [
    "references/style.md?",
    f"references/style.md?x=../{SECRET}",
    "references/style.md#",
    f"references/style.md#/../{SECRET}",
    "?",
    "#",
    f"?../{SECRET}",
]
LINKS = [
    "link-file",
    "link-relative",
    "link-folder",
    "link-folder/",
    f"link-folder/{SECRET}",
    "link-up",
    f"link-up/{SECRET}",
    f"link-up/other/{SECRET}",
    "link-chain",
    "link-lost",
    "link-self",
    "link-self/x",
    "link-root/etc/passwd",
    "references/link-deep",
    "%6Cink-file",
    "pipe",
]
ABSENT = [
    f"%c0%ae%c0%ae/{SECRET}",
    f"%e0%80%ae%e0%80%ae/{SECRET}",
    f"..%c0%af{SECRET}",
    f"..%c1%9c{SECRET}",
    f"%f8%80%80%80%ae/{SECRET}",
    "%ff",
    "%ed%a0%80",
    "caf%E9.md",
    SECRET,
    "style.md",
    "references/STYLE.MD",
    "References/style.md",
    "references/style",
    "references/style.md.",
    "references/style.md%20",
    "references/style.md/SKILL.md",
    "references/style.md::$DATA",
    f"%252e%252e/{SECRET}",
    f"%252e%252e%252f{SECRET}",
    f"%25252e%25252e/{SECRET}",
    f"..;/{SECRET}",
    f"..../{SECRET}",
    f"․․/{SECRET}",
    f"．．/{SECRET}",
    f"。。/{SECRET}",
    f"..／{SECRET}",
    f"..∕{SECRET}",
    f"..\u200b/{SECRET}",
    f"%E2%80%AE../{SECRET}",
    "~/" + SECRET,
    "$PWD/" + SECRET,
    "${HOME}/" + SECRET,
    "*",
    "references/*.md",
    "pipe/x",
    "file:/etc/passwd",
    "http:/example.com",
]
WHOLE: dict[str, type[SkillError]] = {
    "": ESCAPE,
    "skill": ESCAPE,
    "skill:": ESCAPE,
    "skill:/": ESCAPE,
    "skill://": ESCAPE,
    "skill:///": ESCAPE,
    "skill:///etc/passwd": ESCAPE,
    "skill:deploy": ESCAPE,
    "skill:/deploy/references/style.md": ESCAPE,
    "SKILL://deploy": ESCAPE,
    " skill://deploy": ESCAPE,
    "skills://deploy": ESCAPE,
    "file:///etc/passwd": ESCAPE,
    "file://deploy/references/style.md": ESCAPE,
    "http://deploy/references/style.md": ESCAPE,
    "/etc/passwd": ESCAPE,
    "deploy/references/style.md": ESCAPE,
    "skill:\\\\deploy": ESCAPE,
    "skill://deploy?x": ESCAPE,
    "skill://deploy#x": ESCAPE,
    "skill://deploy\0": ESCAPE,
    "skill://deploy%ff": ESCAPE,
    "skill://..": NO_SKILL,
    f"skill://../{SECRET}": NO_SKILL,
    f"skill://%2e%2e/{SECRET}": NO_SKILL,
    f"skill://./{SECRET}": NO_SKILL,
    f"skill://..%2fother/{SECRET}": NO_SKILL,
    f"skill://deploy%2F..%2Fother/{SECRET}": NO_SKILL,
    f"skill://deploy%2F/{SECRET}": NO_SKILL,
    f"skill://deploy%00/{SECRET}": NO_SKILL,
    f"skill://deploy-evil/{SECRET}": NO_SKILL,
    "skill://deplo": NO_SKILL,
    "skill://deploy.": NO_SKILL,
    "skill://deploy:80/references/style.md": NO_SKILL,
    "skill://user@deploy/references/style.md": NO_SKILL,
    "skill://[::1]/etc/passwd": NO_SKILL,
    "skill://*": NO_SKILL,
    "skill://%2Fetc/passwd": NO_SKILL,
    "skill://{base}/outside": ESCAPE,
    "skill://deploy/" + "a" * 4096: LIMIT,
    "skill://deploy/" + "../" * 4096: LIMIT,
    "skill://deploy/" + "%2e%2e%2f" * 1000: LIMIT,
    "skill://deploy/" + "a/" * 40: LIMIT,
    "skill://deploy/" + "a" * 256: ESCAPE,
    "skill://deploy/" + "é" * 128: ESCAPE,
    "a" * 1_000_000: LIMIT,
}
ATTACKS: dict[str, type[SkillError]] = {
    **dict.fromkeys((f"skill://deploy/{tail}" for tail in (*UP, *ABSOLUTE, *SEGMENTS, *CONTROLS)), ESCAPE),
    **dict.fromkeys((f"skill://deploy/{tail}" for tail in (*ENCODING, *QUERIES, *LINKS)), ESCAPE),
    **dict.fromkeys((f"skill://deploy/{tail}" for tail in ABSENT), MISSING),
    **WHOLE,
}
