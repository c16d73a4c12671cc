"""Values of every type come back from every engine as they went in, by whatever way: equal, and with equal hashes.

COM_EXAMPLES multiplies the number of examples.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Context, Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import com
from com.runtime.canon import canonical, shown
from com.schema import BOOL, BYTES, DATE, FLOAT, INT, JSON, TEXT, TIMESTAMP, Type, decimal
from com.values import normal_json
from tests.test_laws_engines import Engines

EXAMPLES = int(20 * float(os.environ.get("COM_EXAMPLES", "1")))
CLOCK = datetime(2024, 2, 29, 13, 5)
DIGITS_OF_SQLITE = 15
WIDE = Context(prec=60)

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12) | st.sampled_from(
    [
        "",
        " ",
        "a ",
        "it's",
        '"',
        "\\",
        "\\u0000",
        "\\x00",
        "%s",
        ":p1",
        "$1",
        "?",
        "null",
        "\ufeff",
        "\u2028",
        "e\u0301",
        "🍎",
        "\U0010ffff",
        "{}",
        "--",
        "\x7f\x1b",
        "\r\n",
    ]
)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 1, -1, 2**53 + 1, 2**31, 2**63 - 1, -(2**63)])
FLOATS = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True) | st.sampled_from(
    [0.1, 0.1 + 0.2, 1e15, 1e16, 1e17, 123456789012345680.0, 5e-324, 1.7976931348623157e308, 1e-5, 1e22, 1e23, -1e-7]
)
DATA = st.recursive(
    st.none() | st.booleans() | NUMBERS | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def decimals(draw: st.DrawFn) -> Type:
    precision = draw(st.integers(1, 38))
    return decimal(precision, draw(st.integers(0, min(precision, 30))))


TYPES = st.sampled_from([INT, FLOAT, TEXT, BOOL, DATE, TIMESTAMP, JSON, BYTES]) | decimals()


def values(type_: Type) -> st.SearchStrategy[Any]:
    """Values of a type, not null."""
    most = 10**type_.precision - 1 if type_.kind == "decimal" else 0
    return {
        "int": NUMBERS,
        "float": FLOATS.map(lambda v: v + 0.0),
        "decimal": st.integers(-most, most).map(lambda n: com_decimal(n, type_.scale)),
        "text": TEXTS,
        "bool": st.booleans(),
        "date": st.dates() | st.sampled_from([date.min, date.max, date(999, 12, 31)]),
        "timestamp": st.datetimes()
        | st.sampled_from([datetime.min, datetime.max, datetime(1969, 12, 31, 23, 59, 59, 1)]),
        "json": DATA.filter(lambda v: v is not None).map(normal_json),
        "bytes": st.binary(max_size=12),
    }[type_.kind]


def com_decimal(units: int, scale: int) -> Decimal:
    return Decimal(units).scaleb(-scale, WIDE)


class Case(NamedTuple):
    """A table of some columns, and rows for it: the first two may hold nulls."""

    types: tuple[Type, ...]
    rows: tuple[tuple[Any, ...], ...]

    @property
    def names(self) -> list[str]:
        return [f"c{i}" for i in range(len(self.types))]

    @property
    def schema(self) -> str:
        columns = ", ".join(f"{name} {type_}" for name, type_ in zip(self.names, self.types, strict=True))
        return f"create table t (id int primary key, {columns});"

    @property
    def is_exact(self) -> bool:
        """Whether SQLite keeps all digits."""
        return all(t.kind != "decimal" or t.precision <= DIGITS_OF_SQLITE for t in self.types)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    types = tuple(draw(st.lists(TYPES, min_size=1, max_size=4)))
    loose = st.tuples(*[st.none() | values(t) for t in types])
    whole = st.tuples(*[values(t) for t in types])
    return Case(types, (draw(loose), draw(loose), *draw(st.lists(whole, min_size=1, max_size=3))))


def literal(value: Any, type_: Type) -> str:
    """A value as a program writes it."""
    if value is None:
        return f"cast(null as {type_})"
    if type_.kind == "json":
        made = json.dumps(value)
    elif type_.kind in ("int", "decimal", "bool"):
        return str(canonical(value, type_)).lower()
    else:
        made = str(canonical(value, type_))
    quoted = "'" + made.replace("'", "''") + "'"
    return quoted if type_.kind == "text" else f"{type_.kind} {quoted}" if type_.is_time else f"{quoted}::{type_}"


def program(case: Case) -> tuple[str, dict[str, Any]]:
    """Puts the first row as parameters, the second as literals, the others as rows and as a step's rows; gives all, and
    which of them lists hold."""
    fields = list(zip(case.names, case.types, strict=True))
    lists = [(n, t) for n, t in fields if t.kind != "json"]
    names, many = ", ".join(case.names), case.rows[2:]
    head = [
        *(f"{n} {t} = null" for n, t in fields),
        f"items many {{id int, {', '.join(f'{n} {t}' for n, t in fields)}}}",
    ]
    head += [f"l{n} {t}[]" for n, t in lists]
    written = ", ".join(literal(v, t) for v, t in zip(case.rows[1], case.types, strict=True))
    columns = ", ".join(f"i.{n}" for n in case.names)
    found = ", ".join(f"(select count(*) from t where {n} in $l{n}) as {n}" for n, _ in lists)
    text = f"""program p({", ".join(head)});
