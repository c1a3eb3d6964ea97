"""Logs are read as they are: every trap of the formats is in the samples of the package."""

import gzip
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from yunikorn_actors.workload import (
    Job,
    Mapping,
    Node,
    Workload,
    WorkloadError,
    job_stream,
    play,
    read_nodes,
)
from yunikorn_actors.workload.job_stream import open_text
from yunikorn_actors.workload.jobs import Findings, Numbered

SAMPLES = Path(job_stream.__file__).parent / "samples"
SWF = "sample:cluster.swf"
PODS, NODES = "sample:openb-pods.csv", "sample:openb-nodes.csv"
BATSIM = "sample:batsim.json"
LINE = "{id} {submit} -1 {run} {used} -1 -1 {wanted} {asked} {memory} 1 3 4 -1 2 1 -1 -1"


def line(**fields: object) -> str:
    known = {"id": 1, "submit": 0, "run": 60, "used": 4, "wanted": -1, "asked": -1, "memory": -1}
    return LINE.format(**{**known, **fields})


def read(tmp_path: Path, *lines: str, **options: object) -> Workload:
    file = tmp_path / "log"
    file.write_text("\n".join(lines), encoding="utf-8")
    return Workload.read(file, **options)  # type: ignore[arg-type]


def test_swf_with_every_trap() -> None:
    log = Workload.read(SWF)
    assert "swf" == log.survey.format
    assert "64" == log.survey.header["MaxProcs"]
    assert "1 small" == log.survey.header["Queue"]
    assert {"no run time": 2, "no processors": 1} == log.findings.left_out
    assert [137, 197] == [it.line for it in log.findings.faults]
    jobs = [*log.jobs()]
    assert 237 == len(jobs) == len(log)
    assert [it.order for it in jobs] == sorted(it.order for it in jobs)
    assert not log.survey.is_sorted


def test_swf_takes_requested_processors_before_allocated_ones(tmp_path: Path) -> None:
    log = read(tmp_path, line(used=4, wanted=8), line(id=2, used=4, wanted=-1))
    assert [8, 4] == [it.tasks for it in log.jobs()]


def test_swf_reads_floats_and_minus_zero(tmp_path: Path) -> None:
    log = read(tmp_path, line(submit="-0.0", run="60.5", asked="-1"), line(id=2, submit="1.25"))
    (first, second) = log.jobs()
    assert (0.0, 60.5, 0.0) == (first.submit_s, first.run_s, first.declared_s)
    assert 1.25 == second.submit_s


@pytest.mark.parametrize("value", ["nan", "inf", "x", "1_0", "\u0661"])
def test_swf_counts_what_is_no_number(tmp_path: Path, value: str) -> None:
    log = read(tmp_path, line(), line(id=2, run=value))
    assert (1, 1) == (len(log), log.findings.bad)
    assert (2, f"'{value}' is no number") == (
        log.findings.faults[0].line, log.findings.faults[0].what,
    )  # fmt: skip
    with pytest.raises(WorkloadError, match=r"log:2: "):
        read(tmp_path, line(), line(id=2, run=value), is_strict=True)


def test_swf_counts_a_job_that_was_interrupted_once(tmp_path: Path) -> None:
    """Its parts come behind the line of the whole; a part whose job is not there stands for it."""
    part = line(run=20).replace(" 1 3 4 ", " {} 3 4 ")
    parts = [part.format(status) for status in (2, 2, 3)]
    alone = part.format(4).replace("1", "2", 1)
    log = read(tmp_path, line(run=60), *parts, alone)
    assert [("1", 60.0), ("2", 20.0)] == [(it.id, it.run_s) for it in log.jobs()]
    assert {"part of a job that is counted whole": 3} == log.findings.left_out


def test_processors_stand_behind_a_long_comment(tmp_path: Path) -> None:
    comment = ["; Note: nothing of interest"] * 2_000
    assert "64" == read(tmp_path, *comment, "; MaxProcs: 64", line()).survey.header["MaxProcs"]


def test_a_workload_of_batsim_whose_jobs_come_first(tmp_path: Path) -> None:
    job = {"id": "a", "subtime": 0, "res": 1, "profile": "long"}
    profiles = {"long": {"type": "delay", "delay": 5}}
    document = {"jobs": [job] * 6_000, "nb_res": 4, "profiles": profiles}
    assert 6_000 == len(read(tmp_path, json.dumps(document)))


def test_a_log_without_header_or_end_of_line(tmp_path: Path) -> None:
    assert ["1"] == [it.id for it in read(tmp_path, line()).jobs()]


