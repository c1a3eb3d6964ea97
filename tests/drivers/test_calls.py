"""The calls of the scheduler interface: the same from every driver, and refused at the call.

R-113: what is refused is answered once, and the core goes on. R-128: a callback may call back, and
a call from inside it that would wait is refused.
"""

from collections.abc import Callable
from typing import Any

import pytest
from probes import Lab, add_nodes, register
from support import APP, CONFIG, RM, Recorder, ask

from yunikorn_actors import (
    ConfigError,
    CoreStopped,
    InvalidRequest,
    SchedulerCore,
    UnknownResourceManager,
    WouldBlock,
    si,
)
from yunikorn_actors.messages.base import RM_PROXY
from yunikorn_actors.messages.predicates import (
    CheckPredicates,
    CheckPreemptionPredicates,
    PredicatesChecked,
    PreemptionPredicatesChecked,
)


def applications(*names: str) -> si.ApplicationRequest:
    ugi = si.UserGroupInformation(user="bob")
    new = (
        si.AddApplicationRequest(application_id=name, queue_name="root.default", ugi=ugi)
        for name in names
    )
    return si.ApplicationRequest(rm_id=RM, new=tuple(new))


def test_a_resource_manager_hears_the_same_from_every_driver(every_lab: Lab) -> None:
    core = every_lab.core
    rm = Recorder()
    register(core, rm)
    add_nodes(core, "n1")
    core.update_application(applications(APP))
    asks = tuple(ask(f"k{number}") for number in range(12))
    core.update_allocation(si.AllocationRequest(rm_id=RM, asks=asks))
    every_lab.rest()
    assert [("n1", "accepted")] == rm.told("node")
    assert [(APP, "accepted")] == rm.told("application")
    assert [(f"k{number}", "n1") for number in range(10)] == rm.told("new")
    dump = core.state_dump()
    assert 10 == dump["partitions"]["[rm-1]default"]["allocations"]
    assert core.events().highest_id > 0
    assert every_lab.is_settled()


class Submitter(Recorder):
    """Answers every node with an application of the same name, from inside the callback."""

    def __init__(self, lab: Lab) -> None:
        super().__init__()
        self._lab = lab

    def update_node(self, response: si.NodeResponse) -> None:
        super().update_node(response)
        for node in response.accepted:
            self._lab.core.update_application(applications("for-" + node.node_id))


def test_a_callback_may_call_back_and_its_calls_keep_their_order(every_lab: Lab) -> None:
    core = every_lab.core
    rm = Submitter(every_lab)
    register(core, rm)
    names = [f"n{number}" for number in range(30)]
    add_nodes(core, *names[:20])
    for name in names[20:]:
        add_nodes(core, name)
    every_lab.rest()
    assert [(name, "accepted") for name in names] == rm.told("node")
    assert [(f"for-{name}", "accepted") for name in names] == rm.told("application")


class Picky(Recorder):
    def predicates(self, args: si.PredicatesArgs) -> str | None:
        return None if args.node_id == "good" else f"not on {args.node_id}"

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        return si.PreemptionPredicatesResponse(success=True, index=args.start_index)


def test_what_a_callback_answers_reaches_who_asked(lab: Lab) -> None:
    register(lab.core, Picky())
    life: dict[str, Any] = {"partition": "p", "epoch": 1}
    asked: dict[str, Any] = {**life, "rm_id": RM, "reply_to": "a"}
    for id_, node in enumerate(("good", "bad")):
        placement = si.PredicatesArgs(allocation_key="k", node_id=node)
        lab.post(RM_PROXY, CheckPredicates(question_id=id_, args=placement, **asked))
    preemption = si.PreemptionPredicatesArgs(allocation_key="k", node_id="n", start_index=3)
    lab.post(RM_PROXY, CheckPreemptionPredicates(question_id=2, args=preemption, **asked))
    lab.rest()
    found = si.PreemptionPredicatesResponse(success=True, index=3)
    assert [
        PredicatesChecked(question_id=0, reason="", **life),
        PredicatesChecked(question_id=1, reason="not on bad", **life),
        PreemptionPredicatesChecked(question_id=2, response=found, **life),
    ] == lab.notebook.other


