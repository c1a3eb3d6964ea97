"""What no call can mean is refused where it is made: no machine has to make sense of it."""

from typing import Any

import pytest
from probes import Lab, register
from support import RM, Recorder

from yunikorn_actors import InvalidRequest, SchedulerCore

WRONG: dict[str, tuple[str, tuple[Any, ...], str]] = {
    "no number": ("events", (None,), r"events\.first_id: must be a whole number"),
    "less than nothing": ("events", (0, -1), r"events\.count: must be a whole number"),
    "more than there is": ("events", (2**63,), r"events\.first_id: must be a whole number"),
    "a truth": ("events", (0, True), r"events\.count: must be a whole number"),
    "nobody lost": ("resource_manager_lost", ([],), r"resource_manager_lost\.rm_id: must be str"),
    "nobody leaves": (
        "unregister_resource_manager", ({},), r"unregister_resource_manager\.rm_id: must be str",
    ),
    "no name at all": ("unregister_resource_manager", ("",), "must not be empty"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "arguments", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_question_harms_nobody(
    every_lab: Lab, call: str, arguments: tuple[Any, ...], words: str
) -> None:
    register(every_lab.core, Recorder())
    with pytest.raises(InvalidRequest, match=words):
        getattr(every_lab.core, call)(*arguments)
    every_lab.rest()
    assert {} == every_lab.core.state_dump()["failed_machines"]
    every_lab.core.resource_manager_lost(RM)


@pytest.mark.parametrize("history", [None, 1.0, 2**63, "all"])
def test_a_history_is_a_number(history: Any) -> None:
    with SchedulerCore() as core:
        with pytest.raises(InvalidRequest, match=r"event_stream\.history: must be a whole number"):
            core.event_stream(history)
        assert {} == core.state_dump()["failed_machines"]
