"""Outcomes, previews, the journal and replays, as lines and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from com.plan import Plan
from com.report.lines import Line, plural
from com.report.rows import change_json, change_lines, json_value, table_lines, value_text
from com.runtime.journal import RunRow
from com.runtime.outcome import Outcome, StepRun
from com.runtime.replay import Difference, Rebuilt, Replayed
from com.schema import Schema

MOST_STEPS = 30
MOST_CHANGES = 100
"""So many lines of a preview are shown; `--json` has them all."""
_KINDS = {"read": "green", "insert": "yellow", "update": "yellow", "delete": "red", "call": "magenta"}
_STATUS = {"done": "green", "failed": "red", "pending": "yellow"}

# ---------------------------------------------------------------- outcomes


def outcome_lines(outcome: Outcome, room: int = 0) -> Iterator[Line]:
    """What a run returned: its rows, its sentence."""
    if outcome.fields and (outcome.rows or not outcome.answer):
        yield from table_lines(outcome.columns, outcome.rows, room)
        if not outcome.rows:
            yield [("no rows", "dim")]
    if outcome.answer is not None:
        yield [(outcome.answer, "bold")]


def closing_line(outcome: Outcome) -> Line:
    """`run 5: 3 rows changed`."""
    if outcome.run_id is None:
        return []
    again = " (done before)" if outcome.repeated else ""
    changed = (
        f"{plural(len(outcome.changes), 'row')} changed" if outcome.changes else _unseen(outcome, "nothing changed")
    )
    return [(f"run {outcome.run_id}{again}: {changed}", "dim")]


def _unseen(outcome: Outcome, nothing: str) -> str:
    """What was written without row images: to tables without a key, or with history off."""
    rows = sum(step.count for step in outcome.steps if step.kind in ("insert", "update", "delete") and not step.changes)
    return f"{plural(rows, 'row')} written, of which no image is kept" if rows else nothing


def preview_lines(outcome: Outcome, plan: Plan, schema: Schema, sql: bool = False, room: int = 0) -> Iterator[Line]:
    """What a run would do: its steps, the rows it would change, what it would return."""
    yield [(f"dry run of {plan.name}", "bold"), (": memory stays as it is", "")]
    yield []
    yield from step_lines(outcome.steps)
    yield []
    if outcome.changes:
        yield from _most(change_lines(outcome.changes, schema), MOST_CHANGES)
    else:
        yield [(_unseen(outcome, "no row would change"), "dim")]
    returned = list(outcome_lines(outcome, room))
    if returned:
        yield []
        yield from returned
    if sql:
        for ran in outcome.statements:
            yield []
            yield [(f"-- {ran.path}", "cyan")]
            yield from ([(line, "")] for line in f"{ran.sql};".splitlines())
            yield from ([(f"--   :{name} = {value_text(value)}", "dim")] for name, value in ran.binds.items())
    yield []
    yield [(f"preview {outcome.preview}", "dim")]


def step_lines(steps: Sequence[StepRun]) -> Iterator[Line]:
    """Each step with the number of rows it read or wrote."""
    wide = max((len(step.path) for step in steps[:MOST_STEPS]), default=0)

    def line(step: StepRun) -> Line:
        return [
            (f"{step.path:<{wide}}  ", "cyan"),
            (f"{step.kind:<6}  ", _KINDS[step.kind]),
            (plural(step.count, "row"), ""),
        ]

    yield from _most((line(step) for step in steps), MOST_STEPS)


def _most(lines: Iterable[Line], most: int) -> Iterator[Line]:
    rest = iter(lines)
    yield from islice(rest, most)
    left = sum(1 for _ in rest)
    if left:
        yield [(f"… and {left:,} more", "dim")]


def outcome_json(outcome: Outcome, dry_run: bool = False) -> dict[str, Any]:
    """An outcome as JSON-able data."""
    made: dict[str, Any] = {
        "ok": True,
        "dry_run": dry_run,
        "run": outcome.run_id,
        "repeated": outcome.repeated,
        "columns": [{"name": f.name, "type": str(f.type), "nullable": f.nullable} for f in outcome.fields],
        "rows": [json_value(row) for row in outcome.rows],
        "answer": outcome.answer,
        "changes": [change_json(change) for change in outcome.changes],
        "steps": [{"path": s.path, "kind": s.kind, "count": s.count} for s in outcome.steps],
    }
    if dry_run:
        made["preview"] = outcome.preview
        made["statements"] = [
            {"path": ran.path, "sql": ran.sql, "binds": json_value(ran.binds)} for ran in outcome.statements
        ]
    return made


# ---------------------------------------------------------------- the journal


def log_lines(rows: Iterable[RunRow], names: Mapping[str, str], room: int = 0) -> Iterator[Line]:
    """Runs as a table."""
    cells = [
        (
            row.run,
            names.get(row.program, "?"),
            row.status,
            row.written,
            _time(row.started),
            row.answer or row.message or "-",
        )
        for row in rows
    ]
    yield from table_lines(("run", "program", "status", "written", "when", "said"), cells, room)


def _time(micros: int) -> datetime:
    return datetime(1970, 1, 1) + timedelta(seconds=micros // 1_000_000)


def run_json(row: RunRow, name: str) -> dict[str, Any]:
    """A run of the journal as JSON-able data."""
    return {
        "run": row.run,
        "program": name,
        "status": row.status,
        "code": row.code,
        "message": row.message,
        "path": row.path,
        "parameters": json.loads(row.parameters),
        "clock": row.clock,
        "zone": row.zone,
        "mode": row.mode,
        "engine": f"{row.engine} {row.engine_version}",
        "written": row.written,
        "started": str(_time(row.started)),
        "key": row.idempotency,
    }


def run_lines(row: RunRow, name: str, text: str, outcome: Outcome, schema: Schema, room: int = 0) -> Iterator[Line]:
    """A run: its program, parameters, steps, outcome and changes."""
    yield [(f"run {row.run}", "bold"), (f" of {name}: ", ""), (row.status, _STATUS.get(row.status, ""))]
    yield [(f"{_time(row.started)} UTC, clock {row.clock} {row.zone}, {row.engine} {row.engine_version}", "dim")]
    for parameter, value in json.loads(row.parameters).items():
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield [(f"  ${parameter} ", "cyan"), (shown, "")]
    yield []
    yield from ([(line, "")] for line in text.strip().splitlines())
    if row.status == "failed":
        yield []
        yield [(f"{row.code}", "bold red"), (f": {row.message}", ""), (f" (in {row.path})" if row.path else "", "dim")]
        return
    yield []
    yield from step_lines(outcome.steps)
    if outcome.changes:
        yield []
        yield from _most(change_lines(outcome.changes, schema), MOST_CHANGES)
    returned = list(outcome_lines(outcome, room))
    if returned:
        yield []
        yield from returned


# ---------------------------------------------------------------- replays


def replayed_lines(replayed: Replayed, name: str) -> Iterator[Line]:
    """A replay: each step the same, or what differs and why."""
    differing = {difference.place for difference in replayed.differences}
    wide = max((len(step.path) for step in replayed.steps), default=0)
    steps = (_replayed(step.path, wide, step.path in differing) for step in replayed.steps)
    yield [(f"replay of run {replayed.run.run}", "bold"), (f" of {name}", "")]
    yield from _most(steps, MOST_STEPS)
    for difference in replayed.differences:
        yield from _difference(difference)
    if replayed.same:
        yield [
            ("the same", "bold green"),
            (", outcome included" if replayed.run.status == "done" else ", failure included", ""),
        ]
    else:
        yield [(plural(len(replayed.differences), "difference"), "bold red")]


def _replayed(path: str, wide: int, differs: bool) -> Line:
    return [(f"  {path:<{wide}}  ", "cyan"), ("differs", "red") if differs else ("same", "green")]


def _difference(difference: Difference) -> Iterator[Line]:
    yield [(f"{difference.place}: {difference.field}", "bold"), (f" ({difference.cause})", "")]
    yield [("  - ", "red"), (difference.expected, "red")]
    yield [("  + ", "green"), (difference.got, "green")]


def replayed_json(replayed: Replayed) -> dict[str, Any]:
    """A replay as JSON-able data."""
    return {
        "same": replayed.same,
        "run": replayed.run.run,
        "steps": [step.path for step in replayed.steps],
        "differences": [_difference_json(difference) for difference in replayed.differences],
    }


def _difference_json(difference: Difference) -> dict[str, str]:
    return {field: getattr(difference, field) for field in difference._fields}


def rebuilt_lines(rebuilt: Rebuilt) -> Iterator[Line]:
    """A memory made from the journal: whether it holds the same rows."""
    yield [
        (f"{plural(rebuilt.runs, 'run')} replayed: ", ""),
        ("the same", "bold green") if rebuilt.same else ("not the same", "bold red"),
    ]
    if rebuilt.difference is not None:
        yield from _difference(rebuilt.difference)
    elif not rebuilt.same:
        yield [("  - ", "red"), (f"rows {rebuilt.wanted}", "red")]
        yield [("  + ", "green"), (f"rows {rebuilt.digest}", "green")]


def rebuilt_json(rebuilt: Rebuilt) -> dict[str, Any]:
    """A memory made from the journal, as JSON-able data."""
    difference = rebuilt.difference and _difference_json(rebuilt.difference)
    return {"same": rebuilt.same, "runs": rebuilt.runs, "difference": difference, "digest": rebuilt.digest}
