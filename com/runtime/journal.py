"""The journal: the tables that record runs, in the memory's own database, and how they are written and read.

All hashes are SHA-256 over canonical JSON of typed values (com.runtime.canon), so they are the same on every engine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from com.diagnostics import Error, JournalVersion, NoSuchRun
from com.node import Node
from com.runtime.canon import hash_json, to_json
from com.runtime.engines import Link
from com.schema import INT, TEXT, Column, Schema, Table

VERSION = "1"
"""Of the journal's format. Journals of every released format stay readable."""

START = "0" * 64
"""The hash before the first commit."""


def _table(name: str, key: str, columns: str) -> Table:
    """Columns written as `name`, `name?` where null is allowed, ints as `#name`."""
    made = []
    for word in columns.split():
        bare = word.strip("#?")
        made.append(Column(bare, INT if word.startswith("#") else TEXT, word.endswith("?")))
    return Table(name, tuple(made), tuple(key.split()))


TABLES = Schema(
    (
        _table("com_blob", "hash", "hash data"),
        _table("com_call", "run path", "#run path name inputs result"),
        _table("com_change", "run step n", "#run #step #n tbl key before? after?"),
        _table("com_commit", "number", "#number #time #run changes previous hash"),
        _table("com_head", "one", "#one #run #commits #time hash"),
        _table("com_id", "tbl", "tbl #last"),
        _table("com_meta", "name", "name value"),
        _table("com_program", "hash", "hash name text"),
        _table(
            "com_run",
            "run",
            "#run program schema_hash plan engine engine_version parameters clock zone mode #history #base ids status"
            " code? message? path? outcome? result? answer? #written parent? idempotency? #started #ended? steps?"
            " digest?",
        ),
        _table("com_schema", "hash", "hash text"),
        _table("com_step", "run step", "#run #step path kind operation inputs result rows? #count changes"),
    )
)
"""The journal's tables. `com_run.ids`: the last id of each table whose ids the run took, as it was before; `base`: the
number of the last commit before the run; `digest`: the hash of all that stands in its row and its steps."""

RUN_COLUMNS = tuple(c.name for c in TABLES.table("com_run").columns)  # type: ignore[union-attr]
_MOST = {"hash": 64, "tbl": 190, "name": 190, "path": 700, "idempotency": 700}
"""So many characters have texts that are keys, where an engine wants a limit."""


def statements(link: Link, word: str = "create table") -> list[str]:
    """The DDL of the journal's tables."""
    made = []
    for table in TABLES.tables:
        keyed = {*table.primary_key, "idempotency"}
        columns = [
            f"{link.quote(c.name)} {link.own_type(c.type.kind, _MOST[c.name] if c.name in keyed & {*_MOST} else 0)}"
            f"{'' if c.nullable else ' not null'}"
            for c in table.columns
        ]
        key = ", ".join(link.quote(c) for c in table.primary_key)
        made.append(f"{word} {table.name} ({', '.join(columns)}, primary key ({key})){link.own_end(table.name)}")
    given = " where idempotency is not null" if link.name == "sqlite" else ""
    if "temporary" not in word:
        index = "create unique index if not exists com_run_idempotency on com_run (idempotency)"
        made.append(index + given)
    return made


def exists(link: Link) -> bool:
    """True if the memory has a journal. `Error` if it is of a version that this com does not know."""
    if not link.has_table("com_meta"):
        return False
    found = link.ask("select value from com_meta where name = ?", "journal")
    if not found and link.ddl_commits:  # it is being made
        return False
    if not found or found[0][0] != VERSION:
        raise Error(JournalVersion(str(found[0][0]) if found else "none", VERSION))
    return True


