"""Random programs that check: a schema, rows for it, a program with its arguments. Nothing is run here.

`cases()` draws a whole case, `predicates()` a condition over one table. What is drawn is well typed by construction:
if it does not check, this file or the checker is wrong. A run may fail: keys collide, ints leave 64 bits.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from com.functions import UNITS

KINDS = ("int", "text", "decimal", "date", "bool", "timestamp", "float", "json", "bytes")
ORDERED = ("int", "text", "decimal", "date", "bool", "timestamp", "float", "bytes")
NUMBERS = ("int", "decimal", "float")
CLOCK = datetime(2024, 2, 29, 13, 14, 15, 160000)
"""The clock to run cases by."""

_RESERVED = re.compile(
    r"(?i)(select|from|where|group|order|by|having|limit|offset|join|left|right|full|inner|cross|outer|on|using|union|"
    r"intersect|except|and|or|not|in|is|null|between|like|ilike|case|when|then|else|end|as|set|values|into|insert|update|"
    r"delete|returning|distinct|exists|true|false|for|if|cast|extract)\Z"
)
_WEIRD = ("a b", "Größe", "select", "x.y", "K-12 (%)", "it's", "Order")
_TEXTS = (
    "", "a", "b", "ab", "B", "a ", " a", "ä", "Ä", "ß", "ﬃ", "İ", "%", "_", "a_c", "\\", "\\%", "'", '"', "1", "-2", "1.50", "2023-01-31",
    "\n", "\t", "\r\n", "\x1f", "\x7f", "\u200f", "e\u0301", "é", "日本", "😀", "{x}", "$a.b", "-- c", "null", "\ufeff", "\U0010ffff", "ab cd",
)  # fmt: skip
_INTS = (0, 1, 2, 3, -1, 4, 5, 7, 10, 12, -3, 100, 1000)
_DECIMALS = ("0", "1", "0.5", "1.25", "-0.75", "2.5", "12.34", "99.99", "-3", "100", "0.01")
_DATES = (
    "2024-02-29",
    "2023-01-31",
    "2023-12-31",
    "2000-01-01",
    "1999-05-17",
    "2024-03-10",
    "1970-01-01",
    "0044-03-15",
)
_MOMENTS = (
    "2024-02-29 13:14:15", "2023-01-31 00:00:00", "2023-12-31 23:59:59.999999", "2000-01-01 12:00:00.5", "1969-12-31 23:00:00.000001",
    "2024-03-10 02:30:00.100000",
)  # fmt: skip
_JSON = (None, 0, 1.5, "x", True, [], {}, {"a": 1}, {"a": {"b": "é"}}, [1, {"a": None}], {"a b": "'"}, {"a": "0"})
_FLOATS = (0.0, 1.0, 0.5, -0.25, 2.75, 100.125, -8.0, 1e3)


def name_text(name: str) -> str:
    """A name as a program writes it."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and not _RESERVED.match(name)
    return name if plain else '"' + name.replace('"', '""') + '"'


def quoted(text: str) -> str:
    """A text as a literal."""
    return "'" + text.replace("'", "''") + "'"


def literal(value: Any, kind: str) -> str:
    """A value as com writes it."""
    if value is None:
        return "null"
    match kind:
        case "int":
            return str(value) if value >= 0 else f"(-{-value})"
        case "decimal":
            shown = format(value, "f")
            shown = shown if "." in shown else f"{shown}.0"
            return f"(-{shown[1:]})" if shown[0] == "-" else shown
        case "float":
            return f"cast('{value!r}' as float)"
        case "bool":
            return "true" if value else "false"
        case "date":
            return f"date '{value}'"
        case "timestamp":
            return f"timestamp '{value.isoformat(' ')}'"
        case "json":
            return f"cast({quoted(json.dumps(value, ensure_ascii=False))} as json)"
        case "bytes":
            return f"cast('{value.hex()}' as bytes)"
        case _:
            return quoted(value)


# ---------------------------------------------------------------- what is drawn

AGGREGATE = re.compile(r"\b(count|sum|avg|min|max|string_agg|stddev)\(")


def without_queries(text: str) -> str:
    """An expression without the queries in it, whose aggregates are their own."""
    made, depth, hidden = "", 0, []
    for token in re.findall(r"'(?:[^']|'')*'|\((?:select\b)?|\)|[^'()]+", text):
        if token[0] == "(":
            depth += 1
            hidden += [depth] * (token != "(")
        made += "" if hidden else token
        if token == ")":
            hidden = [at for at in hidden if at != depth]
            depth -= 1
    return made


@dataclass
class Column:
    """A column of a table. `holds` is what its check wants, of which `safe` is true."""

    name: str
    kind: str
    type: str = ""
    null: bool = True
    identity: bool = False
    unique: bool = False
    default: str = ""
    check: str = ""
    holds: Callable[[Any], bool] | None = None
    safe: Any = None
    target: tuple[Table, str] | None = None

    @property
    def text(self) -> str:
        return name_text(self.name)


@dataclass
class Table:
    name: str
    columns: list[Column]
    key: list[str]
    uniques: list[list[str]] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return name_text(self.name)

    def column(self, name: str) -> Column:
        return next(c for c in self.columns if c.name == name)

    @property
    def keys(self) -> list[list[str]]:
        return [self.key, *self.uniques, *([c.name] for c in self.columns if c.unique)]

    @property
    def seen(self) -> list[tuple[str, str]]:
        return [(c.name, c.kind) for c in self.columns]

    def declared(self) -> str:
        parts = []
        for c in self.columns:
            words = [c.text, c.type]
            if [c.name] == self.key:
                words.append("primary key")
            if c.identity:
                words.append("generated always as identity")
            if not c.null and [c.name] != self.key:
                words.append("not null")
            if c.unique:
                words.append("unique")
            if c.default:
                words.append(f"default {c.default}")
            if c.check:
                words.append(f"check ({c.check})")
            if c.target is not None:
                words.append(f"references {c.target[0].text} ({name_text(c.target[1])})")
            parts.append(" ".join(words))
        if len(self.key) > 1:
            parts.append(f"primary key ({', '.join(map(name_text, self.key))})")
        parts += [f"unique ({', '.join(map(name_text, u))})" for u in self.uniques]
        return f"create table {self.text} (\n  " + ",\n  ".join(parts) + "\n);"

    def filled(self) -> str:
        if not self.rows:
            return ""
        given = [c for c in self.columns if not c.identity]
        rows = ", ".join("(" + ", ".join(literal(r[c.name], c.kind) for c in given) + ")" for r in self.rows)
        return f"step {self.name}_rows: insert into {self.text} ({', '.join(c.text for c in given)}) values {rows};"


@dataclass
class Case:
    """`schema` and both programs are texts: `fill` puts rows into the tables, then `program` runs with `arguments`."""

    schema: str
    fill: str
    program: str
    arguments: dict[str, Any]

    def __repr__(self) -> str:
        return f"\n{self.schema}\n\n{self.fill}\n\n{self.program}\n\n{self.arguments!r}\n"


@dataclass
class Predicate:
    """A condition over the columns of `table` (alias t), and keys to order its rows by: (expression, desc, nulls)."""

    schema: str
    fill: str
    table: str
    columns: list[str]
    condition: str
    order: list[tuple[str, str, bool, str]]

    def __repr__(self) -> str:
        return f"\n{self.schema}\n\n{self.fill}\n\nfrom {self.table} as t where {self.condition}\n{self.order}\n"


@dataclass
class Leaf:
    """Something with a value: a column, a placeholder. `loose` may be null where that would be silent."""

    text: str
    kind: str
    plain: bool = True
    loose: bool = False


@dataclass
class Context:
    """Where an expression stands. `leaves` are what is seen, `rows` where an aggregate's arguments are."""

    leaves: list[Leaf] = field(default_factory=list)
    outer: list[Leaf] = field(default_factory=list)
    rows: Context | None = None
    windows: bool = False
    met: bool = False  # an aggregate over these rows

    def bare(self) -> Context:
        return Context(self.leaves, self.outer)

    def of_window(self) -> Context:
        return Context(self.leaves, [], self.rows)

    def seen_inside(self) -> list[Leaf]:
        return [leaf for leaf in (*self.leaves, *self.outer) if leaf.plain]


