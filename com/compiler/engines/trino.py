"""Trino: exact decimals, parameters without names, no `left` and `right`, units that are counted only once whole."""

from __future__ import annotations

from com.compiler import ir
from com.compiler.engines import Aggregation, Tree, Writer
from com.compiler.engines import readers as r
from com.compiler.engines import typed as t
from com.schema import INT, Type

_NAMES = {
    "int": "BIGINT",
    "float": "DOUBLE",
    "bool": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP(6)",
    "bytes": "VARBINARY",
    "json": "JSON",
}


def _named(type_: Type) -> str:
    if type_.kind == "decimal":
        return f"DECIMAL({type_.precision}, {type_.scale})"
    return _NAMES.get(type_.kind, "VARCHAR")


def _number(w: Writer, name: str, time: Tree) -> Tree:
    return r.extracted(w, {"weekday": "day_of_week"}.get(name, name), time)


def _truncated(w: Writer, unit: str, time: Tree, to: Type) -> Tree:
    return w.call("date_trunc", w.text(unit), time)


def _move(w: Writer, time: Tree, count: Tree, unit: str) -> Tree:
    if unit == "microsecond":
        count, unit = w.binary("/", count, w.number(1000)), "millisecond"
    return w.call("date_add", w.text(unit), count, time)


def _add_period(w: Writer, e: ir.Apply) -> Tree:
    period = t.constant(e.args[1])
    if getattr(period, "microseconds", 0) % 1000:
        w.unsupported("a span of microseconds", "write whole milliseconds")
    return r.add_period(OF)(w, e)


def trim_from(w: Writer, name: str, text: Tree, letters: Tree) -> Tree:
    """A text without those letters at its ends."""
    side = {"trim": "BOTH", "ltrim": "LEADING", "rtrim": "TRAILING"}[name]
    return w.words(f"TRIM({side} ", letters, " FROM ", text, ")")


def _wide(w: Writer, tree: Tree, scale: int) -> Tree:
    return w.cast(tree, f"DECIMAL(38, {scale})")


def _divided(w: Writer, left: Tree, right: Tree, e: ir.Apply) -> Tree:
    """A quotient has the larger scale of both sides, and is rounded half away from zero."""
    if e.args[1].type.scale > e.type.scale:
        w.unsupported("a quotient by a decimal of so many digits", "cast the right side to fewer digits")
    return w.cast(w.binary("/", _wide(w, left, e.type.scale), right), _named(e.type))


def _average(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
    made = w.aggregated(e, "avg", [_wide(w, args[0], e.type.scale)], t.is_distinct_call(e))
    return w.cast(made, _named(e.type))


def _source(w: Writer, bound: Tree, flat: bool) -> Tree:
    shape = "ARRAY(VARCHAR)" if flat else "ARRAY(ARRAY(VARCHAR))"
    return w.calling("unnest", [w.cast(w.call("json_parse", bound), shape)], "com_j", ("value", "key"))


def _element(w: Writer, index: int) -> Tree:
    value = w.column("com_j", "value")
    return value if index < 0 else w.call("element_at", value, w.number(index + 1))


OF = r.Words(
    _named,
    _number,
    _truncated,
    lambda w, start, end: w.call("date_diff", w.text("day"), start, end),
    lambda w, unit, start, end: w.call("date_diff", w.text(unit), start, end),
    _move,
    lambda w, text, form: w.call("regexp_like", text, t.whole(w, form)),
    trim_from,
    _divided,
)

ENGINE = r.reader(
    "trino",
    "Trino",
    OF,
    r.rows(OF, _element, lambda w: w.column("com_j", "key"), _source),
    _average,
    {
        "add_period": _add_period,
        "format_date": t.format_date("date_format", t.MYSQL_LETTERS, t.doubled_percent),
    },
    operand=lambda w, type_, tree: w.cast(tree, "BIGINT") if type_ == INT else tree,
    divided=lambda w, left, right: w.binary("/", left, t.unless_zero(w, right)),
)
