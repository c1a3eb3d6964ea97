"""The command: it serves until a signal ends it, and says why it cannot."""

import json
import os
import re
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import pytest
import ranges

pytest.importorskip("grpc")
from calling import CONFIG as QUEUES
from calling import EXTENSION, PATIENCE_S, SCHEDULER, Caller, application, asks, node, written
from commands import Running, starting
from probes import wait_until
from support import Recorder
from tls import Certify

from yunikorn_actors import CoreFailed, RemoteCore, connect, si
from yunikorn_actors.cli import main
from yunikorn_actors.service import service as serving
from yunikorn_actors.trace.read import TraceReader

CONFIG = "partitions: [{name: default, queues: [{name: root, queues: [{name: NAME}]}]}]"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "queues.yaml"
    path.write_text(CONFIG.replace("NAME", "first"))
    return path


@pytest.fixture
def run() -> Iterator[Callable[..., Running]]:
    """Start commands that end with the test, however that ends."""
    with starting() as start:
        yield start


@pytest.fixture
def running(run: Callable[..., Running], path: Path) -> Running:
    return run("--config", str(path))


def test_it_serves_follows_its_file_and_ends_on_a_signal(running: Running, path: Path) -> None:
    with connect(running.address, queues="") as s:
        s.add_node("node-1", vcore=1)

        def queues() -> list[str]:
            return list(s.core.state_dump()["partitions"]["[rm-1]default"]["queues"])

        assert "root.first" in queues()
        path.write_text(CONFIG.replace("NAME", "second"))
        running.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "root.second" in queues())
        path.write_text("partitions: 7")
        running.process.send_signal(signal.SIGHUP)
        path_is_refused = "refused, the former one stays"
        wait_until(lambda: "refused" in str([it.message for it in s.core.events().records]))
        assert "root.second" in queues()
    code, errors = running.end()
    assert 0 == code
    assert 1 == errors.count(path_is_refused)


def test_a_client_that_does_not_read_does_not_delay_the_end(running: Running) -> None:
    with Caller(running.address) as caller:
        caller.register("rm-1", config="")
        silent = caller.nodes()
        for n in range(2_000):
            silent.say(node("rm-1", f"node-{n}"))
        assert silent.hear(si.NodeResponse).accepted
        began = time.monotonic()
        code, _ = running.end()
        assert 0 == code
        assert time.monotonic() - began < PATIENCE_S


def begin(core: RemoteCore, rm: Recorder, *reported: si.Allocation) -> None:
    request = si.RegisterResourceManagerRequest(rm_id="rm-1", config=QUEUES)
    core.register_resource_manager(request, rm)
    core.update_application(application("rm-1"))
    wait_until(lambda: ("app", "accepted") in rm.told("application"))
    size = si.Resource.of({"vcore": 20})
    info = si.NodeInfo(
        node_id="n1",
        action=si.ActionFromRM.CREATE,
        schedulable_resource=size,
        existing_allocations=reported,
    )
    core.update_node(si.NodeRequest(rm_id="rm-1", nodes=(info,)))
    wait_until(lambda: ("n1", "accepted") in rm.told("node"))


def test_a_killed_service_goes_on_from_its_journal(
    run: Callable[..., Running], tmp_path: Path
) -> None:
    """Two asks were told and one waits; the next service tells neither again, and places the third."""
    first, rm = run("--journal", str(tmp_path)), Recorder()
    core = RemoteCore(first.address).start()
    begin(core, rm)
    core.update_allocation(asks("rm-1", "one", "two", "three"))
    wait_until(lambda: 2 == len(rm.running))
    first.end(signal.SIGKILL)
    core.stop()

    next_, told = run("--journal", str(tmp_path)), dict(rm.running)
    size = si.Resource.of({"vcore": 10})
    reported = [
        si.Allocation(
            application_id="app",
            allocation_key=key,
            uuid=uuid,
            node_id="n1",
            resource_per_alloc=size,
        )
        for uuid, key in told.items()
    ]
    rm = Recorder()
    with RemoteCore(next_.address) as core:
        begin(core, rm, *reported)
        gone = si.AllocationRelease(application_id="app", allocation_key=reported[0].allocation_key)
        releases = si.AllocationReleasesRequest(allocations_to_release=(gone,))
        core.update_allocation(si.AllocationRequest(rm_id="rm-1", releases=releases))
        wait_until(lambda: bool(rm.told("new")))
    assert ({"one", "two", "three"} - set(told.values())) == {key for key, _ in rm.told("new")}
    assert told.keys().isdisjoint(rm.running)
    assert 0 == next_.end()[0]


