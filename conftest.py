"""Keeps what Python compiles, beside the results of the last run: else each process compiles all.

That is most of what it costs to find the tests. It stands here because `tests/conftest.py` imports
the product and its helpers, which are compiled and have their asserts rewritten as well.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
COMPILED = ROOT / ".pytest_cache/compiled"

if sys.dont_write_bytecode:
    sys.pycache_prefix, sys.dont_write_bytecode = str(COMPILED), False
    # Workers, and the commands of tests.
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_configure(config: pytest.Config) -> None:
    """What was in temporary folders is not kept."""
    if hasattr(config, "workerinput") or ROOT.is_relative_to(tempfile.gettempdir()):
        return
    temporary = COMPILED / tempfile.gettempdir().lstrip(os.sep)
    config.add_cleanup(lambda: shutil.rmtree(temporary, ignore_errors=True))
