"""The check, seen through its IR: shapes, orders made total, types, effects, what is needed; and the reference's table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from com.compiler import check_program, ir, read_schema
from com.diagnostics import has_errors
from com.functions import FUNCTIONS, RowsField, Signature
from com.node import walk
from com.plan import Effect, Field
from com.report import diagnostics_lines, plain
from com.schema import INT, TEXT, UNKNOWN, Column, Schema, Table
from com.source import Source

SCHEMA = """
create table customers (
  customer_id int primary key,
  customer_name text not null,
  phone_number text unique
);
create table fruits (
  fruit_id int primary key generated always as identity,
  fruit_name text not null unique,
  selling_price decimal(10, 2),
  stock_quantity int not null default 0
);
create table sales (
  sale_id int primary key,
  customer_id int not null references customers (customer_id),
  sale_date date not null
);
create table sale_items (
  sale_id int not null references sales (sale_id),
  fruit_id int not null references fruits (fruit_id),
  quantity_sold int not null,
  primary key (sale_id, fruit_id)
);
create table notes (note text, day date);
"""


def schema_of(text: str) -> Schema:
    schema, found = read_schema(Source(text))
    assert schema is not None, found
    return schema


MEMORY = schema_of(SCHEMA)


def checked(text: str, calls: dict[str, Signature] | None = None, schema: Schema = MEMORY) -> ir.Program:
    """The program, which must check; warnings are let pass."""
    source = Source(f"program p(n int, t text, day date, items many {{fruit text, qty int}});\n{text}")
    program, found = check_program(source, schema, calls or {})
    assert program is not None, plain(diagnostics_lines(found, source))
    return program


def codes(text: str, calls: dict[str, Signature] | None = None, schema: Schema = MEMORY) -> list[str]:
    """The codes of the errors in a program."""
    _, found = check_program(Source(f"program p(n int, t text);\n{text}"), schema, calls or {})
    return [d.code for d in found if d.severity == "error"]


def steps(program: ir.Program) -> dict[str, ir.Step]:
    return {node.ref.name: node for node in walk(program) if isinstance(node, ir.Step)}


def step(text: str) -> ir.Step:
    """The last step of a program."""
    return list(steps(checked(text)).values())[-1]


def query(text: str) -> ir.Query:
    operation = step(f"step s: {text};").operation
    assert isinstance(operation, ir.Read)
    return operation.query


def shown(expr: ir.Expr) -> str:
    """An expression, short."""
    match expr:
        case ir.Column(alias=alias, name=name):
            return f"{alias}.{name}" if alias else name
        case ir.Apply(name=name, args=args) | ir.Aggregate(name=name, args=args):
            return f"{name}({', '.join(shown(a) for a in args)})"
        case ir.Constant(value=value):
            return repr(value)
        case ir.Cast(operand=operand, type=type_):
            return f"{shown(operand)}::{type_}"
        case _:
            return type(expr).__name__


def order(keys: tuple[ir.OrderKey, ...]) -> str:
    return ", ".join(
        shown(k.expr) + (" desc" if k.descending else "") + (" nulls first" if k.nulls_first else "") for k in keys
    )


# ---------------------------------------------------------------- order


@pytest.mark.parametrize(
    ("text", "total"),
    [
        ("select fruit_name from fruits", "fruits.fruit_id"),
        ("select fruit_name from fruits order by stock_quantity", "fruits.stock_quantity, fruits.fruit_id"),
        ("select fruit_name from fruits order by fruit_id desc", "fruits.fruit_id desc"),
        ("select fruit_name from fruits order by fruit_name", "fruits.fruit_name"),
        ("select fruit_name as f from fruits order by f desc nulls first", "fruits.fruit_name desc nulls first"),
        ("select customer_name from customers order by phone_number", "customers.phone_number, customers.customer_id"),
        ("select note from notes", "notes.note, notes.day"),
        ("select note from notes order by day", "notes.day, notes.note"),
        ("select quantity_sold from sale_items", "sale_items.sale_id, sale_items.fruit_id"),
        ("select quantity_sold from sale_items where sale_id = $n", "sale_items.fruit_id"),
        ("select quantity_sold from sale_items where sale_id = $n and fruit_id = 1", ""),
        ("select s.sale_id from sales as s join customers as c on c.customer_id = s.customer_id", "s.sale_id"),
        ("select s.sale_id from customers as c join sales as s on c.customer_id = s.customer_id", "c.customer_id, s.sale_id"),
        ("select s.sale_id from sales as s left join customers as c using (customer_id)", "s.sale_id"),
        ("select s.sale_id from sales as s full join customers as c using (customer_id)", "s.sale_id, c.customer_id"),
        ("select a.note from notes as a, fruits", "a.note, a.day, fruits.fruit_id"),
        ("select customer_id, count(*) as n from sales group by customer_id", "sales.customer_id"),
        ("select sale_date, customer_id from sales group by customer_id, sale_date", "sales.customer_id, sales.sale_date"),
        ("select count(*) as n from sales group by customer_id order by n", "count(), sales.customer_id"),
        ("select year(sale_date) as y, count(*) as n from sales group by y", "year(sales.sale_date)"),
        ("select c.customer_name from sales join customers as c using (customer_id) group by c.customer_id, c.phone_number",
         "c.customer_id, c.phone_number"),
        ("select count(*) as n from sales", ""),
        ("select distinct sale_date from sales", "sales.sale_date"),
        ("select distinct customer_id, sale_date from sales order by 2", "sales.sale_date, sales.customer_id"),
        ("select i.fruit from $items as i", "i.com_n"),
        ("select i.fruit from $items as i join fruits as f on f.fruit_name = i.fruit", "i.com_n"),
        ("select f.fruit_id from fruits as f join $items as i on f.fruit_name = i.fruit", "f.fruit_id, i.com_n"),
        ("select d.n from (select customer_id, count(*) as n from sales group by customer_id) as d", "d.customer_id"),
        ("select d.sale_date from (select sale_date from sales) as d", "d.sale_date"),
        ("select fruit_name from fruits order by stock_quantity limit 1", "fruits.stock_quantity, fruits.fruit_id"),
        ("select 1 as x", ""),
        ("select fruit_id from fruits union select sale_id from sales", "fruit_id"),
        ("select fruit_id, fruit_name from fruits union all select 1, 'x' order by fruit_name desc",
         "fruit_name desc, fruit_id"),
    ],
)  # fmt: skip
def test_every_order_that_is_seen_is_total(text: str, total: str) -> None:
    assert order(query(text).order) == total


def test_the_order_of_a_step_is_that_of_its_rows() -> None:
    made = steps(checked("step a: select fruit_name from fruits; step b: select fruit_name from $a;"))["b"].operation
    assert isinstance(made, ir.Read)
    assert order(made.query.order) == "a.com_n"


def test_an_order_that_nobody_sees_is_not_made_total() -> None:
    made = query("select fruit_id from fruits where fruit_id in (select fruit_id from sale_items)")
    inner = next(n for n in walk(made) if isinstance(n, ir.InQuery)).query
    assert inner.order == ()


def test_a_limit_in_a_subquery_cuts_a_total_order() -> None:
    made = query("select (select sale_id from sales order by sale_date limit 1) as first")
    inner = next(n for n in walk(made) if isinstance(n, ir.Scalar)).query
    assert order(inner.order) == "sales.sale_date, sales.sale_id"


@pytest.mark.parametrize(
    ("function", "total"),
    [
        ("row_number()", "sales.sale_date, sales.sale_id"),
        ("lag(sale_id)", "sales.sale_date, sales.sale_id"),
        ("first_value(sale_id)", "sales.sale_date, sales.sale_id"),
        ("rank()", "sales.sale_date"),
        ("sum(customer_id)", "sales.sale_date"),
    ],
)
def test_windows_that_tell_peers_apart_have_a_total_order(function: str, total: str) -> None:
    made = query(f"select {function} over (order by sale_date) as x from sales")
    assert order(next(n for n in walk(made) if isinstance(n, ir.Window)).order) == total


# ---------------------------------------------------------------- shapes


@pytest.mark.parametrize(
    ("operation", "card"),
    [
        ("select count(*) as n from sales", "one"),
        ("select count(*) as n from sales where sale_id > 3", "one"),
        ("select count(*) as n from sales having count(*) > 3", "maybe"),
        ("select 1 as x", "one"),
        ("select 1 as x where $n = 1", "maybe"),
        ("select 1 as x limit 1", "maybe"),
        ("select fruit_name from fruits where fruit_id = $n", "maybe"),
        ("select fruit_name from fruits where $n = fruit_id", "maybe"),
        ("select fruit_name from fruits where fruit_name = $t and stock_quantity > 3", "maybe"),
        ("select customer_name from customers where phone_number = $t", "maybe"),
        ("select customer_name from customers where customer_name = $t", "many"),
        ("select fruit_name from fruits where fruit_id = $n or fruit_id = 1", "many"),
        ("select fruit_name from fruits where fruit_id in (1)", "many"),
        ("select fruit_name from fruits where fruit_id >= $n", "many"),
        ("select fruit_name from fruits where fruit_id = stock_quantity", "many"),
        ("select fruit_name from fruits where lower(fruit_name) = $t", "many"),
        ("select note from notes where note = $t and day = $day", "many"),
        ("select fruit_name from fruits order by fruit_id limit 1", "maybe"),
        ("select fruit_name from fruits order by fruit_id limit 2", "many"),
        ("select fruit_name from fruits limit $n", "many"),
        ("select quantity_sold from sale_items where sale_id = $n", "many"),
        ("select quantity_sold from sale_items where fruit_id = 1 and sale_id = $n", "maybe"),
        ("select c.customer_name from sales as s join customers as c using (customer_id) where s.sale_id = $n", "maybe"),
        ("select c.customer_name from sales as s left join customers as c using (customer_id) where s.sale_id = $n", "maybe"),
        ("select s.sale_id from sales as s join customers as c using (customer_id) where c.customer_id = $n", "many"),
        ("select s.sale_id from sales as s, fruits as f where s.sale_id = $n and f.fruit_id = 1", "maybe"),
        ("select s.sale_id from sales as s, fruits as f where s.sale_id = $n", "many"),
        ("select sum(customer_id) as x from sales where sale_date = $day group by sale_date", "maybe"),
        ("select sum(customer_id) as x from sales group by sale_date", "many"),
        ("select x from (select max(sale_id) as x from sales) as d", "one"),
        ("select s.sale_date from (select max(sale_id) as x from sales) as d join sales as s on s.sale_id = d.x", "maybe"),
        ("select fruit from $items", "many"),
        ("select count(*) as n from $items", "one"),
        ("select 1 as x union select 2", "many"),
        ("select distinct sale_date from sales", "many"),
        ("insert into fruits (fruit_name) values ('Fig')", "one"),
        ("insert into fruits (fruit_name) values ('Fig'), ('Kiwi')", "many"),
        ("insert into fruits (fruit_name) select fruit from $items", "many"),
        ("insert into fruits (fruit_name) select $t", "one"),
        ("insert into fruits (fruit_name) values ('Fig') on conflict (fruit_name) do nothing", "maybe"),
        ("insert into fruits (fruit_name) values ('Fig') on conflict (fruit_name) do nothing returning fruit_id", "one"),
        ("update fruits set stock_quantity = 0 where fruit_id = $n", "maybe"),
        ("update fruits set stock_quantity = 0 where true", "many"),
        ("update fruits set stock_quantity = i.qty from $items as i where i.fruit = fruit_name", "many"),
        ("delete from fruits where fruit_name = $t", "maybe"),
        ("delete from sale_items where sale_id = $n", "many"),
    ],
)  # fmt: skip
def test_shapes_are_inferred(operation: str, card: str) -> None:
    assert step(f"step s: {operation};").inferred == card


def test_a_shape_that_is_declared_is_what_readers_see() -> None:
    made = step("step s -> one: select fruit_name from fruits where stock_quantity > 3;")
    assert (made.inferred, made.shape) == ("many", "one")


def test_a_step_of_one_row_keeps_joins_small() -> None:
    made = steps(
        checked(
            "step s -> one: select sale_id from sales where sale_date = $day;"
            "step i: select i.fruit_id from $s as s join sale_items as i on i.sale_id = s.sale_id;"
            "step c: select c.customer_name from $s as s join sales as x on x.sale_id = s.sale_id"
            " join customers as c on c.customer_id = x.customer_id;"
        )
    )
    assert made["i"].inferred == "many"
    assert made["c"].inferred == "maybe"


# ---------------------------------------------------------------- types


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("1 + 1", "int"),
        ("1 / 2", "float"),
        ("7 div 2", "int"),
        ("7 % 2", "int"),
        ("1.5", "decimal(2,1)"),
        ("1.50 + 1", "decimal(22,2)"),
        ("selling_price + 1.005", "decimal(12,3)"),
        ("selling_price * 1.15", "decimal(13,4)"),
        ("selling_price / 3", "decimal(14,6)"),
        ("stock_quantity * selling_price", "decimal(29,2)"),
        ("cast(1 as float) * selling_price", "float"),
        ("sum(stock_quantity)", "int"),
        ("sum(selling_price)", "decimal(38,2)"),
        ("avg(stock_quantity)", "float"),
        ("avg(selling_price)", "decimal(14,6)"),
        ("round(selling_price, 1)", "decimal(10,1)"),
        ("round(selling_price)", "decimal(9,0)"),
        ("round(cast(1 as float), 2)", "float"),
        ("floor(selling_price)", "decimal(10,0)"),
        ("count(*)", "int"),
        ("max(fruit_name)", "text"),
        ("coalesce(selling_price, 0)", "decimal(21,2)"),
        ("coalesce(null, 'x')", "text"),
        ("case when true then 1 else 2.5 end", "decimal(20,1)"),
        ("case when true then null else date '2024-01-31' end", "date"),
        ("greatest(1, 2.5)", "decimal(20,1)"),
        ("$day + 1", "date"),
        ("$day - date '2024-01-01'", "int"),
        ("$day + interval '1 month'", "date"),
        ("$day + interval '1 hour'", "timestamp"),
        ("date_trunc('month', $day)", "date"),
        ("date_trunc('month', $now)", "timestamp"),
        ("$now", "timestamp"),
        ("'a' || 1", "text"),
        ("null", "text"),
        ("1 = 1.0", "bool"),
        ("'2024-01-31' = $day", "bool"),
        ("(select max(fruit_name) from fruits)", "text"),
        ("lag(1) over (order by 1)", "int"),
    ],
)  # fmt: skip
def test_types(expression: str, type_: str) -> None:
    grouped = "" if re.match(r"sum|avg|count|max", expression) else " group by fruit_id"
    made = query(f"select {expression} as x from fruits{grouped}")
    assert isinstance(made, ir.Select)
    assert str(made.columns[0].expr.type) == type_


@pytest.mark.parametrize(
    ("text", "nullable"),
    [
        ("select fruit_name as x from fruits", False),
        ("select selling_price as x from fruits", True),
        ("select selling_price + 1 as x from fruits", True),
        ("select coalesce(selling_price, 0) as x from fruits", False),
        ("select stock_quantity / 2 as x from fruits", True),
        ("select case when true then 1 end as x", True),
        ("select sum(stock_quantity) as x from fruits", True),
        ("select count(*) as x from fruits", False),
        ("select sum(stock_quantity) as x from fruits group by fruit_name", False),
        ("select sum(selling_price) as x from fruits group by fruit_name", True),
        ("select sum(stock_quantity) filter (where stock_quantity > 3) as x from fruits group by fruit_name", True),
        ("select c.customer_name as x from sales left join customers as c using (customer_id)", True),
        ("select c.customer_name as x from sales join customers as c using (customer_id)", False),
        ("select sale_id as x from sales right join customers using (customer_id)", True),
        ("select selling_price is null as x from fruits", False),
        ("select $n as x", False),
        ("select (select max(sale_id) from sales) as x", True),
        ("select (select count(*) from sales) as x", False),
        ("select fruit_name as x from fruits union select phone_number from customers", True),
    ],
)
def test_what_may_be_null(text: str, nullable: bool) -> None:
    assert step(f"step s: {text};").fields[0].nullable is nullable


def test_a_value_of_a_maybe_step_may_be_null_until_its_row_is_sure() -> None:
    program = checked(
        "step f: select fruit_id from fruits where fruit_name = $t;"
        "step a: select $f.fruit_id as id; assert exists $f else 'No.'; step b: select $f.fruit_id as id;"
    )
    assert [steps(program)[name].fields[0].nullable for name in "ab"] == [True, False]


def test_conversions_are_visible() -> None:
    made = step("step s: update fruits set selling_price = stock_quantity where fruit_id = 1;").operation
    assert isinstance(made, ir.Update)
    value = made.assignments[0][1]
    assert isinstance(value, ir.Cast)
    assert (value.implicit, str(value.type)) == (True, "decimal(10,2)")


# ---------------------------------------------------------------- effects, results


@pytest.mark.parametrize(
    ("operation", "effects"),
    [
        ("select fruit_name from fruits where fruit_id = $n", [Effect("read", "fruits", ("fruit_id", "fruit_name"))]),
        ("select count(*) as n from fruits", [Effect("read", "fruits")]),
        ("select fruit_name from fruits", [Effect("read", "fruits", ("fruit_id", "fruit_name"))]),
        ("select * from notes", [Effect("read", "notes", ("day", "note"))]),
        ("select 1 as x", []),
        (
            "select sale_date from sales where exists (select 1 from customers as c where c.customer_id = sales.customer_id)"
            " and sale_id = 1",
            [
                Effect("read", "sales", ("customer_id", "sale_date", "sale_id")),
                Effect("read", "customers", ("customer_id",)),
            ],
        ),
        ("insert into fruits (fruit_name) values ('Fig')", [Effect("insert", "fruits", ("fruit_name",))]),
        (
            "insert into fruits (fruit_name) select customer_name from customers where customer_id = 1 returning fruit_id",
            [
                Effect("read", "customers", ("customer_id", "customer_name")),
                Effect("read", "fruits", ("fruit_id",)),
                Effect("insert", "fruits", ("fruit_name",)),
            ],
        ),
        (
            "update fruits set stock_quantity = 0 where fruit_name = $t",
            [Effect("read", "fruits", ("fruit_name",)), Effect("update", "fruits", ("stock_quantity",))],
        ),
        ("delete from fruits where fruit_id = 1", [Effect("read", "fruits", ("fruit_id",)), Effect("delete", "fruits")]),
    ],
)  # fmt: skip
def test_effects(operation: str, effects: list[Effect]) -> None:
    assert list(step(f"step s: {operation};").effects) == effects


def test_effects_of_a_program_are_those_of_all_its_statements() -> None:
    program = checked(
        "if exists (select 1 from notes) { step a: delete from sales where sale_id = 1; }"
        "return select fruit_name from fruits;"
    )
    assert program.effects == (
        Effect("read", "notes"),
        Effect("read", "sales", ("sale_id",)),
        Effect("delete", "sales"),
        Effect("read", "fruits", ("fruit_id", "fruit_name")),
    )


def test_the_outcome_is_the_last_step_that_reads() -> None:
    program = checked(
        "step a: select 1 as x; step b: select 2 as x; for each r in $b { step c: select $r.x as x; }"
        "step d: delete from fruits where fruit_id = 1;"
    )
    assert program.result is not None
    assert program.result.name == "b"
    needed = {name for name, made in steps(program).items() if made.needed}
    assert needed == {"b"}


def test_with_a_return_there_is_no_other_outcome() -> None:
    assert checked("step a: select 1 as x; return $n as n;").result is None


def test_a_query_among_the_rows_of_each_branch() -> None:
    program = checked("if $n > 3 { return select fruit_name from fruits; } else { return $n as n; }")
    returns = [node for node in walk(program) if isinstance(node, ir.Return)]
    assert [[f.name for f in made.fields] for made in returns] == [["fruit_name"], ["n"]]


# ---------------------------------------------------------------- calls

CALLS = {
    "concepts": Signature(
        "concepts", (Field("text", TEXT, False), Field("most", INT, True)), (Field("name", TEXT, False),), "many"
    ),
    "shortest": Signature("shortest", (RowsField("names", (Field("name", TEXT),), True),), (Field("name", TEXT),), "one"),
    "paths": Signature("paths", (RowsField("edges", (Field("a", INT), Field("b", INT)), False),), (), "many"),
}  # fmt: skip


def test_a_call_gives_what_its_signature_says() -> None:
    program = checked("step c: call concepts($t); step d: select name from $c where name <> '';", CALLS)
    made = steps(program)["c"]
    assert (made.fields, made.shape) == (CALLS["concepts"].fields, "many")
    assert made.effects == (Effect("call", "concepts"),)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("step c: call concepts($t, 3);", []),
        ("step c: call concepts(text => $t, most => 3);", []),
        ("step c: call concept($t);", ["CM205"]),
        ("step c: call concepts($t, much => 3);", ["CM219"]),
        ("step c: call concepts($t, text => 'x');", ["CM210"]),
        ("step c: call concepts();", ["CM303"]),
        ("step c: call concepts($t, 1, 2);", ["CM303"]),
        ("step c: call concepts($n);", ["CM305"]),
        ("step c -> many {name int}: call concepts($t);", ["CM325"]),
        ("step a: select fruit_name from fruits; step c: call shortest($a.fruit_name);", []),
        ("step c: call shortest($t);", ["CM309"]),
        ("step c: call shortest('x');", ["CM302"]),
        ("step a: select sale_id as a, fruit_id as b from sale_items; step c -> many {x int}: call paths($a);", []),
        ("step a: select sale_id as a, fruit_id as b from sale_items; step c: call paths($a);", ["CM334"]),
        ("step a: select sale_id as a, 'x' as b from sale_items; step c -> one {x int}: call paths($a);", ["CM305"]),
        ("step a: select sale_id as a from sale_items; step c -> one {x int}: call paths($a);", ["CM206"]),
        ("step c -> one {x int}: call paths($t);", ["CM309"]),
        ("step s: select concepts($t) as x;", ["CM204"]),
    ],
)
def test_arguments_of_calls(text: str, found: list[str]) -> None:
    assert codes(text, CALLS) == found


# ---------------------------------------------------------------- what only a memory can have

ODD = Schema(
    (
        Table(
            "places",
            (Column("id", INT, False), Column("at", UNKNOWN, engine_type="geometry"), Column("name", TEXT)),
            ("id",),
        ),
        Table("stock", (Column("fruit", TEXT), Column("kg", INT)), is_view=True),
    )
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("step s: select * from places;", []),
        ("step s: select name from places where at = 'x';", ["CM330"]),
        ("step s: insert into places (id, at) values (1, 'x');", ["CM330"]),
        ("step s: insert into places (id, name) values (1, 'x');", []),
        ("step s: select kg from stock where fruit = 'Fig';", []),
        ("step s: insert into stock (fruit, kg) values ('Fig', 1);", ["CM329"]),
        ("step s: update stock set kg = 1 where fruit = 'Fig';", ["CM329"]),
        ("step s: delete from stock where true;", ["CM329"]),
    ],
)
def test_unknown_types_and_views(text: str, found: list[str]) -> None:
    assert codes(text, schema=ODD) == found


def test_a_star_leaves_out_what_cannot_be_used() -> None:
    program = checked("step s: select * from places;", schema=ODD)
    assert [f.name for f in steps(program)["s"].fields] == ["id", "name"]


# ---------------------------------------------------------------- fixes that can only be meant


@pytest.mark.parametrize(
    ("wrong", "mended"),
    [
        ("step s: select now() as x;", "step s: select $now as x;"),
        ("step s: select sale_id from sales where sale_date = current_date;",
         "step s: select sale_id from sales where sale_date = $today;"),
        ("step s: select IfNull(selling_price, 0) as x from fruits;",
         "step s: select coalesce(selling_price, 0) as x from fruits;"),
        ("step s: select 1 as x from fruits where selling_price = null;",
         "step s: select 1 as x from fruits where selling_price is null;"),
        ("step s: select 1 as x from fruits where null <> selling_price;",
         "step s: select 1 as x from fruits where selling_price is not null;"),
        ('step s: select 1 as x from fruits where fruit_name = "it\'s";',
         "step s: select 1 as x from fruits where fruit_name = 'it\'\'s';"),
        ("for each i in $items { step s: select i.qty as x; }", "for each i in $items { step s: select $i.qty as x; }"),
        ("step s: select fruit from items;", "step s: select fruit from $items;"),
        ("step s: select fruit_name from fruits where fruit_id = n;",
         "step s: select fruit_name from fruits where fruit_id = $n;"),
        ("if n > 3 { answer 'x'; }", "if $n > 3 { answer 'x'; }"),
        ("answer '{n}';", "answer '{$n}';"),
    ],
)  # fmt: skip
def test_certain_fixes(wrong: str, mended: str) -> None:
    """A fix marked certain is made as it stands, and leaves nothing to tell."""
    header = "program p(n int, items many {fruit text, qty int});\n"
    source = Source(header + wrong)
    _, found = check_program(source, MEMORY, {})
    edits = [e for d in found if d.fix and d.fix.certain for e in d.fix.edits]
    text = source.text
    for edit in sorted(edits, key=lambda e: e.span.start, reverse=True):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    assert text == header + mended
    assert not has_errors(check_program(Source(text), MEMORY, {})[1])


def test_a_missing_header_is_named_as_the_file() -> None:
    _, found = check_program(Source("step s: select 1 as x;", "my/first-try.com"), MEMORY, {})
    (fix,) = [d.fix for d in found if d.fix]
    assert (fix.certain, [e.text for e in fix.edits]) == (True, ["program first_try;\n\n"])


@pytest.mark.parametrize(
    "text",
    [
        'step s: select fruit_name from fruits where fruit_name = "fruit_nam";',
        "step s: select fruit_name from fruits where stock_quantity > stock_quantit;",
    ],
)
def test_a_fix_that_could_be_meant_otherwise_is_not_certain(text: str) -> None:
    _, found = check_program(Source(f"program p(stock_quantit int);\n{text}"), MEMORY, {})
    errors = [d for d in found if d.severity == "error"]
    assert len(errors) == 1
    assert errors[0].fix is not None
    assert not errors[0].fix.certain


# ---------------------------------------------------------------- the reference


def test_the_reference_lists_every_function() -> None:
    """docs/language.md names each function."""
    page = (Path(__file__).parent.parent / "docs" / "language.md").read_text(encoding="utf-8")
    found = set(re.findall(r"`(\w+)`", page.partition("\n## Functions\n")[2].partition("\n## ")[0]))
    assert found - {"distinct"} == set(FUNCTIONS)
