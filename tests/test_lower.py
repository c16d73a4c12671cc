"""What lowered programs do when they are run: every function, every form of query and of write, loops as sets."""

from __future__ import annotations

import json
import random
import sqlite3
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import pytest

import com.runtime.memory as memories
from com import plan
from com.compiler import ir
from com.compiler.check import check, check_condition, check_default
from com.compiler.create import create_tables
from com.compiler.define import define
from com.compiler.lower import lower
from com.compiler.nodes import exp, write
from com.compiler.parse import parse_expression, parse_program, parse_schema
from com.diagnostics import Diagnostic, Error, has_errors
from com.node import walk
from com.runtime.memory import Memory
from com.runtime.outcome import Outcome, RunError
from com.schema import Schema, schema_hash
from com.source import Source

SHOP = """
create table fruits (
  fruit_id int primary key generated always as identity,
  name text not null unique,
  kind text,
  price decimal(10,2),
  stock int not null default 0 check (stock >= 0)
);
create table sales (
  sale_id int primary key generated always as identity,
  day date not null,
  buyer text
);
create table lines (
  sale_id int not null references sales (sale_id),
  fruit_id int not null references fruits (fruit_id),
  qty int not null,
  total decimal(12,2),
  primary key (sale_id, fruit_id)
);
create table things (
  id int primary key,
  f double precision,
  b bool,
  t timestamp,
  d date,
  j json,
  code text unique,
  n int
);
create table notes (word text, n int);
"""

FRUITS = [
    ("apple", "pome", Decimal("1.10"), 10),
    ("banana", "berry", Decimal("0.25"), 40),
    ("cherry", "stone", None, 0),
    ("fig", None, Decimal("2.00"), 3),
]


@cache
def read_schema(text: str) -> Schema:
    tree, found = parse_schema(Source(text))
    made, more = define(tree)
    assert made is not None, [d.text for d in (*found, *more)]
    return made


@cache
def statements(schema: Schema, engine: str = "sqlite") -> tuple[str, ...]:
    checks, defaults = {}, {}
    for table in schema.tables:
        for number, check_ in enumerate(table.checks):
            tree, _ = parse_expression(Source(check_.text))
            assert tree is not None
            condition = check_condition(tree, schema, table.name)[0]
            assert condition is not None
            checks[table.name, number] = condition
        for column in table.columns:
            if column.default is not None:
                tree, _ = parse_expression(Source(column.default))
                assert tree is not None
                value = check_default(tree, column.type)[0]
                assert value is not None
                defaults[table.name, column.name] = value
    return create_tables(schema, engine, checks, defaults)


def checked(text: str, schema: Schema) -> ir.Program:
    tree, found = parse_program(Source(text))
    assert not has_errors(found), [(d.code, d.text) for d in found]
    assert tree is not None
    made, more = check(tree, schema, {})
    assert made is not None, [(d.code, d.text, text[d.span.start : d.span.end]) for d in more]
    return made


def lowered(text: str, schema: Schema) -> tuple[plan.Plan, list[Diagnostic]]:
    return lower(checked(text, schema), text, schema_hash(schema), "sqlite")


class Shop:
    """A memory with some fruits, and programs run on it."""

    def __init__(self, text: str = SHOP) -> None:
        schema = read_schema(text)
        self.memory: Memory = memories.create("sqlite://", schema, statements(schema))
        self.schema = self.memory.schema

    def run(self, text: str, **parameters: Any) -> Outcome:
        made, problems = lowered(text, self.schema)
        assert not problems, [(d.code, d.text) for d in problems]
        before = self.images()
        outcome = self.memory.execute(made, parameters, clock=datetime(2024, 2, 29, 13, 5))
        self.check_images(outcome, before)
        return outcome

    def rows(self, text: str, **parameters: Any) -> list[tuple[Any, ...]]:
        if " returning " in text and "return $s" not in text:
            text += " return $s;"
        return list(self.run(text, **parameters).rows)

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(r) for r in self.memory.link.run(sql, {})]

    def images(self) -> dict[tuple[str, Any], tuple[Any, ...]]:
        """Every row of every table with a key, as it is stored."""
        found = {}
        for table in self.schema.tables:
            names = [c.name for c in table.columns]
            for row in self.ask(f"select {', '.join(names)} from {table.name}"):
                if table.primary_key:
                    key = tuple(row[names.index(k)] for k in table.primary_key)
                    found[table.name, key] = row
        return found

    def check_images(self, outcome: Outcome, before: dict[tuple[str, Any], tuple[Any, ...]]) -> None:
        """The run's row images are just what changed in the tables."""
        after = self.images()
        noted: dict[tuple[str, Any], list[Any]] = {}
        sql = f"select tbl, key, before, after from com_change where run = {outcome.run_id} order by step, n"
        for name, key, old, new in self.ask(sql):
            assert old is not None or new is not None
            place = name, tuple(json.loads(key))
            noted.setdefault(place, [old, new])[1] = new
        changed = {p for p in {*before, *after} if before.get(p) != after.get(p)}
        assert changed <= set(noted)
        for place, (old, new) in noted.items():
            assert self.as_image(place[0], before.get(place)) == (old and json.loads(old))
            assert self.as_image(place[0], after.get(place)) == (new and json.loads(new))
        counts = self.ask(
            f"select step, count(*), min(n), max(n) from com_change where run = {outcome.run_id} group by 1"
        )
        assert all(least == 1 and most == count for _, count, least, most in counts)

    def as_image(self, name: str, row: tuple[Any, ...] | None) -> dict[str, Any] | None:
        table = self.schema.table(name)
        if row is None or table is None:
            return None
        image = dict(zip([c.name for c in table.columns], row, strict=True))
        for c in table.columns:
            if c.type.kind == "float" and image[c.name] is not None:
                image[c.name] = repr(float(image[c.name]))
        return image


