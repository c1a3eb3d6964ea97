"""Tapes last: kept as text, each fails as it did, also in a core that says and times more.

Each tape names the mutant it was found with. The core that changed sends a message of a type that
did not exist, and arms a timer that did not exist, at every message of Context.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from yunikorn_actors.lab.case import Case, read_case
from yunikorn_actors.lab.mutants.corpus import BY_ID
from yunikorn_actors.lab.mutants.mutant import Mutant
from yunikorn_actors.lab.oracles.run_oracles import oracles
from yunikorn_actors.lab.run_schedule import Outcome, play
from yunikorn_actors.lab.tapes.tape import Tape, parse_tape
from yunikorn_actors.machines.context import Context
from yunikorn_actors.machines.events import EventPublisher
from yunikorn_actors.machines.machine import Effect, Send, SetTimer
from yunikorn_actors.messages.base import CONTEXT, EVENT_PUBLISHER, Message
from yunikorn_actors.values.durations import SECOND

FOLDER = Path(__file__).parent / "tapes"
FAILS = re.compile(r"# mutant (M\d+) fails as (.*)")
FILES = sorted(FOLDER.glob("*.tape"))


class Kept(NamedTuple):
    tape: Tape
    case: Case
    mutant: Mutant
    kind: str

    def played(self) -> Outcome:
        with self.mutant.applied():
            return play(self.case, self.tape, oracles())

    def fails_as(self) -> str | None:
        violation = self.played().violation
        return None if violation is None else violation.kind


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def kept(request: pytest.FixtureRequest) -> Kept:
    text = request.param.read_text()
    tape = parse_tape(text)
    found = FAILS.search(text)
    assert found is not None
    case = read_case(FOLDER / tape.scenario, tape.topology)
    return Kept(tape, case, BY_ID[found[1]], found[2])


def test_there_are_twenty_of_many_kinds() -> None:
    tapes = [parse_tape(file.read_text()) for file in FILES]
    assert len(tapes) >= 20
    assert len({entry.verb for tape in tapes for entry in tape.entries}) >= 8


def test_a_kept_tape_fails_by_its_deviations_alone(kept: Kept) -> None:
    assert kept.kind == kept.fails_as()
    undisturbed = kept._replace(tape=replace(kept.tape, entries=()))
    assert undisturbed.fails_as() is None, "vacuous: it fails in any order"
    assert play(kept.case, kept.tape, oracles()).ok, "the core as it is bears this"


class Noticed(Message, frozen=True, kw_only=True):
    """A type of message that the core does not have."""


@pytest.fixture
def talkative(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Context send one more message and arm one more timer, whatever it handles."""

    def more(usual: Callable[..., list[Effect]]) -> Callable[..., list[Effect]]:
        def handle(self: Context, message: Any, now_ns: int) -> list[Effect]:
            if isinstance(message, Noticed):
                return []
            armed = SetTimer(name="noticed", due_ns=now_ns + SECOND, message=Noticed())
            sent = Send(to=EVENT_PUBLISHER, message=Noticed())
            return [sent, *usual(self, message, now_ns), armed]

        return handle

    publish = EventPublisher.handle

    def ignore(self: EventPublisher, message: Message, now_ns: int) -> list[Effect]:
        return [] if isinstance(message, Noticed) else publish(self, message, now_ns)

    monkeypatch.setattr(Context, "handle", more(Context.handle))
    monkeypatch.setattr(Context, "handle_together", more(Context.handle_together))
    monkeypatch.setattr(EventPublisher, "handle", ignore)


@pytest.mark.usefixtures("talkative")
def test_another_message_and_another_timer_change_nothing(kept: Kept) -> None:
    heard = {
        it.mailbox
        for it in play(kept.case, kept.tape).deliveries
        if isinstance(it.message, Noticed)
    }
    assert {EVENT_PUBLISHER, CONTEXT} == heard, "vacuous: the core says and times no more"
    assert kept.kind == kept.fails_as()


def replayed(runs: int, hash_seed: str, *tapes: str) -> list[dict[str, Any]]:
    """Replay tapes in a process of its own; return what the command says of each."""
    command = (sys.executable, "-m", "yunikorn_actors", "lab", "replay", *tapes)
    done = subprocess.run(
        (*command, "--runs", str(runs), "--json"),
        cwd=FOLDER,
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    "files", [FILES[::12], pytest.param(FILES, marks=pytest.mark.slow)], ids=["some", "all"]
)
@pytest.mark.slow
def test_every_process_plays_them_alike(files: list[Path]) -> None:
    names = [file.name for file in files]
    first, *others = (replayed(2, hash_seed, *names) for hash_seed in ("0", "4294967295"))
    assert len(names) == len(first)
    assert {(2, 1)} == {(tape["runs"], tape["digests"]) for tape in first}
    for other in others:
        assert first == other


@pytest.mark.slow
def test_a_thousand_replays_give_one_digest() -> None:
    digests = {
        (told["runs"], told["digests"], told["digest"])
        for hash_seed in ("0", "1")
        for told in replayed(1000, hash_seed, FILES[0].name)
    }
    assert [(1000, 1)] == [told[:2] for told in digests]
