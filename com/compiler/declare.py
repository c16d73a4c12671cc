"""A schema as the text that would declare it.

Takes the schema of a memory, gives a schema file's tree. What com cannot say (unknown column types, defaults and
checks in an engine's own words, views) is left out and named in `left_out`.
"""

from __future__ import annotations

from com.compiler import syntax
from com.compiler.parse import parse_expression
from com.compiler.syntax import Name
from com.schema import Column, EdgeTable, End, Graph, Schema, Table, Type, Vertex, all_properties
from com.source import NOWHERE, Source


def declare(schema: Schema) -> tuple[syntax.SchemaFile, tuple[str, ...]]:
    """The tree of a schema file, and a line for each thing left out."""
    left_out: list[str] = []
    items: list[syntax.CreateTable | syntax.CreateIndex | syntax.CreateGraph] = []
    for table in schema.tables:
        if table.is_view:
            left_out.append(f"view {table.name}")
            continue
        items.append(_table(table, left_out))
        items += [
            syntax.CreateIndex(_name(i.name), _name(table.name), _names(i.columns), False, (), NOWHERE)
            for i in table.indexes
        ]
    if schema.declared is not None:
        items.append(declare_graph(schema.declared, schema))
    return syntax.SchemaFile(tuple(items), (), NOWHERE), tuple(left_out)


def declare_graph(graph: Graph, schema: Schema) -> syntax.CreateGraph:
    """The statement that declares a graph."""
    vertices = tuple(
        syntax.VertexDef(_name(v.table), (), _labels(v), _properties(v, schema), NOWHERE) for v in graph.vertices
    )
    edges = tuple(
        syntax.EdgeDef(
            _name(e.table), (), _end(e.source), _end(e.destination), _labels(e), _properties(e, schema), NOWHERE
        )
        for e in graph.edges
    )
    return syntax.CreateGraph(_name(graph.name), vertices, edges, (), NOWHERE)


def _labels(element: Vertex | EdgeTable) -> tuple[Name, ...]:
    return () if element.labels == (element.table,) else _names(element.labels)


def _properties(element: Vertex | EdgeTable, schema: Schema) -> tuple[syntax.PropertyColumn, ...] | None:
    table = schema.table(element.table)
    if table is not None and element.properties == all_properties(table):
        return None
    return tuple(
        syntax.PropertyColumn(_name(column), None if name == column else _name(name), NOWHERE)
        for name, column in element.properties
    )


def _end(end: End) -> syntax.EndDef:
    return syntax.EndDef(_names(end.columns), _name(end.table), _names(end.target), NOWHERE)


def _table(table: Table, left_out: list[str]) -> syntax.CreateTable:
    known = [c for c in table.columns if not c.type.is_unknown]
    left_out += [f"column {table.name}.{c.name}, of type {c.engine_type}" for c in table.columns if c not in known]
    names = {c.name for c in known}
    items: list[syntax.ColumnDef | syntax.KeyDef | syntax.ForeignKeyDef | syntax.CheckDef] = []
    items += [_column(table, c, left_out) for c in known]
    if len(table.primary_key) > 1 and names.issuperset(table.primary_key):
        items.append(syntax.KeyDef(True, _names(table.primary_key), NOWHERE))
    items += [syntax.KeyDef(False, _names(u), NOWHERE) for u in table.uniques if len(u) > 1 and names.issuperset(u)]
    for key in table.foreign_keys:
        if names.issuperset(key.columns) and len(key.columns) > 1:
            target = syntax.Reference(_name(key.table), _names(key.target), NOWHERE)
            items.append(syntax.ForeignKeyDef(_names(key.columns), target, NOWHERE))
    for check in table.checks:
        expression = _expression(check.text) if check.portable else None
        if expression is None:
            left_out.append(f"a check of {table.name}: {check.text}")
        else:
            items.append(syntax.CheckDef(expression, NOWHERE))
    return syntax.CreateTable(_name(table.name), tuple(items), (), NOWHERE)


def _column(table: Table, column: Column, left_out: list[str]) -> syntax.ColumnDef:
    default = _expression(column.default) if column.default is not None else None
    if column.default is not None and default is None:
        left_out.append(f"the default of {table.name}.{column.name}: {column.default}")
    primary = table.primary_key == (column.name,)
    return syntax.ColumnDef(
        _name(column.name),
        _type(column.type),
        primary,
        not column.nullable and not primary,
        (column.name,) in table.uniques and not primary,
        default,
        (),
        tuple(
            syntax.Reference(_name(k.table), _names(k.target), NOWHERE)
            for k in table.foreign_keys
            if k.columns == (column.name,)
        ),
        column.generated,
        NOWHERE,
    )


def _expression(text: str) -> syntax.Expr | None:
    found, messages = parse_expression(Source(text))
    return None if messages else found


def _type(type_: Type) -> syntax.TypeName:
    numbers = (type_.precision, type_.scale) if type_.kind == "decimal" else ()
    return syntax.TypeName(type_.kind, numbers, NOWHERE)


def _name(text: str) -> Name:
    return Name(text, not text.isidentifier() or not text.isascii(), NOWHERE)


def _names(texts: tuple[str, ...]) -> tuple[Name, ...]:
    return tuple(_name(text) for text in texts)
