"""The process that makes a snapshot, as the core's process sees it.

In a thread of this process the same work would take the core's time: one interpreter runs one
thread at a time. A snapshot gets its name here, when it is on the disk and was checked; then the
files go that are older than the snapshot it began with. A kill at any moment leaves a journal that
can be read.
"""

import os
import subprocess
import sys
import threading
from typing import Final

from yunikorn_actors.journal.folder import Folder
from yunikorn_actors.journal.headers import PART
from yunikorn_actors.recording.logs import logger

CHILD: Final = "yunikorn_actors.journal.compaction"


class Folding:
    """The work on one snapshot, as the process sees it that has the folder."""

    def __init__(self, folder: Folder, number: int) -> None:
        self._folder = folder
        self._number = number
        self._stopping = False
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", CHILD, str(folder.path), str(number)],
            # It ends when nobody holds the other end, however this process ended.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # The module has to be found whatever the embedder did to its path.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._thread = threading.Thread(
            target=self._run, name="yunikorn-actors-journal-snapshot", daemon=True
        )
        # At the limit of threads: the process would work for nobody.
        try:
            self._thread.start()
        except BaseException:
            with self._process as process:
                process.kill()
            raise

    @property
    def is_at_work(self) -> bool:
        return self._thread.is_alive()

    def stop(self, timeout: float | None = None) -> bool:
        """Return whether it has come to rest in this time: a disk may hold it up."""
        self._stopping = True
        # At any moment: what it has written has no name yet.
        self._process.kill()
        self._thread.join(timeout)
        return not self.is_at_work

    def _run(self) -> None:
        process = self._process
        try:
            with process:
                assert process.stdout is not None
                said = process.stdout.read().decode(errors="replace").strip()
            # Only a process that has checked its own work ends with 0.
            if process.returncode == 0:
                self._adopt()
                return
            self._folder.file(PART, self._number).unlink(missing_ok=True)
        except Exception as error:  # noqa: BLE001 - the edge: it is said below, and tried again later
            said = str(error)
        if not self._stopping:
            last = said.rpartition("\n")[2] or f"it ended with status {process.returncode}"
            logger.warning("no snapshot of the journal was made, its files stay: {}", last)

    def _adopt(self) -> None:
        former = self._folder.last_snapshot
        self._folder.adopt(self._number)
        # The former one was read, and the new one was read back.
        self._folder.drop_before(former)
