"""What Context says to proposals: those that a planner might make of a state, and of an older one.

Whether a proposal still holds is a function of the state. A race brings one refusal at a time to
light. Here anything that can be named is proposed at once: any ask on any node, a swap with any
placeholder, victims of anybody for anybody, with names and sequences that were right a moment ago.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec.structs import replace

from yunikorn_actors.config import FilterConfig, RuleConfig
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.swarm.broken_requests import ODD_PATHS
from yunikorn_actors.lab.swarm.reloads import NO_LEAVES
from yunikorn_actors.lab.swarm.scripts import GROUPS, USERS
from yunikorn_actors.machines.context.commit import check_allocate
from yunikorn_actors.machines.context.gangs import check_admission, check_cancel, check_replace
from yunikorn_actors.machines.context.preemption import check_preempt, check_together
from yunikorn_actors.machines.context.reservations import check_reserve, check_unreserve
from yunikorn_actors.machines.settings import Settings
from yunikorn_actors.state.allocations import Allocation, Beneficiary, PreemptionRule
from yunikorn_actors.state.applications import ApplicationSpec
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.placement import PlacementFailed, place
from yunikorn_actors.state.proposals import (
    AdmitGang,
    Allocate,
    CancelPlaceholder,
    Preempt,
    Refusal,
    Replace,
    Reserve,
    Unreserve,
    VictimRef,
)
from yunikorn_actors.state.reserved_nodes import WAIT_NS, kept_for
from yunikorn_actors.values.ids import NO_PROPOSAL
from yunikorn_actors.values.tags import APP_TAG_CREATE_FORCE, APP_TAG_QUEUE_FALLBACK

_PLACEMENTS: Final = 3
_PARENTS_MAX: Final = 2
_FILTERED: Final = ((), (), ("ann",), ("ann", "bob"), ("^a.*",), ("cid", "none"))
_VICTIMS_MAX: Final = 3
_TAGS: Final = ("namespace", "Namespace", APP_TAG_CREATE_FORCE, APP_TAG_QUEUE_FALLBACK)
_OF_GANG: Final = 2
_WRONG: Final = 8
"""One name in so many is that of nobody."""


class _Proposer:
    """Names what is there, and now and then what is not."""

    def __init__(self, state: PartitionState, draw: Draw, now_ns: int) -> None:
        self._state, self._draw = state, draw
        apps = [*state.applications.values()]
        self._asks = [(it.id, ask) for it in apps for ask in it.asks.values()]
        self._open = [it for it in self._asks if it[1].remaining]
        self._work = [it for app in apps for it in app.allocations.values()]
        self._held = [it for it in self._work if it.spec.placeholder]
        self._nodes = [*state.nodes]
        self.times_ns: tuple[int, ...] = (now_ns, now_ns, now_ns + WAIT_NS)

    def _one(self, some: list[Any]) -> Any:  # noqa: ANN401 - of the kind of some
        return self._draw.one_of(some) if some and not self._draw.once_in(_WRONG) else None

    def _node(self) -> str:
        return self._one(self._nodes) or "nowhere"

    def _ask(self) -> dict[str, Any]:
        """Name an ask that waits, or any; its sequence may be that of one before it."""
        some = self._open if self._open and not self._draw.once_in(4) else self._asks
        application_id, ask = self._one(some) or ("nobody", None)
        late = self._draw.once_in(_WRONG)
        return {
            "proposal_id": NO_PROPOSAL,
            "application_id": application_id,
            "key": "nothing" if ask is None else ask.spec.key,
            "sequence": 0 if ask is None else ask.sequence - late,
        }

    def allocate(self) -> Allocate:
        ask = self._ask()
        devices = (self._draw.whole(0, 3),) if self._draw.once_in(_WRONG) else ()
        return Allocate(**ask, node_id=self._node(), devices=devices)

    def reserve(self) -> Reserve:
        return Reserve(**self._ask(), node_id=self._node())

    def unreserve(self) -> Unreserve:
        """Mostly of something that is reserved."""
        kept = [(it, id_) for _, it in self._asks for id_ in it.reserved]
        ask, (_, node_id) = self._ask(), self._one(kept) or (None, self._node())
        found = next((it for it, id_ in kept if id_ == node_id), None)
        if found is not None and not self._draw.once_in(_WRONG):
            spec = found.spec
            ask |= {"application_id": spec.application_id, "key": spec.key}
            ask |= {"sequence": found.sequence}
        return Unreserve(**ask, node_id=node_id)

    def admit(self) -> AdmitGang:
        app = self._one([*self._state.applications.values()])
        late = self._draw.once_in(_WRONG)
        return AdmitGang(
            proposal_id=NO_PROPOSAL,
            application_id="nobody" if app is None else app.id,
            serial=0 if app is None else app.serial - late,
        )

    def _placeholder(self) -> Allocation | None:
        found: Allocation | None = self._one(self._held or self._work)
        return found

    def _member(self, placeholder: Allocation | None) -> dict[str, Any]:
        """Mostly of the application of the placeholder."""
        ask = self._ask()
        if placeholder is not None and not self._draw.once_in(_WRONG):
            id_ = placeholder.spec.application_id
            own = [it for it in self._state.applications[id_].asks.values() if it.remaining]
            if own:
                member = self._draw.one_of(own)
                ask |= {"application_id": id_, "key": member.spec.key, "sequence": member.sequence}
        return ask

    def replace(self) -> Replace:
        placeholder = self._placeholder()
        here = "" if placeholder is None else placeholder.node_id
        node_id = here if here and self._draw.once_in(2) else self._node()
        return Replace(
            **self._member(placeholder),
            placeholder="none" if placeholder is None else placeholder.uuid,
            node_id=node_id,
            crosses=(node_id != here) is not self._draw.once_in(_WRONG),
        )

    def cancel(self) -> CancelPlaceholder:
        placeholder = self._placeholder()
        uuid = "none" if placeholder is None else placeholder.uuid
        return CancelPlaceholder(**self._member(placeholder), placeholder=uuid)

    def preempt(self) -> Preempt:
        """For an ask, or for the quota of a queue."""
        draw, ask, node_id = self._draw, self._ask(), self._node()
        rule = draw.one_of(tuple(PreemptionRule))
        app = self._state.applications.get(ask["application_id"])
        queue = "root" if app is None else app.queue.path
        if rule is PreemptionRule.QUOTA:
            queue = draw.one_of((*self._state.quotas, *self._state.queues))
        near = [it for it in self._work if it.node_id == node_id or rule is PreemptionRule.QUOTA]
        some = [draw.one_of(near) for _ in range(draw.whole(0, _VICTIMS_MAX))] if near else []
        if draw.once_in(_WRONG) and self._work:
            some.append(draw.one_of(self._work))
            whom = Beneficiary(rule=rule, queue=queue)
            ask, node_id = {"sequence": 0}, ""
        else:
            whom = Beneficiary(
                rule=rule, queue=queue, application_id=ask["application_id"], key=ask["key"]
            )
        return Preempt(
            proposal_id=NO_PROPOSAL,
            beneficiary=whom,
            victims=tuple(dict.fromkeys(map(VictimRef.to, some))),
            sequence=ask["sequence"],
            node_id=node_id,
        )


def _turning_points(
    state: PartitionState, settings: Settings, proposal: Reserve | Unreserve
) -> Iterator[int]:
    """Yield when what is said to a proposal may change: then, and a moment later."""
    app = state.applications.get(proposal.application_id)
    ask = None if app is None else app.asks.get(proposal.key)
    if app is None or ask is None:
        return
    times_ns = [
        ask.created_ns + settings.reservation_delay_ns,
        *(kept_for(state, ask, node_id).made_ns + WAIT_NS for node_id in ask.reserved),
    ]
    for time_ns in times_ns:
        yield from (time_ns, time_ns + 1)


def verdicts(
    state: PartitionState, settings: Settings, now_ns: int, draw: Draw, of_each: int
) -> Iterator[str]:
    """Yield proposals that were made up, by their kinds, each with what Context says to it."""
    proposer = _Proposer(state, draw, now_ns)

    def preempts(proposal: Preempt, at_ns: int) -> Refusal | None:
        return check_preempt(state, proposal, at_ns, settings)

    def reserves(proposal: Reserve, at_ns: int) -> Refusal | None:
        return check_reserve(state, proposal, at_ns, settings.reservation_delay_ns)

    checks: tuple[tuple[Callable[[], Any], Callable[[Any, int], Refusal | None]], ...] = (
        (proposer.allocate, lambda it, _: check_allocate(state, it)),
        (proposer.reserve, reserves),
        (proposer.unreserve, lambda it, at_ns: check_unreserve(state, it, at_ns)),
        (proposer.admit, lambda it, _: check_admission(state, it)),
        (proposer.replace, lambda it, _: check_replace(state, it)),
        (proposer.cancel, lambda it, _: check_cancel(state, it)),
        (proposer.preempt, preempts),
    )
    for make, says in checks:
        for _ in range(of_each):
            proposal = make()
            times_ns = proposer.times_ns
            if isinstance(proposal, Reserve | Unreserve):
                times_ns += (*_turning_points(state, settings, proposal),)
            yield f"{type(proposal).__name__} {says(proposal, draw.one_of(times_ns))}"
    gang = [proposer.preempt() for _ in range(_OF_GANG)]
    yield f"together {check_together(state, gang, now_ns, settings)}"


def placed(state: PartitionState, draw: Draw) -> Iterator[str]:
    """Yield where applications would go that nobody has submitted, or why they would not."""
    config = state.config
    if config is None:
        return
    yield from _placed(state, draw)
    for _ in range(_PLACEMENTS):
        rules = tuple(_rule(draw) for _ in range(draw.whole(1, 2)))
        # Of nobody else's concern: nothing is handled meanwhile.
        state.config = replace(config, placement_rules=rules)
        yield f"by {rules}"
        yield from [*_placed(state, draw)]
        state.config = config


def _rule(draw: Draw, depth: int = 0) -> RuleConfig:
    """Draw a rule of any form, as a configuration may have it."""
    filter_ = FilterConfig(
        type=draw.one_of(("allow", "deny")),
        users=draw.one_of(_FILTERED),
        groups=draw.one_of(((), (), ("dev",), ("^o",), ("ops", "none"))),
    )
    return RuleConfig(
        name=draw.one_of(("provided", "user", "tag", "fixed")),
        create=draw.once_in(2),
        value=draw.one_of(("namespace", "root.a", "b", "root")),
        filter=filter_ if draw.once_in(2) else None,
        parent=_rule(draw, depth + 1) if depth < _PARENTS_MAX and draw.once_in(3) else None,
    )


def _placed(state: PartitionState, draw: Draw) -> Iterator[str]:
    paths = (*state.queues, *NO_LEAVES, *ODD_PATHS)
    for _ in range(_PLACEMENTS):
        spec = ApplicationSpec(
            application_id="drawn",
            queue_name=draw.one_of(paths),
            user=draw.one_of(USERS),
            groups=tuple(draw.one_of(GROUPS)),
            tags={draw.one_of(_TAGS): draw.one_of(("true", "false", "red", "a.b", "", "1"))},
        )
        try:
            found = str(place(state, spec))
        except PlacementFailed as failed:
            found = f"{failed} {failed.queues}"
        yield f"{spec.queue_name} of {spec.user} {found}"
