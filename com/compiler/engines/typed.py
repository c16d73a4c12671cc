"""What engines with types of their own have in common: all but SQLite."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from functools import reduce

from com.compiler import ir
from com.compiler.engines import Aggregation, Render, Tree, Writer
from com.schema import Type
from com.values import MIN_INT

Named = Callable[[Type], str]
"""Names a type in the engine's words."""

Collate = Callable[[Writer, Type, Tree], Tree]


def constant(e: ir.Expr) -> object:
    return e.value if isinstance(e, ir.Constant) else None


def called(name: str, to: str = "") -> Render:
    """A call of another name, its result cast."""

    def render(w: Writer, e: ir.Apply) -> Tree:
        tree = w.call(name, *[w.expr(a) for a in e.args])
        return w.cast(tree, to) if to else tree

    return render


def unless_zero(w: Writer, tree: Tree) -> Tree:
    return w.call("nullif", tree, w.number(0))


def both(w: Writer, *conditions: Tree) -> Tree:
    return reduce(lambda a, b: w.binary("and", a, b), conditions)


def where(w: Writer, condition: Tree, tree: Tree) -> Tree:
    """The tree where the condition holds, else null."""
    return w.case([(condition, tree)], None)


def literals(
    named: Named, narrow: bool = False, blob: Callable[[Writer, str], Tree] | None = None
) -> Callable[[Writer, object, Type], Tree | None]:
    """Constants that need to be told their type. `blob` makes bytes of hexadecimal text, where
    bytes and JSON are types of the engine's own."""

    def literal(w: Writer, value: object, type_: Type) -> Tree | None:
        match value:
            case None if type_.kind not in ("null", "unknown", "interval"):
                return w.cast(w.null(), named(type_))
            case datetime():
                return w.cast(w.text(value.isoformat(" ")), named(type_))
            case date():
                return w.cast(w.text(value.isoformat()), named(type_))
            case bool():
                return None
            case float() if value - value == 0:
                return w.cast(w.text(repr(value)), named(type_))
            case int() if value == MIN_INT:
                return w.cast(w.text(str(value)), named(type_))
            case str() if type_.kind == "json" and blob is not None and value.isprintable():
                return w.cast(w.text(value), named(type_))
            case bytes() if blob is not None:
                return blob(w, value.hex())
            case Decimal() if narrow and not value.as_tuple().exponent:
                return w.cast(w.number(format(value, "f")), named(type_))
            case _:
                return None

    return literal


def bounds(named: Named) -> Callable[[Writer, Type, Tree], Tree]:
    """Parameters, cast to their types."""
    return lambda w, type_, tree: tree if type_.kind in ("null", "unknown") else w.cast(tree, named(type_))


# ---------------------------------------------------------------- functions


def rest(w: Writer, left: Tree, right: Tree, trunc: str, *digits: Tree) -> Tree:
    """The remainder of floats, by operations that each engine does alike."""
    whole = w.call(trunc, w.binary("/", left, unless_zero(w, right)), *digits)
    return w.binary("-", left, w.binary("*", whole, right))


def is_distinct(w: Writer, e: ir.Apply) -> Tree:
    return w.binary("is distinct from", w.expr(e.args[0]), w.expr(e.args[1]))


def own_type(render: Render) -> Render:
    """For an int nothing is to do."""
    return lambda w, e: w.expr(e.args[0]) if e.args[0].type.kind == "int" and len(e.args) == 1 else render(w, e)


def extreme(name: str, collate: Collate) -> Render:
    """`least` and `greatest`, which leave out nulls."""

    def render(w: Writer, e: ir.Apply) -> Tree:
        if len(e.args) == 1:
            return w.expr(e.args[0])
        return w.call(name, *[collate(w, a.type, w.expr(a)) for a in e.args])

    return render


def of_all(name: str) -> Render:
    """`least` and `greatest`, where they would be null if an argument is: each null gives way to the others."""

    def render(w: Writer, e: ir.Apply) -> Tree:
        if len(e.args) == 1:
            return w.expr(e.args[0])
        sides = [w.expr(a) for a in e.args]
        if not any(a.nullable for a in e.args):
            return w.call(name, *sides)
        return w.call(name, *[w.call("coalesce", *sides[i:], *sides[:i]) for i in range(len(sides))])

    return render


