"""A front under test: queues, a small cluster, and what a test may wait for."""

from collections.abc import Callable
from typing import Any

import pytest

from yunikorn_actors import (
    ApplicationChanged,
    Event,
    Events,
    Scheduler,
    SchedulerCore,
    Settings,
)
from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.messages.queries import Accepted

PATIENCE_S = 60.0

QUEUES = """
partitions:
- name: default
  queues:
  - name: root
    queues:
    - name: batch
      submitacl: "*"
      resources: {max: {vcore: 8}}
    - name: closed
      submitacl: bob
    - name: sure
      submitacl: "*"
      resources: {guaranteed: {vcore: 4}}
      properties: {preemption.delay: 1ms}
"""
"""No leaf is called `default`: there what finds no queue would go."""


def quick_core(**settings: Any) -> SchedulerCore:
    """A core in which an application completes as soon as it may."""
    quick = {"completing_timeout_ns": 1_000_000, "predicate_timeout_ns": "1m"} | settings
    return SchedulerCore(settings=Settings(**quick))


def break_down(s: Scheduler) -> None:
    """Send Context what it has no handler for."""
    s.core._post(CONTEXT, Accepted(), "test")
    s.core._go_on()


def is_all_handled(s: Scheduler) -> bool:
    """Nothing of the front waits to be sent, and what was sent is handled."""
    outbox = s._operations.session.outbox
    is_empty = not outbox._items
    # What was taken out is sent before this returns.
    outbox.settle()
    return is_empty and s.core.is_settled()


def raised(call: Callable[[], object], kind: type[BaseException]) -> str:
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def events_until(events: Events[Event], state: str) -> list[ApplicationChanged]:
    seen: list[ApplicationChanged] = []
    while not seen or seen[-1].state != state:
        event = next(events)
        assert event.kind == "application"
        seen.append(event)
    return seen
