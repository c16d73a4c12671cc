"""IR expressions and queries to SQL: trees of sqlglot's node classes, never text.

Takes IR and an engine's table; gives statements of the plan, the values in them bound. May assume what the check
guarantees; guarantees that every name is quoted, every value a parameter or a literal, and every node of a class on
the positive list below.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, assert_never

from sqlglot import expressions as exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel
from sqlglot.generator import Generator

from com import diagnostics as messages
from com import plan
from com.compiler import ir
from com.compiler.engines import CHAIN, Engine
from com.diagnostics import Diagnostic
from com.node import Node, rebuild, walk
from com.schema import BOOL, INT, JSON, NULL, Table, Type
from com.source import NOWHERE, Span

Tree = exp.Expr

ALLOWED = (
    exp.Add, exp.Alias, exp.And, exp.Anonymous, exp.Between, exp.Boolean, exp.Case, exp.Cast, exp.Check,
    exp.CheckColumnConstraint, exp.Collate, exp.Column, exp.ColumnConstraint, exp.ColumnDef, exp.Create, exp.DPipe, exp.DataType,
    exp.DefaultColumnConstraint, exp.Delete, exp.Distinct, exp.Div, exp.EQ, exp.Escape, exp.Except, exp.Exists,
    exp.Filter, exp.ForeignKey, exp.From, exp.GT, exp.GTE, exp.Group, exp.Having, exp.HexString, exp.Identifier, exp.In,
    exp.Index, exp.IndexParameters, exp.Insert, exp.Intersect, exp.Is, exp.Join, exp.LT, exp.LTE, exp.Like, exp.Limit,
    exp.Literal, exp.Mod, exp.Mul, exp.NEQ, exp.Neg, exp.Not, exp.NotNullColumnConstraint, exp.Null, exp.NullSafeEQ, exp.NullSafeNEQ,
    exp.IntDiv, exp.Offset,
    exp.OnConflict, exp.Or, exp.Order, exp.Ordered, exp.Paren, exp.Placeholder, exp.PrimaryKey,
    exp.PrimaryKeyColumnConstraint, exp.Reference, exp.Returning, exp.Schema, exp.Select, exp.Star, exp.Sub,
    exp.Subquery, exp.Table, exp.TableAlias, exp.Tuple, exp.Union, exp.UniqueColumnConstraint, exp.Update, exp.Values,
    exp.Var, exp.Where, exp.Window, exp.WindowSpec,
)  # fmt: skip
"""The only node classes that are ever written as SQL."""

_BINARY: dict[str, type[exp.Expression]] = {
    "or": exp.Or, "and": exp.And, "=": exp.EQ, "<>": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE,
    "like": exp.Like, "escape": exp.Escape, "||": exp.DPipe, "+": exp.Add, "-": exp.Sub, "*": exp.Mul, "/": exp.Div,
    "%": exp.Mod, "is": exp.Is, "is distinct from": exp.NullSafeNEQ, "<=>": exp.NullSafeEQ, "//": exp.IntDiv,
}  # fmt: skip
_ORDERING = frozenset({"<", "<=", ">", ">="})
_LEVEL: dict[type[exp.Expr], int] = {
    exp.Or: 1, exp.And: 2, exp.Not: 3, exp.EQ: 4, exp.NEQ: 4, exp.LT: 4, exp.LTE: 4, exp.GT: 4, exp.GTE: 4,
    exp.Like: 4, exp.Escape: 4, exp.Is: 4, exp.In: 4, exp.Between: 4, exp.DPipe: 5, exp.Add: 6, exp.Sub: 6,
    exp.NullSafeNEQ: 4, exp.NullSafeEQ: 4, exp.Mul: 7, exp.Div: 7, exp.IntDiv: 7, exp.Mod: 7, exp.Collate: 8, exp.Neg: 9, exp.Select: 0, exp.Union: 0,
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
    made = _BINARY[operator]
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
    return exp.ColumnDef(this=name(column_), kind=_type(type_), constraints=constraints)


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


def _type(text_: str) -> Tree:
    return exp.DataType(this=exp.DType.USERDEFINED, kind=text_)


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


_MARKERS = {"sqlite": (":", ""), "duckdb": ("$", ""), "postgres": ("\0", "\1"), "mysql": ("\0", "\1")}
"""What stands around a parameter's name. Of drivers that read % themselves it is put in once the text is whole."""
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
        return "'" + (text_.replace("\\", "\\\\") if kind == "mysql" else text_).replace("'", "''") + "'"

    def ordered_(_: Generator, node: Any) -> str:
        desc, first = node.args.get("desc"), node.args.get("nulls_first")
        text_ = sql(node.args["this"]) + (" DESC" if desc else "")
        by_itself = bool(desc) == (kind == "postgres") and kind != "duckdb"
        return text_ if first is None or first is by_itself else text_ + (" NULLS FIRST" if first else " NULLS LAST")

    def paren(_: Generator, node: Any) -> str:
        return f"({sql(node.args['this'])})"

    def named(node: Any, text_: str) -> str:
        as_, joins = node.args.get("alias"), node.args.get("joins")
        if as_ is not None:
            columns = as_.args.get("columns")
            if columns and kind in ("postgres", "duckdb"):
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
    signs |= {"DIV" if kind == "mysql" else "//": exp.IntDiv}
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


