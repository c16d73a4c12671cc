"""From bindings to values: a plan made ready for many runs, each binding a function of the run's frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from operator import itemgetter
from typing import Any

from com.node import digest
from com.plan import (
    Batch,
    Binding,
    Branch,
    Constant,
    Field,
    Instruction,
    LastId,
    Loop,
    Many,
    Plan,
    Present,
    Read,
    Ref,
    Rows,
    RunNumber,
    Scalar,
    Statement,
    Step,
    StepNumber,
    Write,
    Written,
)
from com.runtime.canon import canonical, canonical_rows, hash_text, to_json, types_of
from com.runtime.engines import Link, Row
from com.schema import BOOL

Slot = tuple[str, str, int]
"""Kind, name and slot of a Ref; kind `over` for all rows of a loop, `row` for the one it is at."""


class Relation:
    """Rows that were taken once. What is made of them for binding is kept. `step`: the number of the step whose record
    keeps them, or 0."""

    __slots__ = ("fields", "rows", "bound", "step", "_hash")

    def __init__(self, fields: tuple[Field, ...], rows: Sequence[Row]) -> None:
        self.fields = fields
        self.rows = rows
        self.bound: dict[int, Any] = {}
        self.step = 0
        self._hash = ""

    @property
    def hash(self) -> str:
        """The hash of the rows' canonical JSON."""
        if not self._hash:
            self._hash = hash_text(self.json())
        return self._hash

    def json(self) -> str:
        """The rows' canonical JSON; the hash is that of this text."""
        text = to_json(canonical_rows(self.rows, types_of(self.fields)))
        self._hash = self._hash or hash_text(text)
        return text


class Frame:
    """What is known while a run goes on."""

    __slots__ = ("values", "relations", "now", "today", "run", "step", "written", "last_id")

    def __init__(self, now: datetime, run: int, last_id: Callable[[str], int]) -> None:
        self.values: dict[str, Any] = {}
        self.relations: dict[Slot, Relation] = {}
        self.now = now
        self.today: date = now.date()
        self.run = run
        self.step = 0
        self.written = 0
        self.last_id = last_id


Getter = Callable[[Frame], Any]
Input = tuple[str, Getter]
"""What a step's inputs hash is made of: a name, and the canonical JSON of its value."""


class Ready:
    """A statement with its binders and decoders."""

    __slots__ = ("sql", "binders", "decoders", "fields", "hidden", "inputs")

    def __init__(
        self,
        sql: str,
        binders: tuple[tuple[str, Getter], ...],
        decoders: tuple[Callable[[Any], Any], ...],
        fields: tuple[Field, ...],
        hidden: int,
        inputs: tuple[Input, ...],
    ) -> None:
        self.sql = sql
        self.binders = binders
        self.decoders = decoders
        self.fields = fields
        self.hidden = hidden
        self.inputs = inputs

    def binds(self, frame: Frame) -> dict[str, Any]:
        """The values for the driver, by name."""
        return {name: get(frame) for name, get in self.binders}

    def decode(self, rows: list[Row]) -> list[Row]:
        """The driver's rows as typed rows, in the order that hidden columns give, without these."""
        decoders = self.decoders
        typed = [tuple([d(v) for d, v in zip(decoders, row, strict=True)]) for row in rows]
        if self.hidden:
            hidden = itemgetter(slice(len(decoders) - self.hidden, None))
            try:
                typed = sorted(typed, key=hidden)
            except TypeError:  # there are nulls, or what the column's type forbids
                typed = sorted(typed, key=lambda row: [_rank(value) for value in hidden(row)])
            typed = [row[: -self.hidden] for row in typed]
        return typed


def _rank(value: Any) -> tuple[int, str, Any]:
    """Puts any values in an order: nulls first, then numbers, then the others by kind."""
    if value is None:
        return 0, "", 0
    if isinstance(value, int | float | Decimal):
        return 1, "", value
    plain = isinstance(value, str | bytes | date)
    return 2, type(value).__name__, value if plain else repr(value)


