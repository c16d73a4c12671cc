"""Runs again what the journal recorded, and says what is not the same, and why."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from com.diagnostics import CannotGoBack, ChainBroken, Error, NoSuchRun, NotFromStart, RunPending, UnknownCall
from com.node import Node, dump
from com.plan import Plan
from com.runtime import journal
from com.runtime.arguments import restored
from com.runtime.bind import Program
from com.runtime.calls import recorded
from com.runtime.canon import hash_json, hash_text
from com.runtime.digest import digest
from com.runtime.engines import EngineError, Link
from com.runtime.execute import BatchFailed
from com.runtime.failures import explain
from com.runtime.history import Undo, read_images, step_hashes
from com.runtime.journal import RunRow, StepRow
from com.runtime.outcome import Change, RunError, StepRun
from com.runtime.reflect import Reflection
from com.runtime.run import Order, Runner, execution, result_of
from com.runtime.verify import verify
from com.schema import Schema, load_schema, schema_hash
from com.source import NOWHERE

Compile = Callable[[str, Schema, str], Plan]
"""Makes a plan of a program's text, for a schema and an engine."""
Create = Callable[[Schema, str], Iterable[str]]
"""Makes the DDL of a schema for an engine."""
Progress = Callable[[int, int], None]
"""Is told how many runs are done, and of how many."""


class Difference(Node):
    """Something that is not as it was recorded. `place` is a step's path, or `run` or `outcome`; `cause` is one of:
    program, parameters, schema, memory, compiler, engine, calls, journal, with what happened to it."""

    place: str
    field: str
    expected: str
    got: str
    cause: str


class Replayed(Node):
    """A run done again: each step as it was recorded, and what differed."""

    run: RunRow
    steps: tuple[StepRow, ...]
    differences: tuple[Difference, ...]

    @property
    def same(self) -> bool:
        """True if everything came out as recorded."""
        return not self.differences


class Rebuilt(Node):
    """A memory made from a journal: how many runs were done again, and the first that came out otherwise."""

    runs: int
    difference: Difference | None
    digest: str
    wanted: str

    @property
    def same(self) -> bool:
        """True if it holds the same rows, by the same runs."""
        return self.difference is None and self.digest == self.wanted


def run_of(link: Link, number: int) -> RunRow:
    """The row of a run. Error if there is none."""
    if not journal.exists(link):
        raise Error(NoSuchRun(number, "the memory has no journal yet: nothing was run on it"))
    return journal.read_run(link, number)


# ---------------------------------------------------------------- one run


def replay(link: Link, reflection: Reflection, number: int, compile: Compile) -> Replayed:
    """Does a run again on a copy of the memory as it was just before it."""
    row = run_of(link, number)
    if row.status == "pending":
        raise Error(RunPending(number, "run it again with its key"))
    found = _Found(row)
    try:
        steps = _replay(link, reflection, row, compile, found)
    except Exception as error:
        if isinstance(error, Error) and not isinstance(error, EngineError):
            raise
        flaws = verify(link, reflection.schema)
        if not flaws:
            raise
        steps = ()
        found.note("run", "record", "as it was written", flaws[0].detail, "journal changed")
    return Replayed(row, steps, tuple(found.differences))


def _replay(link: Link, reflection: Reflection, row: RunRow, compile: Compile, found: _Found) -> tuple[StepRow, ...]:
    steps = tuple(journal.read_steps(link, row.run))
    text = journal.read_text(link, "com_program", row.program) or ""
    stored = journal.read_text(link, "com_schema", row.schema_hash)
    sealed = journal.sealed(row, steps, journal.read_calls(link, row.run))
    found.expect("run", "record", row.digest, sealed.digest, "journal changed: the run's record")
    found.expect("run", "program", row.program, hash_text(text), "program changed")
    kept = hash_text(stored) if stored is not None else "none"
    found.expect("run", "schema", row.schema_hash, kept, "schema changed: the recorded one")
    schema = load_schema(stored) if stored is not None and kept == row.schema_hash else reflection.schema
    now = schema_hash(reflection.schema)
    if now != row.schema_hash and not found.differences:
        found.note("run", "schema", row.schema_hash, now, "schema changed since")
    copy = link.copy()
    try:
        _go_back(copy, reflection, schema, row, found)
        _again(copy, schema, row, steps, text, compile, found)
    finally:
        copy.close()
    return steps


