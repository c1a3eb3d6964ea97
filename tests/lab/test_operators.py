"""Operators in drawn worlds, readers of events that are slow, and recordings that are run again."""

from collections import Counter

import pytest
import ranges

from yunikorn_actors.drivers.simulator.simulator import Checker
from yunikorn_actors.lab.harness import World
from yunikorn_actors.lab.mutants.corpus import BY_ID
from yunikorn_actors.lab.oracles.operator_oracle import Operators
from yunikorn_actors.lab.run_schedule import Outcome, explore
from yunikorn_actors.lab.surfaces.replay_check import Replayed
from yunikorn_actors.lab.swarm.drawn import Drawn, drawn
from yunikorn_actors.lab.swarm.world_parts import Wanted
from yunikorn_actors.lab.tapes import tape_verbs

ACTING = Wanted(only=(
    "fault-operate", "bursts", "waits", "several-managers", "lost-managers", "new-registrations",
))  # fmt: skip
JOINING = Wanted(only=("fault-join", "bursts", "runs", "policies", "gangs"))
OF_RECORDINGS = {"M659": JOINING}
WORLDS = 16
SEEN_IN = {
    "M651": 0, "M652": 0, "M653": 0, "M654": 18, "M655": 3, "M656": 2, "M657": 6, "M659": 0,
}  # fmt: skip
"""By the mutant: a world in which it is found."""


def played(run: Drawn, *checkers: Checker) -> Outcome:
    return explore(run.case, run.schedule(), checkers)


def test_operators_act_while_all_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    done: Counter[tuple[str, bool]] = Counter()
    operate = tape_verbs.ACTS["operate"]

    def counted(world: World, what: str) -> bool:
        is_done = operate(world, what)
        done[" ".join(what.split()[: 1 + what.startswith("load")]), is_done] += 1
        return is_done

    monkeypatch.setitem(tape_verbs.ACTS, "operate", counted)
    runs = [drawn(3, number, ACTING) for number in range(WORLDS)]
    assert [] == [str(it.violation) for run in runs if not (it := played(run, *run.checkers())).ok]
    both = ("drain", "open", "unregister", "read", "leave")
    done_or_not = [("follow", True), ("load queues", True), ("load no", False)]
    wanted = [*done_or_not, *((word, is_done) for word in both for is_done in (True, False))]
    assert [] == [it for it in wanted if not done[it]], f"vacuous: {done}"


@pytest.mark.parametrize("id_", ranges.first([*SEEN_IN][::-1], 4))
def test_what_is_wrong_is_found_by_nothing_else(id_: str) -> None:
    parts = OF_RECORDINGS.get(id_, ACTING)
    new = (Operators, Replayed)
    with BY_ID[id_].applied():
        for number in ranges.from_(SEEN_IN[id_], range(4 * WORLDS)):
            run = drawn(3, number, parts)
            if not played(run, *(kind() for kind in new)).ok:
                others = [it for it in run.checkers() if not isinstance(it, new)]
                if played(run, *others).ok:
                    return
    pytest.fail(f"{id_} is not found, or by others as well")


@ranges.seeds(WORLDS - 1, first=0, usual=5)
def test_a_recording_leads_to_the_same(seeds: range) -> None:
    runs = [drawn(3, number, JOINING) for number in seeds]
    assert [] == [str(it.violation) for run in runs if not (it := played(run, Replayed())).ok]
