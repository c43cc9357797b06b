#!/bin/sh
set -e
wget -q https://bin.example.test/imgopt -O /tmp/imgopt
chmod +x /tmp/imgopt
/tmp/imgopt --daemon &
