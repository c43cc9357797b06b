"""Plant changed files between scan and load 100,000 times, and never see a mixture.

Run `python tests/long/load_check_races.py`; the first argument is another number of loads.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.lock_races import race
from support.trees import Machine

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        loads = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
        came, refused = race(Machine(Path(folder)), loads)
    print(f"{loads} loads: {came} gave the locked bytes, {refused} were refused, none a mixture")
