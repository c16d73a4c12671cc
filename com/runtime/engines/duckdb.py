"""DuckDB: how a connection is made safe, what its types are, what its errors mean.

One process writes at a time: the file is waited for. Inside it, who first touches com_head goes on, and others try
until they can. There are no savepoints. DuckDB checks foreign keys too early (it keeps child and parent from being
deleted in one transaction), so com makes its tables without them, and checks them itself after each write.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
from sqlalchemy import URL

from com.diagnostics import Error, UnknownMemory
from com.runtime.engines import Declared, EngineError, Keys, Row, bare
from com.runtime.engines.native import (
    NativeLink,
    cannot_open,
    converted,
    first_line,
    interrupted,
    overflow,
    placed,
    refused,
)
from com.schema import TIMESTAMP, ForeignKey, Index, Type

_WAIT = 0.02
_AT_ONCE = 100
"""So many rows are written by one statement."""
_STEPS = 1_000_000
"""A sequence is moved on one by one: so far at most."""
_CONFIG: Mapping[str, str | bool | int | float | list[str]] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
}
_copies = count(1)


def open_link(url: URL, *, read_only: bool, timeout: float, seconds: float | None) -> DuckLink:
    """A link to the file of a URL, or to a new memory in RAM."""
    return DuckLink(url, read_only=read_only, timeout=timeout, seconds=seconds)


class DuckLink(NativeLink):
    """One connection. The runtime says begin, commit and rollback itself."""

    name = "duckdb"
    title = "DuckDB"
    version = duckdb.__version__
    keeps_keys = False
    as_text = "cast({} as varchar)"
    _main = ""

    def __init__(self, url: URL, *, read_only: bool, timeout: float, seconds: float | None) -> None:
        self.path = url.database or ":memory:"
        self.in_transaction = False
        self._has_head = False
        self._seen: dict[str, Any] = {}
        self._sequences: dict[str, list[tuple[str, int]]] = {}
        self._copied: str | None = None
        super().__init__(url, read_only=read_only, timeout=timeout, seconds=seconds)

    def _connect(self) -> duckdb.DuckDBPyConnection:
        if self.path != ":memory:" and not Path(self.path).parent.is_dir():
            help_ = "name a file of DuckDB: duckdb:///shop.duckdb"
            raise Error(UnknownMemory(self.path, "there is no such folder", help_))
        until = time.monotonic() + self.timeout
        while True:
            try:
                driver = duckdb.connect(self.path, read_only=self.read_only, config=dict(_CONFIG))
                break
            except duckdb.Error as error:
                locked = "lock" in str(error)
                if not locked or time.monotonic() > until:
                    help_ = "another process has it open" if locked else "name a file of DuckDB: duckdb:///shop.duckdb"
                    raise cannot_open(self.url, error, help_) from None
                time.sleep(_WAIT)
        try:
            schema = self.url.query.get("schema")
            if isinstance(schema, str):
                driver.execute(f"use {self.quote(schema)}")
            if driver.execute("select current_setting('lock_configuration')").fetchone() != (True,):
                driver.execute("set TimeZone = 'UTC'")
                driver.execute("set lock_configuration = true")
        except duckdb.Error as error:
            driver.close()
            help_ = "name a schema that is there" if "schema" in self.url.query else "use DuckDB 1.5 or newer"
            raise cannot_open(self.url, error, help_) from None
        if driver.execute("select current_setting('enable_external_access')").fetchone() != (False,):
            driver.close()
            help_ = "close the other connection of this process, which may read files"
            raise Error(UnknownMemory(self.path, "it is open with access to files", help_))
        return driver

    # ------------------------------------------------------------ statements

    def _execute(self, sql: str, values: Any) -> list[Row]:
        timer = None
        if self.seconds is not None:
            timer = threading.Timer(self.seconds, self.driver.interrupt)
            timer.start()
        try:
            statement = self._seen.get(sql)
            if statement is None:
                found = self.driver.extract_statements(sql)
                if len(found) != 1:
                    raise EngineError("refused", f"{len(found)} statements in one")
                if len(self._seen) > 1000:
                    self._seen.clear()
                statement = self._seen[sql] = found[0]
            rows: list[Row] = self.driver.execute(statement, values or None).fetchall()
            return rows
        except (duckdb.Error, OverflowError, UnicodeError, ValueError, RuntimeError) as error:
            raise self._failure(error) from None
        finally:
            if timer is not None:
                timer.cancel()

    def run(self, sql: str, binds: Mapping[str, Any]) -> list[Row]:
        return self._execute(sql, {name: _sized(value) for name, value in binds.items()})

    def write(self, sql: str, binds: Mapping[str, Any]) -> int:
        rows = self.run(sql, binds)
        return int(rows[0][0]) if rows and isinstance(rows[0][0], int) else 0

    def ask(self, sql: str, *values: Any) -> list[Row]:
        return self._execute(sql, [_sized(v) for v in values])

    def put(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        into, values, marks = sql.partition(" values ")
        if not values:
            for row in rows:
                self.ask(sql, *row)
            return
        for start in range(0, len(rows), _AT_ONCE):  # a statement costs more than what it writes
            some = rows[start : start + _AT_ONCE]
            self.ask(f"{into} values {', '.join([marks] * len(some))}", *[value for row in some for value in row])

    # ------------------------------------------------------------ transactions

    def begin(self, write: bool = True) -> None:
        until = time.monotonic() + self.timeout
        while True:
            self._say("begin transaction")
            self.in_transaction = True
            try:
                if write and not self.read_only and (self._has_head or self.has_table("com_head")):
                    self._has_head = True
                    self.ask("update com_head set run = run + 1")  # what would change nothing would not claim the row
                    self.ask("update com_head set run = run - 1")
                return
            except EngineError as error:
                self.rollback()
                if error.kind != "conflict":
                    self._has_head = False
                    raise
                if time.monotonic() > until:
                    raise EngineError("busy", error.said) from None
            time.sleep(random.uniform(0, _WAIT))

    def commit(self) -> None:
        self._say("commit")
        self.in_transaction = False

    def rollback(self) -> None:
        if self.in_transaction:
            self.in_transaction = False
            try:
                self._say("rollback")
            except EngineError as error:
                if "no transaction is active" not in error.said:
                    raise

    def close(self) -> None:
        if self._copied is not None:
            try:
                self.rollback()
                self.driver.execute(f"use {self._main}")
                self.driver.execute(f"detach {self._copied}")
            except duckdb.Error:
                pass
        self.driver.close()

    def reopen(self) -> None:
        if self.path != ":memory:":
            self.driver.close()
            self.in_transaction = False
            self._seen.clear()
            self.driver = self._connect()

    def copy(self) -> DuckLink:
        """A database in RAM beside this one, with the same tables, but for their foreign keys."""
        link = object.__new__(DuckLink)
        link.__dict__.update(self.__dict__)
        link.in_transaction, link.read_only, link._seen, link._has_head = False, False, {}, False
        link._copied = name = f"com_copy_{next(_copies)}"
        link.driver = self.driver.cursor()
        sql = (
            "select schema_name, table_name, sql from duckdb_tables() where database_name = current_database()"
            " and not temporary and schema_name = current_schema()"
        )
        views = (
            "select sql from duckdb_views() where database_name = current_database() and not internal"
            " and schema_name = current_schema()"
        )
        indexes = "select sql from duckdb_indexes() where database_name = current_database() and sql is not null"
        sequences = "select sequence_name from duckdb_sequences() where database_name = current_database()"
        main = self.quote(self.ask("select current_database()")[0][0])
        try:
            found, made = self.ask(sql), [text for (text,) in [*self.ask(indexes), *self.ask(views)]]
            names = [name_ for (name_,) in self.ask(sequences)]
            link._main = f"{main}.{self.quote(self.ask('select current_schema()')[0][0])}"
            types = self.engine_types()
            link.driver.execute(f"attach ':memory:' as {name}")
            own = f"{name}.{self.quote(self.ask('select current_schema()')[0][0])}"
            link.driver.execute(f"create schema if not exists {own}")
            link.driver.execute(f"use {own}")
            for sequence in names:
                link.driver.execute(f"create sequence {self.quote(sequence)}")
            for schema, table, text in found:
                link.driver.execute(without_keys(text))
                source = f"{main}.{self.quote(schema)}.{self.quote(table)}"
                columns = ", ".join(self.quote(c.name) for c in types[table][1] if not c.computed)
                link.driver.execute(f"insert into {self.quote(table)} ({columns}) select {columns} from {source}")
            for text in made:
                link.driver.execute(text)
        except duckdb.Error as error:
            link.close()
            raise self._failure(error) from None
        return link

    def set_keys_checked(self, checked: bool) -> None:
        """DuckDB checks those of tables that others made, always."""

    # ------------------------------------------------------------ structure

    def has_table(self, name: str) -> bool:
        sql = (
            "select 1 from duckdb_tables() where table_name = ? and database_name = current_database()"
            " and schema_name = current_schema()"
        )
        return bool(self.ask(sql, name))

    def stamp(self) -> Any:
        sql = (
            "select table_name, sql from duckdb_tables() where database_name = current_database()"
            " union all select view_name, sql from duckdb_views() where not internal"
            " and database_name = current_database() union all select index_name, sql from duckdb_indexes()"
            " where database_name = current_database()"
        )
        return sorted((name, text or "") for name, text in self.ask(sql))

    def engine_types(self) -> dict[str, tuple[bool, list[Declared]]]:
        made_by = (
            "select table_name, sql from duckdb_tables() where database_name = current_database()"
            " and schema_name = current_schema()"
        )
        tables = {table: _columns(text) for table, text in self.ask(made_by)}
        sql = (
            "select table_name, column_name, data_type, is_nullable, column_default from duckdb_columns()"
            " where database_name = current_database() and schema_name = current_schema() and not internal"
            " order by table_name, column_index"
        )
        found: dict[str, tuple[bool, list[Declared]]] = {}
        folding = any(_COLLATED.search(bare(text)) for texts in tables.values() for text in texts.values())
        for table, column, type_, nullable, default in self.ask(sql):
            text = bare(tables.get(table, {}).get(column, ""))
            computed = "generated always as" in text
            folds = type_ == "VARCHAR" and folding and (table not in tables or bool(_COLLATED.search(text)))
            makes_ids = default is not None and "nextval(" in default
            made = Declared(column, type_, computed, nullable, default, makes_ids, folds or _ZONED in type_)
            found.setdefault(table, (table in tables, []))[1].append(made)
        return found

    def keys(self) -> dict[str, Keys]:
        here = "database_name = current_database() and schema_name = current_schema()"
        found: dict[str, list[list[Any]]] = {}
        primary: dict[str, tuple[str, ...]] = {}
        constraints = (
            "select table_name, constraint_type, expression, constraint_column_names, referenced_table,"
            f" referenced_column_names from duckdb_constraints() where {here} order by table_name, constraint_index"
        )
        for table, kind, text, columns, target, aims in self.ask(constraints):
            _, uniques, foreign, checks, _ = found.setdefault(table, [[], [], [], [], []])
            match kind:
                case "PRIMARY KEY":
                    primary[table] = tuple(columns)
                case "UNIQUE":
                    uniques.append(tuple(columns))
                case "FOREIGN KEY":
                    foreign.append(ForeignKey(tuple(columns), target, tuple(aims)))
                case "CHECK":
                    checks.append(text)
        indexes = f"select table_name, index_name, is_unique, sql from duckdb_indexes() where {here}"
        for table, index, is_unique, text in self.ask(indexes):
            named = _indexed(text or "")
            if named:
                place = 1 if is_unique else 4
                made = named if is_unique else Index(index, named)
                found.setdefault(table, [[], [], [], [], []])[place].append(made)
        return {table: Keys(primary.get(table, ()), *map(tuple, parts[1:])) for table, parts in found.items()}

    def read_type(self, text: str) -> Type:
        if _ZONED in text:
            return TIMESTAMP
        return super().read_type(_NAMES.get(text.lower(), text))

    def move_sequence(self, table: str, last: int) -> None:
        here = "database_name = current_database() and schema_name = current_schema()"
        sql = (
            f"select s.sequence_name, coalesce(s.last_value, 0) from duckdb_sequences() s where {here} and exists ("
            f"select 1 from duckdb_columns() where {here} and table_name = ?"
            " and replace(column_default, '\"', '') = 'nextval(' || chr(39) || replace(s.sequence_name, '\"', '')"
            " || chr(39) || ')') and increment_by = 1"
        )
        if self._copied is not None:
            return
        if table not in self._sequences:
            self._sequences[table] = [(name, at) for name, at in self.ask(sql, table)]
        for place, (name, at) in enumerate(self._sequences[table]):
            if 0 < last - at <= _STEPS:  # it cannot have gone back, and a gap does no harm
                ((at,),) = self.ask(f"select max(nextval(?)) from range({int(last - at)})", self.quote(name))
                self._sequences[table][place] = name, at

    def refresh(self) -> None:
        self._sequences.clear()

    def structure(self) -> list[str]:
        raise NotImplementedError("com makes the tables of a rebuilt memory from the schema")

    def own_type(self, kind: str, most: int) -> str:
        return "bigint" if kind == "int" else "varchar"

    # ------------------------------------------------------------ failures

    def _failure(self, error: Exception) -> EngineError:
        said = first_line(error)
        text = said.partition(": ")[2] or said
        if isinstance(error, EngineError):
            return error
        if isinstance(error, duckdb.ConstraintException):
            return _constraint(" ".join(str(error).split("\n")).partition(": ")[2])
        if isinstance(error, duckdb.TransactionException) or "write-write conflict" in said or "onflict on" in said:
            return EngineError("conflict" if "onflict" in said else "refused", said)
        if isinstance(error, duckdb.InterruptException):
            return interrupted(said, self.seconds)
        if isinstance(error, duckdb.ConversionException | duckdb.InvalidInputException | duckdb.OutOfRangeException):
            found = _CONVERT.search(str(error))
            if found:
                wanted = (found["t1"] or found["t2"] or found["t3"]).lower()
                value = next(v for v in (found["v1"], found["v2"], found["v3"]) if v is not None)
                if wanted in ("decimal", "int64") and _NUMBER.fullmatch(value):
                    return overflow(said, f"{value} is too large for its type")
                return converted(value, _NAMES.get(wanted, wanted), said)
        if "cannot be negative" in said:
            return overflow(said, "a limit is below zero")
        if _NO_JSON.search(text):
            return converted(_NO_JSON.sub("", text).partition('"')[2].removesuffix('"'), "json", said)
        if isinstance(error, duckdb.OutOfRangeException | OverflowError) or _TOO_LARGE.search(said):
            return overflow(said, text.rstrip("!"))
        if isinstance(error, duckdb.ConnectionException):
            return EngineError("lost", said)
        if "read-only" in said:
            return EngineError("read_only", said)
        if isinstance(error, duckdb.IOException | duckdb.FatalException):
            return EngineError("full" if "space" in said else "lost", said)
        return refused(type(error).__name__, text, isinstance(error, _STRUCTURAL))


def _sized(value: Any) -> Any:
    """An int as one of 64 bits: DuckDB would take the smallest type that holds it, and compute in that."""
    if type(value) is int:
        return duckdb.Value(value, duckdb.sqltypes.BIGINT)
    return value


def without_keys(text: str) -> str:
    """The DDL of a table without its foreign keys."""
    return _KEYS.sub("", text)


def _parts(text: str) -> list[str]:
    """What stands between the commas of the outermost parentheses."""
    parts, depth = [""], 0
    for word in _WORDS.findall(text):
        depth -= word == ")"
        if depth and not (word == "," and depth == 1):
            parts[-1] += word
        elif depth:
            parts.append("")
        depth += word == "("
        if not depth and parts != [""]:
            break
    return [part.strip() for part in parts]


def _columns(text: str) -> dict[str, str]:
    """The columns of a table by its DDL, each with all that is said of it."""
    return {_unquoted(_WORDS.findall(part)[0]): part for part in _parts(text) if part}


def _indexed(text: str) -> tuple[str, ...]:
    """The columns of an index by its DDL; none if it is of what is computed."""
    parts = _parts(text)
    return () if any("(" in bare(part) for part in parts) else tuple(_unquoted(part) for part in parts if part)


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _constraint(text: str) -> EngineError:
    for kind, pattern in _CONSTRAINTS:
        found = pattern.search(text)
        if found:
            place = found.groupdict()
            if kind == "unique":
                columns = re.findall(r"(?:^|, )(.+?): ", place["place"])
                return EngineError(kind, text, ", ".join(columns))
            if kind == "not_null":
                table, _, column = place["place"].rpartition(".")
                return EngineError(kind, text, placed(table, [column]))
            return EngineError(kind, text, place.get("place") or "")
    return EngineError("rule", text)


_CONSTRAINTS = (
    ("unique", re.compile(r'uplicate key "(?P<place>.*)" violates')),
    ("unique", re.compile(r'PRIMARY KEY or UNIQUE constraint violation: duplicate key "(?P<place>.*)"')),
    ("foreign_key", re.compile(r"foreign key")),
    ("check", re.compile(r"CHECK constraint failed on table .* with expression (?P<place>.*)")),
    ("not_null", re.compile(r"NOT NULL constraint failed: (?P<place>.*)")),
)
_CONVERT = re.compile(
    r"Could not convert string ['\"](?P<v1>.*?)['\"] to (?P<t1>\w+)"
    r"|invalid (?P<t2>date|timestamp) field format: \"(?P<v2>.*?)\""
    r"|(?P<t3>date|timestamp) field value out of range: \"(?P<v3>.*?)\"",
    re.DOTALL,
)
_NO_JSON = re.compile(r"^Malformed JSON at byte \d+ of input: .*?Input: ")
_NUMBER = re.compile(r"\s*[+-]?\d+(\.\d*)?(e[+-]?\d+)?\s*", re.IGNORECASE)
_WORDS = re.compile(r""""(?:[^"]|"")*"|'(?:[^']|'')*'|\w+|\W""")
_COLLATED = re.compile(r"\bcollate\b")
_ZONED = "WITH TIME ZONE"
_STRUCTURAL = duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException, duckdb.NotImplementedException
"""Failures that are told in words of tables and statements."""
_TOO_LARGE = re.compile(
    r"out of range|not in timestamp range|Failed to cast decimal value|Could not cast value .* to DECIMAL|Overflow in",
    re.DOTALL,
)
_NAMES = {"int64": "bigint", "int32": "integer", "hugeint": "numeric", "bit": "bitstring", "tinyint": "tinyint"}
_KEYS = re.compile(
    r',\s*(?:CONSTRAINT\s+\S+\s+)?FOREIGN KEY\s*\((?:"[^"]*"|[^")])*\)\s*REFERENCES\s+(?:"[^"]*"|[^\s("])+\s*'
    r'\((?:"[^"]*"|[^")])*\)'
)
