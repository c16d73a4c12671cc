"""Writes to scripts: the statements that change a table, keep images of its rows, and give the step's rows.

Takes the IR of an insert, update or delete; gives a plan's Write. All is set-based: images are taken by the engine,
before and after, into `com_change`; ids are numbered by the engine from the last one given out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from com import diagnostics as messages
from com import plan
from com.compiler import ir, nodes
from com.compiler.engines import Engine
from com.compiler.nodes import Tree, column
from com.compiler.sql import Sql, reads_tables
from com.diagnostics import Diagnostic, Message
from com.node import Node, rebuild, walk
from com.plan import Field, Statement, Write
from com.schema import INT, JSON, TEXT, Column, Table, Type

T = TypeVar("T")
_KEPT: dict[int, tuple[Table, dict[object, Any]]] = {}
_MOST_KEPT = 512

SOURCE = "com_s"
"""The alias of what is inserted."""


def lower_write(
    engine: Engine,
    problems: list[Diagnostic],
    step: ir.Step,
    wants_rows: bool,
    rows: ir.RowsSource | None = None,
) -> Write:
    """The script of a step's write. `rows`: a loop's rows, each of which meets at most one row of the target."""
    match step.operation:
        case ir.Insert():
            return _Insert(engine, problems, step, step.operation, wants_rows).write()
        case ir.Update():
            return _Update(engine, problems, step, step.operation, wants_rows).write(step.operation, rows)
        case ir.Delete():
            return _Delete(engine, problems, step, step.operation, wants_rows).write(step.operation, rows)
        case _:
            raise AssertionError("no write")


class _Write:
    """What inserts, updates and deletes have in common."""

    def __init__(
        self,
        engine: Engine,
        problems: list[Diagnostic],
        step: ir.Step,
        operation: ir.Insert | ir.Update | ir.Delete,
        wants_rows: bool,
    ) -> None:
        self.engine = engine
        self.problems = problems
        self.step = step
        self.table: Table = operation.table
        self.operation = operation
        self.wants_rows = wants_rows
        self.key = operation.table.primary_key

    def report(self, message: Message) -> None:
        self.problems.append(Diagnostic(message, self.step.span))

    def sql(self, *known: Node | Sequence[Node] | None) -> Sql:
        return Sql(self.engine, self.problems, *known)

    # ------------------------------------------------------------ the step's rows

    def outputs(self) -> tuple[tuple[str, ir.Expr], ...]:
        """The columns of the step's rows: those returned, else all that com has types for."""
        if self.operation.returning:
            return tuple((o.name, o.expr) for o in self.operation.returning)
        alias = self.target_alias()
        return tuple(
            (c.name, ir.Column(c.type, c.nullable, self.step.span, alias, c.name, c.adapted))
            for c in self.table.columns
            if not c.type.is_unknown
        )

    def target_alias(self) -> str:
        return self.operation.alias if isinstance(self.operation, ir.Update | ir.Delete) else self.table.name

    def returned(self, s: Sql) -> tuple[list[Tree], list[Field], int]:
        """The trees of `returning`, its fields, and how many of them only order the rows."""
        if not self.wants_rows:
            return [], [], 0
        outputs = self.outputs()
        if any(ir.has_query(e) for _, e in outputs):
            s.unsupported("a subquery in returning", "read it in a step of its own")
            return [], [], 0
        verb = type(self.operation).__name__.lower()
        if verb not in self.engine.returns:
            return [], [], 0
        if not self.engine.returns_bound and any(self._binds(e) for _, e in outputs):
            if verb != "update" or not self.key:
                s.unsupported("a placeholder in returning", "return the columns, and compute it in a step after")
            return [], [], 0
        if not self.engine.aliased:  # `returning` does not know the alias
            s.names = {**s.names, self.target_alias(): ""}
        trees = [nodes.alias(s.expr(e), n) for n, e in outputs]
        fields = [Field(n, e.type, e.nullable) for n, e in outputs]
        hidden = [part for name in self.order_columns() for part in self._order_parts(s, name)]
        for number, (tree, type_) in enumerate(hidden, 1):
            trees.append(nodes.alias(tree, f"com_h{number}"))
            fields.append(Field(f"com_h{number}", type_, False))
        s.names = {n: to for n, to in s.names.items() if n != self.target_alias()}
        return trees, fields, len(hidden)

    def _binds(self, e: ir.Expr) -> bool:
        """True if an expression cannot be written without a bound value or a query."""
        s = self.sql(e)
        tree = s.expr(e)
        return bool(s.binds) or nodes.holds_query(tree)

    def _order_parts(self, s: Sql, name: str) -> list[tuple[Tree, Type]]:
        """What orders rows by a column: its value, or whether it is null and then its value or another."""
        found = self.table.column(name)
        assert found is not None
        tree = self.read(s, self.target_alias() if self.engine.aliased else "", found)
        if not found.nullable or name in self.key:
            return [(tree, found.type)]
        missing = nodes.is_null(tree)
        if self.engine.typed:
            missing = s.case([(missing, nodes.number(1))], nodes.number(0))
        if found.type.is_number or (found.type.kind == "bool" and not self.engine.typed):
            return [(missing, INT), (nodes.call("coalesce", tree, nodes.number(0)), found.type)]
        if self.engine.typed and found.type.kind == "bool":
            return [(missing, INT), (s.case([(tree, nodes.number(1))], nodes.number(0)), INT)]
        if self.engine.typed and found.type.kind != "text":
            shown = nodes.call("coalesce", self.engine.image(s, found.type, tree), nodes.text(""))
        elif found.type.kind == "bytes":
            shown = nodes.call("hex", tree)
        else:
            shown = nodes.call("coalesce", tree, nodes.text(""))
        return [(missing, INT), (shown, TEXT)]

    def order_columns(self) -> tuple[str, ...]:
        return self.key or tuple(c.name for c in self.table.columns if not c.type.is_unknown)

    # ------------------------------------------------------------ images

    def image(self, s: Sql, alias: str) -> Tree:
        """A row as a JSON object."""

        def make() -> Tree:
            columns = [(c.name, self.engine.image(s, c.type, self.read(s, alias, c))) for c in self.table.columns]
            return nodes.once(self.engine.objects(s, columns), self.engine.dialect)

        return self.kept(("image", alias), make)

    def read(self, s: Sql, alias: str, c: Column) -> Tree:
        made: Tree = self.engine.adapt(s, c.type, column(alias, c.name)) if c.adapted else column(alias, c.name)
        return made

    def kept(self, what: object, make: Callable[[], T]) -> T:
        """What depends on the table alone, made once."""
        place = id(self.table)
        known = _KEPT.get(place)
        if known is None or known[0] is not self.table:
            if len(_KEPT) >= _MOST_KEPT:
                _KEPT.clear()
            known = _KEPT[place] = self.table, {}
        found = known[1].get((self.engine.name, what))
        if found is None:
            found = known[1][self.engine.name, what] = make()
        made: T = found
        return made

    def key_of(self, s: Sql, trees: Sequence[Tree]) -> Tree:
        """A row's key as a JSON array."""
        types = [c.type for n in self.key for c in self.table.columns if c.name == n]
        if self.engine.typed:  # an unknown type as the text that is cast back to it
            types = [JSON if type_.is_unknown else type_ for type_ in types]
        made: Tree = self.engine.arrays(
            s, [self.engine.image(s, t, tree) for t, tree in zip(types, trees, strict=True)]
        )
        return made

    def keys(self, alias: str) -> list[Tree]:
        return [column(alias, name) for name in self.key]

    def noted(self, s: Sql, n: Tree, key: Tree, **images: Tree) -> tuple[list[str], list[Tree]]:
        """Columns of com_change, and their values for one row."""
        head = [s.bind(plan.RunNumber()), s.bind(plan.StepNumber()), n, nodes.text(self.table.name), key]
        return ["run", "step", "n", "tbl", "key", *images], [*head, *images.values()]

    def note(self, s: Sql, query: tuple[list[str], Tree]) -> Statement:
        columns, tree = query
        return s.statement(nodes.insert(plan.CHANGES, columns, tree))

    def own_changes(self, s: Sql, alias: str = "") -> Tree:
        run = nodes.binary("=", column(alias, "run"), s.bind(plan.RunNumber()))
        return nodes.binary("and", run, nodes.binary("=", column(alias, "step"), s.bind(plan.StepNumber())))

    def fill(self) -> Statement:
        """Puts the images of the rows as they are now beside their keys."""
        return self.kept("fill", self._fill)

    def _fill(self) -> Statement:
        s = self.sql()
        own = self.own_changes(s)
        name = self.table.name
        conditions = []
        for index, key in enumerate(self.key):
            found = self.table.column(key)
            assert found is not None
            conditions.append(nodes.binary("=", column(name, key), self.noted_key(s, found, index)))
        image = nodes.select([self.image(s, name)], nodes.table(name), nodes.both(conditions))
        return s.statement(nodes.update(nodes.table(plan.CHANGES), [("after", nodes.scalar(image))], own))

    def noted_key(self, s: Sql, c: Column, index: int) -> Tree:
        """A part of the key that stands in com_change, as the column holds it."""
        noted: Tree = self.engine.part(s, c.type, self.engine.extract(s, column(plan.CHANGES, "key"), index))
        strict = c.type.is_unknown and c.engine_type and self.engine.dialect == "postgres"
        return s.cast(noted, c.engine_type) if strict else noted

    def script(
        self,
        main: Sequence[Statement],
        *,
        before: Sequence[Statement] = (),
        after: Sequence[Statement] = (),
        guards: Sequence[plan.Guard] = (),
        rows: Statement | None = None,
        source: Statement | None = None,
        staged: plan.Ref | None = None,
        ids: str = "",
    ) -> Write:
        verb = type(self.operation).__name__.lower()
        found = (source, staged, tuple(guards), tuple(before), tuple(main), tuple(after), rows, ids)
        return Write(verb, self.table.name, *found)


