"""What SQLite lacks, as functions that statements of plans use: a name, how many arguments, what it does.

Null in, null out. Decimals are SQLite's numbers, dates and timestamps texts, bools 0 and 1. A value that a function
cannot take is a `Refused`: its message is what the run fails with.
"""

from __future__ import annotations

import calendar
import json
import math
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from functools import cmp_to_key
from typing import Any

from com.diagnostics import CannotConvert, FunctionFailed, Inexact, Message, Overflow
from com.runtime.canon import at_scale, float_text
from com.schema import Type
from com.values import FORMS, MAX_INT, MIN_INT, read_json, read_value

_WIDE = Context(prec=400, rounding=ROUND_HALF_UP)
_DIGITS = re.compile(r"[+-]?[0-9]+")
_LENGTHS = {
    "week": timedelta(weeks=1),
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
}


class Refused(Exception):
    """A value that a function cannot take."""

    def __init__(self, message: Message) -> None:
        super().__init__(message.code)
        self.message = message


def _exact(number: float) -> Decimal:
    """The decimal that a number shows."""
    return Decimal(number) if isinstance(number, int) else Decimal(repr(number))


def _whole(number: Decimal) -> int:
    if not MIN_INT <= number <= MAX_INT:
        raise Refused(Overflow(f"{number:.20g} is no int of 64 bits"))
    return int(number)


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise Refused(Overflow("a float became infinite"))
    return number


# ---------------------------------------------------------------- numbers


def _round(x: Any, digits: int) -> Any:
    if isinstance(x, int) and digits >= 0:
        return x
    rounded = _exact(x).quantize(Decimal(1).scaleb(-digits), context=_WIDE)
    return _whole(rounded) if isinstance(x, int) else float(rounded)


def _int(x: Any) -> Any:
    if isinstance(x, float):
        if not -(2.0**63) <= x < 2.0**63:
            raise Refused(Overflow("an int left 64 bits"))
        if x == int(x):
            return int(x)
    return x


def _decimal(x: Any, scale: int) -> Any:
    """A number at a decimal's scale; refused when a float could not keep its digits."""
    if isinstance(x, int):
        return x
    scaled = at_scale(_exact(_finite(x)), scale)
    if len(scaled.normalize(_WIDE).as_tuple().digits) > 15:
        raise Refused(Inexact(format(scaled, "f"), "SQLite"))
    return float(scaled)


def _limit(count: int) -> int:
    if count < 0:
        raise Refused(Overflow("a limit is below zero"))
    return count


def _fit(x: Any, precision: int, scale: int) -> Any:
    rounded = _round(x, scale)
    if abs(rounded) >= 10 ** (precision - scale):
        raise Refused(Overflow(f"{float_text(float(rounded))} is too large for decimal({precision}, {scale})"))
    return rounded


def _floor(x: Any) -> Any:
    return x if isinstance(x, int) else float(_exact(x).to_integral_value(ROUND_FLOOR))


def _ceil(x: Any) -> Any:
    return x if isinstance(x, int) else float(_exact(x).to_integral_value(ROUND_CEILING))


def _rest(x: float, y: float) -> float | None:
    """The remainder, by the operations of the other engines."""
    if not y:
        return None
    try:
        return _finite(float(x) - math.trunc(float(x) / float(y)) * float(y))
    except OverflowError:
        raise Refused(Overflow(f"{x} % {y}")) from None


def _sqrt(x: float) -> float | None:
    return math.sqrt(x) if x >= 0 else None


def _ln(x: float) -> float | None:
    return math.log(x) if x > 0 else None


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        raise Refused(Overflow(f"exp({x})")) from None


def _power(x: float, y: float) -> float | None:
    try:
        return _finite(math.pow(x, y))
    except ValueError:
        return None
    except OverflowError:
        raise Refused(Overflow(f"power({x}, {y})")) from None


# ---------------------------------------------------------------- text


def _left(text: str, count: int) -> str:
    return text[:count]


def _right(text: str, count: int) -> str:
    if count > 0:
        return text[-count:]
    return text[-count:] if count else ""


def _position(part: str, text: str) -> int:
    return text.find(part) + 1


def _substr(text: str, start: int, *count: int) -> str:
    if not count:
        return text[max(start - 1, 0) :]
    if count[0] < 0:
        raise Refused(FunctionFailed("substr", f"a length of {count[0]}", "the length is 0 or more"))
    return text[max(start - 1, 0) : max(start - 1 + count[0], 0)]


# ---------------------------------------------------------------- time


def _time(text: Any) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except (ValueError, TypeError):
        raise Refused(CannotConvert(_quoted(text), "timestamp", FORMS["timestamp"])) from None


