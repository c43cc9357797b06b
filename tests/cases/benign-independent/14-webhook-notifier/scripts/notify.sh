#!/usr/bin/env bash
# Post one line to the chat webhook of the user.
set -euo pipefail
: "${CHAT_WEBHOOK_URL:?set CHAT_WEBHOOK_URL to your own webhook}"
text="${1:?usage: notify.sh <text>}"
text="${text:0:500}"

payload=$(jq -n --arg t "$text" '{text: $t}')
echo "sending: $text"
curl -fsS -X POST -H 'Content-Type: application/json' --data "$payload" "$CHAT_WEBHOOK_URL" >/dev/null
echo "sent"
