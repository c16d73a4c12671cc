"""One small table an engine: how it writes what com means, and what it cannot do.

A table says it in terms of a `Writer`, which makes SQL trees; here they are opaque, so that sqlglot stays in one room.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from com import plan
from com.compiler import ir
from com.node import Node
from com.schema import Column, Type

Tree = Any
"""A SQL tree in the making."""


CHAIN = frozenset({"+", "-", "*", "negate", "div"})
"""Arithmetic whose parts may leave their type for a while: only the whole is brought back to it."""


class Writer(Protocol):
    """What makes SQL trees of IR and of parts."""

    def expr(self, node: ir.Expr) -> Tree:
        """The tree of an expression."""

    def bind(self, binding: plan.Binding) -> Tree:
        """A parameter."""

    def column(self, alias: str, name: str) -> Tree:
        """A column, without its table if `alias` is empty."""

    def call(self, name: str, *args: Tree) -> Tree:
        """A function's call."""

    def binary(self, operator: str, left: Tree, right: Tree) -> Tree:
        """An operator between two operands, in parentheses where they are needed."""

    def cast(self, tree: Tree, to: str) -> Tree:
        """A cast to a type of the engine."""

    def text(self, value: str) -> Tree:
        """A text's literal."""

    def number(self, value: object) -> Tree:
        """A number's literal."""

    def null(self) -> Tree:
        """Null."""

    def is_null(self, tree: Tree, negated: bool = False) -> Tree:
        """`is [not] null`"""

    def case(self, whens: Sequence[tuple[Tree, Tree]], otherwise: Tree | None) -> Tree:
        """A searched case."""

    def aggregate(self, name: str, args: Sequence[Tree], distinct: bool = False) -> Tree:
        """An aggregate's call."""

    def unsupported(self, what: str, instead: str) -> None:
        """Tells that the engine cannot express what stands here."""

    def picked(
        self, columns: Sequence[tuple[Tree, str]], source: Tree, limit: Tree | None = None, behind: str = ""
    ) -> Tree:
        """A plain select of named columns from one source; `behind`: a table of one row to cross join it with."""

    def calling(self, name: str, args: Sequence[Tree], alias: str, columns: Sequence[str] = ()) -> Tree:
        """A function that gives rows, as a source. `columns`: names for its columns, the last one its rows' number."""

    def words(self, *parts: str | Tree) -> Tree:
        """Trees between words of the engine's own syntax."""

    def collated(self, tree: Tree, collation: str) -> Tree:
        """A text under a collation."""

    def varying(self, keys: Sequence[ir.OrderKey]) -> list[ir.OrderKey]:
        """The keys of an order that can tell rows apart."""

    def ordered(self, sep: Tree, order: Sequence[ir.OrderKey]) -> Tree:
        """The last argument of an aggregate, with an order behind it."""

    def aggregated(self, e: Aggregation, name: str, args: Sequence[Tree], distinct: bool = False) -> Tree:
        """An aggregate's call with its filter, and its window."""


Render = Callable[[Writer, ir.Apply], Tree]
Aggregation = ir.Aggregate | ir.Window


def _bare(w: Writer, type_: Type, tree: Tree) -> Tree:
    return tree


def _plain(w: Writer, value: object, type_: Type) -> Tree | None:
    return None


def _every(join: ir.Join) -> bool:
    return True


def _divided(w: Writer, left: Tree, right: Tree) -> Tree:
    return w.binary("/", left, right)


class Engine(Node):
    """How an engine differs. `functions`: operators and functions by their names in com.functions; those not listed
    are calls of the same name. `settle` brings the result of arithmetic to its type. `rows` and `values` read a bound
    relation and a bound list. `image` writes a value for a row's image; `objects` and `arrays` make JSON of images.
    `stored` names the type of a column in DDL, given whether it is a key by itself, and of how many columns the widest
    key with it is (0: none). `no_limit` is the limit that cuts nothing, `digits` what a
    decimal can have; `cut` makes an error of a limit or offset below zero.

    `bound` gives a parameter its type, `operand` a part of arithmetic; `literal` writes constants that need a type, or
    gives None; `divided` is `div`; `collate` makes a text be compared by code point; `adapt` does all that a column
    needs which others made (see com.schema.Column); `row_id` tells rows of a table without a key apart. `typed`
    engines have types of their own, and want every expression to have one. `aliased`: `returning` knows the target's
    alias. `returns`: the writes that have `returning`; `returns_bound`: it may hold bound values. `upserts`: inserts
    have `on conflict`; `filters`: aggregates have `filter`; `counts`: a limit may be computed; `sequences`: ids come
    from sequences; `overriding`: the words that let a program give an id where the engine makes it; `writes`: whether
    com writes there; `one_key`: a type that null is cast to where all rows are one group; `foreign_keys`: the engine
    can be left to check them; `joins`: whether it can do a join."""

    name: str
    title: str
    dialect: str
    functions: Mapping[str, Render]
    aggregates: Mapping[str, Callable[[Writer, Aggregation, list[Tree]], Tree]]
    cast: Callable[[Writer, ir.Cast], Tree]
    settle: Callable[[Writer, ir.Apply, Tree], Tree]
    rows: Callable[[Writer, plan.Rows, str | None, bool], Tree]
    values: Callable[[Writer, plan.Many, Type], Tree]
    image: Callable[[Writer, Type, Tree], Tree]
    part: Callable[[Writer, Type, Tree], Tree]
    objects: Callable[[Writer, Sequence[tuple[str, Tree]]], Tree]
    arrays: Callable[[Writer, Sequence[Tree]], Tree]
    extract: Callable[[Writer, Tree, int], Tree]
    stored: Callable[[Column, bool, int], str]
    no_limit: int
    digits: int
    cut: Callable[[Writer, Tree], Tree]
    bound: Callable[[Writer, Type, Tree], Tree] = _bare
    operand: Callable[[Writer, Type, Tree], Tree] = _bare
    collate: Callable[[Writer, Type, Tree], Tree] = _bare
    adapt: Callable[[Writer, Type, Tree], Tree] = _bare
    literal: Callable[[Writer, object, Type], Tree | None] = _plain
    divided: Callable[[Writer, Tree, Tree], Tree] = _divided
    row_id: str = "_rowid_"
    typed: bool = False
    aliased: bool = False
    returns: frozenset[str] = frozenset({"insert", "update", "delete"})
    returns_bound: bool = True
    upserts: bool = True
    filters: bool = True
    counts: bool = True
    sequences: bool = False
    overriding: str = ""
    writes: bool = True
    one_key: str = "CHAR(1)"
    foreign_keys: bool = True
    joins: Callable[[ir.Join], bool] = _every


EXECUTED = ("sqlite", "postgres", "duckdb", "mysql")
"""The engines that com runs programs on."""
COMPILED = ("spark", "trino", "bigquery", "snowflake")
"""The engines that programs are compiled for, and that others run: they have no memory of com's."""
NAMES = EXECUTED + COMPILED
"""The engines that plans are made for."""


def load(name: str) -> Engine:
    """The table of an engine."""
    name = {"postgresql": "postgres", "mariadb": "mysql"}.get(name, name)
    assert name in NAMES
    found: Engine = import_module(f"com.compiler.engines.{name}").ENGINE
    return found
