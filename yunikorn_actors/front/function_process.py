"""The process of an executor: it makes the calls that come through a pipe.

Nothing of the core is loaded there: the process has begun in a third of the time.
"""

import pickle
import signal
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection


def serve(there: Connection) -> None:
    """Make calls until the other side has gone."""
    # Ctrl-C goes to the whole group of processes; the program decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, OSError):
        while True:
            there.send_bytes(_outcome(there.recv_bytes()))


def _outcome(data: bytes) -> bytes:
    try:
        return pickle.dumps((True, pickle.loads(data)()))  # noqa: S301 - of the parent
    except BaseException as error:  # noqa: BLE001 - the edge: it is raised again in the parent
        # Its traceback stays with it, or the parent would show its own.
        error.add_note("".join(traceback.format_exception(error)).rstrip())
        try:
            return pickle.dumps((False, error))
        except Exception:  # noqa: BLE001 - whatever pickling raises
            # An error of the program may be of a class that cannot be carried.
            return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
