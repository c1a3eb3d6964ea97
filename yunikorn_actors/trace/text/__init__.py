"""Answers about a recording as lines of text."""
