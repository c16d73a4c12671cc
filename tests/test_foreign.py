"""Databases that com did not make: what is odd in them must not change what a program means."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import ENGINES
from sqlalchemy import make_url

import com


@pytest.fixture
def memory(tmp_path: Path) -> com.Memory:
    """A table with four rows, and a view of it."""
    db = sqlite3.connect(tmp_path / "foreign.db")
    db.executescript(
        """
        create table t (id integer primary key, a int not null);
        create view v as select id, a from t;
        insert into t (a) values (10), (20), (30), (40);
        """
    )
    db.close()
    return com.connect(f"sqlite:///{tmp_path}/foreign.db")


def run(memory: com.Memory, program: str, **given: object) -> list[int]:
    com.execute(com.compile(program, memory.schema), memory, **given)
    return [a for (a,) in memory.link.run("select a from t order by id", {})]


def test_a_loop_sees_its_writes_through_a_view(memory: com.Memory) -> None:
    program = """
        program less(xs many {i int});
        for each x in $xs { step u: delete from t where id = $x.i and (select count(*) from v) > 2; }
    """
    assert run(memory, program, xs=[{"i": i} for i in (1, 2, 3, 4)]) == [30, 40]


def test_inserts_of_a_loop_see_each_other_through_a_view(memory: com.Memory) -> None:
    program = """
        program more(xs many {d int});
        for each x in $xs { step i: insert into t (a) values ((select count(*) from v) + $x.d); }
    """
    assert run(memory, program, xs=[{"d": 100}] * 3) == [10, 20, 30, 40, 104, 105, 106]


def test_an_update_reads_a_view_as_it_was(memory: com.Memory) -> None:
    program = """
        program sums;
        step u: update t set a = coalesce((select sum(v.a) from v where v.id <> t.id), 0) where true;
    """
    assert run(memory, program) == [90, 80, 70, 60]


def test_a_computed_column_is_read_but_not_written(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "computed.db")
    db.execute(
        "create table t (id integer primary key, a int not null, twice int not null generated always as (a * 2))"
    )
    db.close()
    with com.connect(f"sqlite:///{tmp_path}/computed.db") as memory:
        (wrong,) = com.check("program p; step i: insert into t (a, twice) values (1, 2);", memory.schema)
        assert wrong.code == "CM320"
        put = com.compile("program p; step i: insert into t (a) values (4) returning twice; return $i;", memory.schema)
        assert com.execute(put, memory).rows == ((8,),)


# ---------------------------------------------------------------- on every engine


def plain(engine: str, url: str, *statements: str) -> Any:
    """A connection of the engine's own driver, once it has said these statements."""
    address = make_url(url)
    driver: Any
    if engine == "sqlite":
        driver = sqlite3.connect(address.database or "", isolation_level=None)
    elif engine == "duckdb":
        driver = pytest.importorskip("duckdb").connect(address.database)
    elif engine == "postgres":
        given = address.translate_connect_args(username="user", database="dbname")
        driver = pytest.importorskip("psycopg").connect(autocommit=True, **given)
    else:
        given = address.translate_connect_args(username="user")
        driver = pytest.importorskip("pymysql").connect(autocommit=True, **given)
    cursor = driver.cursor()
    for statement in statements:
        cursor.execute(statement)
    return driver


Opened = Callable[..., com.Memory]


@pytest.fixture
def opened(fresh: Callable[[str], str]) -> Opened:
    """Makes a memory of an engine with plain statements, and opens it."""

    def make(engine: str, *statements: str) -> com.Memory:
        url = fresh(engine)
        plain(engine, url, *statements).close()
        return com.connect(url)

    return make


def done(memory: com.Memory, text: str, *, history: bool | None = None, **given: Any) -> Any:
    return memory.execute(com.compile(text, memory.schema, engine=memory.engine), given, history=history)


def rows(memory: com.Memory, query: str, **given: Any) -> list[tuple[Any, ...]]:
    names = "".join(f"{n} {'text[]' if isinstance(v, list) else 'text'}, " for n, v in given.items()).rstrip(", ")
    return list(done(memory, f"program p({names}); step s: {query}; return $s;", **given).rows)


