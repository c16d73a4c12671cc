"""A schema to the statements that make its tables, in the engine's words.

Takes a schema, and the checked expressions of its checks and defaults; types are written so that they are read back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from com.compiler import ir, nodes
from com.compiler.engines import Engine, load
from com.compiler.nodes import Tree
from com.compiler.sql import Sql
from com.diagnostics import EngineLacks, Error
from com.schema import Schema, Table


def create_tables(
    schema: Schema,
    engine: str,
    checks: Mapping[tuple[str, int], ir.Expr],
    defaults: Mapping[tuple[str, str], ir.Expr],
) -> tuple[str, ...]:
    """One statement a table and an index. `checks` by table and place, `defaults` by table and column."""
    table = load(engine)
    made: list[Tree] = []
    for found in schema.tables if engine == "sqlite" else _sorted(schema.tables):
        if not found.is_view:
            if table.sequences and found.identity is not None:
                made.append(nodes.create_sequence(sequence(found)))
            made.append(_table(found, table, checks, defaults))
            made += [nodes.create_index(i.name, found.name, i.columns) for i in found.indexes]
    return tuple(nodes.marked(nodes.write(tree, table.dialect), table.dialect)[0] for tree in made)


def _sorted(tables: Sequence[Table]) -> list[Table]:
    """Tables behind those that their foreign keys name, as far as that goes."""
    made: list[Table] = []
    left = list(tables)
    while left:
        names = {t.name for t in left}
        free = [t for t in left if not any(k.table in names and k.table != t.name for k in t.foreign_keys)]
        made += free or left
        left = [t for t in left if t not in made]
    return made


def sequence(table: Table) -> str:
    """The name of what counts a table's ids, where that is not the column itself."""
    assert table.identity is not None
    return f"{table.name}_{table.identity.name}_seq"


def _table(
    table: Table,
    engine: Engine,
    checks: Mapping[tuple[str, int], ir.Expr],
    defaults: Mapping[tuple[str, str], ir.Expr],
) -> Tree:
    s = Sql(engine, [])
    s.names = {table.name: ""}
    s.inline = True
    parts = []
    keys = (*table.keys, *(k.columns for k in table.foreign_keys))
    for c in table.columns:
        key = table.primary_key == (c.name,)
        default = defaults.get((table.name, c.name))
        required = (not c.nullable or c.name in table.primary_key) and not (key and c.generated)
        if c.generated and engine.sequences:
            written: Tree | None = nodes.call("nextval", nodes.text(sequence(table)))
        else:
            written = _native(s.expr(default), engine, "a default") if default is not None else None
        stored = engine.stored(c, key, max((len(k) for k in keys if c.name in k), default=0))
        parts.append(nodes.column_def(c.name, stored, key=key, required=required, default=written))
    if len(table.primary_key) > 1:
        parts.append(nodes.key_def(table.primary_key))
    parts += [nodes.unique_def(u) for u in table.uniques]
    if engine.foreign_keys:
        parts += [nodes.foreign_key_def(k.columns, k.table, k.target) for k in table.foreign_keys]
    for number in range(len(table.checks)):
        condition = checks.get((table.name, number))
        if condition is not None:
            parts.append(nodes.check_def(_native(s.expr(condition), engine, "a check")))
    return nodes.create_table(table.name, parts)


def _native(tree: Tree, engine: Engine, what: str) -> Tree:
    """A check or default that the engine keeps without com: every connection to the memory must be able to."""
    own = [name.removeprefix("com_") for name in nodes.called(tree) if name.startswith("com_")]
    if own:
        raise Error(EngineLacks(engine.title, f"{what} with {', '.join(own)}", "leave it to the programs that write"))
    return tree
