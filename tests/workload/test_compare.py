"""Variants are compared job by job, and it is said how sure the difference is."""

import json
import re
from functools import partial
from itertools import product
from math import sqrt
from pathlib import Path
from random import Random
from statistics import fmean

import pytest

from yunikorn_actors.cli import main
from yunikorn_actors.workload import Options, WorkloadError
from yunikorn_actors.workload.campaign import RunJob, _keep, run, run_all
from yunikorn_actors.workload.charts import Axis, bars, time_axis
from yunikorn_actors.workload.cluster import guaranteed_shares
from yunikorn_actors.workload.compare import WEEK_S, Comparison, Condition, _resampled, compare
from yunikorn_actors.workload.figures import percentile
from yunikorn_actors.workload.page import page

SWF = "sample:cluster.swf"
OPEN = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: default}]}]}]"
NARROW = OPEN.replace("{name: default}]", "{name: default, resources: {max: {vcore: 48}}}]")
SERIAL = partial(run_all, executor="serial")


def compared(*, draws: int = 0, other: str = NARROW, limit: int = 80) -> Comparison:
    variants = {
        name: RunJob(log=SWF, config=config, limit=limit)
        for name, config in (("open", OPEN), ("other", other))
    }
    return compare(variants, draws=draws, run_all=SERIAL)


def test_the_one_with_less_room_loses() -> None:
    found = compared(draws=3)
    (difference,) = found.differences
    assert difference.first < difference.other
    assert difference.more
    assert difference.more + difference.fewer <= 80
    assert difference.shaken is not None
    low, high = difference.shaken
    assert 0 < low <= high
    assert difference.resampled[0] <= difference.change <= difference.resampled[1]
    kinds = [kind for kind, *_ in difference.groups]
    assert ["user", "queue", "size", "hour"] == list(dict.fromkeys(kinds))


def test_what_is_not_done_at_all_is_said() -> None:
    found = compared(other=NARROW.replace("48", "16"))
    (difference,) = found.differences
    undone = sum(row["state"] == "waiting" for row in found.tables["other"])
    assert 0 < undone == difference.undone
    assert f"{undone} are not done at all" in found.verdict


def test_equal_ones_are_not_told_apart() -> None:
    found = compared(other=OPEN + "\n")
    assert found.verdict.startswith("no difference between other and open can be told")


def test_the_sums_of_the_groups_are_the_whole() -> None:
    (difference,) = compared().differences
    of_queues = [it for it in difference.groups if it[0] == "queue"]
    assert pytest.approx(difference.other) == of_queues[0][4]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("mean wait > 1.0x", True),
        ("mean wait < 1.0x", False),
        ("max wait of root.default > 5", True),
        ("p95 slowdown of u1 > 1000x", False),
    ],
)
def test_a_condition_for_scripts(condition: str, holds: bool) -> None:
    assert holds == bool(Condition.parse(condition).failed(compared()))


@pytest.mark.parametrize(
    "condition",
    [
        "wait > 2",
        "mean wait of nobody > 1x",
        "mean wait = 3",
        "max wait > 1.2.3",
        "max wait > .",
        "mean waitof a > 1",
        "max wait >",
    ],
)
def test_a_condition_that_means_nothing(condition: str) -> None:
    with pytest.raises(WorkloadError):
        Condition.parse(condition).failed(compared())


def test_the_page_holds_everything_and_loads_nothing() -> None:
    text = compared().page()
    assert 4 <= text.count("<svg")
    assert not re.search(r"(?:src|href)=|url\(|https?://(?!www\.w3\.org)", text)
    for title in ("Utilisation", "Waits", "Slowdown by size", "Who wins with other"):
        assert title in text
    assert not re.search(r"\$[a-z]+", text)


def test_names_from_outside_are_text() -> None:
    found = compared()
    markup = "<img src=x onerror=alert(1)>"
    assert markup not in page({markup: next(iter(found.tables.values()))}, verdict=markup)


