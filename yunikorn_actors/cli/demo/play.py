"""The resource manager of the demo, and the clock that drives it.

Callbacks only put what they hear into a queue, so everything else happens on one thread: it sends
what is due to the core, enters what was heard into the books, and redraws the display. The resource
manager confirms releases of the core, because these stay charged until then. It asks again for a
task whose node is gone.
"""

import heapq
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from queue import Empty, SimpleQueue
from typing import Final

from yunikorn_actors import si
from yunikorn_actors.cli.demo.company import CONFIG, Day, Incident, Job, Server
from yunikorn_actors.cli.demo.display import Display
from yunikorn_actors.cli.demo.totals import COMPLETED, Attempt, Books, NodeState, open_books
from yunikorn_actors.runtime.scheduler_core import SchedulerCore
from yunikorn_actors.state.termination import ASKED_BACK

RM_ID: Final = "demo"
LONGEST_S: Final = 60.0
"""Far more than a day takes on the slowest machine; after that the demo counts as stuck."""

_ON_THE_WAY: Final = ("Accepted", "Starting", "Running", "Completing", COMPLETED)
_AFTERWARDS: Final = {
    si.ActionFromRM.DRAIN_NODE: NodeState.DRAINED,
    si.ActionFromRM.DECOMISSION: NodeState.LOST,
    si.ActionFromRM.CREATE: NodeState.UP,
    si.ActionFromRM.DRAIN_TO_SCHEDULABLE: NodeState.UP,
}

Response = si.AllocationResponse | si.ApplicationResponse | si.NodeResponse


class Unexpected(Exception):
    """The core did something that cannot happen on this day."""


class ResponseQueue(si.ResourceManagerCallback):
    """Runs on the core's thread; the time noted here ends the wait of a task."""

    def __init__(self) -> None:
        self.received: SimpleQueue[tuple[float, Response]] = SimpleQueue()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.received.put((time.monotonic(), response))

    def update_application(self, response: si.ApplicationResponse) -> None:
        self.received.put((time.monotonic(), response))

    def update_node(self, response: si.NodeResponse) -> None:
        self.received.put((time.monotonic(), response))


