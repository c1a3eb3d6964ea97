"""What of pykka is not public and is used all the same, in the oldest and the newest version.

Pykka's `start` and its inbox leave no room for an actor that a dispatcher runs, so a `MachineActor`
takes the place of both. Each private name is listed here with its parameters: one that pykka renames
fails here, and not as an actor that never answers.
"""

import ast
import configparser
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pykka
import pytest
from probes import PATIENCE_S, register, wait_until
from support import Recorder

from yunikorn_actors import SchedulerCore
from yunikorn_actors.drivers.live import actors

REPOSITORY = Path(__file__).parents[2]
PRIVATE = {
    "_actor_loop": ["self"],
    "_create_actor_inbox": [],
    "_create_future": [],
    "_handle_receive": ["self", "message"],
    "_start_actor_loop": ["self"],
}
"""Of `pykka.ThreadingActor`, with the parameters of each."""
INBOX = {"put", "get", "empty"}
"""What pykka calls of an inbox; what it gets out has `message` and `reply_to`."""


def private_names() -> Iterator[str]:
    """Yield the private names of pykka's that the code of the runtime uses or replaces."""
    for node in ast.walk(ast.parse(inspect.getsource(actors))):
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "name", "")
        if re.match(r"_[a-z]", name or "") and hasattr(pykka.ThreadingActor, name):
            yield name


def test_each_private_name_of_pykka_is_listed_here() -> None:
    assert set(PRIVATE) == set(private_names())


@pytest.mark.parametrize(("name", "parameters"), PRIVATE.items(), ids=PRIVATE)
def test_pykka_has_each_of_them(name: str, parameters: list[str]) -> None:
    found = inspect.signature(getattr(pykka.ThreadingActor, name))
    assert parameters == list(found.parameters)


def test_the_mailbox_is_an_inbox_as_pykka_uses_it() -> None:
    sources = "".join(
        inspect.getsource(it) for it in (pykka.Actor, pykka.ActorRef, pykka.ThreadingActor)
    )
    assert INBOX == set(re.findall(r"actor_inbox\.(\w+)\(", sources))
    assert set(actors._Letter.__struct_fields__) == set(
        re.findall(r"envelope\.(\w+)", inspect.getsource(pykka.Actor))
    )


# -- actors by their names


@pytest.mark.parametrize("has_journal", [False, True], ids=["", "with a journal"])
def test_machines_are_registered_by_the_names_of_their_classes(
    has_journal: bool, tmp_path: Path
) -> None:
    core = SchedulerCore(journal=tmp_path / "journal" if has_journal else None)
    with core:
        register(core, Recorder())
        wait_until(core.is_settled)
        for name in ("RmProxy", "Context", "EventPublisher", "Scheduler", "CallbackHolder"):
            (ref,) = pykka.ActorRegistry.get_by_class_name(name)
            assert issubclass(ref.actor_class, actors.Actor)
            assert str(ref).startswith(f"{name} (urn:")
        assert [] == pykka.ActorRegistry.get_by_class_name("MachineActor")
        assert 5 == len(pykka.ActorRegistry.get_by_class(actors.Actor))


def test_a_name_is_that_of_the_machine_itself() -> None:
    """Several cores share one registry: each has its own Context, and all are found."""
    with SchedulerCore() as one, SchedulerCore() as other:
        names = {
            type(it).__name__: address
            for core in (one, other)
            for address, it in core._actors.machines().items()
        }
        assert {"RmProxy", "Context", "EventPublisher"} == set(names)
        for name in names:
            assert 2 == len(pykka.ActorRegistry.get_by_class_name(name))
    assert [] == pykka.ActorRegistry.get_by_class_name("Context")


def test_who_stops_the_context_by_its_name_stops_the_core() -> None:
    with SchedulerCore() as core:
        register(core, Recorder())
        (ref,) = pykka.ActorRegistry.get_by_class_name("Context")
        ref.stop(timeout=PATIENCE_S)
        wait_until(lambda: core.state == "stopped")


# -- other versions


def lowest() -> str:
    config = configparser.ConfigParser()
    config.read(REPOSITORY / "setup.cfg")
    found = re.search(r"^pykka>=([\d.]+)$", config["options"]["install_requires"], re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.mark.engines
@pytest.mark.timeout(600)
@pytest.mark.parametrize("wanted", [f"=={lowest()}.*", f">={lowest()}"], ids=["lowest", "newest"])
def test_actors_work_with_the_lowest_and_the_newest_pykka(wanted: str, tmp_path: Path) -> None:
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", tmp_path]
    done = subprocess.run([*install, f"pykka{wanted}"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"pykka cannot be had: {done.stderr[-200:]}")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    run = [sys.executable, "-c", "from importlib.metadata import version; print(version('pykka'))"]
    found = subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout
    if wanted.startswith("=="):
        assert found.startswith(lowest())
    else:
        assert [int(it) for it in found.split(".")] >= [
            int(it) for it in version("pykka").split(".")
        ]
    tests = [
        Path(__file__).with_name(f"test_{it}.py")
        for it in ("pykka", "neighbours", "stop", "dispatcher")
    ]
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(
        pytest_, env=environment, cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stdout[-2000:]
