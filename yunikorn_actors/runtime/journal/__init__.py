"""The journal of a core: what it decided is on the disk before anybody hears of it.

`kept` stands around Context and notes what each of its handlers took and issued; `writing` brings
that to the disk, one file after the other; `folding` makes a snapshot of what grows old; `folder`
knows which files count; `truth` makes the state of the core from them again; `frames` is what the
bytes look like.
"""

from yunikorn_actors.runtime.journal.folder import without_collections
from yunikorn_actors.runtime.journal.kept import Kept
from yunikorn_actors.runtime.journal.writing import Journal

__all__ = ["Journal", "Kept", "without_collections"]
