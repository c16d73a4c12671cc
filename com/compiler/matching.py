"""Graph operations to the SQL operations that mean the same: a match is a join of its tables.

Takes the syntax of a graph step and the graph; gives operations in SQL's syntax, which the checker then checks as it
checks all others: names, types, shapes, orders and effects are found there, and every engine can do them. Nodes and
edges keep their variables as aliases where one table is meant; where a pattern can be read in several ways (several
tables, several numbers of hops) it becomes a derived table, the union of them. What is wrong in the graph's own words
is reported here, and then there is no operation.
"""

from __future__ import annotations

from typing import Any

from com import diagnostics as messages
from com.compiler import syntax
from com.compiler.branches import Branch
from com.compiler.made import aggregates, both, column_of, conjuncts, free, item_of, said, variables_in, variables_of
from com.compiler.names import spelled
from com.compiler.patterns import MOST_HOPS, Patterns, Typing, Variable
from com.compiler.scopes import Scopes
from com.compiler.syntax import Name
from com.schema import Schema
from com.source import Span


class Matching(Scopes):
    """One graph step at work: the sources so far, and what the variables stand for."""

    def __init__(self, schema: Schema, node: syntax.Graph) -> None:
        super().__init__(schema, node)
        self.joins: list[tuple[str, syntax.TableRef, list[syntax.Expr]]] = []
        self.where: list[syntax.Expr] = []
        self.bounds: list[syntax.Between] = []

    # ------------------------------------------------------------ clauses

    def unwind(self, node: syntax.Unwind) -> None:
        alias = node.variable.text
        self.scope[alias] = Variable(alias, "row", (), alias, {}, None, node.span)
        self.joins.append(("inner", syntax.TablePlaceholder(node.place, node.variable, node.span), []))

    def match(self, node: syntax.Match) -> None:
        """Join what a match finds."""
        patterns = Patterns(self.graph, node.patterns, self.scope, self.report, self.fresh)
        typings = patterns.typings()
        conditions = self._conditions(patterns, node.where)
        if not typings:
            for name in variables_of(node):  # what is wrong is told once
                self.scope.setdefault(name.text, Variable(name.text, "lost", (), "", {}, None, name.span))
            return
        self._note_bounds(patterns)
        if node.optional:
            self.optional |= {name.text for name in variables_of(node)} - self.scope.keys()
        else:
            for condition in conditions:
                names = variables_in(condition)
                if len(names) == 1:
                    self.known.setdefault(next(iter(names)), []).append(condition)
        branch = Branch(self, patterns, typings[0], inside=False) if len(typings) == 1 else None
        if branch is not None and (not node.optional or (len(branch.parts) == 1 and not patterns.paths)):
            self._join(node, patterns, branch, conditions)
        else:
            self._join_derived(node, patterns, typings, conditions)

    def _conditions(self, patterns: Patterns, where: syntax.Expr | None) -> list[syntax.Expr]:
        """What must hold, apart from the hops' own: properties in braces, and each `where`."""
        made: list[syntax.Expr] = []
        elements: list[tuple[str, Any]] = [(s.name, p) for s in patterns.slots.values() for p in s.patterns]
        elements += [(h.name, h.node) for h in patterns.hops if h.node.hops is None and not h.shortest]
        for name, element in elements:
            made += self.own_conditions(name, element)
        return made + (list(conjuncts(where)) if where is not None else [])

    def _note_bounds(self, patterns: Patterns) -> None:
        for hop in patterns.hops:
            for place in {p.name + str(p.column): p for p in hop.bounds if p is not None}.values():
                least = hop.low if hop.bounds[0] is None else 0
                low, high = (syntax.Number(str(n), place.span) for n in (least, MOST_HOPS))
                self.bounds.append(syntax.Between(place, low, high, False, place.span))

    def _join(self, node: syntax.Match, patterns: Patterns, branch: Branch, conditions: list[syntax.Expr]) -> None:
        """Join the tables themselves."""
        self.scope.update(branch.scope)
        for name, hops in patterns.paths:
            self.scope[name.text] = Variable(name.text, "path", (), "", {}, branch.length(hops), name.span)
        more = [self.put(c, self.scope) for c in conditions] + branch.conditions
        for number, part in enumerate(branch.parts):
            on = list(part.conditions) + (more if node.optional and number == 0 else [])
            self.joins.append(("left" if node.optional else "inner", part.table, on))
        if not node.optional:
            self.where += more

    def _join_derived(
        self, node: syntax.Match, patterns: Patterns, typings: list[Typing], conditions: list[syntax.Expr]
    ) -> None:
        """Join the union of all ways of reading the patterns."""
        branches = [Branch(self, patterns, typing, inside=True) for typing in typings]
        alias = self.fresh("m")
        exports = _Exports(self, patterns, branches, alias, node.span)
        inside = [c for c in conditions if all(b.knows(c) for b in branches)]
        outside = [c for c in conditions if c not in inside]
        bodies = [b.select([exports.item(b, what) for what in exports.columns], inside, node.span) for b in branches]
        union: Any = bodies[0]
        for body in bodies[1:]:
            union = syntax.SetOperation("union", True, union, body, node.span)
        query = syntax.Query(union, (), None, None, node.span)
        self.scope.update(exports.scope)
        on = exports.links + [self.put(c, self.scope) for c in outside]
        derived = syntax.Derived(query, Name(alias, False, node.span), node.span)
        self.joins.append(("left" if node.optional else "inner", derived, on))

    # ------------------------------------------------------------ what is read

    def asserts(self) -> list[syntax.Assert]:
        """What must hold before: the numbers of hops that are given."""
        message = f"Hops are from 0 to {MOST_HOPS}."
        return [syntax.Assert(b, syntax.Template((message,), b.span), (), b.span) for b in self.bounds]

    def source(self, span: Span) -> syntax.From | None:
        """All that is joined. What must hold for the first source goes to `where`."""
        if not self.joins:
            return None
        joins: list[syntax.Join] = []
        kind, first, on = self.joins[0]
        if kind == "left":  # an optional match that nothing stands before
            one = syntax.Select(False, (syntax.Item(syntax.Number("1", span), Name("com_one", False, span), span),),
                                None, None, (), None, span)  # fmt: skip
            query = syntax.Query(one, (), None, None, span)
            first_ref: syntax.TableRef = syntax.Derived(query, Name(self.fresh("one"), False, span), span)
            joins.append(syntax.Join("left", first, both(on, span) or syntax.Truth(True, span), (), span))
        else:
            first_ref = first
            self.where += on
        for kind, ref, on in self.joins[1:]:
            condition = both(on, span)
            if condition is None and kind == "left":
                condition = syntax.Truth(True, span)
            joins.append(syntax.Join("cross" if condition is None else kind, ref, condition, (), ref.span))
        return syntax.From(first_ref, tuple(joins), span)

    def items(self, node: syntax.GraphReturn) -> tuple[syntax.Item, ...]:
        """The columns that are returned, each with its name."""
        items: list[syntax.Item] = []
        taken = {i.alias.text for i in node.items if isinstance(i, syntax.Item) and i.alias is not None}
        for item in node.items:
            if isinstance(item, syntax.Star):
                help_ = "name the properties: return a.x, b.y"
                self.report(messages.WholeElement("*", "everything", help_), item.span)
                continue
            made = self.put(item.expr, self.scope)
            name = item.alias
            if name is None:
                written = item.expr.name.text if isinstance(item.expr, syntax.ColumnName) else said(item.expr)
                name = Name(free(written, taken), True, item.expr.span)
                taken.add(name.text)
            items.append(syntax.Item(made, name, item.span))
        return tuple(items)

    def query(self, node: syntax.GraphReturn) -> syntax.Query:
        """What the step returns: grouped by what is not aggregated."""
        items = self.items(node)
        names = [i.alias.text for i in items if i.alias is not None]
        order = tuple(k.with_(expr=self._order(k.expr, names)) for k in node.order)
        group: tuple[syntax.Expr, ...] = ()
        if any(aggregates(i.expr) for i in items):
            group = tuple(i.expr for i in items if not aggregates(i.expr))
        source = self.source(node.span)
        where = both(self.where, node.span)
        body = syntax.Select(node.distinct, items, source, where, group, None, node.span)
        return syntax.Query(body, order, node.limit, node.offset, node.span)

    def _order(self, expr: syntax.Expr, names: list[str]) -> syntax.Expr:
        if isinstance(expr, syntax.ColumnName) and expr.table is None and len(spelled(expr.name.text, names)) == 1:
            return expr
        made: syntax.Expr = self.put(expr, {**self.scope, **{n: _OUTPUT for n in names if n not in self.scope}})
        return made