def test_the_last_of_a_run_can_be_fetched(run: Callable[..., Running], tmp_path: Path) -> None:
    running = run("--flight-recorder", str(tmp_path / "failed.trace"), rest=True)
    with connect(running.address) as s:
        s.add_node("node-1", vcore=1)
    with urllib.request.urlopen(f"http://{running.rest}/ws/v1/x/trace") as answer:
        copy = tmp_path / "copy.trace"
        copy.write_bytes(answer.read())
    with TraceReader(copy) as trace:
        assert "RMRegistration" in {type(delivery.message).__name__ for delivery in trace}
    assert 0 == running.end()[0]
    assert not (tmp_path / "failed.trace").exists()


def test_all_of_a_run_is_recorded_and_replayed_as_a_workload(
    run: Callable[..., Running], tmp_path: Path
) -> None:
    """Each start leaves the recording of the one before."""
    folder = tmp_path / "new" / "recorded"
    before = folder / "20260102T030405Z.trace"
    running = run("--record", str(folder))
    before.write_bytes(b"of another start")
    with connect(running.address) as s:
        s.add_node("node-1", vcore=1)
        with s.application("app", user="ann").ask("task", vcore=1).result(PATIENCE_S):
            pass
    assert 0 == running.end()[0]
    (trace,) = set(folder.glob("*.trace")) - {before}
    assert b"of another start" == before.read_bytes()
    assert 0 == main(["workload", "from-trace", str(trace), "-o", str(tmp_path / "workload")])
    assert "app/task" in (tmp_path / "workload" / "jobs.jsonl").read_text(encoding="utf-8")


