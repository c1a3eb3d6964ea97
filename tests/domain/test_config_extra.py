"""The extra configuration of a resource manager: defaults, bad values, what counts."""

import pytest

from yunikorn_actors.config import ExtraConfig

SECOND = 10**9


def test_defaults() -> None:
    expected = ExtraConfig(
        paused_timeout_ns=None,
        undelivered_max=10_000,
        unhandled_max=10_000,
        events_tracked=True,
        event_push_capacity=None,
        event_ring_capacity=None,
        event_streams_max=100,
    )
    assert expected == ExtraConfig.of({}) == ExtraConfig.of({"service.clusterId": "x"})


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("rm.pausedTimeout", "10m", ExtraConfig(paused_timeout_ns=600 * SECOND)),
        ("rm.maxUndelivered", "7", ExtraConfig(undelivered_max=7)),
        ("rm.maxUnhandled", "7", ExtraConfig(unhandled_max=7)),
        ("event.trackingEnabled", "F", ExtraConfig(events_tracked=False)),
        ("event.trackingEnabled", "1", ExtraConfig()),
        ("event.requestCapacity", "20", ExtraConfig(event_push_capacity=20)),
        ("event.ringBufferCapacity", "20", ExtraConfig(event_ring_capacity=20)),
        ("event.maxStreams", "0", ExtraConfig(event_streams_max=0)),
        ("log.level", "debug", ExtraConfig(log_level="DEBUG")),
        ("log.level", "WARN", ExtraConfig(log_level="WARNING")),
        ("log.level", "Panic", ExtraConfig(log_level="CRITICAL")),
        ("log.level", "-7", ExtraConfig(log_level="DEBUG")),
        ("log.level", "0", ExtraConfig(log_level="INFO")),
        ("log.level", "2", ExtraConfig(log_level="ERROR")),
        ("log.level", "5", ExtraConfig(log_level="CRITICAL")),
        ("health.checkInterval", "1m30s", ExtraConfig(health_check_ns=90 * SECOND)),
        ("health.checkInterval", "0", ExtraConfig(health_check_ns=0)),
        ("health.checkInterval", "-1s", ExtraConfig(health_check_ns=-SECOND)),
    ],
)
def test_values(key: str, text: str, expected: ExtraConfig) -> None:
    assert expected == ExtraConfig.of({key: text})


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("rm.pausedTimeout", "-1s"),
        ("rm.pausedTimeout", "soon"),
        ("rm.maxUndelivered", "0"),
        ("rm.maxUndelivered", "-3"),
        ("rm.maxUnhandled", "9" * 30),
        ("event.trackingEnabled", "yes"),
        ("event.requestCapacity", "0"),
        ("event.ringBufferCapacity", "1.5"),
        ("event.maxStreams", "-1"),
        ("event.maxStreams", "many"),
        ("log.level", "loud"),
        ("log.level", "1.5"),
        ("health.checkInterval", "often"),
        ("health.checkInterval", "30"),
    ],
)
def test_a_bad_value_is_as_good_as_none(key: str, text: str) -> None:
    assert ExtraConfig() == ExtraConfig.of({key: text})
    (fault,) = ExtraConfig.faults_of({key: text, "service.x": text, "log.level ": text})
    assert f"{key}: {text!r} is no value for it and counts as not set" == fault


def test_what_is_not_set_is_not_bad() -> None:
    assert () == ExtraConfig.faults_of({"log.level": "", "health.checkInterval": "-1s", "x": "y"})
