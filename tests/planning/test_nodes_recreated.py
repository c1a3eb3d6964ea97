"""A node of a binpacking partition leaves and comes back under its name."""

from support import APP, Lab

CONFIG = (
    "partitions: [{name: default, nodesortpolicy: {type: binpacking}, "
    "queues: [{name: root, submitacl: '*', queues: [{name: default}]}]}]"
)


def test_a_node_comes_back_under_its_name() -> None:
    lab = Lab(config=CONFIG)
    lab.submit(APP)
    lab.nodes(n1=10)
    lab.ask("a")
    lab.settle()
    lab.decommission("n1")
    lab.nodes(n1=10)
    lab.ask("b")
    lab.settle()
    assert lab.running() == ["b"]