class Play:
    def __init__(self, core: SchedulerCore, day: Day, display: Display) -> None:
        self.books: Books = open_books(day)
        self._core = core
        self._day = day
        self._display = display
        self._responses = ResponseQueue()
        self._applications = {app.id: app for app in day.applications}
        self._machines = {machine.id: machine for machine in day.machines}
        self._attempts: dict[str, Attempt] = {}
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._start_s = 0.0
        self._next_picture_s = display.every_s
        self._shown_s = 0.0
        """Counted in pictures: a process that was stopped and continued is not stuck."""

    def run(self) -> Books:
        """Play the whole day; return when every application has completed."""
        self._open()
        while not self.books.is_over:
            self._check()
            self._say_what_is_due()
            self._show_now_and_then()
            self._listen()
        self._display.show(self.books, self._now_s())
        return self.books

    def _open(self) -> None:
        request = si.RegisterResourceManagerRequest(
            rm_id=RM_ID, version="1", policy_group="default", config=CONFIG
        )
        self._core.register_resource_manager(request, self._responses)
        self._start_s = time.monotonic()
        self._tell_nodes(*(_created(machine) for machine in self._day.machines))
        for app in self._day.applications:
            self._at(app.submitted_s, partial(self._submit, app))
        for incident in self._day.incidents:
            self._at(incident.at_s, partial(self._cause, incident))

    def _check(self) -> None:
        if self._core.failure is not None:
            raise self._core.failure
        if self._shown_s > LONGEST_S:
            missing = self.books.expected - self.books.root.completed
            raise Unexpected(f"{missing} applications have not completed in {LONGEST_S:.0f} s")

    # -- the clock

    def _now_s(self) -> float:
        return time.monotonic() - self._start_s

    def _at(self, at_s: float, happening: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (at_s, next(self._numbers), happening))

    def _say_what_is_due(self) -> None:
        while self._agenda and self._agenda[0][0] <= self._now_s():
            heapq.heappop(self._agenda)[2]()

    def _show_now_and_then(self) -> None:
        now_s = self._now_s()
        if now_s < self._next_picture_s:
            return
        self._display.show(self.books, now_s)
        self._shown_s += self._display.every_s
        while self._next_picture_s <= now_s:
            self._next_picture_s += self._display.every_s

    def _listen(self) -> None:
        """Take what was heard; wait for the first of it until something is due."""
        due_s = min([self._next_picture_s, *(entry[0] for entry in self._agenda[:1])])
        try:
            self._take_in(*self._responses.received.get(timeout=max(0.0, due_s - self._now_s())))
            while True:
                self._take_in(*self._responses.received.get_nowait())
        except Empty:
            return

    # -- requests

    def _submit(self, app: Job) -> None:
        ugi = si.UserGroupInformation(user=app.user, groups=(app.group,))
        new = si.AddApplicationRequest(application_id=app.id, queue_name=app.queue, ugi=ugi)
        self._core.update_application(si.ApplicationRequest(rm_id=RM_ID, new=(new,)))
        self.books.submitted(app)
        now_s = self._now_s()
        self._ask(
            *(Attempt(task=task, application=app, number=1, asked_s=now_s) for task in app.tasks)
        )

    def _ask(self, *attempts: Attempt) -> None:
        self._attempts.update({attempt.key: attempt for attempt in attempts})
        asks = tuple(_ask_of(attempt) for attempt in attempts)
        self._core.update_allocation(si.AllocationRequest(rm_id=RM_ID, asks=asks))

    def _end(self, attempt: Attempt) -> None:
        """End a task at its time, and release its allocation unless its node was lost."""
        if self._attempts.get(attempt.key) is not attempt:
            return
        attempt.has_ended = True
        release = si.AllocationRelease(
            application_id=attempt.application.id,
            uuid=attempt.uuid,
            allocation_key=attempt.key,
            termination_type=si.TerminationType.STOPPED_BY_RM,
        )
        self._release(release)

    def _release(self, *releases: si.AllocationRelease) -> None:
        request = si.AllocationReleasesRequest(allocations_to_release=releases)
        self._core.update_allocation(si.AllocationRequest(rm_id=RM_ID, releases=request))

    def _cause(self, incident: Incident) -> None:
        info = si.NodeInfo(node_id=incident.node, action=incident.action)
        if incident.action is si.ActionFromRM.CREATE:
            info = _created(self._machines[incident.node])
        self._tell_nodes(info)
        self.books.nodes[incident.node].state = _AFTERWARDS[incident.action]
        self._display.note(f"{incident.node} {incident.story}", self._now_s())

    def _tell_nodes(self, *nodes: si.NodeInfo) -> None:
        self._core.update_node(si.NodeRequest(rm_id=RM_ID, nodes=nodes))

    # -- responses

    def _take_in(self, heard_s: float, response: Response) -> None:
        match response:
            case si.AllocationResponse():
                self._take_allocations(response, heard_s - self._start_s)
            case si.ApplicationResponse():
                self._take_applications(response)
            case si.NodeResponse():
                _refuse_rejections(*((item.node_id, item.reason) for item in response.rejected))

    def _take_allocations(self, response: si.AllocationResponse, at_s: float) -> None:
        _refuse_rejections(*((item.allocation_key, item.reason) for item in response.rejected))
        for release in response.released:
            self._take_release(release)
        for new in response.new:
            attempt = self._attempts[new.allocation_key]
            attempt.node, attempt.uuid = new.node_id, new.uuid
            self.books.placed(attempt, at_s)
            self._at(at_s + attempt.task.seconds, partial(self._end, attempt))

    def _take_release(self, release: si.AllocationRelease) -> None:
        """Handle a release: the echo of our own, or a loss; a task may be forgotten by then."""
        if release.termination_type in ASKED_BACK:
            self._release(release)
        attempt = self._attempts.pop(release.allocation_key, None)
        if attempt is None:
            return
        self.books.given_back(attempt)
        if not attempt.has_ended:
            again = Attempt(
                task=attempt.task,
                application=attempt.application,
                number=attempt.number + 1,
                asked_s=self._now_s(),
            )
            self._ask(again)

    def _take_applications(self, response: si.ApplicationResponse) -> None:
        _refuse_rejections(*((item.application_id, item.reason) for item in response.rejected))
        for update in response.updated:
            if update.state not in _ON_THE_WAY:
                raise Unexpected(f"{update.application_id} is {update.state}: {update.message}")
            self.books.moved(self._applications[update.application_id], update.state)


def _refuse_rejections(*rejected: tuple[str, str]) -> None:
    for id_, reason in rejected:
        raise Unexpected(f"the core rejected {id_}: {reason}")


def _created(machine: Server) -> si.NodeInfo:
    return si.NodeInfo(
        node_id=machine.id,
        action=si.ActionFromRM.CREATE,
        schedulable_resource=_amounts(machine.vcore, machine.memory),
    )


def _ask_of(attempt: Attempt) -> si.AllocationAsk:
    return si.AllocationAsk(
        application_id=attempt.application.id,
        allocation_key=attempt.key,
        resource_ask=_amounts(attempt.task.vcore, attempt.task.memory),
    )


def _amounts(vcore: int, memory: int) -> si.Resource:
    return si.Resource.of({si.constants.CPU: vcore, si.constants.MEMORY: memory})