def refused(memory: com.Memory, text: str, **given: Any) -> com.Error:
    with pytest.raises(com.Error) as failed:
        done(memory, text, **given)
    return failed.value


every = pytest.mark.parametrize("engine", ENGINES)
ODD = (
    "a b",
    "select",
    "MiXed",
    'q"x',
    "naïve-ключ",
    "100%s",
    "a:b",
    "$x",
    "back`tick",
    "it's",
    "per%(p1)s",
    "a.b",
    "a\\b",
)


@every
def test_odd_names(engine: str, opened: Opened) -> None:
    mark = "`" if engine == "mysql" else '"'

    def quoted(name: str, by: str = mark) -> str:
        return by + name.replace(by, by + by) + by

    columns = ", ".join(f"{quoted(n)} varchar(20)" for n in ODD)
    keys = ", ".join(f"unique ({quoted(n)})" for n in ODD[:3])
    made = [
        f"create table {quoted('t ' + name)} ({quoted('k ' + name)} int primary key, {columns}, "
        f"n int check (n >= 0), {keys})"
        for name in ODD
    ]
    with opened(engine, *made) as memory:
        assert [t.name for t in memory.schema.tables] == sorted(f"t {n}" for n in ODD)
        for name in ODD:
            found = memory.schema.table(f"t {name}")
            assert found is not None and found.primary_key == (f"k {name}",)
            assert sorted(found.uniques) == sorted((n,) for n in ODD[:3]) and len(found.checks) == 1
            table, key = quoted(f"t {name}", '"'), quoted(f"k {name}", '"')
            listed = ", ".join(quoted(n, '"') for n in ODD)
            values = ", ".join("'x'" for _ in ODD)
            done(memory, f"program p; step i: insert into {table} ({key}, {listed}) values (1, {values});")
            one = quoted(name, '"')
            update = f"update {table} set {one} = $v, n = 2 where {one} in ($w) returning {key}, {one}"
            assert rows(memory, update, v="y", w="x") == [(1, "y")]
            assert rows(memory, f"select {one}, count(*) as n from {table} group by {one}") == [("y", 1)]
            failed = refused(memory, f"program p; step u: update {table} set n = 0 - 1 where true;")
            assert failed.message.code == "CM507"
        twice = 'program p; step i: insert into "t a b" ("k a b") values (1);'
        assert refused(memory, twice).message.code == "CM503"
        assert all(memory.replay(r.run).same for r in memory.log() if r.status == "done")
        assert memory.verify() == []


FOLDING = {
    "sqlite": ("create table t (id integer primary key, a text collate nocase unique, b text collate rtrim)",),
    "duckdb": ("create table t (id int primary key, a varchar collate nocase unique, b varchar collate noaccent)",),
    "mysql": (
        "create table t (id int primary key, a varchar(20) collate utf8mb4_general_ci unique,"
        " b varchar(20) character set latin1)",
    ),
    "postgres": (
        "create collation folding (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        "create table t (id int primary key, a text collate folding unique, b varchar(20) collate folding)",
    ),
}


@every
def test_a_column_that_folds_letters_is_compared_by_code_point(engine: str, opened: Opened) -> None:
    filled = "insert into t values (1, 'fig', 'x'), (2, 'Kiwi', 'X'), (3, 'plum', 'x')"
    view = "create view v as select a, b from t"
    with opened(engine, *FOLDING[engine], filled, view) as memory:
        for source in ("t", "v"):
            assert rows(memory, f"select a from {source} where a = $n", n="kiwi") == []
            assert rows(memory, f"select a from {source} where a in $n", n=["kiwi", "PLUM", "fig"]) == [("fig",)]
            assert rows(memory, f"select a from {source} order by a") == [("Kiwi",), ("fig",), ("plum",)]
            assert rows(memory, f"select b, count(*) as n from {source} group by b") == [("X", 1), ("x", 2)]
            assert rows(memory, f"select distinct b from {source}") == [("X",), ("x",)]
            least = f"select min(a) as x, max(a) as y, count(distinct b) as n from {source}"
            assert rows(memory, least) == [("Kiwi", "plum", 2)]
            assert rows(memory, f"select a from {source} where a like 'k%' or a < 'F'") == []
            assert rows(memory, f"select x.a from (select a from {source}) as x where x.a = 'FIG'") == []
        assert rows(memory, "select x.id, y.id as other from t as x join t as y on x.b = y.b where x.id < y.id") == [
            (1, 3)
        ]
        assert len(done(memory, "program p; step u: update t set b = 'z' where b = 'x';").changes) == 2
        done(memory, "program p; step d: delete from t where a = 'FIG';")
        assert [a for (a,) in rows(memory, "select a from t")] == ["fig", "Kiwi", "plum"]
        assert all(memory.replay(r.run).same for r in memory.log() if r.status == "done")


