"""What every engine must do alike: carry values, name failures, keep a run whole. A server that is not there is skipped."""

from __future__ import annotations

import math
import multiprocessing
import queue
import threading
import time
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import com
from com.diagnostics import Error
from com.plan import Field
from com.runtime import journal, memory
from com.runtime.canon import canonical
from com.runtime.engines import CONFLICTS, EngineError, Link, open_link, patiently
from com.runtime.memory import Memory, read_url
from com.runtime.outcome import RunError
from com.schema import BOOL, BYTES, DATE, FLOAT, INT, JSON, TEXT, TIMESTAMP, Type, decimal
from tests.conftest import ENGINES

Fresh = Callable[[str], str]
OTHERS = tuple(e for e in ENGINES if e != "sqlite")

STORED = {
    "sqlite": ("integer", "double", "text", "boolean", "date", "timestamp", "json text", "blob"),
    "postgres": ("bigint", "double precision", "text", "boolean", "date", "timestamp", "jsonb", "bytea"),
    "duckdb": ("bigint", "double", "varchar", "boolean", "date", "timestamp", "json", "blob"),
    "mysql": ("bigint", "double", "longtext", "boolean", "date", "datetime(6)", "json", "longblob"),
}
TYPES: tuple[Type, ...] = (INT, FLOAT, TEXT, BOOL, DATE, TIMESTAMP, JSON, BYTES, decimal(15, 2))
ROWS: list[tuple[Any, ...]] = [
    (1, 0.1, "a", True, date(2024, 2, 29), datetime(2023, 1, 2, 3, 4, 5), {"a": [1, None]}, b"\0\xff", Decimal("1.50")),
    (2, -1e300, 'it\'s \\ % ? "q" `b`', False, date(1, 1, 1), datetime(1, 1, 1), [], b"", Decimal("-0.01")),
    (2**63 - 1, 5e-324, "", None, date(9999, 12, 31), datetime(9999, 12, 31, 23, 59, 59, 999999), "text", None, None),
    (-(2**63), 1 / 3, "tr  ", True, None, datetime(2000, 1, 1, 0, 0, 0, 1), 7, b"'", Decimal("9999999999999.99")),
    (0, -0.0, "🍓 \u0301é\n\t", None, None, None, None, b"\\", Decimal("0.00")),
    (3, 1e22, None, None, None, None, False, None, None),
]


def codec_table(engine: str) -> tuple[str, ...]:
    """The DDL of a table with a column of every type, named after it."""
    stored = dict(
        zip(("int", "float", "text", "bool", "date", "timestamp", "json", "bytes"), STORED[engine], strict=True)
    )
    columns = ", ".join(
        f'"c_{t.kind}" {stored.get(t.kind, "decimal(15,2)")}{" primary key" if t == INT else ""}' for t in TYPES
    )
    end = " default character set utf8mb4 collate utf8mb4_nopad_bin" if engine == "mysql" else ""
    ddl = f"create table codec ({columns}){end}"
    if engine == "sqlite":  # an INTEGER key of SQLite gives ids
        ddl = ddl.replace("integer primary key", "bigint primary key")
    return (ddl,)


SHOP = {
    engine: (
        f"create table fruits (fruit_id bigint primary key, fruit_name {name} not null unique, price decimal(10,2),"
        " stock bigint not null default 0 check (stock >= 0))",
        "create table sold (sale_id bigint primary key, fruit_id bigint not null, qty bigint not null,"
        " foreign key (fruit_id) references fruits (fruit_id))",
    )
    for engine, name in {"sqlite": "text", "postgres": "text", "duckdb": "text", "mysql": "varchar(190)"}.items()
}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def opened(url: str, **options: Any) -> Link:
    return open_link(read_url(url), **{"read_only": False, "timeout": 5.0, "seconds": None, **options})


def made(url: str, ddl: tuple[str, ...]) -> Memory:
    """A memory with tables, their schema as it is read back."""
    found = memory.connect(url)
    for statement in ddl:
        found.link.run(statement, {})
    return found


def fill(link: Link) -> None:
    marks = ", ".join("?" * len(TYPES))
    rows = [[link.encode(v, t) for v, t in zip(row, TYPES, strict=True)] for row in ROWS]
    link.begin()
    link.put(f"insert into codec values ({marks})", rows)
    link.commit()


# ---------------------------------------------------------------- values


