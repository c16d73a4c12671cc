"""SQL as trees of sqlglot's node classes, never as text; and the one way from a tree to text.

Every name is quoted, and every node is of a class on the positive list below.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from sqlglot import expressions as exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel
from sqlglot.generator import Generator

Tree = exp.Expr

ALLOWED = (
    exp.Add, exp.Alias, exp.And, exp.Anonymous, exp.Between, exp.Boolean, exp.Case, exp.Cast, exp.Check,
    exp.CheckColumnConstraint, exp.Collate, exp.Column, exp.ColumnConstraint, exp.ColumnDef, exp.Create,
    exp.DataType, exp.DefaultColumnConstraint, exp.Delete, exp.Distinct, exp.Div, exp.DPipe, exp.EQ, exp.Escape,
    exp.Except, exp.Exists, exp.Filter, exp.ForeignKey, exp.From, exp.Group, exp.GT, exp.GTE, exp.Having,
    exp.HexString, exp.Identifier, exp.In, exp.Index, exp.IndexParameters, exp.Insert, exp.IntDiv, exp.Intersect,
    exp.Is, exp.Join, exp.Like, exp.Limit, exp.Literal, exp.LT, exp.LTE, exp.Mod, exp.Mul, exp.Neg, exp.NEQ,
    exp.Not, exp.NotNullColumnConstraint, exp.Null, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Offset, exp.OnConflict,
    exp.Or, exp.Order, exp.Ordered, exp.Paren, exp.Placeholder, exp.PrimaryKey, exp.PrimaryKeyColumnConstraint,
    exp.Reference, exp.Returning, exp.Schema, exp.Select, exp.Star, exp.Sub, exp.Subquery, exp.Table,
    exp.TableAlias, exp.Tuple, exp.Union, exp.UniqueColumnConstraint, exp.Update, exp.Values, exp.Var, exp.Where,
    exp.Window, exp.WindowSpec,
)  # fmt: skip
"""The only node classes that are ever written as SQL."""

BINARY: dict[str, type[exp.Expression]] = {
    "or": exp.Or, "and": exp.And, "=": exp.EQ, "<>": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE,
    "like": exp.Like, "escape": exp.Escape, "||": exp.DPipe, "+": exp.Add, "-": exp.Sub, "*": exp.Mul, "/": exp.Div,
    "%": exp.Mod, "is": exp.Is, "is distinct from": exp.NullSafeNEQ, "<=>": exp.NullSafeEQ, "//": exp.IntDiv,
}  # fmt: skip
ORDERING = frozenset({"<", "<=", ">", ">="})
_LEVEL: dict[type[exp.Expr], int] = {
    exp.Or: 1, exp.And: 2, exp.Not: 3, exp.EQ: 4, exp.NEQ: 4, exp.LT: 4, exp.LTE: 4, exp.GT: 4, exp.GTE: 4,
    exp.Like: 4, exp.Escape: 4, exp.Is: 4, exp.In: 4, exp.Between: 4, exp.DPipe: 5, exp.Add: 6, exp.Sub: 6,
    exp.NullSafeNEQ: 4, exp.NullSafeEQ: 4, exp.Mul: 7, exp.Div: 7, exp.IntDiv: 7, exp.Mod: 7,
    exp.Collate: 8, exp.Neg: 9, exp.Select: 0, exp.Union: 0,
}  # fmt: skip
"""How tightly each operator binds; all else binds tighter."""

# ---------------------------------------------------------------- parts of trees


@lru_cache(maxsize=4096)
def name(text: str) -> exp.Identifier:
    """A quoted name. Trees share them: the generator reads, and changes nothing."""
    return exp.Identifier(this=text, quoted=True)


@lru_cache(maxsize=4096)
def column(alias: str, text: str) -> exp.Column:
    """A column, without its table if `alias` is empty."""
    return exp.Column(this=name(text), table=name(alias)) if alias else exp.Column(this=name(text))


def at(tree: Tree, level: int) -> Tree:
    """The tree, in parentheses if it binds less tightly than this."""
    return exp.Paren(this=tree) if _LEVEL.get(type(tree), 10) < level else tree


def binary(operator: str, left: Tree, right: Tree) -> Tree:
    made = BINARY[operator]
    level = _LEVEL[made]
    if level < 3:
        return made(this=at(left, level), expression=at(right, level + 1))
    if made is exp.Escape:
        return made(this=left, expression=right)
    if level == 4:
        return made(this=at(left, 5), expression=at(right, 5))
    if made is exp.DPipe:  # engines differ in how tightly it binds
        return made(this=left if type(left) is exp.DPipe else at(left, 10), expression=at(right, 10))
    return made(this=at(left, level), expression=at(right, level + 1))


def both(conditions: Iterable[Tree | None]) -> Tree | None:
    """All conditions joined by `and`, or None if there is none."""
    made: Tree | None = None
    for condition in conditions:
        if condition is not None:
            made = condition if made is None else binary("and", made, condition)
    return made


def negated(tree: Tree) -> Tree:
    if type(tree) is exp.Is and not tree.args.get("negate"):
        tree.args["negate"] = True
        return tree
    return exp.Not(this=at(tree, 3))


def holds_query(tree: Tree) -> bool:
    """True if a query stands somewhere in a tree."""
    return next(tree.find_all(exp.Query), None) is not None


def apart(tree: Tree) -> Tree:
    """A collation in parentheses: PostgreSQL takes none after `between`."""
    return exp.Paren(this=tree) if isinstance(tree, exp.Collate) else tree


def is_null(tree: Tree, negate: bool = False) -> Tree:
    return exp.Is(this=at(tree, 5), expression=exp.Null(), negate=negate)


def call(function: str, *args: Tree) -> Tree:
    return exp.Anonymous(this=function, expressions=list(args))


def text(value: str) -> Tree:
    return exp.Literal(this=value, is_string=True)


def number(value: object) -> Tree:
    shown = str(value)
    if shown[0] == "-":
        return exp.Neg(this=exp.Literal(this=shown[1:], is_string=False))
    return exp.Literal(this=shown, is_string=False)


def is_literal(tree: Tree) -> bool:
    """True for a number or text as it stands, with a sign or without."""
    return type(tree.this if type(tree) is exp.Neg else tree) is exp.Literal


def alias(tree: Tree, as_: str) -> Tree:
    return exp.Alias(this=tree, alias=name(as_))


def table(of: str, as_: str = "") -> exp.Table:
    return exp.Table(this=name(of), alias=exp.TableAlias(this=name(as_))) if as_ else exp.Table(this=name(of))


def derived(query: Tree, as_: str) -> Tree:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=name(as_)))


def select(
    columns: Sequence[Tree],
    source: Tree | None = None,
    where: Tree | None = None,
    order: Sequence[Tree] = (),
    joins: Sequence[Tree] = (),
    limit: Tree | None = None,
) -> exp.Select:
    made: dict[str, Any] = {"expressions": list(columns)}
    if source is not None:
        made["from_"] = exp.From(this=source)
    if joins:
        made["joins"] = list(joins)
    if where is not None:
        made["where"] = exp.Where(this=where)
    if order:
        made["order"] = exp.Order(expressions=list(order))
    if limit is not None:
        made["limit"] = exp.Limit(expression=limit)
    return exp.Select(**made)


def join(source: Tree, on: Tree | None, kind: str = "inner") -> Tree:
    if kind in ("left", "right", "full"):
        return exp.Join(this=source, side=kind.upper(), on=on)
    return exp.Join(this=source, kind="INNER", on=on)


def ordered(tree: Tree, descending: bool = False, nulls_first: bool | None = None) -> Tree:
    """A key of an order. Without `nulls_first` the engine's own place of nulls will do."""
    return exp.Ordered(this=tree, desc=True if descending else None, nulls_first=nulls_first)


