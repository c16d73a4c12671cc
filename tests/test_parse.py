"""The parser: what is read, what is said about the rest, and that nothing raises."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings

from com.compiler import parse, syntax
from com.compiler.parse import parse_expression, parse_program, parse_schema
from com.compiler.show import show
from com.compiler.slips import RESERVED
from com.diagnostics import Diagnostic
from com.node import walk
from com.source import Source
from tests import strategies

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").rglob("*.com"))
_TIMES = float(os.environ.get("COM_EXAMPLES", "1"))
MANY = settings(max_examples=int(500 * _TIMES), suppress_health_check=[HealthCheck.too_slow])
SOME = settings(max_examples=int(150 * _TIMES), suppress_health_check=[HealthCheck.too_slow])
"""For trees, which take long to make."""


def program(text: str) -> syntax.Program:
    tree, found = parse_program(Source(text))
    assert not found, [d.text for d in found]
    return tree


def step(text: str) -> Any:
    """The operation of a program's one step."""
    (made,) = program(f"program p; step s: {text};").body
    assert isinstance(made, syntax.Step)
    return made.operation


def expr(text: str) -> Any:
    tree, found = parse_expression(Source(text))
    assert not found and tree is not None, [d.text for d in found]
    return tree


def said(text: str) -> list[str]:
    """The codes of a program's messages."""
    return [d.code for d in parse_program(Source(text))[1]]


def mended(text: str, found: list[Diagnostic]) -> str:
    """A text with all fixes made."""
    edits = sorted(
        (edit for d in found if d.fix for edit in d.fix.edits), key=lambda edit: (edit.span.start, edit.span.end)
    )
    for edit in reversed(edits):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text


# ---------------------------------------------------------------- the grammar


def test_the_grammar_has_no_conflict(caplog: pytest.LogCaptureFixture) -> None:
    lark = pytest.importorskip("lark")
    text = (ROOT / "com" / "grammar.lark").read_text(encoding="utf-8")
    old = lark.logger.level
    lark.logger.setLevel(logging.DEBUG)
    lark.logger.propagate = True
    try:
        with caplog.at_level(logging.DEBUG, "lark"):
            lark.Lark(text, parser="lalr", start=["start", "schema", "expression"], debug=True)
    finally:
        lark.logger.setLevel(old)
    assert not [r for r in caplog.records if "onflict" in r.getMessage()]


def test_a_conflict_would_be_seen(caplog: pytest.LogCaptureFixture) -> None:
    lark = pytest.importorskip("lark")
    lark.logger.propagate = True
    old = lark.logger.level
    lark.logger.setLevel(logging.DEBUG)
    try:
        with caplog.at_level(logging.DEBUG, "lark"):
            lark.Lark('start: "a" start? "b"? | "a" "b"', parser="lalr", debug=True)
    finally:
        lark.logger.setLevel(old)
    assert [r for r in caplog.records if "onflict" in r.getMessage()]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_lark_itself_reads_what_the_parser_reads(path: Path, plain_lark: Any) -> None:
    text = path.read_text(encoding="utf-8")
    schema = "create table" in text
    found = (parse_schema if schema else parse_program)(Source(text))[1]
    assert not found
    plain_lark.parse(text, start="schema" if schema else "start")


@pytest.fixture(scope="module")
def plain_lark() -> Any:
    lark = pytest.importorskip("lark")
    text = (ROOT / "com" / "grammar.lark").read_text(encoding="utf-8")
    return lark.Lark(text, parser="lalr", start=["start", "schema", "expression"])


def test_the_words_of_the_language_are_those_of_the_grammar() -> None:
    assert parse.tables().reserved == RESERVED


# ---------------------------------------------------------------- tables


def test_tables_are_written_whole_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tmp_path / "made.tables"
    parse.build_tables(made)
    monkeypatch.setattr(parse, "_TABLES", made)
    monkeypatch.setattr(parse, "_make_tables", lambda text: pytest.fail("they were made again"))
    parse.tables.cache_clear()
    assert parse.tables().actions
    assert [p.name for p in tmp_path.iterdir()] == ["made.tables"]
    parse.tables.cache_clear()


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b"null", b'{"stamp": "old"}', b"STAMPED"])
def test_bad_tables_are_made_anew(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "com" / "grammar.lark").read_text(encoding="utf-8")
    if content == b"STAMPED":  # of the right grammar, but not whole
        content = f'{{"stamp": "{parse._stamp(text)}", "actions": []}}'.encode()
    made = parse._make_tables(text)
    bad = tmp_path / "bad.tables"
    bad.write_bytes(content)
    monkeypatch.setattr(parse, "_TABLES", bad)
    monkeypatch.setattr(parse, "_cache", lambda: tmp_path / "no" / "cache")
    monkeypatch.setattr(parse, "_make_tables", lambda text: made)
    parse.tables.cache_clear()
    assert parse.tables().reserved == RESERVED
    assert bad.read_bytes() != content
    parse.tables.cache_clear()


