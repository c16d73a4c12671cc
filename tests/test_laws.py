"""Laws that hold for every program: it checks, compiles to the same bytes, previews what it does, and can be replayed.

COM_EXAMPLES multiplies the number of examples that are drawn for each law.
"""

from __future__ import annotations

import os
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings

import com
from com.compiler.parse import parse_program, parse_schema
from com.compiler.show import show
from com.diagnostics import Error, has_errors
from com.node import digest, dump, rebuild
from com.plan import Loop, Plan
from com.runtime.history import read_images
from com.source import Source
from tests import typed

EXAMPLES = int(40 * float(os.environ.get("COM_EXAMPLES", "1")))
MANY = settings(
    phases=[Phase.explicit, Phase.reuse, Phase.generate] + [Phase.shrink] * ("COM_SHRINK" in os.environ),
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
CLASSES = {
    "int": int,
    "float": float,
    "decimal": Decimal,
    "text": str,
    "bool": bool,
    "date": date,
    "timestamp": datetime,
    "bytes": bytes,
}
SEEN: dict[str, int] = {}
"""How the runs of this session ended, by code."""


def opened(schema: com.Schema, fill: str) -> com.Memory:
    memory = com.create("sqlite://", schema)
    try:
        memory.execute(com.compile(fill, memory.schema), clock=typed.CLOCK)
    except BaseException:
        memory.close()
        raise
    return memory


def held(memory: com.Memory) -> dict[str, list[Any]]:
    """All rows of all tables, com's own too, as the engine holds them."""
    names = [name for (name,) in memory.link.ask("select name from sqlite_master where type = 'table' order by name")]
    return {n: memory.link.ask(f"select * from {memory.link.quote(n)} order by 1, 2") for n in names}


def rows_by_key(memory: com.Memory) -> dict[tuple[str, tuple[Any, ...]], dict[str, Any]]:
    """All rows of the user's tables, typed, by table and key."""
    found = {}
    for table in memory.schema.tables:
        names = ", ".join(typed.name_text(c.name) for c in table.columns)
        plan = com.compile(
            f"program look; step all_rows: select {names} from {typed.name_text(table.name)};", memory.schema
        )
        for row in memory.dry_run(plan, clock=typed.CLOCK).to_dicts():
            found[table.name, tuple(row[k] for k in table.primary_key)] = row
    return found


def row_by_row(plan: Plan) -> Plan:
    """The plan without set-based loops."""
    made: Plan = rebuild(plan, lambda n: n.with_(batch=None) if isinstance(n, Loop) else n)
    return made


def expected(failed: com.RunError) -> bool:
    """Whether a program may fail so: not by a bug of com, nor by what an engine does not understand."""
    return not failed.message.code.startswith("CM9") and failed.message.code not in ("CM512", "CM514", "CM515")


def tried(do: Any) -> tuple[com.Outcome | None, com.RunError | None]:
    try:
        return do(), None
    except com.RunError as failed:
        assert expected(failed), str(failed)
        return None, failed


def by_row(outcome: com.Outcome) -> dict[Any, Any]:
    return {(c.table, c.key): (c.before, c.after) for c in outcome.changes}


def typed_as_said(outcome: com.Outcome) -> None:
    for row in outcome.rows:
        for value, found in zip(row, outcome.fields, strict=True):
            if value is None:
                assert found.nullable, f"{found.name} is null"
                continue
            wanted = CLASSES.get(found.type.kind, object)
            assert type(value) is wanted or wanted is object, f"{found.name} is {value!r}, not {found.type}"
            if isinstance(value, Decimal):
                assert value.as_tuple().exponent == -found.type.scale, f"{found.name} is {value!r}, not {found.type}"


@MANY
@given(typed.cases())
def test_programs(case: typed.Case) -> None:
    tree, found = parse_schema(Source(case.schema))
    assert tree is not None and not found
    again, found = parse_schema(Source(show(tree)))
    assert again == tree and not found
    schema = com.read_schema(case.schema)
    with opened(schema, case.fill) as memory:
        plan = compiled(case, memory.schema)
        ran(case, memory, plan)


def compiled(case: typed.Case, schema: com.Schema) -> Plan:
    """The laws of the compiler."""
    tree, found = parse_program(Source(case.program))
    assert tree is not None and not found
    shown = show(tree)
    again, found = parse_program(Source(shown))
    assert again == tree and not found
    assert show(again) == shown
    found = com.check(case.program, schema)
    assert not has_errors(found), str(com.library.CheckError(found, Source(case.program)))
    plan, other = com.compile(case.program, schema), com.compile(case.program, schema)
    assert dump(plan, spans=True) == dump(other, spans=True) and digest(plan) == digest(other)
    same = com.compile(shown, schema)
    assert [s.digest for s in steps_of(same.body)] == [s.digest for s in steps_of(plan.body)]
    return plan


def steps_of(body: Any) -> list[Any]:
    found = []
    for item in body:
        found += [item] if hasattr(item, "digest") else []
        for name in ("body", "then", "otherwise"):
            found += steps_of(getattr(item, name, ()))
    return found


def ran(case: typed.Case, memory: com.Memory, plan: Plan) -> None:
    """The laws of the runtime."""
    before, all_before, rows_before = memory.digest(), held(memory), rows_by_key(memory)
    clock = typed.CLOCK
    preview, refused = tried(lambda: memory.dry_run(plan, case.arguments, clock=clock))
    assert memory.digest() == before and held(memory) == all_before, "a dry run changed memory"
    slow, stopped = tried(lambda: memory.dry_run(row_by_row(plan), case.arguments, clock=clock))
    assert held(memory) == all_before
    outcome, failed = tried(lambda: memory.execute(plan, case.arguments, clock=clock))
    code = "done" if failed is None else failed.message.code
    SEEN[code] = SEEN.get(code, 0) + 1
    event(code)
    if failed is not None:
        assert memory.digest() == before, "a failed run changed memory"
        assert refused is not None and str(refused) == str(failed) and refused.path == failed.path
        assert stopped is not None and str(stopped) == str(failed) and stopped.path == failed.path
        run = failed.run_id
    else:
        assert outcome is not None and preview is not None and slow is not None, str(refused or stopped)
        assert (preview.rows, preview.fields, preview.answer) == (outcome.rows, outcome.fields, outcome.answer)
        assert preview.changes == outcome.changes and preview.steps == outcome.steps
        assert (slow.rows, slow.answer) == (outcome.rows, outcome.answer)
        assert by_row(slow) == by_row(outcome), "set-based loops changed other rows"
        typed_as_said(outcome)
        run = outcome.run_id
        images_fit(memory, outcome, rows_before)
    assert run is not None
    replayed = memory.replay(run)
    assert replayed.same, replayed.differences
    assert memory.verify() == []
    rebuilt = memory.replay_all("sqlite://")
    assert rebuilt.same, rebuilt.difference


def images_fit(memory: com.Memory, outcome: com.Outcome, before: dict[Any, Any]) -> None:
    """Changes lead from the rows before to those after, and images back."""
    after = rows_by_key(memory)
    forth = dict(before)
    for change in outcome.changes:
        at = (change.table, change.key)
        assert forth.get(at) == change.before
        if change.after is None:
            del forth[at]
        else:
            forth[at] = change.after
    assert forth == after
    assert outcome.run_id is not None
    for image in reversed(read_images(memory.link, memory.schema, outcome.run_id)):
        change = image.change
        at = (change.table, change.key)
        assert after.pop(at, None) == change.after
        if change.before is not None:
            after[at] = change.before
    assert after == before


# ---------------------------------------------------------------- what queries mean


def read(memory: com.Memory, query: str) -> list[tuple[Any, ...]]:
    plan = com.compile(f"program look; step found: {query};", memory.schema)
    return list(memory.dry_run(plan, clock=typed.CLOCK).rows)


def counted(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(map(repr, rows))


@MANY
@given(typed.predicates())
def test_conditions_part_rows_in_three(case: typed.Predicate) -> None:
    with opened(com.read_schema(case.schema), case.fill) as memory:
        p, of = case.condition, f"from {case.table} as t"
        parts = (f"({p})", f"not ({p})", f"({p}) is null")
        try:
            found = [read(memory, f"select t.* {of} where {part}") for part in parts]
            told = read(memory, f"select ({p}) as p {of}")
        except com.RunError as failed:
            assert expected(failed), str(failed)
            return
        everything = read(memory, f"select t.* {of}")
        assert counted([row for part in found for row in part]) == counted(everything)
        sizes = [len(part) for part in found]
        assert [sum(row[0] is v for row in told) for v in (True, False, None)] == sizes
        filters = ", ".join(f"count(*) filter (where {part}) as n{i}" for i, part in enumerate(parts))
        assert read(memory, f"select {filters} {of}") == [tuple(sizes)]
        case_of = f"case when {p} then 1 when not ({p}) then 2 else 3 end"
        groups = read(memory, f"select {case_of} as g, count(*) as n {of} group by {case_of}")
        assert dict(groups) == {i: n for i, n in enumerate(sizes, 1) if n}
        union = " union all ".join(f"select 1 as one {of} where {part}" for part in parts)
        assert len(read(memory, union)) == len(everything)
        assert read(memory, f"select count(*) as n from ({union}) as u") == [(len(everything),)]
        joined = read(memory, f"select count(*) as n from {case.table} as t left join {case.table} as other on {p}")
        assert joined == [(sizes[0] * len(everything) + sizes[1] + sizes[2],)]


def sort_key(value: Any, kind: str, descending: bool, nulls: str) -> Any:
    first = nulls == "first"
    if value is None:
        return (0 if first else 2, 0)
    return (1, Reversed(value) if descending else value)


class Reversed:
    """A value that sorts the other way."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Reversed) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reversed) and self.value == other.value


@MANY
@given(typed.predicates())
def test_rows_come_in_order(case: typed.Predicate) -> None:
    if not case.order:
        return
    with opened(com.read_schema(case.schema), case.fill) as memory:
        of = f"from {case.table} as t"
        columns = ", ".join(f"{e} as k{i}" for i, (e, *_) in enumerate(case.order))
        keys = ", ".join(
            f"k{i}{' desc' if desc else ''}{f' nulls {nulls}' if nulls else ''}"
            for i, (_, _, desc, nulls) in enumerate(case.order)
        )
        try:
            found = read(memory, f"select {columns}, t.* {of} order by {keys}")
        except com.RunError as failed:
            assert expected(failed), str(failed)
            return
        width = len(case.order)
        order = [tuple(sort_key(v, *o[1:]) for v, o in zip(row, case.order, strict=False)) for row in found]
        assert all(not b < a for a, b in pairwise(order))
        part = read(memory, f"select {columns}, t.* {of} order by {keys} limit 2 offset 1")
        assert part == found[1:3]
        plain = ", ".join(
            e + k.removeprefix(f"k{i}") for i, (k, (e, *_)) in enumerate(zip(keys.split(", "), case.order, strict=True))
        )
        assert read(memory, f"select {columns}, t.* {of} order by {plain}") == found
        numbered = read(memory, f"select {columns}, t.*, row_number() over (order by {plain}) as n {of} order by n")
        assert [row[:-1] for row in numbered] == found
        assert [row[-1] for row in numbered] == list(range(1, len(found) + 1))
        distinct = read(memory, f"select distinct {columns} {of}")
        assert {repr(row) for row in distinct} == {repr(row[:width]) for row in found}
        assert len({repr(row) for row in distinct}) == len(distinct)


@pytest.fixture(scope="module", autouse=True)
def ends() -> Any:
    """Runs must not all fail."""
    yield
    total = sum(SEEN.values())
    assert total < 50 or SEEN.get("done", 0) > total / 4, SEEN


_ = Error


# ---------------------------------------------------------------- what the laws have found

TABLES = """
create table t (k int primary key, c int);
create table s (n int primary key, m int, j json);
create table d (d date primary key, ts timestamp, x decimal(8,0) not null default 1.0);
"""
ROWS = """program fill;
step a: insert into t (k, c) values (1, 1), (2, 2);
step b: insert into s (n, m, j) values (1, 1, cast('0' as json)), (2, 5, cast('1.5' as json)), (3, 5, cast('"x"' as json));
step c: insert into d (d, ts) values ('2024-01-01', '2024-01-01');
"""


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("select j from s", [(0,), (1.5,), ("x",)]),
        ("select count(*) as n from t where k in (select max(x.n) + count(t.k + x.n) - 2 from s as x)", [(0,)]),
        ("select max(t.c) in (select x.m from s as x) as b from t", [(False,)]),
        ("select count(*) as n from t group by (select count(*) from s)", [(2,)]),
        ("select k from t order by floor(2), -c", [(2,), (1,)]),
        ("select count(*) as n from t group by least(1)", [(2,)]),
        (
            "select ts in (select d from d) as a, ts in (select d from d union select d from d as e) as b from d",
            [(True, True)],
        ),
        ("select x from d", [(Decimal(1),)]),
        (
            "select min(q.b) over (partition by 1) as o from "
            "(select lag(x.c) over (order by x.k) as a, x.c as b from t as x limit 2 offset 1) as q",
            [(2,)],
        ),
        ("select (select x.m from s as x order by abs(x.n - u.k - 1), u.k limit 1) as m from t as u", [(5,), (5,)]),
        ("select (select x.m from s as x group by x.m, u.k order by x.m - u.k limit 1) as m from t as u", [(1,), (1,)]),
    ],
)
def test_queries_that_were_wrong(query: str, rows: list[Any]) -> None:
    with opened(com.read_schema(TABLES), ROWS) as memory:
        assert read(memory, query) == rows
        assert memory.replay(1).same and memory.replay_all("sqlite://").same


def test_an_aggregate_of_the_query_around_is_refused() -> None:
    schema = com.read_schema(TABLES)
    text = "program p; step a: select k from t where exists (select max(t.c) from s);"
    assert [d.code for d in com.check(text, schema)] == ["CM312"]
    assert com.check(text.replace("max(t.c)", "max(t.c + s.m)"), schema) == []


def test_a_default_is_kept_by_the_engine_alone() -> None:
    with pytest.raises(com.Error, match="CM401"):
        com.create("sqlite://", com.read_schema("create table u (k int primary key, v text default lower('A'));"))
