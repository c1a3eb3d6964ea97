"""The runner of bodies beside the repository: a file that does not end is a fault with its name."""

import os
import runpy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BODY = runpy.run_path(str(Path(__file__).with_name("run_body.py")))


def _hang() -> list[str]:
    time.sleep(60)
    return []


def _die() -> list[str]:
    os._exit(3)


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        (list, []),
        (lambda: ["a fault"], ["a fault"]),
        (_hang, ["a.yaml: does not end within 0.5 s"]),
        (_die, ["a.yaml: its process ended without a result"]),
    ],
)
def test_each_file_has_a_time_limit(runs: Callable[[], list[str]], expected: list[str]) -> None:
    within_limit: Any = BODY["_within_limit"]
    names = within_limit.__globals__
    names["LIMIT_S"], names["_faults"] = 0.5 if runs is _hang else 30, lambda *_: runs()
    assert expected == within_limit("a.yaml", Path("a.yaml"), {})
