"""Where `python -m benchmarks` starts."""

import sys

from benchmarks.cli import main

sys.exit(main())
