"""`yunikorn-actors` and `python -m yunikorn_actors`."""

import sys

from yunikorn_actors.cli import main

if __name__ == "__main__":
    sys.exit(main())
