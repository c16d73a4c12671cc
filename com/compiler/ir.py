"""The checked program: names resolved, types and nullability known, order total, engine not yet chosen.

Every expression has a type and whether it may be null. Conversions that the language makes by itself are
Casts. Nothing here can be wrong for a reason that the writer of the program could mend.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from com.node import Node, walk
from com.plan import Effect, Field, Parameter, Ref
from com.schema import Table, Type
from com.source import Span

# ---------------------------------------------------------------- expressions


class Expr(Node):
    """Any expression."""

    type: Type
    nullable: bool
    span: Span


class Constant(Expr):
    """A literal as a Python value: None, int, float, Decimal, str, bool, date, datetime, bytes or Period."""

    value: object


class Column(Expr):
    """A column of a source in scope (`alias` is that of the source; in the order of a set operation it is empty and
    `name` an output column; `excluded` names the proposed row in `on conflict do update`). `adapted`: see
    com.schema.Column; it is the table's affair, and no part of what is meant."""

    _silent: ClassVar[frozenset[str]] = frozenset({"span", "adapted"})
    _dumped: ClassVar[tuple[str, ...]] = ("type", "nullable", "span", "alias", "name")

    alias: str
    name: str
    adapted: bool = False


class Value(Expr):
    """A bound value: a parameter or the clock (`column` None), a column of a step's only row or of a loop's row."""

    ref: Ref
    column: str | None


class Values(Expr):
    """All values of a step's column or of a list parameter (`column` None). Only in InValues' place and templates;
    `type` is that of one value."""

    ref: Ref
    column: str | None


class Present(Expr):
    """`exists $step`."""

    ref: Ref


class Apply(Expr):
    """A function or operator of com.functions, by its name there."""

    name: str
    args: tuple[Expr, ...]


class Case(Expr):
    """Searched case: each when is a condition. `case x when …` has become comparisons."""

    whens: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None


class Cast(Expr):
    """To `type`. `implicit` when the language makes it (int to decimal, date to timestamp, …)."""

    operand: Expr
    implicit: bool


class InItems(Expr):
    """`x in (a, b)`; an empty list of items is false."""

    operand: Expr
    items: tuple[Expr, ...]


class InValues(Expr):
    """`x in $items.c`; false when there is no value, even for null."""

    operand: Expr
    values: Values


class InQuery(Expr):
    operand: Expr
    query: Query


class Exists(Expr):
    query: Query


class Scalar(Expr):
    """A query with one column and at most one row, as a value."""

    query: Query


class OrderKey(Node):
    expr: Expr
    descending: bool
    nulls_first: bool


class Aggregate(Expr):
    """`args` are empty for count(*)."""

    name: str
    args: tuple[Expr, ...]
    distinct: bool
    order: tuple[OrderKey, ...]
    where: Expr | None


class Edge(Node):
    """An end of a window frame: unbounded preceding, preceding, current row, following, unbounded following."""

    kind: str
    offset: Expr | None


class Window(Expr):
    """`frame`: (unit, start, end) with unit rows or range, or None for the default."""

    name: str
    args: tuple[Expr, ...]
    where: Expr | None
    partition: tuple[Expr, ...]
    order: tuple[OrderKey, ...]
    frame: tuple[str, Edge, Edge] | None


# ---------------------------------------------------------------- queries


class Output(Node):
    """A named output column."""

    name: str
    expr: Expr


class TableSource(Node):
    table: Table
    alias: str


class RowsSource(Node):
    """The rows of a step or rows parameter, in their order. The pseudo-column `com_n` numbers them."""

    ref: Ref
    alias: str
    fields: tuple[Field, ...]


class QuerySource(Node):
    query: Query
    alias: str


class Join(Node):
    """`kind`: inner, left, right, full, cross. `using` has become `on`."""

    kind: str
    left: Source
    right: Source
    on: Expr | None


Source = TableSource | RowsSource | QuerySource | Join


def aliases(source: Source | None) -> set[str]:
    """The names that a source's columns go by."""
    return {leaf.alias for leaf in leaves(source)}


def conditions(source: Source | None) -> Iterator[Expr]:
    """The conditions of all joins of a source."""
    if isinstance(source, Join):
        yield from conditions(source.left)
        yield from conditions(source.right)
        if source.on is not None:
            yield source.on


