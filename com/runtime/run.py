"""One run as one transaction, its journal rows included: retries, calls, idempotency keys, lost connections."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any
from zoneinfo import ZoneInfo

from com.diagnostics import Busy, CallUnsettled, Error, KeyReused, Lost, MustChange, TakenUp
from com.node import Node, dump
from com.plan import Field, Plan
from com.runtime import journal
from com.runtime.arguments import Given
from com.runtime.bind import Program, Relation
from com.runtime.calls import NeedCall, Recorded, Refusal, Registry, answered, make, recorded
from com.runtime.canon import hash_json, restore_rows, to_json, types_of
from com.runtime.engines import AGAIN, WAITS, EngineError, Link, Patience
from com.runtime.execute import CAP_BYTES, CAP_ROWS, BatchFailed, Execution
from com.runtime.failures import explain
from com.runtime.history import Changes, Image, read_images, step_hashes
from com.runtime.journal import CallRow, Head, RunRow, StepRow
from com.runtime.outcome import Outcome, RunError, StepRun
from com.schema import Schema, dump_schema, parse_type
from com.source import NOWHERE

MOVES = 5
"""So often a call is made again because its inputs have changed."""

PATIENCE = 5.0
"""So many seconds com waits for the outcome of a run that somebody else has taken up."""


def real_time() -> int:
    """Microseconds since 1970, UTC: the one place where the runtime looks at a clock."""
    return time.time_ns() // 1000


class Order(Node):
    """What is to be run, and how. `clock` is local to `zone`; `number` and `ids` are given when a journal is replayed
    or rebuilt, `at` (microseconds) too; `parent` names the run that this one undoes or repeats."""

    given: Given
    clock: datetime
    zone: str
    history: bool = True
    key: str | None = None
    mode: str = "run"
    parent: str | None = None
    approve: str | None = None
    at: int | None = None


def local_time(micros: int, zone: str) -> datetime:
    """A moment as the wall clock of a zone shows it."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    return moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def _micros(clock: datetime, zone: str) -> int:
    since = clock.replace(tzinfo=ZoneInfo(zone)) - datetime(1970, 1, 1, tzinfo=UTC)
    return since // timedelta(microseconds=1)


class Runner:
    """Runs programs on one link. It lasts as long as the memory is open, and remembers what it has made sure of."""

    def __init__(self, link: Link, registry: Registry) -> None:
        self.link = link
        self.registry = registry
        self.kept: set[str] = set()
        self.has_journal = False

    # ------------------------------------------------------------ running

    def run(
        self, program: Program, schema: Schema, order: Order, number: int | None = None, calls: Sequence[CallRow] = ()
    ) -> Outcome:
        """Runs to the end, or raises RunError and leaves memory as it was. A journal that is rebuilt gives the run's
        number and recorded calls."""
        return _Attempts(self, program, schema, order, number, calls).run()

    def read(self, program: Program, schema: Schema, order: Order) -> Outcome:
        """Runs a program that writes nothing on a memory that is only read: nothing is journaled."""
        return self.preview(program, schema, order, Recorded(), watched=False)

    def preview(self, program: Program, schema: Schema, order: Order, calls: Recorded, watched: bool = True) -> Outcome:
        """Runs, and gives the transaction up whatever happens."""
        link, batches, patience = self.link, True, Patience()
        while True:
            try:
                link.begin()
                if not link.read_only and not journal.exists(link):
                    journal.create(link, passing=True)
                number = 0 if link.read_only else journal.head(link).run + 1
                done = execution(program, schema, order, calls, number, batches, watched=watched)
                done.go()
                images = read_images(link, schema, number) if done.written and order.history else []
                return _preview(done, images, order)
            except BatchFailed:
                batches = False
            except NeedCall as need:
                link.rollback()
                calls.record(need, _made(self.registry, need, program.plan))
            except EngineError as error:
                link.rollback()
                _wait(error, patience, schema)
            finally:
                link.rollback()


def execution(
    program: Program,
    schema: Schema,
    order: Order,
    calls: Recorded,
    number: int,
    batches: bool,
    ids: Mapping[str, int] | None = None,
    watched: bool = False,
) -> Execution:
    return Execution(
        program,
        schema,
        order.given,
        calls,
        now=order.clock,
        run=number,
        history=order.history,
        batches=batches,
        ids=ids,
        watched=watched,
    )