def marked(text_: str, dialect: str) -> str:
    """The text with its parameters as the engine's driver takes them."""
    if _MARKERS[dialect][1]:
        return _MARKED.sub(r"%(\1)s", text_.replace("%", "%%"))
    return text_


def once(tree: Tree, dialect: str) -> Tree:
    """The tree, already written."""
    return Written(this=write(tree, dialect))


# ---------------------------------------------------------------- expressions and queries


class Sql:
    """One statement in the making: its parameters, and what of bound relations it reads. `known` holds the IR that the
    statement is made of: only columns that stand in it are bound. `names` puts aliases in the place of others."""

    def __init__(self, engine: Engine, problems: list[Diagnostic], *known: Node | Iterable[Node] | None) -> None:
        self.engine = engine
        self.problems = problems
        self.binds: dict[object, tuple[str, plan.Binding]] = {}
        self.known = known
        self.used: set[tuple[str, str]] | None = None
        self.names: dict[str, str] = {}
        self.depth = 0
        self.span = NOWHERE
        self.inline = False

    def update(
        self,
        target: exp.Table,
        alias: str,
        assignments: Sequence[tuple[str, Tree]],
        where: Tree,
        source: tuple[Tree, list[Tree]] | None,
        returning: Sequence[Tree] = (),
    ) -> Tree:
        """An update, from other sources too."""
        if source is None or self.engine.dialect != "mysql":
            return update(target, assignments, where, source, returning)
        first, joins = source  # where there is no `from` the target is joined with it
        target.set("joins", [join(first, None), *joins])
        made = [exp.EQ(this=column(alias, c), expression=tree) for c, tree in assignments]
        return exp.Update(this=target, expressions=made, where=exp.Where(this=where))

    def statement(self, tree: Tree, fields: Sequence[plan.Field] = (), hidden: int = 0) -> plan.Statement:
        """The statement, once its tree is whole."""
        text_ = marked(write(tree, self.engine.dialect), self.engine.dialect)
        return plan.Statement(text_, tuple(self.binds.values()), tuple(fields), hidden)

    # ------------------------------------------------------------ what engines use

    binary = staticmethod(binary)
    call = staticmethod(call)
    column = staticmethod(column)
    text = staticmethod(text)
    number = staticmethod(number)
    null = staticmethod(null)

    def is_null(self, tree: Tree, negated: bool = False) -> Tree:
        return is_null(tree, negated)

    def cast(self, tree: Tree, to: str) -> Tree:
        return exp.Cast(this=tree, to=_type(to))

    def case(self, whens: Sequence[tuple[Tree, Tree]], otherwise: Tree | None) -> Tree:
        return exp.Case(ifs=[exp.If(this=when, true=then) for when, then in whens], default=otherwise)

    def aggregate(self, name: str, args: Sequence[Tree], distinct: bool = False) -> Tree:
        return call(name, exp.Distinct(expressions=list(args))) if distinct else call(name, *args)

    def picked(
        self, columns: Sequence[tuple[Tree, str]], source: Tree, limit: Tree | None = None, behind: str = ""
    ) -> Tree:
        picked = [alias(tree, as_) for tree, as_ in columns]
        if behind:
            return select(picked, table(behind), limit=limit, joins=[exp.Join(this=source, kind="CROSS")])
        return select(picked, source, limit=limit)

    def calling(self, function: str, args: Sequence[Tree], alias: str, columns: Sequence[str] = ()) -> Tree:
        as_ = exp.TableAlias(this=name(alias), columns=[name(c) for c in columns])
        return exp.Table(this=call(function, *args), alias=as_)

    def words(self, *parts: str | Tree) -> Tree:
        return Words(expressions=list(parts))

    def collated(self, tree: Tree, collation: str) -> Tree:
        return exp.Collate(this=at(tree, 9), expression=collation)

    def ordered(self, sep: Tree, order: Sequence[ir.OrderKey]) -> Tree:
        keys = self._order(order)
        return exp.Order(this=sep, expressions=keys) if keys else sep

    def unsupported(self, what: str, instead: str) -> None:
        self.problems.append(Diagnostic(messages.EngineLacks(self.engine.title, what, instead), self.span))

    def bind(self, binding: plan.Binding) -> Tree:
        """A parameter; equal bindings share one."""
        assert not self.inline, "a table's own expressions bind nothing"
        key = _key(binding)
        known = self.binds.get(key)
        if known is None:
            known = self.binds[key] = f"p{len(self.binds) + 1}", binding
        made: Tree = self.engine.bound(self, _type_of(binding), exp.Placeholder(this=known[0]))
        return made

    # ------------------------------------------------------------ expressions

    def expr(self, e: ir.Expr) -> Tree:
        """The tree of an expression."""
        match e:
            case ir.Column():
                return column(self.names.get(e.alias, e.alias) if self.names else e.alias, e.name)
            case ir.Value():
                return self.bind(plan.Scalar(e.ref, e.column, e.type))
            case ir.Constant():
                return self._constant(e.value, e.type)
            case ir.Apply():
                self.span = e.span
                return self._apply(e)
            case ir.Cast():
                self.span = e.span
                tree: Tree = self.engine.cast(self, e)
                return tree
            case ir.Aggregate() | ir.Window():
                return self._aggregate(e)
            case ir.Present():
                return self.bind(plan.Present(e.ref))
            case ir.Case():
                whens = [(self.expr(when), self.expr(then)) for when, then in e.whens]
                return self.case(whens, self.expr(e.otherwise) if e.otherwise is not None else None)
            case ir.InItems():
                if not e.items:
                    return exp.Boolean(this=False)
                return exp.In(this=at(self.expr(e.operand), 5), expressions=[self.expr(i) for i in e.items])
            case ir.InValues():
                many = plan.Many(e.values.ref, e.values.column, e.values.type)
                query = self.engine.values(self, many, e.operand.type)
                return exp.In(this=at(self.expr(e.operand), 5), query=exp.Subquery(this=query))
            case ir.InQuery():
                inner = self._inner(e.query)
                if e.query.limit is not None and self.engine.dialect == "mysql":
                    inner = select([exp.Star()], derived(inner, "com_s"))
                return exp.In(this=at(self.expr(e.operand), 5), query=exp.Subquery(this=inner))
            case ir.Exists():
                return exp.Exists(this=self._inner(e.query))
            case ir.Scalar():
                return exp.Subquery(this=self._inner(e.query))
            case _:
                raise AssertionError(f"{type(e).__name__} has no place in SQL")

    def _constant(self, value: object, type_: Type) -> Tree:
        special = self.engine.literal(self, value, type_)
        if special is not None:
            return special
        match value:
            case None:
                return exp.Null()
            case bool():
                return exp.Boolean(this=value)
            case int():
                return number(value)
            case Decimal():
                return number(format(value, "f"))
            case float():
                shown = repr(value)
                return number(shown) if math.isfinite(value) else self.bind(plan.Constant(value, type_))
            case datetime():
                return text(value.isoformat(" "))
            case date():
                return text(value.isoformat())
            case str() if value.isprintable() or self.inline:
                return text(value)
            case bytes() if self.inline:
                return exp.HexString(this=value.hex())
            case _:
                return self.bind(plan.Constant(value, type_))

    def _apply(self, e: ir.Apply) -> Tree:
        name_, args = e.name, e.args
        render = self.engine.functions.get(name_)
        if render is not None:
            tree: Tree = render(self, e)
            return tree
        if name_ in CHAIN:
            settled: Tree = self.engine.settle(self, e, self._arithmetic(e))
            return settled
        if name_ in _ORDERING:
            return binary(name_, self.collated_by(args[0]), self.expr(args[1]))
        if name_ in _BINARY:
            return binary(name_, self.expr(args[0]), self.expr(args[1]))
        match name_:
            case "not":
                return negated(self.expr(args[0]))
            case "is_null":
                return is_null(self.expr(args[0]))
            case "is_distinct":
                if self.engine.typed:
                    return binary("is distinct from", self.expr(args[0]), self.expr(args[1]))
                return exp.Is(this=at(self.expr(args[0]), 5), expression=at(self.expr(args[1]), 5), negate=True)
            case "between":
                this, low, high = (at(self.collated_by(a), 5) for a in args)
                return exp.Between(this=this, low=low, high=high)
            case _:
                return call(name_, *[self.expr(a) for a in args])

    def _arithmetic(self, e: ir.Apply) -> Tree:
        """A chain of sums without the step that brings its parts to their type: the whole's is enough."""
        args = [
            self._arithmetic(a)
            if isinstance(a, ir.Apply) and a.name in CHAIN and a.type.kind == e.type.kind
            else self.engine.operand(self, e.type, self.expr(a))
            for a in e.args
        ]
        if e.name == "negate":
            return exp.Neg(this=at(args[0], 10))
        if e.name == "div":
            made: Tree = self.engine.divided(self, *args)
            return made
        return binary(e.name, *args)

    def collated_by(self, e: ir.Expr) -> Tree:
        """The tree of an expression that is ordered by."""
        tree: Tree = self.engine.collate(self, e.type, self.expr(e))
        return tree

    # ------------------------------------------------------------ aggregates and windows

    def _aggregate(self, e: ir.Aggregate | ir.Window) -> Tree:
        self.span = e.span
        args = [self.expr(a) for a in e.args]
        render = self.engine.aggregates.get(e.name)
        if render is not None:
            tree: Tree = render(self, e, args)
            return tree
        if not args and e.name == "count":
            return self.aggregated(e, "count", [exp.Star()])
        if e.name in ("min", "max"):
            args = [self.engine.collate(self, e.type, a) for a in args]
        return self.aggregated(e, e.name, args, isinstance(e, ir.Aggregate) and e.distinct)

    def aggregated(
        self, e: ir.Aggregate | ir.Window, function: str, args: Sequence[Tree], distinct: bool = False
    ) -> Tree:
        """A call with the filter and window of an aggregate."""
        if e.where is not None and not self.engine.filters:
            first = number(1) if isinstance(args[0], exp.Star) else args[0]
            args = [self.case([(self.expr(e.where), first)], None), *args[1:]]
        tree = self.aggregate(function, args, distinct)
        if e.where is not None and self.engine.filters:
            tree = exp.Filter(this=tree, expression=exp.Where(this=self.expr(e.where)))
        if isinstance(e, ir.Aggregate):
            return tree
        made: dict[str, Any] = {"this": tree}
        if e.partition:
            made["partition_by"] = [self.expr(p) for p in e.partition]
        order = self._order(e.order)
        if order:
            made["order"] = exp.Order(expressions=order)
        if e.frame is not None:
            unit, start, end = e.frame
            (first_, first_side), (last, last_side) = self._edge(start), self._edge(end)
            made["spec"] = exp.WindowSpec(
                kind=unit.upper(), start=first_, start_side=first_side, end=last, end_side=last_side
            )
        return exp.Window(**made)

    def _edge(self, edge: ir.Edge) -> tuple[Tree | str, str | None]:
        words = edge.kind.upper().split(" ")
        if words[0] == "CURRENT":
            return "CURRENT ROW", None
        if edge.offset is not None:
            return at(self.expr(edge.offset), 10), words[-1]
        return words[0], words[-1]

    def _order(self, keys: Sequence[ir.OrderKey]) -> list[Tree]:
        """The keys that can tell rows apart."""
        return [part for k in keys if not isinstance(k.expr, ir.Constant) for part in self.key(k)]

    def key(self, k: ir.OrderKey) -> list[Tree]:
        return self.ordered_by(self.collated_by(k.expr), k.descending, k.nulls_first if k.expr.nullable else None)

    def ordered_by(self, tree: Tree, descending: bool, nulls_first: bool | None) -> list[Tree]:
        """A key of an order, with one for nulls before it where the engine has no word for that."""
        if self.engine.dialect != "mysql" or nulls_first is None or nulls_first is not descending:
            return [ordered(tree, descending, nulls_first)]
        return [ordered(is_null(tree), nulls_first), ordered(tree, descending)]

    # ------------------------------------------------------------ queries

    def _inner(self, query: ir.Query) -> Tree:
        self.depth += 1
        made = self.query(query)
        self.depth -= 1
        return made

    def query(self, q: ir.Query, extra: Sequence[ir.Output] = ()) -> Tree:
        """The tree of a query; a select may get `extra` columns."""
        if isinstance(q, ir.SetQuery):
            return self._set_query(q)
        if any(outer_columns(k.expr, q) for k in q.order) or (self.engine.typed and q.distinct and q.order):
            q = _ordered_outside(q)
        if isinstance(q.source, ir.Join) and q.source.kind == "full" and self.engine.dialect == "mysql":
            q, extra = _without_full_join(q, q.source, extra)
        made: dict[str, Any] = {"expressions": [alias(self.expr(o.expr), o.name) for o in (*q.columns, *extra)]}
        if q.distinct:
            made["distinct"] = exp.Distinct()
        if q.source is not None:
            first, joins = self.sources(q.source)
            made["from_"] = exp.From(this=first)
            if joins:
                made["joins"] = joins
        if q.where is not None:
            made["where"] = exp.Where(this=self.expr(q.where))
        if q.group:
            keys = [self._group_key(g, q) for g in q.group if not isinstance(g, ir.Constant)]
            keys = [k for k in keys if k is not None]
            if self.engine.typed:
                keys += [self.expr(c) for c in _determined(q)]
            made["group"] = exp.Group(expressions=keys or [self.cast(null(), "CHAR(1)") if self.engine.typed else null()])
        if q.having is not None:
            made["having"] = exp.Having(this=self.expr(q.having))
        self._cut(made, q)
        return exp.Select(**made)

    def _group_key(self, key: ir.Expr, q: ir.Select) -> Tree | None:
        """A key of a group, or None if it is the same for all rows: engines see no columns from around there."""
        if outer_columns(key, q):
            if not own_columns(key, q):
                return None
            self.unsupported("group by a column of the query around", "group by it in a query in from")
        return self.expr(key)

    def tuples(self, rows: Sequence[Sequence[ir.Expr]], names: Sequence[str], order: str) -> Tree:
        """`values` as a query with named columns, the last one, `order`, numbering the rows."""
        if self.engine.typed:
            labels = [*names, order]
            sides = [
                select([alias(tree, as_) for tree, as_ in zip([*map(self.expr, r), number(i)], labels, strict=True)])
                for i, r in enumerate(rows, 1)
            ]
            union: Tree = sides[0]
            for side in sides[1:]:
                union = exp.Union(this=union, expression=side, distinct=False)
            return union
        made = values([[*map(self.expr, row_), number(index)] for index, row_ in enumerate(rows, 1)])
        columns = [alias(column("com_v", f"column{i}"), as_) for i, as_ in enumerate((*names, order), 1)]
        return select(columns, derived(made, "com_v"))

    def _cut(self, made: dict[str, Any], q: ir.Query) -> None:
        order = self._order(q.order)
        if order:
            made["order"] = exp.Order(expressions=order)
        if q.limit is not None:
            limit = self.expr(q.limit)
            if not self.engine.counts and not isinstance(q.limit, ir.Constant | ir.Value):
                self.unsupported("a computed limit", "compute it in a step before")
            elif q.limit.nullable and self.engine.counts:
                limit = call("coalesce", limit, number(self.engine.no_limit))
            made["limit"] = exp.Limit(expression=limit)
        if q.offset is not None:
            offset = self.expr(q.offset)
            if not self.engine.counts and not isinstance(q.offset, ir.Constant | ir.Value):
                self.unsupported("a computed offset", "compute it in a step before")
            elif q.offset.nullable and self.engine.counts:
                offset = call("coalesce", offset, number(0))
            made["offset"] = exp.Offset(expression=offset)
            if q.limit is None and self.engine.dialect == "mysql":
                made["limit"] = exp.Limit(expression=number(self.engine.no_limit))

    def _set_query(self, q: ir.SetQuery) -> Tree:
        if q.all and q.op != "union":
            return self._counted(q)
        if self.engine.typed and q.order:  # an order of a union knows its columns, but no expression of them
            bare = q.with_(order=(), limit=None, offset=None)
            outer: dict[str, Any] = {"expressions": [exp.Star()], "from_": exp.From(this=derived(self.query(bare), "com_s"))}
            self._cut(outer, q)
            return exp.Select(**outer)
        made: dict[str, Any] = {"this": self._side(q.left, True), "expression": self._side(q.right, False)}
        self._cut(made, q)
        match q.op:
            case "union":
                return exp.Union(**made, distinct=not q.all)
            case "intersect":
                return exp.Intersect(**made, distinct=True)
            case _:
                return exp.Except(**made, distinct=True)

    def _side(self, q: ir.Query, left: bool) -> Tree:
        made = self.query(q)
        bare = isinstance(q, ir.Select) or (left and not q.all)
        if bare and not q.order and q.limit is None and q.offset is None:
            return made
        return select([exp.Star()], derived(made, "com_s"))

    def _counted(self, q: ir.SetQuery) -> Tree:
        """`intersect all` and `except all`, where the engine has neither: equal rows are told apart by a number."""
        names = [f.name for f in q.fields]
        sides = []
        for side in (q.left, q.right):
            own = [c.name for c in side.columns] if isinstance(side, ir.Select) else [f.name for f in side.fields]
            count = row_number((), [column("com_s", n) for n in own])
            columns = [alias(column("com_s", n), m) for n, m in zip(own, names, strict=True)]
            sides.append(select([*columns, alias(count, "com_k")], derived(self.query(side), "com_s")))
        kind = exp.Intersect if q.op == "intersect" else exp.Except
        counted = derived(kind(this=sides[0], expression=sides[1], distinct=True), "com_s")
        made: dict[str, Any] = {"expressions": [column("com_s", n) for n in names], "from_": exp.From(this=counted)}
        self._cut(made, q)
        return exp.Select(**made)

    # ------------------------------------------------------------ sources

    def sources(self, source: ir.Source, apart: bool = False) -> tuple[Tree, list[Tree]]:
        """The first source and the joins that follow. `apart`: bound rows stand in a join or a subquery."""
        if isinstance(source, ir.Join):
            if source.kind == "full" and self.engine.dialect == "mysql":
                self.unsupported("a full join inside another join", "make it a step of its own")
            first, joins = self.sources(source.left, True)
            other, inner = self.sources(source.right, True)
            if inner:
                assert isinstance(other, exp.Table | exp.Subquery)
                other.set("joins", inner)
                other = exp.Paren(this=other)
            on = self.expr(source.on) if source.on is not None else None
            return first, [*joins, join(other, on, source.kind)]
        return self._source(source, apart or self.depth > 0), []

    def _source(self, source: ir.TableSource | ir.RowsSource | ir.QuerySource, apart: bool) -> Tree:
        match source:
            case ir.TableSource():
                return table(source.table.name, source.alias)
            case ir.QuerySource():
                self.depth += apart
                made = derived(self.query(source.query), source.alias)
                self.depth -= apart
                return made
            case ir.RowsSource():
                used = self._used()
                of = source.alias
                fields = tuple(f for f in source.fields if (of, f.name) in used)
                numbered = "com_n" if (of, "com_n") in used else None
                of = self.names.get(of, of)
                return derived(self.engine.rows(self, plan.Rows(source.ref, fields), numbered, apart), of)
            case _:
                assert_never(source)

    def _used(self) -> set[tuple[str, str]]:
        if self.used is None:
            self.used = set()
            _note(self.known, self.used)
        return self.used


