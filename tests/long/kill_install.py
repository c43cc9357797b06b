"""Kill changes of installed skills: at every rename, fsync and write by strace, and at random moments.

`python tests/long/kill_install.py [--random N] [--no-strace]` prints one line for each operation and scope; it fails at
the first state that is neither that before nor that after.
"""

import argparse
import random
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.install_kills import CALLS, SCOPES, STEPS, Kills


def at_every(kills: Kills, call: str) -> int:
    """Kill a run at each system call of a name, until one run comes to its end; return how many there are."""
    number, survived = 0, kills.count["survived"]
    while kills.count["survived"] == survived:
        number += 1
        kills.run(partial(kills.by_strace, call=call, number=number))
    return number - 1


def main() -> None:
    """Run all kills and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=time.time_ns())
    parser.add_argument("--no-strace", action="store_true")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    print(f"seed {options.seed}", flush=True)
    pairs = [(kind, what) for kind in SCOPES for what in STEPS]
    for kind, what in pairs:
        with tempfile.TemporaryDirectory() as folder:
            kills = Kills(Path(folder), kind, what)
            for _ in range(-(-options.random // len(pairs))):
                kills.run(partial(kills.at_random, seconds=chance.uniform(0, 1.1 * kills.seconds)))
            print(f"random {kind} {what}: {kills.count}", flush=True)
    for kind, what in [] if options.no_strace else pairs:
        with tempfile.TemporaryDirectory() as folder:
            kills = Kills(Path(folder), kind, what)
            calls = {call: at_every(kills, call) for call in CALLS}
            print(f"strace {kind} {what}: {calls}, {kills.count}", flush=True)


if __name__ == "__main__":
    main()
