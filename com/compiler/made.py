"""Syntax that nobody wrote: the pieces of SQL that a graph operation becomes; and what is said in a syntax tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from com.compiler import syntax
from com.compiler.syntax import Name
from com.functions import FUNCTIONS
from com.node import Node, children
from com.schema import End
from com.source import Span

Place = dict[str, syntax.Expr]
"""A node by columns that name it: the key's, and what they are equal to."""


class Own(dict[str, syntax.Expr]):
    """The place of a node whose table is joined: each of its columns by itself."""

    def __init__(self, alias: str, key: Iterable[str], span: Span) -> None:
        super().__init__({column: column_of(alias, column, span) for column in key})
        self.alias, self.span = alias, span

    def __missing__(self, column: str) -> syntax.Expr:
        return column_of(self.alias, column, self.span)


def named(text: str, span: Span) -> Name:
    return Name(text, False, span)


def column_of(alias: str, column: str, span: Span) -> syntax.ColumnName:
    return syntax.ColumnName(named(alias, span), named(column, span), span)


def item_of(expr: syntax.Expr, name: str) -> syntax.Item:
    return syntax.Item(expr, named(name, expr.span), expr.span)


def held(end: End, alias: str, span: Span) -> Place:
    """The node at an edge's end, by what the edge holds of it."""
    return {t: column_of(alias, c, span) for t, c in zip(end.target, end.columns, strict=True)}


def equal(one: Place, other: Place, span: Span) -> list[syntax.Expr]:
    """Two places are the same node."""
    names = list(other) if isinstance(one, Own) else list(one)
    return [syntax.Binary("=", one[n], other[n], span) for n in names]


def both(conditions: Iterable[syntax.Expr], span: Span) -> syntax.Expr | None:
    made: syntax.Expr | None = None
    for condition in conditions:
        made = condition if made is None else syntax.Binary("and", made, condition, span)
    return made


def conjuncts(expr: syntax.Expr) -> Iterator[syntax.Expr]:
    if isinstance(expr, syntax.Binary) and expr.op == "and":
        yield from conjuncts(expr.left)
        yield from conjuncts(expr.right)
    else:
        yield expr


def below(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from below(child)


def variables_in(expr: syntax.Expr) -> set[str]:
    """What an expression names before a point, or alone."""
    return {(n.table or n.name).text for n in below(expr) if isinstance(n, syntax.ColumnName)}


def used_properties(node: Node) -> dict[str, set[str]]:
    """Of each variable the properties that are named, in small letters."""
    found: dict[str, set[str]] = {}
    for inner in below(node):
        if isinstance(inner, syntax.ColumnName) and inner.table is not None:
            found.setdefault(inner.table.text, set()).add(inner.name.text.casefold())
        elif isinstance(inner, syntax.NodePattern | syntax.EdgePattern) and inner.variable is not None:
            names = found.setdefault(inner.variable.text, set())
            names.update(p.name.text.casefold() for p in inner.properties)
        elif isinstance(inner, syntax.Assignment) and inner.table is not None:
            found.setdefault(inner.table.text, set()).add(inner.column.text.casefold())
    return found


def variables_of(node: syntax.Match) -> Iterator[Name]:
    """Every variable of a match."""
    for pattern in node.patterns:
        for element in (pattern, *pattern.elements):
            if element.variable is not None:
                yield element.variable


def aliases_in(query: Node) -> frozenset[str]:
    names: set[str] = set()
    for node in below(query):
        if isinstance(node, syntax.TableName):
            names.add((node.alias or node.name).text)
        elif isinstance(node, syntax.TablePlaceholder):
            names.add(node.alias.text if node.alias is not None else node.place.name)
        elif isinstance(node, syntax.Derived) and node.alias is not None:
            names.add(node.alias.text)
    return frozenset(names)


def aggregates(expr: Node) -> bool:
    """True if an expression aggregates, over the rows of this query."""
    if isinstance(expr, syntax.Query):
        return False
    if isinstance(expr, syntax.Function) and expr.over is None:
        function = FUNCTIONS.get(expr.name.text.lower())
        if function is not None and function.kind == "aggregate":
            return True
    return any(aggregates(child) for child in children(expr))


def said(expr: syntax.Expr) -> str:
    """The name of an output that has none."""
    match expr:
        case syntax.Function(name=name):
            return name.text.lower()
        case syntax.Placeholder(name=text, column=column):
            return column.text if column is not None else text
        case syntax.Cast(operand=operand):
            return operand.name.text if isinstance(operand, syntax.ColumnName) else said(operand)
        case syntax.Case():
            return "case"
    return "column"


def free(name: str, taken: set[str]) -> str:
    made, number = name, 2
    while made in taken:
        made, number = f"{name}_{number}", number + 1
    return made
