"""One way of reading a match, as tables to join.

Takes the patterns of a clause with a table for each of their nodes and edges; gives sources, and what must hold for
them. An edge is used once in a clause; a hop with bounds is its edges one after another; a shortest path is found
breadth first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from com import diagnostics as messages
from com.compiler import syntax
from com.compiler.made import Own, Place, below, both, column_of, equal, held, item_of, named, variables_in
from com.compiler.names import spelled
from com.compiler.patterns import Hop, Patterns, Slot, Typing, Variable
from com.compiler.scopes import Scopes
from com.node import Node
from com.schema import EdgeTable
from com.source import Span


class Part(Node):
    """A source to join, and what must hold for its rows."""

    table: syntax.TableRef
    conditions: tuple[syntax.Expr, ...]


class Branch:
    """One way of reading the patterns of a clause. `inside` a derived table it holds the nodes that are bound too."""

    def __init__(self, work: Scopes, patterns: Patterns, typing: Typing, inside: bool) -> None:
        self.work, self.patterns, self.typing, self.inside = work, patterns, typing, inside
        self.parts: list[Part] = []
        self.conditions: list[syntax.Expr] = []
        self.scope: dict[str, Variable] = {}
        self.places: dict[str, Place] = {}
        self.edges: list[tuple[EdgeTable, str]] = []
        self.lengths: dict[str, syntax.Expr] = {}
        self.joined: set[str] = set()
        self._plan()

    def _plan(self) -> None:
        for task in self.patterns.tasks:
            if isinstance(task, Slot):
                self._enter(task)
            elif task.shortest:
                self._shortest(task)
            else:
                self._go(task)
        for slot in self.patterns.slots.values():
            if slot.name not in self.places:
                self._node(slot, None)
        for index, (edge, alias) in enumerate(self.edges):
            for other, other_alias in self.edges[:index]:
                if other == edge:
                    self._apart(edge, alias, other_alias)

    def _apart(self, edge: EdgeTable, alias: str, other: str) -> None:
        """An edge is used once."""
        span = self.patterns.hops[0].node.span
        keys = self.work.table(edge).primary_key
        pairs = [(column_of(alias, k, span), column_of(other, k, span)) for k in keys]
        if len(pairs) == 1:
            self.conditions.append(syntax.Binary("<>", *pairs[0], span))
        else:
            same = both([syntax.Binary("=", a, b, span) for a, b in pairs], span)
            assert same is not None
            self.conditions.append(syntax.Unary("not", same, span))

    def _enter(self, slot: Slot) -> None:
        """A node that a pattern begins with. One that only edges ask for is read off them."""
        if slot.name in self.places:
            return
        if (slot.bound is not None and not self.inside) or not (slot.plain and self._named_by_keys(slot)):
            self._node(slot, None)

    def _named_by_keys(self, slot: Slot) -> bool:
        """True if a hop begins or ends at the node, and all hops there name it by its primary key."""
        met = False
        vertex = self.typing.tables[slot.name]
        key = set(self.work.table(vertex).primary_key)
        for hop in self.patterns.hops:
            if slot not in (hop.start, hop.end):
                continue
            run = self.typing.runs[hop.name]
            if hop.shortest or not run:
                return False
            met = True
            for edge, _ in run:
                if any(set(e.target) != key for e in (edge.source, edge.destination) if e.table == vertex.table):
                    return False
        return met

    def _node(self, slot: Slot, place: Place | None) -> None:
        """The table of a node, joined at a place if an edge leads there."""
        vertex = self.typing.tables[slot.name]
        alias = slot.name
        span = slot.span
        if slot.bound is not None and not self.inside:
            self.scope[slot.name] = slot.bound
            keys = self.work.keys(slot.bound, vertex)
            own = dict(zip(self.work.table(vertex).primary_key, keys, strict=True))
            if not slot.bound.names:
                own = Own(slot.bound.alias, own, span)
            if place is not None:
                self.conditions += equal(own, place, span)
            elif slot.bound.name in self.work.optional:
                self.conditions.append(syntax.IsNull(keys[0], True, span))
            self.places[slot.name] = own
            return
        own = Own(alias, self.work.table(vertex).primary_key, span)
        self.scope[slot.name] = Variable(slot.name, "node", (vertex,), alias, {}, None, span)
        table = syntax.TableName(named(vertex.table, span), named(alias, span), span)
        self.parts.append(Part(table, tuple(equal(own, place, span)) if place is not None else ()))
        self.places[slot.name] = own

    def _arrive(self, slot: Slot, place: Place) -> None:
        """An edge has led to a node."""
        known = self.places.get(slot.name)
        if known is not None:
            self.conditions += equal(known, place, slot.span)
        elif slot.bound is None and slot.plain and self._named_by_keys(slot):
            self.places[slot.name] = place
        else:
            self._node(slot, place)

    def _go(self, hop: Hop) -> None:
        """The edges of a hop, one after another."""
        run = self.typing.runs[hop.name]
        node = hop.node
        span = node.span
        place = self.places.get(hop.start.name)
        many = node.hops is not None
        for edge, way in run:
            alias = self.work.fresh("e") if many else hop.name
            source, end = (edge.source, edge.destination) if way != "left" else (edge.destination, edge.source)
            if way == "both":
                ref: syntax.TableRef = self._both_ways(edge, alias, hop)
                start_place: Place = {t: column_of(alias, f"com_s{i}", span) for i, t in enumerate(source.target)}
                end_place: Place = {t: column_of(alias, f"com_t{i}", span) for i, t in enumerate(source.target)}
            else:
                ref = syntax.TableName(named(edge.table, span), named(alias, span), span)
                start_place, end_place = held(source, alias, span), held(end, alias, span)
            conditions = equal(place, start_place, span) if place is not None else []
            if way != "both":
                conditions += self._there(edge, alias, span)
            if many:
                own = Variable(hop.name, "edge", (edge,), alias, {}, None, span)
                for condition in self.work.own_conditions(hop.name, node):
                    conditions.append(self._put_own(condition, hop.name, own))
            self.parts.append(Part(ref, tuple(conditions)))
            self.edges.append((edge, alias))
            if place is None:
                self.places[hop.start.name] = start_place
            place = end_place
        if place is None:  # no hop from a node that nothing has named
            self._node(hop.start, None)
            place = self.places[hop.start.name]
        kind = "hops" if many else "edge"
        choices = tuple(edge for edge, _ in run)
        self.scope[hop.name] = Variable(hop.name, kind, choices, hop.name, {}, None, span)
        self.lengths[hop.name] = syntax.Number(str(len(run)), span)
        for placeholder, op in zip(hop.bounds, (">=", "<="), strict=True):
            if placeholder is not None:
                self.conditions.append(syntax.Binary(op, self.lengths[hop.name], placeholder, placeholder.span))
        self._arrive(hop.end, place)

    def _put_own(self, condition: syntax.Expr, name: str, own: Variable) -> Any:
        """A condition of the edges of a run: it sees each of them, and of the rest what is bound by value."""
        others = variables_in(condition) - {name}
        if others and self.inside:
            known = sorted(others & {*self.work.scope, *self.patterns.slots})
            if known:
                help_ = f"put what speaks of {known[0]} in the where of the match"
                detail = "the where of several hops sees only their edges"
                self.work.report(messages.BadClause(detail, help_), condition.span)
                return syntax.Truth(True, condition.span)
        return self.work.put(condition, {**self.work.scope, **self.scope, name: own})

    def _there(self, edge: EdgeTable, alias: str, span: Span) -> list[syntax.Expr]:
        """An edge is there while its ends are."""
        table = self.work.table(edge)
        columns = dict.fromkeys((*edge.source.columns, *edge.destination.columns))
        nullable = [c for c in columns if (found := table.column(c)) is not None and found.nullable]
        return [syntax.IsNull(column_of(alias, c, span), True, span) for c in nullable]

    def _both_ways(self, edge: EdgeTable, alias: str, hop: Hop) -> syntax.Derived:
        """An edge's rows from each of its ends; a loop once."""
        span = hop.node.span
        table = self.work.table(edge)
        inner = "com_x"
        kept = dict.fromkeys(table.primary_key)
        used = self.work.used.get(hop.name, set())
        kept.update(dict.fromkeys(c for name, c in edge.properties if name.casefold() in used))
        plain = [syntax.Item(column_of(inner, c, span), named(c, span), span) for c in kept]
        ref = syntax.TableName(named(edge.table, span), named(inner, span), span)
        bodies = []
        target = edge.source.target
        other = dict(zip(edge.destination.target, edge.destination.columns, strict=True))
        ends = (edge.source.columns, tuple(other[t] for t in target))
        same = both([syntax.Binary("=", column_of(inner, a, span), column_of(inner, b, span), span)
                      for a, b in zip(*ends, strict=True)], span)  # fmt: skip
        assert same is not None
        for (first, second), loops in ((ends, True), (ends[::-1], False)):
            items = [
                syntax.Item(column_of(inner, c, span), named(f"com_s{i}", span), span) for i, c in enumerate(first)
            ]
            items += [
                syntax.Item(column_of(inner, c, span), named(f"com_t{i}", span), span) for i, c in enumerate(second)
            ]
            there = self._there(edge, inner, span) + ([] if loops else [syntax.Unary("not", same, span)])
            source = syntax.From(ref, (), span)
            bodies.append(syntax.Select(False, (*items, *plain), source, both(there, span), (), None, span))
        union = syntax.SetOperation("union", True, bodies[0], bodies[1], span)
        return syntax.Derived(syntax.Query(union, (), None, None, span), named(alias, span), span)

    # ------------------------------------------------------------ shortest paths

    def _shortest(self, hop: Hop) -> None:
        """The least number of hops between each two nodes: breadth first, one derived table around another. Each holds
        the nodes reached so far; only those of the last level are gone on from, the others stay."""
        span = hop.node.span
        vertex = self.typing.tables[hop.start.name]
        key = self.work.table(vertex).primary_key
        run = self.typing.runs[hop.name]
        for edge, _ in run:
            if set(edge.source.target) != set(key) or set(edge.destination.target) != set(key):
                detail = f"the edges of {edge.table} name their nodes by another key"
                help_ = "declare the edge's ends by the primary key"
                self.work.report(messages.BadClause(detail, help_), span)
                return
        known = [self._of_one(hop.start), self._of_one(hop.end)]
        backward = not known[0] and bool(known[1])
        slot, conditions = (hop.end, known[1]) if backward else (hop.start, known[0])
        for condition in self.work.own_conditions(hop.name, hop.node):
            self._put_own(condition, hop.name, Variable(hop.name, "edge", hop_choices(run), "com_x", {}, None, span))
        alias = slot.name
        own = {slot.name: Variable(slot.name, "node", (vertex,), alias, {}, None, span)}
        items = [item_of(column_of(alias, k, span), f"s{i}") for i, k in enumerate(key)]
        items += [item_of(column_of(alias, k, span), f"n{i}") for i, k in enumerate(key)]
        items.append(item_of(syntax.Number("0", span), "d"))
        source = syntax.From(syntax.TableName(named(vertex.table, span), named(alias, span), span), (), span)
        put = [self.work.put(c, own) for c in conditions]
        reached = syntax.Select(False, tuple(items), source, both(put, span), (), None, span)
        for level in range(1, hop.high + 1 if run else 1):
            reached = self._level(hop, run, key, reached, level, backward)
        alias = self.work.fresh("p")
        ref = syntax.Derived(syntax.Query(reached, (), None, None, span), named(alias, span), span)
        ends: list[Place] = [
            {k: column_of(alias, f"{side}{i}", span) for i, k in enumerate(key)} for side in ("s", "n")
        ]
        if backward:
            ends.reverse()
        start_place = self.places.get(hop.start.name)
        conditions = equal(start_place, ends[0], span) if start_place is not None else []
        if hop.low == 1:
            conditions.append(syntax.Binary(">", column_of(alias, "d", span), syntax.Number("0", span), span))
        self.parts.append(Part(ref, tuple(conditions)))
        if start_place is None:
            self.places[hop.start.name] = ends[0]
        self.lengths[hop.name] = column_of(alias, "d", span)
        self.scope[hop.name] = Variable(hop.name, "hops", hop_choices(run), hop.name, {}, None, span)
        self._arrive(hop.end, ends[1])

    def _of_one(self, slot: Slot) -> list[syntax.Expr]:
        """What is known of a node alone."""
        return self.work.known.get(slot.name, [])

    def _level(
        self,
        hop: Hop,
        run: tuple[tuple[EdgeTable, str], ...],
        key: tuple[str, ...],
        before: syntax.Select,
        level: int,
        backward: bool,
    ) -> syntax.Select:
        """The nodes that are reached within one hop more. Each row meets a number for every way on, 0 for staying, and
        joins the edges of that way alone: the level before is read once, and edges are found by their own indexes."""
        span = hop.node.span
        width = range(len(key))
        way = column_of("w", "w", span)
        old = [column_of("r", f"n{i}", span) for i in width]
        last = [syntax.Binary("=", column_of("r", "d", span), syntax.Number(str(level - 1), span), span)]
        if hop.bounds[1] is not None:
            last.append(syntax.Binary("<=", syntax.Number(str(level), span), hop.bounds[1], span))
        joins: list[syntax.Join] = []
        whens: list[list[tuple[syntax.Expr, syntax.Expr]]] = [[] for _ in width]
        for edge, direction in run:
            for forward in {"both": (True, False), "right": (True,), "left": (False,)}[direction]:
                number = syntax.Number(str(len(joins) + 1), span)
                alias = f"e{number.text}"
                here = syntax.Binary("=", way, number, span)
                places = [held(e, alias, span) for e in (edge.source, edge.destination)]
                start, end = places if forward != backward else places[::-1]
                own = Variable(hop.name, "edge", (edge,), alias, {}, None, span)
                on: list[syntax.Expr] = [syntax.Binary("=", start[k], n, span) for k, n in zip(key, old, strict=True)]
                on += [here, *last, *self._there(edge, alias, span)]
                on += [self.work.put(c, {hop.name: own}) for c in self.work.own_conditions(hop.name, hop.node)]
                table = syntax.TableName(named(edge.table, span), named(alias, span), span)
                joins.append(syntax.Join("left", table, both(on, span), (), span))
                for i, k in enumerate(key):
                    whens[i].append((here, end[k]))
        new = [syntax.Case(None, tuple(whens[i]), old[i], span) for i in width]
        start_items = [column_of("r", f"s{i}", span) for i in width]
        stays = syntax.Binary("=", way, syntax.Number("0", span), span)
        far = syntax.Case(None, ((stays, column_of("r", "d", span)),), syntax.Number(str(level), span), span)
        least = syntax.Function(named("min", span), (far,), False, False, (), None, None, span)
        items = [item_of(e, f"s{i}") for i, e in enumerate(start_items)]
        items += [item_of(e, f"n{i}") for i, e in enumerate(new)]
        items.append(item_of(least, "d"))
        ways = _numbers(len(joins) + 1, span)
        first = syntax.Derived(syntax.Query(before, (), None, None, span), named("r", span), span)
        source = syntax.From(first, (syntax.Join("cross", ways, None, (), span), *joins), span)
        there = both([syntax.IsNull(n, True, span) for n in new], span)
        return syntax.Select(False, tuple(items), source, there, (*start_items, *new), None, span)

    # ------------------------------------------------------------ what comes out

    def length(self, hops: Iterable[Hop]) -> syntax.Expr:
        """How many edges a path has."""
        made: syntax.Expr | None = None
        for hop in hops:
            one = self.lengths[hop.name]
            if made is None:
                made = one
            elif isinstance(made, syntax.Number) and isinstance(one, syntax.Number):
                made = syntax.Number(str(int(made.text) + int(one.text)), one.span)
            else:
                made = syntax.Binary("+", made, one, hop.node.span)
        return made or syntax.Number("0", self.patterns.tasks[0].span)  # type: ignore[union-attr]

    def knows(self, condition: syntax.Expr) -> bool:
        """True if a condition speaks only of what is read here, and each property is there."""
        if any(isinstance(n, syntax.Query) for n in below(condition)):
            return False
        for node in below(condition):
            if isinstance(node, syntax.ColumnName):
                fits = spelled((node.table or node.name).text, self.scope)
                variable = self.scope[fits[0]] if len(fits) == 1 else None
                if variable is None or node.table is None or variable.kind not in ("node", "edge"):
                    return False
                if not spelled(node.name.text, dict(variable.choices[0].properties)):
                    return False
        return True

    def select(self, items: list[syntax.Item], conditions: list[syntax.Expr], span: Span) -> syntax.Select:
        """This branch as a query of its own."""
        joins: list[syntax.Join] = []
        where = [self.work.put(c, self.scope) for c in conditions] + self.conditions
        where = [*self.parts[0].conditions, *where]
        for part in self.parts[1:]:
            on = both(part.conditions, span)
            joins.append(syntax.Join("cross" if on is None else "inner", part.table, on, (), part.table.span))
        source = syntax.From(self.parts[0].table, tuple(joins), span)
        return syntax.Select(False, tuple(items), source, both(where, span), (), None, span)


def _numbers(count: int, span: Span) -> syntax.Derived:
    """The numbers from 0, so many, as the rows of `w`."""
    bodies: list[Any] = []
    for number in range(count):
        item = item_of(syntax.Number(str(number), span), "w")
        bodies.append(syntax.Select(False, (item,), None, None, (), None, span))
    union = bodies[0]
    for body in bodies[1:]:
        union = syntax.SetOperation("union", True, union, body, span)
    return syntax.Derived(syntax.Query(union, (), None, None, span), named("w", span), span)


def hop_choices(run: tuple[tuple[EdgeTable, str], ...]) -> tuple[EdgeTable, ...]:
    return tuple(dict.fromkeys(edge for edge, _ in run))
