"""Text that others have chosen, for a line that people read."""


def printable(text: str) -> str:
    """Escape what a terminal would act on: control characters, line ends, changes of direction."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
