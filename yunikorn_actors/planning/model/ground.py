"""What every part of the model stands on."""

from typing import NamedTuple

from yunikorn_actors.planning.model.requeue import Wakes
from yunikorn_actors.planning.model.shapes import Shapes
from yunikorn_actors.planning.model.tree import Tree


class Ground(NamedTuple):
    shapes: Shapes
    tree: Tree
    reserved_nodes: dict[str, None]
    wakes: Wakes
