"""The agreement between compiler and runtime: a program made ready for one engine.

A plan holds everything that is known before a run: statements as fixed text, and for each of their
parameters a binding that says where its value comes from. At run time only bound values flow. Plans are
values: equal plans dump to equal bytes, and `digest` names them.
"""

from __future__ import annotations

from typing import ClassVar

from com.node import Node
from com.schema import Type
from com.source import Span

# ---------------------------------------------------------------- what programs and plans both speak of


class Field(Node):
    """A column of some rows."""

    _whole: ClassVar[bool] = True

    name: str
    type: Type
    nullable: bool = True


class Ref(Node):
    """What a placeholder names. `kind`: parameter, step, row (the variable of a loop), or clock ($now, $today).
    `slot` tells steps and loop variables of one name apart; it is 0 for parameters and the clock."""

    _whole: ClassVar[bool] = True

    kind: str
    name: str
    slot: int = 0


class Period(Node):
    """The value of an interval: months, days and microseconds, each with its sign."""

    months: int
    days: int
    microseconds: int


class Parameter(Node):
    """A program's parameter. `kind`: value, list or rows. A value or list has a `type`; rows have `fields` and a
    `card` (one, maybe, many). `default` is a binding (a constant or the clock) or None when it must be given."""

    name: str
    kind: str
    type: Type
    fields: tuple[Field, ...]
    card: str
    nullable: bool
    default: Constant | Scalar | None


class Effect(Node):
    """What a step may do. `verb`: read, insert, update, delete (of columns of a table), call (of a function)."""

    verb: str
    name: str
    columns: tuple[str, ...] = ()


# ---------------------------------------------------------------- bindings: where a statement's values come from


class Constant(Node):
    """A value known when compiled, as a Python value (None, int, float, Decimal, str, bool, date, datetime, bytes)."""

    value: object
    type: Type


class Scalar(Node):
    """One value: a parameter (column None), the clock (column None), or a column of a step's only row or of a loop's
    row. A `maybe` step without a row gives null."""

    ref: Ref
    column: str | None
    type: Type


class Many(Node):
    """All values of a column of a step, or of a list parameter (column None), as one bound JSON array: ints as
    numbers, bools as 0 and 1, bytes as hexadecimal text, dates, timestamps and texts as text, json values as texts of
    JSON. Decimals and floats are numbers on SQLite, and texts elsewhere, which keeps them exact."""

    ref: Ref
    column: str | None
    type: Type


class Rows(Node):
    """All rows of a step or rows parameter (or the rows of a loop, for `kind` row: those of what it runs over),
    as one bound JSON array of arrays, columns in the order of `fields`; values as in Many."""

    ref: Ref
    fields: tuple[Field, ...]


class Present(Node):
    """True if the step or rows parameter has a row."""

    ref: Ref


class RunNumber(Node):
    """The number of this run."""


class StepNumber(Node):
    """The number of this step within the run, counted from 1 as steps are executed."""


class LastId(Node):
    """The last id given out in a table before this operation began."""

    table: str


class Written(Node):
    """How many rows the operation's main statements have written."""


Binding = Constant | Scalar | Many | Rows | Present | RunNumber | StepNumber | LastId | Written


class Statement(Node):
    """One statement of the engine. `binds`: (name, binding) for each named parameter in the text, which is written as
    the driver takes it: `:p1` (SQLite), `$p1` (DuckDB), or `%(p1)s` with every other % doubled (PostgreSQL, MariaDB:
    give the driver a mapping, empty or not). Parameters are cast in the text, so a json value is bound as its text,
    a bool as a bool or 0 and 1, and all else as the driver likes it. `fields` describe
    the rows it gives, and are empty if it gives none. The last `hidden` fields only order the rows (ascending, after
    which the runtime drops them): an engine's `returning` has no order of its own."""

    sql: str
    binds: tuple[tuple[str, Binding], ...]
    fields: tuple[Field, ...] = ()
    hidden: int = 0


# ---------------------------------------------------------------- templates and conditions


class Computed(Node):
    """A column of the row that the template's statement gives."""

    column: int
    type: Type


