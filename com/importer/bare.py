"""A column beside a lone min or max: SQLite takes it from the row that has the extreme."""

from __future__ import annotations

from com.compiler import syntax
from com.functions import FUNCTIONS
from com.importer.places import Places
from com.node import Node, children, rebuild
from com.source import Span


def row_of_extreme(query: syntax.Query, select: syntax.Select, places: Places) -> tuple[syntax.Query, str] | None:
    """The query that says so, and `max(x)` as it is called; None if it is none of this kind."""
    calls = [c for item in select.items for c in _aggregates(item)]
    extremes = {c for c in calls if c.name.text.lower() in ("min", "max")}
    if len(extremes) != 1 or select.having is not None or select.distinct:
        return None
    extreme = extremes.pop()
    which = extreme.name.text.lower()
    items = [_named(item, places) for item in select.items if isinstance(item, syntax.Item)]
    if len(items) != len(select.items) or not isinstance(select.source, syntax.From):
        return None
    if not select.group:
        if any(c != extreme for c in calls):
            return None
        plain = tuple(
            _put(n, extreme, extreme.args[0]) if extreme in _aggregates(i) else i
            for i, n in zip(select.items, items, strict=True)
        )
        key = syntax.OrderKey(extreme.args[0], which == "max", None, places.again(select.span))
        one = syntax.Number("1", places.again(select.span))
        return query.with_(body=select.with_(items=plain), order=(key,), limit=one), which
    return _grouped(query, select, items, extreme, which, places)


def _grouped(
    query: syntax.Query,
    select: syntax.Select,
    items: list[syntax.Item],
    extreme: syntax.Function,
    which: str,
    places: Places,
) -> tuple[syntax.Query, str] | None:
    if query.order or any(not isinstance(g, syntax.ColumnName) for g in select.group):
        return None

    def again() -> Span:
        return places.again(select.span)

    def window(node: Node) -> Node:
        """Other aggregates are taken over the group as a window."""
        if isinstance(node, syntax.Function) and _is_aggregate(node):
            return node.with_(over=syntax.Over(select.group, (), None, again()))
        return node

    key = syntax.OrderKey(extreme.args[0], which == "max", None, again())
    first = syntax.Function(
        syntax.Name("row_number", False, again()), (), False, False, (), None,
        syntax.Over(select.group, (key,), None, again()), again(),
    )  # fmt: skip
    inner_items = tuple(rebuild(_put(i, extreme, extreme.args[0]), window) for i in items)
    place = syntax.Name("place", False, again())
    body = select.with_(items=(*inner_items, syntax.Item(first, place, again())), group=(), span=again())
    derived = syntax.Derived(
        syntax.Query(body, (), None, None, again()), syntax.Name("ranked", False, again()), again()
    )
    where = syntax.Binary(
        "=", syntax.ColumnName(None, place.with_(span=again()), again()), syntax.Number("1", again()), again()
    )
    outer = syntax.Select(
        False,
        tuple(syntax.Item(syntax.ColumnName(None, _alias(i), again()), None, again()) for i in items),
        syntax.From(derived, (), again()),
        where,
        (),
        None,
        again(),
    )
    return query.with_(body=outer), which


def _named(item: syntax.Item, places: Places) -> syntax.Item:
    """The item with a name, so that it can be selected again."""
    if item.alias is not None:
        return item
    expr = item.expr
    text = expr.name.text if isinstance(expr, syntax.ColumnName | syntax.Function) else "value"
    return item.with_(
        alias=syntax.Name(
            text.lower() if not isinstance(expr, syntax.ColumnName) else text, False, places.again(item.span)
        )
    )


def _alias(item: syntax.Item) -> syntax.Name:
    assert item.alias is not None
    return item.alias


def _put(item: syntax.Item, extreme: syntax.Function, value: syntax.Expr) -> syntax.Item:
    made: syntax.Item = rebuild(item, lambda n: value if n == extreme else n)
    return made


def _is_aggregate(node: syntax.Function) -> bool:
    known = FUNCTIONS.get(node.name.text.lower())
    return known is not None and known.kind == "aggregate" and node.over is None


def _aggregates(node: Node) -> list[syntax.Function]:
    if isinstance(node, syntax.Query):
        return []
    if isinstance(node, syntax.Function) and _is_aggregate(node):
        return [node]
    return [c for child in children(node) for c in _aggregates(child)]
