"""Silence by default; lines for who asks; and never a secret."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO

import loguru
import pytest
from probes import PATIENCE_S, add_nodes, register, wait_until
from support import APP, CONFIG, QUEUE, RM, Recorder, report

from yunikorn_actors import SchedulerCore, enable_logs, si
from yunikorn_actors.recording.logs import logger
from yunikorn_actors.values.masking import masked

NOISY = """
import logging
logging.basicConfig(level=logging.INFO)
from yunikorn_actors import CoreFailed, ResourceManagerCallback, SchedulerCore, si
class Raising(ResourceManagerCallback):
    def update_node(self, response):
        core._actors.by_address["context"].holder = None
        raise ValueError("its own fault")
core = SchedulerCore(trace="/dev/full").start()
core.register_resource_manager(si.RegisterResourceManagerRequest(rm_id="rm-1", config="{}"), Raising())
node = si.NodeInfo(node_id="n1", action=si.ActionFromRM.CREATE)
core.update_node(si.NodeRequest(rm_id="rm-1", nodes=(node,)))
try:
    while True:
        core.state_dump()
except CoreFailed:
    core.stop()
""".replace('"{}"', repr(CONFIG))


def run(program: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S,
        check=True,
    )  # fmt: skip
    return done.stdout, done.stderr


def test_failures_alone_are_printed_by_default() -> None:
    """What nobody would see otherwise: what a callback raised, the end of core and trace."""
    stdout, stderr = run(NOISY)
    told = sorted(line for line in stderr.splitlines() if line.startswith("yunikorn_actors"))
    assert "" == stdout
    assert 3 == len(told)
    assert "yunikorn_actors: callback rm:rm-1#1 raised on CallUpdateNode" == told[0]
    assert told[1].startswith("yunikorn_actors: context failed on ")
    assert told[2].startswith("yunikorn_actors: the trace /dev/full ends here, the core goes on")
    assert 1 == stderr.count("\nValueError: its own fault\n")


def test_lines_appear_for_who_asks() -> None:
    """Once each, on standard error, where loguru writes unless it is told otherwise."""
    asked = "from yunikorn_actors import enable_logs\nenable_logs()\n"
    stdout, stderr = run(asked + NOISY)
    assert "" == stdout
    assert (1, 1) == (
        stderr.count("core started, topology proposing"),
        stderr.count("core stopped"),
    )
    assert 1 == stderr.count("ValueError: its own fault")
    assert "the trace /dev/full ends here, the core goes on" in stderr


def test_a_sink_hears_from_its_level_on() -> None:
    sinks = {level: StringIO() for level in ("INFO", "WARNING")}
    ends = [enable_logs(sink, level) for level, sink in sinks.items()]
    with SchedulerCore():
        pass
    for end in ends:
        end()
    with SchedulerCore():
        pass
    assert 1 == sinks["INFO"].getvalue().count("core stopped")
    assert " INFO yunikorn_actors.runtime.scheduler_core core stopped\n" in sinks["INFO"].getvalue()
    assert "" == sinks["WARNING"].getvalue()


def test_a_stream_gets_the_lines_alone() -> None:
    """Not standard error as well; and a program without loguru does not load it."""
    asked = """
import sys
from yunikorn_actors import SchedulerCore, enable_logs
enable_logs(sys.stdout)
with SchedulerCore():
    pass
