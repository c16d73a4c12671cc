"""Where in the SQL each part of a program comes from.

While a query is translated and mended, every node of the syntax tree has a span of its own: a number that stands for
its place. So what a check says of a span can be told of exactly one node; in the end the numbers become places again.
"""

from __future__ import annotations

from typing import Any

from sqlglot import expressions as exp

from com.diagnostics import Diagnostic
from com.node import Node
from com.source import Span


class Places:
    """The places in one text of SQL, and the numbers that stand for them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spans: list[Span] = []

    def number(self, place: Span) -> Span:
        """A new number, as a span, for a place."""
        self.spans.append(place)
        return Span(len(self.spans) - 1, len(self.spans))

    def again(self, number: Span) -> Span:
        """A new number for the place of another."""
        return self.number(self.place(number))

    def place(self, number: Span) -> Span:
        """The place that a number, or a range of numbers, stands for."""
        first = self.spans[min(number.start, len(self.spans) - 1)] if self.spans else Span(0, 0)
        last = self.spans[min(max(number.end - 1, number.start), len(self.spans) - 1)] if self.spans else first
        return first if last.end < first.start else Span(first.start, max(first.end, last.end))

    def of(self, tree: exp.Expr) -> Span:
        """The place of a tree of sqlglot; that of what is around it if the tree does not know its own."""
        node: exp.Expr | None = tree
        while node is not None:
            found = self._reach(node)
            if found is not None:
                return found
            node = node.parent
        return Span(0, len(self.text.rstrip()))

    def _reach(self, tree: exp.Expr) -> Span | None:
        starts, ends = [], []
        for node in tree.walk():
            if "start" in node.meta and "end" in node.meta:
                starts.append(int(node.meta["start"]))
                ends.append(int(node.meta["end"]) + 1)
        if not starts:
            return None
        start, end = min(starts), max(ends)
        if isinstance(tree, exp.Func | exp.Window):
            end = self._closed(start, end)
        return Span(start, min(end, len(self.text)))

    def _closed(self, start: int, end: int) -> int:
        """The end of a call, with the parentheses that it opens."""
        rest = self.text[end:]
        if rest.lstrip()[:1] == "(" and "(" not in self.text[start:end]:
            end += len(rest) - len(rest.lstrip()) + 1
        while self.text.count("(", start, end) > self.text.count(")", start, end):
            rest = self.text[end:]
            if rest.lstrip()[:1] != ")":
                break
            end += len(rest) - len(rest.lstrip()) + 1
        return end

    def told(self, found: Diagnostic) -> Diagnostic:
        """A message of the check at its place in the SQL. Its fix is for a program's text, and left out."""
        notes = tuple((self.place(span), text) for span, text in found.notes)
        return Diagnostic(found.message, self.place(found.span), notes)

    def placed(self, value: Any) -> Any:
        """A syntax tree with places in the SQL for its numbers."""
        if isinstance(value, tuple):
            return tuple(self.placed(item) for item in value)
        if isinstance(value, Span):
            return self.place(value)
        if isinstance(value, Node):
            return type(value)(*(self.placed(getattr(value, field)) for field in value._fields))
        return value