def test_tables_go_to_the_cache_where_the_package_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = parse._make_tables((ROOT / "com" / "grammar.lark").read_text(encoding="utf-8"))
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(parse, "_TABLES", tmp_path / "file" / "grammar.tables")
    monkeypatch.setattr(parse, "_cache", lambda: tmp_path / "cache" / "grammar.tables")
    monkeypatch.setattr(parse, "_make_tables", lambda text: made)
    parse.tables.cache_clear()
    assert parse.tables().actions
    assert (tmp_path / "cache" / "grammar.tables").is_file()
    parse.tables.cache_clear()


# ---------------------------------------------------------------- what is read


def test_a_program() -> None:
    tree = program(
        "-- What it does,\n-- and why.\nPROGRAM p(a int, names text[], items many {fruit text, qty int}, d date = $today);\n"
        "\n-- alone\n\n-- Find it\nstep x -> one: select 1 as n;\nfor each i in $items { step y: call f($i.qty, most => 3); }\n"
        "return $x;"
    )
    assert tree.header is not None
    assert tree.header.title == ("What it does,", "and why.")
    assert [type(p.type).__name__ for p in tree.header.parameters] == ["TypeName", "ListType", "Shape", "TypeName"]
    first, loop, last = tree.body
    assert isinstance(first, syntax.Step) and first.title == ("Find it",) and first.shape is not None
    assert isinstance(loop, syntax.ForEach) and isinstance(loop.body[0], syntax.Step)
    assert isinstance(last, syntax.ReturnRows)
    assert [comment.text for comment in tree.comments] == ["-- alone"]


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a or b and not c = d", "a or (b and (not (c = d)))"),
        ("a + b * c - d", "(a + (b * c)) - d"),
        ("a || b + c", "a || (b + c)"),
        ("a = b is null", "(a = b) is null"),
        ("a < b like c", "a < (b like c)"),
        ("not a in (1) and b", "(not (a in (1))) and b"),
        ("-a::int", "-(a::int)"),
        ("- a * b", "(-a) * b"),
        ("a is distinct from b = c", "a is distinct from (b = c)"),
        ("a between b + 1 and c || d and e", "(a between (b + 1) and (c || d)) and e"),
        ("a is true", "a is not distinct from true"),
        ("a is not false", "a is distinct from false"),
        ("a != b", "a <> b"),
        ("a div b % c", "(a div b) % c"),
        ("a --b", "a - (-b)"),
    ],
)
def test_precedence_is_that_of_postgresql(text: str, grouped: str) -> None:
    assert expr(text) == expr(grouped)


def test_comparisons_do_not_chain() -> None:
    assert parse_expression(Source("a < b < c"))[1]


def test_kinds_of_in() -> None:
    assert isinstance(expr("x in (1, 2)"), syntax.InList)
    assert isinstance(expr("x in ($items.c)"), syntax.InList)
    assert isinstance(expr("x not in $items.c"), syntax.InPlaceholder)
    assert isinstance(expr("x in (select 1 union (select 2 limit 1))"), syntax.InQuery)
    assert isinstance(expr("x in ((select 1))"), syntax.InList)


def test_intersect_binds_tighter() -> None:
    body = step("select 1 union select 2 intersect select 3 except all select 4").body
    assert (body.op, body.all, body.left.op, body.left.right.op) == ("except", True, "union", "intersect")


def test_an_operand_keeps_its_own_order() -> None:
    body = step("(select 1 order by 1 limit 2) union (select 3) order by 1").body
    assert isinstance(body.left, syntax.Query) and isinstance(body.right, syntax.Select)