def _wait(error: EngineError, patience: Patience, schema: Schema) -> None:
    """Waits before the next try; RunError when there were enough."""
    if error.kind not in AGAIN:
        raise RunError(explain(error, schema, None), NOWHERE) from None
    if not patience.wait(error):
        raise RunError(Busy(patience.tries), NOWHERE) from None


def _made(registry: Registry, need: NeedCall, plan: Plan) -> list[tuple[Any, ...]]:
    try:
        return make(registry, need.call, need.step, need.arguments)
    except Refusal as refusal:
        raise RunError(refusal.message, need.step.span, need.path, text=plan.text) from refusal.__cause__


def preview_id(program: Program, given: dict[str, Any], changes: Changes, done: Execution) -> str:
    """What names a preview: the hash of the program, its parameters, the schema, the rows changed, and how many rows
    each step read or wrote."""
    counts = [[step.path, step.count] for step in done.steps]
    return hash_json([program.program, given, program.schema, changes.canonical(), counts])


def _preview(done: Execution, images: list[Image], order: Order) -> Outcome:
    program, changes = done.program, Changes(images)
    rows, fields = rows_of(done)
    steps = _steps(done, step_hashes(images))
    name = preview_id(program, order.given.json(program.plan), changes, done)
    return Outcome(rows, fields, done.answer, changes, steps, None, name, tuple(done.statements or ()))


def rows_of(done: Execution) -> tuple[tuple[tuple[Any, ...], ...], tuple[Field, ...]]:
    relation = done.rows
    return (tuple(relation.rows), relation.fields) if relation else ((), ())


def _steps(done: Execution, hashes: Mapping[int, str]) -> tuple[StepRun, ...]:
    return tuple(s.with_(changes=hashes[s.number]) if s.number in hashes else s for s in done.steps)


class _NotOurs(Exception):
    """The pending run was taken up by somebody else, or was finished."""