def _ordered_outside(q: ir.Select) -> ir.Select:
    """The query with its keys as columns of a derived table: an order sees no columns of the query around."""
    known = {o.expr: o.name for o in reversed(q.columns)}
    keys = tuple(ir.Output(known.get(k.expr, f"com_o{i}"), k.expr) for i, k in enumerate(q.order, 1))
    more = tuple(k for k in keys if k.expr not in known)
    inner = q.with_(columns=(*q.columns, *more), order=(), limit=None, offset=None)
    columns = {
        o.name: ir.Column(o.expr.type, o.expr.nullable, o.expr.span, "com_e", o.name) for o in (*q.columns, *keys)
    }
    outputs = tuple(ir.Output(o.name, columns[o.name]) for o in q.columns)
    order = tuple(k.with_(expr=columns[o.name]) for k, o in zip(q.order, keys, strict=True))
    source = ir.QuerySource(inner, "com_e")
    return ir.Select(False, outputs, source, None, (), None, order, q.limit, q.offset)


def _without_full_join(
    q: ir.Select, join_: ir.Join, extra: Sequence[ir.Output]
) -> tuple[ir.Select, Sequence[ir.Output]]:
    """The query over a left join, and what the right side has alone."""
    left, right = _aliases(join_.left), _aliases(join_.right)
    seen: dict[tuple[str, str], ir.Column] = {}
    for node in (n for part in (q, *extra) for n in walk(part)):
        if isinstance(node, ir.Column) and node.alias in left | right:
            seen.setdefault((node.alias, node.name), node.with_(nullable=True))
    labels = {place: f"com_c{i}" for i, place in enumerate(seen, 1)}

    def put(node: Node) -> Node:
        if isinstance(node, ir.Column) and (node.alias, node.name) in labels:
            return ir.Column(node.type, True, node.span, "com_f", labels[node.alias, node.name])
        return node

    def missing(c: ir.Column) -> ir.Expr:
        return ir.Cast(c.type, True, c.span, ir.Constant(NULL, True, c.span, None), True) if c.alias in left else c

    one = ir.Constant(INT, False, NOWHERE, 1)
    both_ = ir.Select(
        False, tuple(ir.Output(labels[p], c) for p, c in seen.items()), join_.with_(kind="left"), None, (), None, (), None, None
    )
    there = ir.Select(False, (ir.Output("x", one),), join_.left, join_.on, (), None, (), None, None)
    alone = both_.with_(
        columns=tuple(ir.Output(labels[p], missing(c)) for p, c in seen.items()),
        source=join_.right,
        where=ir.Apply(BOOL, False, NOWHERE, "not", (ir.Exists(BOOL, False, NOWHERE, there),)),
    )
    if not seen:
        both_, alone = (s.with_(columns=(ir.Output("com_c0", one),)) for s in (both_, alone))
    fields = tuple(plan.Field(labels[p], c.type) for p, c in seen.items()) or (plan.Field("com_c0", INT),)
    union = ir.SetQuery("union", True, both_, alone, fields, (), None, None)
    outer = rebuild(q.with_(source=None), put).with_(source=ir.QuerySource(union, "com_f"))
    return outer, [rebuild(o, put) for o in extra]