def test_a_packed_log_is_seen_by_its_content(tmp_path: Path) -> None:
    file = tmp_path / "no-ending"
    file.write_bytes(gzip.compress(line().encode()))
    assert 1 == len(Workload.read(file))


def test_a_packed_log_that_is_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "cut.swf.gz"
    text = "\n".join(line(id=it) for it in range(2000))
    file.write_bytes(gzip.compress(text.encode())[:-20])
    with pytest.raises(WorkloadError, match="cut off or damaged"):
        Workload.read(file)


def test_names_of_a_log_are_mapped(tmp_path: Path) -> None:
    mapping = Mapping.parse(["queue=root.{group}.{queue}", "user={user}-x", "memory=requested"])
    (job,) = read(tmp_path, line(memory=1024), mapping=mapping).jobs()
    assert ("root.g4.q2", "u3-x") == (job.queue, job.user)
    assert {"vcore": 1000, "memory": 1 << 20} == job.size


@pytest.mark.parametrize("item", ["queue=root.{color}", "color=red", "queue", "memory=some"])
def test_a_mapping_that_means_nothing(item: str) -> None:
    with pytest.raises(WorkloadError, match=r"^map "):
        Mapping.parse([item])


def test_openb_with_every_trap() -> None:
    log = Workload.read(PODS)
    assert "openb" == log.survey.format
    assert [13, 31] == [it.line for it in log.findings.faults]
    assert {"no run time": 1} == log.findings.left_out
    jobs = {it.id: it for it in log.jobs()}
    assert 58 == len(jobs)
    assert any(it.waited_s is None for it in jobs.values())
    assert any(it.models == ("P100", "T4") for it in jobs.values())
    assert {460, 8000} <= {it.size.get("gpu") for it in jobs.values()}


def test_nodes_of_openb() -> None:
    nodes = {it.id: it for it in read_nodes(NODES)}
    assert ("V100M32", 8, 8000) == (
        nodes["node-6"].model, nodes["node-6"].devices, nodes["node-6"].resources["gpu"],
    )  # fmt: skip
    assert "gpu" not in nodes["node-0"].resources


def test_a_profile_of_batsim_that_is_composed_takes_as_long_as_its_parts(tmp_path: Path) -> None:
    document = {
        "nb_res": 4,
        "jobs": [
            {"id": name, "subtime": 0, "res": 1, "profile": name}
            for name in ("once", "often", "nested", "computes", "endless", "nothing")
        ],
        "profiles": {
            "a": {"type": "delay", "delay": 20.5},
            "b": {"type": "parallel", "cpu": [1], "com": [0], "runtime": 10},
            "c": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0},
            "once": {"type": "composed", "seq": ["a", "b"]},
            "often": {"type": "composed", "repeat": 4, "seq": ["a", "b", "a"]},
            "nested": {"type": "composed", "repeat": 2, "seq": ["once", "b"]},
            "computes": {"type": "composed", "seq": ["a", "c"]},
            "endless": {"type": "composed", "seq": ["a", "endless"]},
            "nothing": {"type": "composed", "seq": []},
        },
    }
    log = read(tmp_path, json.dumps(document))
    assert "the profile 'endless' is a part of itself" == log.findings.faults[1].what
    assert {"once": 30.5, "often": 204.0, "nested": 81.0} == {it.id: it.run_s for it in log.jobs()}
    assert [4, 5] == [it.line for it in log.findings.faults]
    assert {"no run time": 1} == log.findings.left_out


def test_a_part_of_a_profile_is_added_up_once_however_often_it_is_one(tmp_path: Path) -> None:
    """Each is twice in the next: forty of them would take a year one by one."""
    doubled = {f"p{it}": {"type": "composed", "seq": [f"p{it - 1}"] * 2} for it in range(1, 31)}
    document = {
        "nb_res": 1,
        "jobs": [{"id": 1, "subtime": 0, "res": 1, "profile": "p30"}],
        "profiles": {"p0": {"type": "delay", "delay": 1}, **doubled},
    }
    assert [2.0**30] == [it.run_s for it in read(tmp_path, json.dumps(document)).jobs()]


def test_batsim_with_every_trap() -> None:
    log = Workload.read(BATSIM)
    assert "batsim" == log.survey.format
    assert [6, 23] == [it.line for it in log.findings.faults]
    assert {"no processors": 1, "no run time": 1} == log.findings.left_out
    jobs = {it.id: it for it in log.jobs()}
    assert ("ann", 36) == (jobs["12"].user, len(jobs))
    assert "w0!20" in jobs
    assert [{"vcore": 16000}] == [it.resources for it in read_nodes(None, log)]


