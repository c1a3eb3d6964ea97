"""The benchmark of the journal runs, and says what it is for."""

import re

import pytest

from benchmarks.journal import main


def test_it_tells_what_a_journal_costs_and_how_long_a_start_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["--pairs", "100", "--running", "50", "--nodes", "10", "--alone"])
    alone, journal, start = capsys.readouterr().out.splitlines()
    assert re.match(r"alone +[\d,]+ pairs/s .* at most +0.0 MiB", alone)
    assert re.match(r"journal +[\d,]+ pairs/s .* longest handler of Context", journal)
    assert re.match(r"\d+ MiB; the next core begins after [\d.]+ s", start)


@pytest.mark.parametrize("text", ["0", "-1", "many"])
def test_it_runs_with_one_pair_at_least(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([f"--pairs={text}"])
    assert f"--pairs: give a whole number above 0, not '{text}'" in capsys.readouterr().err
