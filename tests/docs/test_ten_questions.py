"""The answers on the page of ten questions are those of the raw records.

The commands are typed as they stand on the page. What they have to say is worked out here from
MessagePack alone, with nothing of the code that answers.
"""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgpack  # type: ignore[import-untyped]  # it ships no types
import pytest
from pages import REPOSITORY

from yunikorn_actors.cli import main

PAGE = (REPOSITORY / "docs/how-to/ten-questions.md").read_text("utf-8")
QUESTIONS = 10
Record = dict[str, Any]
Screen = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Screen) -> Path:
    monkeypatch.chdir(tmp_path)
    scenario = re.search(r"`town.yaml`:\n\n```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert scenario is not None
    Path("town.yaml").write_text(scenario[1])
    assert main(["scenario", "run", "town.yaml", "--trace", "town.trace"]) == 0
    capsys.readouterr()
    return tmp_path


def command_of(number: int) -> list[str]:
    section = re.search(rf"^## {number}\. .*?(?=^## )", PAGE, re.DOTALL | re.MULTILINE)
    assert section is not None
    commands = re.findall(r"^\$ yunikorn-actors (.*)$", section[0], re.MULTILINE)
    return shlex.split(commands[0])


# -- what the raw records say


def messages(records: list[Record], **wanted: Any) -> Iterator[Record]:
    for record in records:
        if record["record"] == "delivery" and wanted.items() <= record.items():
            yield record


def facts(records: list[Record], name: str = "", **wanted: Any) -> Iterator[tuple[Record, Record]]:
    """Yield facts as the scheduler was told them, each with its message."""
    for record in messages(records, type="FactsAppended"):
        for fact in record["payload"]["facts"]:
            said = {**fact, **fact.get("spec", {})}
            is_meant = record["mailbox"].startswith("scheduler:") and name in {"", fact["fact"]}
            if is_meant and wanted.items() <= said.items():
                yield record, fact


def seconds(ns: int) -> str:
    return f"{ns / 1e9:.3f}"


def step(record: Record) -> str:
    return f"{record['mailbox']}/{record['step']}"


def request_for(records: list[Record], key: str) -> Record:
    return next(
        it
        for it in messages(records, type="AllocationsRequested")
        if key in [ask["allocationKey"] for ask in it["payload"]["request"].get("asks", ())]
    )


def what_was_refused(records: list[Record]) -> list[str]:
    (rejected,) = messages(records, type="RMRejectedAllocationAsk")
    (ask,) = rejected["payload"]["rejected"]
    return [f"{ask['application_id']}/{ask['key']}", rejected["stimulus"], ask["reason"]]


def why_it_waited(records: list[Record]) -> list[str]:
    asked = request_for(records, "bag")
    ((record, placed),) = facts(records, "AllocationCommitted", key="bag")
    waited = seconds(placed["at_ns"] - asked["at_ns"])
    return [
        f"waited {waited} s",
        "queue root.mill has no room",
        f"{asked['stimulus']} flour",
        f"placed on {placed['node_id']} {record['stimulus']}",
    ]


def what_became_of_it(records: list[Record]) -> list[str]:
    return [
        f"{it['stimulus']} {'{}/{}'.format(*it['cause'])} {fact['fact']}"
        for it, fact in facts(records, key="loaf")
    ]


def what_happened_there(records: list[Record]) -> list[str]:
    return [fact["fact"] for _, fact in facts(records, node_id="n1")]


def what_a_request_did(records: list[Record]) -> list[str]:
    found = [*messages(records, stimulus="allocation-12", mailbox="context")]
    total = sum(1 for _ in messages(records))
    return [*(f"{step(it)} " for it in found), f"{len(found)} of {total} messages"]


def what_led_to_it(records: list[Record]) -> list[str]:
    """By what each is about, from the call that asked for it to the one that tells of it."""
    about = [it for it in messages(records) if "'bag'" in repr(it["payload"])]
    came = (
        ("AllocationsRequested", "rm_proxy"),
        ("RMUpdateAllocation", "context"),
        ("FactsAppended", "scheduler:"),
    )
    went = (
        ("ProposeAllocations", "context"),
        ("RMNewAllocations", "rm_proxy"),
        ("CallUpdateAllocation", "rm:"),
    )
    found = [next(filter(_is(*way), about)) for way in came]
    found += [next(filter(_is(*way), reversed(about))) for way in went]
    return [f"{step(it)} " for it in found]


def _is(type_: str, mailbox: str) -> Callable[[Record], bool]:
    return lambda it: it["type"] == type_ and it["mailbox"].startswith(mailbox)


def which_way_it_took(records: list[Record]) -> list[str]:
    asked = request_for(records, "bag")
    told = what_led_to_it(records)[-1].strip()
    ((_, placed),) = facts(records, "AllocationCommitted", key="bag")
    whole = (placed["at_ns"] - asked["at_ns"]) / 1e6
    return [f"{whole:.3f} ms to the callback", f"({step(asked)})", f"({told})"]


def what_context_did(records: list[Record]) -> list[str]:
    counts = Counter(it["type"] for it in messages(records, mailbox="context"))
    return [
        f"all {counts.total()} ",
        *(f"{name} {count} " for name, count in counts.most_common(2)),
    ]


def what_changed(records: list[Record]) -> list[str]:
    (at,) = messages(records, mailbox="context", step=15)
    told = next(messages(records, type="FactsAppended", cause=["context", 15]))["payload"]
    first, (node,) = told["first_revision"], at["payload"]["nodes"]
    return [
        f"revision: {first - 1} -> {first - 1 + len(told['facts'])}",
        f"nodes.{node['node_id']}.drained: false -> true",
    ]


def placements_of_nodes(records: list[Record]) -> list[str]:
    counts = Counter(fact["node_id"] for _, fact in facts(records, "AllocationCommitted"))
    return [f"{node}\t{count}" for node, count in sorted(counts.items())]


ORACLES: Final[dict[int, Callable[[list[Record]], list[str]]]] = dict(
    enumerate(
        (
            what_was_refused, why_it_waited, what_became_of_it, what_happened_there,
            what_a_request_did, what_led_to_it, which_way_it_took, what_context_did,
            what_changed, placements_of_nodes,
        ),
        1,
    )
)  # fmt: skip


def test_there_are_ten() -> None:
    assert (
        list(ORACLES)
        == [int(it) for it in re.findall(r"^## (\d+)\. ", PAGE, re.MULTILINE)]
        == list(range(1, QUESTIONS + 1))
    )


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("number", ORACLES)
def test_the_answer_is_that_of_the_raw_records(number: int, capsys: Screen) -> None:
    with Path("town.trace").open("rb") as file:
        records = list(msgpack.Unpacker(file))
    assert main(command_of(number)) == 0
    answer = re.sub(" +", " ", capsys.readouterr().out)
    at = 0
    for expected in ORACLES[number](records):
        assert expected in answer[at:], answer
        at = answer.index(expected, at) + len(expected)
    assert at