def test_what_queues_are_guaranteed() -> None:
    text = NARROW.replace("max: {vcore: 48}", "guaranteed: {vcore: 16}")
    assert {"root.default": 0.25} == guaranteed_shares(text, "vcore", 64_000)
    assert {} == guaranteed_shares("", "vcore", 64_000)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("one", OPEN), ("two", NARROW)):
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    given = [str(tmp_path / "one.yaml"), str(tmp_path / "two.yaml"), SWF]
    command = [
        "workload",
        "compare",
        *given,
        "--limit",
        "200",
        "--draws",
        "1",
        "--executor",
        "serial",
    ]
    target = tmp_path / "page.html"
    assert 1 == main([*command, "-o", str(target), "--fail-if", "max wait > 1.01x"])
    out = capsys.readouterr().out
    assert "with two jobs wait more than with one" in out
    assert "failed: two: max wait > 1.01x" in out
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert 0 == main([*command, "--json", "--fail-if", "max wait > 100x"])
    assert {"one", "two"} == json.loads(capsys.readouterr().out)["summaries"].keys()
    assert 2 == main(["workload", "compare", given[0], SWF])


# -- many runs

JOBS = [RunJob(log=SWF, limit=30, shake_s=60, options=Options(seed=seed)) for seed in range(4)]


def test_a_run_is_a_function_of_its_job() -> None:
    assert run(JOBS[1]) == run(JOBS[1])
    assert run(JOBS[1])["digest"] != run(JOBS[2])["digest"]


@pytest.mark.timeout(200)
@pytest.mark.slow
def test_every_executor_has_the_same_results() -> None:
    assert SERIAL(JOBS) == run_all(JOBS, executor="processes", workers=2)


