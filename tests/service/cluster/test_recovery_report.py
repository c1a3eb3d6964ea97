"""What is reported to a core that began anew, and what the manager hears of that."""

from collections.abc import Iterable
from typing import Any

import pytest
from hosting import application, ask, node, release, remove
from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.service.cluster.recovery_report import RecoveryReport, Request
from yunikorn_actors.values.tags import NODE_PARTITION

TYPES = si.TerminationType


def accepted_node(name: str) -> si.NodeResponse:
    return si.NodeResponse(accepted=(si.AcceptedNode(node_id=name),))


def accepted_application(name: str) -> si.ApplicationResponse:
    return si.ApplicationResponse(accepted=(si.AcceptedApplication(application_id=name),))


def placed(key: str, uuid: str, app: str = "app") -> si.AllocationResponse:
    new = si.Allocation(application_id=app, allocation_key=key, uuid=uuid, node_id="n1")
    return si.AllocationResponse(new=(new,))


def ended(uuid: str, type_: TYPES = TYPES.STOPPED_BY_RM, key: str = "") -> si.AllocationResponse:
    gone = si.AllocationRelease(
        application_id="app", uuid=uuid, termination_type=type_, allocation_key=key
    )
    return si.AllocationResponse(released=(gone,))


def with_one() -> RecoveryReport:
    """A node and an application that were accepted, and one ask that was placed."""
    report = RecoveryReport("rm-1")
    for request in (node("p", "n1"), application("p", "app"), ask("p", "app", "one")):
        report.sent(request)
    assert report.news(accepted_node("n1"))
    assert report.news(accepted_application("app"))
    assert report.news(placed("one", "u1"))
    report.handled(3)
    return report


def told(requests: Iterable[Request]) -> list[str]:
    """Name what is said, in its order."""
    lines = []
    for it in requests:
        match it:
            case si.NodeRequest():
                for info in it.nodes:
                    runs = ",".join(
                        run.uuid or run.allocation_key for run in info.existing_allocations
                    )
                    lines.append(f"{info.action.name} {info.node_id} {runs}".strip())
            case si.ApplicationRequest():
                lines += [f"add {new.application_id}" for new in it.new]
                lines += [f"remove {gone.application_id}" for gone in it.remove]
            case si.AllocationRequest():
                lines += [f"ask {new.allocation_key}" for new in it.asks]
                lines += [f"item {new.allocation_key}" for new in it.allocations]
                releases = it.releases or si.AllocationReleasesRequest()
                lines += [
                    f"release {gone.uuid or gone.allocation_key}"
                    for gone in releases.allocations_to_release
                ]
                lines += [
                    f"withdraw {gone.allocation_key}"
                    for gone in releases.allocation_asks_to_release
                ]
    return lines


NEXT_LIVES = {
    "application": (remove("p", "app"), application("p", "app"), ask("p", "app", "new")),
    "node": (
        replace(
            node("p", "n1"),
            nodes=(si.NodeInfo(node_id="n1", action=si.ActionFromRM.DECOMISSION),),
        ),
        node("p", "n1"),
        ask("p", "app", "new"),
    ),
    "ask": (
        si.AllocationRequest(
            rm_id="rm-1",
            releases=si.AllocationReleasesRequest(
                allocation_asks_to_release=(
                    si.AllocationAskRelease(application_id="app", allocation_key="new"),
                )
            ),
        ),
        ask("p", "app", "new"),
    ),
}


@pytest.mark.parametrize("what", NEXT_LIVES)
def test_an_end_does_not_mean_what_the_next_life_of_its_name_is_given(what: str) -> None:
    """Whether the end has been handled is known only behind the announcement."""
    report = with_one()
    for request in NEXT_LIVES[what]:
        report.sent(request)
    if what == "application":
        assert report.news(accepted_application("app"))
    if what == "node":
        assert report.news(accepted_node("n1"))
    assert report.news(placed("new", "u2"))
    assert report.handled(report.sent_count) is None
    assert "u2" in told(report.recover())[1]
    assert report.news(ended("u2", key="new"))


def test_applications_come_before_nodes_and_asks_after() -> None:
    report = with_one()
    report.sent(ask("p", "app", "two"))
    assert ["add app", "CREATE n1 u1", "ask two"] == told(report.recover())
    assert 3 == report.sent_count


def test_answers_that_were_heard_are_no_news() -> None:
    report = with_one()
    report.recover()
    assert report.news(accepted_node("n1")) is None
    assert report.news(accepted_application("app")) is None
    assert report.news(placed("one", "u1")) is None


