"""Lets every test import `support`, which stands beside this file."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
