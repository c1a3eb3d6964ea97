"""An ask sent again for more repeats waits for the difference, whatever became of the first."""

from support import APP, Lab


def test_more_of_an_ask_that_is_complete() -> None:
    lab = Lab()
    lab.submit(APP)
    lab.nodes(n1=5)
    lab.ask("k")
    lab.settle()
    lab.ask("k", max_allocations=3)
    lab.settle()
    assert lab.running() == ["k"] * 3


def test_again_after_the_rest_was_withdrawn() -> None:
    lab = Lab()
    lab.submit(APP)
    lab.nodes(n1=1)
    lab.ask("k", max_allocations=2)
    lab.settle()
    lab.withdraw("k")
    lab.nodes(n2=5)
    lab.ask("k", max_allocations=2)
    lab.settle()
    assert lab.running() == ["k", "k"]
