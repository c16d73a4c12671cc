"""Row images: what runs changed, and how it is undone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Any, overload

from com.diagnostics import ChainBroken, Error
from com.plan import Field
from com.runtime.canon import at_scale, canonical, hash_json
from com.runtime.engines import EngineError, Link
from com.runtime.outcome import Change
from com.schema import UNKNOWN, Column, Schema, Table, Type
from com.values import read_value

_scan = json.JSONDecoder(parse_float=Decimal).raw_decode


def _decode(text: str) -> Any:
    """The data of an image's JSON, which has nothing around it. `Error` if it is none."""
    try:
        data, end = _scan(text)
    except (ValueError, TypeError, RecursionError):
        end = -1
    if end != len(text):
        raise Error(ChainBroken("a row image is not as it was written"))
    return data


class Image:
    """A row of com_change: which step changed which row, from what to what. Its texts are read when they are needed."""

    __slots__ = ("step", "reader", "key", "before", "after")

    def __init__(self, step: int, reader: _Reader, key: str, before: str | None, after: str | None) -> None:
        self.step = step
        self.reader = reader
        self.key = key
        self.before = before
        self.after = after

    @property
    def change(self) -> Change:
        """The image as typed values."""
        reader = self.reader
        return Change(reader.name, reader.key(self.key), reader.row(self.before), reader.row(self.after))

    def canonical(self) -> list[Any]:
        """The image as canonical JSON data: table, key, row before, row after."""
        reader = self.reader
        key = reader.plain_key(self.key)
        return [reader.name, key, reader.plain_row(self.before), reader.plain_row(self.after)]


def read_images(link: Link, schema: Schema, run: int) -> list[Image]:
    """The images of a run, in the order in which they were made."""
    rows = link.ask('select step, tbl, "key", "before", "after" from com_change where run = ? order by step, n', run)
    readers: dict[str, _Reader] = {}
    images = []
    for step, name, key, before, after in rows:
        reader = readers.get(name)
        if reader is None:
            reader = readers[name] = _Reader(schema.table(name), name)
        images.append(Image(step, reader, key, before, after))
    return images


Plain = Callable[[Any], Any]
_HELD: dict[str, type] = {"int": int, "text": str, "date": str}
"""The types whose values stand in an image as in canonical JSON."""


class _Reader:
    """Reads the images of one table."""

    def __init__(self, table: Table | None, name: str) -> None:
        self.name = name
        self.types = {c.name: c.type for c in table.columns} if table else {}
        self.keys = tuple(self.types[c] for c in table.primary_key) if table else ()
        self.shapes = [(n, _HELD.get(t.kind, type(None)), _plain(t)) for n, t in self.types.items()]
        self.key_shapes = [(_HELD.get(t.kind, type(None)), _plain(t)) for t in self.keys]

    def key(self, text: str) -> tuple[Any, ...]:
        values = _decode(text)
        types = self.keys if len(self.keys) == len(values) else (UNKNOWN,) * len(values)
        return tuple(_typed(value, type_) for value, type_ in zip(values, types, strict=True))

    def row(self, text: str | None) -> dict[str, Any] | None:
        if text is None:
            return None
        read: dict[str, Any] = _decode(text)
        columns = {name: read[name] for name in self.types if name in read}  # PostgreSQL's JSON has an order of its own
        return {name: _typed(value, self.types.get(name, UNKNOWN)) for name, value in {**columns, **read}.items()}

    def plain_key(self, text: str) -> list[Any]:
        """A key as canonical JSON data."""
        values: list[Any] = _decode(text)
        if len(values) != len(self.key_shapes):
            return [str(v) for v in values]
        return [v if type(v) is held else plain(v) for v, (held, plain) in zip(values, self.key_shapes, strict=True)]

    def plain_row(self, text: str | None) -> dict[str, Any] | None:
        """A row as canonical JSON data."""
        if text is None:
            return None
        row: dict[str, Any] = _decode(text)
        for name, held, plain in self.shapes:
            value = row.get(name)
            if type(value) is not held and value is not None:
                row[name] = plain(value)
        return row