WAITING: dict[str, Callable[[Lab], object]] = {
    "state_dump": lambda lab: lab.core.state_dump(),
    "explain": lambda lab: lab.core.explain(APP, "k"),
    "waiting": lambda lab: lab.core.waiting(),
    "events": lambda lab: lab.core.events(),
    "register_resource_manager": lambda lab: register(lab.core, Recorder(), "rm-2"),
    "update_configuration": lambda lab: lab.core.update_configuration(
        si.UpdateConfigurationRequest(rm_id=RM, config=CONFIG)
    ),
    "of the administrator": lambda lab: lab.core.update_configuration(
        si.UpdateConfigurationRequest(config=CONFIG)
    ),
}


class Impatient(Recorder):
    """Makes a call that waits, from inside the callback."""

    def __init__(self, lab: Lab, wait: Callable[[Lab], object]) -> None:
        super().__init__()
        self._lab = lab
        self._wait = wait
        self.raised: list[Exception] = []

    def update_node(self, response: si.NodeResponse) -> None:
        super().update_node(response)
        try:
            self._wait(self._lab)
        except WouldBlock as error:
            self.raised.append(error)


def open_callbacks(lab: Lab) -> list[str]:
    core = lab.core
    addresses = core._actors.by_address if isinstance(core, SchedulerCore) else core.callbacks
    return [address for address in addresses if address.startswith("rm:")]


@pytest.mark.parametrize("wait", WAITING.values(), ids=WAITING)
def test_a_call_that_waits_is_refused_inside_a_callback(
    lab: Lab, wait: Callable[[Lab], object]
) -> None:
    rm = Impatient(lab, wait)
    register(lab.core, rm)
    add_nodes(lab.core, "n1")
    lab.rest()
    assert 1 == len(rm.raised)
    assert "call it from another thread, or after the callback has returned" in str(rm.raised[0])
    add_nodes(lab.core, "n2")
    lab.rest()
    assert [("n1", "accepted"), ("n2", "accepted")] == rm.told("node")
    assert ["rm:rm-1#1"] == open_callbacks(lab)


def test_registering_again_cuts_the_former_callback_off(every_lab: Lab) -> None:
    core = every_lab.core
    old, new = Recorder(), Recorder()
    register(core, old)
    add_nodes(core, "n1")
    every_lab.rest()
    register(core, new)
    add_nodes(core, "n1", "n2")
    every_lab.rest()
    assert [("n1", "accepted")] == old.told("node")
    assert [("n1", "accepted"), ("n2", "accepted")] == new.told("node")
    assert ["rm:rm-1#2"] == open_callbacks(every_lab)


def test_two_resource_managers_are_told_of_their_own_alone(every_lab: Lab) -> None:
    core = every_lab.core
    rms = {"rm-1": Recorder(), "rm-2": Recorder()}
    for rm_id, rm in rms.items():
        register(core, rm, rm_id)
    for rm_id in rms:
        add_nodes(core, "same", "of-" + rm_id, rm_id=rm_id)
    every_lab.rest()
    for rm_id, rm in rms.items():
        assert [("same", "accepted"), (f"of-{rm_id}", "accepted")] == rm.told("node")


BAD = si.NodeRequest(rm_id=RM, nodes=(si.NodeInfo(node_id="", action=si.ActionFromRM.CREATE),))

