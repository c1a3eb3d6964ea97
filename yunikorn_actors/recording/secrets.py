"""Secrets in what goes out: no log has their values, and no recording.

In a log and in a dump of the state a value is replaced by stars. In a recording it is replaced by a
digest of it with a salt that is never written down. So equal values stay equal and different ones
different, and a replay, which gives the machines what was recorded, comes to the same: no machine
decides by a secret. What a secret looks like stands in `domain.masking`.
"""

import hashlib
import os

from yunikorn_actors.values.masking import Cover


def salted() -> Cover:
    """Return a cover by which equal secrets stay equal; only this process could tell them."""
    salt = os.urandom(16)
    return lambda secret: f"masked:{hashlib.sha256(salt + secret.encode()).hexdigest()[:8]}"
