"""One meaning on every engine: what SQLite gives, changes and records, the others give, change and record too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import servers
import test_lower as lowers
from sqlalchemy import URL, make_url

import com.runtime.memory as memories
from com.compiler.lower import lower
from com.runtime.memory import Memory
from com.runtime.outcome import Outcome, RunError
from com.schema import schema_hash

ENGINES = ("postgres", "duckdb", "mysql")
CLOCK = datetime(2024, 2, 29, 13, 5)


def administer(engine: str, *statements: str) -> None:
    """Runs statements on the server itself."""
    with servers.connect(engine) as server, server.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def new_memory(engine: str, folder: Path) -> tuple[str, Callable[[], None]]:
    """The URL of an empty memory, and what removes it."""
    if engine == "duckdb":
        path = folder / f"m{uuid4().hex[:8]}.duckdb"
        return f"duckdb:///{path}", lambda: None
    name = f"com_test_{uuid4().hex[:12]}"
    if engine == "postgres":
        administer(engine, f'create database "{name}"')
        drop = f'drop database if exists "{name}" with (force)'
    else:
        administer(engine, f"create database {name}")
        drop = f"drop database if exists {name}"
    url: URL = make_url(servers.address(engine)).set(database=name)
    return url.render_as_string(hide_password=False), lambda: administer(engine, drop)


class EngineShop(lowers.Shop):
    """The shop of test_lower in a memory of another engine."""

    def __init__(self, engine: str, url: str, text: str = lowers.SHOP) -> None:
        schema = lowers.read_schema(text)
        self.engine = engine
        self.memory: Memory = memories.create(url, schema, lowers.statements(schema, engine))
        self.schema = self.memory.schema

    def run(self, text: str, **parameters: Any) -> Outcome:
        made, problems = lower(lowers.checked(text, self.schema), text, schema_hash(self.schema), self.engine)
        assert not problems, [(d.code, d.text) for d in problems]
        return self.memory.execute(made, parameters, clock=CLOCK)


Scenario = tuple[tuple[str, dict[str, Any]], ...]


def told(shop: lowers.Shop, text: str, parameters: dict[str, Any]) -> Any:
    """What a run gives: rows, answer, changes, and the hashes of its steps; or the code it fails with."""
    try:
        done = shop.run(text, **parameters)
    except RunError as failed:
        return failed.diagnostic.code
    steps = [(s.path, s.kind, s.inputs, s.result, s.count, s.changes) for s in done.steps]
    changes = [(c.table, c.key, c.before, c.after) for c in done.changes]
    return {"rows": [*done.rows], "answer": done.answer, "changes": changes, "steps": steps}


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if reason := servers.missing(name):
        pytest.skip(f"{name} is not tested: {reason}")
    return name


@pytest.fixture(scope="module")
def shops(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[lowers.Shop, EngineShop]]:
    """The shop with its fruits, on SQLite and on the engine."""
    url, remove = new_memory(engine, tmp_path_factory.mktemp("memory"))
    both = lowers.Shop(), EngineShop(engine, url)
    fill(*both)
    yield both
    both[1].memory.close()
    with suppress(Exception):
        remove()


@pytest.fixture
def fresh(engine: str, tmp_path: Path) -> Iterator[tuple[lowers.Shop, EngineShop]]:
    url, remove = new_memory(engine, tmp_path)
    both = lowers.Shop(), EngineShop(engine, url)
    fill(*both)
    yield both
    both[1].memory.close()
    with suppress(Exception):
        remove()


def fill(*both: lowers.Shop) -> None:
    for shop in both:
        for name, kind, price, stock in lowers.FRUITS:
            shop.run(
                "program p(name text, kind text = null, price decimal(10,2) = null, stock int);\n"
                "step a: insert into fruits (name, kind, price, stock) values ($name, $kind, $price, $stock);",
                name=name, kind=kind, price=price, stock=stock,
            )  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), lowers.EXPRESSIONS, ids=[text for text, _ in lowers.EXPRESSIONS])
def test_an_expression(shops: tuple[lowers.Shop, EngineShop], text: str, wanted: object) -> None:
    [(found,)] = shops[1].rows(f"{lowers.HEADER}return {text} as x;", **lowers.GIVEN)
    assert (found, type(found)) == (wanted, type(wanted))


@pytest.mark.parametrize("text", lowers.OVERFLOWS)
def test_an_int_that_leaves_64_bits_is_an_error(shops: tuple[lowers.Shop, EngineShop], text: str) -> None:
    text = f"program p(big int = 9223372036854775807, minus int = -1);\nreturn {text} as x;"
    codes = [told(shop, text, {}) for shop in shops]
    assert codes[0] == codes[1]


@pytest.mark.parametrize(
    "text",
    [
        "return cast($f as decimal(4, 2)) as x;",
        "return cast($f * 0.8103 as decimal(4, 2)) as x;",
        "return cast($t as decimal(4, 2)) as x;",
        "return cast($n as decimal(4, 2)) as x;",
        "return cast($d as decimal(4, 2)) as x;",
        "return cast($d * 10 as decimal(4, 2)) as x;",
        "step a: update fruits set price = price * 100000000 where true;",
        "step a: update fruits set price = (select sum(price) * 100000000 from fruits) where true;",
        "step a: insert into fruits (name, price, stock) select 'x' || name, $f * 1000000, 1 from fruits;",
    ],
)
def test_a_decimal_has_no_more_digits_than_its_type(shops: tuple[lowers.Shop, EngineShop], text: str) -> None:
    header = "program p(f float = 123.456, t text = '123.456', n int = -100, d decimal(8,3) = 123.456);\n"
    assert [told(shop, header + text, {}) for shop in shops] == ["CM509", "CM509"]


@pytest.mark.parametrize(("text", "wanted"), lowers.QUERIES, ids=[text for text, _ in lowers.QUERIES])
def test_a_query(shops: tuple[lowers.Shop, EngineShop], text: str, wanted: list[Any]) -> None:
    many = [{"v": 1, "w": "fig"}, {"v": 2, "w": "kiwi"}, {"v": 3, "w": "apple"}]
    header = "program p(many many {v int, w text}, twice many {k int});\n"
    assert shops[1].rows(f"{header}step s: {text};", many=many, twice=[{"k": k} for k in (1, 1, 2)]) == wanted


MORE = [
    "cast('TRUE' as bool)",
    "cast('1e3' as double precision)",
    "cast('1.005' as decimal(5,2))",
    "cast('2024-01-02T10:00:00.5' as timestamp)",
    "cast($time as text)",
    "cast($i / 3 as text)",
    "round(1250, -2)",
    "abs(-2.5)",
    "sign(-3)",
    "sign(0.0)",
    "power(2, 0.5)",
    "power(0, -1)",
    "power(-8, 0.5)",
    "exp(-1000)",
    "exp(1000)",
    "power(10, 400)",
    "ln(10)",
    "sqrt(2)",
    "12345678.91 / 7",
    "1 / 3.0",
    "100.00 / 3.000",
    "-7 / 2.0",
    "5 / 0.0",
    "5.5 % 0",
    "substr('abcdef', $i - 9, 4)",
    "substr('abcdef', $i - 8)",
    "substr('abcdef', 3)",
    "substr('abcdef', 10, 2)",
    "left('abc', $i - 9)",
    "right('abc', $i - 9)",
    "left('abc', -5)",
    "right('abc', -5)",
    "trim($text || '  ')",
    "trim('.a^b.', '.^]')",
    "ltrim(' a')",
    "rtrim('a ')",
    "replace('abc', '', 'x')",
    "position('', 'abc')",
    "position('B', 'abc')",
    "starts_with('abc', '')",
    "'a' < 'B'",
    "'a' < 'ä'",
    "'Z' < 'a'",
    "'a ' = 'a'",
    "'A' = 'a'",
    "'a' between 'A' and 'b'",
    "least('b', 'B', 'a')",
    "greatest('b', 'B', $nothing)",
    "'a_c' like 'a\\_c'",
    "'abc' like 'a_c'",
    "'a\nc' like 'a%c'",
    "'ABC' ilike '%b%'",
    "$text ilike 'IT%'",
    "upper('ä')",
    "$time + interval '1 month 2 day 3 hour'",
    "$day + interval '-1 month'",
    "date '2024-03-31' + interval '-1 month'",
    "$day + interval '2 week'",
    "$time - interval '1 second'",
    "$time + 3",
    "date_diff('year', date '2023-12-31', $day)",
    "date_diff('quarter', date '2023-12-31', $day)",
    "date_diff('week', date '2024-03-03', date '2024-03-04')",
    "date_diff('day', $time, timestamp '2024-03-01 00:00:00')",
    "date_diff('second', $time, timestamp '2024-03-01 00:00:00')",
    "date_diff('minute', $day, $time)",
    "date_trunc('quarter', $day)",
    "date_trunc('week', $day)",
    "date '0999-12-31' + 1",
    "year(date '0999-12-31')",
    "format_date(date '0999-01-02', '%Y-%m-%d')",
    "second($time)",
    "extract(month from $day)",
    "weekday(date '2024-03-03')",
    "$day = timestamp '2024-02-29 00:00:00'",
    "$day < $time",
    "$time in (timestamp '2024-02-29 13:05:59.5')",
    'json_get(cast(\'{"a": [1, {"b": "x\\n"}]}\' as json), \'a.1.b\')',
    "json_get(cast('{\"a\": null}' as json), 'a')",
    "json_get(cast('{\"a\": true}' as json), 'a')",
    "json_get(cast('{}' as json), 'a')",
    "(select stddev(i.v) from $many as i)",
    "(select avg(i.v) from $many as i where i.v < 4)",
    "(select avg(i.p / 7) from $many as i)",
    "(select min(i.w) from $many as i)",
    "(select sum(i.v) filter (where i.v > 1) from $many as i)",
    "(select count(distinct i.p) from $many as i)",
    "(select string_agg(distinct i.w, ', ') from $many as i)",
    "(select string_agg(i.w, '') filter (where i.v > 1) from $many as i)",
    "(select sum(i.p * 3) from $many as i)",
    "(select sum(i.v / 2) from $many as i)",
    "cast(null as int) is null",
    "coalesce($none, $i)",
    "coalesce($nothing, 'x') || 'y'",
    "nullif($text, 'x')",
    "$i = 7.0",
    "$i in (select i.v from $many as i)",
    "$none in (select i.v from $many as i)",
    "$i not in $list",
    "case when $none > 1 then 1 end",
    "$none = 1 or true",
    "not ($none = 1)",
    "cast($i = 7 as int)",
    "1.10",
    "1.1 + 2",
    "2 * 1.50",
    "9007199254740993 + 0",
    "cast(9007199254740993 as decimal(19,0))",
    "cast(1234567.891 as int)",
    "exists $many",
]


@pytest.mark.parametrize("text", MORE)
def test_an_expression_as_on_sqlite(shops: tuple[lowers.Shop, EngineShop], text: str) -> None:
    wanted, found = (told(shop, f"{lowers.HEADER}return {text} as x;", lowers.GIVEN) for shop in shops)
    assert found == wanted


KINDS = ["int", "date", "timestamp", "bool", "decimal(8,2)", "double precision"]
TEXTS = ["12x", "1.5", " 12 ", "2024-02-30", "today", "yes", "TRUE", "2024-01-02 10:00", "2024-01-02T10:00:00.25"]
TEXTS += ["1e3", "", "nan", "1_000", "0x10", "-7", "1.005", "2024-1-2"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_is_read_as_on_sqlite(shops: tuple[lowers.Shop, EngineShop], kind: str) -> None:
    for value in TEXTS:
        text = f"program p(x text); return cast($x as {kind}) as x;"
        wanted, found = (told(shop, text, {"x": value}) for shop in shops)
        assert found == wanted, value


# ---------------------------------------------------------------- writes

ROWS = "program p(many many {w text, n int}); "
SOME = [{"w": w, "n": n} for n, w in enumerate(["fig", "kiwi", "lime", "kiwi", "apple"])]
FIND = """program p(id int, code text = null, n int);
    step s: insert into things (id, code, n) values ($id, $code, $n) on conflict (code) do nothing returning id, n;
    return $s;"""
UPSERT = """program p(id int, code text, n int);
    step s: insert into things (id, code, n) values ($id, $code, $n)
      on conflict (code) do update set n = things.n * 10 + excluded.n;
    return select id, n from things where code = $code;"""
SALE = "program p; step s: insert into sales (day) values ('2024-01-01');"

SCENARIOS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "update returning": [
        ("program p; step s: update fruits as f set stock = stock + 1, price = f.price * 2 where f.stock < 20 "
         "returning f.name, stock, price; return $s;", {}),
        ("program p; step s: update fruits set stock = 0 where name = 'fig'; return $s;", {}),
        ("program p; step s: update fruits set stock = 0 where name = 'nothing' returning name; return $s;", {}),
        ("program p; step s -> one: update fruits set stock = 5 where kind is null; return $s;", {}),
        ("program p; step s -> one: update fruits set stock = 5 where true;", {}),
    ],
    "update that moves what it is found by": [
        ("program p; step s: update fruits set stock = stock * 2 where stock between 1 and 10 returning name, stock; "
         "return $s;", {}),
        ("program p; step s: update fruits set name = name || '!' where name like '%a%' returning fruit_id, name; "
         "return $s;", {}),
    ],
    "update that reads its own table": [
        ("program p; step s: update fruits as f set stock = (select coalesce(sum(g.stock), 0) from fruits as g "
         "where g.fruit_id < f.fruit_id) where true;", {}),
        ("program p; step s: update fruits set stock = stock + 1 where stock = (select max(stock) from fruits);", {}),
    ],
    "update from rows": [
        (ROWS + "step s: update fruits as f set stock = f.stock + i.n from $many as i where i.w = f.name "
         "returning f.name, stock; return $s;",
         {"many": [{"w": "fig", "n": 2}, {"w": "kiwi", "n": 1}, {"w": "apple", "n": 5}]}),
        (ROWS + "step s: update fruits as f set stock = f.stock + i.n from $many as i where i.w = f.name;",
         {"many": [{"w": "fig", "n": 2}, {"w": "fig", "n": 1}]}),
    ],
    "update from a join": [
        (SALE, {}),
        ("program p; step s: insert into lines (sale_id, fruit_id, qty) values (1, 1, 3), (1, 2, 4);", {}),
        ("program p; step s: update fruits as f set stock = f.stock - l.qty from lines as l left join sales as s on "
         "s.sale_id = l.sale_id where l.fruit_id = f.fruit_id and s.sale_id = 1; return $s;", {}),
    ],
    "delete": [
        ("program p; step s: delete from fruits as f where f.stock < 5 returning f.name, f.stock; return $s;", {}),
        ("program p; step s: delete from fruits where stock = (select max(stock) from fruits); return $s;", {}),
        ("program p; step s: delete from fruits where true;", {}),
    ],
    "insert of tuples": [
        ("program p; step s: insert into fruits (name, stock) values ('kiwi', 1), ('date', 2) returning fruit_id, name;"
         " return $s;", {}),
        ("program p; step s: insert into fruits (name, stock) values ('apple', 1);", {}),
        ("program p; step s: insert into fruits (name, stock) values ('new', -1);", {}),
        ("program p; step s: insert into fruits (name) values ('new') returning fruit_id, stock; return $s;", {}),
    ],
    "insert of all types": [
        ("""program p; step s: insert into things (id, f, b, t, d, j, n) values
         (2, 0.1, true, '2024-01-01 10:00:00.25', '2024-01-01', '{"a": [1]}', 5),
         (1, null, null, null, null, null, null); return select id, f, b, t, d, j, n from things order by id;""", {}),
        ("program p; step s: insert into things (id, n) values ((select max(id) from things) + 1, 3);", {}),
        ("program p; step s: insert into things (id, n) values (9, (select count(*) from things)); return $s;", {}),
        ("program p; step s: update things set f = f / 3, b = not b, t = t + interval '1 month', d = d + 1 "
         "where true; return $s;", {}),
        ("program p; step s: delete from things where b is null returning id, f, b, t, d, n; return $s;", {}),
    ],
    "insert of a query": [
        ("program p; step s: insert into fruits (name, stock) select 'dried ' || name, stock from fruits "
         "order by stock desc; return select fruit_id, name from fruits where fruit_id > 4 order by 1;", {}),
        ("program p; step s: insert into fruits (name) select 'b' as x union select 'a' order by x desc limit 2; "
         "return $s;", {}),
        ("program p; step s: insert into things (id, n) select fruit_id * 10, stock from fruits where stock > 0;", {}),
        ("program p; step s: insert into things (id, code) select id + 1, 'c' || id from things returning id, code; "
         "return $s;", {}),
    ],
    "a table without key": [
        ("program p; step s: insert into notes (word, n) values ('b', 1), ('a', null), ('a', 2) returning word, n; "
         "return $s;", {}),
        ("program p; step s: update notes set n = 5 where word = 'a' returning n; return $s;", {}),
        ("program p; step s: delete from notes where n = 5 returning word; return $s;", {}),
    ],
    "find or add": [
        *[("program p(name text); step s: insert into fruits (name, stock) values ($name, 9) on conflict (name) "
           "do nothing returning fruit_id, stock; return $s;", {"name": n}) for n in ("fig", "kiwi", "kiwi", "lime")],
        ("program p; step s: insert into fruits (name) values ('fig') on conflict (name) do nothing; return $s;", {}),
        (FIND, {"id": 1, "code": "a", "n": 1}), (FIND, {"id": 2, "code": "a", "n": 2}),
        (FIND, {"id": 3, "n": 3}), (FIND, {"id": 4, "n": 4}),
    ],
    "many on conflict do nothing": [
        (ROWS + "step s: insert into fruits (name, stock) select i.w, i.n from $many as i on conflict (name) do nothing "
         "returning name, fruit_id, stock; return $s;", {"many": SOME}),
        ("program p; step s: insert into fruits (name, stock) values ('plum', 1), ('fig', 2), ('pear', 3) "
         "on conflict (name) do nothing; return $s;", {}),
        ("program p; step s: insert into things (id, n) select fruit_id - fruit_id % 2, stock from fruits "
         "on conflict (id) do nothing returning id, n; return $s;", {}),
    ],
    "one on conflict do update": [
        *[("program p(name text, n int); step s: insert into fruits (name, stock) values ($name, $n) on conflict (name)"
           " do update set stock = fruits.stock + excluded.stock returning fruit_id, stock; return $s;",
           {"name": n, "n": 2}) for n in ("kiwi", "lime", "fig")],
        (UPSERT, {"id": 1, "code": "a", "n": 1}), (UPSERT, {"id": 2, "code": "a", "n": 2}),
    ],
    "many on conflict do update": [
        (ROWS + "step s: insert into fruits (name, stock) select i.w, i.n from $many as i on conflict (name) "
         "do update set stock = stock + excluded.stock returning fruit_id, stock; return $s;",
         {"many": [{"w": w, "n": n} for n, w in enumerate(["kiwi", "fig", "lime", "apple"])]}),
        (ROWS + "step s: insert into fruits (name, stock) select i.w, i.n from $many as i on conflict (name) "
         "do update set stock = stock + excluded.stock;", {"many": SOME}),
        *[(f"program p; step s: insert into things (id, n) select fruit_id, stock from fruits where fruit_id > {least} "
           "on conflict (id) do update set n = things.n + 100 + excluded.n; return select id, n from things order by id;",
           {}) for least in (4, 3)],
    ],
    "keys of others": [
        (SALE, {}),
        ("program p; step s: insert into lines (sale_id, fruit_id, qty) values (1, 9, 3);", {}),
        ("program p; step s: insert into lines (sale_id, fruit_id, qty) values (1, 1, 3);", {}),
        ("program p; step s: delete from sales where sale_id = 1;", {}),
        ("program p; step a: delete from lines where sale_id = 1; step s: delete from sales where sale_id = 1;", {}),
    ],
    "texts": [
        ("program p(x text, y text); step s: insert into fruits (name, kind) values ($x, $y), ('Apple', 'a\\b'), "
         "('apple ', '100%s %(p1)s'), ('ä', ''); return select name, kind, length(kind) as n from fruits order by name;",
         {"x": "it's \"q\" :p1 ? $p1 %", "y": "a\nb\\"}),
        ("program p; return select name from fruits where name = 'apple' or kind like '%\\%%' order by name desc;", {}),
        ("program p; return select distinct upper(left(name, 1)) as c from fruits order by c;", {}),
        ("program p; return select lower(name) as c, count(*) as n from fruits group by lower(name) order by 1;", {}),
        ("program p(l text[]); return select name from fruits where name in $l order by 1;",
         {"l": ["APPLE", "apple ", "it's \"q\" :p1 ? $p1 %"]}),
    ],
    "many types in rows": [
        ("""program p(r many {i int, f double precision, x decimal(12,4), t text, b bool, d date, s timestamp});
         return select r.i, r.f, r.x, r.t, r.b, r.d, r.s from $r as r;""",
         {"r": [{"i": 2**63 - 1, "f": 0.1, "x": "12345678.1234", "t": "a\tü", "b": True, "d": "0999-12-31",
                 "s": "2024-01-01 00:00:00.000001"},
                {"i": -(2**63), "f": 1e-300, "x": "-0.0001", "t": "", "b": False, "d": "9999-12-31",
                 "s": "1969-12-31 23:59:59"}]}),
    ],
}  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_writes(fresh: tuple[lowers.Shop, EngineShop], scenario: str) -> None:
    if fresh[1].engine == "mysql" and scenario == "a table without key":
        with pytest.raises(AssertionError, match="CM401"):  # its update has no `returning`
            fresh[1].run(SCENARIOS[scenario][1][0])
        return
    for text, parameters in SCENARIOS[scenario]:
        wanted, found = (told(shop, text, parameters) for shop in fresh)
        assert found == wanted, text
        assert fresh[1].memory.digest() == fresh[0].memory.digest(), text


@pytest.mark.parametrize("body", lowers.LOOPS + lowers.LEFT_ALONE)
def test_loops(fresh: tuple[lowers.Shop, EngineShop], body: str) -> None:
    for shop in fresh:
        shop.run(SALE)
        shop.run("program p; step s: insert into things (id) values (100), (200);")
    text = lowers.LOOP.format(body)
    for items in ([], [(1, 2, "apple"), (4, 1, "x")], [(2, 1, "x"), (2, 3, "fig")], [(1, 99, "banana"), (3, 0, "y")]):
        given = {"items": [dict(zip("knw", item, strict=True)) for item in items]}
        wanted, found = (told(shop, text, given) for shop in fresh)
        assert found == wanted
        assert fresh[1].memory.digest() == fresh[0].memory.digest()


# ---------------------------------------------------------------- what an engine cannot say

LACKING = [
    ("sqlite", "select 1234567890.123456789 as x from things"),
    ("sqlite", "select stddev(n) over () as x from things"),
    ("postgres", "select json_get('[1]', '-1') as x from things"),
    ("postgres", "select string_agg(distinct code, ',' order by n) as x from things"),
    ("duckdb", "insert into things (id, code, n) values (1, 'a', 2) returning id, $n as x"),
    ("duckdb", "delete from things where id = 1 returning code in ($n, 'a') as x"),
    ("duckdb", "select 1 as x from things as t group by (select count(*) from things as o where o.n > t.n)"),
    ("duckdb", "select string_agg(distinct code, ',' order by n) as x from things"),
    ("mysql", "select json_get('[1]', '-1') as x from things"),
    ("mysql", "select stddev(distinct n) as x from things"),
    ("mysql", "select json_get('{}', $n) as x from things"),
    ("mysql", "select (select count(*) from things as a full join things as b on a.n < t.n) as x from things as t"),
    ("mysql", "select (select max(o.n) - d.n from things as o) as x from (select n from things) as d"),
    ("mysql", "delete from things as t where exists (select 1 as x from things where things.n > t.n)"),
]


@pytest.mark.parametrize(("engine", "text"), LACKING)
def test_what_an_engine_cannot_say_is_refused(engine: str, text: str) -> None:
    schema = lowers.read_schema("create table things (id int primary key, code text, n int);")
    program = f"program p(n text = 'b'); step s: {text}; return $s;"
    for name in (*ENGINES, "sqlite"):
        _, problems = lower(lowers.checked(program, schema), program, schema_hash(schema), name)
        codes = [d.code for d in problems if d.severity == "error"]
        others = {e for e, t in LACKING if t == text}
        assert codes == ["CM401"] * len(codes) and bool(codes) == (name in others), (name, codes)