def _determined(q: ir.Select) -> list[ir.Column]:
    """The columns that a grouped query names outside its keys and aggregates: keys determine them."""
    keys, own = set(q.group), _aliases(q.source) if q.source is not None else set()
    found: dict[ir.Column, None] = {}

    def look(value: object) -> None:
        if isinstance(value, tuple):
            for item in value:
                look(item)
        elif isinstance(value, ir.Expr) and value in keys or isinstance(value, ir.Aggregate):
            return
        elif isinstance(value, ir.Column):
            if value.alias in own:
                found.setdefault(value)
        elif isinstance(value, Node) and type(value) not in _LEAVES:
            for field in value._fields:
                look(getattr(value, field))

    look((tuple(o.expr for o in q.columns), q.having, q.order))
    return [c for c in found if c not in keys]


def own_columns(e: ir.Expr, q: ir.Select) -> set[str]:
    """The aliases of a query's sources that an expression in it names."""
    own = _aliases(q.source) if q.source is not None else set()
    return {n.alias for n in walk(e) if isinstance(n, ir.Column) and n.alias in own}


def outer_columns(e: ir.Expr, q: ir.Select) -> set[str]:
    """The aliases of sources around a query that an expression in it names."""
    own = _aliases(e) | (_aliases(q.source) if q.source is not None else set())
    return {n.alias for n in walk(e) if isinstance(n, ir.Column) and n.alias not in own}


