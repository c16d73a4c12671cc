"""IR expressions and queries to SQL: trees of sqlglot's node classes, never text.

Takes IR and an engine's table; gives statements of the plan, the values in them bound. May assume what the check
guarantees; guarantees that every name is quoted, every value a parameter or a literal, and every node of a class on
the positive list below.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, assert_never, cast

from sqlglot import expressions as exp

from com import diagnostics as messages
from com import plan
from com.compiler import ir
from com.compiler.engines import CHAIN, Engine
from com.compiler.nodes import (
    BINARY,
    ORDERING,
    Tree,
    Words,
    alias,
    apart,
    at,
    binary,
    call,
    column,
    derived,
    is_literal,
    is_null,
    join,
    marked,
    name,
    negated,
    null,
    number,
    ordered,
    row_number,
    select,
    table,
    text,
    type_name,
    update,
    values,
    write,
)
from com.diagnostics import Diagnostic
from com.node import Node, rebuild, walk
from com.schema import BOOL, INT, JSON, NULL, Table, Type
from com.source import NOWHERE, Span

# ---------------------------------------------------------------- expressions and queries


NOTHING = ir.Constant(NULL, True, NOWHERE, None)


class Sql:
    """One statement in the making: its parameters, and what of bound relations it reads. `known` holds the IR that the
    statement is made of: only columns that stand in it are bound. `names` puts aliases in the place of others."""

    def __init__(self, engine: Engine, problems: list[Diagnostic], *known: Node | Iterable[Node] | None) -> None:
        self.engine = engine
        self.problems = problems
        self.binds: dict[object, tuple[str, plan.Binding]] = {}
        self.known = known
        self.used: set[tuple[str, str]] | None = None
        self.own: set[str] | None = None
        self.derived: set[str] = set()
        self.names: dict[str, str] = _apart_from_columns(known) if engine.dialect == "duckdb" else {}
        self.depth = 0
        self.span = NOWHERE
        self.inline = False
        self.unfolded = 0

    def update(
        self,
        target: exp.Table,
        alias: str,
        assignments: Sequence[tuple[str, Tree]],
        where: Tree,
        source: tuple[Tree, list[Tree]] | None,
        returning: Sequence[Tree] = (),
    ) -> Tree:
        """An update, from other sources too."""
        if source is None or self.engine.dialect != "mysql":
            return update(target, assignments, where, source, returning)
        first, joins = source  # where there is no `from` the target is joined with it
        target.set("joins", [join(first, None), *joins])
        made = [exp.EQ(this=column(alias, c), expression=tree) for c, tree in assignments]
        return exp.Update(this=target, expressions=made, where=exp.Where(this=where))

    def statement(self, tree: Tree, fields: Sequence[plan.Field] = (), hidden: int = 0) -> plan.Statement:
        """The statement, once its tree is whole."""
        text_, names = marked(write(tree, self.engine.dialect), self.engine.dialect)
        binds = tuple(self.binds.values())
        if names is not None:  # told apart by their places alone
            known = dict(binds)
            binds = tuple((name, known[name]) for name in names)
        return plan.Statement(text_, binds, tuple(fields), hidden)

    # ------------------------------------------------------------ what engines use

    binary = staticmethod(binary)
    call = staticmethod(call)
    column = staticmethod(column)
    text = staticmethod(text)
    number = staticmethod(number)
    null = staticmethod(null)

    def is_null(self, tree: Tree, negated: bool = False) -> Tree:
        return is_null(tree, negated)

    def cast(self, tree: Tree, to: str) -> Tree:
        return exp.Cast(this=tree, to=type_name(to))

    def case(self, whens: Sequence[tuple[Tree, Tree]], otherwise: Tree | None) -> Tree:
        return exp.Case(ifs=[exp.If(this=when, true=then) for when, then in whens], default=otherwise)

    def aggregate(self, name: str, args: Sequence[Tree], distinct: bool = False) -> Tree:
        return call(name, exp.Distinct(expressions=list(args))) if distinct else call(name, *args)

    def picked(
        self, columns: Sequence[tuple[Tree, str]], source: Tree, limit: Tree | None = None, behind: str = ""
    ) -> Tree:
        picked = [alias(tree, as_) for tree, as_ in columns]
        if behind:
            return select(picked, table(behind), limit=limit, joins=[exp.Join(this=source, kind="CROSS")])
        return select(picked, source, limit=limit)

    def calling(self, function: str, args: Sequence[Tree], alias: str, columns: Sequence[str] = ()) -> Tree:
        as_ = exp.TableAlias(this=name(alias), columns=[name(c) for c in columns])
        return exp.Table(this=call(function, *args), alias=as_)

    def words(self, *parts: str | Tree) -> Tree:
        return Words(expressions=list(parts))

    def collated(self, tree: Tree, collation: str) -> Tree:
        return exp.Collate(this=at(tree, 9), expression=collation)

    def ordered(self, sep: Tree, order: Sequence[ir.OrderKey]) -> Tree:
        keys = self._order(order)
        return exp.Order(this=sep, expressions=keys) if keys else sep

    def unsupported(self, what: str, instead: str) -> None:
        self.problems.append(Diagnostic(messages.EngineLacks(self.engine.title, what, instead), self.span))

    def bind(self, binding: plan.Binding) -> Tree:
        """A parameter; equal bindings share one."""
        assert not self.inline, "a table's own expressions bind nothing"
        key = _key(binding)
        known = self.binds.get(key)
        if known is None:
            known = self.binds[key] = f"p{len(self.binds) + 1}", binding
        made: Tree = self.engine.bound(self, _type_of(binding), exp.Placeholder(this=known[0]))
        return made

    # ------------------------------------------------------------ expressions

    def expr(self, e: ir.Expr) -> Tree:
        """The tree of an expression."""
        match e:
            case ir.Column():
                read = column(self.names.get(e.alias, e.alias) if self.names else e.alias, e.name)
                return self.engine.adapt(self, e.type, read) if e.adapted else read
            case ir.Value():
                return self.bind(plan.Scalar(e.ref, e.column, e.type))
            case ir.Constant():
                around, self.span = self.span, e.span
                made = self._constant(e.value, e.type)
                self.span = around
                return made
            case ir.Apply():
                self.span = e.span
                return self._apply(e)
            case ir.Cast():
                self.span = e.span
                tree: Tree = self.engine.cast(self, e)
                return tree
            case ir.Aggregate() | ir.Window():
                return self._aggregate(e)
            case ir.Present():
                return self.bind(plan.Present(e.ref))
            case ir.Case():
                whens = [(self.expr(when), self.expr(then)) for when, then in e.whens]
                return self.case(whens, self.expr(e.otherwise) if e.otherwise is not None else None)
            case ir.InItems():
                if not e.items:
                    return exp.Boolean(this=False)
                if len(e.items) == 1 and isinstance(e.items[0], ir.Scalar):  # in would look at all its rows
                    return binary("=", self.expr(e.operand), self.expr(e.items[0]))
                return exp.In(this=at(self.expr(e.operand), 5), expressions=[self.expr(i) for i in e.items])
            case ir.InValues():
                many = plan.Many(e.values.ref, e.values.column, e.values.type)
                query = self.engine.values(self, many, e.operand.type)
                return exp.In(this=at(self.expr(e.operand), 5), query=exp.Subquery(this=query))
            case ir.InQuery():
                inner = self._inner(e.query)
                if e.query.limit is not None and self.engine.dialect == "mysql":
                    inner = select([exp.Star()], derived(inner, "com_s"))
                return exp.In(this=at(self.expr(e.operand), 5), query=exp.Subquery(this=inner))
            case ir.Exists():
                return exp.Exists(this=self._inner(e.query))
            case ir.Scalar():
                return exp.Subquery(this=self._inner(e.query))
            case _:
                raise AssertionError(f"{type(e).__name__} has no place in SQL")

    def _constant(self, value: object, type_: Type) -> Tree:
        if isinstance(value, str) and type_.kind == "json" and not value.isprintable():
            value = _printable(value)
        special: Tree | None = self.engine.literal(self, value, type_)
        if special is not None:
            return special
        match value:
            case None:
                return exp.Null()
            case bool():
                return exp.Boolean(this=value)
            case int():
                return number(value)
            case Decimal():
                digits = len(value.normalize().as_tuple().digits)
                if digits > self.engine.digits:
                    self.unsupported(f"a decimal of {digits} digits", f"write at most {self.engine.digits}")
                return number(format(value, "f"))
            case float():
                shown = repr(value)
                return number(shown) if math.isfinite(value) else self.bind(plan.Constant(value, type_))
            case datetime():
                return text(value.isoformat(" "))
            case date():
                return text(value.isoformat())
            case str() if value.isprintable() or self.inline:
                return text(value)
            case bytes() if self.inline:
                return exp.HexString(this=value.hex())
            case _:
                return self.bind(plan.Constant(value, type_))

    def _apply(self, e: ir.Apply) -> Tree:
        name_, args = e.name, e.args
        render = self.engine.functions.get(name_)
        if render is not None:
            tree: Tree = render(self, e)
            return tree
        if name_ in CHAIN:
            settled: Tree = self.engine.settle(self, e, self._arithmetic(e))
            return settled
        if name_ in ORDERING:
            return binary(name_, self.collated_by(args[0]), self.expr(args[1]))
        if name_ in BINARY:
            return binary(name_, self.expr(args[0]), self.expr(args[1]))
        match name_:
            case "not":
                return negated(self.expr(args[0]))
            case "is_null":
                return is_null(self.expr(args[0]))
            case "is_distinct":
                if self.engine.typed:
                    return binary("is distinct from", self.expr(args[0]), self.expr(args[1]))
                return exp.Is(this=at(self.expr(args[0]), 5), expression=at(self.expr(args[1]), 5), negate=True)
            case "between":
                this, low, high = (at(tree, 5) for tree in (self.collated_by(args[0]), *map(self.expr, args[1:])))
                return exp.Between(this=this, low=apart(low), high=apart(high))
            case _:
                return call(name_, *[self.expr(a) for a in args])

    def _arithmetic(self, e: ir.Apply) -> Tree:
        """A chain of sums without the step that brings its parts to their type: the whole's is enough."""
        args = [
            self._arithmetic(a)
            if isinstance(a, ir.Apply) and a.name in CHAIN and a.type.kind == e.type.kind
            else self.engine.operand(self, e.type, self.expr(a))
            for a in e.args
        ]
        if e.name == "negate":
            return exp.Neg(this=at(args[0], 10))
        if e.name == "div":
            made: Tree = self.engine.divided(self, *args)
            return made
        return binary(e.name, *args)

    def collated_by(self, e: ir.Expr) -> Tree:
        """The tree of an expression that is ordered by."""
        tree: Tree = self.engine.collate(self, e.type, self.expr(e))
        return tree

    # ------------------------------------------------------------ aggregates and windows

    def _aggregate(self, e: ir.Aggregate | ir.Window) -> Tree:
        self.span = e.span
        args = [self.expr(a) for a in e.args]
        render = self.engine.aggregates.get(e.name)
        if render is not None:
            tree: Tree = render(self, e, args)
            return tree
        if not args and e.name == "count":
            return self.aggregated(e, "count", [exp.Star()])
        if e.name in ("min", "max"):
            args = [self.engine.collate(self, e.type, a) for a in args]
        return self.aggregated(e, e.name, args, isinstance(e, ir.Aggregate) and e.distinct)

    def aggregated(
        self, e: ir.Aggregate | ir.Window, function: str, args: Sequence[Tree], distinct: bool = False
    ) -> Tree:
        """A call with the filter and window of an aggregate."""
        if e.where is not None and not self.engine.filters:
            first = number(1) if isinstance(args[0], exp.Star) else args[0]
            args = [self.case([(self.expr(e.where), first)], None), *args[1:]]
        tree = self.aggregate(function, args, distinct)
        if e.where is not None and self.engine.filters:
            tree = exp.Filter(this=tree, expression=exp.Where(this=self.expr(e.where)))
        if isinstance(e, ir.Aggregate):
            return tree
        made: dict[str, Any] = {"this": tree}
        if e.partition:
            made["partition_by"] = [self.expr(p) for p in e.partition]
        order = self._order(e.order)
        if not order and self.engine.dialect == "mysql" and function in ("rank", "dense_rank", "lag", "lead"):
            order = [ordered(null())]  # without one MariaDB refuses them
        if order:
            made["order"] = exp.Order(expressions=order)
        if e.frame is not None:
            unit, start, end = e.frame
            (first_, first_side), (last, last_side) = self._edge(start), self._edge(end)
            made["spec"] = exp.WindowSpec(
                kind=unit.upper(), start=first_, start_side=first_side, end=last, end_side=last_side
            )
        return exp.Window(**made)

    def _edge(self, edge: ir.Edge) -> tuple[Tree | str, str | None]:
        words = edge.kind.upper().split(" ")
        if words[0] == "CURRENT":
            return "CURRENT ROW", None
        if edge.offset is not None:
            return at(self.expr(edge.offset), 10), words[-1]
        return words[0], words[-1]

    def _order(self, keys: Sequence[ir.OrderKey]) -> list[Tree]:
        """The keys that can tell rows apart: a bare number would name a column, and one from around may be refused."""
        made = [part for k in self.varying(keys) for part in self.key(k)]
        return [tree for tree in made if not is_literal(tree.this)]

    def varying(self, keys: Sequence[ir.OrderKey]) -> list[ir.OrderKey]:
        return [k for k in keys if self._varies(k.expr)]

    def _varies(self, e: ir.Expr) -> bool:
        """False if an expression is the same for all rows of the query being written."""
        if isinstance(e, ir.Column):
            return self.own is None or not e.alias or e.alias in self.own
        return any(
            isinstance(n, ir.Aggregate | ir.Window | ir.Scalar | ir.Exists | ir.InQuery)
            or (isinstance(n, ir.Column) and self._varies(n))
            for n in walk(e)
        )

    def key(self, k: ir.OrderKey) -> list[Tree]:
        return self.ordered_by(self.collated_by(k.expr), k.descending, k.nulls_first if k.expr.nullable else None)

    def ordered_by(self, tree: Tree, descending: bool, nulls_first: bool | None) -> list[Tree]:
        """A key of an order, with one for nulls before it where the engine has no word for that."""
        if self.engine.dialect != "mysql" or nulls_first is None or nulls_first is not descending:
            return [ordered(tree, descending, nulls_first)]
        return [ordered(is_null(tree), nulls_first), ordered(tree, descending)]

    # ------------------------------------------------------------ queries

    def _inner(self, query: ir.Query) -> Tree:
        self.depth += 1
        made = self.query(query)
        self.depth -= 1
        return made

    def query(self, q: ir.Query, extra: Sequence[ir.Output] = ()) -> Tree:
        """The tree of a query; a select may get `extra` columns."""
        around, self.own = self.own, ir.aliases(q.source) if isinstance(q, ir.Select) else None
        made = self._set_query(q) if isinstance(q, ir.SetQuery) else self._select(q, extra)
        self.own = around
        return made

    def _select(self, q: ir.Select, extra: Sequence[ir.Output]) -> Tree:
        if q.order or q.offset is not None:
            q = q.with_(order=tuple(self.varying(q.order)))
            correlated = self.depth and any(outer_columns(k.expr, q) for k in q.order)
            if self.engine.dialect == "mysql":  # it sees columns from around there, but not in a derived table
                beside = q.distinct and not correlated  # nor minds an offset if all rows are alike
            else:
                beside = bool(correlated or (self.engine.typed and q.distinct and q.order))
            if beside:
                q = _ordered_outside(q)
        while (outer := next(self._impossible(q.source), None)) is not None:
            self.unfolded += 1
            if self.engine.dialect == "mysql" and any(outer_columns(on, q) for on in ir.conditions(outer)):
                self.span = outer.on.span if outer.on is not None else self.span
                self.unsupported("a full join by columns of the query around", "make it a step of its own")
            q, extra = self._without_outer_join(q, outer, extra, f"com_f{self.unfolded}")
        self.own = ir.aliases(q.source)
        if self.engine.dialect == "mysql":
            self._first_row_taken(q)
        made: dict[str, Any] = {"expressions": [alias(self.expr(o.expr), o.name) for o in (*q.columns, *extra)]}
        if q.distinct:
            made["distinct"] = exp.Distinct()
        if q.source is not None:
            first, joins = self.sources(q.source)
            made["from_"] = exp.From(this=first)
            if joins:
                made["joins"] = joins
        elif self.engine.dialect == "mysql" and self.depth and any(isinstance(n, ir.Aggregate) for n in walk(q)):
            made["from_"] = exp.From(this=derived(select([alias(number(1), "x")]), "com_one"))  # else all rows are one
        if q.where is not None:
            made["where"] = exp.Where(this=self.expr(q.where))
        if q.group:
            keys = [self._group_key(g, q) for g in q.group if not isinstance(g, ir.Constant)]
            keys = [k for k in keys if k is not None]
            if self.engine.typed:
                keys += [self.expr(c) for c in _determined(q)]
            made["group"] = exp.Group(
                expressions=keys or [self.cast(null(), self.engine.one_key) if self.engine.typed else null()]
            )
        if q.having is not None:
            having = self.expr(_by_least(q) if self.engine.dialect == "mysql" else q.having)
            shown = (n for o in q.columns for n in walk(o))
            if self.engine.dialect == "sqlite" and not q.group and not any(isinstance(n, ir.Aggregate) for n in shown):
                first = made["expressions"][0]  # it takes a query for grouped by its keys or its columns
                always = binary(">=", call("count", exp.Star()), number(0))
                first.set("this", self.case([(always, first.this)], None))
            made["having"] = exp.Having(this=having)
        self._cut(made, q)
        return exp.Select(**made)

    def _first_row_taken(self, q: ir.Select) -> None:
        """MariaDB takes the first row's value for all, where an aggregate stands beside a column of a derived table
        around."""
        self.derived |= {s.alias for s in ir.leaves(q.source) if not isinstance(s, ir.TableSource)}
        if self.depth == 0 or q.group or not any(isinstance(n, ir.Aggregate) for o in q.columns for n in walk(o)):
            return
        for output in q.columns:
            beside = rebuild(output.expr, lambda n: NOTHING if isinstance(n, ir.Aggregate) else n)
            for n in walk(beside):
                if isinstance(n, ir.Column) and n.alias in self.derived and n.alias not in ir.aliases(q.source):
                    self.span = n.span
                    self.unsupported("an aggregate beside a column of the query around", "join, and group by it")
                    return

    def _group_key(self, key: ir.Expr, q: ir.Select) -> Tree | None:
        """A key of a group, or None if it is the same for all rows: engines see no columns from around there."""
        if outer_columns(key, q):
            if not own_columns(key, q):
                return None
            self.span = key.span
            self.unsupported("group by a column of the query around", "group by it in a query in from")
        if self.engine.dialect == "duckdb" and ir.has_query(key):
            self.span = key.span
            self.unsupported("group by a query", "select it in a query in from, and group by its column")
        tree = self.expr(key)
        return None if is_literal(tree) else tree

    def tuples(self, rows: Sequence[Sequence[ir.Expr]], names: Sequence[str], order: str) -> Tree:
        """`values` as a query with named columns, the last one, `order`, numbering the rows."""
        if self.engine.typed:
            labels = [*names, order]
            sides = [
                select([alias(tree, as_) for tree, as_ in zip([*map(self.expr, r), number(i)], labels, strict=True)])
                for i, r in enumerate(rows, 1)
            ]
            union: Tree = sides[0]
            for side in sides[1:]:
                union = exp.Union(this=union, expression=side, distinct=False)
            return union
        made = values([[*map(self.expr, row_), number(index)] for index, row_ in enumerate(rows, 1)])
        columns = [alias(column("com_v", f"column{i}"), as_) for i, as_ in enumerate((*names, order), 1)]
        return select(columns, derived(made, "com_v"))

    def _cut(self, made: dict[str, Any], q: ir.Query) -> None:
        order = self._order(q.order)
        if order:
            made["order"] = exp.Order(expressions=order)
        if q.limit is not None:
            limit = self._count(q.limit, "limit")
            if q.limit.nullable and self.engine.counts:
                limit = call("coalesce", limit, number(self.engine.no_limit))
            made["limit"] = exp.Limit(expression=limit)
        if q.offset is not None:
            offset = self._count(q.offset, "offset")
            if q.offset.nullable and self.engine.counts:
                offset = call("coalesce", offset, number(0))
            made["offset"] = exp.Offset(expression=offset)
            if q.limit is None and self.engine.dialect in ("mysql", "bigquery", "snowflake"):
                made["limit"] = exp.Limit(expression=number(self.engine.no_limit))

    def _count(self, e: ir.Expr, what: str) -> Tree:
        tree = self.expr(e)
        if isinstance(e, ir.Constant):
            return tree
        if not self.engine.counts and not isinstance(e, ir.Value):
            self.unsupported(f"a computed {what}", "compute it in a step before")
        cut: Tree = self.engine.cut(self, tree)
        return cut

    def _set_query(self, q: ir.SetQuery) -> Tree:
        if q.all and q.op != "union":
            return self._counted(q)
        if self.engine.typed and q.order:  # an order of a union knows its columns, but no expression of them
            bare = q.with_(order=(), limit=None, offset=None)
            outer: dict[str, Any] = {
                "expressions": [exp.Star()],
                "from_": exp.From(this=derived(self.query(bare), "com_s")),
            }
            self._cut(outer, q)
            return exp.Select(**outer)
        chained = q.op == "union" and q.all  # of many parts, which nested would be too deep for an engine
        made: dict[str, Any] = {"this": self._side(q.left, True, chained), "expression": self._side(q.right, False)}
        self._cut(made, q)
        match q.op:
            case "union":
                return exp.Union(**made, distinct=not q.all)
            case "intersect":
                return exp.Intersect(**made, distinct=True)
            case _:
                return exp.Except(**made, distinct=True)

    def _side(self, q: ir.Query, left: bool, chained: bool = False) -> Tree:
        made = self.query(q)
        bare = isinstance(q, ir.Select) or (left and (not q.all or (chained and q.op == "union")))
        if bare and not q.order and q.limit is None and q.offset is None:
            return made
        return select([exp.Star()], derived(made, "com_s"))

    def _counted(self, q: ir.SetQuery) -> Tree:
        """`intersect all` and `except all`, where the engine has neither: equal rows are told apart by a number."""
        names = [f.name for f in q.fields]
        sides = []
        for side in (q.left, q.right):
            own = [c.name for c in side.columns] if isinstance(side, ir.Select) else [f.name for f in side.fields]
            count = row_number((), [column("com_s", n) for n in own])
            columns = [alias(column("com_s", n), m) for n, m in zip(own, names, strict=True)]
            sides.append(select([*columns, alias(count, "com_k")], derived(self.query(side), "com_s")))
        kind = exp.Intersect if q.op == "intersect" else exp.Except
        counted = derived(kind(this=sides[0], expression=sides[1], distinct=True), "com_s")
        made: dict[str, Any] = {"expressions": [column("com_s", n) for n in names], "from_": exp.From(this=counted)}
        self._cut(made, q)
        return exp.Select(**made)

    # ------------------------------------------------------------ sources

    def sources(self, source: ir.Source, apart: bool = False) -> tuple[Tree, list[Tree]]:
        """The first source and the joins that follow. `apart`: bound rows stand in a join or a subquery."""
        if isinstance(source, ir.Join):
            if not self.engine.joins(source):
                self.unsupported(f"a {source.kind} join here", "make it a step of its own")
            first, joins = self.sources(source.left, True)
            other, inner = self.sources(source.right, True)
            if inner:
                assert isinstance(other, exp.Table | exp.Subquery)
                other.set("joins", inner)
                other = exp.Paren(this=other)
            on = self.expr(source.on) if source.on is not None else None
            return first, [*joins, join(other, on, source.kind)]
        return self._source(source, apart or self.depth > 0), []

    def _impossible(self, source: ir.Source | None) -> Iterator[ir.Join]:
        """The joins that the engine cannot do, those around others first."""
        if isinstance(source, ir.Join):
            if not self.engine.joins(source):
                yield source
            yield from self._impossible(source.left)
            yield from self._impossible(source.right)

    def _without_outer_join(
        self, q: ir.Select, outer: ir.Join, extra: Sequence[ir.Output], name: str
    ) -> tuple[ir.Select, Sequence[ir.Output]]:
        """The query with an outer join made the source `name`: a lesser join, and what a side has alone."""
        sides = {"left": ir.aliases(outer.left), "right": ir.aliases(outer.right)}
        seen: dict[tuple[str, str], ir.Column] = {}
        for node in (n for part in (q.with_(source=None), *ir.conditions(q.source), *extra) for n in walk(part)):
            if isinstance(node, ir.Column) and node.alias in sides["left"] | sides["right"]:
                seen.setdefault((node.alias, node.name), node.with_(nullable=True))
        labels = {place: f"com_c{i}" for i, place in enumerate(seen, 1)}

        def put(node: Node) -> Node:
            if isinstance(node, ir.Column) and (node.alias, node.name) in labels:
                return ir.Column(node.type, True, node.span, name, labels[node.alias, node.name])
            return node

        def replaced(source: ir.Source) -> ir.Source:
            if source is outer:
                return ir.QuerySource(union, name)
            if isinstance(source, ir.Join):
                on: ir.Expr | None = rebuild(source.on, put) if source.on is not None else None
                return source.with_(left=replaced(source.left), right=replaced(source.right), on=on)
            return source

        def part(source: ir.Source, where: ir.Expr | None, shown: set[str]) -> ir.Select:
            """Rows of a source, null in the columns that are not shown."""
            columns = []
            for place, c in seen.items():
                nothing = ir.Cast(c.type, True, c.span, NOTHING, True)
                columns.append(ir.Output(labels[place], c if c.alias in shown else nothing))
            one = ir.Output("com_c0", ir.Constant(INT, False, NOWHERE, 1))
            return ir.Select(False, tuple(columns) or (one,), source, where, (), None, (), None, None)

        def alone(side: str, other: str) -> ir.Query:
            there = part(getattr(outer, other), outer.on, set())
            lacking = ir.Apply(BOOL, False, NOWHERE, "not", (ir.Exists(BOOL, False, NOWHERE, there),))
            return part(getattr(outer, side), lacking, sides[side])

        lesser = outer.with_(kind="left" if outer.kind == "full" else "inner")
        if not self.engine.joins(lesser):
            lesser = outer.with_(kind="inner")
        union: ir.Query = part(lesser, None, sides["left"] | sides["right"])
        fields = tuple(plan.Field(labels[p], c.type) for p, c in seen.items()) or (plan.Field("com_c0", INT),)
        for side, other in (("left", "right"), ("right", "left")):
            if outer.kind in (side, "full") and lesser.kind != side:
                union = ir.SetQuery("union", True, union, alone(side, other), fields, (), None, None)
        assert q.source is not None
        made = rebuild(q.with_(source=None), put).with_(source=replaced(q.source))
        return made, [rebuild(o, put) for o in extra]

    def _source(self, source: ir.TableSource | ir.RowsSource | ir.QuerySource, apart: bool) -> Tree:
        match source:
            case ir.TableSource():
                return table(source.table.name, self.names.get(source.alias, source.alias))
            case ir.QuerySource():
                self.depth += apart
                made = derived(self.query(source.query), self.names.get(source.alias, source.alias))
                self.depth -= apart
                return made
            case ir.RowsSource():
                used = self._used()
                of = source.alias
                fields = tuple(f for f in source.fields if (of, f.name) in used)
                numbered = "com_n" if (of, "com_n") in used else None
                of = self.names.get(of, of)
                return derived(self.engine.rows(self, plan.Rows(source.ref, fields), numbered, apart), of)
            case _:
                assert_never(source)

    def _used(self) -> set[tuple[str, str]]:
        if self.used is None:
            self.used = set()
            _note(self.known, self.used)
        return self.used


