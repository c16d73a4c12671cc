"""Queries: what is read, grouped and ordered, how many rows there can be, and which columns tell rows apart.

The order that can be observed is made total here: keys are appended until no two rows are left that could come
in either order and yet differ.
"""

from __future__ import annotations

from collections.abc import Iterable

from com import diagnostics as messages
from com.compiler import ir, syntax
from com.compiler.expressions import Expressions
from com.compiler.names import Env, Seen, near_names, spelled
from com.compiler.resolve import POSITION, columns_in
from com.diagnostics import Edit, Fix
from com.node import Node, children, rebuild
from com.plan import Field
from com.schema import INT, Table, Type
from com.source import Span

Place = tuple[str, str]
"""A column of a source: (alias, name)."""

_KEEPING = {
    ("int", "text"), ("int", "decimal"), ("date", "text"), ("date", "timestamp"), ("bool", "text"), ("bool", "int"),
}  # fmt: skip
"""Casts of which no two values give the same."""


class Fact(Node):
    """The values of `given` columns leave just one value for `then`."""

    given: frozenset[Place]
    then: Place


class Relation(Node):
    """A checked query with what its readers must know. `keys`: sets of output columns without duplicates; `open` when
    it has columns that are not known, for a mistake already told."""

    query: ir.Query
    fields: tuple[Field, ...]
    outputs: tuple[ir.Output, ...]
    card: str
    keys: tuple[tuple[str, ...], ...]
    open: bool = False


