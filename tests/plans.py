"""Plans made by hand, for tests of the runtime alone: a shop of three tables, and programs on it."""

from __future__ import annotations

from decimal import Decimal

from com.plan import (
    Answer,
    Assertion,
    Batch,
    Constant,
    Effect,
    Field,
    Guard,
    Instruction,
    Known,
    LastId,
    Loop,
    Many,
    Parameter,
    Plan,
    Present,
    Read,
    Ref,
    Return,
    Rows,
    RunNumber,
    Scalar,
    Statement,
    Step,
    StepNumber,
    Template,
    Write,
)
from com.schema import DATE, INT, TEXT, Check, Column, ForeignKey, Schema, Table, decimal, schema_hash
from com.source import NOWHERE

MONEY = decimal(10, 2)
SHOP = Schema(
    (
        Table(
            "fruits",
            (
                Column("fruit_id", INT, False, generated=True),
                Column("fruit_name", TEXT, False),
                Column("price", MONEY),
                Column("stock", INT, False, "0"),
            ),
            ("fruit_id",),
            (("fruit_name",),),
            (),
            (Check("stock >= 0"),),
        ),
        Table(
            "lines",
            (Column("sale_id", INT, False), Column("fruit_id", INT, False), Column("qty", INT, False)),
            ("sale_id", "fruit_id"),
            (),
            (ForeignKey(("fruit_id",), "fruits", ("fruit_id",)), ForeignKey(("sale_id",), "sales", ("sale_id",))),
        ),
        Table(
            "sales",
            (Column("sale_id", INT, False, generated=True), Column("day", DATE, False), Column("total", MONEY)),
            ("sale_id",),
        ),
    )
)
DDL = (
    "create table fruits (fruit_id integer primary key, fruit_name text not null unique, price decimal(10,2),"
    " stock integer not null default 0 check (stock >= 0))",
    "create table sales (sale_id integer primary key, day date not null, total decimal(10,2))",
    "create table lines (sale_id integer not null references sales (sale_id), fruit_id integer not null references"
    " fruits (fruit_id), qty integer not null, primary key (sale_id, fruit_id))",
)
RUN, STEP = ("run", RunNumber()), ("step", StepNumber())
_HEAD = "insert into com_change (run, step, n, tbl, key, before, after) select :run, :step, "


def row_json(table: str, alias: str = "") -> str:
    found = SHOP.table(table)
    assert found is not None
    dot = f"{alias}." if alias else ""
    return "json_object(" + ", ".join(f"'{c.name}', {dot}{c.name}" for c in found.columns) + ")"


def key_json(table: str) -> str:
    found = SHOP.table(table)
    assert found is not None
    return "json_array(" + ", ".join(found.primary_key) + ")"


def field(name: str, nullable: bool = False) -> Field:
    """A field named as a column of the shop."""
    types = {c.name: c.type for t in SHOP.tables for c in t.columns}
    return Field(name, types.get(name, TEXT), nullable)


def step(name: str, operation: Read | Write, fields: tuple[Field, ...] = (), card: str = "many", slot: int = 0) -> Step:
    return Step(Ref("step", name, slot), name, operation, fields, card, bool(fields), f"digest of {name}", NOWHERE)


def read(name: str, sql: str, fields: tuple[Field, ...], *binds: object, card: str = "many", hidden: int = 0) -> Step:
    shown = fields[: len(fields) - hidden]
    return step(name, Read(Statement(sql, tuple(binds), fields, hidden)), shown, card)  # type: ignore[arg-type]


def update(name: str, table: str, sets: str, where: str, *binds: object, card: str = "many", slot: int = 0) -> Step:
    """An update with its images; binds of `where` only go with them."""
    kept = tuple(b for b in binds if f":{b[0]}" in where)  # type: ignore[index]
    before = Statement(
        f"{_HEAD}row_number() over (order by {key_json(table)}), '{table}', {key_json(table)}, {row_json(table)}, null"
        f" from {table} where {where}",
        (RUN, STEP, *kept),  # type: ignore[arg-type]
    )
    after = Statement(
        f"update com_change set after = (select {row_json(table, 't')} from {table} t where {key_json(table)} ="
        " com_change.key) where run = :run and step = :step",
        (RUN, STEP),
    )
    main = Statement(f"update {table} set {sets} where {where}", tuple(binds))  # type: ignore[arg-type]
    return step(name, Write("update", table, None, None, (), (before,), (main,), (after,), None), (), card, slot)


