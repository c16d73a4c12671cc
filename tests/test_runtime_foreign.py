"""Memories that com did not make: what SQLite lets stand in them, and what they do behind a program's back."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import com
from com.library import Memory
from com.runtime.outcome import RunError


def opened(path: Path, *statements: str, **options: Any) -> Memory:
    """A memory whose tables were made by plain SQL."""
    with sqlite3.connect(path) as driver:
        for statement in statements:
            driver.execute(statement)
    driver.close()
    return com.connect(str(path), **options)


def run(memory: Memory, text: str, **parameters: Any) -> Any:
    return memory.execute(com.compile(text, memory.schema), parameters)


FRUITS = "create table fruits (fruit_id integer primary key, fruit_name text not null unique, stock int)"
ADD = "program add(name text);\n\nstep put: insert into fruits (fruit_name) values ($name);\n"
DROP = "program drop_it(name text);\n\nstep out: delete from fruits where fruit_name = $name;\n"


def test_nulls_in_a_text_key(tmp_path: Path) -> None:
    table = "create table notes (said text primary key, n int)"
    with opened(
        tmp_path / "a.db", table, "insert into notes values (null, 1), (null, 2), ('a', 3), ('b', 4)"
    ) as memory:
        notes = memory.schema.table("notes")
        assert notes is not None and notes.columns[0].nullable
        more = "program more();\n\nstep all_of: update notes set n = n + 1 where true returning said, n;\nreturn $all_of;\n"
        with pytest.raises(RunError) as failed:
            run(memory, more)
        assert failed.value.message.code == "CM522" and "key is null" in failed.value.diagnostic.text
        assert memory.replay(1).same
        outcome = memory.execute(com.compile(more, memory.schema), history=False)
        assert sorted(outcome.rows, key=str) == [("a", 4), ("b", 5), (None, 2), (None, 3)]
        assert run(memory, more.replace("true", "said is not null")).rows == (("a", 5), ("b", 6))
    with opened(tmp_path / "b.db", "create table t (a text primary key, b int) without rowid") as memory:
        table_ = memory.schema.table("t")
        assert table_ is not None and not table_.columns[0].nullable


def test_computed_columns_are_known(tmp_path: Path) -> None:
    table = "create table t (a integer primary key, b int, c int generated always as (b * 2) stored)"
    with opened(tmp_path / "a.db", table) as memory:
        found = memory.schema.table("t")
        assert found is not None and [c.computed for c in found.columns] == [False, False, True]
        assert com.schema.load_schema(com.schema.dump_schema(memory.schema)) == memory.schema


def test_ids_are_not_given_out_again_after_a_delete(tmp_path: Path) -> None:
    filled = "insert into fruits values (1, 'apple', 1), (7, 'fig', 1)"
    with opened(tmp_path / "a.db", FRUITS, filled) as memory:
        run(memory, DROP, name="fig")
        assert run(memory, ADD, name="kiwi").changes[0].key == (8,)
        both = DROP.replace("drop_it", "both") + "step put: insert into fruits (fruit_name) values ($name);\n"
        assert run(memory, both, name="kiwi").changes[-1].key == (9,)
        assert memory.verify() == []


def test_ids_of_an_autoincrement_table(tmp_path: Path) -> None:
    table = FRUITS.replace("primary key", "primary key autoincrement")
    with opened(tmp_path / "a.db", table, "insert into fruits values (5, 'fig', 1)", "delete from fruits") as memory:
        outcome = run(memory, ADD, name="kiwi")
        assert outcome.changes[0].key == (6,)
        assert memory.replay(outcome.run_id).same


@pytest.mark.parametrize("last", [2**63 - 1, 2**63 - 2])
def test_ids_end_somewhere(tmp_path: Path, last: int) -> None:
    many = "program many(names many {n text});\n\nstep put: insert into fruits (fruit_name) select n from $names;\n"
    with opened(tmp_path / "a.db", FRUITS, f"insert into fruits values ({last}, 'fig', 1)") as memory:
        with pytest.raises(RunError) as failed:
            run(memory, many, names=[["kiwi"], ["plum"]])
        assert failed.value.message.code == "CM509"


@pytest.mark.parametrize(
    ("statement", "text", "cause"),
    [
        ("create trigger tr after insert on fruits begin delete from lines; end", ADD, "the trigger tr"),
        ("create table l2 (f int references fruits on delete cascade)", DROP, "on delete cascade"),
        ("create table l2 (f int references FRUITS on delete set null)", DROP, "on delete set null"),
        ("create trigger tr after insert on fruits begin select raise(ignore); end", ADD, "skips rows"),
    ],
)
def test_changes_that_com_would_not_see(tmp_path: Path, statement: str, text: str, cause: str) -> None:
    with opened(tmp_path / "a.db", FRUITS, "create table lines (a integer primary key)", statement) as memory:
        for execute in (memory.execute, memory.dry_run):
            with pytest.raises(com.Error) as failed:
                execute(com.compile(text, memory.schema), {"name": "fig"})
            assert failed.value.message.code == "CM522"
            assert cause in str(failed.value)
        plan = com.compile(text, memory.schema)
        if "raise" in statement:
            with pytest.raises(com.Error):
                memory.execute(plan, {"name": "fig"}, history=False)
        else:
            memory.execute(plan, {"name": "fig"}, history=False)
        other = ADD if text is DROP else DROP
        if "references" in statement:
            run(memory, other, name="kiwi")


@pytest.mark.parametrize("word", ["replace", "ignore"])
def test_conflict_clauses(tmp_path: Path, word: str) -> None:
    table = FRUITS.replace("unique", f"unique ON  CONFLICT {word}")
    with opened(tmp_path / "a.db", table, history=False) as memory:
        with pytest.raises(com.Error) as failed:
            run(memory, ADD, name="fig")
        assert failed.value.message.code == "CM522"


def test_a_trigger_that_only_forbids_is_fine(tmp_path: Path) -> None:
    trigger = (
        "create trigger no after insert on fruits when new.fruit_name = 'delete' begin"
        " select raise(abort, 'do not insert this') where replace(new.fruit_name, 'a', 'b') = 'delete'; end"
    )
    with opened(tmp_path / "a.db", FRUITS, trigger) as memory:
        assert len(run(memory, ADD, name="fig").changes) == 1
        with pytest.raises(RunError) as failed:
            run(memory, ADD, name="delete")
        assert failed.value.message.code == "CM521"


def test_messages_hold_no_hidden_value(tmp_path: Path) -> None:
    filled = "insert into fruits values (1, 'fig', 1), (2, cast(x'736563726574ff' as text), 1), (3, x'00', 1)"
    with opened(tmp_path / "a.db", FRUITS, filled) as memory:
        for key in (2, 3):
            for text in (
                "program p(k int);\n\nstep s: update fruits set stock = 2 where fruit_id = $k;\n",
                "program p(k int);\n\nstep s: select fruit_name from fruits where fruit_id = $k;\nreturn $s;\n",
                "program p(k int);\n\nstep s: delete from fruits where fruit_id = $k;\n",
            ):
                try:
                    outcome = run(memory, text, k=key)
                    str(outcome.changes)
                except com.Error as failed:
                    assert failed.message.code == "CM512", failed
                    assert "secret" not in str(failed)


def test_a_locked_memory_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(tmp_path / "a.db", FRUITS).close()
    with com.connect(str(tmp_path / "a.db"), timeout=0.001) as memory:
        other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
        other.execute("begin exclusive")
        for do in (lambda: memory.schema, memory.log, lambda: com.connect(str(tmp_path / "a.db"), timeout=0.001)):
            with pytest.raises(com.Error) as failed:
                do()
            assert failed.value.message.code == "CM516"
            assert "after 5 tries" in str(failed.value)
        other.execute("rollback")
        assert memory.schema.table("fruits") is not None
        other.close()


def test_a_text_with_half_a_character(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db", FRUITS) as memory:
        with pytest.raises(com.Error) as failed:
            run(memory, ADD, name="\ud800")
        assert failed.value.message.code == "CM596"
        assert "NUL" not in str(failed.value) and "surrogate" in str(failed.value)