def test_every_type_is_read_back_from_the_tables(engine: str, fresh: Fresh) -> None:
    with made(fresh(engine), codec_table(engine)) as opened_:
        (table,) = opened_.schema.tables
        assert [c.type for c in table.columns] == list(TYPES)
        assert table.primary_key == ("c_int",)
        assert not table.columns[0].generated


def test_values_of_every_type_come_back(engine: str, fresh: Fresh) -> None:
    with made(fresh(engine), codec_table(engine)) as found:
        fill(found.link)
        decoders = [found.link.decoder(Field(t.kind, t)) for t in TYPES]
        rows = {row[0]: row for row in found.link.ask("select * from codec")}
        for wanted in ROWS:
            got = tuple(d(v) for d, v in zip(decoders, rows[wanted[0]], strict=True))
            assert got == wanted
            assert [type(v) for v in got] == [type(v) for v in wanted]
            assert [canonical(g, t) for g, t in zip(got, TYPES, strict=True)] == [
                canonical(w, t) for w, t in zip(wanted, TYPES, strict=True)
            ]


def test_equal_rows_have_equal_digests(fresh: Fresh) -> None:
    digests = {}
    for engine in ENGINES:
        with made(fresh(engine), codec_table(engine)) as found:
            fill(found.link)
            digests[engine] = found.digest()
    assert len(set(digests.values())) == 1, digests


def test_what_no_memory_can_hold_is_refused(engine: str, fresh: Fresh) -> None:
    link = opened(fresh(engine))
    try:
        for value, type_, kind in (("a\0", TEXT, "function"), (2**63, INT, "overflow"), (math.inf, FLOAT, "function")):
            with pytest.raises(EngineError) as failed:
                link.encode(value, type_)
            assert failed.value.kind == kind
        with pytest.raises(EngineError):
            link.encode_rows([("a\0",)], [Field("a", TEXT)])
    finally:
        link.close()


# ---------------------------------------------------------------- failures


FAILURES = [
    ("insert into fruits values (1, 'pear', 1, 1)", "unique", "fruit_id"),
    ("insert into fruits values (2, 'apple', 1, 1)", "unique", "fruit_name"),
    ("insert into fruits values (2, 'pear', 1, -1)", "check", "stock"),
    ("insert into fruits values (2, null, 1, 1)", "not_null", "fruit_name"),
    ("insert into sold values (1, 9, 1)", "foreign_key", ""),
    ("delete from fruits", "foreign_key", ""),
    ("update fruits set stock = stock + 9223372036854775807", "overflow", ""),
    ("selec 1", "refused", ""),
    ("select 1; select 2", "refused", ""),
]


TOLD = [
    (engine, *failure)
    for engine in ENGINES
    for failure in FAILURES
    if engine != "sqlite" or (failure[1] != "overflow" and ";" not in failure[0])
]
"""SQLite's overflow is told by what the compiler writes, several statements by the driver in its own words."""


@pytest.mark.parametrize(("engine", "sql", "kind", "place"), TOLD)
def test_failures_have_a_kind_and_a_place(engine: str, fresh: Fresh, sql: str, kind: str, place: str) -> None:
    with made(fresh(engine), SHOP[engine]) as found:
        link = found.link
        assert [t.name for t in found.schema.tables] == ["fruits", "sold"]
        link.run("insert into fruits values (1, 'apple', 1.5, 3)", {})
        link.run("insert into sold values (7, 1, 1)", {})
        link.begin()
        with pytest.raises(EngineError) as failed:
            link.run(sql, {})
        link.rollback()
        assert failed.value.kind == kind
        assert place in failed.value.place or failed.value.place == "PRIMARY"
        assert not link.in_transaction
        assert link.ask("select stock from fruits") == [(3,)]


def test_texts_that_cannot_be_read_are_named(fresh: Fresh) -> None:
    casts = {
        "postgres": ("select cast(cast(%(a)s as text) as bigint)", "select cast(cast(%(a)s as text) as date)"),
        "duckdb": ("select cast($a as bigint)", "select cast($a as date)"),
        "mysql": ("select cast(%(a)s as signed)", "select cast(%(a)s as date)"),
    }
    for engine, sqls in casts.items():
        link = opened(fresh(engine))
        for sql, kind in zip(sqls, ("int", "date"), strict=True):
            with pytest.raises(EngineError) as failed:
                link.run(sql, {"a": "zz"})
            message = failed.value.message
            assert (message.code, message.wanted) == ("CM511", kind), engine  # type: ignore[attr-defined]
            assert message.value == "'zz'"  # type: ignore[attr-defined]
        link.close()


