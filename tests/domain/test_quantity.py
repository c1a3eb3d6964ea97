"""Worked examples: quantities."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yunikorn_actors.values.quantity import QuantityError, compared, parse_quantity, readable

INT64_MAX = 2**63 - 1


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("vcore", "10", 10_000),
        ("vcore", "500m", 500),
        ("vcore", "1k", 1_000_000),
        ("vcore", "2 k", 2_000_000),
        ("vcore", "9P", 9 * 10**18),
        ("vcore", "1Ki", 1_024_000),
        ("vcore", "0", 0),
        ("memory", "10", 10),
        ("memory", " 5M ", 5_000_000),
        ("memory", "5 M", 5_000_000),
        ("memory", "5 Mi", 5_242_880),
        ("memory", "1Ki", 1024),
        ("memory", "7Ei", 8_070_450_532_247_928_832),
        ("memory", "9E", 9 * 10**18),
        ("memory", "007", 7),
        ("memory", "0" * 5000 + "7", 7),
        ("memory", str(INT64_MAX), INT64_MAX),
        ("pods", "3G", 3 * 10**9),
        ("gpu", "2T", 2 * 10**12),
    ],
)
def test_quantity_is_read_in_base_units(kind: str, text: str, expected: int) -> None:
    assert expected == parse_quantity(kind, text)


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("vcore", "1.5", "invalid quantity"),
        ("vcore", "-1", "invalid quantity"),
        ("vcore", "+1", "invalid quantity"),
        ("vcore", "", "invalid quantity"),
        ("vcore", "1e3", "invalid quantity"),
        ("vcore", "m", "invalid quantity"),
        ("vcore", "1 0", "invalid quantity"),
        ("vcore", "\u0661", "invalid quantity"),
        ("vcore", "2mi", "invalid suffix"),
        ("vcore", "10P", "invalid quantity: overflow"),
        ("vcore", "9E", "invalid quantity: overflow"),
        ("memory", "10m", "invalid suffix"),
        ("memory", "5K", "invalid suffix"),
        ("memory", "8Ei", "invalid quantity: overflow"),
        ("memory", "10E", "invalid quantity: overflow"),
        ("memory", str(INT64_MAX + 1), "invalid quantity: overflow"),
        ("memory", "9" * 5000, "invalid quantity: overflow"),
        ("memory", "5Mib", "invalid quantity"),
        ("memory", "5\n5", "invalid quantity"),
    ],
)
def test_other_texts_are_refused(kind: str, text: str, words: str) -> None:
    with pytest.raises(QuantityError, match=words):
        parse_quantity(kind, text)


@given(st.integers(min_value=0, max_value=INT64_MAX))
def test_integers_stand_for_themselves(number: int) -> None:
    assert number == parse_quantity("memory", str(number))


@pytest.mark.parametrize(
    ("amounts_", "expected"),
    [
        ({"vcore": 500}, "vcore 500m"),
        ({"vcore": 1500, "memory": 3 << 29}, "memory 1.5Gi, vcore 1.5"),
        ({"vcore": 7_175_250}, "vcore 7175.25"),
        ({"vcore": 0, "memory": 0}, "memory 0, vcore 0"),
        ({"memory": 1_500_000_000}, "memory 1.5G"),
        ({"memory": 16_786_681_856}, "memory 15.634Gi"),
        ({"memory": 1}, "memory 1"),
        ({"pods": 110, "nvidia.com/gpu": 4}, "nvidia.com/gpu 4, pods 110"),
        ({}, ""),
    ],
)
def test_people_read_each_amount_in_its_own_unit(amounts_: dict[str, int], expected: str) -> None:
    assert expected == readable(amounts_)


@given(st.integers(min_value=0, max_value=INT64_MAX), st.integers(min_value=0, max_value=INT64_MAX))
def test_amounts_that_differ_are_written_differently(one: int, other: int) -> None:
    for kind in ("vcore", "memory", "pods"):
        texts = compared({kind: one}, {kind: other})
        assert (one == other) == (texts[0] == texts[1])


def test_what_rounding_would_hide_is_not_rounded() -> None:
    assert compared({"memory": (1 << 30) + 1}, {"memory": 1 << 30}) == (
        "memory 1073741825",
        "memory 1Gi",
    )
