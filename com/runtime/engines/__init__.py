"""What the runtime asks of an engine: a link to a memory, which runs statements, carries values and names failures."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from sqlalchemy import URL

from com.diagnostics import Busy, CannotWrite, EngineRefused, Error, Interrupted, Lost, Message, UnknownMemory
from com.node import Node
from com.plan import Field
from com.schema import Type

Row = tuple[Any, ...]


class Rule(Node):
    """What changes rows of other tables, or other rows than it is told, when a table is written so (or when one of the
    columns is, if there are any). `hidden`: even the number of rows written is not what com believes."""

    verbs: tuple[str, ...]
    columns: tuple[str, ...]
    cause: str
    hidden: bool = False


class EngineError(Error):
    """A statement failed. `kind`: unique, foreign_key, check, not_null, rule (of a trigger or the like), function
    (a value that cannot be: the message says why), overflow, busy, interrupted, full, read_only, lost, refused. `said`
    is the engine's text, `place` what it names: a table with columns, or a check."""

    def __init__(self, kind: str, said: str, place: str = "", message: Message | None = None) -> None:
        super().__init__(message or _general(kind, said))
        self.kind = kind
        self.said = said
        self.place = place


def _general(kind: str, said: str) -> Message:
    """What a failure means, whatever the statement was for."""
    match kind:
        case "busy":
            return Busy(1)
        case "interrupted":
            return Interrupted("interrupted", "run it again")
        case "full":
            return CannotWrite("the disk is full", "make room, and run it again")
        case "read_only":
            return CannotWrite("it may only be read", "open it for writing")
        case "lost":
            return Lost("was not recorded", f"nothing was changed ({said}); run it again")
        case _:
            return EngineRefused(said.strip())


WAITS = (0.01, 0.05, 0.2, 0.5)
"""Seconds between tries when the memory is busy, besides what the engine itself waits."""

T = TypeVar("T")


def patiently(do: Callable[[], T]) -> T:
    """What something gives that may be done again, tried until the memory is not busy. `Error` if it stays so."""
    for wait in WAITS:
        try:
            return do()
        except EngineError as error:
            if error.kind != "busy":
                raise
            time.sleep(wait)
    try:
        return do()
    except EngineError as error:
        if error.kind != "busy":
            raise
        raise Error(Busy(len(WAITS) + 1)) from None


class Link(Protocol):
    """One connection to a memory. All failures of the driver come out as `EngineError`."""

    name: str
    title: str
    version: str
    read_only: bool
    driver: Any

    def run(self, sql: str, binds: Mapping[str, Any]) -> list[Row]:
        """The rows of a statement of a plan."""
        ...

    def write(self, sql: str, binds: Mapping[str, Any]) -> int:
        """Runs a statement of a plan that gives no rows; the number of rows written."""
        ...

    def ask(self, sql: str, *values: Any) -> list[Row]:
        """The rows of a statement of the runtime's own; `?` marks its values."""
        ...

    def put(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Runs a statement of the runtime's own once for each row of values."""
        ...

    def begin(self, write: bool = True) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None:
        """Gives the transaction up, if there is one."""
        ...

    @property
    def in_transaction(self) -> bool: ...

    def close(self) -> None: ...

    def reopen(self) -> None:
        """A new connection in place of a lost one."""
        ...

    def copy(self) -> Link:
        """A link to a copy of the memory, which is gone when the link is closed."""
        ...

    def stamp(self) -> Any:
        """A value that changes when the tables' structure does."""
        ...

    def refresh(self) -> None:
        """Is told that the tables' structure has changed."""
        ...

    def has_table(self, name: str) -> bool: ...

    def engine_types(self) -> dict[str, tuple[bool, list[tuple[str, str, bool]]]]:
        """Of each table and view: whether rows can be written, and for each column its name, its type as declared,
        and whether the engine computes it."""
        ...

    def rules(self) -> dict[str, tuple[Rule, ...]]:
        """Of each table, the triggers, cascades and conflict clauses that change rows unseen."""
        ...

    def sequence(self, table: str) -> int:
        """The greatest id of a table that the engine itself has noted, or 0."""
        ...

    def structure(self) -> list[str]:
        """The statements that made the memory's own tables, in their order."""
        ...

    def set_keys_checked(self, checked: bool) -> None:
        """Whether foreign keys are enforced; only outside transactions."""
        ...

    def read_type(self, text: str) -> Type:
        """The com type of a type as the engine writes it."""
        ...

    def quote(self, name: str) -> str: ...

    def encode(self, value: Any, type_: Type) -> Any:
        """A value as the driver takes it."""
        ...

    def encode_list(self, values: Sequence[Any], type_: Type) -> Any: ...

    def encode_rows(self, rows: Sequence[Row], fields: Sequence[Field]) -> Any: ...

    def decoder(self, field: Field) -> Callable[[Any], Any]:
        """Makes of what the driver gives a value of the field's type. Raises `EngineError`."""
        ...


_MODULES = {"sqlite": "sqlite"}


def open_link(url: URL, *, read_only: bool, timeout: float, seconds: float | None) -> Link:
    """A link to the memory that a URL names. `timeout`: how many seconds to wait for a lock; `seconds`: how long one
    statement may take."""
    engine = url.get_backend_name()
    if engine not in _MODULES:
        known = ", ".join(sorted(_MODULES))
        raise Error(UnknownMemory(url.render_as_string(), f"com knows no engine {engine}", f"the engines are {known}"))
    module = importlib.import_module(f"com.runtime.engines.{_MODULES[engine]}")
    link: Link = module.open_link(url, read_only=read_only, timeout=timeout, seconds=seconds)
    return link