def _ordered_outside(q: ir.Select) -> ir.Select:
    """The query with its keys as columns of a derived table: an order sees no columns of the query around."""
    known = {o.expr: o.name for o in reversed(q.columns)}
    keys = tuple(ir.Output(known.get(k.expr, f"com_o{i}"), k.expr) for i, k in enumerate(q.order, 1))
    more = tuple(k for k in keys if k.expr not in known)
    inner = q.with_(columns=(*q.columns, *more), order=(), limit=None, offset=None)
    columns = {
        o.name: ir.Column(o.expr.type, o.expr.nullable, o.expr.span, "com_e", o.name) for o in (*q.columns, *keys)
    }
    outputs = tuple(ir.Output(o.name, columns[o.name]) for o in q.columns)
    order = tuple(k.with_(expr=columns[o.name]) for k, o in zip(q.order, keys, strict=True))
    source = ir.QuerySource(inner, "com_e")
    return ir.Select(False, outputs, source, None, (), None, order, q.limit, q.offset)


def _printable(text: str) -> str:
    """A text of JSON with nothing in it that a literal cannot hold."""
    plain = json.dumps(json.loads(text), ensure_ascii=False)
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in plain)


def _apart_from_columns(known: Iterable[Node | Iterable[Node] | None]) -> dict[str, str]:
    """Other names for sources that are called as a column is: in a query inside, DuckDB would look for a field of that
    column."""
    sources: set[str] = set()
    columns: set[str] = set()
    for part in known:
        for node in (n for top in ([part] if isinstance(part, Node) else part or ()) for n in walk(top)):
            if isinstance(node, ir.TableSource):
                columns |= {c.name for c in node.table.columns}
            elif isinstance(node, ir.RowsSource):
                columns |= {f.name for f in node.fields}
            elif isinstance(node, ir.Output):
                columns.add(node.name)
            if isinstance(node, ir.TableSource | ir.RowsSource | ir.QuerySource):
                sources.add(node.alias)
    return {name: f"{name} (rows)" for name in sources & columns}


