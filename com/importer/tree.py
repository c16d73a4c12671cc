"""A syntax tree with the way up: which node bears a number, and what stands around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from com.compiler import syntax
from com.node import Node, children, rebuild
from com.source import Span

N = TypeVar("N", bound=Node)


class Tree:
    """A program, its nodes by their numbers, and the parent of each."""

    def __init__(self, program: syntax.Program) -> None:
        self.program = program
        self.nodes: dict[Span, Node] = {}
        self.parents: dict[Span, Node] = {}
        self._walk(program)

    def _walk(self, node: Node) -> None:
        for child in children(node):
            span = getattr(child, "span", None)
            if span is not None:
                self.nodes[span] = child
                self.parents[span] = node
                self._walk(child)

    def around(self, node: Node, kind: type[N]) -> N | None:
        """The nearest node of a kind around a node."""
        found: Any = self.parents.get(getattr(node, "span", Span(0, 0)))
        while found is not None and not isinstance(found, kind):
            found = self.parents.get(found.span)
        return found

    def with_(self, edits: Mapping[Span, Node]) -> syntax.Program:
        """The program with other nodes in place of those that bear these numbers."""

        def change(node: Node) -> Node:
            span = getattr(node, "span", None)
            return edits.get(span, node) if span is not None and not isinstance(node, Span) else node

        made: syntax.Program = rebuild(self.program, change)
        return made