def upper(w: Writer, e: ir.Apply) -> Tree:
    """`upper`, where each letter stays one: those that become two or three are written out before."""
    tree = w.expr(e.args[0])
    for letter, capitals in _SEVERAL.items():
        tree = w.call("replace", tree, w.text(letter), w.text(capitals))
    return w.call("upper", tree)


_SEVERAL = {c: c.upper() for c in "ßŉǰﬀﬁﬂﬃﬄﬅﬆ"}


def _without_backslashes(w: Writer, text: Tree) -> Tree:
    return w.call("rtrim", text, w.text("\\"))


def like(
    lower: Callable[[Writer, Tree], Tree] | None,
    collate: Collate,
    cut: Callable[[Writer, Tree], Tree] = _without_backslashes,
) -> Render:
    """`lower`: how both sides are brought to one case; `cut`: a text without the backslashes at its end."""

    def render(w: Writer, e: ir.Apply) -> Tree:
        text, pattern = (collate(w, a.type, w.expr(a)) for a in e.args)
        if lower is not None:
            text, pattern = lower(w, text), lower(w, pattern)
        made = w.binary("escape", w.binary("like", text, pattern), w.text("\\"))
        if isinstance(constant(e.args[1]), str):
            return made
        ended = w.call("length", cut(w, pattern))
        odd = w.binary("=", w.binary("%", w.binary("-", w.call("length", pattern), ended), w.number(2)), w.number(1))
        return w.case([(odd, w.binary("<>", text, text))], made)  # what a backslash at the end means, differs

    return render


NO_LENGTH = "no length: "
"""What the runtime knows a length below zero by."""


def in_calendar(w: Writer, type_: Type, named: Named, tree: Tree, outside: Tree) -> Tree:
    """A date or timestamp that was computed; `outside`, which fails, if it is none of the years 1 to 9999."""
    last = "9999-12-31" if type_.kind == "date" else "9999-12-31 23:59:59.999999"
    low, high = (w.cast(w.text(end), named(type_)) for end in ("0001-01-01", last))
    return w.case([(w.binary("or", w.binary("<", tree, low), w.binary(">", tree, high)), outside)], tree)


def in_doubles(name: str, double: str, *, least: str = "", above: bool = False) -> Render:
    """A function of doubles, null below (or at) a bound."""

    def render(w: Writer, e: ir.Apply) -> Tree:
        tree = w.cast(w.expr(e.args[0]), double)
        if not least:
            return w.call(name, tree)
        return where(w, w.binary(">" if above else ">=", tree, w.number(least)), w.call(name, tree))

    return render


def power(double: str) -> Render:
    def render(w: Writer, e: ir.Apply) -> Tree:
        x, y = (w.cast(w.expr(a), double) for a in e.args)
        zero, made = w.number(0), w.call("power", x, y)
        known = constant(e.args[1].operand if isinstance(e.args[1], ir.Cast) else e.args[1])
        if isinstance(known, int | Decimal):
            fits = [w.binary(">=", x, zero)] * (known != int(known)) + [w.binary("<>", x, zero)] * (known < 0)
            return where(w, both(w, *fits), made) if fits else made
        whole = w.binary("or", w.binary(">=", x, zero), w.binary("=", y, w.call("floor", y)))
        fit = w.binary("or", w.binary("<>", x, zero), w.binary(">=", y, zero))
        return where(w, both(w, whole, fit), made)

    return render


MOST = 2**31 - 1
"""No text has so many letters: counts beyond it, which some engines cannot take, mean the same as it."""


def counted(w: Writer, e: ir.Expr) -> Tree:
    """A count of letters or a place, as a number of 32 bits."""
    given, tree = constant(e), w.expr(e)
    if isinstance(given, int):
        return tree if abs(given) <= MOST else w.number(MOST if given > 0 else -MOST)
    most, least = w.number(MOST), w.number(-MOST)
    return w.case([(w.binary(">", tree, most), most), (w.binary("<", tree, least), least)], tree)


