"""Several schedulers in each other's way."""

import pytest

from yunikorn_actors.machines.planning_loop import PlanningLoop


def contest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each scheduler plan whenever it may decide something, as if it had the token."""
    monkeypatch.setattr(PlanningLoop, "may_plan", True)
    monkeypatch.setattr(PlanningLoop, "_pass_token", lambda _: [])