@pytest.fixture
def shop() -> Shop:
    made = Shop()
    for name, kind, price, stock in FRUITS:
        made.run(
            "program p(name text, kind text = null, price decimal(10,2) = null, stock int);\n"
            "step a: insert into fruits (name, kind, price, stock) values ($name, $kind, $price, $stock);",
            name=name,
            kind=kind,
            price=price,
            stock=stock,
        )
    return made


# ---------------------------------------------------------------- expressions

EXPRESSIONS = [
    ("1 + 2 * 3", 7),
    ("(1 + 2) * 3", 9),
    ("10 - (3 - 2)", 9),
    ("-(-5)", 5),
    ("$i - -1", 8),
    ("-$i", -7),
    ("7 / 2", 3.5),
    ("7.0 / 2", Decimal("3.50000")),
    ("1 / 0", None),
    ("1.0 / 3", Decimal("0.33333")),
    ("2.0 / 3", Decimal("0.66667")),
    ("div(7, 2)", 3),
    ("div(-7, 2)", -3),
    ("div(7, 0)", None),
    ("-7 % 3", -1),
    ("7 % 0", None),
    ("0.3 % 0.1", Decimal("0.0")),
    ("5.75 % 0.5", Decimal("0.25")),
    ("0.1 + 0.2", Decimal("0.3")),
    ("0.1 + 0.2 = 0.3", True),
    ("1.10 * 3", Decimal("3.30")),
    ("1.1 * 1.1", Decimal("1.21")),
    ("abs(-3)", 3),
    ("round(2.5)", Decimal("3")),
    ("round(-2.5)", Decimal("-3")),
    ("round(1.005, 2)", Decimal("1.01")),
    ("round(1234, -2)", 1200),
    ("floor(-1.5)", Decimal("-2")),
    ("ceil(1.2)", Decimal("2")),
    ("floor(3)", 3),
    ("sign(-2.5)", -1),
    ("sqrt(9)", 3.0),
    ("sqrt(-1)", None),
    ("power(2, 10)", 1024.0),
    ("exp(0)", 1.0),
    ("ln(1)", 0.0),
    ("ln(0)", None),
    ("least(3, 1, 2)", 1),
    ("least(3, $none, 2)", 2),
    ("greatest($none, $none)", None),
    ("greatest(1, $none)", 1),
    ("greatest($i)", 7),
    ("lower('ÄB')", "äb"),
    ("upper('straße')", "STRASSE"),
    ("length('añ🍎')", 3),
    ("substr('abcdef', 2, 3)", "bcd"),
    ("substr('abcdef', 0, 3)", "ab"),
    ("substr('abcdef', $i - 5)", "bcdef"),
    ("left('abc', 2)", "ab"),
    ("left('abc', -1)", "ab"),
    ("right('abc', 2)", "bc"),
    ("right('abc', 5)", "abc"),
    ("right('abc', 0)", ""),
    ("right('abc', -1)", "bc"),
    ("trim('  a ')", "a"),
    ("trim('xxaxx', 'x')", "a"),
    ("ltrim('xxaxx', 'x')", "axx"),
    ("rtrim('xxaxx', 'x')", "xxa"),
    ("replace('banana', 'an', 'x')", "bxxa"),
    ("position('na', 'banana')", 3),
    ("position('z', 'banana')", 0),
    ("starts_with('banana', 'ba')", True),
    ("starts_with('banana', $text)", False),
    ("'a' || 'b' || 'c'", "abc"),
    ("'a' || ('b' || $text)", "abit's"),
    ("'a' || $nothing", None),
    ("'it''s' = $text", True),
    ("'Abc' like 'a%'", False),
    ("'Abc' ilike 'a%'", True),
    ("'ÄBC' ilike 'äb_'", True),
    ("'a%c' like 'a\\%c'", True),
    ("'abc' like 'a\\%c'", False),
    ("'abc' not like 'a%'", False),
    ("coalesce($none, 2)", 2),
    ("nullif(1, 1)", None),
    ("year($day)", 2024),
    ("quarter($day)", 1),
    ("month($day)", 2),
    ("day($day)", 29),
    ("hour($time)", 13),
    ("minute($time)", 5),
    ("second($time)", 59),
    ("hour($day)", 0),
    ("weekday($day)", 4),
    ("weekday($time)", 4),
    ("extract(year from $time)", 2024),
    ("date_trunc('year', $day)", date(2024, 1, 1)),
    ("date_trunc('quarter', $day)", date(2024, 1, 1)),
    ("date_trunc('month', $day)", date(2024, 2, 1)),
    ("date_trunc('week', $day)", date(2024, 2, 26)),
    ("date_trunc('week', date '2024-03-03')", date(2024, 2, 26)),
    ("date_trunc('day', $day)", date(2024, 2, 29)),
    ("date_trunc('hour', $day)", date(2024, 2, 29)),
    ("date_trunc('month', $time)", datetime(2024, 2, 1)),
    ("date_trunc('week', $time)", datetime(2024, 2, 26)),
    ("date_trunc('quarter', $time)", datetime(2024, 1, 1)),
    ("date_trunc('hour', $time)", datetime(2024, 2, 29, 13)),
    ("date_trunc('minute', $time)", datetime(2024, 2, 29, 13, 5)),
    ("date_trunc('second', $time)", datetime(2024, 2, 29, 13, 5, 59)),
    ("date_diff('day', $day, $day + 3)", 3),
    ("date_diff('month', $day, $day + 3)", 1),
    ("date_diff('hour', $time, $time + interval '90 minute')", 1),
    ("$day + interval '1 year'", date(2025, 2, 28)),
    ("$day + 1", date(2024, 3, 1)),
    ("$day - 60", date(2023, 12, 31)),
    ("$day + interval '1 hour'", datetime(2024, 2, 29, 1)),
    ("format_date($day, '%Y/%m')", "2024/02"),
    ("format_date($time, '%H:%M:%S 100%%')", "13:05:59 100%"),
    ("json_get(cast('{\"a\": {\"b\": 5}}' as json), 'a.b')", "5"),
    ("cast('12' as int)", 12),
    ("cast(2.5 as int)", 3),
    ("cast(-2.5 as int)", -3),
    ("cast($i as text)", "7"),
    ("cast(1.50 as text)", "1.50"),
    ("cast($i = 7 as text)", "true"),
    ("cast($text || '' = '' as int)", 0),
    ("cast($i as bool)", True),
    ("cast($i as double precision)", 7.0),
    ("cast(1.255 as decimal(5,2))", Decimal("1.26")),
    ("cast('2024-01-02' as date)", date(2024, 1, 2)),
    ("cast($day as timestamp)", datetime(2024, 2, 29)),
    ("cast($time as date)", date(2024, 2, 29)),
    ("cast($day as text)", "2024-02-29"),
    ("case when $i > 5 then 'big' else 'small' end", "big"),
    ("case $i when 1 then 'one' end", None),
    ("$i between 1 and 7", True),
    ("$i not between 1 and 7", False),
    ("$i in (1, 7)", True),
    ("$i not in (1, 2)", True),
    ("$none in (1, 2)", None),
    ("$i in $list", True),
    ("$i in $empty", False),
    ("$none in $empty", False),
    ("$none is null", True),
    ("$none is not null", False),
    ("not ($none is null)", False),
    ("$i is distinct from $none", True),
    ("$none is not distinct from $none", True),
    ("$i = 7 and ($none is null or $i = 8)", True),
    ("not ($i = 7 or $i = 8)", False),
    ("true and not false", True),
    ("$i in (select 7)", True),
    ("exists (select 1 where $i = 8)", False),
    ("(select max(i.v) from $many as i)", 5),
    ("(select sum(i.p) from $many as i)", Decimal("0.30")),
    ("(select string_agg(i.w, '-' order by i.v desc) from $many as i)", "c-b-a"),
    ("(select string_agg(i.w, '-' order by i.w) from $many as i where i.v > 9)", None),
    ("(select count(*) from $many as i)", 3),
    ("(select avg(i.v) from $many as i)", 3.0),
    ("(select avg(i.p) from $many as i)", Decimal("0.100000")),
]

