"""The read side in a process of its own: it answers the same, ends with its core, and is replaced."""

import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from probes import PATIENCE_S, wait_until
from served import RM, SETTINGS, Confirming, P, Served, live, node, register

from yunikorn_actors import SchedulerCore, si
from yunikorn_actors.drivers.live.clock import RealClock
from yunikorn_actors.messages.base import Message
from yunikorn_actors.messages.followers import ManagerLeft
from yunikorn_actors.service.listener import Site, Standing
from yunikorn_actors.service.rest import process
from yunikorn_actors.service.rest.in_process import RestPart
from yunikorn_actors.service.rest.pipe import IGNORED, Answered
from yunikorn_actors.service.rest.process import ProcessPart
from yunikorn_actors.service.tokens import CurrentTokens, Tokens


@pytest.fixture
def served() -> Iterator[Served]:
    with SchedulerCore(settings=SETTINGS) as core:
        part = ProcessPart(Site(core, "127.0.0.1:0", Standing()))
        part.start()
        try:
            yield Served(core, Confirming(core), part)
        finally:
            part.stop(PATIENCE_S)


def revision(served: Served) -> object:
    return served.get("/ws/v1/x/mailboxes")["revisions"]


def caught_up(served: Served) -> None:
    """The other process hears everything, a moment later."""
    served.settle()
    truth = {name: it["revision"] for name, it in served.core.state_dump()["partitions"].items()}
    wait_until(lambda: truth == revision(served))


def test_both_processes_answer_the_same(served: Served) -> None:
    beside = RestPart(Site(served.core, "127.0.0.1:0", Standing()))
    beside.start()
    try:
        live(served)
        caught_up(served)
        other = Served(served.core, served.rm, beside)
        for path in (f"{P}/queues", f"{P}/nodes", f"{P}/applications/active", "/ws/v1/config"):
            assert other.ask(path).body == served.ask(path).body
        why = "/ws/v1/x/why?application=app-need&key=need-0"
        assert "obstacle" in served.get(why)
        assert b"yunikorn_actors_messages_total" in served.ask("/ws/v1/metrics").body
    finally:
        beside.stop(PATIENCE_S)


def test_events_come_as_they_happen(served: Served) -> None:
    connection = http.client.HTTPConnection(served.part.address, timeout=PATIENCE_S)
    with closing(connection):
        connection.request("GET", "/ws/v1/events/stream")
        stream = connection.getresponse()
        assert "InstanceUUID" in json.loads(stream.readline())
        register(served)
        assert "root" == json.loads(stream.readline())["objectID"]


def test_one_that_has_ended_is_replaced_and_knows_it_all(served: Served) -> None:
    register(served)
    served.nodes(node("n1"))
    part = served.part
    assert isinstance(part, ProcessPart)
    assert part._process is not None
    first = part._process.pid
    part._process.kill()
    wait_until(lambda: part._process is not None and part._process.pid != first)
    served.nodes(node("n2"))
    caught_up(served)
    assert ["n1", "n2"] == [it["nodeID"] for it in served.get(f"{P}/nodes")]


def test_a_signal_to_the_whole_group_is_not_for_it(served: Served) -> None:
    """A supervisor ends all processes at once; this one still answers until the core has ended."""
    process_ = served.part._process
    for number in (signal.SIGTERM, signal.SIGINT):
        process_.send_signal(number)
    assert 200 == served.ask("/ws/v1/clusters").status
    assert served.part._process is process_
    assert process_.poll() is None


