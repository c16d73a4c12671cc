"""PostgreSQL: narrow ints, numerics of any size, texts ordered by locale unless told otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from com import plan
from com.compiler import ir
from com.compiler.engines import Aggregation, Engine, Render, Tree, Writer
from com.compiler.engines import typed as t
from com.schema import INT, Column, Type

_NAMES = {
    "int": "BIGINT",
    "float": "DOUBLE PRECISION",
    "decimal": "NUMERIC",
    "text": "TEXT",
    "bool": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "json": "JSONB",
    "bytes": "BYTEA",
}
_DOUBLE = _NAMES["float"]


def _named(type_: Type) -> str:
    return _NAMES.get(type_.kind, "TEXT")


def _collate(w: Writer, type_: Type, tree: Tree) -> Tree:
    if type_.kind == "json":  # rows that only JSON tells apart are in its text's order
        return w.collated(_compact(w, w.cast(tree, "TEXT")), '"C"')
    return w.collated(tree, '"C"') if type_.kind == "text" else tree


def _adapt(w: Writer, type_: Type, tree: Tree) -> Tree:
    """An instant as UTC; a text without the blanks that fill it, under no collation that folds letters."""
    return _collate(w, type_, w.cast(tree, _named(type_)))


# ---------------------------------------------------------------- numbers


def _numeric(w: Writer, e: ir.Expr) -> Tree:
    """A number as a numeric; of a float just the digits that it shows."""
    tree = w.expr(e)
    return w.cast(w.cast(tree, "TEXT") if e.type.kind == "float" else tree, "NUMERIC")


def _wide(w: Writer, tree: Tree, scale: int) -> Tree:
    """With so many digits after the point that a quotient is not rounded twice."""
    return w.cast(tree, f"NUMERIC(200, {scale})")


def _divide(w: Writer, e: ir.Apply) -> Tree:
    left, right = e.args
    if e.type.kind == "decimal":
        digits = e.type.scale + max(right.type.precision, 19) + 1
        quotient = w.binary("/", _wide(w, w.expr(left), digits), t.unless_zero(w, w.expr(right)))
        return w.call("round", quotient, w.number(e.type.scale))
    return w.binary("/", w.cast(w.expr(left), _DOUBLE), t.unless_zero(w, w.cast(w.expr(right), _DOUBLE)))


def _remainder(w: Writer, e: ir.Apply) -> Tree:
    left, right = w.expr(e.args[0]), w.expr(e.args[1])
    if e.type.kind == "float":
        return t.rest(w, w.cast(left, _DOUBLE), w.cast(right, _DOUBLE), "trunc")
    if e.type.kind == "int":
        left = w.cast(left, "BIGINT")
    return w.binary("%", left, t.unless_zero(w, right))


def _round(w: Writer, e: ir.Apply) -> Tree:
    digits = [w.cast(w.expr(a), "INTEGER") if t.constant(a) is None else w.expr(a) for a in e.args[1:]]
    made = w.call("round", _numeric(w, e.args[0]), *digits)
    return made if e.type.kind == "decimal" else w.cast(made, _named(e.type))


_TINY = -745
"""The logarithm below which a double is nought."""


def _exp(w: Writer, e: ir.Apply) -> Tree:
    x = w.cast(w.expr(e.args[0]), _DOUBLE)  # too small a result is an error
    return w.case([(w.binary("<", x, w.number(_TINY)), w.number(0))], w.call("exp", x))


def _power(w: Writer, e: ir.Apply) -> Tree:
    x, y = (w.cast(w.expr(a), _DOUBLE) for a in e.args)
    size = w.call("ln", w.call("abs", w.call("nullif", x, w.number(0))))
    tiny = w.binary("<", w.binary("*", y, size), w.number(_TINY))  # too small a result is an error
    return w.case([(tiny, w.cast(w.number(0), _DOUBLE))], t.power(_DOUBLE)(w, e))


def _operand(w: Writer, type_: Type, tree: Tree) -> Tree:
    return w.cast(tree, "BIGINT") if type_ == INT else tree


# ---------------------------------------------------------------- text


def _cased(name: str) -> Render:
    return lambda w, e: w.collated(w.call(name, w.collated(w.expr(e.args[0]), '"und-x-icu"')), '"C"')


def _lower(w: Writer, tree: Tree) -> Tree:
    return w.collated(w.call("lower", w.collated(tree, '"und-x-icu"')), '"C"')


def _searched(name: str, *places: int) -> Render:
    """A function that looks for a text in another, which needs a collation."""

    def render(w: Writer, e: ir.Apply) -> Tree:
        args = [w.expr(e.args[i]) for i in places]
        return w.call(name, w.collated(args[0], '"C"'), *args[1:])

    return render


# ---------------------------------------------------------------- time


def _field(name: str) -> Render:
    return lambda w, e: _part(w, name, w.expr(e.args[0]))


def _part(w: Writer, name: str, time: Tree) -> Tree:
    part = w.call("date_part", w.text(name), w.cast(time, "TIMESTAMP"))
    return w.cast(w.call("floor", part) if name == "second" else part, "BIGINT")


def _truncated(w: Writer, unit: str, time: Tree, to: str) -> Tree:
    return w.cast(w.call("date_trunc", w.text(unit), w.cast(time, "TIMESTAMP")), to)


def _trunc(w: Writer, e: ir.Apply) -> Tree:
    return _truncated(w, str(t.constant(e.args[0])), w.expr(e.args[1]), _named(e.type))


_SECONDS = {"hour": 3600, "minute": 60, "second": 1}


def _diff(w: Writer, e: ir.Apply) -> Tree:
    unit = str(t.constant(e.args[0]))
    start, end = w.expr(e.args[1]), w.expr(e.args[2])
    if unit in ("year", "quarter", "month"):
        return t.months_between(w, unit, start, end, lambda name, time: _part(w, name, time))
    if unit in _SECONDS:
        between = w.binary("-", _truncated(w, unit, end, "TIMESTAMP"), _truncated(w, unit, start, "TIMESTAMP"))
        seconds = w.cast(w.call("date_part", w.text("epoch"), between), "BIGINT")
        return w.binary("/", seconds, w.number(_SECONDS[unit]))
    ends = [_truncated(w, unit, time, "DATE") for time in (end, start)]
    days = w.cast(w.binary("-", *ends), "BIGINT")
    return w.binary("/", days, w.number(7)) if unit == "week" else days


def _add_period(w: Writer, e: ir.Apply) -> Tree:
    period = t.constant(e.args[1])
    assert isinstance(period, plan.Period)
    shown = f"{period.months} months {period.days} days {period.microseconds} microseconds"
    return _in_calendar(w, e, w.binary("+", w.expr(e.args[0]), w.cast(w.text(shown), "INTERVAL")))


def _in_calendar(w: Writer, e: ir.Apply, tree: Tree) -> Tree:
    """A sum of the years 1 to 9999. From all others it is too far to the end of PostgreSQL's own."""
    made = w.cast(tree, _named(e.type))
    far = w.cast(w.text("300000 years"), "INTERVAL")
    return t.in_calendar(w, e.type, _named, made, w.cast(w.binary("+", made, far), _named(e.type)))


