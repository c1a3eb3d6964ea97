"""Logs of clusters as commands play them: one that is drawn, and what a dump or a recording makes.

A log has a few jobs on a few nodes, in one of the formats that are read, and now and then a line
that is none. All that a command prints and writes is seen.
"""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.surfaces.command_in_process import called

Said = tuple[str, Any]
_JOBS: Final = (8, 20)
_BETWEEN_S: Final = (0, 0, 5, 20, 60, 600)
_RUNS_S: Final = (1, 5, 30, 30, 120, 120, 600, 600, 0, -1)
_TASKS: Final = (1, 1, 1, 2, 2, 4, 4, 8, 0)
_POLICIES: Final = ("fifo", "sjf", "easy", "fair-decay", "odd")
_POOLS: Final = ("8", "2x4", "3x4", "nodes.yaml", "0", "nowhere")
_QUEUES: Final = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: g1, resources: {guaranteed: {vcore: 3}}, properties: {preemption.delay: 5s}}
    - {name: g2, resources: {max: {vcore: 4}}, limits: [{users: ["*"], maxapplications: 1}]}
"""
_NODES: Final = """
- {id: n1, resources: {vcore: 4, memory: 8G}}
- {id: n2, resources: {vcore: 4, memory: 8G}, from_s: 30, until_s: 400}
- {id: n3, resources: {vcore: 2, nvidia.com/gpu: 2}, devices: 2, model: A, drained: false}
"""
_CAMPAIGN: Final = "log: [{log}]\npolicy: [{policy}, {other}]\nnodes: [2x4]\nlimit: [5, 9]\n"
_OF_A_RUN: Final = (
    "", "", "--jobs gang", "--estimates x2", "--estimates exact", "--until 300", "--scale 2",
    "--limit 5", "--faults 0.3 --seed 4", "--stay", "--check", "--map queue=root.{group}",
    "--map user=ann", "--json", "--strict",
)  # fmt: skip
_COMMANDS: Final = (
    *("run {log} {how} {more} --nodes {nodes} -o {made}",) * 3,
    "run {log} {how} --policy {policy}",
    "run {log} {how} --config {queues} --map queue=root.{{group}} --nodes {nodes}",
    "compare policy:{policy} policy:{other} {log} {how} --nodes 2x4 --draws 1 --executor serial",
    "compare policy:{policy} {queues} {log} --nodes {nodes} --draws 2 --json -o {page} {measured}",
    "campaign {campaign} --executor serial -o {page}",
)
_MEASURED: Final = "--executor serial --shake-runs 0.2 --fail-if 'mean wait > 1.0x'"
_SPEED: Final = re.compile(r'("jobs_per_cpu_s": ?)[0-9.e+]+')
"""The only figure that another computer has otherwise."""


def played(draw: Draw) -> Iterator[Said]:
    """Play a drawn log twice, in other ways."""
    # Not below /dev: what stands there is copied, as what can be read only once.
    with TemporaryDirectory() as folder:
        place = Path(folder)
        log = draw.one_of((_swf, _swf, _batsim, _openb))(draw)
        files = {"log": log, "queues.yaml": _QUEUES, "nodes.yaml": _NODES}
        words = {name.partition(".")[0]: str(place / name) for name in files} | {
            "made": str(place / "made"), "page": str(place / "page"),
            "campaign": str(place / "campaign"), "policy": draw.one_of(_POLICIES[:-1]),
            "other": draw.one_of(_POLICIES),
        }  # fmt: skip
        files["campaign"] = _CAMPAIGN.format(**words)
        for name, text in files.items():
            (place / name).write_text(text, encoding="utf-8")
        for _ in range(2):
            yield "a drawn log", log
            template = draw.one_of(_COMMANDS)
            own = {it: draw.one_of(_OF_A_RUN) for it in ("how", "more")}
            nodes = draw.one_of(_POOLS)
            own["nodes"] = str(place / nodes) if nodes in files else nodes
            own["measured"] = _MEASURED
            yield from _said(shlex.split(template.format(**words | own)), place, draw)


def made_of(files: Sequence[str], verb: str, draw: Draw) -> Iterator[Said]:
    """Make a log of a recording, or of a dump and events, and play it."""
    with TemporaryDirectory() as folder:
        place = Path(folder, "made")
        yield from _said([verb, *files, "-o", str(place)], place, draw)
        log, nodes = place / "jobs.jsonl", place / "nodes.yaml"
        if log.exists():
            yield from _said(["run", str(log), "--nodes", str(nodes)], place, draw)


def _said(words: list[str], place: Path, draw: Draw) -> Iterator[Said]:
    found = called(["workload", *words], draw)
    made = [it for it in sorted(place.rglob("*")) if it.is_file()]
    texts = {it.name: it.read_text(encoding="utf-8") for it in made}
    text = _SPEED.sub(r"\1", json.dumps((found, texts)).replace(r"\"", '"'))
    yield f"what comes of workload {words[0]}", text.replace(str(place), "")


# -- logs in their formats


def _times(draw: Draw) -> Iterator[tuple[int, int, int, int]]:
    """Draw numbers of jobs, when each is submitted, how long it runs and on how much."""
    at_s = 0
    for number in range(1, draw.whole(*_JOBS) + 1):
        at_s += draw.one_of(_BETWEEN_S)
        yield number, at_s, draw.one_of(_RUNS_S), draw.one_of(_TASKS)


def _swf(draw: Draw) -> str:
    lines = ["; MaxProcs: 8", "; UnixStartTime: 1700000000"]
    for number, at_s, run_s, tasks in _times(draw):
        asked, memory = draw.one_of((tasks, -1)), draw.one_of((-1, 1024))
        owner, group, status = draw.whole(1, 3), draw.whole(1, 2), draw.one_of((1, 1, 1, 0, 5, 3))
        lines.append(
            f"{number} {at_s} {draw.one_of((-1, 4))} {run_s} {tasks} -1 {memory} {asked} "
            f"{draw.one_of((-1, 2 * run_s))} {memory} {status} {owner} {group} -1 1 -1 -1 -1"
        )
        if draw.once_in(20):
            lines.append(draw.one_of(("", "odd", "1 2 3", "; Note: odd")))
    return "\n".join((*lines, ""))


def _batsim(draw: Draw) -> str:
    profiles: dict[str, Any] = {
        "a": {"type": "delay", "delay": 30}, "b": {"type": "delay", "delay": 5.5},
        "c": {"type": "composed", "repeat": 2, "seq": ["a", "b"]}, "d": {"type": "msg", "com": 1},
    }  # fmt: skip
    jobs = [
        {
            "id": number, "subtime": at_s, "res": max(1, tasks), "walltime": max(1, 2 * run_s),
            "profile": draw.one_of("aabbcd"), "user": draw.one_of(("u1", "u2")),
        }
        for number, at_s, run_s, tasks in _times(draw)
    ]  # fmt: skip
    return json.dumps({"nb_res": 8, "jobs": jobs, "profiles": profiles})


def _openb(draw: Draw) -> str:
    head = (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
        "deletion_time,scheduled_time"
    )
    rows = [
        f"p{number},{1000 * tasks},512,{draw.one_of((0, 0, 1, 2))},{draw.one_of((500, 1000))},"
        f"{draw.one_of(('', 'A', 'A|B'))},{draw.one_of(('LS', 'BE'))},Running,{at_s},"
        f"{at_s + max(1, run_s)},{draw.one_of(('', str(at_s)))}"
        for number, at_s, run_s, tasks in _times(draw)
    ]
    return "\n".join((head, *rows, ""))
