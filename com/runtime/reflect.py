"""The schema of a live memory; what com has no word for is kept as unknown, never refused."""

from __future__ import annotations

from com.node import Node
from com.runtime.engines import Declared, Keys, Link, Rule
from com.schema import INT, UNKNOWN, Check, Column, ForeignKey, Schema, Table, standing_graph

HIDDEN = ("com_", "sqlite_")
"""Tables that begin so are com's or the engine's own, and no part of the memory."""


class Reflection(Node):
    """A schema as it was read. `computed`: of each table the columns that the engine fills; `rules`: of each table what
    changes rows behind a program's back."""

    schema: Schema
    computed: dict[str, frozenset[str]]
    rules: dict[str, tuple[Rule, ...]]


def reflect(link: Link) -> Reflection:
    """Reads the tables and views of a memory."""
    link.refresh()
    types = {name: t for name, t in link.engine_types().items() if not name.lower().startswith(HIDDEN)}
    keys = link.keys()
    none = Keys()
    tables = {n: _table(link, n, not types[n][0], types[n][1], keys.get(n, none)) for n in sorted(types)}
    computed = {n: frozenset(c.name for c in columns if c.computed) for n, (_, columns) in types.items()}
    names = {n.lower(): n for n in tables}
    return Reflection(Schema(tuple(_linked(t, tables, names) for t in tables.values())), computed, link.rules())


def _table(link: Link, name: str, is_view: bool, declared: list[Declared], keys: Keys) -> Table:
    columns = []
    for column in declared:
        type_ = link.read_type(column.type)
        takes_ids = not is_view and keys.primary == (column.name,) and type_ == INT and column.makes_ids
        columns.append(
            Column(
                column.name,
                type_,
                column.nullable and not takes_ids,  # other keys may be null on SQLite
                column.default if not (column.computed or takes_ids or is_view) else None,
                takes_ids,
                column.type if type_ == UNKNOWN else "",
                column.computed,
                column.adapted,
            )
        )
    if is_view:
        return Table(name, tuple(columns), is_view=True)
    uniques = sorted({u for u in keys.uniques if u != keys.primary})
    checks = tuple(Check(text, False) for text in keys.checks)
    indexes = tuple(sorted(keys.indexes, key=lambda index: index.name))
    return Table(name, tuple(columns), keys.primary, tuple(uniques), keys.foreign, checks, indexes)


def _linked(table: Table, tables: dict[str, Table], names: dict[str, str]) -> Table:
    """The foreign keys with their targets spelled as they are; those to tables that are not there are left out."""
    keys = []
    for key in table.foreign_keys:
        name = key.table if key.table in tables else names.get(key.table.lower())
        if name is None:
            continue
        target = tables[name]
        columns = {c.name.lower(): c.name for c in target.columns} | {c.name: c.name for c in target.columns}
        wanted = [columns.get(c) or columns.get(c.lower()) for c in key.target or target.primary_key]
        if len(wanted) == len(key.columns) and all(wanted):
            keys.append(ForeignKey(key.columns, name, tuple(c for c in wanted if c)))
    return table.with_(foreign_keys=tuple(sorted(keys, key=lambda k: (k.columns, k.table))))


def merged(declared: Schema, made: Schema, found: Schema) -> Schema:
    """The tables as declared where the memory is still as it was made, but for its indexes; else as found. Of a
    declared graph, what still has its tables."""
    known = {t.name: t for t in declared.tables}
    then = {t.name: t.with_(indexes=()) for t in made.tables}
    tables = tuple(
        known[t.name] if t.name in known and t.with_(indexes=()) == then.get(t.name) else t for t in found.tables
    )
    return Schema(tables, standing_graph(declared.declared, tables))
