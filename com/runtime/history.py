"""Row images: what runs changed, and how it is undone."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from com.node import Node
from com.plan import Field
from com.runtime.canon import at_scale, canonical, hash_json
from com.runtime.engines import EngineError, Link
from com.runtime.outcome import Change
from com.schema import UNKNOWN, Column, Schema, Table, Type
from com.values import read_value

_decode = json.JSONDecoder(parse_float=Decimal).decode


class Image(Node):
    """A row of com_change, typed: which step changed which row, from what to what."""

    step: int
    change: Change


def read_images(link: Link, schema: Schema, run: int) -> list[Image]:
    """The images of a run, in the order in which they were made."""
    rows = link.ask('select step, tbl, "key", "before", "after" from com_change where run = ? order by step, n', run)
    readers: dict[str, _Reader] = {}
    images = []
    for step, name, key, before, after in rows:
        reader = readers.get(name)
        if reader is None:
            reader = readers[name] = _Reader(schema.table(name), name)
        images.append(Image(step, Change(name, reader.key(key), reader.row(before), reader.row(after))))
    return images


class _Reader:
    """Reads the images of one table."""

    def __init__(self, table: Table | None, name: str) -> None:
        self.types = {c.name: c.type for c in table.columns} if table else {}
        self.keys = tuple(self.types[c] for c in table.primary_key) if table else ()

    def key(self, text: str) -> tuple[Any, ...]:
        values = _decode(text)
        types = self.keys if len(self.keys) == len(values) else (UNKNOWN,) * len(values)
        return tuple(_typed(value, type_) for value, type_ in zip(values, types, strict=True))

    def row(self, text: str | None) -> dict[str, Any] | None:
        if text is None:
            return None
        return {name: _typed(value, self.types.get(name, UNKNOWN)) for name, value in _decode(text).items()}


def _typed(value: Any, type_: Type) -> Any:
    """A value of an image as a typed value; as it stands if a memory holds what its type forbids."""
    if value is None:
        return None
    try:
        match type_.kind:
            case "decimal":
                return at_scale(Decimal(value), type_.scale)
            case "float":
                return float(value)
            case "bool":
                return bool(value)
            case "bytes":
                return bytes.fromhex(value)
            case "date" | "timestamp" | "json":
                return read_value(value, type_)
            case "text":
                return value if isinstance(value, str) else str(value)
            case "unknown":
                return _literal(value)
            case _:
                return float(value) if isinstance(value, Decimal) else value
    except (ValueError, TypeError, ArithmeticError):
        return value


def _literal(text: Any) -> Any:
    """The value of an SQL literal: so images hold what com has no type for."""
    if not isinstance(text, str):
        return text
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    if text[:2] in ("X'", "x'"):
        return bytes.fromhex(text[2:-1])
    return float(text) if {".", "e", "n"} & set(text.lower()) else int(text)


def merge(images: Iterable[Image]) -> tuple[Change, ...]:
    """One change a row, from the first image to the last; rows that are as they were are left out."""
    rows: dict[tuple[Any, ...], tuple[Any, Any]] = {}
    for image in images:
        change = image.change
        at = (change.table, change.key)
        first = rows[at][0] if at in rows else change.before
        rows[at] = (first, change.after)
    changes = [Change(at[0], at[1], before, after) for at, (before, after) in rows.items() if before != after]
    return tuple(changes)


def changes_json(schema: Schema, changes: Iterable[Change]) -> list[Any]:
    """Changes as canonical JSON data."""
    types: dict[str, dict[str, Type]] = {}
    made = []
    for change in changes:
        table = schema.table(change.table)
        if change.table not in types:
            types[change.table] = {c.name: c.type for c in table.columns} if table else {}
        known = types[change.table]
        keys = [known[c] for c in table.primary_key] if table else []
        if len(keys) != len(change.key):
            keys = [UNKNOWN] * len(change.key)
        made.append(
            [
                change.table,
                [_loose(value, type_) for value, type_ in zip(change.key, keys, strict=True)],
                _row_json(change.before, known),
                _row_json(change.after, known),
            ]
        )
    return made


def _row_json(row: dict[str, Any] | None, types: dict[str, Type]) -> Any:
    return row and {name: _loose(value, types.get(name, UNKNOWN)) for name, value in row.items()}


def _loose(value: Any, type_: Type) -> Any:
    try:
        return canonical(value, type_)
    except (ValueError, TypeError, ArithmeticError, AttributeError):
        return str(value)


def step_hashes(schema: Schema, images: Iterable[Image]) -> dict[int, str]:
    """Of each step that changed rows, the hash of its images."""
    steps: dict[int, list[Change]] = {}
    for image in images:
        steps.setdefault(image.step, []).append(image.change)
    return {step: hash_json(changes_json(schema, changes)) for step, changes in steps.items()}


# ---------------------------------------------------------------- undoing


class Undo:
    """Undoes changes one by one, the last first, and notes rows that are not as they were left."""

    def __init__(self, link: Link, schema: Schema, computed: dict[str, frozenset[str]]) -> None:
        self.link = link
        self.schema = schema
        self.computed = computed
        self.strange: list[Change] = []

    def undo(self, change: Change) -> None:
        """Makes the row what it was before the change."""
        table = self.schema.table(change.table)
        if table is None or not table.primary_key:
            self.strange.append(change)
            return
        key = dict(zip(table.primary_key, change.key, strict=True))
        if not self._is(table, key, change.after):
            self.strange.append(change)
        if change.before is None:
            self._run(table, f"delete from {self.link.quote(table.name)} where {self._where(table)}", key)
            return
        filled = self.computed.get(table.name, frozenset())
        values = {name: value for name, value in change.before.items() if name not in filled}
        names = list(values)
        if change.after is None:
            columns = ", ".join(self.link.quote(n) for n in names)
            sql = f"insert into {self.link.quote(table.name)} ({columns}) values ({', '.join('?' * len(names))})"
            self._run(table, sql, values)
        else:
            sets = ", ".join(f"{self.link.quote(n)} = ?" for n in names)
            sql = f"update {self.link.quote(table.name)} set {sets} where {self._where(table)}"
            self._run(table, sql, values, key)

    def _is(self, table: Table, key: dict[str, Any], row: dict[str, Any] | None) -> bool:
        columns = ", ".join(self.link.quote(c.name) for c in table.columns)
        sql = f"select {columns} from {self.link.quote(table.name)} where {self._where(table)}"
        found = self.link.ask(sql, *self._encoded(table, key))
        if row is None or not found:
            return row is None and not found
        return all(self._same(c, value, row.get(c.name)) for c, value in zip(table.columns, found[0], strict=True))

    def _same(self, column: Column, held: Any, noted: Any) -> bool:
        try:
            return bool(self.link.decoder(Field(column.name, column.type))(held) == noted)
        except EngineError:  # the memory holds here what its type forbids
            return bool(held == noted)

    def _run(self, table: Table, sql: str, *parts: dict[str, Any]) -> None:
        self.link.put(sql, [[value for part in parts for value in self._encoded(table, part)]])

    def _where(self, table: Table) -> str:
        return " and ".join(f"{self.link.quote(c)} = ?" for c in table.primary_key)

    def _encoded(self, table: Table, values: dict[str, Any]) -> list[Any]:
        return [self._encode(table, name, value) for name, value in values.items()]

    def _encode(self, table: Table, name: str, value: Any) -> Any:
        column = table.column(name)
        return self.link.encode(value, column.type if column else UNKNOWN)
