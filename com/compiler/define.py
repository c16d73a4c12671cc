"""Create statements to a schema.

Takes the syntax tree of a schema file; gives the schema, tables in order of name, and every diagnostic found.
Defaults and checks are kept as com text, in the formatter's spelling.
"""

from __future__ import annotations

from collections.abc import Mapping

from com import diagnostics as messages
from com.compiler import syntax
from com.compiler.check import check_condition, check_default
from com.compiler.expressions import Expressions
from com.compiler.names import Env, near_names, spelled
from com.compiler.show import show
from com.diagnostics import Diagnostic, has_errors
from com.functions import Signature
from com.schema import (
    Check,
    Column,
    EdgeTable,
    End,
    ForeignKey,
    Graph,
    Index,
    Schema,
    Table,
    Vertex,
    all_properties,
)


def define(file: syntax.SchemaFile) -> tuple[Schema | None, list[Diagnostic]]:
    """The schema that a file declares, or None and why."""
    return _Definer(Schema(), {}).schema_of(file)


class _Definer(Expressions):
    def subquery(self, query: syntax.Query, env: Env) -> tuple[object, tuple[object, ...], str]:  # type: ignore[override]
        raise AssertionError("types hold no query")

    def __init__(self, schema: Schema, calls: Mapping[str, Signature]) -> None:
        super().__init__(schema, calls)
        self._foreign: dict[str, tuple[ForeignKey, ...]] = {}

    def schema_of(self, file: syntax.SchemaFile) -> tuple[Schema | None, list[Diagnostic]]:
        tables: dict[str, Table] = {}
        nodes: dict[str, syntax.CreateTable] = {}
        for item in file.items:
            if not isinstance(item, syntax.CreateTable):
                continue
            if any(name.casefold() == item.name.text.casefold() for name in tables):
                self.report(messages.DuplicateName("table", item.name.text), item.name.span)
                continue
            if item.name.text.casefold().startswith("com_"):
                self.report(messages.JournalName(item.name.text), item.name.span)
            tables[item.name.text] = self._table(item)
            nodes[item.name.text] = item
        for item in file.items:
            if isinstance(item, syntax.CreateIndex):
                self._index(item, tables)
        for name, node in nodes.items():
            tables[name] = tables[name].with_(foreign_keys=self._references(node, tables))
            self._foreign[name] = tables[name].foreign_keys
        graphs = [item for item in file.items if isinstance(item, syntax.CreateGraph)]
        for extra in graphs[1:]:
            self.report(messages.DuplicateName("property graph", extra.name.text), extra.name.span)
        graph = self._graph(graphs[0], tables) if graphs else None
        made = Schema(tuple(sorted(tables.values(), key=lambda t: t.name)), graph)
        if not has_errors(self.diagnostics):
            for name, node in nodes.items():
                self._expressions(node, made, name)
        return (None if has_errors(self.diagnostics) else made), self.diagnostics

    def _table(self, node: syntax.CreateTable) -> Table:
        columns: list[Column] = []
        uniques: list[tuple[str, ...]] = []
        primary: list[tuple[str, ...]] = []
        checks: list[Check] = []
        defs = [i for i in node.items if isinstance(i, syntax.ColumnDef)]
        for d in defs:
            if any(c.name.casefold() == d.name.text.casefold() for c in columns):
                self.report(messages.DuplicateName("column", d.name.text), d.name.span)
                continue
            columns.append(self._column_def(d))
        names = [c.name for c in columns]
        for item in node.items:
            match item:
                case syntax.ColumnDef():
                    if item.primary_key:
                        primary.append((item.name.text,))
                    if item.unique and not item.primary_key:
                        uniques.append((item.name.text,))
                    checks += [Check(show(c)) for c in item.checks]
                case syntax.KeyDef():
                    found = tuple(self._known(k, names, node.name.text) for k in item.columns)
                    (primary if item.primary else uniques).append(found)
                case syntax.CheckDef(condition=condition):
                    checks.append(Check(show(condition)))
                case syntax.ForeignKeyDef():
                    pass
            if len(primary) > 1:
                self.report(messages.TwoPrimaryKeys(node.name.text), item.span)
                primary.pop()
        key = primary[0] if primary else ()
        columns = [c.with_(nullable=False) if c.name in key else c for c in columns]
        for d in defs:
            if d.generated and key != (d.name.text,):
                self.report(messages.BadGenerated(d.name.text, "only a whole primary key is"), d.span)
        return Table(node.name.text, tuple(columns), key, tuple(uniques), (), tuple(checks))

    def _column_def(self, node: syntax.ColumnDef) -> Column:
        type_ = self.type_of(node.type)
        if node.generated and type_.kind not in ("int", "unknown"):
            self.report(messages.BadGenerated(node.name.text, f"it is {type_}"), node.span)
        default = show(node.default) if node.default is not None else None
        return Column(node.name.text, type_, not (node.not_null or node.primary_key), default, node.generated)

    def _known(self, name: syntax.Name, names: list[str], table: str) -> str:
        fits = spelled(name.text, names)
        if len(fits) != 1:
            self.report(messages.UnknownColumn(name.text, table, near_names(name.text, names)), name.span)
            return name.text
        return fits[0]

    def _index(self, node: syntax.CreateIndex, tables: dict[str, Table]) -> None:
        fits = spelled(node.table.text, tables)
        if len(fits) != 1:
            self.report(messages.UnknownTable(node.table.text, near_names(node.table.text, tables)), node.table.span)
            return
        table = tables[fits[0]]
        columns = tuple(self._known(c, [k.name for k in table.columns], table.name) for c in node.columns)
        if node.unique:
            tables[table.name] = table.with_(uniques=(*table.uniques, columns))
        else:
            tables[table.name] = table.with_(indexes=(*table.indexes, Index(node.name.text, columns)))

    def _references(self, node: syntax.CreateTable, tables: dict[str, Table]) -> tuple[ForeignKey, ...]:
        made = []
        own = [c.name for c in tables[node.name.text].columns]
        for item in node.items:
            if isinstance(item, syntax.ColumnDef):
                made += [self._reference((item.name.text,), r, tables) for r in item.references]
            elif isinstance(item, syntax.ForeignKeyDef):
                columns = tuple(self._known(c, own, node.name.text) for c in item.columns)
                made.append(self._reference(columns, item.reference, tables))
        return tuple(key for key in made if key is not None)

    def _reference(
        self, columns: tuple[str, ...], node: syntax.Reference, tables: dict[str, Table]
    ) -> ForeignKey | None:
        fits = spelled(node.table.text, tables)
        if len(fits) != 1:
            self.report(messages.UnknownTable(node.table.text, near_names(node.table.text, tables)), node.table.span)
            return None
        table = tables[fits[0]]
        names = [k.name for k in table.columns]
        target = tuple(self._known(c, names, table.name) for c in node.columns) or table.primary_key
        if not set(names).issuperset(target):
            return None
        keys = ", ".join(f"({', '.join(k)})" for k in table.keys) or "none"
        if len(target) != len(columns) or not any(set(k) == set(target) for k in table.keys):
            detail = f"({', '.join(target)}) is no key of {table.name}"
            if len(target) != len(columns):
                detail = f"{len(columns)} columns for {len(target)}"
            self.report(messages.BadReference(", ".join(columns), detail, f"its keys: {keys}"), node.span)
            return None
        return ForeignKey(columns, table.name, target)

    # ------------------------------------------------------------ the property graph

    def _graph(self, node: syntax.CreateGraph, tables: dict[str, Table]) -> Graph:
        vertices: dict[str, Vertex] = {}
        for one in node.vertices:
            table = self._element(one, tables)
            if table is not None and table.name in vertices:
                self.report(messages.DuplicateName("vertex table", table.name), one.table.span)
            elif table is not None:
                vertices[table.name] = Vertex(table.name, _labels(one, table), self._properties(one, table))
        edges: list[EdgeTable] = []
        for edge in node.edges:
            table = self._element(edge, tables)
            if table is None:
                continue
            source, destination = (self._end(e, table, vertices, tables) for e in (edge.source, edge.destination))
            if source is not None and destination is not None:
                made = EdgeTable(table.name, _labels(edge, table), self._properties(edge, table), source, destination)
                edges.append(made)
        return Graph(node.name.text, tuple(vertices.values()), tuple(edges))

    def _element(self, node: syntax.VertexDef | syntax.EdgeDef, tables: dict[str, Table]) -> Table | None:
        """The table of an element, whose rows its primary key tells apart."""
        fits = spelled(node.table.text, tables)
        if len(fits) != 1:
            self.report(messages.UnknownTable(node.table.text, near_names(node.table.text, tables)), node.table.span)
            return None
        table = tables[fits[0]]
        names = [c.name for c in table.columns]
        key = tuple(self._known(k, names, table.name) for k in node.key)
        if not table.primary_key:
            self._no_element(node.table, "it has no primary key", "give the table a primary key")
            return None
        if key and set(key) != set(table.primary_key) and set(names) >= set(key):
            shown = f"its primary key is ({', '.join(table.primary_key)})"
            self._no_element(node.table, shown, "leave key (…) out: it is the primary key")
        return table

    def _no_element(self, name: syntax.Name, detail: str, instead: str) -> None:
        self.report(messages.BadGraph(name.text, detail, instead), name.span)

    def _properties(self, node: syntax.VertexDef | syntax.EdgeDef, table: Table) -> tuple[tuple[str, str], ...]:
        if node.properties is None:
            return all_properties(table)
        names = [c.name for c in table.columns]
        made: dict[str, str] = {}
        for one in node.properties:
            column = self._known(one.column, names, table.name)
            name = one.name.text if one.name is not None else column
            if name in made:
                self.report(messages.DuplicateName("property", name), one.span)
            made[name] = column
        return tuple(made.items())

    def _end(
        self, node: syntax.EndDef, table: Table, vertices: dict[str, Vertex], tables: dict[str, Table]
    ) -> End | None:
        fits = spelled(node.table.text, vertices)
        if len(fits) != 1:
            near = near_names(node.table.text, vertices, "vertex table")
            self.report(messages.UnknownTable(node.table.text, near), node.table.span)
            return None
        vertex = tables[fits[0]]
        target = tuple(self._known(c, [k.name for k in vertex.columns], vertex.name) for c in node.target)
        columns = tuple(self._known(c, [k.name for k in table.columns], table.name) for c in node.columns)
        if not columns:
            keys = [k for k in self._foreign.get(table.name, ()) if k.table == vertex.name]
            if len(keys) != 1:
                detail = f"{len(keys)} foreign keys lead to {vertex.name}"
                self._no_element(node.table, detail, f"write key (columns) references {vertex.name} (columns)")
                return None
            return End(keys[0].columns, vertex.name, keys[0].target)
        target = target or vertex.primary_key
        if not any(set(k) == set(target) for k in vertex.keys) or len(target) != len(columns):
            keys_shown = " or ".join(f"({', '.join(k)})" for k in vertex.keys)
            detail = f"({', '.join(target)}) is no key of {vertex.name} that ({', '.join(columns)}) could hold"
            self._no_element(node.table, detail, f"name as many columns as its key has: {keys_shown}")
            return None
        return End(columns, vertex.name, target)

    def _expressions(self, node: syntax.CreateTable, schema: Schema, name: str) -> None:
        """Check the checks and defaults, now that all tables are known."""
        table = schema.table(name)
        assert table is not None
        for item in node.items:
            conditions = item.checks if isinstance(item, syntax.ColumnDef) else ()
            if isinstance(item, syntax.CheckDef):
                conditions = (item.condition,)
            for condition in conditions:
                self.diagnostics += check_condition(condition, schema, name)[1]
            if isinstance(item, syntax.ColumnDef) and item.default is not None:
                column = table.column(item.name.text)
                if column is not None:
                    self.diagnostics += check_default(item.default, column.type)[1]


def _labels(node: syntax.VertexDef | syntax.EdgeDef, table: Table) -> tuple[str, ...]:
    return tuple(dict.fromkeys(label.text for label in node.labels)) or (table.name,)