STRANGE = {
    "sqlite": ("create table t (id int primary key, n int, g geometry, c time)", "insert into t values (1, 1, 'x', 2)"),
    "duckdb": (
        "create type mood as enum ('sad', 'ok')",
        "create table t (id int primary key, n int, g int[], m mood default 'ok', u uuid, s struct(a int))",
        "insert into t values (1, 1, [1, 2], 'sad', '00000000-0000-0000-0000-000000000001', {'a': 1})",
    ),
    "mysql": (
        "create table t (id int primary key, n int, g point, m enum('sad', 'ok') default 'ok', u uuid,"
        " b bigint unsigned)",
        "insert into t values (1, 1, null, 'sad', '00000000-0000-0000-0000-000000000001', 18446744073709551615)",
    ),
    "postgres": (
        "create type mood as enum ('sad', 'ok')",
        "create table t (id int primary key, n int, g int[], m mood default 'ok', u uuid, i inet, r int4range)",
        "insert into t values (1, 1, '{1,2}', 'sad', '00000000-0000-0000-0000-000000000001', '::1', '[1,2)')",
    ),
}


@every
def test_columns_of_types_that_com_lacks(engine: str, opened: Opened) -> None:
    with opened(engine, *STRANGE[engine]) as memory:
        (table,) = memory.schema.tables
        strange = [c.name for c in table.columns if c.type.is_unknown]
        assert strange == [c.name for c in table.columns[2:]]
        for name in strange:
            assert refused(memory, f"program p; step s: select {name} from t; return $s;").message.code == "CM330"
        assert rows(memory, "select id, n from t") == [(1, 1)]
        done(memory, "program p; step u: update t set n = 2 where id = 1;")
        done(memory, "program p; step i: insert into t (id, n) values (2, 3);")
        done(memory, "program p; step d: delete from t where id = 1;")
        assert [memory.replay(r).same for r in (1, 2, 3, 4)] == [True] * 4
        assert memory.verify() == []


@pytest.mark.parametrize("engine", ["duckdb", "mysql", "postgres"])
def test_a_key_of_a_type_that_com_lacks(engine: str, opened: Opened) -> None:
    filled = "insert into t values ('00000000-0000-0000-0000-000000000001', 1)"
    with opened(engine, "create table t (u uuid primary key, n int)", filled) as memory:
        changes = done(memory, "program p; step u: update t set n = 2 where n = 1;").changes
        assert [c.key for c in changes] == [("00000000-0000-0000-0000-000000000001",)]
        done(memory, "program p; step d: delete from t where n = 2;")
        assert memory.replay(1).same and memory.replay(2).same


@every
def test_a_table_without_a_key(engine: str, opened: Opened) -> None:
    with opened(engine, "create table t (a int, b varchar(5))", "insert into t values (1, 'x'), (1, 'x')") as memory:
        assert rows(memory, "select a, b from t") == [(1, "x"), (1, "x")]
        (warning,) = com.check("program p; step u: update t set b = 'y' where a = 1;", memory.schema)
        assert (warning.code, warning.severity) == ("CM337", "warning")
        assert done(memory, "program p; step u: update t set b = 'y' where a = 1;").changes == ()
        done(memory, "program p; step i: insert into t (a) values (2);")
        done(memory, "program p; step d: delete from t where a = 1;")
        assert rows(memory, "select a, b from t") == [(2, None)]
        with pytest.raises(com.Error) as failed:
            memory.replay(1)
        assert failed.value.message.code == "CM603"


