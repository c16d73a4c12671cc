"""The syntax tree: what was written, before anything is known about it.

Every node has the span it was written at. Trees are equal when they are the same but for spans and comments.
"""

from __future__ import annotations

from com.node import Node
from com.source import Span

# ---------------------------------------------------------------- words


class Name(Node):
    """An identifier as written, without quotes; `quoted` if it stood in double quotes, which means the same."""

    _silent = frozenset({"span", "quoted"})
    text: str
    quoted: bool
    span: Span


class TypeName(Node):
    """A type, its name in lower case as com spells it (`integer` is `int`); `numbers` as in decimal(10,2)."""

    name: str
    numbers: tuple[int, ...]
    span: Span


class Comment(Node):
    """`text` begins with `--`; `own_line` unless something stands before it on its line."""

    text: str
    own_line: bool
    span: Span


# ---------------------------------------------------------------- expressions


class Number(Node):
    """A number as written: digits, or digits with a point (a decimal). No sign."""

    text: str
    span: Span


class String(Node):
    """A string, unquoted."""

    value: str
    span: Span


class Truth(Node):
    """`true` or `false`."""

    value: bool
    span: Span


class Null(Node):
    """`null`."""

    span: Span


class Moment(Node):
    """`date '…'` or `timestamp '…'`; `kind` is date or timestamp."""

    kind: str
    value: str
    span: Span


class Interval(Node):
    """`interval '3 day'`, its text unparsed."""

    value: str
    span: Span


class ColumnName(Node):
    """`c` or `t.c`."""

    table: Name | None
    name: Name
    span: Span


class Placeholder(Node):
    """`$name` or `$name.column`."""

    name: str
    column: Name | None
    span: Span


class Unary(Node):
    """`op` is `-` or `not`."""

    op: str
    operand: Expr
    span: Span


class Binary(Node):
    """`op` is one of + - * / % div || = <> < <= > >= and or (`!=` is read as `<>`)."""

    op: str
    left: Expr
    right: Expr
    span: Span


class IsNull(Node):
    operand: Expr
    negated: bool
    span: Span


class IsDistinct(Node):
    """`left is [not] distinct from right`; `negated` with `not`."""

    left: Expr
    right: Expr
    negated: bool
    span: Span


class Between(Node):
    operand: Expr
    low: Expr
    high: Expr
    negated: bool
    span: Span


class Like(Node):
    """`like`, or `ilike` when `fold_case`."""

    operand: Expr
    pattern: Expr
    fold_case: bool
    negated: bool
    span: Span


class InList(Node):
    """`x in (a, b, …)`; also `x in ($items.c)`, where the one item is a placeholder."""

    operand: Expr
    items: tuple[Expr, ...]
    negated: bool
    span: Span


class InPlaceholder(Node):
    """`x in $items.c`."""

    operand: Expr
    place: Placeholder
    negated: bool
    span: Span


class InQuery(Node):
    operand: Expr
    query: Query
    negated: bool
    span: Span


class Exists(Node):
    query: Query
    span: Span


class ExistsPlaceholder(Node):
    """`exists $step`."""

    place: Placeholder
    span: Span


class ScalarQuery(Node):
    """A query in parentheses where a value stands."""

    query: Query
    span: Span


class Case(Node):
    operand: Expr | None
    whens: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None
    span: Span


class Cast(Node):
    """`cast(x as t)`, or `x::t` when `colons`."""

    operand: Expr
    type: TypeName
    colons: bool
    span: Span


class Bound(Node):
    """One end of a window frame: unbounded preceding, preceding, current row, following, unbounded following."""

    kind: str
    offset: Expr | None
    span: Span


class Frame(Node):
    """`unit` is rows or range; `end` is None when only a start was written."""

    unit: str
    start: Bound
    end: Bound | None
    span: Span


class Over(Node):
    partition: tuple[Expr, ...]
    order: tuple[OrderKey, ...]
    frame: Frame | None
    span: Span


class Function(Node):
    """`name(args)`. `star` for count(*); extract(year from d) is named extract with a ColumnName for its field."""

    name: Name
    args: tuple[Expr, ...]
    star: bool
    distinct: bool
    order: tuple[OrderKey, ...]
    where: Expr | None
    over: Over | None
    span: Span


# ---------------------------------------------------------------- queries


class Item(Node):
    """An output column: an expression, with a name if one was written."""

    expr: Expr
    alias: Name | None
    span: Span


class Star(Node):
    """`*`, or `t.*`."""

    table: Name | None
    span: Span


class OrderKey(Node):
    """`nulls_first` is None unless written."""

    expr: Expr
    descending: bool
    nulls_first: bool | None
    span: Span


class TableName(Node):
    name: Name
    alias: Name | None
    span: Span


class TablePlaceholder(Node):
    """`from $items [as i]`."""

    place: Placeholder
    alias: Name | None
    span: Span


