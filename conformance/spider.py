"""The gold queries of Spider's development set: imported from SQL, compiled, run, compared with SQLite's own rows.

    python conformance/spider.py FOLDER [--engine NAME] [--show]

FOLDER holds dev_gold.tsv (database, tab, SQL) and database/NAME.sqlite. On SQLite a copy of each database is queried as
it is, on other engines a memory with its tables and rows. Exit code 1 if fewer are imported or equal than the bars ask
for: 968 and 965 of 972, the same share of another folder's queries.
"""

from __future__ import annotations

import argparse
import datetime
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import sqlglot
from click import echo
from memories import ENGINES, TITLES, empty
from sqlglot import exp

import com
from com.compiler.show import show
from com.importer import import_query
from com.plan import Field
from com.runtime.engines import Link
from com.schema import Table, without_keys

IMPORTED, EQUAL = 968 / 972, 965 / 972
"""How many queries have to be imported, and to give the rows of SQLite."""

Row = tuple[Any, ...]

# ---------------------------------------------------------------- engines


@contextmanager
def memory_of(engine: str, database: Path) -> Iterator[Any]:
    """A memory with the rows of a database."""
    with tempfile.TemporaryDirectory() as temporary, empty(engine, Path(temporary)) as url:
        if engine == "sqlite":
            shutil.copyfile(database, url.removeprefix("sqlite:///"))
            with com.connect(url, history=False) as memory:
                yield memory
            return
        with com.connect(f"sqlite:///{database}", read_only=True) as given:
            schema = without_keys(given.schema)
            with com.create(url, schema.with_(tables=tuple(map(portable, schema.tables))), history=False) as memory:
                for table in schema.tables:
                    copy(given.link, memory.link, table)
                yield memory


def portable(table: Table) -> Table:
    """The table without what only SQLite understands: types that com has none for become text, defaults and checks go.
    A view is the table of its rows."""
    columns = tuple(c.with_(default=None, engine_type="", computed=False) for c in table.columns)
    return table.with_(columns=columns, checks=(), is_view=False)


def copy(given: Link, made: Link, table: Table) -> None:
    """Copies the rows of a table. A value that its type cannot hold becomes null, where null may stand."""
    names = [c.name for c in table.columns]
    decoders = [given.decoder(Field(c.name, c.type)) for c in table.columns]
    rows = []
    for row in given.run(f"select {', '.join(map(given.quote, names))} from {given.quote(table.name)}", {}):
        values = []
        for column, decode, value in zip(table.columns, decoders, row, strict=True):
            try:
                values.append(made.encode(decode(value), column.type))
            except com.Error:
                values.append(None)
        rows.append(values)
    into = f"{made.quote(table.name)} ({', '.join(map(made.quote, names))}){made.overriding}"
    made.begin()
    made.put(f"insert into {into} values ({', '.join('?' * len(names))})", rows)
    made.commit()


# ---------------------------------------------------------------- rows