def row_number(order: Sequence[Tree], partition: Sequence[Tree] = ()) -> Tree:
    made: dict[str, Any] = {"this": call("row_number")}
    if partition:
        made["partition_by"] = list(partition)
    if order:
        made["order"] = exp.Order(expressions=list(order))
    return exp.Window(**made)


def row(trees: Sequence[Tree]) -> Tree:
    return trees[0] if len(trees) == 1 else exp.Tuple(expressions=list(trees))


def met_twice(made: exp.Select, keys: Sequence[Tree]) -> Tree:
    """A select, of whose rows only those stay that have a key in common with another; at most one."""
    made.set("group", exp.Group(expressions=list(keys)))
    made.set("having", exp.Having(this=binary(">", call("count", exp.Star()), number(1))))
    made.set("limit", exp.Limit(expression=number(1)))
    return made


def is_in(trees: Sequence[Tree], query: Tree) -> Tree:
    return exp.In(this=at(row(trees), 5), query=exp.Subquery(this=query))


def is_one_of(trees: Sequence[Tree], rows: Sequence[Sequence[Tree]]) -> Tree:
    return exp.In(this=at(row(trees), 5), expressions=[row(r) for r in rows])


def exists(query: Tree) -> Tree:
    return exp.Exists(this=query)


def scalar(query: Tree) -> Tree:
    return exp.Subquery(this=query)


