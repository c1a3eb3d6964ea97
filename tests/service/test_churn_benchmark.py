"""The benchmark of coming and going, for a moment: what it prints, never how much."""

import re
from collections.abc import Callable

import pytest

pytest.importorskip("grpc")
pytest.importorskip("aiohttp")
from benchmarks import churn
from yunikorn_actors import SchedulerCore
from yunikorn_actors.lab.mutants.mutant import Mutant
from yunikorn_actors.machines.rm_proxy.rm_proxy import RmProxy
from yunikorn_actors.service.service import Serving


@pytest.mark.slow
def test_it_tells_what_both_processes_hold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(churn, "LIFE_S", 1.0)
    assert 0 == churn.main(["--minutes", "0.03", "--every", "0"])
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith("minute   lives")
    assert len(rows) > 1
    assert all(float(figure) >= 0 for row in rows for figure in row.split())
    assert {9} == {len(row.split()) for row in rows}


def announcing(old: str, new: str) -> Mutant:
    where = RmProxy._on_rm_new_allocations
    return Mutant(id="", source="", wrong="", where=where, old=old, new=new)


WRONG = {
    "dropped": (
        announcing("tuple(allocations(message))", "tuple(allocations(message))[1:]"),
        "was not notified of it",
    ),
    "sent to another manager": (
        announcing("message.rm_id, Call", "max(self.deliveries), Call"),
        # Of both managers one is the first to notice.
        "it has not asked for that|was not notified of it",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_an_announcement_that_is_wrong_ends_the_run(
    serve: Callable[..., Serving],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    what: str,
) -> None:
    mutant, sentence = WRONG[what]
    address = serve(SchedulerCore()).parts["grpc"].address
    monkeypatch.setattr(churn, "lines", lambda *_: iter([str(churn.lives(address, 30, 2.0))]))
    with mutant.applied():
        assert 1 == churn.main([])
    assert re.search(sentence, capsys.readouterr().err)