HEADER = """program p(i int = 7, none int = null, nothing text = null, text text = 'it''s', day date = '2024-02-29',
  time timestamp = '2024-02-29 13:05:59.5', list int[], empty int[], many many {v int, w text, p decimal(6,2)});
"""
GIVEN = {
    "list": [1, 7],
    "empty": [],
    "many": [{"v": v, "w": w, "p": p} for v, w, p in ((1, "a", "0.10"), (5, "c", "0.10"), (3, "b", "0.10"))],
}


@pytest.fixture(scope="module")
def empty() -> Shop:
    return Shop()


@pytest.mark.parametrize(("text", "wanted"), EXPRESSIONS, ids=[text for text, _ in EXPRESSIONS])
def test_an_expression(empty: Shop, text: str, wanted: object) -> None:
    [(found,)] = empty.rows(f"{HEADER}return {text} as x;", **GIVEN)
    assert (found, type(found)) == (wanted, type(wanted))


OVERFLOWS = [
    "$big + 1",
    "-$big - 2",
    "$big * 2",
    "-(-$big - 1)",
    "div(-$big - 1, $minus)",
    "($big + 1) % 10",
    "$big + $big + $minus + $minus",
    "(select sum(fruits.stock + $big) from fruits)",
]


@pytest.mark.parametrize("text", OVERFLOWS)
def test_an_int_that_leaves_64_bits_is_an_error(shop: Shop, text: str) -> None:
    with pytest.raises(RunError):
        shop.run(f"program p(big int = 9223372036854775807, minus int = -1);\nreturn {text} as x;")


def test_ints_up_to_the_edge(shop: Shop) -> None:
    text = "program p(big int = 9223372036854775806);\nreturn $big + 1 as a, -$big - 2 as b, -9223372036854775808 as c;"
    assert shop.rows(text) == [(2**63 - 1, -(2**63), -(2**63))]


