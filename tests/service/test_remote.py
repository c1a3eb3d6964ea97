"""A core in another process is used as one in this process is: the same calls, the same errors."""

import sys
import threading
from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("grpc")
from calling import CONFIG, application, asks, node
from fronting import QUEUES, quick_core
from probes import wait_until

from yunikorn_actors import (
    ConfigError,
    ConnectionLost,
    CoreStopped,
    InvalidRequest,
    Placed,
    Refused,
    RemoteCore,
    ResourceManagerCallback,
    Scheduler,
    UnknownAsk,
    UnknownResourceManager,
    WouldBlock,
    connect,
    si,
)
from yunikorn_actors.service.rpc import link
from yunikorn_actors.service.service import Serving

RM = "rm-1"


@pytest.fixture
def serving(serve: Callable[..., Serving]) -> Serving:
    return serve(quick_core(event_push_ns=1_000_000))


@pytest.fixture
def address(serving: Serving) -> str:
    return serving.parts["grpc"].address


@pytest.fixture
def core(address: str) -> Iterator[RemoteCore]:
    core = RemoteCore(address).start()
    yield core
    core.stop()


class Noting(ResourceManagerCallback):
    """Notes what it hears."""

    def __init__(self) -> None:
        self.new: list[str] = []
        self.accepted: list[str] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.new.extend(it.allocation_key for it in response.new)

    def update_application(self, response: si.ApplicationResponse) -> None:
        self.accepted.extend(it.application_id for it in response.accepted)


def registration(rm_id: str = RM, config: str = CONFIG) -> si.RegisterResourceManagerRequest:
    return si.RegisterResourceManagerRequest(rm_id=rm_id, policy_group=rm_id, config=config)


# -- the front door


def test_the_front_door_leads_to_another_process(address: str) -> None:
    with connect(address) as s:
        s.add_node("node-1", vcore=16, memory="64Gi")
        app = s.application("etl-1", user="ann")
        lease = app.ask("task-1", vcore="500m", memory="2Gi").result(timeout=60)
        with lease:
            assert "node-1" == lease.node_id
        status = s.explain("etl-1", "task-1")
        assert "released" == status.state, status


def test_a_gang_comes_together_from_afar(address: str) -> None:
    """The front asks for placeholders without waiting: requests keep their order on the way."""
    with connect(address, QUEUES) as s:
        s.add_node("node-1", vcore=8)
        gang = {"worker": {"count": 3, "vcore": 1}}
        app = s.application("gang", queue="root.batch", user="ann", gang=gang)
        leases = [app.ask(f"w-{n}", group="worker").result(timeout=60) for n in range(3)]
        assert ["node-1"] * 3 == [lease.node_id for lease in leases]


def test_fits_is_asked_from_afar(address: str) -> None:
    with connect(address, QUEUES) as s:
        for name in ("big", "small"):
            s.add_node(name, vcore=8)
        app = s.application("app", queue="root.batch", user="ann")
        asked: list[str] = []

        def fits(node_id: str) -> bool:
            asked.append(node_id)
            return node_id == "small"

        assert "small" == app.ask("task", vcore=1, fits=fits).result(timeout=60).node_id
        assert "small" in asked


def test_what_closing_leaves_behind_is_nothing(serving: Serving, address: str) -> None:
    with connect(address) as s, s.events("placed") as events:
        s.add_node("node-1", vcore=16)
        s.application("app", user="ann").ask("task", vcore=1)
        assert isinstance(next(events), Placed)
        assert [RM] == list(serving.core.state_dump()["managers"])
    # To leave is a request like any other: a question may overtake it.
    wait_until(lambda: not serving.core.state_dump()["managers"])


def test_two_front_doors_share_one_service(address: str) -> None:
    with connect(address, rm_id="one") as one, connect(address, rm_id="two") as two:
        for s in (one, two):
            s.add_node("node-1", vcore=16)
            app = s.application("app", user="ann")
            assert "node-1" == app.ask("task", vcore=1).result(timeout=60).node_id


