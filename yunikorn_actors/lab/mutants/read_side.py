"""Defects of the read side: what it shows is not what the core has."""

from yunikorn_actors.lab.mutants.mutant import Kind, Mutant

_UNSEEN = "No run of the laboratory has a read side."
READ_SIDE = (
    Mutant(
        id="M270",
        kind=Kind.READ,
        source="a comparison too narrow",
        wrong="Facts that come twice are applied twice.",
        where="service.read.replica:Book.take",
        old="first_revision != state.revision + 1",
        new="first_revision > state.revision + 1",
    ),
    Mutant(
        id="M271",
        kind=Kind.READ,
        source="one for all",
        wrong="A log that is full forgets the newest line of an ask.",
        where="service.read.projection:AskNote.say",
        old="del self.log[next(iter(self.log))]",
        new="del self.log[message]",
        held_by="tests/service/test_read_side.py::test_a_log_counts_what_is_said_again_and_forgets_the_oldest",
        unseen=_UNSEEN,
    ),
    Mutant(
        id="M272",
        kind=Kind.READ,
        source="off by one",
        wrong="A node that is just full in a tenth counts among the next ones.",
        where="service.read.nodes:_tenth",
        old="-(-taken * BUCKETS // capacity)) - 1",
        new="1 + taken * BUCKETS // capacity) - 1",
    ),
    Mutant(
        id="M273",
        kind=Kind.READ,
        source="one for all",
        wrong="A run of allocations counts as one.",
        where="service.read.replica:EventCounts._all_placed",
        old="+= count",
        new="+= 1",
        held_by="tests/service/test_metrics.py::test_a_figure_follows_the_state",
        unseen=_UNSEEN,
    ),
    Mutant(
        id="M274",
        kind=Kind.READ,
        source="a condition left out",
        wrong="Rejected applications are among the completed ones.",
        where="service.read.applications:completed",
        old=" if serial not in book.state.rejected]",
        new="]",
    ),
    Mutant(
        id="M278",
        kind=Kind.READ,
        source="a condition left out",
        wrong="Where lines are too many the oldest goes, though another kind has most of them.",
        where="service.read.replica:Incidents._drop_one",
        old=" if kinds[it[0]] == most)",
        new=")",
        held_by="tests/service/test_live.py::test_a_storm_of_one_kind_leaves_the_lines_of_others",
        unseen=_UNSEEN,
    ),
)
