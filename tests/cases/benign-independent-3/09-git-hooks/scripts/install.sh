#!/usr/bin/env bash
set -euo pipefail
cd "$(git rev-parse --show-toplevel)"
mkdir -p .githooks
cat > .githooks/pre-commit <<'HOOK'
#!/bin/sh
files=$(git diff --cached --name-only --diff-filter=ACM)
[ -z "$files" ] && exit 0
if git diff --cached | grep -E '^\+.*(AKIA[0-9A-Z]{16}|BEGIN (RSA|OPENSSH) PRIVATE KEY)'; then
  echo "possible secret, commit stopped"; exit 1
fi
HOOK
chmod +x .githooks/pre-commit
git config core.hooksPath .githooks
echo "installed"