@pytest.mark.parametrize(
    "text",
    [
        "select count(*) n, a.* from t a, u left join v using (x, y) group by 1 order by n desc nulls first limit 1",
        "select 1 offset 2",
        "select 1 offset 2 limit 3",
        "select extract(year from d), x::date, left(a, 1), right(a, 2), date '2020-01-01', interval '1 day'",
        "select string_agg(distinct x, ', ' order by y desc) filter (where y > 0) from (select 1)",
        "select sum(x) over (partition by a order by b rows between unbounded preceding and 1 following) from t",
        "select rank() over (range current row), lag(x) over () from $items",
        "select date, timestamp, interval, step, rows, one from t",
        'select "Free Meal Count (K-12)", "a""b" from "my table" as "T"',
        "select 1 from t as from where x is not distinct from $a.from and exists $b and exists ($c) and exists (select 1)",
        "select case x when 1 then 2 else 3 end, case when a then b end, cast(x as decimal(10,2))",
        "(select 1)",
        "insert into t (a, b) values (1, 'it''s'), ($x, (select 1)) on conflict (a) do nothing returning *",
        "insert into t (a) select 1 on conflict (a) do update set a = excluded.a, t.b = b + 1",
        "insert into t (a) select b from u join v on u.a = v.a on conflict (a) do nothing",
        "update t as u set a = 1, u.b = 2 from $items i where u.a = i.a returning a as b",
        "delete from t x where true returning *",
        "call f()",
        "SELECT X FROM T WHERE NOT A ILIKE 'b'",
    ],
)
def test_operations_are_read(text: str) -> None:
    assert show(step(text))


def test_for_needs_no_each() -> None:
    assert program("program p; for x in $s { };;") == program("program p; for each x in $s { }")


def test_an_argument_is_named_either_way() -> None:
    assert step("call f(a = 1)") == step("call f(a => 1)")


def test_types_are_spelled_as_in_com() -> None:
    tree, found = parse_schema(
        Source(
            "create table t (a Integer, b varchar(20), c numeric(5,2), d double precision, e real, f datetime, g bytea);"
        )
    )
    assert not found
    (table,) = tree.items
    assert isinstance(table, syntax.CreateTable)
    assert [item.type.name for item in table.items if isinstance(item, syntax.ColumnDef)] == [
        "int", "text", "decimal", "float", "float", "timestamp", "bytes",
    ]  # fmt: skip


def test_a_schema() -> None:
    tree, found = parse_schema(
        Source(
            "-- Fruit\ncreate table t (a int unique primary key generated always as identity, b text default 'x' not null,"
            " c int check (c > 0) references u (d) references v, primary key (a, b), unique (a), foreign key (a) references u,"
            " check (a > b));\ncreate unique index i on t (a, b); create index j on t (a);"
        )
    )
    assert not found
    table = tree.items[0]
    assert isinstance(table, syntax.CreateTable) and table.title == ("Fruit",) and len(table.items) == 7
    first = table.items[0]
    assert isinstance(first, syntax.ColumnDef) and first.primary_key and first.generated and first.unique


def test_texts_with_braces() -> None:
    tree = program("""program p; answer 'it''s {{ {$a.b + 1} }} {round($c, 2)}'; answer "isn't {$a.x}";""")
    one, two = tree.body
    assert isinstance(one, syntax.Answer) and isinstance(two, syntax.Answer)
    assert [p for p in one.text.parts if isinstance(p, str)] == ["it's { ", " } "]
    assert two.text.parts[0] == "isn't "
    source = "program p; answer 'ab {$x.y + z} cd';"
    (answer,) = program(source).body
    assert isinstance(answer, syntax.Answer)
    sum_ = answer.text.parts[1]
    assert isinstance(sum_, syntax.Binary)
    assert source[sum_.span.start : sum_.span.end] == "$x.y + z"


def test_spans_are_those_of_the_text() -> None:
    text = "program p(a int = 1);\nstep s: select t.x + f(1) as y from t where x in (1, 2) order by y;\n"
    for node in walk(program(text)):
        if isinstance(node, syntax.Name):
            assert text[node.span.start : node.span.end].strip('"') == node.text
        if isinstance(node, syntax.Binary | syntax.Function | syntax.InList):
            assert expr(text[node.span.start : node.span.end]) == node


def test_comments_and_titles() -> None:
    text = "-- t\n\nprogram p; -- a\n--\n-- b\nstep s: select 1 -- c\n  , 2;\r\n-- d\r\nassert 1 else 'x'; step t: select a --b\n;"
    tree = program(text)
    assert [comment.text for comment in tree.comments] == ["-- t", "-- a", "-- c"]
    assert [comment.own_line for comment in tree.comments] == [True, False, False]
    assert [getattr(s, "title", None) for s in tree.body] == [("", "b"), ("d",), ()]


