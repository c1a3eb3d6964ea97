"""Silence by default; lines for who asks; and never a secret."""

import subprocess
import sys
from io import StringIO

import loguru
import pytest
from probes import PATIENCE_S, add_nodes, register, wait_until
from support import APP, CONFIG, QUEUE, RM, Recorder, report

from yunikorn_actors import SchedulerCore, enable_logs, si
from yunikorn_actors.runtime.logs import masked

NOISY = """
import logging
logging.basicConfig(level=logging.INFO)
from yunikorn_actors import CoreFailed, ResourceManagerCallback, SchedulerCore, si
class Raising(ResourceManagerCallback):
    def update_node(self, response):
        core._shells._by_address["context"].holder = None
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
    """What nobody would see otherwise: what a callback raised, and that the core is over."""
    stdout, stderr = run(NOISY)
    told = sorted(line for line in stderr.splitlines() if line.startswith("yunikorn_actors"))
    assert "" == stdout
    assert 2 == len(told)
    assert "yunikorn_actors: callback rm:rm-1#1 raised on CallUpdateNode" == told[0]
    assert told[1].startswith("yunikorn_actors: context failed on ")
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
    handles = [enable_logs(sink, level) for level, sink in sinks.items()]
    with SchedulerCore():
        pass
    for handle in handles:
        loguru.logger.remove(handle)
    loguru.logger.disable("yunikorn_actors")
    assert " INFO yunikorn_actors.runtime.system core stopped\n" in sinks["INFO"].getvalue()
    assert "" == sinks["WARNING"].getvalue()


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
}
HARMLESS = (
    "the node node-1 was added: memory=1000, vcore=4",
    "see http://host:8080/path, mail bob@host",
    "Token of appreciation",
    "",
)


@pytest.mark.parametrize(("text", "expected"), SECRETS.items())
def test_secrets_are_masked(text: str, expected: str) -> None:
    assert expected == masked(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_is_left_alone(text: str) -> None:
    assert text == masked(text)


def test_masking_a_long_word_is_quick() -> None:
    """No time that grows with the square of what somebody put into a message."""
    text = "a" * 300_000
    assert text == masked(text)


class Raising(Recorder):
    def update_node(self, response: si.NodeResponse) -> None:
        super().update_node(response)
        secret = "hunter2"  # noqa: S105 - the secret of this test
        raise ValueError(f"no access with password={secret}")


def test_an_exception_is_told_without_its_secrets(log: StringIO) -> None:
    everything = StringIO()
    handle = loguru.logger.add(everything, diagnose=True, backtrace=True)
    with SchedulerCore() as core:
        register(core, Raising())
        add_nodes(core, "n1")
        wait_until(lambda: "password=***" in log.getvalue())
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
