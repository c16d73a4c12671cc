"""Engines that com compiles for and does not run: their statements parse in their own dialect, and what they cannot say
is refused. None of it is executed here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sqlglot
from engines_page import TYPES, call_of
from sqlglot.errors import ErrorLevel

import com
from com import plan
from com.compiler.engines import COMPILED, EXECUTED, NAMES, load
from com.diagnostics import UnknownMemory
from com.functions import FUNCTIONS
from com.node import walk
from com.runtime.engines import COMPILED as REFUSED

SHOP = Path(__file__).parent.parent / "examples" / "fruit_shop"
SCHEMA = com.read_schema((SHOP / "schema.com").read_text(encoding="utf-8"))
QUESTIONS = sorted((SHOP / "questions").glob("*.com"))
every = pytest.mark.parametrize("engine", COMPILED)


def statements(made: plan.Plan) -> list[plan.Statement]:
    return [n for n in walk(made) if isinstance(n, plan.Statement)]


def parsed(statement: plan.Statement, engine: str) -> str:
    """The statement, once it was read back in its engine's dialect and written again."""
    (tree,) = sqlglot.parse(statement.sql, dialect=engine, error_level=ErrorLevel.RAISE)
    assert tree is not None
    assert not list(tree.find_all(sqlglot.exp.Command)), statement.sql
    return tree.sql(engine)


def refusals(text: str, engine: str, schema: com.schema.Schema = TYPES) -> list[str]:
    """The codes and reasons for which a program is not compiled."""
    with pytest.raises(com.CheckError) as failed:
        com.compile(text, schema, engine=engine)
    assert all(d.span.end > d.span.start for d in failed.value.diagnostics)
    return [f"{d.code} {d.text}" for d in failed.value.diagnostics if d.severity == "error"]


def sql(expression: str, engine: str) -> str:
    made = com.compile(f"program p; step s: select {expression} as v from t; return $s;", TYPES, engine=engine)
    (statement,) = statements(made)
    parsed(statement, engine)
    return statement.sql.removeprefix("SELECT ").partition(" AS ")[0] if " AS " not in expression else statement.sql


def test_names() -> None:
    assert NAMES == EXECUTED + COMPILED
    assert set(COMPILED) < REFUSED and not REFUSED & set(EXECUTED)
    assert [load(name).writes for name in NAMES] == [True] * 4 + [False] * 4


@every
def test_questions_of_the_shop(engine: str) -> None:
    """All that are compiled parse; those that are not are refused for what the engine cannot say."""
    compiled = 0
    for path in QUESTIONS:
        text = path.read_text(encoding="utf-8")
        try:
            made = com.compile(text, SCHEMA, engine=engine)
        except com.CheckError as failed:
            assert {d.code for d in failed.diagnostics if d.severity == "error"} == {"CM401"}, path.name
            continue
        compiled += 1
        for statement in statements(made):
            assert parsed(statement, engine)
            names = re.findall(r"[:@](p\d+)", statement.sql)
            if engine in ("trino", "snowflake"):
                assert statement.sql.count("?") == len(statement.binds)
            else:
                assert set(names) == {name for name, _ in statement.binds}
    assert len(QUESTIONS) == 50 and compiled >= 40


@every
@pytest.mark.parametrize(
    "write",
    ["insert into fruits (fruit_name) values ('kiwi')", "update fruits set stock_quantity = 1 where true",
     "delete from fruits where true"],
)  # fmt: skip
def test_a_write_is_refused(engine: str, write: str) -> None:
    (told,) = refusals(f"program p; step w: {write};", engine, SCHEMA)
    assert told.startswith("CM401") and "a write" in told


@every
def test_a_memory_there_is_refused(engine: str) -> None:
    with pytest.raises(com.Error) as failed:
        com.connect(f"{engine}://host/shop")
    assert isinstance(failed.value.message, UnknownMemory)
    assert f"com compile --engine {engine}" in failed.value.message.help_


@every
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_parses_or_is_refused(engine: str, name: str) -> None:
    call = call_of(name)
    if name == "json_get":
        assert [r.partition(" ")[0] for r in refusals(f"program p; step s: select {call} as v from t;", engine)] == [
            "CM401"
        ]
    else:
        assert sql(call, engine)