# ---------------------------------------------------------------- update and delete


class _Changed(_Write):
    """Rows of the target that meet a condition."""

    def number(self, alias: str) -> Tree:
        if self.step.inferred != "many":
            return nodes.number(1)
        return nodes.row_number([nodes.ordered(k) for k in self.keys(alias)])

    def met(self, s: Sql, source: ir.Source | None, alias: str) -> tuple[Tree, list[Tree]]:
        """The target, joined with what it is changed from."""
        target = nodes.table(self.table.name, alias)
        if source is None:
            return target, []
        first, joins = s.sources(source, True)
        return first, [*joins, nodes.join(target, None)]

    def images_before(self, source: ir.Source | None, where: ir.Expr, alias: str, batch: bool) -> list[Statement]:
        if not self.key:
            return []
        s = self.sql(where, source)
        n = nodes.row_number([nodes.ordered(k) for k in self.keys(alias)]) if batch else self.number(alias)
        columns, trees = self.noted(s, n, self.key_of(s, self.keys(alias)), before=self.image(s, alias))
        first, joins = self.met(s, source, alias)
        return [self.note(s, (columns, nodes.select(trees, first, s.expr(where), joins=joins)))]


class _Update(_Changed):
    def write(self, op: ir.Update, rows: ir.RowsSource | None) -> Write:
        source = op.source if rows is None else rows
        guards = [self.guard(op)] if op.source is not None else []
        s = self.sql(op, source)
        assigned = [(name, s.expr(e)) for name, e in op.assignments]
        origin = s.sources(source, True) if source is not None else None
        if origin is None and self.engine.dialect != "mysql" and any(self._reads_itself(e) for _, e in op.assignments):
            # with a `from`, the new values are all computed before the first is written
            origin = nodes.derived(nodes.select([nodes.alias(nodes.number(1), "com_n")]), "com_one"), []
        where = s.expr(op.where)
        trees, fields, hidden = self.returned(s)
        main = s.update(nodes.table(self.table.name, op.alias), op.alias, assigned, where, origin, trees)
        standing = self.standing(op) if self.wants_rows and not trees else None
        before = self.images_before(source, op.where, op.alias, rows is not None)
        after = [self.fill()] if self.key else []
        return self.script(
            [s.statement(main, fields, hidden)], before=before, after=after, guards=guards, rows=standing
        )

    def standing(self, op: ir.Update) -> Statement | None:
        """The rows written, as they are now, in the order of their keys; where `update` has no `returning`."""
        s = self.sql(op)
        if not self.key:
            s.unsupported("the rows that an update of a table without a key writes", "give the table a primary key")
            return None
        own = self.own_changes(s, plan.CHANGES)
        keys = [self.noted_key(s, c, i)
                for i, k in enumerate(self.key) if (c := self.table.column(k)) is not None]  # fmt: skip
        met = nodes.both(nodes.binary("=", column(op.alias, k), tree) for k, tree in zip(self.key, keys, strict=True))
        trees = [nodes.alias(s.expr(e), n) for n, e in self.outputs()]
        order = [nodes.ordered(k) for k in self.keys(op.alias)]
        joined = nodes.join(nodes.table(self.table.name, op.alias), met)
        made = nodes.select(trees, nodes.table(plan.CHANGES), own, order, [joined])
        return s.statement(made, [Field(n, e.type, e.nullable) for n, e in self.outputs()])

    def _reads_itself(self, e: ir.Expr) -> bool:
        name = self.table.name  # a view may read any table
        return any(isinstance(n, ir.TableSource) and (n.table.name == name or n.table.is_view) for n in walk(e))

    def guard(self, op: ir.Update) -> plan.Guard:
        """Finds a row of the target that is met by two rows of the source."""
        s = self.sql(op)
        assert op.source is not None
        first, joins = self.met(s, op.source, op.alias)
        key = self.key or (self.engine.row_id,)
        if not key[0]:
            s.unsupported("an update from rows of a table without a key", "give the table a primary key")
        shown = [self.table.column(n) for n in self.order_columns()]
        fields = [Field(c.name, c.type, c.nullable) for c in shown if c is not None]
        made = nodes.select([column(op.alias, f.name) for f in fields], first, s.expr(op.where), joins=joins)
        grouped = dict.fromkeys((*key, *(f.name for f in fields if self.engine.typed)))
        return plan.Guard(s.statement(nodes.met_twice(made, [column(op.alias, k) for k in grouped]), fields), "CM504")


