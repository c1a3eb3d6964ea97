"""Defects of the journal: what a core that is started again does not know, or knows wrongly."""

_UNSEEN = "No run of the laboratory writes a journal."
JOURNAL = ()
