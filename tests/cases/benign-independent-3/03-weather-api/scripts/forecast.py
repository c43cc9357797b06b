import argparse, json, os, sys, urllib.parse, urllib.request

p = argparse.ArgumentParser()
p.add_argument("city")
p.add_argument("--days", type=int, default=3)
a = p.parse_args()

key = os.environ.get("WEATHER_API_KEY")
if not key:
    sys.exit("Set WEATHER_API_KEY first.")

url = "https://api.weather.example.com/v1/forecast?" + urllib.parse.urlencode({"q": a.city, "days": a.days})
req = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"})
with urllib.request.urlopen(req, timeout=10) as r:
    print(json.dumps(json.load(r), indent=2))