class _Found:
    """Differences as they are met; the first cause found explains those that follow from it."""

    def __init__(self, row: RunRow) -> None:
        self.row = row
        self.differences: list[Difference] = []
        self.cause = ""

    def note(self, place: str, field: str, expected: Any, got: Any, cause: str) -> None:
        self.cause = self.cause or cause
        self.differences.append(Difference(place, field, str(expected), str(got), cause))

    def expect(self, place: str, field: str, expected: Any, got: Any, cause: str) -> bool:
        if expected == got:
            return True
        self.note(place, field, expected, got, cause)
        return False


def _go_back(copy: Link, reflection: Reflection, schema: Schema, row: RunRow, found: _Found) -> None:
    """Undoes, on a copy, every commit after the one that the run began from."""
    later = copy.ask(
        "select c.number, c.run, r.history from com_commit c join com_run r on r.run = c.run"
        " where c.number > ? order by c.number desc",
        row.base,
    )
    without = [str(run) for _, run, history in later if not history]
    if without:
        cause = f"run {', '.join(without)} kept no row images"
        raise Error(CannotGoBack(row.run, cause, "keep history: connect without history=False"))
    copy.set_keys_checked(False)
    undo = Undo(copy, reflection.schema, reflection.computed)
    try:
        copy.begin()
        undo.undo_all(
            image.change for _, run, _ in later for image in reversed(read_images(copy, reflection.schema, run))
        )
        copy.put("delete from com_change where run >= ?", [[row.run]])
        copy.commit()
    except EngineError as error:
        copy.rollback()
        cause = f"the images do not fit the tables ({error.said})"
        raise Error(CannotGoBack(row.run, cause, "the tables were changed since")) from None
    finally:
        copy.rollback()
        copy.set_keys_checked(True)
    for change in undo.strange[:10]:
        found.note(_named(change), "row", "as a run left it", "otherwise", "memory changed outside")


def _named(change: Change) -> str:
    return f"{change.table} {', '.join(map(str, change.key))}"


def _again(
    copy: Link, schema: Schema, row: RunRow, steps: tuple[StepRow, ...], text: str, compile: Compile, found: _Found
) -> None:
    try:
        plan = compile(text, schema, row.engine)
        given = restored(plan, json.loads(row.parameters))
    except Exception as error:  # whatever the compiler of today says to the text of then
        said, cause = _why_not(error, "compiler changed")
        found.note("run", "plan", row.plan, said, found.cause or cause)
        return
    program = Program(plan, copy)
    same_plan = found.expect("run", "plan", row.plan, program.digest, found.cause or "compiler changed")
    order = Order(given, datetime.fromisoformat(row.clock), row.zone, history=bool(row.history))
    calls = recorded(journal.read_calls(copy, row.run), may_call=False)
    ids, batches = json.loads(row.ids), True
    engine = "" if row.engine_version == copy.version else "engine changed"
    cause = found.cause or engine or ("" if same_plan else "compiler changed")
    while True:
        failed: RunError | None = None
        copy.begin()
        try:
            done = execution(program, schema, order, calls, row.run, batches, ids=ids)
            done.go()
        except BatchFailed:
            batches = False
            continue
        except RunError as error:
            failed = error
        except EngineError as error:
            failed = RunError(explain(error, schema, None), NOWHERE)
        else:
            images = read_images(copy, schema, row.run) if done.written and row.history else []
            hashes = step_hashes(images)
        finally:
            copy.rollback()
        break
    if failed is not None:
        data = hash_json([failed.message.code, dump(failed.message), failed.path])
        if row.status == "failed":
            found.expect("outcome", "failure", row.outcome, data, cause or "journal changed: the failure")
        else:
            got = f"{failed.message.code} {failed.message.fill(failed.message.text)}"
            found.note(failed.path or "outcome", "status", "done", got, cause or "journal or memory changed")
        return
    if not found.expect("outcome", "status", row.status, "done", cause or "journal or memory changed"):
        return
    _compare(steps, tuple(s.with_(changes=hashes.get(s.number, "")) for s in done.steps), cause, found)
    changed = hash_json([[s, hashes[s]] for s in sorted(hashes)]) if row.history else ""
    result, outcome = result_of(done, changed, whole=row.idempotency is not None)
    found.expect("outcome", "answer", row.answer, done.answer, cause or "journal or memory changed")
    found.expect("outcome", "rows", row.result, result, cause or "journal or memory changed")
    found.expect("outcome", "hash", row.outcome, outcome, cause or "journal or memory changed")


