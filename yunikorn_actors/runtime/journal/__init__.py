"""The journal of a core: what it decided is on the disk before anybody hears of it.

`kept` stands around Context and writes what each of its handlers took and issued; `folder` is where
that goes, one file after the other; `truth` makes the state of the core from it again; `frames` is
what the bytes look like.
"""

from yunikorn_actors.runtime.journal.folder import Journal
from yunikorn_actors.runtime.journal.kept import Kept

__all__ = ["Journal", "Kept"]