class Derived(Node):
    """`(select …) [as d]`."""

    query: Query
    alias: Name | None
    span: Span


class Join(Node):
    """`kind` is inner, left, right, full or cross (a comma is cross). Exactly one of `on`, `using` unless cross."""

    kind: str
    right: TableRef
    on: Expr | None
    using: tuple[Name, ...]
    span: Span


class From(Node):
    first: TableRef
    joins: tuple[Join, ...]
    span: Span


class Select(Node):
    distinct: bool
    items: tuple[Item | Star, ...]
    source: From | None
    where: Expr | None
    group: tuple[Expr, ...]
    having: Expr | None
    span: Span


class SetOperation(Node):
    """`op` is union, intersect or except; intersect binds tighter, equals from the left."""

    op: str
    all: bool
    left: QueryBody
    right: QueryBody
    span: Span


class Query(Node):
    """A body with the order and limit that apply to the whole of it."""

    body: QueryBody
    order: tuple[OrderKey, ...]
    limit: Expr | None
    offset: Expr | None
    span: Span


# ---------------------------------------------------------------- writes and calls


class Assignment(Node):
    """`column = value`; `table` if written `t.column`."""

    table: Name | None
    column: Name
    value: Expr
    span: Span


class Values(Node):
    rows: tuple[tuple[Expr, ...], ...]
    span: Span


class Conflict(Node):
    """`on conflict (columns) do nothing`, or do update when `assignments` are there."""

    columns: tuple[Name, ...]
    assignments: tuple[Assignment, ...]
    span: Span


class Insert(Node):
    table: Name
    columns: tuple[Name, ...]
    source: Values | Query
    conflict: Conflict | None
    returning: tuple[Item | Star, ...]
    span: Span


class Update(Node):
    table: Name
    alias: Name | None
    assignments: tuple[Assignment, ...]
    source: From | None
    where: Expr | None
    returning: tuple[Item | Star, ...]
    span: Span


class Delete(Node):
    table: Name
    alias: Name | None
    where: Expr | None
    returning: tuple[Item | Star, ...]
    span: Span


class Argument(Node):
    """An argument of a call, by name if `name` is there."""

    name: Name | None
    value: Expr
    span: Span


class Call(Node):
    name: Name
    arguments: tuple[Argument, ...]
    span: Span


# ---------------------------------------------------------------- graph operations


class Property(Node):
    """`name: value`, in the braces of a pattern."""

    name: Name
    value: Expr
    span: Span


class NodePattern(Node):
    """`(variable:Label|Other {name: value} where …)`, any part of which may be absent."""

    variable: Name | None
    labels: tuple[Name, ...]
    properties: tuple[Property, ...]
    where: Expr | None
    span: Span


class Hops(Node):
    """`*low..high`. `*n` has two equal bounds; what was not written is None."""

    low: Expr | None
    high: Expr | None
    span: Span


class EdgePattern(Node):
    """`-[variable:TYPE*1..3 {name: value} where …]->`; `direction` is right, left or both."""

    variable: Name | None
    labels: tuple[Name, ...]
    direction: str
    hops: Hops | None
    properties: tuple[Property, ...]
    where: Expr | None
    span: Span


class Pattern(Node):
    """A path: nodes, with edges between them, in turn. `variable` names the whole."""

    variable: Name | None
    shortest: bool
    elements: tuple[NodePattern | EdgePattern, ...]
    span: Span


class Unwind(Node):
    """`unwind $rows as r`."""

    place: Placeholder
    variable: Name
    span: Span


class Match(Node):
    optional: bool
    patterns: tuple[Pattern, ...]
    where: Expr | None
    span: Span


class Create(Node):
    patterns: tuple[Pattern, ...]
    span: Span


class OnAction(Node):
    """`on create set …`, or `on match set …`; `kind` is create or match."""

    kind: str
    assignments: tuple[Assignment, ...]
    span: Span


class Merge(Node):
    pattern: Pattern
    actions: tuple[OnAction, ...]
    span: Span


class SetClause(Node):
    assignments: tuple[Assignment, ...]
    span: Span


class Detach(Node):
    """`[detach] delete a, b`."""

    detach: bool
    variables: tuple[Name, ...]
    span: Span


class GraphReturn(Node):
    """`return [distinct] … order by … limit …`, the last clause."""

    distinct: bool
    items: tuple[Item | Star, ...]
    order: tuple[OrderKey, ...]
    limit: Expr | None
    offset: Expr | None
    span: Span


class Graph(Node):
    """A graph operation: clauses in their order."""

    clauses: tuple[Clause, ...]
    returned: GraphReturn | None
    span: Span


# ---------------------------------------------------------------- statements


class Field(Node):
    """`name type`, in a shape or a record."""

    name: Name
    type: TypeName
    span: Span


class Shape(Node):
    """`one`, `maybe` or `many`, with the columns' types if they were written."""

    card: str
    fields: tuple[Field, ...]
    span: Span


