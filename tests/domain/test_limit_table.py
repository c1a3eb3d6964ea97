"""A table of limits says what a walk through the limits says, name by name."""

from hypothesis import given
from hypothesis import strategies as st

from yunikorn_actors.config import LimitConfig
from yunikorn_actors.state.applications import Application, ApplicationSpec
from yunikorn_actors.state.ledger import attach, relink
from yunikorn_actors.state.limits import group_of, limits_of, limits_on
from yunikorn_actors.state.partition import PartitionState
from yunikorn_actors.state.queues import NO_LIMITS, LimitTable, Queue, QueueSpec

NAMES = st.sampled_from(["a", "b", "c"])
MEMBERS = st.lists(NAMES, max_size=3, unique=True).map(tuple)


@st.composite
def limit_lists(draw: st.DrawFn) -> tuple[LimitConfig, ...]:
    """As a configuration may have them: a name stands once, the wildcard last."""
    limits = []
    for kind in ("users", "groups"):
        names = [*draw(st.permutations(["a", "b", "c"]))[: draw(st.integers(0, 3))]]
        if names and draw(st.booleans()):
            names.append("*")
        while names:
            count = draw(st.integers(1, len(names)))
            fields = {kind: tuple(names[:count])}
            limits.append(LimitConfig(max_applications=len(limits) + 1, **fields))
            del names[:count]
    return tuple(limits)


@given(limit_lists(), NAMES)
def test_a_user_has_his_own_limit_or_that_of_all_others(
    limits: tuple[LimitConfig, ...], user: str
) -> None:
    named = [limit for limit in limits if user in limit.users]
    others = [limit for limit in limits if "*" in limit.users]
    assert LimitTable(limits).for_user(user) is next(iter([*named, *others]), None)


@given(limit_lists(), NAMES | st.just("*"))
def test_a_group_has_its_own_limit_alone(limits: tuple[LimitConfig, ...], group: str) -> None:
    named = [limit for limit in limits if group in limit.groups]
    assert LimitTable(limits).for_group(group) is next(iter(named), None)


@given(limit_lists(), MEMBERS)
def test_the_order_of_the_configuration_decides_between_groups(
    limits: tuple[LimitConfig, ...], groups: tuple[str, ...]
) -> None:
    named = [group for limit in limits for group in limit.groups]
    wanted = [group for group in named if group in {*groups, "*"}]
    assert LimitTable(limits).group_among(groups) == next(iter(wanted), "")


def test_a_queue_has_the_limits_that_it_was_configured_with_last() -> None:
    queue = Queue("root", QueueSpec(leaf=True), None)
    assert queue.limits is NO_LIMITS
    assert (list(limits_of(queue, "a", "")), group_of(queue, ("g",))) == ([], "")
    of_both = LimitConfig(users=("a",), groups=("g",), max_applications=2)
    queue.configure(QueueSpec(leaf=True, limits=(of_both,)))
    owners = [(limit.owner, limit.of_group) for limit in limits_of(queue, "a", "g")]
    assert owners == [("a", False), ("g", True)]
    assert group_of(queue, ("h", "g")) == "g"
    queue.configure(QueueSpec(leaf=True))
    assert queue.limits is NO_LIMITS


@given(limit_lists(), limit_lists(), NAMES, MEMBERS)
def test_an_application_has_at_hand_what_counts_against_each_of_its_limits(
    above: tuple[LimitConfig, ...],
    below: tuple[LimitConfig, ...],
    user: str,
    groups: tuple[str, ...],
) -> None:
    state = PartitionState("[rm-1]default")
    root = Queue("root", QueueSpec(leaf=False, limits=above), None)
    leaf = Queue("leaf", QueueSpec(leaf=True, limits=below), root)
    spec = ApplicationSpec(application_id="app", user=user, groups=groups)
    usages = attach(state.users, user, leaf)
    app = Application(spec, serial=1, queue=leaf, usages=usages, now_ns=0)
    relink(state.groups, app, group_of(leaf, groups))
    by_name = [
        (limit.max_applications, state.usage_of(limit))
        for limit in limits_of(leaf, user, app.group)
    ]
    assert [(limit.max_applications, usage) for limit, usage in limits_on(app)] == by_name