# ---------------------------------------------------------------- queries

QUERIES = [
    ("select name from fruits where stock > 0", [("apple",), ("banana",), ("fig",)]),
    ("select name from fruits order by price desc", [("fig",), ("apple",), ("banana",), ("cherry",)]),
    ("select name from fruits order by price", [("banana",), ("apple",), ("fig",), ("cherry",)]),
    ("select name from fruits order by price nulls first", [("cherry",), ("banana",), ("apple",), ("fig",)]),
    ("select name from fruits order by price desc nulls first", [("cherry",), ("fig",), ("apple",), ("banana",)]),
    ("select name from fruits order by name limit 2 offset 1", [("banana",), ("cherry",)]),
    ("select name from fruits order by name offset 3", [("fig",)]),
    ("select distinct stock > 5 as many from fruits order by many", [(False,), (True,)]),
    ("select a.name, b.name as other from fruits as a left join fruits as b on b.stock = a.stock * 4 order by 1",
     [("apple", "banana"), ("banana", None), ("cherry", "cherry"), ("fig", None)]),
    ("select a.name, b.name as other from fruits as a right join fruits as b on b.stock = a.stock * 4 order by 2",
     [(None, "apple"), ("apple", "banana"), ("cherry", "cherry"), (None, "fig")]),
    ("select count(*) as n from fruits as a full join fruits as b on a.stock = b.stock * 4", [(6,)]),
    ("select count(*) as n from fruits as a cross join fruits as b", [(16,)]),
    ("select i.w, f.stock from $many as i join fruits as f on f.name = i.w", [("fig", 3), ("apple", 10)]),
    ("select i.w, f.stock from $many as i left join fruits as f on f.name = i.w",
     [("fig", 3), ("kiwi", None), ("apple", 10)]),
    ("select f.name, i.v from fruits as f left join $many as i on f.name = i.w order by 1",
     [("apple", 3), ("banana", None), ("cherry", None), ("fig", 1)]),
    ("select i.w, j.v from $many as i join $many as j on j.v = i.v + 1", [("fig", 2), ("kiwi", 3)]),
    ("select f.name from fruits as f where exists (select 1 from $many as i where i.w = f.name)",
     [("apple",), ("fig",)]),
    ("select f.name from fruits as f where f.name in (select i.w from $many as i) order by 1", [("apple",), ("fig",)]),
    ("select name from fruits where name in $many.w", [("apple",), ("fig",)]),
    ("select kind, count(*) as n, sum(stock) as s from fruits group by kind having count(*) > 0 order by kind",
     [("berry", 1, 40), ("pome", 1, 10), ("stone", 1, 0), (None, 1, 3)]),
    ("select sum(price) as s, avg(price) as a, min(price) as l, max(name) as m, count(price) as n from fruits",
     [(Decimal("3.35"), Decimal("1.116667"), Decimal("0.25"), "fig", 3)]),
    ("select sum(stock) as s, avg(stock) as a from fruits where false", [(None, None)]),
    ("select sum(stock * price) as worth from fruits", [(Decimal("27.00"),)]),
    ("select count(distinct kind) as n, count(*) filter (where stock > 5) as m from fruits", [(3, 2)]),
    ("select round(stddev(stock), 3) as s from fruits", [(18.319,)]),
    ("select string_agg(kind, ',' order by stock desc) as s from fruits", [("berry,pome,stone",)]),
    ("select string_agg(distinct kind, ',' order by kind) as s from fruits", [("berry,pome,stone",)]),
    ("select count(*) as n from fruits having count(*) > 10", []),
    ("select 'x' as c, count(*) as n from fruits where false group by 1", []),
    ("select name, row_number() over (order by stock desc) as r from fruits order by name",
     [("apple", 2), ("banana", 1), ("cherry", 4), ("fig", 3)]),
    ("select name, lag(name) over (order by name) as l, lead(stock, 1, -1) over (order by name) as d "
     "from fruits order by 1",
     [("apple", None, 40), ("banana", "apple", 0), ("cherry", "banana", 3), ("fig", "cherry", -1)]),
    ("select name, sum(price) over (order by name rows between 1 preceding and current row) as s "
     "from fruits order by 1",
     [("apple", Decimal("1.10")), ("banana", Decimal("1.35")), ("cherry", Decimal("0.25")), ("fig", Decimal("2.00"))]),
    ("select name, rank() over (order by price) as r from fruits order by 1",
     [("apple", 2), ("banana", 1), ("cherry", 4), ("fig", 3)]),
    ("select name, first_value(name) over (partition by stock > 5 order by name) as f from fruits order by 1",
     [("apple", "apple"), ("banana", "apple"), ("cherry", "cherry"), ("fig", "cherry")]),
    ("select 1 as x union select 2 union select 1 order by x desc", [(2,), (1,)]),
    ("select 1 as x union all select 1", [(1,), (1,)]),
    ("select name from fruits except select i.w from $many as i", [("banana",), ("cherry",)]),
    ("select name from fruits intersect select i.w from $many as i", [("apple",), ("fig",)]),
    ("select 1 as x except (select 2 except select 1)", [(1,)]),
    ("(select name from fruits order by stock limit 1) union all (select name from fruits order by stock desc limit 1)",
     [("banana",), ("cherry",)]),
    ("select i.k as x from $twice as i except all select 1", [(1,), (2,)]),
    ("select i.k as x from $twice as i intersect all select j.k from $twice as j where j.k = 1", [(1,), (1,)]),
    ("select price from fruits union select price from fruits order by price nulls first limit 2", [(None,), (Decimal("0.25"),)]),
    ("select d.n from (select count(*) as n from fruits) as d", [(4,)]),
    ("select f.name from fruits as f where f.stock = (select max(stock) from fruits as g where g.kind = f.kind)",
     [("apple",), ("banana",), ("cherry",)]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), QUERIES, ids=[text for text, _ in QUERIES])