class Program:
    """A plan made ready for one link: everything that does not depend on a run."""

    def __init__(self, plan: Plan, link: Link) -> None:
        self.plan = plan
        self.link = link
        self.digest = digest(plan)
        self.program = hash_text(plan.text)
        self.schema = plan.schema
        self.writes = tuple(sorted({e.name for e in plan.effects if e.verb in ("insert", "update", "delete")}))
        self.fields: dict[Slot, tuple[Field, ...]] = {}
        self._ready: dict[int, Ready] = {}
        self._inputs: dict[int, tuple[Input, ...]] = {}
        self._marks: dict[Binding, int] = {}
        for parameter in plan.parameters:
            fields = parameter.fields or (Field(parameter.name, parameter.type, parameter.nullable),)
            self.fields["parameter", parameter.name, 0] = fields
        for step in steps_of(plan.body):
            self.fields[slot(step.ref)] = step.fields
            operation = step.operation
            if isinstance(operation, Write) and operation.staged is not None and operation.source is not None:
                self.fields[slot(operation.staged)] = visible(operation.source)
        for loop in loops_of(plan.body):
            fields = self.fields[slot(loop.over)]
            self.fields["row", loop.variable.name, loop.variable.slot] = fields
            self.fields["over", loop.variable.name, loop.variable.slot] = fields

    def ready(self, statement: Statement) -> Ready:
        """The statement with its binders, made once."""
        found = self._ready.get(id(statement))
        if found is None:
            found = self._ready[id(statement)] = Ready(
                statement.sql,
                tuple((name, self.binder(binding)) for name, binding in statement.binds),
                tuple(self.link.decoder(field) for field in statement.fields),
                visible(statement),
                statement.hidden,
                tuple(i for _, binding in statement.binds if (i := self.input(binding)) is not None),
            )
        return found

    def inputs(self, step: Step) -> tuple[Input, ...]:
        """What the step's operation takes from elsewhere, each once, in order of name."""
        found = self._inputs.get(id(step))
        if found is None:
            named: dict[str, Getter] = {}
            for statement in statements_of(step):
                named.update(self.ready(statement).inputs)
            operation = step.operation
            for _, argument in getattr(operation, "arguments", ()):
                if isinstance(argument, Scalar | Many | Rows) and (made := self.input(argument)) is not None:
                    named[made[0]] = made[1]
            if isinstance(operation, Write) and operation.staged is not None:
                own = f"step {operation.staged.name} {operation.staged.slot}"
                named = {name: get for name, get in named.items() if not name.startswith(own)}
            found = self._inputs[id(step)] = tuple(sorted(named.items()))
        return found

    def binder(self, binding: Binding) -> Getter:
        """A function of the frame that gives the value for the driver."""
        link = self.link
        match binding:
            case Constant(value, type_):
                fixed = link.encode(value, type_)
                return lambda frame: fixed
            case Scalar(type=type_):
                get, encode = self.value(binding), link.encode
                return lambda frame: encode(get(frame), type_)
            case Many(ref, column, type_):
                return self._many(ref, column, lambda values: link.encode_list(values, type_), self._mark(binding))
            case Rows(ref, fields):
                return self._rows(ref, fields, self._mark(binding))
            case Present(ref):
                at = slot(ref)
                return lambda frame: link.encode(bool(frame.relations[at].rows), BOOL)
            case RunNumber():
                return lambda frame: frame.run
            case StepNumber():
                return lambda frame: frame.step
            case Written():
                return lambda frame: frame.written
            case LastId(table):
                return lambda frame: frame.last_id(table)

    def _mark(self, binding: Binding) -> int:
        """The number under which a relation keeps what equal bindings made of it."""
        return self._marks.setdefault(binding, len(self._marks))

    def value(self, scalar: Scalar) -> Getter:
        """A function of the frame that gives a scalar's typed value."""
        ref, column = scalar.ref, scalar.column
        if ref.kind == "clock":
            return _today if ref.name.lstrip("$") == "today" else _now
        if column is None:
            name = ref.name
            return lambda frame: frame.values[name]
        at, index = slot(ref), self._index(slot(ref), column)

        def get(frame: Frame) -> Any:
            rows = frame.relations[at].rows
            return rows[0][index] if rows else None

        return get

    def values(self, many: Many) -> Callable[[Frame], Sequence[Any]]:
        """A function of the frame that gives all values of a list or column."""
        if many.column is None:
            name = many.ref.name
            return lambda frame: frame.values[name]
        at = _whole(many.ref)
        index = self._index(at, many.column)
        return lambda frame: [row[index] for row in frame.relations[at].rows]

    def picked(self, rows: Rows) -> Callable[[Frame], list[Row]]:
        """A function of the frame that gives typed rows of the wanted columns."""
        at = _whole(rows.ref)
        indexes = [self._index(at, field.name) for field in rows.fields]
        return lambda frame: [tuple([row[i] for i in indexes]) for row in frame.relations[at].rows]

    def _many(self, ref: Ref, column: str | None, encode: Callable[[Sequence[Any]], Any], mark: int) -> Getter:
        if column is None:
            name = ref.name
            return lambda frame: encode(frame.values[name])
        at = _whole(ref)
        index = self._index(at, column)

        def get(frame: Frame) -> Any:
            relation = frame.relations[at]
            if mark not in relation.bound:
                relation.bound[mark] = encode([row[index] for row in relation.rows])
            return relation.bound[mark]

        return get

    def _rows(self, ref: Ref, fields: tuple[Field, ...], mark: int) -> Getter:
        at, encode = _whole(ref), self.link.encode_rows
        indexes = [self._index(at, field.name) for field in fields]
        same = indexes == list(range(len(self.fields[at])))

        def get(frame: Frame) -> Any:
            relation = frame.relations[at]
            if mark not in relation.bound:
                rows = relation.rows if same else [tuple([row[i] for i in indexes]) for row in relation.rows]
                relation.bound[mark] = encode(rows, fields)
            return relation.bound[mark]

        return get

    def _index(self, at: Slot, column: str) -> int:
        return next(i for i, field in enumerate(self.fields[at]) if field.name == column)

    def input(self, binding: object) -> Input | None:
        """What a binding takes from parameters, steps and rows, as canonical JSON; None if it takes nothing."""
        match binding:
            case Scalar(ref, column, type_):
                get = self.value(binding)
                return f"{ref.kind} {ref.name} {ref.slot} {column or ''}", lambda frame: canonical(get(frame), type_)
            case Many(ref, None, type_):
                values = self.values(binding)
                return f"list {ref.name}", lambda frame: [canonical(v, type_) for v in values(frame)]
            case Many(ref=ref) | Rows(ref=ref) | Present(ref=ref):
                at = _whole(ref)
                return f"{ref.kind} {ref.name} {ref.slot} *", lambda frame: frame.relations[at].hash
            case _:
                return None


