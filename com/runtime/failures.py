"""What a failed statement means, in com's own words."""

from __future__ import annotations

import re

from com.diagnostics import (
    CheckFailed,
    Message,
    NoSuchTarget,
    NotUnique,
    NullStored,
    StillNamed,
    Violated,
)
from com.plan import Operation, Write
from com.runtime.engines import EngineError
from com.schema import ForeignKey, Schema, Table


def explain(error: EngineError, schema: Schema, operation: Operation | None) -> Message:
    """The message for an engine's failure in an operation."""
    table = operation.table if isinstance(operation, Write) else "the memory"
    match error.kind:
        case "unique":
            return NotUnique(*_named(error.place, schema, table))
        case "not_null":
            return NullStored(*_named(error.place, schema, table))
        case "check":
            return CheckFailed(table, _check(error.place, schema.table(table)))
        case "foreign_key":
            return _foreign_key(schema, operation)
        case "rule":
            return Violated(table, error.said.strip())
        case _:
            return error.message


def _named(place: str, schema: Schema, table: str) -> tuple[str, str]:
    """Table and columns of `t.a, t.b`; names may hold dots and commas, so known names are looked for first."""
    for name in [table, *(t.name for t in schema.tables)]:
        if place.startswith(f"{name}."):
            return name, place.replace(f", {name}.", ", ")[len(name) + 1 :]
    known = schema.table(table)
    if place == "PRIMARY" and known is not None:  # all that MariaDB tells of a primary key
        return table, ", ".join(known.primary_key)
    if not place and known is not None:  # what DuckDB tells of two new rows
        return table, " or ".join(", ".join(key) for key in known.keys)
    return table, place


def _check(place: str, table: Table | None) -> str:
    """The check as it was declared. SQLite names it by its text, or by no more than a quoted name at its start; others
    tell the text as they keep it, or a name."""
    texts = [c.text for c in table.checks] if table else []
    plain = _plain(place)
    found = [t for t in texts if _plain(t) == plain] or [t for t in texts if _plain(t).startswith(plain)]
    return found[0] if len(found) == 1 else texts[0] if len(texts) == 1 else place


def _plain(check: str) -> str:
    """A check without what engines put around its parts."""
    return _AROUND.sub("", check.lower())


_AROUND = re.compile(r"^check\b|::[a-z ]+|cast|[\s\"`()]")


def _foreign_key(schema: Schema, operation: Operation | None) -> Message:
    if not isinstance(operation, Write):
        return Violated("the memory", "a foreign key")
    table = schema.table(operation.table)
    own = table.foreign_keys if table else ()
    by = [(t, k) for t in schema.tables for k in t.foreign_keys if k.table == operation.table]
    if operation.verb == "insert" or (operation.verb == "update" and own):
        return _outward(operation.table, own)
    return StillNamed(operation.table, _names(by))


def _outward(table: str, keys: tuple[ForeignKey, ...]) -> Message:
    columns = " or ".join(", ".join(k.columns) for k in keys)
    return NoSuchTarget(table, columns or "a key", " or ".join(dict.fromkeys(k.table for k in keys)) or "another table")


def _names(by: list[tuple[Table, ForeignKey]]) -> str:
    return " or ".join(dict.fromkeys(t.name for t, _ in by)) or "another table"
