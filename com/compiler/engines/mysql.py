"""MariaDB: bools that are ints, JSON that is text, no filter and no full join, and texts that become numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from com import plan
from com.compiler import ir
from com.compiler.engines import Aggregation, Engine, Render, Tree, Writer
from com.compiler.engines import typed as t
from com.schema import Column, Type

_NAMES = {
    "int": "SIGNED",
    "float": "DOUBLE",
    "text": "CHAR",
    "bool": "SIGNED",
    "date": "DATE",
    "timestamp": "DATETIME(6)",
    "json": "CHAR",
    "bytes": "BINARY",
}
"""What is cast to; columns have other names."""
_COLLATION = "utf8mb4_nopad_bin"
_COLLATED = f"CHARACTER SET utf8mb4 COLLATE {_COLLATION}"


def _named(type_: Type) -> str:
    if type_.kind == "decimal":
        return f"DECIMAL({type_.precision}, {min(type_.scale, 30)})"
    return _NAMES.get(type_.kind, "CHAR")


_OF_JSON = "utf8mb4_bin"
"""The collation of JSON columns."""
_LITERAL = t.literals(_named)


def _bare(w: Writer, type_: Type, tree: Tree) -> Tree:
    return tree


def _bound(w: Writer, type_: Type, tree: Tree) -> Tree:
    """The driver writes ints, texts and bytes so that they are what they are."""
    return w.cast(tree, _named(type_)) if type_.kind in ("decimal", "float", "date", "timestamp") else tree


def _adapt(w: Writer, type_: Type, tree: Tree) -> Tree:
    """A text of any character set, under no collation that folds letters or leaves out blanks; a shape as its bytes."""
    if type_.kind != "text":
        return _hex(w, tree)
    return w.collated(w.words("CONVERT(", tree, " USING utf8mb4)"), _COLLATION)


# ---------------------------------------------------------------- numbers


def _divide(w: Writer, e: ir.Apply) -> Tree:
    left, right = w.expr(e.args[0]), w.expr(e.args[1])
    if e.type.kind == "decimal":  # a quotient has four digits more than what is divided
        left = w.cast(left, f"DECIMAL(60, {min(e.type.scale - 4, 26)})")
        return w.call("round", w.binary("/", left, right), w.number(e.type.scale))  # inside it has more digits
    return w.binary("/", w.cast(left, "DOUBLE"), right)


def _remainder(w: Writer, e: ir.Apply) -> Tree:
    left, right = w.expr(e.args[0]), w.expr(e.args[1])
    if e.type.kind == "float":
        return t.rest(w, w.cast(left, "DOUBLE"), w.cast(right, "DOUBLE"), "truncate", w.number(0))
    rest = w.binary("%", left, right)
    return rest if e.type.kind == "int" else w.binary("+", rest, w.number(0))  # a negative nought would equal no other


def _shown(w: Writer, number: Tree, to: str) -> Tree:
    """The decimal that a double shows."""
    return w.cast(w.cast(number, "CHAR"), to)


def _round(w: Writer, e: ir.Apply) -> Tree:
    number, digits = w.expr(e.args[0]), [w.expr(a) for a in e.args[1:]]
    if e.args[0].type.kind != "float":
        return w.call("round", number, *digits)
    exact = w.cast(w.call("round", _shown(w, number, "DECIMAL(65, 30)"), *digits), "DOUBLE")
    return w.case([(w.binary("<", w.call("abs", number), w.number(10**16)), exact)], number)


def _is_distinct(w: Writer, e: ir.Apply) -> Tree:
    return w.binary("=", w.binary("<=>", w.expr(e.args[0]), w.expr(e.args[1])), w.number(0))


# ---------------------------------------------------------------- text


def _lower(w: Writer, tree: Tree) -> Tree:
    return w.call("lower", tree)


def _end(name: str) -> Render:
    """`left` and `right`, where a count below zero leaves out so many letters of the other end."""

    def render(w: Writer, e: ir.Apply) -> Tree:
        text, count, given = w.expr(e.args[0]), t.counted(w, e.args[1]), t.constant(e.args[1])
        native = w.call(name, text, count)
        if isinstance(given, int) and given >= 0:
            return native
        if name == "left":
            rest = w.call("left", text, w.binary("+", w.call("char_length", text), count))
        else:
            rest = w.call("substr", text, w.binary("-", w.number(1), count))
        return w.case([(w.binary(">=", count, w.number(0)), native)], rest)

    return render


def _trim(form: str) -> Render:
    """`form`: where letters are cut, {} for the letters."""

    def render(w: Writer, e: ir.Apply) -> Tree:
        text = w.expr(e.args[0])
        letters = w.expr(e.args[1]) if len(e.args) > 1 else w.text(" ")
        known = t.constant(e.args[1]) if len(e.args) > 1 else " "
        if known == "":
            return text
        quoted = letters
        if not isinstance(known, str):  # without letters it would be no pattern
            quoted = w.call("nullif", letters, w.text(""))
        if not isinstance(known, str) or "\\" in known:  # a backslash before an E would end the quotation
            bare, slash = w.call("replace", quoted, w.text("\\"), w.text("")), w.text("\\")
            quoted = w.case([(w.binary("=", bare, letters), quoted)], w.binary("||", bare, slash))
        one = w.binary("||", w.binary("||", w.text("[\\Q"), quoted), w.text("\\E]+"))
        made = None
        for part in form.split("{}"):
            made = w.text(part) if made is None else w.binary("||", w.binary("||", made, one), w.text(part))
        cut = w.call("regexp_replace", text, made, w.text(""))
        if known:
            return cut
        return w.case([(w.binary("=", w.expr(e.args[1]), w.text("")), text)], cut)

    return render


def _replace(w: Writer, e: ir.Apply) -> Tree:
    made = w.call("replace", *map(w.expr, e.args))
    if not e.args[2].nullable:
        return made
    return w.case([(w.is_null(w.expr(e.args[2]), True), made)], None)  # it keeps the text if nothing is found


def _without_backslashes(w: Writer, text: Tree) -> Tree:
    return w.call("trim", w.words("TRAILING ", w.text("\\"), " FROM ", text))


def _starts_with(w: Writer, e: ir.Apply) -> Tree:
    text, start = w.expr(e.args[0]), w.expr(e.args[1])
    return w.binary("=", w.call("left", text, w.call("char_length", start)), start)


# ---------------------------------------------------------------- time

_KEPT = {
    "year": "%Y-01-01",
    "month": "%Y-%m-01",
    "day": "%Y-%m-%d",
    "hour": "%Y-%m-%d %H:00:00",
    "minute": "%Y-%m-%d %H:%i:00",
    "second": "%Y-%m-%d %H:%i:%s",
}


def _moved(w: Writer, time: Tree, count: Tree, unit: str) -> Tree:
    return w.call("date_add", time, w.words("INTERVAL ", count, f" {unit}"))


def _truncated(w: Writer, unit: str, time: Tree, to: str) -> Tree:
    if unit == "week":
        weekday = w.binary("-", w.number(0), w.call("weekday", time))
        return w.cast(_moved(w, w.cast(time, "DATE"), weekday, "DAY"), to)
    if unit == "quarter":
        year = w.cast(w.call("date_format", time, w.text(_KEPT["year"])), "DATE")
        return w.cast(_moved(w, year, w.binary("-", w.call("quarter", time), w.number(1)), "QUARTER"), to)
    return w.cast(w.call("date_format", time, w.text(_KEPT[unit])), to)


def _trunc(w: Writer, e: ir.Apply) -> Tree:
    unit, time = str(t.constant(e.args[0])), e.args[1]
    if time.type.kind == "date" and unit in ("day", "hour", "minute", "second"):
        return w.expr(time)
    return _truncated(w, unit, w.expr(time), _named(e.type))


def _diff(w: Writer, e: ir.Apply) -> Tree:
    unit = str(t.constant(e.args[0]))
    start, end = w.expr(e.args[1]), w.expr(e.args[2])
    if unit in ("year", "quarter", "month"):
        return t.months_between(w, unit, start, end, lambda name, time: w.call(name, time))
    if unit in ("hour", "minute", "second"):
        ends = [_truncated(w, unit, x, "DATETIME(6)") for x in (start, end)]
        return w.call("timestampdiff", w.words(unit.upper()), *ends)
    days = w.call("datediff", *[_truncated(w, unit, x, "DATE") for x in (end, start)])
    return w.binary("//", days, w.number(7)) if unit == "week" else days


def _add_period(w: Writer, e: ir.Apply) -> Tree:
    period = t.constant(e.args[1])
    assert isinstance(period, plan.Period)
    made = w.cast(w.expr(e.args[0]), _named(e.type))
    for count, unit in ((period.months, "MONTH"), (period.days, "DAY"), (period.microseconds, "MICROSECOND")):
        if count:
            made = _moved(w, made, w.number(count), unit)
    return _in_calendar(w, e, w.cast(made, _named(e.type)))


def _add_days(w: Writer, e: ir.Apply) -> Tree:
    return _in_calendar(w, e, w.cast(_moved(w, w.expr(e.args[0]), w.expr(e.args[1]), "DAY"), _named(e.type)))


def _in_calendar(w: Writer, e: ir.Apply, made: Tree) -> Tree:
    """A sum that does not lie in MariaDB's year 0; it knows none behind 9999."""
    first = w.cast(w.text("0001-01-01"), _named(e.type))
    return w.case([(w.binary("<", made, first), _moved(w, made, w.number(10000), "YEAR"))], made)


