"""Secrets in what goes out: no log has their values, and no recording.

Nobody tells the core what is secret, so names decide: what is called like a password or a token. In
a log and in a dump of the state the value is replaced by stars. In a recording it is replaced by a
digest of it with a salt that is never written down. So equal values stay equal and different ones
different, and a replay, which gives the machines what was recorded, comes to the same: no machine
decides by a secret.
"""

import hashlib
import os
import re
from collections.abc import Callable
from typing import Final

_NAMES: Final = (
    "password", "passwd", "passphrase", "secret", "token", "credential", "api[_-]?key",
    "private[_-]?key", "authorization",
)  # fmt: skip
_NAMED: Final = rf"[\w-]*(?:{'|'.join(_NAMES)})[\w-]*"
_VALUE: Final = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|(?:bearer|basic)\s+\S+|[^\s,;&})\]]+"
_SECRETS: Final = (
    re.compile(rf"(?i)((?<![\w-]){_NAMED}['\"]?\s*[:=]\s*)({_VALUE})()"),
    re.compile(r"(?i)\b(bearer\s+)(\S+)()"),
    re.compile(r"(://[^\s/:@]*:)([^\s/@]+)(@)"),
)
"""What is named like a secret; a bearer's token; the password in an address."""
NAME_OF_A_SECRET: Final = re.compile(rf"(?i).*?{_NAMED}.*", re.DOTALL)
Cover = Callable[[str], str]
"""What stands in the place of a secret."""


def stars(_: str) -> str:
    return "***"


def salted() -> Cover:
    """Return a cover by which equal secrets stay equal; only this process could tell them."""
    salt = os.urandom(16)
    return lambda secret: f"masked:{hashlib.sha256(salt + secret.encode()).hexdigest()[:8]}"


def masked(text: str, cover: Cover = stars) -> str:
    """Replace the value of everything that is named like a secret."""
    for pattern in _SECRETS:
        text = pattern.sub(lambda found: f"{found[1]}{cover(found[2])}{found[3]}", text)
    return text
