"""Lets every test import the modules in `helpers` and the commands beside this file, and more."""

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from yunikorn_actors.drivers.live.actors import Actor
from yunikorn_actors.messages.base import Envelope
from yunikorn_actors.runtime.scheduler_core import Inside

# What serves by HTTP reads all certificates of the computer when it is imported, in each process
# anew, which is a fifth of its start. No test has a peer outside of this computer.
os.environ["SSL_CERT_FILE"] = os.devnull

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "helpers")]
SLOW_S = 6_000

# The same examples each time, however long they take: no test depends on the computer.
settings.register_profile(
    "tests",
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("release", parent=settings.get_profile("tests"), max_examples=1_000)
settings.load_profile("tests")
# Hypothesis draws what stands as a constant in the modules that are loaded as well. It would read all of
# them in each worker, and which those are depends on the tests that a worker was given before.
providers._get_local_constants = lambda: providers._local_constants
# What the tests make while they are found stays to the end: see `pytest_collection_finish`.
gc.disable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are processors: while tests wait for clocks, others may work."""
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let each worker begin at another place: the first time each then compiles a part, and not all."""
    report = yield
    _, _, number = os.environ.get("PYTEST_XDIST_WORKER", "").partition("gw")
    if number and isinstance(collector, pytest.Directory):
        workers = int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        middle = len(report.result) * int(number) // workers
        report.result = report.result[middle:] + report.result[:middle]
    return report


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Wherever a worker began, all have the same order. A slow range may take its time."""
    items.sort(key=lambda item: item.path)
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_S))


def pytest_collection_finish() -> None:
    """Ten thousand tests and their modules stay to the end: the collector need not walk them."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, *gc.get_threshold()[1:])


@pytest.fixture(autouse=True, scope="session")
def _collected_stays_frozen() -> Iterator[None]:
    """A test that thaws it makes each full collection after it walk half a million objects."""
    yield
    assert gc.get_freeze_count() > 0, "a test called gc.unfreeze(): let it freeze all again"


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell may have started the tests deaf to ctrl-C, which would be inherited."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _no_machine_fails(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """A core on threads goes on where a machine was replaced: no test may overlook that.

    A module that has machines fail says so: `MACHINES_FAIL = True`.
    """
    survived: list[str] = []
    survive = Inside.survive

    def note(inside: Inside, actor: Actor, envelope: Envelope, error: Exception) -> None:
        survived.append(f"{actor.address}: {error!r}")
        survive(inside, actor, envelope, error)

    monkeypatch.setattr(Inside, "survive", note)
    yield
    if not getattr(request.module, "MACHINES_FAIL", False):
        assert [] == survived
