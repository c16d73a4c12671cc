"""Where something was written: a text with a name, and a span of it."""

from __future__ import annotations

from bisect import bisect_right

from com.node import Node


class Span(Node):
    """Half-open range of character offsets in one source."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """From the start of this one to the end of the other."""
        return Span(self.start, other.end)


NOWHERE = Span(0, 0)


class Source:
    """A text and the name it is shown under (a file's path, `<stdin>`, `<text>`)."""

    __slots__ = ("name", "text", "_starts")

    def __init__(self, text: str, name: str = "<text>") -> None:
        self.name = name
        self.text = text
        self._starts: list[int] | None = None

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both counted from 1, columns in characters."""
        if self._starts is None:
            self._starts = [0, *(i + 1 for i, char in enumerate(self.text) if char == "\n")]
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line, without its end."""
        self.place(0)
        assert self._starts is not None
        start = self._starts[number - 1]
        end = self._starts[number] - 1 if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r")
