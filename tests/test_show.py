"""The formatter: parse and show undo each other, and comments are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from com.compiler import parse
from com.compiler.parse import parse_expression, parse_program, parse_schema
from com.compiler.show import show
from com.node import Node, walk
from com.source import Source
from tests import strategies
from tests.test_parse import EXAMPLES, SOME, expr, program, step


def formatted(text: str) -> str:
    return show(program(text))


def law(tree: Node, read: Any) -> None:
    text = show(tree)
    again, found = read(Source(text))
    assert not found, text
    assert again == tree, text
    assert show(again) == text


@SOME
@given(strategies.programs())
def test_programs_are_read_as_they_were_shown(tree: Node) -> None:
    law(tree, parse_program)


@SOME
@given(strategies.schemas())
def test_schemas_are_read_as_they_were_shown(tree: Node) -> None:
    law(tree, parse_schema)


@SOME
@given(strategies.expressions())
def test_expressions_are_read_as_they_were_shown(tree: Node) -> None:
    law(tree, parse_expression)


def notes(tree: Any) -> list[str]:
    """All comments and titles of a program."""
    titles = [f"-- {line}".rstrip() for node in walk(tree) for line in getattr(node, "title", ())]
    return sorted([*(comment.text for comment in tree.comments), *titles])


@SOME
@given(strategies.programs(), st.data())
def test_comments_are_kept_and_none_becomes_a_title(tree: Any, data: st.DataObject) -> None:
    text = show(tree)
    tokens = parse._Reading(Source(text), parse.tables()).lex(0, len(text))
    forms = st.sampled_from([" -- {}\n", "\n-- {}\n", "\n-- {}\n\n", "\n\n-- {}\n"])
    places = data.draw(st.lists(st.tuples(st.sampled_from(tokens), forms), max_size=5))
    for number, (token, form) in enumerate(sorted(places, key=lambda place: -place[0][2])):
        text = text[: token[2]] + form.format(f"c{number}") + text[token[2] :]
    first = program(text)
    assert len(notes(first)) == len(notes(tree)) + len(places)
    shown = show(first)
    second = program(shown)
    assert second == first
    assert notes(second) == notes(first)
    assert show(second) == shown


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_examples_stay_as_they_are(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    read = parse_schema if "create table" in text else parse_program
    tree, found = read(Source(text))
    assert not found
    again, _ = read(Source(show(tree)))
    assert again == tree and show(again) == show(tree)
    assert notes(again) == notes(tree)


def test_what_does_not_fit_on_a_line_is_broken_by_clause() -> None:
    assert formatted(
        "PROGRAM p;\n-- Days\nstep days: select sale_date, SUM(total_price) revenue from sales where date_trunc('month', "
        "sale_date) = $month and total_price > 0 group by sale_date order by 2 desc limit 3; return $days; answer 'x';"
    ) == (
        "program p;\n\n-- Days\nstep days:\n  select sale_date, SUM(total_price) as revenue\n  from sales\n"
        "  where date_trunc('month', sale_date) = $month and total_price > 0\n  group by sale_date\n"
        "  order by 2 desc limit 3;\n\nreturn $days;\nanswer 'x';\n"
    )


def test_comments_stay_near() -> None:
    text = (
        "-- alone\n\n-- title\nprogram p; -- behind\n\n-- not a title\n\nstep a: -- here\n  select x, -- first\n"
        "    -- second\n    y\n  from t -- the table\n  -- above where\n  where x = 1 -- one\n    and y = 2; -- two\n\n"
        "-- above the answer\nanswer 'x';\nif $x { -- why\n  -- inside\n}\n\n-- last\n"
    )
    assert formatted(text) == text


def test_blocks() -> None:
    text = (
        "program p;\n\nif $x {\n  step a: select 1;\n} else if $y {\n  -- Title\n  step b: select 2;\n} else {\n"
        "  answer 'none';\n}\n\nfor each x in $a {\n}\n"
    )
    assert formatted(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('"a" + "A b" + t."x" + "from".select', '"a" + "A b" + t.x + "from".select'),
        ("((a)) AND (b OR c)", "a and (b or c)"),
        ("- - a", "-(-a)"),
        ("a - (b - c)", "a - (b - c)"),
        ("(a - b) - c", "a - b - c"),
        ("LEFT(a, 1)", "left(a, 1)"),
        ("extract(YEAR from d)", "extract(YEAR from d)"),
        ("x in ($a.b)", "x in ($a.b)"),
        ("'it''s'", "'it''s'"),
        ('"unbounded".a + "current"(1)', '"unbounded".a + "current"(1)'),
        ("count( * ) over ()", "count(*) over ()"),
    ],
)
def test_expressions_alone(text: str, shown: str) -> None:
    assert show(expr(text)) == shown


def test_operations_alone() -> None:
    assert show(step("delete from t x where TRUE")) == "delete from t as x where true"
    assert show(step("(SELECT 1) UNION all (select 2 limit 1)")) == "select 1 union all (select 2 limit 1)"


def test_texts_stand_in_the_quotes_that_need_no_doubling() -> None:
    assert formatted("program p; answer 'it''s {$x} {{';") == 'program p;\n\nanswer "it\'s {$x} {{";\n'
    assert formatted("program p; answer 'it''s \"{$x}\"';") == "program p;\n\nanswer 'it''s \"{$x}\"';\n"


def test_nothing_is_shown_as_nothing() -> None:
    assert formatted("") == ""
    assert formatted("-- only a comment") == "-- only a comment\n"
