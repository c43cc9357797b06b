#!/usr/bin/env bash
# Refuse commits that contain secrets.
set -u
bad=0
while IFS= read -r -d '' f; do
  case "$f" in
    .env|*.pem|*id_rsa*|*id_ed25519) echo "refused: $f"; bad=1 ;;
  esac
  if git show ":$f" | grep -qE 'BEGIN [A-Z ]*PRIVATE KEY|ghp_[A-Za-z0-9]{36}|AKIA[0-9A-Z]{16}'; then
    echo "refused: $f looks like it contains a secret"
    bad=1
  fi
done < <(git diff --cached --name-only --diff-filter=ACM -z)
exit "$bad"
