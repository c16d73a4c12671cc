"""Typed values in canonical form: as JSON for hashes and the journal, as text for answers, and as they are given in.

A value of a type is one Python class: int, float, Decimal with exactly the type's scale, str, bool, date,
datetime without zone, bytes, for json any JSON data; null is None. The canonical JSON of a value is the same on
every engine: decimals, floats, dates, timestamps and bytes are texts, the rest is JSON as it stands.
"""

from __future__ import annotations

import hashlib
import json.encoder
import math
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

from com.plan import Field
from com.schema import MAX_PRECISION, Type
from com.values import FORMS, MAX_INT, MIN_INT, NUL, normal_json, read_value

_WIDE = Context(prec=80, rounding=ROUND_HALF_UP)
"""Wide enough for every decimal and for what a float may show."""

_QUANTA = tuple(Decimal(1).scaleb(-scale) for scale in range(MAX_PRECISION + 1))
_PLAIN = frozenset({"int", "text", "bool", "json", "null", "unknown"})
"""Kinds whose values are their own canonical JSON."""


class Unfit(ValueError):
    """A value that its type cannot hold; the text says why."""


def at_scale(value: Decimal, scale: int) -> Decimal:
    """A decimal with exactly so many digits after the point, half away from zero."""
    made = value.quantize(_QUANTA[scale], context=_WIDE)
    return made if made else abs(made)  # zero has no sign


def timestamp_text(value: datetime) -> str:
    """`YYYY-MM-DD HH:MM:SS`, and the microseconds if there are any."""
    return value.isoformat(" ")


# ---------------------------------------------------------------- canonical JSON


def canonical(value: Any, type_: Type) -> Any:
    """A value as canonical JSON data."""
    if value is None or type_.kind in _PLAIN:
        return value.hex() if isinstance(value, bytes) else value
    match type_.kind:
        case "decimal":
            return format(value if isinstance(value, Decimal) else Decimal(value), "f")
        case "float":
            return repr(float(value) + 0.0)  # some engines know no sign of zero
        case "timestamp":
            return timestamp_text(value)
        case "bytes":
            return value.hex()
        case _:
            return str(value)


def restore(value: Any, type_: Type) -> Any:
    """The value whose canonical JSON data this is."""
    if value is None or type_.kind in _PLAIN:
        return value
    match type_.kind:
        case "decimal":
            return Decimal(value)
        case "float":
            return float(value)
        case "bytes":
            return bytes.fromhex(value)
        case "timestamp":
            return datetime.fromisoformat(value)
        case "date":
            return date.fromisoformat(value)
        case _:
            return value


def canonical_rows(rows: Iterable[Sequence[Any]], types: Sequence[Type]) -> list[Any]:
    """Rows as canonical JSON data: a list of lists."""
    if all(t.kind in _PLAIN for t in types):
        return [list(row) for row in rows]
    return [[canonical(value, type_) for value, type_ in zip(row, types, strict=True)] for row in rows]


def restore_rows(rows: Iterable[Sequence[Any]], types: Sequence[Type]) -> tuple[tuple[Any, ...], ...]:
    """The rows whose canonical JSON data these are."""
    return tuple(tuple(restore(value, type_) for value, type_ in zip(row, types, strict=True)) for row in rows)


def types_of(fields: Iterable[Field]) -> tuple[Type, ...]:
    return tuple(field.type for field in fields)


_encoder = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, separators=(",", ":"), sort_keys=True, default=bytes.hex
)
_make = getattr(json.encoder, "c_make_encoder", None)
_chunks: Callable[[Any, int], Iterable[str]] = (  # JSONEncoder itself makes a new one at each call
    _make(None, bytes.hex, json.encoder.encode_basestring, None, ":", ",", True, False, True)
    if _make is not None
    else lambda data, _: _encoder.iterencode(data)
)


def to_json(data: Any) -> str:
    """The one text of JSON data: no blanks, keys sorted."""
    return "".join(_chunks(data, 0))