@dataclass
class Scope:
    """What placeholders may name."""

    values: list[Leaf] = field(default_factory=list)
    lists: list[Leaf] = field(default_factory=list)
    relations: list[tuple[str, list[tuple[str, str]]]] = field(default_factory=list)

    def inner(self) -> Scope:
        return Scope([*self.values], [*self.lists], [*self.relations])


Pick = Callable[[int, int], int]
"""Gives a whole number between two."""


class Maker:
    """Draws, and remembers what is in scope."""

    def __init__(self, pick: Pick) -> None:
        self.pick = pick
        self.room = 120
        self.tables: list[Table] = []
        self.scope = Scope()
        self.strict = False
        self.queries = True
        self.names = 0
        self.arguments: dict[str, Any] = {}
        self.parameters: list[str] = []

    # ------------------------------------------------------------ chance

    def one(self, items: Sequence[Any]) -> Any:
        return items[0] if len(items) == 1 else items[self.pick(0, len(items) - 1)]

    def chance(self, percent: int) -> bool:
        return self.pick(0, 99) >= 100 - percent

    def count(self, least: int, most: int) -> int:
        return self.pick(least, most)

    def some(self, items: Sequence[Any], least: int, most: int) -> list[Any]:
        """Different items, in their order."""
        pool = list(range(len(items)))
        chosen = [pool.pop(self.pick(0, len(pool) - 1)) for _ in range(min(self.count(least, most), len(items)))]
        return [items[i] for i in sorted(chosen)]

    def any_text(self) -> str:
        """Any characters but NUL and halves of pairs."""
        ranges = ((1, 0x7F), (0x80, 0x17F), (0x180, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x10FFFF))
        return "".join(chr(self.pick(*self.one(ranges))) for _ in range(self.count(0, 5)))

    def fresh(self, start: str) -> str:
        self.names += 1
        return f"{start}{self.names}"

    # ------------------------------------------------------------ values

    def value(self, kind: str, scale: int = 2) -> Any:
        match kind:
            case "int":
                return self.one((2**63 - 1, -(2**63), 2**53 + 1)) if self.chance(2) else self.one(_INTS)
            case "decimal":
                return Decimal(self.one([d for d in _DECIMALS if len(d.partition(".")[2]) <= scale]))
            case "float":
                return self.one(_FLOATS)
            case "text":
                return self.any_text() if self.chance(15) else self.one(_TEXTS)
            case "bool":
                return self.chance(50)
            case "date":
                return date.fromisoformat(self.one(_DATES))
            case "timestamp":
                return datetime.fromisoformat(self.one(_MOMENTS))
            case "json":
                return self.one(_JSON[1:])
            case _:
                return bytes.fromhex(self.one(("", "00", "ff", "0001", "616263", "27")))

    def constant(self, kind: str) -> str:
        if kind == "date" and self.chance(15):
            return "$today"
        if kind == "timestamp" and self.chance(15):
            return "$now"
        return literal(self.value(kind), kind)

    def held(self, column: Column) -> Any:
        """A value that the column may hold, but for its keys."""
        if column.null and self.chance(20):
            return None
        scale = int(column.type.partition(",")[2][:-1] or 0) if column.kind == "decimal" else 2
        value = self.value(column.kind, scale)
        return value if column.holds is None or column.holds(value) else column.safe

    # ------------------------------------------------------------ schema

    def schema(self) -> None:
        for number in range(1, self.count(2, 4) + 1):
            self.tables.append(self.table(number))
        for table in self.tables:
            self.fill(table)

    def table(self, number: int) -> Table:
        name = f"t{number}" if self.chance(90) else self.one(("My Table", "group", "Tabelle ä")) + str(number)
        columns: list[Column] = []
        shape = self.one(("identity", "natural", "number", "composite"))
        match shape:
            case "identity":
                key = [f"id{number}"]
                columns.append(Column(key[0], "int", "int", False, identity=True))
            case "natural":
                key = [f"k{number}"]
                columns.append(Column(key[0], self.one(("text", "date", "timestamp", "bytes")), "", False))
            case "number":
                key = [f"n{number}"]
                columns.append(Column(key[0], self.one(("int", "decimal")), "", False))
            case _:
                key = [f"a{number}", f"b{number}"]
                columns += [Column(k, self.one(("int", "text", "date", "bool")), "", False) for k in key]
        for other in self.tables:
            if len(other.key) == 1 and self.chance(45):
                target = other.column(other.key[0])
                taken = any(c.name == target.name for c in columns)
                found = Column(self.fresh("r") if taken else target.name, target.kind, target.type, self.chance(50))
                found.target = (other, target.name)
                columns.append(found)
                if shape == "composite" and self.chance(30):
                    found.null = False
                    key = [found.name, key[1]]
        for _ in range(self.count(1, 4)):
            columns.append(self.data_column(columns))
        columns = [c for c in columns if c.name in key or not c.name.startswith(("a", "b")) or shape != "composite"]
        table = Table(name, columns, key)
        for c in columns:
            c.type = c.type or ("decimal(9,2)" if c.kind == "decimal" else self.spelled(c.kind))
        pairs = [
            c for c in columns if c.kind in ("int", "text", "bool", "date") and not c.identity and c.name not in key
        ]
        if len(pairs) > 1 and self.chance(15):
            table.uniques.append([pairs[0].name, pairs[1].name])
        return table

    def spelled(self, kind: str) -> str:
        """A type's name, or another for it."""
        others = {"int": ("int", "bigint", "integer"), "text": ("text", "varchar(99)"), "bool": ("bool", "boolean")}
        others |= {"float": ("float", "double precision", "real")}
        return str(self.one(others.get(kind, (kind,))))

    def data_column(self, columns: list[Column]) -> Column:
        kind = self.one(KINDS)
        name = self.one(_WEIRD) if self.chance(8) else self.fresh("c")
        if any(c.name.casefold() == name.casefold() for c in columns):
            name = self.fresh("c")
        made = Column(name, kind, null=self.chance(60))
        if kind == "decimal":
            made.type = self.one(("decimal(9,2)", "decimal(12,4)", "numeric(8,0)", "decimal(5,1)"))
        if self.chance(20):
            value = self.value(kind, 0)
            made.default = {"float": "1.5", "bytes": "'00ff'", "json": "'{}'"}.get(kind) or literal(value, kind)
        elif kind in ("int", "text", "date") and self.chance(15):
            made.unique = True
        if self.chance(20):
            self.checked(made)
        return made

    def checked(self, c: Column) -> None:
        n = c.text
        match c.kind:
            case "int":
                c.check, c.holds, c.safe = self.one((
                    (f"{n} >= 0", lambda v: v >= 0, 0),
                    (f"{n} between -5 and 5000", lambda v: -5 <= v <= 5000, 1),
                    (f"{n} is null or not {n} in (3, 4)", lambda v: v not in (3, 4), 5),
                ))  # fmt: skip
            case "text":
                c.check, c.holds, c.safe = self.one((
                    (f"{n} <> ''", lambda v: v != "", "x"),
                    (f"length({n}) <= 3", lambda v: len(v) <= 3, "y"),
                ))  # fmt: skip
            case "decimal":
                c.check, c.holds, c.safe = f"{n} > -1", lambda v: v > -1, Decimal(1)
            case "date":
                c.check, c.holds, c.safe = f"{n} > '1900-01-01'", lambda v: v > date(1900, 1, 1), date(2024, 5, 5)
            case _:
                return
        if c.default and c.default != "null":
            c.default = literal(c.safe, c.kind)

    def fill(self, table: Table) -> None:
        taken: list[set[Any]] = [set() for _ in table.keys]
        for number in range(self.one((0, 1, 3, 4, 5, 6, 7))):
            row: dict[str, Any] = {}
            for c in table.columns:
                if c.identity:
                    row[c.name] = len(table.rows) + 1
                elif c.target is not None:
                    there = [r[c.target[1]] for r in c.target[0].rows]
                    row[c.name] = (
                        None if c.null and (not there or self.chance(25)) else self.one(there) if there else None
                    )
                else:
                    row[c.name] = self.held(c)
                    if c.name in table.key and c.kind in ("int", "decimal") and self.chance(70):
                        row[c.name] = number if c.kind == "int" else Decimal(number)
            if any(row[c.name] is None and not c.null for c in table.columns):
                continue
            keys = [tuple(row[k] for k in key) for key in table.keys]
            if any(k in t and None not in k for k, t in zip(keys, taken, strict=True)):
                continue
            for k, t in zip(keys, taken, strict=True):
                t.add(k)
            table.rows.append(row)

    # ------------------------------------------------------------ expressions

    def leaf(self, kind: str, ctx: Context) -> str:
        own = [x.text for x in ctx.leaves if x.kind == kind]
        if own and self.chance(65):
            return str(self.one(own))
        other = [x.text for x in ctx.outer if x.kind == kind]
        if other and self.chance(40):
            return str(self.one(other))
        bound = [x for x in self.scope.values if x.kind == kind]
        if bound and self.chance(50):
            found = self.one(bound)
            if found.loose and self.strict:
                return f"coalesce({found.text}, {self.constant(kind)})"
            return str(found.text)
        if self.chance(4):
            return f"cast(null as {self.cast_name(kind)})"
        return self.constant(kind)

    @staticmethod
    def cast_name(kind: str) -> str:
        return "decimal(12,2)" if kind == "decimal" else kind

    def expr(self, kind: str, ctx: Context, depth: int = 3) -> str:
        self.room -= 1
        if depth <= 0 or self.room <= 0 or self.chance(25):
            return self.leaf(kind, ctx)
        if ctx.rows is not None and self.chance(40):
            return self.aggregate(kind, ctx, depth - 1)
        if ctx.windows and self.chance(30):
            return self.window(kind, ctx, depth - 1)
        if self.chance(25):
            return self.of_any(kind, ctx, depth - 1)
        made: str = getattr(self, f"of_{kind}")(lambda k: self.expr(k, ctx, depth - 1), ctx, depth - 1)
        return made

    def of_any(self, kind: str, ctx: Context, depth: int) -> str:
        sub = lambda: self.expr(kind, ctx, depth)  # noqa: E731
        when = lambda: self.expr("bool", ctx, depth)  # noqa: E731
        choice = self.count(0, 8)
        match choice:
            case 0:
                return f"coalesce({sub()}, {sub()})"
            case 1:
                return f"case when {when()} then {sub()} else {sub()} end"
            case 2:
                return f"case when {when()} then {sub()} when {when()} then null end"
            case 3 if kind != "json":
                other = self.one([k for k in ORDERED if k != "bool"])
                first, second = self.expr(other, ctx, depth), self.expr(other, ctx, depth)
                return (
                    f"case {first} when {second} then {sub()} when {self.constant(other)} then {sub()} else {sub()} end"
                )
            case 4 if kind != "json":
                return f"nullif({sub()}, {sub()})"
            case 5 if kind not in ("json", "bytes", "bool"):
                return f"{self.one(('least', 'greatest'))}({', '.join(sub() for _ in range(self.count(1, 3)))})"
            case 6 | 7 if self.queries:
                return "(" + self.scalar(kind, ctx, depth) + ")"
            case _:
                return f"coalesce({sub()}, {sub()}, {self.constant(kind)})"

    def of_int(self, sub: Any, ctx: Context, depth: int) -> str:
        unit = self.one(UNITS)
        part = self.one(("year", "quarter", "month", "day", "hour", "minute", "second", "weekday"))
        time = self.one(("date", "timestamp"))
        number = self.one(NUMBERS)
        makes: list[Callable[[], str]] = [
            lambda: f"({sub('int')} {self.one(('+', '-', '*', '%', 'div'))} {sub('int')})",
            lambda: f"({sub('int')} {self.one(('+', '-', '*', '%', 'div'))} {self.constant('int')})",
            lambda: f"div({sub('int')}, {sub('int')})",
            lambda: f"(-{sub('int')})",
            lambda: f"{self.one(('abs', 'floor', 'ceil'))}({sub('int')})",
            lambda: f"round({sub('int')}, {self.one(('0', '1', '(-1)', '(-2)'))})",
            lambda: f"sign({sub(number)})",
            lambda: f"length({sub('text')})",
            lambda: f"position({sub('text')}, {sub('text')})",
            lambda: f"{part}({sub(time)})",
            lambda: f"extract({part} from {sub(time)})",
            lambda: f"date_diff('{unit}', {sub(time)}, {sub(self.one(('date', 'timestamp')))})",
            lambda: f"({sub('date')} - {sub('date')})",
            lambda: f"cast({sub(self.one(('decimal', 'float', 'bool', 'int')))} as int)",
            lambda: f"cast(cast({sub('int')} as text) as int)",
            lambda: f"cast(json_get({sub('json')}, 'q') as int)",
        ]
        return str(self.one(makes)())

    def of_float(self, sub: Any, ctx: Context, depth: int) -> str:
        number = self.one(NUMBERS)
        makes: list[Callable[[], str]] = [
            lambda: f"({sub('int')} / {sub('int')})",
            lambda: f"({sub('float')} {self.one(('+', '-', '*', '/', '%'))} {sub(number)})",
            lambda: f"(-{sub('float')})",
            lambda: f"{self.one(('abs', 'floor', 'ceil', 'round'))}({sub('float')})",
            lambda: f"round({sub('float')}, {self.one(('1', '2', '(-1)'))})",
            lambda: f"{self.one(('sqrt', 'ln'))}({sub(number)})",
            lambda: f"exp({sub('float')} % 3)",
            lambda: f"power({sub(number)}, {self.one(('2', '0.5', '(-1)'))})",
            lambda: f"cast({sub(number)} as float)",
        ]
        return str(self.one(makes)())

    def of_decimal(self, sub: Any, ctx: Context, depth: int) -> str:
        makes: list[Callable[[], str]] = [
            lambda: f"({sub('decimal')} {self.one(('+', '-'))} {sub(self.one(('int', 'decimal')))})",
            lambda: f"({self.leaf('decimal', ctx)} * {self.leaf(self.one(('int', 'decimal')), ctx)})",
            lambda: f"({self.leaf('decimal', ctx)} / {self.leaf(self.one(('int', 'decimal')), ctx)})",
            lambda: f"({sub('decimal')} % {self.one(('3', '0.5', '0'))})",
            lambda: f"(-{sub('decimal')})",
            lambda: f"{self.one(('abs', 'floor', 'ceil', 'round'))}({sub('decimal')})",
            lambda: f"round({sub('decimal')}, {self.one(('1', '2', '3', '(-1)'))})",
            lambda: f"cast({sub(self.one(NUMBERS))} as decimal(12,{self.one((0, 1, 2, 3))}))",
            lambda: f"coalesce({sub('decimal')}, {sub('int')})",
            lambda: f"cast(cast({sub('decimal')} as text) as decimal(14,3))",
        ]
        return str(self.one(makes)())

    def of_text(self, sub: Any, ctx: Context, depth: int) -> str:
        small = lambda: self.one(("0", "1", "2", "3", "(-1)", "10"))  # noqa: E731
        form = self.one(("'%Y-%m'", "'%d.%m.%Y %H:%M:%S'", "'%%Y'", "''", "'%m é %%'"))
        makes: list[Callable[[], str]] = [
            lambda: (
                f"({sub('text')} || {sub(self.one(('text', 'int', 'date', 'bool', 'decimal', 'timestamp', 'float')))})"
            ),
            lambda: f"{self.one(('lower', 'upper'))}({sub('text')})",
            lambda: f"substr({sub('text')}, {small()})",
            lambda: f"substr({sub('text')}, {small()}, {self.one(('0', '1', '2', '5'))})",
            lambda: f"substr({sub('text')}, {sub('int')} % 4, 2)",
            lambda: f"{self.one(('left', 'right'))}({sub('text')}, {small()})",
            lambda: f"{self.one(('left', 'right'))}({sub('text')}, {sub('int')} % 5)",
            lambda: f"{self.one(('trim', 'ltrim', 'rtrim'))}({sub('text')})",
            lambda: f"{self.one(('trim', 'ltrim', 'rtrim'))}({sub('text')}, {sub('text')})",
            lambda: f"replace({sub('text')}, {sub('text')}, {sub('text')})",
            lambda: f"cast({sub(self.one(('int', 'date', 'bool', 'decimal', 'timestamp', 'float')))} as text)",
            lambda: f"format_date({sub(self.one(('date', 'timestamp')))}, {form})",
            lambda: f"json_get({sub('json')}, {self.one((quoted('a'), quoted('a.b'), quoted('1.a'), sub('text')))})",
        ]
        return str(self.one(makes)())

    def of_bool(self, sub: Any, ctx: Context, depth: int) -> str:
        kind = self.one([k for k in ORDERED if k != "bool"])
        mixed = {"int": "decimal", "decimal": "float", "date": "timestamp", "timestamp": "date", "float": "int"}
        other = mixed.get(kind, kind) if self.chance(25) else kind
        no = "not " if self.chance(25) else ""
        op = self.one(("=", "<>", "<", "<=", ">", ">=", "!="))
        makes: list[Callable[[], str]] = [
            lambda: f"({sub(kind)} {op} {sub(other)})",
            lambda: f"({sub(kind)} {op} {sub(other)})",
            lambda: f"({sub('bool')} {self.one(('and', 'or', '=', '<>'))} {sub('bool')})",
            lambda: f"({sub('bool')} {self.one(('and', 'or'))} {sub('bool')})",
            lambda: f"(not {sub('bool')})",
            lambda: f"({sub(kind)} {no}between {sub(other)} and {sub(kind)})",
            lambda: f"({sub(kind)} {no}in ({', '.join(sub(kind) for _ in range(self.count(1, 3)))}))",
            lambda: f"({sub('text')} {no}{self.one(('like', 'ilike'))} {self.pattern(sub)})",
            lambda: f"({sub(self.one(KINDS))} is {no}null)",
            lambda: f"({sub(kind)} is {no}distinct from {sub(other)})",
            lambda: f"({sub('bool')} is {no}{self.one(('true', 'false'))})",
            lambda: f"starts_with({sub('text')}, {sub('text')})",
            lambda: f"cast({sub('int')} as bool)",
            lambda: self.in_list(kind, no, sub),
            lambda: self.in_list(kind, no, sub),
            lambda: self.exists_rows(),
        ]
        if self.queries:
            makes += [
                lambda: f"exists ({self.select(self.some(KINDS, 1, 2), ctx.seen_inside(), depth)[0]})",
                lambda: f"({sub(kind)} {no}in ({self.select([other], ctx.seen_inside(), depth)[0]}))",
            ]
        return str(self.one(makes)())

    def pattern(self, sub: Any) -> str:
        return (
            sub("text")
            if self.chance(20)
            else quoted(self.one(("%", "a%", "_", "%b", "%\\%%", "Ä", "%é%", "a\\_c", "")))
        )

    def in_list(self, kind: str, no: str, sub: Any) -> str:
        lists = [x for x in self.scope.lists if x.kind == kind]
        if not lists:
            lists = self.scope.lists
        if not lists:
            return f"({sub(kind)} {no}in ({sub(kind)}))"
        found = self.one(lists)
        place = f"({found.text})" if not self.strict and self.chance(30) else found.text
        return f"({sub(found.kind)} {no}in {place})"

    def exists_rows(self) -> str:
        if not self.scope.relations:
            return "true"
        return f"exists ${self.one(self.scope.relations)[0]}"

    def of_date(self, sub: Any, ctx: Context, depth: int) -> str:
        span = self.one(("1 day", "-3 day", "1 month", "2 year", "1 week", "1 month -1 day", "3 months"))
        makes: list[Callable[[], str]] = [
            lambda: f"({sub('date')} {self.one(('+', '-'))} interval '{span}')",
            lambda: f"({sub('date')} {self.one(('+', '-'))} {self.one(('1', '30', '365'))})",
            lambda: f"({sub('date')} + {sub('int')} % 100)",
            lambda: f"date_trunc('{self.one(UNITS)}', {sub('date')})",
            lambda: f"cast({sub('timestamp')} as date)",
            lambda: f"cast(cast({sub('date')} as text) as date)",
        ]
        return str(self.one(makes)())

    def of_timestamp(self, sub: Any, ctx: Context, depth: int) -> str:
        span = self.one(("1 day", "90 minute", "-1 second", "1 month", "1 microsecond", "25 hours"))
        makes: list[Callable[[], str]] = [
            lambda: f"({sub('timestamp')} {self.one(('+', '-'))} interval '{span}')",
            lambda: f"({sub('date')} + interval '{self.one(('3 hour', '1 day 30 minute'))}')",
            lambda: f"date_trunc('{self.one(UNITS)}', {sub('timestamp')})",
            lambda: f"cast({sub('date')} as timestamp)",
            lambda: f"coalesce({sub('timestamp')}, {sub('date')})",
            lambda: f"(case when {sub('bool')} then {sub('date')} else {sub('timestamp')} end)",
        ]
        return str(self.one(makes)())

    def of_json(self, sub: Any, ctx: Context, depth: int) -> str:
        return f"coalesce({sub('json')}, {self.constant('json')})"

    def of_bytes(self, sub: Any, ctx: Context, depth: int) -> str:
        return f"coalesce({sub('bytes')}, {self.constant('bytes')})"

    # ------------------------------------------------------------ aggregates and windows

    def aggregate(self, kind: str, ctx: Context, depth: int, over: str = "") -> str:
        inside = ctx if over else ctx.rows
        assert inside is not None
        inside.met = True
        if not over:
            inside = Context(inside.leaves)  # an aggregate over columns of a query around would be one of that query
        arg = lambda k: self.leaf(k, inside) if k == "float" else self.expr(k, inside, depth)  # noqa: E731
        distinct = "distinct " if not over and self.chance(20) else ""
        where = f" filter (where {self.expr('bool', inside.bare(), depth)})" if self.chance(20) else ""
        picks = [lambda: f"{self.one(('min', 'max'))}({arg(kind)})"]
        match kind:
            case "int":
                picks += [
                    lambda: "count(*)",
                    lambda: f"count({distinct}{arg(self.one(ORDERED))})",
                    lambda: f"sum({distinct}{arg('int')})",
                ]
            case "decimal":
                picks += [lambda: f"sum({distinct}{arg('decimal')})", lambda: f"avg({distinct}{arg('decimal')})"]
            case "float":
                picks += [
                    lambda: f"sum({distinct}{arg('float')})",
                    lambda: f"avg({distinct}{arg('int')})",
                    lambda: f"avg({arg('float')})",
                ]
                if not over:
                    picks.append(lambda: f"stddev({distinct}{arg(self.one(NUMBERS))})")
            case "text" if not over:
                order = self.one(
                    (f" order by {arg('int')} desc", f" order by {arg('text')}", f" order by {arg('date')} nulls first")
                )
                picks += [
                    lambda: f"string_agg({arg('text')}, {self.one((quoted(', '), quoted('')))}{order})",
                    lambda: f"string_agg({arg('text')}, '|')",
                    lambda: f"string_agg(distinct {arg('text')}, ',')",
                ]
            case "json":
                return self.leaf(kind, ctx)
        return str(self.one(picks)()) + where + over

    def window(self, kind: str, ctx: Context, depth: int) -> str:
        inside = ctx.of_window()
        sub = lambda k: self.expr(k, inside, min(depth, 1))  # noqa: E731
        parts = []
        if self.chance(50):
            parts.append("partition by " + ", ".join(sub(k) for k in self.some(ORDERED, 1, 2)))
        order = ""
        if self.chance(70):
            order = "order by " + ", ".join(self.order_key(sub(k)) for k in self.some(ORDERED, 1, 2))
            parts.append(order)
        plain = " over (" + " ".join(parts) + ")"
        frames = [
            "rows between unbounded preceding and current row",
            "rows 1 preceding",
            "rows between 1 preceding and 1 following",
        ]
        frames += [
            "rows between current row and unbounded following",
            "range between unbounded preceding and unbounded following",
        ]
        frames += ["range unbounded preceding", "rows between 2 preceding and 1 preceding"]
        framed = " over (" + " ".join([*parts, self.one(frames)]) + ")" if order and self.chance(40) else plain
        args = lambda: f"{sub(kind)}" + self.one(("", ", 1", f", 2, {sub(kind)}", ", 0"))  # noqa: E731
        picks = [
            lambda: f"{self.one(('lag', 'lead'))}({args()}){plain}",
            lambda: f"{self.one(('first_value', 'last_value'))}({sub(kind)}){framed}",
            lambda: self.aggregate(kind, inside, depth, framed),
        ]
        if kind == "int":
            picks += [lambda: f"{self.one(('row_number', 'rank', 'dense_rank'))}(){plain}"] * 2
        if kind == "json":
            picks = picks[:2]
        return str(self.one(picks)())

    @staticmethod
    def no_ordinal(text: str) -> str:
        """The expression, but no bare number, which would count columns."""
        return f"{text} + 0" if re.fullmatch(r"[(\d.)]+", text) else text

    def order_key(self, text: str) -> str:
        return text + self.one(("", " desc", " asc")) + self.one(("", "", " nulls first", " nulls last"))

    # ------------------------------------------------------------ queries

    def source(self, depth: int, taken: set[str]) -> tuple[str, str, list[tuple[str, str]], Table | None]:
        """A table to read from: text, alias, columns, and the table if it is one."""
        choice = self.count(0, 9)
        if choice >= 8 and depth > 0:
            alias = self.fresh("d")
            text, columns = self.query(self.some(KINDS, 1, 3), [], depth - 1)
            return f"({text}) as {alias}", alias, columns, None
        if choice >= 6 and self.scope.relations:
            name, columns = self.one(self.scope.relations)
            alias = self.fresh("s")
            return f"${name} as {alias}", alias, columns, None
        table = self.one(self.tables)
        columns = [(c.name, c.kind) for c in table.columns]
        if table.name not in taken and self.chance(30):
            taken.add(table.name)
            return table.text, table.text, columns, table
        alias = self.fresh("x")
        return f"{table.text}{self.one((' as ', ' '))}{alias}", alias, columns, table

    def sources(self, outer: list[Leaf], depth: int) -> tuple[str, list[Leaf], Table | None, str]:
        """A from clause, the columns it gives, and its first table."""
        taken = {x.text.rpartition(".")[0].strip('"') for x in outer}
        text, alias, columns, table = self.source(depth, taken)
        leaves = self.leaves(alias, columns)
        merged = False
        names = {n for n, _ in columns}
        first, joined = table, 0
        while joined < 2 and self.chance(35) and self.room > 0:
            joined += 1
            more, other, found, _ = self.source(depth, taken)
            right = self.leaves(other, found)
            shared = [
                n for n, k in found if n in names and k != "json" and (n, k) in columns and not merged and joined == 1
            ]
            kind = self.one(("join", "inner join", "left join", "right join", "full join", "cross join", ","))
            if kind in ("cross join", ","):
                text += f", {more}" if kind == "," else f" cross join {more}"
            elif shared and self.chance(60):
                text += f" {kind} {more} using ({name_text(shared[0])})"
                merged = True
                kinds = dict(columns)
                leaves.append(Leaf(name_text(shared[0]), kinds[shared[0]], plain=False))
            else:
                ctx = Context([*leaves, *right], outer)
                pairs = [(a, b) for a in leaves for b in right if a.kind == b.kind != "json"]
                on = self.expr("bool", ctx, 1)
                if pairs and self.chance(75):
                    a, b = self.one(pairs)
                    on = f"{a.text} = {b.text}" + (f" and {on}" if self.chance(20) else "")
                text += f" {kind} {more} on {on}"
            leaves += right
            first = None
        if not joined and self.chance(30):
            leaves = [Leaf(x.text[len(alias) + 1 :], x.kind, plain=False) for x in leaves]
        return text, leaves, first, alias

    @staticmethod
    def leaves(alias: str, columns: list[tuple[str, str]]) -> list[Leaf]:
        return [Leaf(f"{alias}.{name_text(n)}", k) for n, k in columns]

    def select(
        self, kinds: Sequence[str], outer: list[Leaf], depth: int, *, one: bool = False, bare: bool = False
    ) -> tuple[str, list[tuple[str, str]], Context, bool]:
        """A select of columns of these kinds: text, columns, where its order stands, and whether it is distinct.
        `one`: with just one row. `bare`: not grouped, not distinct."""
        self.room -= 1
        if not one and not bare and self.chance(4):
            ctx = Context([], outer)
            items = [(self.fresh("o"), k, self.expr(k, ctx, depth)) for k in kinds]
            return "select " + ", ".join(f"{e} as {n}" for n, _, e in items), [(n, k) for n, k, _ in items], ctx, True
        text, leaves, table, alias = self.sources(outer, depth)
        rows = Context(leaves, outer)
        group: list[str] = []
        grouped = one or (not bare and self.chance(30))
        if grouped and not one and self.chance(80):
            if table is not None and leaves and leaves[0].plain and self.chance(25):
                group = [f"{alias}.{name_text(k)}" for k in table.key]
                ctx = Context(leaves, outer, rows)
            else:
                keys = [(k, self.expr(k, Context(leaves), 1)) for k in self.some(ORDERED, 1, 2)]
                keys = [(k, e) for k, e in keys if any(x.text in e for x in leaves)] or [
                    (x.kind, x.text) for x in leaves[:1]
                ]
                keys = [(k, e) for k, e in keys if k != "json"]
                group = [e for _, e in keys]
                plain = {x.text for x in leaves if x.plain}
                ctx = Context([Leaf(e, k, e in plain) for k, e in keys], outer, rows)
                grouped = bool(keys)
            ctx.windows = self.chance(20)
            if not grouped:
                ctx = Context(leaves, outer, windows=True)
        elif grouped:
            ctx = Context([], outer, rows)
        else:
            ctx = Context(leaves, outer, windows=self.chance(30))
        distinct = not grouped and not bare and "json" not in kinds and self.chance(12)
        items = []
        for k in kinds:
            e = self.expr(k, ctx, depth)
            if (
                grouped
                and not group
                and not items
                and (one or not rows.met)
                and not AGGREGATE.search(without_queries(e))
            ):
                e, rows.met = f"case when count(*) >= 0 then {e} end", True
            named = [x for x in ctx.leaves if x.text == e and x.plain]
            name = self.fresh("o")
            items.append((name, k, f"{e} as {name}" if not named or self.chance(80) else f"{e} {name}"))
        where = f" where {self.expr('bool', Context(leaves, outer), depth)}" if self.chance(50) else ""
        written = []
        for e in group:
            place = next((i for i, (n, _, t) in enumerate(items, 1) if t == f"{e} as {n}"), 0)
            written.append(str(self.one((place, items[place - 1][0]))) if place and self.chance(40) else e)
        by = f" group by {', '.join(written)}" if written else ""
        having = ""
        if grouped and not one and self.chance(25):
            having = f" having {self.expr('bool', Context(ctx.leaves, ctx.outer, rows), depth)}"
        made = f"select {'distinct ' if distinct else ''}{', '.join(t for _, _, t in items)} from {text}{where}{by}{having}"
        return made, [(n, k) for n, k, _ in items], ctx, distinct

    def scalar(self, kind: str, ctx: Context, depth: int) -> str:
        """A query of one value."""
        outer = ctx.seen_inside()
        if kind == "json" or self.chance(40):
            text, _, inner, distinct = self.select([kind], outer, depth, bare=True)
            order = (
                ""
                if distinct or self.chance(50)
                else f" order by {self.order_key(self.no_ordinal(self.leaf(self.one(ORDERED), inner)))}"
            )
            return f"{text}{order} limit 1"
        return self.select([kind], outer, depth, one=True)[0]

    def query(
        self, kinds: Sequence[str], outer: list[Leaf], depth: int, paged: bool = True
    ) -> tuple[str, list[tuple[str, str]]]:
        """A whole query: selects, maybe joined by set operations, in some order."""
        if self.chance(15):
            return self.set_query(kinds, outer, depth, paged)
        text, columns, ctx, distinct = self.select(kinds, outer, depth)
        keys = []
        if self.chance(50):
            for name, kind in self.some(columns, 1, 2):
                if kind != "json":
                    at = [n for n, _ in columns].index(name) + 1
                    keys.append(self.order_key(self.one((name, str(at)))))
            if not distinct and self.chance(40):
                keys.append(self.order_key(self.no_ordinal(self.expr(self.one(ORDERED), ctx, 1))))
        order = f" order by {', '.join(keys)}" if keys else ""
        return text + order + (self.page() if paged else ""), columns

    def page(self) -> str:
        if not self.chance(25):
            return ""
        counts = [str(self.count(0, 4))] + [x.text for x in self.scope.values if x.text == "$most"]
        return f" limit {self.one(counts)}" + (f" offset {self.count(0, 2)}" if self.chance(40) else "")

    def set_query(
        self, kinds: Sequence[str], outer: list[Leaf], depth: int, paged: bool
    ) -> tuple[str, list[tuple[str, str]]]:
        op = self.one(("union", "union all", "intersect", "except", "intersect all", "except all"))
        if "json" in kinds:
            op = "union all"
        kinds = [*kinds]
        left, columns, _, _ = self.select(kinds, outer, depth)
        kinds = [k for _, k in columns]
        mixed = {"int": "decimal", "date": "timestamp", "timestamp": "date", "decimal": "float"}
        others = [mixed[k] if k in mixed and self.chance(10) else k for k in kinds]
        right, more, _, _ = self.select(others, outer, depth)
        if len(more) != len(columns):
            return left, columns
        if self.chance(20):
            right = f"({right} limit 3)"
        kinds = [_wider(a, b) for a, b in zip(kinds, (k for _, k in more), strict=True)]
        columns = [(n, k) for (n, _), k in zip(columns, kinds, strict=True)]
        text = f"{left} {op} {right}"
        keys = [self.order_key(n) for n, k in self.some(columns, 0, 2) if k != "json"]
        return text + (f" order by {', '.join(keys)}" if keys else "") + (self.page() if paged else ""), columns

    # ------------------------------------------------------------ statements

    def body(self, count: int, depth: int) -> list[str]:
        made: list[str] = []
        for _ in range(count):
            made += self.statement(depth)
        return made

    def statement(self, depth: int) -> list[str]:
        self.room = max(self.room, 40)
        choice = self.count(0, 99)
        title = ["-- " + self.one(("What there is", "Ein Satz: ü", "x"))] if self.chance(10) else []
        if choice < 40:
            return title + self.read_step()
        if choice < 58:
            return title + self.insert_step()
        if choice < 70:
            return title + self.update_step()
        if choice < 76:
            return title + self.delete_step()
        if choice < 88 and depth > 0:
            return title + self.loop(depth)
        if choice < 94 and depth > 0:
            return title + self.branch(depth)
        return title + self.assertion()

    def noted(self, name: str, columns: list[tuple[str, str]], card: str) -> None:
        """A step is known from here on."""
        scope = self.scope
        places = [(f"${name}.{name_text(n)}", k) for n, k in columns]
        if card in ("one", "maybe"):
            scope.values += [Leaf(t, k, loose=card == "maybe") for t, k in places]
        else:
            scope.lists += [Leaf(t, k) for t, k in places if k != "json"]
        scope.relations.append((name, columns))

    def read_step(self) -> list[str]:
        name = self.fresh("q")
        kinds = self.some(KINDS, 1, 3)
        choice = self.count(0, 9)
        shape, card = "", "many"
        if choice < 3:
            text, columns, _, _ = self.select(kinds, [], 2, one=True)
            card, shape = "one", self.one(("", "", " -> one", " -> maybe"))
            card = "maybe" if shape == " -> maybe" else "one"
        elif choice < 5:
            table = self.one(self.tables)
            columns = [(c.name, c.kind) for c in self.some(table.columns, 1, 3)]
            key = self.one([k for k in table.keys if not any(table.column(c).null for c in k)])
            where = " and ".join(f"{name_text(k)} = {self.key_value(table, k)}" for k in key)
            text = f"select {', '.join(name_text(n) for n, _ in columns)} from {table.text} where {where}"
            card, shape = "maybe", self.one(("", " -> maybe"))
            if self.chance(15):
                card, shape = "one", " -> one"
        else:
            text, columns = self.query(kinds, [], 2)
            if text.endswith(" limit 1"):
                card = "maybe"
            if card == "many" and self.chance(15) and "decimal" not in [k for _, k in columns]:
                shape = f" -> many {{{', '.join(f'{n} {k}' for n, k in columns)}}}"
        self.noted(name, columns, card)
        return [f"step {name}{shape}: {text};"]

    def key_value(self, table: Table, name: str) -> str:
        """A value that a key's column may have: mostly one that is there."""
        column = table.column(name)
        there = [r[name] for r in table.rows if r[name] is not None]
        bound = [x.text for x in self.scope.values if x.kind == column.kind and not x.loose]
        if bound and self.chance(30):
            return str(self.one(bound))
        return literal(self.one(there) if there and self.chance(85) else self.value(column.kind), column.kind)

    def stored(self, table: Table, c: Column, ctx: Context, fresh: bool = False) -> str:
        """A value to store: mostly one that the column takes."""
        if c.target is not None and not fresh:
            there = [r[c.target[1]] for r in c.target[0].rows]
            if c.null and (not there or self.chance(20)):
                return "null"
            if there and self.chance(85):
                return literal(self.one(there), c.kind)
            return f"coalesce((select max({name_text(c.target[1])}) from {c.target[0].text}), {self.constant(c.kind)})"
        if c.name in table.key or c.unique or any(c.name in u for u in table.uniques):
            if c.kind in ("int", "decimal"):
                return str(self.count(20, 60))
            made = self.expr(c.kind, ctx, 1) if self.chance(30) else "null"
            return literal(self.value(c.kind, 0), c.kind) if "null" in made else made
        if (c.holds is not None and self.chance(90)) or self.chance(40):
            value = self.held(c)
            return literal(value, c.kind)
        made = self.expr(c.kind, ctx, 2)
        if c.kind == "decimal":  # a literal may have more digits than the column
            made = f"cast({made} as decimal(9,0))"
        return (
            made
            if c.null
            else f"coalesce({made}, {literal(c.safe if c.safe is not None else self.value(c.kind, 0), c.kind)})"
        )

    def targets(self, table: Table) -> list[Column]:
        """Columns to insert into: those that must be, and some more."""
        found = []
        for c in table.columns:
            needed = c.name in table.key or (not c.null and not c.default) or any(c.name in k for k in table.keys)
            if not c.identity and (needed or self.chance(60)):
                found.append(c)
        return found or [c for c in table.columns if not c.identity][:1]

    def returning(self, table: Table, alias: str) -> tuple[str, list[tuple[str, str]]]:
        """A returning clause, and the columns of the step."""
        whole = [(c.name, c.kind) for c in table.columns]
        if self.chance(45):
            return "", whole
        if self.chance(20):
            return " returning *", whole
        ctx = Context(self.leaves(alias, whole))
        columns, items = [], []
        for c in self.some(table.columns, 1, 3):
            columns.append((c.name, c.kind))
            items.append(c.text)
        if self.chance(40):
            kind = self.one(KINDS)
            self.queries = False
            made = self.expr(kind, ctx, 2)
            self.queries = True
            name = self.fresh("o")
            columns.append((name, kind))
            items.append(f"{made} as {name}")
        return " returning " + ", ".join(items), columns

    def insert_step(self, in_loop: bool = False) -> list[str]:
        table = self.one(self.tables)
        columns = self.targets(table)
        name = self.fresh("w")
        card = "many"
        self.strict = True
        ctx = Context()
        choice = self.count(0, 9)
        conflict, returning, given = "", "", [(c.name, c.kind) for c in table.columns]
        nullable_key = False
        if self.chance(45):
            key = self.one([k for k in table.keys if not any(table.column(c).identity for c in k)] or [None])
            if key is not None:
                nullable_key = any(table.column(c).null for c in key)
                conflict = f" on conflict ({', '.join(map(name_text, key))}) "
                free = [c for c in columns if not any(c.name in k for k in table.keys) and c.target is None]
                if free and self.chance(50):
                    sets = []
                    for c in self.some(free, 1, 2):
                        seen = [Leaf(f"excluded.{x.text}", x.kind) for x in columns]
                        seen += [Leaf(f"{table.text}.{x.text}", x.kind) for x in table.columns]
                        value = (
                            f"excluded.{c.text}"
                            if c.holds is not None or self.chance(50)
                            else self.stored(table, c, Context(seen))
                        )
                        sets.append(f"{c.text} = {value}")
                    conflict += "do update set " + ", ".join(sets)
                else:
                    conflict += "do nothing"
        if choice < 6 or in_loop:
            count = 1 if in_loop or choice < 4 else self.count(2, 3)
            rows = []
            for _ in range(count):
                rows.append("(" + ", ".join(self.stored(table, c, ctx) for c in columns) + ")")
            text = "values " + ", ".join(rows)
            card = "one" if count == 1 and not conflict else "many"
        else:
            text = self.insert_query(table, columns)
        if not (nullable_key and conflict):
            returning, given = self.returning(table, table.text)
        elif conflict.endswith("do nothing") or True:
            self.strict = False
            return [f"step {name}: insert into {table.text} ({', '.join(c.text for c in columns)}) {text}{conflict};"]
        if card == "many" and text.startswith("values") and text.count("(") and conflict and returning and choice < 4:
            card = "one"
        self.strict = False
        self.noted(name, given, card)
        return [
            f"step {name}: insert into {table.text} ({', '.join(c.text for c in columns)}) {text}{conflict}{returning};"
        ]

    def insert_query(self, table: Table, columns: list[Column]) -> str:
        """A query whose columns fit a table."""
        text, leaves, _, _ = self.sources([], 1)
        ctx = Context(leaves)
        items = []
        for c in columns:
            own = [x.text for x in leaves if x.kind == c.kind]
            if c.name in table.key or c.unique:
                if c.kind in ("int", "decimal") and self.chance(70):
                    over = (
                        f"order by {self.one(leaves).text}"
                        if all(x.kind != "json" for x in leaves)
                        else "order by 1 + 1"
                    )
                    items.append(f"{self.count(100, 900)} + row_number() over ({over})")
                    continue
                if own and self.chance(80):
                    items.append(f"{self.one(own)} || 'z'" if c.kind == "text" else str(self.one(own)))
                    if not c.null:
                        items[-1] = f"coalesce({items[-1]}, {self.constant(c.kind)})"
                    continue
            items.append(self.stored(table, c, ctx))
        where = f" where {self.expr('bool', ctx, 2)}" if self.chance(60) else ""
        distinct = "distinct " if self.chance(15) and all(c.kind != "json" for c in columns) else ""
        return f"select {distinct}{', '.join(items)} from {text}{where}"

    def update_step(self, row: list[Leaf] | None = None) -> list[str]:
        table = self.one(self.tables)
        free = [c for c in table.columns if c.name not in table.key and not c.identity]
        if not free:
            return self.read_step()
        name = self.fresh("w")
        alias, spelled = (self.fresh("u"),) * 2 if self.chance(40) else (table.text, "")
        columns = [(c.name, c.kind) for c in table.columns]
        ctx = Context(self.leaves(alias, columns))
        source = ""
        self.strict = True
        conditions = []
        if row is not None:
            conditions = [self.pinned(table, alias, row)]
        elif self.chance(25):
            more, other, found, _ = self.source(1, {table.name, alias})
            right = self.leaves(other, found)
            pairs = [(a, b) for a in ctx.leaves for b in right if a.kind == b.kind != "json"]
            source = f" from {more}"
            if pairs and self.chance(85):
                a, b = self.one(pairs)
                conditions.append(f"{a.text} = {b.text}")
            ctx = Context([*ctx.leaves, *right])
        if not conditions or self.chance(40):
            conditions.append("true" if self.chance(35) and not conditions else self.expr("bool", ctx, 2))
        risky = [c for c in free if c.unique or c.target is not None or any(c.name in u for u in table.uniques)]
        chosen = self.some([c for c in free if c not in risky] or free, 1, 2)
        sets = []
        for c in chosen:
            sets.append(f"{c.text} = {self.stored(table, c, ctx)}")
        where = " and ".join(conditions)
        returning, given = ("", columns) if row is not None else self.returning(table, alias)
        self.strict = False
        self.noted(name, given, "many")
        shown = f" as {spelled}" if spelled else ""
        return [f"step {name}: update {table.text}{shown} set {', '.join(sets)}{source} where {where}{returning};"]

    def pinned(self, table: Table, alias: str, row: list[Leaf]) -> str:
        """A condition that picks rows of a table by a loop's row."""
        key = self.one(table.keys)
        parts = []
        for name in key:
            kind = table.column(name).kind
            own = [x.text for x in row if x.kind == kind]
            parts.append(f"{alias}.{name_text(name)} = {self.one(own) if own else self.key_value(table, name)}")
        return " and ".join(parts)

    def delete_step(self, row: list[Leaf] | None = None) -> list[str]:
        table = self.one(self.tables)
        name = self.fresh("w")
        alias, spelled = (self.fresh("u"),) * 2 if self.chance(30) else (table.text, "")
        columns = [(c.name, c.kind) for c in table.columns]
        self.strict = True
        conditions = [
            self.pinned(table, alias, row)
            if row is not None
            else self.expr("bool", Context(self.leaves(alias, columns)), 2)
        ]
        unnamed = self.unnamed(table, alias)
        returning, given = ("", columns) if row is not None else self.returning(table, alias)
        self.strict = False
        self.noted(name, given, "many")
        shown = f" as {spelled}" if spelled else ""
        return [f"step {name}: delete from {table.text}{shown} where {' and '.join(conditions)}{unnamed}{returning};"]

    def loop(self, depth: int) -> list[str]:
        if self.chance(50):
            return self.set_loop()
        if not self.scope.relations:
            return self.read_step()
        over, columns = self.one(self.scope.relations)
        name = self.fresh("r")
        outer, self.scope = self.scope, self.scope.inner()
        row = [Leaf(f"${name}.{name_text(n)}", k) for n, k in columns]
        self.scope.values = [*self.scope.values[-2:], *row]
        if self.chance(40):
            makes = [
                lambda: self.insert_step(in_loop=True),
                lambda: self.update_step(row),
                lambda: self.delete_step(row),
            ]
            body = [line for _ in range(self.count(1, 2)) for line in self.one(makes)()]
        else:
            body = self.body(self.count(1, 2), depth - 1)
        self.scope = outer
        each = self.one(("each ", ""))
        return [f"for {each}{name} in ${over} {{", *("  " + line for line in body), "}"]

    def set_loop(self) -> list[str]:
        """A loop over numbered rows of a table whose steps write rows of their own: it can be made set-based."""
        table = self.one(self.tables)
        step, name = self.fresh("q"), self.fresh("r")
        key = ", ".join(f"x.{name_text(k)}" for k in table.key)
        where = f" where {self.expr('bool', Context(self.leaves('x', table.seen)), 2)}" if self.chance(30) else ""
        columns = ", ".join(f"x.{c.text}" for c in table.columns)
        feed = f"step {step}: select {columns}, row_number() over (order by {key}) as n from {table.text} as x{where};"
        seen = [*table.seen, ("n", "int")]
        self.noted(step, seen, "many")
        outer, self.scope = self.scope, self.scope.inner()
        row = [Leaf(f"${name}.{name_text(n)}", k) for n, k in seen]
        self.scope.values = [*self.scope.values[-2:], *row]
        self.strict = True
        body = []
        for _ in range(self.count(1, 2)):
            target = table if self.chance(60) else self.one(self.tables)
            choice = self.count(0, 2)
            own = {leaf.text.partition(".")[2]: leaf.text for leaf in row}
            known = [name_text(k) for k in target.key]
            pins = " and ".join(f"{k} = {own[k]}" for k in known) if all(k in own for k in known) else ""
            free = [c for c in target.columns if not any(c.name in k for k in target.keys) and c.target is None]
            if choice == 0 or not pins or (choice == 1 and not free):
                body.append(self.numbered_insert(target, name, own))
            elif choice == 1:
                ctx = Context([Leaf(c.text, c.kind, plain=False) for c in target.columns])
                sets = ", ".join(f"{c.text} = {self.stored(target, c, ctx)}" for c in self.some(free, 1, 2))
                more = f" and {self.expr('bool', ctx, 1)}" if self.chance(20) else ""
                body.append(f"step {self.fresh('w')}: update {target.text} set {sets} where {pins}{more};")
            else:
                body.append(
                    f"step {self.fresh('w')}: delete from {target.text} where {pins}{self.unnamed(target, target.text)};"
                )
        self.strict = False
        self.scope = outer
        return [feed, f"for each {name} in ${step} {{", *("  " + line for line in body), "}"]

    def numbered_insert(self, table: Table, row: str, own: dict[str, str]) -> str:
        base, n = self.count(1, 9) * 1000, f"${row}.n"
        new = {
            "int": f"{n} + {base}", "decimal": f"{n} + {base}", "text": f"'z{base}' || {n}", "bool": "true",
            "date": f"date '2030-01-01' + {n} + {base}", "timestamp": f"timestamp '2030-01-01' + ({n} + {base})",
        }  # fmt: skip
        columns, values = self.targets(table), []
        for c in columns:
            if c.target is not None and name_text(c.target[1]) in own and self.chance(80):
                values.append(own[name_text(c.target[1])])
            elif c.kind in new and c.target is None and any(c.name in k for k in table.keys):
                values.append(new[c.kind])
            else:
                values.append(self.stored(table, c, Context()))
        names = ", ".join(c.text for c in columns)
        return f"step {self.fresh('w')}: insert into {table.text} ({names}) values ({', '.join(values)});"

    def unnamed(self, table: Table, alias: str) -> str:
        """Conditions that no other row names a row of the table."""
        made = ""
        for other in self.tables:
            for c in other.columns:
                if c.target is not None and c.target[0] is table and self.chance(90):
                    inner = self.fresh("x")
                    match = f"{inner}.{c.text} = {alias}.{name_text(c.target[1])}"
                    made += f" and not exists (select 1 from {other.text} as {inner} where {match})"
        return made

    def condition(self) -> str:
        ctx = Context()
        return self.expr("bool", ctx, 2)

    def branch(self, depth: int) -> list[str]:
        outer = self.scope
        lines = [f"if {self.condition()} {{"]
        self.scope = outer.inner()
        lines += ["  " + line for line in self.body(self.count(0, 2), depth - 1)]
        if self.chance(50):
            self.scope = outer
            more = f" else if {self.condition()} {{" if self.chance(30) else " else {"
            lines.append("}" + more)
            self.scope = outer.inner()
            lines += ["  " + line for line in self.body(self.count(0, 2), depth - 1)]
        self.scope = outer
        return [*lines, "}"]

    def assertion(self) -> list[str]:
        condition = self.condition()
        if self.chance(75):
            condition = (
                f"{condition} is not false or true" if self.chance(50) else f"coalesce({condition}, true) or 1 = 1"
            )
        return [f"assert {condition} else {self.template()};"]

    def template(self) -> str:
        parts = []
        for _ in range(self.count(0, 3)):
            parts.append(self.one(("So: ", " und ", "{{x}}", "é ", ", ")))
            places = [x.text for x in (*self.scope.values, *self.scope.lists)]
            numbers = [x.text for x in self.scope.values if x.kind == "int" and "'" not in x.text]
            if numbers and self.chance(30):
                parts.append(f"{{{self.one(numbers)} / 3}}" if self.chance(50) else f"{{abs({self.one(numbers)} - 1)}}")
            elif places:
                parts.append(f"{{{self.one([p for p in places if chr(39) not in p] or ['1 + 1'])}}}")
        text = "".join(parts)
        return f'"{text}"' if text and self.chance(20) and '"' not in text else f"'{text}'"

    def ending(self) -> list[str]:
        lines = []
        choice = self.count(0, 5)
        if choice == 1 and self.scope.relations:
            lines.append(f"return ${self.one(self.scope.relations)[0]};")
        elif choice == 2:
            lines.append(f"return {self.query(self.some(KINDS, 1, 3), [], 2)[0]};")
        elif choice == 3:
            items = [f"{self.expr(k, Context(), 2)} as {self.fresh('o')}" for k in self.some(KINDS, 1, 3)]
            lines.append(f"return {', '.join(items)};")
        elif choice == 4 and self.scope.relations:
            one = self.one(self.scope.relations)[0]
            lines += [f"if exists ${one} {{", f"  return ${one};", "} else {", "  return 'none' as nothing;", "}"]
        if self.chance(60):
            lines.append(f"answer {self.template()};")
        return lines

    # ------------------------------------------------------------ parameters

    def parameter(self) -> None:
        name = self.fresh("p")
        choice = self.count(0, 9)
        if choice < 5:
            kind = self.one(KINDS)
            type_ = "decimal(9,2)" if kind == "decimal" else kind
            value = self.value(kind)
            default = ""
            if self.chance(15):
                default, value = " = null", self.one((None, value))
            elif self.chance(15) and kind not in ("json", "bytes", "float"):
                default = f" = {literal(self.value(kind), kind).strip('()')}"
                if self.chance(50):
                    value = ...
            self.parameters.append(f"{name} {type_}{default}")
            if value is not ...:
                self.arguments[name] = value
            self.scope.values.append(Leaf(f"${name}", kind))
        elif choice < 7:
            kind = self.one(("int", "text", "date", "decimal", "timestamp", "bool", "float", "bytes"))
            self.parameters.append(f"{name} {'decimal(9,2)' if kind == 'decimal' else kind}[]")
            self.arguments[name] = [self.value(kind) for _ in range(self.count(0, 4))]
            self.scope.lists.append(Leaf(f"${name}", kind))
        else:
            columns = [(self.fresh("f"), k) for k in self.some(KINDS, 1, 3)]
            card = self.one(("many", "many", "many", "one", "maybe"))
            shown = ", ".join(f"{n} {'decimal(9,2)' if k == 'decimal' else k}" for n, k in columns)
            self.parameters.append(f"{name} {card} {{{shown}}}")
            count = {"many": self.count(0, 5), "one": 1}.get(card, self.count(0, 1))
            self.arguments[name] = [[self.value(k) for _, k in columns] for _ in range(count)]
            self.noted(name, columns, card)

    def program(self) -> str:
        for _ in range(self.count(0, 3)):
            self.parameter()
        if self.chance(20):
            self.parameters.append("most int = 2")
            self.scope.values.append(Leaf("$most", "int"))
        lines = self.body(self.count(1, 6), 2) + self.ending()
        header = f"program drawn({', '.join(self.parameters)});" if self.parameters else "program drawn;"
        return "\n".join([header, *lines]) + "\n"

    # ------------------------------------------------------------ wholes

    def schema_text(self) -> str:
        return "\n".join(t.declared() for t in self.tables)

    def fill_text(self) -> str:
        steps = [t.filled().replace(f"step {t.name}_rows", f"step fill{i}") for i, t in enumerate(self.tables)]
        return "program fill;\n" + "\n".join(s for s in steps if s) + "\n"

    def case(self) -> Case:
        self.schema()
        program = self.program()
        return Case(self.schema_text(), self.fill_text(), program, self.arguments)

    def predicate(self) -> Predicate:
        self.schema()
        table = self.one(self.tables)
        ctx = Context(self.leaves("t", [(c.name, c.kind) for c in table.columns]))
        condition = self.expr("bool", ctx, 3)
        keys = []
        for kind in self.some(ORDERED, 1, 3):
            text = self.expr(kind, ctx, 1)
            keys.append((self.no_ordinal(text), kind, self.chance(50), self.one(("", "first", "last"))))
        names = [c.name for c in table.columns]
        return Predicate(self.schema_text(), self.fill_text(), table.text, names, condition, keys)


