"""MariaDB: how a connection is made safe, what its types are, what its errors mean.

Writers queue for the row of com_head before their snapshot is taken. In a Galera cluster those of other nodes are not
waited for: who changes the row first goes on, and for the others it is a conflict. Making a table ends a transaction,
so com's own tables are made in a commit of their own, and as temporary ones for a preview. A warning is an error. Names
stand in double quotes or backticks, strings in single quotes with backslash escapes, and a division by zero gives null.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

import pymysql
from pymysql.constants import CLIENT, SERVER_STATUS
from sqlalchemy import URL

from com.diagnostics import CannotConvert, Error, UnknownMemory
from com.runtime.engines import ACTIONS, Declared, EngineError, Keys, Row, Rule, key_rules, trigger_rules
from com.runtime.engines.native import (
    ServerLink,
    cannot_open,
    converted,
    first_line,
    interrupted,
    overflow,
    placed,
    refused,
    unique,
    with_percents,
)
from com.schema import TEXT, ForeignKey, Index, Type
from com.values import FORMS

_MODE = (
    "SIMULTANEOUS_ASSIGNMENT,ANSI_QUOTES,PIPES_AS_CONCAT,STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,"
    "NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO"
)
_COLLATION = "utf8mb4_nopad_bin"
_HELP = "write it as mysql://user@host/database, and look whether the server runs"
_NOT_EVERYWHERE = ("innodb_snapshot_isolation", "wsrep_sync_wait")
"""What older servers, or those that cannot be in a cluster, do not know."""


def open_link(url: URL, *, read_only: bool, timeout: float, seconds: float | None) -> MySqlLink:
    """A link to the database of a URL."""
    return MySqlLink(url, read_only=read_only, timeout=timeout, seconds=seconds)


class MySqlLink(ServerLink):
    """One connection. The runtime says begin, commit and rollback itself."""

    name = "mysql"
    title = "MariaDB"
    version = ""
    ddl_commits = True

    def __init__(self, url: URL, *, read_only: bool, timeout: float, seconds: float | None) -> None:
        self._passing: list[str] = []
        self._has_head = False
        self._at = 0
        super().__init__(url, read_only=read_only, timeout=timeout, seconds=seconds)

    def _connect(self) -> Any:
        given = self.url.translate_connect_args(username="user") | dict(self.url.query)
        hosts = str(given.pop("host", "localhost")).split(",")
        ports = str(given.pop("port", 3306)).split(",")
        if not self.url.database:
            raise Error(UnknownMemory(self.url.render_as_string(), "it names no database", _HELP))
        if len(ports) not in (1, len(hosts)) or not all(p.isdecimal() for p in ports):
            raise Error(UnknownMemory(self.url.render_as_string(), "it wants a port, or one for each host", _HELP))
        nodes = [(host, int(ports[i % len(ports)])) for i, host in enumerate(hosts)]
        for tried in range(len(nodes)):  # from the one that was there last
            host, port = nodes[self._at % len(nodes)]
            try:
                return self._reached(given | {"host": host, "port": port})
            except Error:
                self._at += 1
                if tried == len(nodes) - 1:
                    raise
        raise AssertionError

    def _reached(self, given: dict[str, Any]) -> Any:
        try:
            driver = pymysql.connect(
                **given,
                charset="utf8mb4",
                collation=_COLLATION,
                autocommit=True,
                client_flag=CLIENT.FOUND_ROWS,
                binary_prefix=True,
                local_infile=False,
                sql_mode=_MODE,
            )
            self._make_safe(driver)
        except (pymysql.Error, OSError, RuntimeError) as error:
            raise cannot_open(self.url, _Said(error), _HELP) from None
        return driver

    def _make_safe(self, driver: Any) -> None:
        profile = {
            "time_zone": "'+00:00'",
            "sql_notes": "0",
            "tx_isolation": "'REPEATABLE-READ'",
            "innodb_lock_wait_timeout": str(max(1, round(self.timeout))),
            "lock_wait_timeout": str(max(1, round(self.timeout))),
            "max_statement_time": str(self.seconds or 0),
            "foreign_key_checks": "1",
            "unique_checks": "1",
            "check_constraint_checks": "1",
            "group_concat_max_len": "1073741824",
            "default_storage_engine": "InnoDB",
            "max_recursive_iterations": "4294967295",
            "innodb_snapshot_isolation": "1",
            "wsrep_sync_wait": "1",  # a transaction sees what was committed on other nodes before it began
        }
        with driver.cursor() as cursor:
            cursor.execute("select version()")
            version: str = cursor.fetchone()[0]
            if "MariaDB" not in version:
                cause = f"its server is MySQL {version}, which com does not know"
                driver.close()
                raise Error(UnknownMemory(self.url.render_as_string(), cause, "use MariaDB 10.11 or newer"))
            self.version = version.partition("-")[0]
            for name, value in profile.items():
                try:
                    cursor.execute(f"set session {name} = {value}")
                except pymysql.Error as error:
                    if error.args[0] != 1193 or name not in _NOT_EVERYWHERE:
                        raise
            others = (
                "select table_name, engine from information_schema.tables where table_schema = database()"
                " and table_type = 'BASE TABLE' and engine <> 'InnoDB' limit 1"
            )
            cursor.execute(others)
            for table, engine in cursor.fetchall():
                driver.close()
                cause = f"its table {table} is kept by {engine}, which cannot take changes back"
                help_ = f"alter table {table} engine = InnoDB"
                raise Error(UnknownMemory(self.url.render_as_string(), cause, help_))

    # ------------------------------------------------------------ statements

    def _execute(self, sql: str, values: Any, many: bool = False) -> Any:
        try:
            cursor = self.driver.cursor()
            if many:  # the driver writes as many rows by one statement as fit
                cursor.executemany(sql, values)
            else:
                cursor.execute(sql, values)
            if cursor.warning_count:
                self._warned()
            return cursor
        except (pymysql.Error, OSError, UnicodeError, OverflowError, AttributeError) as error:
            raise self._failure(error, sql) from None

    def _warned(self) -> None:
        """A warning is a failure: MariaDB would go on with a value cut or a recursion ended."""
        cursor = self.driver.cursor()
        cursor.execute("show warnings")
        for level, code, said in cursor.fetchall():
            if level != "Note":
                raise self._failure(pymysql.err.DataError(code, said))

    def run(self, sql: str, binds: Mapping[str, Any]) -> list[Row]:
        cursor = self._execute(sql, {name: _plain(value) for name, value in binds.items()})
        if sql.startswith("create temporary table "):
            self._passing.append(sql.split()[3])
        return list(cursor.fetchall()) if cursor.description else []

    def write(self, sql: str, binds: Mapping[str, Any]) -> int:
        count: int = self._execute(sql, {name: _plain(value) for name, value in binds.items()}).rowcount
        return max(count, 0)

    def ask(self, sql: str, *values: Any) -> list[Row]:
        cursor = self._execute(with_percents(sql), [_plain(v) for v in values])
        return list(cursor.fetchall()) if cursor.description else []

    def put(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        plain = [[_plain(v) for v in row] for row in rows]
        if plain:
            self._execute(with_percents(sql), plain if len(plain) > 1 else plain[0], many=len(plain) > 1)

    # ------------------------------------------------------------ transactions

    @property
    def _open(self) -> bool:
        return bool(self.driver.open and self.driver.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)

    def _begin(self, write: bool) -> None:
        write = write and not self.read_only
        self._say("start transaction" if write else "start transaction read only")
        if write and (self._has_head or self.has_table("com_head")):
            self._has_head = True
            self.ask("select one from com_head for update")

    def _commit(self) -> None:
        self._say("commit")

    def rollback(self) -> None:
        super().rollback()
        while self._passing and self.driver.open:
            self._say(f"drop temporary table {self._passing.pop()}")

    def set_keys_checked(self, checked: bool) -> None:
        self._say(f"set session foreign_key_checks = {int(checked)}")

    # ------------------------------------------------------------ structure

    def has_table(self, name: str) -> bool:
        sql = "select 1 from information_schema.tables where table_schema = database() and table_name = ?"
        return bool(self.ask(sql, name))

    def stamp(self) -> Any:
        columns = (
            "select count(*), sum(crc32(concat_ws('|', table_name, column_name, column_type, is_nullable,"
            " column_default, extra, column_key))) from information_schema.columns where table_schema = database()"
        )
        keys = (
            "select count(*), sum(crc32(concat_ws('|', table_name, index_name, column_name, seq_in_index, non_unique)))"
            " from information_schema.statistics where table_schema = database()"
        )
        constraints = (
            "select count(*), sum(crc32(concat_ws('|', table_name, constraint_name)))"
            " from information_schema.table_constraints where table_schema = database()"
        )
        return [self.ask(sql) for sql in (columns, keys, constraints)]

    def engine_types(self) -> dict[str, tuple[bool, list[Declared]]]:
        kinds = (
            "select table_name, table_type from information_schema.tables where table_schema = database()"
            " and table_type <> 'SEQUENCE'"
        )
        columns = (
            "select table_name, column_name, column_type, generation_expression is not null, is_nullable = 'YES',"
            " column_default, extra, collation_name from information_schema.columns where table_schema = database()"
            " order by table_name, ordinal_position"
        )
        found: dict[str, tuple[bool, list[Declared]]] = {
            table: (kind == "BASE TABLE", []) for table, kind in self.ask(kinds)
        }
        valid = {(table, text.replace('"', "`")) for (table, _), text in self._checks.items()}
        for table, column, type_, computed, nullable, default, extra, collation in self.ask(columns):
            if table not in found:
                continue
            is_json = (table, f"json_valid(`{column}`)") in valid
            makes_ids = "auto_increment" in extra
            default = "auto_increment" if makes_ids else None if default == "NULL" else default
            adapted = (
                not is_json and collation not in (None, _COLLATION) and self.read_type(type_) == TEXT
            ) or type_.startswith(_SHAPES)
            made = "json" if is_json else type_, bool(computed), bool(nullable), default, makes_ids, adapted
            found[table][1].append(Declared(column, *made))
        return found

    def keys(self) -> dict[str, Keys]:
        sql = (
            "select table_name, index_name, non_unique, column_name, sub_part from information_schema.statistics"
            " where table_schema = database() order by table_name, index_name, seq_in_index"
        )
        indexes: dict[tuple[str, str, bool], list[tuple[str, Any]]] = {}
        for table, index, many, column, part in self.ask(sql):
            indexes.setdefault((table, index, bool(many)), []).append((column, part))
        found: dict[str, list[list[Any]]] = {}
        primary: dict[str, tuple[str, ...]] = {}
        for (table, index, many), parts in indexes.items():
            columns = tuple(column for column, _ in parts)
            _, uniques, _, _, others = found.setdefault(table, [[], [], [], [], []])
            if index == "PRIMARY":
                primary[table] = columns
            elif many:
                others.append(Index(index, columns))
            elif not any(part for _, part in parts):  # else it holds for beginnings
                uniques.append(columns)
        keys = (
            "select table_name, constraint_name, column_name, referenced_table_name, referenced_column_name"
            " from information_schema.key_column_usage where table_schema = database()"
            " and referenced_table_schema = database() order by table_name, constraint_name, ordinal_position"
        )
        foreign: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
        for table, name, column, target, aim in self.ask(keys):
            foreign.setdefault((table, name, target), []).append((column, aim))
        for (table, _, target), pairs in foreign.items():
            key = ForeignKey(tuple(c for c, _ in pairs), target, tuple(a for _, a in pairs))
            found.setdefault(table, [[], [], [], [], []])[2].append(key)
        for (table, _), text in sorted(self._checks.items()):
            if not text.startswith("json_valid("):
                found.setdefault(table, [[], [], [], [], []])[3].append(text)
        return {table: Keys(primary.get(table, ()), *map(tuple, parts[1:])) for table, parts in found.items()}

    def read_type(self, text: str) -> Type:
        name = text.lower()
        if name.startswith("tinyint(1)"):
            return super().read_type("boolean")
        if name.startswith("bigint") and "unsigned" in name:  # more than 64 bits with a sign
            return super().read_type("unsigned")
        if name.startswith("timestamp"):  # of the zone of whoever looks
            return super().read_type("timestamp")
        return super().read_type("bigint" if name.startswith("year") else text)

    def rules(self) -> dict[str, tuple[Rule, ...]]:
        found: dict[str, list[Rule]] = {}
        triggers = (
            "select event_object_table, trigger_name, action_statement from information_schema.triggers"
            " where event_object_schema = database()"
        )
        for table, name, body in self.ask(triggers):
            for rule in trigger_rules(name, body):
                found.setdefault(table.lower(), []).append(rule)
        actions = (
            "select table_name, constraint_name, delete_rule, update_rule"
            " from information_schema.referential_constraints where constraint_schema = database()"
        )
        columns = (
            "select table_name, constraint_name, referenced_table_name, column_name, referenced_column_name"
            " from information_schema.key_column_usage where table_schema = database()"
            " and referenced_table_schema = database()"
        )
        done = {(own, name): both for own, name, *both in self.ask(actions)}
        for own, name, target, column, aim in self.ask(columns):
            said = [a.lower() if a.lower() in ACTIONS else None for a in done.get((own, name), ())]
            for rule in key_rules(f"{own}.{column}", aim, *said):
                found.setdefault(target.lower(), []).append(rule)
        return {table: tuple(rules) for table, rules in found.items()}

    def structure(self) -> list[str]:
        raise NotImplementedError("com makes the tables of a rebuilt memory from the schema")

    def encode(self, value: Any, type_: Type) -> Any:
        made = super().encode(value, type_)
        return int(made) if isinstance(made, bool) else made

    def own_type(self, kind: str, most: int) -> str:
        return "bigint" if kind == "int" else f"varchar({most})" if most else "longtext"

    def own_end(self, table: str) -> str:
        return f" engine = InnoDB default character set utf8mb4 collate {_COLLATION}"

    # ------------------------------------------------------------ failures

    def _failure(self, error: Exception, sql: str = "") -> EngineError:
        code, said = (error.args[0], str(error.args[1])) if len(error.args) > 1 else (0, first_line(error))
        if isinstance(error, OverflowError | UnicodeError):
            return EngineError("refused", first_line(error))
        kind = _KINDS.get(code, "refused") if isinstance(code, int) else "refused"
        if code in (0, 2006, 2013, 2055) or not self.driver.open or isinstance(error, OSError | AttributeError):
            return EngineError("lost", said)
        if code == 1064 and re.search(r"near '-\d", said):
            return overflow(said, "a limit is below zero")
        match kind:
            case "unique":
                found = re.search(r"for key '(.*)'", said, re.DOTALL)
                return unique(said, self._unique(found[1] if found else "", sql))
            case "not_null":
                found = re.search(r"'(.*?)'", said)
                return EngineError(kind, said, found[1] if found else "")
            case "check":
                found = re.search(r"CONSTRAINT `(.*)` failed for `.*`\.`(.*)`", said)
                name = found[1].rpartition(".")[2] if found else ""
                return EngineError(kind, said, self._checks.get((found[2] if found else "", name), name))
            case "overflow":
                return overflow(said)
            case "interrupted":
                return interrupted(said, self.seconds)
            case "convert":
                found = re.search(r"ncorrect (?P<type>\w+) value: '(?P<value>.*?)'", said, re.DOTALL)
                if found:
                    wanted = _CASTS.get(found["type"].lower(), found["type"])
                    if wanted.startswith(("double", "decimal")) and _NUMBER.fullmatch(found["value"]):
                        return overflow(said)
                    if wanted == "timestamp" and ":" not in found["value"]:
                        wanted = "date"
                    return converted(found["value"], wanted, said)
                if code in (4037, 4038):
                    return EngineError("function", said, message=CannotConvert("a text", "json", FORMS["json"]))
                return EngineError("rule", said)
            case "refused":
                return refused(str(code), said, code in _STRUCTURAL)
            case _:
                return EngineError(kind, said)

    _checks: Mapping[tuple[str, str], str] = {}
    _keys: Mapping[str, list[tuple[str, str]]] = {}

    def refresh(self) -> None:
        checks = (
            "select table_name, constraint_name, check_clause from information_schema.check_constraints"
            " where constraint_schema = database()"
        )
        keys = (
            "select index_name, table_name, column_name from information_schema.statistics"
            " where table_schema = database() and non_unique = 0 order by table_name, index_name, seq_in_index"
        )
        self._checks = {(table, name): text for table, name, text in self.ask(checks)}
        found: dict[str, list[tuple[str, str]]] = {}
        for name, table, column in self.ask(keys):
            found.setdefault(name, []).append((table, column))
        self._keys = found

    def _unique(self, key: str, sql: str) -> str:
        """The columns of a key; MariaDB tells its name alone, and each table has a PRIMARY."""
        own = re.match(r'insert into [`"]?(com_\w+)', sql)
        if own:
            return placed(own[1], [key])
        known = self._keys.get(key, [])
        if len({table for table, _ in known}) == 1:
            return placed(known[0][0], [column for _, column in known])
        return key


class _Said(Exception):
    """An error with its text alone."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error.args[1] if len(error.args) > 1 else first_line(error))