def read(work: Matching) -> syntax.Query | None:
    """The query that a step without writes is; None if there is something wrong."""
    node = work.node
    for clause in node.clauses:
        if isinstance(clause, syntax.Unwind):
            work.unwind(clause)
        elif isinstance(clause, syntax.Match):
            work.match(clause)
    if node.returned is None:
        help_ = "end it with return: return a.x, b.y"
        work.report(messages.BadClause("a match alone gives nothing", help_), node.clauses[-1].span)
        return None
    return work.query(node.returned)


_OUTPUT = Variable("", "row", (), "", {}, None, Span(0, 0))


class _Exports:
    """The columns that a derived table gives of its variables, in one order for all branches."""

    def __init__(self, work: Matching, patterns: Patterns, branches: list[Branch], alias: str, span: Span) -> None:
        self.work, self.patterns, self.branches, self.alias, self.span = work, patterns, branches, alias, span
        self.columns: dict[tuple[str, object], str] = {}
        self.scope: dict[str, Variable] = {}
        self.links: list[syntax.Expr] = []
        for slot in patterns.slots.values():
            if slot.written is not None:
                self._variable(slot.name, "node", slot.span, slot.bound)
        for hop in patterns.hops:
            if hop.node.variable is not None:
                kind = branches[0].scope[hop.name].kind
                self._variable(hop.name, kind, hop.node.span, None)
        for name, _ in patterns.paths:
            length = column_of(alias, self._add(name.text, "length"), span)
            self.scope[name.text] = Variable(name.text, "path", (), alias, {}, length, span)
        if not self.columns:
            self._add("", "there")

    def _add(self, name: str, what: object) -> str:
        return self.columns.setdefault((name, what), f"com_c{len(self.columns) + 1}")

    def _variable(self, name: str, kind: str, span: Span, bound: Variable | None) -> None:
        choices = tuple(dict.fromkeys(c for b in self.branches for c in b.scope[name].choices))
        if kind == "hops":
            self.scope[name] = Variable(name, kind, choices, self.alias, {}, None, span)
            return
        names: dict[object, str] = {"there": self._add(name, "there")}
        for choice in choices:
            for column in self.work.table(choice).primary_key:
                names[choice.table, column] = self._add(name, (choice.table, column))
        for prop in dict.fromkeys(p for c in choices for p, _ in c.properties):
            if bound is None and prop.casefold() in self.work.used.get(name, ()):
                names[prop] = self._add(name, prop)
        made = Variable(name, kind, choices, self.alias, names, None, span)
        if bound is None:
            self.scope[name] = made
            return
        ways = []
        for choice in choices:
            pairs = zip(self.work.keys(bound, choice), self.work.keys(made, choice), strict=True)
            way = both([syntax.Binary("=", a, b, span) for a, b in pairs], span)
            assert way is not None
            ways.append(way)
        link = ways[0]
        for way in ways[1:]:
            link = syntax.Binary("or", link, way, span)
        self.links.append(link)

    def item(self, branch: Branch, what: tuple[str, object]) -> syntax.Item:
        """A column as one branch gives it."""
        name, part = what
        span = self.span
        label = self.columns[what]
        if part == "length":
            path = next(hops for written, hops in self.patterns.paths if written.text == name)
            return item_of(branch.length(path), label)
        if part == "there":
            return item_of(syntax.Number("1", span), label)
        variable = branch.scope[name]
        choice = variable.choices[0]
        if isinstance(part, tuple):
            table, column = part
            if choice.table == table:
                return item_of(column_of(variable.alias, column, span), label)
            return item_of(self._null(table, column), label)
        column = dict(choice.properties).get(str(part))
        if column is not None:
            return item_of(column_of(variable.alias, column, span), label)
        for other in self.scope[name].choices:
            column = dict(other.properties).get(str(part))
            if column is not None:
                return item_of(self._null(other.table, column), label)
        raise AssertionError(part)

    def _null(self, table: str, column: str) -> syntax.Expr:
        found = self.work.schema.table(table)
        assert found is not None
        held = found.column(column)
        assert held is not None
        numbers = (held.type.precision, held.type.scale) if held.type.kind == "decimal" else ()
        type_ = syntax.TypeName(held.type.kind, numbers, self.span)
        return syntax.Cast(syntax.Null(self.span), type_, False, self.span)