print("loguru" in sys.modules)
"""
    stdout, stderr = run(asked)
    *lines, loaded = stdout.splitlines()
    assert (2, "False", "") == (len(lines), loaded, stderr)
    assert lines[1].endswith(" INFO yunikorn_actors.runtime.scheduler_core core stopped")


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def theirs() -> Iterator[tuple[logging.Logger, Kept]]:
    target, kept = logging.getLogger("a program's own"), Kept()
    target.addHandler(kept)
    target.setLevel(logging.INFO)
    target.propagate = False
    end = enable_logs(target)
    yield target, kept
    end()
    target.removeHandler(kept)


def test_a_logger_of_the_standard_library_gets_records(
    theirs: tuple[logging.Logger, Kept],
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, kept = theirs
    with SchedulerCore() as core:
        register(core, Raising())
        add_nodes(core, "n1")
        wait_until(lambda: len(kept.records) == 2)
    started, raised, stopped = kept.records
    assert ("a program's own", "INFO", "scheduler_core", "core stopped") == (
        stopped.name, stopped.levelname, stopped.module, stopped.getMessage(),
    )  # fmt: skip
    assert "start" == started.funcName
    assert "ValueError: no access with password=***" in raised.getMessage()
    assert ("", "") == capsys.readouterr()


def test_what_a_logger_does_not_want_is_printed_as_without_logs(
    theirs: tuple[logging.Logger, Kept], capsys: pytest.CaptureFixture[str]
) -> None:
    target, kept = theirs
    target.setLevel(logging.CRITICAL)
    with SchedulerCore() as core:
        register(core, Raising())
        add_nodes(core, "n1")
        wait_until(lambda: core.state_dump()["callback_errors"] == {RM: 1})
    assert [] == kept.records
    assert "raised on CallUpdateNode" in capsys.readouterr().err


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="no log level is called 'LOUD': give one of CRITICAL"):
        enable_logs(StringIO(), "LOUD")


SECRETS = {
    "password=hunter2": "password=***",
    "PASSWORD: hunter2, user: bob": "PASSWORD: ***, user: bob",
    "{'password': 'hun\\'ter 2', 'user': 'bob'}": "{'password': ***, 'user': 'bob'}",
    '{"db_passwd":"hunter 2","user":"bob"}': '{"db_passwd":***,"user":"bob"}',
    "bindPassword = hunter2": "bindPassword = ***",
    "access_token=abc&user=bob": "access_token=***&user=bob",
    "client-secret: abc": "client-secret: ***",
    "api_key=abc apikey=abc": "api_key=*** apikey=***",
    "private_key: 'a b c'": "private_key: ***",
    "Authorization: Bearer eyJ.abc": "Authorization: ***",
    "Authorization: Basic dXNlcjpw": "Authorization: ***",
    "sent bearer eyJ.abc to it": "sent bearer *** to it",
    "postgres://bob:hunter2@host/db": "postgres://bob:***@host/db",
    "credentials(token=abc)": "credentials(token=***)",
    "pwd=abc": "pwd=***",
    "run --password abc --verbose": "run --password *** --verbose",
    "spark.hadoop.fs.s3a.secret.key=abc": "spark.hadoop.fs.s3a.secret.key=***",
    "spark.hadoop.fs.s3a.secret.key abc": "spark.hadoop.fs.s3a.secret.key ***",
    'Error("token=abc")': 'Error("token=***")',
    "asked for 'token=abc': no": "asked for 'token=***': no",
    '{\\"password\\": \\"abc\\"}': '{\\"password\\": ***}',
    "<password>abc</password>": "<password>***</password>",
    "AKIAIOSFODNN7EXAMPLE": "***",
    "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----": (
        "-----BEGIN PRIVATE KEY-----***-----END PRIVATE KEY-----"
    ),
}
HARMLESS = (
    "the node node-1 was added: memory=1000, vcore=4",
    "see http://host:8080/path, mail bob@host",
    "Token of appreciation",
    "basic authentication failed, so a token is needed",
    "compass=N bypass=1 author=ann account=7",
    "queue root.secret.team is draining",
    "",
)


@pytest.mark.parametrize(("text", "expected"), SECRETS.items())
def test_secrets_are_masked(text: str, expected: str) -> None:
    assert expected == masked(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_is_left_alone(text: str) -> None:
    assert text == masked(text)


@pytest.mark.parametrize(
    "part", ["a", "token", "-token ", "://a:", "token='", "\\", "<token>", "name: pass, ", "eyJa."]
)
@pytest.mark.timeout(60)
def test_masking_a_long_text_is_quick(part: str) -> None:
    """No time that grows with the square of what somebody put into a message."""
    text = f"token {part * (300_000 // len(part))}"
    assert len(masked(text)) <= len(text)


class Raising(Recorder):
    def update_node(self, response: si.NodeResponse) -> None:
        super().update_node(response)
        secret = "hunter2"  # noqa: S105 - the secret of this test
        raise ValueError(f"no access with password={secret}")


def test_an_exception_is_told_without_its_secrets(log: StringIO) -> None:
    everything = StringIO()
    handle = loguru.logger.add(everything, diagnose=True, backtrace=True)
    end = enable_logs()
    with SchedulerCore() as core:
        register(core, Raising())
        add_nodes(core, "n1")
        wait_until(lambda: "password=***" in log.getvalue())
    end()
    loguru.logger.remove(handle)
    assert "callback rm:rm-1#1 raised on CallUpdateNode\nTraceback" in log.getvalue()
    for sink in (log, everything):
        assert "ValueError: no access with password=***" in sink.getvalue()
        assert "hunter2" not in sink.getvalue().replace('secret = "hunter2"', "")


def test_what_an_application_used_is_told_at_its_end(log: StringIO) -> None:
    with SchedulerCore() as core:
        register(core, Recorder())
        add_nodes(core, "n1")
        ugi = si.UserGroupInformation(user="bob")
        new = si.AddApplicationRequest(application_id=APP, queue_name=QUEUE, ugi=ugi)
        core.update_application(si.ApplicationRequest(rm_id=RM, new=(new,)))
        core.update_allocation(si.AllocationRequest(rm_id=RM, allocations=(report("a", "n1"),)))
        gone = si.RemoveApplicationRequest(application_id=APP)
        core.update_application(si.ApplicationRequest(rm_id=RM, remove=(gone,)))
        wait_until(lambda: f"YK_APP_SUMMARY: ApplicationID: {APP}" in log.getvalue())


def test_what_others_have_named_begins_no_line() -> None:
    sink = StringIO()
    end = enable_logs(sink)
    logger.warning("{} is lost: {} ({:d})", "a\n2026 ERROR\x1b[2J\u202e", ValueError("b\nc"), 7)
    end()
    assert sink.getvalue().endswith("a\\n2026 ERROR\\x1b[2J\\u202e is lost: b\n  c (7)\n"), (
        sink.getvalue()
    )
    assert 2 == sink.getvalue().count("\n")