def test_a_query(shop: Shop, text: str, wanted: list[Any]) -> None:
    many = [{"v": 1, "w": "fig"}, {"v": 2, "w": "kiwi"}, {"v": 3, "w": "apple"}]
    header = "program p(many many {v int, w text}, twice many {k int});\n"
    assert shop.rows(f"{header}step s: {text};", many=many, twice=[{"k": k} for k in (1, 1, 2)]) == wanted


def test_a_relation_of_many_rows_is_read_once(shop: Shop) -> None:
    rows = [{"v": v, "w": f"w{v % 5000}"} for v in range(40_000)]
    header = "program p(many many {v int, w text});\n"
    assert shop.rows(
        f"{header}return select count(*) as n from $many as a left join $many as b on a.v = b.v "
        "where exists (select 1 from $many as c where c.w = a.w and c.v < 5000) and b.v < 30000;",
        many=rows,
    ) == [(30_000,)]
    assert shop.rows(
        f"{header}return select count(*) as n from fruits as f left join $many as b on f.fruit_id = b.v where b.v > 0;",
        many=rows,
    ) == [(4,)]


# ---------------------------------------------------------------- writes


def test_update_with_returning(shop: Shop) -> None:
    text = "step s: update fruits as f set stock = stock + 1, price = f.price * 2 where f.stock < 20 returning {};"
    assert shop.rows("program p;\n" + text.format("f.name, stock, price")) == [
        ("apple", 11, Decimal("2.20")),
        ("cherry", 1, None),
        ("fig", 4, Decimal("4.00")),
    ]


def test_update_without_returning_gives_the_rows_written(shop: Shop) -> None:
    text = "program p;\nstep s: update fruits set stock = 0 where name = 'fig';\nreturn $s;"
    assert shop.rows(text) == [(4, "fig", None, Decimal("2.00"), 0)]


def test_update_that_reads_its_own_table(shop: Shop) -> None:
    shop.run("""program p; step s: update fruits as f set stock =
        (select coalesce(sum(g.stock), 0) from fruits as g where g.fruit_id < f.fruit_id) where true;""")
    assert shop.ask("select stock from fruits order by fruit_id") == [(0,), (10,), (50,), (50,)]


def test_update_from_rows(shop: Shop) -> None:
    text = """program p(many many {w text, n int});
    step s: update fruits as f set stock = f.stock + i.n from $many as i where i.w = f.name returning f.name, stock;"""
    assert shop.rows(text, many=[{"w": "fig", "n": 2}, {"w": "kiwi", "n": 1}, {"w": "apple", "n": 5}]) == [
        ("apple", 15),
        ("fig", 5),
    ]
    with pytest.raises(RunError) as failed:
        shop.run(text, many=[{"w": "fig", "n": 2}, {"w": "fig", "n": 1}])
    assert failed.value.diagnostic.code == "CM504"


def test_update_from_a_join(shop: Shop) -> None:
    shop.run("program p; step s: insert into sales (day) values ('2024-01-01');")
    shop.run("program p; step s: insert into lines (sale_id, fruit_id, qty) values (1, 1, 3), (1, 2, 4);")
    shop.run("""program p; step s: update fruits as f set stock = f.stock - l.qty
        from lines as l left join sales as s on s.sale_id = l.sale_id
        where l.fruit_id = f.fruit_id and s.sale_id = 1;""")
    assert shop.ask("select stock from fruits order by fruit_id") == [(7,), (36,), (0,), (3,)]


def test_delete(shop: Shop) -> None:
    text = "program p; step s: delete from fruits as f where f.stock < 5 returning f.name, f.stock;"
    assert shop.rows(text) == [("cherry", 0), ("fig", 3)]
    assert shop.ask("select count(*) from fruits") == [(2,)]
    shop.run("program p; step s: delete from fruits where stock = (select max(stock) from fruits);")
    assert shop.ask("select name from fruits") == [("apple",)]


def test_insert_of_tuples(shop: Shop) -> None:
    text = (
        "program p; step s: insert into fruits (name, stock) values ('kiwi', 1), ('date', 2) returning fruit_id, name;"
    )
    assert shop.rows(text) == [(5, "kiwi"), (6, "date")]


def test_insert_of_tuples_with_a_given_key(shop: Shop) -> None:
    text = """program p; step s: insert into things (id, f, b, t, d, j, n) values
      (2, 0.1, true, '2024-01-01 10:00:00.25', '2024-01-01', '{"a": [1]}', 5),
      (1, null, null, null, null, null, null);"""
    shop.run(text)
    assert shop.ask("select id, f, b, t, d from things order by id") == [
        (1, None, None, None, None),
        (2, 0.1, 1, "2024-01-01 10:00:00.250000", "2024-01-01"),
    ]
    shop.run("program p; step s: insert into things (id, n) values ((select max(id) from things) + 1, 3);")
    shop.run("program p; step s: insert into things (id, n) values (9, (select count(*) from things));")
    assert shop.ask("select id, n from things where id > 2 order by 1") == [(3, 3), (9, 3)]


