"""A shape is found by the amounts of an ask, whether or not asks share them as one object."""

from hypothesis import given
from hypothesis import strategies as st

from yunikorn_actors.planning.model.requeue import Requeue
from yunikorn_actors.planning.model.shape import shape_key
from yunikorn_actors.planning.model.shapes import Shapes
from yunikorn_actors.state.allocations import AskSpec

AMOUNTS = ({"vcore": 1}, {"vcore": 1}, {"vcore": 2}, {"memory": 1, "vcore": 1})
"""The first two are equal and not the same."""
ASKS = [
    AskSpec(
        application_id="app-1",
        key=f"ask-{number}",
        resource=amounts,
        required_node=node,
        gpu_model=model,
    )
    for number, amounts in enumerate(AMOUNTS)
    for node, model in (("", ""), ("n1", ""), ("", "A100"))
]
MOVES = st.lists(st.tuples(st.sampled_from(ASKS), st.booleans()), max_size=20)


@given(MOVES)
def test_an_ask_has_the_shape_that_is_known_of_its_amounts(
    moves: list[tuple[AskSpec, bool]],
) -> None:
    shapes = Shapes(Requeue(reports=False))
    for spec, is_forgotten in moves:
        shape = shapes.of(spec)
        assert (shape.key, shape) == (shape_key(spec), shapes.known[shape_key(spec)])
        if is_forgotten:
            shapes.forget_unused(shape)
            assert shape_key(spec) not in shapes.known
