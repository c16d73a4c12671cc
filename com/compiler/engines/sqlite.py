"""SQLite: no decimals, dates or bools of its own, arithmetic that slides into floats, and no functions of Unicode.

Decimals are numbers of 15 digits, rounded after each sum; dates and timestamps are texts; a bool is 0 or 1. What has
no exact native form calls a function `com_…` that the runtime makes known to the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from com import plan
from com.compiler import ir
from com.compiler.engines import CHAIN, Aggregation, Engine, Render, Tree, Writer
from com.node import walk
from com.schema import Column, Type

_MOST_ARGUMENTS = 60
_TIMES = {"year": (1, 4), "month": (6, 2), "day": (9, 2), "hour": (12, 2), "minute": (15, 2), "second": (18, 2)}
_KEPT = {
    "year": (4, "-01-01", " 00:00:00"),
    "month": (7, "-01", " 00:00:00"),
    "day": (10, "", " 00:00:00"),
    "hour": (13, "", ":00:00"),
    "minute": (16, "", ":00"),
    "second": (19, "", ""),
}

# ---------------------------------------------------------------- numbers


def _settle(w: Writer, e: ir.Apply, tree: Tree) -> Tree:
    """An int that left 64 bits has become a float: an error. A decimal is brought back to its digits."""
    if e.type.kind == "decimal":
        return w.call("round", tree, w.number(e.type.scale))
    if e.type.kind != "int" or not _may_overflow(e):
        return tree
    if _leaves(e) > 3:
        return w.call("com_int", tree)
    isreal = w.binary("=", w.call("typeof", tree), w.text("real"))
    return w.call("iif", isreal, _overflow(w), tree)


def _overflow(w: Writer) -> Tree:
    """The one native way to raise an error: abs of the least int."""
    return w.call("abs", w.binary("-", w.number(-(2**63 - 1)), w.number(1)))


def _cut(w: Writer, tree: Tree) -> Tree:
    return w.call("com_limit", tree)


def _may_overflow(e: ir.Expr) -> bool:
    if not isinstance(e, ir.Apply) or e.name not in CHAIN:
        return False
    if e.name == "div" and isinstance(e.args[1], ir.Constant) and e.args[1].value != -1:
        return _may_overflow(e.args[0])
    return True


def _leaves(e: ir.Expr) -> int:
    """How many columns and values an arithmetic chain holds; many if it holds anything else."""
    if isinstance(e, ir.Column | ir.Value | ir.Constant):
        return 1
    if isinstance(e, ir.Apply) and e.name in CHAIN and e.type.kind == "int":
        return sum(map(_leaves, e.args))
    return 9


def _divide(w: Writer, e: ir.Apply) -> Tree:
    left, right = e.args
    upper = w.expr(left)
    if left.type.kind != "float":
        upper = w.cast(upper, "REAL")
    made = w.binary("/", upper, w.expr(right))
    return w.call("com_round", made, w.number(e.type.scale)) if e.type.kind == "decimal" else made


def _remainder(w: Writer, e: ir.Apply) -> Tree:
    left, right = e.args
    if e.type.kind == "int":
        return w.binary("%", w.expr(left), w.expr(right))
    if e.type.kind == "float":
        return w.call("com_rest", w.expr(left), w.expr(right))
    unit = 10**e.type.scale  # in whole units, which are exact
    left, right = (w.cast(w.call("round", w.binary("*", w.expr(x), w.number(unit))), "INTEGER") for x in e.args)
    rest = w.binary("/", w.binary("%", left, right), w.number(f"{unit}.0"))
    return w.call("round", rest, w.number(e.type.scale))


def _round(w: Writer, e: ir.Apply) -> Tree:
    digits = w.expr(e.args[1]) if len(e.args) > 1 else w.number(0)
    if e.args[0].type.kind == "int" and len(e.args) == 1:
        return w.expr(e.args[0])
    return w.call("com_round", w.expr(e.args[0]), digits)


def _whole(name: str) -> Render:
    def render(w: Writer, e: ir.Apply) -> Tree:
        tree = w.expr(e.args[0])
        return tree if e.args[0].type.kind == "int" else w.call(name, tree)

    return render


def _extreme(native: str) -> Render:
    def render(w: Writer, e: ir.Apply) -> Tree:
        if len(e.args) == 1:
            return w.expr(e.args[0])
        if not any(a.nullable for a in e.args):
            return w.call(native, *[w.expr(a) for a in e.args])
        sides = [w.expr(a) for a in e.args]  # SQLite's own gives null for one null: put another argument in its place
        return w.call(native, *[w.call("coalesce", *sides[i:], *sides[:i]) for i in range(len(sides))])

    return render


# ---------------------------------------------------------------- text


def _constant(e: ir.Expr) -> object:
    return e.value if isinstance(e, ir.Constant) else None


def _is_count(value: object) -> bool:
    """True of what SQLite's own functions take for a count: they read 32 bits."""
    return isinstance(value, int) and 0 <= value < 2**31


