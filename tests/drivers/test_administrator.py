"""The administrator's configuration: for every policy group that brings none of its own."""

import pytest
from probes import Lab, register
from support import CONFIG, Recorder

from yunikorn_actors import ConfigError, InvalidRequest, Refused, si


def config(leaf: str) -> str:
    return CONFIG.replace("[{name: default}]", f"[{{name: {leaf}}}]")


def administer(lab: Lab, text: str) -> None:
    lab.core.update_configuration(si.UpdateConfigurationRequest(config=text))


def register_without(lab: Lab, rm_id: str, group: str = "") -> None:
    request = si.RegisterResourceManagerRequest(rm_id=rm_id, policy_group=group)
    lab.core.register_resource_manager(request, Recorder())


def leaves(lab: Lab, rm_id: str) -> list[str]:
    queues = lab.core.state_dump()["partitions"][f"[{rm_id}]default"]["queues"]
    return [path for path, queue in queues.items() if queue["leaf"]]


def test_it_holds_for_those_who_come_later(lab: Lab) -> None:
    administer(lab, config("a"))
    register_without(lab, "rm-1")
    assert ["root.a"] == leaves(lab, "rm-1")


def test_it_reaches_every_group_that_brought_nothing_and_no_other(lab: Lab) -> None:
    register_without(lab, "rm-1")
    register_without(lab, "rm-2", group="east")
    west = si.RegisterResourceManagerRequest(rm_id="rm-3", policy_group="west", config=CONFIG)
    lab.core.register_resource_manager(west, Recorder())
    administer(lab, config("a"))
    expected = [["root.a"], ["root.a"], ["root.default"]]
    assert expected == [leaves(lab, rm) for rm in ("rm-1", "rm-2", "rm-3")]


def test_a_group_that_brings_its_own_keeps_it(lab: Lab) -> None:
    request = si.RegisterResourceManagerRequest(rm_id="rm-1", policy_group="east", config=CONFIG)
    lab.core.register_resource_manager(request, Recorder())
    register_without(lab, "rm-2", group="east")
    administer(lab, config("a"))
    assert ["root.default"] == leaves(lab, "rm-1") == leaves(lab, "rm-2")


def test_what_is_refused_changes_nothing(lab: Lab) -> None:
    administer(lab, config("a"))
    register_without(lab, "rm-1")
    before = lab.core.state_dump()
    with pytest.raises(ConfigError, match="unknown key 'nam'"):
        administer(lab, "partitions: [{nam: default}]")
    with pytest.raises(InvalidRequest, match=r"extra_config: belongs to a resource manager"):
        lab.core.update_configuration(si.UpdateConfigurationRequest(extra_config={"a": "b"}))
    after = lab.core.state_dump()
    # One fact came of it, which changes nothing: it is for the events.
    after["partitions"]["[rm-1]default"]["revision"] -= 1
    after["waiting"]["[rm-1]default"]["as_of"] = before["waiting"]["[rm-1]default"]["as_of"]
    assert before == after


def test_what_is_refused_is_among_the_events(lab: Lab) -> None:
    register_without(lab, "rm-1")
    with pytest.raises(ConfigError):
        administer(lab, "partitions: [{nam: default}]")
    lab.rest()
    told = [it for it in lab.core.events().records if "refused" in it.message]
    assert ["root"] == [it.object_id for it in told]
    assert "unknown key 'nam'" in told[0].message
    assert si.ChangeDetail.QUEUE_CONFIG == told[0].event_change_detail


def test_a_resource_manager_that_takes_its_configuration_back_has_the_administrators(
    lab: Lab,
) -> None:
    register(lab.core, Recorder())
    administer(lab, config("a"))
    with pytest.raises(Refused, match="is in policy group"):
        lab.core.update_configuration(
            si.UpdateConfigurationRequest(rm_id="rm-1", policy_group="other")
        )
    assert ["root.default"] == leaves(lab, "rm-1")
    lab.core.update_configuration(si.UpdateConfigurationRequest(rm_id="rm-1"))
    lab.pass_time(lab.now_ns + 11_000_000_000)
    lab.rest()
    assert ["root.a"] == leaves(lab, "rm-1")


