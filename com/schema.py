"""What a memory can hold: value types, tables, keys."""

from __future__ import annotations

import hashlib
import json
from typing import ClassVar

from com.node import Node


class Type(Node):
    """A value type. `kind` is one of int, float, decimal, text, bool, date, timestamp, json, bytes; interval and
    null occur in expressions only; unknown is what com has no type for, and silences what would follow an error."""

    _whole: ClassVar[bool] = True

    kind: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.kind == "decimal" else self.kind

    @property
    def is_number(self) -> bool:
        return self.kind in ("int", "float", "decimal")

    @property
    def is_time(self) -> bool:
        return self.kind in ("date", "timestamp")

    @property
    def is_unknown(self) -> bool:
        return self.kind == "unknown"


INT = Type("int")
FLOAT = Type("float")
TEXT = Type("text")
BOOL = Type("bool")
DATE = Type("date")
TIMESTAMP = Type("timestamp")
JSON = Type("json")
BYTES = Type("bytes")
INTERVAL = Type("interval")
NULL = Type("null")
UNKNOWN = Type("unknown")
MAX_PRECISION = 38


def decimal(precision: int, scale: int) -> Type:
    """The decimal type, its precision cut at 38 digits."""
    return Type("decimal", min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


class Column(Node):
    """A column. `default` and a table's checks are com expressions as text (as the engine wrote them when
    `portable` is false); `generated` ids are taken by the runtime; `engine_type` is set for unknown types; what is
    `computed` the engine fills by itself, and nobody writes it; what is `adapted` is cast wherever it is read, for the
    engine compares or shows it otherwise than com."""

    name: str
    type: Type
    nullable: bool = True
    default: str | None = None
    generated: bool = False
    engine_type: str = ""
    computed: bool = False
    adapted: bool = False


class ForeignKey(Node):
    """Columns of this table that name a row of another."""

    columns: tuple[str, ...]
    table: str
    target: tuple[str, ...]


class Check(Node):
    """A condition every row keeps. `portable` when the text is com; else it is the engine's own."""

    text: str
    portable: bool = True


class Index(Node):
    """An index that is no key."""

    name: str
    columns: tuple[str, ...]


class Table(Node):
    """A table or view; a view has no key and is only read. In the dump of a tree its name stands for it."""

    _dumped: ClassVar[tuple[str, ...]] = ("name",)
    _whole: ClassVar[bool] = True

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    uniques: tuple[tuple[str, ...], ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    checks: tuple[Check, ...] = ()
    indexes: tuple[Index, ...] = ()
    is_view: bool = False

    def column(self, name: str) -> Column | None:
        """The column of exactly this name."""
        return next((c for c in self.columns if c.name == name), None)

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """Every set of columns that picks at most one row: the primary key first, then the unique ones."""
        return ((self.primary_key,) if self.primary_key else ()) + self.uniques

    @property
    def identity(self) -> Column | None:
        """The column whose values the runtime generates."""
        return next((c for c in self.columns if c.generated), None)


class Schema(Node):
    """All tables of a memory, in order of name."""

    tables: tuple[Table, ...] = ()

    def table(self, name: str) -> Table | None:
        """The table of exactly this name."""
        return next((t for t in self.tables if t.name == name), None)


def without_keys(schema: Schema) -> Schema:
    """The schema without foreign keys."""
    return Schema(tuple(t.with_(foreign_keys=()) for t in schema.tables))


def dump_schema(schema: Schema) -> str:
    """A schema as canonical JSON: the same text for the same schema, on every machine."""
    return json.dumps([_table(t) for t in schema.tables], ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _table(table: Table) -> dict[str, object]:
    return {
        "name": table.name,
        "columns": [
            {
                "name": c.name,
                "type": str(c.type),
                "nullable": c.nullable,
                "default": c.default,
                "generated": c.generated,
                "engine_type": c.engine_type,
                **({"computed": True} if c.computed else {}),
                **({"adapted": True} if c.adapted else {}),
            }
            for c in table.columns
        ],
        "primary_key": table.primary_key,
        "uniques": table.uniques,
        "foreign_keys": [[k.columns, k.table, k.target] for k in table.foreign_keys],
        "checks": [[c.text, c.portable] for c in table.checks],
        "indexes": [[i.name, i.columns] for i in table.indexes],
        "is_view": table.is_view,
    }


def load_schema(text: str) -> Schema:
    """The schema that `dump_schema` wrote."""
    tables = []
    for t in json.loads(text):
        columns = tuple(
            Column(
                c["name"],
                parse_type(c["type"]),
                c["nullable"],
                c["default"],
                c["generated"],
                c["engine_type"],
                c.get("computed", False),
                c.get("adapted", False),
            )
            for c in t["columns"]
        )
        tables.append(
            Table(
                t["name"],
                columns,
                tuple(t["primary_key"]),
                tuple(tuple(u) for u in t["uniques"]),
                tuple(ForeignKey(tuple(a), b, tuple(c)) for a, b, c in t["foreign_keys"]),
                tuple(Check(a, b) for a, b in t["checks"]),
                tuple(Index(a, tuple(b)) for a, b in t["indexes"]),
                t["is_view"],
            )
        )
    return Schema(tuple(tables))


def parse_type(text: str) -> Type:
    """The type that `str(type)` wrote."""
    if text.startswith("decimal("):
        precision, scale = text[8:-1].split(",")
        return decimal(int(precision), int(scale))
    return Type(text)


def schema_hash(schema: Schema) -> str:
    """SHA-256 of the canonical JSON, hexadecimal."""
    return hashlib.sha256(dump_schema(schema).encode()).hexdigest()