def test_insert_of_a_query_keeps_its_order(shop: Shop) -> None:
    text = """program p;
    step s: insert into fruits (name, stock) select 'dried ' || name, stock from fruits order by stock desc;
    return select fruit_id, name from fruits where fruit_id > 4 order by 1;"""
    assert shop.rows(text) == [(5, "dried banana"), (6, "dried apple"), (7, "dried fig"), (8, "dried cherry")]
    text = """program p;
    step s: insert into fruits (name) select 'b' as x union select 'a' order by x desc limit 2;
    return $s;"""
    assert [row[:2] for row in shop.rows(text)] == [(9, "b"), (10, "a")]


def test_insert_of_a_query_with_given_keys(shop: Shop) -> None:
    shop.run("program p; step s: insert into things (id, n) select fruit_id * 10, stock from fruits where stock > 0;")
    text = "program p; step s: insert into things (id, code) select id + 1, 'c' || id from things returning id, code;"
    assert shop.rows(text) == [(11, "c10"), (21, "c20"), (41, "c40")]


def test_a_table_without_key(shop: Shop) -> None:
    text = "program p; step s: insert into notes (word, n) values ('b', 1), ('a', null), ('a', 2) returning word, n;"
    assert shop.rows(text) == [("a", 2), ("a", None), ("b", 1)]
    assert shop.rows("program p; step s: update notes set n = 5 where word = 'a' returning n;") == [(5,), (5,)]
    assert shop.rows("program p; step s: delete from notes where n = 5 returning word;") == [("a",), ("a",)]


def test_find_or_add(shop: Shop) -> None:
    text = """program p(name text);
    step s: insert into fruits (name, stock) values ($name, 9)
      on conflict (name) do nothing returning fruit_id, stock;"""
    assert shop.rows(text, name="fig") == [(4, 3)]
    assert shop.rows(text, name="kiwi") == [(5, 9)]
    assert shop.rows(text, name="kiwi") == [(5, 9)]
    assert shop.rows(text, name="lime") == [(6, 9)]
    text = "program p; step s: insert into fruits (name) values ('fig') on conflict (name) do nothing; return $s;"
    assert shop.rows(text) == []


def test_find_or_add_with_a_given_key(shop: Shop) -> None:
    text = """program p(id int, code text = null, n int);
    step s: insert into things (id, code, n) values ($id, $code, $n) on conflict (code) do nothing returning id, n;"""
    assert shop.rows(text, id=1, code="a", n=1) == [(1, 1)]
    assert shop.rows(text, id=2, code="a", n=2) == [(1, 1)]
    assert shop.rows(text, id=3, n=3) == [(3, 3)]
    assert shop.rows(text, id=4, n=4) == [(4, 4)]


def test_many_on_conflict_do_nothing(shop: Shop) -> None:
    many = [{"w": w, "n": n} for n, w in enumerate(["fig", "kiwi", "lime", "kiwi", "apple"])]
    text = """program p(many many {w text, n int});
    step s: insert into fruits (name, stock) select i.w, i.n from $many as i on conflict (name) do nothing
      returning name, fruit_id, stock;"""
    assert shop.rows(text, many=many) == [
        ("fig", 4, 3),
        ("kiwi", 5, 1),
        ("lime", 6, 2),
        ("kiwi", 5, 1),
        ("apple", 1, 10),
    ]
    assert shop.ask("select count(*) from fruits") == [(6,)]
    text = """program p;
    step s: insert into fruits (name, stock) values ('plum', 1), ('fig', 2), ('pear', 3) on conflict (name) do nothing;
    return $s;"""
    assert [row[:2] for row in shop.rows(text)] == [(7, "plum"), (8, "pear")]
    text = """program p;
    step s: insert into things (id, n) select fruit_id - fruit_id % 2, stock from fruits on conflict (id) do nothing
      returning id, n;"""
    assert shop.rows(text)[:4] == [(0, 10), (2, 40), (2, 40), (4, 3)]


def test_one_on_conflict_do_update(shop: Shop) -> None:
    text = """program p(name text, n int);
    step s: insert into fruits (name, stock) values ($name, $n)
      on conflict (name) do update set stock = fruits.stock + excluded.stock returning fruit_id, stock;"""
    assert shop.rows(text, name="kiwi", n=2) == [(5, 2)]
    assert shop.rows(text, name="lime", n=2) == [(6, 2)]
    assert shop.rows(text, name="fig", n=2) == [(4, 5)]
    text = """program p(id int, code text, n int);
    step s: insert into things (id, code, n) values ($id, $code, $n)
      on conflict (code) do update set n = things.n * 10 + excluded.n;
    return select id, n from things where code = $code;"""
    assert shop.rows(text, id=1, code="a", n=1) == [(1, 1)]
    assert shop.rows(text, id=2, code="a", n=2) == [(1, 12)]


