"""DuckDB: all types, an upper case that keeps each letter one, no exact division, no foreign keys that wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from com import plan
from com.compiler import ir
from com.compiler.engines import Aggregation, Engine, Render, Tree, Writer
from com.compiler.engines import typed as t
from com.node import walk
from com.schema import INT, Column, Type

_NAMES = {
    "int": "BIGINT",
    "float": "DOUBLE",
    "text": "VARCHAR",
    "bool": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "json": "JSON",
    "bytes": "BLOB",
}


def _named(type_: Type) -> str:
    if type_.kind == "decimal":
        return f"DECIMAL({type_.precision}, {type_.scale})"
    return _NAMES.get(type_.kind, "VARCHAR")


def _bare(w: Writer, type_: Type, tree: Tree) -> Tree:
    return tree


def _operand(w: Writer, type_: Type, tree: Tree) -> Tree:
    return w.cast(tree, "BIGINT") if type_ == INT else tree


def _adapt(w: Writer, type_: Type, tree: Tree) -> Tree:
    """An instant as UTC; a text under no collation that folds letters."""
    return w.collated(tree, '"binary"') if type_.kind == "text" else w.cast(tree, _named(type_))


# ---------------------------------------------------------------- numbers


def _shown(w: Writer, number: Tree, precision: int, scale: int) -> Tree:
    """The decimal that a double shows. All digits at first: `5e-06` is none of a type without any before the point."""
    made = w.cast(w.cast(number, "VARCHAR"), f"DECIMAL(38, {scale})")
    return made if precision == 38 else w.cast(made, f"DECIMAL({precision}, {scale})")


def _divide(w: Writer, e: ir.Apply) -> Tree:
    left, right = (w.cast(w.expr(a), "DOUBLE") for a in e.args)
    quotient = w.binary("/", left, t.unless_zero(w, right))
    return _shown(w, quotient, e.type.precision, e.type.scale) if e.type.kind == "decimal" else quotient


def _remainder(w: Writer, e: ir.Apply) -> Tree:
    left, right = (_operand(w, e.type, w.expr(a)) for a in e.args)
    if e.type.kind == "float":
        return t.rest(w, left, right, "trunc")
    divisor = t.unless_zero(w, right)
    if e.type.kind == "int" and not isinstance(t.constant(e.args[1]), int):  # the least int has no quotient by -1
        divisor = w.case([(w.binary("=", right, w.number(-1)), w.number(1))], divisor)
    elif t.constant(e.args[1]) == -1:
        divisor = w.number(1)
    return w.binary("%", left, divisor)


def _round(w: Writer, e: ir.Apply) -> Tree:
    digits = t.constant(e.args[1]) if len(e.args) > 1 else 0
    if digits is None and isinstance(e.args[1], ir.Constant):
        return w.cast(w.null(), _named(e.type))
    number = w.expr(e.args[0])
    if not isinstance(digits, int):
        w.unsupported("round to a computed number of digits", "write the number of digits")
        return w.null()
    kind = e.args[0].type.kind
    if kind == "float" and 0 <= digits < 20:
        exact = w.cast(_shown(w, number, 38, digits), "DOUBLE")
        return w.case([(w.binary("<", w.call("abs", number), w.number(10**16)), exact)], number)
    if digits < 0 and kind == "int":  # which would leave 64 bits without a word
        number = w.cast(number, f"DECIMAL({min(20 - digits, 38)}, 0)")
    if digits < 0 and kind == "decimal":  # else it has nothing to carry to, and gives nought
        number = w.cast(number, f"DECIMAL({min(e.args[0].type.precision - digits + 1, 38)}, {e.args[0].type.scale})")
    return w.cast(w.call("round", number, w.number(digits)), _named(e.type))


# ---------------------------------------------------------------- text


def _lower(w: Writer, tree: Tree) -> Tree:
    return w.call("lower", tree)


# ---------------------------------------------------------------- time


def _field(name: str) -> Render:
    return lambda w, e: w.call("date_part", w.text(name), w.cast(w.expr(e.args[0]), "TIMESTAMP"))


def _truncated(w: Writer, unit: str, time: Tree, to: str) -> Tree:
    return w.cast(w.call("date_trunc", w.text(unit), w.cast(time, "TIMESTAMP")), to)


def _trunc(w: Writer, e: ir.Apply) -> Tree:
    return _truncated(w, str(t.constant(e.args[0])), w.expr(e.args[1]), _named(e.type))


def _diff(w: Writer, e: ir.Apply) -> Tree:
    unit = str(t.constant(e.args[0]))
    ends = [w.cast(w.expr(a), "TIMESTAMP") for a in e.args[1:]]
    if unit != "week":
        return w.call("date_diff", w.text(unit), *ends)
    mondays = [_truncated(w, unit, end, "DATE") for end in ends]
    return w.binary("//", w.call("date_diff", w.text("day"), *mondays), w.number(7))


def _add_period(w: Writer, e: ir.Apply) -> Tree:
    period = t.constant(e.args[1])
    assert isinstance(period, plan.Period)
    shown = f"{period.months} months {period.days} days {period.microseconds} microseconds"
    return _in_calendar(w, e, w.binary("+", w.expr(e.args[0]), w.cast(w.text(shown), "INTERVAL")))


def _in_calendar(w: Writer, e: ir.Apply, tree: Tree) -> Tree:
    made = w.cast(tree, _named(e.type))
    return t.in_calendar(w, e.type, _named, made, w.call("error", w.text("date out of range")))


def _add_days(w: Writer, e: ir.Apply) -> Tree:
    days = w.cast(w.expr(e.args[1]), "INTEGER")
    return _in_calendar(w, e, w.binary("+", w.expr(e.args[0]), w.call("to_days", days)))


_LETTERS = {letter: f"%{letter}" for letter in "YmdHMS%"}


def _timestamp_text(w: Writer, tree: Tree) -> Tree:
    seconds = w.call("strftime", tree, w.text("%Y-%m-%d %H:%M:%S"))
    return w.binary("||", seconds, t.fraction(w, w.call("strftime", tree, w.text(".%f"))))


def _json_get(w: Writer, e: ir.Apply) -> Tree:
    pointer = w.expr(e.args[1])
    for old, new in (("~", "~0"), ("/", "~1"), (".", "/")):
        pointer = w.call("replace", pointer, w.text(old), w.text(new))
    return w.call("json_extract_string", w.expr(e.args[0]), w.binary("||", w.text("/"), pointer))


# ---------------------------------------------------------------- conversions


def _float_text(w: Writer, tree: Tree) -> Tree:
    unsigned = w.binary("+", tree, w.number(0))  # nought has no sign
    return t.short_exponent(w, w.call("printf", w.text("%.15g"), unsigned))


def _cast(w: Writer, e: ir.Cast) -> Tree:
    source, target = e.operand.type, e.type
    tree = w.expr(e.operand)
    match source.kind, target.kind:
        case ("float", "decimal"):
            return _shown(w, tree, target.precision, target.scale)
        case ("float", "int"):
            return w.cast(w.call("round", tree), "BIGINT")
        case ("int" | "float" | "decimal", "bool"):
            return w.binary("<>", tree, w.number(0))
        case ("decimal", "text"):
            return _decimal_text(w, tree, source)
        case ("float", "text"):
            return _float_text(w, tree)
        case ("timestamp", "text"):
            return _timestamp_text(w, tree)
        case ("bytes", "text"):
            return _hex(w, tree)
        case ("text", "bytes"):
            return w.call("from_hex", tree)
        case ("text", "json"):
            failed = w.binary("||", w.text("no value: "), tree)
            return w.cast(t.strict_json(w, tree, w.call("json_valid", tree), _lacks(w), failed, True), "JSON")
        case ("text", kind) if kind != "text":
            made = t.strict(w, tree, target, lambda text, form: w.call("regexp_full_match", text, form))
            made = w.call("trim", made)
            return w.cast(w.cast(made, "TIMESTAMP") if target.kind == "date" else made, _named(target))
        case (a, b) if a == b and a != "decimal":
            return tree
        case _:
            return w.cast(tree, _named(target))


def _lacks(w: Writer) -> Callable[[Tree, str], Tree]:
    def lacks(text: Tree, form: str) -> Tree:
        found = w.cast(w.call("regexp_matches", text, w.text(form)), "INTEGER")
        return w.binary("=", found, w.number(0))

    return lacks


def _hex(w: Writer, tree: Tree) -> Tree:
    return w.call("lower", w.call("hex", tree))


# ---------------------------------------------------------------- aggregates


def _avg(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
    distinct = t.is_distinct_call(e)
    total, count = (w.aggregated(e, name, args, distinct) for name in ("sum", "count"))
    quotient = w.binary("/", w.cast(total, "DOUBLE"), t.unless_zero(w, count))
    return _shown(w, quotient, e.type.precision, e.type.scale) if e.type.kind == "decimal" else quotient


def _string_agg(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
    if t.no_window(w, e, "string_agg"):
        return w.null()
    assert isinstance(e, ir.Aggregate)
    order = w.varying(t.order_of(e))
    if e.distinct and (any(k.expr != e.args[0] for k in order) or ir.has_query(e.args[0])):
        w.unsupported("string_agg(distinct …) in another order", "select distinct in a step before")
    return w.aggregated(e, "string_agg", [args[0], w.ordered(args[1], order)], e.distinct)


def _stddev(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
    return w.aggregated(e, "stddev_samp", [w.cast(args[0], "DOUBLE")], t.is_distinct_call(e))


# ---------------------------------------------------------------- bound lists and relations


def _rows(w: Writer, rows: plan.Rows, numbered: str | None, apart: bool) -> Tree:
    columns = []
    for index, field in enumerate(rows.fields, 1):
        value = w.call("list_extract", w.column("com_j", "value"), w.number(index))
        columns.append((_part_of(w, field.type, value), field.name))
    if numbered is not None or not columns:
        columns.append((w.column("com_j", "key"), numbered or "com_n"))
    return w.picked(columns, _unnested(w, rows, '[["VARCHAR"]]'))


def _unnested(w: Writer, bound: plan.Binding, shape: str) -> Tree:
    return w.calling("unnest", [w.call("from_json", w.bind(bound), w.text(shape))], "com_j", ("value", "key"))


def _values(w: Writer, many: plan.Many, target: Type) -> Tree:
    value = _part_of(w, many.type, w.column("com_j", "value"))
    return w.picked([(value, "value")], _unnested(w, many, '["VARCHAR"]'))


def _part_of(w: Writer, type_: Type, tree: Tree) -> Tree:
    if type_.kind == "bytes":
        return w.call("from_hex", tree)
    return tree if type_.kind in ("text", "null", "unknown") else w.cast(tree, _named(type_))


# ---------------------------------------------------------------- images of rows


def _decimal_text(w: Writer, tree: Tree, type_: Type) -> Tree:
    """Below one DuckDB leaves the nought out if the type has no room for it."""
    made = w.cast(w.cast(tree, _named(type_)), "VARCHAR")
    if type_.scale < type_.precision:
        return made
    return w.call("regexp_replace", made, w.text("^(-?)\\."), w.text("\\10."))


def _image(w: Writer, type_: Type, tree: Tree) -> Tree:
    match type_.kind:
        case "bool":
            return w.cast(tree, "INTEGER")
        case "bytes":
            return _hex(w, tree)
        case "decimal" if type_.precision == type_.scale:  # `.5`, which is no JSON
            return w.cast(tree, "VARCHAR")
        case "int" | "decimal" | "text":
            return tree
        case "unknown":
            return t.quoted(w, w.cast(tree, "VARCHAR"))
        case _:
            return w.cast(tree, "VARCHAR")


def _objects(w: Writer, columns: Sequence[tuple[str, Tree]]) -> Tree:
    return w.cast(w.call("json_object", *[x for name, tree in columns for x in (w.text(name), tree)]), "VARCHAR")


def _arrays(w: Writer, trees: Sequence[Tree]) -> Tree:
    return w.cast(w.call("json_array", *trees), "VARCHAR")


def _extract(w: Writer, tree: Tree, index: int) -> Tree:
    return w.call("json_extract_string", tree, w.text(f"$[{index}]"))


def _stored(column: Column, sole_key: bool, keyed: int) -> str:
    if column.type.is_unknown:
        return column.engine_type or "VARCHAR"
    return _named(column.type).replace(", ", ",")


FUNCTIONS: dict[str, Render] = {
    "/": _divide,
    "%": _remainder,
    "round": t.own_type(_round),
    "floor": t.own_type(t.called("floor")),
    "ceil": t.own_type(t.called("ceil")),
    "abs": lambda w, e: w.call("abs", _operand(w, e.type, w.expr(e.args[0]))),
    "sign": t.called("sign", "BIGINT"),
    "sqrt": t.in_doubles("sqrt", "DOUBLE", least="0"),
    "ln": t.in_doubles("ln", "DOUBLE", least="0", above=True),
    "exp": t.in_doubles("exp", "DOUBLE"),
    "power": t.power("DOUBLE"),
    "least": t.extreme("least", _bare),
    "greatest": t.extreme("greatest", _bare),
    "lower": t.called("lower"),
    "upper": t.upper,
    "substr": t.substr("INTEGER", "VARCHAR"),
    "left": t.with_counts("left"),
    "right": t.with_counts("right"),
    "position": lambda w, e: w.call("strpos", w.expr(e.args[1]), w.expr(e.args[0])),
    "like": t.like(None, _bare),
    "ilike": t.like(_lower, _bare),
    **{unit: _field(unit) for unit in ("year", "quarter", "month", "day", "hour", "minute", "second", "week")},
    "weekday": _field("isodow"),
    "date_trunc": _trunc,
    "date_diff": _diff,
    "add_period": _add_period,
    "add_days": _add_days,
    "format_date": t.format_date("strftime", _LETTERS, t.doubled_percent),
    "json_get": _json_get,
}


def _joins(join: ir.Join) -> bool:
    """Whether a join can be done: an outer one's condition holds no query, and no column from around stands in it, nor
    in the conditions of what it joins."""
    if join.kind in ("inner", "cross"):
        return True
    own = ir.aliases(join)
    queries = (ir.Scalar, ir.Exists, ir.InQuery, ir.InValues)
    if join.on is not None and any(isinstance(n, queries) for n in walk(join.on)):
        return False
    return all(n.alias in own for on in ir.conditions(join) for n in walk(on) if isinstance(n, ir.Column))


ENGINE = Engine(
    "duckdb",
    "DuckDB",
    "duckdb",
    FUNCTIONS,
    {"sum": t.sums(_named), "avg": _avg, "string_agg": _string_agg, "stddev": _stddev},
    _cast,
    lambda w, e, tree: tree,
    _rows,
    _values,
    _image,
    _part_of,
    _objects,
    _arrays,
    _extract,
    _stored,
    2**63 - 1,
    38,
    lambda w, tree: tree,
    bound=t.bounds(_named),
    operand=_operand,
    adapt=_adapt,
    literal=t.literals(_named, True, lambda w, text: w.call("from_hex", w.text(text))),
    divided=lambda w, left, right: w.binary("//", left, t.unless_zero(w, right)),
    row_id="rowid",
    typed=True,
    aliased=True,
    returns_bound=False,
    sequences=True,
    joins=_joins,
    foreign_keys=False,  # they are checked too early: a child and its parent cannot go in one transaction
)
