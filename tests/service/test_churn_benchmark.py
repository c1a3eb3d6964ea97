"""The benchmark of coming and going, for a moment: what it prints, never how much."""

import pytest

pytest.importorskip("grpc")
pytest.importorskip("aiohttp")
from benchmarks import churn


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
