"""A thousand shop records, and a hundred questions over a million sales, on each engine: how long by com, and how long
by the same statements written by hand on the same driver?

    python bench/engines.py [ENGINE…] [--records 1000] [--sales 1000000] [--questions 100]

PostgreSQL and MariaDB are looked for where COM_TEST_POSTGRES and COM_TEST_MYSQL say, or on this machine; a database is
made there and dropped. Prints ratios within this one run; nothing here is a timed test.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sqlite3
import tempfile
import time
import uuid
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from records import CUSTOMERS, FRUITS, SHOP, ByCom, ByHand, records, timed
from sqlalchemy import URL, make_url

import com

ENGINES = ("sqlite", "postgres", "duckdb", "mysql")
SERVERS = {
    "postgres": os.environ.get("COM_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres"),
    "mysql": os.environ.get("COM_TEST_MYSQL", "mysql://root@127.0.0.1:3306/mysql"),
}
DAYS = 365
START = date(2023, 1, 1)

# ---------------------------------------------------------------- by hand


class Hand:
    """A cursor of any of the drivers, used as one of sqlite3."""

    def __init__(self, engine: str, driver: Any) -> None:
        self.engine = engine
        self.inner = driver.cursor()
        self.rowcount = 0

    def execute(self, sql: str, values: tuple[Any, ...] = ()) -> Hand:
        if self.engine != "sqlite":
            sql = sql.replace("begin immediate", "begin")
        if self.engine in ("postgres", "mysql"):
            sql = sql.replace("?", "%s")
        self.inner.execute(sql, values) if values else self.inner.execute(sql)
        self.rowcount = self.inner.rowcount
        if self.engine == "duckdb" and sql.startswith("update"):
            self.rowcount = self.inner.fetchone()[0]
        return self

    def executemany(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        self.inner.executemany(sql.replace("?", "%s") if self.engine in ("postgres", "mysql") else sql, rows)

    def fetchone(self) -> Any:
        return self.inner.fetchone()

    def fetchall(self) -> list[Any]:
        return list(self.inner.fetchall())


class Driver:
    """A connection as one would make it by hand."""

    def __init__(self, engine: str, url: URL) -> None:
        self.engine = engine
        self.inner: Any
        if engine == "sqlite":
            self.inner = sqlite3.connect(url.database or "", isolation_level=None)
            self.inner.execute("pragma foreign_keys = on")
        elif engine == "duckdb":
            import duckdb

            # the same process has the file open with these: others would be refused
            self.inner = duckdb.connect(
                url.database or "", config={"enable_external_access": False, "autoinstall_known_extensions": False}
            )
        elif engine == "postgres":
            import psycopg

            given = url.translate_connect_args(username="user", database="dbname")
            self.inner = psycopg.connect(autocommit=True, **given)
        else:
            import pymysql

            self.inner = pymysql.connect(autocommit=True, **url.translate_connect_args(username="user"))

    def cursor(self) -> Hand:
        return Hand(self.engine, self.inner)


class AnyHand(ByHand):
    """The statements of the example's programs on any driver."""

    def __init__(self, engine: str, url: URL) -> None:
        self.db: Any = Driver(engine, url)


class AnyCom(ByCom):
    """The example's programs on any engine."""

    def __init__(self, engine: str, url: URL) -> None:
        self.memory = com.connect(url.render_as_string(hide_password=False))
        names = ("record_delivery", "record_sale", "change_price")
        schema = self.memory.schema
        self.programs = {n: com.compile((SHOP / f"{n}.com").read_text(), schema, engine=engine) for n in names}


# ---------------------------------------------------------------- memories


@contextlib.contextmanager
def memory(engine: str, folder: Path) -> Iterator[URL]:
    """A new memory with the shop's tables."""
    name = f"com_bench_{uuid.uuid4().hex[:12]}"
    server = None
    if engine in SERVERS:
        url = make_url(SERVERS[engine])
        server = Driver(engine, url).cursor()
        server.execute(f"create database {name}" + (" character set utf8mb4" if engine == "mysql" else ""))
        url = url.set(database=name)
    else:
        url = URL.create(engine, database=str(folder / f"{name}.db"))
    try:
        com.create(
            url.render_as_string(hide_password=False), com.read_schema((SHOP / "schema.com").read_text())
        ).close()
        yield url
    finally:
        if server is not None:
            server.execute(f"drop database {name}" + (" with (force)" if engine == "postgres" else ""))


