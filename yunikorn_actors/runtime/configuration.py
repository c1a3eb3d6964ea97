"""The configuration that a core is given when it is made: a file, or its text."""

from pathlib import Path

from yunikorn_actors.domain.config import SchedulerConfig, parse_config


def read_config(config: str | Path) -> SchedulerConfig:
    """Tell a text from the name of a file by a colon, which every text has that says anything."""
    if isinstance(config, str) and (":" in config or not config.strip()):
        return parse_config(config)
    return parse_config(Path(config).read_text(encoding="utf-8"))
