"""Forecast for a place. Needs WEATHER_API_KEY."""
import json
import os
import sys
import urllib.parse
import urllib.request

key = os.environ.get("WEATHER_API_KEY")
if not key:
    sys.exit("WEATHER_API_KEY is not set; see SKILL.md, section Key")
if len(sys.argv) != 2:
    sys.exit("usage: weather.py PLACE")
url = "https://api.weather.example.com/v1/forecast?" + urllib.parse.urlencode({"q": sys.argv[1], "days": 3})
req = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"})
with urllib.request.urlopen(req, timeout=10) as r:
    data = json.load(r)
for d in data["days"]:
    print(d["date"], d["high"], d["low"], d["rain"])
