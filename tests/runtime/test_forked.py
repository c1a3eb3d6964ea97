"""A core is of one process: its copy in a forked one refuses every call, and waits for nothing."""

import subprocess
import sys
from typing import get_args

import pytest
from probes import PATIENCE_S

from yunikorn_actors.runtime.scheduler_core import CoreDriver

PARENT = """
import os, sys, threading, warnings
from yunikorn_actors import CoreStopped, ResourceManagerCallback, SchedulerCore, si
warnings.simplefilter("ignore")
config = "partitions: [{name: default, queues: [{name: root, submitacl: '*'}]}]"
request = si.RegisterResourceManagerRequest(rm_id="rm-1", config=config)
node = si.NodeInfo(node_id="n1", action=si.ActionFromRM.CREATE)
nodes = si.NodeRequest(rm_id="rm-1", nodes=(node,))
core = SchedulerCore(driver=sys.argv[1]).start()
core.register_resource_manager(request, ResourceManagerCallback())
stream = core.event_stream()
CALLS = {
    "update": lambda: core.update_node(nodes),
    "question": core.state_dump,
    "registration": lambda: core.register_resource_manager(request, ResourceManagerCallback()),
    "loss": lambda: core.resource_manager_lost("rm-1"),
    "stream": core.event_stream,
    "next event": lambda: next(stream),
}
def hold(locks):
    for lock in locks:
        lock.acquire()
    held.set()
    threading.Event().wait()
held = threading.Event()
locks = (core._lock, core.managers.order, core._actors._lock, core._replies._lock, core._timers._condition)
locks += (core._dispatcher.lock, core._dispatcher._hold)
threading.Thread(target=hold, args=(locks,), daemon=True).start()
held.wait()
if os.fork() == 0:
    for name, call in CALLS.items():
        try:
            call()
            print(name, "was taken", flush=True)
        except CoreStopped as error:
            print(name, "-", error, flush=True)
    stream.close()
    core.stop()
    print("stopped", flush=True)
    os._exit(0)
os.wait()
os._exit(0)
"""
REASON = (
    "the core is the parent's, whose threads a forked process does not have: make another one in "
    "this process, or start processes with `spawn`"
)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("driver", get_args(CoreDriver))
def test_in_a_forked_process_every_call_is_refused_at_once(driver: CoreDriver) -> None:
    """Even where another thread held each lock of the core at the moment of the fork.

    With the direct driver it runs the machines at that moment, and does not in this process.
    """
    done = subprocess.run(
        [sys.executable, "-c", PARENT, driver], capture_output=True, text=True, timeout=PATIENCE_S / 3,
        check=True,
    )  # fmt: skip
    calls = ("update", "question", "registration", "loss", "stream", "next event")
    assert ([f"{name} - {REASON}" for name in calls] + ["stopped"], "") == (
        done.stdout.splitlines(),
        done.stderr,
    )


FORKS = """
import os, sys, warnings
from yunikorn_actors import SchedulerCore
warnings.simplefilter("ignore")
driver = sys.argv[1]
new, running = SchedulerCore(driver=driver), SchedulerCore(driver=driver).start()
child = os.fork()
if child == 0:
    with new:
        print(sorted(new.state_dump()["partitions"]), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print("parent", sorted(running.state_dump()["partitions"]), flush=True)
running.stop()
"""


@pytest.mark.parametrize("driver", get_args(CoreDriver))
def test_a_core_that_was_not_started_can_be_started_there_and_the_parent_goes_on(
    driver: CoreDriver,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS, driver], capture_output=True, text=True, timeout=PATIENCE_S,
        check=True,
    )  # fmt: skip
    assert ("[]\nparent []\n", "") == (done.stdout, done.stderr)


ON_A_LOOP = """
import asyncio, os, warnings
from yunikorn_actors import AsyncSchedulerCore, si
warnings.simplefilter("ignore")
config = "partitions: [{name: default, queues: [{name: root, submitacl: '*'}]}]"
request = si.RegisterResourceManagerRequest(rm_id="rm-1", config=config)
async def program():
    loop, woken = asyncio.get_running_loop(), []
    async with AsyncSchedulerCore() as core:
        handle = await core.register_resource_manager(request)
        waiting = asyncio.create_task(anext(handle.nodes()))
        stream = await core.event_stream()
        await asyncio.sleep(0)
        wake = loop.call_soon_threadsafe
        loop.call_soon_threadsafe = lambda *call: (woken.append(call), wake(*call))
        if (child := os.fork()) == 0:
            core._core.stop()
            core._core.stop()
            print("woken", woken, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        del loop.call_soon_threadsafe
        node = si.NodeInfo(node_id="n1", action=si.ActionFromRM.CREATE)
        await core.update_node(si.NodeRequest(rm_id="rm-1", nodes=(node,)))
        print((await waiting).accepted[0].node_id, flush=True)
asyncio.run(program())
"""


def test_the_copy_of_a_core_on_a_loop_does_not_wake_the_loop_of_the_parent() -> None:
    """Both processes have the pipe by which a thread wakes a loop."""
    done = subprocess.run(
        [sys.executable, "-c", ON_A_LOOP], capture_output=True, text=True, timeout=PATIENCE_S,
        check=True,
    )  # fmt: skip
    assert ("woken []\nn1\n", "") == (done.stdout, done.stderr)
