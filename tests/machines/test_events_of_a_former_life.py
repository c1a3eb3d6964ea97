"""A resource manager that registers anew is pushed no event records of its former life."""

from support import Lab, Recorder


def test_events_of_the_first_life_are_not_pushed_to_the_second() -> None:
    lab = Lab()
    lab.submit("old-app")
    lab.settle()
    lab.register(Recorder())
    lab.advance(10)
    assert "old-app" not in [record.object_id for record in lab.rm.records]
