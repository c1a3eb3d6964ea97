"""A resource manager that refuses nodes to asks."""

from support import Recorder

from yunikorn_actors import si


class Picky(Recorder):
    """Refuses pairs of key and node, and remembers every question."""

    def __init__(self, *denied: tuple[str, str]) -> None:
        super().__init__()
        self.denied = set(denied)
        self.asked: list[tuple[str, str, bool]] = []

    def predicates(self, args: si.PredicatesArgs) -> str | None:
        self.asked.append((args.allocation_key, args.node_id, args.allocate))
        pair = (args.allocation_key, args.node_id)
        return f"no {pair[1]}" if pair in self.denied else None

    def take_questions(self) -> list[tuple[str, str, bool]]:
        asked, self.asked = self.asked, []
        return asked
