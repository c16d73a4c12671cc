"""IR expressions and queries to SQL: trees of sqlglot's node classes, never text.

Takes IR and an engine's table; gives statements of the plan, the values in them bound. May assume what the check
guarantees; guarantees that every name is quoted, every value a parameter or a literal, and every node of a class on
the positive list below.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, assert_never

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


class Sql:
    """One statement in the making: its parameters, and what of bound relations it reads. `known` holds the IR that the
    statement is made of: only columns that stand in it are bound. `names` puts aliases in the place of others."""

    def __init__(self, engine: Engine, problems: list[Diagnostic], *known: Node | Iterable[Node] | None) -> None:
        self.engine = engine
        self.problems = problems
        self.binds: dict[object, tuple[str, plan.Binding]] = {}
        self.known = known
        self.used: set[tuple[str, str]] | None = None
        self.names: dict[str, str] = {}
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
                return exp.Between(this=this, low=low, high=high)
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
        """The keys that can tell rows apart: a bare number would name a column."""
        made = [part for k in keys if not isinstance(k.expr, ir.Constant) for part in self.key(k)]
        return [tree for tree in made if not is_literal(tree.this)]

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
        if isinstance(q, ir.SetQuery):
            return self._set_query(q)
        beside = self.engine.typed and q.distinct and q.order
        if beside or (self.depth and any(outer_columns(k.expr, q) for k in q.order)):
            q = _ordered_outside(q)
        while (full := next(self._impossible(q.source), None)) is not None:
            self.unfolded += 1
            q, extra = _without_full_join(q, full, extra, f"com_f{self.unfolded}")
        made: dict[str, Any] = {"expressions": [alias(self.expr(o.expr), o.name) for o in (*q.columns, *extra)]}
        if q.distinct:
            made["distinct"] = exp.Distinct()
        if q.source is not None:
            first, joins = self.sources(q.source)
            made["from_"] = exp.From(this=first)
            if joins:
                made["joins"] = joins
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
            made["having"] = exp.Having(this=self.expr(q.having))
        self._cut(made, q)
        return exp.Select(**made)

    def _group_key(self, key: ir.Expr, q: ir.Select) -> Tree | None:
        """A key of a group, or None if it is the same for all rows: engines see no columns from around there."""
        if outer_columns(key, q):
            if not own_columns(key, q):
                return None
            self.span = key.span
            self.unsupported("group by a column of the query around", "group by it in a query in from")
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
            if source.kind == "full" and not self.engine.fulls(source):
                self.unsupported("a full join here", "make it a step of its own")
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
        """The full joins that the engine cannot do, those around others first."""
        if isinstance(source, ir.Join):
            if source.kind == "full" and not self.engine.fulls(source):
                yield source
            yield from self._impossible(source.left)
            yield from self._impossible(source.right)

    def _source(self, source: ir.TableSource | ir.RowsSource | ir.QuerySource, apart: bool) -> Tree:
        match source:
            case ir.TableSource():
                return table(source.table.name, source.alias)
            case ir.QuerySource():
                self.depth += apart
                made = derived(self.query(source.query), source.alias)
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


def _without_full_join(
    q: ir.Select, join_: ir.Join, extra: Sequence[ir.Output], name: str
) -> tuple[ir.Select, Sequence[ir.Output]]:
    """The query with a full join made the source `name`: a left join, and what the right side has alone."""
    left, right = _aliases(join_.left), _aliases(join_.right)
    seen: dict[tuple[str, str], ir.Column] = {}
    for node in (n for part in (q, *extra) for n in walk(part)):
        if isinstance(node, ir.Column) and node.alias in left | right:
            seen.setdefault((node.alias, node.name), node.with_(nullable=True))
    labels = {place: f"com_c{i}" for i, place in enumerate(seen, 1)}

    def put(node: Node) -> Node:
        if isinstance(node, ir.Column) and (node.alias, node.name) in labels:
            return ir.Column(node.type, True, node.span, name, labels[node.alias, node.name])
        return node

    def replaced(source: ir.Source) -> ir.Source:
        if source is join_:
            return ir.QuerySource(union, name)
        if isinstance(source, ir.Join):
            on: ir.Expr | None = rebuild(source.on, put) if source.on is not None else None
            return source.with_(left=replaced(source.left), right=replaced(source.right), on=on)
        return source

    def missing(c: ir.Column) -> ir.Expr:
        return ir.Cast(c.type, True, c.span, ir.Constant(NULL, True, c.span, None), True) if c.alias in left else c

    one = ir.Constant(INT, False, NOWHERE, 1)
    both_ = ir.Select(
        False,
        tuple(ir.Output(labels[p], c) for p, c in seen.items()),
        join_.with_(kind="left"),
        None,
        (),
        None,
        (),
        None,
        None,
    )
    there = ir.Select(False, (ir.Output("x", one),), join_.left, join_.on, (), None, (), None, None)
    alone = both_.with_(
        columns=tuple(ir.Output(labels[p], missing(c)) for p, c in seen.items()),
        source=join_.right,
        where=ir.Apply(BOOL, False, NOWHERE, "not", (ir.Exists(BOOL, False, NOWHERE, there),)),
    )
    if not seen:
        both_, alone = (s.with_(columns=(ir.Output("com_c0", one),)) for s in (both_, alone))
    fields = tuple(plan.Field(labels[p], c.type) for p, c in seen.items()) or (plan.Field("com_c0", INT),)
    union = ir.SetQuery("union", True, both_, alone, fields, (), None, None)
    assert q.source is not None
    outer = rebuild(q.with_(source=None), put).with_(source=replaced(q.source))
    return outer, [rebuild(o, put) for o in extra]


def _determined(q: ir.Select) -> list[ir.Column]:
    """The columns that a grouped query names outside its keys and aggregates: keys determine them."""
    keys, own = set(q.group), _aliases(q.source) if q.source is not None else set()
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


def has_query(node: Node) -> bool:
    """True if an expression holds a query."""
    return any(isinstance(n, ir.Scalar | ir.Exists | ir.InQuery) for n in walk(node))


def own_columns(e: ir.Expr, q: ir.Select) -> bool:
    """True if an expression names a column of the query that it stands in."""
    own = _aliases(q.source)
    return any(isinstance(n, ir.Column) and n.alias in own for n in walk(e))


def outer_columns(e: ir.Expr, q: ir.Select) -> bool:
    """True if an expression names a column of a query around the one that it stands in."""
    if isinstance(e, ir.Column):
        return e.alias not in _aliases(q.source)
    known = _aliases(q.source).union(*(_aliases(n.source) for n in walk(e) if isinstance(n, ir.Select)))
    return any(isinstance(n, ir.Column) and n.alias and n.alias not in known for n in walk(e))


def _aliases(source: ir.Source | None) -> set[str]:
    if source is None:
        return set()
    return _aliases(source.left) | _aliases(source.right) if isinstance(source, ir.Join) else {source.alias}


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
