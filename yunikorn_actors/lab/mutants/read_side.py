"""Defects of the read side: what it shows is not what the core has."""

_UNSEEN = "No run of the laboratory has a read side."
READ_SIDE = ()
