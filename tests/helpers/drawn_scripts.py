"""Scripts drawn at random, as the laboratory's worlds draw them, of any theme and number."""

from yunikorn_actors.lab.scenario_documents import Document
from yunikorn_actors.lab.schedules.random_draw import Draw
from yunikorn_actors.lab.swarm.scripts import THEMES, Writer, drawn_queues

TREES = 75
"""Trees of queues of each theme."""


def drawn_script(seed: int) -> Document:
    draw = Draw(0, seed)
    theme = draw.one_of(THEMES)
    configs, leaves = drawn_queues(theme, draw.whole(1, TREES))
    manual = draw.once_in(2)
    return Writer(draw, theme, configs, leaves, manual=manual).script(f"script {seed}")
