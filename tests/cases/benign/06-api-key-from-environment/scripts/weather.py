#!/usr/bin/env python3
import os
import sys
import urllib.request

key = os.environ["WEATHER_API_KEY"]
request = urllib.request.Request(f"https://api.weather.example.com/v1/{sys.argv[1]}", headers={"X-Api-Key": key})
print(urllib.request.urlopen(request).read().decode())
