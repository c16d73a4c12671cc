"""The journal: the tables that record runs, in the memory's own database, and how they are written and read.

All hashes are SHA-256 over canonical JSON of typed values (com.runtime.canon), so they are the same on every engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any

from com.diagnostics import Error, JournalVersion, NoSuchRun
from com.node import Node
from com.runtime.canon import hash_json
from com.runtime.engines import Link
from com.schema import INT, TEXT, Column, Schema, Table
from com.values import MAX_INT

VERSION = "1"
"""Of the journal's format. Journals of every released format stay readable."""

START = "0" * 64
"""The head's hash before there are commits."""


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
        _table("com_call", "run path", "#run path name inputs result? failure?"),
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
            " code? message? path? outcome? result? answer? #written parent? idempotency? #started #ended? #attempt"
            " calls? steps? digest?",
        ),
        _table("com_schema", "hash", "hash text"),
        _table("com_step", "run step", "#run #step path kind operation inputs result rows? #count changes"),
    )
)
"""The journal's tables. `com_run.ids`: the last id of each table whose ids the run took, as it was before; `base`: the
number of the last commit before the run; `attempt`: how many have taken the run up while it was pending, the last of
them may finish it, and with them the tries that failed because somebody else came first; `digest`: the hash of all that
stands in its row, its calls and its steps."""

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
    if not found and link.is_server:  # it is being made: its table is seen before its rows are
        return False
    if not found or found[0][0] != VERSION:
        raise Error(JournalVersion(str(found[0][0]) if found else "none", VERSION))
    return True


def create(link: Link, known: Mapping[str, str] | None = None, *, passing: bool = False) -> None:
    """Makes the journal's tables, inside a transaction. `known`: what com_meta shall hold besides.
    `passing`: they are not to stay; where tables cannot be taken back they are made as temporary ones."""
    if not link.ddl_commits:
        _make(link, statements(link), known or {})
    elif passing:
        _make(link, statements(link, "create temporary table"), known or {})
    else:  # who makes them at the same time makes the same tables; the rows are made by who comes first
        link.rollback()
        _make(link, statements(link, "create table if not exists"), known or {})
        link.commit()
        link.begin()


def _make(link: Link, ddl: list[str], known: Mapping[str, str]) -> None:
    for statement in ddl:
        link.run(statement, {})
    if not link.in_transaction:
        link.begin()
    link.put("insert into com_meta values (?, ?)", [["journal", VERSION], *known.items()])
    link.put("insert into com_head values (1, 0, 0, 0, ?)", [[START]])


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


class CallRow(Node):
    """A row of com_call: `result` is canonical JSON, `failure` the dump of the message if the call failed."""

    run: int
    path: str
    name: str
    inputs: str
    result: str | None
    failure: str | None = None


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
    attempt: int
    calls: str | None
    steps: str | None
    digest: str | None


_PUT_RUN = f"insert into com_run values ({', '.join('?' * len(RUN_COLUMNS))})"
_PUT_STEP = "insert into com_step values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


_GET: dict[type[Node], attrgetter[Any]] = {cls: attrgetter(*cls._fields) for cls in (RunRow, StepRow, CallRow)}


def _values(node: Node) -> tuple[Any, ...]:
    made: tuple[Any, ...] = _GET[type(node)](node)
    return made


def sealed(run: RunRow, steps: Iterable[StepRow], calls: Iterable[CallRow]) -> RunRow:
    """The run's row with the hashes over its calls, over its steps and over itself."""
    values = [*_values(run)]
    values[-3] = hash_json([_values(call)[1:] for call in calls])
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


def origin(link: Link) -> str:
    """The hash before the first commit: over com_meta, which stays as it is from then on."""
    return hash_json([list(row) for row in link.ask("select name, value from com_meta order by name")])


def commit_hash(number: int, time: int, run: int, digest: str, changes: str, previous: str) -> str:
    """The hash of a commit: over the run's digest, the hash of its changes and the hash of the commit before."""
    return hash_json([number, time, run, digest, changes, previous])


def write_commit(link: Link, before: Head, run: RunRow, time: int, changes: str) -> Head:
    """Adds a commit to the chain; the new head (which is yet to be written)."""
    number = before.commits + 1
    previous = before.hash if before.commits else origin(link)
    made = commit_hash(number, time, run.run, run.digest or "", changes, previous)
    link.put("insert into com_commit values (?, ?, ?, ?, ?, ?)", [[number, time, run.run, changes, previous, made]])
    return Head(max(before.run, run.run), number, time, made)


def write_head(link: Link, new: Head) -> None:
    link.put(
        "update com_head set run = ?, commits = ?, time = ?, hash = ? where one = 1",
        [[new.run, new.commits, new.time, new.hash]],
    )


def read_run(link: Link, run: int) -> RunRow:
    """The row of a run. `Error` if there is none."""
    found = link.ask("select * from com_run where run = ?", run) if abs(run) <= MAX_INT else []
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


def read_calls(link: Link, run: int) -> list[CallRow]:
    """The calls of a run, in order of path."""
    rows = [CallRow(*row) for row in link.ask("select * from com_call where run = ?", run)]
    return sorted(rows, key=lambda call: str(call.path))


def write_call(link: Link, call: CallRow) -> CallRow:
    """Records a call, and gives what is recorded: a result that is there already for the same inputs stays; one for
    other inputs gives way."""
    found = link.ask("select * from com_call where run = ? and path = ?", call.run, call.path)
    if found and found[0][3] == call.inputs:
        return CallRow(*found[0])
    if found:
        link.put("delete from com_call where run = ? and path = ?", [[call.run, call.path]])
    link.put("insert into com_call values (?, ?, ?, ?, ?, ?)", [_values(call)])
    return call


def owns(link: Link, run: int, attempt: int) -> bool:
    """True if a run is pending, and nobody else has taken it up since this attempt at it began."""
    return link.ask("select status, attempt from com_run where run = ?", run) == [("pending", attempt)]


def take_up(link: Link, run: RunRow) -> int:
    """Takes a pending run up, inside a transaction; the number of the attempt."""
    link.put("update com_run set attempt = ? where run = ?", [[run.attempt + 1, run.run]])
    return run.attempt + 1


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