def _add_days(w: Writer, e: ir.Apply) -> Tree:
    time, days = w.expr(e.args[0]), w.expr(e.args[1])
    if e.type.kind == "date":
        return _in_calendar(w, e, w.binary("+", time, w.cast(days, "INTEGER")))
    span = w.binary("*", w.cast(days, _DOUBLE), w.cast(w.text("1 day"), "INTERVAL"))
    return _in_calendar(w, e, w.binary("+", time, span))


_LETTERS = {"Y": "YYYY", "m": "MM", "d": "DD", "H": "HH24", "M": "MI", "S": "SS", "%": '"%"'}


def _quoted(letter: str) -> str:
    return '"\\' + letter + '"' if letter in '"\\' else f'"{letter}"'


def _format(w: Writer, e: ir.Apply) -> Tree:
    return t.format_date("to_char", _LETTERS, _quoted)(w, e)


def _timestamp_text(w: Writer, tree: Tree) -> Tree:
    seconds = w.call("to_char", tree, w.text("YYYY-MM-DD HH24:MI:SS"))
    rest = w.call("to_char", tree, w.text(".US"))
    return w.binary("||", seconds, t.fraction(w, rest))


def _json_get(w: Writer, e: ir.Apply) -> Tree:
    known = t.constant(e.args[1])
    if isinstance(known, str):
        if t.from_the_end(known):
            w.unsupported("json_get by a place below zero", "count from the beginning")
        steps: list[Tree] = [w.text(part) for part in known.split(".")]
    else:
        path = w.call("string_to_array", w.binary("||", w.text("."), w.expr(e.args[1])), w.text("."))
        steps = [w.words("VARIADIC (", path, ")[2:]")]
    found, text = (w.call(f"jsonb_extract_path{kind}", w.expr(e.args[0]), *steps) for kind in ("", "_text"))
    nested = w.words(w.call("jsonb_typeof", found), " IN ('object', 'array')")
    return w.case([(nested, _compact(w, text))], text)


