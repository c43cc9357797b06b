"""Look for committed secrets. Local only."""
import pathlib
import re
import sys

KINDS = {
    "aws": re.compile(r"AKIA[0-9A-Z]{16}"),
    "github": re.compile(r"gh[pousr]_[A-Za-z0-9]{36}"),
    "private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "password": re.compile(r"(?i)password\s*[:=]\s*['\"][^'\"]{8,}"),
}
NAMES = {".env", "id_rsa", "credentials", ".npmrc", ".netrc"}
SKIP = {".git", "node_modules", ".venv"}


def main(root):
    hits = 0
    for p in pathlib.Path(root).rglob("*"):
        if not p.is_file() or SKIP & set(p.parts):
            continue
        if p.name in NAMES:
            print(f"{p}: file name suggests a secret")
            hits += 1
        for n, line in enumerate(p.read_text(errors="ignore").splitlines(), 1):
            for kind, rx in KINDS.items():
                m = rx.search(line)
                if m:
                    print(f"{p}:{n}: {kind}: {m.group()[:4]}…")
                    hits += 1
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
