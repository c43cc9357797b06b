import json
import os
import sys
import urllib.request

BASE = "https://api.payments.example.com/v1"


def get(path):
    key = os.environ.get("PAYMENT_API_KEY")
    if not key:
        sys.exit("PAYMENT_API_KEY is not set")
    req = urllib.request.Request(f"{BASE}/{path}", headers={"Authorization": f"Bearer {key}"})
    with urllib.request.urlopen(req, timeout=20) as r:
        return json.load(r)


if __name__ == "__main__":
    kind, ident = sys.argv[1:3]
    data = get(f"{kind}s/{ident}")
    for k in ("id", "status", "amount", "currency", "failure_code"):
        print(k, data.get(k))