def _compact(w: Writer, text: Tree) -> Tree:
    """JSON with its strings as they are, and no blank behind what stands between them."""
    return w.call("regexp_replace", text, w.text(r'("(?:[^"\\]|\\.)*")|([:,]) '), w.text(r"\1\2"), w.text("g"))


# ---------------------------------------------------------------- conversions


def _read(w: Writer, text: Tree, target: Type) -> Tree:
    if target.kind == "bytes":
        return w.call("decode", text, w.text("hex"))
    made = w.cast(t.strict(w, text, target, lambda x, form: w.call("regexp_like", x, t.whole(w, form))), _named(target))
    return w.call("round", made, w.number(target.scale)) if target.kind == "decimal" else made


def _sized(type_: Type) -> str:
    return f"NUMERIC({type_.precision}, {type_.scale})"


def _cast(w: Writer, e: ir.Cast) -> Tree:
    source, target = e.operand.type, e.type
    tree = w.expr(e.operand)
    match source.kind, target.kind:
        case ("null", _):
            return w.cast(tree, _named(target))
        case ("int" | "decimal" | "float", "decimal"):
            kept = source.kind == "decimal" and target.scale >= source.scale
            if kept and target.precision - target.scale >= source.precision - source.scale:
                return tree
            return w.cast(_numeric(w, e.operand), _sized(target))
        case ("decimal" | "float", "int"):
            return w.cast(w.call("round", _numeric(w, e.operand)), "BIGINT")
        case ("int" | "float" | "decimal", "bool"):
            return w.binary("<>", tree, w.number(0))
        case ("bool", "int"):
            return w.cast(w.cast(tree, "INTEGER"), "BIGINT")
        case ("decimal", "text"):
            return w.cast(w.call("round", tree, w.number(source.scale)), "TEXT")
        case ("float", "text"):
            digits = w.cast(w.cast(tree, "NUMERIC"), _DOUBLE)  # a numeric takes 15
            return t.short_exponent(w, w.cast(digits, "TEXT"))
        case ("timestamp", "text"):
            return _timestamp_text(w, tree)
        case ("bytes", "text"):
            return w.call("encode", tree, w.text("hex"))
        case ("json", "text"):
            return _compact(w, w.cast(tree, "TEXT"))
        case ("text", "decimal"):
            return w.cast(_read(w, tree, target), _sized(target))
        case ("text", kind) if kind != "text":
            return _read(w, tree, target)
        case (a, b) if a == b:
            return tree
        case _:
            return w.cast(tree, _named(target))