@lru_cache
def _plain(type_: Type) -> Plain:
    """What makes canonical JSON data of an image's value."""

    def plain(value: Any) -> Any:
        return _loose(_typed(value, type_), type_)

    if type_.kind == "decimal":
        scale = type_.scale

        def plain_decimal(value: Any) -> Any:
            try:
                return format(at_scale(Decimal(value), scale), "f")
            except ArithmeticError:  # what the column's type forbids is shown as it stands
                return str(value)

        return plain_decimal
    return bool if type_.kind == "bool" else plain


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
            case "date" | "timestamp" | "json" if isinstance(value, str):
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


def _loose(value: Any, type_: Type) -> Any:
    try:
        return canonical(value, type_)
    except (ValueError, TypeError, ArithmeticError, AttributeError):
        return str(value)


class Changes(Sequence[Change]):
    """One change a row, from the first image to the last; rows that are as they were are left out. The changes are
    made of the images when they are looked at."""

    def __init__(self, images: Iterable[Image]) -> None:
        self._all = images
        self._made: dict[int, Change] = {}

    @cached_property
    def _images(self) -> list[Image]:
        rows: dict[tuple[str, str], Image] = {}
        for image in self._all:
            at = (image.reader.name, image.key)
            first = rows.get(at)
            if first is None:
                rows[at] = image
            else:
                rows[at] = Image(first.step, first.reader, first.key, first.before, image.after)
        return [image for image in rows.values() if not _same(image)]

    def __len__(self) -> int:
        return len(self._images)

    @overload
    def __getitem__(self, index: int) -> Change: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Change, ...]: ...

    def __getitem__(self, index: int | slice) -> Change | tuple[Change, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        index = range(len(self))[index]
        if index not in self._made:
            self._made[index] = self._images[index].change
        return self._made[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Changes | tuple):
            return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))
        return NotImplemented

    def __hash__(self) -> int:
        return hash(len(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def canonical(self) -> list[Any]:
        """All changes as canonical JSON data."""
        return [image.canonical() for image in self._images]


def _same(image: Image) -> bool:
    """True if the row is as it was: the engine may have written a value in another way."""
    if image.before == image.after:
        return True
    if image.before is None or image.after is None:
        return False
    reader = image.reader
    return reader.plain_row(image.before) == reader.plain_row(image.after)


def step_hashes(images: Iterable[Image]) -> dict[int, str]:
    """Of each step that changed rows, the hash of its images."""
    steps: dict[int, list[Any]] = {}
    for image in images:
        steps.setdefault(image.step, []).append(image.canonical())
    return {step: hash_json(changes) for step, changes in steps.items()}


# ---------------------------------------------------------------- undoing


AT_ONCE = 100
"""So many rows are undone at once, where the engine wants few statements."""


class Undo:
    """Undoes changes, the last first, and notes rows that are not as they were left."""

    def __init__(self, link: Link, schema: Schema, computed: dict[str, frozenset[str]]) -> None:
        self.link = link
        self.schema = schema
        self.computed = computed
        self.strange: list[Change] = []

    def undo_all(self, changes: Iterable[Change]) -> None:
        """Makes all rows what they were before the changes. Where no keys are checked that want an order, each row is
        written once, many by one statement."""
        if self.link.keeps_keys:
            for change in changes:
                self.undo(change)
            return
        tables: dict[str, dict[tuple[Any, ...], Change]] = {}
        for change in changes:
            table = self.schema.table(change.table)
            if table is None or not table.primary_key:
                self.strange.append(change)
                continue
            rows = tables.setdefault(table.name, {})
            later = rows.get(change.key)
            if later is not None and not _agree(table, change.after, later.before):
                self.strange.append(change)
            rows[change.key] = change.with_(after=later.after if later else change.after)
        for name, rows in tables.items():
            whole = list(rows.values())
            for start in range(0, len(whole), AT_ONCE):
                self._undo_some(self.schema.table(name), whole[start : start + AT_ONCE])

    def _undo_some(self, table: Table | None, changes: list[Change]) -> None:
        """Undoes changes of as many rows of a table."""
        if table is None:
            return
        name, columns = self.link.quote(table.name), table.columns
        key = ", ".join(self.link.quote(c) for c in table.primary_key)
        one = f"({', '.join('?' * len(table.primary_key))})"
        named = f"({key}) in ({', '.join([one] * len(changes))})"
        keys = [
            self._encode(table, c, v) for change in changes for c, v in zip(table.primary_key, change.key, strict=True)
        ]
        places = [[c.name for c in columns].index(c) for c in table.primary_key]
        found = {}
        for row in self.link.ask(
            f"select {', '.join(self._read(c) for c in columns)} from {name} where {named}", *keys
        ):
            held = [self._held(c, value) for c, value in zip(columns, row, strict=True)]
            found[tuple(held[p] for p in places)] = dict(zip([c.name for c in columns], held, strict=True))
        self.strange += [c for c in changes if not _agree(table, c.after, found.get(c.key))]
        self.link.ask(f"delete from {name} where {named}", *keys)
        filled = self.computed.get(table.name, frozenset())
        before: dict[tuple[str, ...], list[list[Any]]] = {}
        for change in changes:
            values = {n: v for n, v in (change.before or {}).items() if n not in filled}
            if change.before is not None:
                before.setdefault(tuple(values), []).append(self._encoded(table, values))
        for names, rows in before.items():
            into = f"{name} ({', '.join(self.link.quote(n) for n in names)}){self.link.overriding}"
            self.link.put(f"insert into {into} values ({', '.join('?' * len(names))})", rows)

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
            into = f"{self.link.quote(table.name)} ({columns}){self.link.overriding}"
            sql = f"insert into {into} values ({', '.join('?' * len(names))})"
            self._run(table, sql, values)
        else:
            sets = ", ".join(f"{self.link.quote(n)} = ?" for n in names)
            sql = f"update {self.link.quote(table.name)} set {sets} where {self._where(table)}"
            self._run(table, sql, values, key)

    def _is(self, table: Table, key: dict[str, Any], row: dict[str, Any] | None) -> bool:
        columns = ", ".join(self._read(c) for c in table.columns)
        sql = f"select {columns} from {self.link.quote(table.name)} where {self._where(table)}"
        found = self.link.ask(sql, *self._encoded(table, key))
        if row is None or not found:
            return row is None and not found
        return all(self._same(c, value, row.get(c.name)) for c, value in zip(table.columns, found[0], strict=True))

    def _read(self, column: Column) -> str:
        """A column as its image has it, where the engine would show it otherwise."""
        named = self.link.quote(column.name)
        shown = column.type.is_unknown or (column.adapted and column.type.kind == "text")
        bare = column.type.is_unknown and column.adapted
        return f"lower(hex({named}))" if bare else self.link.as_text.replace("{}", named) if shown else named

    def _same(self, column: Column, held: Any, noted: Any) -> bool:
        return bool(self._held(column, held) == noted)

    def _held(self, column: Column, value: Any) -> Any:
        """A value that the memory holds, as a typed one."""
        try:
            return self.link.decoder(Field(column.name, column.type))(value)
        except EngineError:  # the memory holds here what its type forbids
            return value

    def _run(self, table: Table, sql: str, *parts: dict[str, Any]) -> None:
        self.link.put(sql, [[value for part in parts for value in self._encoded(table, part)]])

    def _where(self, table: Table) -> str:
        return " and ".join(f"{self.link.quote(c)} = ?" for c in table.primary_key)

    def _encoded(self, table: Table, values: dict[str, Any]) -> list[Any]:
        return [self._encode(table, name, value) for name, value in values.items()]

    def _encode(self, table: Table, name: str, value: Any) -> Any:
        column = table.column(name)
        return self.link.encode(value, column.type if column else UNKNOWN)


def _agree(table: Table, one: dict[str, Any] | None, other: dict[str, Any] | None) -> bool:
    """True if two images of a row have the same values in all columns, or neither is there."""
    if one is None or other is None:
        return one is other
    return all(one.get(c.name) == other.get(c.name) for c in table.columns)