def _why_not(error: Exception, otherwise: str) -> tuple[str, str]:
    """What is said against doing a run again, and the cause. A function is not called again, but must be known."""
    if isinstance(error, Error):
        message = error.message
        said = f"{message.code}: {message.fill(message.text)}"
        return said, "register the call: --calls FILE" if isinstance(message, UnknownCall) else otherwise
    return f"{type(error).__name__}: {error}", otherwise


def _compare(recorded: tuple[StepRow, ...], done: tuple[StepRun, ...], cause: str, found: _Found) -> None:
    found.expect("run", "steps", len(recorded), len(done), cause or "journal or memory changed")
    for old, new in zip(recorded, done, strict=False):
        pairs = (
            ("number", old.step, new.number, "journal changed: the step"),
            ("path", old.path, new.path, "program changed"),
            ("kind", old.kind, new.kind, "program changed"),
            ("operation", old.operation, new.operation, "program changed"),
            ("inputs", old.inputs, new.inputs, "parameters or earlier steps changed"),
            ("result", old.result, new.result, "memory changed outside"),
            ("rows", old.rows, new.rows, "journal changed: the step"),
            ("count", old.count, new.count, "memory changed outside"),
            ("changes", old.changes, new.changes, "memory changed outside"),
        )
        for field, expected, got, otherwise in pairs:
            found.expect(old.path, field, expected, got, cause or otherwise)


# ---------------------------------------------------------------- all runs


def rebuild(link: Link, schema: Schema, target: Link, compile: Compile, progress: Progress | None) -> Rebuilt:
    """Does all runs again on an empty memory, in the order in which they were committed."""
    if not journal.exists(link):
        raise Error(NotFromStart("there is none", "run programs first"))
    if journal.meta(link, "held_rows") == "1":
        help_ = "rebuild from a copy of the memory as it was then; runs can be replayed one by one"
        raise Error(NotFromStart("memory held rows before its first run", help_))
    runs = _in_order(link)
    runner = Runner(target, {})
    difference = None
    for place, row in enumerate(runs):
        if progress is not None:
            progress(place, len(runs))
        try:
            difference = _redo(link, target, runner, row, compile)
        except Exception as error:
            flaws = [] if isinstance(error, Error) and not isinstance(error, EngineError) else verify(link, schema)
            if not flaws:
                raise
            place_ = f"run {row.run}"
            difference = Difference(place_, "record", "as it was written", flaws[0].detail, "journal changed")
        if difference is not None:
            break
    if progress is not None:
        progress(len(runs), len(runs))
    return Rebuilt(len(runs), difference, digest(target, schema), digest(link, schema))


def _in_order(link: Link) -> list[RunRow]:
    """The runs, each after the commit that it began from: by the commit they made, else by the one they began from."""
    numbers: dict[int, int] = dict(link.ask("select run, number from com_commit"))
    rows = [row for row in journal.read_runs(link) if row.status == "done"]
    return sorted(rows, key=lambda r: (numbers.get(r.run, r.base), r.run not in numbers, r.run))


def _redo(link: Link, target: Link, runner: Runner, row: RunRow, compile: Compile) -> Difference | None:
    text = journal.read_text(link, "com_program", row.program)
    stored = journal.read_text(link, "com_schema", row.schema_hash)
    if text is None or stored is None:
        raise Error(ChainBroken(f"the program or schema of run {row.run} is missing"))
    if hash_text(text) != row.program or hash_text(stored) != row.schema_hash:
        raise Error(ChainBroken(f"the program or schema of run {row.run} is not as it was"))
    schema = load_schema(stored)
    place = f"run {row.run}"
    try:
        plan = compile(text, schema, target.name)
        order = Order(
            restored(plan, json.loads(row.parameters)),
            datetime.fromisoformat(row.clock),
            row.zone,
            history=bool(row.history),
            key=row.idempotency,
            mode=row.mode,
            parent=row.parent,
            at=row.ended,
        )
        calls = journal.read_calls(link, row.run)
        outcome = runner.run(Program(plan, target), schema, order, number=row.run, calls=calls)
    except Error as error:
        said, cause = _why_not(error, "the journal does not lead there")
        return Difference(place, "status", "done", said, cause)
    made = journal.read_run(target, row.run)
    if made.outcome != row.outcome or outcome.run_id != row.run:
        return Difference(place, "outcome", str(row.outcome), str(made.outcome), "the journal does not lead there")
    return None
