"""Queue properties: defaults, bad values, and what a parent hands down."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn_actors.config import (
    ApplicationSortPolicy,
    GangAdmission,
    PreemptionBudget,
    PreemptionPolicy,
    PreemptionUnit,
    QueueProperties,
    QueueSortPolicy,
    effective_properties,
    parse_duration,
)

SECOND = 10**9
SORT = "application.sort.policy"
SORT_PRIORITY = "application.sort.priority"
FENCE = "priority.policy"
OFFSET = "priority.offset"
PREEMPTION = "preemption.policy"
DELAY = "preemption.delay"
BACKOFF = "application.unschedasks.backoff"
BACKOFF_DELAY = "application.unschedasks.backoff.delay"
QUOTA_DELAY = "quota.preemption.delay"
QUEUE_SORT = "queue.sort.policy"
GANG = "gang.admission"
UNIT = "preemption.unit"
BUDGET = "preemption.budget"
COOLDOWN = "preemption.cooldown"
GRACE = "preemption.grace"
PERCENT = "reservation.max.nodes.percent"


def test_defaults() -> None:
    expected = QueueProperties(
        application_sort_policy=ApplicationSortPolicy.FIFO,
        application_sort_priority=True,
        priority_fence=False,
        priority_offset=0,
        preemption_policy=PreemptionPolicy.DEFAULT,
        preemption_delay_ns=None,
        preemption_unit=None,
        preemption_budget=PreemptionBudget(),
        preemption_cooldown_ns=0,
        preemption_grace_ns=0,
        backoff_count=0,
        backoff_delay_ns=30 * SECOND,
        quota_preemption_delay_ns=0,
        queue_sort_policy=QueueSortPolicy.FAIR,
        gang_admission=GangAdmission.HOLD,
        reservation_max_nodes_percent=5,
    )
    assert expected == QueueProperties.of({"something.else": "1"})


@pytest.mark.parametrize(
    ("key", "text", "field", "expected"),
    [
        (SORT, "fifo", "application_sort_policy", ApplicationSortPolicy.FIFO),
        (SORT, "fair", "application_sort_policy", ApplicationSortPolicy.FAIR),
        (SORT, "stateaware", "application_sort_policy", ApplicationSortPolicy.STATEAWARE),
        (SORT, "Fair", "application_sort_policy", ApplicationSortPolicy.FIFO),
        (SORT, "", "application_sort_policy", ApplicationSortPolicy.FIFO),
        (SORT_PRIORITY, "Disabled", "application_sort_priority", False),
        (SORT_PRIORITY, "ENABLED", "application_sort_priority", True),
        (SORT_PRIORITY, "false", "application_sort_priority", True),
        (FENCE, "Fence", "priority_fence", True),
        (FENCE, "default", "priority_fence", False),
        (FENCE, "wall", "priority_fence", False),
        (OFFSET, "-2147483648", "priority_offset", -(2**31)),
        (OFFSET, "+7", "priority_offset", 7),
        (OFFSET, "2147483648", "priority_offset", 0),
        (OFFSET, "1.5", "priority_offset", 0),
        (OFFSET, "9" * 5000, "priority_offset", 0),
        (PREEMPTION, "FENCE", "preemption_policy", PreemptionPolicy.FENCE),
        (PREEMPTION, "disabled", "preemption_policy", PreemptionPolicy.DISABLED),
        (PREEMPTION, "off", "preemption_policy", PreemptionPolicy.DEFAULT),
        (DELAY, "1h30m", "preemption_delay_ns", 5400 * SECOND),
        (DELAY, "0", "preemption_delay_ns", None),
        (DELAY, "-5s", "preemption_delay_ns", None),
        (DELAY, "soon", "preemption_delay_ns", None),
        (BACKOFF, "18446744073709551615", "backoff_count", 2**64 - 1),
        (BACKOFF, "18446744073709551616", "backoff_count", 0),
        (BACKOFF, "-1", "backoff_count", 0),
        (BACKOFF_DELAY, "10s", "backoff_delay_ns", 10 * SECOND),
        (BACKOFF_DELAY, "0s", "backoff_delay_ns", 30 * SECOND),
        (QUOTA_DELAY, "60s", "quota_preemption_delay_ns", 60 * SECOND),
        (QUOTA_DELAY, "-1s", "quota_preemption_delay_ns", 0),
        (QUEUE_SORT, "fifo", "queue_sort_policy", QueueSortPolicy.FIFO),
        (QUEUE_SORT, "lifo", "queue_sort_policy", QueueSortPolicy.FAIR),
        (UNIT, "Application", "preemption_unit", PreemptionUnit.APPLICATION),
        (UNIT, "allocation", "preemption_unit", PreemptionUnit.ALLOCATION),
        (UNIT, "gang", "preemption_unit", None),
        (BUDGET, "5/10m", "preemption_budget", PreemptionBudget(5, False, 600 * SECOND)),
        (BUDGET, "10%/1h", "preemption_budget", PreemptionBudget(10, True, 3600 * SECOND)),
        (BUDGET, "0/1s", "preemption_budget", PreemptionBudget(0, False, SECOND)),
        (BUDGET, "None", "preemption_budget", PreemptionBudget()),
        (BUDGET, "101%/1h", "preemption_budget", PreemptionBudget()),
        (BUDGET, "5/0s", "preemption_budget", PreemptionBudget()),
        (BUDGET, "5/-1m", "preemption_budget", PreemptionBudget()),
        (BUDGET, "5", "preemption_budget", PreemptionBudget()),
        (BUDGET, "-5/1m", "preemption_budget", PreemptionBudget()),
        (BUDGET, f"{2**31}/1m", "preemption_budget", PreemptionBudget()),
        (BUDGET, "5/10m/2", "preemption_budget", PreemptionBudget()),
        (COOLDOWN, "5m", "preemption_cooldown_ns", 300 * SECOND),
        (COOLDOWN, "0", "preemption_cooldown_ns", 0),
        (COOLDOWN, "-5m", "preemption_cooldown_ns", 0),
        (GRACE, "30s", "preemption_grace_ns", 30 * SECOND),
        (GRACE, "thirty", "preemption_grace_ns", 0),
        (GANG, "immediate", "gang_admission", GangAdmission.IMMEDIATE),
        (GANG, "later", "gang_admission", GangAdmission.HOLD),
        (PERCENT, "0", "reservation_max_nodes_percent", 0),
        (PERCENT, "100", "reservation_max_nodes_percent", 100),
        (PERCENT, "101", "reservation_max_nodes_percent", 5),
        (PERCENT, "-1", "reservation_max_nodes_percent", 5),
    ],
)
def test_a_bad_value_counts_as_none(key: str, text: str, field: str, expected: object) -> None:
    assert expected == getattr(QueueProperties.of({key: text}), field)


@pytest.mark.parametrize(
    ("key", "parent", "expected"),
    [
        (SORT, "fair", "fair"),
        (SORT_PRIORITY, "disabled", "disabled"),
        (FENCE, "fence", "default"),
        (OFFSET, "100", "0"),
        (PREEMPTION, "disabled", "disabled"),
        (PREEMPTION, "Disabled", "Disabled"),
        (PREEMPTION, "fence", "default"),
        (PREEMPTION, "nonsense", "default"),
        (DELAY, "1s", "1s"),
        (BACKOFF, "3", "3"),
        (BACKOFF_DELAY, "1s", "1s"),
        (QUOTA_DELAY, "1s", "1s"),
        (QUEUE_SORT, "fifo", "fifo"),
        (GANG, "immediate", "immediate"),
        ("something.else", "x", "x"),
    ],
)
def test_what_a_parent_hands_down(key: str, parent: str, expected: str) -> None:
    assert {key: expected} == effective_properties({key: parent}, {})


def test_own_properties_lie_on_top() -> None:
    parent = {SORT: "fair", OFFSET: "5", DELAY: "1s"}
    own = {OFFSET: "7", DELAY: "2s", FENCE: "fence"}
    expected = {SORT: "fair", OFFSET: "7", DELAY: "2s", FENCE: "fence"}
    assert expected == effective_properties(parent, own)
    expected = {SORT: "fair", OFFSET: "5", DELAY: "1s"}
    assert expected == parent


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1h30m", 5400 * SECOND),
        ("300ms", 300_000_000),
        ("1.5h", 5400 * SECOND),
        (".5s", SECOND // 2),
        ("1.s", SECOND),
        ("1us", 1000),
        ("1\u00b5s", 1000),
        ("1\u03bcs", 1000),
        ("7ns", 7),
        ("2h3m4s5ms6us7ns", 7384 * SECOND + 5_006_007),
        ("0", 0),
        ("-1m", -60 * SECOND),
        ("+1m", 60 * SECOND),
        ("0.9ns", 0),
        ("9223372036854775807ns", 2**63 - 1),
        ("9223372036854775808ns", None),
        ("2562048h", None),
        ("9" * 5000 + "s", None),
        ("0." + "3" * 5000 + "s", 333_333_333),
        ("", None),
        ("5", None),
        ("s", None),
        (".s", None),
        ("1d", None),
        ("1mh", None),
        ("1 s", None),
        ("1e3s", None),
        ("--1s", None),
        ("1S", None),
    ],
)
def test_durations(text: str, expected: int | None) -> None:
    assert expected == parse_duration(text)


@given(st.text(alphabet="0123456789.-+hmsnu\u00b5 ", max_size=20))
def test_any_text_is_a_duration_or_none(text: str) -> None:
    assert isinstance(parse_duration(text), int | None)


@given(st.dictionaries(st.sampled_from([SORT, OFFSET, DELAY, BACKOFF, PERCENT]), st.text()))
def test_no_property_ever_fails(properties: dict[str, str]) -> None:
    assert isinstance(QueueProperties.of(properties), QueueProperties)