def _substr(w: Writer, e: ir.Apply) -> Tree:
    start = _constant(e.args[1])
    length = _constant(e.args[2]) if len(e.args) > 2 else 0
    native = _is_count(start) and start != 0 and _is_count(length)
    return w.call("substr" if native else "com_substr", *[w.expr(a) for a in e.args])


def _left(w: Writer, e: ir.Apply) -> Tree:
    count = _constant(e.args[1])
    if _is_count(count):
        return w.call("substr", w.expr(e.args[0]), w.number(1), w.number(count))
    return w.call("com_left", w.expr(e.args[0]), w.expr(e.args[1]))


def _right(w: Writer, e: ir.Apply) -> Tree:
    count = _constant(e.args[1])
    if isinstance(count, int) and 0 < count < 2**31:
        return w.call("substr", w.expr(e.args[0]), w.number(-count))
    return w.call("com_right", w.expr(e.args[0]), w.expr(e.args[1]))


def _starts_with(w: Writer, e: ir.Apply) -> Tree:
    text, start = w.expr(e.args[0]), w.expr(e.args[1])
    value = _constant(e.args[1])
    length = w.number(len(value)) if isinstance(value, str) else w.call("length", start)
    return w.binary("=", w.call("substr", text, w.number(1), length), start)


def _like(w: Writer, e: ir.Apply) -> Tree:
    pattern = w.binary("like", w.expr(e.args[0]), w.expr(e.args[1]))
    return _escaped(w, e.args[1], pattern)


def _ilike(w: Writer, e: ir.Apply) -> Tree:
    lower = [w.call("com_lower", w.expr(a)) for a in e.args]
    return _escaped(w, e.args[1], w.binary("like", *lower))


def _escaped(w: Writer, pattern: ir.Expr, tree: Tree) -> Tree:
    value = _constant(pattern)
    return tree if isinstance(value, str) and "\\" not in value else w.binary("escape", tree, w.text("\\"))


# ---------------------------------------------------------------- time


def _digits(w: Writer, time: Tree, unit: str) -> Tree:
    start, count = _TIMES[unit]
    return w.cast(w.call("substr", time, w.number(start), w.number(count)), "INTEGER")


def _part(unit: str) -> Render:
    return lambda w, e: _digits(w, w.expr(e.args[0]), unit)


def _quarter(w: Writer, e: ir.Apply) -> Tree:
    return w.binary("/", w.binary("+", _digits(w, w.expr(e.args[0]), "month"), w.number(2)), w.number(3))


def _weekday(w: Writer, e: ir.Apply) -> Tree:
    sunday = w.cast(w.call("strftime", w.text("%w"), _day(w, e.args[0])), "INTEGER")
    return w.binary("+", w.binary("%", w.binary("+", sunday, w.number(6)), w.number(7)), w.number(1))


def _day(w: Writer, time: ir.Expr) -> Tree:
    tree = w.expr(time)
    return tree if time.type.kind == "date" else w.call("substr", tree, w.number(1), w.number(10))