def test_a_signal_to_the_whole_group_is_not_for_one_that_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ended by the signal before it was ready, and a stop was reported as a fault."""
    await_ready = ProcessPart._await_ready
    is_early = []

    def signalled(part: ProcessPart) -> None:
        assert part._process is not None
        for number in IGNORED:
            part._process.send_signal(number)
        is_early.append(not part._ready.is_set())
        await_ready(part)

    monkeypatch.setattr(ProcessPart, "_await_ready", signalled)
    with SchedulerCore(settings=SETTINGS) as core:
        part = ProcessPart(Site(core, "127.0.0.1:0", Standing()))
        part.start()
        try:
            assert [True] == is_early
            assert 200 == Served(core, Confirming(core), part).ask("/ws/v1/clusters").status
        finally:
            part.stop(PATIENCE_S)


def test_one_that_ends_as_soon_as_it_listens_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await_ready = ProcessPart._await_ready

    def ends_then(part: ProcessPart) -> None:
        await_ready(part)
        assert part._process is not None
        assert part._reader is not None
        reader = part._reader
        part._process.kill()
        reader.join(PATIENCE_S)

    monkeypatch.setattr(ProcessPart, "_await_ready", ends_then)
    with SchedulerCore(settings=SETTINGS) as core:
        part = ProcessPart(Site(core, "127.0.0.1:0", Standing()))
        part.start()
        try:
            served = Served(core, Confirming(core), part)
            register(served)
            served.nodes(node("n1"))
            wait_until(lambda: part._process is not None and part._process.poll() is None)
            caught_up(served)
            assert ["n1"] == [it["nodeID"] for it in served.get(f"{P}/nodes")]
        finally:
            part.stop(PATIENCE_S)


def test_one_that_cannot_stay_is_replaced_ever_later_and_health_tells_of_it(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it ends: nobody gives it up."""
    waits = tuple(n / 100 for n in range(2))
    monkeypatch.setattr(process, "WAITS_S", waits)
    part = served.part
    assert isinstance(part, ProcessPart)
    standing = part._site.standing
    for end in range(1, len(waits) + 2):
        assert part._process is not None
        former = part._process
        former.kill()
        wait_until(lambda former=former: part._process is not former and part._following)
        assert f"the read side was replaced {end} times" in standing.read_side_fault
    register(served)
    health = served.get("/ws/v1/scheduler/healthcheck")
    (said,) = [it for it in health["HealthChecks"] if it["Name"] == "Read side"]
    assert (False, False) == (health["Healthy"], said["Succeeded"])


def test_one_that_has_stayed_for_a_while_is_well_again(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "STEADY_S", 0.2)
    part = served.part
    assert isinstance(part, ProcessPart)
    assert part._process is not None
    told: list[str] = []
    part._site.standing.subscribe(
        lambda topic, fault: told.append(fault) if topic == "rest" else None
    )
    part._process.kill()
    wait_until(lambda: len(told) > 2)
    assert ["", "the read side was replaced 1 times: it ended by itself", ""] == told


def test_one_that_reads_too_slowly_is_replaced_and_nothing_piles_up(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = served.part
    assert isinstance(part, ProcessPart)
    assert part._process is not None
    register(served)
    first = part._process
    monkeypatch.setattr(process, "BEHIND_MAX", 100_000)
    os.kill(first.pid, signal.SIGSTOP)
    for n in range(40):
        served.core.update_node(
            si.NodeRequest(rm_id=RM, nodes=tuple(node(f"n-{n}-{i}") for i in range(100)))
        )
    wait_until(lambda: part._process is not first and part._following)
    assert "it was too far behind" in part._site.standing.read_side_fault
    monkeypatch.undo()
    caught_up(served)
    assert 4_000 == len(served.get(f"{P}/nodes"))


def test_the_first_reason_to_end_it_is_told(served: Served) -> None:
    """Its writer fails when it is ended for another reason; that came first once in a while."""
    part = served.part
    assert isinstance(part, ProcessPart)
    first = part._process
    assert first is not None
    told: list[str] = []
    part._site.standing.subscribe(
        lambda topic, fault: told.append(fault) if topic == "rest" else None
    )
    part._end_process(first, "it was too far behind")
    part._end_process(first, "its writer failed")
    wait_until(lambda: part._process is not first and part._following)
    part._end_process(first, "its writer failed late")
    second = part._process
    assert second is not None
    second.kill()
    wait_until(lambda: part._process is not second and part._following)
    assert [
        "the read side was replaced 1 times: it was too far behind",
        "the read side was replaced 2 times: it ended by itself",
    ] == [it for it in told if it]


class Full:
    """An outbox with more than a line holds."""

    def next(self) -> bytes:
        return bytes(1 << 24)

    def pause(self) -> None: ...

    def close(self) -> None: ...


def test_who_does_not_read_is_told_from_who_has_ended(served: Served) -> None:
    """The thread that writes may find out first that a process has ended."""
    part = served.part
    assert isinstance(part, ProcessPart)
    told: list[str] = []
    part._site.standing.subscribe(
        lambda topic, fault: told.append(fault) if topic == "rest" else None
    )
    for ends in (False, True):
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 10_000))
        if ends:
            theirs.close()
        before = part._process
        assert before is not None
        with closing(ours), closing(theirs):
            part._write(Full(), ours, before)
        wait_until(lambda before=before: part._process is not before and part._following)
    assert [
        f"the read side was replaced 1 times: it has not read for {process.STUCK_S} s",
        "the read side was replaced 2 times: it ended by itself",
    ] == [it for it in told if it]