def _timestamp_text(w: Writer, tree: Tree) -> Tree:
    seconds = w.call("date_format", tree, w.text("%Y-%m-%d %H:%i:%s"))
    return w.binary("||", seconds, t.fraction(w, w.call("date_format", tree, w.text(".%f"))))


def _json_get(w: Writer, e: ir.Apply) -> Tree:
    path = t.constant(e.args[1])
    if path is None and isinstance(e.args[1], ir.Constant):
        return w.cast(w.null(), "CHAR")
    if not isinstance(path, str) or '"' in path or "\\" in path or not path.isprintable() or t.from_the_end(path):
        w.unsupported("json_get with a computed path", "write the path as a text")
        return w.null()
    found = w.expr(e.args[0])
    for is_number, names in groupby(path.split("."), str.isdecimal):
        if not is_number:
            found = w.call("json_extract", found, w.text("$" + "".join(f'."{name}"' for name in names)))
            continue
        for name in names:  # of what is no array MariaDB would take all for the first
            is_array = w.binary("=", w.call("json_type", found), w.text("ARRAY"))
            place = w.case([(is_array, w.text(f"$[{int(name)}]"))], w.text(f'$."{name}"'))
            found = w.call("json_extract", found, place)
    kind = w.call("json_type", found)
    whens = [
        (w.binary("=", kind, w.text("NULL")), w.null()),
        (w.binary("=", kind, w.text("STRING")), w.collated(w.call("json_unquote", found), _COLLATION)),
    ]
    return w.case(whens, w.collated(w.call("json_compact", found), _COLLATION))


