"""Why no queue will do: which of the possible reasons it was is said, and about which queue."""

import pytest
from support import APP, Lab

QUEUES = """
partitions:
- name: default
  placementrules: RULES
  queues:
  - name: root
    queues:
    - name: open
      submitacl: "*"
    - name: closed
      submitacl: "ann,carl ops"
      queues:
      - {name: deep, adminacl: "zoe"}
    - {name: nobody}
    - {name: crowd, submitacl: "CROWD"}
    - {name: teams, submitacl: "*", queues: [{name: one}]}
""".replace("CROWD", ",".join(f"u{number}" for number in range(12)))
PROVIDED = "[{name: provided}]"


def _closed(queue: str, permitted: str) -> str:
    return f"user 'bob' may not submit to queue {queue}: {permitted}"


BEGIN = "failed to place application app-1: application rejected: no placement rule matched: "
CLOSED = "permitted are users ann, carl and groups ops"
MISSING_PARENT = (
    "[{name: user, create: true, parent: {name: fixed, value: root.gone}}, {name: provided}]"
)


@pytest.mark.parametrize(
    ("rules", "queue", "words"),
    [
        (PROVIDED, "root.opne", "there is no queue root.opne"),
        (PROVIDED, "root.closed.more", "there is no queue root.closed.more"),
        (PROVIDED, "root.teams", "queue root.teams is a parent, so name a leaf below it"),
        (PROVIDED, "root.closed", f"user 'bob' may not submit to queue root.closed: {CLOSED}"),
        (
            PROVIDED,
            "root.closed.deep",
            _closed("root.closed.deep", "permitted are users ann, carl, zoe and groups ops"),
        ),
        (
            PROVIDED,
            "root.nobody",
            "user 'bob' may not submit to queue root.nobody: permitted are no users and no groups",
        ),
        (
            PROVIDED,
            "root.crowd",
            _closed(
                "root.crowd",
                "permitted are users u0, u1, u10, u11, u2, u3, u4, u5, u6, u7 and 2 more",
            ),
        ),
        (
            "[{name: provided, create: true}]",
            "root.closed.new",
            f"user 'bob' may not submit to queue root.closed.new: {CLOSED}",
        ),
        (PROVIDED, "root.@recovery@", "queue root.@recovery@ takes recovered work only"),
        (
            "[{name: tag, value: namespace, create: true}]",
            "root.open",
            "no rule names a queue for it (asked for 'root.open')",
        ),
        (
            MISSING_PARENT,
            "root.opne",
            "there is no queue root.gone; there is no queue root.opne",
        ),
        ("[{name: provided}, {name: provided}]", "root.x", "there is no queue root.x"),
    ],
)
def test_a_rejection_says_what_was_the_matter(rules: str, queue: str, words: str) -> None:
    lab = Lab(config=QUEUES.replace("RULES", rules))
    lab.submit(APP, queue=queue)
    lab.settle()
    assert [(APP, BEGIN + words)] == lab.rm.told("application")


def test_a_queue_that_drains_is_said_to() -> None:
    lab = Lab(config=QUEUES.replace("RULES", PROVIDED))
    lab.submit("other", queue="root.open")
    lab.settle()
    lab.configure(QUEUES.replace("RULES", PROVIDED).replace("name: open", "name: other"))
    lab.submit(APP, queue="root.open")
    lab.settle()
    assert (APP, f"{BEGIN}queue root.open is draining") == lab.rm.told("application")[-1]


def test_the_queue_that_takes_what_no_rule_places_is_named_as_well() -> None:
    lab = Lab(config=QUEUES.replace("RULES", PROVIDED).replace("name: nobody", "name: default"))
    lab.submit(APP, queue="root.opne")
    lab.settle()
    words = (
        "there is no queue root.opne; user 'bob' may not submit to queue root.default: "
        "permitted are no users and no groups"
    )
    assert [(APP, BEGIN + words)] == lab.rm.told("application")
