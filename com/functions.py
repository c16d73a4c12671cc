"""The one table of functions and operators: what each takes, gives, and does with null.

The engines' renderings lie in com.compiler.engines. A parameter is one of: int, number, text, bool, time (date or
timestamp), json, any, same (all such arguments are brought to one type), unit (a literal such as 'month').
"""

from __future__ import annotations

from collections.abc import Callable

from com.node import Node
from com.plan import Field
from com.schema import BOOL, DATE, FLOAT, INT, MAX_PRECISION, TEXT, Type, decimal

Types = tuple[Type, ...]


class Signature(Node):
    """The type of a registered call. `fields` are its result's columns, `card` how many rows it gives; a call without
    `fields` takes both from the shape declared at its step. A parameter may be a Field of a value type, or rows."""

    name: str
    parameters: tuple[Field | RowsField, ...]
    fields: tuple[Field, ...]
    card: str


class RowsField(Node):
    """A parameter that takes a step's rows (columns are matched by name), or with one field and `is_list` a list."""

    name: str
    fields: tuple[Field, ...]
    is_list: bool


class Function(Node):
    """`kind`: scalar, aggregate or window (an aggregate may have `over` too). `required` of the `parameters` must be
    given; the last one repeats if `variadic`. `nulls`: strict (null if an argument is), never, always (may be null
    whatever the arguments), all (null only if all arguments are)."""

    name: str
    kind: str
    parameters: tuple[str, ...]
    result: Callable[[Types], Type]
    nulls: str = "strict"
    required: int = -1
    variadic: bool = False
    shown: str = ""

    @property
    def least(self) -> int:
        return len(self.parameters) if self.required < 0 else self.required


def _always(type_: Type) -> Callable[[Types], Type]:
    return lambda _: type_


def _first(args: Types) -> Type:
    return args[0]


def _second(args: Types) -> Type:
    return args[1]


def common_number(left: Type, right: Type) -> Type:
    """The type both numbers become: float beats decimal beats int."""
    kinds = {left.kind, right.kind}
    if "float" in kinds:
        return FLOAT
    if "decimal" in kinds:
        left, right = as_decimal(left), as_decimal(right)
        scale = max(left.scale, right.scale)
        return decimal(max(left.precision - left.scale, right.precision - right.scale) + scale, scale)
    return INT


def as_decimal(number: Type) -> Type:
    """The decimal type that holds every int, or the decimal itself."""
    return number if number.kind == "decimal" else decimal(19, 0)


def _plus(args: Types) -> Type:
    common = common_number(*args)
    return decimal(common.precision + 1, common.scale) if common.kind == "decimal" else common


def _times(args: Types) -> Type:
    if common_number(*args).kind != "decimal":
        return common_number(*args)
    left, right = as_decimal(args[0]), as_decimal(args[1])
    return decimal(left.precision + right.precision, left.scale + right.scale)


def mean(number: Type) -> Type:
    """The type of an average; a decimal's quotient has the same digits behind the point."""
    return decimal(number.precision + 4, number.scale + 4) if number.kind == "decimal" else FLOAT


def _quotient(args: Types) -> Type:
    common = common_number(*args)
    if common.kind != "decimal":
        return FLOAT
    scale = mean(args[0] if args[0].kind == "decimal" else args[1]).scale
    left, right = map(as_decimal, args)
    return decimal(left.precision - left.scale + right.scale + scale, scale)


def _remainder(args: Types) -> Type:
    return common_number(*args)


def _sum(args: Types) -> Type:
    return decimal(MAX_PRECISION, args[0].scale) if args[0].kind == "decimal" else args[0]


def _whole(args: Types) -> Type:
    return decimal(args[0].precision, 0) if args[0].kind == "decimal" else args[0]


def _mean(args: Types) -> Type:
    return mean(args[0])


