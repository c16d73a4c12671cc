"""What a run gives: rows, a sentence, what changed; or why it failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from com.diagnostics import Diagnostic, Error, Message
from com.node import Node
from com.plan import Field
from com.source import Span


class Change(Node):
    """A row that the run changed, as it was before and is now: column to value, None where there was or is no row."""

    table: str
    key: tuple[Any, ...]
    before: dict[str, Any] | None
    after: dict[str, Any] | None

    @property
    def verb(self) -> str:
        """inserted, updated or deleted."""
        if self.before is None:
            return "inserted"
        return "deleted" if self.after is None else "updated"


class Ran(Node):
    """A statement of a dry run, with the values bound to it."""

    path: str
    sql: str
    binds: dict[str, Any]


class StepRun(Node):
    """What one step did. `path` places it (`restock`, `item[3].restock`, `item[*].restock`), `kind` is read, insert,
    update, delete or call; `count` is how many rows it read or wrote. The hashes are those of the journal."""

    number: int
    path: str
    kind: str
    operation: str
    inputs: str
    result: str
    count: int
    changes: str = ""
    rows: str | None = None


class Outcome(Node):
    """What a program returned. `run_id` is None for a dry run and on a memory that is only read. `preview` names a
    dry run's program, parameters, schema and changes. `repeated`: the outcome of an earlier run with the same key."""

    rows: tuple[tuple[Any, ...], ...]
    fields: tuple[Field, ...]
    answer: str | None
    changes: Sequence[Change]
    steps: tuple[StepRun, ...]
    run_id: int | None
    preview: str = ""
    statements: tuple[Ran, ...] = ()
    repeated: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the rows' columns."""
        return tuple(field.name for field in self.fields)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows, each as column to value."""
        names = self.columns
        return [dict(zip(names, row, strict=True)) for row in self.rows]


class RunError(Error):
    """A run failed, and memory is as it was. `diagnostic` says why and where in the program's canonical text, `path`
    which step, `row` the loop's row it failed for, `run_id` the journal's number of the failed run."""

    def __init__(
        self, message: Message, span: Span, path: str = "", row: dict[str, Any] | None = None, text: str = ""
    ) -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic(message, span)
        self.path = path
        self.row = row
        self.text = text
        self.run_id: int | None = None
