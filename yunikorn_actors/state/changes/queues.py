"""How facts about the partition itself and its queues change it."""

from yunikorn_actors.state import facts as f
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import Queue


def configured(state: PartitionState, fact: f.PartitionConfigured) -> None:
    state.config = fact.config


def scheduling_suspended(state: PartitionState, fact: f.SchedulingHeld) -> None:
    state.suspended, state.behind = fact.held, fact.behind


def long_work_started(state: PartitionState, fact: f.LongWorkStarted) -> None:
    state.long_work = fact.work


def long_work_ended(state: PartitionState, fact: f.LongWorkEnded) -> None:  # noqa: ARG001
    state.long_work = None


def machine_replaced(state: PartitionState, fact: f.MachineReplaced) -> None:
    """A record for operators alone: no state changes."""


def configuration_refused(state: PartitionState, fact: f.ConfigurationRefused) -> None:
    """A record for operators alone: no state changes."""


def policy_failed(state: PartitionState, fact: f.PolicyFailed) -> None:
    """A record for operators alone: no state changes."""


def administrator_acted(state: PartitionState, fact: f.AdministratorActed) -> None:
    """A record for operators alone: no state changes."""


def queue_added(state: PartitionState, fact: f.QueueAdded) -> None:
    parent_path, _, name = fact.path.rpartition(".")
    parent = state.queues[parent_path] if parent_path else None
    queue = Queue(name, fact.spec, parent)
    state.queues[fact.path] = queue
    if parent is not None:
        parent.children[name] = queue


def queue_reconfigured(state: PartitionState, fact: f.QueueReconfigured) -> None:
    state.queues[fact.path].configure(fact.spec)


def queue_state_changed(state: PartitionState, fact: f.QueueStateChanged) -> None:
    state.queues[fact.path].state = fact.state


def queue_removed(state: PartitionState, fact: f.QueueRemoved) -> None:
    queue = state.queues.pop(fact.path)
    state.quotas.pop(fact.path, None)
    if queue.parent is not None:
        del queue.parent.children[queue.name]