def _by_least(q: ir.Select) -> ir.Expr:
    """The condition on groups, where MariaDB sees columns that are keys, and aggregates: what is the same for all rows
    of a group is its least value too."""
    keys = set(q.group)

    def change(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(change, value))
        if not isinstance(value, Node) or isinstance(value, ir.Aggregate | ir.Select) or type(value) in _LEAVES:
            return value
        if isinstance(value, ir.Expr) and own_columns(value, q):
            if isinstance(value, ir.Column) != (value in keys):
                return ir.Aggregate(value.type, value.nullable, value.span, "min", (value,), False, (), None)
            if isinstance(value, ir.Column):
                return value
        return type(value)(*[change(getattr(value, field)) for field in value._fields])

    return cast(ir.Expr, change(q.having))


def _determined(q: ir.Select) -> list[ir.Column]:
    """The columns that a grouped query names outside its keys and aggregates: keys determine them."""
    keys, own = set(q.group), ir.aliases(q.source) if q.source is not None else set()
    found: dict[ir.Column, None] = {}

    def look(value: object) -> None:
        if isinstance(value, tuple):
            for item in value:
                look(item)
        elif (isinstance(value, ir.Expr) and value in keys) or isinstance(value, ir.Aggregate):
            return
        elif isinstance(value, ir.Column):
            if value.alias in own:
                found.setdefault(value)
        elif isinstance(value, Node) and type(value) not in _LEAVES:
            for field in value._fields:
                look(getattr(value, field))

    look((tuple(o.expr for o in q.columns), q.having, q.order))
    return [c for c in found if c not in keys]


