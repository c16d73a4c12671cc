"""Rules of the grammar to nodes of the syntax tree.

Takes the parts of one reduced rule, gives its node. A method is named as its rule (or the rule's alias) in
grammar.lark; tokens come as (type, text, start, end), what is absent as None. No method raises, whatever the parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from com import diagnostics as messages
from com.compiler import syntax
from com.compiler.syntax import Name
from com.diagnostics import Diagnostic, Edit, Fix, Message
from com.source import Source, Span

Token = tuple[str, str, int, int]

TYPES = {
    "integer": "int", "bigint": "int", "smallint": "int", "numeric": "decimal", "boolean": "bool", "real": "float",
    "double": "float", "varchar": "text", "char": "text", "character": "text", "string": "text",
    "datetime": "timestamp", "jsonb": "json", "bytea": "bytes", "blob": "bytes",
}  # fmt: skip
"""Other names of types, and what they mean."""

_REGION = re.compile(r'\{\{|\}\}|\{(?:[^{}"\']|"[^"\n]*")*\}|[{}]')


class Builder:
    """Builds the tree of one source; `found` gathers what is wrong in it."""

    def __init__(
        self, source: Source, comments: dict[int, syntax.Comment], inner: Callable[[int, int], syntax.Expr | None]
    ) -> None:
        self.source = source
        self.comments = comments
        self.inner = inner
        self.found: list[Diagnostic] = []

    def report(self, message: Message, span: Span, *edits: Edit, certain: bool = False) -> None:
        self.found.append(Diagnostic(message, span, (), Fix(edits, certain) if edits else None))

    def title(self, start: int) -> tuple[str, ...]:
        """The comment lines directly above what begins here; they are no longer among the comments."""
        text, comments = self.source.text, self.comments
        end = text.rfind("\n", 0, start)
        if end not in comments or text[end + 1 : start].strip():
            return ()
        lines: list[str] = []
        while end in comments and comments[end].own_line:
            comment = comments.pop(end)
            lines.append(comment.text[3:])
            end = text.rfind("\n", 0, comment.span.start)
        return tuple(reversed(lines))

    # ------------------------------------------------------------ programs

    def start(self, span: Span, header: syntax.Header | None, *items: Any) -> syntax.Program:
        return syntax.Program(header, _kept(items), (), span)

    def header(self, span: Span, name: Name, parameters: tuple[syntax.Parameter, ...] | None) -> syntax.Header:
        return syntax.Header(name, parameters or (), self.title(span.start), span)

    def parameter(self, span: Span, name: Name, type_: Any, default: Any) -> syntax.Parameter:
        return syntax.Parameter(name, type_, default, span)

    def list_type(self, span: Span, element: syntax.TypeName) -> syntax.ListType:
        return syntax.ListType(element, span)

    def empty(self, span: Span) -> None:
        return None

    def step(self, span: Span, name: Name, shape: syntax.Shape | None, operation: Any) -> syntax.Step:
        return syntax.Step(name, shape, operation, self.title(span.start), span)

    def shape(self, span: Span, card: str, fields: tuple[syntax.Field, ...] | None) -> syntax.Shape:
        return syntax.Shape(card, fields or (), span)

    def field(self, span: Span, name: Name, type_: syntax.TypeName) -> syntax.Field:
        return syntax.Field(name, type_, span)

    def for_each(self, span: Span, name: Name, over: syntax.Placeholder, body: Any) -> syntax.ForEach:
        return syntax.ForEach(name, over, body, self.title(span.start), span)

    def block(self, span: Span, *items: Any) -> tuple[Any, ...]:
        return _kept(items)

    def if_statement(self, span: Span, condition: Any, then: Any, otherwise: Any) -> syntax.If:
        return syntax.If(condition, then, otherwise or (), self.title(span.start), span)

    def else_if(self, span: Span, inner: syntax.If) -> tuple[syntax.If]:
        return (inner,)

    def assert_statement(self, span: Span, condition: Any, message: syntax.Template) -> syntax.Assert:
        return syntax.Assert(condition, message, self.title(span.start), span)

    def answer(self, span: Span, text: syntax.Template) -> syntax.Answer:
        return syntax.Answer(text, span)

    def return_query(self, span: Span, query: syntax.Query) -> syntax.ReturnQuery:
        return syntax.ReturnQuery(query, span)

    def return_values(self, span: Span, items: tuple[syntax.Item, ...]) -> syntax.ReturnRows | syntax.ReturnValues:
        only = items[0].expr if len(items) == 1 and items[0].alias is None else None
        if isinstance(only, syntax.Placeholder) and only.column is None:
            return syntax.ReturnRows(only, span)
        return syntax.ReturnValues(items, span)

    def call(self, span: Span, name: Name, arguments: tuple[syntax.Argument, ...] | None) -> syntax.Call:
        return syntax.Call(name, arguments or (), span)

    def argument(self, span: Span, value: Any) -> syntax.Argument:
        match value:
            case syntax.Binary(op="=", left=syntax.ColumnName(table=None, name=name), right=right):
                return syntax.Argument(name, right, span)
        return syntax.Argument(None, value, span)

    def named_argument(self, span: Span, name: Name, value: Any) -> syntax.Argument:
        return syntax.Argument(name, value, span)

    def text(self, span: Span, token: Token) -> syntax.Template:
        """A text with expressions in braces. Offsets are kept: an expression is read where it stands."""
        _, raw, start, _ = token
        quote = raw[0]
        parts: list[str | syntax.Expr] = []
        said = ""
        at = 1
        for region in _REGION.finditer(raw, 1, len(raw) - 1):
            if region.start() < at:
                continue
            said += raw[at : region.start()]
            at = region.end()
            words = region[0]
            place = Span(start + region.start(), start + region.end())
            if words in ("{{", "}}"):
                said += words[0]
            elif words == "}":
                self.report(messages.BadTemplate("a } in a text closes no {"), place, Edit(place, "}}"))
            elif words == "{":
                message, place = self._bad_region(raw, region.start(), start)
                self.report(message, place)
                at = place.end - start
            elif not words[1:-1].strip():
                self.report(messages.BadTemplate("{} holds nothing"), place)
            else:
                expr = self.inner(place.start + 1, place.end - 1)
                if expr is not None:
                    if said:
                        parts.append(said.replace(quote * 2, quote))
                    parts.append(expr)
                    said = ""
        said += raw[at:-1]
        if said:
            parts.append(said.replace(quote * 2, quote))
        return syntax.Template(tuple(parts), span)

    def _bad_region(self, raw: str, at: int, start: int) -> tuple[Message, Span]:
        end = raw.find("}", at)
        if end >= 0 and "'" in raw[at:end]:
            text = "braces in a text hold no string literals"
        else:
            text = "a { in a text is never closed"
        return messages.BadTemplate(text), Span(start + at, start + (end + 1 if end >= 0 else at + 1))

    # ------------------------------------------------------------ schemas

    def schema(self, span: Span, *items: Any) -> syntax.SchemaFile:
        return syntax.SchemaFile(_kept(items), (), span)

    def create_table(self, span: Span, name: Name, *items: Any) -> syntax.CreateTable:
        return syntax.CreateTable(name, items, self.title(span.start), span)

    def column_def(self, span: Span, name: Name, type_: syntax.TypeName, *options: Any) -> syntax.ColumnDef:
        said: dict[str, Any] = {}
        checks: list[Any] = []
        references: list[syntax.Reference] = []
        for option in options:
            if isinstance(option, syntax.Reference):
                references.append(option)
            elif option[0] == "check":
                checks.append(option[1])
            else:
                said[option[0]] = option[1]
        return syntax.ColumnDef(
            name, type_, "primary" in said, "not null" in said, "unique" in said, said.get("default"), tuple(checks),
            tuple(references), "generated" in said, span,
        )  # fmt: skip

    def is_primary(self, span: Span) -> tuple[str, Any]:
        return "primary", True

    def is_not_null(self, span: Span) -> tuple[str, Any]:
        return "not null", True

    def is_unique(self, span: Span) -> tuple[str, Any]:
        return "unique", True

    def is_generated(self, span: Span) -> tuple[str, Any]:
        return "generated", True

    def has_default(self, span: Span, value: Any) -> tuple[str, Any]:
        return "default", value

    def has_check(self, span: Span, condition: Any) -> tuple[str, Any]:
        return "check", condition

    def reference(self, span: Span, table: Name, *rest: Any) -> syntax.Reference:
        return syntax.Reference(table, rest[0] or (), span)

    def on_change(self, span: Span, changed: str, action: str) -> None:
        what = f"on {changed} {action}"
        harmless = action in ("no action", "restrict")
        help_ = (
            "leave it out: it is what happens anyway" if harmless else "leave it out, and write the change as a step"
        )
        self.report(messages.NotInLanguage(what, help_), span, Edit(span, ""), certain=harmless)

    def changed(self, span: Span, token: Token) -> str:
        return token[1].lower()

    def change_action(self, span: Span, *tokens: Token) -> str:
        return " ".join(token[1].lower() for token in tokens)

    def primary_key(self, span: Span, columns: tuple[Name, ...]) -> syntax.KeyDef:
        return syntax.KeyDef(True, columns, span)

    def unique_key(self, span: Span, columns: tuple[Name, ...]) -> syntax.KeyDef:
        return syntax.KeyDef(False, columns, span)

    def foreign_key(self, span: Span, columns: tuple[Name, ...], reference: syntax.Reference) -> syntax.ForeignKeyDef:
        return syntax.ForeignKeyDef(columns, reference, span)

    def check(self, span: Span, condition: Any) -> syntax.CheckDef:
        return syntax.CheckDef(condition, span)

    def create_index(
        self, span: Span, unique: Token | None, name: Name, table: Name, columns: tuple[Name, ...]
    ) -> syntax.CreateIndex:
        return syntax.CreateIndex(name, table, columns, unique is not None, self.title(span.start), span)

    def create_graph(self, span: Span, name: Name, vertices: Any, edges: Any) -> syntax.CreateGraph:
        return syntax.CreateGraph(name, vertices, edges or (), self.title(span.start), span)

    def vertex_tables(self, span: Span, word: str, *tables: Any) -> tuple[Any, ...]:
        return tables

    edge_tables = vertex_tables

    def vertex_word(self, span: Span, token: Token) -> str:
        return token[1].lower()

    edge_word = vertex_word

    def vertex_table(self, span: Span, table: Name, key: Any, *options: Any) -> syntax.VertexDef:
        labels, properties = self._element(options)
        return syntax.VertexDef(table, key or (), labels, properties, span)

    def edge_table(self, span: Span, table: Name, key: Any, source: Any, end: Any, *options: Any) -> syntax.EdgeDef:
        labels, properties = self._element(options)
        return syntax.EdgeDef(table, key or (), source, end, labels, properties, span)

    def _element(self, options: tuple[Any, ...]) -> tuple[tuple[Name, ...], tuple[Any, ...] | None]:
        """The labels and the properties of an element table."""
        labels = tuple(option for option in options if isinstance(option, Name))
        given = [option for option in options if isinstance(option, tuple)]
        return labels, tuple(column for columns in given for column in columns) if given else None

    def end(self, span: Span, columns: Any, table: Name, target: Any) -> syntax.EndDef:
        return syntax.EndDef(columns or (), table, target or (), span)

    def element_label(self, span: Span, label: Name) -> Name:
        return label

    def element_properties(self, span: Span, *columns: Any) -> tuple[Any, ...]:
        return columns

    def element_without(self, span: Span) -> tuple[Any, ...]:
        return ()

    def property_column(self, span: Span, column: Name, name: Name | None) -> syntax.PropertyColumn:
        return syntax.PropertyColumn(column, name, span)

    # ------------------------------------------------------------ queries

    def query(self, span: Span, body: Any, tail: tuple[Any, Any, Any] | None) -> syntax.Query:
        order, limit, offset = tail or ((), None, None)
        return syntax.Query(body, order, limit, offset, span)

    def union(self, span: Span, left: Any, op: str, all_: Token | None, right: Any) -> syntax.SetOperation:
        return syntax.SetOperation(op, all_ is not None, left, right, span)

    def intersection(self, span: Span, left: Any, all_: Token | None, right: Any) -> syntax.SetOperation:
        return syntax.SetOperation("intersect", all_ is not None, left, right, span)

    def union_op(self, span: Span, token: Token) -> str:
        return token[1].lower()

    def operand(self, span: Span, body: Any) -> Any:
        if isinstance(body, syntax.Query) and not body.order and body.limit is None and body.offset is None:
            return body.body
        return body

    def select(
        self, span: Span, distinct: Token | None, items: Any, source: Any, where: Any, group: Any, having: Any
    ) -> syntax.Select:
        return syntax.Select(distinct is not None, items, source, where, group or (), having, span)

    def star(self, span: Span, token: Token) -> syntax.Star:
        return syntax.Star(None, span)

    def star_of(self, span: Span, table: Name, token: Token) -> syntax.Star:
        return syntax.Star(table, span)

    def output(self, span: Span, expr: Any, alias: Name | None) -> syntax.Item:
        return syntax.Item(expr, alias, span)

    def group(self, span: Span, keys: Any) -> Any:
        return keys

    def from_(self, span: Span, first: Any, *joins: Any) -> syntax.From:
        return syntax.From(first, joins, span)

    def join_on(self, span: Span, kind: str, right: Any, on: Any) -> syntax.Join:
        return syntax.Join(kind, right, on, (), span)

    def join_using(self, span: Span, kind: str, right: Any, columns: tuple[Name, ...]) -> syntax.Join:
        return syntax.Join(kind, right, None, columns, span)

    def join_cross(self, span: Span, right: Any) -> syntax.Join:
        return syntax.Join("cross", right, None, (), span)

    def join_kind(self, span: Span, *tokens: Token | None) -> str:
        return next((token[1].lower() for token in tokens if token), "inner")

    def table(self, span: Span, name: Name, alias: Name | None) -> syntax.TableName:
        return syntax.TableName(name, alias, span)

    def table_placeholder(self, span: Span, place: syntax.Placeholder, alias: Name | None) -> syntax.TablePlaceholder:
        return syntax.TablePlaceholder(place, alias, span)

    def derived(self, span: Span, query: syntax.Query, alias: Name | None) -> syntax.Derived:
        return syntax.Derived(query, alias, span)

    def tail(self, span: Span, order: Any, paging: Any) -> tuple[Any, Any, Any]:
        return (order, *(paging or (None, None)))

    def tail_paging(self, span: Span, paging: Any) -> tuple[Any, Any, Any]:
        return ((), *paging)

    def limit(self, span: Span, limit: Any, offset: Any) -> tuple[Any, Any]:
        return limit, offset

    def offset(self, span: Span, offset: Any, limit: Any) -> tuple[Any, Any]:
        return limit, offset

    def order_key(self, span: Span, expr: Any, direction: str | None, nulls: str | None) -> syntax.OrderKey:
        return syntax.OrderKey(expr, direction == "desc", None if nulls is None else nulls == "first", span)

    def direction(self, span: Span, token: Token) -> str:
        return token[1].lower()

    def nulls_place(self, span: Span, token: Token) -> str:
        return token[1].lower()

    # ------------------------------------------------------------ writes

    def insert(
        self, span: Span, table: Name, columns: Any, source: Any, conflict: Any, returning: Any
    ) -> syntax.Insert:
        return syntax.Insert(table, columns, source, conflict, returning or (), span)

    def rows(self, span: Span, *rows: Any) -> syntax.Values:
        return syntax.Values(rows, span)

    def row(self, span: Span, values: Any) -> Any:
        return values

    def do_nothing(self, span: Span, columns: Any) -> syntax.Conflict:
        return syntax.Conflict(columns, (), span)

    def do_update(self, span: Span, columns: Any, assignments: Any) -> syntax.Conflict:
        return syntax.Conflict(columns, assignments, span)

    def update(
        self, span: Span, table: Name, alias: Any, assignments: Any, source: Any, where: Any, returning: Any
    ) -> syntax.Update:
        return syntax.Update(table, alias, assignments, source, where, returning or (), span)

    def delete(self, span: Span, table: Name, alias: Any, where: Any, returning: Any) -> syntax.Delete:
        return syntax.Delete(table, alias, where, returning or (), span)

    def assignment(self, span: Span, column: Name, value: Any) -> syntax.Assignment:
        return syntax.Assignment(None, column, value, span)

    def assignment_of(self, span: Span, table: Name, column: Name, value: Any) -> syntax.Assignment:
        return syntax.Assignment(table, column, value, span)

    # ------------------------------------------------------------ graph operations

    def graph(self, span: Span, *clauses: Any) -> syntax.Graph:
        return syntax.Graph(clauses[:-1], clauses[-1], span)

    def unwind(self, span: Span, place: syntax.Placeholder, name: Name) -> syntax.Unwind:
        return syntax.Unwind(place, name, span)

    def match(self, span: Span, optional: Any, patterns: Any, where: Any) -> syntax.Match:
        return syntax.Match(optional is not None, patterns, where, span)

    def create(self, span: Span, patterns: Any) -> syntax.Create:
        return syntax.Create(patterns, span)

    def merge(self, span: Span, pattern: syntax.Pattern, *actions: Any) -> syntax.Merge:
        return syntax.Merge(pattern, actions, span)

    def on_action(self, span: Span, kind: str, assignments: Any) -> syntax.OnAction:
        return syntax.OnAction(kind, assignments, span)

    def action_kind(self, span: Span, token: Token) -> str:
        return token[1].lower()

    def set_clause(self, span: Span, assignments: Any) -> syntax.SetClause:
        return syntax.SetClause(assignments, span)

    def detach(self, span: Span, detach: Any, variables: Any) -> syntax.Detach:
        return syntax.Detach(detach is not None, variables, span)

    def graph_return(self, span: Span, distinct: Any, items: Any, tail: Any) -> syntax.GraphReturn:
        order, limit, offset = tail or ((), None, None)
        return syntax.GraphReturn(distinct is not None, items, order, limit, offset, span)

    def pattern(self, span: Span, name: Name | None, shortest: Any, *elements: Any) -> syntax.Pattern:
        return syntax.Pattern(name, shortest is not None, elements, span)

    def shortest(self, span: Span) -> bool:
        return True

    def node_pattern(self, span: Span, name: Any, labels: Any, properties: Any, where: Any) -> syntax.NodePattern:
        return syntax.NodePattern(name, labels or (), properties or (), where, span)

    def edge(self, span: Span, name: Any, labels: Any, hops: Any, properties: Any, where: Any) -> syntax.EdgePattern:
        return syntax.EdgePattern(name, labels or (), "both", hops, properties or (), where, span)

    def edge_right(self, span: Span, edge: syntax.EdgePattern | None = None) -> syntax.EdgePattern:
        return self._edge(span, edge, "right")

    def edge_left(self, span: Span, edge: syntax.EdgePattern | None = None) -> syntax.EdgePattern:
        return self._edge(span, edge, "left")

    def edge_both(self, span: Span, edge: syntax.EdgePattern | None = None) -> syntax.EdgePattern:
        return self._edge(span, edge, "both")

    def _edge(self, span: Span, edge: syntax.EdgePattern | None, direction: str) -> syntax.EdgePattern:
        edge = edge or syntax.EdgePattern(None, (), direction, None, (), None, span)
        return edge.with_(direction=direction, span=span)

    def properties(self, span: Span, *properties: Any) -> tuple[Any, ...]:
        return _kept(properties)

    def property(self, span: Span, name: Name, value: Any) -> syntax.Property:
        return syntax.Property(name, value, span)

    def hops_exactly(self, span: Span, star: Token, count: Any) -> syntax.Hops:
        return syntax.Hops(count, count, span)

    def hops_range(self, span: Span, star: Token, low: Any, high: Any) -> syntax.Hops:
        return syntax.Hops(low, high, span)

    # ------------------------------------------------------------ expressions

    def expression(self, span: Span, expr: Any) -> Any:
        return expr

    def binary(self, span: Span, left: Any, op: Any, right: Any) -> syntax.Binary:
        op = op if isinstance(op, str) else op[1].lower()
        return syntax.Binary("<>" if op == "!=" else op, left, right, span)

    def compare(self, span: Span, token: Token) -> str:
        return token[1]

    def unary(self, span: Span, op: Token, operand: Any) -> syntax.Unary:
        return syntax.Unary(op[1].lower(), operand, span)

    def is_null(self, span: Span, operand: Any, negated: Any) -> syntax.IsNull:
        return syntax.IsNull(operand, negated is not None, span)

    def is_distinct(self, span: Span, left: Any, negated: Any, right: Any) -> syntax.IsDistinct:
        return syntax.IsDistinct(left, right, negated is not None, span)

    def is_truth(self, span: Span, left: Any, negated: Any, truth: Any) -> syntax.IsDistinct:
        return syntax.IsDistinct(left, truth, negated is None, span)

    def between(self, span: Span, operand: Any, negated: Any, low: Any, high: Any) -> syntax.Between:
        return syntax.Between(operand, low, high, negated is not None, span)

    def like(self, span: Span, operand: Any, negated: Any, pattern: Any) -> syntax.Like:
        return syntax.Like(operand, pattern, False, negated is not None, span)

    def ilike(self, span: Span, operand: Any, negated: Any, pattern: Any) -> syntax.Like:
        return syntax.Like(operand, pattern, True, negated is not None, span)

    def in_query(self, span: Span, operand: Any, negated: Any, query: Any) -> syntax.InQuery:
        return syntax.InQuery(operand, query, negated is not None, span)

    def in_list(self, span: Span, operand: Any, negated: Any, items: Any) -> syntax.InList:
        return syntax.InList(operand, items, negated is not None, span)

    def in_placeholder(self, span: Span, operand: Any, negated: Any, place: Any) -> syntax.InPlaceholder:
        return syntax.InPlaceholder(operand, place, negated is not None, span)

    def number(self, span: Span, token: Token) -> syntax.Number:
        return syntax.Number(token[1], span)

    def string(self, span: Span, token: Token) -> syntax.String:
        return syntax.String(_unquoted(token), span)

    def truth(self, span: Span, token: Token) -> syntax.Truth:
        return syntax.Truth(token[1].lower() == "true", span)

    def null(self, span: Span) -> syntax.Null:
        return syntax.Null(span)

    def moment(self, span: Span, kind: Token, token: Token) -> syntax.Moment:
        return syntax.Moment(kind[1].lower(), _unquoted(token), span)

    def interval(self, span: Span, word: Token, token: Token) -> syntax.Interval:
        return syntax.Interval(_unquoted(token), span)

    def column(self, span: Span, name: Name) -> syntax.ColumnName:
        return syntax.ColumnName(None, name, span)

    def column_of(self, span: Span, table: Name, name: Name) -> syntax.ColumnName:
        return syntax.ColumnName(table, name, span)

    def placeholder(self, span: Span, token: Token) -> syntax.Placeholder:
        _, text, start, end = token
        name, dot, column = text[1:].partition(".")
        if not dot:
            return syntax.Placeholder(name, None, span)
        return syntax.Placeholder(name, _name(column, Span(start + len(name) + 2, end)), span)

    def function_empty(self, span: Span, name: Name, where: Any, over: Any) -> syntax.Function:
        return syntax.Function(name, (), False, False, (), where, over, span)

    def function_star(self, span: Span, name: Name, star: Token, where: Any, over: Any) -> syntax.Function:
        return syntax.Function(name, (), True, False, (), where, over, span)

    def function(
        self, span: Span, name: Name, distinct: Any, args: Any, order: Any, where: Any, over: Any
    ) -> syntax.Function:
        return syntax.Function(name, args, False, distinct is not None, order or (), where, over, span)

    def extract(self, span: Span, field: Name, expr: Any) -> syntax.Function:
        word = Name("extract", False, Span(span.start, span.start + 7))
        column = syntax.ColumnName(None, field, field.span)
        return syntax.Function(word, (column, expr), False, False, (), None, None, span)

    def over(self, span: Span, partition: Any, order: Any, frame: Any) -> syntax.Over:
        return syntax.Over(partition or (), order or (), frame, span)

    def frame(self, span: Span, unit: str, start: syntax.Bound, *rest: Any) -> syntax.Frame:
        return syntax.Frame(unit, start, rest[-1] if rest else None, span)

    def frame_unit(self, span: Span, token: Token) -> str:
        return token[1].lower()

    def unbounded_preceding(self, span: Span) -> syntax.Bound:
        return syntax.Bound("unbounded preceding", None, span)

    def unbounded_following(self, span: Span) -> syntax.Bound:
        return syntax.Bound("unbounded following", None, span)

    def current_row(self, span: Span) -> syntax.Bound:
        return syntax.Bound("current row", None, span)

    def preceding(self, span: Span, offset: Any) -> syntax.Bound:
        return syntax.Bound("preceding", offset, span)

    def following(self, span: Span, offset: Any) -> syntax.Bound:
        return syntax.Bound("following", offset, span)

    def case(self, span: Span, operand: Any, *rest: Any) -> syntax.Case:
        return syntax.Case(operand, rest[:-1], rest[-1], span)

    def when(self, span: Span, condition: Any, result: Any) -> tuple[Any, Any]:
        return condition, result

    def cast_call(self, span: Span, operand: Any, type_: syntax.TypeName) -> syntax.Cast:
        return syntax.Cast(operand, type_, False, span)

    def cast_colons(self, span: Span, operand: Any, type_: syntax.TypeName) -> syntax.Cast:
        return syntax.Cast(operand, type_, True, span)

    def exists(self, span: Span, query: Any) -> syntax.Exists:
        return syntax.Exists(query, span)

    def exists_placeholder(self, span: Span, place: Any) -> syntax.ExistsPlaceholder:
        return syntax.ExistsPlaceholder(place, span)

    def scalar_query(self, span: Span, query: Any) -> syntax.ScalarQuery:
        return syntax.ScalarQuery(query, span)

    # ------------------------------------------------------------ types and names

    def type_name(self, span: Span, word: str, numbers: tuple[int, ...] | None) -> syntax.TypeName:
        name = TYPES.get(word, word)
        return syntax.TypeName(name, () if name == "text" else numbers or (), span)

    def type_word(self, span: Span, token: Token) -> str:
        return token[1].lower()

    def double_precision(self, span: Span) -> str:
        return "float"

    def numbers(self, span: Span, *tokens: Token) -> tuple[int, ...]:
        return tuple(int(token[1].partition(".")[0][:9]) for token in tokens)

    def name(self, span: Span, token: Token) -> Name:
        return _name(token[1], span)

    def bare_alias(self, span: Span, token: Token) -> Name:
        return _name(token[1], span)

    def reserved(self, span: Span, token: Token) -> Token:
        return token

    def card(self, span: Span, token: Token) -> str:
        return token[1].lower()


def _kept(items: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(item for item in items if item is not None)


def _name(text: str, span: Span) -> Name:
    if text[0] == '"':
        return Name(text[1:-1].replace('""', '"'), True, span)
    return Name(text, False, span)


def _unquoted(token: Token) -> str:
    return token[1][1:-1].replace("''", "'")


LISTS = frozenset({
    "parameters", "record", "returned", "arguments", "columns", "outputs", "order", "assignments", "values", "patterns",
    "variables", "labels",
})  # fmt: skip
"""Rules whose node is the tuple of their parts."""
