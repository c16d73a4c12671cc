"""Values written as text: how each type is read, in a program's literals and in parameters."""

from __future__ import annotations

import json
import math
import re
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from com.plan import Period
from com.schema import Type

MIN_INT, MAX_INT = -(2**63), 2**63 - 1
_DATE = re.compile(r"\d{4}-\d\d-\d\d\Z", re.ASCII)
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?\Z", re.ASCII)
_INT = re.compile(r"[+-]?\d+\Z", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)\Z", re.ASCII)
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z", re.ASCII)
_PERIOD = re.compile(r"\s*([+-]?\d+)\s*(year|quarter|month|week|day|hour|minute|second|microsecond)s?", re.ASCII | re.I)
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_DAYS = {"week": 7, "day": 1}
_MICROSECONDS = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000, "microsecond": 1}

FORMS = {
    "int": "digits, within 64 bits",
    "float": "a number such as 1.5 or 2e3",
    "decimal": "a number such as 12.50",
    "bool": "true or false",
    "date": "a date such as '2023-01-31'",
    "timestamp": "a timestamp such as '2023-01-31 17:30:00'",
    "json": "JSON such as '{\"a\": 1}'",
    "bytes": "hexadecimal digits",
    "interval": "a span such as '3 day' or '1 month'",
    "text": "a text without NUL",
}
"""How a value of each type is written, for messages."""


def read_value(text: str, type_: Type) -> object:
    """The value that a text stands for, of the type's Python class. ValueError if it stands for none."""
    match type_.kind:
        case "int":
            number = int(text) if _INT.match(text) else None
            if number is None or not MIN_INT <= number <= MAX_INT:
                raise ValueError(text)
            return number
        case "float":
            if not _FLOAT.match(text):
                raise ValueError(text)
            return float(text)
        case "decimal":
            return read_decimal(text)
        case "bool":
            if text.lower() not in ("true", "false"):
                raise ValueError(text)
            return text.lower() == "true"
        case "date":
            if not _DATE.match(text):
                raise ValueError(text)
            return date.fromisoformat(text)
        case "timestamp":
            return read_timestamp(text)
        case "json":
            return read_json(text)
        case "bytes":
            return bytes.fromhex(text)
        case "interval":
            return read_period(text)
        case _:
            if "\0" in text:
                raise ValueError(text)
            return text


NUL = re.compile(r"(?<!\\)(\\\\)*\\u0000")
"""NUL as JSON writes it."""


def read_json(text: str) -> object:
    """JSON data in normal form: no NUL, no half of a surrogate pair, no number that is none or infinite."""
    data = normal_json(json.loads(text))
    if NUL.search(json.dumps(data)):
        raise ValueError(text)
    json.dumps(data, ensure_ascii=False).encode()
    return data


def normal_json(data: Any) -> Any:
    """JSON data as every engine keeps it: members in PostgreSQL's order (shorter names first), a number an int if it is
    one of 64 bits, else a float. ValueError for numbers that are none or infinite."""
    match data:
        case dict():
            return {name: normal_json(data[name]) for name in sorted(data, key=_by_length)}
        case list() | tuple():
            return [normal_json(item) for item in data]
        case bool():
            return data
        case int() if not MIN_INT <= data <= MAX_INT:
            return normal_json(float(data))
        case float():
            if not math.isfinite(data):
                raise ValueError(str(data))
            whole = Decimal(repr(data))
            return int(whole) if whole == whole.to_integral_value() and MIN_INT <= whole <= MAX_INT else data
        case _:
            return data


def _by_length(name: str) -> tuple[int, bytes]:
    made = name.encode("utf-8", "surrogatepass")
    return len(made), made


def json_text(data: object) -> str:
    """JSON data as memories keep it: no blanks, every letter itself."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def read_decimal(text: str) -> Decimal:
    """A decimal without an exponent."""
    if not _DECIMAL.match(text):
        raise ValueError(text)
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise ValueError(text) from error


def read_timestamp(text: str) -> datetime:
    """A date, or a date and a time, to the microsecond; a T or a blank between them."""
    match = _TIMESTAMP.match(text)
    if match is None:
        raise ValueError(text)
    day, minutes, seconds, fraction = match.groups()
    return datetime.fromisoformat(f"{day} {minutes or '00:00'}:{seconds or '00'}.{(fraction or '0').ljust(6, '0')}")


def read_period(text: str) -> Period:
    """One or more numbers with their units."""
    months = days = microseconds = at = 0
    while at < len(text.rstrip()):
        match = _PERIOD.match(text, at)
        if match is None:
            raise ValueError(text)
        count, unit = int(match[1]), match[2].lower()
        months += count * _MONTHS.get(unit, 0)
        days += count * _DAYS.get(unit, 0)
        microseconds += count * _MICROSECONDS.get(unit, 0)
        at = match.end()
    if not at:
        raise ValueError(text)
    return Period(months, days, microseconds)
