"""What the engines have in common that com compiles for but does not run: Spark, Trino, BigQuery, Snowflake.

Programs that only read are compiled for them. What com means and they cannot say exactly is CM401, never an
approximation: a float brought to digits, and texts read as times, most of all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from com import plan
from com.compiler import ir
from com.compiler.engines import Aggregation, Engine, Render, Tree, Writer
from com.compiler.engines import typed as t
from com.node import Node
from com.schema import Type


class Words(Node):
    """How one of these engines says it. `number`: a field of a time; `truncated`: the beginning of a unit; `days`,
    `clock`: days between two dates, and hours, minutes or seconds between two times that were cut to them; `move`: a
    time some units later; `divide`: a quotient of decimals; `shows`: a float becomes a decimal by the digits that it
    shows."""

    named: t.Named
    number: Callable[[Writer, str, Tree], Tree]
    truncated: Callable[[Writer, str, Tree, Type], Tree]
    days: Callable[[Writer, Tree, Tree], Tree]
    clock: Callable[[Writer, str, Tree, Tree], Tree]
    move: Callable[[Writer, Tree, Tree, str], Tree]
    matches: Callable[[Writer, Tree, Tree], Tree]
    trim: Callable[[Writer, str, Tree, Tree], Tree]
    divide: Callable[[Writer, Tree, Tree, ir.Apply], Tree]
    shows: bool = False


def nothing(*_: Any) -> Any:
    """Nothing is written, so there are no images of rows."""
    raise AssertionError("com does not write there")


def lacks(what: str, instead: str) -> Render:
    """What cannot be said."""

    def render(w: Writer, e: ir.Apply) -> Tree:
        w.unsupported(what, instead)
        return w.null()

    return render


def _gives_up(w: Writer, what: str, instead: str) -> Tree:
    w.unsupported(what, instead)
    return w.null()


# ---------------------------------------------------------------- numbers


def _divide(of: Words) -> Render:
    def render(w: Writer, e: ir.Apply) -> Tree:
        left, right = (w.expr(a) for a in e.args)
        if e.type.kind == "decimal":
            return of.divide(w, left, t.unless_zero(w, right), e)
        double = of.named(e.type)
        return w.binary("/", w.cast(left, double), t.unless_zero(w, w.cast(right, double)))

    return render


def _remainder(of: Words, name: str) -> Render:
    def render(w: Writer, e: ir.Apply) -> Tree:
        if e.type.kind == "float":
            return _gives_up(w, "the remainder of floats", "compute it with decimals")
        left, right = w.expr(e.args[0]), t.unless_zero(w, w.expr(e.args[1]))
        return w.call(name, left, right)

    return render


def _round(of: Words) -> Render:
    def render(w: Writer, e: ir.Apply) -> Tree:
        digits = t.constant(e.args[1]) if len(e.args) > 1 else 0
        if not isinstance(digits, int):
            return _gives_up(w, "round to a computed number of digits", "write the number of digits")
        if e.args[0].type.kind == "float" and digits and not of.shows:
            return _gives_up(w, "round of a float to digits", "cast it to a decimal where it is still exact")
        return w.cast(w.call("round", w.expr(e.args[0]), w.number(digits)), of.named(e.type))

    return render


# ---------------------------------------------------------------- text


def _end(name: str, length: str) -> Render:
    """`left` and `right` by `substr`."""

    def render(w: Writer, e: ir.Apply) -> Tree:
        text, count = w.expr(e.args[0]), t.constant(e.args[1])
        if not isinstance(count, int) or count < 0:
            return _gives_up(w, f"{name} of a computed count", "write the count")
        if name == "left":
            return w.call("substr", text, w.number(1), w.number(count))
        size = w.call(length, text)
        start = w.binary("+", w.binary("-", size, w.number(count)), w.number(1))
        return w.case([(w.binary("<=", size, w.number(count)), text)], w.call("substr", text, start))

    return render


def _trimmed(of: Words, name: str) -> Render:
    def render(w: Writer, e: ir.Apply) -> Tree:
        letters = w.expr(e.args[1]) if len(e.args) > 1 else w.text(" ")
        return of.trim(w, name, w.expr(e.args[0]), letters)

    return render


def _replace(w: Writer, e: ir.Apply) -> Tree:
    text, old, new = (w.expr(a) for a in e.args)
    made = w.call("replace", text, old, new)
    return made if t.constant(e.args[1]) else w.case([(w.binary("=", old, w.text("")), text)], made)


def _like(escape: bool, lower: bool) -> Render:
    """`escape`: whether the backslash has to be named."""

    def render(w: Writer, e: ir.Apply) -> Tree:
        text, pattern = (w.call("lower", w.expr(a)) if lower else w.expr(a) for a in e.args)
        made = w.binary("like", text, pattern)
        return w.binary("escape", made, w.text("\\")) if escape else made

    return render


# ---------------------------------------------------------------- time


def extracted(w: Writer, name: str, time: Tree) -> Tree:
    return w.words(f"EXTRACT({name.upper()} FROM ", time, ")")


def _field(of: Words, name: str) -> Render:
    return lambda w, e: of.number(w, name, w.cast(w.expr(e.args[0]), of.named(_TIMESTAMP)))


_TIMESTAMP, _DATE = Type("timestamp"), Type("date")


def _trunc(of: Words) -> Render:
    def render(w: Writer, e: ir.Apply) -> Tree:
        time = w.cast(w.expr(e.args[1]), of.named(_TIMESTAMP))
        return w.cast(of.truncated(w, str(t.constant(e.args[0])), time, e.type), of.named(e.type))

    return render


def _diff(of: Words) -> Render:
    def render(w: Writer, e: ir.Apply) -> Tree:
        unit = str(t.constant(e.args[0]))
        start, end = (w.cast(w.expr(a), of.named(_TIMESTAMP)) for a in e.args[1:])
        if unit in ("year", "quarter", "month"):
            return t.months_between(w, unit, start, end, lambda name, time: of.number(w, name, time))
        if unit in ("hour", "minute", "second"):
            return of.clock(w, unit, *(of.truncated(w, unit, x, _TIMESTAMP) for x in (start, end)))
        if unit == "week":
            start, end = (of.truncated(w, "week", x, _DATE) for x in (start, end))
        days = of.days(w, *(w.cast(x, of.named(_DATE)) for x in (start, end)))
        if unit == "day":
            return days
        return w.cast(w.binary("/", days, w.number(7)), of.named(Type("int")))  # Mondays lie whole weeks apart

    return render


def add_period(of: Words) -> Render:
    """A time and a constant span."""

    def render(w: Writer, e: ir.Apply) -> Tree:
        period = t.constant(e.args[1])
        assert isinstance(period, plan.Period)
        made = w.cast(w.expr(e.args[0]), of.named(e.type))
        counts = (period.months, "month"), (period.days, "day"), (period.microseconds, "microsecond")
        for count, unit in counts:
            if count:
                made = of.move(w, made, w.number(count), unit)
        return made

    return render


def _add_days(of: Words) -> Render:
    return lambda w, e: of.move(w, w.cast(w.expr(e.args[0]), of.named(e.type)), w.expr(e.args[1]), "day")


# ---------------------------------------------------------------- conversions


def _cast(of: Words) -> Callable[[Writer, ir.Cast], Tree]:
    def render(w: Writer, e: ir.Cast) -> Tree:
        source, target = e.operand.type, e.type
        tree, to = w.expr(e.operand), of.named(target)
        match source.kind, target.kind:
            case ("null", _):
                return w.cast(tree, to)
            case ("float", "decimal") if not of.shows:
                return _gives_up(w, "a float as a decimal", "compute with decimals from the beginning")
            case ("decimal" | "float", "int"):
                return w.cast(w.call("round", tree, w.number(0)), to)
            case ("int" | "float" | "decimal", "bool"):
                return w.binary("<>", tree, w.number(0))
            case ("bool", "text"):
                whens = [(tree, w.text("true")), (w.is_null(tree, True), w.text("false"))]
                return w.case(whens, None)
            case ("text", "int" | "decimal"):
                made = t.strict(w, tree, target, lambda text, form: of.matches(w, text, form))
                return w.cast(of.trim(w, "trim", made, w.text(" ")), to)
            case ("float" | "timestamp" | "bytes" | "json", "text") | ("text", "bytes" | "json"):
                return _gives_up(w, f"a {source.kind} as a {target.kind}", "leave it as it is")
            case ("text", kind) if kind != "text":
                return _gives_up(w, f"a text as a {kind}", "give a parameter of that type, or keep it so")
            case (a, b) if a == b and a != "decimal":
                return tree
            case _:
                return w.cast(tree, to)

    return render


# ---------------------------------------------------------------- aggregates


def listed(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
    """`listagg`, which has its order behind it."""
    separator = t.constant(e.args[1])
    if t.no_window(w, e, "string_agg"):
        return w.null()
    assert isinstance(e, ir.Aggregate)
    if not isinstance(separator, str):
        return _gives_up(w, "string_agg with a computed separator", "write the separator as a text")
    if e.distinct and any(k.expr != e.args[0] for k in e.order):
        return _gives_up(w, "string_agg(distinct …) in another order", "select distinct in a step before")
    text = args[0] if e.where is None else w.case([(w.expr(e.where), args[0])], None)
    order = t.order_of(e) or (ir.OrderKey(e.args[0], False, False),)
    head = "LISTAGG(DISTINCT " if e.distinct else "LISTAGG("
    return w.words(head, text, ", ", w.text(separator), ") WITHIN GROUP (", w.ordered(w.words(), order), ")")


def _mean(of: Words, average: Callable[[Writer, Aggregation, list[Tree]], Tree]) -> Callable[..., Tree]:
    def render(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
        if e.type.kind == "decimal":
            return average(w, e, args)
        return w.aggregated(e, "avg", [w.cast(args[0], of.named(e.type))], t.is_distinct_call(e))

    return render


def _stddev(of: Words) -> Callable[[Writer, Aggregation, list[Tree]], Tree]:
    def render(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
        return w.aggregated(e, "stddev_samp", [w.cast(args[0], of.named(e.type))], t.is_distinct_call(e))

    return render


# ---------------------------------------------------------------- bound lists and relations


def part(of: Words) -> Callable[[Writer, Type, Tree], Tree]:
    """A value of a bound list, which is text there."""

    def render(w: Writer, type_: Type, tree: Tree) -> Tree:
        match type_.kind:
            case "bool":
                return w.binary("=", tree, w.text("1"))
            case "bytes" | "json":
                return _gives_up(w, f"a list of {type_.kind}", "leave the column out")
            case "text" | "null" | "unknown":
                return tree
            case _:
                return w.cast(tree, of.named(type_))

    return render


def rows(
    of: Words, element: Callable[[Writer, int], Tree], key: Callable[[Writer], Tree], source: Callable[..., Tree]
) -> tuple[Callable[..., Tree], Callable[..., Tree]]:
    """How bound rows and bound lists are read. `element`: the n-th value of a row; `source`: what gives the rows, each
    a list of values (or a value, if `flat`)."""
    value_of = part(of)

    def relation(w: Writer, bound: plan.Rows, numbered: str | None, apart: bool) -> Tree:
        columns = [(value_of(w, f.type, element(w, i)), f.name) for i, f in enumerate(bound.fields)]
        if numbered is not None or not columns:
            columns.append((key(w), numbered or "com_n"))
        return w.picked(columns, source(w, w.bind(bound), False))

    def values(w: Writer, many: plan.Many, target: Type) -> Tree:
        return w.picked([(value_of(w, many.type, element(w, -1)), "value")], source(w, w.bind(many), True))

    return relation, values


def bound(of: Words) -> Callable[[Writer, Type, Tree], Tree]:
    """Parameters whose types a driver could mistake, cast to them."""

    def render(w: Writer, type_: Type, tree: Tree) -> Tree:
        return w.cast(tree, of.named(type_)) if type_.kind in ("decimal", "float", "date", "timestamp") else tree

    return render


# ---------------------------------------------------------------- the engine


def reader(
    name: str,
    title: str,
    of: Words,
    read: tuple[Callable[..., Tree], Callable[..., Tree]],
    average: Callable[[Writer, Aggregation, list[Tree]], Tree],
    functions: Mapping[str, Render],
    *,
    string_agg: Callable[[Writer, Aggregation, list[Tree]], Tree] = listed,
    length: str = "length",
    remainder: str = "mod",
    escape: bool = True,
    **more: Any,
) -> Engine:
    """The table of an engine that is only read. `functions` are those that it says otherwise than the others."""
    double = of.named(Type("float"))
    common: dict[str, Render] = {
        "/": _divide(of),
        "%": _remainder(of, remainder),
        "round": t.own_type(_round(of)),
        "floor": t.own_type(lambda w, e: w.cast(w.call("floor", w.expr(e.args[0])), of.named(e.type))),
        "ceil": t.own_type(lambda w, e: w.cast(w.call("ceil", w.expr(e.args[0])), of.named(e.type))),
        "sign": t.called("sign", of.named(Type("int"))),
        "sqrt": t.in_doubles("sqrt", double, least="0"),
        "ln": t.in_doubles("ln", double, least="0", above=True),
        "exp": t.in_doubles("exp", double),
        "power": t.power(double),
        "least": t.of_all("least"),
        "greatest": t.of_all("greatest"),
        "upper": t.upper,
        "length": t.called(length),
        "substr": t.substr(of.named(Type("int")), of.named(Type("text"))),
        "left": _end("left", length),
        "right": _end("right", length),
        "trim": _trimmed(of, "trim"),
        "ltrim": _trimmed(of, "ltrim"),
        "rtrim": _trimmed(of, "rtrim"),
        "replace": _replace,
        "position": lambda w, e: w.call("strpos", w.expr(e.args[1]), w.expr(e.args[0])),
        "like": _like(escape, False),
        "ilike": _like(escape, True),
        **{unit: _field(of, unit) for unit in ("year", "quarter", "month", "day", "hour", "minute", "second")},
        "weekday": _field(of, "weekday"),
        "week": _field(of, "week"),
        "date_trunc": _trunc(of),
        "date_diff": _diff(of),
        "add_period": add_period(of),
        "add_days": _add_days(of),
        "json_get": lacks("json_get", "keep what is asked for in a column of its own"),
        **functions,
    }
    relation, values = read
    settled = more.pop("settle", lambda w, e, tree: tree)
    more.setdefault("literal", t.literals(of.named))
    return Engine(
        name,
        title,
        name,
        common,
        {"sum": t.sums(of.named), "avg": _mean(of, average), "string_agg": string_agg, "stddev": _stddev(of)},
        _cast(of),
        settled,
        relation,
        values,
        nothing,
        nothing,
        nothing,
        nothing,
        nothing,
        nothing,
        2**63 - 1,
        38,
        lambda w, tree: tree,
        bound=bound(of),
        typed=True,
        counts=False,
        writes=False,
        **more,
    )
