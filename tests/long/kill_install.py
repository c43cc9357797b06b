"""Kill changes of installed skills: at every rename, fsync and write by strace, and at random moments.

`python tests/long/kill_install.py [--random N] [--no-strace]` prints one line for each operation and scope; it fails at
the first state that is neither that before nor that after.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.install_kills import SCOPES, STEPS, Kills  # noqa: E402  # the folder of tests is put on the path first


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
                moment = chance.uniform(0, 1.1 * kills.seconds)
                kills.run(lambda place, moment=moment: kills.at_random(place, moment))
            print(f"random {kind} {what}: {kills.count}", flush=True)
    for kind, what in [] if options.no_strace else pairs:
        with tempfile.TemporaryDirectory() as folder:
            kills = Kills(Path(folder), kind, what)
            call = 1
            while not kills.count["survived"]:
                kills.run(lambda place, call=call: kills.by_strace(place, call))
                call += 1
            print(f"strace {kind} {what}: {call - 2} calls, {kills.count}", flush=True)


if __name__ == "__main__":
    main()
