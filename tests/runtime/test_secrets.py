"""No secret that anybody plants in a call stands in a recording, in a log or in a dump."""

import json
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
import ranges
from planted import PLANTED, shows_one
from probes import wait_until
from support import Recorder as Hearing
from viewed import blocks

from yunikorn_actors import SchedulerCore, TraceSettings, VirtualCore, si
from yunikorn_actors.cli import main
from yunikorn_actors.machines.topology import TOPOLOGIES, TopologyName
from yunikorn_actors.recording.secret_values import masked_record, salted
from yunikorn_actors.trace.read import TraceReader
from yunikorn_actors.trace.replay import replay
from yunikorn_actors.values.masking import Cover, masked, stars

SECRET = "hunter2"  # noqa: S105 - it is to be found nowhere
NAMES = (
    "si_secret", "Password", "x.token", "db-passwd", "API_KEY", "privateKey", "pwd", "PGPASS",
    "spark.hadoop.fs.s3a.secret.key", "aws.access.key", "Cookie",
)  # fmt: skip
TEXTS = (
    f"token={SECRET}",
    f"cannot log in with --password {SECRET}",
    f"spark.hadoop.fs.s3a.secret.key={SECRET}",
    f"Authorization: Bearer {SECRET}",
    f"see https://bob:{SECRET}@host/path",
    f'{{"pwd": "{SECRET}"}} is no answer',
    f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----",
)
"""What a program may say of itself: why a node will not do, or what went wrong."""
CONFIG = f"""
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: default
      properties: {{registry.password: {SECRET}}}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.trace"


def planted(*more: str) -> dict[str, str]:
    told = dict.fromkeys(NAMES, SECRET)
    told |= {f"note-{number}": text for number, text in enumerate(PLANTED)}
    told |= dict.fromkeys(PLANTED, "key")
    return {**told, "note": f"token={SECRET}", "url": f"https://bob:{SECRET}@host/", **dict(more)}  # type: ignore[arg-type]


class Careless(Hearing):
    """Says secrets: as the reason of a predicate, and in exceptions."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.states: list[str] = []
        self.pushed: list[si.EventRecord] = []

    def send_event(self, events: tuple[si.EventRecord, ...]) -> None:
        self.pushed += events

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        if args.node_id == "n1":
            return None
        text = TEXTS[int(args.node_id[1:]) % len(TEXTS)]
        self.said.append(text)
        if len(self.said) % 2:
            raise RuntimeError(text)
        return text

    def update_container_scheduling_state(
        self, request: si.UpdateContainerSchedulingStateRequest
    ) -> None:
        self.states.append(request.reason)

    def get_state_dump(self) -> str:
        raise RuntimeError(TEXTS[0])

    def update_node(self, response: si.NodeResponse) -> None:
        super().update_node(response)
        raise KeyError(TEXTS[1])


def work(core: SchedulerCore) -> Careless:
    hearing = Careless()
    core.register_resource_manager(
        si.RegisterResourceManagerRequest(
            rm_id="rm-1", config=CONFIG, extra_config=planted(), build_info=planted()
        ),
        hearing,
    )
    amount = si.Resource.of({"vcore": 1})
    nodes = tuple(
        si.NodeInfo(
            node_id=f"n{number}", action=si.ActionFromRM.CREATE, attributes=planted(),
            schedulable_resource=si.Resource.of({"vcore": 4}),
        )
        for number in range(1, 2 + 2 * len(TEXTS))
    )  # fmt: skip
    core.update_node(si.NodeRequest(rm_id="rm-1", nodes=nodes))
    application = si.AddApplicationRequest(
        application_id="app-1", queue_name="root.default", tags=planted(),
        ugi=si.UserGroupInformation(user="bob"),
    )  # fmt: skip
    elsewhere = msgspec.structs.replace(
        application, application_id="app-2", queue_name=f"root.none.token={SECRET}"
    )
    core.update_application(si.ApplicationRequest(rm_id="rm-1", new=(application, elsewhere)))
    asks = tuple(
        si.AllocationAsk(
            application_id="app-1", allocation_key=key, resource_ask=amount, tags=planted()
        )
        for key in "abcdef"
    )
    core.update_allocation(si.AllocationRequest(rm_id="rm-1", asks=asks))
    core.update_configuration(
        si.UpdateConfigurationRequest(rm_id="rm-1", config=CONFIG, extra_config=planted())
    )
    wait_until(lambda: core.is_settled() and len(hearing.told("new")) == 4)
    assert len({*hearing.said}) == len(TEXTS), "vacuous: not all was said"
    return hearing


