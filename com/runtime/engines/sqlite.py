"""SQLite: how a connection is made safe, how values travel, what its errors mean."""

from __future__ import annotations

import json
import math
import re
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

from sqlalchemy import URL

from com.diagnostics import (
    BadStored,
    Busy,
    CannotHold,
    Error,
    Inexact,
    Interrupted,
    Message,
    Overflow,
    UnknownMemory,
)
from com.plan import Field
from com.runtime.canon import at_scale, float_text, timestamp_text
from com.runtime.engines import WAITS, Declared, EngineError, Keys, Row, Rule, bare, key_rules, trigger_rules
from com.runtime.engines.sqlite_functions import register
from com.runtime.engines.sqlite_keys import inspected
from com.runtime.engines.types import read_type
from com.runtime.engines.values import WORDS, checked_float, checked_text, encode_list, encode_rows
from com.schema import Type
from com.values import MAX_INT, MIN_INT, json_text, normal_json, read_value

_OPCODES = 200_000
"""So many steps of SQLite's machine pass between two looks at the clock: about ten milliseconds."""

# ---------------------------------------------------------------- connections


def open_link(url: URL, *, read_only: bool, timeout: float, seconds: float | None) -> SqliteLink:
    """A link to the file of a URL, or to a new memory in RAM."""
    path = url.database or ":memory:"
    return SqliteLink(path, read_only=read_only, timeout=timeout, seconds=seconds)


