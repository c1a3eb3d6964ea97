"""Values that a resource manager may legally send, and that no core may die of."""

import msgspec
import pytest
from support import APP, Lab

from yunikorn_actors import si
from yunikorn_actors.values.resource import INT64_MAX

DYNAMIC = (
    "partitions: [{name: default, placementrules: [{name: provided, create: true}], "
    "queues: [{name: root, submitacl: '*', queues: [{name: default}]}]}]"
)


@pytest.mark.parametrize(
    "quota",
    [
        "[" * 20_000,
        '{"resources":' * 4_000,
        '{"other": ' + "[" * 20_000,
        '{"resources": {"vcore": {"value": 99999999999999999999999}}}',
        '{"resources": {"": {"value": 1}}}',
        '{"resources": {"vcore": {"value": -1}}}',
    ],
)
def test_a_quota_tag_that_is_none_is_ignored(quota: str) -> None:
    lab = Lab(config=DYNAMIC)
    lab.submit(
        APP, queue="root.dynamic", tags={si.constants.APP_TAG_NAMESPACE_RESOURCE_QUOTA: quota}
    )
    lab.settle()
    assert lab.state.queues["root.dynamic"].spec.max is None


def test_a_quota_tag_is_taken() -> None:
    lab = Lab(config=DYNAMIC)
    tags = {si.constants.APP_TAG_NAMESPACE_RESOURCE_QUOTA: '{"resources": {"vcore": {"value": 7}}}'}
    lab.submit(APP, queue="root.dynamic", tags=tags)
    lab.settle()
    assert lab.state.queues["root.dynamic"].spec.max == {"vcore": 7}


@pytest.mark.parametrize("name", ["root.@recovery@", "root.@Recovery@.below"])
def test_the_recovery_queue_cannot_be_asked_for(name: str) -> None:
    lab = Lab(config=DYNAMIC)
    lab.submit(APP, queue=name)
    lab.settle()
    assert "root.@recovery@" not in lab.state.queues


def test_an_execution_timeout_of_ages_can_be_recorded() -> None:
    """A due time beyond an int64 could not be written to a trace."""
    lab = Lab()
    lab.nodes(n1=4)
    lab.submit(APP, execution_timeout_milli_seconds=2**62)
    lab.ask("k")
    lab.settle()
    (armed,) = lab.state.applications[APP].timers.values()
    assert armed.due_ns == INT64_MAX
    msgspec.msgpack.encode(armed)


def test_foreign_work_that_moves_leaves_its_node() -> None:
    lab = Lab()
    lab.nodes(n1=4, n2=4)
    foreign = {si.constants.TAG_FOREIGN: si.constants.FOREIGN_DEFAULT}
    lab.report(si.Allocation(allocation_key="f", node_id="n1", allocation_tags=foreign))
    lab.settle()
    lab.report(si.Allocation(allocation_key="f", node_id="n2", allocation_tags=foreign))
    lab.settle()
    lab.advance(10)
    detail = si.ChangeDetail.NODE_ALLOC
    moves = [
        (record.event_change_type.name, record.object_id)
        for record in lab.rm.records
        if record.event_change_detail is detail
    ]
    assert moves == [
        ("ADD", "n1"),
        ("REMOVE", "n1"),
        ("ADD", "n2"),
    ]
