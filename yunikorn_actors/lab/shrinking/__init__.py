"""Makes what failed small: the tape, the case, and the document of a drawn world."""
