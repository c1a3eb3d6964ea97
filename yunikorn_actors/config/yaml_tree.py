"""From text to a YAML tree, with everything refused that a configuration has no use for.

Only the first document of the text is looked at. Anchors and aliases are refused: they make a small
text stand for a huge tree, and a fault could not name the one place where it is. Nesting and size
are bounded, so that no text can exhaust the stack or hold up its reader for long. Tags other than
those of plain data are refused; nothing is ever constructed from a tag.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol, cast

import yaml
from yaml.composer import Composer
from yaml.nodes import Node, ScalarNode
from yaml.resolver import Resolver

from yunikorn_actors.config.fault import DOCUMENT, TEXT_BYTES_MAX, ConfigError, Fault

NESTING_MAX: Final = 64

_TAG_PREFIX: Final = "tag:yaml.org,2002:"
_PLAIN_TAGS: Final = frozenset(
    f"{_TAG_PREFIX}{name}"
    for name in ("str", "int", "float", "bool", "null", "timestamp", "merge", "value", "map", "seq")
)
BOOL_TAG: Final = f"{_TAG_PREFIX}bool"
NULL_TAG: Final = f"{_TAG_PREFIX}null"

_ALIKE: Final = r"[\n\x20\"#$&'()*+,\-./0-9:;<=>@A-Z\[\]^_`a-z{|}~]*"
_READ_ALIKE: Final = re.compile(rf"{_ALIKE}(?:(?<=[0-9])%{_ALIKE})*")
"""A text of these characters that libyaml takes is read as PyYAML's own parser reads it.

Of others, as tabs, tags, escapes and other line ends, each takes some that the other refuses. A per
cent sign is like that where it may begin a directive, and not behind a number.
"""

# Half a character can be written with an escape, and can be neither stored nor sent.
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class _Mark(Protocol):
    @property
    def line(self) -> int: ...


class _Strict(Composer):
    """Stops at the first node that is not plain data of bounded depth."""

    depth = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        event: yaml.NodeEvent = cast("Any", self).peek_event()
        line = _line(event.start_mark)
        if event.anchor is not None:  # an alias names one, too
            raise _refused(line, "anchors and aliases are not allowed", "write the value out")
        if self.depth == NESTING_MAX:
            what = f"nesting deeper than {NESTING_MAX} levels"
            raise _refused(line, what, "make the hierarchy flatter")
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        if node is not None and node.tag not in _PLAIN_TAGS:
            raise _refused(line, f"tag {node.tag} is not allowed", "remove it")
        if isinstance(node, ScalarNode) and _SURROGATE.search(node.value):
            raise _refused(line, "half a surrogate pair", "write the character itself")
        return node


class _StrictLoader(_Strict, yaml.SafeLoader):
    """In Python: what it says of a fault is what a reader gets."""


class _SecondDocument(yaml.YAMLError):
    pass


def _quick_loader() -> Callable[[str], Any] | None:
    """Return a loader whose parser is libyaml, some eight times as fast, if PyYAML has it."""
    if not yaml.__with_libyaml__:
        return None

    class QuickLoader(_Strict, yaml.CSafeLoader):
        """The nodes are composed in Python from the events of libyaml."""

        check_node, get_node = Composer.check_node, Composer.get_node

        def __init__(self, text: str) -> None:
            yaml.CSafeLoader.__init__(self, text)
            Composer.__init__(self)
            Resolver.__init__(self)

        def compose_scalar_node(self, anchor: Any) -> ScalarNode:  # noqa: ANN401 - the library's
            node = super().compose_scalar_node(anchor)
            if not node.style:
                if not node.value:
                    raise yaml.YAMLError("the two do not agree on which line nothing is")
                node.style = None  # as PyYAML has it
            return node

    return QuickLoader


_QUICK: Final = _quick_loader()


def compose(text: str, *, is_alone: bool = False) -> Node | None:
    """Read the first document of the text; None when there is nothing in it.

    Where it must be alone, another one is refused.
    """
    if len(text.encode("utf-8", "surrogatepass")) > TEXT_BYTES_MAX:
        raise _refused(1, f"text larger than {TEXT_BYTES_MAX} bytes", "make it smaller")
    if _QUICK is not None and _READ_ALIKE.fullmatch(text):
        # Whatever is wrong is worded below.
        with suppress(yaml.YAMLError, ConfigError):
            return _first_document(_QUICK(text), is_alone=is_alone)
    try:
        loader = _StrictLoader(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _refused(line, f"no YAML: {error.reason}", "remove the character") from None
    try:
        return _first_document(loader, is_alone=is_alone)
    except yaml.MarkedYAMLError as error:
        line = _line(error.problem_mark or error.context_mark)
        raise _refused(line, f"no YAML: {error.problem}", "correct the syntax") from None
    except _SecondDocument:
        raise _refused(loader.line + 1, "a second document", "write one without '---'") from None
    except (ValueError, OverflowError) as error:
        # The scanner passes on what Python says to an escape or a version that is out of range.
        if isinstance(error, ConfigError):
            raise
        raise _refused(loader.line + 1, f"no YAML: {error}", "correct the number") from None


def _first_document(
    loader: Any,  # noqa: ANN401 - either of the two
    *,
    is_alone: bool,
) -> Node | None:
    node: Node | None = loader.get_node() if loader.check_node() else None
    # What follows must be the end or another document, not a remainder of this one.
    if loader.check_node() and is_alone:
        raise _SecondDocument
    return node


def line_of(node: Node) -> int:
    """Return the line on which a node starts, counted from 1."""
    return _line(node.start_mark)


def _line(mark: _Mark | None) -> int:
    return 1 if mark is None else mark.line + 1


def _refused(line: int, what: str, remedy: str) -> ConfigError:
    return ConfigError([Fault(line=line, path=DOCUMENT, what=what, remedy=remedy)])
