"""How long a thread keeps the interpreter while others want it: for a process of the service.

A message passes through several threads, and each of them waits for one that computes for as long
as that one may keep the interpreter. With Python's 5 ms and one caller that reads a configuration
of 10,000 queues, a small allocation of another caller takes more than 100 ms.

A library must not do this to the program that embeds it, whose interpreter it is.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

TURN_S: Final = 0.0005


@contextmanager
def short_turns() -> Iterator[None]:
    usual_s = sys.getswitchinterval()
    sys.setswitchinterval(TURN_S)
    try:
        yield
    finally:
        sys.setswitchinterval(usual_s)