def has_query(node: Node) -> bool:
    """True if an expression holds a query."""
    return any(isinstance(n, Scalar | Exists | InQuery) for n in walk(node))


def leaves(source: Source | None) -> Iterator[TableSource | RowsSource | QuerySource]:
    """What a source joins."""
    if isinstance(source, Join):
        yield from leaves(source.left)
        yield from leaves(source.right)
    elif source is not None:
        yield source


def conjuncts(e: Expr) -> Iterator[Expr]:
    """The conditions that all hold where one holds."""
    if isinstance(e, Apply) and e.name == "and":
        for arg in e.args:
            yield from conjuncts(arg)
    else:
        yield e


class Select(Node):
    """`order` is total where it can be observed: the check has appended keys. Output names are unique."""

    distinct: bool
    columns: tuple[Output, ...]
    source: Source | None
    where: Expr | None
    group: tuple[Expr, ...]
    having: Expr | None
    order: tuple[OrderKey, ...]
    limit: Expr | None
    offset: Expr | None


class SetQuery(Node):
    """`op`: union, intersect, except. Both sides have been cast to the types of `fields`. The order's keys are
    Columns of alias '' that name output columns."""

    op: str
    all: bool
    left: Query
    right: Query
    fields: tuple[Field, ...]
    order: tuple[OrderKey, ...]
    limit: Expr | None
    offset: Expr | None


Query = Select | SetQuery

# ---------------------------------------------------------------- operations


class Read(Node):
    query: Query


class Tuples(Node):
    """`values (…), (…)`."""

    rows: tuple[tuple[Expr, ...], ...]


class Conflict(Node):
    """`columns` are a key of the table, in its order. No assignments: do nothing. Assigned expressions speak of the
    old row by the table's name as alias, and of the proposed one by `excluded`."""

    columns: tuple[str, ...]
    assignments: tuple[tuple[str, Expr], ...]


class Insert(Node):
    """Values are already of the columns' types. `identity`: the column whose ids the runtime takes, or None.
    `returning` speaks of the row by the table's name as alias; None when nothing is returned by name: then the
    step's rows are the table's columns of the rows written."""

    table: Table
    columns: tuple[str, ...]
    source: Tuples | Query
    conflict: Conflict | None
    identity: str | None
    returning: tuple[Output, ...]


class Update(Node):
    """`alias` names the target in `where`, assignments and returning."""

    table: Table
    alias: str
    assignments: tuple[tuple[str, Expr], ...]
    source: Source | None
    where: Expr
    returning: tuple[Output, ...]


class Delete(Node):
    table: Table
    alias: str
    where: Expr
    returning: tuple[Output, ...]


class Call(Node):
    """`fields` are the columns of its result."""

    function: str
    arguments: tuple[tuple[str, Expr | RowsArgument], ...]


class RowsArgument(Node):
    """A whole step given to a call."""

    ref: Ref
    fields: tuple[Field, ...]


Operation = Read | Insert | Update | Delete | Call

# ---------------------------------------------------------------- statements


class Step(Node):
    """`inferred` is the shape that the operation has by itself, `shape` what it has for its readers: when `shape` is
    narrower, the runtime checks. `needed` is false if nothing reads the step's rows."""

    ref: Ref
    title: str
    operation: Operation
    fields: tuple[Field, ...]
    inferred: str
    shape: str
    needed: bool
    effects: tuple[Effect, ...]
    span: Span


class ForEach(Node):
    variable: Ref
    over: Ref
    fields: tuple[Field, ...]
    body: tuple[Statement, ...]
    title: str
    span: Span


class If(Node):
    condition: Expr
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]
    title: str
    span: Span


class Assert(Node):
    condition: Expr
    message: Template
    title: str
    span: Span


class Template(Node):
    """Texts and expressions in turn; a Values expression is shown joined by `, `."""

    parts: tuple[str | Expr, ...]


class Return(Node):
    rows: Query | Ref
    fields: tuple[Field, ...]
    span: Span


class Answer(Node):
    text: Template
    span: Span


Statement = Step | ForEach | If | Assert | Return | Answer


class Program(Node):
    """`result`: the step whose rows are the outcome when no `return` is met."""

    name: str
    parameters: tuple[Parameter, ...]
    body: tuple[Statement, ...]
    effects: tuple[Effect, ...]
    result: Ref | None
