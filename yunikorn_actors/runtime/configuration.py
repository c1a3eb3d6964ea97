"""The configuration that a core is given when it is made: a file, or its text."""

from pathlib import Path

from yunikorn_actors.domain.config import parse_config


def read_config(config: str | Path) -> str:
    """Return the text, which has no fault.

    A text differs from the name of a file by a colon, which every text has that says anything.
    """
    is_text = isinstance(config, str) and (":" in config or not config.strip())
    text = str(config) if is_text else Path(config).read_text(encoding="utf-8")
    parse_config(text)
    return text