def test_answers_that_were_not_heard_are_news_once() -> None:
    report = RecoveryReport("rm-1")
    report.sent(node("p", "n1"))
    report.sent(application("p", "app"))
    report.sent(ask("p", "app", "one"))
    report.recover()
    for answer in (accepted_node("n1"), accepted_application("app"), placed("one", "u1")):
        assert answer == report.news(answer)
        assert report.news(answer) is None


def test_a_refusal_is_news_and_is_reported_no_more() -> None:
    report = RecoveryReport("rm-1")
    report.sent(node("p", "n1"))
    report.sent(application("p", "app"))
    no_node = si.NodeResponse(rejected=(si.RejectedNode(node_id="n1"),))
    no_app = si.ApplicationResponse(rejected=(si.RejectedApplication(application_id="app"),))
    assert (no_node, no_app) == (report.news(no_node), report.news(no_app))
    assert [] == report.recover()


def test_a_second_one_of_a_name_is_refused_and_the_first_one_stays() -> None:
    report = with_one()
    report.sent(application("p", "app"))
    refused = si.ApplicationResponse(rejected=(si.RejectedApplication(application_id="app"),))
    assert refused == report.news(refused)
    assert ["add app", "CREATE n1 u1"] == told(report.recover())


def test_a_no_to_one_brought_twice_is_not_about_the_next_life() -> None:
    report = with_one()
    drop = si.NodeInfo(node_id="n1", action=si.ActionFromRM.DECOMISSION)
    gone = si.NodeRequest(nodes=(drop,), rm_id="rm-1")
    for request in (node("p", "n1"), gone, node("p", "n1")):
        report.sent(request)
    for request in (application("p", "app"), remove("p", "app"), application("p", "app")):
        report.sent(request)
    # These are the answers to the second ones; those to the third are under way.
    report.news(si.NodeResponse(rejected=(si.RejectedNode(node_id="n1"),)))
    no_app = si.RejectedApplication(application_id="app")
    report.news(si.ApplicationResponse(rejected=(no_app,)))
    assert report.news(accepted_node("n1"))
    assert report.news(accepted_application("app"))
    report.handled(report.sent_count)
    assert told(report.recover()) == ["add app", "CREATE n1"]


def test_a_release_that_may_have_been_handled_is_said_first_and_told_in_any_case() -> None:
    report = with_one()
    report.sent(release("p", "app", "u1"))
    assert ["release u1", "add app", "CREATE n1"] == told(report.recover())
    # The core that died had handled it, so this one does not know of it.
    unnotified = report.handled(3)
    assert unnotified is not None
    assert ["u1"] == [it.uuid for it in unnotified.released]
    assert report.handled(3) is None
    assert ["add app", "CREATE n1"] == told(report.recover())


def test_a_release_that_is_told_is_told_once() -> None:
    report = with_one()
    report.sent(release("p", "app", "u1"))
    report.recover()
    assert report.news(ended("u1")) == ended("u1")
    assert report.handled(3) is None
    assert report.news(ended("u1")) is None


def test_what_is_announced_again_while_its_release_is_on_its_way_is_no_news() -> None:
    report = with_one()
    report.sent(release("p", "app", "u1"))
    assert report.news(placed("one", "u1")) is None


def test_a_release_that_was_handled_without_an_answer_needs_none() -> None:
    report = with_one()
    assert report.news(ended("u1", TYPES.TIMEOUT))
    report.sent(release("p", "app", "u1"))
    assert report.handled(4) is None
    assert ["add app", "CREATE n1"] == told(report.recover())


def test_what_is_asked_back_runs_until_that_is_confirmed() -> None:
    report = with_one()
    asked_back = ended("u1", TYPES.PREEMPTED_BY_SCHEDULER)
    assert asked_back == report.news(asked_back)
    assert ["add app", "CREATE n1 u1"] == told(report.recover())
    assert report.news(asked_back) is None
    report.sent(release("p", "app", "u1"))
    assert ["release u1", "add app", "CREATE n1"] == told(report.recover())
    # Nobody is told of what he confirms.
    assert report.handled(1) is None


def test_what_was_asked_back_without_being_announced_is_never_announced() -> None:
    report = with_one()
    late = si.Allocation(application_id="app", allocation_key="ph", uuid="u2", node_id="n1")
    report.sent(si.AllocationRequest(allocations=(late,)))
    report.handled(4)
    asked_back = ended("u2", TYPES.TIMEOUT, "ph")
    assert asked_back == report.news(asked_back)
    assert ["add app", "CREATE n1 u1,u2"] == told(report.recover())
    assert report.news(placed("ph", "u2")) is None


