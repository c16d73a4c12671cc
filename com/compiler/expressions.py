"""Expressions: names found, types and nullability worked out, conversions made visible.

Takes syntax and the scopes it stands in, gives IR; what is wrong is reported once and becomes an expression of
unknown type, which silences what would only follow from it.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable
from decimal import Decimal
from typing import assert_never, cast

from com import diagnostics as messages
from com.compiler import ir, syntax
from com.compiler.names import Env, near_names
from com.compiler.resolve import CLOCK_WORDS, Resolution, columns_in
from com.diagnostics import Edit, Fix
from com.functions import COMMON, FORMATS, FUNCTIONS, OPERATORS, UNITS, Function, common_number
from com.plan import Period
from com.schema import (
    BOOL,
    BYTES,
    DATE,
    FLOAT,
    INT,
    INTERVAL,
    JSON,
    NULL,
    TEXT,
    TIMESTAMP,
    UNKNOWN,
    Type,
    decimal,
)
from com.source import Span
from com.values import FORMS, MAX_INT, read_period, read_value

_SIMPLE = {
    "int": INT, "float": FLOAT, "text": TEXT, "bool": BOOL, "date": DATE, "timestamp": TIMESTAMP, "json": JSON,
    "bytes": BYTES,
}  # fmt: skip
_RENAMED = {
    "ifnull": "coalesce", "nvl": "coalesce", "isnull": "coalesce", "len": "length", "char_length": "length",
    "character_length": "length", "substring": "substr", "mid": "substr", "ucase": "upper", "lcase": "lower",
    "ceiling": "ceil", "pow": "power", "dayofmonth": "day", "signum": "sign", "stddev_samp": "stddev", "mean": "avg",
}  # fmt: skip
_HINTS = {
    "concat": "write a || b",
    "group_concat": "write string_agg(x, ', ' order by y)",
    "listagg": "write string_agg(x, ', ' order by y)",
    "array_agg": "end the step: a column of a step is a list",
    "collect": "end the step: a column of a step is a list",
    "strftime": "write format_date(d, '%Y-%m'), or year(d), month(d), day(d)",
    "to_char": "write format_date(d, '%Y-%m')",
    "date_format": "write format_date(d, '%Y-%m')",
    "datediff": "write date_diff('day', from, to)",
    "julianday": "write date_diff('day', from, to)",
    "date_add": "write d + interval '3 day'",
    "dateadd": "write d + interval '3 day'",
    "date_sub": "write d - interval '3 day'",
    "date": "write cast(x as date)",
    "timestamp": "write cast(x as timestamp)",
    "random": "the language has no chance: give the value as a parameter",
    "rand": "the language has no chance: give the value as a parameter",
    "uuid": "the language has no chance: give the value as a parameter",
    "if": "write case when c then a else b end",
    "iif": "write case when c then a else b end",
    "instr": "write position(part, text)",
    "strpos": "write position(part, text)",
    "charindex": "write position(part, text)",
    "last_insert_rowid": "write insert … returning the id in a step, and use that step's column",
    "last_insert_id": "write insert … returning the id in a step, and use that step's column",
}
_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "div"})


def _article(type_: Type) -> str:
    return f"{'an' if str(type_)[0] in 'aeiou' else 'a'} {type_}"


class Expressions(Resolution):
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

    def _as_bool(self, made: ir.Expr) -> ir.Expr:
        converted = self.convert(made, BOOL)
        if converted is None:
            example = "x > 0" if made.type.is_number else "x is not null"
            self.report(messages.NotBool(_article(made.type), example), made.span)
            return self.poison(made.span)
        return converted

    def _number(self, text: str, span: Span) -> ir.Expr:
        if "." in text:
            value = Decimal(text)
            scale = len(text.partition(".")[2])
            digits = max(len(text.replace(".", "").lstrip("0")), scale, 1)
            if digits > 38:
                self.report(messages.BadLiteral(text, "decimal", "a decimal has at most 38 digits"), span)
                return self.poison(span)
            return ir.Constant(decimal(digits, scale), False, span, value)
        if len(text) > 19 or int(text) > MAX_INT:
            self.report(messages.BadLiteral(text, "int", f"an int is {FORMS['int']}"), span)
            return self.poison(span)
        return ir.Constant(INT, False, span, int(text))

    def _literal(self, constant: ir.Constant, target: Type) -> ir.Expr:
        """A text literal as a literal of another type."""
        text = str(constant.value)
        try:
            value = read_period(text) if target == INTERVAL else read_value(text, target)
        except (ValueError, OverflowError):
            shown = "'" + text.replace("'", "''") + "'"
            wanted = str(target) if target.kind != "decimal" else "decimal"
            self.report(messages.BadLiteral(shown, wanted, f"write {FORMS[target.kind]}"), constant.span)
            return self.poison(constant.span)
        if target.kind == "decimal":
            return self._number_like(format(cast(Decimal, value), "f"), constant.span)
        return ir.Constant(target, False, constant.span, value if target.kind != "json" else text)

    def _number_like(self, text: str, span: Span) -> ir.Expr:
        sign, digits = (text[0], text[1:]) if text[0] in "+-" else ("", text)
        made = self._number(digits if "." in digits else digits + ".0", span)
        if sign == "-" and isinstance(made, ir.Constant) and isinstance(made.value, Decimal):
            return made.with_(value=-made.value)
        return made

    def _negated(self, made: ir.Expr, negated: bool) -> ir.Expr:
        return ir.Apply(BOOL, made.nullable, made.span, "not", (made,)) if negated else made

    # ------------------------------------------------------------ types

    def type_of(self, name: syntax.TypeName) -> Type:
        """The type that a written type names."""
        if name.name == "decimal":
            if len(name.numbers) == 1:
                return decimal(name.numbers[0], 0)
            if len(name.numbers) == 2 and name.numbers[1] <= name.numbers[0] <= 38 and name.numbers[0] > 0:
                return decimal(*name.numbers)
            self.report(messages.DecimalDigits(), name.span)
            return UNKNOWN
        found = _SIMPLE.get(name.name)
        if found is None:
            self.report(messages.UnknownType(name.name), name.span)
            return UNKNOWN
        return found

    def convert(self, made: ir.Expr, target: Type) -> ir.Expr | None:
        """The expression as one of another type where the language converts by itself, else None."""
        found = made.type
        if found == target or found.is_unknown or target.is_unknown:
            return made
        if found.kind == "null" or (isinstance(made, ir.Constant) and made.value is None):
            return made.with_(type=target)
        if isinstance(made, ir.Constant) and found.kind == "text" and target.kind in FORMS and target.kind != "text":
            return self._literal(made, target)
        if found.kind == target.kind:
            return made
        allowed = {("int", "decimal"), ("int", "float"), ("decimal", "float"), ("date", "timestamp")}
        if (found.kind, target.kind) in allowed:
            return ir.Cast(target, made.nullable, made.span, made, True)
        return None

    def store(self, made: ir.Expr, target: Type, what: str) -> ir.Expr:
        """The expression as a value of a column (or parameter) of this type."""
        converted = self.convert(made, target)
        if target.kind == "decimal" and isinstance(converted, ir.Constant) and _digits(converted.value) > target.scale:
            self.report(messages.ExtraDigits(str(converted.value), what, str(target), target.scale), made.span)
            return self.poison(made.span)
        room = target.precision - target.scale
        if target.kind == "decimal" and isinstance(made, ir.Constant | ir.Cast) and _whole(converted) > room:
            shown = str(getattr(_bare(converted), "value", ""))
            hint = f"it has room for {room} digits before the point"
            self.report(messages.CannotStore(what, str(target), shown, hint), made.span)
            return self.poison(made.span)
        if target.kind == "decimal" and isinstance(converted, ir.Constant) and isinstance(converted.value, Decimal):
            return converted.with_(type=target)
        if converted is None and made.type.kind == "float" and target.kind == "decimal":
            converted = made
        if converted is None:
            self.report(messages.CannotStore(what, str(target), str(made.type), _way(made.type, target)), made.span)
            return self.poison(made.span)
        if converted.type != target and not converted.type.is_unknown and not target.is_unknown:
            return ir.Cast(target, converted.nullable, converted.span, converted, True)
        return converted

    def common(self, made: Iterable[ir.Expr]) -> Type | None:
        """The one type that all these become, or None. Text literals follow the others."""
        result: Type | None = None
        texts = False
        for expr in made:
            found = expr.type
            if found.is_unknown:
                return UNKNOWN
            if found.kind == "null":
                continue
            if found.kind == "text" and isinstance(expr, ir.Constant):
                texts = True
                continue
            if result is None or result == found:
                result = found
            elif result.is_number and found.is_number:
                result = common_number(result, found)
            elif result.is_time and found.is_time:
                result = TIMESTAMP
            elif result.kind != found.kind:
                return None
        if result is None:
            return TEXT if texts else NULL
        return result

    # ------------------------------------------------------------ operators

    def apply(self, name: str, args: list[ir.Expr], span: Span, result: Type | None = None) -> ir.Expr:
        """A function or operator over arguments that fit it."""
        function = FUNCTIONS.get(name) or OPERATORS[name]
        if any(a.type.is_unknown for a in args):
            return self.poison(span)
        match function.nulls:
            case "strict":
                nullable = any(a.nullable for a in args)
            case "never":
                nullable = False
            case "all":
                nullable = all(a.nullable for a in args)
            case _:
                nullable = True
        type_ = result if result is not None else function.result(tuple(a.type for a in args))
        return ir.Apply(type_, nullable, span, name, tuple(args))

    def _unary(self, node: syntax.Unary, env: Env) -> ir.Expr:
        if node.op == "not":
            made = self.condition(node.operand, env)
            return ir.Apply(BOOL, made.nullable, node.span, "not", (made,))
        if isinstance(node.operand, syntax.Number) and node.operand.text == str(MAX_INT + 1):
            return ir.Constant(INT, False, node.span, -(MAX_INT + 1))
        made = self.expr(node.operand, env)
        if isinstance(made, ir.Constant) and isinstance(made.value, int | Decimal) and made.type.is_number:
            return made.with_(value=-made.value, span=node.span)
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

    def _checked(self, function: Function, shown: str, args: list[ir.Expr], span: Span) -> ir.Expr:
        """A function whose parameters are of fixed kinds."""
        made = []
        for want, arg in zip(_parameters(function, len(args)), args, strict=True):
            fitted = self._argument(function, shown, want, arg)
            if fitted is None:
                return self.poison(span)
            made.append(fitted)
        if function.parameters and function.parameters[0] == "same" and function.kind == "scalar":
            target = self.common(made)
            if target is None:
                kinds = [str(a.type) for a in made]
                other = next(k for k in kinds if k != kinds[0])
                self.report(messages.TypeMismatch(shown, kinds[0], other, "bring them to one type with cast"), span)
                return self.poison(span)
            made = [self.convert(a, target) or a for a in made]
            if target.kind == "decimal":
                return self.apply(function.name, made, span, target)
        return self.apply(function.name, made, span)

    def _argument(self, function: Function, shown: str, want: str, arg: ir.Expr) -> ir.Expr | None:
        found = arg.type
        if found.is_unknown:
            return arg
        match want:
            case "any" | "same":
                return arg
            case "number":
                if found.is_number:
                    return arg
                if found.kind == "null":
                    return arg.with_(type=INT)
                if isinstance(arg, ir.Constant) and found.kind == "text":
                    return self._literal(arg, decimal(38, 0))
            case "time":
                if found.is_time:
                    return arg
                if found.kind == "null":
                    return arg.with_(type=DATE)
                if isinstance(arg, ir.Constant) and found.kind == "text":
                    return self._literal(arg, TIMESTAMP if ":" in str(arg.value) else DATE)
            case "unit":
                return self._unit(function, arg)
            case "format":
                return self._format(arg)
            case "json":
                fitted = self.convert(arg, JSON)
                if fitted is not None:
                    return fitted
            case _:
                fitted = self.convert(arg, COMMON[want])
                if fitted is not None:
                    return fitted
        wanted = {"time": "a date or timestamp", "number": "a number", "int": "an int"}.get(want, f"a {want}")
        hint = {
            "number": "cast(x as int) makes a number of a text",
            "time": "cast(x as date) makes a date of a text",
            "text": "cast(x as text) makes a text of it",
            "int": "cast(round(x) as int) makes an int of a number",
            "bool": "compare it with something",
        }.get(want, "")
        if want in ("number", "time", "int") and found.kind != "text" and not (want == "int" and found.is_number):
            hint = ""
        elif want == "int" and found.kind == "text":
            hint = "cast(x as int) makes an int of a text"
        self.report(messages.WrongArgument(shown, wanted, _article(found), hint), arg.span)
        return None

    def _unit(self, function: Function, arg: ir.Expr) -> ir.Expr | None:
        if isinstance(arg, ir.Constant) and isinstance(arg.value, str):
            unit = arg.value.lower().removesuffix("s")
            if unit in UNITS:
                return arg.with_(value=unit)
            self.report(messages.BadUnit(function.name, f"'{arg.value}'", ", ".join(UNITS)), arg.span)
            return None
        self.report(
            messages.WrongArgument(
                function.name, "a unit such as 'month'", _article(arg.type), "write the unit as a text"
            ),
            arg.span,
        )
        return None

    def _format(self, arg: ir.Expr) -> ir.Expr | None:
        if isinstance(arg, ir.Constant) and isinstance(arg.value, str):
            wrong = [m for m in re.findall(r"%(.?)", arg.value, re.S) if m not in FORMATS or not m]
            if not wrong:
                return arg
            self.report(messages.BadUnit("format_date", f"'%{wrong[0]}'", "%Y %m %d %H %M %S"), arg.span)
            return None
        hint = "write it as a text: '%Y-%m'"
        self.report(messages.WrongArgument("format_date", "a format", _article(arg.type), hint), arg.span)
        return None

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

    def _cast(self, made: ir.Expr, target: Type, span: Span, *, implicit: bool = False) -> ir.Expr:
        found = made.type
        if found.is_unknown or target.is_unknown:
            return self.poison(span)
        if found == target or found.kind == "null":
            return made.with_(type=target, span=span)
        if isinstance(made, ir.Constant) and found.kind == "text" and target.kind != "text":
            literal = self._literal(made, target)
            if literal.type.is_unknown or literal.type == target:
                return literal
            return ir.Cast(target, False, span, literal, implicit)
        numbers = found.is_number and target.is_number
        times = found.is_time and target.is_time
        texts = "text" in (found.kind, target.kind) and "bytes" not in (found.kind, target.kind)
        truths = {found.kind, target.kind} == {"bool", "int"}
        if numbers or times or texts or truths or found.kind == target.kind:
            return ir.Cast(target, made.nullable, span, made, implicit)
        hint = f"there is no way from {found} to {target}"
        if found.is_time and target.is_number:
            hint = "write year(d), month(d), …, or date_diff('day', from, to)"
        self.report(messages.TypeMismatch("cast", str(found), str(target), hint), span)
        return self.poison(span)

    # ------------------------------------------------------------ functions

    def _function(self, node: syntax.Function, env: Env) -> ir.Expr:
        name = node.name.text.lower()
        if name == "extract":
            return self._extract(node, env)
        function = FUNCTIONS.get(name)
        if function is None:
            return self._unknown_function(node, env)
        if function.kind == "window" and node.over is None:
            shown = f"{usage(function)} over (order by …)"
            self.report(messages.WrongArgumentCount(name, "an over clause", "none", shown), node.span)
            return self.poison(node.span)
        if function.kind == "scalar" and (node.over or node.distinct or node.order or node.where is not None):
            what = "a window function" if node.over else "an aggregate"
            hint = f"{name} takes one row's values: leave out over, distinct, order by and filter"
            self.report(messages.WrongArgument(name, what, "a plain function", hint), node.span)
            return self.poison(node.span)
        count = len(node.args)
        most = max(len(function.parameters), count) if function.variadic else len(function.parameters)
        if (
            (node.star and name != "count")
            or not (function.least <= count <= most)
            or (name == "count" and not node.star and count != 1)
        ):
            return self._wrong_count(node, function)
        if function.kind == "aggregate" or function.kind == "window":
            return self._aggregate(node, function, env)
        args = [self.expr(a, env) for a in node.args]
        if name == "round":
            return self._round(args, node.span)
        return self._checked(function, name, args, node.span)

    def _wrong_count(self, node: syntax.Function, function: Function) -> ir.Expr:
        least, most = function.least, len(function.parameters)
        wanted = f"{least} or more" if function.variadic else str(least) if least == most else f"{least} to {most}"
        plural = "argument" if wanted in ("1", "1 or more", "* or 1") else "arguments"
        if function.name == "count":
            wanted = "* or 1"
        found = "*" if node.star else str(len(node.args))
        self.report(messages.WrongArgumentCount(function.name, f"{wanted} {plural}", found, usage(function)), node.span)
        return self.poison(node.span)

    def _round(self, args: list[ir.Expr], span: Span) -> ir.Expr:
        made = self._checked(FUNCTIONS["round"], "round", args, span)
        if isinstance(made, ir.Apply) and made.type.kind == "decimal":
            digits = 0 if len(args) == 1 else args[1].value if isinstance(args[1], ir.Constant) else None
            if isinstance(digits, int):
                scale = min(max(digits, 0), 38)
                whole = made.type.precision - made.type.scale
                return made.with_(type=decimal(whole + 1 + scale, scale))
        return made

    def _extract(self, node: syntax.Function, env: Env) -> ir.Expr:
        field = node.args[0]
        assert isinstance(field, syntax.ColumnName)
        unit = field.name.text.lower()
        unit = "weekday" if unit == "isodow" else unit
        if unit not in ("year", "quarter", "month", "day", "hour", "minute", "second", "weekday"):
            units = "year, quarter, month, day, hour, minute, second, weekday"
            self.report(messages.BadUnit("extract", field.name.text, units), field.span)
            return self.poison(node.span)
        return self._checked(FUNCTIONS[unit], "extract", [self.expr(node.args[1], env)], node.span)

    def _unknown_function(self, node: syntax.Function, env: Env) -> ir.Expr:
        name, span = node.name.text.lower(), node.name.span
        if name in CLOCK_WORDS and not node.args:
            meant = CLOCK_WORDS[name]
            fix = Fix((Edit(node.span, meant),), certain=True)
            self.report(messages.RenamedFunction(f"{name}()", meant), node.span, fix=fix)
            return self.poison(node.span)
        for arg in node.args:
            self.expr(arg, env)
        if name in _RENAMED and not (name == "isnull" and len(node.args) != 2):
            meant = _RENAMED[name]
            fix = Fix((Edit(span, meant),), certain=True)
            self.report(messages.RenamedFunction(name, meant), span, fix=fix)
        elif name in _HINTS:
            self.report(messages.UnknownFunction(name, _HINTS[name]), span)
        elif name in self.calls:
            hint = f"{name} is a call: it stands in a step of its own: step x: call {name}(…);"
            self.report(messages.UnknownFunction(name, hint), span)
        else:
            self.report(messages.UnknownFunction(name, near_names(name, FUNCTIONS)), span)
        return self.poison(node.span)

    def _aggregate(self, node: syntax.Function, function: Function, env: Env) -> ir.Expr:
        if node.over is not None:
            return self._window(node, function, env)
        if env.aggregates is None:
            hint = {
                "where": "put the condition in having, or aggregate in a step before",
                "another aggregate": "aggregate in a step before, and aggregate its column here",
            }.get(env.place, "aggregate in a select: (select max(x) from t)")
            self.report(messages.AggregateMisplaced(function.name, env.place, hint), node.span)
            for arg in node.args:
                self.expr(arg, env)
            return self.poison(node.span)
        inside = env.at("another aggregate")
        args = self._aggregate_arguments(node, function, inside)
        where = self.condition(node.where, env.at("filter")) if node.where is not None else None
        order = self.order_keys(node.order, inside)
        if args is None:
            return self.poison(node.span)
        if self._is_of_outer(args if where is None else [*args, where], env):
            place = "a query, over columns of the one around it"
            hint = "aggregate in a step before, or over a column of this query"
            self.report(messages.AggregateMisplaced(function.name, place, hint), node.span)
            return self.poison(node.span)
        nullable = function.nulls != "never"
        type_ = function.result(tuple(a.type for a in args))
        made = ir.Aggregate(type_, nullable, node.span, function.name, tuple(args), node.distinct, order, where)
        env.aggregates.append(made)
        self.windows_met = self.windows_met or function.name == "string_agg"
        return made

    @staticmethod
    def _is_of_outer(args: list[ir.Expr], env: Env) -> bool:
        """True if an aggregate is over columns of queries around alone: SQL would make it one of theirs."""
        level, around = env.outer, set[str]()
        while level is not None:
            around |= {s.alias for s in level.seen}
            level = level.outer
        named = {c.alias for a in args for c in columns_in(a)} if around else set()
        return bool(named & around) and not named & {s.alias for s in env.seen}

    def _aggregate_arguments(self, node: syntax.Function, function: Function, env: Env) -> list[ir.Expr] | None:
        args = [self.expr(a, env) for a in node.args]
        fitted: list[ir.Expr] = []
        for want, arg in zip(function.parameters, args, strict=False):
            made = self._argument(function, function.name, want, arg)
            if made is None or made.type.is_unknown:
                return None
            if want == "any" and made.type.kind in ("json", "interval") and function.name in ("min", "max"):
                self.report(
                    messages.WrongArgument(function.name, "a value with an order", _article(made.type), ""), arg.span
                )
                return None
            if made.type.kind == "null":
                made = made.with_(type=TEXT)
            fitted.append(made)
        if function.parameters[:1] == ("same",) and len(fitted) == 3:
            default = self.convert(fitted[2], fitted[0].type)
            if default is None:
                kinds = str(fitted[0].type), str(fitted[2].type)
                self.report(messages.TypeMismatch(function.name, *kinds, "give a default of the same type"), node.span)
                return None
            fitted[2] = default
        return fitted

    def _window(self, node: syntax.Function, function: Function, env: Env) -> ir.Expr:
        assert node.over is not None
        if not env.windows:
            self.report(messages.WindowMisplaced(env.place), node.span)
            return self.poison(node.span)
        if node.distinct or node.order:
            hint = "leave out distinct and order by: the window has its own order"
            self.report(
                messages.WrongArgument(function.name, "a window", "an aggregate with distinct or order", hint),
                node.span,
            )
            return self.poison(node.span)
        inside = env.at("a window", aggregates=env.aggregates)
        args = self._aggregate_arguments(node, function, inside)
        where = self.condition(node.where, inside) if node.where is not None else None
        partition = tuple(self.expr(p, inside) for p in node.over.partition)
        order = self.order_keys(node.over.order, inside)
        frame = self._frame(node.over.frame, inside) if node.over.frame is not None else None
        if args is None:
            return self.poison(node.span)
        self.windows_met = True
        nullable = function.nulls != "never"
        type_ = function.result(tuple(a.type for a in args))
        return ir.Window(type_, nullable, node.span, function.name, tuple(args), where, partition, order, frame)

    def _frame(self, frame: syntax.Frame, env: Env) -> tuple[str, ir.Edge, ir.Edge]:
        end = self._edge(frame.end, env) if frame.end is not None else ir.Edge("current row", None)
        return frame.unit, self._edge(frame.start, env), end

    def _edge(self, bound: syntax.Bound, env: Env) -> ir.Edge:
        return ir.Edge(bound.kind, self.count(bound.offset, "a frame") if bound.offset is not None else None)

    def count(self, node: syntax.Expr, what: str) -> ir.Expr:
        """A whole number that depends on no row: of limit, offset and frames."""
        made = self.expr(node, Env(what))
        wrong = made.type.kind != "int" or (
            isinstance(made, ir.Constant) and isinstance(made.value, int) and made.value < 0
        )
        if wrong and not made.type.is_unknown:
            found = (
                str(made.value) if isinstance(made, ir.Constant) and made.type.kind == "int" else _article(made.type)
            )
            self.report(messages.BadLimit(what, found), made.span)
            return self.poison(made.span)
        return made

    def order_keys(self, keys: tuple[syntax.OrderKey, ...], env: Env) -> tuple[ir.OrderKey, ...]:
        """Keys as written, nulls last unless said."""
        return tuple(ir.OrderKey(self.expr(k.expr, env), k.descending, bool(k.nulls_first)) for k in keys)


def usage(function: Function) -> str:
    """How a function is called: `round(number [, int])`, `coalesce(x, …)`."""
    if function.shown:
        return function.shown
    letters = iter("xyz")
    names = [next(letters) if p in ("same", "any") else p for p in function.parameters]
    if function.variadic:
        return f"{function.name}({names[0]}, …)"
    given, more = names[: function.least], names[function.least :]
    return f"{function.name}({', '.join(given)}{''.join(f' [, {name}]' for name in more)})"


def _digits(value: object) -> int:
    """How many digits a constant has after the point."""
    return -int(value.normalize().as_tuple().exponent) if isinstance(value, Decimal) else 0


def _bare(made: ir.Expr | None) -> ir.Expr | None:
    """An expression without the casts that the language makes around it."""
    return _bare(made.operand) if isinstance(made, ir.Cast) and made.implicit else made


def _whole(made: ir.Expr | None) -> int:
    """How many digits a constant has before the point; 0 for what is none."""
    value = getattr(_bare(made), "value", None)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return 0
    whole = abs(int(value))
    return len(str(whole)) if whole else 0


def _parameters(function: Function, count: int) -> tuple[str, ...]:
    wanted = function.parameters[:count]
    return wanted + (function.parameters[-1:] * (count - len(wanted)))


def _comparison_hint(left: Type, right: Type) -> str:
    if "json" in (left.kind, right.kind):
        return "json has no order: compare a part of it, json_get(j, 'a')"
    other = right if left.kind == "text" else left
    if "text" in (left.kind, right.kind) and other.kind != "text":
        return f"write cast(x as {other}) around the text, or cast(x as text) around the other"
    return f"bring them to one type: cast(x as {left})"


def _way(found: Type, target: Type) -> str:
    """What to write to make one type of another."""
    if found.is_number and target.kind == "int":
        return "write cast(round(x) as int)"
    if found.kind == "timestamp" and target.kind == "date":
        return "write cast(x as date)"
    if target.kind in ("interval", "unknown") or "bytes" in (found.kind, target.kind):
        return "there is no way from one to the other"
    return f"write cast(x as {target})"