def star() -> Tree:
    return exp.Star()


def null() -> Tree:
    return exp.Null()


def values(rows: Sequence[Sequence[Tree]]) -> Tree:
    return exp.Values(expressions=[exp.Tuple(expressions=list(r)) for r in rows])


def insert(
    into: str,
    columns: Sequence[str],
    source: Tree,
    conflict: Tree | None = None,
    returning: Sequence[Tree] = (),
) -> Tree:
    target = exp.Schema(this=table(into), expressions=[name(c) for c in columns])
    return exp.Insert(this=target, expression=source, conflict=conflict, returning=_returning(returning))


def on_conflict(columns: Sequence[str], assignments: Sequence[tuple[str, Tree]] = ()) -> Tree:
    """What is done with a row whose key is taken: nothing, or the assignments."""
    keys = [name(c) for c in columns]
    action = exp.Var(this="DO UPDATE" if assignments else "DO NOTHING")
    return exp.OnConflict(conflict_keys=keys, action=action, expressions=_assigned(assignments) or None)


def update(
    target: Tree,
    assignments: Sequence[tuple[str, Tree]],
    where: Tree,
    source: tuple[Tree, list[Tree]] | None = None,
    returning: Sequence[Tree] = (),
) -> Tree:
    made: dict[str, Any] = {"this": target, "expressions": _assigned(assignments), "where": exp.Where(this=where)}
    if source is not None:
        first, joins = source
        if joins:
            first.set("joins", joins)
        made["from_"] = exp.From(this=first)
    return exp.Update(**made, returning=_returning(returning))


def delete(target: Tree, where: Tree, returning: Sequence[Tree] = ()) -> Tree:
    return exp.Delete(this=target, where=exp.Where(this=where), returning=_returning(returning))


def _assigned(assignments: Sequence[tuple[str, Tree]]) -> list[Tree]:
    return [exp.EQ(this=column("", c), expression=tree) for c, tree in assignments]


def _returning(trees: Sequence[Tree]) -> Tree | None:
    return exp.Returning(expressions=list(trees)) if trees else None


# ---------------------------------------------------------------- tables


def column_def(column_: str, type_: str, *, key: bool, required: bool, default: Tree | None) -> Tree:
    """A column of a new table; `key` if it is the primary key by itself."""
    kinds: list[Tree] = [exp.PrimaryKeyColumnConstraint()] if key else []
    if required:
        kinds.append(exp.NotNullColumnConstraint())
    if default is not None:
        bare = isinstance(default, exp.Literal | exp.Boolean | exp.Null | exp.HexString)
        kinds.append(exp.DefaultColumnConstraint(this=default if bare else exp.Paren(this=default)))
    constraints = [exp.ColumnConstraint(kind=k) for k in kinds]
    return exp.ColumnDef(this=name(column_), kind=type_name(type_), constraints=constraints)


def key_def(columns: Sequence[str]) -> Tree:
    return exp.PrimaryKey(expressions=[name(c) for c in columns])


def unique_def(columns: Sequence[str]) -> Tree:
    return exp.UniqueColumnConstraint(this=exp.Schema(expressions=[name(c) for c in columns]))


def check_def(condition: Tree) -> Tree:
    return exp.CheckColumnConstraint(this=condition)


def called(tree: Tree) -> list[str]:
    """The functions that a tree calls."""
    return sorted({node.name for node in tree.find_all(exp.Anonymous)})


def foreign_key_def(columns: Sequence[str], of: str, target: Sequence[str]) -> Tree:
    named = exp.Schema(this=table(of), expressions=[name(c) for c in target]) if target else table(of)
    return exp.ForeignKey(expressions=[name(c) for c in columns], reference=exp.Reference(this=named))


