"""`python -m skillshelf`."""

import sys

from skillshelf.cli import main

sys.exit(main())