def test_postgres_says_rollback_to_a_commit(fresh: Fresh) -> None:
    link = opened(fresh("postgres"))
    link.begin()
    with pytest.raises(EngineError):
        link.run("select 1/0", {})
    with pytest.raises(EngineError) as failed:
        link.commit()
    assert failed.value.kind == "lost"
    link.close()


@pytest.mark.parametrize("engine", ["postgres", "mysql"])
def test_a_connection_that_is_lost(engine: str, fresh: Fresh) -> None:
    url = fresh(engine)
    link, other = opened(url), opened(url)
    own = "select pg_backend_pid()" if engine == "postgres" else "select connection_id()"
    number = link.ask(own)[0][0]
    link.begin()
    end = "select pg_terminate_backend(?::int)" if engine == "postgres" else f"kill {number}"
    other.ask(end, *([number] if engine == "postgres" else []))
    with pytest.raises(EngineError) as failed:
        link.ask("select 1")
    assert failed.value.kind == "lost"
    assert not link.in_transaction
    link.reopen()
    assert link.ask("select 1") == [(1,)]
    link.close()
    other.close()


@pytest.mark.parametrize("engine", ["postgres", "mysql", "duckdb"])
def test_a_statement_that_takes_too_long(engine: str, fresh: Fresh) -> None:
    link = opened(fresh(engine), seconds=0.2)
    slow = {
        "postgres": "select pg_sleep(5)",
        "mysql": "select count(*) from seq_1_to_100000 a, seq_1_to_100000 b",
        "duckdb": "select count(*) from range(1000000) a(x), range(1000000) b(x) where a.x * b.x % 7 = 3",
    }
    with pytest.raises(EngineError) as failed:
        link.run(slow[engine], {})
    assert failed.value.kind == "interrupted"
    link.close()


def test_a_memory_that_is_only_read(engine: str, fresh: Fresh) -> None:
    url = fresh(engine)
    made(url, SHOP[engine]).close()
    link = opened(url, read_only=True)
    link.begin()
    with pytest.raises(EngineError) as failed:
        link.run("insert into fruits values (2, 'pear', 1, 1)", {})
    assert failed.value.kind == "read_only"
    link.rollback()
    link.close()


def test_warnings_of_mariadb_are_failures(fresh: Fresh) -> None:
    with made(fresh("mysql"), SHOP["mysql"]) as found:
        with pytest.raises(EngineError):
            found.link.run("select cast('9x' as signed)", {})
        assert found.link.ask("select 1 / 0") == [(None,)]
        assert found.link.ask("select 'a' = 'A', 'a' = 'a ', 'a' || 'b'") == [(0, 0, "ab")]


def test_tables_that_cannot_be_rolled_back_are_refused(fresh: Fresh) -> None:
    url = fresh("mysql")
    link = opened(url)
    link.run("create table old (a int) engine = MyISAM", {})
    link.close()
    with pytest.raises(Error, match="MyISAM"):
        opened(url)