NUMBERS = {
    "sqlite": "(with recursive s (n) as (select 1 union all select n + 1 from s where n < {}) select n from s) s",
    "postgres": "generate_series(1, {}) s (n)",
    "duckdb": "range(1, {} + 1) s (n)",
    "mysql": "(select seq as n from seq_1_to_{}) s",
}
DAY = {
    "sqlite": "date('2023-01-01', (n % 365) || ' days')",
    "postgres": "date '2023-01-01' + (n % 365)::int",
    "duckdb": "date '2023-01-01' + (n % 365)::int",
    "mysql": "date '2023-01-01' + interval (n % 365) day",
}


def fill(engine: str, db: Hand, sales: int) -> None:
    """Puts sales of one item each into the shop, in bulk."""
    over = " overriding system value" if engine == "postgres" else ""
    numbers = NUMBERS[engine]
    text = "concat('{} ', n)" if engine == "mysql" else "'{} ' || n"
    db.execute("begin")
    db.execute(
        f"insert into customers (customer_id, customer_name, phone_number){over}"
        f" select n, {text.format('customer')}, {text.format('phone')} from {numbers.format(CUSTOMERS)}"
    )
    db.execute(
        f"insert into fruits (fruit_id, fruit_name, selling_price, stock_quantity){over}"
        f" select n, {text.format('fruit')}, 2, 1000000 from {numbers.format(len(FRUITS))}"
    )
    db.execute(
        f"insert into sales (sale_id, customer_id, sale_date, total_price){over}"
        f" select n, 1 + n % {CUSTOMERS} * 7919 % {CUSTOMERS}, {DAY[engine]}, (1 + n % 9) * 2"
        f" from {numbers.format(sales)}"
    )
    db.execute(
        "insert into sale_items (sale_id, fruit_id, quantity_sold, price_per_item, item_total_price)"
        f" select n, 1 + n % {len(FRUITS)} * 31 % {len(FRUITS)}, 1 + n % 9, 2, (1 + n % 9) * 2"
        f" from {numbers.format(sales)}"
    )
    db.execute("commit")
    if engine != "sqlite":
        for table in ("customers", "fruits", "sales", "sale_items"):
            db.execute(f"analyze {'table ' if engine == 'mysql' else ''}{table}")
            db.fetchall() if engine == "mysql" else None


# ---------------------------------------------------------------- questions

QUESTIONS: tuple[tuple[str, str, str], ...] = (
    (
        "kilos(fruit int)",
        "select sum(quantity_sold) as kg from sale_items where fruit_id = $fruit",
        "fruit",
    ),
    (
        "takings(since date, before date)",
        "select count(*) as n, sum(total_price) as total from sales where sale_date >= $since and sale_date < $before",
        "since before",
    ),
    (
        "best_customers(since date)",
        "select c.customer_name, sum(s.total_price) as total from sales as s join customers as c"
        " on c.customer_id = s.customer_id where s.sale_date >= $since"
        " group by c.customer_name order by total desc, c.customer_name limit 5",
        "since",
    ),
    (
        "best_fruits(since date, before date)",
        "select f.fruit_name, sum(i.quantity_sold) as kg from sale_items as i"
        " join sales as s on s.sale_id = i.sale_id join fruits as f on f.fruit_id = i.fruit_id"
        " where s.sale_date >= $since and s.sale_date < $before"
        " group by f.fruit_name order by kg desc, f.fruit_name limit 3",
        "since before",
    ),
    ("sale(id int)", "select sale_date, total_price from sales where sale_id = $id", "id"),
    (
        "last_sales(customer int)",
        "select sale_id, sale_date, total_price from sales where customer_id = $customer"
        " order by sale_date desc, sale_id desc limit 10",
        "customer",
    ),
    (
        "days(customer int)",
        "select sale_date, count(*) as n, sum(total_price) as total from sales where customer_id = $customer"
        " group by sale_date order by sale_date",
        "customer",
    ),
    (
        "busy_days(least int)",
        "select sale_date, count(*) as n from sales group by sale_date having count(*) >= $least"
        " order by n desc, sale_date limit 10",
        "least",
    ),
    (
        "who_bought(fruit int, since date)",
        "select count(distinct s.customer_id) as n from sale_items as i join sales as s on s.sale_id = i.sale_id"
        " where i.fruit_id = $fruit and s.sale_date >= $since",
        "fruit since",
    ),
    (
        "running(fruit int)",
        "select d.sale_date, d.kg, sum(d.kg) over (order by d.sale_date) as so_far from"
        " (select s.sale_date, sum(i.quantity_sold) as kg from sale_items as i join sales as s on s.sale_id = i.sale_id"
        " where i.fruit_id = $fruit group by s.sale_date) as d order by d.sale_date",
        "fruit",
    ),
)
"""For each kind of question the head of its program, its statement, and its parameters in the statement's order."""


