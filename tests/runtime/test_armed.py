"""What is armed comes up in order, and what was cancelled is not kept until it would be due."""

from hypothesis import example, given
from hypothesis import strategies as st
from probes import Do
from support import Lab, Recorder

from yunikorn_actors.core.due import FEW, ArmedTimers
from yunikorn_actors.messages.base import Cause, Envelope

NAMES = st.sampled_from("abc")
MOVES = st.one_of(
    st.tuples(st.just("arm"), NAMES, NAMES, st.integers(0, 5)),
    st.tuples(st.just("cancel"), NAMES, NAMES),
    st.tuples(st.just("cancel_all"), NAMES),
    st.tuples(st.just("pop")),
)
WEEK_S = 7 * 24 * 3600


def envelope(label: str) -> Envelope:
    return Envelope("timer", Do(label=label), Cause("a", 1), "")


@given(st.lists(MOVES, max_size=60))
@example(
    [
        ("arm", "a", "a", 0),
        ("arm", "a", "b", 1),
        ("arm", "c", "a", 1),
        ("arm", "a", "b", 0),
        ("cancel_all", "c"),
        ("pop",),
    ]
)
def test_as_if_nothing_was_ever_left_behind(moves: list[tuple[str, ...]]) -> None:
    """The model is a list of what is armed, each with its time and its turn."""
    timers = ArmedTimers()
    model: dict[tuple[str, str], tuple[int, int]] = {}
    for turn, (what, *said) in enumerate(moves):
        if what == "arm":
            address, name, due_ns = said
            timers.arm(address, name, int(due_ns), envelope(str(turn)))
            model[address, name] = (int(due_ns), turn)
        elif what == "cancel":
            timers.cancel(said[0], said[1])
            model.pop((said[0], said[1]), None)
        elif what == "cancel_all":
            timers.cancel_all(said[0])
            model = {key: armed for key, armed in model.items() if key[0] != said[0]}
        elif model:
            key = min(model, key=lambda key: model[key])
            assert (key[0], envelope(str(model.pop(key)[1]))) == timers.pop()
        first = min(model.values(), default=(None, 0))
        assert (first[0], len(model)) == (timers.first_due_ns(), len(timers))
        assert len(timers._heap) <= 2 * len(model) + FEW


def test_what_ends_long_before_its_time_leaves_nothing() -> None:
    """Each application has a limit of a week and ends at once."""
    lab = Lab()
    lab.nodes(n1=10)
    for number in range(200):
        lab.submit(f"app-{number}", execution_timeout_milli_seconds=WEEK_S * 1000)
        lab.ask("a", app=f"app-{number}")
        lab.settle()
        lab.remove(f"app-{number}")
        lab.settle()
    assert 2 >= len(lab.simulator.timers), "vacuous: the timers were not cancelled"
    assert 2 * len(lab.simulator.timers) + FEW >= len(lab.simulator.timers._heap)


def test_a_partition_that_goes_takes_the_memory_of_its_applications_along() -> None:
    lab = Lab()
    lab.nodes(n1=10)
    for number in range(20):
        lab.submit(f"app-{number}")
        lab.ask("a", app=f"app-{number}")
        lab.settle()
        lab.release("a", app=f"app-{number}")
    lab.advance(30)
    assert 20 == len(_histories(lab)) == len(lab.state.finished)
    lab.register(Recorder())
    lab.settle()
    assert [] == _histories(lab)


def _histories(lab: Lab) -> list[str]:
    return [name for _, name in lab.simulator.timers if name.startswith("history/")]
