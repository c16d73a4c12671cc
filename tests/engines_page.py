"""The generated tables of docs/engines.md: what each engine is, how it stores types, which functions it has."""

from __future__ import annotations

import re
from functools import cache

import com
from com import plan
from com.compiler.engines import EXECUTED, NAMES, load
from com.functions import FUNCTIONS
from com.node import walk
from com.schema import BOOL, BYTES, DATE, FLOAT, INT, JSON, TEXT, TIMESTAMP, Column, decimal

TYPES = com.read_schema(
    """
    create table t (
      id int primary key, a text, b text not null, i int not null, d decimal(10, 2) not null, e decimal(6, 3),
      f float not null, x bool not null, day date not null, at timestamp not null, j json, h bytes
    );
    """
)
CALLS = {
    "lag": "lag(i) over (order by id)", "lead": "lead(i, 2, 0) over (order by id)", "count": "count(distinct a)",
    "row_number": "row_number() over (order by a desc nulls first)", "rank": "rank() over (order by i)",
    "dense_rank": "dense_rank() over (partition by x order by i)", "json_get": "json_get(j, 'a.b')",
    "first_value": "first_value(i) over (order by id rows between 1 preceding and current row)",
    "last_value": "last_value(i) over (order by id)", "string_agg": "string_agg(b, ', ' order by i)",
    "date_trunc": "date_trunc('week', at)", "date_diff": "date_diff('hour', at, day)", "replace": "replace(a, b, 'x')",
    "format_date": "format_date(at, '%Y-%m-%d %H:%M:%S')", "position": "position('x', a)", "div": "div(i, id)",
    "coalesce": "coalesce(a, b)", "nullif": "nullif(i, 0)", "least": "least(a, b)", "greatest": "greatest(a, b)",
    "starts_with": "starts_with(a, b)", "left": "left(a, 2)", "right": "right(a, 2)", "substr": "substr(a, 2, 3)",
    "power": "power(f, 2)", "round": "round(d, 1)", "avg": "avg(d)", "sum": "sum(d)", "min": "min(a)", "max": "max(a)",
    "stddev": "stddev(f)", "trim": "trim(a, 'xy')",
}  # fmt: skip
"""A call of each function that more than its first parameter has to be given to."""
LACKS = (
    "string_agg(b, ', ') over (order by id)", "stddev(f) over ()", "string_agg(b, a)",
    "string_agg(distinct b, ', ' order by i)", "string_agg(b, ', ' order by a)", "round(d, i)", "round(f, 2)", "f % 2",
    "left(a, i)", "json_get(j, a)", "format_date(day, '%Y week')", "at + interval '1 microsecond'",
    "cast(f as decimal(10, 2))", "cast(f as text)", "cast(at as text)", "cast(a as date)", "cast(a as float)",
    "d * d * d * d", "d / e",
)  # fmt: skip
"""What one engine or another cannot say."""
_ARGUMENTS = {"number": "f", "text": "a", "time": "at", "int": "i"}


def call_of(name: str) -> str:
    """A call of a function on the columns of `TYPES`."""
    first = FUNCTIONS[name].parameters[:1]
    return CALLS.get(name, f"{name}({_ARGUMENTS.get(first[0] if first else '', 'a')})")


@cache
def said(expression: str, engine: str) -> str:
    """How an engine is told an expression, or nothing if it cannot be told."""
    try:
        made = com.compile(f"program p; step s: select {expression} as v from t; return $s;", TYPES, engine=engine)
    except com.CheckError as failed:
        assert {d.code for d in failed.diagnostics if d.severity == "error"} == {"CM401"}, (expression, engine)
        return ""
    return next(n.sql for n in walk(made) if isinstance(n, plan.Statement))


def how(name: str, engine: str) -> str:
    """`own` if the engine's function of that name is called, `com` if com brings it, else `said` or `CM401`."""
    sql = said(call_of(name), engine).lower()
    if not sql:
        return "CM401"
    if "com_" in sql.replace("com_j", ""):
        return "com"
    found = re.match(rf"select {name}\(", sql)
    return "own" if found and "case" not in sql and "nullif" not in sql.replace("select nullif", "") else "said"


def table(head: list[str], lines: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(line)} |" for line in lines)]


_ENGINES = {
    "sqlite": ("3.39", "—", "`sqlite:///shop.db`, `sqlite://` in RAM, or a path"),
    "postgres": ("15", "`com[postgres]`", "`postgresql://user:password@host:5432/db`, with `?schema=sales`"),
    "duckdb": ("1.5", "`com[duckdb]`", "`duckdb:///shop.duckdb`, `duckdb://` in RAM, with `?schema=sales`"),
    "mysql": ("MariaDB 10.11", "`com[mysql]`", "`mysql://user:password@host:3306/db`, `mariadb://…`"),
    "spark": ("4, in ANSI mode, in UTC", "—", "—"),
    "trino": ("—", "—", "—"),
    "bigquery": ("—", "—", "—"),
    "snowflake": ("—", "—", "—"),
}
_KINDS = (INT, FLOAT, decimal(10, 2), TEXT, BOOL, DATE, TIMESTAMP, JSON, BYTES)


def _stored(engine: str, type_: com.schema.Type) -> str:
    if engine in EXECUTED:
        return load(engine).stored(Column("c", type_), False, False)
    if engine != "bigquery" and type_ == JSON:
        return "text" if engine == "spark" else "`JSON`" if engine == "trino" else "`VARIANT`"
    return ""


def page() -> str:
    """All that stands between the marks of docs/engines.md."""
    engines = []
    for name in NAMES:
        version, extra, url = _ENGINES[name]
        here = "runs, and is tested" if name in EXECUTED else "compiled for only: **not executed here**"
        engines.append([f"`{name}`", load(name).title, here, version, extra, url])
    types = [[f"`{t}`", *(f"`{_stored(e, t)}`" for e in EXECUTED)] for t in _KINDS]
    functions = [[f"`{name}`", *(how(name, e) for e in NAMES)] for name in FUNCTIONS]
    lacks = [
        [f"`{text}`".replace("|", "\\|"), ", ".join(load(e).title for e in NAMES if not said(text, e))]
        for text in LACKS
    ]
    return "\n".join(
        [
            "## The engines", "",
            *table(["`--engine`", "engine", "", "at least", "install", "URL"], engines), "",
            "## Types as they are stored", "",
            "In tables that com makes. How other types are read, see [below](#databases-that-others-made).", "",
            *table(["com", *(load(e).title for e in EXECUTED)], types), "",
            "## Functions", "",
            "`own`: the engine's function of that name, what it takes and gives cast where that is needed. `said`: other words of",
            "the engine. `com`: com brings it to the connection. CM401: refused when the program is compiled.", "",
            *table(["function", *(load(e).title for e in NAMES)], functions), "",
            "## What some engines cannot say", "",
            "Each is CM401 there, with its place. The columns are `a text`, `b text not null`, `i int`, `d decimal(10, 2)`,",
            "`e decimal(6, 3)`, `f float`, `day date`, `at timestamp`, `j json`, `h bytes`.", "",
            *table(["expression", "not on"], [line for line in lacks if line[1]]),
        ]
    )  # fmt: skip
