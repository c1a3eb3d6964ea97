"""`yunikorn-actors serve`: a scheduler that others reach over the network."""

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from yunikorn_actors.cli import FAILED
from yunikorn_actors.cli.policies import add_policies
from yunikorn_actors.cli.service_options import unused
from yunikorn_actors.errors import ConfigError, CoreFailed, CoreStopped, JournalError
from yunikorn_actors.machines.topology import TopologyName
from yunikorn_actors.policies.registry import GROUP
from yunikorn_actors.recording.logs import DEFAULT_LEVEL, logger
from yunikorn_actors.recording.recorder import TraceSettings
from yunikorn_actors.runtime.core_arguments import read_config
from yunikorn_actors.runtime.failure_hooks import gist_of
from yunikorn_actors.runtime.scheduler_core import SchedulerCore
from yunikorn_actors.runtime.switch_interval import short_turns
from yunikorn_actors.service.access_policy import (
    Access,
    TokenFiles,
    Unsafe,
    exposed,
    is_local,
    read_tls,
)
from yunikorn_actors.service.cluster.cluster_queries import ClusterQuestions
from yunikorn_actors.service.cluster.local import ENVIRONMENT, LOCAL
from yunikorn_actors.service.cluster.portal import ClusterCore
from yunikorn_actors.service.log_lines import FORMATS, LEVELS, LogStyle
from yunikorn_actors.service.service import KINDS, NotInstalled, Serving
from yunikorn_actors.values.garbage import BriefCollections
from yunikorn_actors.version import extra_command

# What the main thread of a service waits for: signals, and the failure of the core.

