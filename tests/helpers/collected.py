"""What the collections of the service look at, in a process of its own: here they walk little.

In the process of the tests a thaw has the next
collections walk all that was made while the tests were found.
"""

import gc
import weakref

from yunikorn_actors.values.garbage import BriefCollections


class Ring:
    def __init__(self) -> None:
        self.itself = self


def until_doubled() -> None:
    """A full collection passes over what survived one, until that has doubled."""
    brief = BriefCollections(whole_from=100)
    gc.collect()
    gc.freeze()
    with brief:
        ring, many = Ring(), [[it] for it in range(50)]
        seen = weakref.ref(ring)
        gc.collect()
        assert not any(it is ring for it in gc.get_objects()), "it is not frozen"
        del ring
        gc.collect()
        assert seen() is not None, "vacuous: it was looked at"
        many += [[it] for it in range(100)]
        gc.collect()
        gc.collect()
        assert seen() is None, "what came to be garbage while it was frozen is never freed"
        fresh = Ring()
        seen = weakref.ref(fresh)
        del fresh
        gc.collect()
        assert seen() is None
    assert gc.get_freeze_count() > 0, "its process had frozen objects, and finds them so"


def as_it_was() -> None:
    """Where nothing was frozen, nothing is in the end."""
    with BriefCollections(whole_from=100):
        gc.collect()
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0
