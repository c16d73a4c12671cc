"""Hypothesis strategies for syntax trees: whatever the parser could make, with spans nowhere.

`programs()`, `schemas()`, `expressions()`; also `texts()`, pieces of the language in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from com.compiler import syntax
from com.compiler.slips import RESERVED
from com.compiler.syntax import Name
from com.source import NOWHERE

N = NOWHERE
WORDS = ["a", "b", "name", "fruit_id", "Total", "größe", "date", "step", "rows", "current", "unbounded", "each", "key"]
QUOTED = ["Free Meal Count (K-12)", "it is", 'a"b', "1st", "from", "Order", "ü b", "end"]
ANY_WORDS = [*WORDS, *sorted(RESERVED)]
OPERATORS = ["+", "-", "*", "/", "%", "div", "||", "=", "<>", "<", "<=", ">", ">=", "and", "or"]
TYPES = ["int", "text", "bool", "date", "timestamp", "float", "json", "bytes", "interval", "thing"]
NUMBERS = ["0", "1", "42", "1.50", "007", "9223372036854775808", "0.1"]

_sizes = st.integers(0, 99)
_flags = st.booleans()
_upto = [st.integers(0, most) for most in range(200)]
_lines = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=20)
_texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=12)


class Maker:
    """Makes one tree; `room` is how many more nodes may have children of their own."""

    def __init__(self, draw: Callable[[Any], Any], room: int) -> None:
        self.draw, self.room = draw, room

    def one(self, choices: list[Any]) -> Any:
        return choices[self.draw(_upto[len(choices) - 1])]

    def flag(self) -> bool:
        return bool(self.draw(_flags))

    def some(self, make: Callable[[], Any], least: int = 0, most: int = 3) -> tuple[Any, ...]:
        return tuple(make() for _ in range(least + self.draw(_upto[most - least])))

    def maybe(self, make: Callable[[], Any]) -> Any:
        return make() if self.flag() else None

    def kind(self, *makes: Callable[[], Any]) -> Any:
        return self.one(list(makes))()

    # ------------------------------------------------------------ words

    def name(self) -> Name:
        return self.kind(lambda: Name(self.one(WORDS), False, N), lambda: Name(self.one(QUOTED), True, N))  # type: ignore[no-any-return]

    def label(self) -> Name:
        return Name(self.one(ANY_WORDS), False, N)

    def word(self) -> Name:
        return self.kind(self.name, self.label)  # type: ignore[no-any-return]

    def title(self) -> tuple[str, ...]:
        return self.some(lambda: self.draw(_lines).rstrip(), 0, 2)

    def text(self) -> str:
        return str(self.draw(_texts))

    def type(self) -> syntax.TypeName:
        if self.flag():
            return syntax.TypeName("decimal", (self.draw(st.integers(1, 38)), self.draw(st.integers(0, 9))), N)
        return syntax.TypeName(self.one(TYPES), (), N)

    def place(self) -> syntax.Placeholder:
        return syntax.Placeholder(self.label().text, self.maybe(self.word), N)

    def step_place(self) -> syntax.Placeholder:
        return syntax.Placeholder(self.label().text, None, N)

    # ------------------------------------------------------------ expressions

    def expr(self) -> Any:
        self.room -= 1
        if self.room <= 0 or self.draw(_sizes) < 30:
            return self.leaf()
        return self.kind(
            self.binary,
            self.binary,
            lambda: syntax.Unary(self.one(["-", "not"]), self.expr(), N),
            lambda: syntax.IsNull(self.expr(), self.flag(), N),
            lambda: syntax.IsDistinct(self.expr(), self.expr(), self.flag(), N),
            lambda: syntax.Between(self.expr(), self.expr(), self.expr(), self.flag(), N),
            lambda: syntax.Like(self.expr(), self.expr(), self.flag(), self.flag(), N),
            lambda: syntax.InList(self.expr(), self.some(self.expr, 1), self.flag(), N),
            lambda: syntax.InPlaceholder(self.expr(), self.place(), self.flag(), N),
            lambda: syntax.InQuery(self.expr(), self.query(), self.flag(), N),
            lambda: syntax.Exists(self.query(), N),
            lambda: syntax.ScalarQuery(self.query(), N),
            lambda: syntax.Case(
                self.maybe(self.expr), self.some(lambda: (self.expr(), self.expr()), 1, 2), self.maybe(self.expr), N
            ),
            lambda: syntax.Cast(self.expr(), self.type(), self.flag(), N),
            self.function,
        )

    def leaf(self) -> Any:
        return self.kind(
            lambda: syntax.ColumnName(None, self.name(), N),
            lambda: syntax.ColumnName(self.name(), self.word(), N),
            lambda: syntax.Number(self.one(NUMBERS), N),
            lambda: syntax.String(self.text(), N),
            self.place,
            lambda: syntax.Truth(self.flag(), N),
            lambda: syntax.Null(N),
            lambda: syntax.Moment(self.one(["date", "timestamp"]), self.text(), N),
            lambda: syntax.Interval(self.text(), N),
            lambda: syntax.ExistsPlaceholder(self.step_place(), N),
        )

    def binary(self) -> syntax.Binary:
        return syntax.Binary(self.one(OPERATORS), self.expr(), self.expr(), N)

    def function(self) -> syntax.Function:
        kind = self.draw(st.integers(0, 2))
        if kind == 0:
            field = syntax.ColumnName(None, self.word(), N)
            args = (field, self.expr())
            return syntax.Function(Name("extract", False, N), args, False, False, (), None, None, N)
        name = self.kind(self.name, lambda: Name(self.one(["left", "right", "sum", "coalesce"]), False, N))
        where, over = self.maybe(self.expr), self.maybe(self.over)
        if kind == 1:
            return syntax.Function(name, (), self.flag(), False, (), where, over, N)
        order = self.some(self.order_key, 0, 2)
        return syntax.Function(name, self.some(self.expr, 1), False, self.flag(), order, where, over, N)

    def over(self) -> syntax.Over:
        return syntax.Over(self.some(self.expr, 0, 2), self.some(self.order_key, 0, 2), self.maybe(self.frame), N)

    def frame(self) -> syntax.Frame:
        return syntax.Frame(self.one(["rows", "range"]), self.bound(), self.maybe(self.bound), N)

    def bound(self) -> syntax.Bound:
        if self.flag():
            return syntax.Bound(self.one(["preceding", "following"]), self.expr(), N)
        return syntax.Bound(self.one(["unbounded preceding", "current row", "unbounded following"]), None, N)

    def order_key(self) -> syntax.OrderKey:
        return syntax.OrderKey(self.expr(), self.flag(), self.one([None, True, False]), N)

    # ------------------------------------------------------------ queries

    def query(self) -> syntax.Query:
        order = self.some(self.order_key, 0, 2)
        return syntax.Query(self.body(), order, self.maybe(self.expr), self.maybe(self.expr), N)

    def body(self) -> Any:
        self.room -= 1
        if self.room <= 0 or self.draw(_sizes) < 70:
            return self.select()
        op = self.one(["union", "intersect", "except"])
        return syntax.SetOperation(op, self.flag(), self.operand(), self.operand(), N)

    def operand(self) -> Any:
        if self.draw(_sizes) < 70:
            return self.body()
        return syntax.Query(self.body(), self.some(self.order_key, 1, 2), self.maybe(self.expr), None, N)

    def select(self) -> syntax.Select:
        return syntax.Select(
            self.flag(), self.outputs(), self.maybe(self.source), self.maybe(self.expr), self.some(self.expr, 0, 2),
            self.maybe(self.expr), N,
        )  # fmt: skip

    def outputs(self) -> tuple[Any, ...]:
        return self.some(lambda: self.kind(self.item, self.item, lambda: syntax.Star(self.maybe(self.name), N)), 1)

    def item(self) -> syntax.Item:
        return syntax.Item(self.expr(), self.maybe(self.word), N)

    def source(self) -> syntax.From:
        return syntax.From(self.table(), self.some(self.join, 0, 2), N)

    def table(self) -> Any:
        return self.kind(
            lambda: syntax.TableName(self.name(), self.maybe(self.word), N),
            lambda: syntax.TablePlaceholder(self.place(), self.maybe(self.word), N),
            *([lambda: syntax.Derived(self.query(), self.maybe(self.word), N)] if self.room > 0 else []),
        )

    def join(self) -> syntax.Join:
        kind = self.one(["inner", "left", "right", "full", "cross"])
        right = self.table()
        if kind == "cross":
            return syntax.Join(kind, right, None, (), N)
        if self.flag():
            return syntax.Join(kind, right, self.expr(), (), N)
        return syntax.Join(kind, right, None, self.some(self.name, 1), N)

    # ------------------------------------------------------------ writes and calls

    def operation(self) -> Any:
        return self.kind(
            self.query, self.query, self.insert, self.update, self.delete, self.call, self.graph, self.graph
        )

    def insert(self) -> syntax.Insert:
        width = self.draw(st.integers(1, 3))
        rows = lambda: syntax.Values(self.some(lambda: self.some(self.expr, width, width), 1, 2), N)  # noqa: E731
        source = self.kind(rows, self.query)
        returning = self.maybe(self.outputs) or ()
        return syntax.Insert(self.name(), self.some(self.name, 1), source, self.maybe(self.conflict), returning, N)

    def conflict(self) -> syntax.Conflict:
        return syntax.Conflict(self.some(self.name, 1, 2), self.some(self.assignment, 0, 2), N)

    def assignment(self) -> syntax.Assignment:
        if self.flag():
            return syntax.Assignment(self.name(), self.word(), self.expr(), N)
        return syntax.Assignment(None, self.name(), self.expr(), N)

    def update(self) -> syntax.Update:
        return syntax.Update(
            self.name(), self.maybe(self.word), self.some(self.assignment, 1), self.maybe(self.source),
            self.maybe(self.expr), self.maybe(self.outputs) or (), N,
        )  # fmt: skip

    def delete(self) -> syntax.Delete:
        returning = self.maybe(self.outputs) or ()
        return syntax.Delete(self.name(), self.maybe(self.word), self.maybe(self.expr), returning, N)

    def call(self) -> syntax.Call:
        return syntax.Call(self.name(), self.some(self.argument), N)

    def argument(self) -> syntax.Argument:
        value = self.expr()
        named = isinstance(value, syntax.Binary) and value.op == "=" and isinstance(value.left, syntax.ColumnName)
        return syntax.Argument(self.name() if named else self.maybe(self.name), value, N)

    # ------------------------------------------------------------ graph operations

    def graph(self) -> syntax.Graph:
        opening = self.kind(self.unwind, self.match, self.create, self.merge)
        more = self.some(
            lambda: self.kind(
                self.match, self.create, self.merge,
                lambda: syntax.SetClause(self.some(self.assignment, 1), N),
                lambda: syntax.Detach(self.flag(), self.some(self.name, 1), N),
            ), 0, 2,
        )  # fmt: skip
        return syntax.Graph((opening, *more), self.maybe(self.graph_return), N)

    def unwind(self) -> syntax.Unwind:
        return syntax.Unwind(self.place(), self.label(), N)

    def match(self) -> syntax.Match:
        return syntax.Match(self.flag(), self.some(self.pattern, 1, 2), self.maybe(self.expr), N)

    def create(self) -> syntax.Create:
        return syntax.Create(self.some(self.pattern, 1, 2), N)

    def merge(self) -> syntax.Merge:
        actions = self.some(
            lambda: syntax.OnAction(self.one(["create", "match"]), self.some(self.assignment, 1, 2), N), 0, 2
        )
        return syntax.Merge(self.pattern(), actions, N)

    def graph_return(self) -> syntax.GraphReturn:
        order = self.some(self.order_key, 0, 2)
        return syntax.GraphReturn(self.flag(), self.outputs(), order, self.maybe(self.expr), self.maybe(self.expr), N)

    def pattern(self) -> syntax.Pattern:
        elements: list[Any] = [self.node_pattern()]
        for _ in range(self.draw(st.integers(0, 2))):
            elements += [self.edge_pattern(), self.node_pattern()]
        return syntax.Pattern(self.maybe(self.name), self.flag(), tuple(elements), N)

    def node_pattern(self) -> syntax.NodePattern:
        return syntax.NodePattern(
            self.maybe(self.name), self.some(self.word, 0, 2), self.properties(), self.maybe(self.expr), N
        )

    def edge_pattern(self) -> syntax.EdgePattern:
        direction = self.one(["right", "left", "both"])
        hops = self.maybe(lambda: syntax.Hops(self.maybe(self.bound_of_hops), self.maybe(self.bound_of_hops), N))
        return syntax.EdgePattern(
            self.maybe(self.name), self.some(self.word, 0, 2), direction, hops, self.properties(),
            self.maybe(self.expr), N,
        )  # fmt: skip

    def bound_of_hops(self) -> Any:
        return self.kind(lambda: syntax.Number(self.one(NUMBERS), N), self.place)

    def properties(self) -> tuple[Any, ...]:
        return self.some(lambda: syntax.Property(self.word(), self.expr(), N), 0, 2)

    # ------------------------------------------------------------ statements

    def field(self) -> syntax.Field:
        return syntax.Field(self.word(), self.type(), N)

    def shape(self, least: int = 0) -> syntax.Shape:
        return syntax.Shape(self.one(["one", "maybe", "many"]), self.some(self.field, least, 2), N)

    def template(self) -> syntax.Template:
        parts: list[Any] = []
        for _ in range(self.draw(st.integers(0, 2))):
            parts += [self.text(), self.held()]
        return syntax.Template(tuple(part for part in [*parts, self.text()] if part != ""), N)

    def held(self) -> Any:
        """An expression without strings."""
        self.room -= 1
        if self.room <= 0 or self.flag():
            return self.kind(self.place, lambda: syntax.Number(self.one(NUMBERS), N))
        if self.flag():
            return syntax.Binary(self.one(OPERATORS), self.held(), self.held(), N)
        name = Name(self.one(WORDS), False, N)
        return syntax.Function(name, self.some(self.held, 1, 2), False, False, (), None, None, N)

    def statement(self) -> Any:
        self.room -= 1
        if self.room > 0 and self.draw(_sizes) < 25:
            return self.kind(self.loop, self.branch)
        return self.kind(
            lambda: syntax.Step(self.label(), self.maybe(self.shape), self.operation(), self.title(), N),
            lambda: syntax.Step(self.label(), self.maybe(self.shape), self.operation(), self.title(), N),
            lambda: syntax.Assert(self.expr(), self.template(), self.title(), N),
            lambda: syntax.ReturnRows(self.step_place(), N),
            lambda: syntax.ReturnQuery(self.query(), N),
            self.return_values,
            lambda: syntax.Answer(self.template(), N),
        )

    def return_values(self) -> Any:
        items = self.some(self.item, 1)
        first = items[0]
        if (
            len(items) == 1
            and first.alias is None
            and isinstance(first.expr, syntax.Placeholder)
            and not first.expr.column
        ):
            return syntax.ReturnRows(first.expr, N)
        return syntax.ReturnValues(items, N)

    def loop(self) -> syntax.ForEach:
        return syntax.ForEach(self.label(), self.place(), self.some(self.statement, 0, 2), self.title(), N)

    def branch(self, titled: bool = True) -> syntax.If:
        then = self.some(self.statement, 0, 2)
        otherwise = (self.branch(False),) if self.flag() and self.room > 0 else self.some(self.statement, 0, 2)
        return syntax.If(self.expr(), then, otherwise, self.title() if titled else (), N)

    def header(self) -> syntax.Header:
        return syntax.Header(self.label(), self.some(self.parameter), self.title(), N)

    def parameter(self) -> syntax.Parameter:
        type_ = self.kind(self.type, lambda: syntax.ListType(self.type(), N), lambda: self.shape(1))
        return syntax.Parameter(self.label(), type_, self.maybe(self.expr), N)

    def program(self) -> syntax.Program:
        header = self.header() if self.draw(_sizes) < 90 else None
        return syntax.Program(header, self.some(self.statement, 0, 4), (), N)

    # ------------------------------------------------------------ schemas

    def schema(self) -> syntax.SchemaFile:
        return syntax.SchemaFile(
            self.some(lambda: self.kind(self.create_table, self.create_table, self.create_index, self.create_graph)),
            (),
            N,
        )

    def create_table(self) -> syntax.CreateTable:
        items = self.some(
            lambda: self.kind(
                self.column_def,
                self.column_def,
                lambda: syntax.KeyDef(self.flag(), self.some(self.name, 1), N),
                lambda: syntax.ForeignKeyDef(self.some(self.name, 1), self.reference(), N),
                lambda: syntax.CheckDef(self.expr(), N),
            ),
            1,
        )
        return syntax.CreateTable(self.name(), items, self.title(), N)

    def create_index(self) -> syntax.CreateIndex:
        return syntax.CreateIndex(self.name(), self.name(), self.some(self.name, 1), self.flag(), self.title(), N)

    def create_graph(self) -> syntax.CreateGraph:
        vertices = self.some(lambda: syntax.VertexDef(self.name(), self.some(self.name, 0, 2), *self.element(), N), 1)
        edges = self.some(
            lambda: syntax.EdgeDef(self.name(), self.some(self.name, 0, 2), self.end(), self.end(), *self.element(), N)
        )
        return syntax.CreateGraph(self.name(), vertices, edges, self.title(), N)

    def element(self) -> tuple[Any, Any]:
        column = lambda: syntax.PropertyColumn(self.name(), self.maybe(self.word), N)  # noqa: E731
        return self.some(self.word, 0, 2), self.maybe(lambda: self.some(column, 0, 2))

    def end(self) -> syntax.EndDef:
        return syntax.EndDef(self.some(self.name, 0, 2), self.name(), self.some(self.name, 0, 2), N)

    def reference(self) -> syntax.Reference:
        return syntax.Reference(self.name(), self.some(self.name, 0, 2), N)

    def column_def(self) -> syntax.ColumnDef:
        return syntax.ColumnDef(
            self.word(), self.type(), self.flag(), self.flag(), self.flag(), self.maybe(self.leaf),
            self.some(self.expr, 0, 1), self.some(self.reference, 0, 1), self.flag(), N,
        )  # fmt: skip


def _made(make: Callable[[Maker], Any], room: int) -> Any:
    @st.composite
    def strategy(draw: Any) -> Any:
        return make(Maker(draw, room))

    return strategy()


def expressions() -> Any:
    """Expressions of any kind."""
    return _made(Maker.expr, 12)


def programs() -> Any:
    """Programs, nearly always with a header."""
    return _made(Maker.program, 14)


def schemas() -> Any:
    """Schema files."""
    return _made(Maker.schema, 10)


PIECES = [
    "program", "step", "a", "b", ":", ";", "->", "one", "many", "select", "x", ",", "from", "t", "where", "=", "==", "(", ")",
    "{", "}", "for each", "in", "$a", "$a.b", "$", "if", "else", "assert", "answer", "'text {$a.b}'", "'{'", "'", '"', "return",
    "insert into", "values", "update", "set", "delete", "call", "with", "match", "create table", "optional match", "(a:A {x: 1})", "-[r:B*1..3]->", "merge", "unwind", "detach",
    "any shortest", "[", "]", "..", "|", "drop", "1", "1.5", "1e3", ".",
    "*", "-", "--", "-- c\n", "\n", "/*", "*/", "`", "```\n", "order by", "limit", "group by", "case", "when", "then", "end",
    "int", "text", "as", "on", "conflict", "do", "nothing", "union", "not", "null", "is", "between", "and", "or", "||", "::",
    "elseif", "#", "\0", "\ud800", "\u200f", "\ufeff", "\r\n", "exists", "cast", "extract", "over", "sum", "primary key",
]  # fmt: skip


def texts() -> Any:
    """Texts that are hardly programs: pieces of the language in any order, or any characters at all."""
    pieces = st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join)
    return st.one_of(
        pieces, st.text(max_size=60), st.binary(max_size=60).map(lambda b: b.decode("utf-8", "surrogateescape"))
    )
