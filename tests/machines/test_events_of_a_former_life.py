"""What is still to be pushed when a partition, or its whole resource manager, goes away.

A resource manager that registers anew is pushed no event records of its former life.
"""

from support import Lab, Recorder


def test_events_of_the_first_life_are_not_pushed_to_the_second() -> None:
    lab = Lab()
    lab.submit("old-app")
    lab.settle()
    lab.register(Recorder())
    lab.advance(10)
    assert "old-app" not in [record.object_id for record in lab.rm.records]


def partitions(*names: str) -> str:
    each = "{{name: {}, queues: [{{name: root, submitacl: '*', queues: [{{name: default}}]}}]}}"
    return f"partitions: [{', '.join(map(each.format, names))}]"


def test_a_reload_that_removes_a_partition_loses_no_events_of_it_or_of_others() -> None:
    lab = Lab(config=partitions("default", "other"))
    lab.submit("app")
    lab.submit("gone", partition_name="other")
    lab.settle()
    assert [] == lab.rm.records, "vacuous: they were pushed before the reload"
    lab.configure(partitions("default"))
    lab.advance(10)
    assert lab.simulator.events(0).records == tuple(lab.rm.records)
    assert {"app", "gone"} <= {record.object_id for record in lab.rm.records}