def hash_text(text: str) -> str:
    """SHA-256, hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def hash_json(data: Any) -> str:
    """SHA-256 of the one text of JSON data."""
    return hash_text(to_json(data))


# ---------------------------------------------------------------- as shown to a person


def shown(value: Any, type_: Type) -> str:
    """A value as answers print it: null is `nothing`, a float has at most 15 digits."""
    if value is None:
        return "nothing"
    match type_.kind:
        case "bool":
            return "true" if value else "false"
        case "float":
            return float_text(float(value))
        case "decimal":
            return format(value, "f")
        case "timestamp":
            return timestamp_text(value)
        case "json":
            return value if isinstance(value, str) else to_json(value)
        case "bytes":
            return str(value.hex())
        case _:
            return str(value)


def float_text(value: float) -> str:
    """A float with at most 15 digits and no more than are needed; no exponent between 1e-5 and 1e15."""
    text = f"{value + 0.0:.15g}"  # nought has no sign
    if "e" not in text:
        return text
    return text.replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")


def shown_list(values: Sequence[Any], type_: Type) -> str:
    """Values joined by `, `; `none` if there are none."""
    return ", ".join(shown(value, type_) for value in values) if values else "none"


# ---------------------------------------------------------------- as given from outside


def fit(value: Any, type_: Type) -> Any:
    """A value given from outside as a value of the type. `Unfit` if it cannot be one without loss."""
    if value is None:
        return None
    try:
        return _FIT[type_.kind](value, type_)
    except KeyError:
        raise Unfit(f"com has no type {type_}") from None
    except Unfit:
        raise
    except (ValueError, TypeError, OverflowError, InvalidOperation, RecursionError):
        raise Unfit(FORMS.get(type_.kind, str(type_))) from None


def _fit_int(value: Any, type_: Type) -> int:
    if isinstance(value, str):
        value = read_value(value, type_)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or value != int(value):
        raise Unfit("a whole number")
    if not MIN_INT <= value <= MAX_INT:
        raise Unfit("a whole number within 64 bits")
    return int(value)


def _fit_float(value: Any, type_: Type) -> float:
    if isinstance(value, str):
        value = read_value(value, type_)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise Unfit("a number")
    if not math.isfinite(value):
        raise Unfit("a finite number")
    return float(value)


def _fit_decimal(value: Any, type_: Type) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise Unfit("a number")
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        raise Unfit("a finite number")
    if number.adjusted() >= type_.precision - type_.scale and number:
        raise Unfit(f"at most {type_.precision - type_.scale} digits before the point")
    scaled = at_scale(number, type_.scale)
    if scaled != number:
        raise Unfit(f"at most {type_.scale} digits after the point")
    return scaled


def _fit_text(value: Any, type_: Type) -> str:
    if not isinstance(value, str):
        raise Unfit("a text")
    if "\0" in value:
        raise Unfit("a text without NUL")
    _whole(value)
    return value


def _whole(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unfit("text of whole characters, without half a surrogate pair") from None


def _fit_bool(value: Any, type_: Type) -> bool:
    if isinstance(value, str):
        return bool(read_value(value, type_))
    if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise Unfit("true or false")


def _fit_date(value: Any, type_: Type) -> date:
    if isinstance(value, datetime) and value.time() == datetime.min.time() and value.tzinfo is None:
        return value.date()
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        raise Unfit(FORMS["date"])
    return date.fromisoformat(str(read_value(value, type_)))


def _fit_timestamp(value: Any, type_: Type) -> datetime:
    if isinstance(value, str):
        value = read_value(value, type_)
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            raise Unfit("a timestamp without a zone")
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    raise Unfit(FORMS["timestamp"])


def _fit_json(value: Any, type_: Type) -> Any:
    value = normal_json(json.loads(json.dumps(value, allow_nan=False, default=_plain_number)))
    text = json.dumps(value)
    _whole(json.dumps(value, ensure_ascii=False))
    if NUL.search(text):
        raise Unfit("JSON without NUL")
    return value


def _plain_number(value: Any) -> float:
    """What stands in JSON with a fraction, and was read with all its digits."""
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(value)


def _fit_bytes(value: Any, type_: Type) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        return bytes.fromhex(value)
    raise Unfit(FORMS["bytes"])


_FIT: dict[str, Callable[[Any, Type], Any]] = {
    "int": _fit_int,
    "float": _fit_float,
    "decimal": _fit_decimal,
    "text": _fit_text,
    "bool": _fit_bool,
    "date": _fit_date,
    "timestamp": _fit_timestamp,
    "json": _fit_json,
    "bytes": _fit_bytes,
}