def test_what_a_failure_is_to_leave_needs_a_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Or one would learn of it when there is nothing left to write."""
    path = tmp_path / "none" / "failed.trace"
    assert 2 == main(["serve", "--flight-recorder", str(path), "--rest", "off"])
    assert f"--flight-recorder {path}: there is no folder {path.parent}" in capsys.readouterr().err


def test_a_recording_needs_a_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert 2 == main(["serve", "--record", str(tmp_path / "file"), "--rest", "off"])
    assert f"--record {tmp_path / 'file'}: File exists: name a folder" in capsys.readouterr().err


def test_a_run_of_a_cluster_is_not_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--flight-recorder", "--record"):
        assert 2 == main(["serve", "--cluster", "local", option, "recorded"])
        assert f"{option}: not with --cluster" in capsys.readouterr().err


SMALL = """
import resource, sys
# What is compiled would be cut off as well, and found by others.
sys.dont_write_bytecode = True
from yunikorn_actors.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
sys.exit(main(sys.argv[1:]))
"""


def test_a_full_journal_ends_it_with_one_line_and_nothing_is_forgotten(
    run: Callable[..., Running], tmp_path: Path
) -> None:
    running, told = run("--journal", str(tmp_path), program=("-c", SMALL)), set[str]()

    def fill() -> None:
        with connect(running.address, give_up_after=0) as s:
            s.add_node("node-1", vcore=10_000)
            app = s.application("app", user="ann")
            for number in range(10_000):
                told.add(app.ask(f"ask-{number}", vcore=1).result(PATIENCE_S).key)

    with pytest.raises(CoreFailed):
        fill()
    _, errors = running.process.communicate(timeout=PATIENCE_S)
    (line,) = (it for it in errors.splitlines() if it.startswith("the core has failed, start it"))
    assert "cannot be written: File too large; nothing more is taken" in line
    assert "raise the limit on the size of files (`ulimit -f`), and start again" in line
    assert "last messages" not in line
    assert 1 == running.process.returncode
    with RemoteCore(run("--journal", str(tmp_path)).address) as core:
        known = core.state_dump()["partitions"]["[rm-1]default"]["applications"]["app"]
    assert told
    assert told <= {it["key"] for it in known["allocations"]}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--grpc", "0.0.0.0:0"), "others can reach this address"),
        (("--config", "none.yaml"), "--config none.yaml: No such file or directory"),
        (("--token-file", "none"), "--token-file none cannot be read: No such file"),
        (("--tls-cert", "one.pem"), "--tls-cert and --tls-key belong together"),
        (("--grpc", "garbage"), "--grpc garbage: is no address to listen at: give HOST:PORT"),
        (("--grpc", "127.0.0.1:99999"), "99999: is no address to listen at: give HOST:PORT"),
        (("--grpc", "off"), "nothing is to be served: give --rest or --grpc an address"),
        (("--config", "/dev/zero"), "text larger than 4194304 bytes"),
        (("--config", "bytes.yaml"), "--config bytes.yaml: line 2: document: no UTF-8 (save the file as UTF-8)"),
        (("--config", "."), "--config .: Is a directory"),
        (("--journal", "bytes.yaml"), "bytes.yaml cannot be kept there: File exists: name a folder"),
        (("--grpc", "::1:0"), "--grpc ::1:0: is no address to listen at: give HOST:PORT, with an IPv6"),
    ],
    ids=[
        "open", "no file", "no token", "no key", "no address", "no port", "nothing", "no end",
        "no text", "folder", "no folder", "no brackets",
    ],
)  # fmt: skip
def test_what_it_cannot_do_it_says(
    options: tuple[str, ...],
    says: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bytes.yaml").write_bytes(b"#\npartitions: \xff")
    assert 2 == main(["serve", "--grpc", "127.0.0.1:0", "--rest", "off", *options])
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(("option", "other"), [("--grpc", "--rest"), ("--rest", "--grpc")])
def test_an_address_that_is_taken_is_named(
    option: str, other: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert 2 == main(["serve", option, address, other, "off"])
    said = f"cannot listen on {address}: Address already in use: end what listens there"
    assert said in capsys.readouterr().err


def test_neither_a_pipe_as_its_file_nor_many_signals_keep_it_from_its_end(
    running: Running, path: Path
) -> None:
    path.unlink()
    os.mkfifo(path)
    for _ in range(100):
        running.process.send_signal(signal.SIGHUP)
    status, errors = running.end()
    assert (0, True) == (status, "core stopped" in errors)


def test_a_journal_without_a_name_is_not_kept_in_the_present_folder(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--grpc", "127.0.0.1:0", "--rest", "off", "--journal", ""])
    assert "--journal: give a folder" in capsys.readouterr().err


def test_without_the_extra_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [it for it in sys.modules if it.startswith("yunikorn_actors.service.rpc")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "grpc", None)
    assert 2 == main(["serve", "--rest", "off"])
    said = capsys.readouterr().err
    assert "pip install -e '.[grpc]'" in said
    assert "gRPC needs the package grpc" in said


def test_without_ray_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "yunikorn_actors.service.cluster.engine", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    assert 2 == main(["serve", "--cluster", "127.0.0.1:6379", "--rest", "off"])
    assert "pip install -e '.[ray]'" in capsys.readouterr().err


def test_the_time_to_stop_leaves_room_for_the_process() -> None:
    assert serving.STOP_S < 5


def test_it_ends_in_time_though_a_large_configuration_is_being_read(
    run: Callable[..., Running],
) -> None:
    running = run()
    queues = "".join(f"          - name: q{n}\n" for n in range(40_000))
    head = "partitions:\n  - name: default\n    queues:\n      - name: root\n        queues:\n"
    request = si.RegisterResourceManagerRequest(rm_id="rm-1", config=head + queues)
    with Caller(running.address) as caller:
        before = processor_time(running.process.pid)
        register = caller.channel.unary_unary(f"{SCHEDULER}/RegisterResourceManager")
        call = register.future(written(request))
        wait_until(lambda: processor_time(running.process.pid) > before + 0.2)
        # Reading it takes much longer than that.
        assert not call.done()
        assert 0 == running.end()[0]


def processor_time(pid: int) -> float:
    """Return the seconds that a process has computed."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# -- signals that want something, and the log


def lines_of(running: Running) -> list[str]:
    return running.end()[1].splitlines()


def test_sigusr1_writes_the_flight_recorder_and_ends_nothing(
    run: Callable[..., Running], tmp_path: Path
) -> None:
    running = run("--flight-recorder", str(tmp_path / "failed.trace"))
    with connect(running.address) as s:
        s.add_node("node-1", vcore=1)
        running.process.send_signal(signal.SIGUSR1)
        wait_until(lambda: bool(list(tmp_path.glob("failed-*Z.trace"))))
        running.process.send_signal(signal.SIGUSR2)
        s.add_node("node-2", vcore=1)
    errors = lines_of(running)
    (copy,) = tmp_path.glob("*.trace")
    with TraceReader(copy) as trace:
        assert "RMRegistration" in {type(delivery.message).__name__ for delivery in trace}
    assert any(f"SIGUSR1: the flight recorder is written to {copy}" in it for it in errors)
    assert any("SIGUSR2 means nothing here" in it for it in errors)
    assert 0 == running.process.returncode


def test_sigusr1_without_a_flight_recorder_ends_nothing(running: Running) -> None:
    running.process.send_signal(signal.SIGUSR1)
    with connect(running.address) as s:
        s.add_node("node-1", vcore=1)
    errors = lines_of(running)
    assert 0 == running.process.returncode
    assert any(
        "there is no flight recorder: start with --flight-recorder FILE" in it for it in errors
    )


