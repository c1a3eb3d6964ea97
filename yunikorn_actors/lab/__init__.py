"""The race laboratory: find, shrink and replay races in the real machines.

A case says what happens outside of the core. A schedule decides in which order everything happens;
written down it is a tape. Playing a case by a schedule gives an outcome.
"""