def _plain(value: Any) -> Any:
    """Times as text with all their digits: the driver cuts years before 1000."""
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, date):
        return value.isoformat()
    return value


_STRUCTURAL = frozenset(
    {1046, 1049, 1051, 1052, 1054, 1055, 1060, 1061, 1064, 1066, 1071, 1109, 1111, 1146, 1166, 1235, 1241, 1242, 1267}
    | {1271, 1305, 1318, 1327, 1348, 1356, 1366, 1370, 1449, 1471, 1582, 1583, 4078, 4079}
)
"""Failures that are told in words of tables and statements."""
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*", re.ASCII | re.IGNORECASE)
_SHAPES = ("geometry", "point", "linestring", "polygon", "multi")
"""Types whose values have no text."""
_CASTS = {"integer": "bigint", "decimal": "decimal(38,10)", "double": "double", "datetime": "timestamp", "time": "date"}
_KINDS = {
    1062: "unique",
    1586: "unique",
    1451: "foreign_key",
    1452: "foreign_key",
    1216: "foreign_key",
    1217: "foreign_key",
    4025: "check",
    3819: "check",
    1048: "not_null",
    1364: "not_null",
    1263: "not_null",
    1264: "overflow",
    1690: "overflow",
    1916: "overflow",
    1292: "convert",
    1366: "convert",
    1411: "convert",
    1441: "overflow",
    4037: "convert",
    4038: "convert",
    1918: "convert",
    1265: "rule",
    1406: "rule",
    1644: "rule",
    1213: "conflict",
    1020: "conflict",
    1050: "conflict",
    1412: "conflict",
    1205: "busy",
    3572: "busy",
    1317: "interrupted",
    1969: "interrupted",
    3024: "interrupted",
    1021: "full",
    1114: "full",
    1290: "read_only",
    1792: "read_only",
    1142: "read_only",
    1044: "read_only",
    1047: "lost",  # a node that is not, or no more, part of its cluster
    1053: "lost",
    1180: "lost",
    1927: "lost",
}
