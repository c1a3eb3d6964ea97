"""A resource manager that overrides nothing."""

from yunikorn_actors import si

ALLOCATIONS = si.AllocationResponse()
APPLICATIONS = si.ApplicationResponse()
NODES = si.NodeResponse()
STATE = si.UpdateContainerSchedulingStateRequest()


def test_updates_are_taken_without_effect() -> None:
    callback = si.ResourceManagerCallback()
    callback.update_allocation(ALLOCATIONS)
    callback.update_application(APPLICATIONS)
    callback.update_node(NODES)
    callback.send_event((si.EventRecord(),))
    callback.update_container_scheduling_state(STATE)
    assert vars(callback) == {}


def test_predicates_pass() -> None:
    assert si.ResourceManagerCallback().predicates(si.PredicatesArgs()) is None


def test_preemption_predicates_have_no_opinion() -> None:
    callback = si.ResourceManagerCallback()
    assert callback.preemption_predicates(si.PreemptionPredicatesArgs()) is None


def test_state_dump_is_an_empty_object() -> None:
    assert si.ResourceManagerCallback().get_state_dump() == "{}"