def _wider(left: str, right: str) -> str:
    if left == right:
        return left
    if "timestamp" in (left, right):
        return "timestamp"
    return "float" if "float" in (left, right) else "decimal"


@st.composite
def cases(draw: Any, shrinks: bool = False) -> Case:
    """A schema, rows, a program and its arguments. Unless it `shrinks`, a case is drawn as one number, which is much
    quicker: `lesser` makes it small."""
    return Maker(_pick(draw, shrinks)).case()


@st.composite
def predicates(draw: Any, shrinks: bool = False) -> Predicate:
    """A condition over the columns of a table that has rows."""
    return Maker(_pick(draw, shrinks)).predicate()


def _pick(draw: Any, shrinks: bool) -> Pick:
    if shrinks:
        return lambda least, most: int(draw(st.integers(least, most)))
    return random.Random(draw(st.integers(0, 2**64 - 1))).randint


def lesser(case: Case, fails: Callable[[Case], bool]) -> Case:
    """The case without all lines of its program, and of its rows, that it needs not to fail."""
    for name in ("program", "fill", "schema"):
        lines = getattr(case, name).split("\n")
        for width in (8, 4, 2, 1):
            at = len(lines) - width
            while at >= 0:
                without = replace(case, **{name: "\n".join(lines[:at] + lines[at + width :])})
                if fails(without):
                    case, lines = without, lines[:at] + lines[at + width :]
                at -= 1
    return case
