"""The examples do what they say. They run on real threads, and print the same each time."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def printed(name: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out.splitlines()


def test_embedding(capsys: pytest.CaptureFixture[str]) -> None:
    placed = [line.split(" as ")[0] for line in printed("embedding.py", capsys)]
    expected = [f"task-{n} runs on node-{1 if n % 2 else 2}" for n in range(1, 7)]
    assert [*expected, "root.batch uses {'memory': 6442450944, 'vcore': 3000}"] == placed


def test_gang_spark(capsys: pytest.CaptureFixture[str]) -> None:
    expected = """\
hold-driver keeps room on node-1
hold-executor-1 keeps room on node-2
hold-executor-2 keeps room on node-1
hold-executor-3 keeps room on node-2
spark-1 is Running
driver runs on node-1 instead of hold-driver (PLACEHOLDER_REPLACED)
executor-1 runs on node-2 instead of hold-executor-1 (PLACEHOLDER_REPLACED)
executor-2 runs on node-1 instead of hold-executor-2 (PLACEHOLDER_REPLACED)
root.spark uses {'vcore': 7000}: three processes and the placeholder left over
spark-1 is Completing
hold-executor-3 is given back: releasing placeholders on app complete
spark-1 is Completed
root.spark uses {}"""
    assert expected.splitlines() == printed("gang_spark.py", capsys)


def test_each_example_is_run() -> None:
    """Here, or in `test_programs`."""
    programs = ["autoscaler.py", "gang_recovery.py", "http_service.py", "job_runner.py"]
    programs.append("spread.py")
    run = ["embedding.py", "gang_spark.py", *programs]
    assert sorted(run) == sorted(path.name for path in EXAMPLES.glob("*.py"))
