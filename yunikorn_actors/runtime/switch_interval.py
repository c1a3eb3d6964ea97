"""How long a thread keeps the interpreter while other threads want it.

A message passes through several threads, and each of them waits for one that computes, for as long
as that one may keep the interpreter. With Python's 5 ms and one caller that reads a configuration
of 10,000 queues, a small allocation of another caller takes more than 100 ms.

A library must not change this for the program that embeds it. So a process of the service does, and
a run of the laboratory that looks for races.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

TURN_S: Final = 0.0005
"""In a process of the service."""


@contextmanager
def short_turns(turn_s: float = TURN_S) -> Iterator[None]:
    usual_s = sys.getswitchinterval()
    sys.setswitchinterval(turn_s)
    try:
        yield
    finally:
        sys.setswitchinterval(usual_s)
