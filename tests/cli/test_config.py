"""`config check`: faults as a compiler tells them, or the tree that the configuration means."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from yunikorn_actors import si
from yunikorn_actors.cli import main
from yunikorn_actors.cli.apps import age
from yunikorn_actors.config.fault import TEXT_BYTES_MAX
from yunikorn_actors.recording.plain_text import moment
from yunikorn_actors.runtime.virtual_core import VirtualCore
from yunikorn_actors.values.quantity import parse_quantity, quantity

SOUND = """\
partitions:
  - name: default
    preemption: {enabled: false}
    nodesortpolicy: {type: binpacking, resourceweights: {memory: 0.5, vcore: 2}}
    usergroupresolver: {type: os}
    placementrules:
      - name: tag
        value: namespace
        create: true
        parent: {name: user, create: true}
        filter: {type: deny, users: [bob], groups: [dev, ops]}
      - {name: provided}
    queues:
      - name: root
        submitacl: "*"
        properties: {preemption.delay: 10s, application.sort.policy: fifo}
        queues:
          - name: batch
            parent: true
            maxapplications: 10
            adminacl: "carl,ann ops"
            resources: {guaranteed: {vcore: 4}, max: {vcore: 10500m, memory: 10Gi}}
            properties: {application.sort.policy: fair, unheard.of: "1"}
            limits:
              - {limit: guests, users: [bob, "*"], maxresources: {vcore: 2}, maxapplications: 3}
            childtemplate:
              maxapplications: 2
              properties: {priority.offset: 5}
              resources: {max: {memory: 500M}}
          - name: web
"""
TREE = """\
partition default
  node order: binpacking, weights memory 0.5, vcore 2
  preemption: off, by quota off
  groups of users: os
  placement rule 1: tag namespace, creates queues, deny users bob and groups dev, ops, \
below the queue of [user, creates queues]
  placement rule 2: provided
  root
    submit: everybody
    property preemption.delay: 10s
    root.batch
      guaranteed: vcore 4
      max: memory 10Gi, vcore 10500m
      applications: at most 10 at a time
      admin: users ann, carl and groups ops
      property application.sort.policy: fair
      property preemption.delay: 10s
      limit for users bob, *: vcore 2, 3 applications (guests)
      queues created below:
        max: memory 500M
        applications: at most 2 at a time
        property priority.offset: 5
    root.web (leaf)
      property preemption.delay: 10s
