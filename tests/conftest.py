"""Lets every test import the modules that stand beside this file, and interrupt what it starts."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell may have started the tests deaf to ctrl-C, which would be inherited."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
