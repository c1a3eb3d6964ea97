"""Releases: what a resource manager ends by its own wish, and what it gives back when asked.

RmProxy sorts the two. Here both do the same: whether an allocation was asked back stands in the
state, and RmProxy may have forgotten, or never known, what it holds. A release matches by UUID,
else by key (the ask and all its allocations, whichever exist), else it means all allocations of the
application. The type decides what is answered, never what is removed: a release for nothing, a
second one, or one with a strange type does no harm (G14, G15).
"""

from yunikorn_actors.machines.context.asks import remove_ask
from yunikorn_actors.machines.context.endings import announce_end
from yunikorn_actors.machines.context.gangs import end_allocation
from yunikorn_actors.machines.context.lifecycle import work_gone
from yunikorn_actors.machines.context.unit_of_work import GivenBackUnasked, UnitOfWork
from yunikorn_actors.machines.slices import Steps, ends_piece
from yunikorn_actors.messages.rm_events import AskReleaseItem, GivenBack, Released
from yunikorn_actors.state import facts as f
from yunikorn_actors.state.allocations import Allocation
from yunikorn_actors.state.applications import Application
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.termination import BY_RM, TAKES_THE_ASK, TerminationType

_T = TerminationType
# An iterator of a constant: a generator for each of a burst of releases would cost more than the
# release.
_ONE_PIECE = (1,)
ECHO = "allocation remove as per RM request"


def release_asks(unit: UnitOfWork, item: AskReleaseItem) -> Steps:
    """Withdraw asks; an ask that was allocated meanwhile is released instead (R-129)."""
    for number, app in enumerate(_applications(unit.state, item.application_id)):
        # Copied: what is removed leaves the dictionary.
        keys = (item.key,) if item.key else tuple(app.asks)
        for key in keys:
            if key in app.asks:
                # By key a placed ask is meant as well; a wish for all asks of an application leaves
                # what runs alone.
                _release_ask(unit, app, key, allocated_too=bool(item.key))
                yield 1
        if ends_piece(number):
            yield 1


def release_allocations(unit: UnitOfWork, item: Released) -> Steps:
    # Foreign work has a key and no application.
    foreign = unit.state.foreign.get(item.key)
    if foreign is not None and not item.application_id:
        unit.record(
            f.ForeignAllocationRemoved(
                key=item.key,
                node_id=foreign.node_id,
                resource=foreign.resource,
                at_ns=unit.now_ns,
            )
        )
    if item.uuid:
        # Nearly all are of this kind, and a burst of them is long work: each is one piece.
        _release_one(unit, item)
        return iter(_ONE_PIECE)
    return _release_several(unit, item)


def _release_one(unit: UnitOfWork, item: Released) -> None:
    state = unit.state
    id_ = item.application_id
    # Some clients leave the application out: the UUID names one allocation in the partition (G09).
    app = state.applications.get(id_) if id_ else state.owner_of(item.uuid)
    allocation = None if app is None else app.allocations.get(item.uuid)
    # A release for nothing must not move the application on (G14).
    if app is not None and allocation is not None:
        _end(unit, app, allocation, item, 1)
        work_gone(unit, app, work_ended=not allocation.spec.placeholder)


def _release_several(unit: UnitOfWork, item: Released) -> Steps:
    for number, app in enumerate(_applications(unit.state, item.application_id)):
        gone = _matching(app, item)
        # Allocations before the ask: an ask lives until nothing of it waits or runs.
        for allocation in gone:
            _end(unit, app, allocation, item, len(gone))
            yield 1
        # The confirmation of a timeout or a swap ends what it names and leaves waiting repeats; a
        # wish takes the ask as well.
        ask = app.asks.get(item.key) if item.type in TAKES_THE_ASK else None
        if ask is not None and ask.is_open:
            remove_ask(unit, app, ask, item.type)
        # A release for nothing must not move the application on (G14).
        if gone or ask is not None:
            work_ended = any(not allocation.spec.placeholder for allocation in gone)
            work_gone(unit, app, work_ended=work_ended)
        if gone or ends_piece(number):
            yield 1


def _end(
    unit: UnitOfWork, app: Application, allocation: Allocation, item: Released, count: int
) -> None:
    type_, asked = item.type, allocation.releasing
    # Whatever it decides has one type from here on: in a fact, UNKNOWN would mean a lost node.
    ended = _T.STOPPED_BY_RM if type_ in BY_RM else type_
    end_allocation(unit, app, allocation, ended, asked)
    # Only a wish is echoed; a confirmation ends what the core announced itself.
    if type_ in BY_RM:
        announce_end(unit, allocation, ECHO)
    elif asked is not None and not _is_known_of(item, count):
        # RmProxy keeps what is asked back until it is answered; for this one no answer will come.
        unit.announce(GivenBackUnasked(app.id, allocation.uuid))


def _is_known_of(item: Released, count: int) -> bool:
    """Whether RmProxy had sent the request for all of these that are given back.

    Of several under one key it may have sent one. A recording of before has one type for wishes and
    answers, with a UUID or a key.
    """
    if isinstance(item, GivenBack):
        return item.asked is not None and (bool(item.uuid) or count == 1)
    return bool(item.uuid or item.key)


def _applications(state: PartitionState, application_id: str) -> tuple[Application, ...]:
    if not application_id:
        return tuple(state.applications.values())
    app = state.applications.get(application_id)
    return () if app is None else (app,)


def _matching(app: Application, item: Released) -> tuple[Allocation, ...]:
    if item.key:
        ask = app.asks.get(item.key)
        return () if ask is None else tuple(app.allocations[uuid] for uuid in ask.uuids)
    return tuple(app.allocations.values())


def _release_ask(unit: UnitOfWork, app: Application, key: str, *, allocated_too: bool) -> None:
    ask = app.asks.get(key)
    if ask is None:
        return
    if ask.is_open:
        remove_ask(unit, app, ask, _T.STOPPED_BY_RM)
        work_gone(unit, app)
    elif allocated_too and ask.spec.max_allocations == 1:
        # The release overtook the placement: for the resource manager the ask waits still,
        # so its allocation is what it means.
        for uuid in tuple(ask.uuids):
            allocation = app.allocations[uuid]
            end_allocation(unit, app, allocation, _T.STOPPED_BY_RM, allocation.releasing)
            announce_end(unit, allocation, ECHO)
        work_gone(unit, app, work_ended=not ask.spec.placeholder)
