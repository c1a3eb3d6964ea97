"""Equal amounts are one object in the core, whoever sent them and when.

What came from outside is copied all the same: nothing that a resource manager does to what it sent, or to what it was
told, changes an amount in the core.
"""

import json
from collections.abc import Callable

import pytest
from support import APP, Lab, Recorder

from yunikorn_actors import si
from yunikorn_actors.config import parse_config
from yunikorn_actors.values.resource import Resource

ONE = {"vcore": 1}
TWO = {"vcore": 2}
Sizes = dict[str, si.Resource]


class Hearing(Recorder):
    def __init__(self) -> None:
        super().__init__()
        self.announced: dict[str, si.Allocation] = {}

    def update_allocation(self, response: si.AllocationResponse) -> None:
        super().update_allocation(response)
        self.announced.update((item.allocation_key, item) for item in response.new)


def _sizes() -> Sizes:
    """Of four items the third is larger, and the others have one object."""
    one, two = si.Resource.of(ONE), si.Resource.of(TWO)
    return {"a": one, "b": one, "c": two, "d": one}


def _asks(lab: Lab, sizes: Sizes) -> None:
    lab.request(
        asks=tuple(
            si.AllocationAsk(application_id=APP, allocation_key=key, resource_ask=size)
            for key, size in sizes.items()
        )
    )


def _items(sizes: Sizes, node_id: str) -> tuple[si.Allocation, ...]:
    return tuple(
        si.Allocation(
            application_id=APP, allocation_key=key, resource_per_alloc=size, node_id=node_id
        )
        for key, size in sizes.items()
    )


def _later_asks(lab: Lab, sizes: Sizes) -> None:
    lab.report(*_items(sizes, ""))


def _reports(lab: Lab, sizes: Sizes) -> None:
    lab.report(*_items(sizes, "n1"))


def _with_a_node(lab: Lab, sizes: Sizes) -> None:
    lab.node("n2", si.ActionFromRM.CREATE, 10, existing_allocations=_items(sizes, "n2"))


FORMS = (_asks, _later_asks, _reports, _with_a_node)


def _amounts(lab: Lab) -> dict[str, Resource]:
    app = lab.state.applications[APP]
    return {item.spec.key: item.resource for item in app.allocations.values()}


@pytest.mark.parametrize("say", FORMS)
def test_each_has_its_size_and_nobody_reaches_into_the_core(
    say: Callable[[Lab, Sizes], None],
) -> None:
    lab, rm, sizes = Lab(), Hearing(), _sizes()
    lab.register(rm)
    lab.submit(APP)
    lab.nodes(n1=10)
    lab.settle()
    say(lab, sizes)
    lab.settle()
    expected = {"a": ONE, "b": ONE, "c": TWO, "d": ONE}
    amounts = _amounts(lab)
    assert amounts == expected
    assert amounts["a"] is amounts["b"]
    assert amounts["a"] is amounts["d"]
    told = {key: item.resource_per_alloc or si.Resource() for key, item in rm.announced.items()}
    assert all(size.amounts() == expected[key] for key, size in told.items())
    for size in (*told.values(), *sizes.values()):
        size.resources.clear()
    assert _amounts(lab) == expected


def test_equal_limits_of_queues_and_users_are_one_object() -> None:
    """A thousand of them are asked in turn, and each object of its own would be cold."""
    leaves = [{"name": name, "resources": {"max": {"vcore": "7"}}} for name in ("a", "b")]
    limits = [{"users": [name], "maxresources": {"vcore": "7"}} for name in ("u", "v")]
    root = {"name": "root", "submitacl": "*", "queues": leaves, "limits": limits}
    text = json.dumps({"partitions": [{"name": "default", "queues": [root]}]})
    config = parse_config(text).partitions[0].root
    sizes = [queue.max for queue in config.children] + [it.max_resources for it in config.limits]
    assert all(size is sizes[0] for size in sizes)


def test_a_new_size_of_one_is_not_a_new_size_of_those_it_shared_with() -> None:
    lab, sizes = Lab(), _sizes()
    lab.submit(APP)
    lab.nodes(n1=10)
    _reports(lab, sizes)
    lab.settle()
    lab.report(*_items({"a": si.Resource.of(TWO)}, "n1"))
    lab.settle()
    assert _amounts(lab) == {"a": TWO, "b": ONE, "c": TWO, "d": ONE}
    assert lab.state.root.allocated == {"vcore": 6}