class Queries(Expressions):
    """The part of the checker that knows queries."""

    def subquery(self, query: syntax.Query, env: Env) -> tuple[ir.Query, tuple[ir.Output, ...], str]:
        made = self.query(query, env)
        return made.query, made.outputs, made.card

    def query(self, node: syntax.Query, outer: Env | None, *, observed: bool = False) -> Relation:
        """A query; its order is total if its rows are observed, or cut by a limit."""
        body = node.body
        if isinstance(body, syntax.Query) and not node.order and node.limit is None and node.offset is None:
            return self.query(body, outer, observed=observed)
        if isinstance(body, syntax.Query):
            star = syntax.Star(None, body.span)
            source = syntax.From(syntax.Derived(body, None, body.span), (), body.span)
            body = syntax.Select(False, (star,), source, None, (), None, body.span)
        if isinstance(body, syntax.SetOperation):
            return self._set_query(body, node, outer, observed)
        return _Select(self, body, node, outer, observed).relation()

    # ------------------------------------------------------------ union, intersect, except

    def _set_query(self, body: syntax.SetOperation, node: syntax.Query, outer: Env | None, observed: bool) -> Relation:
        left, right = self._side_query(body.left, outer), self._side_query(body.right, outer)
        fields = self._fit_sides(body, left, right)
        if fields is None:
            return left.with_(open=True)
        sides = [self.fitted(side, tuple(f.type for f in fields)) for side in (left, right)]
        outputs = tuple(ir.Output(f.name, ir.Column(f.type, f.nullable, body.span, "", f.name)) for f in fields)
        order = [self._set_key(key, outputs, body.op) for key in node.order]
        limit = self.count(node.limit, "limit") if node.limit is not None else None
        offset = self.count(node.offset, "offset") if node.offset is not None else None
        keys = [k for k in order if k is not None]
        if observed or limit is not None or offset is not None:
            keys += [ir.OrderKey(o.expr, False, False) for o in outputs if all(o.expr != k.expr for k in keys)]
        query = ir.SetQuery(body.op, body.all, sides[0], sides[1], fields, tuple(keys), limit, offset)
        unique = () if body.all else (tuple(f.name for f in fields),)
        return Relation(query, fields, outputs, "maybe" if _is_one(limit) else "many", unique)

    def _side_query(self, body: syntax.QueryBody, outer: Env | None) -> Relation:
        query = body if isinstance(body, syntax.Query) else syntax.Query(body, (), None, None, body.span)
        return self.query(query, outer)

    def _fit_sides(self, node: syntax.SetOperation, left: Relation, right: Relation) -> tuple[Field, ...] | None:
        if left.open or right.open:
            return None
        if len(left.fields) != len(right.fields):
            detail = f"{counted(len(left.fields), 'column')} and {len(right.fields)}"
            self.report(messages.SidesDiffer(node.op, detail), node.right.span)
            return None
        fields = []
        for mine, its in zip(left.outputs, right.outputs, strict=True):
            common = self.common([mine.expr, its.expr])
            if common is None:
                detail = f"column {mine.name} is {mine.expr.type} and {its.expr.type}"
                self.report(messages.SidesDiffer(node.op, detail), its.expr.span)
                return None
            if node.op != "union" or not node.all:
                self.ordered(mine.expr if mine.expr.type == common else its.expr, node.op)
            fields.append(Field(mine.name, common, mine.expr.nullable or its.expr.nullable))
        return tuple(fields)

    def _set_key(self, key: syntax.OrderKey, outputs: tuple[ir.Output, ...], op: str) -> ir.OrderKey | None:
        expr = key.expr
        if isinstance(expr, syntax.Number) and expr.text.isdigit() and 0 < int(expr.text) <= len(outputs):
            found = outputs[int(expr.text) - 1]
            return ir.OrderKey(self._of_result(found, expr.span), key.descending, bool(key.nulls_first))
        if isinstance(expr, syntax.ColumnName):
            fits = spelled(expr.name.text, (o.name for o in outputs))
            if len(fits) == 1:
                found = next(o for o in outputs if o.name == fits[0])
                return ir.OrderKey(self._of_result(found, expr.span), key.descending, bool(key.nulls_first))
            near = near_names(expr.name.text, [o.name for o in outputs])
            self.report(messages.UnknownColumn(expr.name.text, "the result", near), expr.span)
            return None
        self.report(messages.OrderNotSelected(op), expr.span)
        return None

    def _of_result(self, output: ir.Output, span: Span) -> ir.Expr:
        return self.ordered(output.expr.with_(span=span), "order by")

    def fitted(self, relation: Relation, types: tuple[Type, ...]) -> ir.Query:
        """The query with its columns converted to these types (they convert)."""
        query = relation.query
        if all(o.expr.type == t for o, t in zip(relation.outputs, types, strict=True)):
            return query
        if isinstance(query, ir.SetQuery):
            outputs = tuple(
                ir.Output(f.name, ir.Column(f.type, f.nullable, o.expr.span, "com_d", f.name))
                for f, o in zip(query.fields, relation.outputs, strict=True)
            )
            inner = query
            order: tuple[ir.OrderKey, ...] = ()
            if query.order and query.limit is None and query.offset is None:
                order = tuple(
                    rebuild(k, lambda n: n.with_(alias="com_d") if isinstance(n, ir.Column) else n) for k in query.order
                )
            query = ir.Select(False, outputs, ir.QuerySource(inner, "com_d"), None, (), None, order, None, None)
        columns = tuple(ir.Output(o.name, self._as_type(o.expr, t)) for o, t in zip(query.columns, types, strict=True))
        return query.with_(columns=columns)

    def _as_type(self, made: ir.Expr, type_: Type) -> ir.Expr:
        converted = self.convert(made, type_) or made
        if converted.type == type_:
            return converted
        return ir.Cast(type_, converted.nullable, converted.span, converted, True)

    # ------------------------------------------------------------ from

    def table(self, name: syntax.Name) -> Table | None:
        """The table that a name means."""
        fits = spelled(name.text, (t.name for t in self.schema.tables))
        if len(fits) == 1:
            return self.schema.table(fits[0])
        if fits:
            self.report(messages.AmbiguousName(name.text, ", ".join(fits)), name.span)
            return None
        entry = self.block.find(name.text) or self.parameter(name.text)
        if entry is not None and (entry.fields or entry.ref.kind == "step"):
            entry.used = True
            fix = Fix((Edit(Span(name.span.start, name.span.start), "$"),), certain=True)
            hint = f"write ${name.text} for the rows of that name"
            self.report(messages.UnknownTable(name.text, hint), name.span, fix=fix)
            return None
        near = near_names(name.text, [t.name for t in self.schema.tables], "table in this memory")
        self.report(messages.UnknownTable(name.text, near), name.span)
        return None

    def seen_table(self, table: Table, name: str, alias: str = "") -> Seen:
        """A table as a query sees it: columns of types that com lacks cannot be used."""
        fields = tuple(Field(c.name, c.type, c.nullable) for c in table.columns if not c.type.is_unknown)
        unusable = {c.name: c.engine_type for c in table.columns if c.type.is_unknown}
        self.reads.setdefault(table.name, set())
        return Seen(name, fields, alias=alias, table=table, keys=table.keys, unusable=unusable)