def insert_new(name: str, table: str, columns: str, query: str, *binds: object, returning: bool = False) -> Step:
    """An insert into a table whose ids the runtime takes: `query` gives a row number and the other columns."""
    found = SHOP.table(table)
    assert found is not None and found.identity is not None
    key = found.identity.name
    last = ("last", LastId(table))
    main = Statement(
        f"insert into {table} ({key}, {columns}) select :last + n, {columns} from ({query})", (last, *binds)
    )  # type: ignore[arg-type]
    after = Statement(
        f"{_HEAD}{key} - :last, '{table}', {key_json(table)}, null, {row_json(table)} from {table} where {key} > :last",
        (RUN, STEP, last),
    )
    fields = (Field(key, INT, False),) if returning else ()
    rows = (
        Statement(f"select {key} from {table} where {key} > :last order by {key}", (last,), fields)
        if returning
        else None
    )
    card = "one" if returning else "many"
    return step(name, Write("insert", table, None, None, (), (), (main,), (after,), rows, table), fields, card)


def delete(name: str, table: str, where: str, *binds: object) -> Step:
    before = Statement(
        f"{_HEAD}row_number() over (order by {key_json(table)}), '{table}', {key_json(table)}, {row_json(table)}, null"
        f" from {table} where {where}",
        (RUN, STEP, *binds),  # type: ignore[arg-type]
    )
    main = Statement(f"delete from {table} where {where}", tuple(binds))  # type: ignore[arg-type]
    return step(name, Write("delete", table, None, None, (), (before,), (main,), (), None))


def program(name: str, parameters: tuple[Parameter, ...], *body: Instruction, result: Ref | None = None) -> Plan:
    effects = tuple(
        Effect(i.operation.verb, i.operation.table)
        for i in body
        if isinstance(i, Step) and isinstance(i.operation, Write)
    )
    return Plan(name, f"program {name};", schema_hash(SHOP), "sqlite", parameters, tuple(body), effects, result)


def value(name: str, type_: object, default: Constant | Scalar | None = None, nullable: bool = False) -> Parameter:
    return Parameter(name, "value", type_, (), "one", nullable, default)  # type: ignore[arg-type]


def parameter(name: str, type_: object = INT) -> Scalar:
    return Scalar(Ref("parameter", name), None, type_)  # type: ignore[arg-type]


GOODS = (Field("fruit_name", TEXT, False), Field("price", MONEY), Field("stock", INT, False))
_EACH = ", ".join(f"json_extract(value, '$[{i}]') as {f.name}" for i, f in enumerate(GOODS))
DELIVER = program(
    "deliver",
    (Parameter("goods", "rows", TEXT, GOODS, "many", False, None),),
    insert_new(
        "put",
        "fruits",
        "fruit_name, price, stock",
        f"select key + 1 as n, {_EACH} from json_each(:goods)",
        ("goods", Rows(Ref("parameter", "goods"), GOODS)),
    ),
)
"""Puts new fruits on the shelf."""