class ListType(Node):
    """`text[]`."""

    element: TypeName
    span: Span


class Parameter(Node):
    """A parameter; its type is a value type, a list, or rows (`many {…}`)."""

    name: Name
    type: TypeName | ListType | Shape
    default: Expr | None
    span: Span


class Header(Node):
    """`program name(parameters);`"""

    name: Name
    parameters: tuple[Parameter, ...]
    title: tuple[str, ...]
    span: Span


class Step(Node):
    name: Name
    shape: Shape | None
    operation: Operation
    title: tuple[str, ...]
    span: Span


class ForEach(Node):
    variable: Name
    over: Placeholder
    body: tuple[Statement, ...]
    title: tuple[str, ...]
    span: Span


class If(Node):
    """`otherwise` is empty without `else`; `else if` is an If alone in it."""

    condition: Expr
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]
    title: tuple[str, ...]
    span: Span


class Template(Node):
    """A text with expressions in braces: parts are texts (unescaped) and expressions in turn."""

    parts: tuple[str | Expr, ...]
    span: Span


class Assert(Node):
    condition: Expr
    message: Template
    title: tuple[str, ...]
    span: Span


class ReturnRows(Node):
    """`return $step;`"""

    place: Placeholder
    span: Span


class ReturnQuery(Node):
    """`return select …;`"""

    query: Query
    span: Span


class ReturnValues(Node):
    """`return expr as name, …;`"""

    items: tuple[Item, ...]
    span: Span


class Answer(Node):
    text: Template
    span: Span


class Program(Node):
    """A whole file. `header` is None when it is missing (an error found by the check)."""

    header: Header | None
    body: tuple[Statement, ...]
    comments: tuple[Comment, ...]
    span: Span


# ---------------------------------------------------------------- schemas


class ColumnDef(Node):
    """A column with its constraints, in whatever order they stood."""

    name: Name
    type: TypeName
    primary_key: bool
    not_null: bool
    unique: bool
    default: Expr | None
    checks: tuple[Expr, ...]
    references: tuple[Reference, ...]
    generated: bool
    span: Span


class Reference(Node):
    """`references t (columns)`; columns are empty when t's primary key is meant."""

    table: Name
    columns: tuple[Name, ...]
    span: Span


class KeyDef(Node):
    """`primary key (…)` or `unique (…)`."""

    primary: bool
    columns: tuple[Name, ...]
    span: Span


class ForeignKeyDef(Node):
    columns: tuple[Name, ...]
    reference: Reference
    span: Span


class CheckDef(Node):
    condition: Expr
    span: Span


class CreateTable(Node):
    name: Name
    items: tuple[ColumnDef | KeyDef | ForeignKeyDef | CheckDef, ...]
    title: tuple[str, ...]
    span: Span


class CreateIndex(Node):
    name: Name
    table: Name
    columns: tuple[Name, ...]
    unique: bool
    title: tuple[str, ...]
    span: Span


class PropertyColumn(Node):
    """`column [as name]`."""

    column: Name
    name: Name | None
    span: Span


class EndDef(Node):
    """`key (columns) references table (target)`; columns that were not written are empty."""

    columns: tuple[Name, ...]
    table: Name
    target: tuple[Name, ...]
    span: Span


class VertexDef(Node):
    """A vertex table. `properties` is None for all columns, and empty for none."""

    table: Name
    key: tuple[Name, ...]
    labels: tuple[Name, ...]
    properties: tuple[PropertyColumn, ...] | None
    span: Span


class EdgeDef(Node):
    """An edge table, with its two ends."""

    table: Name
    key: tuple[Name, ...]
    source: EndDef
    destination: EndDef
    labels: tuple[Name, ...]
    properties: tuple[PropertyColumn, ...] | None
    span: Span


class CreateGraph(Node):
    name: Name
    vertices: tuple[VertexDef, ...]
    edges: tuple[EdgeDef, ...]
    title: tuple[str, ...]
    span: Span


class SchemaFile(Node):
    items: tuple[CreateTable | CreateIndex | CreateGraph, ...]
    comments: tuple[Comment, ...]
    span: Span


Expr = (
    Number
    | String
    | Truth
    | Null
    | Moment
    | Interval
    | ColumnName
    | Placeholder
    | Unary
    | Binary
    | IsNull
    | IsDistinct
    | Between
    | Like
    | InList
    | InPlaceholder
    | InQuery
    | Exists
    | ExistsPlaceholder
    | ScalarQuery
    | Case
    | Cast
    | Function
)
TableRef = TableName | TablePlaceholder | Derived
QueryBody = Select | SetOperation | Query
Clause = Unwind | Match | Create | Merge | SetClause | Detach
Operation = Query | Insert | Update | Delete | Call | Graph
Return = ReturnRows | ReturnQuery | ReturnValues
Statement = Step | ForEach | If | Assert | ReturnRows | ReturnQuery | ReturnValues | Answer
