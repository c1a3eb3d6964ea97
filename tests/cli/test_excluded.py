"""What a command would not look at is refused with a remedy, whichever command it is."""

import io
import json
from pathlib import Path

import pytest

from yunikorn_actors.cli import main
from yunikorn_actors.errors import Refused
from yunikorn_actors.service.rest.client import Client

KEPT = Path(__file__).parents[1] / "formats/dump-1.json"
CONFIG = "partitions: [{name: default, queues: [{name: root, submitacl: '*'}]}]\n"
STDIN = "only one can be standard input (-): name a file for the others"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what a mistake would ask is here: a folder with files, and no service."""
    monkeypatch.chdir(tmp_path)
    Path("q.yaml").write_text(CONFIG)
    Path("d.json").write_text(KEPT.read_text())
    Path("own_policies.py").write_text(
        "from yunikorn_actors.policies.shipped import Fcfs\n\nOWN = {'mine': Fcfs}\n"
    )
    Path("log.swf").write_text("1 0 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 -1 -1 -1\n")
    text = io.BytesIO(CONFIG.encode())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(text))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("config diff q.yaml q.yaml --dump d.json --server :1", "--dump and --server: "),
        ("config diff q.yaml q.yaml --until -5 --server :1", "--until: must be seconds from 0"),
        ("config diff q.yaml q.yaml --until nan --server :1", "--until: must be seconds from 0"),
        ("config diff - -", f"OLD and NEW: {STDIN}"),
        ("config diff - q.yaml --dump -", f"OLD and --dump: {STDIN}"),
        ("config diff q.yaml q.yaml --token-file t", "--token-file: no service is asked"),
        ("config diff q.yaml q.yaml --dump d.json --insecure", "--insecure: no service is asked"),
        ("simulate - --dump -", f"CHANGES and --dump: {STDIN}"),
        ("simulate - --config - --dump d.json", f"CHANGES and --config: {STDIN}"),
        ("simulate --config - --trace -", f"--config and --trace: {STDIN}"),
        ("simulate --dump d.json --tls-ca c", "--tls-ca: a simulation that begins with --dump"),
        ("simulate --dump d.json --server 127.0.0.1:9080", "--dump and --server: "),
        ("simulate --policies own_policies:OWN", "--policies: a service decides with its own"),
        ("simulate --topology fused", "--topology: a service and a recording have their own"),
        ("simulate --trace t --topology fused", "--topology: a service and a recording have"),
        ("simulate --dump d.json --least --until 5", "--until: with --least"),
        ("why --dump d.json --server :1", "--server: with --dump no service is asked"),
        ("why a --dump d.json --token-file t", "--token-file: with --dump no service is asked"),
        ("apps a --state completed", "--state: one application is shown whatever it is"),
        ("apps a --queue root.b", "--queue: one application is shown whatever it is"),
        ("scenario run q.yaml --time-scale 5", "--time-scale: the simulator has virtual time"),
        ("lab mutants M01 --swarm 5 --runs 5", "--runs: with --swarm N there are N runs"),
        ("lab run q.yaml --strategy exhaustive --seed 3", "--seed: exhaustive draws nothing"),
        ("lab run q.yaml --strategy delay --seed 0", "--seed: delay draws nothing"),
        ("lab run q.yaml --depth 5 --strategy uniform", "--depth: uniform has none"),
        ("workload run log.swf --seed 0", "--seed: it is of the faults: leave it out, or give"),
        ("workload run log.swf --parquet", "--parquet: rows are written to a folder"),
        ("workload run - --nodes -", f"LOG and --nodes: {STDIN}"),
        ("workload from-yunikorn - - -o out", f"FILE 1 and FILE 2: {STDIN}"),
        ("workload compare policy:fifo policy:fair log.swf --executor serial --workers 2",
         "--workers: serial has its own"),
        ("trace chain t context/1 --causes --about k", "--about: --causes follows messages"),
        ("trace show t --json --full --times", "--full and --times: --json has whole messages"),
        ("trace story t app --json --clock", "--clock: --json has whole messages"),
        ("trace diff - -", f"FILE and OTHER: {STDIN}"),
        ("trace view - -", f"FILE and OTHER: {STDIN}"),
        ("trace what-if - --config -", f"FILE and --config: {STDIN}"),
        ("serve --rest off --grpc 127.0.0.1:0 --no-cors", "--no-cors: it is of REST, which is off"),
        ("serve --rest off --name a", "--name: it is of REST, which is off"),
    ],
)  # fmt: skip
def test_what_would_not_be_looked_at(
    words: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert complaint in err


def test_a_chain_has_one_direction(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["trace", "chain", "t", "context/1", "--down", "--causes"])
    assert "not allowed with argument --down" in capsys.readouterr().err


def test_a_comparison_that_a_service_refuses(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def post(*_: object, **__: object) -> object:
        raise Refused("steps 1: no such queue")

    monkeypatch.setattr(Client, "post", post)
    assert main(["config", "diff", "q.yaml", "q.yaml", "--server", "127.0.0.1:1"]) == 2
    assert capsys.readouterr().err == "steps 1: no such queue\n"


def test_a_partition_of_a_dump(capsys: pytest.CaptureFixture[str]) -> None:
    dump = json.loads(KEPT.read_text())
    (name,) = dump["partitions"]
    for part in ("partitions", "waiting"):
        dump[part]["[rm-1]gpu"] = dump[part][name]
    Path("two.json").write_text(json.dumps(dump))
    of_one = {}
    for wanted in ("", "gpu", "[rm-1]gpu", name):
        given = ["--partition", wanted] if wanted else []
        assert main(["why", "--dump", "two.json", *given]) == 0
        all_of_them = capsys.readouterr().out
        assert main(["why", "job", "--dump", "two.json", *given]) == 0
        of_one[wanted] = all_of_them, capsys.readouterr().out.count("application job of ")
    assert [count for _, count in of_one.values()] == [2, 1, 1, 1]
    assert of_one["gpu"] == of_one["[rm-1]gpu"]
    assert of_one[""][0] != of_one["gpu"][0]
    assert main(["why", "--dump", "two.json", "--partition", "gpus"]) == 1
    assert "there is no partition 'gpus'; did you mean gpu" in capsys.readouterr().err