def test_a_campaign_goes_on_where_it_stopped(tmp_path: Path) -> None:
    def interrupt(done: int, _: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SERIAL(JOBS, cache=tmp_path, progress=interrupt)
    kept = sorted(tmp_path.iterdir())
    assert 2 == len(kept)
    _, text = kept[0].read_text().split("\n")
    _keep(text.replace('"seed": ', '"kept": 1, "seed": '), kept[0])
    results = SERIAL(JOBS, cache=tmp_path)
    assert 1 == sum("kept" in it for it in results)
    assert 4 == len([*tmp_path.iterdir()])


def test_what_is_damaged_in_a_cache_is_made_again(tmp_path: Path) -> None:
    made = SERIAL(JOBS, cache=tmp_path)
    files = sorted(tmp_path.iterdir())
    damage = (
        b"",
        b'{"done": 1}',
        b"\xff\xfe",
        files[3].read_bytes().replace(b'"done": ', b'"done": 1'),
    )
    for file, data in zip(files, damage, strict=True):
        file.write_bytes(data)
    assert made == SERIAL(JOBS, cache=tmp_path)
    assert made == SERIAL(JOBS, cache=tmp_path, progress=lambda done, _: [1][4 - done])


def test_two_campaigns_write_one_entry_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, other = Path.replace, []

    def late(self: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "replace", replace)
        other.append(SERIAL(JOBS[:1], cache=tmp_path))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", late)
    made = SERIAL(JOBS[:1], cache=tmp_path)
    assert other == [made]
    assert 1 == len([*tmp_path.iterdir()])


def test_draws_that_cannot_be_made() -> None:
    with pytest.raises(WorkloadError, match="draws -1: write a number from 0 to"):
        compared(draws=-1)


def test_so_many_workers_as_there_cannot_be() -> None:
    with pytest.raises(WorkloadError, match="workers -1: write a number from 1 on"):
        run_all(JOBS, workers=-1)


def test_another_log_has_other_results(tmp_path: Path) -> None:
    log = tmp_path / "a.swf"
    for run_s in (60, 70):
        log.write_text(f"1 0 -1 {run_s} 1 -1 -1 1 -1 -1 1 1 1 -1 1 -1 -1 -1", encoding="utf-8")
        (result,) = SERIAL([RunJob(log=str(log), nodes="1")], cache=tmp_path / "kept")
        assert run_s == result["makespan_s"]


def test_an_executor_that_is_none() -> None:
    with pytest.raises(WorkloadError, match="write serial, processes or dask"):
        run_all(JOBS, executor="threads")


def test_the_command_of_a_campaign(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "campaign.yaml"
    file.write_text(
        f"{{log: '{SWF}', nodes: [64, 4x16], limit: 20, seed: [1, 2], faults: 0.1}}",
        encoding="utf-8",
    )
    report = tmp_path / "report.csv"
    given = ["workload", "campaign", str(file), "-o", str(report), "--executor", "serial"]
    text = file.read_text()
    for wrong, what in (
        (text.replace("[1, 2]", "[]"), "a list is empty"),
        ("[]", "Expected `object`, got `array`"),
        ("{log: a, options: {seed: 4}}", "options: no field of a run: the fields are checked,"),
    ):
        file.write_text(wrong)
        assert 2 == main(given)
        assert f"no campaign: {what}" in capsys.readouterr().err
    file.write_text(text)
    assert 0 == main(given)
    assert "4 runs" in capsys.readouterr().out
    lines = report.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("log,nodes,limit,seed,faults,done,wait mean")
    assert 5 == len(lines)
    file.write_text(f"{{log: '{SWF}', color: red}}", encoding="utf-8")
    assert 2 == main(given)
    assert "color" in capsys.readouterr().err


@pytest.mark.parametrize("end_s", [1.0, 59, 200, 7_201, 49_100, 260_000, 2_783_000, 4e9])
def test_a_time_axis_has_few_round_marks_and_a_unit(end_s: float) -> None:
    axis = time_axis(end_s)
    ticks = [float(axis.written(it).replace(",", "")) for it in axis.ticks()]
    assert 4 <= len(ticks) <= 8
    assert 0 == ticks[0] < ticks[-1] <= end_s / axis.unit
    assert f"{ticks[1]:g}".strip("0.e+-")[0] in "125"
    assert axis.name.split()[0] in {"seconds", "minutes", "hours", "days"}


def test_a_slowdown_of_one_is_a_bar_that_can_be_seen() -> None:
    drawn = bars(
        "", {"a": [1.0, None], "b": [100.0, 3.0]}, ["one", "two"], "", Axis("", 100, is_log=True)
    )
    heights = [float(it) for it in re.findall(r'<rect.*?height="([0-9.]+)"', drawn)]
    assert 3 == len(heights)
    assert all(it >= 2 for it in heights)


def weeks_of(effects: list[float], random: Random) -> tuple[list[float], list[float]]:
    """Return submits and changes of jobs whose weeks differ by these."""
    parts = [part / 10 for part in range(10)] + [0.999]
    submits = [(at + part) * WEEK_S for at in range(len(effects)) for part in parts]
    return submits, [effects[int(it // WEEK_S)] + random.gauss(0, 50) for it in submits]


def test_the_interval_holds_the_true_change_as_often_as_it_says() -> None:
    random, held, worlds = Random(3), 0, 120  # noqa: S311 - repeatable
    for _ in range(worlds):
        effects = [random.gauss(10, 100) for _ in range(6)]
        low, high = _resampled(*weeks_of(effects, random))
        held += low <= 10 <= high
    assert 0.9 <= held / worlds <= 0.99


def test_the_interval_is_that_of_all_draws_of_blocks() -> None:
    """Of six blocks there are 46,656 draws: all of them, in place of a thousand by chance."""
    random = Random(4)  # noqa: S311 - repeatable
    submits, changes = weeks_of([-300.0, -20.0, 40.0, 500.0, 10.0, 90.0], random)
    means = [fmean(changes[at : at + 11]) for at in range(0, 66, 11)]
    draws = sorted(sum(some) / 6 for some in product(means, repeat=6))
    mean, student = fmean(changes), 2.570582 / 1.959964 * sqrt(6 / 5)
    wanted = [mean + student * (percentile(draws, it) - mean) for it in (2.5, 97.5)]
    off = 0.05 * (wanted[1] - wanted[0])
    assert wanted == pytest.approx([*_resampled(submits, changes)], abs=off)
