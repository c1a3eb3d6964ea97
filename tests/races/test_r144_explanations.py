"""R-144: a caller that asks why an ask waits gets an answer, even if the partition is removed."""

import ranges
from support import APP, RM, Lab, labs

from yunikorn_actors.messages.base import CONTEXT
from yunikorn_actors.messages.queries import Declined, ExplainRequested, Explanation

ASKER = "reply:test"


def _ask(lab: Lab) -> None:
    question = ExplainRequested(partition="", application_id=APP, key="a", reply_to=ASKER)
    lab.simulator._post(CONTEXT, question, "test")


@ranges.seeds(60)
def test_the_partition_goes_while_the_question_is_under_way(seeds: range) -> None:
    answers: dict[type, int] = {Declined: 0, Explanation: 0}
    gone = 0
    for lab in labs(seeds):
        lab.submit(APP)
        lab.nodes(n1=10)
        lab.ask("a", vcore=11)
        lab.settle()
        _ask(lab)
        lab.simulator.unregister_resource_manager(RM)
        lab.settle()
        answer = lab.simulator._replies.pop(ASKER)
        answers[type(answer)] += 1
        gone += isinstance(answer, Declined) and answer.reason == "partition [rm-1]default has gone"
    assert answers[Explanation] > 0
    assert gone > 0, "vacuous: the scheduler always answered before it was stopped"