def _date_like(text: str, value: datetime) -> str:
    return value.date().isoformat() if len(text) == 10 else value.isoformat(" ")


def _add(text: str, months: int, days: int, microseconds: int) -> str:
    value = _time(text)
    try:
        if months:
            month = value.year * 12 + value.month - 1 + months
            year, month = month // 12, month % 12 + 1
            value = value.replace(year=year, month=month, day=min(value.day, calendar.monthrange(year, month)[1]))
        value += timedelta(days=days, microseconds=microseconds)
    except (ValueError, OverflowError, calendar.IllegalMonthError):
        raise Refused(Overflow(f"{text} with this span added is no date of the years 1 to 9999")) from None
    return value.isoformat(" ") if microseconds else _date_like(text, value)


def _floor_time(unit: str, value: datetime) -> datetime:
    midnight = value.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "year":
            return midnight.replace(month=1, day=1)
        case "quarter":
            return midnight.replace(month=(value.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            return midnight.replace(day=1)
        case "week":
            return midnight - timedelta(days=value.weekday())
        case "day":
            return midnight
        case "hour":
            return value.replace(minute=0, second=0, microsecond=0)
        case "minute":
            return value.replace(second=0, microsecond=0)
        case _:
            return value.replace(microsecond=0)


def _trunc(unit: str, text: str) -> str:
    return _date_like(text, _floor_time(unit, _time(text)))


def _diff(unit: str, start: str, end: str) -> int:
    a, b = _floor_time(unit, _time(start)), _floor_time(unit, _time(end))
    months = (b.year - a.year) * 12 + b.month - a.month
    match unit:
        case "year":
            return b.year - a.year
        case "quarter":
            return months // 3
        case "month":
            return months
        case _:
            return (b - a) // _LENGTHS[unit]


def _part(unit: str, text: str) -> int:
    value = _time(text)
    match unit:
        case "quarter":
            return (value.month - 1) // 3 + 1
        case "weekday":
            return value.isoweekday()
        case "week":
            return value.isocalendar().week
        case _:
            return int(getattr(value, unit))


def _format(text: str, form: str) -> str:
    value = _time(text)
    parts = {"Y": f"{value.year:04}", "m": f"{value.month:02}", "d": f"{value.day:02}", "%": "%"}
    parts |= {"H": f"{value.hour:02}", "M": f"{value.minute:02}", "S": f"{value.second:02}"}
    pieces = form.split("%%")
    for i, piece in enumerate(pieces):
        for letter, part in parts.items():
            piece = piece.replace(f"%{letter}", part)
        pieces[i] = piece
    return "%".join(pieces)


# ---------------------------------------------------------------- conversions


def _quoted(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def _cast(kind: str, x: Any) -> Any:
    try:
        return _CASTS[kind](x)
    except (ValueError, TypeError, AttributeError):
        raise Refused(CannotConvert(_quoted(x), kind, FORMS.get(kind, kind))) from None


def _cast_int(x: Any) -> int:
    if isinstance(x, str):
        digits = x.strip(" ")
        if _DIGITS.fullmatch(digits):
            return _whole(Decimal(digits))
        return int(str(read_value(digits, Type("int"))))
    return _whole(_exact(x).quantize(Decimal(1), context=_WIDE))


def _cast_number(x: Any) -> Any:
    if not isinstance(x, str):
        return x
    number = read_value(x.strip(" "), Type("float"))
    assert isinstance(number, float)
    if number == int(_finite(number)) and "." not in x and "e" not in x.lower():
        return _whole(Decimal(x.strip(" ")))
    return number


def _cast_float(x: Any) -> float:
    return _finite(float(str(read_value(x.strip(" "), Type("float"))) if isinstance(x, str) else x))


def _cast_date(x: str) -> str:
    value = read_value(x.strip(" "), Type("timestamp"))
    assert isinstance(value, datetime)
    return value.date().isoformat()


def _cast_timestamp(x: str) -> str:
    value = read_value(x.strip(" "), Type("timestamp"))
    assert isinstance(value, datetime)
    return value.isoformat(" ")


def _cast_bool(x: Any) -> int:
    if isinstance(x, str):
        return int(bool(read_value(x.strip(" "), Type("bool"))))
    return int(bool(x))


def _cast_text(x: Any) -> str:
    if isinstance(x, bytes):
        return x.hex()
    return float_text(x) if isinstance(x, float) else str(x)


def _cast_json(x: Any) -> str:
    read_json(x)
    return str(x)


_CASTS: dict[str, Callable[[Any], Any]] = {
    "int": _cast_int,
    "float": _cast_float,
    "decimal": _cast_number,
    "date": _cast_date,
    "timestamp": _cast_timestamp,
    "bool": _cast_bool,
    "text": _cast_text,
    "json": _cast_json,
    "bytes": bytes.fromhex,
}


def _text(kind: str, scale: int, x: Any) -> str:
    match kind:
        case "decimal":
            return format(at_scale(_exact(x), scale), "f")
        case "bool":
            return "true" if x else "false"
        case "float":
            return float_text(float(x))
        case _:
            return _cast_text(x)


def _json_get(text: str, path: str) -> str | None:
    try:
        value = json.loads(text)
    except ValueError:
        raise Refused(CannotConvert(_quoted(text), "json", FORMS["json"])) from None
    for name in path.split("."):
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# ---------------------------------------------------------------- aggregates


class _StringAgg:
    """Values joined by a separator, ordered by keys. The spec has two letters a key: a or d (descending), and f or n
    (nulls first or last, whichever the direction); a `u` before them keeps each value once, in its own order if there
    are no keys."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, tuple[Any, ...]]] = []
        self.separator = ""
        self.spec: list[str] = []

    def step(self, value: str | None, separator: str | None, spec: str, *keys: Any) -> None:
        if not self.rows:
            self.spec = spec.split(",") if spec else []
        if value is not None:
            self.separator = separator or ""
            self.rows.append((value, keys))

    def finalize(self) -> str | None:
        if not self.rows:
            return None
        unique = self.spec[:1] == ["u"]
        if unique:
            self.spec = self.spec[1:]
        if self.spec:
            self.rows.sort(key=cmp_to_key(self._compare))
        elif unique:
            self.rows.sort()
        values = [value for value, _ in self.rows]
        return self.separator.join(dict.fromkeys(values) if unique else values)

    def _compare(self, left: tuple[str, tuple[Any, ...]], right: tuple[str, tuple[Any, ...]]) -> int:
        for a, b, form in zip(left[1], right[1], self.spec, strict=True):
            if a == b:
                continue
            if a is None or b is None:
                first = -1 if a is None else 1
                return first if "f" in form else -first
            return (-1 if a < b else 1) * (-1 if form[0] == "d" else 1)
        return 0


class _Stddev:
    """The standard deviation of a sample; null for fewer than two values."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def step(self, value: float | None) -> None:
        if value is not None:
            self.values.append(float(value))

    def finalize(self) -> float | None:
        count = len(self.values)
        if count < 2:
            return None
        mean = math.fsum(self.values) / count
        return math.sqrt(math.fsum((v - mean) ** 2 for v in self.values) / (count - 1))


FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "com_round": (2, _round),
    "com_exact": (1, repr),
    "com_fit": (3, _fit),
    "com_limit": (1, _limit),
    "com_int": (1, _int),
    "com_decimal": (2, _decimal),
    "com_floor": (1, _floor),
    "com_ceil": (1, _ceil),
    "com_rest": (2, _rest),
    "com_sqrt": (1, _sqrt),
    "com_ln": (1, _ln),
    "com_exp": (1, _exp),
    "com_power": (2, _power),
    "com_lower": (1, str.lower),
    "com_upper": (1, str.upper),
    "com_left": (2, _left),
    "com_right": (2, _right),
    "com_position": (2, _position),
    "com_substr": (-1, _substr),
    "com_bytes": (1, bytes.fromhex),
    "com_add": (4, _add),
    "com_trunc": (2, _trunc),
    "com_diff": (3, _diff),
    "com_part": (2, _part),
    "com_format": (2, _format),
    "com_cast": (2, _cast),
    "com_text": (3, _text),
    "com_json_get": (2, _json_get),
}
"""Name: how many arguments (-1 for any), and the function."""

AGGREGATES: dict[str, tuple[int, type[Any]]] = {
    "com_string_agg": (-1, _StringAgg),
    "com_stddev": (1, _Stddev),
}


def register(driver: Any, reasons: list[Message]) -> None:
    """Makes the functions known to a connection. What one of them refuses is put into `reasons`."""
    for name, (count, function) in FUNCTIONS.items():
        driver.create_function(name, count, _guarded(name, function, reasons), deterministic=True)
    for name, (count, kind) in AGGREGATES.items():
        driver.create_aggregate(name, count, kind)


def _guarded(name: str, function: Callable[..., Any], reasons: list[Message]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        if None in args:
            return None
        try:
            return function(*args)
        except Refused as refused:
            reasons.append(refused.message)
            raise
        except Exception:
            given = ", ".join(_quoted(a) for a in args)
            reasons.append(FunctionFailed(name.removeprefix("com_"), given, "leave such rows out with where"))
            raise

    return call