def _trunc(w: Writer, e: ir.Apply) -> Tree:
    unit, time = str(_constant(e.args[0])), e.args[1]
    is_date = time.type.kind == "date"
    if is_date and unit in ("day", "hour", "minute", "second"):
        return w.expr(time)
    if unit == "week":
        monday = w.call("date", _day(w, time), w.text("weekday 0"), w.text("-6 days"))
        return monday if is_date else w.binary("||", monday, w.text(" 00:00:00"))
    if unit not in _KEPT:
        return w.call("com_trunc", w.expr(e.args[0]), w.expr(time))
    length, day, clock = _KEPT[unit]
    kept = w.call("substr", w.expr(time), w.number(1), w.number(length))
    rest = day if is_date else day + clock
    return w.binary("||", kept, w.text(rest)) if rest else kept


def _diff(w: Writer, e: ir.Apply) -> Tree:
    unit, start, end = e.args
    if _constant(unit) == "day" and start.type.kind == end.type.kind == "date":
        days = w.binary("-", w.call("julianday", w.expr(end)), w.call("julianday", w.expr(start)))
        return w.cast(days, "INTEGER")
    return w.call("com_diff", *[w.expr(a) for a in e.args])


def _add_period(w: Writer, e: ir.Apply) -> Tree:
    period = _constant(e.args[1])
    assert isinstance(period, plan.Period)
    counts = (period.months, period.days, period.microseconds)
    return w.call("com_add", w.expr(e.args[0]), *[w.number(n) for n in counts])


def _add_days(w: Writer, e: ir.Apply) -> Tree:
    return w.call("com_add", w.expr(e.args[0]), w.number(0), w.expr(e.args[1]), w.number(0))


def _format(w: Writer, e: ir.Apply) -> Tree:
    time = w.expr(e.args[0])
    if not isinstance(_constant(e.args[1]), str):
        return w.call("com_format", time, w.expr(e.args[1]))
    if e.args[0].type.kind != "date":  # strftime would round a fraction up
        time = w.call("substr", time, w.number(1), w.number(19))
    return w.call("strftime", w.expr(e.args[1]), time)


# ---------------------------------------------------------------- conversions


def _cast(w: Writer, e: ir.Cast) -> Tree:
    source, target = e.operand.type, e.type
    tree = w.expr(e.operand)
    match source.kind, target.kind:
        case ("null", _):
            return tree
        case ("int" | "decimal" | "float" | "text", "decimal"):
            return _fitted(w, tree, source, target)
        case ("int" | "decimal", "float"):
            return w.cast(tree, "REAL")
        case ("decimal" | "float", "int"):
            return w.call("com_cast", w.text("int"), tree)
        case ("int", "bool"):
            return w.binary("<>", tree, w.number(0))
        case ("int", "text"):
            return w.cast(tree, "TEXT")
        case ("decimal" | "float" | "bool", "text"):
            return w.call("com_text", w.text(source.kind), w.number(source.scale), tree)
        case ("text", kind) if kind != "text":
            return w.call("com_cast", w.text(kind), tree)
        case ("date", "timestamp"):
            return w.binary("||", tree, w.text(" 00:00:00"))
        case ("timestamp", "date"):
            return w.call("substr", tree, w.number(1), w.number(10))
        case _:
            return tree


def _fitted(w: Writer, tree: Tree, source: Type, target: Type) -> Tree:
    """A number as a decimal: rounded to its digits, refused if there is no room for it before the point."""
    room = target.precision - target.scale
    if source.kind == "text":
        tree = w.call("com_cast", w.text("decimal"), tree)
    rounds = source.scale > target.scale  # and 99.9 is 100 then
    needed = {"decimal": source.precision - source.scale + rounds, "int": 19}.get(source.kind)
    if needed is None or needed > room:
        return w.call("com_fit", tree, w.number(target.precision), w.number(target.scale))
    return w.call("com_round", tree, w.number(target.scale)) if rounds else tree


# ---------------------------------------------------------------- aggregates