class _Select:
    """One select at work."""

    def __init__(
        self, checker: Queries, body: syntax.Select, node: syntax.Query, outer: Env | None, observed: bool
    ) -> None:
        self.c = checker
        self.body = body
        self.node = node
        self.outer = outer
        self.observed = observed
        self.env = Env("the columns", outer)
        self.facts: list[Fact] = []
        self.group: tuple[ir.Expr, ...] = ()
        self.only_whole = True
        self.open = False

    def relation(self) -> Relation:
        c, body, env = self.c, self.body, self.env
        met, c.windows_met = c.windows_met, False
        source = self._from(body.source) if body.source is not None else None
        where = None
        if body.where is not None:
            place = env.at("where")
            place.later = frozenset(i.alias.text for i in body.items if isinstance(i, syntax.Item) and i.alias)
            where = c.condition(body.where, place)
            self._learn(where, None)
            self.only_whole = False
        aggregates: list[ir.Expr] = []
        outputs = self._outputs(env.at("the columns", aggregates=aggregates, windows=True))
        aliases = {o.name: o.expr for o in outputs}
        self.group = tuple(self._group_key(g, outputs, aliases) for g in body.group)
        having = None
        if body.having is not None:
            place = env.at("having", aggregates=aggregates)
            place.aliases = aliases
            having = c.condition(body.having, place)
        order = tuple(self._order_key(k, outputs, aliases, aggregates) for k in self.node.order)
        limit = c.count(self.node.limit, "limit") if self.node.limit is not None else None
        offset = c.count(self.node.offset, "offset") if self.node.offset is not None else None
        grouped = bool(body.group or aggregates or body.having is not None)
        if grouped:
            self._check_grouped(outputs, having, order)
            outputs = tuple(ir.Output(o.name, self._surely(o.expr)) for o in outputs)
        if body.distinct:
            for output in outputs:
                c.ordered(output.expr, "select distinct")
        if body.distinct and not grouped:
            for key in order:
                if all(key.expr != o.expr for o in outputs) and not key.expr.type.is_unknown:
                    c.report(messages.OrderNotSelected("select distinct"), key.expr.span)
        row_key = self._row_key(grouped, order)
        card = self._card(grouped, limit, offset, having)
        if self.observed or limit is not None or offset is not None:
            order = self._total(order, row_key, outputs, card)
        query = ir.Select(body.distinct, outputs, source, where, self.group, having, order, limit, offset)
        if c.windows_met:
            columns, having, order = rebuild(
                (outputs, having, order), lambda n: self._total_inside(n, grouped), (ir.Select, ir.SetQuery)
            )
            query = query.with_(columns=columns, having=having, order=order)
        c.windows_met = met
        fields = tuple(Field(o.name, o.expr.type, o.expr.nullable) for o in query.columns)
        return Relation(query, fields, query.columns, card, self._keys(outputs, grouped), self.open)

    # ------------------------------------------------------------ from

    def _from(self, node: syntax.From) -> ir.Source | None:
        made = self._table_ref(node.first)
        for join in node.joins:
            left = list(self.env.seen)
            self.only_whole = self.only_whole and join.kind == "cross"
            right = self._table_ref(join.right)
            mine = [s for s in self.env.seen if s not in left]
            on = self._using(join, left, mine) if join.using else None
            if join.on is not None:
                on = self.c.condition(join.on, self.env.at("on"))
            if on is not None:
                self._learn(on, join.kind, frozenset(self._places(on)))
            if join.kind in ("left", "full"):
                for seen in mine:
                    seen.nullable()
            if join.kind in ("right", "full"):
                for seen in left:
                    seen.nullable()
                self.facts = [f for f in self.facts if f.given and join.kind == "right"]
            made = ir.Join(join.kind, made, right, on) if made is not None and right is not None else None
        return made

    def _table_ref(self, node: syntax.TableRef) -> ir.Source | None:
        c = self.c
        match node:
            case syntax.TableName(name=name, alias=alias):
                table = c.table(name)
                if table is None:
                    self._add(Seen((alias or name).text, (), open=True), node.span)
                    return None
                shown = alias.text if alias else table.name
                seen = c.seen_table(table, shown, self.env.unused(shown))
                self._add(seen, node.span)
                return ir.TableSource(table, seen.alias)
            case syntax.TablePlaceholder(place=place, alias=alias):
                entry = c.rows(place, "rows")
                shown = alias.text if alias else place.name
                if entry is None:
                    self._add(Seen(shown, (), open=True), node.span)
                    return None
                keys = ((POSITION,), *entry.keys)
                fixed = entry.card in ("one", "maybe")
                self.only_whole = self.only_whole and (entry.card == "one" or c.block.has_row(entry.ref))
                unused = self.env.unused(shown)
                order = (POSITION,)
                self._add(
                    Seen(shown, entry.fields, alias=unused, keys=keys, order=order, fixed=fixed, open=entry.open),
                    node.span,
                )
                return ir.RowsSource(entry.ref, unused, entry.fields)
            case syntax.Derived(query=query, alias=alias):
                made = c.query(query, self.outer)
                shown = alias.text if alias else f"com_d{len(self.env.seen) + 1}"
                self.only_whole = self.only_whole and made.card == "one"
                fixed = made.card != "many"
                unused = self.env.unused(shown)
                self._add(
                    Seen(shown, made.fields, alias=unused, keys=made.keys, fixed=fixed, open=made.open), node.span
                )
                return ir.QuerySource(made.query, unused)

    def _add(self, seen: Seen, span: Span) -> None:
        if any(s.name == seen.name for s in self.env.seen):
            self.c.report(messages.DuplicateAlias(seen.name), span)
        self.env.seen.append(seen)

    def _using(self, join: syntax.Join, left: list[Seen], right: list[Seen]) -> ir.Expr | None:
        made: ir.Expr | None = None
        known, self.env.seen = self.env.seen, left
        sides: list[tuple[syntax.Name, ir.Expr]] = [
            (n, self.c.expr(syntax.ColumnName(None, n, n.span), self.env)) for n in join.using
        ]
        merged, self.env.merged, self.env.seen = self.env.merged, {}, right
        pairs = [(n, mine, self.c.expr(syntax.ColumnName(None, n, n.span), self.env)) for n, mine in sides]
        self.env.merged, self.env.seen = merged, known
        for name, mine, its in pairs:
            equal = self.c.comparison("=", mine, its, name.span)
            if equal.type.is_unknown:
                return None
            made = equal if made is None else ir.Apply(equal.type, True, join.span, "and", (made, equal))
            if join.kind == "right":
                mine = its
            elif join.kind == "full":
                mine = self.c.apply("coalesce", [mine.with_(nullable=True), its.with_(nullable=True)], name.span)
            if isinstance(mine, ir.Column) and isinstance(its, ir.Column):
                self.env.merged[mine.name] = mine
            elif isinstance(its, ir.Column):
                self.env.merged[its.name] = mine
        return made

    # ------------------------------------------------------------ what determines what

    def _learn(self, condition: ir.Expr, join: str | None, among: frozenset[Place] = frozenset()) -> None:
        """Facts from equalities that hold in every row (or, of an outer join, toward its optional side: there they hold
        given all columns `among` which the join decides)."""
        if isinstance(condition, ir.Apply) and condition.name == "and":
            for arg in condition.args:
                self._learn(arg, join, among)
        if not (isinstance(condition, ir.Apply) and condition.name == "="):
            return
        for side, other in (condition.args, condition.args[::-1]):
            mine = _told_apart(side)
            if mine is None or not any(s.alias == mine.alias for s in self.env.seen):
                continue
            given = frozenset(p for p in self._places(other))
            if any(alias == mine.alias for alias, _ in given):
                continue
            if join in ("left", "right"):
                last = self.env.seen[-1].alias
                toward = mine.alias == last if join == "left" else mine.alias != last
                if not given or not toward:
                    continue
                given |= {p for p in among if (p[0] != last) == (join == "left")}
            elif join == "full":
                continue
            self.facts.append(Fact(given, (mine.alias, mine.name)))

    def _places(self, made: Node) -> set[Place]:
        own = {s.alias for s in self.env.seen}
        return {(c.alias, c.name) for c in columns_in(made) if c.alias in own}

    def _closure(self, start: Iterable[Place]) -> set[Place]:
        """Every column that has one value when those of `start` have one. An equality has no null on its sides, but a
        column of `start` may be null in many rows, unique or not."""
        known = set(start)
        loose = {(s.alias, n) for s in self.env.seen for a, n in known if a == s.alias and s.may_be_null(n)}
        pending = list(self.env.seen)
        grown = True
        while grown:
            grown = False
            for fact in self.facts:
                if (fact.then not in known or fact.then in loose) and fact.given <= known:
                    known.add(fact.then)
                    loose.discard(fact.then)
                    grown = True
            for seen in list(pending):
                if self._is_fixed(seen, known - loose):
                    known.update((seen.alias, f.name) for f in seen.fields)
                    known.update((seen.alias, name) for name in seen.order)
                    pending.remove(seen)
                    grown = True
        return known

    @staticmethod
    def _is_fixed(seen: Seen, known: set[Place]) -> bool:
        return seen.fixed or any(all((seen.alias, name) in known for name in key) for key in seen.keys)

    def _card(self, grouped: bool, limit: ir.Expr | None, offset: ir.Expr | None, having: ir.Expr | None) -> str:
        if grouped and not self.body.group:
            card = "one" if having is None else "maybe"
        elif self.body.source is None:
            card = "one" if self.body.where is None else "maybe"
        elif grouped:
            known = self._closure(())
            card = "maybe" if all(self._places(g) <= known for g in self.group) else "many"
        else:
            known = self._closure(())
            card = "maybe" if all(self._is_fixed(s, known) for s in self.env.seen) else "many"
            if card == "maybe" and self.only_whole:
                card = "one"
        if _is_one(limit) and card == "many":
            card = "maybe"
        return "maybe" if card == "one" and (limit is not None or offset is not None) else card

    def _row_key(self, grouped: bool, order: tuple[ir.OrderKey, ...]) -> list[ir.Expr]:
        """Expressions that tell any two rows of this query apart, given its order so far."""
        ordered = [(k.expr.alias, k.expr.name) for k in order if isinstance(k.expr, ir.Column)]
        if grouped:
            known = self._closure(ordered)
            return [g for g in self.group if not (isinstance(g, ir.Column) and (g.alias, g.name) in known)]
        known = self._closure(ordered)
        made: list[ir.Expr] = []
        for seen in self.env.seen:
            fields = tuple(f.name for f in seen.fields)
            by_place = seen.order and self.c.windows_met  # equal rows are told apart by what windows say of them
            if not by_place and all((seen.alias, name) in known for name in fields):
                continue
            keys = [k for k in seen.keys if not any(seen.may_be_null(n) for n in k)]
            key = seen.order or (keys[0] if keys else fields)
            for name in key:
                if (seen.alias, name) not in known:
                    made.append(self._column_of(seen, name))
            known = self._closure(known | {(seen.alias, name) for name in key})
        return made

    def _column_of(self, seen: Seen, name: str) -> ir.Expr:
        field = next((f for f in seen.fields if f.name == name), None)
        if field is None:
            return ir.Column(INT, seen.loose, self.body.span, seen.alias, name)
        return ir.Column(field.type, field.nullable, self.body.span, seen.alias, name, seen.adapts(name))

    def _total(
        self, order: tuple[ir.OrderKey, ...], row_key: list[ir.Expr], outputs: tuple[ir.Output, ...], card: str
    ) -> tuple[ir.OrderKey, ...]:
        if card != "many" and self.node.limit is None:
            return order
        keys = row_key
        if self.body.distinct:
            keys = [o.expr for o in outputs]
        return self._with_keys(order, keys)

    def _total_inside(self, node: Node, grouped: bool) -> Node:
        """Windows and aggregates that see rows one by one get a total order too; peers stay peers for all others."""
        if isinstance(node, ir.Aggregate) and node.name == "string_agg":
            # of equal values of `distinct` one is left: their own order is all there is to see
            keys = [node.args[0]] if node.distinct else self._row_key(False, node.order)
            return node.with_(order=self._with_keys(node.order, keys))
        if isinstance(node, ir.Window):
            by_row = node.name in ("row_number", "lag", "lead", "first_value", "last_value")
            if by_row or (node.frame is not None and node.frame[0] == "rows"):
                told = (*node.order, *(ir.OrderKey(p, False, False) for p in node.partition))
                return node.with_(order=self._with_keys(node.order, self._row_key(grouped, told)))
        return node

    def _with_keys(self, order: tuple[ir.OrderKey, ...], keys: list[ir.Expr]) -> tuple[ir.OrderKey, ...]:
        extra = [k for k in keys if all(k != o.expr for o in order) and not isinstance(k, ir.Constant)]
        for key in extra:
            self.c._read_again(key, self.env)
        return order + tuple(ir.OrderKey(k, False, False) for k in extra)

    def _keys(self, outputs: tuple[ir.Output, ...], grouped: bool) -> tuple[tuple[str, ...], ...]:
        """Sets of output columns without duplicates."""
        if self.body.distinct:
            return (tuple(o.name for o in outputs),)
        if grouped and not self.group:
            return ()
        names = {o.expr: o.name for o in reversed(outputs)}
        wanted = list(self.group) or self._row_key(False, ())
        if wanted and all(w in names for w in wanted):
            return (tuple(names[w] for w in wanted),)
        return ()

    # ------------------------------------------------------------ columns

    def _outputs(self, env: Env) -> tuple[ir.Output, ...]:
        made: list[ir.Output] = []
        taken: dict[str, bool] = {}
        for item in self.body.items:
            if isinstance(item, syntax.Star):
                for name, expr in self._star(item):
                    made.append(ir.Output(_free(name, taken), expr))
                    taken[made[-1].name] = False
                continue
            expr = self.c.expr(item.expr, env)
            if expr.type.kind == "null":
                expr = self.c.convert(expr, Type("text")) or expr
            if expr.type.kind == "interval":
                hint = "add it to a date: d + interval '3 day'"
                self.c.report(messages.WrongArgument("select", "a value", "an interval", hint), expr.span)
                expr = self.c.poison(expr.span)
            name = item.alias.text if item.alias is not None else _name_of(item.expr)
            if item.alias is not None and taken.get(name):
                self.c.report(messages.DuplicateName("column", name), item.alias.span)
            if item.alias is None:
                name = _free(name, taken)
            elif name in taken:
                made = [o.with_(name=_free(name, {**taken, name: True})) if o.name == name else o for o in made]
            taken[name] = item.alias is not None
            made.append(ir.Output(name, expr))
        return tuple(made)

    def _star(self, star: syntax.Star) -> list[tuple[str, ir.Expr]]:
        made: list[tuple[str, ir.Expr]] = []
        seen_all = [s for s in self.env.seen if not s.hidden]
        if star.table is not None:
            fits = spelled(star.table.text, (s.name for s in seen_all))
            if len(fits) != 1:
                near = near_names(star.table.text, [s.name for s in seen_all])
                self.c.report(messages.UnknownTable(star.table.text, near), star.table.span)
                return []
            seen_all = [s for s in seen_all if s.name == fits[0]]
        elif not seen_all:
            self.c.report(messages.NoColumnHere("*", "name the columns, or read from a table"), star.span)
        else:
            made = [(name, expr) for name, expr in self.env.merged.items()]
        for seen in seen_all:
            self.open = self.open or seen.open
            for field in seen.fields:
                if seen.table is not None:
                    self.c.reads.setdefault(seen.table.name, set()).add(field.name)
                if star.table is not None or field.name not in self.env.merged:
                    made.append((field.name, self._column_of(seen, field.name).with_(span=star.span)))
        return made

    def _group_key(self, node: syntax.Expr, outputs: tuple[ir.Output, ...], aliases: dict[str, ir.Expr]) -> ir.Expr:
        env = self.env.at("group by")
        env.aliases = aliases
        made = self._ordinal(node, outputs) if isinstance(node, syntax.Number) else self.c.expr(node, env)
        made = self.c.ordered(made.with_(span=node.span), "group by")
        for found in _inside(made):
            self.c.report(
                messages.AggregateMisplaced(found.name, "group by", "group by what is aggregated over"), node.span
            )
        if isinstance(made, ir.Window):
            self.c.report(messages.WindowMisplaced("group by"), node.span)
        return made

    def _order_key(
        self,
        key: syntax.OrderKey,
        outputs: tuple[ir.Output, ...],
        aliases: dict[str, ir.Expr],
        aggregates: list[ir.Expr],
    ) -> ir.OrderKey:
        node = key.expr
        if isinstance(node, syntax.Number):
            expr = self._ordinal(node, outputs)
        else:
            env = self.env.at("order by", aggregates=aggregates, windows=True)
            env.aliases = aliases
            bare = isinstance(node, syntax.ColumnName) and node.table is None
            fits = spelled(node.name.text, aliases) if isinstance(node, syntax.ColumnName) and bare else []
            expr = aliases[fits[0]].with_(span=node.span) if len(fits) == 1 else self.c.expr(node, env)
        return ir.OrderKey(self.c.ordered(expr, "order by"), key.descending, bool(key.nulls_first))

    def _ordinal(self, node: syntax.Number, outputs: tuple[ir.Output, ...]) -> ir.Expr:
        if node.text.isdigit() and 0 < int(node.text) <= len(outputs):
            return outputs[int(node.text) - 1].expr.with_(span=node.span)
        self.c.report(messages.UnknownColumn(node.text, f"the {len(outputs)} columns", "count from 1"), node.span)
        return self.c.poison(node.span)

    # ------------------------------------------------------------ groups

    def _check_grouped(
        self, outputs: tuple[ir.Output, ...], having: ir.Expr | None, order: tuple[ir.OrderKey, ...]
    ) -> None:
        if any(g.type.is_unknown for g in self.group):
            return
        known = self._closure(p for g in self.group if isinstance(g, ir.Column) for p in self._places(g))
        told: set[Place] = set()
        for expr in [o.expr for o in outputs] + ([having] if having is not None else []) + [k.expr for k in order]:
            for column in self._ungrouped(expr, known):
                if (column.alias, column.name) not in told:
                    told.add((column.alias, column.name))
                    self.c.report(messages.NotGrouped(column.name), column.span)

    def _ungrouped(self, node: Node, known: set[Place]) -> list[ir.Column]:
        if isinstance(node, ir.Expr) and node in self.group:
            return []
        if isinstance(node, ir.Aggregate):
            return []
        if isinstance(node, ir.Column):
            mine = any(s.alias == node.alias for s in self.env.seen)
            return [node] if mine and (node.alias, node.name) not in known else []
        if isinstance(node, ir.InQuery):
            return self._ungrouped(node.operand, known) + self._ungrouped(node.query, known)
        if isinstance(node, ir.Exists | ir.Scalar | ir.Query):
            return [c for c in columns_in(node) if self._places(c) - known]
        return [c for child in children(node) for c in self._ungrouped(child, known)]

    def _surely(self, expr: ir.Expr) -> ir.Expr:
        """An aggregate over a group, which has a row, of what cannot be null, is not null."""
        if not isinstance(expr, ir.Aggregate) or not self.body.group or expr.name == "stddev":
            return expr
        sure = expr.where is None and not any(a.nullable for a in expr.args)
        return expr.with_(nullable=False) if sure else expr