def test_when_the_service_ends_so_does_what_waits(serving: Serving, address: str) -> None:
    s = connect(address, give_up_after=0).start()
    try:
        s.add_node("node-1", vcore=1)
        future = s.application("app", user="ann").ask("task", vcore=8)
        serving.stop()
        with pytest.raises((ConnectionLost, CoreStopped)):
            future.result(timeout=60)
        with pytest.raises((ConnectionLost, CoreStopped)):
            s.add_node("node-2", vcore=1)
    finally:
        s.close()


def test_the_core_of_a_front_is_one_or_the_other() -> None:
    with pytest.raises(InvalidRequest, match="a SchedulerCore or a RemoteCore, not int"):
        Scheduler(core=7)  # type: ignore[arg-type]


# -- the calls


def test_requests_are_handled_in_the_order_in_which_they_are_made(core: RemoteCore) -> None:
    """Even asks of an application that nobody has accepted yet."""
    heard = Noting()
    core.register_resource_manager(registration(), heard)
    core.update_node(node(RM))
    for n in range(50):
        core.update_application(application(RM, f"app-{n}"))
        core.update_allocation(asks(RM, f"task-{n}", app=f"app-{n}"))
    wait_until(lambda: len(heard.new) == 50)
    assert sorted(f"task-{n}" for n in range(50)) == sorted(heard.new)


def test_what_is_malformed_is_refused_at_the_call(core: RemoteCore) -> None:
    with pytest.raises(UnknownResourceManager, match="register_resource_manager first"):
        core.update_allocation(asks(RM, "a"))
    with pytest.raises(ConfigError, match="line 1"):
        core.register_resource_manager(registration(config="partitions: 7"), Noting())
    core.register_resource_manager(registration(), Noting())
    with pytest.raises(InvalidRequest, match="allocation_key: must not be empty"):
        core.update_allocation(asks(RM, ""))


def test_a_refusal_of_the_core_keeps_its_type(core: RemoteCore) -> None:
    core.register_resource_manager(registration(), Noting())
    other = si.RegisterResourceManagerRequest(
        rm_id="rm-2", policy_group=RM, config=CONFIG + "          - name: more"
    )
    with pytest.raises(Refused, match="policy group"):
        core.register_resource_manager(other, Noting())
    with pytest.raises(UnknownAsk, match="nobody"):
        core.explain("nobody", "nothing")


def test_questions_are_answered(core: RemoteCore) -> None:
    heard = Noting()
    core.register_resource_manager(registration(), heard)
    core.update_node(node(RM, vcore=10))
    core.update_application(application(RM))
    core.update_allocation(asks(RM, "fits", "waits"))
    wait_until(lambda: heard.new)
    assert ["fits"] == heard.new
    why = core.explain("app", "waits")
    assert why.waits
    assert [RM] == list(core.state_dump()["managers"])
    found = core.events()
    assert found.highest_id == len(found.records) - 1
    with core.event_stream(history=3) as stream:
        assert list(found.records[-3:]) == [next(stream) for _ in range(3)]
        core.update_node(node(RM, "node-2"))
        assert "node-2" == next(stream).object_id
        stream.close()


def test_another_configuration_is_loaded(core: RemoteCore) -> None:
    core.register_resource_manager(registration(), Noting())
    more = CONFIG + "          - name: more"
    core.update_configuration(si.UpdateConfigurationRequest(rm_id=RM, config=more))
    assert "root.more" in core.state_dump()["partitions"]["[rm-1]default"]["queues"]


def test_registering_again_is_a_clean_slate_and_one_that_is_refused_changes_nothing(
    core: RemoteCore,
) -> None:
    core.register_resource_manager(registration(), Noting())
    core.update_node(node(RM))
    with pytest.raises(ConfigError):
        core.register_resource_manager(registration(config="partitions: 7"), Noting())
    heard = Noting()
    core.register_resource_manager(registration(), heard)
    core.update_node(node(RM))
    core.update_application(application(RM))
    core.update_allocation(asks(RM, "a"))
    wait_until(lambda: heard.new == ["a"])
    assert core.failure is None


