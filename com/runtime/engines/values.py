"""How values travel: as a driver takes them, in bound JSON, and back as typed values.

A bound list is a JSON array, bound rows are a JSON array of arrays; how values are written there, com.plan.Many says.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from com.diagnostics import BadStored, CannotHold, Overflow
from com.plan import Field
from com.runtime.canon import at_scale, float_text, timestamp_text, to_json
from com.runtime.engines import EngineError, Row
from com.schema import Type
from com.values import MAX_INT, MIN_INT, json_text, normal_json, read_value

# ---------------------------------------------------------------- to the driver


def checked_text(value: str) -> str:
    """A text, which no memory can hold with NUL in it."""
    if "\0" in value:
        raise EngineError("function", "", message=CannotHold("a text with NUL", "NUL ends a text", "remove it"))
    return value


def checked_float(value: Any) -> float:
    """A finite float."""
    if not math.isfinite(value):
        message = CannotHold(str(value), "it is no number", "leave it out, or use null")
        raise EngineError("function", "", message=message)
    return float(value) + 0.0


def checked_int(value: Any) -> int:
    """An int of 64 bits."""
    if not MIN_INT <= value <= MAX_INT:
        raise EngineError("overflow", "", message=Overflow(f"{value} is no int of 64 bits"))
    return int(value)


_ENCODE: dict[str, Callable[[Any], Any]] = {
    "int": checked_int,
    "text": checked_text,
    "decimal": lambda v: v if isinstance(v, Decimal) else Decimal(v),
    "float": checked_float,
    "bool": bool,
    "json": lambda v: checked_text(json_text(v)),
}


def encode(value: Any, type_: Type) -> Any:
    """A value for a driver of an engine that has all types: as it is."""
    if value is None or type_.kind not in _ENCODE:
        return value
    return _ENCODE[type_.kind](value)


Words = Mapping[str, Callable[[Any], str]]

WORDS: Words = {
    "int": str,
    "text": lambda v: to_json(checked_text(v)),
    "decimal": lambda v: f'"{v if isinstance(v, Decimal) else Decimal(v):f}"',
    "float": lambda v: f'"{checked_float(v)!r}"',
    "bool": lambda v: "1" if v else "0",
    "date": lambda v: f'"{v}"',
    "timestamp": lambda v: f'"{timestamp_text(v)}"',
    "bytes": lambda v: f'"{v.hex()}"',
    "json": lambda v: to_json(json_text(v)),
    "null": lambda v: "null",
    "unknown": to_json,
}
"""How a value that is not null is written in bound JSON."""
_NATIVE = frozenset({"int", "text"})


def encode_list(values: Sequence[Any], type_: Type, words: Words = WORDS) -> str:
    """A list as one bound value."""
    word = words[type_.kind]
    return "[" + ",".join([word(v) if v is not None else "null" for v in values]) + "]"


def encode_rows(rows: Sequence[Row], fields: Sequence[Field], words: Words = WORDS) -> str:
    """Rows as one bound value."""
    if all(f.type.kind in _NATIVE for f in fields):
        text = to_json(rows)
        if "\\u0000" not in text:
            return text
    makers = [words[f.type.kind] for f in fields]
    lines = [",".join([m(v) if v is not None else "null" for m, v in zip(makers, row, strict=True)]) for row in rows]
    return "[" + ",".join([f"[{line}]" for line in lines]) + "]"


# ---------------------------------------------------------------- from the driver


class _Bad(Exception):
    """A value that is none of the type."""


def _int(v: Any, type_: Type) -> int:
    if isinstance(v, bool) or not isinstance(v, int | Decimal | float) or not math.isfinite(v) or v != int(v):
        raise _Bad
    if not MIN_INT <= v <= MAX_INT:
        raise OverflowError("left 64 bits")
    return int(v)


def _float(v: Any, type_: Type) -> float:
    if isinstance(v, bool) or not isinstance(v, int | float | Decimal):
        raise _Bad
    if not math.isfinite(v):
        raise OverflowError("became infinite")
    return float(v) + 0.0  # some engines know no sign of zero


def _decimal(v: Any, type_: Type) -> Decimal:
    if isinstance(v, bool) or not isinstance(v, int | float | Decimal):
        raise _Bad
    if not math.isfinite(v):
        raise OverflowError("became infinite")
    return at_scale(Decimal(repr(v)) if isinstance(v, float) else Decimal(v), type_.scale)


def _text(v: Any, type_: Type) -> str:
    if isinstance(v, str):
        return v
    if isinstance(v, bytes | bytearray):
        raise _Bad
    if isinstance(v, bool):
        return str(v).lower()
    return float_text(v) if isinstance(v, float) else str(v)


def _bool(v: Any, type_: Type) -> bool:
    if isinstance(v, bytes):  # a field of bits
        v = int.from_bytes(v)
    if v not in (0, 1):
        raise _Bad
    return bool(v)


def _date(v: Any, type_: Type) -> Any:
    if isinstance(v, datetime):
        return v.date()
    return v if isinstance(v, date) else read_value(v, type_)


def _timestamp(v: Any, type_: Type) -> Any:
    if isinstance(v, datetime):
        return v if v.tzinfo is None else v.astimezone(UTC).replace(tzinfo=None)
    return datetime(v.year, v.month, v.day) if isinstance(v, date) else read_value(v, type_)


def _json(v: Any, type_: Type) -> Any:
    return normal_json(json.loads(v) if isinstance(v, str) else v)


def _bytes(v: Any, type_: Type) -> bytes:
    return bytes.fromhex(v) if isinstance(v, str) else bytes(v)


def _unknown(v: Any, type_: Type) -> Any:
    return v if isinstance(v, bool | int | float | str | bytes) else str(v)


_DECODE: dict[str, Callable[[Any, Type], Any]] = {
    "int": _int,
    "float": _float,
    "decimal": _decimal,
    "text": _text,
    "bool": _bool,
    "date": _date,
    "timestamp": _timestamp,
    "json": _json,
    "bytes": _bytes,
}


def decoder(field: Field) -> Callable[[Any], Any]:
    """Makes of what the driver of an engine that has all types gives a value of the field's type."""
    name, type_ = field.name, field.type
    read = _DECODE.get(type_.kind, _unknown)

    def decode(v: Any) -> Any:
        if v is None:
            return None
        try:
            return read(v, type_)
        except OverflowError as error:
            raise EngineError("overflow", "", message=Overflow(f"{name} {error}")) from None
        except (_Bad, ValueError, TypeError, ArithmeticError):
            given = f"'{v}'" if isinstance(v, str) else str(v)
            raise EngineError("function", "", message=BadStored(name, given, str(type_))) from None

    return decode