REFUSED: dict[str, tuple[Callable[[Lab], object], type[Exception], str]] = {
    "unknown resource manager": (
        lambda lab: add_nodes(lab.core, "n1", rm_id="rm-9"),
        UnknownResourceManager,
        'RmID="rm-9" not registered: call register_resource_manager first',
    ),
    "configuration of an unknown one": (
        lambda lab: lab.core.update_configuration(
            si.UpdateConfigurationRequest(rm_id="rm-9", config=CONFIG)
        ),
        UnknownResourceManager,
        "not registered",
    ),
    "configuration that is none": (
        lambda lab: lab.core.update_configuration(
            si.UpdateConfigurationRequest(rm_id=RM, config="partitions: 5")
        ),
        ConfigError,
        "partitions",
    ),
    "registration with such a configuration": (
        lambda lab: lab.core.register_resource_manager(
            si.RegisterResourceManagerRequest(rm_id="rm-2", config="partitions: 5"), Recorder()
        ),
        ConfigError,
        "partitions",
    ),
    "registration without a callback": (
        lambda lab: register(lab.core, None, "rm-2"),  # type: ignore[arg-type]
        InvalidRequest,
        "must be a ResourceManagerCallback, not NoneType",
    ),
    "registration with a class": (
        lambda lab: register(lab.core, Recorder, "rm-2"),  # type: ignore[arg-type]
        InvalidRequest,
        "must be a ResourceManagerCallback, not type",
    ),
    "malformed": (lambda lab: lab.core.update_node(BAD), InvalidRequest, "node_id"),
    "no request": (lambda lab: lab.core.update_node(None), InvalidRequest, "NodeRequest"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("ask", "kind", "words"), REFUSED.values(), ids=REFUSED)
def test_a_bad_call_is_refused_at_once_and_nothing_is_taken(
    lab: Lab, ask: Callable[[Lab], object], kind: type[Exception], words: str
) -> None:
    rm = Recorder()
    register(lab.core, rm)
    with pytest.raises(kind) as caught:
        ask(lab)
    assert words in str(caught.value)
    assert ["rm:rm-1#1"] == open_callbacks(lab)
    add_nodes(lab.core, "n1")
    lab.rest()
    assert [("node", "n1", "accepted")] == rm.heard


CALLS: dict[str, Callable[[SchedulerCore], object]] = {
    "register_resource_manager": lambda core: core.register_resource_manager(
        si.RegisterResourceManagerRequest(rm_id=RM, config=CONFIG), Recorder()
    ),
    "update_allocation": lambda core: core.update_allocation(si.AllocationRequest(rm_id=RM)),
    "update_application": lambda core: core.update_application(si.ApplicationRequest(rm_id=RM)),
    "update_node": lambda core: core.update_node(si.NodeRequest(rm_id=RM)),
    "update_configuration": lambda core: core.update_configuration(
        si.UpdateConfigurationRequest(rm_id=RM, config=CONFIG)
    ),
    "of the administrator": lambda core: core.update_configuration(
        si.UpdateConfigurationRequest(config=CONFIG)
    ),
    "resource_manager_lost": lambda core: core.resource_manager_lost(RM),
    "unregister_resource_manager": lambda core: core.unregister_resource_manager(RM),
    "state_dump": lambda core: core.state_dump(),
    "explain": lambda core: core.explain(APP, "k"),
    "waiting": lambda core: core.waiting(),
    "events": lambda core: core.events(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_core_that_does_not_run_says_so(call: Callable[[SchedulerCore], object]) -> None:
    core = SchedulerCore()
    with pytest.raises(CoreStopped, match=r"the core is new: call start\(\) first"):
        call(core)
    with core:
        CALLS["register_resource_manager"](core)
    with pytest.raises(CoreStopped, match="the core is stopped: make another one"):
        call(core)


class Touchy(Recorder):
    """Raises on what it is told of the first of several asks."""

    def __init__(self) -> None:
        super().__init__()
        self.states: list[str] = []

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        if request.allocation_key == "k0":
            raise ValueError("not this one")
        self.states.append(request.allocation_key)


def test_a_state_that_is_not_taken_costs_the_others_nothing(lab: Lab) -> None:
    rm = Touchy()
    register(lab.core, rm)
    add_nodes(lab.core, "n1")
    lab.core.update_application(applications(APP))
    asks = tuple(ask(f"k{number}") for number in range(3))
    lab.core.update_allocation(si.AllocationRequest(rm_id=RM, asks=asks))
    lab.rest()
    assert ["k1", "k2"] == rm.states