def with_counts(name: str, to: str = "") -> Render:
    """A function of a text whose other arguments are counts. `to`: the type that it wants them of."""

    def render(w: Writer, e: ir.Apply) -> Tree:
        counts = [counted(w, a) for a in e.args[1:]]
        known = [isinstance(constant(a), int) for a in e.args[1:]]
        if to:
            counts = [c if k else w.cast(c, to) for c, k in zip(counts, known, strict=True)]
        return w.call(name, w.expr(e.args[0]), *counts)

    return render


def substr(whole: str, text_: str) -> Render:
    """A part of a text, of which what lies before the first letter is not there. A length below zero becomes a text
    that is no number: the engine's failure is told in com's words."""

    def render(w: Writer, e: ir.Apply) -> Tree:
        made = part(w, e)
        length = constant(e.args[2]) if len(e.args) > 2 else 0
        if isinstance(length, int) and length >= 0:
            return made
        count = w.expr(e.args[2])
        failed = w.cast(w.cast(w.binary("||", w.text(NO_LENGTH), w.cast(count, text_)), whole), text_)
        return w.case([(w.binary("<", count, w.number(0)), failed)], made)

    def part(w: Writer, e: ir.Apply) -> Tree:
        name = "substr"
        text, start = w.expr(e.args[0]), counted(w, e.args[1])
        given, one, zero = constant(e.args[1]), w.number(1), w.number(0)
        if isinstance(given, int) and given > 0:
            return w.call(name, text, start, *[counted(w, a) for a in e.args[2:]])
        before = w.binary("<", start, one)
        if len(e.args) < 3:
            return w.case([(before, text)], w.call(name, text, start))
        count = counted(w, e.args[2])
        end = w.binary("-", w.binary("+", start, count), one)
        part = w.case(
            [
                (w.binary(">", end, zero), w.call(name, text, one, end)),
                (both(w, w.binary("<=", end, zero), w.is_null(text, True)), w.text("")),
            ],
            None,
        )
        return w.case([(before, part)], w.call(name, text, start, count))

    return render


def format_date(name: str, letters: dict[str, str], quote: Callable[[str], str]) -> Render:
    """`letters`: the engine's patterns for com's."""

    def render(w: Writer, e: ir.Apply) -> Tree:
        form = constant(e.args[1])
        if not isinstance(form, str):
            w.unsupported("a computed format", "write the format as a text")
            return w.null()
        made, at = "", 0
        while at < len(form):
            if form[at] == "%" and at + 1 < len(form) and form[at + 1] in letters:
                made, at = made + letters[form[at + 1]], at + 2
            else:
                made, at = made + quote(form[at]), at + 1
        time = w.expr(e.args[0])
        if not made:  # engines take an empty format for none
            return w.case([(w.is_null(time, True), w.text(""))], None)
        return w.call(name, time, w.text(made))

    return render


MYSQL_LETTERS = {"Y": "%Y", "m": "%m", "d": "%d", "H": "%H", "M": "%i", "S": "%s", "%": "%%"}
"""The patterns of MySQL's `date_format`, and of whoever took it over."""


def doubled_percent(letter: str) -> str:
    return "%%" if letter == "%" else letter


def from_the_end(path: str) -> bool:
    """Whether a path of JSON has a place below zero, which some engines count from an array's end."""
    return any(part[:1] == "-" and part[1:].isdecimal() for part in path.split("."))


def months_between(w: Writer, unit: str, start: Tree, end: Tree, part: Callable[[str, Tree], Tree]) -> Tree:
    """How many years, quarters or months begin between two times."""
    count = {"year": 1, "quarter": 4, "month": 12}[unit]

    def counted(time: Tree) -> Tree:
        years = w.binary("*", part("year", time), w.number(count))
        return years if count == 1 else w.binary("+", years, part(unit, time))

    return w.binary("-", counted(end), counted(start))


