"""What the runtime asks of an engine: a link to a memory, which runs statements, carries values and names failures."""

from __future__ import annotations

import importlib
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from sqlalchemy import URL

from com.diagnostics import Busy, CannotWrite, EngineRefused, Error, Interrupted, Lost, Message, UnknownMemory
from com.node import Node
from com.plan import Field
from com.schema import ForeignKey, Index, Type

Row = tuple[Any, ...]


class Rule(Node):
    """What changes rows of other tables, or other rows than it is told, when a table is written so (or when one of the
    columns is, if there are any). `hidden`: even the number of rows written is not what com believes."""

    verbs: tuple[str, ...]
    columns: tuple[str, ...]
    cause: str
    hidden: bool = False


WRITES = ("insert", "update", "delete")
ACTIONS = ("cascade", "set null", "set default")


def bare(sql: str) -> str:
    """A statement in small letters, without what is quoted or commented out."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/", " _ ", sql, flags=re.DOTALL).lower()


def trigger_rules(name: str, body: str | None) -> list[Rule]:
    """What a trigger does unseen; of one that cannot be read, anything."""
    text = bare(body) if body is not None else "insert"
    if "raise(ignore" in "".join(text.split()) or re.search(r"\breturn\s+null\b", text):
        return [Rule(WRITES, (), f"the trigger {name}, which skips rows", True)]
    if re.search(r"\b(insert|update|delete|replace|execute|call)\b(?!\s*\()", text):
        return [Rule(WRITES, (), f"the trigger {name}, which writes rows")]
    return []


def key_rules(key: str, column: str | None, on_delete: str | None, on_update: str | None) -> list[Rule]:
    """What a foreign key does unseen to its own table. `column`: the one that it names."""
    made = []
    if on_delete in ACTIONS:
        made.append(Rule(("delete",), (), f"the key {key} naming it, on delete {on_delete}"))
    if on_update in ACTIONS and column:
        made.append(Rule(("update",), (column,), f"the key {key} naming it, on update {on_update}"))
    return made


class EngineError(Error):
    """A statement failed. `kind`: unique, foreign_key, check, not_null, rule (of a trigger or the like), function
    (a value that cannot be: the message says why), overflow, busy (a lock was waited for in vain), conflict (somebody
    else's transaction came first), interrupted, full, read_only, lost, refused. `said` is the engine's text, `place`
    what it names: a table with columns, or a check."""

    def __init__(self, kind: str, said: str, place: str = "", message: Message | None = None) -> None:
        super().__init__(message or _general(kind, said))
        self.kind = kind
        self.said = said
        self.place = place


def _general(kind: str, said: str) -> Message:
    """What a failure means, whatever the statement was for."""
    match kind:
        case "busy" | "conflict":
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


T = TypeVar("T")

AGAIN = ("busy", "conflict")
"""The kinds of failures that another try may not meet."""
WAITS = (0.01, 0.05, 0.2, 0.5)
"""Seconds between tries when the memory is busy, besides what the engine itself waits."""
CONFLICTS = 30
LONGEST = 0.25
"""So often what met a conflict is tried again, after waits by chance that grow to so many seconds."""


class Patience:
    """Waits before something is tried again, and says when it has been tried often enough. `tries`: how many failed.
    Whoever came too late waits by chance, so that those who meet once do not meet for ever."""

    def __init__(self) -> None:
        self.tries = 0
        self._waits = iter(WAITS)
        self._conflicts = 0

    def wait(self, error: EngineError) -> bool:
        """True after a wait if there shall be another try."""
        self.tries += 1
        if error.kind == "conflict":
            self._conflicts += 1
            longest = min(LONGEST, 0.001 * 2**self._conflicts)
            wait = random.uniform(0, longest) if self._conflicts <= CONFLICTS else None
        else:
            wait = next(self._waits, None)
        if wait is not None:
            time.sleep(wait)
        return wait is not None


def patiently(do: Callable[[], T], link: Link | None = None) -> T:
    """What something gives that may be done again, tried until the memory is not busy. `Error` if it stays so. `link`:
    the one that it reads by, opened anew if it was lost."""
    patience = Patience()
    while True:
        try:
            return do()
        except EngineError as error:
            lost = error.kind == "lost" and link is not None and link.is_server
            if not lost and error.kind not in AGAIN:
                raise
            if not patience.wait(error):
                if lost:
                    raise
                raise Error(Busy(patience.tries)) from None
            if lost and link is not None:
                with suppress(Error):  # nobody is there yet
                    link.reopen()


class Declared(Node):
    """A column as the engine has it: its type as written, whether the engine computes it, or makes ids for it.
    `adapted`: it compares otherwise than by code point, or holds instants, so that it is cast wherever it is read."""

    name: str
    type: str
    computed: bool
    nullable: bool = True
    default: str | None = None
    makes_ids: bool = False
    adapted: bool = False


class Keys(Node):
    """What a table has besides columns. Keys that hold for some rows only, or for what is computed, are left out."""

    primary: tuple[str, ...] = ()
    uniques: tuple[tuple[str, ...], ...] = ()
    foreign: tuple[ForeignKey, ...] = ()
    checks: tuple[str, ...] = ()
    indexes: tuple[Index, ...] = ()


class Link(Protocol):
    """One connection to a memory. All failures of the driver come out as `EngineError`. `name` is the engine's, as
    plans name it. `keeps_keys`: whether the engine checks foreign keys; `ddl_commits`: whether the making of tables
    ends a transaction; `overriding`: the word without which no id can be put where the engine makes them; `as_text`:
    how row images show a column that they do not show as it is; `is_server`: whether a connection that is lost may be
    made anew, perhaps to another node, and what was begun on it begun again. A transaction that writes claims the row
    of com_head when it begins, so that writers queue where they can; where they cannot, who changes that row first goes
    on, and for the others it is a conflict."""

    name: str
    title: str
    version: str
    read_only: bool
    driver: Any
    keeps_keys: bool
    ddl_commits: bool
    overriding: str
    as_text: str
    is_server: bool

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

    def engine_types(self) -> dict[str, tuple[bool, list[Declared]]]:
        """Of each table and view: whether rows can be written, and its columns."""
        ...

    def keys(self) -> dict[str, Keys]:
        """The keys, checks and indexes of each table that has any."""
        ...

    def own_type(self, kind: str, most: int) -> str:
        """The type of a column (int, text) of com's own tables; a text in a key has at most so many characters."""
        ...

    def own_end(self, table: str) -> str:
        """What stands behind the columns of one of com's own tables."""
        ...

    def rules(self) -> dict[str, tuple[Rule, ...]]:
        """Of each table, the triggers, cascades and conflict clauses that change rows unseen."""
        ...

    def sequence(self, table: str) -> int:
        """The greatest id of a table that the engine itself has noted, or 0."""
        ...

    def move_sequence(self, table: str, last: int) -> None:
        """Lets the engine itself go on behind the last id of a table, when others insert."""
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


_MODULES = {
    "sqlite": "sqlite",
    "postgresql": "postgres",
    "postgres": "postgres",
    "duckdb": "duckdb",
    "mysql": "mysql",
    "mariadb": "mysql",
}
"""The names of engines in URLs, and as plans and modules name them."""
COMPILED = frozenset({"spark", "databricks", "trino", "bigquery", "snowflake"})
"""The engines that programs are only compiled for, by their names in URLs."""
_DRIVERS = {"postgres": ("psycopg", "postgres"), "duckdb": ("duckdb", "duckdb"), "mysql": ("PyMySQL", "mysql")}
"""For each engine what has to be installed for it, and the extra of com that does it."""


def engine_of(url: URL) -> str:
    """The engine that a URL names, as plans name it."""
    known = _MODULES.get(url.get_backend_name())
    if url.get_backend_name() in COMPILED:
        name = url.get_backend_name()
        cause, help_ = f"com compiles for {name}, and does not run there", f"com compile --engine {name}"
        raise Error(UnknownMemory(url.render_as_string(), cause, help_))
    if known is None:
        engines = ", ".join(sorted(set(_MODULES.values())))
        cause = f"com knows no engine {url.get_backend_name()}"
        raise Error(UnknownMemory(url.render_as_string(), cause, f"the engines are {engines}"))
    return known


def open_link(url: URL, *, read_only: bool, timeout: float, seconds: float | None) -> Link:
    """A link to the memory that a URL names. `timeout`: how many seconds to wait for a lock; `seconds`: how long one
    statement may take."""
    engine = engine_of(url)
    try:
        module = importlib.import_module(f"com.runtime.engines.{engine}")
    except ModuleNotFoundError as error:
        driver, extra = _DRIVERS.get(engine, ("", ""))
        if (error.name or "com").startswith("com"):
            raise
        cause = f"its driver {driver} is not installed"
        raise Error(UnknownMemory(url.render_as_string(), cause, f"pip install 'com[{extra}]'")) from None
    link: Link = module.open_link(url, read_only=read_only, timeout=timeout, seconds=seconds)
    return link
