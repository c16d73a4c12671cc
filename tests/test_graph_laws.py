"""A match finds just what a search over the whole graph finds, on every engine.

COM_EXAMPLES multiplies the number of graphs and patterns that are drawn.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

import com
from com.source import Source
from tests import reference_graph as reference
from tests import servers

EXAMPLES = float(os.environ.get("COM_EXAMPLES", "1"))
SHARE = {"sqlite": 300, "duckdb": 40, "postgres": 40, "mysql": 30}
"""How many examples an engine gets: the others are slower to fill."""
TABLES = ("place", "person", "knows", "visits", "near")


def filled(memory: com.Memory, rows: dict[str, list[tuple[Any, ...]]]) -> None:
    """Puts a graph's rows in the place of those that are there."""
    columns = {t.name: [c.name for c in t.columns] for t in memory.schema.tables}
    quote = memory.link.quote
    memory.link.begin()
    for table in reversed(TABLES):
        memory.link.run(f"delete from {quote(table)}", {})
    for table in TABLES:
        names = ", ".join(map(quote, columns[table]))
        for row in rows[table]:
            values = ", ".join("null" if v is None else f"'{v}'" if isinstance(v, str) else str(v) for v in row)
            memory.link.run(f"insert into {quote(table)} ({names}) values ({values})", {})
    memory.link.commit()


def found_by(memory: com.Memory, query: reference.Query, graph: Any) -> Counter[Any] | None:
    """The rows that com finds; None if it says that nothing could match, that nothing which fits the whole pattern has
    a property, or that there are too many ways."""
    text = f"program p;\nstep s: {reference.text(query)};\n"
    found = [d for d in com.check(text, memory.schema) if d.severity == "error"]
    if found:
        assert {d.code for d in found} <= {"CM229", "CM344", "CM347"}, str(com.library.CheckError(found, Source(text)))
        if all(d.code == "CM344" for d in found):
            assert not reference.can_match(graph, query), text
        return None
    outcome = memory.dry_run(com.compile(text, memory.schema, engine=memory.engine))
    return Counter(outcome.rows)


@pytest.mark.parametrize("engine", servers.ENGINES)
def test_a_match_finds_what_a_search_finds(engine: str, fresh: Callable[[str], str]) -> None:
    with com.create(fresh(engine), com.read_schema(reference.SCHEMA)) as memory:

        @settings(
            max_examples=int(SHARE[engine] * EXAMPLES),
            deadline=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.integers(0, 1 << 32))
        def law(seed: int) -> None:
            graph, rows, query = reference.drawn(Random(seed))
            filled(memory, rows)
            found = found_by(memory, query, graph)
            event("refused" if found is None else "no rows" if not found else "rows")
            if found is not None:
                wanted = Counter(reference.rows(graph, query))
                assert found == wanted, f"{reference.text(query)}\n{rows}"

        law()