@pytest.mark.parametrize("topology", ranges.first(TOPOLOGIES, 1))
def test_nothing_that_goes_out_has_a_secret(
    path: Path, log: StringIO, topology: TopologyName, capsys: pytest.CaptureFixture[str]
) -> None:
    with SchedulerCore(topology=topology, trace=path) as core:
        hearing = work(core)
        dump = core.state_dump()
        why = core.explain("app-1", "f")
        events = core.events().records
        with core.event_stream(history=10_000) as stream:
            streamed = [next(stream) for _ in events]
        wait_until(lambda: any("token=" in it.message for it in hearing.pushed))
    assert path.stat().st_size > 5_000
    assert SECRET.encode() not in path.read_bytes()
    assert SECRET not in log.getvalue()
    assert SECRET not in json.dumps(dump)
    for told in (path.read_bytes().decode(errors="replace"), log.getvalue(), json.dumps(dump)):
        assert not shows_one(told)
    assert "get_state_dump raised" in json.dumps(dump)
    assert SECRET not in str(why) + repr(why)
    for records in (events, streamed, hearing.pushed):
        assert any("token=***" in it.message for it in records), "vacuous"
        assert SECRET not in str(records)
    assert hearing.states
    assert SECRET not in "".join(hearing.states)
    assert main(["trace", "show", str(path), "--full"]) == 0
    shown = capsys.readouterr().out
    assert SECRET not in shown
    assert not shows_one(shown)
    assert '"si_secret": "masked:' in shown
    page = path.with_suffix(".html")
    assert main(["trace", "view", str(path), "-o", str(page), "--why", "all"]) == 0
    assert SECRET not in page.read_text("utf-8")
    packed = "".join(blocks(page).values())
    assert SECRET not in packed
    assert not shows_one(packed)
    assert '"si_secret":"masked:' in packed


def test_a_dump_in_virtual_time_has_no_secret() -> None:
    with VirtualCore() as core:
        request = si.RegisterResourceManagerRequest(rm_id="rm-1", config=CONFIG)
        core.register_resource_manager(request, si.ResourceManagerCallback())
        info = si.NodeInfo(
            node_id="n1", action=si.ActionFromRM.CREATE, attributes=planted(),
            schedulable_resource=si.Resource.of({"vcore": 4}),
        )  # fmt: skip
        core.update_node(si.NodeRequest(rm_id="rm-1", nodes=(info,)))
        core.run_until_idle()
        dump = json.dumps(core.state_dump())
    assert '"si_secret": "***"' in dump
    assert SECRET not in dump


@pytest.mark.parametrize("topology", ranges.first(TOPOLOGIES, 1))
def test_a_run_with_secrets_replays(path: Path, topology: TopologyName) -> None:
    """The machines get what is recorded, and come to the same: none of them decides by a secret."""
    with SchedulerCore(topology=topology, trace=path) as core:
        work(core)
    with TraceReader(path) as trace:
        outcome = replay(trace)
    assert outcome.difference is None
    assert outcome.states > 2


def test_texts_of_programs_are_masked_before_they_get_into_a_journal(tmp_path: Path) -> None:
    """Tags stand there as they came, because the next core goes on with them."""
    with SchedulerCore(journal=tmp_path) as core:
        work(core)
    written = b"".join(it.read_bytes() for it in tmp_path.iterdir())
    assert b"the predicate raised" in written
    for text in TEXTS[1:]:
        assert text.encode() not in written


def test_a_flight_recorder_has_no_secret_either(path: Path) -> None:
    settings = TraceSettings(path=path, flight_recorder_bytes=10**7)
    with SchedulerCore(trace=settings) as core:
        work(core)
        core.save_trace(path)
    assert SECRET.encode() not in path.read_bytes()


# -- what is covered


def masked_value(value: Any, cover: Cover) -> Any:
    return msgspec.msgpack.decode(masked_record(msgspec.msgpack.encode(value), cover))


def test_equal_secrets_stay_equal_and_others_differ() -> None:
    cover = salted()
    told = masked_value({"token": "one", "tokens": ["two"], "a": {"token": "one"}}, cover)
    assert told["token"] == told["a"]["token"]
    assert told["token"].startswith("masked:")
    assert told["tokens"] == ["two"], "a list under such a name is told by its own names"
    assert masked_value({"token": "two"}, cover)["token"] != told["token"]
    assert masked_value({"token": "one"}, salted())["token"] != told["token"], "another salt"


@pytest.mark.parametrize(
    "value",
    [{"vcore": 4, "token": 7}, {"token": ""}, {"application_id": "secret-agent"}, [None, 1.5]],
)
def test_what_is_no_secret_stays(value: Any) -> None:
    assert value == masked_value(value, stars)