class _Delete(_Changed):
    def write(self, op: ir.Delete, rows: ir.RowsSource | None) -> Write:
        s = self.sql(op, rows)
        target, outer = nodes.table(self.table.name, op.alias), op.alias
        if self.engine.dialect == "mysql":  # `delete` has no alias for its table
            target, outer = nodes.table(self.table.name), self.table.name
            if outer != op.alias and any(isinstance(n, ir.TableSource) and n.alias == outer for n in walk(op.where)):
                s.unsupported("a delete that reads its table under its own name", "give that an alias")
            if rows is None:
                s.names = {op.alias: outer}
        where = s.expr(op.where)
        if rows is not None:
            first, joins = self.met(s, rows, op.alias)
            where = nodes.is_in(self.keys(outer), nodes.select(self.keys(op.alias), first, where, joins=joins))
        trees, fields, hidden = self.returned(s)
        main = nodes.delete(target, where, trees)
        before = self.images_before(rows, op.where, op.alias, rows is not None)
        return self.script([s.statement(main, fields, hidden)], before=before)


# ---------------------------------------------------------------- insert


class _Insert(_Write):
    operation: ir.Insert

    def __init__(
        self, engine: Engine, problems: list[Diagnostic], step: ir.Step, operation: ir.Insert, wants_rows: bool
    ) -> None:
        super().__init__(engine, problems, step, operation, wants_rows)
        self.op = operation
        self.identity = operation.identity
        self.ids = operation.table.name if operation.identity is not None else ""
        self.source: Statement | None = None
        self.staged: plan.Ref | None = None

    def insert(self, source: Tree, conflict: Tree | None = None, returning: Sequence[Tree] = ()) -> Tree:
        if self.identity is not None and self.engine.overriding:
            source = nodes.worded(self.engine.overriding, source)
        return nodes.insert(self.table.name, self.names(), source, conflict, returning)

    def write(self) -> Write:
        op = self.op
        if op.conflict is not None and self._can_meet(op.conflict):
            if isinstance(op.source, ir.Tuples) and len(op.source.rows) == 1 and not self._queries(op.source):
                return self._one_or_other(op.conflict, op.source.rows[0])
            return self._many_or_others(op.conflict)
        if isinstance(op.source, ir.Tuples) and (self.identity is not None or not self._queries(op.source)):
            return self._tuples(op.source)
        return self._from_query()

    @staticmethod
    def _queries(source: ir.Tuples) -> bool:
        return any(ir.has_query(e) for row in source.rows for e in row)

    def _can_meet(self, conflict: ir.Conflict) -> bool:
        """False if the key is new in any case: a generated id, or null by default."""
        for name in conflict.columns:
            found = self.table.column(name)
            assert found is not None
            if name in self.op.columns:
                continue
            if found.generated or found.default is None:
                return False
            self.report(messages.KeyNotGiven(self.engine.title, self.table.name, name))
            return False
        return True

    def _key_given(self) -> bool:
        """Whether the primary key of inserted rows is known: given, or a generated id."""
        missing = [k for k in self.key if k not in self.op.columns and k != self.identity]
        if missing:
            self.report(messages.KeyNotGiven(self.engine.title, self.table.name, ", ".join(missing)))
        return not missing

    # ------------------------------------------------------------ parts

    def id(self, s: Sql, offset: Tree) -> list[Tree]:
        """The id of a new row, if its table has such."""
        return [nodes.binary("+", s.bind(plan.LastId(self.table.name)), offset)] if self.identity is not None else []

    def names(self) -> list[str]:
        return [self.identity, *self.op.columns] if self.identity is not None else list(self.op.columns)

    def is_new(self, s: Sql) -> Tree:
        """Tells rows with ids of this operation."""
        assert self.identity is not None
        return nodes.binary(">", column(self.table.name, self.identity), s.bind(plan.LastId(self.table.name)))

    def images_of_new(self, counted: bool = False) -> Statement:
        """Notes the rows with new ids."""
        return self.kept(("new", counted), lambda: self._images_of_new(counted))

    def _images_of_new(self, counted: bool) -> Statement:
        s = self.sql()
        assert self.identity is not None
        name = self.table.name
        keys, image, new = self.key_of(s, self.keys(name)), self.image(s, name), self.is_new(s)
        n = nodes.binary("-", column(name, self.identity), s.bind(plan.LastId(name)))
        if counted:
            before = nodes.select([nodes.call("count", nodes.star())], nodes.table(plan.CHANGES), self.own_changes(s))
            n = nodes.binary("+", n, nodes.scalar(before))
        columns, trees = self.noted(s, n, keys, after=image)
        return self.note(s, (columns, nodes.select(trees, nodes.table(name), new)))

    def given(self, s: Sql, values: Sequence[ir.Expr], names: Sequence[str], alias: str) -> Tree:
        """The target's columns are these values."""
        known = dict(zip(self.op.columns, values, strict=True))
        made = nodes.both(nodes.binary("=", column(alias, n), s.expr(known[n])) for n in names)
        assert made is not None
        return made

    # ------------------------------------------------------------ values, without conflict

    def _tuples(self, source: ir.Tuples) -> Write:
        s = self.sql(self.op)
        rows = [[*self.id(s, nodes.number(i)), *map(s.expr, row)] for i, row in enumerate(source.rows, 1)]
        trees, fields, hidden = self.returned(s)
        main = s.statement(self.insert(nodes.values(rows), None, trees), fields, hidden)
        after: list[Statement] = []
        if self.key and self.identity is not None:
            after = [self.images_of_new()]
        elif self.key and self._key_given():
            after = [self._images_of(source)]
        return self.script([main], after=after, ids=self.ids)

    def _images_of(self, source: ir.Tuples, written: bool = False) -> Statement:
        """Notes the rows with just these keys (if any row was written)."""
        s = self.sql(self.op)
        name = self.table.name
        if len(source.rows) == 1:
            n, where = nodes.number(1), self.given(s, source.rows[0], self.key, name)
        else:
            places = [self.op.columns.index(k) for k in self.key]
            keys = [[s.expr(row[i]) for i in places] for row in source.rows]
            n = nodes.row_number([nodes.ordered(k) for k in self.keys(name)])
            if self.engine.upserts:
                where = nodes.is_in(self.keys(name), nodes.values(keys))
            else:
                where = nodes.is_one_of(self.keys(name), keys)
        if written:
            where = nodes.binary("and", where, nodes.binary(">", s.bind(plan.Written()), nodes.number(0)))
        columns, trees = self.noted(s, n, self.key_of(s, self.keys(name)), after=self.image(s, name))
        return self.note(s, (columns, nodes.select(trees, nodes.table(name), where)))

    # ------------------------------------------------------------ a query, without conflict

    def query(self) -> ir.Select | ir.Tuples:
        """What is inserted, its columns named as the target's; behind them what only `on conflict` takes."""
        op = self.op
        if isinstance(op.source, ir.Select):
            given = op.source.columns
            outputs = tuple(ir.Output(n, o.expr) for n, o in zip(op.columns, given, strict=False))
            return op.source.with_(columns=outputs + given[len(outputs) :])
        if isinstance(op.source, ir.Tuples):
            return op.source
        span = self.step.span
        inner = [ir.Column(f.type, f.nullable, span, "com_d", f.name) for f in op.source.fields]
        outputs = tuple(ir.Output(n, c) for n, c in zip(op.columns, inner, strict=True))
        order = rebuild(op.source.order, lambda n: n.with_(alias="com_d") if isinstance(n, ir.Column) else n)
        return ir.Select(False, outputs, ir.QuerySource(op.source, "com_d"), None, (), None, order, None, None)

    def rows(self, s: Sql, query: ir.Select | ir.Tuples) -> tuple[Tree, list[Tree]]:
        """What is inserted, as a source with the alias com_s, and the keys of its order."""
        if isinstance(query, ir.Tuples):
            made = s.tuples(query.rows, self.op.columns, "com_o1")
            return nodes.derived(made, SOURCE), [nodes.ordered(column(SOURCE, "com_o1"))]
        names = {o.expr: o.name for o in reversed(query.columns)}
        extra: list[ir.Output] = []
        order: list[Tree] = []
        for key in query.order:
            if isinstance(key.expr, ir.Constant):
                continue
            name = names.get(key.expr)
            if name is None:
                name = f"com_o{len(extra) + 1}"
                extra.append(ir.Output(name, key.expr))
            nulls_first = key.nulls_first if key.expr.nullable else None
            order += s.ordered_by(column(SOURCE, name), key.descending, nulls_first)
        if query.limit is None and query.offset is None:
            query = query.with_(order=())
        return nodes.derived(s.query(query, extra), SOURCE), order

    def _from_query(self) -> Write:
        query = self.query()
        s = self.sql(query)
        trees, fields, hidden = self.returned(s)
        if self.identity is None and isinstance(query, ir.Select):
            main = self.insert(s.query(query), None, trees)
            before, after = self._staged_keys(query)
            return self.script([s.statement(main, fields, hidden)], before=before, after=after)
        source, order = self.rows(s, query)
        columns = [*self.id(s, nodes.row_number(order)), *[column(SOURCE, c) for c in self.op.columns]]
        main = self.insert(nodes.select(columns, source), None, trees)
        before, after = ([], [self.images_of_new()] if self.key else []) if self.ids else self._staged_keys(query)
        return self.script([s.statement(main, fields, hidden)], before=before, after=after, ids=self.ids)

    def _staged_keys(self, query: ir.Select | ir.Tuples) -> tuple[list[Statement], list[Statement]]:
        """Notes the keys of what will be inserted; then their images."""
        if not self.key or not self._key_given():
            return [], []
        s = self.sql(query)
        source, order = self.rows(s, query)
        n, key = nodes.row_number(order), self.key_of(s, self.keys(SOURCE))
        columns, trees = self.noted(s, n, key)
        return [self.note(s, (columns, nodes.select(trees, source)))], [self.fill()]

    # ------------------------------------------------------------ one row, on conflict

    def _one_or_other(self, conflict: ir.Conflict, values: tuple[ir.Expr, ...]) -> Write:
        if conflict.assignments:
            return self._one_update(conflict, values)
        s = self.sql(self.op)
        trees, fields, hidden = ([], [], 0) if self.op.returning else self.returned(s)
        main = self._insert_one(s, values, conflict, (), trees)
        after: list[Statement] = []
        if self.key and self.identity is not None:
            after = [self.images_of_new()]
        elif self.key and self._key_given():
            after = [self._images_of(ir.Tuples((values,)), written=True)]
        rows = self._standing(conflict, values) if self.op.returning and self.wants_rows else None
        return self.script([s.statement(main, fields, hidden)], after=after, rows=rows, ids=self.ids)

    def _insert_one(
        self,
        s: Sql,
        values: Sequence[ir.Expr],
        conflict: ir.Conflict,
        assigned: Sequence[tuple[str, Tree]],
        trees: Sequence[Tree],
    ) -> Tree:
        row = [*self.id(s, nodes.number(1)), *map(s.expr, values)]
        if assigned or self._upserts(values):
            action = nodes.on_conflict(conflict.columns, assigned)
            return self.insert(nodes.values([row]), action, trees)
        there = self.given(s, values, conflict.columns, self.table.name)
        new = nodes.negated(nodes.exists(nodes.select([nodes.number(1)], nodes.table(self.table.name), there)))
        return self.insert(nodes.select(row, where=new), None, trees)

    def _upserts(self, values: Sequence[ir.Expr]) -> bool:
        """Whether the engine's own `on conflict` will do, which looks at checks and nulls of rows that stay out too."""
        given = zip((self.table.column(n) for n in self.op.columns), values, strict=True)
        lacking = any(e.nullable and c is not None and not c.nullable for c, e in given)
        return self.engine.upserts and not self.table.checks and not lacking

    def _standing(self, conflict: ir.Conflict, values: Sequence[ir.Expr]) -> Statement:
        """The row that stands there now."""
        s = self.sql(self.op)
        name = self.table.name
        where = self.given(s, values, conflict.columns, name)
        known = dict(zip(self.op.columns, values, strict=True))
        if any(
            known[c].nullable and self._nullable(c) for c in conflict.columns
        ):  # null meets nothing, so that row is new
            if self.identity is not None:
                where = nodes.binary("or", where, self.is_new(s))
            elif self.key and self._key_given():
                written = nodes.binary(">", s.bind(plan.Written()), nodes.number(0))
                where = nodes.binary("or", where, nodes.binary("and", written, self.given(s, values, self.key, name)))
        outputs = self.outputs()
        trees = [nodes.alias(s.expr(e), n) for n, e in outputs]
        return s.statement(nodes.select(trees, nodes.table(name, name), where), self.fields())

    def fields(self) -> list[Field]:
        return [Field(n, e.type, e.nullable) for n, e in self.outputs()]

    def _one_update(self, conflict: ir.Conflict, values: tuple[ir.Expr, ...]) -> Write:
        name = self.table.name
        known = dict(zip(self.op.columns, values, strict=True))
        rows = self._standing(conflict, values) if self.wants_rows else None
        asks = any(ir.has_query(e) for _, e in conflict.assignments)
        keyed = self.engine.upserts and any(c in conflict.columns for c, _ in conflict.assignments)
        native = (keyed or self._upserts(values)) and self.identity is None and not asks
        s = self.sql(self.op)
        if native:
            assigned = [(c, s.expr(e)) for c, e in conflict.assignments]
            main = [s.statement(self._insert_one(s, values, conflict, assigned, ()))]
        else:
            self._key_kept(conflict)
            proposed = [(c, s.expr(self._proposed(e, known))) for c, e in conflict.assignments]
            where = self.given(s, values, conflict.columns, name)
            main = [s.statement(nodes.update(nodes.table(name, name), proposed, where))]
            s = self.sql(self.op)
            main.append(s.statement(self._insert_one(s, values, conflict, (), ())))
        if not self.key:
            return self.script(main, rows=rows, ids=self.ids)
        s = self.sql(self.op)
        if self.identity is not None:
            columns, trees = self.noted(s, nodes.number(1), self.key_of(s, self.keys(name)), before=self.image(s, name))
            old = nodes.select(trees, nodes.table(name), self.given(s, values, conflict.columns, name))
            return self.script(
                main,
                before=[self.note(s, (columns, old))],
                after=[self.fill(), self.images_of_new(counted=True)],
                rows=rows,
                ids=self.ids,
            )
        if not self._key_given():
            return self.script(main, rows=rows)
        noted, after = self._old_or_key(conflict, ir.Tuples((values,)))
        return self.script(main, before=noted, after=after, rows=rows)

    def _proposed(self, e: ir.Expr, known: dict[str, ir.Expr]) -> ir.Expr:
        """The expression with the proposed row's values in it."""

        def put(node: Node) -> Node:
            if not isinstance(node, ir.Column) or node.alias != "excluded":
                return node
            value = known.get(node.name)
            if value is None:
                self.report(messages.KeyNotGiven(self.engine.title, self.table.name, f"excluded.{node.name}"))
                return node
            return value

        made: ir.Expr = rebuild(e, put)
        return made

    def _key_kept(self, conflict: ir.Conflict) -> None:
        if any(c in conflict.columns for c, _ in conflict.assignments):
            what, instead = "do update of the key that conflicts", "update it in a step of its own"
            self.report(messages.EngineLacks(self.engine.title, what, instead))

    def _old_or_key(
        self, conflict: ir.Conflict, query: ir.Select | ir.Tuples
    ) -> tuple[list[Statement], list[Statement]]:
        """Notes for each source row the row that stands there with its image, or the key of the new one."""
        s = self.sql(query)
        source, order = self.rows(s, query)
        name = self.table.name
        # where the conflict is not over the primary key, the row that stands there keeps its own
        keys = [nodes.call("coalesce", column(name, k), column(SOURCE, k)) for k in self.key]
        known = nodes.is_null(column(name, conflict.columns[0]), negate=True)
        image = s.case([(known, self.image(s, name))], None)
        columns, trees = self.noted(s, nodes.row_number(order), self.key_of(s, keys), before=image)
        joined = nodes.join(nodes.table(name), self.same(conflict.columns), "left")
        return [self.note(s, (columns, nodes.select(trees, source, joins=[joined])))], [self.fill()]

    # ------------------------------------------------------------ many rows, on conflict

    def same(self, names: Sequence[str]) -> Tree:
        """The target's columns are the source's."""
        made = nodes.both(nodes.binary("=", column(self.table.name, n), column(SOURCE, n)) for n in names)
        assert made is not None
        return made

    def _nullable(self, name: str) -> bool:
        found = self.table.column(name)
        return found is not None and found.nullable and name not in self.key

    def _may_be_null(self, query: ir.Select | ir.Tuples, names: Sequence[str]) -> list[str]:
        rows = query.rows if isinstance(query, ir.Tuples) else (tuple(o.expr for o in query.columns),)
        places = [(n, self.op.columns.index(n)) for n in names if self._nullable(n)]
        return [n for n, i in places if any(row[i].nullable for row in rows)]

    def _settled(self) -> ir.Select | ir.Tuples:
        """What is inserted, in a form that gives the same before and after: taken first if it reads tables."""
        query = self.query()
        if not reads_tables(query):
            return query
        exprs = query.rows[0] if isinstance(query, ir.Tuples) else [o.expr for o in query.columns]
        names = self.op.columns if isinstance(query, ir.Tuples) else [o.name for o in query.columns]
        fields = tuple(Field(n, e.type, e.nullable) for n, e in zip(names, exprs, strict=True))
        s = self.sql(query)
        if isinstance(query, ir.Tuples):
            source, order = self.rows(s, query)
            tree: Tree = nodes.select([column(SOURCE, c) for c in self.op.columns], source, order=order)
            fields = tuple(f.with_(nullable=True) for f in fields)
        else:
            tree = s.query(query)
        self.source = s.statement(tree, fields)
        self.staged = plan.Ref("step", "", self.step.ref.slot)
        span = self.step.span
        outputs = tuple(ir.Output(f.name, ir.Column(f.type, f.nullable, span, "com_t", f.name)) for f in fields)
        order_key = ir.OrderKey(ir.Column(INT, False, span, "com_t", "com_n"), False, False)
        rows = ir.RowsSource(self.staged, "com_t", fields)
        return ir.Select(False, outputs, rows, None, (), None, (order_key,), None, None)

    def _many_or_others(self, conflict: ir.Conflict) -> Write:
        query = self._settled()
        nullable = self._may_be_null(query, conflict.columns)
        updates = bool(conflict.assignments)
        rows = None
        if self.wants_rows and (updates or self.op.returning):
            if nullable:
                names = ", ".join(nullable)
                self.report(messages.MaybeNoKey(self.engine.title, self.table.name, names))
            rows = self._standing_all(conflict, query)
        made = self._update_or_insert if updates else self._insert_new
        return made(conflict, query, nullable, rows)

    def _standing_all(self, conflict: ir.Conflict, query: ir.Select | ir.Tuples) -> Statement:
        """For each source row, in their order, the row that stands there now."""
        s = self.sql(query)
        source, order = self.rows(s, query)
        name = self.table.name
        trees = [nodes.alias(s.expr(e), n) for n, e in self.outputs()]
        joined = nodes.join(nodes.table(name, name), self.same(conflict.columns))
        return s.statement(nodes.select(trees, source, order=order, joins=[joined]), self.fields())

    def _new(
        self, s: Sql, conflict: ir.Conflict, query: ir.Select | ir.Tuples, nullable: Sequence[str]
    ) -> tuple[Tree, list[Tree], Tree]:
        """The source, its order, and what tells its rows whose key is not there yet, of each key the first."""
        source, order = self.rows(s, query)
        keys = [column(SOURCE, n) for n in conflict.columns]
        there = nodes.select([nodes.number(1)], nodes.table(self.table.name), self.same(conflict.columns))
        new = nodes.negated(nodes.exists(there))
        if conflict.assignments:  # a guard has made sure that there is one row of a key
            return source, order, new
        first = nodes.alias(nodes.row_number(order, keys), "com_f")
        source = nodes.derived(nodes.select([nodes.star(), first], source), SOURCE)
        is_first = nodes.binary("=", column(SOURCE, "com_f"), nodes.number(1))
        for n in nullable:
            is_first = nodes.binary("or", is_first, nodes.is_null(column(SOURCE, n)))
        return source, order, nodes.binary("and", is_first, new)

    def _insert_new(
        self,
        conflict: ir.Conflict,
        query: ir.Select | ir.Tuples,
        nullable: Sequence[str],
        rows: Statement | None,
    ) -> Write:
        s = self.sql(query)
        trees, fields, hidden = ([], [], 0) if rows is not None else self.returned(s)
        main = s.statement(self._insert_where_new(s, conflict, query, nullable, trees), fields, hidden)
        before: list[Statement] = []
        after: list[Statement] = []
        if self.key and self.identity is not None:
            after = [self.images_of_new()]
        elif self.key and self._key_given():
            t = self.sql(query)
            source, order, new = self._new(t, conflict, query, nullable)
            columns, values = self.noted(t, nodes.row_number(order), self.key_of(t, self.keys(SOURCE)))
            before, after = [self.note(t, (columns, nodes.select(values, source, new)))], [self.fill()]
        return self.script(
            [main],
            before=before,
            after=after,
            rows=rows,
            source=self.source,
            staged=self.staged,
            ids=self.ids,
        )

    def _insert_where_new(
        self,
        s: Sql,
        conflict: ir.Conflict,
        query: ir.Select | ir.Tuples,
        nullable: Sequence[str],
        trees: Sequence[Tree],
    ) -> Tree:
        source, order, new = self._new(s, conflict, query, nullable)
        columns = [*self.id(s, nodes.row_number(order)), *[column(SOURCE, c) for c in self.op.columns]]
        made = nodes.select(columns, source, new, () if self.identity is not None else order)
        return self.insert(made, None, trees)

    def _update_or_insert(
        self,
        conflict: ir.Conflict,
        query: ir.Select | ir.Tuples,
        nullable: Sequence[str],
        rows: Statement | None,
    ) -> Write:
        self._key_kept(conflict)
        name = self.table.name
        s = self.sql(query)
        source, _ = self.rows(s, query)
        fields = [Field(n, c.type, c.nullable) for n in conflict.columns if (c := self.table.column(n)) is not None]
        keys = [column(SOURCE, n) for n in conflict.columns]
        known = nodes.both(nodes.is_null(column(SOURCE, n), negate=True) for n in nullable)
        twice = nodes.met_twice(nodes.select(keys, source, known), keys)
        guards = [plan.Guard(s.statement(twice, fields), "CM504")]

        s = self.sql(query, conflict)
        source, _ = self.rows(s, query)
        s.names = {"excluded": SOURCE}
        names = self.op.columns if isinstance(query, ir.Tuples) else [o.name for o in query.columns]
        known_columns = {c: ir.Column(INT, True, self.step.span, "excluded", c) for c in names}
        for _, e in conflict.assignments:
            self._proposed(e, dict(known_columns))
        assigned = [(c, s.expr(e)) for c, e in conflict.assignments]
        changed = s.update(nodes.table(name, name), name, assigned, self.same(conflict.columns), (source, []))
        main = [s.statement(changed)]
        s = self.sql(query)
        main.append(s.statement(self._insert_where_new(s, conflict, query, nullable, ())))

        before: list[Statement] = []
        after: list[Statement] = []
        if self.key and self.identity is not None:
            s = self.sql(query)
            source, _ = self.rows(s, query)
            n = nodes.row_number([nodes.ordered(k) for k in self.keys(name)])
            columns, trees = self.noted(s, n, self.key_of(s, self.keys(name)), before=self.image(s, name))
            joined = nodes.join(nodes.table(name), self.same(conflict.columns))
            before = [self.note(s, (columns, nodes.select(trees, source, joins=[joined])))]
            after = [self.fill(), self.images_of_new(counted=True)]
        elif self.key and self._key_given():
            before, after = self._old_or_key(conflict, query)
        return self.script(
            main,
            before=before,
            after=after,
            guards=guards,
            rows=rows,
            source=self.source,
            staged=self.staged,
            ids=self.ids,
        )
