"""Spark SQL 4 in ANSI mode, its session in UTC: quotes with backslashes, decimals that lose digits when they grow."""

from __future__ import annotations

from com.compiler import ir
from com.compiler.engines import Aggregation, Tree, Writer
from com.compiler.engines import readers as r
from com.compiler.engines import typed as t
from com.compiler.engines.trino import trim_from
from com.schema import INT, Type

_NAMES = {
    "int": "BIGINT",
    "float": "DOUBLE",
    "bool": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP_NTZ",
    "bytes": "BINARY",
}


def _named(type_: Type) -> str:
    if type_.kind == "decimal":
        return f"DECIMAL({type_.precision}, {type_.scale})"
    return _NAMES.get(type_.kind, "STRING")


def _number(w: Writer, name: str, time: Tree) -> Tree:
    if name == "second":  # an extract would keep its fraction
        return w.call("second", time)
    return r.extracted(w, {"weekday": "dayofweek_iso"}.get(name, name), time)


def _truncated(w: Writer, unit: str, time: Tree, to: Type) -> Tree:
    return w.cast(w.call("date_trunc", w.text(unit), time), _named(Type("timestamp")))


def _move(w: Writer, time: Tree, count: Tree, unit: str) -> Tree:
    months = count if unit == "month" else w.number(0)
    days = count if unit == "day" else w.number(0)
    seconds = w.binary("/", w.cast(count, "DECIMAL(18, 0)"), w.number(1_000_000)) if unit == "microsecond" else None
    zero = w.number(0)
    if unit == "month":
        return w.binary("+", time, w.call("make_ym_interval", zero, months))
    if unit == "day":
        return w.binary("+", time, w.call("make_dt_interval", w.cast(days, "INT")))
    return w.binary("+", time, w.call("make_dt_interval", zero, zero, zero, w.cast(seconds, "DECIMAL(18, 6)")))


def _add_days(w: Writer, e: ir.Apply) -> Tree:
    if e.type.kind == "date":
        return w.call("date_add", w.expr(e.args[0]), w.cast(w.expr(e.args[1]), "INT"))
    return _move(w, w.expr(e.args[0]), w.expr(e.args[1]), "day")


def _settled(w: Writer, e: ir.Apply, tree: Tree) -> Tree:
    """A product of more than 38 digits would lose some behind the point."""
    digits = [a.type.precision or 19 for a in e.args]
    if e.name == "*" and e.type.kind == "decimal" and sum(digits) + 1 > 38:
        w.unsupported(f"a product of {sum(digits)} digits", "cast its sides to decimals of fewer digits")
    return tree


def _divided(w: Writer, left: Tree, right: Tree, e: ir.Apply) -> Tree:
    first, second = (a.type if a.type.kind == "decimal" else Type("decimal", 19, 0) for a in e.args)
    room = 38 - (first.precision - first.scale + second.scale)
    if min(room, max(6, first.scale + second.precision + 1)) < e.type.scale + 6:
        w.unsupported("a quotient of so many digits", "cast its sides to decimals of fewer digits")
    return w.call("round", w.binary("/", w.cast(left, _named(first)), right), w.number(e.type.scale))


def _average(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
    if e.args[0].type.precision > 34:
        w.unsupported("an average of so many digits", "cast it to a decimal of at most 34 digits")
    return w.aggregated(e, "avg", args, t.is_distinct_call(e))  # has four digits more, as in com


def _source(w: Writer, bound: Tree, flat: bool) -> Tree:
    shape = "ARRAY<STRING>" if flat else "ARRAY<ARRAY<STRING>>"
    return w.calling("posexplode", [w.call("from_json", bound, w.text(shape))], "com_j", ("key", "value"))


def _element(w: Writer, index: int) -> Tree:
    value = w.column("com_j", "value")
    return value if index < 0 else w.call("element_at", value, w.number(index + 1))


_LETTERS = {"Y": "yyyy", "m": "MM", "d": "dd", "H": "HH", "M": "mm", "S": "ss", "%": "%"}


def _format(w: Writer, e: ir.Apply) -> Tree:
    form = str(t.constant(e.args[1]))
    bare = [c for i, c in enumerate(form) if c != "%" and form[i - 1 : i] != "%"]
    if any(c.isalpha() or c in "[]{}#'" for c in bare):
        w.unsupported("letters in a format", "join them to the date with ||")
    return t.format_date("date_format", _LETTERS, lambda letter: letter)(w, e)


OF = r.Words(
    _named,
    _number,
    _truncated,
    lambda w, start, end: w.cast(w.call("datediff", end, start), "BIGINT"),
    lambda w, unit, start, end: w.call("timestampdiff", w.words(unit.upper()), start, end),
    _move,
    lambda w, text, form: w.call("rlike", text, t.whole(w, form)),
    trim_from,
    _divided,
    True,
)

ENGINE = r.reader(
    "spark",
    "Spark",
    OF,
    r.rows(OF, _element, lambda w: w.column("com_j", "key"), _source),
    _average,
    {
        "add_days": _add_days,
        "format_date": _format,
        "position": t.called("locate"),
        "starts_with": t.called("startswith"),
    },
    length="char_length",
    settle=_settled,
    operand=lambda w, type_, tree: w.cast(tree, "BIGINT") if type_ == INT else tree,
    divided=lambda w, left, right: w.binary("//", left, t.unless_zero(w, right)),
    escape=False,
)
