"""The read side: what a reader wants to know of a core, worked out away from it.

`ReadSide` is fed with what Context sends its followers, as a Scheduler is, and changes by facts
alone; it decides nothing and reads no clock. The other modules turn what it knows into the values
that YuniKorn's REST interface answers with, a module for each page.
"""
