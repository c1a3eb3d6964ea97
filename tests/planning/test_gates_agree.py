"""Commit, the planner and `why` say the same about every ask and node, in states drawn at random.

They share the rules. What the planner keeps up to date step by step, so that no try has to work it
out, is compared here with what commit finds out from the truth.
"""

from collections import Counter
from random import Random

from written import LEAF, Written

from yunikorn_actors.config import LimitConfig
from yunikorn_actors.machines.context.commit import check_allocate
from yunikorn_actors.planning.model.nodes import NodeView
from yunikorn_actors.planning.model.views import AskView
from yunikorn_actors.planning.planner import Planner
from yunikorn_actors.planning.reasons import Cause
from yunikorn_actors.planning.stages.allocate import gate_of
from yunikorn_actors.planning.stages.reserve import gate_of_reserved
from yunikorn_actors.planning.why.explain import explain
from yunikorn_actors.state.applications import ApplicationState
from yunikorn_actors.state.proposals import Allocate, Refusal
from yunikorn_actors.values.resource import fits_in

STATES = 150
OTHER = "root.other"

STARTING = {Cause.APP_LIMIT, Cause.STATEAWARE_BUSY}
OBSTACLES = {
    Refusal.APP_STATE: {Cause.APP_STATE},
    Refusal.APP_LIMIT: STARTING,
    Refusal.STATEAWARE_BUSY: STARTING,
    Refusal.QUEUE_LIMIT: {Cause.QUEUE_LIMIT, Cause.CLUSTER_FULL},
    Refusal.USER_LIMIT: {Cause.USER_LIMIT},
}
"""What is among the obstacles that `why` tells of an ask that commit refuses for this reason. Of a
gang that fits and has not had its turn, `why` tells what comes after its admission."""
OF_NODES = {Refusal.NODE_FULL, Refusal.NODE_DRAINING, Refusal.NODE_RESERVED}
EXPECTED = {None, *OBSTACLES, *OF_NODES, Refusal.GANG_HELD}


def _drawn(dice: Random) -> Written:
    written = Written(LEAF, OTHER)
    for queue in (LEAF, OTHER):
        limit = LimitConfig(
            users=("bob",),
            max_resources=dice.choice((None, {"vcore": dice.randint(0, 9)})),
            max_applications=dice.choice((0, 1, 2)),
        )
        written.reconfigure(
            queue,
            max=dice.choice((None, {"vcore": dice.randint(2, 14)})),
            max_applications=dice.choice((0, 0, 1, 2)),
            properties=dice.choice(({}, {"application.sort.policy": "stateaware"})),
            limits=dice.choice(((), (limit,))),
        )
    for node in ("n1", "n2"):
        written.node(node, vcore=dice.randint(3, 10))
    for number in range(5):
        _add(written, dice, f"app-{number}")
    if dice.random() < 0.2:
        for kept in tuple(written.state.nodes["n2"].reservations.values()):
            written.drop(kept.key, "n2", kept.application_id)
        written.schedule("n2", drained=True)
    return written


def _add(written: Written, dice: Random, app: str) -> None:
    gang = {"vcore": 2} if dice.random() < 0.2 else {}
    user = dice.choice(("bob", "ann"))
    written.add(app, queue=dice.choice((LEAF, OTHER)), user=user, placeholder_ask=gang)
    if dice.random() < 0.4:
        written.recover(f"{app}-r", dice.choice(("n1", "n2")), app, vcore=dice.randint(1, 4))
        if dice.random() < 0.7:
            written.move(app, ApplicationState.RUNNING)
    if gang:
        written.ask(f"{app}-ph", app, vcore=2, placeholder=True, task_group="g")
    for key in ("a", "b"):
        node = "n1" if dice.random() < 0.2 else ""
        written.ask(f"{app}-{key}", app, vcore=dice.randint(1, 6), required_node=node)
    if not gang and dice.random() < 0.3:
        _reserve(written, app, dice.choice(("n1", "n2")))
    if not gang and dice.random() < 0.1:
        _end(written, app)


def _reserve(written: Written, app: str, name: str) -> None:
    node, spec = written.state.nodes[name], written.application(app).asks[f"{app}-a"].spec
    may_have = not node.reservations and not spec.required_node
    if may_have and fits_in(spec.resource, node.capacity):
        written.reserve(spec.key, name, app)


def _end(written: Written, app: str) -> None:
    """It fails, and is not through with that: something of it is not confirmed."""
    for key, ask in tuple(written.application(app).asks.items()):
        for node in ask.reserved:
            written.drop(key, node, app)
    written.ask_back(written.recover(f"{app}-last", "n1", app, vcore=1), app)
    written.move(app, ApplicationState.FAILING)


def _asks(planner: Planner) -> list[AskView]:
    return [ask for app in planner.model.apps.values() for ask in app.asks.values()]


def _check(planner: Planner, ask: AskView, node: NodeView) -> Refusal | None:
    proposal = Allocate(
        proposal_id=1,
        application_id=ask.app.app.id,
        key=ask.ask.spec.key,
        sequence=ask.ask.sequence,
        node_id=node.id,
    )
    return check_allocate(planner.state, proposal)


def _would_place(planner: Planner, ask: AskView, node: NodeView) -> bool:
    """As the planner decides, for one node and not in its order."""
    app = ask.app
    if not app.is_schedulable or not ask.open or app.blocked_at() is not None:
        return False
    if node.id in ask.ask.reserved:
        own = node.node.reservations[app.app.id, ask.ask.spec.key]
        gate = gate_of_reserved(ask, own)
        return gate is None and node.node.is_schedulable and node.fits(ask.shape.wanted)
    return node.serves(ask.shape) and gate_of(planner.state, ask) is None


def _told(planner: Planner, ask: AskView) -> set[Cause]:
    why = explain(planner, ask.app.app.id, ask.ask.spec.key, 0)
    assert why is not None
    return {obstacle.cause for obstacle in why.obstacles}


def test_all_three_say_the_same() -> None:
    seen: Counter[Refusal | None] = Counter()
    for number in range(STATES):
        written = _drawn(Random(number))  # noqa: S311 - states, no secrets
        planner = written.planner
        planner.measurer.plan(written.now_ns, 1)
        for ask in _asks(planner):
            refusals: dict[Refusal | None, None] = {}
            for node in planner.model.nodes.views.values():
                refusal = _check(planner, ask, node)
                refusals[refusal] = None
                placed = _would_place(planner, ask, node)
                assert placed is (refusal is None), (number, ask.ask, node.id, refusal)
            seen.update(list(refusals))
            causes = _told(planner, ask)
            if Cause.NEXT in causes:
                assert {None, Refusal.GANG_HELD} & refusals.keys(), (number, ask.ask, refusals)
            if None in refusals:
                assert causes <= {Cause.NEXT, Cause.NODE_KEPT}, (number, ask.ask, causes)
            for refusal in refusals:
                if refusal in OBSTACLES:
                    assert causes & OBSTACLES[refusal], (number, ask.ask, refusal, causes)
                elif refusals.keys() <= OF_NODES:
                    assert causes & {Cause.NO_NODE, Cause.NODE_KEPT}, (number, ask.ask, causes)
    missing = sorted(str(what) for what in EXPECTED if not seen[what])
    assert [] == missing, f"vacuous: never seen: {missing}"
