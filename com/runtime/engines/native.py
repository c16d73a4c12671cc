"""What the links to engines with types of their own share; of servers also how transactions are nested."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from sqlalchemy import URL

from com.diagnostics import CannotConvert, Error, FunctionFailed, Interrupted, Overflow, UnknownMemory
from com.plan import Field
from com.runtime.engines import EngineError, Row, Rule
from com.runtime.engines.types import read_type
from com.runtime.engines.values import decoder, encode, encode_list, encode_rows
from com.schema import UNKNOWN, Type
from com.values import FORMS

_NO_TEXT = frozenset({"uuid", "xml", "citext", "bit"})
"""Types that SQLite keeps as text or int, and others as something of their own."""
NO_LENGTH = "the length is 0 or more"
_MARK = re.compile(r""""(?:[^"]|"")*"|'(?:[^']|'')*'|\?|%""")


@lru_cache(1024)
def with_percents(sql: str) -> str:
    """A statement of the runtime's own with `%s` in place of `?`."""

    def made(match: re.Match[str]) -> str:
        return "%s" if match[0] == "?" else match[0].replace("%", "%%")

    return _MARK.sub(made, sql)


def cannot_open(url: URL, error: Exception, help_: str) -> Error:
    """The failure to open a memory."""
    return Error(UnknownMemory(url.render_as_string(), first_line(error), help_))


def first_line(error: object) -> str:
    """What an engine says, to the end of its first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def converted(value: str, engine_type: str, said: str) -> EngineError:
    """A text that cannot be read as a type, or what a statement makes fail so."""
    if value.startswith("no length: "):
        return no_length(said, value.removeprefix("no length: "))
    kind = read_type(engine_type).kind
    kind = kind if kind in FORMS else "number" if kind == "unknown" else kind
    form = FORMS.get(kind, "the type wants it")
    return EngineError("function", said, message=CannotConvert(f"'{value.removeprefix('no value: ')}'", kind, form))


def no_length(said: str, length: str) -> EngineError:
    """A part of a text with a length below zero."""
    return EngineError("function", said, message=FunctionFailed("substr", f"a length of {length}", NO_LENGTH))


def overflow(said: str, detail: str = "it is too large for its type") -> EngineError:
    """A number that is too large."""
    return EngineError("overflow", said, message=Overflow(detail))


def interrupted(said: str, seconds: float | None) -> EngineError:
    """A statement that was stopped."""
    if seconds is None:
        return EngineError("interrupted", said)
    cause, help_ = f"a statement took longer than {seconds:g} s", "allow more time, or read fewer rows"
    return EngineError("interrupted", said, message=Interrupted(cause, help_))


def unique(said: str, place: str) -> EngineError:
    """A key that is there already: in a table of com's own somebody else has just made the row."""
    return EngineError("conflict" if place.startswith("com_") else "unique", said, place)


def refused(code: str, said: str, structural: bool) -> EngineError:
    """A statement that was refused. Only what speaks of tables and statements is told: the rest may hold what stands in
    rows that a program must not see."""
    return EngineError("refused", said if structural else f"it gives no reason that could be shown ({code})")


def placed(table: str, columns: Sequence[str]) -> str:
    """The place of a failure, as `EngineError` wants it."""
    return ", ".join(f"{table}.{c}" for c in columns)


class NativeLink:
    """One connection to an engine that has all of com's types."""

    keeps_keys = True
    ddl_commits = False
    overriding = ""
    as_text = "cast({} as char)"
    is_server = False

    def __init__(self, url: URL, *, read_only: bool, timeout: float, seconds: float | None) -> None:
        self.url = url
        self.read_only = read_only
        self.timeout = timeout
        self.seconds = seconds
        self.driver: Any = self._connect()

    def _connect(self) -> Any:
        raise NotImplementedError

    def run(self, sql: str, binds: Mapping[str, Any]) -> list[Row]:
        raise NotImplementedError

    def ask(self, sql: str, *values: Any) -> list[Row]:
        raise NotImplementedError

    def _say(self, word: str) -> None:
        self.run(word, {})

    def refresh(self) -> None:
        """Nothing depends on the tables' structure."""

    def rules(self) -> dict[str, tuple[Rule, ...]]:
        """None: the engine has no triggers and no cascades."""
        return {}

    def sequence(self, table: str) -> int:
        """None that stays as it is when a run is taken back."""
        return 0

    def move_sequence(self, table: str, last: int) -> None:
        """Nothing: the engine goes on behind the greatest id that it has seen."""

    def own_end(self, table: str) -> str:
        return ""

    def read_type(self, text: str) -> Type:
        return UNKNOWN if text.lower() in _NO_TEXT else read_type(text)

    def quote(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def encode(self, value: Any, type_: Type) -> Any:
        return encode(value, type_)

    def encode_list(self, values: Sequence[Any], type_: Type) -> str:
        return encode_list(values, type_)

    def encode_rows(self, rows: Sequence[Row], fields: Sequence[Field]) -> str:
        return encode_rows(rows, fields)

    def decoder(self, field: Field) -> Callable[[Any], Any]:
        return decoder(field)


class ServerLink(NativeLink):
    """One connection to a server. As a scratch, its transactions are parts of one that is given up in the end."""

    is_server = True
    scratch = False
    _nested = False

    @property
    def in_transaction(self) -> bool:
        return self._nested if self.scratch else self._open

    @property
    def _open(self) -> bool:
        """Whether the connection is in a transaction."""
        raise NotImplementedError

    def _begin(self, write: bool) -> None:
        raise NotImplementedError

    def _commit(self) -> None:
        raise NotImplementedError

    def begin(self, write: bool = True) -> None:
        if not self.scratch:
            self._begin(write)
            return
        if not self._open:
            self._begin(write)
        self._say("savepoint com_part")
        self._nested = True

    def commit(self) -> None:
        if self.scratch:
            self._say("release savepoint com_part")
            self._nested = False
        else:
            self._commit()

    def rollback(self) -> None:
        if self.scratch and self._nested:
            self._say("rollback to savepoint com_part")
            self._nested = False
        elif not self.scratch and self._open:
            self._say("rollback")

    def close(self) -> None:
        with suppress(Exception):  # what is gone is closed
            self.driver.close()

    def reopen(self) -> None:
        self.close()
        self.driver = self._connect()

    def copy(self) -> ServerLink:
        """The memory itself, on a connection that never commits."""
        link = type(self)(self.url, read_only=False, timeout=self.timeout, seconds=self.seconds)
        link.scratch = True
        return link
