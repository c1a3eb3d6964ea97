"""A word is looked up in the glossary by the alphabet."""

import re

from pages import REPOSITORY

GLOSSARY = REPOSITORY / "docs/explanation/glossary.md"


def words() -> list[str]:
    rows = re.findall(r"^\| (?!word|---)([^|]+) \|", GLOSSARY.read_text("utf-8"), re.MULTILINE)
    return [re.sub(r"[^a-z0-9 ]", "", re.sub(r"\(.*?\)", "", it).lower()).strip() for it in rows]


def test_its_words_are_in_order_and_each_stands_once() -> None:
    found = words()
    assert len(found) > 100
    assert found == sorted(set(found))
