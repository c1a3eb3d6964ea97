"""Several answers as one."""

from yunikorn_actors.recording.meter import Histogram
from yunikorn_actors.service.cluster.portal import merged


def test_numbers_add_up_and_what_is_named_stays_apart() -> None:
    one = {"issued": 2, "partitions": {"[rm]a": {"nodes": {"n1": 1}}}, "failed": ["x"]}
    other = {"issued": 3, "partitions": {"[rm]b": {"nodes": {"n2": 1}}}, "failed": ["y"]}
    assert {
        "issued": 5,
        "partitions": {"[rm]a": {"nodes": {"n1": 1}}, "[rm]b": {"nodes": {"n2": 1}}},
        "failed": ["x", "y"],
    } == merged([one, other])


def test_histograms_are_added_place_by_place() -> None:
    histogram, other, both = Histogram(), Histogram(), Histogram()
    for it, values in ((histogram, (1, 10**6)), (other, (1, 10**9))):
        for ns in values:
            it.note(ns)
            both.note(ns)
    assert both.plain() == merged([histogram.plain(), other.plain()])


def test_of_the_worst_the_worst_counts() -> None:
    assert {"worst_ns": 7} == merged([{"worst_ns": 7}, {"worst_ns": 3}])


def test_who_has_no_figures_changes_none() -> None:
    assert {"metered": {"messages": 1}} == merged([{"metered": None}, {"metered": {"messages": 1}}])


def test_all_must_be_complete_for_the_whole_to_be() -> None:
    assert {"is_complete": False} == merged([{"is_complete": True}, {"is_complete": False}])