"""
TWICE = (
    "partitions: [{name: default, queues: "
    "[{name: a, submitacl: '*'}, {name: b, queues: [{name: a}]}]}]"
)
WARNING = "partition default: queue name 'a' stands for root.a, root.b.a"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "queues.yaml"


def test_a_sound_file_is_shown_as_its_tree(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(SOUND)

    status = main(["config", "check", str(file)])

    checksum, _, rest = capsys.readouterr().out.partition("\n\n")
    assert 0 == status
    assert "checksum" == checksum.split()[0]
    assert TREE == rest


def test_faults_come_one_on_a_line_with_file_and_line(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("partitions:\n  - name: default\n    queus: []\n    nodes: 1\n")

    status = main(["config", "check", str(file)])

    said = capsys.readouterr()
    assert 1 == status
    assert "" == said.out
    allowed = "allowed here: limits, name, nodesortpolicy, placementrules, preemption, queues, "
    remedy = f"({allowed}usergroupresolver)"
    assert [
        f"{file}:3: partitions[0]: unknown key 'queus' {remedy}",
        f"{file}:4: partitions[0]: unknown key 'nodes' {remedy}",
    ] == said.err.splitlines()


@pytest.mark.parametrize(("name", "stream"), [("\\ec", "out"), ("\\e[2J", "err")])
def test_a_name_cannot_steer_the_terminal(
    file: Path, name: str, stream: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(f'partitions: [{{name: "{name}", queues: []}}]')

    main(["config", "check", str(file)])

    said = capsys.readouterr()
    assert "partition \\x1b" in getattr(said, stream)
    assert "\x1b" not in said.out + said.err


@pytest.mark.parametrize(("options", "status", "warned"), [([], 0, ""), (["--strict"], 1, WARNING)])
def test_strict_points_out_what_is_confusing(
    file: Path, options: list[str], status: int, warned: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(TWICE)

    assert status == main(["config", "check", str(file), *options])

    said = capsys.readouterr()
    assert said.err.startswith(f"{file}: {warned}" if warned else "")
    assert bool(warned) is bool(said.err)
    assert "root.b.a (leaf)" in said.out


def test_json_says_what_was_understood(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(TWICE)

    status = main(["config", "check", str(file), "--strict", "--json"])

    document = json.loads(capsys.readouterr().out)
    assert 1 == status
    assert [str(file), [], [WARNING]] == [document[key] for key in ("file", "faults", "warnings")]
    assert "default" == document["config"]["partitions"][0]["name"]


def test_json_says_what_is_wrong(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("partitions:\n  - queues: 1\n")

    status = main(["config", "check", str(file), "--json"])

    said = capsys.readouterr()
    document = json.loads(said.out)
    assert 1 == status
    assert "" == said.err
    assert None is document["config"]
    assert [(2, "partitions[0].queues")] == [(f["line"], f["path"]) for f in document["faults"]]


def test_a_dash_reads_standard_input() -> None:
    command = [sys.executable, "-m", "yunikorn_actors", "config", "check", "-"]

    checked = subprocess.run(command, input="a: 1", capture_output=True, text=True, check=False)

    assert 1 == checked.returncode
    assert checked.stderr.startswith("<stdin>:1: document: unknown key 'a'")


def test_a_blank_text_stands_for_the_default(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("\n")

    assert 0 == main(["config", "check", str(file)])
    assert "placement rule 1: tag namespace, creates queues" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"name: \xff\n", "line 1 is not UTF-8"),
        (b"a:\n  b: \xe9\n", "line 2 is not UTF-8"),
        (b"#" * (TEXT_BYTES_MAX + 1), f"larger than {TEXT_BYTES_MAX} bytes"),
    ],
)
def test_what_cannot_be_read_is_no_verdict(
    file: Path, content: bytes | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        file.write_bytes(content)

    status = main(["config", "check", str(file)])

    heard = capsys.readouterr()
    assert (2, "") == (status, heard.out)
    assert heard.err.startswith(f"{file}: {said}")
    assert 1 == heard.err.count("\n")


def test_a_directory_is_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["config", "check", str(tmp_path)])
    assert f"{tmp_path}: cannot be read: Is a directory" in capsys.readouterr().err


def test_the_largest_file_is_still_checked(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_bytes(b"#" * TEXT_BYTES_MAX)

    assert 0 == main(["config", "check", str(file)])
    assert "" == capsys.readouterr().err


def test_a_terminal_without_the_characters_gets_them_spelt_out(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    file.write_text("partitions: [{name: größe, queues: []}]")

    assert 0 == main(["config", "check", str(file)])
    out.seek(0)
    assert "partition gr\\xf6\\xdfe" in out.read()


@pytest.mark.parametrize(
    ("kind", "amount", "written"),
    [
        ("vcore", 0, "0"),
        ("vcore", 64_000, "64"),
        ("vcore", 1_500, "1500m"),
        ("vcore", 2**63 - 1, "9223372036854775807m"),
        ("memory", 0, "0"),
        ("memory", 1023, "1023"),
        ("memory", 10 << 30, "10Gi"),
        ("memory", 1536 << 20, "1536Mi"),
        ("memory", 500_000_000, "500M"),
        ("memory", 2**63 - 1, "9223372036854775807"),
        ("memory", 7 << 60, "7Ei"),
        ("pods", 2048, "2048"),
    ],
)
def test_an_amount_is_written_as_it_would_be_read(kind: str, amount: int, written: str) -> None:
    assert written == quantity(kind, amount)
    assert amount == parse_quantity(kind, written)


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (-5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (7_200, "2h"),
        (172_799, "47h"),
        (172_800, "2d"),
    ],
)
def test_an_age_is_short(seconds: int, written: str) -> None:
    assert written == age(seconds * 1_000_000_000 + 999)


def test_a_time_that_no_calendar_has_is_its_number() -> None:
    assert "2026-11-23T22:38:32.535Z" == moment(1_795_473_512_535_000_000)
    assert str(2**62 * 1000) == moment(2**62 * 1000)


# -- what can hardly be meant

DOUBTFUL = """\
partitions:
- name: default
  queues:
  - name: a
    properties:
      aplication.sort.polcy: fair
      application.sort.policy: best
    childtemplate:
      properties:
        preemption.delay: soon
