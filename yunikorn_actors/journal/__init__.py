"""The journal of a core: what it decided is on the disk before anybody hears of it (ADR 28).

`journaled_context` stands around Context and notes what each of its handlers took and issued;
`writing` brings that to the disk, one file after the other; `compaction` has another
process make a snapshot of what grows old, which `compaction` does; `folder` has the names;
`headers` is what each file says of itself, `file_sequence` which files count, `restore` what stands
in them; `restored_state` makes the state of the core from that again; `frames` is what the bytes
look like.
"""

from yunikorn_actors.journal.journaled_context import Kept
from yunikorn_actors.journal.writing import Journal

__all__ = ["Journal", "Kept"]
