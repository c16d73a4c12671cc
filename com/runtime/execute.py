"""Takes a plan made ready, parameters and a link in a transaction; gives what the program did. The one loop that runs,
dry runs and replays share: they differ only in what is done with the transaction, and in who answers calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol, assert_never

from com import diagnostics
from com.diagnostics import AssertionFailed, Message, Overflow, UnseenChanges, WrongCount
from com.plan import (
    Answer,
    Assertion,
    Branch,
    Call,
    Computed,
    Condition,
    Constant,
    Field,
    Guard,
    Instruction,
    Known,
    Loop,
    Many,
    Read,
    Return,
    Rows,
    Scalar,
    Statement,
    Step,
    Template,
    Write,
)
from com.runtime.arguments import Given
from com.runtime.bind import Frame, Program, Ready, Relation, slot
from com.runtime.canon import canonical, canonical_rows, hash_json, shown, shown_list, types_of
from com.runtime.engines import AGAIN, EngineError, Row
from com.runtime.failures import explain
from com.runtime.outcome import Ran, RunError, StepRun
from com.schema import ForeignKey, Schema, Table
from com.source import NOWHERE, Span
from com.values import MAX_INT

CAP_ROWS = 1_000
CAP_BYTES = 65_536
"""A step's rows are kept in the journal up to here; beyond, only their hash and number."""


class Calls(Protocol):
    """Who answers calls."""

    def answer(self, path: str, step: Step, call: Call, arguments: dict[str, Any], inputs: str) -> list[Row]:
        """The rows of a call, typed as the step's fields."""
        ...


class BatchFailed(Exception):
    """A loop made set-based has failed; row by row the failure will name its row."""


