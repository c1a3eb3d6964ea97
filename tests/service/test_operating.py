"""The operator's commands, against a service that runs as a process of its own."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
import ranges

pytest.importorskip("aiohttp")
pytest.importorskip("grpc")
from calling import PATIENCE_S
from commands import Running, starting
from probes import wait_until
from served import node, register, serving
from tls import Certify

from yunikorn_actors import RemoteCore, Scheduler, connect, si
from yunikorn_actors.cli import apps, main, nodes, queues
from yunikorn_actors.cli import service_calls as asking
from yunikorn_actors.cli.rows import Application, units_of
from yunikorn_actors.errors import CoreError
from yunikorn_actors.service.rest.client import Client
from yunikorn_actors.service.rest.request_guard import Guard
from yunikorn_actors.values.quantity import unit_of

QUEUES = """\
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: batch
      resources: {guaranteed: {vcore: 2}, max: {vcore: 6}}
    - name: web
"""
OTHER = QUEUES.replace("name: web", "name: shop")
STEERING = "\x1b[2Jred\u202e\u009b<b>"
LONG = "x" * 300
QUEUE_LIMIT = (
    "queue root.batch has no room for it, vcore 2 short: vcore 6 of vcore 6 are "
    "used; release that much there, or raise the maximum"
)


class Said(NamedTuple):
    status: int
    out: list[str]
    err: list[str]


def fill(s: Scheduler) -> None:
    """Two nodes, an application of which two asks wait, and others with names from a bad dream."""
    for name in ("node-1", "node-2"):
        s.add_node(name, vcore=4, memory="16Gi")
    etl = s.application("etl-1", user="ann", queue="root.batch")
    placed = [etl.ask(f"task-{n}", vcore=2, memory="2Gi") for n in range(5)]
    for it in placed[:3]:
        it.result(PATIENCE_S)
    for name in (STEERING, LONG):
        s.application(name, user="bob", queue="root.web")
    wait_until(lambda: 2 == s.core.state_dump()["waiting"]["[rm-1]default"]["total"])


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """No test changes it but for what it changes back."""
    config = tmp_path_factory.mktemp("town") / "queues.yaml"
    config.write_text(QUEUES)
    with starting() as start:
        running = start("--config", str(config), rest=True)
        with connect(running.address, queues="") as s:
            fill(s)
            wait_until(lambda: is_shown(running))
            yield running


def is_shown(running: Running) -> bool:
    """Those who read hear of it a moment later."""
    partitions = Client(running.rest).get("ws", "v1", "partitions")
    counts = [(it["applications"].get("total"), it.get("totalContainers")) for it in partitions]
    return [(3, 3)] == counts


@pytest.fixture
def run() -> Iterator[Callable[..., Running]]:
    """Start commands that end with the test, however that ends."""
    with starting() as start:
        yield start


@pytest.fixture
def say(town: Running, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def said(*words: str, server: str = "") -> Said:
        capsys.readouterr()
        status = main([*words, "--server", server or town.rest])
        told = capsys.readouterr()
        return Said(status, told.out.splitlines(), told.err.splitlines())

    return said


Say = Callable[..., Said]


# -- what is there


def test_queues_have_a_line_for_each_type(say: Say) -> None:
    assert (
        """\