# -- what is done by hand


def told_by_ann(lab: Lab) -> list[tuple[str, str]]:
    lab.rest()
    return [
        (it.object_id, it.message) for it in lab.core.events().records if "by ann" in it.message
    ]


def with_a_node(lab: Lab) -> Recorder:
    recorder = Recorder()
    register(lab.core, recorder)
    size = si.Resource.of({"vcore": 8})
    create = si.NodeInfo(node_id="n1", action=si.ActionFromRM.CREATE, schedulable_resource=size)
    lab.core.update_node(si.NodeRequest(rm_id="rm-1", nodes=(create,)))
    lab.rest()
    return recorder


def is_schedulable(lab: Lab) -> bool:
    node = lab.core.state_dump()["partitions"]["[rm-1]default"]["nodes"]["n1"]
    return not node["drained"]


def test_a_node_is_drained_by_hand_and_its_manager_lets_it_work_again(lab: Lab) -> None:
    recorder = with_a_node(lab)
    lab.core.operator.set_drained("[rm-1]default", "n1", "ann", drained=True)
    assert not is_schedulable(lab)
    assert [("n1", "Node n1 drained by ann")] == told_by_ann(lab)
    with pytest.raises(Refused, match="node is draining already"):
        lab.core.operator.set_drained("[rm-1]default", "n1", "ann", drained=True)
    undrain = si.NodeInfo(node_id="n1", action=si.ActionFromRM.DRAIN_TO_SCHEDULABLE)
    lab.core.update_node(si.NodeRequest(rm_id="rm-1", nodes=(undrain,)))
    lab.rest()
    assert is_schedulable(lab)
    assert [("n1", "accepted")] == recorder.told("node")


def test_a_node_of_a_lost_manager_is_drained_and_undrained_by_hand(lab: Lab) -> None:
    with_a_node(lab)
    lab.core.resource_manager_lost("rm-1")
    lab.core.operator.set_drained("[rm-1]default", "n1", "ann", drained=True)
    lab.core.operator.set_drained("[rm-1]default", "n1", "ann", drained=False)
    assert is_schedulable(lab)
    with pytest.raises(Refused, match="node is not draining"):
        lab.core.operator.set_drained("[rm-1]default", "n1", "ann", drained=False)
    acts = ["Node n1 drained by ann", "Node n1 undrained by ann"]
    assert acts == [message for _, message in told_by_ann(lab)]


@pytest.mark.parametrize(
    ("partition", "node", "says"),
    [
        ("[rm-1]default", "n2", "no node n2 is in partition \\[rm-1\\]default"),
        ("[rm-2]default", "n1", "no partition \\[rm-2\\]default is there"),
    ],
)
def test_what_is_not_there_is_not_drained(lab: Lab, partition: str, node: str, says: str) -> None:
    with_a_node(lab)
    with pytest.raises(Refused, match=says):
        lab.core.operator.set_drained(partition, node, "ann", drained=True)
    assert [] == told_by_ann(lab)


def test_only_a_lost_manager_is_unregistered_by_hand(lab: Lab) -> None:
    with_a_node(lab)
    with pytest.raises(Refused, match="rm-1 is registered: stop that program first"):
        lab.core.operator.unregister_lost("rm-1", "ann")
    lab.core.resource_manager_lost("rm-1")
    lab.core.operator.unregister_lost("rm-1", "ann")
    assert [("root", "Resource manager rm-1 unregistered by ann")] == told_by_ann(lab)
    assert {} == lab.core.state_dump()["partitions"]
    lab.core.operator.unregister_lost("rm-1", "ann")
    assert 1 == len(told_by_ann(lab))


def test_who_brought_a_configuration_is_told_in_every_partition(lab: Lab) -> None:
    register_without(lab, "rm-1")
    register_without(lab, "rm-2", group="east")
    lab.core.administer(config("a"), "ann")
    assert [("root", "Configuration loaded by ann")] * 2 == told_by_ann(lab)
    assert ["root.a"] == leaves(lab, "rm-2")