def test_many_on_conflict_do_update(shop: Shop) -> None:
    text = """program p(many many {w text, n int});
    step s: insert into fruits (name, stock) select i.w, i.n from $many as i
      on conflict (name) do update set stock = stock + excluded.stock returning fruit_id, stock;"""
    many = [{"w": w, "n": n} for n, w in enumerate(["kiwi", "fig", "lime", "apple"])]
    assert shop.rows(text, many=many) == [(5, 0), (4, 4), (6, 2), (1, 13)]
    with pytest.raises(RunError) as failed:
        shop.run(text, many=[*many, *many])
    assert failed.value.diagnostic.code == "CM504"
    text = """program p;
    step s: insert into things (id, n) select fruit_id, stock from fruits where fruit_id > $least
      on conflict (id) do update set n = things.n + 100 + excluded.n; return select id, n from things order by id;"""
    assert shop.rows(text.replace("$least", "4")) == [(5, 0), (6, 2)]
    assert shop.rows(text.replace("$least", "3")) == [(4, 4), (5, 100), (6, 104)]


# ---------------------------------------------------------------- loops

LOOPS = [
    "step a: update fruits set stock = stock + $i.n where fruit_id = $i.k;",
    "step a -> one: update fruits set stock = stock + $i.n where fruit_id = $i.k;",
    "step a: update fruits set stock = stock + $i.n, kind = $i.w where name = $i.w and stock > $i.n;",
    "step a: delete from fruits where fruit_id = $i.k and stock < $i.n;",
    "step a: insert into fruits (name, stock) values ($i.w || $i.k, $i.n);",
    "step a: insert into things (id, n) values ($i.k, $i.n);",
    """step a: insert into lines (sale_id, fruit_id, qty) values (1, $i.k, $i.n);
    step b: update fruits set stock = stock - $i.n where fruit_id = $i.k;""",
    """step a: delete from lines where sale_id = 1 and fruit_id = $i.k;
    step b: update fruits set stock = stock + (select max(id) from things) * $i.n where fruit_id = $i.k;""",
    "step a: insert into fruits (name, stock) values ($i.w, 1) on conflict (name) do nothing;",
    "step a -> one: insert into fruits (name, stock) values ($i.w, $i.n) on conflict (name) do nothing;",
    """step a: insert into fruits (name, stock) values ($i.w, $i.n) on conflict (name)
    do update set stock = fruits.stock + excluded.stock * 10 + $i.k, kind = $i.w || fruits.kind;""",
    "step a -> one: insert into things (id, n) values ($i.k, $i.n) on conflict (id) do update set n = things.n + $i.n;",
    """step a: insert into things (id, n) values ($i.k, (select max(stock) from fruits)) on conflict (id)
    do update set n = (select min(stock) from fruits where fruit_id < $i.n) + excluded.n;""",
]
LEFT_ALONE = [
    "step a: update fruits set stock = stock + $i.n where stock = $i.k;",
    "step a: update fruits set name = $i.w where fruit_id = $i.k;",
    "step a: update fruits set stock = (select max(stock) from fruits) where fruit_id = $i.k;",
    "step a: insert into fruits (name, stock) values ('fig', $i.n) on conflict (name) do nothing;",
    "step a: insert into fruits (name, stock) values ($i.w || 'x', $i.n) on conflict (name) do nothing;",
    "step a: insert into fruits (name) values ($i.w) returning fruit_id; "
    "step b: update sales set buyer = $i.w where sale_id = $a.fruit_id;",
    "step a: update fruits set stock = 1 where fruit_id = $i.k; step b: delete from fruits where fruit_id = $i.k;",
    "step a: insert into sales (day, buyer) values ('2024-01-01', $i.w); "
    "step b: insert into lines (sale_id, fruit_id, qty) values ($i.k, $i.k, 1);",
    "step a: select name from fruits where fruit_id = $i.k; assert exists $a else 'none';",
]
LOOP = """program p(items many {{k int, n int, w text}});
step rows: select i.k, i.n, i.w from $items as i;
for each i in $rows {{ {} }}"""


def prepared(rng: random.Random) -> Shop:
    shop = Shop()
    for name, stock in (("apple", 50), ("fig", 9), ("kiwi", 3), ("lime", 70)):
        sql = "program p(name text, stock int); step a: insert into fruits (name, stock) values ($name, $stock);"
        shop.run(sql, name=name, stock=stock + rng.randrange(3))
    shop.run("program p; step s: insert into sales (day) values ('2024-01-01');")
    shop.run("program p; step s: insert into things (id) values (100), (200);")
    return shop


@pytest.mark.parametrize("body", LOOPS)
def test_a_loop_as_a_set_is_the_loop(body: str) -> None:
    text = LOOP.format(body)
    for seed in range(6):
        ends = []
        for batch in (True, False):
            rng = random.Random(seed)
            shop = prepared(rng)
            made, problems = lowered(text, shop.schema)
            loop = next(i for i in made.body if isinstance(i, plan.Loop))
            assert loop.batch is not None and not problems
            if not batch:
                loop = loop.with_(batch=None)
            made = made.with_(body=(*made.body[:-1], loop))
            items = [
                {
                    "k": rng.choice([1, 2, 3, 4, 4, 5]),
                    "n": rng.randrange(9),
                    "w": rng.choice(["apple", "fig", "kiwi", "x"]),
                }
                for _ in range(rng.randrange(5))
            ]
            before = shop.images()
            try:
                outcome = shop.memory.execute(made, {"items": items})
                shop.check_images(outcome, before)
                ends.append(shop.images())
            except RunError as failed:
                assert shop.images() == before
                ends.append({("", failed.diagnostic.code): (failed.path,)})
        assert ends[0] == ends[1]


