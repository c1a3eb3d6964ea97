"""A property of queues that the laboratory does not know is tried by nothing that it draws."""

from yunikorn_actors.config.properties import READERS
from yunikorn_actors.lab.oracles import configuration_oracle as oracle
from yunikorn_actors.lab.swarm.drawn import drawn

WORLDS = 120


def not_drawn(keys: set[str], texts: list[str]) -> set[str]:
    return {key for key in keys if not any(f"{key}:" in text for text in texts)}


def test_worlds_have_each_property_somewhere() -> None:
    texts = [drawn(4, number).case.text.replace('"', "") for number in range(WORLDS)]
    assert {"preemption.nearly.done"} == not_drawn({*READERS, "preemption.nearly.done"}, texts)


def test_the_oracle_of_configurations_reads_each() -> None:
    known = {*oracle._TIMES, *oracle._NUMBERS, *oracle._WORDS, *oracle._SWITCHES}
    assert known | {"preemption.budget"} == READERS.keys()