def create_table(of: str, parts: Sequence[Tree]) -> Tree:
    return exp.Create(this=exp.Schema(this=table(of), expressions=list(parts)), kind="TABLE")


def create_sequence(of: str) -> Tree:
    return exp.Create(this=table(of), kind="SEQUENCE")


def create_index(index: str, of: str, columns: Sequence[str]) -> Tree:
    params = exp.IndexParameters(columns=[name(c) for c in columns])
    return exp.Create(this=exp.Index(this=name(index), table=table(of), params=params), kind="INDEX")


def type_name(text_: str) -> Tree:
    return exp.DataType(this=exp.DType.USERDEFINED, kind=text_)


def worded(*parts: str | Tree) -> Tree:
    """Trees between words of an engine's own syntax."""
    return Words(expressions=list(parts))


# ---------------------------------------------------------------- trees to text


class Written(exp.Expression):
    """A tree that was written before: parts that stand in many statements are written once."""


class Words(exp.Expression):
    """Trees between words of an engine's own syntax."""


def _refused(_: Generator, node: exp.Func) -> str:
    raise ValueError(f"{type(node).__name__} is not on the list")


@lru_cache(maxsize=8)
def _generator(dialect: str) -> Generator:
    of = Dialect.get_or_raise(dialect)
    strict = type("Strict", (of.generator_class,), {"function_fallback_sql": _refused})
    made: Generator = strict(
        dialect=of,
        unsupported_level=ErrorLevel.RAISE,
        identify=True,
        comments=False,
        normalize_functions=False,
        pretty=False,
    )
    handlers: dict[type[exp.Expr], Any] = {cls: made._dispatch[cls] for cls in ALLOWED if cls in made._dispatch}
    made._dispatch = {**handlers, **_lean(made, dialect)}
    return made


_LATER = "\0", "\1"
_MARKERS = {
    "sqlite": (":", ""),
    "duckdb": ("$", ""),
    "postgres": _LATER,
    "mysql": _LATER,
    "spark": (":", ""),
    "bigquery": ("@", ""),
    "trino": _LATER,
    "snowflake": _LATER,
}
"""What stands around a parameter's name. Where drivers read % themselves, or parameters have no names, it is put in
once the text is whole."""
_POSITIONAL = frozenset({"trino", "snowflake"})
_BACKSLASH = frozenset({"mysql", "spark", "bigquery", "snowflake"})
"""Whose texts have escapes that begin with a backslash."""
_MARKED = re.compile("\0(\\w+)\1")


