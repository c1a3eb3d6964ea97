"""About which asks the core asks the program: those with `fits`, or all where a callback answers."""

from collections import Counter
from pathlib import Path

import pytest
from fronting import PATIENCE_S, QUEUES

from yunikorn_actors import Scheduler, SchedulerCore, si
from yunikorn_actors.trace.read import TraceReader


class Choosy(si.ResourceManagerCallback):
    def predicates(self, args: si.PredicatesArgs) -> str | None:
        return "not there" if args.node_id == "n1" else None


def messages_of(path: Path) -> Counter[str]:
    with TraceReader(path) as reader:
        return Counter(type(it.message).__name__ for it in reader)


@pytest.mark.parametrize(
    ("callback", "questions"), [(None, 2), (Choosy(), 8)], ids=["fits", "callback"]
)
def test_the_core_asks_about_what_has_a_condition(
    callback: si.ResourceManagerCallback | None, questions: int, tmp_path: Path
) -> None:
    """Two asks of four have `fits`; the members of a gang take over two placeholders."""
    path = tmp_path / "front.trace"
    nodes: list[str] = []
    with Scheduler(QUEUES, core=SchedulerCore(trace=path), callback=callback) as s:
        s.add_node("n2", vcore=16)
        app = s.application("a", queue="root.batch", user="ann")

        def fits(node: str) -> bool:
            nodes.append(node)
            return True

        asks = [*app.ask("plain", vcore=1, count=2), *app.ask("picky", vcore=1, count=2, fits=fits)]
        size = {"w": {"vcore": 1, "count": 2}}
        gang = s.application("g", queue="root.batch", user="ann", gang=size)
        asks += [gang.ask(f"m{number}", group="w") for number in (1, 2)]
        for ask in asks:
            ask.result(PATIENCE_S)
    assert ["n2", "n2"] == nodes
    assert questions == messages_of(path)["CheckPredicates"]