class Template(Node):
    """A text with values in it. A Many part is shown as its values joined by `, `. `statement`, if any, gives the one
    row that Computed parts are read from."""

    parts: tuple[str | Constant | Scalar | Many | Computed, ...]
    statement: Statement | None = None


class Known(Node):
    """A condition that needs no engine: whether a step has rows (or, negated, has none)."""

    present: Present
    negated: bool = False


Condition = Statement | Known
"""A condition holds if its one value is true; false and null do not hold."""

# ---------------------------------------------------------------- operations


class Read(Node):
    """A query."""

    statement: Statement


class Guard(Node):
    """A statement that must give no row; if it gives one, the run fails with the message of this code, the row's
    values filling `value`. Only CM504 (a row met twice) uses it now."""

    statement: Statement
    code: str


class Write(Node):
    """An insert, update or delete of one table, done in this order: guards; `before` statements (they put keys and
    old images into com_change); `main` statements, whose row counts add up to the rows written; `after` statements
    (they put new images into com_change); `rows`, the step's rows, unless a main statement has fields (then those
    are the step's rows). `source`: a query that is taken first, its rows bound by later statements as
    Rows(Ref('step', '', slot of `staged`)). `ids`: the table whose ids the main statements take, or empty."""

    verb: str
    table: str
    source: Statement | None
    staged: Ref | None
    guards: tuple[Guard, ...]
    before: tuple[Statement, ...]
    main: tuple[Statement, ...]
    after: tuple[Statement, ...]
    rows: Statement | None
    ids: str = ""


class Call(Node):
    """A registered function. Arguments are bindings, or columns of the one row that `statement` gives."""

    function: str
    arguments: tuple[tuple[str, Constant | Scalar | Many | Rows | Computed], ...]
    statement: Statement | None


Operation = Read | Write | Call

# ---------------------------------------------------------------- instructions


class Step(Node):
    """`card`: the number of rows that must be (one, maybe), or many when nothing needs to be checked; for writes it
    counts the rows written, or given back by `on conflict do nothing returning`. `fields` describe the step's rows.
    `needed` is false if nothing reads them. `digest` names the operation without regard to the engine. The span lies
    in the plan's text."""

    ref: Ref
    title: str
    operation: Operation
    fields: tuple[Field, ...]
    card: str
    needed: bool
    digest: str
    span: Span


class Batch(Node):
    """A loop's steps, set-based. It gives the same as the loop if no two rows of the loop agree in all `distinct`
    columns (no condition if there are none). If a step fails in it the runtime rolls back and runs again row by row,
    so that the failure names its row. A step's `card` is then counted per row of the loop: `one` wants as many rows
    written as the loop has rows."""

    distinct: tuple[str, ...]
    steps: tuple[Step, ...]


class Loop(Node):
    """`for each variable in over`."""

    variable: Ref
    over: Ref
    body: tuple[Instruction, ...]
    batch: Batch | None
    title: str
    span: Span


class Branch(Node):
    condition: Condition
    then: tuple[Instruction, ...]
    otherwise: tuple[Instruction, ...]
    title: str
    span: Span


class Assertion(Node):
    condition: Condition
    message: Template
    title: str
    span: Span


class Return(Node):
    """The outcome's rows: a query's, or a step's."""

    rows: Statement | Ref
    fields: tuple[Field, ...]
    span: Span


class Answer(Node):
    text: Template
    span: Span


Instruction = Step | Loop | Branch | Assertion | Return | Answer


class Plan(Node):
    """A program for one schema and one engine. `text` is the program as written; spans lie in it.
    `result`: the step whose rows are the outcome when no `return` is met, or None."""

    name: str
    text: str
    schema: str
    engine: str
    parameters: tuple[Parameter, ...]
    body: tuple[Instruction, ...]
    effects: tuple[Effect, ...]
    result: Ref | None


# ---------------------------------------------------------------- the journal table that plans write to

CHANGES = "com_change"
"""Row images: (run, step, n, tbl, key, before, after), primary key (run, step, n). `n` counts the rows of a step from
1; `key` is a JSON array of the primary key's values, `before` and `after` JSON objects of all columns, null where there
was or is no row. Values: ints and decimals as JSON numbers, floats as text of 17 digits, bools as 0 and 1, bytes as
hexadecimal text, all else as text."""