step one: insert into t (id, {names}) values (1, {", ".join(f"${n}" for n in case.names)});
step two: insert into t (id, {names}) values (2, {written});
step more: insert into t (id, {names}) select i.id, {columns} from $items as i;
step all: select * from t where id <> 0;
step again: insert into t (id, {names}) select i.id + 100, {columns} from $all as i;
step held -> one: select {found or "1 as x"};
answer '{{$c0}}';
return select * from t;
"""
    given = {n: v for n, v in zip(case.names, case.rows[0], strict=True) if v is not None}
    items = [dict(zip(["id", *case.names], (i, *row), strict=True)) for i, row in enumerate(many, 3)]
    taken = {f"l{n}": [row[case.names.index(n)] for row in many] for n, _ in lists}
    return text, {**given, **taken, "items": items}


CHANGE = """program change;
step turned: update t set {} where id < 100;
step gone: delete from t where id >= 101;
"""


def counted(case: Case) -> list[int]:
    """How many rows of the table each list holds."""
    made = []
    for i, type_ in enumerate(case.types):
        if type_.kind != "json":
            column, many = [row[i] for row in case.rows], [row[i] for row in case.rows[2:]]
            made.append(2 * sum(v is not None and v in many for v in column))
    return made


@pytest.fixture(scope="module")
def engines() -> Iterator[Engines]:
    made = Engines()
    yield made
    made.close()


def check(memory: com.Memory, case: Case) -> Any:
    """What the case's runs give on a memory: checked against its values, then what must be the same on each engine."""
    text, arguments = program(case)
    wanted = [(i + n, *row) for n in (0, 100) for i, row in enumerate(case.rows, 1)]
    made = com.compile(text, memory.schema, engine=memory.engine)
    done = memory.execute(made, arguments, clock=CLOCK)
    assert list(done.rows) == wanted
    assert [tuple(map(type, row)) for row in done.rows] == [tuple(map(type, row)) for row in wanted]
    assert done.answer == shown(case.rows[0][0], case.types[0])
    held = next(s for s in done.steps if s.path == "held")
    names = ["id", *case.names]
    images = [dict(zip(names, row, strict=True)) for row in wanted]
    assert [(c.before, c.after) for c in done.changes] == [(None, image) for image in images]
    turned = ", ".join(f"{n} = {literal(v, t)}" for n, v, t in zip(case.names, case.rows[1], case.types, strict=True))
    changed = memory.execute(com.compile(CHANGE.format(turned), memory.schema, engine=memory.engine), clock=CLOCK)
    turning = [c for c in changed.changes if c.after]
    assert all(c.before == images[c.key[0] - 1] for c in turning)
    assert all(c.after == {**images[1], "id": c.key[0]} for c in turning)
    assert len(changed.changes) - len(turning) == len(case.rows)
    for run in (2, 1):
        assert memory.replay(run).same, memory.replay(run).differences
    steps = [(s.path, s.inputs, s.result, s.changes) for s in (*done.steps, *changed.steps)]
    return steps, done.answer, memory.digest(), held.result


def test_values_of_every_type_come_back(engines: Engines) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate] + [Phase.shrink] * ("COM_SHRINK" in os.environ),
    )
    @given(cases())
    def law(case: Case) -> None:
        schema = com.read_schema(case.schema)
        found: dict[str, Any] = {}
        for engine in ("sqlite", *engines.found):
            if engine == "sqlite" and not case.is_exact:
                continue
            engines.empty(engine)
            with com.create(engines.url(engine), schema) as memory:
                try:
                    found[engine] = check(memory, case)
                    rebuilt = memory.replay_all("sqlite://" if case.is_exact else "duckdb:///:memory:")
                    assert rebuilt.same, rebuilt.difference
                except Exception as error:
                    error.add_note(engine)
                    raise
        first = next(iter(found.values()))
        for engine, results in found.items():
            assert results == first, engine

    law()


REFUSED = [
    ("x text", {"x": "a\0b"}), ("x text[]", {"x": ["a", "\0"]}), ("x many {t text}", {"x": [{"t": "\0"}]}),
    ("x json", {"x": {"a": "\0"}}), ("x json", {"x": {"\0": 1}}), ("x text", {"x": "\ud800"}),
    ("x json", {"x": ["\udc00"]}), ("x float", {"x": float("nan")}), ("x float", {"x": float("inf")}),
    ("x json", {"x": float("nan")}), ("x int", {"x": 2**63}), ("x decimal(3,1)", {"x": "100"}),
    ("x decimal(3,1)", {"x": "NaN"}), ("x date", {"x": "0000-01-01"}), ("x bytes", {"x": "0g"}),
]  # fmt: skip


def test_what_no_engine_could_keep_is_refused_before_it_gets_there(engines: Engines) -> None:
    """NUL and its like: with one code, whatever the engine and the way in."""
    schema = com.read_schema("create table t (id int primary key);")
    for engine in ("sqlite", *engines.found):
        engines.empty(engine)
        with com.create(engines.url(engine), schema) as memory:
            for declared, arguments in REFUSED:
                step = "select * from $x" if "many" in declared else "select 1 as y where 1 = 1"
                made = com.compile(f"program p({declared}); return {step};", schema, engine=engine)
                with pytest.raises(com.Error) as failed:
                    memory.execute(made, arguments, clock=CLOCK)
                assert failed.value.message.code == "CM596", (engine, declared)
