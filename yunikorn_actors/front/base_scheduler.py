"""What `Scheduler` and `AsyncScheduler` have in common: their calls, as a program writes them.

What a program writes stands here once. Its check, its way to the core and the wait for the answer
are a call on threads and a coroutine on a loop.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Generic, Never, TypeVar

from yunikorn_actors import si
from yunikorn_actors.errors import UnknownName
from yunikorn_actors.front.application import Style, Submission
from yunikorn_actors.front.arguments import WrittenNode
from yunikorn_actors.front.lease import BaseLease, Running
from yunikorn_actors.front.nodes import Named, Node
from yunikorn_actors.front.operations import Operations
from yunikorn_actors.front.subscriptions import Connection

L = TypeVar("L", bound=BaseLease)
HeldApplication = TypeVar("HeldApplication")
"""An application, as its program holds it."""
SubmittedApplication = TypeVar("SubmittedApplication")
"""What a program has of its application at once: the application itself, or a coroutine of it."""
LeasesThere = TypeVar("LeasesThere")
"""The same of the leases of what runs on a new node."""


class BaseScheduler(ABC, Generic[L, HeldApplication, SubmittedApplication, LeasesThere]):
    """A front of a core; each of its kinds says how it waits."""

    _operations: Operations[L]

    # -- nodes

    def add_node(
        self,
        node_id: str,
        *,
        vcore: si.Amount | None = None,
        memory: si.Amount | None = None,
        resources: Mapping[str, si.Amount] | None = None,
        gpus: int | None = None,
        gpu_model: str = "",
        attributes: Mapping[str, str] | None = None,
        running: Iterable[Running] = (),
        **unknown: Never,
    ) -> LeasesThere:
        """Add a node, and return the leases of what runs there already, in the order of `running`.

        Amounts are those of the configuration: `vcore=16` is sixteen cpus, `memory="64Gi"`; other
        types go into `resources`. With `gpus=8` asks share its devices one by one, and `gpu_model`
        says which they are. The applications of what runs there must be made before. Waits
        for the core; raises `NodeRejected` with its reason.
        """
        return self._add_node(
            WrittenNode(
                node_id, vcore, memory, resources, gpus, gpu_model, attributes, running, unknown
            )
        )

    @abstractmethod
    def _add_node(self, written: WrittenNode) -> LeasesThere: ...

    @property
    def nodes(self) -> Mapping[str, Node[L]]:
        """The nodes by id, those that drain included."""
        return Named("node", self._operations.node_ids, self._operations.node)

    # -- applications

    def application(
        self,
        application_id: str,
        *,
        queue: str = "root.default",
        user: str,
        groups: Iterable[str] = (),
        gang: Mapping[str, Any] | None = None,
        gang_style: Style = "Soft",
        priority: int = 0,
        may_preempt: bool = True,
        preemptible: bool = True,
        required_node: str = "",
        timeout: str | float | None = None,
        stays: bool = False,
        running: Iterable[Running] = (),
        tags: Mapping[str, str] | None = None,
        fallback: bool = False,
    ) -> SubmittedApplication:
        """Submit an application; waits for the core, raises `ApplicationRejected` with its reason.

        - `queue`: with its whole path; `""` leaves the choice to the placement rules. What none of
          them places raises `QueueNotFound`, which lists the queues that there are.
        - `fallback`: instead `root.default` may take it, if there is such a leaf; `queue` of the
          application says where it is.
        - `user`, `groups`: whose limits and permissions count.
        - `gang`: members that are of use only together, as
          `{"driver": {"vcore": 1}, "executor": {"count": 4, "vcore": 2}}`. Room for all of them is
          kept before the first is placed. Ask for each by its `group`. A group may also have
          `priority`, `may_preempt`, `preemptible`, `required_node`, `gpu_model`, `tags`, `where`,
          `spread` and `apart_from`: they hold for the room that is kept as for the members.
        - `priority`, `may_preempt`, `preemptible`, `required_node`: of all its asks and groups that
          do not say otherwise, as in `ask`.
        - `gang_style`, `timeout`: if the room for a gang is not there in time (seconds, or text
          such as `"10m"`; 15 minutes unless given), the application fails and its asks raise
          (`Hard`), or its asks are placed one by one as room appears (`Soft`). Without a gang
          `timeout` is how long the application may run.
        - `stays`: do not complete while there is no work, as a service wants it.
        - `running`: after a restart, what runs; those of this application are taken off its gang,
          and it is accepted even if its queue is gone. Pass each to `add_node` as well.
        - `tags`: as in `si.AddApplicationRequest`.
        """
        submission = Submission(
            application_id=application_id, queue=queue, user=user, groups=groups, gang=gang,
            treatment={
                "priority": priority, "may_preempt": may_preempt, "preemptible": preemptible,
                "required_node": required_node,
            },
            gang_style=gang_style, timeout=timeout, stays=stays, running=running, tags=tags,
            fallback=fallback,
        )  # fmt: skip
        return self._submit(submission)

    @abstractmethod
    def _submit(self, submission: Submission) -> SubmittedApplication: ...

    @property
    def applications(self) -> Mapping[str, HeldApplication]:
        """Those that were made and have not ended, by id."""
        return Named("application", self._operations.application_ids, self._application)

    def _application(self, application_id: str) -> HeldApplication:
        app = self._operations.application(application_id)
        if app is None or app.handle is None:
            raise UnknownName(f"application {application_id!r} has just ended: make it again")
        handle: HeldApplication = app.handle
        return handle

    # -- what there is to see

    @property
    def connection(self) -> Connection:
        """Whether the core can be reached, and why not; events of kind `connection` say it, too."""
        return self._operations.session.connection
