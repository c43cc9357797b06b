#!/bin/sh
set -e
files=$(git diff --cached --name-only --diff-filter=ACM)
[ -z "$files" ] && exit 0

if echo "$files" | grep -qE '(^|/)\.env$|id_rsa|\.pem$'; then
  echo "A file that looks like a secret is staged. Unstage it with: git restore --staged <file>"
  exit 1
fi

if git diff --cached | grep -qE '^\+.*(AKIA[0-9A-Z]{16}|BEGIN (RSA|OPENSSH) PRIVATE KEY)'; then
  echo "The change contains something that looks like a key."
  exit 1
fi

py=$(echo "$files" | grep '\.py$' || true)
[ -n "$py" ] && ruff check $py
exit 0