def test_a_removal_comes_before_a_new_life_of_the_same_name() -> None:
    report = with_one()
    report.sent(remove("p", "app"))
    report.sent(application("p", "app"))
    report.sent(ask("p", "app", "one"))
    assert ["remove app", "add app", "CREATE n1", "ask one"] == told(report.recover())
    unnotified = report.handled(1)
    assert unnotified is not None
    assert ["u1"] == [it.uuid for it in unnotified.released]
    assert report.news(accepted_application("app"))
    assert report.news(placed("one", "u2"))


def test_a_node_that_goes_takes_its_work_along() -> None:
    report = with_one()
    gone = si.NodeInfo(node_id="n1", action=si.ActionFromRM.DECOMISSION)
    report.sent(si.NodeRequest(nodes=(gone,), rm_id="rm-1"))
    assert report.news(ended("u1", TYPES.UNKNOWN_TERMINATION_TYPE))
    assert ["DECOMISSION n1", "add app"] == told(report.recover())
    assert report.handled(1) is None


def test_a_node_comes_back_as_it_was_changed() -> None:
    report = with_one()
    size = si.Resource.of({"vcore": 7})
    change = si.NodeInfo(
        node_id="n1",
        action=si.ActionFromRM.UPDATE,
        attributes={"zone": "b"},
        schedulable_resource=size,
    )
    drain = si.NodeInfo(node_id="n1", action=si.ActionFromRM.DRAIN_NODE)
    report.sent(si.NodeRequest(nodes=(change, drain), rm_id="rm-1"))
    [info] = next(it for it in report.recover() if isinstance(it, si.NodeRequest)).nodes
    assert si.ActionFromRM.CREATE_DRAIN is info.action
    assert size == info.schedulable_resource
    assert {"zone": "b", NODE_PARTITION: "p"} == info.attributes
    undrain = si.NodeInfo(node_id="n1", action=si.ActionFromRM.DRAIN_TO_SCHEDULABLE)
    report.sent(si.NodeRequest(nodes=(undrain,), rm_id="rm-1"))
    assert "CREATE n1 u1" in told(report.recover())


def test_an_ask_that_was_withdrawn_and_placed_meanwhile_ends() -> None:
    report = with_one()
    report.sent(ask("p", "app", "two"))
    withdrawn = si.AllocationAskRelease(application_id="app", allocation_key="two")
    parts = si.AllocationReleasesRequest(allocation_asks_to_release=(withdrawn,))
    report.sent(si.AllocationRequest(rm_id="rm-1", releases=parts))
    assert report.news(placed("two", "u2"))
    assert ["withdraw two", "add app", "CREATE n1 u1"] == told(report.recover())
    assert report.news(ended("u2"))
    assert report.handled(1) is None


def test_an_ask_for_several_that_is_withdrawn_keeps_what_it_was_given() -> None:
    report = with_one()
    report.sent(ask("p", "app", "two"))
    withdrawn = si.AllocationAskRelease(application_id="app", allocation_key="two")
    parts = si.AllocationReleasesRequest(allocation_asks_to_release=(withdrawn,))
    report.sent(si.AllocationRequest(rm_id="rm-1", releases=parts))
    assert report.news(placed("two", "u2"))
    assert report.handled(5) is None
    assert ["add app", "CREATE n1 u1,u2"] == told(report.recover())


def test_an_ask_for_several_is_asked_for_until_all_are_there() -> None:
    report = with_one()
    [several] = ask("p", "app", "two").asks
    several = replace(several, max_allocations=2)
    report.sent(si.AllocationRequest(rm_id="rm-1", asks=(several,)))
    assert report.news(placed("two", "u2"))
    assert ["add app", "CREATE n1 u1,u2", "ask two"] == told(report.recover())
    assert report.news(placed("two", "u3"))
    assert ["add app", "CREATE n1 u1,u2,u3"] == told(report.recover())


@pytest.mark.parametrize("state", ["Completed", "Failed"])
def test_an_application_that_has_ended_is_reported_no_more(state: str) -> None:
    report = with_one()
    report.news(ended("u1"))
    report.sent(ask("p", "app", "two"))
    updated = si.UpdatedApplication(application_id="app", state=state)
    response = si.ApplicationResponse(updated=(updated,))
    assert response == report.news(response)
    assert ["CREATE n1"] == told(report.recover())


def test_a_state_is_told_when_it_changes() -> None:
    report = with_one()
    running = si.ApplicationResponse(
        updated=(si.UpdatedApplication(application_id="app", state="Running"),)
    )
    assert running == report.news(running)
    assert report.news(running) is None


def test_work_without_a_uuid_is_known_by_its_key() -> None:
    report = RecoveryReport("rm-1")
    [info] = node("p", "n1").nodes
    run = si.Allocation(application_id="app", allocation_key="old")
    report.sent(application("p", "app"))
    report.sent(
        si.NodeRequest(
            rm_id="rm-1",
            nodes=(si.NodeInfo(node_id="n1", action=info.action, existing_allocations=(run,)),),
        )
    )
    assert ["add app", "CREATE n1 old"] == told(report.recover())
    assert report.news(ended("u9", key="old"))
    assert ["add app", "CREATE n1"] == told(report.recover())