SAID: dict[str, dict[str, str]] = {
    "div(i, id)": {
        "spark": "CAST(`t`.`i` AS BIGINT) DIV NULLIF(CAST(`t`.`id` AS BIGINT), 0)",
        "trino": 'CAST("t"."i" AS BIGINT) / NULLIF(CAST("t"."id" AS BIGINT), 0)',
        "bigquery": "DIV(`t`.`i`, NULLIF(`t`.`id`, 0))",
        "snowflake": 'CAST(("t"."i" - MOD("t"."i", NULLIF("t"."id", 0))) / NULLIF("t"."id", 0) AS BIGINT)',
    },
    "i % id": {
        "spark": "MOD(`t`.`i`, NULLIF(`t`.`id`, 0))",
        "trino": 'MOD("t"."i", NULLIF("t"."id", 0))',
        "bigquery": "MOD(`t`.`i`, NULLIF(`t`.`id`, 0))",
        "snowflake": 'MOD("t"."i", NULLIF("t"."id", 0))',
    },
    "day + interval '1 month'": {
        "spark": "CAST(`t`.`day` AS DATE) + MAKE_YM_INTERVAL(0, 1)",
        "trino": 'DATE_ADD(\'month\', 1, CAST("t"."day" AS DATE))',
        "bigquery": "DATE_ADD(CAST(`t`.`day` AS DATE), INTERVAL 1 MONTH)",
        "snowflake": 'DATEADD(MONTH, 1, CAST("t"."day" AS DATE))',
    },
    "weekday(day)": {
        "spark": "EXTRACT(DAYOFWEEK_ISO FROM CAST(`t`.`day` AS TIMESTAMP_NTZ))",
        "trino": 'EXTRACT(DAY_OF_WEEK FROM CAST("t"."day" AS TIMESTAMP(6)))',
        "bigquery": "MOD(EXTRACT(DAYOFWEEK FROM CAST(`t`.`day` AS DATETIME)) + 5, 7) + 1",
        "snowflake": 'EXTRACT(DAYOFWEEKISO FROM CAST("t"."day" AS TIMESTAMP_NTZ(6)))',
    },
    "d * 1.5": {
        "spark": "`t`.`d` * 1.5",
        "trino": '"t"."d" * 1.5',
        "bigquery": "`t`.`d` * CAST('1.5' AS NUMERIC)",
        "snowflake": '"t"."d" * 1.5',
    },
    "b = 'it''s \\'": {
        "spark": "`t`.`b` = 'it\\'s \\\\'",
        "trino": "\"t\".\"b\" = 'it''s \\'",
        "bigquery": "`t`.`b` = 'it\\'s \\\\'",
        "snowflake": "\"t\".\"b\" = 'it''s \\\\'",
    },
    "trim(b)": {
        "spark": "TRIM(BOTH ' ' FROM `t`.`b`)",
        "trino": 'TRIM(BOTH \' \' FROM "t"."b")',
        "bigquery": "TRIM(`t`.`b`, ' ')",
        "snowflake": 'TRIM("t"."b", \' \')',
    },
}


@every
@pytest.mark.parametrize("expression", SAID)
def test_what_engines_say_each_in_its_way(engine: str, expression: str) -> None:
    made = com.compile(f"program p; step s: select {expression} as v from t; return $s;", TYPES, engine=engine)
    (statement,) = statements(made)
    parsed(statement, engine)
    said = statement.sql.removeprefix("SELECT ").partition(" AS `v`" if "`" in statement.sql else ' AS "v"')[0]
    assert re.sub(r"\b([a-z_]+)\(", lambda m: m[0].upper(), said) == SAID[expression][engine]


@pytest.mark.parametrize(
    ("expression", "engines"),
    [
        ("round(f, 2)", ("trino", "bigquery", "snowflake")),
        ("cast(f as decimal(10, 2))", ("trino", "bigquery", "snowflake")),
        ("cast(a as date)", COMPILED),
        ("cast(f as text)", COMPILED),
        ("at + interval '1 microsecond'", ("trino",)),
        ("f % 2", COMPILED),
        ("format_date(day, '%Y week')", ("spark",)),
        ("string_agg(b, ', ' order by a)", ("bigquery",)),
        ("string_agg(b, a)", COMPILED),
        ("left(a, i)", COMPILED),
    ],
)
def test_what_cannot_be_said_exactly_is_refused(expression: str, engines: tuple[str, ...]) -> None:
    for engine in COMPILED:
        if engine in engines:
            told = refusals(f"program p; step s: select {expression} as v from t;", engine)
            assert {reason.partition(" ")[0] for reason in told} == {"CM401"}, (engine, told)
        else:
            assert sql(expression, engine)


@every
def test_nulls_stand_where_com_puts_them(engine: str) -> None:
    made = com.compile("program p; step s: select id from t order by a, e desc; return $s;", TYPES, engine=engine)
    (statement,) = statements(made)
    order = statement.sql.partition(" ORDER BY ")[2].replace("`", '"')
    shown = {
        "trino": '"t"."a", "t"."e" DESC, "t"."id"',
        "spark": '"t"."a" NULLS LAST, "t"."e" DESC, "t"."id"',
        "bigquery": '"t"."a" NULLS LAST, "t"."e" DESC, "t"."id"',
        "snowflake": '"t"."a", "t"."e" DESC NULLS LAST, "t"."id"',
    }
    assert order == shown[engine]


@every
def test_lists_and_rows_are_one_parameter(engine: str) -> None:
    program = """
        program p(ids int[], items many {name text, n int, ok bool, d date}, least int);
        step s: select t.id, i.n from $items as i join t on t.b = i.name and t.x = i.ok and t.day > i.d
          where t.id in $ids and t.i > $least and t.i < $least * 2;
        return $s;
    """
    (statement,) = statements(com.compile(program, TYPES, engine=engine))
    parsed(statement, engine)
    kinds = sorted(type(b).__name__ for _, b in statement.binds)
    assert kinds == (["Many", "Rows", "Scalar", "Scalar"] if engine in ("trino", "snowflake") else
                     ["Many", "Rows", "Scalar"])  # fmt: skip
