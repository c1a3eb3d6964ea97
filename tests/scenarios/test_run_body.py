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
        (_hang, ["a.yaml: does not end within 0.1 s"]),
        (_die, ["a.yaml: its process ended without a result"]),
    ],
)
def test_each_file_has_a_time_limit_and_the_next_one_is_run(
    runs: Callable[[], list[str]], expected: list[str]
) -> None:
    runner: Any = BODY["_Runner"]
    names = runner.faults.__globals__
    names["LIMIT_S"], names["_faults"] = 0.1 if runs is _hang else 30, lambda *_: runs()
    started = runner({})
    try:
        assert [] == started.faults()
        for name in ("a.yaml", "b.yaml"):
            started.begin(name, Path(name))
            assert [it.replace("a.yaml", name) for it in expected] == started.faults()
    finally:
        started.close()


def test_each_fault_of_several_files_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two at once, and more files than that: what was begun last is waited for as well."""
    for name in ("a", "b", "c", "d", "e"):
        (tmp_path / f"{name}.yaml").write_text("")
    main: Any = BODY["main"]
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setitem(main.__globals__, "waiting_for", dict)
    monkeypatch.setitem(main.__globals__, "_faults", lambda name, *_: [name] * (name != "c.yaml"))
    assert 1 == main(tmp_path)
    last = "5 files, 0 of them wait for a feature, 4 faults"
    assert ["a.yaml", "b.yaml", "d.yaml", "e.yaml", last] == capsys.readouterr().out.splitlines()
