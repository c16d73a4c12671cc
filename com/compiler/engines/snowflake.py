"""Snowflake: ints of 38 digits, parameters without names, no `filter`, an empty text where nothing was joined."""

from __future__ import annotations

from com.compiler import ir
from com.compiler.engines import Aggregation, Tree, Writer
from com.compiler.engines import readers as r
from com.compiler.engines import typed as t
from com.schema import Type

_NAMES = {
    "int": "BIGINT",
    "float": "DOUBLE",
    "bool": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP_NTZ(6)",
    "bytes": "BINARY",
    "json": "VARIANT",
}
_SCALE = 12
"""Products and quotients have no more digits behind the point, unless a side has."""


def _named(type_: Type) -> str:
    if type_.kind == "decimal":
        return f"NUMBER({type_.precision}, {type_.scale})"
    return _NAMES.get(type_.kind, "VARCHAR")


def _number(w: Writer, name: str, time: Tree) -> Tree:
    return r.extracted(w, {"weekday": "dayofweekiso", "week": "weekiso"}.get(name, name), time)


def _truncated(w: Writer, unit: str, time: Tree, to: Type) -> Tree:
    if unit == "week":  # a session may begin it elsewhere
        back = w.binary("-", w.number(1), r.extracted(w, "dayofweekiso", time))
        return _move(w, w.call("date_trunc", w.text("day"), time), back, "day")
    return w.call("date_trunc", w.text(unit), time)


def _move(w: Writer, time: Tree, count: Tree, unit: str) -> Tree:
    return w.call("dateadd", w.words(unit.upper()), count, time)


def _settled(w: Writer, e: ir.Apply, tree: Tree) -> Tree:
    scales = [a.type.scale for a in e.args]
    if e.name == "*" and e.type.kind == "decimal" and sum(scales) > max(*scales, _SCALE):
        w.unsupported(f"a product with {sum(scales)} digits behind the point", "cast its sides to fewer digits")
    return tree


def _quotient(w: Writer, left: Tree, right: Tree, type_: Type) -> Tree:
    if type_.scale + 6 > _SCALE:
        w.unsupported("a quotient of so many digits", "cast it to a decimal of fewer digits behind the point")
    wide = w.cast(left, f"NUMBER(38, {type_.scale})")
    return w.cast(w.call("round", w.binary("/", wide, right), w.number(type_.scale)), _named(type_))


def _average(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
    total, count = (w.aggregated(e, name, args, t.is_distinct_call(e)) for name in ("sum", "count"))
    return _quotient(w, total, t.unless_zero(w, count), e.type)


def _string_agg(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
    made = r.listed(w, e, args)
    count = w.aggregated(e, "count", args[:1])
    return t.where(w, w.binary(">", count, w.number(0)), made)


def _whole(w: Writer, left: Tree, right: Tree) -> Tree:
    """A quotient has digits behind the point: so what is left over is taken away before."""
    divisor = t.unless_zero(w, right)
    return w.cast(w.binary("/", w.binary("-", left, w.call("mod", left, divisor)), divisor), "BIGINT")


def _source(w: Writer, bound: Tree, flat: bool) -> Tree:
    return w.words("TABLE(FLATTEN(INPUT => ", w.call("parse_json", bound), ')) AS "com_j"')


def _element(w: Writer, index: int) -> Tree:
    value = w.column("com_j", "VALUE")
    return w.cast(value if index < 0 else w.call("get", value, w.number(index)), "VARCHAR")


_LETTERS = {"Y": "YYYY", "m": "MM", "d": "DD", "H": "HH24", "M": "MI", "S": "SS", "%": '"%"'}


def _format(w: Writer, e: ir.Apply) -> Tree:
    if '"' in str(t.constant(e.args[1])):
        w.unsupported("a double quote in a format", "join it to the date with ||")
    return t.format_date("to_char", _LETTERS, lambda letter: f'"{letter}"')(w, e)


OF = r.Words(
    _named,
    _number,
    _truncated,
    lambda w, start, end: w.call("datediff", w.words("DAY"), start, end),
    lambda w, unit, start, end: w.call("datediff", w.words(unit.upper()), start, end),
    _move,
    lambda w, text, form: w.call("regexp_like", text, form),
    lambda w, name, text, letters: w.call(name, text, letters),
    lambda w, left, right, e: _quotient(w, left, right, e.type),
)

ENGINE = r.reader(
    "snowflake",
    "Snowflake",
    OF,
    r.rows(OF, _element, lambda w: w.column("com_j", "INDEX"), _source),
    _average,
    {"format_date": _format, "position": t.called("position"), "starts_with": t.called("startswith")},
    string_agg=_string_agg,
    settle=_settled,
    divided=_whole,
    filters=False,
)