def _scaled(rounding: str) -> Callable[[Writer, Aggregation, list[Tree]], Tree]:
    """Sums and averages of decimals, back at their digits."""

    def render(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
        tree = w.aggregated(e, e.name, args, isinstance(e, ir.Aggregate) and e.distinct)
        return w.call(rounding, tree, w.number(e.type.scale)) if e.type.kind == "decimal" else tree

    return render


def _string_agg(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
    if isinstance(e, ir.Window):
        w.unsupported("string_agg over a window", "aggregate in a step before, and join its rows")
        return w.null()
    order = w.varying(e.order)
    if not e.distinct and not order:
        return w.aggregated(e, "group_concat", args)
    spec = ["u"] if e.distinct else []
    spec += [("d" if k.descending else "a") + ("f" if k.nulls_first else "n") for k in order]
    keys = [w.expr(k.expr) for k in order]
    return w.aggregated(e, "com_string_agg", [*args, w.text(",".join(spec)), *keys])


def _stddev(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
    if isinstance(e, ir.Window):
        w.unsupported("stddev over a window", "aggregate in a step before, and join its rows")
        return w.null()
    return w.aggregated(e, "com_stddev", args, e.distinct)


# ---------------------------------------------------------------- bound lists and relations


def _rows(w: Writer, rows: plan.Rows, numbered: str | None, apart: bool) -> Tree:
    """`apart`: as a relation of its own, which SQLite then reads once, and indexes if that helps."""
    columns = []
    for index, field in enumerate(rows.fields):
        value = w.call("json_extract", w.column("com_j", "value"), w.text(f"$[{index}]"))
        columns.append((_typed(w, field.type, value), field.name))
    if numbered is not None or not columns:
        columns.append((w.binary("+", w.column("com_j", "key"), w.number(1)), numbered or "com_n"))
    source = w.calling("json_each", [w.bind(rows)], "com_j")
    return w.picked(columns, source, w.number(-1), _BIGGER) if apart else w.picked(columns, source)


_BIGGER = "pragma_user_version"
"""A table of one row that SQLite takes for 25. It takes json_each for one row, and would then scan a table without a
fitting index once for each row bound, where with 25 it makes an index first."""


_AFFINITIES = {"int": "INTEGER", "bool": "INTEGER", "decimal": "NUMERIC", "float": "REAL", "bytes": ""}


def _typed(w: Writer, type_: Type, value: Tree) -> Tree:
    """A column with an affinity: without one SQLite would make no index of it for a join, and go through all rows."""
    to = _AFFINITIES.get(type_.kind, "TEXT")
    return w.cast(value, to) if to else _read(w, type_, value)


def _read(w: Writer, type_: Type, value: Tree) -> Tree:
    if type_.kind == "float":
        return w.cast(value, "REAL")
    return w.call("com_bytes", value) if type_.kind == "bytes" else value


def _values(w: Writer, many: plan.Many, target: Type) -> Tree:
    value = w.column("com_j", "value")
    if many.type.kind == "date" and target.kind == "timestamp":
        value = w.binary("||", value, w.text(" 00:00:00"))
    value = _read(w, many.type, value)
    return w.picked([(value, "value")], w.calling("json_each", [w.bind(many)], "com_j"))


# ---------------------------------------------------------------- images of rows


def _image(w: Writer, type_: Type, tree: Tree) -> Tree:
    match type_.kind:
        case "float":
            return w.call("com_exact", tree)  # SQLite's own digits are not exact where exponents are large
        case "bytes":
            return _unless_null(w, tree, w.call("hex", tree))
        case "unknown":
            return _unless_null(w, tree, w.call("quote", tree))
        case _:
            return tree


def _unless_null(w: Writer, tree: Tree, made: Tree) -> Tree:
    return w.case([(w.is_null(tree, negated=True), made)], None)


def _unimage(w: Writer, type_: Type, tree: Tree) -> Tree:
    match type_.kind:
        case "float":
            return w.cast(tree, "REAL")
        case "bytes":
            return w.call("com_bytes", tree)
        case _:
            return tree


def _objects(w: Writer, columns: Sequence[tuple[str, Tree]]) -> Tree:
    made: Tree = None
    for start in range(0, len(columns), _MOST_ARGUMENTS):
        args: list[Tree] = []
        for name, tree in columns[start : start + _MOST_ARGUMENTS]:
            args += (w.text(name if made is None else f'$."{name}"'), tree)
        made = w.call("json_object", *args) if made is None else w.call("json_insert", made, *args)
    return made


def _arrays(w: Writer, trees: Sequence[Tree]) -> Tree:
    return w.call("json_array", *trees)


def _extract(w: Writer, tree: Tree, index: int) -> Tree:
    return w.call("json_extract", tree, w.text(f"$[{index}]"))


# ---------------------------------------------------------------- tables

_STORED = {
    "int": "INTEGER",
    "float": "DOUBLE",
    "text": "TEXT",
    "bool": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "json": "JSON TEXT",  # JSON alone would make a number of a JSON number
    "bytes": "BLOB",
}


def _stored(column: Column, sole_key: bool, keyed: int) -> str:
    if column.type.kind == "decimal":
        return f"DECIMAL({column.type.precision},{column.type.scale})"
    if column.type.kind == "int" and sole_key and not column.generated:
        return "BIGINT"  # INTEGER PRIMARY KEY would make ids of its own
    return _STORED.get(column.type.kind, column.engine_type or "TEXT")


def _called(name: str) -> Render:
    return lambda w, e: w.call(name, *[w.expr(a) for a in e.args])


def _replace(w: Writer, e: ir.Apply) -> Tree:
    made = w.call("replace", *map(w.expr, e.args))
    if _constant(e.args[1]) or not e.args[2].nullable:
        return made
    return w.case([(w.is_null(w.expr(e.args[2]), True), made)], None)  # it keeps the text if nothing is looked for


def _joins(join: ir.Join) -> bool:
    """Whether SQLite does a join right: one that keeps the right side's rows loses them if the left side holds an inner
    join by something that is the same for all rows."""

    def spoils(source: ir.Source) -> bool:
        if not isinstance(source, ir.Join):
            return False
        of = ir.aliases(source)
        parts = ir.conjuncts(source.on) if source.kind == "inner" and source.on is not None else ()
        varying = (any(isinstance(n, ir.Column) and n.alias in of for n in walk(part)) for part in parts)
        return not all(varying) or spoils(source.left) or spoils(source.right)

    return join.kind not in ("right", "full") or not spoils(join.left)


FUNCTIONS: dict[str, Render] = {
    "replace": _replace,
    "/": _divide,
    "%": _remainder,
    "round": _round,
    "floor": _whole("com_floor"),
    "ceil": _whole("com_ceil"),
    "sqrt": _called("com_sqrt"),
    "power": _called("com_power"),
    "ln": _called("com_ln"),
    "exp": _called("com_exp"),
    "least": _extreme("min"),
    "greatest": _extreme("max"),
    "coalesce": lambda w, e: w.call("coalesce", *map(w.expr, e.args)) if len(e.args) > 1 else w.expr(e.args[0]),
    "lower": _called("com_lower"),
    "upper": _called("com_upper"),
    "substr": _substr,
    "left": _left,
    "right": _right,
    "position": lambda w, e: w.call("instr", w.expr(e.args[1]), w.expr(e.args[0])),
    "starts_with": _starts_with,
    "like": _like,
    "ilike": _ilike,
    **{unit: _part(unit) for unit in _TIMES},
    "quarter": _quarter,
    "weekday": _weekday,
    "date_trunc": _trunc,
    "date_diff": _diff,
    "add_period": _add_period,
    "add_days": _add_days,
    "format_date": _format,
    "json_get": _called("com_json_get"),
}

ENGINE = Engine(
    "sqlite",
    "SQLite",
    "sqlite",
    FUNCTIONS,
    {"sum": _scaled("round"), "avg": _scaled("com_round"), "string_agg": _string_agg, "stddev": _stddev},
    _cast,
    _settle,
    _rows,
    _values,
    _image,
    _unimage,
    _objects,
    _arrays,
    _extract,
    _stored,
    -1,
    15,
    _cut,
    joins=_joins,
    adapt=lambda w, type_, tree: w.collated(tree, "BINARY"),
)
