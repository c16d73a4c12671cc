"""Inserts, updates and deletes: what is written to which columns, by which rows, and what comes back."""

from __future__ import annotations

from com import diagnostics as messages
from com.compiler import ir, syntax
from com.compiler.conversions import bare
from com.compiler.names import Env, Seen, near_names, spelled
from com.compiler.queries import Queries, Relation, _Select, counted
from com.node import Node
from com.plan import Effect, Field
from com.schema import Column, Table
from com.source import Span


class Written(Node):
    """A checked write: IR, the fields of its step's rows, the shape it has by itself, what it does."""

    operation: ir.Insert | ir.Update | ir.Delete
    fields: tuple[Field, ...]
    card: str
    keys: tuple[tuple[str, ...], ...]
    effects: tuple[Effect, ...]


class Writes(Queries):
    """The part of the checker that knows writes."""

    # ------------------------------------------------------------ insert

    def insert(self, node: syntax.Insert) -> Written | None:
        """`insert into t (columns) …`"""
        table = self._writable(node.table)
        columns = [self._target(table, name) for name in node.columns] if table is not None else []
        self._named_once(node.columns)
        source, card = self._insert_source(node, table, columns)
        if table is None or source is None or any(c is None for c in columns):
            return None
        known = [c for c in columns if c is not None]
        self._nothing_left_out(node, table, known)
        conflict = self._conflict(node.conflict, table) if node.conflict is not None else None
        returning: tuple[ir.Output, ...] = ()
        if node.returning:
            env = Env("returning", None, [self.seen_table(table, table.name)])
            returning = self._returning(node.returning, env, table)
        fields = self._fields(returning, table)
        if node.conflict is not None and card != "many":
            card = "one" if card == "one" and (node.conflict.assignments or returning) else "maybe"
        identity = table.identity.name if table.identity is not None else None
        names = tuple(c.name for c in known)
        operation = ir.Insert(table, names, source, conflict, identity, returning)
        effects = [Effect("insert", table.name, names)]
        if conflict is not None and conflict.assignments:
            effects.append(Effect("update", table.name, tuple(name for name, _ in conflict.assignments)))
        return Written(operation, fields, card, self._keys_of(fields, returning, table), tuple(effects))

    def _writable(self, name: syntax.Name) -> Table | None:
        table = self.table(name)
        if table is not None and table.is_view:
            self.report(messages.ReadOnly(table.name), name.span)
            return None
        if table is not None and not table.primary_key:
            self.report(messages.NoRowImages(table.name), name.span)
        return table

    def _target(self, table: Table | None, name: syntax.Name) -> Column | None:
        if table is None:
            return None
        fits = spelled(name.text, (c.name for c in table.columns))
        if len(fits) != 1:
            near = near_names(name.text, [c.name for c in table.columns if not c.generated])
            self.report(messages.UnknownColumn(name.text, table.name, near), name.span)
            return None
        column = table.column(fits[0])
        if column is not None and (column.generated or column.computed):
            self.report(messages.GeneratedColumn(column.name), name.span)
            return None
        if column is not None and column.type.is_unknown:
            self.report(messages.UnknownTypeUsed(column.name, column.engine_type), name.span)
            return None
        return column

    def _named_once(self, names: tuple[syntax.Name, ...]) -> None:
        seen: set[str] = set()
        for name in names:
            if name.text.casefold() in seen:
                self.report(messages.DuplicateName("column", name.text), name.span)
            seen.add(name.text.casefold())

    def _insert_source(
        self, node: syntax.Insert, table: Table | None, columns: list[Column | None]
    ) -> tuple[ir.Tuples | ir.Query | None, str]:
        if isinstance(node.source, syntax.Values):
            rows = []
            for row in node.source.rows:
                made = [self.expr(value, Env("values")) for value in row]
                if len(row) != len(node.columns):
                    span = row[0].span.to(row[-1].span)
                    self.report(_value_count(node.table.text, len(node.columns), len(row)), span)
                    return None, "many"
                rows.append(
                    tuple(self._value(v, table, c) for v, c in zip(made, columns or [None] * len(made), strict=True))
                )
            return ir.Tuples(tuple(rows)), "one" if len(rows) == 1 else "many"
        relation = self.query(node.source, None, observed=True)
        if table is None or any(c is None for c in columns):
            return None, relation.card
        if relation.open:
            return None, relation.card
        if len(relation.outputs) != len(columns):
            count = len(relation.outputs)
            self.report(_value_count(table.name, len(columns), count), node.source.span)
            return None, relation.card
        return self._stored(relation, table, [c for c in columns if c is not None]), relation.card

    def _value(self, made: ir.Expr, table: Table | None, column: Column | None) -> ir.Expr:
        """A value as it is written to a column."""
        if table is None or column is None:
            return made
        what = f"{table.name}.{column.name}"
        if not column.nullable:
            if isinstance(made, ir.Constant) and made.value is None and not made.type.is_unknown:
                self.report(messages.NullIntoNotNull(what), made.span)
                return self.poison(made.span)
            if made.nullable:
                for span, step, place in self.hidden_maybes(made):
                    self.report(messages.MaybeMissing(place, step, f"{what}, which is never null,"), span)
        return self.store(made, column.type, what)

    def _stored(self, relation: Relation, table: Table, columns: list[Column]) -> ir.Query:
        """An insert's query with its columns of the table's types."""
        query = relation.query
        if isinstance(query, ir.Select):
            for place, step, shown in self.hidden_maybes(query.where) if query.where is not None else ():
                self.report(messages.MaybeMissing(shown, step, "the where of this insert"), place)
            stored = tuple(
                ir.Output(o.name, self._value(o.expr, table, c)) for o, c in zip(query.columns, columns, strict=True)
            )
            return query.with_(columns=stored)
        if not self._sides_fit(query, table, columns):
            return query
        return self.fitted(relation, tuple(c.type for c in columns))

    def _sides_fit(self, query: ir.Query, table: Table, columns: list[Column]) -> bool:
        """True if every select of a union gives what the columns hold; else the first that does not has been told."""
        if isinstance(query, ir.SetQuery):
            return self._sides_fit(query.left, table, columns) and self._sides_fit(query.right, table, columns)
        made = [self._value(bare(o.expr), table, c) for o, c in zip(query.columns, columns, strict=True)]
        return not any(m.type.is_unknown for m in made)

    def _nothing_left_out(self, node: syntax.Insert, table: Table, given: list[Column]) -> None:
        filled = [c for c in table.columns if c.nullable or c.default is not None or c.generated or c.computed]
        missing = [c.name for c in table.columns if c not in filled and c not in given]
        if missing:
            end = node.columns[-1].span.end if node.columns else node.table.span.end
            self.report(messages.MissingColumn(", ".join(missing), table.name), Span(node.table.span.start, end))

    def _conflict(self, node: syntax.Conflict, table: Table) -> ir.Conflict | None:
        names = []
        for name in node.columns:
            fits = spelled(name.text, (c.name for c in table.columns))
            if len(fits) != 1:
                near = near_names(name.text, [c.name for c in table.columns])
                self.report(messages.UnknownColumn(name.text, table.name, near), name.span)
                return None
            names.append(fits[0])
        key = next((k for k in table.keys if set(k) == set(names)), None)
        if key is None:
            keys = [f"({', '.join(k)})" for k in table.keys]
            near = f"its keys are {', '.join(keys)}" if keys else "it has none"
            span = node.columns[0].span.to(node.columns[-1].span)
            self.report(messages.NotAKey(", ".join(names), table.name, near), span)
            return None
        old = self.seen_table(table, table.name)
        new = Seen("excluded", old.fields, hidden=True)
        assigned = self._assignments(node.assignments, table, table.name, Env("do update", None, [old, new]))
        return ir.Conflict(key, assigned)

    # ------------------------------------------------------------ update and delete

    def update(self, node: syntax.Update) -> Written | None:
        """`update t set … [from …] where …`"""
        table = self._writable(node.table)
        if table is None:
            return None
        alias = node.alias.text if node.alias is not None else table.name
        target = self.seen_table(table, alias)
        work = self._work(target, node.source, node.span)
        source = work.source
        assigned = self._assignments(node.assignments, table, alias, work.env.at("set"))
        where = self._where(node.where, work, table, "update", node.table.span)
        returning = self._returning(node.returning, Env("returning", None, [target]), table, work.env)
        fields = self._fields(returning, table)
        if where is None:
            return None
        card = work.target_card()
        operation = ir.Update(table, alias, assigned, source, where, returning)
        effect = Effect("update", table.name, tuple(name for name, _ in assigned))
        return Written(operation, fields, card, self._keys_of(fields, returning, table), (effect,))

    def delete(self, node: syntax.Delete) -> Written | None:
        """`delete from t where …`"""
        table = self._writable(node.table)
        if table is None:
            return None
        alias = node.alias.text if node.alias is not None else table.name
        target = self.seen_table(table, alias)
        work = self._work(target, None, node.span)
        where = self._where(node.where, work, table, "delete", node.table.span)
        returning = self._returning(node.returning, Env("returning", None, [target]), table)
        fields = self._fields(returning, table)
        if where is None:
            return None
        operation = ir.Delete(table, alias, where, returning)
        effect = Effect("delete", table.name)
        return Written(operation, fields, work.target_card(), self._keys_of(fields, returning, table), (effect,))

    def _work(self, target: Seen, source: syntax.From | None, span: Span) -> _Target:
        star = syntax.Star(None, span)
        body = syntax.Select(False, (star,), source, None, (), None, span)
        return _Target(self, body, syntax.Query(body, (), None, None, span), target)

    def _where(self, node: syntax.Expr | None, work: _Target, table: Table, verb: str, span: Span) -> ir.Expr | None:
        if node is None:
            column = (table.primary_key or tuple(c.name for c in table.columns))[0]
            self.report(messages.NoWhere(verb, table.name, f"{column} = …"), span)
            return None
        made = self.condition(node, work.env.at("where"))
        for place, step, shown in self.hidden_maybes(made):
            self.report(messages.MaybeMissing(shown, step, f"the where of this {verb}"), place)
        work.learn(made)
        return made

    def _assignments(
        self, nodes: tuple[syntax.Assignment, ...], table: Table, alias: str, env: Env
    ) -> tuple[tuple[str, ir.Expr], ...]:
        made = []
        self._named_once(tuple(n.column for n in nodes))
        for node in nodes:
            if node.table is not None and node.table.text not in (alias, table.name):
                near = f"only {alias} is written here"
                self.report(messages.UnknownTable(node.table.text, near), node.table.span)
            value = self.expr(node.value, env)
            keys = spelled(node.column.text, table.primary_key)
            if len(keys) == 1:
                self.report(messages.KeyAssigned(keys[0], table.name), node.column.span)
                continue
            column = self._target(table, node.column)
            if column is None:
                continue
            made.append((column.name, self._value(value, table, column)))
        return tuple(made)

    # ------------------------------------------------------------ what comes back

    def _returning(
        self, items: tuple[syntax.Item | syntax.Star, ...], env: Env, table: Table, wider: Env | None = None
    ) -> tuple[ir.Output, ...]:
        if not items:
            return ()
        for item in items:
            name = item.expr if isinstance(item, syntax.Item) else None
            if wider is not None and isinstance(name, syntax.ColumnName) and name.table is not None:
                others = [s.name for s in wider.seen if s is not env.seen[0]]
                if name.table.text in others:
                    self.report(messages.ReturnedElsewhere(table.name), name.span)
                    return ()
        span = items[0].span.to(items[-1].span)
        body = syntax.Select(False, items, None, None, (), None, span)
        return _Target(self, body, syntax.Query(body, (), None, None, span), env.seen[0]).outputs()

    @staticmethod
    def _fields(returning: tuple[ir.Output, ...], table: Table) -> tuple[Field, ...]:
        if returning:
            return tuple(Field(o.name, o.expr.type, o.expr.nullable) for o in returning)
        return tuple(Field(c.name, c.type, c.nullable) for c in table.columns if not c.type.is_unknown)

    @staticmethod
    def _keys_of(
        fields: tuple[Field, ...], returning: tuple[ir.Output, ...], table: Table
    ) -> tuple[tuple[str, ...], ...]:
        names = {o.expr.name: o.name for o in returning if isinstance(o.expr, ir.Column)}
        if not returning:
            names = {f.name: f.name for f in fields}
        sure = {c.name for c in table.columns if not c.nullable}
        return tuple(
            tuple(names[c] for c in key) for key in table.keys if sure.issuperset(key) and names.keys() >= set(key)
        )


def _value_count(table: str, columns: int, values: int) -> messages.ValueCount:
    return messages.ValueCount(table, counted(columns, "column"), counted(values, "value"))


class _Target(_Select):
    """A written table with what is read beside it: the scope of `where`, `set` and `returning`."""

    def __init__(self, checker: Writes, body: syntax.Select, node: syntax.Query, target: Seen) -> None:
        super().__init__(checker, body, node, None, False)
        self.env.seen.append(target)
        self.target = target
        self.source = self._from(body.source) if body.source is not None else None

    def learn(self, where: ir.Expr) -> None:
        """Take the equalities of a where."""
        self._learn(where, None)

    def target_card(self) -> str:
        """How many rows of the target can be met."""
        return "maybe" if self._is_fixed(self.target, self._closure(())) else "many"

    def outputs(self) -> tuple[ir.Output, ...]:
        """The columns of a returning clause."""
        return self._outputs(self.env)
