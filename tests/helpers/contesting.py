"""Several schedulers in each other's way."""

import pytest

from yunikorn_actors.drivers.simulator import checkers
from yunikorn_actors.machines.planning_loop import PlanningLoop


def contest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each scheduler plan whenever it may decide something, as if it had the token."""
    always = property(lambda _: True, lambda *_: None)
    monkeypatch.setattr(PlanningLoop, "has_token", always, raising=False)
    monkeypatch.setattr(PlanningLoop, "_pass_token", lambda _: [])
    monkeypatch.setattr(checkers, "_faults_of_token", lambda *_: [])
