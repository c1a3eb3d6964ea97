"""Which version of the package this is."""

from typing import Final

VERSION: Final = "0.1.0"


def extra_command(extra: str) -> str:
    """Say how an extra is installed, beside a package that was built and in a clone."""
    built = f"pip install 'yunikorn-actors[{extra}]'"
    return f"{built}; in a clone of the repository: pip install -e '.[{extra}]'"
