"""The searches for victims of one plan: one for all asks of a leaf that are alike."""

from collections.abc import Container, Sequence
from functools import partial

from yunikorn_actors.planning.model.shape import Shape
from yunikorn_actors.planning.model.views import AskView, QueueView
from yunikorn_actors.planning.preemption.scene import Scene
from yunikorn_actors.planning.preemption.victim_search import Search
from yunikorn_actors.policies.places import Key
from yunikorn_actors.state.allocations import Allocation


class Searches:
    def __init__(self, scene: Scene, whole: Container[str] | None = None) -> None:
        """Of whole applications only those with these ids go, if any are named."""
        self.gangs: dict[int, None] = {}
        """Those that had their turn in this plan, by the serial of their application."""
        self._whole = whole
        self.begin_anew(scene)

    def begin_anew(self, scene: Scene) -> None:
        """Search in another scene from now on."""
        self.scene = scene
        self._searches: dict[tuple[QueueView, Shape, int], Search] = {}

    def of(self, shape: Shape, ask: AskView) -> Search:
        spec, leaf = ask.ask.spec, ask.app.leaf
        key = (leaf, shape, spec.priority)
        if key not in self._searches:
            rank = partial(self._rank, leaf) if leaf.decider.ranks_victims else None
            self._searches[key] = Search(
                self.scene, leaf.queue, spec, shape, rank, whole=self._whole
            )
        return self._searches[key]

    def _rank(self, leaf: QueueView, victims: Sequence[Allocation]) -> Key:
        app = self.scene.state.applications[victims[0].spec.application_id]
        return leaf.decider.victim_rank(app, victims, self.scene.now_ns)