def _now(frame: Frame) -> datetime:
    return frame.now


def _today(frame: Frame) -> date:
    return frame.today


def slot(ref: Ref) -> Slot:
    return ref.kind, ref.name, ref.slot


def _whole(ref: Ref) -> Slot:
    return ("over" if ref.kind == "row" else ref.kind), ref.name, ref.slot


def visible(statement: Statement) -> tuple[Field, ...]:
    """The fields of a statement without the hidden ones."""
    return statement.fields[: len(statement.fields) - statement.hidden]


def statements_of(step: Step) -> Iterator[Statement]:
    """The statements that say what a step does, without those that only record it."""
    match step.operation:
        case Read(statement):
            yield statement
        case Write(source=source, guards=guards, main=main, rows=rows):
            if source is not None:
                yield source
            yield from (guard.statement for guard in guards)
            yield from main
            if rows is not None:
                yield rows
        case call:
            if call.statement is not None:
                yield call.statement


def steps_of(body: tuple[Instruction, ...]) -> Iterator[Step]:
    """Every step of a plan, those of batches too."""
    for instruction in body:
        match instruction:
            case Step():
                yield instruction
            case Loop(body=inner, batch=batch):
                yield from steps_of(inner)
                if isinstance(batch, Batch):
                    yield from batch.steps
            case Branch(then=then, otherwise=otherwise):
                yield from steps_of(then)
                yield from steps_of(otherwise)
            case _:
                pass


def loops_of(body: tuple[Instruction, ...]) -> Iterator[Loop]:
    """Every loop of a plan, outer ones first."""
    for instruction in body:
        match instruction:
            case Loop(body=inner):
                yield instruction
                yield from loops_of(inner)
            case Branch(then=then, otherwise=otherwise):
                yield from loops_of(then)
                yield from loops_of(otherwise)
            case _:
                pass