INSTANTS = {
    "duckdb": "timestamp with time zone",
    "mysql": "timestamp(6) null",
    "postgres": "timestamp(6) with time zone",
}


@pytest.mark.parametrize("engine", INSTANTS)
def test_an_instant_is_a_timestamp_of_utc(engine: str, opened: Opened) -> None:
    table = f"create table t (id int primary key, moment {INSTANTS[engine]})"
    with opened(engine, table, "insert into t values (1, '2024-03-01 10:30:00')") as memory:
        put = "program p(moment timestamp); step i: insert into t (id, moment) values (2, $moment);"
        moment = datetime(2024, 3, 1, 11, 30, 0, 250000)
        change = done(memory, put, moment=moment).changes[0]
        assert change.after is not None and change.after["moment"] == moment
        later = "select moment, hour(moment) as h from t where date_trunc('day', moment) = '2024-03-01' and moment > '2024-03-01 11:00'"
        assert rows(memory, later) == [(moment, 11)]
        done(memory, "program p; step u: update t set moment = moment + interval '1 day' where id = 2;")
        assert [memory.replay(r.run).same for r in memory.log()] == [True] * 3


KEYED = {
    "sqlite": "integer primary key autoincrement",
    "duckdb": """bigint primary key default nextval('"my ids"')""",
    "mysql": "bigint primary key auto_increment",
    "postgres": "bigint generated always as identity primary key",
}


@every
def test_an_outsiders_own_insert_takes_the_next_id(engine: str, opened: Opened) -> None:
    table = f"create table t (id {KEYED[engine]}, a varchar(9))"
    made = ['create sequence "my ids"', table] if engine == "duckdb" else [table]
    with opened(engine, *made) as memory:
        found = memory.schema.table("t")
        assert found is not None and found.identity is not None
        many = "program p(xs many {a text}); step i: insert into t (a) select x.a from $xs as x;"
        done(memory, many, xs=[{"a": "x"}] * 3)
        url = memory.url.render_as_string(hide_password=False)
    plain(engine, url, "insert into t (a) values ('y')").close()
    with com.connect(url) as memory:
        assert done(memory, many, xs=[{"a": "z"}]).changes[0].key == (5,)
        assert rows(memory, "select id, a from t where a <> 'x'") == [(4, "y"), (5, "z")]


# ---------------------------------------------------------------- what changes rows unseen

PARENT = "create table t (id int primary key, a int unique)"
CHILD = "create table c (id int primary key, t int, foreign key (t) references t (id) {})"
WRITES = {
    "insert": "program p; step i: insert into t (id, a) values (9, 9);",
    "update": "program p; step u: update t set a = 7 where id = 1;",
    "delete": "program p; step d: delete from t where id = 1;",
}
POSTGRES_TRIGGER = (
    "create function f() returns trigger language plpgsql as $$ begin {} end $$",
    "create trigger tr {} on t for each row execute function f()",
)
UNSEEN: dict[str, tuple[list[str], str, tuple[str, ...], tuple[str, ...]]] = {
    "delete cascades": ([CHILD.format("on delete cascade")], "on delete cascade", ("delete",), ()),
    "delete sets null": ([CHILD.format("on delete set null")], "on delete set null", ("delete",), ()),
    "update cascades": (
        ["create table c (id int primary key, t int, foreign key (t) references t (a) on update cascade)"],
        "on update cascade",
        ("update",),
        (),
    ),
    "a plain key": ([CHILD.format("")], "", (), ()),
    "a trigger writes": (
        ["create table log (n int)", "create trigger tr after insert on t for each row insert into log values (1)"],
        "the trigger tr",
        ("insert", "update", "delete"),
        ("mysql",),
    ),
    "a trigger writes another table": (
        [
            "create table log (n int)",
            POSTGRES_TRIGGER[0].format("insert into log values (1); return new;"),
            POSTGRES_TRIGGER[1].format("after insert"),
        ],
        "the trigger tr",
        ("insert", "update", "delete"),
        ("postgres",),
    ),
    "a trigger skips rows": (
        [POSTGRES_TRIGGER[0].format("return null;"), POSTGRES_TRIGGER[1].format("before update")],
        "skips rows",
        ("insert", "update", "delete"),
        ("postgres",),
    ),
    "a rule rewrites": (
        ["create rule r as on delete to t do instead nothing"],
        "the rule r",
        ("insert", "update", "delete"),
        ("postgres",),
    ),
}


