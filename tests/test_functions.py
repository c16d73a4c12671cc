"""Each function and operator gives its examples' values on each engine, whatever its arguments are written as."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from test_engines import new_memory

import com
from com.functions import FUNCTIONS, OPERATORS
from tests import servers
from tests.functions import CLOCK, SCHEMA, WAYS, Example, filling, pages, tables, told
from tests.functions_page import page

PAGE = Path(__file__).parent.parent / "docs" / "functions.md"
MARK = "<!-- generated: begin -->\n\n"
TABLES = tables()
NAMES = {**FUNCTIONS, **OPERATORS}


def test_every_function_and_operator_has_examples() -> None:
    """A plain one, and one with null; of each argument, where null in it makes null."""
    assert set(NAMES) <= set(TABLES)
    assert len(TABLES) == sum(len(found.sections) for found in pages())
    for name, examples in TABLES.items():
        assert len(examples) >= 3, name
        assert name in NAMES or name.startswith("cast "), name
        texts = [e.text for e in examples]
        assert len(set(texts)) == len(texts), name
        function = NAMES.get(name)
        if function is not None and function.kind == "scalar" and function.nulls == "strict":
            assert any(e.value == "null" for e in examples), name


@pytest.fixture(scope="module", params=servers.ENGINES)
def memory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[com.Memory]:
    engine: str = request.param
    if reason := servers.missing(engine):
        pytest.skip(f"{engine} is not tested: {reason}")
    url, remove = (
        ("sqlite://", lambda: None) if engine == "sqlite" else new_memory(engine, tmp_path_factory.mktemp("memory"))
    )
    with com.create(url, SCHEMA) as made:
        made.execute(com.compile(filling(), made.schema, engine=made.engine), clock=CLOCK)
        yield made
    remove()


def differences(memory: com.Memory, way: str, examples: list[Example]) -> list[str]:
    found = told(memory, WAYS[way](examples))
    if len(examples) > 1 and (
        isinstance(found, str) or any(f[1] != e.on(memory.engine) for f, e in zip(found, examples, strict=True))
    ):
        return [line for e in examples for line in differences(memory, way, [e])]
    wrong = []
    for example, is_ in zip(examples, [("", found)] if isinstance(found, str) else found, strict=True):
        if is_[1] != example.on(memory.engine) or (way == "written" and is_[0] not in ("", example.type)):
            wrong.append(f"{example.text} is {is_[0]} {is_[1]}, not {example.type} {example.on(memory.engine)}")
    return wrong


@pytest.mark.parametrize("name", TABLES)
def test_examples(memory: com.Memory, name: str) -> None:
    examples = TABLES[name]
    going = [e for e in examples if not e.on(memory.engine).startswith("CM")]
    plain = [[e for e in going if (" over (" in e.text) == over] for over in (False, True)]
    failing = [[e] for e in examples if e.on(memory.engine).startswith("CM")]
    wrong = [
        f"{way}: {line}"
        for way in WAYS
        if way != "as columns" or not examples[0].is_over_rows
        for some in (*plain, *failing)
        if some
        for line in differences(memory, way, some)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_page_is_up_to_date(request: pytest.FixtureRequest) -> None:
    """docs/functions.md, behind its first lines; `pytest --update` writes it."""
    before, mark, inside = PAGE.read_text(encoding="utf-8").partition(MARK)
    assert mark
    if request.config.getoption("--update"):
        PAGE.write_text(f"{before}{mark}{page()}", encoding="utf-8")
    else:
        assert inside == page(), "run pytest --update tests/test_functions.py"
