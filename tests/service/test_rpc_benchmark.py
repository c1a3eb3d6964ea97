"""The benchmark of gRPC on a tiny load: what it prints, never how fast."""

import pytest

pytest.importorskip("grpc")
from benchmarks.rpc import PLACES, main


def test_it_prints_a_row_for_each_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["--rounds", "1", "--asks", "200", "--releases", "3"])
    _, *rows = capsys.readouterr().out.splitlines()
    assert list(PLACES) == [row[:12].strip() for row in rows]
    assert all(float(figure) > 0 for row in rows for figure in row[12:].split())