@pytest.mark.parametrize("body", LEFT_ALONE)
def test_a_loop_that_must_stay_one(shop: Shop, body: str) -> None:
    made, _ = lowered(LOOP.format(body), shop.schema)
    assert [i.batch for i in made.body if isinstance(i, plan.Loop)] == [None]


# ---------------------------------------------------------------- the rest


def test_conditions_templates_and_what_is_returned(shop: Shop) -> None:
    text = """program p(n int = 2);
    step f: select name, price from fruits where stock > $n;
    step none: select name from fruits where stock > 1000;
    if exists $f and $n > 1 { answer 'Fruits {$f.name}; {$n + 1} {$n}; {{{$f.price}}}; {$none.name}.'; }
    else { answer 'no'; }
    assert not exists $none else 'There is {$none.name}';
    return $f;"""
    outcome = shop.run(text)
    assert outcome.answer == "Fruits apple, banana, fig; 3 2; {1.10, 0.25, 2.00}; none."
    assert len(outcome.rows) == 3
    made, _ = lowered(text, shop.schema)
    assert any(isinstance(node, plan.Known) and node.negated for node in walk(made))


def test_odd_texts_are_bound(shop: Shop) -> None:
    assert shop.rows("program p; return 'a\nb' as x, 'it''s \"q\" :p1 ?' as y;") == [("a\nb", 'it\'s "q" :p1 ?')]
    made, _ = lowered("program p; return 'a\nb' as x;", shop.schema)
    assert "\n" not in next(n for n in walk(made) if isinstance(n, plan.Statement)).sql


def test_odd_names_are_quoted() -> None:
    shop = Shop('create table "od""d t" ("sel ect" int primary key, "a""b" text); create table "order" ("group" int);')
    shop.memory.link.run('select "sel ect", "a""b" from "od""d t"', {})
    made, _ = lowered('program p; step s: select "a""b" from "od""d t" where "sel ect" = 1;', shop.schema)
    assert shop.memory.execute(made, {}).rows == ()


def test_equal_programs_give_equal_plans(shop: Shop) -> None:
    text = LOOP.format(LOOPS[6])
    assert plan.Plan.__eq__(lowered(text, shop.schema)[0], lowered(text, shop.schema)[0])


def test_only_listed_nodes_are_written() -> None:
    with pytest.raises(ValueError):
        write(exp.Command(this="drop", expression="table x"), "sqlite")
    with pytest.raises(ValueError):
        write(exp.select(exp.Sum(this=exp.Star())), "sqlite")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("step s: select string_agg(name, ',') over (order by name) as x from fruits;", "CM401"),
        ("step s: insert into other (n) select stock from fruits;", "CM402"),
        (
            "step s: insert into things (id, code) select stock, kind from fruits "
            "on conflict (code) do nothing returning id; return $s;",
            "CM403",
        ),
    ],
)
def test_what_the_engine_cannot_express(text: str, code: str) -> None:
    schema = read_schema(SHOP + "create table other (code text primary key default 'a', n int);")
    _, problems = lowered(f"program p; {text}", schema)
    assert [d.code for d in problems] == [code]
    assert all(d.text and d.label and d.help for d in problems)


def test_tables_are_read_back_as_they_were_written() -> None:
    shop = Shop()
    declared = read_schema(SHOP)
    assert {t.name for t in shop.schema.tables} == {t.name for t in declared.tables}
    for table in declared.tables:
        found = shop.schema.table(table.name)
        assert found is not None
        assert [(c.name, c.type, c.generated) for c in found.columns] == [
            (c.name, c.type, c.generated) for c in table.columns
        ]
    with pytest.raises(RunError) as failed:
        shop.run("program p; step s: insert into fruits (name, stock) values ('x', -1);")
    assert failed.value.diagnostic.code.startswith("CM5")


def test_a_check_that_needs_a_function_of_com_is_refused() -> None:
    schema = read_schema("create table t (a text primary key check (lower(a) = a));")
    with pytest.raises(Error) as failed:
        statements(schema)
    assert failed.value.message.code == "CM401"


def test_one_statement_has_few_parameters(shop: Shop) -> None:
    made, _ = lowered("program p(a int); return $a + $a as x, $a as y;", shop.schema)
    [statement] = [n for n in walk(made) if isinstance(n, plan.Statement)]
    assert [name for name, _ in statement.binds] == ["p1"]
    assert sqlite3.complete_statement(statement.sql + ";")


def test_a_wide_table_keeps_its_images() -> None:
    columns = ", ".join(f"c{i} int" for i in range(150))
    shop = Shop(f"create table wide (id int primary key generated always as identity, {columns});")
    shop.run("program p; step s: insert into wide (c0, c149) values (1, 2);")
    shop.run("program p; step s: update wide set c77 = c0 + c149 where id = 1;")
    assert shop.ask("select id, c0, c77, c149 from wide") == [(1, 1, 3, 2)]
