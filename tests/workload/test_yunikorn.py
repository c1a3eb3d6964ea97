"""The answers of a YuniKorn cluster become a workload; what they do not say is listed."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from yunikorn_actors.cli import main
from yunikorn_actors.config import parse_config
from yunikorn_actors.workload import Job, Workload, WorkloadError, play, read_nodes
from yunikorn_actors.workload.job_stream import open_text
from yunikorn_actors.workload.lives import STILL_RAN, STILL_WAITED
from yunikorn_actors.workload.yunikorn import read_yunikorn

DUMP, EVENTS = "sample:yunikorn-dump.json", "sample:yunikorn-events.json"


def sample(name: str) -> dict[str, Any]:
    with open_text(Path(name)) as text:
        read: dict[str, Any] = json.loads(text.read())
    return read


def by_key(jobs: list[Job]) -> dict[str, Job]:
    return {it.id.partition("#")[0]: it for it in jobs}


def test_a_dump_and_events() -> None:
    lives = read_yunikorn([DUMP, EVENTS])
    jobs = by_key(lives.jobs)
    waited = jobs["app-etl/etl-3"]
    assert (48, 540, "bob", "dev", "root.dev.batch") == (
        waited.waited_s, waited.run_s, waited.user, waited.group, waited.queue,
    )  # fmt: skip
    assert {"memory": 4 << 30, "pods": 1, "vcore": 4_000} == waited.size
    assert (50, 49.99) == (jobs["app-etl/etl-0"].run_s + 0.01, jobs["app-etl/etl-0"].run_s)
    assert not [key for key in jobs if "tg-1" in key], "placeholders are no jobs"
    assert {"exec-0"} == {key.partition("/")[2] for key in jobs if key.startswith("app-gang")}
    assert (10, 590, 2_000) == (
        jobs["app-old/all"].waited_s, jobs["app-old/all"].run_s, jobs["app-old/all"].size["vcore"],
    )  # fmt: skip
    assert ("nobody", "dev") == (jobs["app-short/s-0"].user, jobs["app-short/s-0"].group)
    assert {"node-1": 7_900, "node-2": 8_000} == {
        it.id: it.resources["vcore"] for it in lives.nodes
    }


def test_what_they_lack_is_listed() -> None:
    findings = read_yunikorn([DUMP, EVENTS]).findings
    assert {
        "node of another partition": 1,
        "application of another partition": 1,
        "placeholder": 2,
        "no event of its request: taken as submitted when it was placed": 1,
        "ended before its events begin: one job, of the most that it used": 1,
        "application: no dump says who its user is": 1,
    } == findings.left_out
    assert {STILL_RAN: 4, STILL_WAITED: 1} == findings.assumed
    assert [
        "applications[6]: there is no 'queueName'",
        "nodes of default[2]: there is no 'capacity'",
        "an event has no time",
        "allocations of app-web[1]: there is no 'allocationKey'",
    ] == [it.what for it in findings.faults]


def test_a_part_of_a_dump_that_is_no_list_is_named(tmp_path: Path) -> None:
    (tmp_path / "dump").write_text(json.dumps({**sample(DUMP), "applications": "many"}))
    faults = read_yunikorn([tmp_path / "dump"]).findings.faults
    assert "applications: it is no list" in [it.what for it in faults]


def test_the_configuration_is_that_of_the_partition() -> None:
    config = parse_config(read_yunikorn([DUMP]).config)
    (partition,) = config.partitions
    root = partition.root
    assert ["prod", "dev"] == [it.name for it in root.children]
    assert {"vcore": 8_000} == dict(root.children[0].guaranteed or {})


def test_either_alone_says_less() -> None:
    dump, events = by_key(read_yunikorn([DUMP]).jobs), by_key(read_yunikorn([EVENTS]).jobs)
    assert {
        "app-etl/etl-3",
        "app-etl/etl-4",
        "app-web/web-0",
        "app-gang/exec-0",
        "app-old/all",
    } == dump.keys()
    assert dump.keys() ^ events.keys() == {"app-old/all", "app-etl/etl-0", "app-etl/etl-1",
                                           "app-short/s-0", "app-gang/tg-1-1"}  # fmt: skip
    assert "nobody" == events["app-etl/etl-3"].user
    assert "root.dev.batch" == events["app-etl/etl-3"].queue


def test_a_stream_of_events_says_what_a_batch_says(tmp_path: Path) -> None:
    lines = [{"InstanceUUID": "x"}, *sample(EVENTS)["EventRecords"]]
    stream = tmp_path / "stream"
    stream.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    assert read_yunikorn([EVENTS]).jobs == read_yunikorn([stream]).jobs


def test_a_stream_that_is_cut_in_a_line_is_read_up_to_there(tmp_path: Path) -> None:
    lines = [json.dumps(it) for it in sample(EVENTS)["EventRecords"]]
    for name, kept in (("whole", lines[:-1]), ("cut", [*lines[:-1], lines[-1][:-30]])):
        (tmp_path / name).write_text("\n".join(kept))
    whole, cut = (read_yunikorn([DUMP, tmp_path / it]) for it in ("whole", "cut"))
    assert whole.jobs == cut.jobs
    (fault,) = cut.findings.faults[: len(cut.findings.faults) - len(whole.findings.faults)]
    assert fault.what.startswith(f"cut:{len(lines)}: Input data was truncated")


def test_amounts_as_version_1_5_wrote_them(tmp_path: Path) -> None:
    dump = sample(DUMP)
    for app in dump["applications"]:
        for it in app.get("allocations", ()):
            it["resource"] = {"Resources": it["resource"]}
    file = tmp_path / "dump"
    file.write_text(json.dumps(dump), encoding="utf-8")
    assert read_yunikorn([DUMP]).jobs == read_yunikorn([file]).jobs


def test_the_replay_waits_as_the_cluster_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == main(["workload", "from-yunikorn", DUMP, EVENTS, "-o", str(tmp_path)])
    out, err = capsys.readouterr()
    assert f"8 jobs, 2 nodes: {tmp_path}" in out
    assert "there is no 'capacity'" in err
    workload = Workload.read(tmp_path / "jobs.jsonl")
    config = (tmp_path / "queues.yaml").read_text(encoding="utf-8")
    table = play(workload, read_nodes(str(tmp_path / "nodes.yaml")), config)
    waited = {it.id: it.waited_s or 0 for it in workload.jobs()}
    # It still waited when the dump was made.
    still = "app-etl/etl-4#7"
    assert 0 == waited.pop(still)
    table = [row for row in table if row["job"] != still]
    nearly = {row["job"]: pytest.approx(row["wait"], abs=0.02) for row in table}
    # An application that was read whole waited for its place; its job has it at once.
    assert waited.pop("app-old/all#3") == nearly.pop("app-old/all#3").expected + 10
    assert waited == nearly


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", '{"a": 1}', "<html>"])
def test_what_is_no_answer_of_a_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    file = tmp_path / "answer"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(WorkloadError, match="answer"):
        read_yunikorn([file])
    assert 2 == main(["workload", "from-yunikorn", str(file), "-o", str(tmp_path / "out")])
    assert "answer" in capsys.readouterr().err
