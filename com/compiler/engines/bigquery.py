"""BigQuery: numbers with a point are floats unless cast, two kinds of decimals, no `div`, no `%`, no `filter`."""

from __future__ import annotations

from decimal import Decimal

from com.compiler import ir
from com.compiler.engines import Aggregation, Tree, Writer
from com.compiler.engines import readers as r
from com.compiler.engines import typed as t
from com.schema import Type

_NAMES = {
    "int": "INT64",
    "float": "FLOAT64",
    "bool": "BOOL",
    "date": "DATE",
    "timestamp": "DATETIME",
    "bytes": "BYTES",
    "json": "JSON",
}
_SCALE, _WHOLE = 9, 29
"""The digits that a NUMERIC has behind and before the point; all else is a BIGNUMERIC."""


def _kind(type_: Type) -> str:
    return "NUMERIC" if type_.scale <= _SCALE and type_.precision - type_.scale <= _WHOLE else "BIGNUMERIC"


def _named(type_: Type) -> str:
    if type_.kind == "decimal":
        return f"{_kind(type_)}({type_.precision}, {type_.scale})"
    return _NAMES.get(type_.kind, "STRING")


def _number(w: Writer, name: str, time: Tree) -> Tree:
    if name == "weekday":
        sunday = r.extracted(w, "dayofweek", time)
        return w.binary("+", w.call("mod", w.binary("+", sunday, w.number(5)), w.number(7)), w.number(1))
    return r.extracted(w, {"week": "isoweek"}.get(name, name), time)


def _truncated(w: Writer, unit: str, time: Tree, to: Type) -> Tree:
    return w.call("datetime_trunc", time, w.words({"week": "ISOWEEK"}.get(unit, unit.upper())))


def _move(w: Writer, time: Tree, count: Tree, unit: str) -> Tree:
    moved = w.call("datetime_add", time, w.words("INTERVAL ", count, f" {unit.upper()}"))
    return moved


def _moved_date(w: Writer, e: ir.Apply, count: Tree, unit: str, time: Tree) -> Tree:
    name = "date_add" if e.type.kind == "date" else "datetime_add"
    return w.call(name, time, w.words("INTERVAL ", count, f" {unit}"))


def _add_period(w: Writer, e: ir.Apply) -> Tree:
    period = t.constant(e.args[1])
    made = w.cast(w.expr(e.args[0]), _named(e.type))
    for field, unit in (("months", "MONTH"), ("days", "DAY"), ("microseconds", "MICROSECOND")):
        count = getattr(period, field)
        if count:
            made = _moved_date(w, e, w.number(count), unit, made)
    return made


def _add_days(w: Writer, e: ir.Apply) -> Tree:
    return _moved_date(w, e, w.expr(e.args[1]), "DAY", w.expr(e.args[0]))


def _big(w: Writer, tree: Tree) -> Tree:
    return w.cast(tree, "BIGNUMERIC")


def _divided(w: Writer, left: Tree, right: Tree, e: ir.Apply) -> Tree:
    """A BIGNUMERIC keeps 38 digits behind the point, so that nothing is rounded twice."""
    quotient = w.binary("/", _big(w, left), _big(w, right))
    return w.cast(w.call("round", quotient, w.number(e.type.scale)), _named(e.type))


def _average(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
    made = w.aggregated(e, "avg", [_big(w, args[0])], t.is_distinct_call(e))
    return w.cast(w.call("round", made, w.number(e.type.scale)), _named(e.type))


def _string_agg(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
    if t.no_window(w, e, "string_agg"):
        return w.null()
    assert isinstance(e, ir.Aggregate)
    if not isinstance(t.constant(e.args[1]), str):
        w.unsupported("string_agg with a computed separator", "write the separator as a text")
    if e.distinct and any(k.expr != e.args[0] for k in e.order):
        w.unsupported("string_agg(distinct …) in another order", "select distinct in a step before")
    nullable = [k for k in t.order_of(e) if k.expr.nullable and k.expr != e.args[0]]
    if nullable:
        w.unsupported("string_agg in the order of what may be null", "order by coalesce(…)")
    order = tuple(k.with_(expr=k.expr.with_(nullable=False)) for k in t.order_of(e))
    text = args[0] if e.where is None else w.case([(w.expr(e.where), args[0])], None)
    return w.aggregated(e.with_(where=None), "string_agg", [text, w.ordered(args[1], order)], e.distinct)


def _literal(w: Writer, value: object, type_: Type) -> Tree | None:
    if isinstance(value, Decimal):
        digits = value.as_tuple()
        scale = max(0, -int(digits.exponent))
        return w.cast(w.text(format(value, "f")), _kind(Type("decimal", max(len(digits.digits), scale), scale)))
    return t.literals(_named)(w, value, type_)


def _operand(w: Writer, type_: Type, tree: Tree) -> Tree:
    """A part of arithmetic whose result may have more digits than a NUMERIC."""
    return _big(w, tree) if type_.kind == "decimal" and _kind(type_) == "BIGNUMERIC" else tree


def _source(w: Writer, bound: Tree, flat: bool) -> Tree:
    name = "json_value_array" if flat else "json_query_array"
    return w.words("UNNEST(", w.call(name, bound), ") AS `com_v` WITH OFFSET AS `com_k`")


def _element(w: Writer, index: int) -> Tree:
    value = w.column("", "com_v")
    return value if index < 0 else w.call("json_value", value, w.text(f"$[{index}]"))


def _format(w: Writer, e: ir.Apply) -> Tree:
    form = t.constant(e.args[1])
    if not isinstance(form, str):
        w.unsupported("a computed format", "write the format as a text")
        return w.null()
    return w.call("format_datetime", w.text(form), w.cast(w.expr(e.args[0]), "DATETIME"))


OF = r.Words(
    _named,
    _number,
    _truncated,
    lambda w, start, end: w.call("date_diff", end, start, w.words("DAY")),
    lambda w, unit, start, end: w.call("datetime_diff", end, start, w.words(unit.upper())),
    _move,
    lambda w, text, form: w.call("regexp_contains", text, t.whole(w, form)),
    lambda w, name, text, letters: w.call(name, text, letters),
    _divided,
)

ENGINE = r.reader(
    "bigquery",
    "BigQuery",
    OF,
    r.rows(OF, _element, lambda w: w.column("", "com_k"), _source),
    _average,
    {"add_period": _add_period, "add_days": _add_days, "format_date": _format},
    string_agg=_string_agg,
    length="char_length",
    literal=_literal,
    operand=_operand,
    divided=lambda w, left, right: w.call("div", left, t.unless_zero(w, right)),
    escape=False,
    filters=False,
    one_key="STRING",
)