def create(link: Link, schema: Schema, declared: str | None = None, passing: bool = False) -> None:
    """Makes the journal's tables, inside a transaction. `declared`: the schema that com made the memory with.
    `passing`: they are not to stay; where tables cannot be taken back they are made as temporary ones."""
    if not link.ddl_commits:
        _make(link, statements(link), declared)
    elif passing:
        _make(link, statements(link, "create temporary table"), declared)
    else:
        link.rollback()
        with link.alone():
            if not exists(link):
                _make(link, statements(link, "create table if not exists"), declared)
                link.commit()
        link.begin()


def _make(link: Link, ddl: list[str], declared: str | None) -> None:
    for statement in ddl:
        link.run(statement, {})
    if not link.in_transaction:
        link.begin()
    meta = [["journal", VERSION]]
    if declared is not None:
        meta.append(["schema", declared])
    link.put("insert into com_head values (1, 0, 0, 0, ?)", [[START]])
    link.put("insert into com_meta values (?, ?)", meta)


def begin(link: Link, schema: Schema) -> None:
    """Notes, inside the transaction of the first run, whether memory holds rows that no run wrote."""
    held = any(link.ask(f"select 1 from {link.quote(t.name)} limit 1") for t in schema.tables if not t.is_view)
    link.put("insert into com_meta values (?, ?)", [["held_rows", str(int(held))]])


def meta(link: Link, name: str) -> str | None:
    """A value of com_meta."""
    found = link.ask("select value from com_meta where name = ?", name)
    return found[0][0] if found else None


class Head(Node):
    """The number of the last run, and of the last commit with its time (microseconds, UTC) and hash."""

    run: int
    commits: int
    time: int
    hash: str


def head(link: Link) -> Head:
    return Head(*link.ask("select run, commits, time, hash from com_head")[0])


def keep(link: Link, table: str, hash_: str, *values: str) -> None:
    """Keeps a text under its hash, once."""
    if not link.ask(f"select 1 from {table} where hash = ?", hash_):
        marks = ", ".join("?" * (1 + len(values)))
        link.put(f"insert into {table} values ({marks})", [[hash_, *values]])


# ---------------------------------------------------------------- runs


class StepRow(Node):
    """A row of com_step."""

    run: int
    step: int
    path: str
    kind: str
    operation: str
    inputs: str
    result: str
    rows: str | None
    count: int
    changes: str


class RunRow(Node):
    """A row of com_run."""

    run: int
    program: str
    schema_hash: str
    plan: str
    engine: str
    engine_version: str
    parameters: str
    clock: str
    zone: str
    mode: str
    history: int
    base: int
    ids: str
    status: str
    code: str | None
    message: str | None
    path: str | None
    outcome: str | None
    result: str | None
    answer: str | None
    written: int
    parent: str | None
    idempotency: str | None
    started: int
    ended: int | None
    steps: str | None
    digest: str | None


_PUT_RUN = f"insert into com_run values ({', '.join('?' * len(RUN_COLUMNS))})"
_PUT_STEP = "insert into com_step values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def _values(node: Node) -> list[Any]:
    return [getattr(node, field) for field in node._fields]


def sealed(run: RunRow, steps: Iterable[StepRow]) -> RunRow:
    """The run's row with the hashes over its steps and over itself."""
    values = _values(run)
    values[-2], values[-1] = hash_json([_values(step)[1:] for step in steps]), None
    values[-1] = hash_json(values)
    return RunRow(*values)


def write_run(link: Link, run: RunRow, steps: list[StepRow], replace: bool) -> None:
    """Writes a run and its steps; in place of its pending row if there is one."""
    if replace:
        link.put("delete from com_run where run = ?", [[run.run]])
    link.put(_PUT_RUN, [_values(run)])
    if steps:
        link.put(_PUT_STEP, [_values(step) for step in steps])


def commit_hash(number: int, time: int, run: int, digest: str, changes: str, previous: str) -> str:
    """The hash of a commit: over the run's digest, the hash of its changes and the hash of the commit before."""
    return hash_json([number, time, run, digest, changes, previous])