_LIST = (
    # aggregates
    Function("count", "aggregate", ("any",), _always(INT), "never", 0, shown="count(*), count(x)"),
    Function("sum", "aggregate", ("number",), _sum, "always"),
    Function("avg", "aggregate", ("number",), _mean, "always"),
    Function("min", "aggregate", ("any",), _first, "always"),
    Function("max", "aggregate", ("any",), _first, "always"),
    Function(
        "string_agg", "aggregate", ("text", "text"), _always(TEXT), "always", shown="string_agg(x, ', ' order by y)"
    ),
    Function("stddev", "aggregate", ("number",), _always(FLOAT), "always"),
    # windows
    Function("row_number", "window", (), _always(INT), "never"),
    Function("rank", "window", (), _always(INT), "never"),
    Function("dense_rank", "window", (), _always(INT), "never"),
    Function("lag", "window", ("same", "int", "same"), _first, "always", 1),
    Function("lead", "window", ("same", "int", "same"), _first, "always", 1),
    Function("first_value", "window", ("any",), _first, "always"),
    Function("last_value", "window", ("any",), _first, "always"),
    # numbers
    Function("abs", "scalar", ("number",), _first),
    Function("round", "scalar", ("number", "int"), _first, "strict", 1),  # the check refines a decimal's scale
    Function("floor", "scalar", ("number",), _whole),
    Function("ceil", "scalar", ("number",), _whole),
    Function("sqrt", "scalar", ("number",), _always(FLOAT), "always"),
    Function("power", "scalar", ("number", "number"), _always(FLOAT), "always"),
    Function("div", "scalar", ("int", "int"), _always(INT), "always"),
    Function("sign", "scalar", ("number",), _always(INT)),
    Function("ln", "scalar", ("number",), _always(FLOAT), "always"),
    Function("exp", "scalar", ("number",), _always(FLOAT), "always"),
    Function("least", "scalar", ("same",), _first, "all", variadic=True),
    Function("greatest", "scalar", ("same",), _first, "all", variadic=True),
    # text
    Function("lower", "scalar", ("text",), _always(TEXT)),
    Function("upper", "scalar", ("text",), _always(TEXT)),
    Function("length", "scalar", ("text",), _always(INT)),
    Function("substr", "scalar", ("text", "int", "int"), _always(TEXT), "strict", 2),
    Function("left", "scalar", ("text", "int"), _always(TEXT)),
    Function("right", "scalar", ("text", "int"), _always(TEXT)),
    Function("trim", "scalar", ("text", "text"), _always(TEXT), "strict", 1),
    Function("ltrim", "scalar", ("text", "text"), _always(TEXT), "strict", 1),
    Function("rtrim", "scalar", ("text", "text"), _always(TEXT), "strict", 1),
    Function("replace", "scalar", ("text", "text", "text"), _always(TEXT)),
    Function("position", "scalar", ("text", "text"), _always(INT), shown="position(part, text)"),
    Function("starts_with", "scalar", ("text", "text"), _always(BOOL)),
    # any type
    Function("coalesce", "scalar", ("same",), _first, "all", variadic=True),
    Function("nullif", "scalar", ("same", "same"), _first, "always"),
    # time
    Function("year", "scalar", ("time",), _always(INT)),
    Function("quarter", "scalar", ("time",), _always(INT)),
    Function("month", "scalar", ("time",), _always(INT)),
    Function("day", "scalar", ("time",), _always(INT)),
    Function("hour", "scalar", ("time",), _always(INT)),
    Function("minute", "scalar", ("time",), _always(INT)),
    Function("second", "scalar", ("time",), _always(INT)),
    Function("weekday", "scalar", ("time",), _always(INT)),
    Function("date_trunc", "scalar", ("unit", "time"), _second),
    Function("date_diff", "scalar", ("unit", "time", "time"), _always(INT), shown="date_diff('day', from, to)"),
    Function("format_date", "scalar", ("time", "format"), _always(TEXT)),
    # json
    Function("json_get", "scalar", ("json", "text"), _always(TEXT), "always", shown="json_get(j, 'a.b')"),
)
FUNCTIONS = {f.name: f for f in _LIST}
"""Every function that a program may name."""

_OPERATORS = (
    Function("+", "scalar", ("number", "number"), _plus),
    Function("-", "scalar", ("number", "number"), _plus),
    Function("*", "scalar", ("number", "number"), _times),
    Function("/", "scalar", ("number", "number"), _quotient, "always"),
    Function("%", "scalar", ("number", "number"), _remainder, "always"),
    Function("negate", "scalar", ("number",), _first),
    Function("||", "scalar", ("text", "text"), _always(TEXT)),
    Function("=", "scalar", ("same", "same"), _always(BOOL)),
    Function("<>", "scalar", ("same", "same"), _always(BOOL)),
    Function("<", "scalar", ("same", "same"), _always(BOOL)),
    Function("<=", "scalar", ("same", "same"), _always(BOOL)),
    Function(">", "scalar", ("same", "same"), _always(BOOL)),
    Function(">=", "scalar", ("same", "same"), _always(BOOL)),
    Function("between", "scalar", ("same", "same", "same"), _always(BOOL)),
    Function("is_distinct", "scalar", ("same", "same"), _always(BOOL), "never"),
    Function("is_null", "scalar", ("any",), _always(BOOL), "never"),
    Function("and", "scalar", ("bool", "bool"), _always(BOOL)),
    Function("or", "scalar", ("bool", "bool"), _always(BOOL)),
    Function("not", "scalar", ("bool",), _always(BOOL)),
    Function("like", "scalar", ("text", "text"), _always(BOOL)),
    Function("ilike", "scalar", ("text", "text"), _always(BOOL)),
    Function("add_period", "scalar", ("time", "period"), _first),  # the check makes a timestamp of date + hours
    Function("add_days", "scalar", ("time", "int"), _first),
)
OPERATORS = {f.name: f for f in _OPERATORS}
"""Operators, by the names that ir.Apply gives them."""

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
"""What date_trunc and date_diff count in; a week begins on Monday."""

FORMATS = frozenset("YmdHMS%")
"""The letters that format_date knows behind a %."""

COMMON = {"bool": BOOL, "text": TEXT, "int": INT, "date": DATE}
"""The types that a parameter of this name wants exactly."""
