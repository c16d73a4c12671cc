"""Replays: the same comes out, and whatever was changed since is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from com.diagnostics import Error
from com.plan import Plan
from com.runtime.memory import Memory, connect, create
from com.runtime.outcome import RunError
from com.schema import Schema
from tests.plans import DDL, DELIVER, DROP, GOODS_GIVEN, PRICE, SELL, SHOP, STOCK
from tests.test_runtime import DAY, Double, call_plan, shop

PLANS = {p.text: p for p in (DELIVER, DROP, PRICE, SELL, STOCK, call_plan())}


def recorded(text: str, schema: Schema, engine: str) -> Plan:
    return PLANS[text]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    """A shop with seven runs: two of them failed, one only read, one row by row."""
    with create(f"sqlite:///{tmp_path}/shop.db", SHOP, DDL) as made:
        made.execute(DELIVER, {"goods": GOODS_GIVEN}, clock=DAY)
        made.execute(SELL, {"items": [["apple", 3], ["pear", 1]]}, clock=DAY)
        for items in ([["apple", 30]], [["kiwi", 1]]):
            with pytest.raises(RunError):
                made.execute(SELL, {"items": items}, clock=DAY)
        made.execute(SELL, {"items": [["apple", 1], ["apple", 2]]}, clock=DAY, key="k")
        made.execute(STOCK)
        made.execute(DROP, {"name": "fig"})
        made.execute(PRICE, {"name": "pear", "price": "9.99"})
        yield made


def test_every_run_comes_out_as_recorded(memory: Memory) -> None:
    before = memory.digest()
    for row in memory.log():
        found = memory.replay(row.run, recorded)
        assert found.same, (row.run, found.differences)
        assert len(found.steps) == len(memory.outcome(row.run).steps)
    assert memory.digest() == before
    assert memory.verify() == []


def test_the_journal_rebuilds_the_memory(memory: Memory, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    rebuilt = memory.replay_all(f"sqlite:///{tmp_path}/new.db", recorded, progress=lambda *at: told.append(at))
    assert rebuilt.same, rebuilt
    assert told[0] == (0, 6) and told[-1] == (6, 6)
    with connect(f"{tmp_path}/new.db") as made:
        assert made.digest() == memory.digest()
        assert [r.run for r in made.log()] == [1, 2, 5, 6, 7, 8]
        assert made.schema == SHOP
        assert [r.digest for r in made.log() if not r.written] != []
        assert made.verify() == []
        for mine, its in zip([r for r in memory.log() if r.status == "done"], made.log(), strict=True):
            assert (mine.outcome, mine.clock, mine.parameters) == (its.outcome, its.clock, its.parameters)


def test_a_rebuilt_memory_must_be_new(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(Error) as failed:
        memory.replay_all(f"sqlite:///{tmp_path}/shop.db", recorded)
    assert failed.value.message.code == "CM540"


def test_rows_from_before_the_journal(tmp_path: Path) -> None:
    with create(f"sqlite:///{tmp_path}/shop.db", SHOP, DDL) as memory:
        memory.link.run("insert into fruits values (7, 'melon', 1, 1)", {})
        memory.execute(PRICE, {"name": "melon", "price": 2})
        assert memory.replay(1, recorded).same
        with pytest.raises(Error) as failed:
            memory.replay_all("sqlite://", recorded)
        assert failed.value.message.code == "CM605"


MUTATIONS = [
    ("com_program", "text", "'program stock;' where text like 'program sell%'"),
    ("com_run", "parameters", '\'{"items":[["apple",2],["pear",1]]}\' where run = 2'),
    ("com_run", "clock", "'2023-01-16 00:00:00' where run = 2"),
    ("com_run", "zone", "'Europe/Madrid' where run = 2"),
    ("com_run", "status", "'failed' where run = 2"),
    ("com_run", "outcome", "'' where run = 2"),
    ("com_run", "result", "'' where run = 2"),
    ("com_run", "answer", "'Sale 2.' where run = 2"),
    ("com_run", "engine_version", "'2.0' where run = 2"),
    ("com_run", "written", "9 where run = 2"),
    ("com_run", "started", "9 where run = 2"),
    ("com_run", "ids", "'{\"sales\":5}' where run = 2"),
    ("com_run", "plan", "'' where run = 2"),
    ("com_run", "digest", "'' where run = 2"),
    ("com_run", "code", "'CM502' where run = 3"),
    ("com_run", "path", "'' where run = 3"),
    *[
        ("com_step", column, f"{value} where run = 2 and step = 3")
        for column, value in (
            ("path", "'x'"),
            ("kind", "'read'"),
            ("operation", "'x'"),
            ("inputs", "'x'"),
            ("result", "'x'"),
            ("count", "7"),
            ("changes", "'x'"),
            ("step", "9"),
        )
    ],
    ("com_step", "rows", "'[]' where run = 2 and step = 1"),
]


@pytest.mark.parametrize(("table", "column", "rest"), MUTATIONS, ids=lambda v: str(v)[:24])
def test_a_changed_journal_is_found(memory: Memory, table: str, column: str, rest: str) -> None:
    memory.link.run(f'update {table} set "{column}" = {rest}', {})
    number = 3 if "run = 3" in rest else 2
    found = memory.replay(number, recorded)
    assert not found.same
    assert table == "com_program" or memory.verify() != []


@pytest.mark.parametrize(
    "change",
    [
        "update com_commit set time = 7 where number = 2",
        "update com_commit set hash = '' where number = 2",
        "update com_change set after = json_set(after, '$.stock', 1) where run = 2 and step = 3",
        "delete from com_commit where number = 5",
        "delete from com_run where run = 2",
        "update com_head set hash = ''",
        "update com_head set run = 99",
        "update com_head set time = 1",
        "delete from com_head",
        "insert into com_head values (2, 0, 0, 0, '')",
        "update com_program set text = text || ' ' where text like 'program sell%'",
        "update com_program set name = 'buy' where text like 'program sell%'",
        "delete from com_program where text like 'program sell%'",
        "update com_program set text = x'00ff'",
        "update com_schema set text = '{'",
        "delete from com_schema",
        "update com_blob set data = data || ' '",
        "delete from com_blob",
        "update com_meta set value = '1' where name = 'held_rows'",
        "delete from com_meta where name = 'held_rows'",
        "insert into com_meta values ('rebuilt', '1')",
        "update com_id set last = 1 where tbl = 'fruits'",
        "update com_id set last = 'x' where tbl = 'fruits'",
        "delete from com_id",
        "insert into com_step values (77, 1, '', '', '', '', '', null, 0, '')",
        "insert into com_call values (2, 'x', 'x', '', '[]', null)",
        "insert into com_change values (6, 1, 1, 'fruits', '[1]', '{}', null)",
        "update com_change set n = '[1]' where run = 2 and step = 3 and n = 1",
        "delete from com_run where run = 3",
        "update com_run set ids = 'x' where run = 2",
        "update com_run set status = 'pending', digest = null where run = 2",
        "update com_run set parameters = cast(x'ff' as text) where run = 2",
        "update com_step set rows = '{' where run = 2",
        *[
            f"update com_change set {column} = {text} where run = 2 and step = 3"
            for column in ("key", "before", "after")
            for text in ("''", "'['", "'[]'", "'{}'", "'x'", "x'00'", f"{column} || '}}'", f"{column} || ' '", "7")
        ],
    ],
)
def test_a_broken_chain_is_found(memory: Memory, change: str) -> None:
    memory.link.run(change, {})
    assert memory.verify() != []
    for run in (2, 3, 6):
        try:
            memory.replay(run, recorded)
        except Error as failed:
            assert failed.message.code in ("CM602", "CM603", "CM607", "CM608", "CM512", "CM513", "CM515", "CM541")
    try:
        memory.replay_all("sqlite://", recorded)
    except Error as failed:
        assert failed.message.code in ("CM602", "CM605", "CM607", "CM512", "CM513", "CM515")


def test_changes_from_outside_are_named(memory: Memory) -> None:
    memory.link.run("update fruits set stock = 100 where fruit_id = 1", {})
    memory.link.run("delete from sales where sale_id = 2", {})
    found = memory.replay(2, recorded)
    assert {d.cause for d in found.differences} == {"memory changed outside"}
    assert {d.place for d in found.differences} >= {"fruits 1", "sales 2"}


def test_another_compiler_is_named(memory: Memory) -> None:
    def other(text: str, schema: Schema, engine: str) -> Plan:
        plan = PLANS[text]
        return plan.with_(body=plan.body[:-1]) if plan is SELL else plan

    found = memory.replay(2, other)
    assert found.differences[0].cause == "compiler changed"
    assert (found.differences[0].place, found.differences[0].field) == ("run", "plan")

    def none(text: str, schema: Schema, engine: str) -> Plan:
        raise ValueError("no such word any more")

    assert "no such word" in memory.replay(2, none).differences[0].got


def test_a_run_without_images_cannot_be_undone(memory: Memory) -> None:
    memory.execute(PRICE, {"name": "pear", "price": "1.11"}, history=False)
    with pytest.raises(Error) as failed:
        memory.replay(2, recorded)
    assert failed.value.message.code == "CM603"


def test_runs_that_are_not_there(memory: Memory) -> None:
    for number in (0, 99):
        with pytest.raises(Error) as failed:
            memory.replay(number, recorded)
        assert failed.value.message.code == "CM602"


def test_calls_are_answered_from_the_journal(tmp_path: Path) -> None:
    double: Any = Double()
    with shop(tmp_path / "a.db", double) as memory:
        memory.execute(call_plan(), clock=DAY)
        memory.execute(call_plan(), clock=DAY)
        assert memory.replay(2, recorded).same
        rebuilt = memory.replay_all("sqlite://", recorded)
        assert rebuilt.same, rebuilt
        assert double.calls == 2
        rebuilt = memory.replay_all(f"sqlite:///{tmp_path}/new.db", recorded)
        with connect(str(tmp_path / "new.db")) as made:
            assert made.replay(3, recorded).same
            assert made.verify() == []
        memory.link.run("update com_call set result = '[[5]]' where run = 2", {})
        assert memory.verify() != []
        found = memory.replay(2, recorded)
        assert not found.same
        for text in ("'['", "'7'", "null", "x'00'"):
            memory.link.run(f"update com_call set result = {text} where run = 2", {})
            assert memory.verify() != []
            assert not memory.replay(2, recorded).same
        memory.link.run("update com_call set failure = '{}' where run = 2", {})
        assert not memory.replay(2, recorded).same
        memory.link.run("delete from com_call where run = 3", {})
        assert not memory.replay(3, recorded).same


def test_a_call_that_failed_fails_again(tmp_path: Path) -> None:
    double: Any = Double()

    def broken() -> None:
        raise ValueError("out of order")

    double.during = broken
    with shop(tmp_path / "a.db", double) as memory:
        for key in (None, "once"):
            with pytest.raises(RunError) as failed:
                memory.execute(call_plan(), key=key)
            assert failed.value.message.code == "CM531"
            found = memory.replay(failed.value.run_id or 0, recorded)
            assert found.same, found.differences
        assert double.calls == 2
        assert memory.verify() == []
