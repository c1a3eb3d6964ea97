"""Reports of work that runs already, also under a key or a UUID that means something else."""

from yunikorn_actors.lab.swarm.request_forms import as_raw
from yunikorn_actors.lab.swarm.request_moves import ISSUED, issued
from yunikorn_actors.lab.swarm.worlds import PARTITIONS, PartitionWriter
from yunikorn_actors.scenario.drivers import INSTANCE
from yunikorn_actors.values.tags import FOREIGN_DEFAULT, TAG_FOREIGN


def bind_again(writer: PartitionWriter) -> None:
    """Report work with another size that was reported before, sometimes elsewhere."""
    if writer.places:
        (app, key), where = writer.draw.one_of(tuple(writer.places.items()))
        if writer.draw.once_in(4):
            where = writer.draw.one_of(writer.nodes)
        size = writer.draw.one_of(writer.sizes)
        writer.add("bind", {"app": app, "key": key, "node": where, "resource": size})


def report_by_key(writer: PartitionWriter) -> None:
    """Report work by its key and its node alone: it may be known, or some of it may wait."""
    if writer.keys and writer.nodes:
        draw, (app, key) = writer.draw, writer.draw.one_of(writer.keys)
        where = writer.places.get((app, key), draw.one_of(writer.nodes))
        work = {"app": app, "key": key, "node": where, "resource": draw.one_of(writer.sizes[:3])}
        if writer.name != PARTITIONS[0]:
            work["partition"] = writer.name
        raw = as_raw(writer.manager.rm_id, {"bind": work})
        for item in raw["raw"]["request"]["allocations"]:
            item.pop("UUID", None)
        writer.world.steps.append(raw)


def bind_by_name(writer: PartitionWriter) -> None:
    """Report work under a UUID that the core gives next, or has given to something else."""
    # The books of a resource manager know an allocation by its UUID, in whichever partition.
    if writer.nodes and len(writer.world.partition_names) == 1:
        draw, where = writer.draw, writer.draw.one_of(writer.nodes)
        app, key = draw.one_of(list(writer.apps)), f"b{len(writer.keys)}"
        if writer.keys and draw.once_in(2):
            app, key = draw.one_of(writer.keys)
        work = {"app": app, "key": key, "node": where, "resource": draw.one_of(writer.sizes)}
        writer.keys.append((app, key))
        writer.add("bind", {**work, "uuid": f"{INSTANCE}-{issued(draw, ISSUED)}"})


def foreign(writer: PartitionWriter) -> None:
    if writer.nodes:
        key, where = f"f{writer.draw.whole(1, 3)}", writer.draw.one_of(writer.nodes)
        work = {"key": key, "node": where, "resource": writer.draw.one_of(writer.sizes)}
        writer.add("bind", {**work, "tags": {TAG_FOREIGN: FOREIGN_DEFAULT}})


def foreign_ends(writer: PartitionWriter) -> None:
    writer.add("release", {"key": f"f{writer.draw.whole(1, 3)}"})
