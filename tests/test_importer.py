"""SQL of other dialects as programs: what is written, what is told, and that the rows are those of SQLite itself."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import com
from com.cli import cli
from com.compiler import check_program
from com.compiler.show import show
from com.diagnostics import Diagnostic, has_errors
from com.importer import import_query
from com.schema import Schema
from com.source import Source

TABLES = """
create table p (id integer primary key, name text, born date, seen datetime, pay decimal(10,2), code text, n int not null,
  f real, ok bool not null default 1);
create table q (id integer primary key, p_id int not null references p (id), label text unique, n int, day date);
insert into p values
  (1, 'Ann', '1990-01-31', '2024-02-29 13:14:15', 12.5, '5', 7, 1.5, 1),
  (2, 'bob', '1985-12-01', null, null, 'x', 2, -2.5, 0),
  (3, 'Cy', null, '2023-01-01 00:00:00', 3, '12', 3, null, 1),
  (4, null, '2001-07-15', '2023-06-30 23:59:59', 99.99, null, 3, 0.5, 1);
insert into q values (1, 1, '1', 5, '2024-01-01'), (2, 1, 'b', null, '2024-02-01'), (3, 2, '3', 8, null),
  (4, 3, 'd', 1, '2023-05-05');
"""
SCHEMA = """
create table p (id int primary key, name text, born date, seen timestamp, pay decimal(10,2), code text, n int not null,
  f float, ok bool not null default true);
