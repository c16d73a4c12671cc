"""What a memory can hold: value types, tables, keys, and the property graph that is seen over them."""

from __future__ import annotations

import hashlib
import json
from typing import Any, ClassVar

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


class Vertex(Node):
    """A table whose rows are nodes. `properties` are (name, column)."""

    table: str
    labels: tuple[str, ...]
    properties: tuple[tuple[str, str], ...]


class End(Node):
    """An end of an edge: columns of the edge's table that hold the `target` columns, a key, of a vertex table."""

    columns: tuple[str, ...]
    table: str
    target: tuple[str, ...]


class EdgeTable(Node):
    """A table whose rows are edges, told apart by its primary key. An edge whose table is that of its source, by its
    own key, is a foreign key: it is there while its columns are not null."""

    table: str
    labels: tuple[str, ...]
    properties: tuple[tuple[str, str], ...]
    source: End
    destination: End

    @property
    def is_key(self) -> bool:
        """True for a foreign key seen as an edge: its rows are nodes too."""
        return self.source.table == self.table and self.source.columns == self.source.target


class Graph(Node):
    """A property graph over tables."""

    name: str
    vertices: tuple[Vertex, ...]
    edges: tuple[EdgeTable, ...]


class Schema(Node):
    """All tables of a memory, in order of name; and its property graph, if one was declared."""

    tables: tuple[Table, ...] = ()
    declared: Graph | None = None

    def table(self, name: str) -> Table | None:
        """The table of exactly this name."""
        return next((t for t in self.tables if t.name == name), None)

    @property
    def graph(self) -> Graph:
        """The property graph: as declared, else as the keys tell."""
        return self.declared if self.declared is not None else inferred_graph(self.tables)


GRAPH = "memory"
"""The name of a graph that nobody declared."""


def inferred_graph(tables: tuple[Table, ...]) -> Graph:
    """The graph that keys tell of. A table whose primary key is two foreign keys is an edge between what they name;
    each other table with a primary key is a vertex label; each other foreign key is an edge, labelled by its columns
    without `_id`."""
    keyed = {t.name: t for t in tables if t.primary_key and not t.is_view}
    ends = {name: found for name, t in keyed.items() if (found := _two_ends(t, keyed)) is not None}
    vertices = tuple(Vertex(t.name, (t.name,), all_properties(t)) for name, t in keyed.items() if name not in ends)
    known = {v.table for v in vertices}
    edges: list[EdgeTable] = []
    for name, table in keyed.items():
        if name in ends:
            source, destination = ends[name]
            if source.table in known and destination.table in known:
                edges.append(EdgeTable(name, (name,), all_properties(table), source, destination))
            continue
        for key in table.foreign_keys:
            if key.table in known:
                label = "_".join(c[:-3] if c.lower().endswith("_id") and len(c) > 3 else c for c in key.columns)
                own = End(table.primary_key, name, table.primary_key)
                edges.append(EdgeTable(name, (label,), (), own, End(key.columns, key.table, key.target)))
    return Graph(GRAPH, vertices, tuple(edges))


def _two_ends(table: Table, keyed: dict[str, Table]) -> tuple[End, End] | None:
    """The ends of an edge table: two foreign keys which together are its primary key."""
    inside = [k for k in table.foreign_keys if set(k.columns) <= set(table.primary_key) and k.table in keyed]
    if len(inside) != 2 or sorted(c for k in inside for c in k.columns) != sorted(table.primary_key):
        return None
    first, second = sorted(inside, key=lambda k: table.primary_key.index(k.columns[0]))
    return End(first.columns, first.table, first.target), End(second.columns, second.table, second.target)


def all_properties(table: Table) -> tuple[tuple[str, str], ...]:
    """Every column that com has a type for, under its own name."""
    return tuple((c.name, c.name) for c in table.columns if not c.type.is_unknown)


def standing_graph(graph: Graph | None, tables: tuple[Table, ...]) -> Graph | None:
    """The part of a declared graph whose tables and columns are (still) there."""
    if graph is None:
        return None
    known = {t.name: {c.name for c in t.columns} for t in tables if t.primary_key}

    def kept(properties: tuple[tuple[str, str], ...], table: str) -> tuple[tuple[str, str], ...]:
        return tuple(p for p in properties if p[1] in known[table])

    vertices = tuple(v.with_(properties=kept(v.properties, v.table)) for v in graph.vertices if v.table in known)
    names = {v.table for v in vertices}

    def stands(edge: EdgeTable) -> bool:
        return edge.table in known and all(
            end.table in names and known[edge.table] >= set(end.columns) and known[end.table] >= set(end.target)
            for end in (edge.source, edge.destination)
        )

    edges = tuple(e.with_(properties=kept(e.properties, e.table)) for e in graph.edges if stands(e))
    return Graph(graph.name, vertices, edges)


def without_keys(schema: Schema) -> Schema:
    """The schema without foreign keys."""
    return Schema(tuple(t.with_(foreign_keys=()) for t in schema.tables), schema.declared)


def dump_schema(schema: Schema) -> str:
    """A schema as canonical JSON: the same text for the same schema, on every machine. A list of tables, or with a
    declared graph an object of both."""
    tables: object = [_table(t) for t in schema.tables]
    if schema.declared is not None:
        tables = {"tables": tables, "graph": dump_graph(schema.declared)}
    return json.dumps(tables, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def dump_graph(graph: Graph) -> dict[str, object]:
    """A graph as JSON-able data."""

    def end(of: End) -> list[object]:
        return [of.columns, of.table, of.target]

    return {
        "name": graph.name,
        "vertices": [[v.table, v.labels, v.properties] for v in graph.vertices],
        "edges": [[e.table, e.labels, e.properties, end(e.source), end(e.destination)] for e in graph.edges],
    }


def _read_graph(data: dict[str, Any]) -> Graph:
    def pairs(found: list[list[str]]) -> tuple[tuple[str, str], ...]:
        return tuple((a, b) for a, b in found)

    def end(found: list[Any]) -> End:
        return End(tuple(found[0]), found[1], tuple(found[2]))

    vertices = tuple(Vertex(table, tuple(labels), pairs(properties)) for table, labels, properties in data["vertices"])
    edges = tuple(EdgeTable(t, tuple(ls), pairs(ps), end(a), end(b)) for t, ls, ps, a, b in data["edges"])
    return Graph(data["name"], vertices, edges)


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
    data = json.loads(text)
    graph = _read_graph(data["graph"]) if isinstance(data, dict) else None
    for t in data["tables"] if isinstance(data, dict) else data:
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
    return Schema(tuple(tables), graph)


def parse_type(text: str) -> Type:
    """The type that `str(type)` wrote."""
    if text.startswith("decimal("):
        precision, scale = text[8:-1].split(",")
        return decimal(int(precision), int(scale))
    return Type(text)


def schema_hash(schema: Schema) -> str:
    """SHA-256 of the canonical JSON, hexadecimal."""
    return hashlib.sha256(dump_schema(schema).encode()).hexdigest()
