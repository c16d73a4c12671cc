"""Values of each type go into a memory of each engine and come back as they were: as parameters, literals, lists and
relations, in columns, in row images, and when the run is replayed. COM_EXAMPLES multiplies the number of examples."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import com
from com.compiler.engines import EXECUTED
from tests import servers, typed
from tests.test_engines import new_memory

TYPES = {
    "i": "int", "d": "decimal(15, 6)", "e": "decimal(4, 4)", "f": "float", "w": "text", "b": "bool", "day": "date",
    "at": "timestamp", "j": "json", "h": "bytes",
}  # fmt: skip
KINDS = {name: kind.partition("(")[0] for name, kind in TYPES.items()}
SCHEMA = f"create table kept (id int primary key, {', '.join(f'{n} {t}' for n, t in TYPES.items())});"
NAMES = ", ".join(TYPES)
PARAMETERS = ", ".join(f"{n} {t} = null" for n, t in TYPES.items())
ONE = f"""program one(id int, {PARAMETERS});
step put: insert into kept (id, {NAMES}) values ($id, {", ".join(f"${n}" for n in TYPES)});
step back -> one: select {NAMES} from kept where id = $id;
return select {", ".join(f"${n} as {n}" for n in TYPES)}, {", ".join(f"$back.{n} as {n}_" for n in TYPES)};"""
MANY = f"""program rows(items many {{id int, {", ".join(f"{n} {t}" for n, t in TYPES.items())}}});
step put: insert into kept (id, {NAMES}) select id, {NAMES} from $items;
return select i.{", i.".join(TYPES)} from $items as i;"""
LISTED = tuple(name for name, kind in TYPES.items() if kind != "json")
LISTS = f"""program lists({", ".join(f"{n} {TYPES[n]}[]" for n in LISTED)});
return select {", ".join(f"count(*) filter (where {n} in ${n}) as {n}" for n in LISTED)} from kept where id = 0;"""

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
floats = st.floats(allow_nan=False, allow_infinity=False)
leaves = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-(2**63), 2**63 - 1),
    "d": st.integers(-(10**15) + 1, 10**15 - 1).map(lambda n: Decimal(n).scaleb(-6)),
    "e": st.integers(-9999, 9999).map(lambda n: Decimal(n).scaleb(-4)),
    "f": floats.filter(lambda v: not v or abs(v) > 1e-300),  # smaller ones some engines take for nought
    "w": texts | st.sampled_from(typed._TEXTS),
    "b": st.booleans(),
    "day": st.dates(),
    "at": st.datetimes(),
    "j": st.recursive(
        leaves, lambda of: st.lists(of, max_size=3) | st.dictionaries(texts, of, max_size=3), max_leaves=6
    ),
    "h": st.binary(max_size=12),
}
SOME = settings(
    max_examples=int((60 if os.environ.get("CI") else 8) * float(os.environ.get("COM_EXAMPLES", "1"))),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
REFUSED = [
    ("w", "a\0b"), ("w", "\ud800"), ("f", math.nan), ("f", math.inf), ("i", 2**63), ("i", 1.5), ("i", True),
    ("d", Decimal("1e9")), ("d", Decimal("NaN")), ("e", Decimal(1)), ("day", "2024-02-30"), ("at", "yesterday"),
    ("b", 2), ("h", "zz"), ("j", {"a": math.nan}), ("j", "a\0"),
]  # fmt: skip


@pytest.fixture(scope="module", params=EXECUTED)
def memory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[com.Memory]:
    engine = request.param
    folder: Path = tmp_path_factory.mktemp(engine)
    if reason := servers.missing(engine):
        pytest.skip(f"{engine} is not tested: {reason}")
    drop: Callable[[], None] = lambda: None  # noqa: E731
    url = f"sqlite:///{folder}/m.db"
    if engine != "sqlite":
        url, drop = new_memory(engine, folder)
    with com.create(url, com.read_schema(SCHEMA)) as made:
        yield made
    drop()


ids = count(1)


def held(value: Any) -> Any:
    """The value as it comes back: a nought has no sign."""
    return value + 0.0 if isinstance(value, float) else value


def images(done: com.Outcome) -> list[dict[str, Any]]:
    return [{k: v for k, v in (c.after or {}).items() if k != "id"} for c in done.changes]


@pytest.mark.parametrize("form", ["parameters", "literals"])
def test_one_by_one(memory: com.Memory, form: str) -> None:
    @SOME
    @given(st.fixed_dictionaries({n: st.none() | VALUES[n] for n in TYPES}))
    def law(values: dict[str, Any]) -> None:
        number = next(ids)
        text, given_ = ONE, {"id": number, **{n: v for n, v in values.items() if v is not None}}
        if form == "literals":
            shown = ", ".join(typed.literal(values[n], KINDS[n]) for n in TYPES)
            text = f"""program said; step put: insert into kept (id, {NAMES}) values ({number}, {shown});
            return select {NAMES} from kept where id = {number};"""
            given_ = {}
        plan = com.compile(text, memory.schema, engine=memory.engine)
        done = memory.execute(plan, given_)
        wanted = tuple(held(values[n]) for n in TYPES)
        assert done.rows == (wanted * (2 if form == "parameters" else 1),)
        assert images(done) == [dict(zip(TYPES, wanted, strict=True))]
        assert memory.replay(done.run_id).same

    law()


def test_as_rows(memory: com.Memory) -> None:
    @SOME
    @given(st.lists(st.fixed_dictionaries(VALUES).filter(lambda row: row["j"] is not None), min_size=1, max_size=4))
    def law(rows: list[dict[str, Any]]) -> None:
        plan = com.compile(MANY, memory.schema, engine=memory.engine)
        done = memory.execute(plan, {"items": [{"id": next(ids), **row} for row in rows]})
        wanted = [{n: held(v) for n, v in row.items()} for row in rows]
        assert [dict(zip(TYPES, row, strict=True)) for row in done.rows] == wanted
        assert images(done) == wanted

    law()


def test_as_lists(memory: com.Memory) -> None:
    plan = com.compile(LISTS, memory.schema, engine=memory.engine)
    put = com.compile(ONE, memory.schema, engine=memory.engine)
    clear = com.compile("program c; step d: delete from kept where id = 0;", memory.schema, engine=memory.engine)

    @SOME
    @given(st.fixed_dictionaries({n: VALUES[n] for n in LISTED}), st.fixed_dictionaries({n: VALUES[n] for n in LISTED}))
    def law(row: dict[str, Any], other: dict[str, Any]) -> None:
        memory.execute(clear)
        memory.execute(put, {"id": 0, **row})
        assert memory.dry_run(plan, {n: [other[n], v] for n, v in row.items()}).rows == ((1,) * len(LISTED),)
        found = memory.dry_run(plan, {n: [v] for n, v in other.items()}).rows[0]
        assert found == tuple(int(held(row[n]) == held(other[n])) for n in LISTED)

    law()


@pytest.mark.parametrize(("name", "value"), REFUSED, ids=lambda v: str(v).encode("unicode_escape").decode())
def test_what_no_column_holds_is_refused(memory: com.Memory, name: str, value: Any) -> None:
    before = memory.digest()
    plan = com.compile(ONE, memory.schema, engine=memory.engine)
    with pytest.raises(com.Error):
        memory.execute(plan, {"id": next(ids), name: value})
    assert memory.digest() == before


def test_the_edges(memory: com.Memory) -> None:
    edges = {"day": date.min, "at": datetime.max, "i": -(2**63), "e": Decimal("-0.9999"), "w": "\U0010ffff\ufeff\u202e"}
    done = memory.execute(com.compile(ONE, memory.schema, engine=memory.engine), {"id": next(ids), **edges})
    assert images(done) == [{n: edges.get(n) for n in TYPES}]
