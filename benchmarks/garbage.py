"""What was there before a measurement is not what the collector of garbage looks at meanwhile."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def frozen() -> Iterator[None]:
    """Freeze all that there is. What others had frozen before stays so: a thaw would be of all."""
    gc.collect()
    others = gc.get_freeze_count()
    gc.freeze()
    try:
        yield
    finally:
        if not others:
            gc.unfreeze()