@pytest.mark.parametrize("engine", ["mysql", "postgres"])
@pytest.mark.parametrize("case", UNSEEN)
def test_changes_that_com_would_not_see(engine: str, case: str, opened: Opened) -> None:
    made, cause, verbs, only = UNSEEN[case]
    if only and engine not in only:
        return
    hidden = "skips" in cause or "rule" in cause
    with opened(engine, PARENT, *made, "insert into t values (1, 1)") as memory:
        for verb, text in WRITES.items():
            if verb in verbs:
                failed = refused(memory, text)
                assert failed.message.code == "CM522" and cause in str(failed)
                plan = com.compile(text, memory.schema, engine=engine)
                with pytest.raises(com.Error):
                    memory.dry_run(plan)
                if hidden:
                    with pytest.raises(com.Error):
                        memory.execute(plan, history=False)
        for verb, text in WRITES.items():
            if verb not in verbs:
                assert len(done(memory, text).changes) == 1
            elif not hidden:
                done(memory, text, history=False)


@pytest.mark.parametrize("engine", ["mysql", "postgres"])
def test_a_trigger_that_only_forbids_is_fine(engine: str, opened: Opened) -> None:
    if engine == "postgres":
        body = "if new.a > 5 then raise exception 'too many'; end if; return new;"
        made = [POSTGRES_TRIGGER[0].format(body), POSTGRES_TRIGGER[1].format("before insert or update")]
    else:
        body = "if new.a > 5 then signal sqlstate '45000' set message_text = 'too many'; end if"
        made = [f"create trigger tr before insert on t for each row {body}"]
    with opened(engine, PARENT, *made) as memory:
        assert refused(memory, WRITES["insert"]).message.code == "CM521"
        assert len(done(memory, WRITES["insert"].replace("9, 9", "9, 2")).changes) == 1


# ---------------------------------------------------------------- structure


@every
def test_what_is_read_of_a_table(engine: str, opened: Opened) -> None:
    made = [
        "create table p (a int, b int, primary key (b, a))",
        "create table t (id int primary key, x int not null default 3, y int, d decimal(10, 2) check (d >= 0),"
        " twice decimal(12, 2) generated always as (d * 2)"
        f"{' stored' if engine == 'postgres' else ''}, s varchar(9) default 'a,b',"
        " foreign key (x, y) references p (b, a), unique (y, s))",
        "create index ix on t (x, y)",
        "create unique index ux on t (s, d)",
    ]
    if engine != "mysql":
        made.append("create unique index lowered on t (lower(s))")
    if engine in ("sqlite", "postgres"):
        made.append("create unique index partly on t (x) where y > 3")
    with opened(engine, *made) as memory:
        table, other = memory.schema.table("t"), memory.schema.table("p")
        assert table is not None and other is not None
        assert other.primary_key == ("b", "a") and table.primary_key == ("id",)
        assert table.uniques == (("s", "d"), ("y", "s"))
        assert [(k.columns, k.table, k.target) for k in table.foreign_keys] == [(("x", "y"), "p", ("b", "a"))]
        assert ("ix", ("x", "y")) in [(i.name, i.columns) for i in table.indexes]
        assert [c.name for c in table.columns if c.computed] == ["twice"]
        assert [str(c.type) for c in table.columns] == ["int", "int", "int", "decimal(10,2)", "decimal(12,2)", "text"]
        assert [c.name for c in table.columns if c.default is not None] == ["x", "s"]
        assert not any(c.nullable for c in table.columns[1:2]) and len(table.checks) == 1
        put = "program p; step k: insert into p (a, b) values (1, 3);"
        put += " step i: insert into t (id, y, d) values (1, 1, 1.25) returning x, s, twice; return $i;"
        assert done(memory, put).rows == ((3, "a,b", Decimal("2.50")),)
        assert memory.replay(1).same


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_a_memory_is_one_schema(engine: str, fresh: Callable[[str], str]) -> None:
    url = fresh(engine)
    tables = ('create schema "My sales"', 'create table "My sales".t (id int primary key)', "create table u (a int)")
    plain(engine, url, *tables, 'insert into "My sales".t values (4)').close()
    with com.connect(url) as memory:
        assert [t.name for t in memory.schema.tables] == ["u"]
    with com.connect(f"{url}?schema=My%20sales") as memory:
        assert [t.name for t in memory.schema.tables] == ["t"]
        done(memory, "program p; step i: insert into t (id) values (5);")
        assert rows(memory, "select id from t") == [(4,), (5,)] and memory.replay(1).same
    with com.connect(url) as memory:
        assert memory.log() == []
    with pytest.raises(com.Error) as failed:
        com.connect(f"{url}?schema=nowhere")
    assert failed.value.message.code == "CM590" or "nowhere" in str(failed.value)


