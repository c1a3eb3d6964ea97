"""Defects of the journal: what a core that is started again does not know, or knows wrongly."""

from yunikorn_actors.lab.mutants.mutant import Kind, Mutant

_UNSEEN = "It takes the making of a snapshot, which no run of a case has."
JOURNAL = (
    Mutant(
        id="M260",
        kind=Kind.JOURNAL,
        source="a case left out",
        wrong="A partition that was closed comes back with the next core.",
        where="journal.restored_state:Truth._apply",
        old="self.states.pop((name, epoch), None)",
        new="pass",
    ),
    Mutant(
        id="M261",
        kind=Kind.JOURNAL,
        source="a default too many",
        wrong="A record that says nothing of registrations ends them all.",
        where="journal.restored_state:Truth.take",
        old="entry.registered or self.registered",
        new="entry.registered or Registered()",
    ),
    Mutant(
        id="M262",
        kind=Kind.JOURNAL,
        source="the wrong end",
        wrong="Where the applications that have ended are too many, the newest are forgotten.",
        where="journal.restored_state:Truth.forget",
        old="[*reversed(state.finished.items())]",
        new="[*state.finished.items()]",
        held_by="tests/runtime/test_journal_snapshots.py::test_of_the_applications_that_have_ended_the_newest_survive",
        unseen=_UNSEEN,
    ),
    Mutant(
        id="M264",
        kind=Kind.JOURNAL,
        source="once for all",
        wrong="Of a record that the disk takes in two parts only the first is written.",
        where="journal.folder:write_all",
        old="while view:",
        new="if view:",
    ),
    Mutant(
        id="M265",
        kind=Kind.JOURNAL,
        source="a check left out",
        wrong="A replay that comes to another state than the core had is taken.",
        where="journal.restored_state:Truth._compare",
        old="if made != noted:",
        new="if False:",
    ),
    Mutant(
        id="M266",
        kind=Kind.JOURNAL,
        source="a condition left out",
        wrong="A file that was begun early counts though the one before it lost its end.",
        where="journal.file_sequence:_Files._counts",
        old="if _is_whole(former, after.bytes):",
        new="if True:",
    ),
    Mutant(
        id="M269",
        kind=Kind.JOURNAL,
        source="a check left out",
        wrong="A file is read on behind a place that it was never written to.",
        where="journal.restore:_Replay._compare_end",
        old="if end is None or end.check in (None, last.check):",
        new="if True:",
    ),
)
