"""The application as its program holds it: it asks, and is closed."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from inspect import iscoroutinefunction
from typing import (
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    Never,
    TypeVar,
    get_args,
    overload,
)

from msgspec.structs import replace

from yunikorn_actors import si
from yunikorn_actors.errors import InvalidRequest, UnknownName
from yunikorn_actors.front.arguments import (
    changed_policy,
    read_amounts,
    read_count,
    read_running,
    read_several,
    read_texts,
    read_timeout,
    shown,
    with_tags,
)
from yunikorn_actors.front.asks import AskStatus
from yunikorn_actors.front.futures import Pending
from yunikorn_actors.front.gang import (
    PLAIN,
    Treatment,
    placeholders,
    read_gang,
    read_treatment,
    still_missing,
    whole_gang,
)
from yunikorn_actors.front.lease import BaseLease, Lease, Running
from yunikorn_actors.front.node_rules import Apart, Rule, Where, read_rule
from yunikorn_actors.front.operations import Operations, PendingAsk
from yunikorn_actors.front.records import ApplicationRecord, Asked, Fits, Promise
from yunikorn_actors.planning.expected import Expected
from yunikorn_actors.runtime.event_streams import ClosedAtEnd
from yunikorn_actors.state.placement import FALLBACK_PATH

ASYNC_FITS: Final = "fits: an async function is for AsyncScheduler; use a plain one"

L = TypeVar("L", bound=BaseLease)
F = TypeVar("F")


Style = Literal["Soft", "Hard"]


@dataclass(frozen=True, kw_only=True)
class Submission:
    """An application as the program wrote it; nothing of it has been looked at."""

    application_id: str
    queue: str
    user: str
    groups: Iterable[str]
    gang: Mapping[str, Any] | None
    treatment: Mapping[str, Any]
    """What it says of how its asks are treated."""
    gang_style: Style
    timeout: str | float | None
    stays: bool
    running: Iterable[Running]
    tags: Mapping[str, str] | None
    fallback: bool


def add_application(
    operations: Operations[L], written: Submission, accepted: Promise[ApplicationRecord[L]]
) -> ApplicationRecord[L]:
    """Send an application, and placeholders for what is missing of its gang."""
    # Before anything is sent: an error in the arguments changes nothing.
    if written.gang_style not in get_args(Style):
        raise InvalidRequest(
            f"gang_style: must be 'Soft' or 'Hard', not {shown(written.gang_style)}"
        )
    user_groups = read_several("application: groups", written.groups)
    tags = read_texts("application: tags", written.tags)
    name = written.application_id
    if not isinstance(name, str) or not name:
        raise InvalidRequest(f"application: {shown(name)} is no id; use a text that is not empty")
    treatment = read_treatment("application", written.treatment, PLAIN)
    gang = read_gang(written.gang, treatment)
    mine = [it for it in read_running("application", written.running) if it.application == name]
    # Only what runs of this application counts towards its gang.
    missing = still_missing(gang, name, mine)
    if written.stays:
        tags[si.constants.APP_TAG_COMPLETING_DISABLE] = "true"
    if not isinstance(written.fallback, bool):
        raise InvalidRequest(f"fallback: must be True or False, not {shown(written.fallback)}")
    # A queue that is not there raises `QueueNotFound`, unless the program wants the fallback.
    if not written.fallback and str(written.queue).lower() != FALLBACK_PATH:
        tags.setdefault(si.constants.APP_TAG_QUEUE_FALLBACK, "false")
    if mine:
        # It is forced in: its queue may be gone, and what runs has to be known.
        tags.setdefault(si.constants.APP_TAG_CREATE_FORCE, "true")
    partition = operations.options.partition
    request = si.AddApplicationRequest(
        application_id=name,
        queue_name=written.queue,
        partition_name=partition,
        ugi=si.UserGroupInformation(user=written.user, groups=user_groups),
        tags=tags,
        gang_scheduling_style=written.gang_style,
        placeholder_ask=whole_gang(gang),
        execution_timeout_milli_seconds=read_timeout("application", written.timeout),
    )
    app: ApplicationRecord[L] = ApplicationRecord(
        id=name,
        accepted=accepted,
        queue=written.queue,
        groups=gang,
        treatment=treatment,
    )
    waiting = placeholders(name, partition, missing, operations.tags_without_fits)
    operations.add_application(app, request, waiting)
    return app


class Made(NamedTuple, Generic[F, L]):
    """A future, its promise, and the call that attaches its ask."""

    future: F
    promise: Promise[L]
    attach: Callable[[Pending], None]


class BaseApplication(Generic[F, L]):
    """What `Application` and `AsyncApplication` have in common."""

    def __init__(
        self,
        operations: Operations[L],
        app: ApplicationRecord[L],
        user: str,
        make: Callable[[], Made[F, L]],
    ) -> None:
        """Made by `application` of a scheduler."""
        self.id: Final = app.id
        self.user: Final = user
        self._operations = operations
        self._record = app
        self._make = make

    @property
    def queue(self) -> str:
        """The queue that it is in; a placement rule may have chosen another than it asked for."""
        return self._record.queue

    @property
    def state(self) -> str:
        """Where it stands: New, Accepted, Running, Completing, Completed, Failing, Failed..."""
        return self._record.state

    @property
    def leases(self) -> list[L]:
        """What it holds at this moment."""
        return self._operations.leases(self._record)

    @overload
    def ask(
        self,
        key: str,
        *,
        vcore: si.Amount | None = None,
        memory: si.Amount | None = None,
        resources: Mapping[str, si.Amount] | None = None,
        gpu: float | None = None,
        gpu_model: str | None = None,
        group: str = "",
        priority: int | None = None,
        required_node: str | None = None,
        fits: Fits | None = None,
        where: Where | None = None,
        spread: str = "",
        apart_from: Apart = "",
        count: None = None,
        deadline: str | float | None = None,
        runtime: float | None = None,
        tags: Mapping[str, str] | None = None,
        may_preempt: bool | None = None,
        preemptible: bool | None = None,
        originator: bool = False,
    ) -> F: ...

    @overload
    def ask(
        self,
        key: str,
        *,
        vcore: si.Amount | None = None,
        memory: si.Amount | None = None,
        resources: Mapping[str, si.Amount] | None = None,
        gpu: float | None = None,
        gpu_model: str | None = None,
        group: str = "",
        priority: int | None = None,
        required_node: str | None = None,
        fits: Fits | None = None,
        where: Where | None = None,
        spread: str = "",
        apart_from: Apart = "",
        count: int,
        deadline: str | float | None = None,
        runtime: float | None = None,
        tags: Mapping[str, str] | None = None,
        may_preempt: bool | None = None,
        preemptible: bool | None = None,
        originator: bool = False,
    ) -> list[F]: ...

    def ask(
        self,
        key: str,
        *,
        vcore: si.Amount | None = None,
        memory: si.Amount | None = None,
        resources: Mapping[str, si.Amount] | None = None,
        gpu: float | None = None,
        gpu_model: str | None = None,
        group: str = "",
        priority: int | None = None,
        required_node: str | None = None,
        fits: Fits | None = None,
        where: Where | None = None,
        spread: str = "",
        apart_from: Apart = "",
        count: int | None = None,
        deadline: str | float | None = None,
        runtime: float | None = None,
        tags: Mapping[str, str] | None = None,
        may_preempt: bool | None = None,
        preemptible: bool | None = None,
        originator: bool = False,
        **unknown: Never,
    ) -> F | list[F]:
        """Ask for room without waiting; return a future of the lease; cancel it to withdraw it.

        It raises `AskRejected`, `AskWithdrawn`, `ApplicationEnded`, or what ended the scheduler.

        - `vcore`, `memory`, `resources`: as in the configuration: `vcore="500m"` is half a cpu.
        - `gpu`, `gpu_model`: a share of one (0.5) or whole ones (2); which will do, as `"A|B"`.
        - `group`: of a gang, the one that this is a member of; without amounts it is of its size.
        - `priority`: more important asks go first. `required_node`: the only node that will do.
        - `fits`: called with a node's id before it is placed there; false means another node. It
          must be quick, and may not wait for the core. With `AsyncScheduler` it may be `async`.
        - `where={"zone": "a"}`: only nodes with this attribute; `spread="zone"`: as many in each;
          `apart_from="db"`: no two of this name on one node. If need be it waits.
        - `may_preempt`: others may lose leases for it. `preemptible`: false means after all others.
        - `tags`, `originator`: as in `si.AllocationAsk`. What is missing its application has.
        - `count`: how many alike, with the keys `key-1`, `key-2` and so on; returns their futures.
        - `deadline`: withdrawn after this time (seconds, or `"10m"`), with `DeadlinePassed`.
        - `runtime`: for how many seconds it will run; policies go by it, and nothing ends by it.
        """
        amounts = read_amounts("ask", vcore, memory, resources, gpu, unknown)
        size = self._amounts(amounts, group)
        # What a group says of itself comes first, then what its application says.
        treatment = (self._record.groups[group] if group else self._record).treatment
        has_rule = where or spread or apart_from
        rule = self._rule(where, spread, apart_from, group) if has_rule else treatment.rule
        policy = treatment.policy
        if preemptible is not None or may_preempt is not None:
            policy = changed_policy(policy, preemptible, may_preempt)
        ask = si.AllocationAsk(
            allocation_key=key, application_id=self.id, originator=originator,
            partition_name=self._operations.options.partition, task_group_name=group,
            resource_ask=si.Resource.parse(size), preemption_policy=policy,
            priority=treatment.priority if priority is None else priority,
            tags=self._tags(tags, required_node, gpu_model, runtime, size, fits, treatment, rule),
        )  # fmt: skip
        futures = self._ask(ask, size, fits, rule, count, deadline)
        return futures[0] if count is None else futures

    @staticmethod
    def _rule(where: Where | None, spread: str, apart_from: Apart, group: str) -> Rule | None:
        if group:
            raise InvalidRequest(
                "ask: where, spread and apart_from: a member goes where its room is kept: write "
                f"them in the group, as gang={{{group!r}: {{'vcore': 1, 'spread': 'zone'}}}}"
            )
        return read_rule("ask", where, spread, apart_from)

    @staticmethod
    def _check_fits(fits: object) -> None:
        """Refuse what the core could not ask."""
        if not callable(fits):
            raise InvalidRequest(f"ask: fits: must be a function of a node's id, not {shown(fits)}")

    def _tags(
        self,
        tags: Mapping[str, str] | None,
        required_node: str | None,
        gpu_model: str | None,
        runtime: float | None,
        amounts: Mapping[str, si.Amount],
        fits: Fits | None,
        otherwise: Treatment,
        rule: Rule | None,
    ) -> dict[str, str]:
        given = dict(otherwise.tags)
        if tags is not None:
            given |= read_texts("ask: tags", tags)
        if required_node or gpu_model or runtime is not None:
            words = {"required_node": required_node, "gpu_model": gpu_model, "runtime": runtime}
            asked = {word: it for word, it in words.items() if it is not None}
            given = with_tags("ask", given, asked, amounts, "gpu=")
        if fits is not None:
            self._check_fits(fits)
        elif rule is None:
            # Neither `fits` nor a rule: the core need not ask about nodes.
            given |= self._operations.tags_without_fits
        return given

    def _amounts(self, written: dict[str, si.Amount], group: str) -> Mapping[str, si.Amount]:
        groups = self._record.groups
        if group and group not in groups:
            known = ", ".join(groups) or "none, as it was made without gang="
            raise UnknownName(
                f"ask: application {self.id!r} has no group {shown(group)} (there: {known})"
            )
        if not written and not group:
            raise InvalidRequest("ask: say how much it needs: vcore=, memory=, gpu=, or resources=")
        return written or groups[group].written

    def _ask(
        self,
        ask: si.AllocationAsk,
        written: Mapping[str, si.Amount],
        fits: Fits | None,
        rule: Rule | None,
        count: int | None,
        deadline: str | float | None,
    ) -> list[F]:
        key = ask.allocation_key
        if not isinstance(key, str) or not key:
            raise InvalidRequest(f"ask: {shown(key)} is no key; use a text that is not empty")
        late_s = 0.0 if deadline is None else read_timeout("ask", deadline, "deadline") / 1_000
        keys = [key]
        if count is not None:
            keys = [f"{key}-{number}" for number in range(1, read_count("ask", count) + 1)]
        made: list[Made[F, L]] = []
        asked: list[Asked[L]] = []
        futures: list[F] = []
        # That nobody is asked about nodes is a matter of the ask, and not of the work.
        kept = dict(ask.tags)
        kept.pop(si.constants.TAG_PREDICATES, None)
        for key in keys:
            it = self._make()
            made.append(it)
            futures.append(it.future)
            one = replace(ask, allocation_key=key)
            running = _running(one, written, rule, kept)
            asked.append(Asked(one, running, fits, it.promise, late_s, rule))
        for it, record in zip(made, self._operations.ask(self._record, asked), strict=True):
            it.attach(PendingAsk(self._operations, record))
        return futures

    def close(self) -> None:
        """End it: waiting asks raise `ApplicationEnded`, its leases are lost.

        The call does not wait; made again, it does nothing. The id can be used again at once.
        """
        self._operations.close_application(self._record)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}: {self.state}>"


def with_futures_of(
    app: BaseApplication[Any, L], make: Callable[[], Made[F, L]]
) -> BaseApplication[F, L]:
    """Return the same application, for asks whose futures are made otherwise."""
    return BaseApplication(app._operations, app._record, app.user, make)


class Application(BaseApplication[Future[Lease], Lease], ClosedAtEnd):
    """An application of a `Scheduler`: make one with its `application`.

    An application that has no work is Completing, and Completed 30 seconds later: then `ask` raises
    `ApplicationEnded`. One made with `stays=True` goes on until it is closed. Leave its `with`
    block, or call `close`, to end it.
    """

    @staticmethod
    def _check_fits(fits: object) -> None:
        BaseApplication._check_fits(fits)
        # A partial is judged by its function, an object by the `__call__` of its class.
        called = fits.func if isinstance(fits, partial) else fits
        as_a_call = vars(type(called)).get("__call__")
        if iscoroutinefunction(called) or iscoroutinefunction(as_a_call):
            raise InvalidRequest(f"ask: {ASYNC_FITS}")

    def explain(self, key: str) -> AskStatus:
        """Say why an ask waits, where it runs, or what became of it; waits for the core."""
        return self._operations.explanations.explain(self.id, key)

    def expected(self, key: str) -> Expected | None:
        """Say when an ask that waits will start: its place in its queue, and an interval.

        None if it does not wait. It is worked out beside the core, anew every two seconds at most.
        """
        return self._operations.explanations.expected(self.id, key)


def _running(
    ask: si.AllocationAsk,
    written: Mapping[str, si.Amount],
    rule: Rule | None,
    tags: Mapping[str, str],
) -> Running:
    policy = ask.preemption_policy
    return Running(
        application=ask.application_id,
        key=ask.allocation_key,
        node_id="",
        resources=dict(written),
        group=ask.task_group_name,
        priority=ask.priority,
        preemptible=policy is None or policy.allow_preempt_self,
        spread="" if rule is None else rule.spread,
        apart_from={} if rule is None else dict(rule.apart),
        originator=ask.originator,
        tags=tags,
    )