def counted(number: int, noun: str) -> str:
    """`1 column`, `2 columns`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _told_apart(side: ir.Expr) -> ir.Column | None:
    """The column that an expression is, or is a cast of which makes no two values one."""
    if isinstance(side, ir.Cast) and (side.operand.type.kind, side.type.kind) in _KEEPING:
        side = side.operand
    return side if isinstance(side, ir.Column) else None


def _inside(made: Node) -> list[ir.Aggregate]:
    if isinstance(made, ir.Aggregate):
        return [made]
    if isinstance(made, ir.Select | ir.SetQuery):
        return []  # a query of its own groups its own rows
    return [a for child in children(made) for a in _inside(child)]


def _is_one(limit: ir.Expr | None) -> bool:
    return isinstance(limit, ir.Constant) and limit.value in (0, 1)


def _name_of(node: syntax.Expr) -> str:
    match node:
        case syntax.ColumnName(name=name):
            return name.text
        case syntax.Placeholder(name=name, column=column):
            return column.text if column is not None else name
        case syntax.Function(name=name):
            return name.text.lower()
        case syntax.Cast(operand=operand):
            return _name_of(operand)
        case syntax.Case():
            return "case"
        case syntax.Exists() | syntax.ExistsPlaceholder():
            return "exists"
        case syntax.ScalarQuery(query=syntax.Query(body=syntax.Select(items=(syntax.Item(expr=expr, alias=alias),)))):
            return alias.text if alias is not None else _name_of(expr)
        case _:
            return "column"


def _free(name: str, taken: Iterable[str]) -> str:
    """The name, or the first of name_2, name_3, … that is not taken."""
    known = set(taken)
    made, number = name, 2
    while made in known:
        made, number = f"{name}_{number}", number + 1
    return made
