"""An error that another process raised arrives whole: process pools hand errors over pickled."""

import pickle
from collections.abc import Callable

import pytest

from yunikorn_actors import ConfigError, InvalidRequest, InvalidSetting, Scheduler, Settings


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (lambda: Settings(cycle_max=-1), InvalidSetting),
        (lambda: Scheduler("partitions: [{nam: x}]"), ConfigError),
        (lambda: Scheduler(grace=-1), InvalidRequest),
    ],
)
def test_an_error_arrives_as_it_was_raised(wrong: Callable[[], object], kind: type) -> None:
    error: Exception | None = None
    try:
        wrong()
    except kind as raised:  # type: ignore[misc]
        error = raised
    arrived = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert type(arrived) is kind
    assert (str(error), vars(error)) == (str(arrived), vars(arrived))