class _Attempts:
    """The tries of one run. `attempt` is the run's counter in the journal as this one has set it; `sent` the number,
    digest and outcome of a try whose commit was not answered."""

    def __init__(
        self,
        runner: Runner,
        program: Program,
        schema: Schema,
        order: Order,
        number: int | None,
        calls: Sequence[CallRow],
    ) -> None:
        self.runner = runner
        self.number = number
        self.link = runner.link
        self.program = program
        self.schema = schema
        self.order = order
        self.started = real_time() if order.at is None else order.at
        self.given = order.given.json(program.plan)
        self.told = calls
        self.calls = recorded(calls, may_call=number is None)
        self.failed_call: CallRow | None = None
        self.moved = 0
        self.reserved: int | None = None
        self.attempt = 0
        self.row: RunRow | None = None
        self.base = 0
        self.patience = Patience()
        self.sent: tuple[int, str | None, Outcome] | None = None
        self.taken: dict[str, int] = {}

    def run(self) -> Outcome:
        try:
            return self._tries()
        except _NotOurs:
            self._give_up()
        except RunError as failed:
            self._give_up()
            try:
                self._record(failed)
            except _NotOurs:
                self._give_up()
            else:
                raise
        except BaseException:
            self._give_up()
            raise
        return self._others()

    def _tries(self) -> Outcome:
        batches = True
        while True:
            try:
                return self._arrived() or self._try(batches)
            except BatchFailed:
                self.link.rollback()
                batches = False
            except NeedCall as need:
                self.link.rollback()
                self._call(need)
            except EngineError as error:
                self._again(error)

    def _give_up(self) -> None:
        try:
            self.link.rollback()
        except EngineError:  # the engine has rolled back already, or the connection is gone with its transaction
            self.link.reopen()

    def _again(self, error: EngineError) -> None:
        """Gives a try up, and waits before the next, on a new connection if the old one is lost; RunError when there
        were enough."""
        lost = error.kind == "lost" and self.link.is_server
        if not lost:
            self._give_up()
            _wait(error, self.patience, self.schema)
            return
        while self.patience.wait(error):
            try:
                self.link.reopen()
                return
            except Error:  # nobody is there yet
                pass
        if self.sent is None:
            raise RunError(explain(error, self.schema, None), NOWHERE) from None
        raise self._unsure()

    def _unsure(self) -> RunError:
        """Nobody could be asked whether what was sent has arrived."""
        number = self.sent[0] if self.sent else 0
        help_ = "look it up before you run it again: com log"
        return RunError(Lost(f"may have been recorded as run {number}, or not", help_), NOWHERE)

    def _try(self, batches: bool) -> Outcome:
        link, order, schema = self.link, self.order, self.schema
        self._journal()
        if order.key is not None and self.reserved is None:
            earlier = self._earlier(order.key)
            if earlier is not None:
                link.rollback()
                return earlier
        else:
            self._check_ours()
        head = journal.head(link)
        if head.commits == 0 and journal.meta(link, "held_rows") is None:
            journal.begin(link, schema)
        self.base = head.commits
        number = self.reserved or self.number or head.run + 1
        if self.number is not None:
            for call in self.told:
                journal.write_call(link, call.with_(run=number))
        done = execution(self.program, schema, self.order, self.calls, number, batches)
        done.go()
        images = read_images(link, schema, number) if done.written and order.history else []
        changes = Changes(images)
        if order.approve is not None:
            found = preview_id(self.program, self.given, changes, done)
            if found != order.approve:
                raise RunError(MustChange(order.approve, found), NOWHERE)
        outcome = self._write(done, head, number, images, changes)
        return self._commit(number, outcome)

    def _journal(self) -> None:
        if not self.runner.has_journal and not journal.exists(self.link):
            journal.create(self.link)

    def _commit(self, number: int, outcome: Outcome) -> Outcome:
        try:
            self.link.commit()
        except EngineError as error:
            known = self.link.is_server and error.kind in AGAIN  # of SQLite's commit it is not known what it did
            if self.link.in_transaction or known:
                raise
            self.sent = number, self.row.digest if self.row else None, outcome
            if self.link.is_server:
                raise EngineError("lost", error.said) from None
            self._decide(error)
        self._done()
        return outcome

    def _done(self) -> None:
        """After the commit. A sequence never goes back: one that had moved before it would leave gaps if it failed."""
        with suppress(EngineError):
            for table, last in self.taken.items():
                self.link.move_sequence(table, last)
        self.runner.has_journal = True
        self.runner.kept |= {self.program.program, self.program.digest, self.program.schema}

    def _decide(self, error: EngineError) -> None:
        """The commit failed otherwise than by itself: looks up whether the run is there."""
        try:
            self.link.reopen()
            there = self._is_there()
        except (EngineError, Error):
            raise self._unsure() from None
        if not there:
            self.sent = None
            raise EngineError("lost", error.said)

    def _is_there(self) -> bool:
        number, digest, _ = self.sent or (0, None, None)
        found = journal.exists(self.link) and self.link.ask("select digest from com_run where run = ?", number)
        return bool(found) and found == [(digest,)]

    def _arrived(self) -> Outcome | None:
        """Begins the transaction of a try. The outcome of an earlier one, if its commit has arrived though nobody said
        so. If it had not yet, the two would change the same row of com_head, and only one of them can."""
        self.link.begin()
        if self.sent is None or not self._is_there():
            return None
        self.link.rollback()
        self._done()
        return self.sent[2]

    # ------------------------------------------------------------ writing the journal

    def _pending(self, number: int, **known: Any) -> RunRow:
        program, order, link = self.program, self.order, self.link
        values: dict[str, Any] = {
            "run": number,
            "program": program.program,
            "schema_hash": program.schema,
            "plan": program.digest,
            "engine": link.name,
            "engine_version": link.version,
            "parameters": to_json(self.given),
            "clock": str(order.clock),
            "zone": order.zone,
            "mode": order.mode,
            "history": int(order.history),
            "base": self.base,
            "ids": "{}",
            "status": "pending",
            "code": None,
            "message": None,
            "path": None,
            "outcome": None,
            "result": None,
            "answer": None,
            "written": 0,
            "parent": order.parent,
            "idempotency": order.key,
            "started": self.started,
            "ended": None,
            "attempt": self.attempt,
            "calls": None,
            "steps": None,
            "digest": None,
        }
        return RunRow(**(values | known))

    def _keep(self) -> None:
        """Keeps the texts that the run's row names by their hashes."""
        program, kept = self.program, self.runner.kept
        if program.program not in kept:
            journal.keep(self.link, "com_program", program.program, program.plan.name, program.plan.text)
        if program.schema not in kept:
            journal.keep(self.link, "com_schema", program.schema, dump_schema(self.schema))
        if program.digest not in kept:
            journal.keep(self.link, "com_blob", program.digest, to_json(dump(program.plan)))

    def _write(self, done: Execution, head: Head, number: int, images: list[Image], changes: Changes) -> Outcome:
        link, order = self.link, self.order
        hashes = step_hashes(images)
        steps = _steps(done, hashes)
        rows, fields = rows_of(done)
        changed = hash_json([[s, hashes[s]] for s in sorted(hashes)]) if order.history else ""
        result, outcome = result_of(done, changed, whole=order.key is not None)
        self._keep()
        ended = real_time() if order.at is None else order.at
        step_rows = [_step_row(number, s) for s in steps]
        self.row = journal.sealed(
            self._pending(
                number,
                ids=to_json(done.first_ids),
                status="done",
                outcome=outcome,
                result=result,
                answer=done.answer,
                written=done.written,
                ended=ended,
                attempt=self.attempt + self.patience.tries,
            ),
            step_rows,
            journal.read_calls(link, number) if self.calls.results else (),
        )
        journal.write_run(link, self.row, step_rows, replace=self.reserved is not None)
        if done.written:
            at = max(head.time, _micros(order.clock, order.zone))
            head = journal.write_commit(link, head, self.row, at, changed)
        else:
            head = head.with_(run=max(head.run, number))
        journal.write_head(link, head)
        self._write_ids(done)
        return Outcome(rows, fields, done.answer, changes, steps, number)

    def _write_ids(self, done: Execution) -> None:
        self.taken = {}
        for table, last in done.last_ids.items():
            if last != done.counters.get(table):
                self.link.put("delete from com_id where tbl = ?", [[table]])
                self.link.put("insert into com_id values (?, ?)", [[table, last]])
                self.taken[table] = last

    def _record(self, failed: RunError) -> None:
        """Writes the failed run's row, in a transaction of its own."""
        if self.sent is not None:
            return
        patience = Patience()
        while True:
            try:
                self.link.begin()
                number = self._write_failed(failed)
                self.link.commit()
                failed.run_id = number
                self.runner.has_journal = True
                return
            except EngineError as error:  # what could not be written cannot be recorded either
                try:
                    self._give_up()
                except Error:
                    return
                if error.kind not in AGAIN or isinstance(failed.message, Busy) or not patience.wait(error):
                    return

    def _write_failed(self, failed: RunError) -> int:
        link, message = self.link, failed.message
        self._check_ours()
        self._journal()
        head = journal.head(link)
        number = self.reserved or head.run + 1
        self._keep()
        if self.failed_call is not None:
            journal.write_call(link, self.failed_call.with_(run=number))
        row = journal.sealed(
            self._pending(
                number,
                status="failed",
                code=message.code,
                message=message.fill(message.text),
                path=failed.path,
                outcome=hash_json([message.code, dump(message), failed.path]),
                idempotency=None,
                base=self.base or head.commits,
                ended=real_time() if self.order.at is None else self.order.at,
                attempt=self.attempt + self.patience.tries,
            ),
            [],
            journal.read_calls(link, number),
        )
        journal.write_run(link, row, [], replace=self.reserved is not None)
        journal.write_head(link, head.with_(run=max(head.run, number)))
        return number

    # ------------------------------------------------------------ calls and keys

    def _call(self, need: NeedCall) -> None:
        """Makes a call while no transaction is open, and records its result in a commit of its own."""
        if self.reserved is None:
            self._commits(self._reserve)
        number = self.reserved
        if number is None:  # the key was used meanwhile
            return
        call = CallRow(number, need.path, need.call.function, need.inputs, None)
        try:
            if need.path in self.calls.results:
                self.moved += 1
                if self.moved >= MOVES:
                    unsettled = CallUnsettled(need.call.function, MOVES)
                    raise RunError(unsettled, need.step.span, need.path, text=self.program.plan.text)
            rows = _made(self.runner.registry, need, self.program.plan)
        except RunError as failed:
            self.failed_call = call.with_(failure=to_json(dump(failed.message)))
            raise
        call = call.with_(result=to_json(self.calls.record(need, rows)))
        self._commits(lambda: self._write_call(call))

    def _write_call(self, call: CallRow) -> None:
        self._check_ours()
        self.calls.results[call.path] = answered(journal.write_call(self.link, call))

    def _reserve(self) -> None:
        self._journal()
        if self.order.key is not None and journal.find_key(self.link, self.order.key) is not None:
            return
        head = journal.head(self.link)
        self.attempt = 1
        self._keep()
        journal.write_run(self.link, self._pending(head.run + 1), [], replace=False)
        journal.write_head(self.link, head.with_(run=head.run + 1))
        self.reserved = head.run + 1

    def _check_ours(self) -> None:
        """Inside a transaction: whether the reserved run may still be finished here."""
        if self.reserved is not None and not journal.owns(self.link, self.reserved, self.attempt):
            raise _NotOurs

    def _others(self) -> Outcome:
        """The outcome of the run that somebody else has taken up, as soon as it is there."""
        key, number = self.order.key, self.reserved or 0
        until = time.monotonic() + PATIENCE
        while True:
            try:
                row = journal.find_key(self.link, key) if key is not None else None
                if row is not None and row.run == number and row.status == "done":
                    return read_outcome(self.link, self.schema, row).with_(repeated=True)
                if row is None or row.run != number:
                    found = self.link.ask("select code, message from com_run where run = ?", number)
                    state = f"failed there: {found[0][0]} {found[0][1]}" if found and found[0][0] else "is gone"
                    raise RunError(TakenUp(number, state), NOWHERE)
            except EngineError as error:
                if error.kind not in AGAIN:
                    raise RunError(explain(error, self.schema, None), NOWHERE) from None
            if time.monotonic() > until:
                raise RunError(TakenUp(number, "is not finished there"), NOWHERE)
            time.sleep(WAITS[1])

    def _commits(self, do: Any) -> None:
        """Does something in a transaction of its own, again while the memory is busy."""
        patience = Patience()
        while True:
            try:
                self.link.begin()
                do()
                self.link.commit()
                return
            except EngineError as error:
                self._give_up()
                _wait(error, patience, self.schema)

    def _earlier(self, key: str) -> Outcome | None:
        """The outcome of the run that was made with this key. A run that was never finished is taken up again."""
        row = journal.find_key(self.link, key)
        if row is None:
            return None
        if row.program != self.program.program or row.parameters != to_json(self.given):
            raise Error(KeyReused(key, row.run))
        if row.status == "pending":
            attempt = journal.take_up(self.link, row)
            calls = recorded(journal.read_calls(self.link, row.run))
            self.link.commit()
            self.reserved, self.attempt, self.calls = row.run, attempt, calls
            self.order = self.order.with_(clock=datetime.fromisoformat(row.clock), zone=row.zone)
            self.link.begin()
            self._check_ours()
            return None
        return read_outcome(self.link, self.schema, row).with_(repeated=True)


