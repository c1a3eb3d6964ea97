"""A thread that computes gives the interpreter away sooner, in a process of the service alone."""

import sys

import pytest

from yunikorn_actors.runtime.switch_interval import TURN_S, short_turns


def test_turns_are_short_as_long_as_it_is_served() -> None:
    usual_s = sys.getswitchinterval()
    assert usual_s > TURN_S, "vacuous: they are short as it is"
    with short_turns():
        assert pytest.approx(TURN_S) == sys.getswitchinterval()
    assert usual_s == sys.getswitchinterval()