def reads_tables(node: Node) -> bool:
    """True if a query or expression reads a table."""
    return any(isinstance(n, ir.TableSource) for n in walk(node))


def own_columns(e: ir.Expr, q: ir.Select) -> bool:
    """True if an expression names a column of the query that it stands in."""
    own = ir.aliases(q.source)
    return any(isinstance(n, ir.Column) and n.alias in own for n in walk(e))


def outer_columns(e: ir.Expr, q: ir.Select) -> bool:
    """True if an expression names a column of a query around the one that it stands in."""
    if isinstance(e, ir.Column):
        return e.alias not in ir.aliases(q.source)
    known = ir.aliases(q.source).union(*(ir.aliases(n.source) for n in walk(e) if isinstance(n, ir.Select)))
    return any(isinstance(n, ir.Column) and n.alias and n.alias not in known for n in walk(e))


def _key(binding: plan.Binding) -> object:
    """What equal bindings have in common, quicker to hash."""
    if isinstance(binding, plan.Scalar | plan.Many):
        ref = binding.ref
        return type(binding), ref.kind, ref.name, ref.slot, binding.column, binding.type.kind, binding.type.scale
    if isinstance(binding, plan.Rows):
        ref = binding.ref
        return "rows", ref.kind, ref.name, ref.slot, tuple([f.name for f in binding.fields])
    return binding


def _type_of(binding: plan.Binding) -> Type:
    match binding:
        case plan.Constant() | plan.Scalar():
            return binding.type
        case plan.Many() | plan.Rows():
            return JSON
        case plan.Present():
            return BOOL
        case _:
            return INT


def _note(value: object, used: set[tuple[str, str]]) -> None:
    """Notes the columns that stand in some IR."""
    if type(value) is tuple or type(value) is list:
        for item in value:
            _note(item, used)
    elif type(value) is ir.Column:
        used.add((value.alias, value.name))
    elif isinstance(value, Node) and type(value) not in _LEAVES:
        for field in value._fields:
            inner = getattr(value, field)
            if type(inner) is tuple or isinstance(inner, Node):
                _note(inner, used)


_LEAVES = frozenset({Table, Type, Span, plan.Ref, plan.Field, ir.Constant, ir.Value, ir.TableSource})
