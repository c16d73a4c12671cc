"""PostgreSQL: how a connection is made safe, what its types are, what its errors mean.

A memory is one schema: the first of the search path, or the one that `?schema=` in the URL names.

Writers queue for com_head with the first statement of their transaction: by a lock of the table, which takes no
snapshot, or, where a server has none, of its row. Who had to wait for the row has a snapshot of before the other's
commit, gives it up and takes a new one. So each sees all that the one before it wrote, and repeatable read is enough;
all that is relied on is that not both of two who change the row can commit. Statements are prepared, which keeps a text
from holding two of them.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg import pq
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import TextLoader
from sqlalchemy import URL

from com.diagnostics import BadStored, CannotConvert, Error, UnknownMemory
from com.runtime.engines import WRITES, Declared, EngineError, Keys, Row, Rule, key_rules, trigger_rules
from com.runtime.engines.native import (
    ServerLink,
    cannot_open,
    converted,
    first_line,
    interrupted,
    no_length,
    overflow,
    placed,
    refused,
    unique,
    with_percents,
)
from com.schema import TIMESTAMP, ForeignKey, Index, Type
from com.values import FORMS

_LEAST = 150000
_WAIT = 0.002
_BY_TABLE = "lock table com_head in exclusive mode"
_BY_ROW = "select one from com_head for update"

_PROFILE = {
    "client_encoding": "UTF8",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "standard_conforming_strings": "on",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "default_transaction_isolation": "repeatable read",
    "xmloption": "content",
    "jit": "off",
}


def open_link(url: URL, *, read_only: bool, timeout: float, seconds: float | None) -> PostgresLink:
    """A link to the database of a URL."""
    return PostgresLink(url, read_only=read_only, timeout=timeout, seconds=seconds)


class PostgresLink(ServerLink):
    """One connection. The runtime says begin, commit and rollback itself."""

    name = "postgres"
    title = "PostgreSQL"
    version = ""
    overriding = " overriding system value"
    as_text = "cast({} as text)"
    _has_head = False
    _locks_tables = True
    _replica = False
    _checks: Mapping[tuple[str, str], str] = {}

    def _connect(self) -> psycopg.Connection[Any]:
        given = self.url.translate_connect_args(username="user", database="dbname") | dict(self.url.query)
        given.setdefault("connect_timeout", 10)
        schema = given.pop("schema", None)
        help_ = "write it as postgresql://user@host/database, and look whether the server runs"
        try:
            driver: psycopg.Connection[Any] = psycopg.connect(autocommit=True, **given)
            if schema is not None:
                driver.execute("select set_config('search_path', quote_ident(%s), false)", (schema,))
                if driver.execute("select current_schema()").fetchone() != (schema,):
                    self._refuse(driver, f"there is no schema {schema}", f"create schema {self.quote(schema)}")
            self._make_safe(driver)
        except (psycopg.Error, OSError, UnicodeError) as error:
            raise cannot_open(self.url, error, help_) from None
        return driver

    def _make_safe(self, driver: psycopg.Connection[Any]) -> None:
        profile = dict(_PROFILE)
        profile["lock_timeout"] = f"{max(1, round(self.timeout * 1000))}ms"
        profile["statement_timeout"] = f"{round((self.seconds or 0) * 1000)}ms"
        profile["default_transaction_read_only"] = "on" if self.read_only else "off"
        for name, value in profile.items():
            driver.execute("select set_config(%s, %s, false)", (name, value))
        said = "show server_version_num", "show server_encoding", "show standard_conforming_strings"
        number, encoding, conforming = (driver.execute(s).fetchone()[0] for s in said)  # type: ignore[index]
        if int(number) < _LEAST:
            self._refuse(driver, "its server is older than PostgreSQL 15", "use PostgreSQL 15 or newer")
        if encoding != "UTF8":
            self._refuse(driver, f"its encoding is {encoding}", "make the database with encoding 'UTF8'")
        if conforming != "on":
            self._refuse(driver, "backslashes have a meaning in its strings", "set standard_conforming_strings = on")
        self.version = f"{int(number) // 10000}.{int(number) % 10000}"
        driver.adapters.register_dumper(int, Int8Dumper)
        for kind in ("jsonb",):  # SQLAlchemy reads its own answers as json (collations): leave that loader alone
            driver.adapters.register_loader(kind, TextLoader)

    def _refuse(self, driver: psycopg.Connection[Any], cause: str, help_: str) -> None:
        driver.close()
        raise Error(UnknownMemory(self.url.render_as_string(), cause, help_))

    # ------------------------------------------------------------ statements

    def _execute(self, sql: str, values: Any) -> psycopg.Cursor[Any]:
        try:
            return self.driver.execute(sql, values, prepare=True)  # type: ignore[no-any-return]
        except (psycopg.Error, OverflowError, UnicodeError) as error:
            raise self._failure(error) from None

    def run(self, sql: str, binds: Mapping[str, Any]) -> list[Row]:
        return self._rows(self._execute(sql, binds))

    def _rows(self, cursor: psycopg.Cursor[Any]) -> list[Row]:
        try:
            return cursor.fetchall() if cursor.description is not None else []
        except (psycopg.Error, ValueError) as error:  # a date that Python has none for
            message = BadStored("a column", first_line(error), "value com knows")
            raise EngineError("function", str(error), message=message) from None

    def write(self, sql: str, binds: Mapping[str, Any]) -> int:
        return max(self._execute(sql, binds).rowcount, 0)

    def ask(self, sql: str, *values: Any) -> list[Row]:
        return self._rows(self._execute(with_percents(sql), values))

    def put(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        text = with_percents(sql)
        if len(rows) == 1:
            self._execute(text, rows[0])
            return
        try:
            self.driver.cursor().executemany(text, rows)
        except (psycopg.Error, OverflowError, UnicodeError) as error:
            raise self._failure(error) from None

    # ------------------------------------------------------------ transactions

    @property
    def _open(self) -> bool:
        status = self.driver.info.transaction_status
        return status in (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR, pq.TransactionStatus.ACTIVE)

    def _begin(self, write: bool) -> None:
        write = write and not self.read_only
        if write and not self._has_head:
            self._has_head = self.has_table("com_head")
        until, longest = time.monotonic() + self.timeout, _WAIT
        while True:
            self._say("begin isolation level repeatable read")
            if not (write and self._has_head):
                return
            try:
                self._say(_BY_TABLE if self._locks_tables else _BY_ROW)
                return
            except EngineError as error:
                if error.kind == "refused" and self._locks_tables:
                    self._locks_tables = False
                    self._say("rollback")
                    continue
                if error.kind != "conflict":
                    self._has_head = False
                    raise
                self._say("rollback")
                if time.monotonic() > until:
                    raise EngineError("busy", error.said) from None
                longest = min(2 * longest, 16 * _WAIT)
                time.sleep(random.uniform(0, longest))  # else all who waited would fail anew at each commit

    def _commit(self) -> None:
        tag = self._execute("commit", {}).statusmessage
        if tag != "COMMIT":  # of a transaction that had failed
            raise EngineError("lost", f"the server answered {tag} to commit")

    def set_keys_checked(self, checked: bool) -> None:
        if checked and not self._replica:
            return
        try:
            self._say(f"set session_replication_role = {'origin' if checked else 'replica'}")
            self._replica = not checked
        except EngineError:  # only some roles may: then the undoing must keep to the keys at each row
            pass

    # ------------------------------------------------------------ structure

    def has_table(self, name: str) -> bool:
        return self.ask("select to_regclass(quote_ident(current_schema()) || '.' || quote_ident(?::text))", name) != [
            (None,)
        ]

    def stamp(self) -> Any:
        sql = (
            "with r as (select oid, xmin, relkind from pg_class"
            " where relnamespace = quote_ident(current_schema())::regnamespace"
            " and relname not like 'com\\_%' and relkind in ('r', 'p', 'v', 'm', 'i'))"
            " select (select count(*) || '/' || coalesce(sum(xmin::text::bigint), 0) from r),"
            " (select coalesce(sum(a.xmin::text::bigint), 0) from pg_attribute a join r on r.oid = a.attrelid),"
            " (select count(*) || '/' || coalesce(sum(c.xmin::text::bigint), 0) from pg_constraint c"
            " join r on r.oid = c.conrelid), to_regclass('com_meta')::text"
        )
        return self.ask(sql)[0]

    def refresh(self) -> None:
        rows = self.ask(
            "select r.relname, c.conname, pg_get_constraintdef(c.oid) from pg_constraint c join pg_class r"
            " on r.oid = c.conrelid where c.contype = 'c'"
            " and c.connamespace = quote_ident(current_schema())::regnamespace"
        )
        self._checks = {(table, name): text for table, name, text in rows}

    def engine_types(self) -> dict[str, tuple[bool, list[Declared]]]:
        sql = (
            "select c.relname, c.relkind in ('r', 'p'), a.attname, format_type(t.base, t.mod), a.attgenerated <> '',"
            " not a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attidentity <> '',"
            " coalesce(not l.collisdeterministic, false)"
            " from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped"
            " left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum"
            " left join pg_collation l on l.oid = a.attcollation"
            " join lateral (select case when y.typtype = 'd' then y.typbasetype else a.atttypid end as base,"
            " case when y.typtype = 'd' then y.typtypmod else a.atttypmod end as mod"
            " from pg_type y where y.oid = a.atttypid) t on true"
            " where c.relnamespace = quote_ident(current_schema())::regnamespace and c.relkind in ('r', 'p', 'v', 'm')"
            " and not c.relispartition order by c.relname, a.attnum"
        )
        found: dict[str, tuple[bool, list[Declared]]] = {}
        for table, written, column, type_, computed, nullable, default, identity, folds in self.ask(sql):
            makes_ids = identity or "nextval(" in (default or "")
            adapted = folds or type_.startswith("character(") or type_ in ("character", "bpchar") or _ZONED in type_
            made = Declared(column, type_, computed, nullable, "identity" if identity else default, makes_ids, adapted)
            found.setdefault(table, (written, []))[1].append(made)
        return found

    def keys(self) -> dict[str, Keys]:
        sql = (
            "select r.relname, x.relname, i.indisprimary, i.indisunique and i.indimmediate,"
            " array(select a.attname::text from unnest(i.indkey::smallint[]) with ordinality as k (number, place)"
            " join pg_attribute a on a.attrelid = r.oid and a.attnum = k.number"
            " where k.place <= i.indnkeyatts order by k.place)"
            " from pg_index i join pg_class r on r.oid = i.indrelid join pg_class x on x.oid = i.indexrelid"
            " where r.relnamespace = quote_ident(current_schema())::regnamespace"
            " and r.relkind in ('r', 'p') and i.indisvalid and i.indpred is null"
            " and i.indexprs is null order by x.relname"
        )
        found: dict[str, list[list[Any]]] = {}
        primary: dict[str, tuple[str, ...]] = {}
        for table, index, is_primary, is_unique, columns in self.ask(sql):
            _, uniques, _, _, indexes = found.setdefault(table, [[], [], [], [], []])
            if is_primary:
                primary[table] = tuple(columns)
            elif is_unique:
                uniques.append(tuple(columns))
            else:
                indexes.append(Index(index, tuple(columns)))
        keys = (
            "select s.relname, t.relname,"
            " array(select a.attname::text from unnest(c.conkey) with ordinality as k (n, p)"
            " join pg_attribute a on a.attrelid = s.oid and a.attnum = k.n order by k.p),"
            " array(select a.attname::text from unnest(c.confkey) with ordinality as k (n, p)"
            " join pg_attribute a on a.attrelid = t.oid and a.attnum = k.n order by k.p)"
            " from pg_constraint c join pg_class s on s.oid = c.conrelid join pg_class t on t.oid = c.confrelid"
            " where c.contype = 'f' and c.connamespace = quote_ident(current_schema())::regnamespace"
            " and t.relnamespace = quote_ident(current_schema())::regnamespace and c.conparentid = 0"
        )
        for table, target, columns, aims in self.ask(keys):
            key = ForeignKey(tuple(columns), target, tuple(aims))
            found.setdefault(table, [[], [], [], [], []])[2].append(key)
        for (table, _), text in sorted(self._checks.items()):
            found.setdefault(table, [[], [], [], [], []])[3].append(_condition(text))
        return {table: Keys(primary.get(table, ()), *map(tuple, parts[1:])) for table, parts in found.items()}

    def read_type(self, text: str) -> Type:
        return TIMESTAMP if _ZONED in text else super().read_type(text)

    def rules(self) -> dict[str, tuple[Rule, ...]]:
        found: dict[str, list[Rule]] = {}
        triggers = (
            "select r.relname, t.tgname, p.prosrc, l.lanname in ('sql', 'plpgsql') from pg_trigger t"
            " join pg_class r on r.oid = t.tgrelid join pg_proc p on p.oid = t.tgfoid"
            " join pg_language l on l.oid = p.prolang where not t.tgisinternal and t.tgenabled <> 'D'"
            " and r.relnamespace = quote_ident(current_schema())::regnamespace and r.relkind in ('r', 'p')"
        )
        for table, name, body, readable in self.ask(triggers):
            for rule in trigger_rules(name, body if readable else None):
                found.setdefault(table.lower(), []).append(rule)
        rewritten = (
            "select r.relname, w.rulename from pg_rewrite w join pg_class r on r.oid = w.ev_class"
            " where r.relkind in ('r', 'p') and r.relnamespace = quote_ident(current_schema())::regnamespace"
        )
        for table, name in self.ask(rewritten):
            found.setdefault(table.lower(), []).append(Rule(WRITES, (), f"the rule {name}", True))
        keys = (
            "select t.relname, s.relname, a.attname, b.attname, c.confdeltype, c.confupdtype from pg_constraint c"
            " join pg_class t on t.oid = c.confrelid join pg_class s on s.oid = c.conrelid"
            " join pg_attribute a on a.attrelid = s.oid and a.attnum = any (c.conkey)"
            " join pg_attribute b on b.attrelid = t.oid"
            " and b.attnum = c.confkey[array_position(c.conkey, a.attnum)]"
            " where c.contype = 'f' and c.connamespace = quote_ident(current_schema())::regnamespace"
        )
        for target, own, column, aim, on_delete, on_update in self.ask(keys):
            for rule in key_rules(f"{own}.{column}", aim, _ACTIONS.get(on_delete), _ACTIONS.get(on_update)):
                found.setdefault(target.lower(), []).append(rule)
        return {table: tuple(rules) for table, rules in found.items()}

    def sequence(self, table: str) -> int:
        found: int = self.ask(
            f"select coalesce(max(pg_sequence_last_value(q.seqrelid)), 0)::bigint {_SEQUENCE}"
            " and has_sequence_privilege(q.seqrelid, 'select')",
            table,
        )[0][0]
        return found

    def move_sequence(self, table: str, last: int) -> None:
        sql = (
            "select set_config('synchronous_commit', 'off', true), setval(q.seqrelid::regclass, ?)"  # the rows are safe
            f" {_SEQUENCE} and has_sequence_privilege(q.seqrelid, 'update')"
            " and coalesce(pg_sequence_last_value(q.seqrelid), 0) < ? and ? between q.seqmin and q.seqmax"
        )
        if not self.scratch:
            self.ask(sql, last, table, last, last)

    def structure(self) -> list[str]:
        raise NotImplementedError("com makes the tables of a rebuilt memory from the schema")

    def own_type(self, kind: str, most: int) -> str:
        return "bigint" if kind == "int" else "text"

    # ------------------------------------------------------------ failures

    def _failure(self, error: Exception) -> EngineError:
        said = first_line(error)
        if not isinstance(error, psycopg.Error):
            return overflow(said, "an int left 64 bits")
        state = error.sqlstate or ""
        about = error.diag
        if not state:
            if self.driver.closed or isinstance(error, psycopg.OperationalError):
                return EngineError("lost", said)
            return EngineError("refused", said)
        kind = _KINDS.get(state) or _KINDS.get(state[:2]) or "refused"
        table = about.table_name or ""
        match kind:
            case "unique":
                key = re.match(r"Key \((.*?)\)=\(", about.message_detail or "")
                columns = [c.strip().strip('"') for c in key[1].split(", ")] if key else [about.constraint_name or ""]
                if table.startswith("pg_"):  # somebody else has just made a table of this name
                    return EngineError("conflict", said)
                return unique(said, placed(table, columns))
            case "not_null":
                return EngineError(kind, said, placed(table, [about.column_name or ""]))
            case "check":
                name = about.constraint_name or ""
                return EngineError(kind, said, self._checks.get((table, name), name))
            case "overflow":
                below = state in ("2201W", "2201X")
                return overflow(said, "a limit is below zero" if below else about.message_primary or said)
            case "interrupted":
                return interrupted(said, self.seconds)
            case "length":
                return no_length(said, "less than 0")
            case "convert":
                found = _CONVERT.match(about.message_primary or "")
                if state == "22008" and not found:  # a sum leaves what PostgreSQL has dates for
                    return overflow(said, about.message_primary or said)
                if found:
                    return converted(found["value"], found["type"] or found["type2"] or "date", said)
                if state == "22008":
                    return overflow(said, about.message_primary or said)
                return EngineError("function", said, message=CannotConvert("a text", "its type", FORMS["text"]))
            case "refused":
                return refused(state, about.message_primary or said, state[:2] in _STRUCTURAL)
            case _:
                return EngineError(kind, about.message_primary or said)


_ZONED = "with time zone"
_SEQUENCE = (
    "from pg_sequence q join pg_depend d on d.objid = q.seqrelid and d.classid = 'pg_class'::regclass"
    " and d.deptype in ('a', 'i') join pg_class t on t.oid = d.refobjid"
    " join pg_index i on i.indrelid = t.oid and i.indisprimary and i.indkey[0] = d.refobjsubid"
    " where t.relname = ? and t.relnamespace = quote_ident(current_schema())::regnamespace"
)
"""What makes the ids of a table."""


def _condition(text: str) -> str:
    """What stands in a check's parentheses."""
    return text.removeprefix("CHECK (").removesuffix(" NOT VALID").removesuffix(")")


