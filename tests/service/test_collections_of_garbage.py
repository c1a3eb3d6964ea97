"""The service's collections of garbage look at what is new, and forget nothing for ever."""

import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest

from yunikorn_actors.service.garbage_collection import BriefCollections


@pytest.fixture(autouse=True)
def _others_stay_frozen() -> Iterator[None]:
    """A thaw is of all: see `pytest_collection_finish`."""
    yield
    gc.freeze()


class Ring:
    def __init__(self) -> None:
        self.itself = self


def test_a_full_collection_passes_over_what_survived_one_until_that_has_doubled() -> None:
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


def test_where_nothing_was_frozen_nothing_is_in_the_end() -> None:
    gc.unfreeze()
    with BriefCollections(whole_from=100):
        gc.collect()
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


def test_a_core_leaves_the_collector_of_its_program_alone() -> None:
    program = (
        "import gc; before = gc.get_threshold(), list(gc.callbacks), gc.isenabled()\n"
        "from yunikorn_actors import SchedulerCore\n"
        "with SchedulerCore(): pass\n"
        "assert before == (gc.get_threshold(), gc.callbacks, gc.isenabled())\n"
        "assert gc.get_freeze_count() == 0\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