def test_a_document_of_batsim_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="no workload of Batsim: there is no 'jobs'"):
        read(tmp_path, '{"nb_res": 1, "profiles": {}}')
    document = {"nb_res": 1, "profiles": {"d": 3}, "jobs": [5, {"id": 1, "subtime": 0,
                "res": 1, "profile": "d"}]}  # fmt: skip
    faults = read(tmp_path, json.dumps(document)).findings.faults
    assert ["Expected `object`, got `int`"] * 2 == [it.what for it in faults]


def test_a_log_of_no_known_format(tmp_path: Path) -> None:
    with pytest.raises(
        WorkloadError, match="of no format that is known here: jobs, batsim, openb, swf"
    ):
        read(tmp_path, "<html>")


@pytest.mark.parametrize(
    ("data", "remedy"),
    [
        (Path("tests/formats/trace-2.msgpack").read_bytes(), "`workload from-trace`"),
        ((SAMPLES / "yunikorn-dump.json").read_bytes(), "`workload from-yunikorn`"),
        (b"no log\nat all", "it begins with 'no log'"),
    ],
    ids=["recording", "dump", "other"],
)
def test_what_makes_a_workload_of_another_file_is_named(
    tmp_path: Path, data: bytes, remedy: str
) -> None:
    (tmp_path / "log").write_bytes(data)
    with pytest.raises(WorkloadError, match=re.escape(remedy)):
        Workload.read(tmp_path / "log")


def test_a_workload_of_ours_that_was_written_by_hand(tmp_path: Path) -> None:
    job = '{"id": "a", "number": 1, "submit_s": 0, "run_s": 5, "size": {"vcore": 1}}'
    assert ["a"] == [it.id for it in read(tmp_path, '{ "workload":1 }', job).jobs()]


def test_a_log_that_is_not_there() -> None:
    with pytest.raises(WorkloadError, match="No such file"):
        Workload.read("nowhere.swf")
    with pytest.raises(WorkloadError, match=r"there are batsim\.json"):
        Workload.read("sample:other")


def test_a_reader_of_ones_own(tmp_path: Path) -> None:
    class Words:
        name = "words"

        def matches(self, _: str) -> bool:
            return True

        def header(self, _: str) -> dict[str, str]:
            return {}

        def jobs(self, lines: Numbered, _: Mapping, findings: Findings) -> Iterator[Job]:
            for at, text in lines:
                if not text.strip():
                    findings.leave_out("blank")
                    continue
                yield Job(id=text.strip(), number=at, submit_s=at, run_s=1, size={"vcore": 1})

    log = read(tmp_path, "a", "", "b", reader=Words())
    assert ["a", "b"] == [it.id for it in log.jobs()]
    assert {"blank": 1} == log.findings.left_out


@pytest.mark.parametrize(
    ("given", "sizes"), [("6", [6000]), ("3x2", [2000] * 3)], ids=["one", "several"]
)
def test_nodes_by_numbers(given: str, sizes: list[int]) -> None:
    assert sizes == [it.resources["vcore"] for it in read_nodes(given)]


def test_nodes_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text(
        "- {id: small, count: 2, resources: {vcore: 4, memory: 8Gi}}\n"
        "- {id: big, resources: {vcore: 500m, gpu: 2}, model: T4}\n",
        encoding="utf-8",
    )
    nodes = read_nodes(str(file))
    assert ["small-0", "small-1", "big"] == [it.id for it in nodes]
    assert {"vcore": 4000, "memory": 8 << 30} == nodes[0].resources
    assert ("T4", 2, 2_000) == (nodes[2].model, nodes[2].devices, nodes[2].resources["gpu"])


@pytest.mark.parametrize("text", ["[]", "- {id: a}", "a: b", "- {id: a, resources: {vcore: x}}"])
def test_a_file_of_no_nodes(tmp_path: Path, text: str) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(WorkloadError):
        read_nodes(str(file))


@pytest.mark.parametrize(
    ("resources", "what"),
    [
        ({}, "nothing on which a job could run"),
        ({"vcore": 0, "gpu": 0}, "nothing on which a job could run"),
        ({"vcore": -1}, "node a: vcore -1: write a whole number from 0"),
        ({"vcore": 1.5}, "node a: vcore 1.5: write a whole number from 0"),
        ({"vcore": 10**30}, "node a: vcore 1000"),
        ({"gpu": 1_000}, "node a: devices -1: write 0 or more"),
    ],
    ids=["none", "zero", "negative", "float", "large", "devices"],
)
def test_a_node_on_which_nothing_can_run(resources: dict[str, int], what: str) -> None:
    devices = -1 if "devices" in what else 0
    with pytest.raises(WorkloadError, match=what):
        play(Workload.of(()), [Node(id="a", resources=resources, devices=devices)])