def plain(value: Any) -> Any:
    """A value so that equal ones are equal in Python: numbers at nine digits, times as SQLite holds them."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float | Decimal):
        return float(f"{float(value):.9g}")
    if isinstance(value, datetime.datetime | datetime.date):
        return str(value)
    return value


def plain_rows(rows: list[Row]) -> list[Row]:
    return [tuple(plain(v) for v in row) for row in rows]


def groups(gold: str, connection: sqlite3.Connection) -> list[list[Row]] | None:
    """All rows of an ordered query without its limit, those that its order leaves tied together; None without order."""
    tree = sqlglot.parse_one(gold, read="sqlite")
    order = tree.args.get("order")
    if order is None:
        return None
    tree.set("limit", None)
    tree.set("offset", None)
    width = len(tree.selects)
    places: list[int] = []
    aliases = {s.alias.lower(): n for n, s in enumerate(tree.selects) if s.alias}
    shown = {(s.this if isinstance(s, exp.Alias) else s).sql("sqlite").lower(): n for n, s in enumerate(tree.selects)}
    for key in order.expressions:
        text = key.this.sql("sqlite").lower()
        if text.isdigit():
            places.append(int(text) - 1)
        elif text in aliases or text in shown:
            places.append(aliases.get(text, shown.get(text, 0)))
        else:
            places.append(len(tree.selects))
            tree.select(key.this.copy(), copy=False)
    made: list[list[Row]] = []
    last: Any = None
    for row in connection.execute(tree.sql("sqlite")).fetchall():
        key_values = tuple(row[p] for p in places)
        if made and key_values == last:
            made[-1].append(row[:width])
        else:
            made.append([row[:width]])
        last = key_values
    return made


def same(rows: list[Row], gold: str, connection: sqlite3.Connection) -> bool:
    """True if these rows are what the gold query may give: as a list as far as it orders, else in any order."""
    mine, its = plain_rows(rows), plain_rows(connection.execute(gold).fetchall())
    if len(mine) != len(its):
        return False
    tied = groups(gold, connection)
    if tied is None:
        return Counter(mine) == Counter(its)
    at = 0
    for group in tied:
        part = mine[at : at + len(group)]
        if Counter(part) - Counter(plain_rows(group)):
            return False
        at += len(part)
    return at == len(mine)


# ---------------------------------------------------------------- queries


class Run:
    """All queries on one engine, and what came of them."""

    def __init__(self, engine: str, folder: Path, show_all: bool) -> None:
        self.engine = engine
        self.folder = folder
        self.show_all = show_all
        self.imported = self.equal = self.all = 0
        self.lines: list[str] = []

    def queries(self, database: str, golds: list[str]) -> None:
        """The queries of one database."""
        path = self.folder / "database" / f"{database}.sqlite"
        done: dict[str, tuple[bool, bool, str]] = {}
        with (
            closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection,
            memory_of(self.engine, path) as memory,
        ):
            for gold in golds:
                if gold not in done:
                    done[gold] = self.query(gold, memory, connection)
                imported, equal, why = done[gold]
                self.all += 1
                self.imported += imported
                self.equal += equal
                if why:
                    self.lines.append(f"{database}: {gold}\n    {why}")

    def query(self, gold: str, memory: Any, connection: sqlite3.Connection) -> tuple[bool, bool, str]:
        """Whether one query was imported, whether it gave the right rows, and why not."""
        program, found = import_query(gold, "sqlite", memory.schema)
        if program is None:
            errors = [d for d in found if d.severity == "error"]
            return False, False, "not imported: " + "; ".join(f"{d.code} {d.text}" for d in errors)
        text = show(program)
        if self.show_all:
            echo(f"-- {gold}\n{text}")
        try:
            plan = com.compile(text, memory.schema, engine=self.engine)
        except com.CheckError as error:
            return True, False, f"does not check: {error}"
        try:
            rows = [tuple(row.values()) for row in memory.execute(plan).to_dicts()]
        except com.Error as error:
            return True, False, f"fails: {error}"
        if same(rows, gold, connection):
            return True, True, ""
        its = connection.execute(gold).fetchall()
        return True, False, f"differs: {len(rows)} rows {rows[:2]}, SQLite {len(its)} rows {its[:2]}\n{text}"


def main() -> int:
    """Run them all, and print what came out."""
    parser = argparse.ArgumentParser(description="Import and run the gold queries of Spider.")
    parser.add_argument("folder", type=Path, help="the folder of dev_gold.tsv and database/")
    parser.add_argument("--engine", choices=ENGINES, action="append", help="the engine (default: all)")
    parser.add_argument("--show", action="store_true", help="print each program")
    arguments = parser.parse_args()
    golds: dict[str, list[str]] = {}
    for line in (arguments.folder / "dev_gold.tsv").read_text(encoding="utf-8").splitlines():
        database, _, gold = line.partition("\t")
        golds.setdefault(database, []).append(gold)
    failed = False
    for number, engine in enumerate(arguments.engine or ENGINES):
        run = Run(engine, arguments.folder, arguments.show)
        for database, queries in golds.items():
            run.queries(database, queries)
        if number == 0:
            echo(f"imported {run.imported}/{run.all}")
        echo(f"equal on {TITLES.get(engine, engine)} {run.equal}/{run.all}")
        for line, times in Counter(run.lines).items():
            echo(f"  {times} × {line}")
        failed = failed or run.imported < IMPORTED * run.all or run.equal < EQUAL * run.all
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