# ---------------------------------------------------------------- conversions


def _literal(w: Writer, value: object, type_: Type) -> Tree | None:
    if value is None and type_.kind == "json":  # JSON has a collation of its own
        return w.null()
    return _LITERAL(w, value, type_)


def _matches(w: Writer, text: Tree, form: Tree) -> Tree:
    return w.binary("=", w.call("regexp_instr", text, t.whole(w, form)), w.number(1))


def _lacks(w: Writer, text: Tree, form: str) -> Tree:
    return w.binary("=", w.call("regexp_instr", text, w.text(form)), w.number(0))


def _read(w: Writer, tree: Tree, target: Type) -> Tree:
    if target.kind == "bytes":
        return _unhex(w, tree)
    if target.kind == "json":
        valid = w.binary("=", w.call("json_valid", tree), w.number(1))
        failed = w.call("json_extract", w.binary("||", w.text("no value: "), tree), w.text("$"))
        return w.collated(t.strict_json(w, tree, valid, lambda x, form: _lacks(w, x, form), failed), _OF_JSON)
    made = t.strict(w, tree, target, lambda text, form: _matches(w, text, form))
    if target.kind == "bool":
        said = w.call("lower", w.call("trim", made))
        whens = [(w.binary("=", said, w.text(word)), w.number(n)) for n, word in enumerate(("false", "true"))]
        return w.case(whens, w.cast(made, "SIGNED"))
    if target.kind == "int":  # else what is too large becomes a number below zero
        made = w.cast(w.call("trim", made), "DECIMAL(65, 0)")
        return w.cast(made, "SIGNED")
    made = w.cast(w.call("trim", made), "DATETIME(6)" if target.kind == "date" else _named(target))
    return w.cast(made, "DATE") if target.kind == "date" else made