# ---------------------------------------------------------------- aggregates


def is_distinct_call(e: Aggregation) -> bool:
    return isinstance(e, ir.Aggregate) and e.distinct


def sums(to: Named) -> Callable[[Writer, Aggregation, list[Tree]], Tree]:
    """Sums of ints stay ints, and overflow."""

    def render(w: Writer, e: Aggregation, args: list[Tree]) -> Tree:
        tree = w.aggregated(e, "sum", args, is_distinct_call(e))
        return w.cast(tree, to(e.type)) if e.type.kind == "int" else tree

    return render


def order_of(e: ir.Aggregate) -> tuple[ir.OrderKey, ...]:
    """The order in which texts are joined: each kept once, that of their own if no other is given."""
    return (ir.OrderKey(e.args[0], False, False),) if e.distinct and not e.order else e.order


def no_window(w: Writer, e: Aggregation, name: str) -> bool:
    if isinstance(e, ir.Window):
        w.unsupported(f"{name} over a window", "aggregate in a step before, and join its rows")
    return isinstance(e, ir.Window)


# ---------------------------------------------------------------- conversions

_NUMBER = r" *[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *"
_YEAR = r"([0-9]{3}[1-9]|[0-9]{2}[1-9][0-9]|[0-9][1-9][0-9]{2}|[1-9][0-9]{3})"
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
_TIME = rf" *{_YEAR}-[0-9]{{2}}-[0-9]{{2}}([ T]{_CLOCK})? *"
_NUL = r"(^|[^\\])(\\\\)*\\u0000"
_STRING = r'"([^"\\]|\\.)*"'
_LOOSE = r"[nN][aA][nN]|[iI][nN][fF]|,\s*[\]}]"
_FORMS = {
    "int": r" *[+-]?[0-9]+ *",
    "float": _NUMBER,
    "decimal": _NUMBER,
    "bool": r" *([tT][rR][uU][eE]|[fF][aA][lL][sS][eE]) *",
    "date": _TIME,
    "timestamp": _TIME,
}


def whole(w: Writer, form: Tree) -> Tree:
    """A pattern that must fit a text from end to end."""
    return w.binary("||", w.binary("||", w.text("^("), form), w.text(")$"))


def strict(w: Writer, tree: Tree, target: Type, matches: Callable[[Tree, Tree], Tree]) -> Tree:
    """A text that will be cast: what com does not read is made one that no engine reads either."""
    form = _FORMS.get(target.kind)
    if form is None:
        return tree
    return w.case([(matches(tree, w.text(form)), tree)], w.binary("||", w.text("no value: "), tree))


def strict_json(
    w: Writer, tree: Tree, valid: Tree, lacks: Callable[[Tree, str], Tree], failed: Tree, loose: bool = False
) -> Tree:
    """A text that will be cast to JSON, or `failed` if com does not read it. `valid`: the engine takes it; `lacks`: a
    pattern is nowhere in a text; `loose`: the engine takes infinite numbers, and commas behind the last value."""
    fits = [valid, lacks(tree, _NUL)]
    if loose:
        fits.append(lacks(w.call("regexp_replace", tree, w.text(_STRING), w.text(""), w.text("g")), _LOOSE))
    return w.case([(both(w, *fits), tree)], failed)


def short_exponent(w: Writer, tree: Tree) -> Tree:
    """`1e7` for `1e+07`."""
    for old, new in (("e+0", "e"), ("e-0", "e-"), ("e+", "e")):
        tree = w.call("replace", tree, w.text(old), w.text(new))
    return tree


def quoted(w: Writer, tree: Tree) -> Tree:
    """A text as the literal of one: so row images hold what com has no type for."""
    doubled = w.call("replace", tree, w.text("'"), w.text("''"))
    return w.binary("||", w.binary("||", w.text("'"), doubled), w.text("'"))


def fraction(w: Writer, tree: Tree) -> Tree:
    """`.250000`, or nothing where it is zero."""
    return w.call("coalesce", w.call("nullif", tree, w.text(".000000")), w.text(""))