def outbox(give_up: Callable[[str], None] = lambda _: None) -> process.Outbox:
    return process.Outbox(RealClock(), give_up)


def heard(number: int) -> Message:
    return ManagerLeft(rm_id=f"rm-{number}")


def names_in(data: bytes) -> list[bytes]:
    return re.findall(rb"rm-\d", data)


def test_what_waits_is_written_together() -> None:
    box = outbox()
    for number in range(3):
        box.receive(heard(number))
    assert [b"rm-0", b"rm-1", b"rm-2"] == names_in(box.next())


def test_a_batch_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "BATCH_MAX", 1)
    box = outbox()
    for number in range(2):
        box.receive(heard(number))
    assert [b"rm-0"] == names_in(box.next())
    assert [b"rm-1"] == names_in(box.next())


def test_facts_gather_until_somebody_waits_for_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "PAUSE_S", PATIENCE_S)
    box = outbox()
    begun = time.monotonic()
    writer = threading.Thread(target=box.pause)
    writer.start()
    wait_until(lambda: box._is_pausing)
    box.receive(heard(0))
    box.put(Answered(7, "here"))
    writer.join(PATIENCE_S)
    assert time.monotonic() - begun < PATIENCE_S
    data = box.next()
    assert [b"rm-0"] == names_in(data)
    assert b"here" in data


def test_what_is_being_written_counts_as_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that does not read is given one batch, and is as far behind with that."""
    monkeypatch.setattr(process, "BEHIND_MAX", 1)
    told: list[str] = []
    box = outbox(told.append)
    box.receive(heard(0))
    assert box.next()
    box.receive(heard(1))
    assert ["it was too far behind"] == told


def test_a_question_that_the_core_does_not_answer_is_refused(served: Served) -> None:
    served.core.stop()
    refused = served.ask("/ws/v1/metrics")
    assert (503, True) == (refused.status, "stopped" in refused.json["message"])


def test_one_that_cannot_begin_is_told_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "CHILD", "yunikorn_actors.no_such_module")
    with SchedulerCore() as core:
        part = ProcessPart(Site(core, "127.0.0.1:0", Standing()))
        with pytest.raises(OSError, match="has not begun to listen and has ended with status 1"):
            part.start()
        with pytest.raises(OSError, match="is no address to listen at: give HOST:PORT"):
            ProcessPart(Site(core, "127.0.0.1", Standing())).start()


def test_it_ends_when_its_core_has_gone_however_that_ended() -> None:
    """A process that is killed closes nothing, yet its end of the line is closed."""
    program = (
        "import os, signal\n"
        "from yunikorn_actors import SchedulerCore\n"
        "from yunikorn_actors.service.listener import Site, Standing\n"
        "from yunikorn_actors.service.rest.process import ProcessPart\n"
        "core = SchedulerCore().start()\n"
        "part = ProcessPart(Site(core, '127.0.0.1:0', Standing()))\n"
        "part.start()\n"
        "print(part._process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    child = int(done.stdout)
    wait_until(lambda: not is_running(child))


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:  # noqa: PTH123 - no real file
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_who_may_ask_is_told_to_it() -> None:
    word = "a-long-word-that-is-shown"
    with SchedulerCore() as core:
        site = Site(
            core,
            "127.0.0.1:0",
            Standing(),
            tokens=CurrentTokens(Tokens(word)),
            names=("sched.local",),
            cors=False,
        )
        part = ProcessPart(site)
        part.start()
        try:
            it = Served(core, Confirming(core), part)
            shown = {"Authorization": f"Bearer {word}", "Host": "sched.local"}
            response = it.ask("/ws/v1/clusters", **shown)
            assert (200, None) == (
                response.status,
                response.headers["Access-Control-Allow-Origin"],
            )
            assert 401 == it.ask("/ws/v1/clusters").status
            assert 403 == it.ask("/ws/v1/clusters", **shown | {"Host": "other.local"}).status
        finally:
            part.stop(PATIENCE_S)
