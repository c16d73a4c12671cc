"""Graph operations that write, as the SQL steps that mean the same.

Takes a step with `create`, `merge`, `set` or `delete`; gives its statements. What it matches is read first, by a step
of its own whose rows the writes take their values from; so journal, preview, replay and undo know nothing of graphs.
`unwind` goes through its rows one after another, unless it is certain that all at once means the same.
"""

from __future__ import annotations

from typing import Any

from com import diagnostics as messages
from com.compiler import syntax
from com.compiler.made import aggregates, below, both, column_of, item_of, named
from com.compiler.matching import Matching
from com.compiler.names import near_names, spelled
from com.compiler.parse import parse_expression
from com.compiler.patterns import Variable, shown_element
from com.compiler.syntax import Name
from com.node import rebuild
from com.schema import EdgeTable, End, Schema, Table, Vertex
from com.source import Source, Span

ROWS = "com_m"
"""The alias of the rows that a step has matched."""
TARGET = "com_u"
"""The alias of a table that is written."""

Writing = syntax.Create | syntax.Merge | syntax.SetClause | syntax.Detach


class Effecting(Matching):
    """One graph step that writes, at work."""

    def __init__(self, schema: Schema, node: syntax.Graph, step: syntax.Step) -> None:
        super().__init__(schema, node)
        self.step = step
        self.made: list[Any] = []
        self.rows: syntax.Placeholder | None = None
        self.rows_alias = ROWS
        self.inside = False
        self.written: dict[str, str] = {}
        self.joined: dict[str, syntax.Join] = {}
        self.values: dict[str, dict[str, syntax.Expr]] = {}
        self.count = 0
        self.names = {f"{step.name.text}.match", f"{step.name.text}.row", f"{step.name.text}.there"}

    # ------------------------------------------------------------ the whole

    def statements(self) -> list[Any]:
        """The statements that the step is; none of use after a message."""
        clauses = self.node.clauses
        first = next(i for i, c in enumerate(clauses) if isinstance(c, Writing))
        for late in clauses[first:]:
            if isinstance(late, syntax.Match):
                help_ = "make it a step of its own"
                self.report(messages.BadClause("a match stands before what writes", help_), late.span)
                return []
        reading, writing = clauses[:first], [c for c in clauses[first:] if isinstance(c, Writing)]
        loops = [c for c in reading if isinstance(c, syntax.Unwind)]
        if loops and self._one_by_one(reading, writing):
            return self._loop(loops[0], writing)
        for clause in reading:
            if isinstance(clause, syntax.Unwind):
                self.unwind(clause)
            elif isinstance(clause, syntax.Match):
                self.match(clause)
        simple = self._simple(reading, writing)
        if simple is not None:
            return [*self.asserts(), self._last(simple)]
        self.made += self.asserts()
        if reading:
            self._take(reading)
        self._write(writing)
        if self.node.returned is not None:
            self.made.append(self._last(self._returned(self.node.returned)))
        else:
            self._name_last()
        return self.made

    def _write(self, writing: list[Writing]) -> None:
        for clause in writing:
            match clause:
                case syntax.Create():
                    for pattern in clause.patterns:
                        self._create(pattern)
                case syntax.Merge():
                    self._merge(clause)
                case syntax.SetClause():
                    self._set(clause)
                case syntax.Detach():
                    self._delete(clause)

    def _last(self, operation: Any) -> syntax.Step:
        return self.step.with_(operation=operation)

    def _name_last(self) -> None:
        """The last write is the step, if nothing is returned."""
        if not self.made:
            return
        last = self.made[-1]
        if isinstance(last, syntax.Step):
            self.made[-1] = self._last(last.operation)
        elif isinstance(last, syntax.ForEach):
            body = last.body
            if isinstance(body[-1], syntax.Step):
                inner = body[-1].with_(name=self.step.name, shape=self.step.shape)
                self.made[-1] = last.with_(body=(*body[:-1], inner), title=self.step.title)
            else:
                self.made[-1] = last.with_(title=self.step.title)

    def _hidden(self, part: str, operation: Any, span: Span) -> syntax.Step:
        """A step that only this one sees: nobody can write its name."""
        if part.startswith("com_"):
            part = ""
        self.count += 1
        name = f"{self.step.name.text}.{part or self.count}"
        while name in self.names:
            name += "_"
        self.names.add(name)
        return syntax.Step(Name(name, True, self.step.name.span), None, operation, (), span)

    def _emit(self, part: str, operation: Any, span: Span) -> str:
        step = self._hidden(part, operation, span)
        self.made.append(step)
        return step.name.text

    # ------------------------------------------------------------ rows one by one

    def _one_by_one(self, reading: tuple[Any, ...], writing: list[Writing]) -> bool:
        """True if rows might see what rows before them have written."""
        written = [self._tables_of(c) for c in writing]
        read = {t for c in reading if isinstance(c, syntax.Match) for p in c.patterns for t in self._tables_in(p)}
        every = set().union(*written)
        return (
            bool(read & every)
            or sum(len(w) for w in written) > len(every)
            or any(isinstance(c, syntax.SetClause | syntax.Detach) for c in writing)
        )

    def _tables_in(self, pattern: syntax.Pattern) -> set[str]:
        """The tables that a pattern may be of."""
        found: set[str] = set()
        for element in pattern.elements:
            wanted = {label.text.casefold() for label in element.labels}
            node = isinstance(element, syntax.NodePattern)
            choices: list[Vertex | EdgeTable] = [*(self.graph.vertices if node else self.graph.edges)]
            found |= {c.table for c in choices if not wanted or wanted & {label.casefold() for label in c.labels}}
        return found

    def _tables_of(self, clause: Writing) -> set[str]:
        """The tables that a clause may write: those of what it makes, or of all that it could change."""
        patterns = clause.patterns if isinstance(clause, syntax.Create) else ()
        if isinstance(clause, syntax.Merge):
            patterns = (clause.pattern,)
        if not patterns:
            return {v.table for v in self.graph.vertices} | {e.table for e in self.graph.edges}
        elements = [e for p in patterns for e in p.elements if e.labels or isinstance(e, syntax.EdgePattern)]
        alone = [syntax.Pattern(None, False, (element,), element.span) for element in elements]
        return {table for pattern in alone for table in self._tables_in(pattern)}

    def _loop(self, unwind: syntax.Unwind, writing: list[Writing]) -> list[Any]:
        """A loop over the rows of an unwind."""
        variable = f"{self.step.name.text}.{unwind.variable.text}"
        if self.node.returned is not None:
            detail = "rows that may see each other's writes return nothing"
            help_ = "read what was written in a step of its own"
            self.report(messages.BadClause(detail, help_), self.node.returned.span)
            return []
        inner = Effecting(self.schema, self.node.with_(clauses=self.node.clauses[1:]), self.step.with_(title=()))
        row = Variable(unwind.variable.text, "row", (), f"${variable}", {}, None, unwind.variable.span)
        inner.scope[row.name] = row
        inner.inside = True
        body = inner.statements()
        self.found += inner.found
        name = Name(variable, True, unwind.variable.span)
        return [syntax.ForEach(name, unwind.place, tuple(body), self.step.title, self.step.span)]

    # ------------------------------------------------------------ what was matched

    def _simple(self, reading: tuple[Any, ...], writing: list[Writing]) -> Any:
        """One update or delete, where one table is matched and only that is written; else None."""
        returned = self.node.returned
        if (
            len(writing) != 1
            or len(self.joins) != 1
            or any(isinstance(c, syntax.Unwind) for c in reading)
            or self.found
        ):
            return None
        if returned is not None and (
            returned.distinct or returned.order or returned.limit is not None or returned.offset is not None
        ):
            return None
        if returned is not None and any(isinstance(i, syntax.Star) or aggregates(i.expr) for i in returned.items):
            return None
        kind, table, on = self.joins[0]
        clause = writing[0]
        if kind != "inner" or not isinstance(table, syntax.TableName) or table.alias is None:
            return None
        alias = table.alias.text
        variable = self.scope.get(alias)
        others = [v for v in self.scope.values() if v is not variable and not v.alias.startswith("$")]
        if variable is None or others or len(variable.choices) != 1:
            return None
        choice = variable.choices[0]
        where = both([*self.where, *on], clause.span) or syntax.Truth(True, clause.span)
        if isinstance(clause, syntax.SetClause):
            if any(a.table is None or spelled(a.table.text, [alias]) != [alias] for a in clause.assignments):
                return None
            assignments = self._assignments(clause.assignments, variable, None)
            items = self._plain_items(returned)
            return syntax.Update(table.name, table.alias, assignments, None, where, items, clause.span)
        if isinstance(clause, syntax.Detach):
            if [spelled(n.text, [alias]) for n in clause.variables] != [[alias]]:
                return None
            if clause.detach and isinstance(choice, Vertex):
                return None
            if isinstance(choice, EdgeTable) and choice.is_key:
                return None
            return syntax.Delete(table.name, table.alias, where, self._plain_items(returned), clause.span)
        return None

    def _plain_items(self, returned: syntax.GraphReturn | None) -> tuple[syntax.Item, ...]:
        return self.items(returned) if returned is not None else ()

    def _take(self, reading: tuple[Any, ...]) -> None:
        """Read what was matched, once; from here on variables are columns of these rows."""
        span = reading[0].span.to(reading[-1].span)
        only = self.joins[0][1] if len(self.joins) == 1 else None
        if isinstance(only, syntax.TablePlaceholder):
            self.rows, self.rows_alias = only.place, self.node.clauses[0].variable.text  # type: ignore[union-attr]
            return
        items: list[syntax.Item] = []
        scope: dict[str, Variable] = {}
        for name, variable in self.scope.items():
            if variable.alias.startswith("$"):
                scope[name] = variable
                continue
            names: dict[object, str] = {}

            def export(what: object, expr: syntax.Expr, names: dict[object, str] = names) -> None:
                if what not in names:
                    names[what] = f"com_c{len(items) + 1}"
                    items.append(item_of(expr, names[what]))

            length = None
            if variable.kind == "row":
                for node in below(self.node):
                    if isinstance(node, syntax.ColumnName) and node.table is not None and node.table.text == name:
                        export(
                            node.name.text.casefold(), syntax.ColumnName(named(variable.alias, span), node.name, span)
                        )
            elif variable.kind == "path":
                assert variable.length is not None
                export("length", variable.length)
                length = column_of(ROWS, names["length"], span)
            elif variable.kind in ("node", "edge"):
                if len(variable.choices) > 1:
                    export("there", column_of(variable.alias, variable.names["there"], span))
                for choice in variable.choices:
                    for column in self._naming(choice):
                        export((choice.table, column), self.held_by(variable, choice, column, span))
                for prop in dict.fromkeys(p for c in variable.choices for p, _ in c.properties):
                    if prop.casefold() in self.used.get(name, ()):
                        export(prop, self.property(variable, named(prop, span), span))
            scope[name] = Variable(name, variable.kind, variable.choices, ROWS, names, length, variable.span)
        if not items:
            items.append(item_of(syntax.Number("1", span), "com_c0"))
        source = self.source(span)
        body = syntax.Select(False, tuple(items), source, both(self.where, span), (), None, span)
        self.names.discard(f"{self.step.name.text}.match")
        matched = self._emit("match", syntax.Query(body, (), None, None, span), span)
        self.scope = scope
        self.rows = syntax.Placeholder(matched, None, span)

    def _naming(self, choice: Vertex | EdgeTable) -> list[str]:
        """The columns by which others may name a node: its keys."""
        columns = list(self.table(choice).primary_key)
        if isinstance(choice, Vertex):
            ends = [e for edge in self.graph.edges for e in (edge.source, edge.destination) if e.table == choice.table]
            columns += [c for end in ends for c in end.target]
        return list(dict.fromkeys(columns))

    def held_by(self, variable: Variable, choice: Vertex | EdgeTable, column: str, span: Span) -> syntax.Expr:
        """A column of an element, if it is of this table."""
        if variable.name in self.values and column in self.values[variable.name]:
            return self.values[variable.name][column]
        return self.at(variable, variable.names.get((choice.table, column), column), span)

    def _from(self, exprs: list[Any], span: Span) -> syntax.From | None:
        """The rows, with what was made for each of them as far as these expressions speak of it."""
        aliases = {
            n.table.text for e in exprs for n in below(e) if isinstance(n, syntax.ColumnName) and n.table is not None
        }
        joins = tuple(join for alias, join in self.joined.items() if alias in aliases)
        if self.rows is None:
            if not joins:
                return None
            return syntax.From(joins[0].right, joins[1:], span)
        rows = syntax.TablePlaceholder(self.rows, named(self.rows_alias, span), span)
        return syntax.From(rows, joins, span)

    # ------------------------------------------------------------ create

    def _create(self, pattern: syntax.Pattern) -> None:
        if pattern.shortest or pattern.variable is not None:
            help_ = "write create (a)-[:TYPE]->(b)"
            self.report(messages.BadClause("what is created is no path", help_), pattern.span)
            return
        names: list[str | None] = []
        for element in pattern.elements[::2]:
            assert isinstance(element, syntax.NodePattern)
            names.append(self._create_node(element, len(pattern.elements) == 1))
        for index, element in enumerate(pattern.elements[1::2]):
            assert isinstance(element, syntax.EdgePattern)
            start, end = names[index], names[index + 1]
            if start is not None and end is not None:
                self._create_edge(element, start, end)

    def _create_node(self, node: syntax.NodePattern, alone: bool) -> str | None:
        """A new node, or one that is bound: its name."""
        name = node.variable.text if node.variable is not None else self.fresh("v")
        fits = spelled(name, self.scope)
        if len(fits) == 1:
            if node.labels or node.properties or alone:
                help_ = "name it only, or set its properties"
                self.report(messages.BadClause(f"{name} is there already", help_), node.span)
            return fits[0]
        vertex = self._vertex(node)
        if vertex is None:
            return None
        columns, values = self._given(node, vertex)
        self._insert(name, vertex, columns, values, node.span)
        return name

    def _vertex(self, node: syntax.NodePattern) -> Vertex | None:
        """The one table of a node that is made."""
        if node.where is not None:
            help_ = "write its properties in braces"
            self.report(messages.BadClause("what is made has no where", help_), node.where.span)
            return None
        known = {label for v in self.graph.vertices for label in v.labels}
        if len(node.labels) != 1:
            near = near_names("", known, "vertex label")
            self.report(messages.BadClause("a node is made with one label", near), node.span)
            return None
        fits = spelled(node.labels[0].text, known)
        if len(fits) != 1:
            near = near_names(node.labels[0].text, known, "vertex label")
            self.report(messages.UnknownLabel("vertex", node.labels[0].text, near), node.labels[0].span)
            return None
        found = [v for v in self.graph.vertices if fits[0] in v.labels]
        if len(found) > 1:
            help_ = f"name one of the labels {', '.join(v.labels[-1] for v in found)}"
            self.report(messages.BadClause(f"{fits[0]} is the label of several tables", help_), node.span)
            return None
        return found[0]

    def _given(
        self, node: syntax.NodePattern | syntax.EdgePattern, choice: Vertex | EdgeTable
    ) -> tuple[list[Name], list[syntax.Expr]]:
        """Columns and values of the properties in braces."""
        columns: list[Name] = []
        values: list[syntax.Expr] = []
        for prop in node.properties:
            column = self._column(choice, prop.name, shown_element(node))
            if column is not None:
                columns.append(Name(column, True, prop.name.span))
                values.append(self.put(prop.value, self.scope))
        return columns, values

    def _column(self, choice: Vertex | EdgeTable, name: Name, shown: str) -> str | None:
        """The column that a property is."""
        known = dict(choice.properties)
        fits = spelled(name.text, known)
        if len(fits) != 1:
            near = near_names(name.text, known, "property")
            self.report(messages.UnknownProperty(shown, name.text, near), name.span)
            return None
        return known[fits[0]]

    def _insert(
        self, name: str, choice: Vertex | EdgeTable, columns: list[Name], values: list[syntax.Expr], span: Span
    ) -> None:
        """Insert a row of an element, for each of the rows there are."""
        table = self.table(choice)
        target = Name(table.name, True, span)
        source = self._from(values, span)
        if not columns:  # all by default: the key is taken by the runtime
            free = [c for c in table.columns if not c.generated and (c.nullable or c.default is not None)]
            if not free:
                help_ = "give it a property in braces"
                self.report(messages.BadClause(f"a row of {table.name} needs a value", help_), span)
                return
            plain = next((c for c in free if c.default is None), free[0])
            columns = [Name(plain.name, True, span)]
            values = [_default(plain.default, span)]
        rows: Any = syntax.Values((tuple(values),), span)
        if source is not None:
            items = tuple(item_of(v, f"com_c{i}") for i, v in enumerate(values, 1))
            rows = syntax.Query(syntax.Select(False, items, source, None, (), None, span), (), None, None, span)
        step = self._emit(name, syntax.Insert(target, tuple(columns), rows, None, (), span), span)
        given = {c.text: v for c, v in zip(columns, values, strict=True)}
        kind = "node" if isinstance(choice, Vertex) else "edge"
        key = table.primary_key
        place = syntax.Placeholder(step, None, span)
        if source is None:
            self.scope[name] = Variable(name, kind, (choice,), f"${step}", {}, None, span)
            self.values[name] = {c: given[c] for c in given if c in key or isinstance(choice, Vertex)}
            return
        self.scope[name] = Variable(name, kind, (choice,), name, {}, None, span)
        if set(key) <= set(given):
            self.values[name] = {c: given[c] for c in key}
            on = both([syntax.Binary("=", column_of(name, c, span), given[c], span) for c in key], span)
        else:
            numbers = (column_of(name, "com_n", span), column_of(self.rows_alias, "com_n", span))
            on = syntax.Binary("=", *numbers, span)
        self.joined[name] = syntax.Join("inner", syntax.TablePlaceholder(place, named(name, span), span), on, (), span)

    def _create_edge(self, node: syntax.EdgePattern, start: str, end: str) -> None:
        found = self._edge_between(node, start, end)
        if found is None:
            return
        edge, columns, values = found
        more, given = self._given(node, edge)
        if {c.text for c in more} & {c.text for c in columns}:
            help_ = "leave them out of the braces"
            self.report(messages.BadClause("the ends of an edge are those of the pattern", help_), node.span)
            return
        name = node.variable.text if node.variable is not None else self.fresh("e")
        if name in self.scope:
            self.report(messages.BadClause(f"{name} is there already", "give the edge another name"), node.span)
            return
        self._insert(name, edge, columns + more, values + given, node.span)

    def _edge_between(
        self, node: syntax.EdgePattern, start: str, end: str
    ) -> tuple[EdgeTable, list[Name], list[syntax.Expr]] | None:
        """The one table of an edge that is made, with the columns and values of its ends."""
        span = node.span
        if node.direction == "both" or node.hops is not None or node.where is not None:
            help_ = "write create (a)-[:TYPE {…}]->(b), or (a)<-[:TYPE]-(b)"
            self.report(messages.BadClause("an edge is made in one direction, by itself", help_), span)
            return None
        if node.direction == "left":
            start, end = end, start
        ends = [self.scope[start], self.scope[end]]
        for variable in ends:
            if variable.kind != "node" or len(variable.choices) != 1:
                if variable.kind != "lost":
                    help_ = "give the node one label where it is matched"
                    self.report(messages.BadClause(f"{variable.name} may be of several tables", help_), span)
                return None
        known = {label for e in self.graph.edges for label in e.labels}
        wanted = [spelled(label.text, known) for label in node.labels]
        if len(wanted) != 1 or len(wanted[0]) != 1:
            label = node.labels[0] if node.labels else None
            near = near_names(label.text if label else "", known, "edge label")
            if label is not None and len(wanted) == 1:
                self.report(messages.UnknownLabel("edge", label.text, near), label.span)
            else:
                self.report(messages.BadClause("an edge is made with one label", near), span)
            return None
        tables = [v.choices[0].table for v in ends]
        fits = [
            e for e in self.graph.edges if wanted[0][0] in e.labels and [e.source.table, e.destination.table] == tables
        ]
        if len(fits) != 1:
            shown = [v.choices[0].labels[0] for v in ends]
            detail = f"{'no' if not fits else 'more than one'} {wanted[0][0]} edge leads from {shown[0]} to {shown[1]}"
            self.report(messages.NeverMatches(detail, "com schema --graph prints the graph"), span)
            return None
        edge = fits[0]
        if edge.is_key:
            help_ = f"set {start}.{edge.destination.columns[0]} = …"
            self.report(messages.BadClause(f"{wanted[0][0]} is a foreign key of {edge.table}", help_), span)
            return None
        columns: list[Name] = []
        values: list[syntax.Expr] = []
        for place, variable in zip((edge.source, edge.destination), ends, strict=True):
            columns += [Name(c, True, span) for c in place.columns]
            values += self._end_values(place, variable, span)
        return edge, columns, values

    def _end_values(self, end: End, variable: Variable, span: Span) -> list[syntax.Expr]:
        return [self.held_by(variable, variable.choices[0], column, span) for column in end.target]

    # ------------------------------------------------------------ merge

    def _merge(self, clause: syntax.Merge) -> None:
        elements = clause.pattern.elements
        if clause.pattern.variable is not None or clause.pattern.shortest or len(elements) not in (1, 3):
            help_ = "merge each node by its key, then the edge: merge (a)-[:TYPE]->(b)"
            self.report(messages.BadClause("one node is merged, or one edge", help_), clause.pattern.span)
            return
        if len(elements) == 1:
            assert isinstance(elements[0], syntax.NodePattern)
            self._merge_node(clause, elements[0])
            return
        first, edge, last = elements
        assert isinstance(first, syntax.NodePattern) and isinstance(last, syntax.NodePattern)
        assert isinstance(edge, syntax.EdgePattern)
        names = []
        for node in (first, last):
            fits = spelled(node.variable.text, self.scope) if node.variable is not None else []
            if len(fits) != 1 or node.labels or node.properties or node.where is not None:
                help_ = "match or merge the nodes before, and name them: merge (a)-[:TYPE]->(b)"
                self.report(messages.BadClause("an edge is merged between nodes that are bound", help_), node.span)
                return
            names.append(fits[0])
        found = self._edge_between(edge, names[0], names[1])
        if found is None:
            return
        table, columns, values = found
        more, given = self._given(edge, table)
        name = edge.variable.text if edge.variable is not None else self.fresh("e")
        self._merge_row(clause, name, table, columns + more, values + given, edge.span)

    def _merge_node(self, clause: syntax.Merge, node: syntax.NodePattern) -> None:
        name = node.variable.text if node.variable is not None else self.fresh("v")
        if spelled(name, self.scope):
            help_ = "merge an edge of it, or set its properties"
            self.report(messages.BadClause(f"{name} is there already", help_), node.span)
            return
        vertex = self._vertex(node)
        if vertex is None:
            return
        columns, values = self._given(node, vertex)
        table = self.table(vertex)
        if len(columns) == len(node.properties) and not self._key_of(table, columns):
            properties = {column: prop for prop, column in vertex.properties}
            keys = [
                "{" + ", ".join(f"{properties[c]}: …" for c in key) + "}"
                for key in table.keys
                if set(key) <= set(properties) and not any(c.generated for c in table.columns if c.name in key)
            ]
            help_ = f"write merge ({name}:{node.labels[0].text} {' or '.join(keys)}), and the rest in on create set"
            if not keys:
                help_ = "it has no key that can be given: match it, and create it in a step of its own"
            self.report(messages.BadClause("a node is merged by exactly a key of its label", help_), node.span)
            return
        self._merge_row(clause, name, vertex, columns, values, node.span)

    @staticmethod
    def _key_of(table: Table, columns: list[Name]) -> bool:
        return any({c.text for c in columns} == set(key) for key in table.keys)

    def _merge_row(
        self,
        clause: syntax.Merge,
        name: str,
        choice: Vertex | EdgeTable,
        columns: list[Name],
        values: list[syntax.Expr],
        span: Span,
    ) -> None:
        """Find the row of these values, or make it; for each of the rows there are, one after another."""
        if any(isinstance(v, syntax.Null) for v in values):
            self.report(messages.BadClause("nothing is merged by null", "give the key a value"), span)
            return
        table = self.table(choice)
        row = f"{self.step.name.text}.row"
        outer = dict(self.scope)
        if self.rows is not None:
            names = {v: Variable(v, o.kind, o.choices, f"${row}", o.names, o.length, o.span)
                     for v, o in outer.items() if not o.alias.startswith("$")}  # fmt: skip
            inner = {**outer, **names}
        else:
            inner = outer

        def of_row(expr: Any) -> Any:
            """An expression over the rows as one over the loop's row."""

            def put(node: Any) -> Any:
                if (
                    isinstance(node, syntax.ColumnName)
                    and node.table is not None
                    and node.table.text == self.rows_alias
                ):
                    return syntax.Placeholder(row, node.name, node.span)
                return node

            return rebuild(expr, put) if self.rows is not None else expr

        if any(self._speaks_of_made(v) for v in values):
            help_ = "merge nodes by themselves in a step before"
            self.report(messages.BadClause("a merge is of what was there before the step", help_), span)
            return
        key = [of_row(v) for v in values]
        known = {c.text: v for c, v in zip(columns, key, strict=True)}
        on_create = [a for action in clause.actions if action.kind == "create" for a in action.assignments]
        on_match = [a for action in clause.actions if action.kind == "match" for a in action.assignments]
        kind = "node" if isinstance(choice, Vertex) else "edge"
        new = Variable(name, kind, (choice,), name, {}, None, span)
        made = self._assignments(tuple(on_create), new, {**inner, name: new}, known)
        old = Variable(name, kind, (choice,), table.name if self._key_of(table, columns) else name, {}, None, span)
        changed = self._assignments(tuple(on_match), old, {**inner, name: old})
        made, changed = (tuple(a.with_(value=of_row(a.value)) for a in found) for found in (made, changed))
        target = Name(table.name, True, span)
        all_columns = (*columns, *(a.column for a in made))
        all_values = (*key, *(a.value for a in made))
        rows = syntax.Values((all_values,), span)
        body: tuple[Any, ...]
        if self._key_of(table, columns):
            conflict = syntax.Conflict(tuple(columns), changed, span)
            insert = syntax.Insert(target, all_columns, rows, conflict, (), span)
            body = (self._hidden(name, insert, span),)
        else:
            alias = Name(name, True, span)
            same = both([syntax.Binary("=", column_of(name, c, span), v, span) for c, v in known.items()], span)
            source = syntax.From(syntax.TableName(target, alias, span), (), span)
            look = syntax.Select(False, (item_of(syntax.Number("1", span), "com_c1"),), source, same, (), None, span)
            self.names.discard(f"{self.step.name.text}.there")
            there = self._hidden("there", syntax.Query(look, (), None, None, span), span)
            make = self._hidden(name, syntax.Insert(target, all_columns, rows, None, (), span), span)
            then: tuple[Any, ...] = ()
            if changed:
                update = syntax.Update(target, alias, changed, None, same, (), span)
                then = (self._hidden(f"{name}.again", update, span),)
            exists = syntax.ExistsPlaceholder(syntax.Placeholder(there.name.text, None, span), span)
            body = (there, syntax.If(exists, then, (make,), (), span))
        if self.rows is not None:
            loop = syntax.ForEach(Name(row, True, span), self.rows, body, (), span)
            self.made.append(loop)
        else:
            self.made += body
        self.scope[name] = Variable(name, kind, (choice,), name, {}, None, span)
        self.values[name] = {c.text: v for c, v in zip(columns, values, strict=True)}
        reread = syntax.TableName(target, named(name, span), span)
        on = both([syntax.Binary("=", column_of(name, c.text, span), v, span)
                   for c, v in zip(columns, values, strict=True)], span)  # fmt: skip
        self.joined[name] = syntax.Join("inner", reread, on, (), span)
        self.written[name] = table.name

    def _speaks_of_made(self, expr: Any) -> bool:
        """True if an expression is about rows that this step has made, and has no name for by value."""
        return any(
            isinstance(n, syntax.ColumnName) and n.table is not None and n.table.text in self.joined
            for n in below(expr)
        )

    # ------------------------------------------------------------ set

    def _assignments(
        self,
        nodes: tuple[syntax.Assignment, ...],
        variable: Variable,
        scope: dict[str, Variable] | None,
        known: dict[str, syntax.Expr] | None = None,
    ) -> tuple[syntax.Assignment, ...]:
        """Assignments to properties of one element, as to columns. `known`: values of its columns that are given, where
        it is made: it has no others yet."""
        made = []
        choice = variable.choices[0]
        for node in nodes:
            if node.table is None or spelled(node.table.text, [variable.name]) != [variable.name]:
                named_ = not variable.name.startswith("com_")
                shown = variable.name if named_ else "what is merged"
                help_ = (
                    f"write {shown}.property = …" if named_ else "give it a name in the pattern, and write name.x = …"
                )
                self.report(messages.BadClause(f"only {shown} is written here", help_), node.span)
                continue
            column = self._column(choice, node.column, variable.name)
            if column is None:
                continue
            value = node.value
            if known is not None:
                value = self._known_values(value, variable, choice, known)
            value = self.put(value, scope if scope is not None else self.scope)
            made.append(syntax.Assignment(None, Name(column, True, node.column.span), value, node.span))
        return tuple(made)

    def _known_values(
        self, value: Any, variable: Variable, choice: Vertex | EdgeTable, known: dict[str, syntax.Expr]
    ) -> Any:
        """The value of a property of what is being made, where it is given."""
        properties = dict(choice.properties)

        def put(node: Any) -> Any:
            if isinstance(node, syntax.ColumnName) and node.table is not None and node.table.text == variable.name:
                fits = spelled(node.name.text, properties)
                column = properties[fits[0]] if len(fits) == 1 else None
                if column in known:
                    return known[column]
                if column is not None:
                    help_ = f"{variable.name} is new here: write the value itself"
                    detail = f"{variable.name}.{node.name.text} has no value yet"
                    self.report(messages.BadClause(detail, help_), node.span)
            return node

        return rebuild(value, put)

    def _set(self, clause: syntax.SetClause) -> None:
        groups: dict[str, list[syntax.Assignment]] = {}
        for node in clause.assignments:
            if node.table is None:
                help_ = f"write a variable before it: c.{node.column.text} = …"
                self.report(messages.BadClause("a property of something is set", help_), node.span)
                continue
            fits = spelled(node.table.text, self.scope)
            if len(fits) != 1:
                self.unknown(node.table, self.scope)
            else:
                groups.setdefault(fits[0], []).append(node)
        for name, nodes in groups.items():
            variable = self.scope[name]
            if name in self.written:
                help_ = "write it in the same clause, in on create set and on match set, or in a step of its own"
                self.report(messages.BadClause(f"{name} is written twice in a step", help_), clause.span)
                continue
            if not self._writable(variable, clause.span):
                continue
            if len(variable.choices) != 1:
                help_ = "give it one label where it is matched"
                self.report(messages.BadClause(f"{name} may be of several tables", help_), clause.span)
                continue
            self._update(name, variable, tuple(nodes), clause.span)

    def _writable(self, variable: Variable, span: Span) -> bool:
        if variable.kind == "lost":
            return False
        if variable.kind not in ("node", "edge"):
            self.whole(variable, span)
            return False
        if variable.name in self.values:
            help_ = "give its properties in the braces, or in on create set"
            self.report(messages.BadClause(f"{variable.name} is made in this step", help_), span)
            return False
        return True

    def _update(self, name: str, variable: Variable, nodes: tuple[syntax.Assignment, ...], span: Span) -> None:
        """Update the rows of one element, each from the rows that it was matched in."""
        choice = variable.choices[0]
        table = self.table(choice)
        assignments = self._assignments(nodes, variable, None)
        key = [(c, self.held_by(variable, choice, c, span)) for c in table.primary_key]
        items = [item_of(value, f"com_k{i}") for i, (_, value) in enumerate(key)]
        written: list[syntax.Assignment] = []
        for node in assignments:
            if not any(isinstance(n, syntax.ColumnName) for n in below(node.value)):
                written.append(node)
                continue
            items.append(item_of(node.value, f"com_v{len(items)}"))
            alias = items[-1].alias
            assert alias is not None
            written.append(node.with_(value=column_of("com_s", alias.text, node.span)))
        source = self._from([i.expr for i in items], span)
        body = syntax.Select(True, tuple(items), source, None, (), None, span)
        derived = syntax.Derived(syntax.Query(body, (), None, None, span), named("com_s", span), span)
        where = both(
            [
                syntax.Binary("=", column_of(TARGET, c, span), column_of("com_s", f"com_k{i}", span), span)
                for i, (c, _) in enumerate(key)
            ],
            span,
        )
        target = Name(table.name, True, span)
        origin = syntax.From(derived, (), span)
        self._emit("", syntax.Update(target, named(TARGET, span), tuple(written), origin, where, (), span), span)
        self.written[name] = table.name
        self._read_again(name, variable, choice, span)

    def _read_again(self, name: str, variable: Variable, choice: Vertex | EdgeTable, span: Span) -> None:
        """From here on a variable is its row as it is now."""
        table = self.table(choice)
        key = [(c, self.held_by(variable, choice, c, span)) for c in table.primary_key]
        on = both([syntax.Binary("=", column_of(name, c, span), value, span) for c, value in key], span)
        ref = syntax.TableName(Name(table.name, True, span), named(name, span), span)
        self.joined[name] = syntax.Join("left", ref, on, (), span)
        self.scope[name] = Variable(name, variable.kind, (choice,), name, {}, None, span)
        self.values[name] = dict(key)

    # ------------------------------------------------------------ delete

    def _delete(self, clause: syntax.Detach) -> None:
        found: list[Variable] = []
        for name in clause.variables:
            fits = spelled(name.text, self.scope)
            if len(fits) != 1:
                self.unknown(name, self.scope)
            elif self._writable(self.scope[fits[0]], name.span):
                found.append(self.scope[fits[0]])
        found.sort(key=lambda v: v.kind != "edge")
        gone: list[str] = []
        for variable in found:
            for choice in variable.choices:
                if isinstance(choice, EdgeTable) and choice.is_key:
                    self._unlink(choice, choice.source, variable, choice, clause.span)
                    continue
                if clause.detach and isinstance(choice, Vertex):
                    self._detach(choice, variable, clause.span)
                columns = [(c, c) for c in self.table(choice).primary_key]
                self._delete_rows(choice.table, columns, variable, choice, clause.span)
                gone.append(choice.table)

    def _detach(self, vertex: Vertex, variable: Variable, span: Span) -> None:
        """Delete the edges of a node."""
        for edge in self.graph.edges:
            for end in (edge.source, edge.destination):
                if end.table != vertex.table or (edge.is_key and end == edge.source):
                    continue
                if edge.is_key:
                    self._unlink(edge, end, variable, vertex, span)
                else:
                    columns = list(zip(end.columns, end.target, strict=True))
                    self._delete_rows(edge.table, columns, variable, vertex, span)

    def _unlink(self, edge: EdgeTable, end: End, variable: Variable, choice: Vertex | EdgeTable, span: Span) -> None:
        """Take a foreign key back, where it leads to a node or is the edge itself."""
        table = self.table(edge)
        columns = edge.destination.columns
        never_null = [c for c in columns if (held := table.column(c)) is not None and not held.nullable]
        if never_null:
            help_ = f"delete the rows of {edge.table} in a step before"
            self.report(messages.BadClause(f"{edge.table}.{never_null[0]} is never null", help_), span)
            return
        pairs = list(zip(end.columns, end.target, strict=True)) if end is not edge.source else []
        if not pairs:
            pairs = [(c, c) for c in table.primary_key]
        assignments = tuple(syntax.Assignment(None, Name(c, True, span), syntax.Null(span), span) for c in columns)
        where = self._met(pairs, variable, choice, span)
        target = Name(table.name, True, span)
        self._emit("", syntax.Update(target, named(TARGET, span), assignments, None, where, (), span), span)

    def _delete_rows(
        self, table: str, columns: list[tuple[str, str]], variable: Variable, choice: Vertex | EdgeTable, span: Span
    ) -> None:
        where = self._met(columns, variable, choice, span)
        self._emit("", syntax.Delete(Name(table, True, span), named(TARGET, span), where, (), span), span)

    def _met(
        self, columns: list[tuple[str, str]], variable: Variable, choice: Vertex | EdgeTable, span: Span
    ) -> syntax.Expr:
        """A row of the target names an element that was matched: by (its column, the element's)."""
        values = [(mine, self.held_by(variable, choice, its, span)) for mine, its in columns]
        same = both([syntax.Binary("=", column_of(TARGET, mine, span), v, span) for mine, v in values], span)
        assert same is not None
        source = self._from([v for _, v in values], span)
        if source is None:
            return same
        items = (item_of(syntax.Number("1", span), "com_c1"),)
        body = syntax.Select(False, items, source, same, (), None, span)
        return syntax.Exists(syntax.Query(body, (), None, None, span), span)

    # ------------------------------------------------------------ return

    def _returned(self, node: syntax.GraphReturn) -> Any:
        """What is returned, after all that was written."""
        exprs = [i.expr for i in node.items if isinstance(i, syntax.Item)] + [k.expr for k in node.order]
        names = {(n.table or n.name).text for e in exprs for n in below(e) if isinstance(n, syntax.ColumnName)}
        wanted = [name for name in self.joined if any(spelled(n, [name]) for n in names)]
        if self.rows is not None:
            rows = syntax.TablePlaceholder(self.rows, named(self.rows_alias, node.span), node.span)
            self.joins = [("inner", rows, [])]
        else:
            self.joins = []
        self.where = []
        for name in wanted if self.rows is not None or wanted else list(self.joined):
            join = self.joined[name]
            self.joins.append((join.kind, join.right, [join.on] if join.on is not None else []))
        if not self.joins:
            self.joins = []
        return self.query(node)


def _default(text: str | None, span: Span) -> syntax.Expr:
    """A column's default, as a value; it was read when its schema was."""
    if text is None:
        return syntax.Null(span)
    made, _ = parse_expression(Source(text))
    return made if made is not None else syntax.Null(span)