ITEMS = (Field("fruit", TEXT, False), Field("qty", INT, False))
_LINES = (Field("fruit_id", INT, False), Field("qty", INT, False), Field("total", decimal(20, 2)))
_LINE = Ref("row", "line", 2)
_take = update(
    "take",
    "fruits",
    "stock = stock - :qty",
    "fruit_id = :id",
    ("qty", Scalar(_LINE, "qty", INT)),
    ("id", Scalar(_LINE, "fruit_id", INT)),
    card="one",
    slot=3,
)
_JOINED = "json_each(:over) j where json_extract(j.value, '$[0]') = fruits.fruit_id"
_over = ("over", Rows(_LINE, _LINES[:2]))
_take_all = step(
    "take",
    Write(
        "update",
        "fruits",
        None,
        None,
        (),
        (
            Statement(
                f"{_HEAD}row_number() over (order by fruit_id), 'fruits', {key_json('fruits')}, {row_json('fruits')},"
                f" null from fruits, {_JOINED}",
                (RUN, STEP, _over),
            ),
        ),
        (Statement(f"update fruits set stock = stock - json_extract(j.value, '$[1]') from {_JOINED}", (_over,)),),
        (
            Statement(
                f"update com_change set after = (select {row_json('fruits', 't')} from fruits t where"
                f" {key_json('fruits')} = com_change.key) where run = :run and step = :step",
                (RUN, STEP),
            ),
        ),
        None,
    ),
    (),
    "one",
    3,
)
SELL = program(
    "sell",
    (
        Parameter("items", "rows", TEXT, ITEMS, "many", False, None),
        value("day", DATE, Scalar(Ref("clock", "today"), None, DATE)),
    ),
    read(
        "lines",
        "select f.fruit_id, json_extract(j.value, '$[1]'), json_extract(j.value, '$[1]') * f.price"
        " from json_each(:items) j join fruits f on f.fruit_name = json_extract(j.value, '$[0]') order by j.key",
        _LINES,
        ("items", Rows(Ref("parameter", "items"), ITEMS)),
    ),
    Assertion(
        Known(Present(Ref("step", "lines"))),
        Template(("Not sold here: ", Many(Ref("parameter", "items"), "fruit", TEXT), ".")),
        "",
        NOWHERE,
    ),
    insert_new(
        "sale",
        "sales",
        "day, total",
        "select 1 as n, :day as day, (select sum(json_extract(value, '$[0]')) from json_each(:lines)) as total",
        ("day", parameter("day", DATE)),
        ("lines", Rows(Ref("step", "lines"), (_LINES[2],))),
        returning=True,
    ),
    Loop(
        _LINE,
        Ref("step", "lines"),
        (_take,),
        Batch(("fruit_id",), (_take_all,)),
        "",
        NOWHERE,
    ),
    Return(Ref("step", "lines"), _LINES, NOWHERE),
    Answer(
        Template(
            (
                "Sale ",
                Scalar(Ref("step", "sale"), "sale_id", INT),
                ": ",
                Many(Ref("step", "lines"), "total", MONEY),
                ".",
            )
        ),
        NOWHERE,
    ),
)
"""Sells fruits: reads, asserts, inserts, loops, answers."""

DROP = program(
    "drop",
    (value("name", TEXT),),
    delete("gone", "fruits", "fruit_name = :name", ("name", parameter("name", TEXT))),
)
"""Takes a fruit off the shelf for good."""

PRICE = program(
    "price",
    (value("name", TEXT), value("price", MONEY)),
    update(
        "set",
        "fruits",
        "price = :price",
        "fruit_name = :name",
        ("price", parameter("price", MONEY)),
        ("name", parameter("name", TEXT)),
        card="one",
    ),
)
"""Changes a price."""

STOCK = program(
    "stock",
    (),
    read("fruits", "select fruit_name, stock from fruits order by fruit_name", (GOODS[0], GOODS[2])),
    result=Ref("step", "fruits"),
)
"""Only reads."""

TWICE = program(
    "twice",
    (),
    step(
        "met",
        Write(
            "update",
            "fruits",
            None,
            None,
            (Guard(Statement("select 'apple' union all select 'pear'", (), (Field("k", TEXT),)), "CM504"),),
            (),
            (Statement("update fruits set stock = 1", ()),),
            (),
            None,
        ),
    ),
)
"""Its guard finds something."""

PRICED = Decimal("2.30")
GOODS_GIVEN = [["apple", 2.3, 10], {"fruit_name": "pear", "price": "1.25", "stock": 5}, ["fig", None, 0]]