queue       state   apps  resource  allocated  pending  guaranteed   max
root        Active  1     memory          6Gi      4Gi           -  32Gi
root        Active  1     vcore             6        4           -     8
root.batch  Active  1     memory          6Gi      4Gi           -     -
root.batch  Active  1     vcore             6        4           2     6
root.web    Active  0     -                 -        -           -     -
""".splitlines()
        == say("queues").out
    )
    assert ["root.batch"] * 2 == [line.split()[0] for line in say("queues", "root.batch").out[1:]]


def test_nodes_and_what_runs_on_one(say: Say) -> None:
    head, *rows = say("nodes").out
    assert "node takes work allocations memory vcore" == " ".join(head.split())
    assert ["node-1", "node-2"] == [row.split()[0] for row in rows]
    assert all(row.split()[-2].endswith("/16Gi") for row in rows)
    said = say("nodes", "node-1")
    assert [
        "node",
        "takes",
        "work",
        "allocations",
        "resource",
        "allocated",
        "others",
        "capacity",
    ] == said.out[0].split()
    assert 0 == said.status
    at = said.out.index("application  key     resource")
    assert {"etl-1"} == {line.split()[0] for line in said.out[at + 1 :]}


def test_applications_and_the_work_of_one(say: Say) -> None:
    rows = say("apps").out[1:]
    assert {"etl-1", LONG} <= {row.split()[0] for row in rows}
    assert ["etl-1"] == [row.split()[0] for row in say("apps", "--queue", "root.batch").out[1:]]
    assert [] == say("apps", "--state", "completed").out
    one = say("apps", "etl-1").out
    assert ["key     resource             node", 5] == [one[3], len(one[4:])]
    # Nothing that they wait for has said how long it runs.
    places = ["waits, place 1 of 2", "waits, place 2 of 2"]
    assert places == [line[line.index("waits") :].rstrip() for line in one[-2:]]


def test_a_configuration_is_tried_on_a_service(say: Say, tmp_path: Path) -> None:
    files = tmp_path / "old.yaml", tmp_path / "new.yaml"
    for file, most in zip(files, ("6", "8"), strict=True):
        file.write_text(QUEUES.replace("max: {vcore: 6}", f"max: {{vcore: {most}}}"))
    said = say("config", "diff", *map(str, files))
    assert (1, []) == (said.status, said.err)
    assert "    max vcore: 6 -> 8" in said.out
    starts = said.out[said.out.index("fares otherwise:") + 1]
    assert starts.startswith("  etl-1/task-3: starts never, with the changes at once on node-")


def test_an_application_without_work_is_there_all_the_same(say: Say) -> None:
    assert 2 == len(say("apps", LONG).out)
    assert 2 == len(say("apps", STEERING).out)


@pytest.mark.parametrize(
    ("words", "count", "name"),
    [
        (("queues",), 3, "queuename"),
        (("nodes",), 2, "nodeID"),
        (("apps",), 3, "applicationID"),
        (("why",), 2, "key"),
        (("why", "etl-1"), 2, "key"),
        (("why", "etl-1", "task-4"), 1, "key"),
        (("events", "--count", "7"), 7, "timestampNano"),
        (("config", "show"), 1, "Checksum"),
    ],
    ids=lambda it: " ".join(it) if isinstance(it, tuple) else None,
)
def test_json_is_one_object_on_a_line(
    say: Say, words: tuple[str, ...], count: int, name: str
) -> None:
    said = say(*words, "--json")
    assert (0, count) == (said.status, len(said.out))
    assert all(name in json.loads(line) for line in said.out)


# -- why


def test_all_that_wait_are_grouped_by_what_keeps_them(say: Say) -> None:
    assert [
        "asks that wait: 2",
        "2 for QUEUE_LIMIT, such as task-3 of etl-1",
        *(f"  {part}" for part in QUEUE_LIMIT.split("; ")),
    ] == say("why").out


def test_why_of_an_application_and_of_an_ask(say: Say) -> None:
    head, *more = say("why", "etl-1").out
    assert (
        "application etl-1 of default: Running in root.batch; asks that wait: 2, allocations: 3"
        == head
    )
    assert 2 == sum("place" in line for line in more)
    assert say("why", "etl-1", "task-4").out[0].startswith("task-4 of etl-1 has waited for ")
    assert "task-0 of etl-1 does not wait" == say("why", "etl-1", "task-0").out[0]


# -- names that are not there


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("queues", "root.bach"), "there is no queue 'root.bach'; did you mean root.batch"),
        (("nodes", "node-3"), "there is no node 'node-3'; did you mean node-2 or node-1?"),
        (("apps", "etl-2"), "there is no application 'etl-2'; did you mean etl-1?"),
        (("apps", "--queue", "root.wep"), "there is no queue 'root.wep'; did you mean root.web"),
        (("apps", "--partition", "defalt"), "there is no partition 'defalt'; did you mean default"),
        (("why", "elt-1"), "there is no application 'elt-1'; did you mean etl-1?"),
        (
            ("why", "etl-1", "tusk-4"),
            "no ask tusk-4 of etl-1 is known: it has ended, was withdrawn",
        ),
        (("events", "node-3"), "there is no event of 'node-3'; did you mean node-2 or node-1?"),
        (("drain", "node-3"), "there is no node 'node-3'; did you mean node-2 or node-1?"),
        (("undrain", "node-1"), "node-1: node is not draining"),
        (("unregister", "rm-2"), "there is no resource manager 'rm-2'; did you mean rm-1?"),
        (("unregister", "rm-1"), "rm-1 is registered: stop that program first"),
        (("apps", ".."), "there is no application '..'"),
        (("unregister", ".."), "there is no resource manager '..'"),
        (("nodes", "a/b"), "there is no node 'a/b'"),
        (("apps", STEERING + "x"), r"there is no application '\x1b[2Jred"),
        (("nodes", "x" * 9_000), "this is no request in HTTP: "),
    ],
    ids=lambda it: " ".join(it)[:20] if isinstance(it, tuple) else None,
)
def test_a_name_that_is_not_there_is_one_line_and_those_like_it(
    say: Say, words: tuple[str, ...], complaint: str
) -> None:
    said = say(*words)
    assert [] == said.out
    assert [True] == [line.startswith(complaint) for line in said.err]
    assert 1 == said.status


# -- what is printed steers no terminal


@pytest.mark.parametrize(
    "words",
    [("apps",), ("apps", "--json"), ("apps", STEERING), ("events", STEERING), ("events", "--json")],
    ids=" ".join,
)
def test_names_from_outside_reach_no_terminal_raw(say: Say, words: tuple[str, ...]) -> None:
    said = "\n".join(say(*words).out)
    assert "red" in said
    assert not {"\x1b", "\u202e", "\u009b"} & set(said)


def test_on_a_terminal_a_table_is_as_wide_as_that_and_names_stand_once(town: Running) -> None:
    terminal, inside = pty.openpty()
    with os.fdopen(inside, "wb") as out, os.fdopen(terminal, "rb", buffering=0) as screen:
        for command in ("nodes", "apps"):
            words = [sys.executable, "-m", "yunikorn_actors", command, "--server", town.rest]
            done = subprocess.run(
                words, stdout=out, env={**os.environ, "COLUMNS": "78"}, check=False
            )
            assert 0 == done.returncode
        written = b""
        # A terminal hands over what it has in pieces.
        while select.select([screen], [], [], 0.2)[0]:
            written += screen.read(65_536)
    shown = written.decode().splitlines()
    assert 78 == max(map(len, shown))
    assert 1 == sum("node-1" in line for line in shown)
    assert 1 == sum("xxx..." in line for line in shown)


# -- changes


def test_who_drained_a_node_is_known_after_a_crash(
    run: Callable[..., Running], say: Say, tmp_path: Path
) -> None:
    first = run("--journal", str(tmp_path), rest=True)
    with suppress(CoreError), connect(first.address, queues="") as s:
        s.add_node("node-1", vcore=1)
        # Those who read hear of the node a moment later.
        wait_until(lambda: 0 == say("drain", "node-1", server=first.rest).status)
        first.end(signal.SIGKILL)
    again = run("--journal", str(tmp_path), rest=True)
    with RemoteCore(again.address) as core:
        told = [it.message for it in core.events().records]
    assert 1 == sum("Node node-1 drained by " in it for it in told)
    assert 0 == say("unregister", "rm-1", server=again.rest).status


def test_a_node_is_drained_and_who_did_it_is_among_the_events(
    say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "ann smith")
    said = say("drain", "node-1")
    assert (0, []) == (said.status, said.err)
    assert said.out[0].startswith("node-1 is drained: nothing new is placed there; allocations")
    again = say("drain", "node-1")
    assert (1, ["node-1: node is draining already"]) == (again.status, again.err)
    wait_until(lambda: "no" == say("nodes", "node-1").out[1].split()[1])
    assert {"change": "undrain", "node": "node-1"}.items() <= json.loads(
        say("undrain", "node-1", "--json").out[0]
    ).items()
    wait_until(lambda: "undrained" in "".join(say("events", "node-1").out))
    told = [line for line in say("events", "node-1").out if " by " in line]
    assert [True, True] == [
        line.endswith(f"{done} by ann_smith at 127.0.0.1")
        for line, done in zip(told, ("drained", "undrained"), strict=True)
    ]


def test_a_configuration_is_checked_loaded_and_shown(say: Say, tmp_path: Path) -> None:
    file, bad = tmp_path / "other.yaml", tmp_path / "bad.yaml"
    file.write_text(OTHER)
    bad.write_text("partitions:\n- queus: []\n- 7\n")
    assert [f"{file}: would be taken"] == say("validate", str(file)).out
    assert [True] == [json.loads(it)["allowed"] for it in say("validate", str(file), "--json").out]
    for words in (("validate",), ("config", "load")):
        said = say(*words, str(bad))
        assert (1, []) == (said.status, said.out)
        assert [f"{bad}: line 2: partitions[0]", f"{bad}: line 3: partitions[1]"] == [
            line[: line.index("]") + 1] for line in said.err
        ]
        gone = say(*words, str(tmp_path / "none"))
        assert (2, 1) == (gone.status, len(gone.err))
    loaded = say("config", "load", str(file))
    assert (
        0,
        [f"{file}: is in force wherever no resource manager has brought one of its own"],
    ) == (loaded.status, loaded.out)
    assert "the service follows " in loaded.err[0]
    wait_until(lambda: "    - name: shop" in say("config", "show").out)
    (tmp_path / "first.yaml").write_text(QUEUES)
    assert 0 == say("config", "load", str(tmp_path / "first.yaml")).status


def test_a_lost_resource_manager_is_unregistered(say: Say) -> None:
    with serving() as it:
        server = it.part.address
        register(it)
        it.nodes(node("node-1"))
        it.core.resource_manager_lost("rm-1")
        said = say("unregister", "rm-1", server=server)
        assert (0, ["rm-1 is unregistered: nothing of it is left"]) == said[:2]
        wait_until(lambda: [] == say("nodes", server=server).out)


def test_two_partitions_of_one_name_are_told_apart(say: Say) -> None:
    with serving() as it:
        server = it.part.address
        register(it)
        it.nodes(node("node-1"))
        other = si.RegisterResourceManagerRequest(rm_id="rm-2", policy_group="2", config=QUEUES)
        it.core.register_resource_manager(other, si.ResourceManagerCallback())
        it.core.update_node(si.NodeRequest(rm_id="rm-2", nodes=(node("node-1"),)))
        wait_until(lambda: 3 == len(say("nodes", server=server).out))
        head, *rows = say("nodes", server=server).out
        assert "partition" == head.split()[0]
        assert {"[rm-1]default", "[rm-2]default"} == {row.split()[0] for row in rows}
        said = say("drain", "node-1", server=server)
        assert 1 == said.status
        assert said.err[0].endswith("give --partition [rm-1]default or [rm-2]default")
        chosen = ("--partition", "[rm-2]default")
        assert 0 == say("drain", "node-1", *chosen, server=server).status
        assert 0 == say("why", server=server).status
        wait_until(lambda: "no" == say("nodes", *chosen, server=server).out[1].split()[1])
        assert (
            "yes" == say("nodes", "--partition", "[rm-1]default", server=server).out[1].split()[1]
        )


LISTING = (("queues",), ("apps",), ("nodes",), ("why",), ("queues", "--json"), ("why", "--json"))
NAMING = (("queues", "root"), ("apps", "a"), ("nodes", "n"), ("why", "a", "k"), ("drain", "n"))


def test_where_nothing_is_registered_each_command_says_so_in_one_line(say: Say) -> None:
    with serving() as it:
        server = it.part.address
        for words in (*LISTING, *NAMING):
            said = say(*words, server=server)
            expected = f"no resource manager is registered at {server}: there is nothing yet"
            assert (int(words in NAMING), [], [expected]) == said, words
        assert (0, [], ["no events are stored"]) == say("events", server=server)


def test_what_is_not_there_is_one_line(say: Say) -> None:
    with serving() as it:
        server = it.part.address
        register(it)
        assert (0, [], ["there are no nodes"]) == say("nodes", server=server)
        for state in ("active", "completed"):
            said = say("apps", "--state", state, server=server)
            assert (0, [], [f"there are no {state} applications"]) == said


def test_a_column_has_one_unit(say: Say) -> None:
    """Amounts that are whole in no common unit are written with decimals, not in another unit."""
    with serving() as it:
        server = it.part.address
        register(it)
        sizes = {"node-1": (12_800_000, 3 * 2**40), "node-2": (250, 2**30)}
        it.nodes(
            *(
                si.NodeInfo(
                    node_id=name,
                    action=si.ActionFromRM.CREATE,
                    schedulable_resource=si.Resource.of({"vcore": vcore, "memory": memory}),
                )
                for name, (vcore, memory) in sizes.items()
            )
        )
        wait_until(lambda: 3 == len(say("nodes", server=server).out))
        head, *rows = [line.split() for line in say("nodes", server=server).out]
        assert ["memory", "vcore"] == head[-2:]
        assert {("0/3Ti", "0/12800"), ("0/0.001Ti", "0/0.25")} == {tuple(row[-2:]) for row in rows}


def test_what_applications_have_is_in_one_unit() -> None:
    used = [{"vcore": 7_175_250, "memory": 2**40}, {"vcore": 12_800_000, "memory": 2**30}]
    units = units_of(used)
    rows = [Application(id=str(it), used_resource=book) for it, book in enumerate(used)]
    cells = [next(iter(apps._cells(units, it)))[-1] for it in rows]
    assert ["memory 1Ti, vcore 7175.25", "memory 0.001Ti, vcore 12800"] == cells


@pytest.mark.parametrize(
    ("kind", "amounts", "shown"),
    [
        ("vcore", [7_175_250, 12_800_000, 1], ["7175.25", "12800", "0.001"]),
        ("memory", [6 * 2**30, 512 * 2**20, 0], ["6Gi", "0.5Gi", "0"]),
        ("memory", [3 * 10**9, 5 * 10**8], ["3G", "0.5G"]),
        ("memory", [2**40, 1], ["1Ti", "<0.001Ti"]),
        ("pods", [110, 0], ["110", "0"]),
        ("memory", [2**63 - 1, 2**20], ["8Ei", "<0.001Ei"]),
        ("pods", [], []),
    ],
)
def test_amounts_of_one_type_have_one_unit(kind: str, amounts: list[int], shown: list[str]) -> None:
    unit = unit_of(kind, amounts)
    assert shown == [unit.written(it) for it in amounts]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def of(columns: int) -> None:
        for module in (asking, nodes, queues, apps):
            for name, value in (("is_terminal", True), ("width", columns)):
                monkeypatch.setattr(module, name, lambda it=value: it, raising=False)

    return of


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("words", [("queues",), ("nodes",), ("apps",), ("nodes", "node-1")])
def test_tables_fit_a_terminal_and_a_partition_is_named_whole(
    say: Say, terminal: Callable[[int], None], columns: int, words: tuple[str, ...]
) -> None:
    terminal(columns)
    with serving() as it:
        server = it.part.address
        register(it)
        it.nodes(node("node-1"), node("node-2"))
        other = si.RegisterResourceManagerRequest(
            rm_id="another-manager", policy_group="2", config=QUEUES
        )
        it.core.register_resource_manager(other, si.ResourceManagerCallback())
        it.core.update_node(si.NodeRequest(rm_id="another-manager", nodes=(node("node-1"),)))
        for name in ("one", "two"):
            it.application(name, "root.prod", si.UserGroupInformation(user="ann"))
        wait_until(lambda: 3 == len(say("nodes", "--json", server=server).out))
        said = say(*words, server=server)
    assert 0 == said.status
    assert max(map(len, said.out)) <= columns
    if words != ("apps",):
        for name in ("[rm-1]default", "[another-manager]default"):
            assert f"partition {name}" in said.out


# -- tokens, TLS

TOKEN = "5f4dcc3b5aa765d61d8327deb882cf99"  # noqa: S105 - of nothing


def test_a_token_comes_from_a_file_and_is_printed_nowhere(say: Say, tmp_path: Path) -> None:
    token, wrong, config = tmp_path / "token", tmp_path / "wrong", tmp_path / "c.yaml"
    token.write_text(f"{TOKEN}\n")
    wrong.write_text("another-token-altogether\n")
    config.write_text(QUEUES)
    with serving(Guard(token=TOKEN)) as it:
        server = it.part.address
        assert 0 == say("queues", "--token-file", str(token), server=server).status
        for words in (("queues",), ("drain", "node-1"), ("config", "load", str(config))):
            for shown in ((), ("--token-file", str(wrong))):
                said = say(*words, *shown, server=server)
                assert (2, [], 1) == (said.status, said.out, len(said.err))
                assert "the token is missing or wrong: --token-file" in said.err[0]
                assert "another-token" not in said.err[0]


def test_a_token_is_not_shown_to_another_computer_without_tls(say: Say, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    said = say("queues", "--token-file", str(token), server="192.0.2.1:9080")
    assert (2, 1) == (said.status, len(said.err))
    assert "give --tls-ca, or --insecure" in said.err[0]
    assert TOKEN not in said.err[0]


def test_with_tls_a_service_is_asked_that_is_trusted(
    run: Callable[..., Running], say: Say, certify: Certify
) -> None:
    (pem, key), (other, _) = certify(), certify()
    running = run("--tls-cert", str(pem), "--tls-key", str(key), rest=True)
    assert 0 == say("queues", "--tls-ca", str(pem), server=running.rest).status
    for words, why in (
        (("--tls-ca", str(other)), "its certificate is not trusted"),
        (("--tls-ca", str(key)), "no certificate can be read there"),
        ((), "a service with TLS needs --tls-ca"),
    ):
        said = say("queues", *words, server=running.rest)
        assert (2, 1, True) == (said.status, len(said.err), why in said.err[0])


# -- events as they come


def following(address: str, *more: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "yunikorn_actors", "events", "--follow", "--server", address]
    pipe = subprocess.PIPE
    return subprocess.Popen([*command, *more], stdout=pipe, stderr=pipe, text=True)


def read_until(program: "subprocess.Popen[str]", words: str) -> None:
    assert program.stdout is not None
    for line in program.stdout:
        if words in line:
            return
    raise AssertionError((words, program.communicate()))


@pytest.mark.usefixtures("interruptible")
def test_events_are_followed_until_ctrl_c(run: Callable[..., Running], say: Say) -> None:
    running = run(rest=True)
    with connect(running.address, queues="") as s:
        s.add_node("node-1", vcore=1)
        with following(running.rest, "node-1") as program:
            read_until(program, "Node added")
            assert 0 == say("drain", "node-1", server=running.rest).status
            read_until(program, "Node node-1 drained by ")
            program.send_signal(signal.SIGINT)
            _, err = program.communicate(timeout=PATIENCE_S)
    assert (130, "") == (program.returncode, err)


@pytest.mark.parametrize("number", ranges.first([signal.SIGKILL, signal.SIGTERM], 1))
def test_a_service_that_ends_in_the_middle_is_one_line(
    run: Callable[..., Running], number: int
) -> None:
    running = run(rest=True)
    with suppress(CoreError), connect(running.address, queues="") as s:
        s.add_node("node-1", vcore=1)
        with following(running.rest) as program:
            read_until(program, "Node added")
            os.kill(running.process.pid, number)
            _, err = program.communicate(timeout=PATIENCE_S)
    assert (2, 1) == (program.returncode, err.count("\n"))
    assert "the service has ended" in err