def _float_text(w: Writer, tree: Tree) -> Tree:
    """Fifteen digits."""
    size = w.call("floor", w.call("log10", w.call("abs", tree)))
    whole = w.call("round", tree, w.cast(w.binary("-", w.number(14), size), "SIGNED"))
    whole = w.binary("+", whole, w.number("0e0"))  # of a constant it would show noughts behind the last digit
    zero = w.binary("=", tree, w.number(0))
    small = t.both(
        w, w.binary("<", size, w.number(-4)), w.binary(">=", size, w.number(-15))
    )  # shown without an exponent
    mantissa = w.call(
        "round", w.binary("*", tree, w.call("power", w.number(10), w.binary("-", w.number(0), size))), w.number(14)
    )
    parts = w.binary(
        "||", w.cast(w.cast(mantissa, "DOUBLE"), "CHAR"), w.binary("||", w.text("e"), w.cast(size, "CHAR"))
    )
    return w.case([(zero, w.text("0")), (small, parts)], w.cast(whole, "CHAR"))


def _cast(w: Writer, e: ir.Cast) -> Tree:
    source, target = e.operand.type, e.type
    tree = w.expr(e.operand)
    match source.kind, target.kind:
        case ("null", "json"):  # JSON has a collation of its own
            return w.null()
        case ("float", "decimal"):
            return _shown(w, tree, _named(target))
        case ("float", "int"):
            return w.cast(_shown(w, tree, "DECIMAL(40, 0)"), "SIGNED")
        case ("int" | "float" | "decimal", "bool"):
            return w.binary("<>", tree, w.number(0))
        case ("bool", "int"):
            return tree
        case ("bool", "text"):
            return w.case([(tree, w.text("true")), (w.is_null(tree, True), w.text("false"))], None)
        case ("decimal", "text"):
            return w.cast(w.cast(tree, _named(source)), "CHAR")
        case ("float", "text"):
            return _float_text(w, tree)
        case ("timestamp", "text"):
            return _timestamp_text(w, tree)
        case ("bytes", "text"):
            return _hex(w, tree)
        case ("text", kind) if kind != "text":
            return _read(w, tree, target)
        case (a, b) if a == b and a != "decimal":
            return tree
        case _:
            return w.cast(tree, _named(target))


def _hex(w: Writer, tree: Tree) -> Tree:
    return w.call("lower", w.call("hex", tree))


def _unhex(w: Writer, tree: Tree) -> Tree:
    """The server takes half of a LONGTEXT's length for none, and would keep no byte in a temporary table."""
    return w.call("unhex", w.call("left", tree, w.number(2**31 - 2)))


# ---------------------------------------------------------------- aggregates


