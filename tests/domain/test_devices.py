"""Which devices hold how much: best fit of shares, whole ones that are idle."""

from collections.abc import Sequence

import pytest

from yunikorn_actors.values.devices import (
    Devices,
    could_be,
    devices_in,
    flaw_of_devices,
    give_back,
    hold,
    is_of_model,
    number_of,
    pick,
    take,
    written,
)
from yunikorn_actors.values.tags import GPU_DEVICES


@pytest.mark.parametrize(
    ("free", "amount", "chosen"),
    [
        ((1000, 1000), 500, (0,)),
        ((1000, 600), 500, (1,)),
        ((600, 500, 500), 500, (1,)),
        ((499, 499), 500, None),
        ((500, 500), 1000, None),
        ((500, 1000), 1000, (1,)),
        ((1000, 999, 1000, 1000), 2000, (0, 2)),
        ((1000, 999), 2000, None),
        ((1000, 1000), 1500, None),
        ((), 500, None),
        ((-200, 300), 300, (1,)),
    ],
)
def test_the_fullest_device_takes_a_share_and_idle_ones_are_whole(
    free: Sequence[int], amount: int, chosen: Devices | None
) -> None:
    assert chosen == pick(free, amount)
    assert chosen is None or hold(free, chosen, amount)


@pytest.mark.parametrize(
    ("devices", "amount"),
    [
        ((1,), 500),
        ((0, 1), 500),
        ((), 500),
        ((0,), 2000),
        ((0, 0), 2000),
        ((0, 1), 2000),
        ((2,), 500),
        ((-1,), 500),
        ((0,), 1500),
        ((), 0),
    ],
)
def test_what_devices_do_not_hold(devices: Devices, amount: int) -> None:
    """One has all free and the other 400."""
    assert not hold((1000, 400), devices, amount)


def test_what_is_taken_is_there_again_when_it_is_given_back() -> None:
    free = [1000, 700, 1000]
    take(free, (0, 2), 2000)
    take(free, (1,), 300)
    assert [0, 400, 0] == free
    # The node has become smaller: what ran on its last device has nothing to give back.
    del free[2]
    give_back(free, (0, 2), 2000)
    assert [1000, 400] == free


def test_only_a_share_of_one_and_whole_ones_are_sizes() -> None:
    sizes = [(0, 0), (1, 1), (999, 1), (1000, 1), (1001, 0), (3000, 3), (-5, 0)]
    assert sizes == [(amount, number_of(amount)) for amount, _ in sizes]


def test_a_tag_names_devices() -> None:
    assert "0,3" == written((0, 3))
    assert (0, 3) == devices_in({GPU_DEVICES: "0,3"})
    for text in ("", "0,", "x", "-1", "٣", "99999"):
        assert () == devices_in({GPU_DEVICES: text})
    assert could_be((3,), 400)
    assert not could_be((0, 3), 400)
    assert not could_be((3, 3), 2000)


def test_any_of_the_models_will_do() -> None:
    assert is_of_model("V100", "")
    assert is_of_model("V100", "A100|V100")
    assert not is_of_model("V100", "A100|V1000")
    assert not is_of_model("", "V100")


@pytest.mark.parametrize(
    ("attributes", "gpu", "said"),
    [
        ({}, 3, ""),
        ({GPU_DEVICES: "8"}, 8000, ""),
        ({GPU_DEVICES: "0"}, 0, ""),
        ({GPU_DEVICES: "8"}, 8, "8 devices are gpu 8000, and its capacity has 8"),
        ({GPU_DEVICES: "eight"}, 8000, "'eight' is no number of devices"),
        ({GPU_DEVICES: "-1"}, 0, "'-1' is no number of devices"),
        ({GPU_DEVICES: "2000"}, 2_000_000, "2000 devices are more than 1024"),
        ({GPU_DEVICES: "9" * 10_000}, 0, "is no number of devices"),
    ],
)
def test_a_node_says_how_many_it_has(attributes: dict[str, str], gpu: int, said: str) -> None:
    flaw = flaw_of_devices(attributes, {"gpu": gpu, "vcore": 1})
    assert (said in flaw) if said else not flaw