def _aliases(node: Node) -> set[str]:
    return {n.alias for n in walk(node) if isinstance(n, ir.TableSource | ir.RowsSource | ir.QuerySource)}


def _key(binding: plan.Binding) -> object:
    """What equal bindings have in common, quicker to hash."""
    if isinstance(binding, plan.Scalar | plan.Many):
        ref = binding.ref
        return type(binding), ref.kind, ref.name, ref.slot, binding.column, binding.type.kind, binding.type.scale
    if isinstance(binding, plan.Rows):
        ref = binding.ref
        return "rows", ref.kind, ref.name, ref.slot, tuple([f.name for f in binding.fields])
    return binding


def _type_of(binding: plan.Binding) -> Type:
    match binding:
        case plan.Constant() | plan.Scalar():
            return binding.type
        case plan.Many() | plan.Rows():
            return JSON
        case plan.Present():
            return BOOL
        case _:
            return INT


def _note(value: object, used: set[tuple[str, str]]) -> None:
    """Notes the columns that stand in some IR."""
    if type(value) is tuple or type(value) is list:
        for item in value:
            _note(item, used)
    elif type(value) is ir.Column:
        used.add((value.alias, value.name))
    elif isinstance(value, Node) and type(value) not in _LEAVES:
        for field in value._fields:
            inner = getattr(value, field)
            if type(inner) is tuple or isinstance(inner, Node):
                _note(inner, used)


_LEAVES = frozenset({Table, Type, Span, plan.Ref, plan.Field, ir.Constant, ir.Value, ir.TableSource})