def test_a_kind_of_resource_of_which_there_is_none() -> None:
    job = Job(id="1", number=1, submit_s=0, run_s=10, size={"vcore": 1_000})
    table = play(Workload.of([job]), [Node(id="a", resources={"vcore": 1_000, "gpu": 0})])
    assert {"vcore": 1.0} == table.summary()["utilisation"]


def test_a_log_that_does_not_say_on_what_it_ran(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="--nodes"):
        read_nodes(None, read(tmp_path, line()))


def test_a_log_in_order_is_not_kept(tmp_path: Path) -> None:
    log = read(tmp_path, *(line(id=it, submit=it) for it in range(1, 50)))
    assert log.survey.is_sorted
    first, second = log.jobs(), log.jobs()
    assert next(first) == next(second)
    with open_text(tmp_path / "log") as text:
        assert text.read(1)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data.replace(b" ", b"\t"),
        lambda data: gzip.compress(gzip.compress(data)),
        lambda data: b"; \xff\xfe no UTF-8\n" + data,
        lambda data: b"1 2 3\n" + data,
        lambda data: data.replace(b" 60 ", b" 6e1 "),
        lambda data: data.replace(b"\n", b" ; a comment\n; Queue: 1\n\n", 1),
    ],
    ids=["bom", "crlf", "tabs", "packed-twice", "no-utf8", "damaged-first", "exponent", "comments"],
)
def test_how_a_log_is_written_changes_no_job(
    tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    data = "\n".join(line(id=it, submit=it, wanted=2) for it in range(1, 9)).encode() + b"\n"
    plain, other = tmp_path / "plain", tmp_path / "other"
    plain.write_bytes(data)
    other.write_bytes(change(data))
    assert data != other.read_bytes()
    assert [*Workload.read(plain).jobs()] == [*Workload.read(other).jobs()]


def test_what_no_clock_and_no_cluster_can_have(tmp_path: Path) -> None:
    log = read(
        tmp_path, line(), line(id=2, submit="5e9"), line(id=3, run="1e12"), line(id=4, submit=-5),
        line(id=5, submit="1e300"), line(id=6, wanted=0, used=0), line(id=7, memory="x"),
    )  # fmt: skip
    assert ["1"] == [it.id for it in log.jobs()]
    assert {"no submit": 2, "no run time": 1, "no processors": 1} == log.findings.left_out
    assert [(5, "'1e300' is no number"), (7, "'x' is no number")] == [
        (it.line, it.what) for it in log.findings.faults
    ]


@pytest.mark.parametrize(
    ("data", "what"),
    [(b"", "empty"), (gzip.compress(b"x")[:-9], "cut off")],
    ids=["empty", "cut"],
)
def test_a_file_that_is_no_log(tmp_path: Path, data: bytes, what: str) -> None:
    (tmp_path / "log").write_bytes(data)
    with pytest.raises(WorkloadError, match=what):
        Workload.read(tmp_path / "log")
    damaged = bytearray(gzip.compress(line().encode() * 50))
    damaged[20:40] = b"\xff" * 20
    (tmp_path / "log").write_bytes(damaged)
    with pytest.raises(WorkloadError, match="damaged"):
        Workload.read(tmp_path / "log")


def test_pods_with_other_columns(tmp_path: Path) -> None:
    log = read(
        tmp_path, "deletion_time,cpu_milli,later,name,creation_time,num_gpu",
        "90,4000,x,a,10,2", '90,"4000,x,b,10,0', "90,,x,c,10,0", ",4000,x,d,10,", "90,4000,x,,20,1",
    )  # fmt: skip
    assert [("a", 2_000), ("line-6", 1_000)] == [(it.id, it.size["gpu"]) for it in log.jobs()]
    assert [3, 4] == [it.line for it in log.findings.faults]
    assert {"no run time": 1} == log.findings.left_out
    kept = Workload.read(tmp_path / "log", stays=True)
    assert ["a", "d", "line-6"] == [it.id for it in kept.jobs()]


def test_pods_with_quotes_around_everything(tmp_path: Path) -> None:
    head = '"name","cpu_milli","creation_time","deletion_time"'
    log = read(tmp_path, head, '"a, the first","1000","0","9"', '"b""q","1","0","9"')
    assert ["a, the first", 'b"q'] == [it.id for it in log.jobs()]


def test_names_that_no_scheduler_takes_are_left_out(tmp_path: Path) -> None:
    log = read(
        tmp_path, "name,cpu_milli,creation_time,deletion_time", f"{'a' * 300},1,0,9", "b,1,0,9"
    )
    assert ["b"] == [it.id for it in log.jobs()]
    assert {"no name that is short enough": 1} == log.findings.left_out
