"""R-139: a resource manager that takes its messages late gets all of them, in their order."""

from support import APP, Lab, in_transit

from yunikorn_actors.drivers.simulator.choosers import Channel, Channels, Fifo
from yunikorn_actors.messages.base import is_callback

ASKS = 300


class CallbacksLast(Fifo):
    """Delivers to a callback only when there is nothing else to do."""

    def choose(self, channels: Channels) -> Channel:
        others = (channel for channel in channels if not is_callback(channel[1]))
        return next(others, next(iter(channels)))


def test_nothing_is_dropped_and_nothing_overtakes() -> None:
    lab = Lab()
    lab.simulator._chooser = CallbacksLast()
    lab.submit(APP)
    lab.nodes(n1=ASKS)
    for number in range(ASKS):
        lab.ask(f"k{number}")
        if number % 3 == 0:
            lab.release(f"k{number}")
        _work(lab)
    backlog = len(in_transit(lab.simulator))
    lab.settle()
    kept = [f"k{number}" for number in range(ASKS) if number % 3]
    assert sorted(kept) == lab.running()
    told = [key for key, _ in lab.rm.told("new")]
    assert len(told) == len(kept) + len(lab.rm.told("released"))
    assert kept == [key for key in told if key in lab.running()]
    assert backlog > ASKS / 2, "vacuous: the callback was never far behind"
    assert lab.leftovers() == {}


def _work(lab: Lab) -> None:
    """Let the core do all it can without the resource manager."""
    while any(not is_callback(to) for _, to in lab.simulator.channels):
        assert lab.simulator.step()