class SqliteLink:
    """One connection. The runtime says begin, commit and rollback itself."""

    name = "sqlite"
    title = "SQLite"
    version = sqlite3.sqlite_version
    keeps_keys = True
    ddl_commits = False
    overriding = ""
    as_text = "{}"
    is_server = False

    def __init__(self, path: str, *, read_only: bool, timeout: float, seconds: float | None) -> None:
        self.path = path
        self.read_only = read_only
        self.timeout = timeout
        self.seconds = seconds
        self.reasons: list[Message] = []
        self._until = math.inf
        self._stop: BaseException | None = None
        self.driver: Any = self._connect()

    def _connect(self) -> sqlite3.Connection:
        for wait in WAITS:
            try:
                return self._connected()
            except EngineError:  # somebody else holds the lock
                time.sleep(wait)
        try:
            return self._connected()
        except EngineError:
            raise Error(Busy(len(WAITS) + 1)) from None

    def _connected(self) -> sqlite3.Connection:
        in_ram = self.path == ":memory:" or self.path == ""
        mode = "ro" if self.read_only else "rwc"
        target = ":memory:" if in_ram else f"file:{_escaped(self.path)}?mode={mode}"
        try:
            driver = sqlite3.connect(
                target, uri=not in_ram, timeout=self.timeout, isolation_level=None, cached_statements=512
            )
            driver.execute("select count(*) from sqlite_master").fetchall()
            self._make_safe(driver)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
                raise EngineError("busy", "") from None
            help_ = "name a file of SQLite: sqlite:///shop.db"
            raise Error(UnknownMemory(self.path, str(error).lower(), help_)) from None
        return driver

    def _make_safe(self, driver: sqlite3.Connection) -> None:
        driver.execute("pragma foreign_keys = on")
        driver.execute("pragma case_sensitive_like = on")
        driver.execute("pragma recursive_triggers = on")
        self._trust(driver)
        if self.read_only:
            driver.execute("pragma query_only = on")
        if driver.execute("pragma foreign_keys").fetchone() != (1,):
            raise Error(UnknownMemory(self.path, "this SQLite enforces no foreign keys", "use one that does"))
        if driver.execute("select 'A' like 'a'").fetchone() != (0,):
            raise Error(UnknownMemory(self.path, "this SQLite has no case_sensitive_like", "use one that has it"))
        register(driver, self.reasons)
        self._keep_journal(driver)
        driver.set_progress_handler(self._look, _OPCODES)

    def _keep_journal(self, driver: sqlite3.Connection) -> None:
        """Overwrites the file of its rollback journal in place of making and deleting one at each commit."""
        if not self.read_only and driver.execute("pragma journal_mode").fetchone() == ("delete",):
            driver.execute("pragma journal_mode = persist")

    def _trust(self, driver: sqlite3.Connection) -> None:
        """Trusts functions in the schema only if it uses `like`, which SQLite counts as unsafe once it minds case."""
        likes = driver.execute("select exists (select 1 from sqlite_master where lower(sql) glob '*like*')").fetchone()
        driver.execute(f"pragma trusted_schema = {'on' if likes[0] else 'off'}")

    def refresh(self) -> None:
        self._trust(self.driver)

    def _look(self) -> int:
        try:
            return 1 if time.monotonic() > self._until else 0
        except BaseException as stop:  # Ctrl-C arrives here while SQLite is at work
            self._stop = stop
            return 1

    def run(self, sql: str, binds: Mapping[str, Any]) -> list[Row]:
        if self.seconds is not None:
            self._until = time.monotonic() + self.seconds
        try:
            rows: list[Row] = self.driver.execute(sql, binds).fetchall()
            return rows
        except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError) as error:
            raise self._failure(error) from None

    def write(self, sql: str, binds: Mapping[str, Any]) -> int:
        if self.seconds is not None:
            self._until = time.monotonic() + self.seconds
        try:
            count: int = self.driver.execute(sql, binds).rowcount
            if count < 0:  # a statement that begins with `with`
                count = self.driver.execute("select changes()").fetchone()[0]
            return count
        except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError) as error:
            raise self._failure(error) from None

    def ask(self, sql: str, *values: Any) -> list[Row]:
        return self.run(sql, values)  # type: ignore[arg-type]

    def put(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self._until = math.inf
        try:
            self.driver.executemany(sql, rows)
        except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError) as error:
            raise self._failure(error) from None

    def begin(self, write: bool = True) -> None:
        self._say("begin immediate" if write and not self.read_only else "begin")

    def commit(self) -> None:
        self._say("commit")

    def rollback(self) -> None:
        if self.in_transaction:
            self._say("rollback")

    def _say(self, word: str) -> None:
        self._until = math.inf
        try:
            self.driver.execute(word)
        except sqlite3.Error as error:
            raise self._failure(error) from None

    @property
    def in_transaction(self) -> bool:
        return bool(self.driver.in_transaction)

    def close(self) -> None:
        if not self.read_only and not self.in_transaction:
            with suppress(sqlite3.Error):  # others may be at work: then the file stays, and means nothing
                if self.driver.execute("pragma journal_mode").fetchone() == ("persist",):
                    self.driver.execute("pragma journal_mode = delete")
        self.driver.close()

    def reopen(self) -> None:
        if self.path not in (":memory:", ""):
            self.driver.close()
            self.driver = self._connect()

    def copy(self) -> SqliteLink:
        link = SqliteLink(":memory:", read_only=False, timeout=self.timeout, seconds=self.seconds)
        self.driver.backup(link.driver)
        link.refresh()
        return link

    # ------------------------------------------------------------ structure

    def stamp(self) -> Any:
        return self.run("pragma schema_version", {})[0][0]

    def has_table(self, name: str) -> bool:
        return bool(self.ask("select 1 from sqlite_master where type = 'table' and name = ?", name))

    def engine_types(self) -> dict[str, tuple[bool, list[Declared]]]:
        found: dict[str, tuple[bool, list[Declared]]] = {}
        collates = bool(self.run("select 1 from sqlite_master where lower(sql) glob '*collate*' limit 1", {}))
        for name, kind in self.run("select name, type from pragma_table_list where schema = 'main'", {}):
            if kind == "shadow":
                continue
            try:
                rows = self.ask(
                    "select name, type, hidden, [notnull], dflt_value from pragma_table_xinfo(?) order by cid", name
                )
            except EngineError:  # a view over what is gone
                continue
            columns = [self._declared(collates, name, *row) for row in rows if row[2] != 1]
            found[name] = (kind == "table", columns)
        return found

    def _declared(self, collates: bool, table: str, name: str, *about: Any) -> Declared:
        type_, hidden, required, default = about
        makes_ids, folds = (type_ or "").lower() == "integer", collates and self._folds(table, name)
        return Declared(name, type_ or "", hidden in (2, 3), not required, default, makes_ids, folds)

    def _folds(self, table: str, column: str) -> bool:
        """Whether texts of a column are compared otherwise than byte by byte: how it would be sorted tells."""
        sql = f"explain select 1 from {self.quote(table)} order by +{self.quote(column)}"
        sorters = [row[5] for row in self.run(sql, {}) if row[1] == "SorterOpen"]
        return not any(str(key).endswith(("(1,B)", "(1,)")) for key in sorters)

    def keys(self) -> dict[str, Keys]:
        return inspected(self)

    def rules(self) -> dict[str, tuple[Rule, ...]]:
        found: dict[str, list[Rule]] = {}
        for name, table, sql in self.run("select name, tbl_name, sql from sqlite_master where type = 'trigger'", {}):
            for rule in trigger_rules(name, bare(sql).partition("begin")[2]):
                found.setdefault(table.lower(), []).append(rule)
        for table, sql in self.run("select name, sql from sqlite_master where type = 'table' and sql is not null", {}):
            clause = re.search(r"\bon\s+conflict\s+(replace|ignore)\b", bare(sql))
            if clause:
                rule = Rule(("insert", "update"), (), f"a constraint with on conflict {clause[1]}", True)
                found.setdefault(table.lower(), []).append(rule)
            keys = 'select "table", "from", "to", on_delete, on_update from pragma_foreign_key_list(?)'
            for target, own, column, *actions in self.ask(keys, table):
                for rule in key_rules(f"{table}.{own}", column, *[a.lower() for a in actions]):
                    found.setdefault(target.lower(), []).append(rule)
        return {table: tuple(rules) for table, rules in found.items()}

    def sequence(self, table: str) -> int:
        if not self.has_table("sqlite_sequence"):
            return 0
        found = self.ask("select seq from sqlite_sequence where name = ?", table)
        return found[0][0] if found and isinstance(found[0][0], int) else 0

    def move_sequence(self, table: str, last: int) -> None:
        """Nothing: SQLite goes on behind the greatest id that it has seen."""

    def structure(self) -> list[str]:
        order = "case type when 'table' then 1 when 'index' then 2 when 'view' then 3 else 4 end, rowid"
        rows = self.run(f"select name, tbl_name, sql from sqlite_master where sql is not null order by {order}", {})
        shadow = {name for (name,) in self.run("select name from pragma_table_list where type = 'shadow'", {})}
        own = {name for name, _, _ in rows if name.startswith(("com_", "sqlite_"))} | shadow
        return [sql for name, table, sql in rows if name not in own and table not in own]

    def set_keys_checked(self, checked: bool) -> None:
        self._say(f"pragma foreign_keys = {'on' if checked else 'off'}")

    def quote(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def read_type(self, text: str) -> Type:
        return read_type(text)

    def own_type(self, kind: str, most: int) -> str:
        return "integer" if kind == "int" else "text"

    def own_end(self, table: str) -> str:
        return " without rowid" if table in ("com_id",) else ""

    # ------------------------------------------------------------ values

    def encode(self, value: Any, type_: Type) -> Any:
        return encode(value, type_)

    def encode_list(self, values: Sequence[Any], type_: Type) -> str:
        return encode_list(values, type_, _JSON)

    def encode_rows(self, rows: Sequence[Row], fields: Sequence[Field]) -> str:
        return encode_rows(rows, fields, _JSON)

    def decoder(self, field: Field) -> Callable[[Any], Any]:
        return decoder(field)

    # ------------------------------------------------------------ failures

    def _failure(self, error: Exception) -> Exception:
        if self._stop is not None:
            stop, self._stop = self._stop, None
            raise stop
        reasons, said = list(self.reasons), str(error)
        self.reasons.clear()
        if isinstance(error, UnicodeError):
            return EngineError("function", said, message=CannotHold("a text", "it is not Unicode", "mend the text"))
        if isinstance(error, OverflowError):
            return EngineError("overflow", said, message=Overflow("an int left 64 bits"))
        code = getattr(error, "sqlite_errorname", "") or ""
        if said.startswith("Could not decode to UTF-8"):
            return EngineError("function", "", message=BadStored("a column", "bytes that are not UTF-8", "text"))
        if said == "JSON cannot hold BLOB values":
            return EngineError("function", said, message=BadStored("a column", "a blob", "value of its type"))
        if reasons and "raised exception" in said:
            return EngineError("function", said, message=reasons[-1])
        if "string or blob too big" in said:
            return EngineError("overflow", said, message=Overflow("a text or a list grew too large for SQLite"))
        kind = next((kind for start, kind in _KINDS if code.startswith(start)), "refused")
        if said == "integer overflow" or (kind == "refused" and code == "SQLITE_TOOBIG"):
            kind = "overflow"
        if "closed database" in said:
            kind = "lost"
        if kind == "interrupted" and self.seconds is not None:
            cause, help_ = f"a statement took longer than {self.seconds:g} s", "allow more time, or read fewer rows"
            return EngineError(kind, said, message=Interrupted(cause, help_))
        if kind == "refused" and not _STRUCTURE.match(said):
            said = f"it gives no reason that could be shown ({code or 'unknown'})"
        place = said.partition(": ")[2] if kind in ("unique", "check", "not_null") else ""
        message = Overflow("an int left 64 bits") if kind == "overflow" else None
        return EngineError(kind, said, place, message)


_STRUCTURE = re.compile(
    r"(no such [\w ]+: |table .+ has |[^']* has no column|ambiguous column|near \"|foreign key mismatch"
    r"|unknown database|malformed database schema|[^']* may not |cannot |wrong number of|too many |misuse of"
    r"|unsafe use of|error in (view|trigger) |not authorized|out of memory|no query solution)"
)
"""What SQLite says about a statement or the tables, without any value."""

_KINDS = (
    ("SQLITE_CONSTRAINT_UNIQUE", "unique"),
    ("SQLITE_CONSTRAINT_PRIMARYKEY", "unique"),
    ("SQLITE_CONSTRAINT_ROWID", "unique"),
    ("SQLITE_CONSTRAINT_FOREIGNKEY", "foreign_key"),
    ("SQLITE_CONSTRAINT_CHECK", "check"),
    ("SQLITE_CONSTRAINT_NOTNULL", "not_null"),
    ("SQLITE_CONSTRAINT", "rule"),
    ("SQLITE_MISMATCH", "rule"),
    ("SQLITE_BUSY", "busy"),
    ("SQLITE_LOCKED", "busy"),
    ("SQLITE_INTERRUPT", "interrupted"),
    ("SQLITE_FULL", "full"),
    ("SQLITE_READONLY", "read_only"),
    ("SQLITE_CANTOPEN", "lost"),
    ("SQLITE_IOERR", "lost"),
    ("SQLITE_CORRUPT", "lost"),
    ("SQLITE_NOTADB", "lost"),
)


def _escaped(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


# ---------------------------------------------------------------- values to the driver


def encode(value: Any, type_: Type) -> Any:
    """A value as the driver takes it: ints, floats, texts, bytes."""
    if value is None:
        return None
    match type_.kind:
        case "int":
            if not MIN_INT <= value <= MAX_INT:
                raise EngineError("overflow", "", message=Overflow(f"{value} is no int of 64 bits"))
            return int(value)
        case "text":
            return checked_text(value)
        case "decimal":
            return _number(value)
        case "float":
            return checked_float(value)
        case "bool":
            return int(value)
        case "timestamp":
            return timestamp_text(value)
        case "date":
            return str(value)
        case "json":
            return checked_text(json_text(value))
        case _:
            return value


def _number(value: Decimal | int) -> int | float:
    if isinstance(value, int):
        return value
    if value == value.to_integral_value() and MIN_INT <= value <= MAX_INT:
        return int(value)
    if len(value.normalize().as_tuple().digits) > 15:
        raise EngineError("function", "", message=Inexact(format(value, "f"), "SQLite"))
    return float(value)


def _json_decimal(value: Decimal) -> str:
    number = _number(value)
    return str(number) if isinstance(number, int) else format(value, "f")  # whole numbers as a column holds them


_JSON = {**WORDS, "decimal": _json_decimal, "float": lambda v: repr(checked_float(v))}

# ---------------------------------------------------------------- values from the driver


def decoder(field: Field) -> Callable[[Any], Any]:
    """Makes of what SQLite gives a value of the field's type; SQLite may hold anything anywhere."""
    name, type_ = field.name, field.type

    def bad(value: Any) -> EngineError:
        given = f"'{value}'" if isinstance(value, str) else str(value)
        return EngineError("function", "", message=BadStored(name, given, str(type_)))

    def read_int(v: Any) -> Any:
        if v is None or type(v) is int:
            return v
        if isinstance(v, float) and (v == int(v) if math.isfinite(v) else False) and MIN_INT <= v < MAX_INT:
            return int(v)
        if isinstance(v, float) and not MIN_INT <= v < MAX_INT:
            raise EngineError("overflow", "", message=Overflow(f"{name} left 64 bits"))
        raise bad(v)

    def read_float(v: Any) -> Any:
        if v is None:
            return v
        if not isinstance(v, int | float):
            raise bad(v)
        if not math.isfinite(v):
            raise EngineError("overflow", "", message=Overflow(f"{name} became infinite"))
        return float(v) + 0.0  # other engines know no sign of zero

    def read_decimal(v: Any) -> Any:
        if v is None:
            return v
        if isinstance(v, int):
            return at_scale(Decimal(v), type_.scale)
        if not isinstance(v, float):
            raise bad(v)
        if not math.isfinite(v):
            raise EngineError("overflow", "", message=Overflow(f"{name} became infinite"))
        number = at_scale(Decimal(repr(v)), type_.scale)
        if len(number.normalize().as_tuple().digits) > 15:
            raise EngineError("function", "", message=Inexact(format(number, "f"), "SQLite"))
        return number

    def read_text(v: Any) -> Any:
        if v is None or isinstance(v, str):
            return v
        if isinstance(v, bytes):
            raise bad("bytes")
        return float_text(v) if isinstance(v, float) else str(v)

    def read_bool(v: Any) -> Any:
        if v is None:
            return v
        if v == 0 or v == 1:
            return v == 1
        raise bad(v)

    def read_time(v: Any) -> Any:
        if v is None:
            return v
        try:
            return read_value(v, type_)
        except (ValueError, TypeError):
            raise bad(v) from None

    def read_json(v: Any) -> Any:
        if v is None:
            return v
        try:
            return normal_json(v if isinstance(v, int | float) else json.loads(v))
        except (ValueError, TypeError):
            raise bad(v) from None

    def read_bytes(v: Any) -> Any:
        if v is None or isinstance(v, bytes):
            return v
        try:
            return bytes.fromhex(v)
        except (ValueError, TypeError):
            raise bad(v) from None

    readers: dict[str, Callable[[Any], Any]] = {
        "int": read_int,
        "float": read_float,
        "decimal": read_decimal,
        "text": read_text,
        "bool": read_bool,
        "date": read_time,
        "timestamp": read_time,
        "json": read_json,
        "bytes": read_bytes,
    }
    return readers.get(type_.kind, lambda v: v)