_STEP = attrgetter(*StepRow._fields[2:])


def _step_row(number: int, step: StepRun) -> StepRow:
    return StepRow(number, step.number, *_STEP(step))


def result_of(done: Execution, changed: str, whole: bool) -> tuple[str | None, str]:
    """The outcome's rows as the journal keeps them (by the step that keeps them too; None if they are too many, unless
    all are wanted), and the outcome's hash."""
    relation = done.rows or Relation((), ())
    fields = [[f.name, str(f.type), f.nullable] for f in relation.fields]
    hash_ = hash_json([fields, relation.hash, done.answer, changed])
    if relation.step:
        return to_json({"fields": fields, "step": relation.step}), hash_
    text = relation.json()
    if not whole and (len(relation.rows) > CAP_ROWS or len(text) > CAP_BYTES):
        return None, hash_
    return to_json({"fields": fields})[:-1] + f',"rows":{text}}}', hash_


def read_outcome(link: Link, schema: Schema, row: RunRow) -> Outcome:
    """The outcome of a run as the journal holds it. Rows that were too many to keep are missing."""
    data = json.loads(row.result) if row.result else {"fields": [], "rows": []}
    if "step" in data:
        data["rows"] = json.loads(
            next(s.rows or "[]" for s in journal.read_steps(link, row.run) if s.step == data["step"])
        )
    fields = tuple(Field(name, parse_type(type_), nullable) for name, type_, nullable in data["fields"])
    rows = restore_rows(data["rows"], types_of(fields))
    changes = Changes(read_images(link, schema, row.run) if row.written and row.history else ())
    steps = tuple(
        StepRun(s.step, s.path, s.kind, s.operation, s.inputs, s.result, s.count, s.changes, s.rows)
        for s in journal.read_steps(link, row.run)
    )
    return Outcome(rows, fields, row.answer, changes, steps, row.run)
