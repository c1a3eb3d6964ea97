"""A resource manager cannot reach the partition of another by writing its full name."""

from support import APP, CONFIG, Lab, Recorder

from yunikorn_actors import si


def test_only_its_own_partitions() -> None:
    lab = Lab()
    other = Recorder()
    request = si.RegisterResourceManagerRequest(rm_id="rm-2", config=CONFIG)
    lab.simulator.register_resource_manager(request, other)
    lab.submit(APP)
    lab.nodes(n1=5)
    lab.ask("k")
    lab.settle()
    release = si.AllocationRelease(
        partition_name="[rm-1]default", application_id=APP, allocation_key="k"
    )
    releases = si.AllocationReleasesRequest(allocations_to_release=(release,))
    lab.simulator.update_allocation(si.AllocationRequest(rm_id="rm-2", releases=releases))
    lab.settle()
    assert (lab.running(), other.heard) == (["k"], [])
