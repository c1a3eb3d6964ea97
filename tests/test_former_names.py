"""Documented modules are found under their former names, with a warning that names the new one."""

import importlib
import subprocess
import sys
import warnings

import pytest

from yunikorn_actors import SchedulerCore
from yunikorn_actors.former_names import CALLS, FORMER


@pytest.mark.parametrize("former", sorted(FORMER))
def test_it_is_the_same_module_and_warns(former: str) -> None:
    now = importlib.import_module(f"yunikorn_actors.{FORMER[former]}")
    sys.modules.pop(f"yunikorn_actors.{former}", None)
    with warnings.catch_warnings(action="ignore"):
        # The package of a module may be a former name itself, and warn as well.
        importlib.import_module(f"yunikorn_actors.{former}".rpartition(".")[0])

    with pytest.warns(
        DeprecationWarning, match=f"{former} is yunikorn_actors.{FORMER[former]} now"
    ):
        found = importlib.import_module(f"yunikorn_actors.{former}")

    assert found is now
    assert now.__spec__ is not None
    assert now.__spec__.name == now.__name__ == f"yunikorn_actors.{FORMER[former]}"


def test_a_program_that_names_the_former_one_runs() -> None:
    text = "from yunikorn_actors.values.tags import ARCH\nprint(ARCH)"

    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)

    assert ran.stdout == "si/arch\n"


def test_other_names_are_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"yunikorn_actors\.never"):
        importlib.import_module("yunikorn_actors.never")


def test_a_function_of_the_laboratory_is_found_under_its_former_name() -> None:
    narrative = importlib.import_module("yunikorn_actors.lab.narrative")
    with pytest.warns(DeprecationWarning, match=r"told of .* is narrative_of now"):
        assert narrative.told is narrative.narrative_of
    with pytest.raises(AttributeError, match="no attribute 'never'"):
        _ = narrative.never


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_call_that_a_core_had_itself_is_found_at_its_part(name: str) -> None:
    core = SchedulerCore()
    with pytest.warns(DeprecationWarning, match=rf"{name} of a core is {CALLS[name]}\.{name} now"):
        found = getattr(core, name)
    assert found == getattr(getattr(core, CALLS[name]), name)


def test_a_call_that_a_core_never_had_is_not_found() -> None:
    with pytest.raises(AttributeError, match="'SchedulerCore' object has no attribute 'never'"):
        SchedulerCore().never  # type: ignore[attr-defined] # noqa: B018
