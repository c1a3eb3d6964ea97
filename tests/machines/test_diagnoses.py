"""What a resource manager says of itself: one answer for each question, whatever it does."""

from yunikorn_actors.machines.machine import CallRm, Effect, Send
from yunikorn_actors.machines.rm_proxy.predicate_calls import AWAY, TOO_LATE, Diagnoses
from yunikorn_actors.messages.queries import RmDump, RmDumpAnswered, RmDumpDue

CALLBACK = "rm:rm-1#1"
ASKER, OTHER = "reply:1", "reply:2"
ANSWER = RmDumpAnswered(reply_to=ASKER, text="{}", error="")


def _asked() -> Diagnoses:
    diagnoses = Diagnoses(timeout_ns=5)
    assert any(isinstance(effect, CallRm) for effect in diagnoses.ask(ASKER, CALLBACK, 0))
    return diagnoses


def _told(effects: list[Effect]) -> list[tuple[str, RmDump]]:
    return [
        (effect.to, effect.message)
        for effect in effects
        if isinstance(effect, Send) and isinstance(effect.message, RmDump)
    ]


def test_the_answer_of_the_callback_is_handed_on() -> None:
    assert [(ASKER, RmDump(text="{}"))] == _told(_asked().answered(ANSWER))


def test_nobody_is_asked_where_nobody_is() -> None:
    assert [Send(to=ASKER, message=RmDump(error=AWAY))] == Diagnoses(5).ask(ASKER, None, 0)


def test_one_that_is_late_is_asked_nothing_more_until_it_has_answered() -> None:
    diagnoses = _asked()
    assert [(ASKER, RmDump(error=TOO_LATE))] == _told(diagnoses.due(RmDumpDue(reply_to=ASKER)))
    refused = [Send(to=OTHER, message=RmDump(error=TOO_LATE))]
    assert refused == diagnoses.ask(OTHER, CALLBACK, 6)
    assert [] == diagnoses.answered(ANSWER), "it is answered already"
    assert any(isinstance(effect, CallRm) for effect in diagnoses.ask(OTHER, CALLBACK, 7))


def test_a_timer_that_comes_after_the_answer_does_nothing() -> None:
    diagnoses = _asked()
    diagnoses.answered(ANSWER)
    assert [] == diagnoses.due(RmDumpDue(reply_to=ASKER))


def test_who_waits_for_one_that_goes_is_told_so() -> None:
    diagnoses = _asked()
    assert [] == diagnoses.cut("rm:rm-2#1"), "another one goes"
    assert [(ASKER, RmDump(error=AWAY))] == _told(diagnoses.cut(CALLBACK))
    assert {"asked": [], "late": []} == diagnoses.canonical_state()
