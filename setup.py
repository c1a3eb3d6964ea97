"""What setup.cfg cannot say: the long description, which is the README without its relative links.

They lead to files of the repository, and the page of a package index is beside none of these.
"""

import re
from pathlib import Path

_RELATIVE_LINK = re.compile(r"\[([^\]]+)\]\((?![a-z]+:)[^)]+\)")


def long_description() -> str:
    readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    return _RELATIVE_LINK.sub(r"\1", readme)


if __name__ == "__main__":
    from setuptools import setup

    setup(long_description=long_description(), long_description_content_type="text/markdown")