def _avg(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
    distinct = t.is_distinct_call(e)
    total, count = (w.aggregated(e, name, args, distinct) for name in ("sum", "count"))
    if e.type.kind == "decimal":
        total = w.cast(total, f"DECIMAL(60, {min(e.type.scale - 4, 26)})")
        return w.call("round", w.binary("/", total, count), w.number(e.type.scale))
    return w.binary("/", w.cast(total, "DOUBLE"), count)


def _string_agg(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
    separator = t.constant(e.args[1])
    if t.no_window(w, e, "string_agg"):
        return w.null()
    assert isinstance(e, ir.Aggregate)
    if not isinstance(separator, str):
        w.unsupported("string_agg with a computed separator", "write the separator as a text")
        return w.null()
    text = args[0] if e.where is None else w.case([(w.expr(e.where), args[0])], None)
    made = w.words(w.ordered(text, t.order_of(e)), " SEPARATOR ", w.text(separator))
    return w.aggregated(e.with_(where=None), "group_concat", [made], e.distinct)


def _stddev(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
    if t.is_distinct_call(e):
        w.unsupported("stddev of distinct values", "take them apart in a step before")
    return w.aggregated(e, "stddev_samp", [w.cast(args[0], "DOUBLE")], t.is_distinct_call(e))


def _neighbour(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
    """`lag` and `lead`, which have no value for a row that is not there."""
    found = w.aggregated(e, e.name, args[:2])
    if len(args) < 3:
        return found
    there = w.aggregated(e, e.name, [w.number(1), args[1]])
    return w.case([(w.is_null(there), args[2])], found)


# ---------------------------------------------------------------- bound lists and relations

_READ = {"int": "BIGINT", "bool": "BIGINT", "float": "DOUBLE", "date": "DATE", "timestamp": "DATETIME(6)"}


def _read_as(type_: Type) -> str:
    if type_.kind == "decimal":
        return _named(type_)
    if type_.kind == "json":
        return f"LONGTEXT CHARACTER SET utf8mb4 COLLATE {_OF_JSON}"
    return _READ.get(type_.kind, f"LONGTEXT {_COLLATED}")


def _rows(w: Writer, rows: plan.Rows, numbered: str | None, apart: bool) -> Tree:
    names = [f"c{i}" for i in range(len(rows.fields))]
    read = [
        f"{n} {_read_as(f.type)} PATH '$[{i}]' ERROR ON ERROR"
        for i, (n, f) in enumerate(zip(names, rows.fields, strict=True))
    ]
    columns = [(_given(w, f.type, w.column("com_j", n)), f.name) for n, f in zip(names, rows.fields, strict=True)]
    if numbered is not None or not columns:
        columns.append((w.column("com_j", "n"), numbered or "com_n"))
    # with a limit it becomes a table of its own, which gets an index for a join
    return w.picked(columns, _table(w, rows, read), w.number(2**63 - 1) if apart else None)


def _table(w: Writer, bound: plan.Binding, read: list[str]) -> Tree:
    shape = w.words(w.text("$[*]"), f" COLUMNS ({', '.join(['n FOR ORDINALITY', *read])})")
    return w.calling("json_table", [w.bind(bound), shape], "com_j")


def _values(w: Writer, many: plan.Many, target: Type) -> Tree:
    read = [f"c0 {_read_as(many.type)} PATH '$' ERROR ON ERROR"]
    return w.picked([(_given(w, many.type, w.column("com_j", "c0")), "value")], _table(w, many, read))


def _given(w: Writer, type_: Type, tree: Tree) -> Tree:
    return _unhex(w, tree) if type_.kind == "bytes" else tree


def _part_of(w: Writer, type_: Type, tree: Tree) -> Tree:
    if type_.kind in ("bytes", "text", "null", "unknown"):
        return _given(w, type_, tree)
    return w.cast(tree, _named(type_))


# ---------------------------------------------------------------- images of rows


def _image(w: Writer, type_: Type, tree: Tree) -> Tree:
    match type_.kind:
        case "bytes":
            return _hex(w, tree)
        case "int" | "decimal" | "text" | "bool":
            return tree
        case "json":  # else it would stand in the image as JSON
            return w.collated(w.call("concat", tree, w.text("")), _COLLATION)
        case "unknown":
            return t.quoted(w, w.cast(tree, "CHAR"))
        case _:
            return w.cast(tree, "CHAR")


def _objects(w: Writer, columns: Sequence[tuple[str, Tree]]) -> Tree:
    return w.call("json_object", *[x for name, tree in columns for x in (w.text(name), tree)])


def _arrays(w: Writer, trees: Sequence[Tree]) -> Tree:
    return w.call("json_array", *trees)


def _extract(w: Writer, tree: Tree, index: int) -> Tree:
    return w.call("json_value", tree, w.text(f"$[{index}]"))


_STORED = {
    "int": "BIGINT",
    "float": "DOUBLE",
    "bool": "BOOLEAN",
    "date": "DATE",
    "timestamp": "DATETIME(6)",
    "json": "JSON",
}


_KEY = 2800
"""So many bytes may a key have, which InnoDB allows 3072; a character takes four."""


def _stored(column: Column, sole_key: bool, keyed: int) -> str:
    match column.type.kind:
        case "text":
            return f"{f'VARCHAR({_KEY // 4 // keyed})' if keyed else 'LONGTEXT'} {_COLLATED}"
        case "bytes":
            return f"VARBINARY({_KEY // keyed})" if keyed else "LONGBLOB"
        case "decimal":
            return f"DECIMAL({column.type.precision},{column.type.scale})"
        case kind:
            made = _STORED.get(kind, column.engine_type or "LONGTEXT")
            return f"{made} AUTO_INCREMENT" if column.generated else made


FUNCTIONS: dict[str, Render] = {
    "/": _divide,
    "%": _remainder,
    "round": t.own_type(_round),
    "floor": t.own_type(t.called("floor")),
    "ceil": t.own_type(t.called("ceil")),
    "sqrt": t.in_doubles("sqrt", "DOUBLE", least="0"),
    "ln": t.in_doubles("ln", "DOUBLE", least="0", above=True),
    "exp": t.in_doubles("exp", "DOUBLE"),
    "power": t.power("DOUBLE"),
    "least": t.of_all("least"),
    "greatest": t.of_all("greatest"),
    "is_distinct": _is_distinct,
    "upper": t.upper,
    "length": t.called("char_length"),
    "substr": t.substr("SIGNED", "CHAR"),
    "left": _end("left"),
    "right": _end("right"),
    "trim": _trim("^{}|{}\\z"),
    "ltrim": _trim("^{}"),
    "rtrim": _trim("{}\\z"),
    "position": t.called("locate"),
    "replace": _replace,
    "starts_with": _starts_with,
    "like": t.like(None, _bare, _without_backslashes),
    "ilike": t.like(_lower, _bare, _without_backslashes),
    "weekday": lambda w, e: w.binary("+", w.call("weekday", w.expr(e.args[0])), w.number(1)),
    "week": lambda w, e: w.call("week", w.expr(e.args[0]), w.number(3)),
    "date_trunc": _trunc,
    "date_diff": _diff,
    "add_period": _add_period,
    "add_days": _add_days,
    "format_date": t.format_date("date_format", t.MYSQL_LETTERS, t.doubled_percent),
    "json_get": _json_get,
}

ENGINE = Engine(
    "mysql",
    "MariaDB",
    "mysql",
    FUNCTIONS,
    {
        "sum": t.sums(_named),
        "avg": _avg,
        "string_agg": _string_agg,
        "stddev": _stddev,
        "lag": _neighbour,
        "lead": _neighbour,
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
    bound=_bound,
    adapt=_adapt,
    literal=_literal,
    divided=lambda w, left, right: w.binary("//", left, right),
    row_id="",
    typed=True,
    returns=frozenset({"insert", "delete"}),
    upserts=False,
    filters=False,
    counts=False,
    joins=lambda join: join.kind != "full",
)
