"""Defects of a cluster: what is sent twice, lost, or mixed up between partitions."""

from yunikorn_actors.lab.mutants.mutant import Kind, Mutant

_UNSEEN = "No run of the laboratory has several cores."
CLUSTER = (
    Mutant(
        id="M280",
        kind=Kind.CLUSTER,
        source="the first for all",
        wrong="A resource manager of several partitions is described with the first alone.",
        where="service.cluster.following:Managers._together",
        old="for part in it.config.partitions",
        new="for part in first.config.partitions",
        held_by="tests/service/cluster/test_portal.py::test_a_read_side_follows_all_partitions_and_those_that_begin_anew",
        unseen=_UNSEEN,
    ),
    Mutant(
        id="M285",
        kind=Kind.CLUSTER,
        source="a case left out",
        wrong="What names a partition that is not there goes to a core that is not there.",
        where="service.cluster.split:split",
        old="name if name in homes else homes[0]",
        new="name",
        held_by="tests/service/cluster/test_split.py::test_what_names_no_partition_that_is_here_goes_to_the_first",
        unseen=_UNSEEN,
    ),
    Mutant(
        id="M286",
        kind=Kind.CLUSTER,
        source="a part left out",
        wrong="What was to end when a core died runs again in the next one.",
        where="service.cluster.holdings:Holdings.recover",
        old="        parts.append(end.request)\n",
        new="",
        held_by="tests/service/cluster/test_holdings.py::test_a_release_that_may_have_been_handled_is_said_first_and_told_in_any_case",
        unseen=_UNSEEN,
    ),
    Mutant(
        id="M288",
        kind=Kind.CLUSTER,
        source="any for all",
        wrong="A cluster is well when one of its cores is.",
        where="service.cluster.merge:_both",
        old="return one and other",
        new="return one or other",
        held_by="tests/service/cluster/test_merge.py::test_all_must_be_complete_for_the_whole_to_be",
        unseen=_UNSEEN,
    ),
)