_CONVERT = re.compile(
    r"(?:invalid input syntax for (?:type )?(?P<type>[\w ]+): |date/time field value out of range: |"
    r'invalid value for (?P<type2>[\w ]+): )"(?P<value>.*)"',
    re.DOTALL,
)
_STRUCTURAL = frozenset({"0A", "25", "2B", "3B", "3D", "3F", "42", "54", "55"})
"""The classes of failures that are told in words of tables and statements."""
_ACTIONS = {"c": "cascade", "n": "set null", "d": "set default"}
_KINDS = {
    "23505": "unique",
    "23503": "foreign_key",
    "23514": "check",
    "23502": "not_null",
    "23": "rule",
    "44": "rule",
    "P0": "rule",
    "22001": "rule",
    "22003": "overflow",
    "22015": "overflow",
    "2201W": "overflow",
    "2201X": "overflow",
    "22011": "length",
    "22P02": "convert",
    "22P05": "convert",
    "22007": "convert",
    "22008": "convert",
    "54000": "overflow",
    "40003": "lost",
    "40": "conflict",
    "55P03": "busy",
    "42P07": "conflict",
    "57014": "interrupted",
    "57": "lost",
    "08": "lost",
    "53": "full",
    "25006": "read_only",
    "42501": "read_only",
}