def test_lost_and_unregistered(serving: Serving, core: RemoteCore) -> None:
    managers: Callable[[], dict[str, dict[str, object]]] = lambda: serving.core.state_dump()[  # noqa: E731
        "managers"
    ]
    core.register_resource_manager(registration(), Noting())
    core.resource_manager_lost(RM)
    wait_until(lambda: managers()[RM]["state"] == "Paused")
    with pytest.raises(UnknownResourceManager):
        core.update_node(node(RM))
    core.unregister_resource_manager(RM)
    wait_until(lambda: managers() == {})


# -- what the core asks


class Answering(Noting):
    def __init__(self) -> None:
        super().__init__()
        self.states: list[str] = []
        self.events = 0
        self.inside: list[BaseException] = []
        self.core: RemoteCore | None = None

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        if args.allocation_key == "raises":
            raise ValueError("no idea")
        return None if args.node_id == "node-2" else "wrong node"

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        self.states.append(f"{request.allocation_key} {request.state.name}")

    def send_event(self, events: tuple[si.EventRecord, ...]) -> None:
        self.events += len(events)

    def get_state_dump(self) -> str:
        return '{"mine": 7}'

    def update_application(self, response: si.ApplicationResponse) -> None:
        super().update_application(response)
        if self.core is not None:
            self.core.update_allocation(asks(RM, "from-inside"))
            try:
                self.core.state_dump()
            except WouldBlock as error:
                self.inside.append(error)


def test_the_callback_answers_and_hears_as_in_one_process(address: str) -> None:
    raised: list[str] = []
    core = RemoteCore(address, on_callback_error=lambda it: raised.append(it.method))
    with core:
        heard = Answering()
        core.register_resource_manager(registration(), heard)
        for name in ("node-1", "node-2"):
            core.update_node(node(RM, name))
        core.update_application(application(RM))
        core.update_allocation(asks(RM, "a", "raises"))
        wait_until(lambda: heard.new == ["a"] and raised)
        wait_until(lambda: "a SCHEDULED" in heard.states)
        assert {"predicates"} == {*raised}
        assert {"mine": 7} == core.state_dump()["rm_diagnostics"][RM]
        wait_until(lambda: heard.events > 0)


def test_inside_a_callback_requests_go_on_and_questions_would_block(core: RemoteCore) -> None:
    heard = Answering()
    heard.core = core
    core.register_resource_manager(registration(), heard)
    core.update_node(node(RM, "node-2"))
    core.update_application(application(RM))
    wait_until(lambda: "from-inside" in heard.new)
    assert heard.inside


# -- the connection


def test_where_nobody_answers_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "CONNECT_S", 0.05)
    with pytest.raises(ConnectionLost, match="is `yunikorn-actors serve` running there"):
        RemoteCore("127.0.0.1:9").start()


def test_before_and_after_it_says_what_to_do(address: str) -> None:
    core = RemoteCore(address)
    with pytest.raises(CoreStopped, match="call start"):
        core.update_node(node(RM))
    with core:
        pass
    with pytest.raises(CoreStopped, match="make another one"):
        core.update_node(node(RM))
    with pytest.raises(CoreStopped, match="started once"):
        core.start()


def test_it_leaves_no_thread_behind(address: str) -> None:
    before = {thread.name for thread in threading.enumerate()}
    with connect(address) as s:
        s.add_node("node-1", vcore=1)

    def left() -> set[str]:
        names = {thread.name for thread in threading.enumerate()} - before
        # Those of the service stay, which is in this process as well.
        return {name for name in names if not name.startswith("yunikorn-actors-rpc")}

    wait_until(lambda: left() == set())


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [it for it in sys.modules if it.startswith("yunikorn_actors.service.rpc.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(ConnectionLost, match=r"pip install -e '\.\[grpc\]'"):
        connect("127.0.0.1:1").start()