def test_a_byte_order_mark_is_passed_over() -> None:
    assert program("\ufeffprogram p;\r\nstep s: select 1;\r\n") == program("program p; step s: select 1;")


# ---------------------------------------------------------------- what is said

MESSAGES = [
    ("CM101", "step s: select x from t limit;", "a number"),
    ("CM101", "step s: select x from t where;", "a condition"),
    ("CM101", "step s -> two: select 1;", "one, maybe or many"),
    ("CM101", "step s: select x from a join b where x = 1;", "on or using"),
    ("CM101", "step s: delete t where x = 1;", "from"),
    ("CM101", "step s: $x;", "select … from $x"),
    ("CM101", "step s: select cast(x as);", "a type"),
    ("CM101", "step s: select x from a.b;", "a table has one name"),
    ("CM101", "step s: select x from t where x is 3;", "null, true, false"),
    ("CM101", "step s: select x from t fetch first 3 rows only;", "limit n"),
    ("CM101", "step s: insert into t (a) values (1) on conflict do nothing;", "on conflict (column"),
    ("CM101", 'step "a b": select 1;', "the step's name"),
    ("CM101", "answer $x;", "in quotes"),
    ("CM101", "assert $x;", "else"),
    ("CM101", "return * from $x;", "return $step"),
    ("CM101", "for each x in (select 1) { }", "make it a step"),
    ("CM101", "Here is the program:", "a statement"),
    ("CM101", "}", "no { is open"),
    ("CM101", "else { }", "behind the }"),
    ("CM101", "step s: select x) from t;", "no ( is open"),
    ("CM101", "step s: concepts($x);", "call concepts"),
    ("CM101", "answer 'a {$x + } b';", "a value"),
    ("CM102", "step s: select x from t\nstep u: select 1;", "; after t"),
    ("CM102", "step s: select x from t\nreturn $s;", "; after t"),
    ("CM102", "step s: select x from t", "; after t"),
    ("CM102", "if $x { step s: select 1 }", "; after 1"),
    ("CM103", "step s: select 'abc from t;", "a text"),
    ("CM103", 'step s: select "abc from t;', "a name"),
    ("CM103", "step s: select (1 + 2 from t;", "a parenthesis"),
    ("CM103", "step s: call f(1;", "a parenthesis"),
    ("CM103", "if $x { step s: select 1;", "a block"),
    ("CM103", "/* abc", "a comment"),
    ("CM104", "step s: select 1 & 2;", "write and"),
    ("CM104", "step s: select a | b;", "||"),
    ("CM104", "step s: select 1;\u200f", "right-to-left mark"),
    ("CM104", "step s: select '\0';", "U+0000"),
    ("CM104", "step s: select '\ud800';", "U+D800"),
    ("CM105", "step s: select x, from t;", "leave the comma out"),
    ("CM105", "step s: insert into t (a, b,) values (1, 2);", "and )"),
    ("CM105", "step s: update t set a = 1, where true;", "where"),
    ("CM106", "step s: with x as (select 1) select 2;", "a step"),
    ("CM106", "create table x (a int);", "tables are made from a schema"),
    ("CM106", "drop table x;", "tables"),
    ("CM106", "begin;", "one transaction"),
    ("CM106", "commit;", "one transaction"),
    ("CM106", "set x = 1;", "no settings"),
    ("CM106", "let x = 1;", "step"),
    ("CM101", "step s: match (a:A)-[r:B*1..3|C]->(b) where a.x = 1\nreturn a.x\norder by a.x;", "A|B*1..3"),
    ("CM106", "step s: match (a:A) with a\nreturn a.x;", "unwind $step as r"),
    ("CM101", "step s: match (a:A) set a += {x: 1};", "set c.a"),
    ("CM107", "step s: select x from t as of $when as u;", "as of"),
    ("CM108", "select 1;", "step name: select"),
    ("CM108", "match (a) return a;", "step name: match"),
    ("CM109", "step s select 1;", "expected : here"),
    ("CM109", "step s -> one select 1;", "expected : here"),
    ("CM109", "step : select 1;", "the step's name"),
    ("CM109", "sale: select 1;", "expected step"),
    ("CM110", "step s: select 1 where a == 1;", "write ="),
    ("CM110", "step s: select a from t where a = :x;", "write $x"),
    ("CM110", "step s: select a from t order by a limit 5, 10;", "write limit 10 offset 5"),
    ("CM110", "step s: select a from t where d < $d - 7 days;", "write interval '7 days'"),
    ("CM110", "step s: select $d + 7 day as x;", "write interval '7 day'"),
    ("CM106", "step s: upsert into t (a) values (1);", "on conflict (key) do update"),
    ("CM106", "step s: insert or replace into t (a) values (1);", "on conflict (key) do update"),
    ("CM106", "step s: insert or ignore into t (a) values (1);", "on conflict (key) do nothing"),
    ("CM110", "if $x { } elseif $y { }", "else if"),
    ("CM110", "if $x { } elif $y { }", "else if"),
    ("CM110", "if $x then step s: select 1; }", "write {"),
    ("CM110", "if $x { step s: select 1; end if;", "write }"),
    ("CM110", "/* abc\n def */", "-- …"),
    ("CM110", "# abc", "-- …"),
    ("CM110", "--abc", "-- abc"),
    ("CM110", "step s: select `a b` from t;", '"a b"'),
    ("CM110", "step s: select x as 'Total' from t;", '"Total"'),
    ("CM110", "step s: select “abc”;", "'abc'"),
    ("CM110", "step s: select @a;", "$a"),
    ("CM110", "step s: select ${a.b};", "$a.b"),
    ("CM110", "step s: select :a;", "$a"),
    ("CM110", "assert $x, 'no';", "else"),
    ("CM110", "foreach x in $y { }", "for each"),
    ("CM110", "step s = select 1;", "write :"),
    ("CM110", "step s: insert into t (a) value (1);", "values"),
    ("CM101", "step s: select a - interval 3 day;", "interval '3 day'"),
    ("CM101", "if $a step s: select 1;", "expected {"),
    ("CM112", "step s: insert into t values (1);", "insert into t (column"),
    ("CM112", "step s: insert into t select 1;", "select"),
    ("CM113", "answer 'a } b';", "closes no {"),
    ("CM113", "answer 'a { b';", "never closed"),
    ("CM113", "answer 'a {} b';", "holds nothing"),
    ("CM113", "answer \"a {coalesce($x, 'none')} b\";", "string literals"),
    ("CM116", "step s: select $ from t;", "no name"),
    ("CM116", "return $x.*;", "return $x"),
    ("CM116", "for each x in items { }", "$items"),
    ("CM117", "step s: select .5;", "0.5"),
    ("CM117", "step s: select 1e3;", "1000"),
    ("CM117", "step s: select 12abc;", "12abc"),
    ("CM117", "step s: select 1.;", "1"),
    ("CM118", "step s: select 1; program q;", "one program"),
]


