"""The exit statuses of all commands, which scripts rely on; 0 if all is well."""

from typing import Final

NO: Final = 1
"""The answer is no."""
FAILED: Final = 2
"""The command could not be carried out."""
INTERRUPTED: Final = 130
"""As a shell reports a program that SIGINT ended."""
