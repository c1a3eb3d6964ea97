"""Which version of the package this is."""

from typing import Final

VERSION: Final = "0.1.0"


def extra_command(extra: str) -> str:
    """Say how an extra is installed: from the source, as the package is on no index."""
    return f"in a clone of the repository: pip install -e '.[{extra}]'"