ENDING: Final = (signal.SIGTERM, signal.SIGINT)
WANTING: Final = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""What they want is done, and the service goes on; a process that does not handle them ends."""
WAKES: Final = 4096
"""So many are taken together: signals that come faster are one."""


class Signals:
    """A pipe wakes the main thread.

    Of several signals at once the kernel gives some to other threads, where none interrupts what
    this one waits for; but on whichever thread it arrives, it is written to the pipe.
    """

    def __init__(self) -> None:
        self.failure: CoreFailed | None = None
        self._is_over = False
        self._wanted: set[int] = set()
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)

    @contextmanager
    def handled(self, numbers: Iterable[signal.Signals]) -> Iterator[None]:
        """Handle these signals here, on the main thread."""
        handlers = {it: signal.signal(it, self._signalled) for it in numbers}
        former = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(former)
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _signalled(self, number: int, _: object) -> None:
        self._is_over |= number in ENDING
        self._wanted.add(number)

    def core_failed(self, failure: CoreFailed) -> None:
        self.failure = failure
        # Where the pipe is full it wakes as well.
        with suppress(BlockingIOError):
            os.write(self._writing, b".")

    def next(self) -> frozenset[int] | None:
        """Wait; return the signals that want something, None where the service is to end."""
        os.read(self._reading, WAKES)
        if self._is_over or self.failure is not None:
            return None
        wanted, self._wanted = self._wanted, set()
        return frozenset(wanted)

    def close(self) -> None:
        os.close(self._reading)
        os.close(self._writing)


if TYPE_CHECKING:
    from yunikorn_actors.service.cluster.engine import RayEngine

OFF: Final = "off"
OURS: Final = "yunikorn-actors-"
"""So the names of our threads begin."""
FLIGHT_BYTES: Final = 64 * 2**20
"""So much of the run a flight recorder keeps."""
RECORD_BYTES: Final = 500_000_000
RECORD_KEEP: Final = 20
"""A run that is recorded keeps so many files beside the newest, each of that size."""
LAST_S: Final = 0.1
"""For calls that end by themselves, once all has stopped."""


class Unusable(Exception):
    """What an option names cannot be used."""


CANNOT_START: Final = (
    ConnectionError,
    CoreStopped,
    JournalError,
    NotInstalled,
    Unsafe,
    Unusable,
)
"""Each says all that there is to say of it in one line."""


FILES: Final = {
    "config": "the administrator's configuration; it is loaded again when it changes",
    "tls-cert": "a certificate with its chain (PEM)",
    "tls-key": "the key of the certificate (PEM)",
    "tls-client-ca": "certificates that sign those of clients (PEM); each client has to show one",
    "token-file": "holds what callers have to show, as `authorization: Bearer TOKEN`; on a second "
    "line, what those show who only read",
    "read-token-file": "holds the token of those who only read, where it is not that second line",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for name, kind in KINDS.items():
        parser.add_argument(
            f"--{name}", metavar="ADDR", default=kind.default,
            help=f"where {kind.title} listens, or `{OFF}` (default: %(default)s)",
        )  # fmt: skip
    for name, help_ in FILES.items():
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help=help_)
    parser.add_argument(
        "--journal", type=_folder, metavar="DIR",
        help="where decisions are kept, so that the service goes on after a crash",
    )  # fmt: skip
    recorded = parser.add_mutually_exclusive_group()
    recorded.add_argument(
        "--record", type=_folder, metavar="DIR",
        help="record all of the run there, as a file named by the time; of each 500 MB another is "
        "begun, and 20 of them are kept",
    )  # fmt: skip
    recorded.add_argument(
        "--flight-recorder", type=Path, metavar="FILE",
        help="keep the last 64 MiB of the run in memory, for `/ws/v1/x/trace`, and write them here "
        "if the core fails, and beside it on SIGUSR1",
    )  # fmt: skip
    parser.add_argument(
        "--cluster", metavar="ADDR",
        help="a Ray cluster whose actors are the cores, one for each partition: its address, "
        "`ray://...` from outside of it, or `local` for one of its own",
    )  # fmt: skip
    parser.add_argument(
        "--name", action="append", default=[], metavar="NAME",
        help="a name by which it may be called over HTTP, beside its addresses and localhost",
    )  # fmt: skip
    parser.add_argument(
        "--no-cors", action="store_true", help="let no page of another origin read REST"
    )
    parser.add_argument(
        "--insecure", action="store_true",
        help="listen where others are without TLS and token",
    )  # fmt: skip
    parser.add_argument(
        "--log-level", choices=LEVELS, default=DEFAULT_LEVEL, type=str.upper, metavar="LEVEL",
        help=f"the least that is logged: {', '.join(LEVELS)} (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--log-format", choices=FORMATS, default=FORMATS[0],
        help="lines of text, or one JSON object a line (default: %(default)s)",
    )  # fmt: skip
    add_policies(parser)
    parser.add_argument(
        "--topology", choices=("proposing", "fused"), default="proposing",
        help="where planning happens (default: %(default)s)",
    )  # fmt: skip


def _folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("give a folder, it is empty; `.` is the present one")
    return Path(text)


def run(options: argparse.Namespace) -> int:
    addresses = {name: getattr(options, name) for name in KINDS if getattr(options, name) != OFF}
    if not addresses:
        either = " or ".join(f"--{name}" for name in KINDS)
        print(f"nothing is to be served: give {either} an address", file=sys.stderr)
        return FAILED
    if "rest" not in addresses:
        of_rest = "it is of REST, which is off: leave it out, or give --rest an address"
        if (mistake := unused(options, ("name", "no_cors"), of_rest)) is not None:
            print(mistake, file=sys.stderr)
            return FAILED
    # Lines of gRPC's own, in a form of its own: what they say is raised, or of no use here.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    style = LogStyle(options.log_level, options.log_format)
    with ExitStack() as stack:
        stack.callback(style.enable(sys.stderr))
        try:
            signals = Signals()
            stack.callback(signals.close)
            # While it starts, too: a process that does not handle these ends.
            stack.enter_context(signals.handled(WANTING))
            serving = _serving(options, addresses, signals, style, stack)
            return _serve(serving, addresses, signals, options)
        except CANNOT_START as error:
            _complain(options, str(error))
            return FAILED
        except OSError as error:
            _complain(options, f"cannot go on: {error.strerror or error}")
            return FAILED


def _complain(options: argparse.Namespace, text: str) -> None:
    """Say why it ends: as a line for people, or in the form that the log has."""
    if options.log_format == "json":
        logger.error("{}", text)
    else:
        print(text, file=sys.stderr)


def _serve(
    serving: Serving, addresses: dict[str, str], signals: Signals, options: argparse.Namespace
) -> int:
    with signals.handled(ENDING), BriefCollections(), short_turns(), serving:
        _introduce(serving, addresses, options)
        while (wanted := signals.next()) is not None:
            for number in wanted:
                _ANSWERS[number](serving, options)
        status = 0
        if signals.failure is not None:
            why = gist_of(signals.failure)
            _complain(options, f"the core has failed, start it again: {why}")
            status = 1
    _let_go(status)
    return status


def _serving(
    options: argparse.Namespace,
    addresses: dict[str, str],
    signals: Signals,
    logs: LogStyle,
    stack: ExitStack,
) -> Serving:
    """Make what is to be served; what the stack has is closed at the end."""
    access, config = access_of(options), options.config
    access.check(addresses)
    if options.cluster is None:
        with _naming(config):
            core = SchedulerCore(
                config=config,
                topology=options.topology,
                journal=options.journal,
                policies=options.policies.given,
                trace=_trace(options.flight_recorder, options.record),
                on_failure=signals.core_failed,
            )
            return Serving(core, addresses, access=access, config=config, logs=logs)
    for name in ("flight_recorder", "record"):
        if getattr(options, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise Unusable(f"{option}: not with --cluster, whose cores are not recorded")
    if options.policies.given:
        raise Unusable(
            "--policies: not with --cluster, whose cores are elsewhere: install a package there "
            f"that has them as entry points {GROUP}"
        )
    with _naming(config):
        text = "" if config is None else read_config(config)
    engine = engine_at(options.cluster, options.journal, options.topology)
    stack.callback(engine.close)
    portal = ClusterCore(text, engine.hosts)
    ask = partial(ClusterQuestions, portal)
    return Serving(portal, addresses, ask=ask, access=access, config=config, logs=logs)


def _trace(path: Path | None, folder: Path | None) -> TraceSettings | None:
    if folder is not None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise Unusable(f"--record {folder}: {error.strerror}: name a folder") from error
        # A service that starts again leaves what it recorded before.
        return TraceSettings(
            path=folder / f"{_moment()}.trace", compress=True, rotate_bytes=RECORD_BYTES,
            keep=RECORD_KEEP,
        )  # fmt: skip
    if path is None:
        return None
    if not path.parent.is_dir():
        raise Unusable(f"--flight-recorder {path}: there is no folder {path.parent}: make it")
    return TraceSettings(path=path, compress=True, flight_recorder_bytes=FLIGHT_BYTES)


@contextmanager
def _naming(config: Path | None) -> Iterator[None]:
    """Say of which file it is that something is wrong with it."""
    try:
        yield
    except ConfigError as error:
        raise Unusable(f"--config {config}: {error}") from None
    except OSError as error:
        raise Unusable(f"--config {config}: {error.strerror or error}") from None


def engine_at(address: str, journal: Path | None, topology: TopologyName) -> "RayEngine":
    if address == LOCAL:
        os.environ.update(ENVIRONMENT)
    try:
        from yunikorn_actors.service.cluster.engine import (  # noqa: PLC0415 - what the extra brings
            RayEngine,
        )
    except ModuleNotFoundError as error:
        raise NotInstalled(
            f"--cluster needs the package {error.name}, which is not installed; "
            f"{extra_command('ray')}"
        ) from error
    return RayEngine(address, journal, topology)


def access_of(options: argparse.Namespace) -> Access:
    tls = read_tls(options.tls_cert, options.tls_key, options.tls_client_ca)
    files = TokenFiles(options.token_file, options.read_token_file)
    token, read_token = files.read()
    return Access(
        tls,
        token,
        options.insecure,
        names=tuple(options.name),
        cors=not options.no_cors,
        read_token=read_token,
        files=files,
    )


def _introduce(serving: Serving, addresses: dict[str, str], options: argparse.Namespace) -> None:
    for name, part in serving.parts.items():
        print(f"{KINDS[name].title} on {part.address}")
    if serving.access.insecure and not all(map(is_local, addresses.values())):
        logger.warning("open to everybody who reaches it, as --insecure says")
    if options.tls_key is not None:
        for warning in exposed(options.tls_key):
            logger.warning("{}", warning)
    print("ready; Ctrl-C or SIGTERM ends it", flush=True)


# -- signals that want something


def _read_again(serving: Serving, _: argparse.Namespace) -> None:
    serving.reload()


def _moment() -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())


def _save_trace(serving: Serving, options: argparse.Namespace) -> None:
    """Write what the flight recorder has, under a name of its own, while the service goes on."""
    core, path = serving.core, options.flight_recorder
    if not isinstance(core, SchedulerCore) or path is None:
        logger.warning("SIGUSR1: there is no flight recorder: start with --flight-recorder FILE")
        return
    target = path.with_name(f"{path.stem}-{_moment()}{path.suffix}")

    def save() -> None:
        try:
            core.save_trace(target)
        except OSError as error:
            logger.error("SIGUSR1: the trace {} cannot be written: {}", target, error)
        else:
            logger.info("SIGUSR1: the flight recorder is written to {}", target)

    threading.Thread(target=save, name=f"{OURS}save", daemon=True).start()


def _ignore(_: Serving, __: argparse.Namespace) -> None:
    logger.warning("SIGUSR2 means nothing here: SIGUSR1 writes the flight recorder")


_ANSWERS: Final[dict[int, Callable[[Serving, argparse.Namespace], None]]] = {
    signal.SIGHUP: _read_again,
    signal.SIGUSR1: _save_trace,
    signal.SIGUSR2: _ignore,
}


def _let_go(status: int) -> None:
    """End, even while a call is under way: nothing interrupts the reading of a large configuration.

    Nobody waits for what it returns, and the core takes nothing from it any more.
    """
    until = time.monotonic() + LAST_S
    # Python itself would wait for the threads of a pool, daemons or not.
    calls = [it for it in threading.enumerate() if it.name.startswith(OURS)]
    for call in calls:
        call.join(max(0.0, until - time.monotonic()))
    if any(call.is_alive() for call in calls):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