@pytest.mark.parametrize(("code", "text", "words"), MESSAGES)
def test_one_message_tells_what_is_wrong(code: str, text: str, words: str) -> None:
    source = Source(f"program p;\n{text}\n")
    tree, found = parse_program(source)
    assert [d.code for d in found] == [code], [(d.code, d.text) for d in found]
    (diagnostic,) = found
    told = f"{diagnostic.text} {diagnostic.label} {diagnostic.help}"
    assert words in told
    assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(source.text)
    terminals = {*parse.tables().marks.values(), *parse.tables().keywords.values(), "NAME", "STRING", "PLACE", "NUMBER"}
    assert not terminals & set(told.split())
    assert tree.header is not None


@pytest.mark.parametrize(("code", "text", "words"), MESSAGES)
def test_fixes_mend(code: str, text: str, words: str) -> None:
    text = f"program p;\n{text}\n"
    found = parse_program(Source(text))[1]
    if any(d.fix and d.fix.certain for d in found):
        assert said(mended(text, found)) == []


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("CM101", "program p {\n  step s: select 1;\n}\n"),
        ("CM101", "program p(a: int);"),
        ("CM101", "program p(a);"),
        ("CM101", "program my-prog;"),
        ("CM102", "program p\nstep s: select 1;"),
        ("CM105", "program p(a int, );"),
        ("CM110", "program p($a int);"),
        ("CM110", "program p(a int default 1);"),
    ],
)
def test_messages_about_headers(code: str, text: str) -> None:
    assert said(text) == [code]


def test_fences_are_taken_out() -> None:
    text = "```com\nprogram p;\nstep s: select 1;\n```\n"
    found = parse_program(Source(text))[1]
    assert [d.code for d in found] == ["CM111", "CM111"]
    assert program(mended(text, found)) == program("program p; step s: select 1;")