def asked(number: int, sales: int) -> dict[str, Any]:
    """The parameters of a question."""
    since = START + timedelta(days=number * 37 % 300)
    return {
        "fruit": 1 + number * 7 % len(FRUITS),
        "customer": 1 + number * 53 % CUSTOMERS,
        "id": 1 + number * 9973 % sales,
        "least": sales // DAYS - number,
        "since": since,
        "before": since + timedelta(days=30),
    }


def plain(rows: Any) -> list[list[str]]:
    """Rows to compare, whatever types the driver gives."""

    def one(value: Any) -> str:
        return f"{float(value):.2f}" if isinstance(value, int | float | Decimal) else str(value)

    return [[one(value) for value in row] for row in rows]


def questions(engine: str, url: URL, sales: int, count: int) -> tuple[float, float, dict[str, float]]:
    """Seconds for all questions by com and by hand, and the ratio of each kind."""
    found = com.connect(url.render_as_string(hide_password=False))
    db = Driver(engine, url).cursor()
    fill(engine, db, sales)
    programs = {
        head: com.compile(f"program {head};\nstep rows: {sql};\nreturn $rows;\n", found.schema, engine=engine)
        for head, sql, _ in QUESTIONS
    }
    spent: dict[str, list[float]] = {head: [0.0, 0.0] for head in programs}
    for number in range(-len(QUESTIONS), count):  # the first of each kind is not counted
        head, sql, names = QUESTIONS[number % len(QUESTIONS)]
        known = asked(max(number, 0), sales)
        given = {name: known[name] for name in names.split()}
        values = tuple(str(v) if engine == "sqlite" and isinstance(v, date) else v for v in given.values())
        for name in given:
            sql = sql.replace(f"${name}", "?")
        begin = time.perf_counter()
        by_com = found.execute(programs[head], given).rows
        middle = time.perf_counter()
        by_hand = db.execute(sql, values).fetchall()
        end = time.perf_counter()
        if plain(by_com) != plain(by_hand):
            raise SystemExit(f"{engine}: {head} {given}: com says {by_com[:3]}, by hand it is {by_hand[:3]}")
        if number >= 0:
            spent[head][0] += middle - begin
            spent[head][1] += end - middle
    found.close()
    ratios = {head: ours / theirs for head, (ours, theirs) in spent.items() if theirs}
    return sum(s[0] for s in spent.values()), sum(s[1] for s in spent.values()), ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("engines", nargs="*", default=ENGINES, metavar="ENGINE")
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--sales", type=int, default=1_000_000)
    parser.add_argument("--questions", type=int, default=100)
    arguments = parser.parse_args()
    work = list(records(arguments.records))
    for engine in arguments.engines:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            if work:
                with memory(engine, folder) as url:
                    ours = sum(timed(AnyCom(engine, url), work, len(work)))
                with memory(engine, folder) as url:
                    theirs = sum(timed(AnyHand(engine, url), work, len(work)))
                per = 1000 / len(work)
                print(f"{engine}: a record by hand {theirs * per:.2f} ms, by com {ours * per:.2f} ms: ", end="")
                print(f"{ours / theirs:.2f} times as long, with journal and history (aim under 3)", flush=True)
            if arguments.questions:
                with memory(engine, folder) as url:
                    ours, theirs, kinds = questions(engine, url, arguments.sales, arguments.questions)
                per = 1000 / arguments.questions
                print(f"{engine}: a question by hand {theirs * per:.1f} ms, by com {ours * per:.1f} ms: ", end="")
                print(f"{ours / theirs:.2f} times as long, over {arguments.sales} sales (aim under 1.1)")
                worst = max(kinds, key=lambda head: kinds[head])
                print(f"    by kind from {min(kinds.values()):.2f} to {kinds[worst]:.2f} ({worst})", flush=True)


if __name__ == "__main__":
    main()