def test_duckdb_reads_no_files(fresh: Fresh, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    link = opened(fresh("duckdb"))
    for sql in (f"select * from read_csv('{tmp_path}/a.csv')", "set enable_external_access = true"):
        with pytest.raises(EngineError):
            link.run(sql, {})
    link.close()


@pytest.mark.parametrize(
    "url", ["postgresql://nobody@127.0.0.1:1/none", "mysql://nobody@127.0.0.1:1/none", "duckdb:////none/none/a.duckdb"]
)
def test_a_memory_that_is_not_there(url: str) -> None:
    with pytest.raises(Error) as failed:
        opened(url)
    assert failed.value.message.code == "CM593"


# ---------------------------------------------------------------- transactions and the journal


def test_the_journal_is_made_and_found(engine: str, fresh: Fresh) -> None:
    url = fresh(engine)
    with made(url, SHOP[engine]) as found:
        link = found.link
        link.begin()
        journal.create(link, passing=True)
        assert journal.head(link).run == 0
        link.rollback()
        assert not journal.exists(link)
        link.begin()
        journal.create(link)
        link.commit()
        assert journal.exists(link)
        assert journal.head(link).hash == journal.START
        assert [t.name for t in found.schema.tables] == ["fruits", "sold"]


def test_two_who_make_the_journal_make_one(fresh: Fresh) -> None:
    def attempt(link: Link) -> None:
        try:
            link.begin()
            if not journal.exists(link):
                journal.create(link)
            link.commit()
        finally:
            link.rollback()

    for engine in ("postgres", "mysql"):
        url = fresh(engine)
        failures: list[BaseException] = []

        def make(url: str = url, failures: list[BaseException] = failures) -> None:
            link = opened(url)
            try:
                patiently(lambda: attempt(link))
            except BaseException as error:
                failures.append(error)
            finally:
                link.close()

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        link = opened(url)
        assert link.ask("select count(*) from com_head") == [(1,)]
        link.close()


@pytest.mark.parametrize("engine", ["postgres", "mysql"])
def test_writers_wait_for_each_other_and_then_see_all(engine: str, fresh: Fresh) -> None:
    url = fresh(engine)
    one, two = opened(url), opened(url)
    one.begin()
    journal.create(one)
    one.commit()
    one.begin()
    seen: list[int] = []

    def second() -> None:
        two.begin()
        seen.append(journal.head(two).run)
        two.rollback()

    thread = threading.Thread(target=second)
    thread.start()
    time.sleep(0.2)
    assert not seen
    journal.write_head(one, journal.head(one).with_(run=5))
    one.commit()
    thread.join()
    assert seen == [5]
    one.close()
    two.close()


@pytest.mark.parametrize("refused", [False, True])
def test_writers_queue_where_tables_are_not_locked(
    refused: bool, fresh: Fresh, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from com.runtime.engines import postgres

    url = fresh("postgres")
    with com.create(url, com.read_schema(MARKET)) as found:
        run(found, STOCK, goods=[GOODS[0] | {"qty": 30}])
        monkeypatch.setattr(postgres.PostgresLink, "_locks_tables", refused)
        monkeypatch.setattr(postgres, "_BY_TABLE", "lock nothing")
        told: Any = queue.Queue()

        def sell(place: int) -> None:
            with com.connect(url) as own:
                plan = com.compile(SELL, own.schema, engine="postgres")
                for order in range(10):
                    done = own.execute(plan, {"name": "apple", "qty": 1}, clock=CLOCK)
                    told.put({10 * place + order: done.rows[0][0]})

        threads = [threading.Thread(target=sell, args=(place,)) for place in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sales = [told.get(timeout=1) for _ in range(30)]
        assert _flaws(found, 30, sales, f"sqlite:///{tmp_path}/again.db") == []


@pytest.mark.parametrize("engine", OTHERS)
def test_a_writer_who_cannot_wait_is_told_that_it_is_busy(engine: str, fresh: Fresh) -> None:
    url = fresh(engine)
    one, two = opened(url), opened(url, timeout=0.3)
    one.begin()
    journal.create(one)
    one.commit()
    one.begin()
    with pytest.raises(EngineError) as failed:
        two.begin()
    assert failed.value.kind == "busy"
    two.rollback()
    one.rollback()
    two.begin()
    two.rollback()
    one.close()
    two.close()


def test_a_copy_leaves_no_trace(engine: str, fresh: Fresh) -> None:
    with made(fresh(engine), SHOP[engine]) as found:
        link = found.link
        link.run("insert into fruits values (1, 'apple', 1.5, 3)", {})
        before = found.digest()
        copy = link.copy()
        copy.set_keys_checked(False)
        copy.begin()
        copy.run("update fruits set stock = 9", {})
        copy.commit()
        copy.set_keys_checked(True)
        copy.begin()
        assert copy.ask("select stock from fruits") == [(9,)]
        copy.run("update fruits set stock = 8", {})
        copy.rollback()
        copy.begin()
        assert copy.ask("select stock from fruits") == [(9,)]
        with pytest.raises(EngineError):
            copy.run("update fruits set stock = -1", {})
        copy.rollback()
        copy.close()
        assert found.digest() == before


# ---------------------------------------------------------------- programs

MARKET = """
create table fruits (
  fruit_id int primary key generated always as identity,
  fruit_name text not null unique,
  price decimal(10,2),
  stock int not null default 0 check (stock >= 0),
  ripe bool, picked date, seen timestamp, sweet float, about json, seal bytes
);
create table sold (
  sale_id int primary key generated always as identity,
  fruit_id int not null references fruits (fruit_id),
  qty int not null
);
"""
STOCK = """
program stock(goods many {name text, price decimal(10,2), qty int, ripe bool, picked date, seen timestamp, sweet float});

step put: insert into fruits (fruit_name, price, stock, ripe, picked, seen, sweet)
  select g.name, g.price, g.qty, g.ripe, g.picked, g.seen, g.sweet from $goods as g
  returning fruit_id, fruit_name, price;

return $put;
"""
GOODS: list[dict[str, Any]] = [
    {"name": "apple", "price": "2.30", "qty": 40, "ripe": True, "picked": "2023-01-31", "seen": "2023-02-01 10:00:00.5", "sweet": 0.1},
    {"name": "it's \\ % 🍓", "price": "0.05", "qty": 7, "ripe": False, "picked": "1999-12-31", "seen": "2023-02-01", "sweet": -0.0},
]  # fmt: skip
SELL = """
program sell(name text, qty int);

step fruit -> one: select fruit_id, price from fruits where fruit_name = $name;
step take -> one: update fruits set stock = stock - $qty where fruit_id = $fruit.fruit_id;
step sale: insert into sold (fruit_id, qty) values ($fruit.fruit_id, $qty) returning sale_id;

return $sale.sale_id as sale, $fruit.price * $qty as total;
answer 'Sale {$sale.sale_id}: {$fruit.price * $qty}.';
"""
FORGET = """
program forget(name text);

step fruit -> one: select fruit_id from fruits where fruit_name = $name;
step sales: delete from sold where fruit_id = $fruit.fruit_id;
step gone: delete from fruits where fruit_id = $fruit.fruit_id;
"""
DROP = "program drop_fruit(name text);\nstep gone: delete from fruits where fruit_name = $name;\n"
CLOCK = datetime(2023, 2, 1, 12)


def market(url: str) -> com.Memory:
    found = com.create(url, com.read_schema(MARKET))
    run(found, STOCK, goods=GOODS)
    return found


def run(found: com.Memory, text: str, **given: Any) -> Any:
    return found.execute(com.compile(text, found.schema, engine=found.engine), given, clock=CLOCK)


def fails(found: com.Memory, text: str, **given: Any) -> str:
    with pytest.raises(RunError) as failed:
        run(found, text, **given)
    return f"{failed.value.message.code} {failed.value.path} {failed.value.message.fill(failed.value.message.text)}"


def test_runs_and_their_hashes_are_the_same_on_every_engine(fresh: Fresh) -> None:
    told: dict[str, Any] = {}
    for engine in ENGINES:
        with market(fresh(engine)) as found:
            said: list[Any] = [run(found, SELL, name="apple", qty=3).answer]
            said.append(fails(found, SELL, name="apple", qty=300))
            said.append(fails(found, SELL, name="kiwi", qty=1))
            said.append(fails(found, DROP, name="apple"))
            said.append(fails(found, STOCK, goods=GOODS))
            said.append(run(found, SELL, name="it's \\ % 🍓", qty=1).rows)
            said.append([c.key for c in run(found, FORGET, name="apple").changes])
            said.append([row.status for row in found.log()])
            said.append([s for row in found.log() for s in journal.read_steps(found.link, row.run)])
            said.append([(r.code, r.outcome, r.result, r.answer, r.written) for r in found.log()])
            said.append(found.digest())
            assert not found.verify()
            assert all(found.replay(r.run).same for r in found.log())
            told[engine] = said
    for engine, said in told.items():
        for got, wanted in zip(said, told["sqlite"], strict=True):
            assert got == wanted, engine


def test_a_journal_rebuilds_the_memory_on_another_engine(fresh: Fresh) -> None:
    pairs = [("postgres", "sqlite"), ("sqlite", "postgres"), ("duckdb", "mysql"), ("mysql", "duckdb")]
    for here, there in pairs:
        url = fresh(there)
        with market(fresh(here)) as found:
            run(found, SELL, name="apple", qty=3)
            run(found, FORGET, name="apple")
            rebuilt = found.replay_all(into=url)
            assert rebuilt.same, (here, there, rebuilt)


def everything(found: com.Memory) -> Any:
    """All rows of all tables, com's too."""
    tables = [t.name for t in (*found.schema.tables, *journal.TABLES.tables)]
    return {t: sorted(map(repr, found.link.ask(f"select * from {t}"))) for t in tables}


def test_a_preview_and_a_replay_leave_nothing(engine: str, fresh: Fresh) -> None:
    with market(fresh(engine)) as found:
        run(found, SELL, name="apple", qty=1)
        before = everything(found)
        plan = com.compile(SELL, found.schema, engine=engine)
        seen = found.dry_run(plan, name="apple", qty=2)
        assert len(seen.changes) == 2
        assert found.replay(1).same
        assert everything(found) == before
        assert found.execute(plan, {"name": "apple", "qty": 2}, approve=seen.preview).changes == seen.changes


def test_rows_are_undone_and_strange_ones_named_alike(fresh: Fresh) -> None:
    told: dict[str, Any] = {}
    for engine in ENGINES:
        with market(fresh(engine)) as found:
            for name in ("apple", GOODS[1]["name"], "apple", GOODS[1]["name"], "apple"):
                run(found, SELL, name=name, qty=1)
            run(found, FORGET, name="apple")
            run(found, STOCK, goods=[GOODS[0]])
            assert all(found.replay(r.run).same for r in found.log())
            found.link.run("update sold set qty = 7 where sale_id = 4", {})
            told[engine] = sorted((d.place, d.field, d.cause) for d in found.replay(2).differences)
    assert told["sqlite"]
    for engine, said in told.items():
        assert said == told["sqlite"], engine


def test_a_preview_before_the_first_run_leaves_nothing(engine: str, fresh: Fresh) -> None:
    with made(fresh(engine), SHOP[engine]) as bare:
        found = com.connect(bare.url.render_as_string(hide_password=False)) if engine != "sqlite" else None
        own: Any = found or bare
        text = "program put();\nstep put: insert into fruits (fruit_id, fruit_name, stock) values (1, 'apple', 2);\n"
        plan = com.compile(text, own.schema, engine=engine)
        assert len(own.dry_run(plan, {}).changes) == 1
        assert not own.link.has_table("com_head")
        assert own.link.ask("select count(*) from fruits") == [(0,)]
        if found is not None:
            found.close()


def test_ids_have_no_gaps_after_failures(engine: str, fresh: Fresh) -> None:
    with market(fresh(engine)) as found:
        for qty in (1, 900, 1, 900, 1):
            if qty == 1:
                run(found, SELL, name="apple", qty=qty)
            else:
                fails(found, SELL, name="apple", qty=qty)
        assert found.link.ask("select sale_id from sold order by sale_id") == [(1,), (2,), (3,)]
        assert [r.run for r in found.log()] == [1, 2, 3, 4, 5, 6]
        assert found.link.ask("select number from com_commit order by number") == [(1,), (2,), (3,), (4,)]


ORDERS, BOUGHT = 60, 40
"""So many apples are asked for, one an order, and so many there are."""


def _sell_much(url: str, place: int, orders: int, told: Any) -> None:
    """Sends half of the orders, each of which another process sends too; DuckDB's file is given up in between."""
    sales: dict[int, int] = {}
    found = None
    for order in range(orders):
        if (order + place) % 4 > 1:
            continue
        try:
            found = found or com.connect(url, timeout=60)
            plan = com.compile(SELL, found.schema, engine=found.engine)
            outcome = found.execute(plan, {"name": "apple", "qty": 1}, clock=CLOCK, key=f"order {order}")
            sales[order] = outcome.rows[0][0]
        except RunError as failed:
            if failed.message.code != "CM507":
                raise
        if url.startswith("duckdb") and found is not None:
            found.close()
            found = None
    if found is not None:
        found.close()
    told.put(sales)


def _flaws(found: com.Memory, stock: int, told: list[dict[int, int]], into: str) -> list[str]:
    """What does not hold after sellers have sold from one stock; `told`: the sale of each order, as each was told."""
    flaws = []
    ask = found.link.ask
    sold = {row[0] for row in ask("select sale_id from sold")}
    if sold != set(range(1, stock + 1)):
        flaws.append("sales lost, doubled or with gaps")
    if ask("select stock from fruits where fruit_name = 'apple'") != [(0,)]:
        flaws.append("stock")
    answers = {(order, sale) for sales in told for order, sale in sales.items()}
    if sorted(sale for _, sale in answers) != list(range(1, stock + 1)):
        flaws.append("an order was answered twice otherwise, or two alike")
    if [r.run for r in found.log()] != list(range(1, len(found.log()) + 1)):
        flaws.append("gaps between runs")
    if [n for (n,) in ask("select number from com_commit order by number")] != list(range(1, stock + 2)):
        flaws.append("commits lost, doubled or with gaps")
    flaws += [flaw.detail for flaw in found.verify()]
    if not found.replay_all(into=into).same:
        flaws.append("the journal does not lead there")
    return flaws


def _sold_out(url: str, orders: int, stock: int) -> list[dict[int, int]]:
    goods = [GOODS[0] | {"qty": stock}]
    with com.create(url, com.read_schema(MARKET)) as found:
        run(found, STOCK, goods=goods)
    spawn = multiprocessing.get_context("spawn")
    told = spawn.Queue()
    sellers = [spawn.Process(target=_sell_much, args=(url, place, orders, told)) for place in range(4)]
    for seller in sellers:
        seller.start()
    sales = [told.get(timeout=100) for _ in sellers]
    for seller in sellers:
        seller.join()
    return sales


@pytest.mark.slow
def test_four_processes_never_sell_what_is_not_there(engine: str, fresh: Fresh, tmp_path: Path) -> None:
    url = fresh(engine)
    orders, stock = (12, 8) if engine == "duckdb" else (ORDERS, BOUGHT)
    told = _sold_out(url, orders, stock)
    with com.connect(url) as found:
        assert _flaws(found, stock, told, f"sqlite:///{tmp_path}/again.db") == []
        assert len(found.log()) >= orders + 1


BROKEN = {
    "a sale too many": ("insert into sold (sale_id, fruit_id, qty) values (9, 1, 1)", "sales lost"),
    "a sale lost": ("delete from sold where sale_id = 3", "sales lost"),
    "a stock written over": ("update fruits set stock = 1", "stock"),
    "a commit lost": ("delete from com_commit where number = 4", "commits lost"),
    "a run lost": ("delete from com_run where run = 3", "gaps between runs"),
    "other rows than by the journal": ("update sold set qty = 2 where sale_id = 2", "does not lead there"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_what_goes_wrong_when_many_sell_is_seen(name: str, fresh: Fresh, tmp_path: Path) -> None:
    url, (sql, flaw) = fresh("sqlite"), BROKEN[name]
    told: list[dict[int, int]] = [{order: order + 1 for order in range(4)}]
    with com.create(url, com.read_schema(MARKET)) as found:
        run(found, STOCK, goods=[GOODS[0] | {"qty": 4}])
        for _ in range(4):
            run(found, SELL, name="apple", qty=1)
        assert _flaws(found, 4, told, f"sqlite:///{tmp_path}/again.db") == []
        assert _flaws(found, 4, [*told, {0: 2}], f"sqlite:///{tmp_path}/once.db")
        found.link.run(sql, {})
        assert any(flaw in f for f in _flaws(found, 4, told, f"sqlite:///{tmp_path}/more.db"))


def _first(url: str, place: int, told: Any) -> None:
    """Runs a program on a memory that has no journal yet."""
    with com.connect(url) as found:
        text = f"program put();\nstep put: insert into fruits (fruit_id, fruit_name, stock) values ({place}, '{place}', 2);\n"
        told.put(found.execute(com.compile(text, found.schema, engine=found.engine)).run_id)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite", "postgres", "mysql"])
def test_four_processes_make_one_journal(engine: str, fresh: Fresh) -> None:
    url = fresh(engine)
    made(url, SHOP[engine]).close()
    spawn = multiprocessing.get_context("spawn")
    told = spawn.Queue()
    processes = [spawn.Process(target=_first, args=(url, place, told)) for place in range(1, 5)]
    for process in processes:
        process.start()
    assert sorted(told.get(timeout=100) for _ in processes) == [1, 2, 3, 4]
    for process in processes:
        process.join()
    with com.connect(url) as found:
        assert not found.verify()
        assert found.link.ask("select run, commits from com_head") == [(4, 4)]


def test_threads_on_one_file_of_duckdb(fresh: Fresh, tmp_path: Path) -> None:
    url = fresh("duckdb")
    with com.create(url, com.read_schema(MARKET)) as found:
        run(found, STOCK, goods=[GOODS[0] | {"qty": 6}])
        told: Any = queue.Queue()

        def sell(place: int) -> None:
            sales: dict[int, int] = {}
            with com.connect(url) as own:
                for order in range(10):
                    try:
                        key = f"order {(order + place) % 10}"
                        plan = com.compile(SELL, own.schema, engine="duckdb")
                        done = own.execute(plan, {"name": "apple", "qty": 1}, clock=CLOCK, key=key)
                        sales[(order + place) % 10] = done.rows[0][0]
                    except RunError as failed:
                        if failed.message.code != "CM507":
                            raise
            told.put(sales)

        threads = [threading.Thread(target=sell, args=(place,)) for place in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sales = [told.get(timeout=1) for _ in threads]
        assert _flaws(found, 6, sales, f"sqlite:///{tmp_path}/again.db") == []


def _lose(found: com.Memory, arrives: bool) -> None:
    """Lets the answer to the next commit be lost."""
    link: Any = found.link
    commit = type(link)._commit

    def lost() -> None:
        if arrives:
            commit(link)
        else:
            link._say("rollback")
        del link._commit
        raise EngineError("lost", "nobody answers")

    link._commit = lost


@pytest.mark.parametrize("engine", ["postgres", "mysql"])
@pytest.mark.parametrize("arrives", [True, False])
def test_a_commit_whose_answer_is_lost_is_made_once(engine: str, arrives: bool, fresh: Fresh) -> None:
    with market(fresh(engine)) as found:
        _lose(found, arrives)
        outcome = run(found, SELL, name="apple", qty=1)
        assert (outcome.run_id, outcome.rows[0][0]) == (2, 1)
        assert found.link.ask("select sale_id from sold") == [(1,)]
        assert [(r.status, r.attempt) for r in found.log()] == [("done", 0), ("done", 0 if arrives else 1)]
        assert not found.verify()


@pytest.mark.parametrize("engine", ["postgres", "mysql"])
def test_a_run_goes_on_after_its_connection_is_lost(engine: str, fresh: Fresh) -> None:
    url = fresh(engine)
    other = opened(url)
    with market(url) as found:
        own = "select pg_backend_pid()" if engine == "postgres" else "select connection_id()"
        number = found.link.ask(own)[0][0]
        plan = com.compile(SELL, found.schema, engine=engine)
        found.execute(plan, {"name": "apple", "qty": 1}, clock=CLOCK)
        head, dead = journal.head, []

        def dying(link: Any) -> Any:
            if not dead:
                dead.append(number)
                end = "select pg_terminate_backend(?::int)" if engine == "postgres" else f"kill {number}"
                other.ask(end, *([number] if engine == "postgres" else []))
            return head(link)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(journal, "head", dying)
            assert found.execute(plan, {"name": "apple", "qty": 1}, clock=CLOCK).run_id == 3
        assert [(r.status, r.attempt) for r in found.log()] == [("done", 0), ("done", 0), ("done", 1)]
        number = found.link.ask(own)[0][0]
        end = "select pg_terminate_backend(?::int)" if engine == "postgres" else f"kill {number}"
        other.ask(end, *([number] if engine == "postgres" else []))
        assert len(found.log()) == 3
        assert found.execute(plan, {"name": "apple", "qty": 1}, clock=CLOCK).run_id == 4
    other.close()


def test_a_conflict_that_stays_is_told(fresh: Fresh) -> None:
    with market(fresh("postgres")) as found:
        tried: list[int] = []

        def conflict() -> None:
            tried.append(1)
            found.link.rollback()
            raise EngineError("conflict", "could not serialize access")

        found.link._commit = conflict  # type: ignore[attr-defined]
        with pytest.raises(RunError) as failed:
            run(found, SELL, name="apple", qty=1)
        assert failed.value.message.code == "CM516"
        assert len(tried) == CONFLICTS + 2  # the last to record that it failed
        del found.link._commit  # type: ignore[attr-defined]
        assert found.link.ask("select count(*) from sold") == [(0,)]


def test_a_url_of_several_servers_goes_on_to_the_next(fresh: Fresh) -> None:
    url = read_url(fresh("mysql"))
    link = opened(
        url.set(host=None, port=None)
        .update_query_dict({"host": f"127.0.0.1,{url.host}", "port": f"1,{url.port or 3306}"})
        .render_as_string(hide_password=False)
    )
    assert link.ask("select 1") == [(1,)]
    link.reopen()
    assert link.ask("select 1") == [(1,)]
    link.close()
    with pytest.raises(Error, match="port"):
        opened(url.set(host=None, port=None).update_query_dict({"host": "a,b,c", "port": "1,2"}).render_as_string())