def test_several_errors_are_told_in_one_go() -> None:
    text = (
        "program p(a, b int);\nstep a: select x, from t;\nfor each x in items {\n  step b: select 1 1;\n}\n"
        "if $x > {\n  step c: seelct 1;\n} else {\n  step d: insert into t values (1);\n}\nstep e select 1;\nstep f: select 2;"
    )
    tree, found = parse_program(Source(text))
    assert [(Source(text).place(d.span.start)[0], d.code) for d in found] == [
        (1, "CM101"), (2, "CM105"), (3, "CM116"), (4, "CM101"), (6, "CM101"), (7, "CM101"), (9, "CM112"), (11, "CM109"),
    ]  # fmt: skip
    assert isinstance(tree.body[-1], syntax.Step) and tree.body[-1].name.text == "f"


def test_an_unclosed_text_does_not_swallow_the_rest() -> None:
    assert said("program p;\nstep a: select 'abc from t;\nstep b: select y z q from t;\n") == ["CM103", "CM101"]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("CM101", "program p;"),
        ("CM101", "create table t (a int not);"),
        ("CM101", "create table t (a int) create table u (a int);"),
        ("CM101", "create table t (a int constraint c unique);"),
        ("CM102", "create table t (a int)\ncreate table u (a int);"),
        ("CM103", "create table t (a int;"),
        ("CM105", "create table t (a int,);"),
        ("CM106", "create table t (a int references u on delete cascade);"),
        ("CM106", "create table t (a int references u on update no action);"),
        ("CM106", "create table if not exists t (a int);"),
        ("CM106", "create view v;"),
        ("CM106", "insert into t (a) values (1);"),
        ("CM101", "create property graph g edge tables (t);"),
        ("CM110", "create table t (a int primary key auto_increment);"),
    ],
)
def test_messages_about_schemas(code: str, text: str) -> None:
    assert [d.code for d in parse_schema(Source(text))[1]] == [code]


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("CM114", "a" * 1_000_001),
        ("CM115", "program p; step s: select " + "a + " * 5_000 + "a;"),
        ("CM115", "program p; step s: select " + "- " * 100_000 + "1;"),
        ("CM115", "program p; step s: select " + "not " * 100_000 + "a;"),
        ("CM115", "program p; " + "if $x { " * 2_000 + "} " * 2_000),
        ("CM115", "program p; step s: " + "select (" * 2_000 + "select 1" + ")" * 2_000 + ";"),
        ("CM115", "program p; step s: select 1 " + "union select 1 " * 2_000 + ";"),
        ("CM115", "program p; answer '{" + "$x + " * 5_000 + "1}';"),
        ("CM115", "program p(x int = " + "1 + " * 5_000 + "1);"),
        ("CM103", "program p; step s: select " + "(" * 10_000),
        ("CM103", "program p; " + "if $x { " * 2_000),
    ],
)
def test_limits(code: str, text: str) -> None:
    assert said(text)[0] == code


def test_what_is_allowed_is_read() -> None:
    program("program p; step s: select " + "(" * 10_000 + "1" + ")" * 10_000 + ";")
    program("program p; step s: select " + "a + " * 90 + "a;")
    program("program p; step s: insert into t (a) values " + "(1), " * 20_000 + "(1);")
    program("program p; " + "step s: select 1; " * 5_000)
    assert expr("9" * 10_000) == syntax.Number("9" * 10_000, expr("1").span)


# ---------------------------------------------------------------- laws


@settings(MANY, max_examples=10_000 if os.environ.get("CI") else MANY.max_examples)
@given(strategies.texts())
@example("program p; step s: select `a\ud800`, $x\ud800, 1e\ud800 from 'a\ud800")
@example("return")
@example("answer '{")
def test_any_text_gives_a_tree_or_messages(text: str) -> None:
    for read in (parse_program, parse_schema, parse_expression):
        tree, found = read(Source(text))
        assert tree is not None or found
        for diagnostic in found:
            assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
            f"{diagnostic.text} {diagnostic.label} {diagnostic.help}".encode()
        if not found and tree is not None:
            again, found = read(Source(show(tree)))
            assert not found and again == tree


@SOME
@given(strategies.programs())
def test_a_program_cut_short_gives_a_tree_or_messages(tree: syntax.Program) -> None:
    text = show(tree)
    for cut in range(0, len(text), max(1, len(text) // 5)):
        parse_program(Source(text[:cut]))
        parse_program(Source(text[cut:]))
