"""What a failed statement means, in com's own words."""

from __future__ import annotations

from com.diagnostics import (
    Busy,
    CannotWrite,
    CheckFailed,
    EngineRefused,
    Interrupted,
    Lost,
    Message,
    NoSuchTarget,
    NotUnique,
    NullStored,
    StillNamed,
    Violated,
)
from com.plan import Operation, Write
from com.runtime.engines import EngineError, Link
from com.schema import ForeignKey, Schema, Table


def explain(error: EngineError, link: Link, schema: Schema, operation: Operation | None) -> Message:
    """The message for an engine's failure in an operation."""
    if error.message is not None:
        return error.message
    table = operation.table if isinstance(operation, Write) else "the memory"
    match error.kind:
        case "unique":
            table, columns = _named(error.place, schema, table)
            return NotUnique(table, columns)
        case "not_null":
            table, columns = _named(error.place, schema, table)
            return NullStored(table, columns)
        case "check":
            return CheckFailed(table, error.place)
        case "foreign_key":
            return _foreign_key(schema, operation)
        case "rule":
            return Violated(table, error.said.strip())
        case "busy":
            return Busy(TRIES)
        case "interrupted":
            limit = getattr(link, "seconds", None)
            cause = f"the step took longer than {limit:g} s" if limit else "interrupted"
            return Interrupted(cause, "run it again, or allow more time")
        case "full":
            return CannotWrite("the disk is full", "make room, and run it again")
        case "read_only":
            return CannotWrite("it may only be read", "open it for writing")
        case "lost":
            return Lost(0, "was not recorded", f"nothing was changed ({error.said}); run it again")
        case _:
            return EngineRefused(link.title, error.said.strip())


TRIES = 5
"""So often a run is tried when the memory is busy."""


def _named(place: str, schema: Schema, table: str) -> tuple[str, str]:
    """Table and columns of `t.a, t.b`; names may hold dots and commas, so known names are looked for first."""
    for name in [table, *(t.name for t in schema.tables)]:
        if place.startswith(f"{name}."):
            return name, place.replace(f", {name}.", ", ")[len(name) + 1 :]
    return table, place


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
