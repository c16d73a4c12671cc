"""The front door: what it offers, and how it is loaded."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import com

SCHEMA = "create table t (id int primary key, v text);"


def test_the_names_are_sorted_and_there() -> None:
    assert com.__all__ == sorted(com.__all__)
    assert all(getattr(com, name) is not None for name in com.__all__)
    with pytest.raises(AttributeError):
        com.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_the_stub_says_the_same(root: Path) -> None:
    stub = (root / "com" / "__init__.pyi").read_text(encoding="utf-8")
    assert sorted([*re.findall(r" as (\w+)", stub), "__version__"]) == com.__all__


def test_importing_it_loads_nothing() -> None:
    code = "import sys, com; print([m for m in sys.modules if m.startswith('com.')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_what_does_not_check_shows_where() -> None:
    with pytest.raises(com.CheckError) as caught:
        com.compile("program p; step a: select v from tt;", com.read_schema(SCHEMA), name="p.com")
    assert caught.value.message.code == "CM201"
    assert [d.code for d in caught.value.diagnostics] == ["CM201"]
    assert " --> p.com:1:34" in str(caught.value)
    with pytest.raises(com.CheckError):
        com.read_schema("create table t (id nothing);")


def test_a_memory_in_ram() -> None:
    with com.create("sqlite://", com.read_schema(SCHEMA)) as memory:
        put = com.compile("program p(v text); step a: insert into t (id, v) values (1, $v);", memory.schema)
        before = memory.digest()
        assert memory.dry_run(put, v="x").changes[0].after == {"id": 1, "v": "x"}
        assert memory.digest() == before
        outcome = com.execute(put, memory, v="x")
        assert outcome.run_id is not None and memory.replay(outcome.run_id).same
        with pytest.raises(com.RunError) as caught:
            com.execute(put, memory, v="y")
        assert isinstance(caught.value, com.Error) and caught.value.diagnostic.code == "CM503"
