"""Run the command line with `python -m skillshelf`."""

import sys

from skillshelf.cli.main import main

sys.exit(main())
