"""The run time that an ask declares is seen by `explain`, and so is one that counts as none."""

import pytest

from tests.helpers.support import APP, PARTITION, Lab
from yunikorn_actors.values.tags import TAG_RUNTIME

NONE = f"none: %r in {TAG_RUNTIME} is no number of seconds from 0 to 292 years"


def _runtime(tags: dict[str, str]) -> tuple[str, str]:
    lab = Lab()
    lab.nodes(n=2)
    lab.submit(APP)
    lab.ask("waits", vcore=5, tags=tags)
    lab.settle()
    why = lab.simulator.explain(APP, "waits", partition=PARTITION)
    return why.runtime, why.report()


@pytest.mark.parametrize(
    ("declared", "seen"), [("60", "60 s"), ("0.5", "0.5 s"), ("0", "0 s"), (" 7 ", "7 s")]
)
def test_of_an_ask(declared: str, seen: str) -> None:
    runtime, report = _runtime({TAG_RUNTIME: declared})
    assert seen == runtime
    assert f"\n  declared run time: {seen}\n" in report


@pytest.mark.parametrize("declared", ["soon", "-1", "inf", "nan", "1e300", "1h", "9223372037"])
def test_what_is_no_run_time_counts_as_none_and_says_so(declared: str) -> None:
    runtime, report = _runtime({TAG_RUNTIME: declared})
    assert NONE % declared == runtime
    assert f"\n  declared run time: {runtime}\n" in report


def test_a_long_text_is_cut() -> None:
    assert 200 > len(_runtime({TAG_RUNTIME: "x" * 10_000})[0])


def test_what_declares_nothing_shows_nothing() -> None:
    runtime, report = _runtime({})
    assert not runtime
    assert "declared" not in report
