"""docs/functions.md: its examples are executed on every engine, and leave out no function."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import com
from com.compiler.engines import EXECUTED
from com.functions import FUNCTIONS
from com.report.rows import value_text
from tests.cases import Block, blocks

PAGE = Path(__file__).parent.parent / "docs" / "functions.md"
EXAMPLES = [b for b in blocks(PAGE.read_text(encoding="utf-8")) if b.kind == "examples"]
SCHEMA = "create table some (id int primary key, n int, d decimal(6, 2), w text, at date);"
FILL = """program fill;
step s: insert into some (id, n, d, w, at)
  values (1, 1, 1.50, 'b', date '2024-01-31'), (2, 2, 2.25, 'a', date '2024-02-29'), (3, 2, null, 'B', null),
  (4, null, -4.00, null, date '2023-12-31');"""


def query(block: Block, example: str) -> str:
    if "each" in block.words:
        return f"program p; return select {example} as x from some order by id;"
    return f"program p; return select {example} as x{' from some' if 'rows' in block.words else ''};"


def shown(value: object) -> str:
    """A value as the page writes it: texts always in quotes."""
    if isinstance(value, str):
        return f"'{value}'"
    return json.dumps(value) if isinstance(value, list | dict) else value_text(value)


@pytest.mark.parametrize("engine", EXECUTED)
@pytest.mark.parametrize("block", EXAMPLES, ids=lambda b: f"line {b.start}")
def test_examples_hold(block: Block, engine: str, fresh: Callable[[str], str]) -> None:
    wrong = []
    with com.create(fresh(engine), com.read_schema(SCHEMA)) as memory:
        memory.execute(com.compile(FILL, memory.schema, engine=engine))
        for line in block.body.splitlines():
            example, _, wanted = line.partition(" → ")
            try:
                done = memory.dry_run(com.compile(query(block, example), memory.schema, engine=engine))
                found = ", ".join(shown(row[0]) for row in done.rows)
            except com.RunError as failed:
                found = failed.message.code
            except com.CheckError as refused:
                found = refused.diagnostics[0].code
            if found != wanted:
                wrong.append(f"{example} → {found}, not {wanted}")
    assert not wrong, "\n" + "\n".join(wrong)


def test_no_function_is_left_out() -> None:
    said = "\n".join(b.body for b in EXAMPLES)
    assert not [name for name in FUNCTIONS if not re.search(rf"(?m)^{name}\(", said)]
    nulls = [f.name for f in FUNCTIONS.values() if f.nulls != "never"]
    assert not [name for name in nulls if not re.search(rf"(?m)^{name}\(.*→ (.*, )?null", said)]
