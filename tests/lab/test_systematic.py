"""All orders are played: the same comes of it as of plain enumeration."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from yunikorn_actors.drivers.simulator.choosers import Channel
from yunikorn_actors.lab.case import Case, read_case
from yunikorn_actors.lab.explore import Budget, Options, Report, Search
from yunikorn_actors.lab.harness import World
from yunikorn_actors.lab.run_schedule import explore, world_of, write
from yunikorn_actors.lab.schedules.strategies import Forgetful
from yunikorn_actors.lab.schedules.systematic import Descents
from yunikorn_actors.lab.tapes.tape import Entry
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.messages.codec import state_digest

HEAD = "name: tiny\nsteps:\n"
APP = "  - add_app: {id: app-1, queue: root.default}\n"
NODE = "  - create_node: {id: n1, capacity: {vcore: 4000}}\n"
TINY = {
    "an application comes and its manager is lost": HEAD + APP + "  - lose_rm: rm-1\n",
    "a node and an application": HEAD + NODE + APP,
    "an application goes at once": HEAD + APP + "  - remove_app: app-1\n",
    "time passes": HEAD + NODE + "  - advance: 2s\n",
    "callbacks answer": HEAD + NODE + "  - create_node: {id: n2, capacity: {vcore: 4000}}\n",
}
LIKE_OTHERS = ("a node and an application", "callbacks answer")
"""What these let choose, the others do as well."""

Final = tuple[object, ...]


def case_of(tmp_path: Path, text: str, topology: TopologyName) -> Case:
    file = tmp_path / "tiny.yaml"
    file.write_text(text)
    return read_case(file, topology)


def told(world: World) -> Final:
    """Return what each mailbox got, in order; callbacks and callers have one together."""
    machines = world.simulator.machines
    got: dict[str, list[object]] = {}
    for it in world.deliveries:
        mailbox = it.mailbox if it.mailbox in machines else "outside"
        got.setdefault(mailbox, []).append((it.mailbox, it.sender, str(it.message), it.at_ns))
    return tuple((mailbox, *got[mailbox]) for mailbox in sorted(got))


def state(world: World) -> Final:
    machines = sorted(world.simulator.machines.items())
    known = [(address, state_digest(it.canonical_state())) for address, it in machines]
    return (*known, *(str(manager.view()) for manager in world.stage.managers()))


class Ended(BaseException):
    """A run has come to where nothing is left to choose, or where it was before."""


class Plain(Forgetful):
    """Follows a path, then leaves every other choice at each state for later."""

    def __init__(
        self, path: tuple[int, ...], known: set[Final], left: list[tuple[int, ...]]
    ) -> None:
        self._path = list(path)
        self._given = len(path)
        self._known = known
        self._left = left
        self._events = 0

    def choose(self, world: World) -> Channel | Entry | None:
        choices: list[Channel | Entry | None] = [*world.channels]
        if world.next_step:
            choices.append(Entry("do", world.next_step) if choices else None)
        if self._events == len(self._path):
            if not choices or not self._is_new(world):
                raise Ended
            self._left += [(*self._path, other) for other in range(1, len(choices))]
            self._path.append(0)
        self._events += 1
        return choices[self._path[self._events - 1]]

    def _is_new(self, world: World) -> bool:
        """Whether nobody got this, with the same under way, at this time and step."""
        under_way = sorted(
            (channel, *(str(envelope.message) for _, envelope in queue))
            for channel, queue in world.channels.items()
        )
        here = (told(world), tuple(under_way), len(world.script), world.simulator.now_ns)
        if here in self._known:
            return False
        self._known.add(here)
        return True


def enumerated(case: Case) -> tuple[set[Final], set[Final]]:
    """Return all that mailboxes may get until the end, and all final states."""
    orders: set[Final] = set()
    finals: set[Final] = set()
    known: set[Final] = set()
    left: list[tuple[int, ...]] = [()]
    while left:
        world = world_of(case, Plain(left.pop(), known, left), case.tape())
        with pytest.raises(Ended):
            world.run()
        if not world.channels and not world.next_step:
            orders.add(told(world))
            finals.add(state(world))
    return orders, finals


class Looking(Forgetful):
    """Looks at the world when nothing is left to choose."""

    def __init__(self, descents: Descents) -> None:
        self._schedule = descents.again()
        self.orders: Final = ()
        self.final: Final = ()

    def choose(self, world: World) -> Channel | Entry | None:
        choice = self._schedule.choose(world)
        if not world.channels and not world.next_step:
            self.orders, self.final = told(world), state(world)
        return choice


def descended(case: Case) -> Iterator[Looking]:
    descents = Descents(case, tuple)
    while not descents.is_exhausted:
        if descents.play() is not None:
            looking = Looking(descents)
            explore(case, looking)
            yield looking


@pytest.mark.parametrize(
    ("name", "topology"),
    [
        *(
            pytest.param(it, "fused", marks=pytest.mark.slow if it in LIKE_OTHERS else ())
            for it in TINY
        ),
        ("an application comes and its manager is lost", "proposing"),
        pytest.param("a node and an application", "proposing", marks=pytest.mark.slow),
    ],
)
def test_what_plain_enumeration_comes_to(tmp_path: Path, name: str, topology: TopologyName) -> None:
    case = case_of(tmp_path, TINY[name], topology)
    orders, finals = enumerated(case)
    found = list(descended(case))
    assert orders == {it.orders for it in found}
    assert finals == {it.final for it in found}


def test_some_end_in_other_states(tmp_path: Path) -> None:
    text = TINY["an application comes and its manager is lost"]
    finals = {it.final for it in descended(case_of(tmp_path, text, "fused"))}
    assert len(finals) > 1, "vacuous: every order ends alike"


# -- as a strategy


def searched(case: Case, runs: int) -> Report:
    options = Options(strategy="exhaustive", budget=Budget(runs=runs), shrinks=False)
    return Search(case, options).run()


@pytest.mark.usefixtures("nodes_unchecked")
def test_a_race_is_found(small: str) -> None:
    finding = searched(read_case(Path(small)), 3_000).finding
    assert finding is not None
    assert finding.run > 0, "vacuous: it fails in any order"
    assert "n1" in finding.violation.text


def test_it_is_said_when_all_was_played_and_only_then(tmp_path: Path) -> None:
    case = case_of(tmp_path, HEAD + NODE + APP, "proposing")
    orders = len(list(descended(case)))
    report = searched(case, 1 + orders)
    assert (1 + orders, orders) == (report.runs, report.orders)
    assert report.exhausted.endswith(f" states, in {orders} orders that differ in a mailbox")
    assert int(report.exhausted.split()[0]) > orders
    assert "" == searched(case, orders).exhausted


def test_what_was_played_is_a_tape(tmp_path: Path) -> None:
    case = case_of(tmp_path, HEAD + NODE + APP, "proposing")
    descents = Descents(case, tuple)
    tapes = set()
    while not descents.is_exhausted:
        outcome = descents.play()
        assert outcome is not None
        assert outcome.digest() == explore(case, descents.again()).digest()
        tapes.add(str(write(case, descents.again())))
    assert descents.orders == len(tapes)
