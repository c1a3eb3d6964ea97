"""Each change that is found is made on a live core, which decides by it before it is asked."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import pytest
import ranges
from support import RM

from yunikorn_actors import InvalidRequest, VirtualCore, si
from yunikorn_actors.what_if import Change, Reconfigure
from yunikorn_actors.what_if.changes import Request, carry_out
from yunikorn_actors.what_if.core_state import CoreState, state_of
from yunikorn_actors.what_if.least_change import Option, Wanted, least_changes
from yunikorn_actors.what_if.simulation import simulate

SECOND = 1_000_000_000
Extra = tuple[Request | Reconfigure, ...]


@dataclass(frozen=True)
class World:
    """Two leaves below one quota; what waits takes its part of whatever is added."""

    seed: int

    def begun(self) -> VirtualCore:
        draw = random.Random(self.seed)  # noqa: S311
        limit = f"limits: [{{users: [ann], maxresources: {{vcore: {draw.randint(1, 3)}}}}}]"
        config = f"""
            partitions:
            - name: default
              queues:
              - name: root
                submitacl: "*"
                queues:
                - name: p
                  resources: {{max: {{vcore: {draw.randint(4, 9)}}}}}
                  queues:
                  - {{name: a, resources: {{max: {{vcore: 3, gpu: 3}}}}, {limit}}}
                  - {{name: b}}
            """
        core = VirtualCore(topology=draw.choice(["fused", "proposing"]))
        core.start()
        request = si.RegisterResourceManagerRequest(rm_id=RM, config=config)
        core.register_resource_manager(request, si.ResourceManagerCallback())
        for number in range(draw.randint(1, 2)):
            core.update_node(_node(f"n{number}", draw.randint(3, 6) * 1_000, draw.randint(2, 5)))
        for number in range(3):
            core.update_application(_app(f"app-{number}", draw.choice("ab"), draw.choice("xy")))
        core.run_until_idle()
        for number in range(draw.randint(5, 9)):
            app, size = f"app-{draw.randrange(3)}", (draw.randint(1, 3) * 1_000, draw.randint(0, 2))
            core.update_allocation(_asks(app, f"k{number}", *size))
            core.run_until_idle()
            core.advance_to(core.now_ns + SECOND)
        return core

    @property
    def wanted(self) -> tuple[si.ApplicationRequest, si.AllocationRequest]:
        draw = random.Random(-self.seed)  # noqa: S311
        ask = _asks("want", "w", draw.randint(1, 4) * 1_000, draw.randint(0, 3))
        return _app("want", draw.choice("ab"), "ann"), ask


def _node(name: str, vcore: int, gpu: int) -> si.NodeRequest:
    room = si.Resource.of({"vcore": vcore, "gpu": gpu})
    info = si.NodeInfo(node_id=name, action=si.ActionFromRM.CREATE, schedulable_resource=room)
    return si.NodeRequest(rm_id=RM, nodes=(info,))


def _app(name: str, leaf: str, user: str) -> si.ApplicationRequest:
    ugi = si.UserGroupInformation(user=user)
    new = si.AddApplicationRequest(application_id=name, queue_name=f"root.p.{leaf}", ugi=ugi)
    return si.ApplicationRequest(rm_id=RM, new=(new,))


def _asks(app: str, key: str, vcore: int, gpu: int) -> si.AllocationRequest:
    size = {"vcore": vcore, "gpu": gpu} if gpu else {"vcore": vcore}
    resource = si.Resource.of(size)
    ask = si.AllocationAsk(application_id=app, allocation_key=key, resource_ask=resource)
    return si.AllocationRequest(rm_id=RM, asks=(ask,))


def _starts_when_done(world: World, changes: Extra) -> bool:
    core = world.begun()
    try:
        for change in changes:
            carry_out(core._simulator, change)
            core.run_until_idle()
        core.advance_to(core.now_ns + SECOND)
        application, ask = world.wanted
        core.update_application(application)
        core.update_allocation(ask)
        core.run_until_idle()
        return not core.explain("want", "w").waits
    finally:
        core.stop()


def _starts(state: CoreState, changes: Extra, world: World) -> bool:
    first = [Change(it, is_first=True) for it in changes]
    try:
        course = simulate(state, *first, *world.wanted, until=0, compare=False).course
    except InvalidRequest:
        return False  # A queue may not have more than the one above it.
    return course.start_of("want", "w") is not None


def _with_less(changes: Extra) -> Iterator[Extra]:
    for place, change in enumerate(changes):
        for less in _less(change):
            yield (*changes[:place], less, *changes[place + 1 :])


def _less(change: Request | Reconfigure) -> Iterator[Request | Reconfigure]:
    if isinstance(change, Reconfigure):
        for kind, amount in change.max.items():
            yield msgspec.structs.replace(change, max={**change.max, kind: amount - 1})
    elif isinstance(change, si.NodeRequest):
        (node,) = change.nodes
        assert node.schedulable_resource is not None
        room = node.schedulable_resource.amounts()
        for kind, amount in room.items():
            less = si.Resource.of({**room, kind: amount - 1})
            smaller = msgspec.structs.replace(node, schedulable_resource=less)
            yield msgspec.structs.replace(change, nodes=(smaller,))


def _found(world: World) -> tuple[CoreState, list[Option]]:
    core = world.begun()
    state = state_of(core._simulator)
    core.stop()
    options = least_changes(state, Wanted(world.wanted)).options
    return state, [it for it in options if it.kind != "wait"]


@pytest.mark.parametrize("seed", ranges.first([20, *range(8)], 5))
def test_it_helps_who_makes_it_first_and_nothing_less_does(seed: int) -> None:
    world = World(seed)
    state, options = _found(world)
    for option in options:
        assert _starts_when_done(world, option.changes) is not option.is_together, option.text
        for less in () if option.is_together else _with_less(option.changes):
            assert not _starts(state, less, world), (option.text, less)
