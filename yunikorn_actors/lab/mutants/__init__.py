"""Defects that a search has to find: what went wrong in schedulers, as edits of this one.

They are no part of the core, which does not know of them, and each is in force only inside its own
context.
"""
