"""Syntax tree to text: the formatter.

Takes any node of a syntax tree; gives text that parses to an equal tree. Comments are kept, near where they stood:
they come out where a line may break. What fits on a line of 100 characters stands on one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from com.compiler import syntax
from com.compiler.slips import RESERVED
from com.node import Node

WIDTH = 100

# A layout is a text, a break, a list of layouts, or one of: ("group", layout) flat if it fits; ("nest", layout) two
# further in; ("maybe", layout) a break if the layout that follows does not fit; ("comment", text, on its own line).
Doc = Any
LINE, SOFT, HARD = _BREAKS = ("\0line", "\0soft", "\0hard")

_PLAIN = re.compile(r"[^\W\d]\w*")
_LEVELS = {
    "or": (1, 1, 2), "and": (2, 2, 3), "=": (5, 6, 6), "<>": (5, 6, 6), "<": (5, 6, 6), "<=": (5, 6, 6), ">": (5, 6, 6),
    ">=": (5, 6, 6), "||": (7, 7, 8), "+": (8, 8, 9), "-": (8, 8, 9), "*": (9, 9, 10), "/": (9, 9, 10), "%": (9, 9, 10),
    "div": (9, 9, 10),
}  # fmt: skip
"""How tight an operator binds, and what its left and right side must at least."""


def show(tree: Node) -> str:
    """A syntax tree as text: a program or schema with its line end, any other node without."""
    shower = _Shower(getattr(tree, "comments", ()))
    return _render(shower.doc(tree))


class _Shower:
    """Makes the layout of one tree. `comments` are those not yet placed."""

    def __init__(self, comments: Iterable[syntax.Comment]) -> None:
        self.comments = sorted(comments, key=lambda comment: comment.span.start, reverse=True)

    def gap(self, offset: int) -> list[Doc]:
        """The comments that stand before an offset, and were not placed yet."""
        docs: list[Doc] = []
        while self.comments and self.comments[-1].span.start < offset:
            comment = self.comments.pop()
            docs.append(("comment", comment.text, comment.own_line))
        return docs

    def doc(self, node: Any) -> Doc:
        match node:
            case syntax.Program():
                return self.program(node)
            case syntax.SchemaFile():
                return self.file(node.items, [])
            case syntax.Header() | syntax.CreateTable() | syntax.CreateIndex() | syntax.CreateGraph():
                return self.statement(node)
            case (
                syntax.Step()
                | syntax.ForEach()
                | syntax.If()
                | syntax.Assert()
                | syntax.ReturnRows()
                | syntax.ReturnQuery()
                | syntax.ReturnValues()
                | syntax.Answer()
            ):
                return self.statement(node)
            case syntax.Query() | syntax.Insert() | syntax.Update() | syntax.Delete() | syntax.Call() | syntax.Graph():
                return ("group", self.operation(node))
            case syntax.Select() | syntax.SetOperation():
                return ("group", self.body(node))
            case syntax.Item() | syntax.Star():
                return self.output(node)
            case syntax.TypeName() | syntax.ListType() | syntax.Shape():
                return _type(node)
            case syntax.Name():
                return _word(node)
            case syntax.Template():
                return _template(node)
            case syntax.Values():
                return ("group", self.rows(node))
            case syntax.TableName() | syntax.TablePlaceholder() | syntax.Derived():
                return self.table(node)
            case syntax.OrderKey():
                return self.order_key(node)
            case syntax.Comment():
                return node.text
        return ("group", [self.expr(node)])

    # ------------------------------------------------------------ statements

    def program(self, node: syntax.Program) -> Doc:
        return self.file((*((node.header,) if node.header else ()), *node.body), [])

    def file(self, items: Sequence[Any], docs: list[Doc]) -> Doc:
        previous: Any = None
        for item in items:
            trailing, own = _behind(self.gap(_begin(item)), previous is not None)
            docs += trailing
            apart = previous is not None and (bool(own) or _apart(previous, item))
            if previous is not None:
                docs.append(HARD)
            if apart:
                docs.append(HARD)
            if own:
                docs += [*_lines(own), HARD]
                if _titled(item):
                    docs.append(HARD)
            docs.append(self.statement(item))
            previous = item
        trailing, own = _behind(self.gap(1 << 62), previous is not None)
        docs += trailing
        if own:
            docs += [*([HARD, HARD] if previous is not None else []), *_lines(own)]
        return [*docs, HARD] if docs else []

    def block(self, items: Sequence[Any], end: int) -> Doc:
        docs: list[Doc] = []
        for item in items:
            trailing, own = _behind(self.gap(_begin(item)))
            docs += [*trailing, HARD]
            if own:
                docs += [*_lines(own), HARD]
                if _titled(item):
                    docs.append(HARD)
            docs.append(self.statement(item))
        trailing, own = _behind(self.gap(end))
        docs += trailing
        if own:
            docs += [HARD, *_lines(own)]
        return ["{", ("nest", docs), HARD, "}"]

    def statement(self, node: Any) -> Doc:
        title = [part for line in getattr(node, "title", ()) for part in (f"-- {line}".rstrip(), HARD)]
        return [*title, ("group", self.plain(node))]

    def plain(self, node: Any) -> list[Doc]:
        """A statement without its title."""
        match node:
            case syntax.Header():
                if not node.parameters:
                    return [f"program {_label(node.name)};"]
                inner = self.listed(node.parameters, self.parameter)
                return [f"program {_label(node.name)}(", ("nest", [SOFT, *inner]), SOFT, ");"]
            case syntax.Step():
                shape = f" -> {_type(node.shape)}" if node.shape else ""
                gap = self.gap(node.operation.span.start)
                operation = self.operation(node.operation)
                return [f"step {_label(node.name)}{shape}:", ("nest", [*gap, LINE, *operation, ";"])]
            case syntax.ForEach():
                head = f"for each {_label(node.variable)} in {_place(node.over)} "
                return [head, self.block(node.body, node.span.end)]
            case syntax.If():
                return self.if_(node)
            case syntax.Assert():
                condition = self.expr(node.condition)
                gap = self.gap(node.message.span.start)
                return [
                    "assert ",
                    ("nest", [("group", [condition]), *gap, LINE, "else ", _template(node.message), ";"]),
                ]
            case syntax.ReturnRows():
                return [f"return {_place(node.place)};"]
            case syntax.ReturnQuery():
                return ["return ", ("nest", [*self.operation(node.query), ";"])]
            case syntax.ReturnValues():
                return ["return ", ("nest", [*self.listed(node.items, self.output), ";"])]
            case syntax.Answer():
                return [f"answer {_template(node.text)};"]
            case syntax.CreateTable():
                inner = self.listed(node.items, self.table_item)
                return [f"create table {_name(node.name)} (", ("nest", [SOFT, *inner]), SOFT, ");"]
            case syntax.CreateIndex():
                unique = "unique " if node.unique else ""
                head = f"create {unique}index {_name(node.name)} on {_name(node.table)} "
                return [head, _names(node.columns), ";"]
            case syntax.CreateGraph():
                docs: list[Doc] = [self.element_tables("vertex", node.vertices, "")]
                if node.edges:
                    docs += [*self.gap(node.edges[0].span.start), LINE, self.element_tables("edge", node.edges, ";")]
                else:
                    docs.append(";")
                return [f"create property graph {_name(node.name)}", ("nest", [LINE, *docs])]
        raise AssertionError(node)

    def if_(self, node: syntax.If) -> list[Doc]:
        docs: list[Doc] = ["if ", ("group", [("nest", [self.expr(node.condition)])]), " "]
        otherwise = node.otherwise
        docs.append(self.block(node.then, _begin(otherwise[0]) if otherwise else node.span.end))
        if not otherwise:
            return docs
        if len(otherwise) == 1 and isinstance(otherwise[0], syntax.If) and not otherwise[0].title:
            return [*docs, " else ", *self.if_(otherwise[0])]
        return [*docs, " else ", self.block(otherwise, node.span.end)]

    def parameter(self, node: syntax.Parameter) -> Doc:
        docs: list[Doc] = [f"{_label(node.name)} {_type(node.type)}"]
        return [*docs, " = ", self.expr(node.default)] if node.default is not None else docs

    def listed(self, nodes: Sequence[Any], shown: Any, separator: str = ",") -> list[Doc]:
        """Nodes with commas between, each on its own line if they do not all fit on one."""
        docs: list[Doc] = []
        for index, node in enumerate(nodes):
            if index:
                docs += [separator, *self.gap(node.span.start), LINE]
            docs.append(("group", [shown(node)]))
        return docs

    # ------------------------------------------------------------ schemas

    def table_item(self, node: Any) -> Doc:
        match node:
            case syntax.KeyDef():
                return ["primary key " if node.primary else "unique ", _names(node.columns)]
            case syntax.ForeignKeyDef():
                return ["foreign key ", _names(node.columns), " ", _reference(node.reference)]
            case syntax.CheckDef():
                return ["check (", self.expr(node.condition), ")"]
        docs: list[Doc] = [f"{_word(node.name)} {_type(node.type)}"]
        if node.primary_key:
            docs.append(" primary key")
        if node.generated:
            docs.append(" generated always as identity")
        if node.not_null:
            docs.append(" not null")
        if node.unique:
            docs.append(" unique")
        if node.default is not None:
            docs += [" default ", self.expr(node.default, 7)]
        for check in node.checks:
            docs += [" check (", self.expr(check), ")"]
        for reference in node.references:
            docs += [" ", _reference(reference)]
        return docs

    def element_tables(self, word: str, nodes: Sequence[Any], end: str) -> Doc:
        inner = self.listed(nodes, self.element)
        return ("group", [f"{word} tables (", ("nest", [SOFT, *inner]), SOFT, f"){end}"])

    def element(self, node: Any) -> Doc:
        docs: list[Doc] = [_name(node.table)]
        if node.key:
            docs += [" key ", _names(node.key)]
        if isinstance(node, syntax.EdgeDef):
            docs += [LINE, "source ", self.end(node.source), LINE, "destination ", self.end(node.destination)]
        options: list[Doc] = [f"label {_word(label)}" for label in node.labels]
        if node.properties is not None:
            shown = [_name(p.column) + _alias(p.name) for p in node.properties]
            options.append(["properties ", _parenthesised(_filled(shown))] if shown else "no properties")
        return [docs[0], ("nest", [*docs[1:], *[part for option in options for part in (LINE, option)]])]

    def end(self, node: syntax.EndDef) -> Doc:
        docs: list[Doc] = ["key ", _names(node.columns), " "] if node.columns else []
        docs.append(f"references {_name(node.table)}")
        return [*docs, " ", _names(node.target)] if node.target else docs

    # ------------------------------------------------------------ operations

    def operation(self, node: Any) -> list[Doc]:
        match node:
            case syntax.Query():
                return self.query(node)
            case syntax.Insert():
                return self.insert(node)
            case syntax.Update():
                shown = ["set ", self.assignments(node.assignments)]
                docs = ["update ", self.named(node.table, node.alias), ("maybe", shown), shown]
                docs += self.source(node.source)
                docs += self.clause("where", node.where)
                return docs + self.returning(node.returning)
            case syntax.Delete():
                docs = ["delete from ", self.named(node.table, node.alias), *self.clause("where", node.where)]
                return docs + self.returning(node.returning)
            case syntax.Call():
                inner = self.listed(node.arguments, self.argument)
                return [f"call {_name(node.name)}", _parenthesised(inner)]
            case syntax.Graph():
                return self.graph(node)
        raise AssertionError(node)

    # ------------------------------------------------------------ graph operations

    def graph(self, node: syntax.Graph) -> list[Doc]:
        docs: list[Doc] = []
        for clause in (*node.clauses, *((node.returned,) if node.returned else ())):
            if docs:
                docs += [*self.gap(clause.span.start), LINE]
            docs += self.graph_clause(clause)
        return docs

    def graph_clause(self, node: Any) -> list[Doc]:
        match node:
            case syntax.Unwind():
                return [f"unwind {_place(node.place)} as {_label(node.variable)}"]
            case syntax.Match():
                word = "optional match " if node.optional else "match "
                return [word, self.patterns(node.patterns), *self.clause("where", node.where)]
            case syntax.Create():
                return ["create ", self.patterns(node.patterns)]
            case syntax.Merge():
                docs: list[Doc] = ["merge ", ("nest", [("group", self.pattern(node.pattern))])]
                for action in node.actions:
                    docs += [*self.gap(action.span.start), LINE]
                    docs += [f"on {action.kind} set ", self.assignments(action.assignments)]
                return docs
            case syntax.SetClause():
                return ["set ", self.assignments(node.assignments)]
            case syntax.Detach():
                word = "detach delete " if node.detach else "delete "
                return [word, *_filled([_name(name) for name in node.variables])]
            case syntax.GraphReturn():
                word = "return distinct " if node.distinct else "return "
                outputs = ("nest", [("group", self.listed(node.items, self.output))])
                return [word, outputs, *self.tail(node)]
        raise AssertionError(node)

    def patterns(self, nodes: Sequence[syntax.Pattern]) -> Doc:
        return ("nest", [("group", self.listed(nodes, self.pattern))])

    def pattern(self, node: syntax.Pattern) -> list[Doc]:
        docs: list[Doc] = [f"{_name(node.variable)} = "] if node.variable is not None else []
        if node.shortest:
            docs.append("any shortest ")
        return [*docs, *[self.pattern_element(element) for element in node.elements]]

    def pattern_element(self, node: Any) -> Doc:
        hops = self.hops(node.hops) if isinstance(node, syntax.EdgePattern) and node.hops is not None else []
        parts: list[Doc] = []
        labels = "|".join(_word(label) for label in node.labels)
        head = (_name(node.variable) if node.variable is not None else "") + (f":{labels}" if labels else "")
        if head or hops:
            parts.append([head, *hops])
        if node.properties:
            shown = [[f"{_word(p.name)}: ", self.expr(p.value)] for p in node.properties]
            parts.append(["{", *_filled([("group", doc) for doc in shown]), "}"])
        if node.where is not None:
            parts.append(["where ", ("group", [self.expr(node.where)])])
        inner = [doc for index, part in enumerate(parts) for doc in ([" ", part] if index else [part])]
        if isinstance(node, syntax.NodePattern):
            return ["(", ("nest", inner), ")"]
        left = "<-" if node.direction == "left" else "-"
        right = "->" if node.direction == "right" else "-"
        return [left, "[", ("nest", inner), "]", right] if inner else left + right

    def hops(self, node: syntax.Hops) -> list[Doc]:
        low = self.expr(node.low) if node.low is not None else ""
        if node.low is not None and node.low == node.high:
            return ["*", low]
        return ["*", low, *([".."] if node.low is not None or node.high is not None else []),
                self.expr(node.high) if node.high is not None else ""]  # fmt: skip

    def argument(self, node: syntax.Argument) -> Doc:
        return [f"{_name(node.name)} => ", self.expr(node.value)] if node.name else self.expr(node.value)

    def query(self, node: syntax.Query) -> list[Doc]:
        return self.body(node.body) + self.tail(node)

    def tail(self, node: syntax.Query | syntax.GraphReturn) -> list[Doc]:
        """What orders and cuts a result."""
        docs: list[Doc] = []
        if node.order:
            docs += self.gap(node.order[0].span.start)
            docs += [LINE, "order by ", ("nest", [("group", self.listed(node.order, self.order_key))])]
        for word, count in (("limit", node.limit), ("offset", node.offset)):
            if count is not None:
                docs += self.gap(count.span.start)
                shown = [f"{word} ", ("group", [self.expr(count, 7)])]
                docs += [
                    ("maybe", shown) if node.order or (word == "offset" and node.limit is not None) else LINE,
                    shown,
                ]
        return docs

    def body(self, node: Any) -> list[Doc]:
        match node:
            case syntax.Select():
                return self.select(node)
            case syntax.SetOperation():
                union = node.op != "intersect"
                left = node.left
                right = node.right
                plain_left = isinstance(left, syntax.Select | syntax.SetOperation) and (
                    union or not isinstance(left, syntax.SetOperation) or left.op == "intersect"
                )
                plain_right = isinstance(right, syntax.Select) or (
                    isinstance(right, syntax.SetOperation) and union and right.op == "intersect"
                )
                docs = self.body(left) if plain_left else [self.inside(left)]
                docs += [*self.gap(right.span.start), LINE, node.op + (" all" if node.all else ""), LINE]
                return docs + (self.body(right) if plain_right else [self.inside(right)])
        return [self.inside(node)]

    def inside(self, node: Any) -> Doc:
        """A query in parentheses."""
        inner = self.query(node) if isinstance(node, syntax.Query) else self.body(node)
        return _parenthesised(inner)

    def select(self, node: syntax.Select) -> list[Doc]:
        outputs = ("nest", [("group", self.listed(node.items, self.output))])
        docs: list[Doc] = ["select distinct " if node.distinct else "select ", outputs, *self.source(node.source)]
        docs += self.clause("where", node.where)
        if node.group:
            docs += self.gap(node.group[0].span.start)
            docs += [LINE, "group by ", ("nest", [("group", self.listed(node.group, self.expr))])]
        return docs + self.clause("having", node.having)

    def clause(self, word: str, expr: Any) -> list[Doc]:
        if expr is None:
            return []
        gap = self.gap(expr.span.start)
        return [*gap, LINE, word + " ", ("group", [self.expr(expr)])]

    def source(self, node: syntax.From | None) -> list[Doc]:
        if node is None:
            return []
        docs: list[Doc] = [self.table(node.first)]
        for join in node.joins:
            docs += [*self.gap(join.span.start), LINE, self.join(join)]
        gap = self.gap(node.first.span.start)
        return [*gap, LINE, "from ", ("nest", [("group", docs)])]

    def join(self, node: syntax.Join) -> Doc:
        docs: list[Doc] = ["" if node.kind == "inner" else node.kind + " ", "join ", self.table(node.right)]
        if node.on is not None:
            docs += [" on ", ("nest", [("group", [self.expr(node.on)])])]
        elif node.using:
            docs += [" using ", _names(node.using)]
        return docs

    def table(self, node: Any) -> Doc:
        match node:
            case syntax.TableName():
                return self.named(node.name, node.alias)
            case syntax.TablePlaceholder():
                return _place(node.place) + _alias(node.alias)
        return [self.inside(node.query), _alias(node.alias)]

    def named(self, name: syntax.Name, alias: syntax.Name | None) -> str:
        return _name(name) + _alias(alias)

    def output(self, node: Any) -> Doc:
        if isinstance(node, syntax.Star):
            return "*" if node.table is None else f"{_name(node.table)}.*"
        return [self.expr(node.expr), _alias(node.alias)]

    def order_key(self, node: syntax.OrderKey) -> Doc:
        nulls = "" if node.nulls_first is None else " nulls first" if node.nulls_first else " nulls last"
        return [self.expr(node.expr), (" desc" if node.descending else "") + nulls]

    def insert(self, node: syntax.Insert) -> list[Doc]:
        docs: list[Doc] = [f"insert into {_name(node.table)} ", _names(node.columns), *self.gap(node.source.span.start)]
        docs.append(LINE)
        docs += self.rows(node.source) if isinstance(node.source, syntax.Values) else self.query(node.source)
        if node.conflict is not None:
            docs += [*self.gap(node.conflict.span.start), LINE, "on conflict ", _names(node.conflict.columns)]
            if node.conflict.assignments:
                shown = ["do update set ", self.assignments(node.conflict.assignments)]
                docs += [("maybe", shown), shown]
            else:
                docs.append(" do nothing")
        return docs + self.returning(node.returning, after_conflict=node.conflict is not None)

    def rows(self, node: syntax.Values) -> list[Doc]:
        docs: list[Doc] = []
        for index, row in enumerate(node.rows):
            if index:
                docs += [",", *(self.gap(row[0].span.start) if row else []), LINE]
            docs.append(_parenthesised(self.filled([self.expr(value) for value in row])))
        return ["values ", ("nest", [("group", docs)])]

    def filled(self, docs: Sequence[Doc]) -> list[Doc]:
        return _filled([("group", [doc]) for doc in docs])

    def assignments(self, nodes: Sequence[syntax.Assignment]) -> Doc:
        return ("nest", [("group", self.listed(nodes, self.assignment))])

    def assignment(self, node: syntax.Assignment) -> Doc:
        written = f"{_name(node.table)}.{_word(node.column)}" if node.table else _name(node.column)
        return [f"{written} = ", self.expr(node.value)]

    def returning(self, nodes: Sequence[Any], after_conflict: bool = False) -> list[Doc]:
        if not nodes:
            return []
        gap = self.gap(nodes[0].span.start)
        shown = ["returning ", ("nest", [("group", self.listed(nodes, self.output))])]
        return [*gap, ("maybe", shown) if after_conflict else LINE, shown]

    # ------------------------------------------------------------ expressions

    def expr(self, node: Any, least: int = 0) -> Doc:
        """An expression, in parentheses if it binds looser than the level."""
        level, docs = self.bare(node)
        return docs if level >= least else ["(", ("nest", [("group", docs)]), ")"]

    def bare(self, node: Any) -> tuple[int, list[Doc]]:
        """How tight an expression binds, and its layout."""
        match node:
            case syntax.Binary():
                return self.binary(node)
            case syntax.Unary(op="not"):
                return 3, ["not ", self.expr(node.operand, 3)]
            case syntax.Unary():
                return 10, ["-", self.expr(node.operand, 11)]
            case syntax.IsNull():
                return 4, [self.expr(node.operand, 4), " is not null" if node.negated else " is null"]
            case syntax.IsDistinct():
                words = " is not distinct from " if node.negated else " is distinct from "
                return 4, [self.expr(node.left, 4), words, self.expr(node.right, 5)]
            case syntax.Between():
                docs = [self.expr(node.operand, 7), _not(node), "between ", self.expr(node.low, 7)]
                return 6, [*docs, " and ", self.expr(node.high, 7)]
            case syntax.Like():
                word = "ilike " if node.fold_case else "like "
                return 6, [self.expr(node.operand, 7), _not(node), word, self.expr(node.pattern, 7)]
            case syntax.InList():
                operand = self.expr(node.operand, 7)
                return 6, [operand, _not(node), "in ", _parenthesised(self.filled([self.expr(i) for i in node.items]))]
            case syntax.InPlaceholder():
                return 6, [self.expr(node.operand, 7), _not(node), "in ", _place(node.place)]
            case syntax.InQuery():
                return 6, [self.expr(node.operand, 7), _not(node), "in ", self.inside(node.query)]
            case syntax.Cast(colons=True):
                return 11, [self.expr(node.operand, 11), f"::{_type(node.type)}"]
        return 12, [self.atom(node)]

    def binary(self, node: syntax.Binary) -> tuple[int, list[Doc]]:
        """An operator with its sides; a chain of one level breaks before each of its operators, or before none."""
        level, least_left, least_right = _LEVELS[node.op]
        chained = isinstance(node.left, syntax.Binary) and _LEVELS[node.left.op][0] == level >= least_left
        left = self.bare(node.left)[1] if chained else [("group", [self.expr(node.left, least_left)])]
        gap = self.gap(node.right.span.start) if level < 3 else []
        right = ("group", [self.expr(node.right, least_right)])
        return level, [*left, *gap, ("nest", [LINE, f"{node.op} ", right])]

    def atom(self, node: Any) -> Doc:
        match node:
            case syntax.Number():
                return node.text
            case syntax.String():
                return _string(node.value)
            case syntax.Truth():
                return "true" if node.value else "false"
            case syntax.Null():
                return "null"
            case syntax.Moment():
                return f"{node.kind} {_string(node.value)}"
            case syntax.Interval():
                return f"interval {_string(node.value)}"
            case syntax.ColumnName(table=None):
                return _quote(node.name.text) if node.name.quoted else _name(node.name)
            case syntax.ColumnName(table=syntax.Name() as table, name=name):
                return f"{_name(table)}.{_word(name)}"
            case syntax.Placeholder():
                return _place(node)
            case syntax.Exists():
                return ["exists ", self.inside(node.query)]
            case syntax.ExistsPlaceholder():
                return f"exists {_place(node.place)}"
            case syntax.ScalarQuery():
                return self.inside(node.query)
            case syntax.Cast():
                return ["cast(", self.expr(node.operand), f" as {_type(node.type)})"]
            case syntax.Case():
                return self.case(node)
            case syntax.Function():
                return self.function(node)
        raise AssertionError(node)

    def case(self, node: syntax.Case) -> Doc:
        docs: list[Doc] = ["case", *([" ", self.expr(node.operand)] if node.operand is not None else [])]
        inner: list[Doc] = []
        for condition, result in node.whens:
            gap = self.gap(condition.span.start)
            inner += [*gap, LINE, "when ", ("group", [self.expr(condition)]), " then ", ("group", [self.expr(result)])]
        if node.otherwise is not None:
            inner += [*self.gap(node.otherwise.span.start), LINE, "else ", ("group", [self.expr(node.otherwise)])]
        return ("group", [*docs, ("nest", inner), LINE, "end"])

    def function(self, node: syntax.Function) -> Doc:
        name = node.name.text
        if name.lower() == "extract" and not node.name.quoted and len(node.args) == 2:
            field = node.args[0]
            assert isinstance(field, syntax.ColumnName)
            return [f"extract({_word(field.name)} from ", self.expr(node.args[1]), ")"]
        written = name.lower() if name.lower() in ("left", "right") else _name(node.name)
        inner: list[Doc] = (
            ["*"] if node.star else self.filled([self.expr(arg) for arg in node.args]) if node.args else []
        )
        if node.distinct:
            inner.insert(0, "distinct ")
        if node.order:
            inner += [LINE, "order by ", *self.filled([self.order_key(key) for key in node.order])]
        docs: list[Doc] = [written, _parenthesised(inner) if inner else "()"]
        if node.where is not None:
            docs += [" filter ", _parenthesised(["where ", self.expr(node.where)])]
        if node.over is not None:
            docs += [" over ", self.over(node.over)]
        return docs

    def over(self, node: syntax.Over) -> Doc:
        parts: list[Doc] = []
        if node.partition:
            parts.append(["partition by ", *self.filled([self.expr(expr) for expr in node.partition])])
        if node.order:
            parts.append(["order by ", *self.filled([self.order_key(key) for key in node.order])])
        if node.frame is not None:
            start = self.bound(node.frame.start)
            if node.frame.end is None:
                parts.append([f"{node.frame.unit} ", start])
            else:
                parts.append([f"{node.frame.unit} between ", start, " and ", self.bound(node.frame.end)])
        inner = [doc for index, part in enumerate(parts) for doc in ([LINE, part] if index else [part])]
        return _parenthesised(inner) if inner else "()"

    def bound(self, node: syntax.Bound) -> Doc:
        return node.kind if node.offset is None else [self.expr(node.offset, 7), f" {node.kind}"]


# ---------------------------------------------------------------- words


def _quote(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _word(name: syntax.Name) -> str:
    """A name where nothing but a name can stand."""
    return name.text if _PLAIN.fullmatch(name.text) else _quote(name.text)


_label = _word


def _name(name: syntax.Name) -> str:
    """A name where a word of the language could stand too."""
    word = name.text.lower()
    plain = _PLAIN.fullmatch(word) and word not in RESERVED and word not in ("unbounded", "current")
    return name.text if plain else _quote(name.text)


def _names(names: Sequence[syntax.Name]) -> Doc:
    return _parenthesised(_filled([_name(name) for name in names]))


def _filled(docs: Sequence[Doc]) -> list[Doc]:
    """Layouts with commas between, broken only where a line is full."""
    return [part for index, doc in enumerate(docs) for part in ([",", ("maybe", doc), doc] if index else [doc])]


def _alias(name: syntax.Name | None) -> str:
    return f" as {_word(name)}" if name else ""


def _place(place: syntax.Placeholder) -> str:
    return f"${place.name}.{_word(place.column)}" if place.column else f"${place.name}"


def _string(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _not(node: Any) -> str:
    return " not " if node.negated else " "


def _reference(node: syntax.Reference) -> Doc:
    docs: list[Doc] = [f"references {_name(node.table)}"]
    return [*docs, " ", _names(node.columns)] if node.columns else docs


def _type(node: Any) -> str:
    match node:
        case syntax.TypeName():
            return f"{node.name}({','.join(map(str, node.numbers))})" if node.numbers else node.name
        case syntax.ListType():
            return f"{_type(node.element)}[]"
    fields = ", ".join(f"{_word(field.name)} {_type(field.type)}" for field in node.fields)
    return f"{node.card} {{{fields}}}" if fields else str(node.card)


def _template(node: syntax.Template) -> str:
    """A text with expressions in braces; in double quotes if that saves doubling a quote."""
    shower = _Shower(())
    shown: list[str] = [
        part if isinstance(part, str) else _render(("group", [shower.expr(part)]), 1 << 30) for part in node.parts
    ]
    said = [part if isinstance(part, str) else "" for part in node.parts]
    texts = "".join(said)
    inside = "".join(text for text, part in zip(shown, node.parts, strict=True) if not isinstance(part, str))
    quote = '"' if "'" in texts and not set('"\n') & set(texts + inside) else "'"
    written = "".join(
        text.replace("{", "{{").replace("}", "}}").replace(quote, quote * 2) if isinstance(part, str) else f"{{{text}}}"
        for text, part in zip(shown, node.parts, strict=True)
    )
    return quote + written + quote


# ---------------------------------------------------------------- layout


def _begin(node: Any) -> int:
    return int(node.span.start)


def _titled(node: Any) -> bool:
    """True if a comment directly above would be its title."""
    return hasattr(node, "title")


def _apart(previous: Any, node: Any) -> bool:
    """True if a blank line stands between two statements at the top of a file."""
    if getattr(node, "title", ()) or isinstance(previous, syntax.Header):
        return True
    if isinstance(node, syntax.CreateTable | syntax.CreateIndex):
        return isinstance(previous, syntax.CreateGraph)
    if isinstance(node, syntax.CreateGraph):
        return True
    outcome = syntax.ReturnRows | syntax.ReturnQuery | syntax.ReturnValues | syntax.Answer
    if isinstance(previous, outcome):
        return not isinstance(node, outcome | syntax.If)
    return isinstance(previous, syntax.ForEach | syntax.If) or isinstance(node, outcome | syntax.ForEach | syntax.If)


def _behind(docs: list[Doc], something: bool = True) -> tuple[list[Doc], list[Doc]]:
    """The comment that stands behind something on its line, and those after it."""
    count = 1 if something and docs and not docs[0][2] else 0
    return docs[:count], docs[count:]


def _lines(docs: Sequence[Doc]) -> list[Doc]:
    """Comments, each on its line."""
    lines: list[Doc] = []
    for index, (_, text, _) in enumerate(docs):
        lines += [*([HARD] if index else []), text]
    return lines


def _parenthesised(inner: list[Doc]) -> Doc:
    return ("group", ["(", ("nest", [SOFT, *inner]), SOFT, ")"]) if inner else "()"


def _fits(room: int, doc: Doc, rest: list[tuple[int, bool, Doc]]) -> bool:
    """True if a layout fits flat, with what follows on its line."""
    stack: list[tuple[bool, Doc]] = [(True, doc)]
    following = len(rest)
    while room >= 0:
        if not stack:
            if not following:
                return True
            following -= 1
            _, flat, item = rest[following]
            stack.append((flat, item))
            continue
        flat, item = stack.pop()
        if isinstance(item, str) and item in _BREAKS:
            if item == HARD or not flat:
                return not flat
            room -= item == LINE
        elif isinstance(item, str):
            end = item.find("\n")
            if end >= 0:
                return room >= end
            room -= len(item)
        elif isinstance(item, list):
            stack += [(flat, part) for part in reversed(item)]
        elif item[0] == "comment":
            return not flat
        elif item[0] == "maybe":
            if not flat:
                return True
            room -= 1
        else:
            stack.append((flat, item[1]))
    return False


def _render(doc: Doc, width: int = WIDTH) -> str:
    """A layout as text."""
    out: list[str] = []
    column = 0
    fresh = True  # nothing stands on the line yet
    pending = False  # a comment ends the line
    stack: list[tuple[int, bool, Doc]] = [(0, False, doc)]
    while stack:
        indent, flat, item = stack.pop()
        if isinstance(item, list):
            stack += [(indent, flat, part) for part in reversed(item)]
            continue
        if isinstance(item, str) and item not in _BREAKS:
            if item:
                if pending:
                    out.append("\n" + " " * indent)
                    column = indent
                    item = item.lstrip(" ")
                out.append(item)
                column = len(item) - item.rfind("\n") - 1 if "\n" in item else column + len(item)
                fresh = pending = False
            continue
        kind = item if isinstance(item, str) else item[0]
        if kind == "group":
            stack.append((indent, flat or _fits(width - column, item[1], stack), item[1]))
            continue
        if kind == "nest":
            stack.append((indent + 2, flat, item[1]))
            continue
        if kind == "comment":
            if pending or (item[2] and not fresh):
                out.append("\n" + " " * indent)
            elif not fresh:
                out[-1] = out[-1].rstrip(" ")
                out.append(" ")
            out.append(item[1])
            pending = True
            continue
        if kind == "maybe":
            kind = LINE
            flat = flat or _fits(width - column - 1, [item[1], ","], [])
        if kind == HARD or not flat or (pending and kind == LINE):
            if out:
                out[-1] = out[-1].rstrip(" ")
            out.append("\n" + " " * indent)
            column, fresh, pending = indent, True, False
        elif kind == LINE:
            out.append(" ")
            column += 1
    return "".join(out)
