"""Settings are checked when they are made, and times may be given as text."""

from typing import Any

import msgspec
import pytest

from yunikorn_actors import InvalidSetting, Settings

SECOND = 10**9
TIMES = [field for field in Settings.__struct_fields__ if field.endswith("_ns")]
COUNTS = [field for field in Settings.__struct_fields__ if not field.endswith("_ns")]
NEVER: list[Any] = [0, -1, 2**63, 1.5, True, None, "", [30], b"30s"]
NO_TIME: list[Any] = ["soon", "30", "0s", "-5s", "30 s"]
NO_COUNT: list[Any] = ["7", "7s"]


@pytest.mark.parametrize("field", Settings.__struct_fields__)
def test_what_no_setting_can_be_is_refused_by_name(field: str) -> None:
    bad = NEVER + (NO_TIME if field in TIMES else NO_COUNT)
    allowed = "a duration above 0" if field in TIMES else "a whole number from 1"
    for value in bad:
        with pytest.raises(InvalidSetting) as raised:
            Settings(**{field: value})
        error = raised.value
        assert (field, value) == (error.field, error.value)
        assert error.allowed.startswith(allowed)
        assert str(error).startswith(f"Settings.{field}: {value!r} is not allowed: give {allowed}")


@pytest.mark.parametrize("field", TIMES)
def test_a_time_may_be_text(field: str) -> None:
    settings = Settings(**{field: "1m30s"})
    assert 90 * SECOND == getattr(settings, field)
    assert settings == Settings(**{field: 90 * SECOND})


def test_the_least_and_the_most_are_allowed() -> None:
    for number in (1, 2**63 - 1):
        settings = Settings(**dict.fromkeys(Settings.__struct_fields__, number))
        assert {number} == set(msgspec.structs.asdict(settings).values())


def test_a_huge_value_makes_no_huge_message() -> None:
    with pytest.raises(InvalidSetting) as raised:
        Settings(history_ns="9" * 1_000_000)
    assert len(str(raised.value)) < 300


def test_settings_that_are_read_are_checked_as_well() -> None:
    with pytest.raises(msgspec.ValidationError, match="rejected_max: 0 is not allowed"):
        msgspec.json.decode(b'{"rejected_max": 0}', type=Settings)


def test_settings_that_are_changed_are_checked_as_well() -> None:
    with pytest.raises(InvalidSetting):
        msgspec.structs.replace(Settings(), cycle_max=0)