def test_keys_are_masked_and_what_follows_an_option_in_a_list() -> None:
    secret = SECRET
    told = masked_value(
        {
            "refusals": {f"the predicate raised RuntimeError('token={secret}')": 3},
            "arguments": ["--verbose", "--password", secret, "-x", "y"],
            "env": [{"name": "DB_PASSWORD", "value": secret}, {"name": "HOME", "value": "/root"}],
        },
        stars,
    )
    assert told == {
        "refusals": {"the predicate raised RuntimeError('token=***')": 3},
        "arguments": ["--verbose", "--password", "***", "-x", "y"],
        "env": [{"name": "DB_PASSWORD", "value": "***"}, {"name": "HOME", "value": "/root"}],
    }


ALPHABET = "abcXYZ0189_/+%!?~^"


@pytest.mark.parametrize("number", range(60))
def test_in_whatever_a_secret_is_wrapped(number: int) -> None:
    random = Random(number)  # noqa: S311
    secret = "q7" + "".join(random.choices(ALPHABET, k=random.randrange(6, 30))) + "z"
    name = random.choice(["password", "pwd", "token", "apiKey", "client_secret", "s3.access.key"])
    name = random.choice(["", "x-", "DB_", "my.app."]) + name
    quote, blank = random.choice(["'", '"']), random.choice(["", " ", "  "])
    text = random.choice(
        (
            f"{name}{blank}={blank}{secret}",
            f"{name}:{blank}{secret}",
            f"{name}={quote}{secret}{quote}",
            f"--{name} {secret}",
            f"-{name}={secret}",
            f"{{{quote}{name}{quote}: {quote}{secret}{quote}}}",
            f"<{name}>{secret}</{name}>",
            f"name: {name}, value: {secret}",
            f"jdbc://bob:{secret.replace('/', '_')}@host/db",
            f"Authorization: {random.choice(['Bearer', 'Basic', 'token'])} {secret}",
        )
    )
    secret = secret.replace("/", "_") if "jdbc" in text else secret
    for _ in range(random.randrange(3)):
        wrap = random.choice(
            [repr, json.dumps, lambda it: f"failed ({it}), again", "at\n{}\nx".format]
        )
        text = wrap(text)
    assert secret in text
    said = masked(text)
    assert secret not in said, text
    assert said == masked(said), "masked once is enough"


HIDDEN = "q7Zx81kLmn"


@pytest.mark.parametrize(
    "text",
    [
        "[('authorization', 'Basic {}')]", "{{'Authorization': b'Basic {}'}}", "a\nCookie: a=b; s={}\nb",
        "auth=Basic dXNlcjpw{}==", "https://h/p?sv=1&sig={}", "jdbc:oracle:thin:bob/{}@h:1521",
        "mysql -p {} -u root", "mysql -u root -p{}", "sshpass -p {} ssh h", "curl -u bob:{} http://h",
        "docker login -u bob -p {} host", "cmd '--password' '{}'",
        "keytool -storepass {}", "  token: !!str {}", 'secret="""{}"""', "secret='''{}'''",
        "RuntimeError({{b'token': b'{}'}})", "REGISTRY_AUTH={}", "creds={}", "jwt={}", "JSESSIONID={}",
        "passcode: {}", "Passwort={}", "password%3D{}", "password -> {}", "password == {}",
        "the token was {}", 'invalid password "{}"', "Invalid API key provided: {}",
        "<property><name>db.password</name><value>{}</value></property>",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n{}\n-----END PGP PRIVATE KEY BLOCK-----",
        "ghs_{}abcdefghijklmnopqrst", "AIza{}abcdefghijklmnopqrstuvwxyz", "npm_{}abcdefghijklmnopqrstuvwxyz",
    ],
)  # fmt: skip
def test_headers_command_lines_and_sentences(text: str) -> None:
    said = masked(text.format(HIDDEN))
    assert HIDDEN not in said
    assert said == masked(said), "masked once is enough"


@pytest.mark.parametrize(
    "text",
    [
        "token ring", "password policy", "app=web,tier=backend", "secretary=bob", "tokenizer=bert",
        "max_tokens: 4096", "tokens=512", "token-bucket: 5", "secretName: tls-cert",
        "imagePullSecrets=regcred", 'secret "db-creds" not found', "bearer of news", "basic training",
        "docker run -p 80:80", "mkdir -p /x/y", "ssh -p 22 h", "compass=north", "bypass=true",
        "the password must be changed", "root.secret.team is full", "node(s) had untolerated taint",
    ],
)  # fmt: skip
def test_ordinary_texts_stay_readable(text: str) -> None:
    assert masked(text) == text
