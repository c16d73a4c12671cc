"""Databases that com did not make: what is odd in them must not change what a program means."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

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