def test_a_key_into_another_schema_is_left_out(opened: Opened) -> None:
    made = (
        "create schema other",
        "create table other.t (id int primary key)",
        "create table t (id int primary key)",
        "create table c (id int primary key, t int references other.t (id))",
    )
    with opened("postgres", *made) as memory:
        table = memory.schema.table("c")
        assert table is not None and table.foreign_keys == ()


def test_partitions_are_parts_of_their_table(opened: Opened) -> None:
    made = (
        "create table t (id int primary key, a int) partition by range (id)",
        "create table low partition of t for values from (0) to (100)",
        "create table high partition of t for values from (100) to (200)",
    )
    with opened("postgres", *made) as memory:
        assert [t.name for t in memory.schema.tables] == ["t"]
        done(memory, "program p; step i: insert into t (id, a) values (5, 1), (105, 2);")
        assert rows(memory, "select id from t") == [(5,), (105,)] and memory.replay(1).same


@every
def test_many_tables_are_read_at_once(engine: str, opened: Opened) -> None:
    made = [
        f"create table t{i} (id int primary key, name varchar(50) unique, a int default 3 check (a > 0), p int"
        + (f", foreign key (p) references t{i - 1} (id))" if i else ")")
        for i in range(50)
    ]
    with opened(engine, *made) as memory:
        count, ask = [0], memory.link.ask

        def counted(sql: str, *values: Any) -> Any:
            count[0] += 1
            return ask(sql, *values)

        memory.link.ask = counted  # type: ignore[method-assign]
        assert len(memory.schema.tables) == 50
        assert count[0] < (160 if engine == "sqlite" else 20)  # elsewhere they do not grow with the tables


# ---------------------------------------------------------------- what engines say

SECRETS = {
    "duckdb": (
        "create view v as select id, cast(error(secret) as int) as n from t",
        "no reason that could be shown (InvalidInputException)",
    ),
    "postgres": (
        "create view v as select id, length(regexp_replace('x', '(' || secret, 'y')) as n from t",
        "no reason that could be shown (2201B)",
    ),
}


@pytest.mark.parametrize("engine", SECRETS)
def test_what_an_engine_says_of_rows_is_not_told(engine: str, opened: Opened) -> None:
    view, shown = SECRETS[engine]
    table = "create table t (id int primary key, secret varchar(20))"
    with opened(engine, table, "insert into t values (1, 'swordfish')", view) as memory:
        failed = refused(memory, "program p; step s: select id from v where n = 1; return $s;")
        assert failed.message.code == "CM515" and shown in str(failed)
        assert "swordfish" not in str(failed)


def test_what_mariadb_says_of_values_is_not_told(opened: Opened) -> None:
    with opened("mysql") as memory:
        with pytest.raises(com.Error) as failed:
            memory.link.run("select extractvalue('<a/>', concat('~', 'swordfish'))", {})
        assert "could be shown (1105)" in str(failed.value) and "swordfish" not in str(failed.value)
        with pytest.raises(com.Error) as failed:
            memory.link.run("select nothing from nowhere", {})
        assert "nowhere" in str(failed.value)


def test_a_column_without_a_type_is_told_so(opened: Opened) -> None:
    with opened("sqlite", "create table t (id integer primary key, a)") as memory:
        (told,) = com.check("program p; step s: select a from t; return $s;", memory.schema)
        assert told.code == "CM330" and told.text.endswith("none is declared")