"""
DOUBTS = [
    (
        "3: {}partition default: nobody may submit an application: no queue has a submitacl or "
        "adminacl (set submitacl, on root for all queues)"
    ),
    (
        "6: {}root.a: unknown property 'aplication.sort.polcy' has no effect "
        "(did you mean 'application.sort.policy'?)"
    ),
    (
        "7: {}root.a: property application.sort.policy: 'best' is no value for it and counts as "
        "not set (use fifo, fair or stateaware, or a policy: fcfs, easy, conservative, sjf, largest-first, fair-decay, dominant-share)"
    ),
    (
        "10: {}root.a: property preemption.delay: 'soon' is no value for it and counts as not set "
        "(use a duration above 0 such as 30s or 1h30m)"
    ),
]


@pytest.mark.parametrize(
    ("key", "text", "meant"),
    [
        ("application.sort.policy", "fifoo", "fifo"), ("queue.sort.policy", "fairr", "fair"),
        ("preemption.policy", "fences", "fence"), ("gang.admission", "holds", "hold"),
        ("preemption.unit", "alocation", "allocation"),
        ("application.sort.priority", "enable", "enabled"),
    ],
)  # fmt: skip
def test_a_word_that_is_meant_is_named_as_it_is_written(
    key: str, text: str, meant: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "queues.yaml"
    root = f"{{name: root, submitacl: '*', properties: {{{key}: {text}}}}}"
    file.write_text(f"partitions: [{{name: default, queues: [{root}]}}]\n")
    main(["config", "check", str(file)])
    told = "".join(capsys.readouterr())
    assert f"(did you mean '{meant}'?)" in told


@pytest.mark.parametrize(
    ("options", "status", "kind"), [([], 0, "warning: "), (["--strict"], 1, "")]
)
def test_what_can_hardly_be_meant_is_told(
    file: Path, options: list[str], status: int, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(DOUBTFUL)

    assert status == main(["config", "check", str(file), *options])

    said = capsys.readouterr()
    assert [f"{file}:{doubt.format(kind)}" for doubt in DOUBTS] == said.err.splitlines()
    assert "root.a (leaf)" in said.out


def test_every_fault_of_a_file_is_named_in_one_go(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A misspelt key hides no quantity, and no fault of one queue those of another."""
    file.write_text(
        "partitions:\n- queus: []\n  nodesortpolicy: {type: best}\n  queues:\n"
        "  - {name: a, resources: {max: {vcore: much}}}\n"
        "  - {name: b, submitacl: a b c, limits: [{users: [bob], maxresources: {memory: x}}]}\n"
    )

    assert 1 == main(["config", "check", str(file)])

    lines = capsys.readouterr().err.splitlines()
    assert ["2", "6", "6", "5", "3"] == [
        line.removeprefix(f"{file}:").split(":")[0] for line in lines
    ]
    told = [
        "unknown key 'queus'",
        "multiple spaces",
        "'x' of resource",
        "'much' of",
        "policy: best",
    ]
    assert [True] * 5 == [words in line for words, line in zip(told, lines, strict=True)]


# -- what a configuration changes


def _two(tmp_path: Path, new: str) -> list[str]:
    files = tmp_path / "old.yaml", tmp_path / "new.yaml"
    for file, text in zip(files, (SOUND, new), strict=True):
        file.write_text(text)
    return ["config", "diff", *map(str, files)]


def test_differences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = SOUND.replace("vcore: 10500m, ", "").replace("          - name: web\n", "")
    assert 1 == main(_two(tmp_path, new))
    assert capsys.readouterr().out.splitlines() == [
        "partition default",
        (
            "  queue root.web: removed; it drains: no new application, those that it has go on, and it "
            "is gone after the last of them"
        ),
        "  queue root.batch",
        "    max vcore: 10500m -> no limit",
    ]


def test_differences_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 1 == main([*_two(tmp_path, SOUND.replace("10500m", "9")), "--json"])
    assert json.loads(capsys.readouterr().out) == {
        "partition": "default", "queue": "root.batch", "kind": "changed", "what": "max vcore",
        "before": "10500m", "after": "9", "of": "",
    }  # fmt: skip


def test_what_many_inherit_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "partitions: [{name: default, queues: [{name: root, properties: {%s}, queues: [%s]}]}]"
    leaves = ", ".join(f"{{name: q{number}}}" for number in range(5))
    files = tmp_path / "old.yaml", tmp_path / "new.yaml"
    for file, delay in zip(files, ("10s", "2m"), strict=True):
        file.write_text(text % (f"preemption.delay: {delay}", leaves))
    assert 1 == main(["config", "diff", *map(str, files)])
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "inherited in partition default",
        (
            "  property preemption.delay: 10s (of root) -> 2m (of root), in root.q0, root.q1, root.q2 "
            "and 2 more"
        ),
    ]