def write_commit(link: Link, before: Head, run: RunRow, time: int, changes: str) -> Head:
    """Adds a commit to the chain; the new head (which is yet to be written)."""
    number = before.commits + 1
    made = commit_hash(number, time, run.run, run.digest or "", changes, before.hash)
    link.put("insert into com_commit values (?, ?, ?, ?, ?, ?)", [[number, time, run.run, changes, before.hash, made]])
    return Head(max(before.run, run.run), number, time, made)


def write_head(link: Link, new: Head) -> None:
    link.put(
        "update com_head set run = ?, commits = ?, time = ?, hash = ? where one = 1",
        [[new.run, new.commits, new.time, new.hash]],
    )


def read_run(link: Link, run: int) -> RunRow:
    """The row of a run. `Error` if there is none."""
    found = link.ask("select * from com_run where run = ?", run)
    if not found:
        last = head(link).run
        raise Error(NoSuchRun(run, f"its runs are 1 to {last}" if last else "it has no runs yet"))
    return RunRow(*found[0])


def find_key(link: Link, key: str) -> RunRow | None:
    """The run that was made with a key."""
    found = link.ask("select * from com_run where idempotency = ?", key)
    return RunRow(*found[0]) if found else None


def read_runs(link: Link) -> list[RunRow]:
    """All runs, in order of number."""
    return [RunRow(*row) for row in link.ask("select * from com_run order by run")]


def read_steps(link: Link, run: int) -> list[StepRow]:
    return [StepRow(*row) for row in link.ask("select * from com_step where run = ? order by step", run)]


def read_calls(link: Link, run: int) -> dict[str, tuple[str, str]]:
    """Of each call of a run, by its path: the hash of its inputs, and its result."""
    rows = link.ask("select path, inputs, result from com_call where run = ?", run)
    return {path: (inputs, result) for path, inputs, result in rows}


def write_call(link: Link, run: int, path: str, name: str, inputs: str, result: Any) -> None:
    link.put("insert into com_call values (?, ?, ?, ?, ?)", [[run, path, name, inputs, to_json(result)]])


def read_text(link: Link, table: str, hash_: str) -> str | None:
    """A text kept under its hash: of com_program, com_schema or com_blob."""
    column = "data" if table == "com_blob" else "text"
    found = link.ask(f"select {column} from {table} where hash = ?", hash_)
    return found[0][0] if found else None


# ---------------------------------------------------------------- the chain


class Flaw(Node):
    """Where the journal is not as it was written."""

    run: int | None
    detail: str


def verify(link: Link, changes_hash: Callable[[int], str]) -> list[Flaw]:
    """What does not fit in the journal: a run's row or steps, or the chain of commits. Tamper-evident, not
    tamper-proof: whoever can write the database can write a whole new chain."""
    flaws = []
    digests: dict[int, str] = {}
    for run in read_runs(link):
        digests[run.run] = run.digest or ""
        if run.status == "pending":
            continue
        if sealed(run, read_steps(link, run.run)) != run:
            flaws.append(Flaw(run.run, f"the record of run {run.run} was changed"))
    before = START
    rows = link.ask("select number, time, run, changes, previous, hash from com_commit order by number")
    for place, (number, time, run_number, changes, previous, hash_) in enumerate(rows, 1):
        made = commit_hash(number, time, run_number, digests.get(run_number, ""), changes, previous)
        if number != place or previous != before or made != hash_:
            flaws.append(Flaw(run_number, f"commit {number} does not fit in the chain"))
            break
        if changes and changes != changes_hash(run_number):
            flaws.append(Flaw(run_number, f"the row images of run {run_number} were changed"))
        before = hash_
    now = head(link)
    if not flaws and (now.commits != len(rows) or now.hash != before):
        flaws.append(Flaw(None, "commits are missing at the end of the chain"))
    return flaws


def parameters_of(run: RunRow) -> dict[str, Any]:
    """The parameters as they were given, as canonical JSON data."""
    read: dict[str, Any] = json.loads(run.parameters)
    return read