create table q (id int primary key, p_id int not null references p (id), label text unique, n int, day date);
"""


@pytest.fixture(scope="module")
def schema() -> Schema:
    return com.read_schema(SCHEMA)


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    file = tmp_path / "m.sqlite"
    with sqlite3.connect(file) as connection:
        connection.executescript(TABLES)
    connection.close()
    with com.connect(f"sqlite:///{file}", history=False) as opened:
        opened.plain = sqlite3.connect(file)
        yield opened
        opened.plain.close()


def imported(sql: str, dialect: str, schema: Schema | None) -> tuple[str, list[Diagnostic]]:
    """The body of the program on one line, and what was told."""
    program, found = import_query(sql, dialect, schema)
    assert program is not None, [f"{d.code} {d.text}" for d in found]
    text = show(program)
    if schema is not None:
        checked, more = check_program(Source(text), schema, {})
        assert checked is not None, [d.text for d in more]
    head, _, body = text.partition("\n\n")
    params = head.removeprefix("program main").removesuffix(";").strip()
    return params + " ".join(body.split()).removeprefix("return ").removesuffix(";"), found


def told(sql: str, dialect: str, schema: Schema | None) -> list[str]:
    program, found = import_query(sql, dialect, schema)
    assert (program is None) == has_errors(found)
    for diagnostic in found:
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(sql)
        assert diagnostic.text and diagnostic.label and diagnostic.help is not None
    return [d.code for d in found]


WRITTEN = [
    ("mysql", "select date_format(born, '%Y-%m') from p", "select format_date(born, '%Y-%m') from p"),
    ("mysql", 'select if(n > 1, "a", \'b\') as x from p', "select case when n > 1 then 'a' else 'b' end as x from p"),
    ("mysql", "select `name` from p limit 5, 10", "select name from p limit 10 offset 5"),
    ("mysql", "select concat(name, code) from p", "select name || code from p"),
    ("mysql", "select group_concat(name order by id separator ';') from p", "select string_agg(name, ';' order by id) from p"),
    ("mysql", "select date_add(born, interval 3 day), born - interval 1 month from p", "select born + interval '3 day', born - interval '1 month' from p"),
    ("mysql", "select n div 2, n / 2, n % 2 from p", "select n div 2, n / 2, n % 2 from p"),
    ("mysql", "select datediff(born, '2020-01-01'), curdate(), now() from p", "select date_diff('day', '2020-01-01', born), $today, $now from p"),
    ("mysql", "select n <=> 3, ok is true from p", "select n is not distinct from 3, ok is not distinct from true from p"),
    ("mysql", "select name from p where name like 'a%' and code like '5%'", "select name from p where name ilike 'a%' and code like '5%'"),
    ("mysql", "select name from p where name > 3", "select name from p where case when name < '+' or name >= ':' then 0 else cast(name as float) end > 3"),
    ("tsql", "select top 5 len(name), isnull(name, code), [id] from p", "select length(name), coalesce(name, code), id from p limit 5"),
    ("tsql", "select getdate(), datediff(day, born, seen), dateadd(month, 1, born), year(born) from p", "select $now, date_diff('day', born, seen), born + interval '1 month', year(born) from p"),
    ("tsql", "select iif(n > 1, 2, 3), convert(varchar(10), n), charindex('a', name) from p", "select case when n > 1 then 2 else 3 end, cast(n as text), position('a', name) from p"),
    ("tsql", "select name + code, name + 'x', n / 2 from p", "select name || code, name || 'x', n div 2 from p"),
    ("oracle", "select nvl(name, code), to_char(born, 'YYYY-MM') from p fetch first 5 rows only", "select coalesce(name, code), format_date(born, '%Y-%m') from p limit 5"),
    ("oracle", "select listagg(name, ',') within group (order by id) from p", "select string_agg(name, ',' order by id) from p"),
    ("oracle", "select decode(n, 1, 2, 3) from p", "select case when n is not distinct from 1 then 2 else 3 end from p"),
    ("postgres", "select born::text, extract(year from born), date_trunc('month', born) from p", "select cast(born as text), year(born), date_trunc('month', born) from p"),
    ("postgres", "select n / 2, n / 2.0, name ilike 'b', name like 'b' from p", "select n div 2, n / 2.0, name ilike 'b', name like 'b' from p"),
    ("postgres", "select name from p order by name desc, n", "select name from p order by name desc nulls first, n"),
    ("postgres", "select id from p where born between current_date - interval '1 month' and current_date", "select id from p where born between $today - interval '1 month' and $today"),
    ("postgres", "select count(*) filter (where ok) from p", "select count(*) filter (where ok) from p"),
    ("postgres", "select sum(n) over w from p window w as (partition by ok order by id)", "select sum(n) over (partition by ok order by id) from p"),
    ("postgres", "select x from (values (1), (2)) as v(x)", "select x from (select 1 as x union all select 2 as column1) as v"),
    ("postgres", "select id from p where id = any (select p_id from q) limit all", "select id from p where id in (select p_id from q)"),
    ("sqlite", "select name from p where name = \"Ann\" and not name != 'x'", "select name from p where name = 'Ann' and not name <> 'x'"),
    ("postgres", "select id from p where n = any (array[1, 2])", "select id from p where n in (1, 2)"),
    ("sqlite", "select n * 2 as x from p where x > 3", "select n * 2 as x from p where n * 2 > 3"),
    ("sqlite", "select code from p where code > 5", "select code from p where code > '5'"),
    ("sqlite", "select p.n from p join q on p.id = q.label", "select p.n from p join q on cast(p.id as text) = q.label"),
    ("sqlite", "select n from p where ok = 1 and n", "select n from p where ok = true and n <> 0"),
    ("sqlite", "select p.n from p natural join q", "select p.n from p join q using (id, n)"),
    ("sqlite", "select max(n), name from p", "select n as max, name from p order by n desc limit 1"),
    ("sqlite", "select n from p where n > (select n from q)", "select n from p where n > (select n from q limit 1)"),
    ("sqlite", "select name from p order by name, id", "select name from p order by name nulls first, id"),
    ("sqlite", "select n as x from p order by 1, x", "select n as x from p order by 1, x"),
    ("sqlite", "select 1 union select 2 intersect select 2", "(select 1 union select 2) intersect select 2"),
    ("sqlite", "with a(x) as (select n from p) select * from a b, a where b.x = ?", "(p1 int)step a: select n as x from p; return select * from $a as b cross join $a where b.x = $p1"),
    ("sqlite", "insert into q values (1, 2, 'x', 3, null)", "step inserted: insert into q (id, p_id, label, n, day) values (1, 2, 'x', 3, null)"),
    ("sqlite", "insert or ignore into p (id, n) values (1, 2)", None),
    ("sqlite", "update p set ok = 0 where id = :who; delete from q", "(who int)step updated: update p set ok = false where id = $who; step deleted: delete from q where true"),
    ("sqlite", "select id from p where pay between @a and :b and n > $c limit ?", "(a decimal(10,2), b decimal(10,2), c int, p4 int)select id from p where pay between $a and $b and n > $c limit $p4"),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "sql", "wanted"), WRITTEN, ids=lambda x: str(x)[:40])
def test_is_written(dialect: str, sql: str, wanted: str | None, schema: Schema) -> None:
    made, _ = imported(sql, dialect, schema)
    assert wanted is None or made == wanted


TOLD = [
    ("sqlite", "selec x from p", ["CM410"]),
    ("sqlite", "select 'abc", ["CM410"]),
    ("sqlite", "", ["CM410"]),
    ("sqlite", "with recursive r as (select 1 union all select * from r) select foo(1) from r", ["CM411", "CM411"]),
    ("sqlite", "create table t (a int); select name from p", ["CM411"]),
    ("tsql", "select * from p pivot (sum(n) for name in ([a], [b])) as x", ["CM411"]),
    ("postgres", "select * from p, lateral (select 1) as x", ["CM411"]),
    ("postgres", "select distinct on (n) n, name from p", ["CM411"]),
    ("postgres", "select a from unnest(array[1]) as u(a)", ["CM411"]),
    ("postgres", "select n from p group by rollup (n)", ["CM411"]),
    ("mysql", "select last_day(born), name regexp 'a' from p", ["CM411", "CM411"]),
    ("postgres", "select split_part(name, ' ', 1) from p", ["CM411"]),
    ("mysql", "insert into p (id, n) values (1, 2) on duplicate key update n = 3", ["CM411"]),
    ("sqlite", "select name like 'a!%' escape '!' from p", ["CM411"]),
    ("sqlite", "select n from p group by n having count(*) > '3'", ["CM411"]),
    ("sqlite", "select name, count(*) from p group by n", ["CM412"]),
    ("mysql", "select name, max(n) from p group by code", ["CM412"]),
    ("postgres", "select name, max(n) from p group by code", ["CM311"]),
    ("sqlite", "select name, count(*) from p group by id", []),
    ("sqlite", "select code from p where code > 5", ["CM413"]),
    ("sqlite", "select n from p where n > (select n from q)", ["CM414"]),
    ("sqlite", "select max(n), name from p", ["CM415"]),
    ("sqlite", "select ?, n from p where name = :x", ["CM416"]),
    ("sqlite", "select avg(code) from p", ["CM417"]),
    ("sqlite", "select avg(born) from p", ["CM418"]),
    ("sqlite", "select nonsense from nowhere", ["CM201"]),
]


@pytest.mark.parametrize(("dialect", "sql", "codes"), TOLD, ids=lambda x: str(x)[:40])
def test_is_told(dialect: str, sql: str, codes: list[str], schema: Schema) -> None:
    assert told(sql, dialect, schema) == codes


ROWS = """
select max(n, 3), min(f, n), n is 5, n is not null, name not like 'a%', substr(name, -2), n / 2, n / 2.0 from p
select 5 / 2, -5 / 2, 5 % 3, 7 / 0
select cast(f as int), cast(-2.7 as integer), cast(code as integer), cast(n as real), cast(n as text) from p
select strftime('%Y', born), strftime('%m', seen), strftime('%Y-%m-%d', seen), strftime('%w', born) from p
select julianday(born) - julianday('1980-01-01'), date(born, '+1 year'), date(born, 'start of month', '-1 day') from p
select name from p where name glob 'A*' or name like 'B%'
select code from p where code > 5
select code from p where code = 5 or code in (12, 13) or code between 1 and 2
select p.name, q.label from p join q on p.id = q.label
select p.name, q.label from p left join q on p.id = q.label and q.n > 4
select p.name from p where id in (select label from q)
select p.name from p where id not in (select label from q)
select avg(code), sum(code), count(code) from p
select code + 1, code * 2 from p
select avg(born), avg(seen) from p
select total(n), total(pay), sum(ok), sum(n > 2) from p
select name, n from p order by name
select name, n from p order by name desc, n
select n, count(*) from p group by n having count(*) > 1
select p.name, count(*) from q join p on p.id = q.p_id group by q.p_id
select max(n), name from p
select min(pay), name, code from p where pay > 1
select ok, name, max(f) from p group by ok
select ok, name, max(f), count(*) from p group by ok
select name from p where n > (select n from q where id = 4)
select name, case when n then 'y' else 'n' end, case n when 3 then 'three' else "other" end from p
select name from p where ok = 1 and n
select name from p where ok
select distinct n from p order by n limit 2
select n from p union select n from q
select n from p union all select n from q except select 3
select n from p union select n from q intersect select n from q where n > 1
select id from p where exists (select 1 from q where q.p_id = p.id) and not exists (select 1 from q where q.n > p.n)
with a(x, y) as (select id, n from p), b as (select y, count(*) as c from a group by y) select a.x, b.c from a join b using (y)
select * from p natural join q
select x.n, x.c from (select n, count(*) c from p group by n) x where x.c = (select max(c) from (select count(*) c from p group by n))
select name, row_number() over (order by id desc), sum(n) over (partition by ok order by id) from p
select upper(name), length(name), replace(name, 'b', 'x'), instr(name, 'n'), trim('  a '), ltrim('xxa', 'x') from p
select ifnull(name, code), coalesce(name, 'none'), nullif(n, 3), iif(n > 2, 'a', 'b'), abs(f), round(f) from p
select name || '-' || n from p
select born from p where born > '1990-01-01' and seen like '2024%'
select name from p where n = '7' or n = 'x'
select count(distinct n), count(*), min(name), max(code) from p
select sum(case when n > 2 then 1 else 0 end) * 100.0 / count(*) from p
select x from (values (1), (2))
"""


def plain(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if value is None or isinstance(value, str):
        return value
    try:
        return round(float(value), 6)
    except TypeError:
        return str(value)


@pytest.mark.parametrize("sql", [s for s in ROWS.strip().splitlines() if not s.startswith("select x from (v")])
def test_rows_are_those_of_sqlite(sql: str, memory: Any) -> None:
    program, found = import_query(sql, "sqlite", memory.schema)
    assert program is not None, [f"{d.code} {d.text}" for d in found]
    text = show(program)
    outcome = memory.execute(com.compile(text, memory.schema))
    mine = [tuple(map(plain, row.values())) for row in outcome.to_dicts()]
    its = [tuple(map(plain, row)) for row in memory.plain.execute(sql).fetchall()]
    assert Counter(mine) == Counter(its), text
    if "order by name" in sql:
        assert mine == its


def test_without_a_schema_only_the_words_are_translated() -> None:
    made, found = imported("select ifnull(a, 0) from t where b = ?", "sqlite", None)
    assert made == "(p1 text)select coalesce(a, 0) from t where b = $p1"
    assert [d.code for d in found] == ["CM416"]


def test_programs_are_placed_in_the_sql(schema: Schema) -> None:
    sql = "select  name from p"
    program, _ = import_query(sql, "sqlite", schema)
    assert program is not None
    assert program.body[0].span.end <= len(sql)


# ---------------------------------------------------------------- the command


def run(*arguments: str, text: str = "") -> Any:
    return CliRunner().invoke(cli, ["import", *arguments], input=text)


def test_the_command_prints_a_program(tmp_path: Path) -> None:
    file = tmp_path / "old-names.sql"
    file.write_text("select ifnull(name, 'x') from p")
    schema = tmp_path / "s.com"
    schema.write_text(SCHEMA)
    result = run(str(file), "--schema", str(schema))
    assert result.exit_code == 0
    assert result.output == "program old_names;\n\nreturn select coalesce(name, 'x') from p;\n"
    written = tmp_path / "new.com"
    assert run(str(file), "--schema", str(schema), "-o", str(written)).output == ""
    assert written.read_text().startswith("program new;")


def test_the_command_reads_what_is_piped_in() -> None:
    result = run("-", "--dialect", "MySQL", text="select if(a, 1, 2) from t")
    assert result.exit_code == 0
    assert "case when a then 1 else 2 end" in result.output


def test_the_command_tells_what_cannot_be_imported() -> None:
    result = run("-", text="select foo(a), bar(b) from t")
    assert result.exit_code == 2
    assert result.stderr.count("CM411") == 2
    assert run("-", "--dialect", "klingon", text="select 1").exit_code == 2
