"""IR and an engine to a plan: statements as fixed text, and where each of their values comes from.

Takes a checked program; gives its plan, and a diagnostic for each thing that the engine cannot express. May assume
what com.compiler.ir promises; guarantees that equal programs give equal plans.
"""

from __future__ import annotations

import hashlib
from typing import assert_never

from com import plan
from com.compiler import ir
from com.compiler.changes import lower_write
from com.compiler.engines import Engine, load
from com.compiler.nodes import alias, select
from com.compiler.sets import as_sets
from com.compiler.sql import Sql
from com.diagnostics import Diagnostic, EngineLacks
from com.node import Node
from com.plan import Field, Statement
from com.schema import Table, Type

_CARDS = {"one": 0, "maybe": 1, "many": 2}


def lower(program: ir.Program, text: str, schema_hash: str, engine: str) -> tuple[plan.Plan, list[Diagnostic]]:
    """The plan of a program for an engine. It is whole only if no diagnostic is an error."""
    lowering = _Lowering(load(engine))
    body = lowering.block(program.body)
    made = plan.Plan(program.name, text, schema_hash, engine, program.parameters, body, program.effects, program.result)
    return made, lowering.problems


class _Lowering:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.problems: list[Diagnostic] = []

    def block(self, statements: tuple[ir.Statement, ...]) -> tuple[plan.Instruction, ...]:
        """Statements in their order."""
        return tuple(self._statement(s) for s in statements)

    def _statement(self, s: ir.Statement) -> plan.Instruction:
        match s:
            case ir.Step():
                return self._step(s)
            case ir.ForEach():
                body = self.block(s.body)
                return plan.Loop(s.variable, s.over, body, self._batch(s), s.title, s.span)
            case ir.If():
                then, otherwise = self.block(s.then), self.block(s.otherwise)
                return plan.Branch(self._condition(s.condition), then, otherwise, s.title, s.span)
            case ir.Assert():
                condition, message = self._condition(s.condition), self._template(s.message)
                return plan.Assertion(condition, message, s.title, s.span)
            case ir.Return():
                rows = s.rows if isinstance(s.rows, plan.Ref) else self._query(s.rows, s.fields)
                return plan.Return(rows, s.fields, s.span)
            case ir.Answer():
                return plan.Answer(self._template(s.text), s.span)
            case _:
                assert_never(s)

    # ------------------------------------------------------------ steps

    def _step(self, s: ir.Step, rows: ir.RowsSource | None = None, of: ir.Step | None = None) -> plan.Step:
        of = of or s
        card = s.shape if _CARDS[s.shape] < _CARDS[of.inferred] else "many"
        match s.operation:
            case ir.Read(query=query):
                operation: plan.Operation = plan.Read(self._query(query, s.fields))
            case ir.Call():
                operation = self._call(s.operation)
            case ir.Insert() | ir.Update() | ir.Delete() if not self.engine.writes:
                instead = "write on an engine that com runs on, and read here"
                self.problems.append(Diagnostic(EngineLacks(self.engine.title, "a write", instead), s.span))
                operation = plan.Read(Statement("", ()))
            case ir.Insert() as op:
                given_back = op.conflict is not None and not op.conflict.assignments and bool(op.returning)
                wants = s.needed or (given_back and card != "many")
                operation = lower_write(self.engine, self.problems, s, wants, rows)
            case ir.Update() | ir.Delete():
                operation = lower_write(self.engine, self.problems, s, s.needed, rows)
            case _:
                assert_never(s.operation)
        return plan.Step(s.ref, s.title, operation, s.fields, card, s.needed, _digest(of.operation), s.span)

    def _query(self, query: ir.Query, fields: tuple[Field, ...]) -> Statement:
        sql = Sql(self.engine, self.problems, query)
        return sql.statement(sql.query(query), fields)

    def _batch(self, loop: ir.ForEach) -> plan.Batch | None:
        found = as_sets(loop)
        if found is None:
            return None
        distinct, sets = found
        originals = [s for s in loop.body if isinstance(s, ir.Step)]
        steps = tuple(self._step(s.step, s.rows, of) for s, of in zip(sets, originals, strict=True))
        return plan.Batch(distinct, steps)

    # ------------------------------------------------------------ values

    def _values(self, exprs: list[ir.Expr]) -> Statement:
        """The one row that holds all these values."""
        sql = Sql(self.engine, self.problems, exprs)
        sql.depth = 1
        names = [f"c{i}" for i in range(1, len(exprs) + 1)]
        tree = select([alias(sql.expr(e), n) for e, n in zip(exprs, names, strict=True)])
        return sql.statement(tree, [Field(n, e.type, e.nullable) for e, n in zip(exprs, names, strict=True)])

    def _condition(self, e: ir.Expr) -> plan.Condition:
        if isinstance(e, ir.Present):
            return plan.Known(plan.Present(e.ref))
        if isinstance(e, ir.Apply) and e.name == "not" and isinstance(e.args[0], ir.Present):
            return plan.Known(plan.Present(e.args[0].ref), True)
        return self._values([e])

    def _template(self, template: ir.Template) -> plan.Template:
        parts: list[str | plan.Constant | plan.Scalar | plan.Many | plan.Computed] = []
        computed: list[ir.Expr] = []
        for part in template.parts:
            parts.append(part if isinstance(part, str) else self._bound(part, computed))
        return plan.Template(tuple(parts), self._values(computed) if computed else None)

    def _bound(self, e: ir.Expr, computed: list[ir.Expr]) -> plan.Constant | plan.Scalar | plan.Many | plan.Computed:
        """A value as a binding if it is one; else it is put to what a statement computes."""
        match e:
            case ir.Value():
                return plan.Scalar(e.ref, e.column, e.type)
            case ir.Values():
                return plan.Many(e.ref, e.column, e.type)
            case ir.Constant():
                return plan.Constant(e.value, e.type)
            case _:
                computed.append(e)
                return plan.Computed(len(computed) - 1, e.type)

    def _call(self, op: ir.Call) -> plan.Call:
        computed: list[ir.Expr] = []
        arguments = tuple(
            (name, plan.Rows(a.ref, a.fields) if isinstance(a, ir.RowsArgument) else self._bound(a, computed))
            for name, a in op.arguments
        )
        return plan.Call(op.function, arguments, self._values(computed) if computed else None)


def _digest(operation: ir.Operation) -> str:
    """SHA-256 of an operation, hexadecimal. Tables count by name: the schema has a hash of its own."""
    parts: list[str] = []
    _spell(operation, parts)
    return hashlib.sha256("".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _spell(value: object, parts: list[str]) -> None:
    kind = type(value)
    if kind is Type:
        assert isinstance(value, Type)
        parts.append(f"{value.kind},{value.precision},{value.scale};")
    elif kind is Table:
        assert isinstance(value, Table)
        parts.append(f"Table({value.name!r})")
    elif kind is tuple:
        assert isinstance(value, tuple)
        parts.append("[")
        for item in value:
            _spell(item, parts)
        parts.append("]")
    elif isinstance(value, Node):
        parts.append(f"{kind.__name__}(")
        for field in value._fields:
            if field not in value._silent:
                _spell(getattr(value, field), parts)
        parts.append(")")
    else:
        parts.append(f"{kind.__name__}:{value!r};")
