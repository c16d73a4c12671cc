"""Expressions: names found, types and nullability worked out, conversions made visible.

Takes syntax and the scopes it stands in, gives IR; what is wrong is reported once and becomes an expression of
unknown type, which silences what would only follow from it.
"""

from __future__ import annotations

from abc import abstractmethod
from decimal import Decimal
from typing import assert_never

from com import diagnostics as messages
from com.compiler import ir, syntax
from com.compiler.functions import Functions
from com.compiler.names import Env
from com.diagnostics import Edit, Fix
from com.functions import OPERATORS
from com.plan import Period
from com.schema import (
    BOOL,
    DATE,
    INT,
    INTERVAL,
    NULL,
    TEXT,
    TIMESTAMP,
    Type,
    decimal,
)
from com.source import Span
from com.values import MAX_INT

_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "div"})


class Expressions(Functions):
    """The part of the checker that knows expressions. Queries are known to a subclass."""

    # ------------------------------------------------------------ what subclasses know

    @abstractmethod
    def subquery(self, query: syntax.Query, env: Env) -> tuple[ir.Query, tuple[ir.Output, ...], str]:
        """A query inside an expression: IR, its output columns, its shape."""

    # ------------------------------------------------------------ expressions

    def expr(self, node: syntax.Expr, env: Env) -> ir.Expr:
        """The IR of an expression."""
        match node:
            case syntax.ColumnName():
                return self._column(node, env)
            case syntax.Placeholder():
                return self._placeholder(node)
            case syntax.Number():
                return self._number(node.text, node.span)
            case syntax.String(value=value, span=span):
                return ir.Constant(TEXT, False, span, value)
            case syntax.Binary():
                return self._binary(node, env)
            case syntax.Function():
                return self._function(node, env)
            case syntax.Unary():
                return self._unary(node, env)
            case syntax.Truth(value=value, span=span):
                return ir.Constant(BOOL, False, span, value)
            case syntax.Null(span=span):
                return ir.Constant(NULL, True, span, None)
            case syntax.Moment(kind=kind, value=value, span=span):
                return self._literal(ir.Constant(TEXT, False, span, value), Type(kind))
            case syntax.Interval(value=value, span=span):
                return self._literal(ir.Constant(TEXT, False, span, value), INTERVAL)
            case syntax.IsNull(operand=operand, negated=negated, span=span):
                return self._negated(self.apply("is_null", [self.expr(operand, env)], span), negated)
            case syntax.IsDistinct(left=left, right=right, negated=negated, span=span):
                sides = [self.expr(left, env), self.expr(right, env)]
                return self._negated(self._same("is_distinct", "is distinct from", sides, span), negated)
            case syntax.Between(operand=operand, low=low, high=high, negated=negated, span=span):
                sides = [self.expr(operand, env), self.expr(low, env), self.expr(high, env)]
                return self._negated(self._same("between", "between", sides, span), negated)
            case syntax.Like(operand=operand, pattern=pattern, fold_case=fold_case, negated=negated, span=span):
                name = "ilike" if fold_case else "like"
                sides = [self.expr(operand, env), self.expr(pattern, env)]
                known = sides[1].value if isinstance(sides[1], ir.Constant) else None
                if isinstance(known, str) and (len(known) - len(known.rstrip("\\"))) % 2:
                    self.report(messages.EscapesNothing(), pattern.span)
                return self._negated(self._checked(OPERATORS[name], name, sides, span), negated)
            case syntax.InList():
                return self._in_list(node, env)
            case syntax.InPlaceholder(operand=operand, place=place, negated=negated, span=span):
                return self._negated(self._in_values(self.expr(operand, env), place, span), negated)
            case syntax.InQuery():
                return self._in_query(node, env)
            case syntax.Exists(query=query, span=span):
                return ir.Exists(BOOL, False, span, self.subquery(query, env)[0])
            case syntax.ExistsPlaceholder(place=place, span=span):
                entry = self.rows(place, "rows")
                return ir.Present(BOOL, False, span, entry.ref) if entry else self.poison(span)
            case syntax.ScalarQuery():
                return self._scalar(node, env)
            case syntax.Case():
                return self._case(node, env)
            case syntax.Cast(operand=operand, type=type_, span=span):
                return self._cast(self.expr(operand, env), self.type_of(type_), span)
            case _:
                assert_never(node)

    def condition(self, node: syntax.Expr, env: Env) -> ir.Expr:
        """An expression that must be true or false."""
        return self._as_bool(self.expr(node, env))

    def _negated(self, made: ir.Expr, negated: bool) -> ir.Expr:
        return ir.Apply(BOOL, made.nullable, made.span, "not", (made,)) if negated else made

    # ------------------------------------------------------------ types

    # ------------------------------------------------------------ operators

    def _unary(self, node: syntax.Unary, env: Env) -> ir.Expr:
        if node.op == "not":
            made = self.condition(node.operand, env)
            return ir.Apply(BOOL, made.nullable, node.span, "not", (made,))
        if isinstance(node.operand, syntax.Number) and node.operand.text == str(MAX_INT + 1):
            return ir.Constant(INT, False, node.span, -(MAX_INT + 1))
        made = self.expr(node.operand, env)
        known = made.value if isinstance(made, ir.Constant) and made.type.is_number else None
        if isinstance(made, ir.Constant) and isinstance(known, int | Decimal) and known != -(MAX_INT + 1):
            return made.with_(value=known.copy_negate() if isinstance(known, Decimal) else -known, span=node.span)
        return self._checked(OPERATORS["negate"], "-", [made], node.span)

    def _binary(self, node: syntax.Binary, env: Env) -> ir.Expr:
        if node.op in ("and", "or"):
            left, right = self.condition(node.left, env), self.condition(node.right, env)
            return ir.Apply(BOOL, left.nullable or right.nullable, node.span, node.op, (left, right))
        left, right = self.expr(node.left, env), self.expr(node.right, env)
        if node.op in _COMPARISONS:
            for side, other in ((node.right, node.left), (node.left, node.right)):
                if isinstance(side, syntax.Null) and node.op in ("=", "<>"):
                    return self._null_comparison(node, other)
            return self._same(node.op, node.op, [left, right], node.span)
        if left.type.is_unknown or right.type.is_unknown:
            return self.poison(node.span)
        if left.type.is_time or right.type.is_time or INTERVAL in (left.type, right.type):
            return self._time_arithmetic(node, left, right)
        if node.op == "||":
            return self._concatenation(left, right, node.span)
        sides = [self._arithmetic_side(left, right), self._arithmetic_side(right, left)]
        if any(s.type.is_unknown for s in sides):
            return self.poison(node.span)
        if not all(s.type.is_number for s in sides):
            hint = "write a || b to join texts" if node.op == "+" and TEXT in (left.type, right.type) else ""
            hint = hint or "numbers are wanted on both sides: cast(x as int) makes one of a text"
            self.report(messages.TypeMismatch(node.op, str(left.type), str(right.type), hint), node.span)
            return self.poison(node.span)
        if node.op == "div" and (left.type.kind != "int" or right.type.kind != "int"):
            hint = "write a / b, or floor(a / b)"
            self.report(messages.TypeMismatch("div", str(left.type), str(right.type), hint), node.span)
            return self.poison(node.span)
        return self.apply(node.op, sides, node.span)

    def _null_comparison(self, node: syntax.Binary, other: syntax.Expr) -> ir.Expr:
        word = " is null" if node.op == "=" else " is not null"
        edits = (
            Edit(Span(node.span.start, node.left.span.start), ""),
            Edit(Span(node.left.span.end, node.span.end), word),
        )
        if other is node.right:
            edits = (Edit(Span(node.span.start, other.span.start), ""), Edit(Span(other.span.end, node.span.end), word))
        self.report(messages.NullComparison(f"x{word}"), node.span, fix=Fix(edits, certain=True))
        return self.poison(node.span)

    def _arithmetic_side(self, made: ir.Expr, other: ir.Expr) -> ir.Expr:
        if made.type.kind == "null":
            return made.with_(type=other.type if other.type.is_number else INT)
        if made.type.kind == "text" and isinstance(made, ir.Constant) and other.type.is_number:
            return self.convert(made, decimal(38, 0) if "." in str(made.value) else other.type) or made
        return made

    def _concatenation(self, left: ir.Expr, right: ir.Expr, span: Span) -> ir.Expr:
        sides = []
        for side in (left, right):
            if side.type.kind in ("json", "bytes", "null") and side.type.kind != "null":
                self.report(
                    messages.TypeMismatch("||", str(left.type), str(right.type), "write cast(x as text)"), side.span
                )
                return self.poison(span)
            sides.append(side if side.type.kind == "text" else self._cast(side, TEXT, side.span, implicit=True))
        return self.apply("||", sides, span)

    def _time_arithmetic(self, node: syntax.Binary, left: ir.Expr, right: ir.Expr) -> ir.Expr:
        op, span = node.op, node.span
        if op == "+" and left.type == INTERVAL:
            left, right = right, left
        if op in ("+", "-") and right.type.kind == "null" and left.type.is_time:
            right = right.with_(type=INT)
        if left.type.is_time and right.type == INTERVAL and op in ("+", "-") and isinstance(right, ir.Constant):
            period = right.value
            assert isinstance(period, Period)
            if op == "-":
                period = Period(-period.months, -period.days, -period.microseconds)
            if period.microseconds and left.type == DATE:
                left = ir.Cast(TIMESTAMP, left.nullable, left.span, left, True)
            return self.apply("add_period", [left, right.with_(value=period)], span)
        if op in ("+", "-") and left.type.is_time and right.type.kind == "int":
            if op == "-":
                right = self.apply("negate", [right], right.span)
            return self.apply("add_days", [left, right], span)
        if op == "+" and left.type.kind == "int" and right.type.is_time:
            return self.apply("add_days", [right, left], span)
        if op == "-" and left.type.is_time:
            later = self.convert(right, left.type) if right.type.kind == "text" else right
            if later is not None and later.type == DATE == left.type:
                unit = ir.Constant(TEXT, False, span, "day")
                return self.apply("date_diff", [unit, later, left], span)
            if later is not None and later.type.is_time:
                hint = "write date_diff('second', from, to)"
                self.report(messages.TypeMismatch("-", str(left.type), str(right.type), hint), span)
                return self.poison(span)
        if op == "||":
            return self._concatenation(left, right, span)
        hint = "write d + interval '3 day', or date_diff('day', from, to)"
        self.report(messages.TypeMismatch(op, str(left.type), str(right.type), hint), span)
        return self.poison(span)

    def _same(self, name: str, shown: str, sides: list[ir.Expr], span: Span) -> ir.Expr:
        """A comparison: its sides are brought to one type."""
        target = self.common(sides)
        if target is None or target.kind in ("json", "interval"):
            kinds = [str(s.type) for s in sides]
            hint = _comparison_hint(sides[0].type, sides[1].type)
            self.report(
                messages.TypeMismatch(shown, kinds[0], kinds[-1] if kinds[0] != kinds[-1] else kinds[1], hint), span
            )
            return self.poison(span)
        return self.apply(name, [self._side(s, target) for s in sides], span)

    def comparison(self, op: str, left: ir.Expr, right: ir.Expr, span: Span) -> ir.Expr:
        """Two values compared."""
        return self._same(op, op, [left, right], span)

    def _side(self, made: ir.Expr, target: Type) -> ir.Expr:
        """One side of a comparison. Numbers compare as they are."""
        if made.type.is_number and target.is_number:
            return made
        return self.convert(made, target) or made

    # ------------------------------------------------------------ lists, case, cast

    def _in_list(self, node: syntax.InList, env: Env) -> ir.Expr:
        operand = self.expr(node.operand, env)
        if (
            len(node.items) == 1
            and isinstance(node.items[0], syntax.Placeholder)
            and self.is_list(node.items[0], few=True)
        ):
            return self._negated(self._in_values(operand, node.items[0], node.span), node.negated)
        items = [self.expr(i, env) for i in node.items]
        made = self._same("=", "in", [operand, *items], node.span) if items else operand
        if made.type.is_unknown:
            return made
        assert isinstance(made, ir.Apply)
        found = ir.InItems(BOOL, made.nullable, node.span, made.args[0], made.args[1:])
        return self._negated(found, node.negated)

    def _in_values(self, operand: ir.Expr, place: syntax.Placeholder, span: Span) -> ir.Expr:
        values = self.values(place)
        if values is None or operand.type.is_unknown:
            return self.poison(span)
        target = self.common([operand, ir.Column(values.type, values.nullable, values.span, "", "")])
        if target is None:
            hint = _comparison_hint(operand.type, values.type)
            self.report(messages.TypeMismatch("in", str(operand.type), f"a list of {values.type}", hint), span)
            return self.poison(span)
        return ir.InValues(BOOL, operand.nullable or values.nullable, span, self._side(operand, target), values)

    def _in_query(self, node: syntax.InQuery, env: Env) -> ir.Expr:
        operand = self.expr(node.operand, env)
        query, outputs, _ = self.subquery(node.query, env)
        if len(outputs) != 1:
            found = f"{len(outputs)} columns"
            self.report(messages.QueryAsValue(found, "select the one column to compare with"), node.query.span)
            return self.poison(node.span)
        inner = outputs[0].expr
        if operand.type.is_unknown or inner.type.is_unknown:
            return self.poison(node.span)
        column = ir.Column(inner.type, inner.nullable, inner.span, "", outputs[0].name)
        made = self._same("=", "in", [operand, column], node.span)
        if made.type.is_unknown:
            return made
        assert isinstance(made, ir.Apply)
        if made.args[0].type.kind == "timestamp" and inner.type.kind == "date":
            query = self._as_timestamps(query, column)
        found_in = ir.InQuery(BOOL, made.nullable, node.span, made.args[0], query)
        return self._negated(found_in, node.negated)

    @staticmethod
    def _as_timestamps(query: ir.Query, column: ir.Column) -> ir.Query:
        """The query of one date column with its dates as timestamps."""
        if isinstance(query, ir.Select):
            date = query.columns[0].expr
        else:
            date = column.with_(alias="com_i")
            source = ir.QuerySource(query, "com_i")
            query = ir.Select(False, (), source, None, (), None, (), None, None)
        made = ir.Cast(TIMESTAMP, date.nullable, date.span, date, True)
        return query.with_(columns=(ir.Output(column.name, made),))

    def _scalar(self, node: syntax.ScalarQuery, env: Env) -> ir.Expr:
        query, outputs, card = self.subquery(node.query, env)
        if len(outputs) != 1:
            hint = "select one column" if outputs else ""
            self.report(messages.QueryAsValue(f"{len(outputs)} columns", hint), node.span)
            return self.poison(node.span)
        if card == "many":
            hint = (
                "aggregate it (max, sum, …), look it up by a whole key, or add limit 1; to test all write in (select …)"
            )
            self.report(messages.QueryAsValue("any number of rows", hint), node.span)
            return self.poison(node.span)
        made = outputs[0].expr
        if made.type.is_unknown:
            return self.poison(node.span)
        return ir.Scalar(made.type, made.nullable or card != "one", node.span, query)

    def _case(self, node: syntax.Case, env: Env) -> ir.Expr:
        whens: list[tuple[ir.Expr, ir.Expr]] = []
        operand = self.expr(node.operand, env) if node.operand is not None else None
        for when, then in node.whens:
            if operand is None:
                test = self.condition(when, env)
            else:
                test = self._same("=", "case", [operand, self.expr(when, env)], when.span)
            whens.append((test, self.expr(then, env)))
        otherwise = self.expr(node.otherwise, env) if node.otherwise is not None else None
        results = [then for _, then in whens] + ([otherwise] if otherwise is not None else [])
        target = self.common(results)
        if target is None:
            kinds = sorted({str(r.type) for r in results})
            hint = "all branches of a case give one type: use cast"
            self.report(messages.TypeMismatch("case", kinds[0], kinds[-1], hint), node.span)
            return self.poison(node.span)
        if target.is_unknown or any(test.type.is_unknown for test, _ in whens):
            return self.poison(node.span)
        nullable = otherwise is None or any(r.nullable for r in results)
        fitted = tuple((test, self.convert(then, target) or then) for test, then in whens)
        last = (self.convert(otherwise, target) or otherwise) if otherwise is not None else None
        return ir.Case(target, nullable, node.span, fitted, last)

    # ------------------------------------------------------------ functions


def _comparison_hint(left: Type, right: Type) -> str:
    if "json" in (left.kind, right.kind):
        return "json has no order: compare a part of it, json_get(j, 'a')"
    other = right if left.kind == "text" else left
    if "text" in (left.kind, right.kind) and other.kind != "text":
        return f"write cast(x as {other}) around the text, or cast(x as text) around the other"
    return f"bring them to one type: cast(x as {left})"
