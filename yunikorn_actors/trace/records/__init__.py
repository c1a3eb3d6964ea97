"""The bytes of a recording: where they come from, and where each record begins."""
