"""A question about one partition is one for the core that has it."""

import inspect

from yunikorn_actors.service.cluster.cluster_queries import SPECIAL
from yunikorn_actors.service.core_queries import ANSWERS


def test_what_is_asked_of_one_partition_is_not_asked_of_each_core() -> None:
    """A core without the partition refuses, and the merged answer would be that."""
    about_one = {
        question
        for question, answer in ANSWERS.items()
        if {"partition", "rm_id"} & inspect.signature(answer).parameters.keys()
    }
    assert {"drain", "why", "unregister"} <= about_one <= SPECIAL.keys()