def test_no_differences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(_two(tmp_path, f"# a comment\n{SOUND}"))
    assert capsys.readouterr().out == "both mean the same\n"
    assert 0 == main([*_two(tmp_path, SOUND), "--json"])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("new", "complaint"),
    [
        (SOUND.replace("vcore: 10500m", "vcore: -1"), "new.yaml:22: root.batch: invalid quantity"),
        (SOUND.replace("name: web", "nam: web"), "new.yaml:30: partitions[0].queues[0].queues[1]"),
        ("partitions: [", "new.yaml:1: document: "),
    ],
)
def test_differences_from_a_faulty_one(
    new: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(_two(tmp_path, new))
    out, err = capsys.readouterr()
    assert (out, complaint in err) == ("", True), err


def test_differences_from_a_missing_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = _two(tmp_path, SOUND)
    Path(command[-1]).unlink()
    assert 2 == main(command)
    assert "new.yaml: cannot be read: No such file" in capsys.readouterr().err


LESS = """\
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: web, resources: {max: {vcore: 4}}}
"""


def _state(tmp_path: Path) -> Path:
    """Dump a core in which two asks of four wait for room in their queue."""
    with VirtualCore() as core:
        request = si.RegisterResourceManagerRequest(rm_id="rm-1", config=LESS)
        core.register_resource_manager(request, si.ResourceManagerCallback())
        node = si.NodeInfo(
            node_id="n1",
            action=si.ActionFromRM.CREATE,
            schedulable_resource=si.Resource.of({"vcore": 16_000}),
        )
        core.update_node(si.NodeRequest(rm_id="rm-1", nodes=(node,)))
        user = si.UserGroupInformation(user="ann")
        new = si.AddApplicationRequest(application_id="site", queue_name="root.web", ugi=user)
        core.update_application(si.ApplicationRequest(rm_id="rm-1", new=(new,)))
        size = si.Resource.of({"vcore": 2_000})
        asks = tuple(
            si.AllocationAsk(application_id="site", allocation_key=key, resource_ask=size)
            for key in "abcd"
        )
        core.update_allocation(si.AllocationRequest(rm_id="rm-1", asks=asks))
        core.run_until_idle()
        file = tmp_path / "state.json"
        file.write_text(json.dumps(core.state_dump()))
    return file


def test_who_fares_otherwise_in_a_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    less, more = tmp_path / "less.yaml", tmp_path / "more.yaml"
    less.write_text(LESS)
    more.write_text(LESS.replace("vcore: 4", "vcore: 6"))
    state = str(_state(tmp_path))
    assert 1 == main(["config", "diff", str(less), str(more), "--dump", state])
    lines = capsys.readouterr().out.splitlines()
    assert "    max vcore: 4 -> 6" in lines
    where = lines.index("fares otherwise:")
    assert ["  site/c: starts never, with the changes at once on n1", "in sum:"] == lines[
        where + 1 : where + 3
    ]
    assert 1 == main(["config", "diff", str(less), str(more), "--dump", state, "--json"])
    row = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert ("site", "c", "starts") == (row["application"], row["key"], row["what"])
    assert 0 == main(["config", "diff", str(less), str(less), "--dump", state])
    assert "nothing fares otherwise" in capsys.readouterr().out
    assert 2 == main(["config", "diff", str(less), str(more), "--until", "5"])
    assert "nothing is tried without a state" in capsys.readouterr().err
    more.write_text(f"{LESS}    properties: {{application.sort.policy: x}}\n")
    assert 2 == main(["config", "diff", str(less), str(more), "--dump", state])
    assert f"{more}: the configuration cannot be loaded: line 8: root: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[", "not JSON"),
        ("3", "not a state dump: a number at the top"),
        ("null", "not a state dump: a null at the top"),
        ("{}", "state.json: 'timestamp' is missing"),
        (None, "No such file"),
    ],
)
def test_a_state_that_is_none(
    text: str | None, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, state = tmp_path / "a.yaml", tmp_path / "state.json"
    config.write_text(LESS)
    if text is not None:
        state.write_text(text)
    assert 2 == main(["config", "diff", str(config), str(config), "--dump", str(state)])
    out, err = capsys.readouterr()
    assert (out, complaint in err) == ("", True), err