class Execution:
    """One try of a program."""

    def __init__(
        self,
        program: Program,
        schema: Schema,
        given: Given,
        calls: Calls,
        *,
        now: datetime,
        run: int,
        history: bool,
        batches: bool,
        ids: Mapping[str, int] | None = None,
        watched: bool = False,
    ) -> None:
        self.program = program
        self.link = program.link
        self.schema = schema
        self.calls = calls
        self.history = history
        self.batches = batches
        self.steps: list[StepRun] = []
        self.statements: list[Ran] | None = [] if watched else None
        self.rows: Relation | None = None
        self.answer: str | None = None
        self.written = 0
        self.first_ids: dict[str, int] = dict(ids or {})
        self.last_ids: dict[str, int] = dict(ids or {})
        self.counters: dict[str, int] = {}
        self.frame = Frame(now, run, self._last_id)
        self._path = ""
        self._row: dict[str, Any] | None = None
        given.put(program.plan, self.frame, lambda frame, scalar: program.value(scalar)(frame))

    def go(self) -> None:
        """Runs the whole program. RunError if it fails; the caller rolls back."""
        self._run(self.program.plan.body, "")
        result = self.program.plan.result
        if self.rows is None and result is not None:
            self.rows = self.frame.relations.get(slot(result))
        if self.history and self.written:
            self._check_keys()

    def _check_keys(self) -> None:
        """RunError if a row with a null in its key was changed: SQLite allows it, and no image could name the row."""
        for name in self.program.writes:
            table = self.schema.table(name)
            if table is None or not any(c.nullable for c in table.columns if c.name in table.primary_key):
                continue
            found = self.link.ask('select "key" from com_change where run = ? and tbl = ?', self.frame.run, name)
            if any("null" in key and None in json.loads(key) for (key,) in found):
                help_ = "give the row a key; or keep no history: --no-history"
                raise RunError(UnseenChanges(name, "a row whose key is null", help_), NOWHERE)

    def _run(self, body: tuple[Instruction, ...], prefix: str) -> None:
        for instruction in body:
            match instruction:
                case Step():
                    self._step(instruction, prefix, None)
                case Loop():
                    self._loop(instruction, prefix)
                case Branch():
                    holds = self._guarded(instruction.span, prefix + "if", self._holds, instruction.condition)
                    self._run(instruction.then if holds else instruction.otherwise, prefix)
                case Assertion():
                    self._guarded(instruction.span, prefix + "assert", self._assert, instruction)
                case Return():
                    self._guarded(instruction.span, prefix + "return", self._return, instruction)
                case Answer():
                    self.answer = self._guarded(instruction.span, prefix + "answer", self._text, instruction.text)
                case _:
                    assert_never(instruction)

    def _guarded(self, span: Span, path: str, do: Callable[[Any], Any], subject: Any) -> Any:
        """Does something at a place; what the engine says against it becomes a failure there."""
        self._path = path
        try:
            return do(subject)
        except EngineError as error:
            if error.kind in (*AGAIN, "lost"):
                raise
            operation = subject.operation if isinstance(subject, Step) else None
            raise self._failed(explain(error, self.schema, operation), span) from None

    def _failed(self, message: Message, span: Span) -> RunError:
        return RunError(message, span, self._path, self._row, self.program.plan.text)

    # ------------------------------------------------------------ steps

    def _step(self, step: Step, prefix: str, batch: int | None) -> None:
        """`batch`: over how many rows of a loop the step goes at once."""
        self.frame.step += 1
        path = prefix + (step.ref.name or f"step_{self.frame.step}")
        self._guarded(step.span, path, lambda s: self._operation(s, path, batch), step)

    def _operation(self, step: Step, path: str, batch: int | None) -> None:
        match step.operation:
            case Read(statement):
                inputs = self._inputs(step)
                rows: list[Row] | None = self._rows(self.program.ready(statement))
                count = len(rows or ())
                kind = "read"
            case Write() as write:
                inputs = self._inputs(step)
                rows, count = self._write(step, write)
                kind = write.verb
            case Call() as call:
                arguments, inputs = self._arguments(call)
                rows = self.calls.answer(path, step, call, arguments, inputs)
                count = len(rows)
                kind = "call"
        self._count(step, count if rows is None else len(rows), kind, batch)
        kept = None
        if rows is not None:
            relation = self.frame.relations[slot(step.ref)] = Relation(step.fields, rows)
            text = relation.json()
            result = relation.hash
            if len(rows) <= CAP_ROWS and len(text) <= CAP_BYTES:
                kept, relation.step = text, self.frame.step
        else:
            result = hash_json(count)
        self.steps.append(StepRun(self.frame.step, path, kind, step.digest, inputs, result, count, rows=kept))

    def _inputs(self, step: Step) -> str:
        return hash_json([[name, get(self.frame)] for name, get in self.program.inputs(step)])

    def _rows(self, ready: Ready) -> list[Row]:
        binds = ready.binds(self.frame)
        if self.statements is not None:
            self.statements.append(Ran(self._path, ready.sql, binds))
        return ready.decode(self.link.run(ready.sql, binds))

    def _effect(self, statement: Statement) -> int:
        ready = self.program.ready(statement)
        binds = ready.binds(self.frame)
        if self.statements is not None:
            self.statements.append(Ran(self._path, ready.sql, binds))
        return self.link.write(ready.sql, binds)

    def _write(self, step: Step, write: Write) -> tuple[list[Row] | None, int]:
        frame = self.frame
        frame.written = 0
        if write.source is not None and write.staged is not None:
            source = self.program.ready(write.source)
            frame.relations[slot(write.staged)] = Relation(source.fields, self._rows(source))
        for guard in write.guards:
            self._guard(guard, write, step.span)
        if self.history:
            for statement in write.before:
                self._effect(statement)
        rows: list[Row] | None = None
        if write.verb == "delete":
            self._note_ids(write.table)
        try:
            for statement in write.main:
                if statement.fields:
                    rows = (rows or []) + self._rows(self.program.ready(statement))
                    frame.written = len(rows)
                else:
                    frame.written += self._effect(statement)
        except EngineError as error:
            if error.kind in ("rule", "overflow") and self.last_ids.get(write.ids, 0) > MAX_INT - 2**32:
                raise self._failed(Overflow(f"an id of {write.table} left 64 bits"), step.span) from None
            raise
        if frame.written and not self.link.keeps_keys:
            self._check_foreign_keys(write)
        if self.history:
            for statement in write.after:
                self._effect(statement)
        wanted = step.needed or step.card != "many" or step.ref == self.program.plan.result
        if rows is None and write.rows is not None and wanted:
            rows = self._rows(self.program.ready(write.rows))
        self.written += frame.written
        if write.ids:
            self._took_ids(write.ids, frame.written)
        return rows, frame.written

    def _check_foreign_keys(self, write: Write) -> None:
        """Checks the foreign keys that a write may have broken, in place of the engine."""
        for table in self.schema.tables:
            for key in table.foreign_keys:
                outward, inward = table.name == write.table, key.table == write.table
                if (outward and write.verb != "delete") or (inward and write.verb != "insert"):
                    self._check_key(table, key)

    def _check_key(self, table: Table, key: ForeignKey) -> None:
        quote = self.link.quote
        given = " and ".join(f"com_a.{quote(c)} is not null" for c in key.columns)
        pairs = zip(key.columns, key.target, strict=True)
        fits = " and ".join(f"com_b.{quote(there)} = com_a.{quote(here)}" for here, there in pairs)
        found = self.link.ask(
            f"select 1 from {quote(table.name)} as com_a where {given}"
            f" and not exists (select 1 from {quote(key.table)} as com_b where {fits}) limit 1"
        )
        if found:
            raise EngineError("foreign_key", f"a row of {table.name} names none of {key.table}")

    def _guard(self, guard: Guard, write: Write, span: Span) -> None:
        found = self.link.run(guard.statement.sql, self.program.ready(guard.statement).binds(self.frame))
        if found:
            value = ", ".join("null" if v is None else str(v) for v in found[0])
            kind = next(m for m in vars(diagnostics).values() if getattr(m, "code", None) == guard.code)
            fields = {"table": write.table, "value": value}
            raise self._failed(kind(**{name: fields[name] for name in kind._fields}), span)

    def _count(self, step: Step, count: int, kind: str, batch: int | None) -> None:
        fits = {"one": count == (batch if batch is not None else 1), "maybe": count <= (batch or 1)}
        if not fits.get(step.card, True):
            found = "no row" if count == 0 else "1 row" if count == 1 else f"{count} rows"
            wanted = "exactly one row" if step.card == "one" else "no row or one"
            verb = {"read": "found", "call": "got"}.get(kind, "wrote")
            ways = "look at its where" if count == 0 else "narrow its where to one row, or leave the shape out"
            raise self._failed(WrongCount(step.ref.name, verb, found, step.card, wanted, ways), step.span)

    # ------------------------------------------------------------ ids

    def _last_id(self, table: str) -> int:
        if table not in self.last_ids:
            counter = self.link.ask("select last from com_id where tbl = ?", table)
            self.counters[table] = counter[0][0] if counter else 0
            last = max(self.counters[table], self._greatest_id(table), self.link.sequence(table))
            self.first_ids[table] = self.last_ids[table] = last
        return self.last_ids[table]

    def _note_ids(self, table: str) -> None:
        """Notes the greatest id of a table before rows of it go."""
        known = self.schema.table(table)
        if known is not None and known.identity is not None and known.primary_key == (known.identity.name,):
            self._last_id(table)

    def _greatest_id(self, table: str) -> int:
        known = self.schema.table(table)
        column = known.identity if known else None
        if column is None:
            return 0
        link = self.link
        found = link.ask(f"select max({link.quote(column.name)}) from {link.quote(table)}")[0][0]
        return found if isinstance(found, int) else 0

    def _took_ids(self, table: str, count: int) -> None:
        if count:
            self.last_ids[table] = max(self._last_id(table), self._greatest_id(table))

    # ------------------------------------------------------------ loops, branches, the end

    def _loop(self, loop: Loop, prefix: str) -> None:
        variable = loop.variable
        over = self.frame.relations[slot(loop.over)]
        if not over.rows:
            return
        self.frame.relations["over", variable.name, variable.slot] = over
        if loop.batch is not None and self.batches and _distinct(over, loop.batch.distinct):
            try:
                for step in loop.batch.steps:
                    self._step(step, f"{prefix}{variable.name}[*].", len(over.rows))
            except RunError as failed:
                raise BatchFailed from failed
            return
        outer = self._row
        names = [field.name for field in over.fields]
        for number, row in enumerate(over.rows, 1):
            self.frame.relations["row", variable.name, variable.slot] = Relation(over.fields, (row,))
            self._row = dict(zip(names, row, strict=True))
            self._run(loop.body, f"{prefix}{variable.name}[{number}].")
        self._row = outer

    def _holds(self, condition: Condition) -> bool:
        if isinstance(condition, Known):
            return bool(self.frame.relations[slot(condition.present.ref)].rows) != condition.negated
        ready = self.program.ready(condition)
        rows = self.link.run(ready.sql, ready.binds(self.frame))
        return bool(rows) and rows[0][0] not in (None, 0)

    def _assert(self, assertion: Assertion) -> None:
        if not self._holds(assertion.condition):
            raise self._failed(AssertionFailed(self._text(assertion.message)), assertion.span)

    def _return(self, instruction: Return) -> None:
        if isinstance(instruction.rows, Statement):
            self.rows = Relation(instruction.fields, self._rows(self.program.ready(instruction.rows)))
        else:
            self.rows = self.frame.relations[slot(instruction.rows)]

    def _text(self, template: Template) -> str:
        row = self._single(template.statement)
        return "".join([part if isinstance(part, str) else self._part(part, row) for part in template.parts])

    def _part(self, part: Constant | Scalar | Many | Computed, row: Row) -> str:
        match part:
            case Constant(value, type_):
                return shown(value, type_)
            case Scalar(type=type_):
                return shown(self.program.value(part)(self.frame), type_)
            case Many(type=type_):
                return shown_list(self.program.values(part)(self.frame), type_)
            case Computed(type=type_):
                return shown(self._computed(part, row), type_)

    def _single(self, statement: Statement | None) -> Row:
        """The one row, as the driver gives it, that computed parts are read from."""
        if statement is None:
            return ()
        ready = self.program.ready(statement)
        binds = ready.binds(self.frame)
        if self.statements is not None:
            self.statements.append(Ran(self._path, ready.sql, binds))
        return self.link.run(ready.sql, binds)[0]

    def _computed(self, part: Computed, row: Row) -> Any:
        return self.link.decoder(Field(f"column {part.column + 1}", part.type))(row[part.column])

    def _arguments(self, call: Call) -> tuple[dict[str, Any], str]:
        """A call's arguments as Python values, and the hash of their canonical form."""
        row = self._single(call.statement)
        arguments: dict[str, Any] = {}
        data: list[Any] = []
        for name, argument in call.arguments:
            match argument:
                case Constant(value, type_):
                    arguments[name] = value
                    data.append([name, canonical(value, type_)])
                case Scalar(type=type_):
                    arguments[name] = self.program.value(argument)(self.frame)
                    data.append([name, canonical(arguments[name], type_)])
                case Many(type=type_):
                    arguments[name] = list(self.program.values(argument)(self.frame))
                    data.append([name, [canonical(v, type_) for v in arguments[name]]])
                case Computed(type=type_):
                    arguments[name] = self._computed(argument, row)
                    data.append([name, canonical(arguments[name], type_)])
                case Rows(fields=fields):
                    picked = self.program.picked(argument)(self.frame)
                    arguments[name] = [dict(zip([f.name for f in fields], r, strict=True)) for r in picked]
                    data.append([name, canonical_rows(picked, types_of(fields))])
        return arguments, hash_json(data)


def _distinct(over: Relation, columns: tuple[str, ...]) -> bool:
    """True if no two rows agree in all the columns."""
    if not columns:
        return True
    places = [next(i for i, f in enumerate(over.fields) if f.name == c) for c in columns]
    try:
        return len({tuple([row[i] for i in places]) for row in over.rows}) == len(over.rows)
    except TypeError:  # JSON does not hash
        return False
