"""R-143: questions while a core is replaced by another. Each has its own door, and one truth."""

import threading
from queue import SimpleQueue

from probes import PATIENCE_S, add_nodes, register, wait_until
from support import Recorder

from yunikorn_actors import CoreStopped, SchedulerCore

ROUNDS = 5
ASKERS = 3


def _nodes_of(core: SchedulerCore) -> list[str]:
    return sorted(id_ for part in core.state_dump()["partitions"].values() for id_ in part["nodes"])


class Askers:
    """Threads that ask one core until it is stopped."""

    def __init__(self, core: SchedulerCore) -> None:
        self._core = core
        self.answers: SimpleQueue[list[str]] = SimpleQueue()
        self.stopped: SimpleQueue[bool] = SimpleQueue()
        self._threads = [threading.Thread(target=self._ask) for _ in range(ASKERS)]
        for thread in self._threads:
            thread.start()

    def _ask(self) -> None:
        try:
            while True:
                self.answers.put(_nodes_of(self._core))
        except CoreStopped:
            self.stopped.put(True)

    def join(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


def test_an_answer_is_of_the_core_that_was_asked() -> None:
    core = _core("n0")
    for number in range(1, ROUNDS + 1):
        askers = Askers(core)
        assert [f"n{number - 1}"] == askers.answers.get(timeout=PATIENCE_S), "it is being asked"
        successor = _core(f"n{number}")
        core.stop()
        askers.join()
        heard = [askers.answers.get() for _ in range(askers.answers.qsize())]
        assert [] == [nodes for nodes in heard if nodes != [f"n{number - 1}"]]
        assert ASKERS == askers.stopped.qsize(), "the stop met every asker"
        assert [f"n{number}"] == _nodes_of(successor)
        core = successor
    core.stop()


def _core(node: str) -> SchedulerCore:
    core = SchedulerCore().start()
    register(core, Recorder())
    add_nodes(core, node)
    wait_until(lambda: [node] == _nodes_of(core))
    return core
