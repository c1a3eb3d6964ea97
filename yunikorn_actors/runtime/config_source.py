"""The configuration that a core is given when it is made: a file, or its text."""

from pathlib import Path

from yunikorn_actors.config import parse_config
from yunikorn_actors.config.fault import DOCUMENT, TEXT_BYTES_MAX, ConfigError, Fault
from yunikorn_actors.policies.registry import NO_POLICIES, Policies


def read_config(config: str | Path, policies: Policies = NO_POLICIES) -> str:
    """Return the text, which has no fault.

    A text differs from the name of a file by a colon, which every text has that says anything.
    """
    is_text = isinstance(config, str) and (":" in config or not config.strip())
    text = str(config) if is_text else read_file(Path(config))
    parse_config(text, policies.names_for(text))
    return text


def read_file(path: Path) -> str:
    """Return its text; of one that has no end enough to be refused for its size."""
    with path.open("rb") as file:
        data = file.read(TEXT_BYTES_MAX + 1)
    try:
        # What is too large may be cut inside of a character.
        return data.decode(errors="replace" if len(data) > TEXT_BYTES_MAX else "strict")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        fault = Fault(line=line, path=DOCUMENT, what="no UTF-8", remedy="save the file as UTF-8")
        raise ConfigError([fault]) from None
