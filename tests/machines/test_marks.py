"""Marks tell how far requests and responses are, also if a side is slow or a mark comes late."""

from support import RM, Lab, ask, in_transit

from yunikorn_actors import si
from yunikorn_actors.core.backlog import Backlog
from yunikorn_actors.drivers.simulator.choosers import Channel, Channels, Fifo, oldest
from yunikorn_actors.machines.machine import CallRm, Effect, Send
from yunikorn_actors.machines.rm_proxy import RmProxy
from yunikorn_actors.machines.rm_proxy.flow_control import Deliveries
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.messages import rm_events as rm
from yunikorn_actors.messages.base import GATEWAY, Message
from yunikorn_actors.messages.rm_calls import CallMark

MOST = 4
OLD, NEW = f"rm:{RM}#1", f"rm:{RM}#2"


def _sent(effects: list[Effect]) -> list[Message]:
    return [effect.message for effect in effects if isinstance(effect, Send)]


def _registered(proxy: RmProxy, callback: str) -> None:
    extra = rm.ExtraConfig(undelivered_max=MOST)
    request = si.RegisterResourceManagerRequest(rm_id=RM)
    proxy.handle(
        rm.RegistrationRequested(
            request=request,
            config=None,
            callback=callback,
            capabilities=rm.Capabilities(),
            extra=extra,
            reply_to="",
        ),
        0,
    )
    answer = rm.RMRegistered(rm_id=RM, callback=callback, extra=extra, reply_to="")
    proxy.handle(answer, 0)


def test_a_mark_of_a_former_callback_says_nothing_of_the_present_one() -> None:
    """It was far ahead; the present one would be held back that much too late."""
    proxy = RmProxy(settings=Settings())
    _registered(proxy, OLD)
    told = rm.RMNodeUpdate(rm_id=RM, accepted=("n1",))
    for _ in range(3 * MOST):
        proxy.handle(told, 0)
    _registered(proxy, NEW)
    late = rm.ResponsesDelivered(rm_id=RM, callback=OLD, count=3 * MOST)
    assert [] == proxy.handle(late, 0)
    said = [message for _ in range(MOST + 1) for message in _sent(proxy.handle(told, 0))]
    assert [rm.RMHeldBack(rm_id=RM, callback=NEW, held=True)] == said


def test_requests_are_handled_when_their_answers_are_taken() -> None:
    deliveries = Deliveries(RM, NEW, 1_000)
    assert [_handled(1)] == deliveries.handled(1), "nothing was said, so nothing is waited for"
    deliveries.deliver(Message())
    mark = CallMark(rm_id=RM, callback=NEW, count=1)
    assert [CallRm(callback=NEW, call=mark)] == deliveries.handled(2)
    assert [] == deliveries.handled(3), "that mark serves both"
    deliveries.deliver(Message())
    assert [CallRm(callback=NEW, call=CallMark(rm_id=RM, callback=NEW, count=2))] == (
        deliveries.handled(4)
    )
    assert [_handled(2), _handled(3)] == deliveries.taken(1)
    assert [_handled(4)] == deliveries.taken(2)


def test_a_callback_that_is_cut_off_is_waited_for_no_longer() -> None:
    deliveries = Deliveries(RM, NEW, 1_000)
    deliveries.deliver(Message())
    deliveries.handled(7)
    assert [_handled(7)] == deliveries.cut()


def _handled(count: int) -> Effect:
    return Send(to=GATEWAY, message=rm.RequestsHandled(rm_id=RM, callback=NEW, count=count))


class GatewayLast(Fifo):
    """Tells the gateway only what it has to be told."""

    def choose(self, channels: Channels) -> Channel:
        others = {it: queue for it, queue in channels.items() if it[1] != GATEWAY}
        return oldest(others or channels)


def test_a_mark_of_a_former_registration_opens_no_room_in_the_present_one() -> None:
    lab = Lab()
    lab.simulator._chooser = GatewayLast()
    for number in range(400):
        lab.request(asks=(ask(f"k{number}", app="nobody"),))
    lab.register(lab.rm)
    late = [it.message for it in in_transit(lab.simulator)]
    assert any(isinstance(it, rm.RequestsHandled) for it in late), "vacuous: no mark is late"
    lab.settle()
    assert lab.simulator.managers.registered[RM].backlog._handled == 0


def test_requests_that_a_former_registration_left_count_at_once() -> None:
    """Their answers go nowhere, so nobody is to wait for them; the new callback owes nothing."""
    proxy = RmProxy(settings=Settings())
    _registered(proxy, OLD)
    _registered(proxy, NEW)
    late = rm.RequestsHandled(rm_id=RM, callback=OLD, count=3)
    assert [Send(to=GATEWAY, message=late)] == proxy.handle(late, 0)


def test_a_request_that_overtook_the_end_of_its_manager_is_dropped_and_counted() -> None:
    proxy = RmProxy(settings=Settings())
    _registered(proxy, NEW)
    proxy.handle(rm.RMLost(rm_id=RM), 0)
    request = rm.NodesRequested(request=si.NodeRequest(rm_id=RM))
    assert [] == proxy.handle(request, 0)
    assert 1 == proxy.dropped == proxy.canonical_state()["dropped"]


def test_a_closed_backlog_is_never_full_and_needs_no_marks() -> None:
    """A mark between two requests would cut apart what is handled together."""
    backlog = Backlog(2)
    assert [backlog.take() for _ in range(3)] == [1, 2, 3]
    assert backlog.is_full
    backlog.close()
    assert not backlog.is_full
    assert (backlog.take(), backlog.bound(1), backlog.take()) == (0, 0, 0)