# ---------------------------------------------------------------- aggregates


def _merges(join: ir.Join) -> bool:
    """Whether a join can be done: a full one only by columns that are equal."""

    def equal(e: ir.Expr | None) -> bool:
        if not isinstance(e, ir.Apply) or e.name not in ("=", "and"):
            return False
        if e.name == "and":
            return all(map(equal, e.args))
        one, other = e.args
        return isinstance(one, ir.Column) and isinstance(other, ir.Column) and one.alias != other.alias

    return join.kind != "full" or equal(join.on)


def _most(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
    """min and max, which PostgreSQL has neither of bools nor, before 18, of bytes."""
    distinct = t.is_distinct_call(e)
    match e.type.kind:
        case "bool":
            return w.aggregated(e, "bool_and" if e.name == "min" else "bool_or", args, distinct)
        case "bytes":
            args = [w.call("encode", args[0], w.text("hex"))]
            return w.call("decode", w.aggregated(e, e.name, args, distinct), w.text("hex"))
        case _:
            return _told(w, e, args)


def _told(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
    """An aggregate or window that takes any type, and has to be told that of a written text."""
    if isinstance(e.args[0], ir.Constant) and e.args[0].type.kind == "text":
        args = [w.cast(args[0], "TEXT"), *args[1:]]
    return w.aggregated(e, e.name, args, t.is_distinct_call(e))


def _avg(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
    distinct = t.is_distinct_call(e)
    kind = e.args[0].type.kind
    if kind == "decimal":
        args = [_wide(w, args[0], e.type.scale + 20)]
        return w.call("round", w.aggregated(e, "avg", args, distinct), w.number(e.type.scale))
    total, count = (w.aggregated(e, name, args, distinct) for name in ("sum", "count"))
    return w.binary("/", w.cast(total, _DOUBLE), t.unless_zero(w, count))


def _string_agg(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
    if t.no_window(w, e, "string_agg"):
        return w.null()
    assert isinstance(e, ir.Aggregate)
    order = w.varying(t.order_of(e))
    if e.distinct and (any(k.expr != e.args[0] for k in order) or ir.has_query(e.args[0])):
        w.unsupported("string_agg(distinct …) in another order", "select distinct in a step before")
    text = w.collated(args[0], '"C"')
    return w.aggregated(e, "string_agg", [text, w.ordered(args[1], order)], e.distinct)


def _stddev(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
    return w.aggregated(e, "stddev_samp", [w.cast(args[0], _DOUBLE)], t.is_distinct_call(e))


# ---------------------------------------------------------------- bound lists and relations


def _rows(w: Writer, rows: plan.Rows, numbered: str | None, apart: bool) -> Tree:
    columns = []
    for index, field in enumerate(rows.fields):
        value = w.call("jsonb_array_element_text", w.column("com_j", "value"), w.number(index))
        columns.append((_part_of(w, field.type, value), field.name))
    if numbered is not None or not columns:
        columns.append((w.column("com_j", "key"), numbered or "com_n"))
    return w.picked(columns, w.calling("jsonb_array_elements", [w.bind(rows)], "com_j", ("value", "key")))


def _values(w: Writer, many: plan.Many, target: Type) -> Tree:
    value = _part_of(w, many.type, w.column("com_j", "value"))
    source = w.calling("jsonb_array_elements_text", [w.bind(many)], "com_j", ("value", "key"))
    return w.picked([(value, "value")], source)


def _part_of(w: Writer, type_: Type, tree: Tree) -> Tree:
    if type_.kind == "bytes":
        return w.call("decode", tree, w.text("hex"))
    return tree if type_.kind in ("text", "null", "unknown") else w.cast(tree, _named(type_))


# ---------------------------------------------------------------- images of rows


def _image(w: Writer, type_: Type, tree: Tree) -> Tree:
    match type_.kind:
        case "bool":
            return w.cast(tree, "INTEGER")
        case "bytes":
            return w.call("encode", tree, w.text("hex"))
        case "int" | "decimal" | "text":
            return tree
        case "unknown":
            return t.quoted(w, w.cast(tree, "TEXT"))
        case _:
            return w.cast(tree, "TEXT")


_MOST_ARGUMENTS = 50


def _objects(w: Writer, columns: Sequence[tuple[str, Tree]]) -> Tree:
    made: Tree = None
    for start in range(0, len(columns), _MOST_ARGUMENTS):
        args = [x for name, tree in columns[start : start + _MOST_ARGUMENTS] for x in (w.text(name), tree)]
        built = w.call("jsonb_build_object", *args)
        made = built if made is None else w.binary("||", made, built)
    return w.cast(made, "TEXT")


def _arrays(w: Writer, trees: Sequence[Tree]) -> Tree:
    return w.cast(w.call("jsonb_build_array", *trees), "TEXT")


def _extract(w: Writer, tree: Tree, index: int) -> Tree:
    return w.call("jsonb_array_element_text", w.cast(tree, "JSONB"), w.number(index))


def _stored(column: Column, sole_key: bool, keyed: int) -> str:
    if column.type.kind == "decimal":
        return f"NUMERIC({column.type.precision},{column.type.scale})"
    if column.generated:
        return "BIGINT GENERATED BY DEFAULT AS IDENTITY"
    if column.type.kind == "text":
        return 'TEXT COLLATE "C"'
    return _NAMES.get(column.type.kind, column.engine_type or "TEXT")


FUNCTIONS: dict[str, Render] = {
    "/": _divide,
    "%": _remainder,
    "round": t.own_type(_round),
    "floor": t.own_type(t.called("floor")),
    "ceil": t.own_type(t.called("ceil")),
    "abs": lambda w, e: w.call("abs", _operand(w, e.type, w.expr(e.args[0]))),
    "sign": t.called("sign", "BIGINT"),
    "sqrt": t.in_doubles("sqrt", _DOUBLE, least="0"),
    "ln": t.in_doubles("ln", _DOUBLE, least="0", above=True),
    "exp": _exp,
    "power": _power,
    "least": t.extreme("least", _collate),
    "greatest": t.extreme("greatest", _collate),
    "lower": _cased("lower"),
    "upper": _cased("upper"),
    "length": t.called("char_length", "BIGINT"),
    **{name: t.with_counts(name, "INTEGER") for name in ("substr", "left", "right")},
    "trim": t.called("btrim"),
    "replace": _searched("replace", 0, 1, 2),
    "position": _searched("strpos", 1, 0),
    "starts_with": _searched("starts_with", 0, 1),
    "like": t.like(None, _collate),
    "ilike": t.like(_lower, lambda w, type_, tree: tree),
    **{unit: _field(unit) for unit in ("year", "quarter", "month", "day", "hour", "minute", "second")},
    "weekday": _field("isodow"),
    "week": _field("week"),
    "date_trunc": _trunc,
    "date_diff": _diff,
    "add_period": _add_period,
    "add_days": _add_days,
    "format_date": _format,
    "json_get": _json_get,
}

ENGINE = Engine(
    "postgres",
    "PostgreSQL",
    "postgres",
    FUNCTIONS,
    {
        "sum": t.sums(_named),
        "avg": _avg,
        **dict.fromkeys(("first_value", "last_value", "lag", "lead"), _told),
        "min": _most,
        "max": _most,
        "string_agg": _string_agg,
        "stddev": _stddev,
    },
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
    collate=_collate,
    adapt=_adapt,
    literal=t.literals(_named, blob=lambda w, text: w.cast(w.text("\\x" + text), "BYTEA")),
    divided=lambda w, left, right: w.binary("/", left, t.unless_zero(w, right)),
    row_id="ctid",
    typed=True,
    aliased=True,
    overriding="OVERRIDING SYSTEM VALUE ",
    joins=_merges,
)