def _lean(made: Generator, kind: str) -> dict[type[exp.Expr], Any]:
    """Handlers of the nodes that stand everywhere: the same text as sqlglot's, without what com never uses."""
    start, end = made._identifier_start, made._identifier_end
    sql = made.sql

    def name_(node: Any) -> str:
        return f"{start}{node.args['this'].replace(end, end + end)}{end}"

    def column_(_: Generator, node: Any) -> str:
        args = node.args
        of = args.get("table")
        return name_(args["this"]) if of is None else f"{name_(of)}.{name_(args['this'])}"

    def call_(_: Generator, node: Any) -> str:
        return f"{node.args['this']}({', '.join([sql(arg) for arg in node.args['expressions']])})"

    def alias_(_: Generator, node: Any) -> str:
        return f"{sql(node.args['this'])} AS {name_(node.args['alias'])}"

    def cast(_: Generator, node: Any) -> str:
        return f"CAST({sql(node.args['this'])} AS {node.args['to'].args['kind']})"

    before, after = _MARKERS[kind]

    def placeholder(_: Generator, node: Any) -> str:
        return f"{before}{node.args['this']}{after}"

    def literal(_: Generator, node: Any) -> str:
        text_ = node.args["this"]
        if not node.args["is_string"]:
            return str(text_)
        text_ = str(text_)
        if kind in _BACKSLASH:
            text_ = text_.replace("\\", "\\\\")
        return "'" + text_.replace("'", "\\'" if kind in ("spark", "bigquery") else "''") + "'"

    def ordered_(_: Generator, node: Any) -> str:
        desc, first = node.args.get("desc"), node.args.get("nulls_first")
        text_ = sql(node.args["this"]) + (" DESC" if desc else "")
        by_itself = bool(desc) == (kind in ("postgres", "snowflake")) and kind not in ("duckdb", "trino")
        return text_ if first is None or first is by_itself else text_ + (" NULLS FIRST" if first else " NULLS LAST")

    def paren(_: Generator, node: Any) -> str:
        return f"({sql(node.args['this'])})"

    def named(node: Any, text_: str) -> str:
        as_, joins = node.args.get("alias"), node.args.get("joins")
        if as_ is not None:
            columns = as_.args.get("columns")
            if columns and kind in ("postgres", "duckdb", "trino"):
                text_ += " WITH ORDINALITY"
            text_ = f"{text_} AS {name_(as_.args['this'])}"
            if columns:
                text_ += f"({', '.join(map(name_, columns))})"
        return text_ + "".join(map(sql, joins)) if joins else text_

    joined = made._dispatch[exp.Join]

    def join_(self: Generator, node: Any) -> str:
        if kind != "sqlite" and node.args.get("on") is None:  # elsewhere only a cross join goes without
            return f" CROSS JOIN {sql(node.args['this'])}"
        return str(joined(self, node))

    def order_(_: Generator, node: Any) -> str:
        before = sql(node.args["this"]) if "this" in node.args else ""
        return f"{before} ORDER BY {', '.join([sql(e) for e in node.args['expressions']])}"

    def operator(sign: str) -> Any:
        def binary_(_: Generator, node: Any) -> str:
            return f"{sql(node.args['this'])} {sign} {sql(node.args['expression'])}"

        return binary_

    def select_(self: Generator, node: Any) -> str:
        args = node.args
        columns = ", ".join([sql(e) for e in args["expressions"]])
        parts = ["SELECT DISTINCT " if "distinct" in args else "SELECT ", columns]
        source = args.get("from_")
        if source is not None:
            parts.append(f" FROM {sql(source.args['this'])}")
        parts += [sql(j) for j in args.get("joins", ())]
        parts += [sql(args[key]) for key in ("where", "group", "having", "order") if key in args]
        parts += self.offset_limit_modifiers(node, False, args.get("limit"))
        return "".join(parts)

    signs = {"=": exp.EQ, "<>": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE, "+": exp.Add}
    signs |= {"-": exp.Sub, "*": exp.Mul, "/": exp.Div, "%": exp.Mod, "||": exp.DPipe, "AND": exp.And, "OR": exp.Or}
    signs |= {"DIV" if kind in ("mysql", "spark") else "//": exp.IntDiv}
    return {
        **{node: operator(sign) for sign, node in signs.items()},
        exp.Identifier: lambda _, node: name_(node),
        exp.Column: column_,
        exp.Anonymous: call_,
        exp.Alias: alias_,
        exp.Cast: cast,
        exp.Placeholder: placeholder,
        exp.Paren: paren,
        exp.Literal: literal,
        exp.Ordered: ordered_,
        exp.Order: order_,
        exp.Join: join_,
        exp.Distinct: lambda _, node: f"DISTINCT {', '.join([sql(e) for e in node.args.get('expressions', ())])}",
        exp.Collate: lambda _, node: f"{sql(node.args['this'])} COLLATE {node.args['expression']}",
        exp.Table: lambda _, node: named(node, sql(node.args["this"])),
        exp.Subquery: lambda _, node: named(node, f"({sql(node.args['this'])})"),
        exp.Select: select_,
        exp.Where: lambda _, node: f" WHERE {sql(node.args['this'])}",
        Written: lambda _, node: node.args["this"],
        Words: lambda _, node: "".join([p if isinstance(p, str) else sql(p) for p in node.args["expressions"]]),
    }


def write(tree: Tree, dialect: str) -> str:
    """The text of a tree. ValueError if one of its nodes is not on the list."""
    written: str = _generator(dialect).generate(tree, copy=False)
    return written


def marked(text_: str, dialect: str) -> tuple[str, list[str] | None]:
    """The text with its parameters as the engine's driver takes them; their names in order, if only their places tell
    them apart."""
    if dialect in _POSITIONAL:
        return _MARKED.sub("?", text_), _MARKED.findall(text_)
    if _MARKERS[dialect] is _LATER:
        return _MARKED.sub(r"%(\1)s", text_.replace("%", "%%")), None
    return text_, None


def once(tree: Tree, dialect: str) -> Tree:
    """The tree, already written."""
    return Written(this=write(tree, dialect))