@pytest.mark.parametrize("name", ranges.first(["SIGHUP", "SIGUSR1", "SIGUSR2"], 1))
def test_a_signal_to_the_whole_group_leaves_the_read_side(
    name: str, run: Callable[..., Running]
) -> None:
    """As `docker kill` and a terminal that is closed send it."""
    running = run(rest=True)
    children = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children")
    before = children.read_text().split()
    for pid in (*before, running.process.pid):
        os.kill(int(pid), getattr(signal, name))
    with urllib.request.urlopen(f"http://{running.rest}/ws/v1/x/live") as answer:
        assert b"ok\n" == answer.read()
    assert before
    assert set(before) <= set(children.read_text().split())
    assert 0 == running.end()[0]


TOKENS = ("the-first-token-0123456789", "the-second-token-0123456789")


def test_sighup_puts_new_tokens_in_force(run: Callable[..., Running], tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKENS[0])
    file.chmod(0o644)
    running = run("--token-file", str(file), rest=True)

    def status(token: str) -> int:
        shown = {"Authorization": f"bearer {token}"}
        request = urllib.request.Request(f"http://{running.rest}/ws/v1/clusters", headers=shown)
        try:
            with urllib.request.urlopen(request) as answer:  # noqa: S310 - a service of ours
                return int(answer.status)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code

    assert [200, 401] == [status(it) for it in TOKENS]
    file.write_text(TOKENS[1])
    running.process.send_signal(signal.SIGHUP)
    wait_until(lambda: [401, 200] == [status(it) for it in TOKENS])
    with Caller(running.address, token=TOKENS[0]) as former:
        assert "UNAUTHENTICATED" == former.refusal(f"{EXTENSION}/Events")[0]
    errors = lines_of(running)
    assert not any(token in line for token in TOKENS for line in errors)
    assert any(f"other users can read {file} (mode 0644)" in it for it in errors)


def test_each_line_of_a_json_log_is_an_object(run: Callable[..., Running]) -> None:
    running = run("--log-format", "json", "--log-level", "debug", rest=True)
    running.process.send_signal(signal.SIGUSR1)
    with connect(running.address) as s:
        s.add_node("node-1", vcore=1)
    lines = [json.loads(it) for it in lines_of(running)]
    assert {("time", "level", "origin", "message")} == {tuple(it) for it in lines}
    assert {"core started, topology proposing", "core stopped"} <= {it["message"] for it in lines}
    assert all(datetime.fromisoformat(it["time"]).tzinfo is not None for it in lines)


@pytest.mark.parametrize("style", ranges.first(["text", "json"], 1))
def test_the_level_says_what_is_logged(style: str, run: Callable[..., Running]) -> None:
    running = run("--log-level", "WARNING", "--log-format", style)
    with connect(running.address) as s:
        s.add_node("node-1", vcore=1)
    assert [] == lines_of(running)


def test_what_keeps_it_from_starting_has_the_form_of_the_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        command = ["serve", "--grpc", address, "--rest", "off", "--log-format", "json"]
        assert 2 == main(command)
    (line,) = capsys.readouterr().err.splitlines()
    assert f"cannot listen on {address}" in json.loads(line)["message"]


@pytest.mark.parametrize(("option", "other"), [("--grpc", "--rest"), ("--rest", "--grpc")])
def test_the_core_does_not_start_where_an_address_is_taken(
    option: str, other: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        command = ["serve", option, address, other, "127.0.0.1:0", "--journal", str(tmp_path / "j")]
        assert 2 == main(command)
    said = capsys.readouterr()
    assert ("", 1) == (said.out, len(said.err.splitlines()))
    assert not list(tmp_path.glob("j/*"))


def test_lines_of_grpc_stay_out_of_the_log(run: Callable[..., Running], certify: Certify) -> None:
    """Bytes that are no TLS, and connections that break, are lines of its own otherwise."""
    cert, key = certify()
    running = run("--tls-cert", str(cert), "--tls-key", str(key))
    host, _, port = running.address.rpartition(":")
    for data in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05hello", bytes(500)):
        with socket.create_connection((host, int(port)), PATIENCE_S) as line:
            line.sendall(data)
            with suppress(ConnectionResetError):
                line.recv(1000)
    assert all(
        re.match(r"\d{4}-\d\d-\d\dT[\d:.]+Z [A-Z]+ yunikorn_actors\.", it)
        for it in lines_of(running)
    )