def test_foreign_work_is_reported_by_itself() -> None:
    report = with_one()
    foreign = si.Allocation(
        allocation_key="daemon", node_id="n1", allocation_tags={"foreign": "static"}
    )
    report.sent(si.AllocationRequest(rm_id="rm-1", allocations=(foreign,)))
    assert ["add app", "CREATE n1 u1", "item daemon"] == told(report.recover())


def released(**item: Any) -> si.AllocationRequest:
    releases = si.AllocationReleasesRequest(allocations_to_release=(si.AllocationRelease(**item),))
    return si.AllocationRequest(rm_id="rm-1", releases=releases)


ALL = ["CREATE n1 u1", "item daemon", "ask two"]
OF_TWO = {"application_id": "app", "allocation_key": "two"}


@pytest.mark.parametrize(
    ("item", "left"),
    [
        ({"application_id": "app", "uuid": "u1"}, ["CREATE n1", "item daemon", "ask two"]),
        ({"uuid": "u1"}, ["CREATE n1", "item daemon", "ask two"]),
        ({"application_id": "other", "uuid": "u1"}, ALL),
        ({"application_id": "other", "allocation_key": "one"}, ALL),
        ({**OF_TWO, "uuid": "u9"}, ALL),
        ({"application_id": "app", "allocation_key": "daemon"}, ALL),
        ({"allocation_key": "daemon"}, ["CREATE n1 u1", "ask two"]),
        ({"allocation_key": "daemon", "uuid": "u9"}, ["CREATE n1 u1", "ask two"]),
        (OF_TWO, ["CREATE n1 u1", "item daemon"]),
        ({**OF_TWO, "termination_type": TYPES.PREEMPTED_BY_SCHEDULER}, [*ALL[:2]]),
        ({**OF_TWO, "termination_type": TYPES.TIMEOUT}, ALL),
        ({**OF_TWO, "termination_type": TYPES.PLACEHOLDER_REPLACED}, ALL),
    ],
)
def test_a_release_ends_in_the_report_what_it_ends_in_the_core(
    item: dict[str, Any], left: list[str]
) -> None:
    report = with_one()
    foreign = si.Allocation(
        allocation_key="daemon", node_id="n1", allocation_tags={"foreign": "static"}
    )
    report.sent(si.AllocationRequest(rm_id="rm-1", allocations=(foreign,)))
    report.sent(ask("p", "app", "two"))
    report.sent(released(**item))
    report.handled(report.sent_count)
    assert ["add app", *left] == told(report.recover())


def test_the_end_of_all_that_runs_leaves_what_waits() -> None:
    report = with_one()
    waits = si.AllocationAsk(application_id="app", allocation_key="k", max_allocations=1)
    report.sent(si.AllocationRequest(rm_id="rm-1", asks=(waits,)))
    all_ = si.AllocationRelease(application_id="app", termination_type=TYPES.STOPPED_BY_RM)
    releases = si.AllocationReleasesRequest(allocations_to_release=(all_,))
    report.sent(si.AllocationRequest(rm_id="rm-1", releases=releases))
    report.handled(report.sent_count)
    assert waits in [it for request in report.recover() for it in getattr(request, "asks", ())]


def test_a_state_that_was_left_and_is_back_in_one_response_is_news() -> None:
    report = with_one()
    states = ("Running", "Completing", "Running", "Running")
    moves = tuple(si.UpdatedApplication(application_id="app", state=it) for it in states)
    assert report.news(si.ApplicationResponse(updated=moves[:1]))
    left = report.news(si.ApplicationResponse(updated=moves[1:]))
    assert left is not None
    assert ["Completing", "Running"] == [it.state for it in left.updated]


def test_what_one_request_brings_and_ends_is_not_reported_again() -> None:
    """Its answer announces ends before placements."""
    report = with_one()
    item = si.Allocation(application_id="app", allocation_key="two", node_id="n1")
    ends = si.AllocationReleasesRequest(
        allocation_asks_to_release=(si.AllocationAskRelease(allocation_key="two"),)
    )
    report.sent(si.AllocationRequest(allocations=(item,), releases=ends, rm_id="rm-1"))
    assert report.news(ended("u2", key="two"))
    assert report.news(placed("two", "u2"))
    report.handled(4)
    (line,) = (it for it in told(report.recover()) if it.startswith("CREATE n1"))
    assert line == "CREATE n1 u1"
