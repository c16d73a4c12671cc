"""Conversions: what becomes another type by itself, what by cast, and what is written as a value of a type.

What does not fit is reported once and becomes an expression of unknown type, which silences what would only follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import cast

from com import diagnostics as messages
from com.compiler import ir, syntax
from com.compiler.resolve import Resolution
from com.functions import FUNCTIONS, OPERATORS, common_number
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
from com.values import FORMS, MAX_INT, json_text, read_period, read_value

_SIMPLE = {
    "int": INT, "float": FLOAT, "text": TEXT, "bool": BOOL, "date": DATE, "timestamp": TIMESTAMP, "json": JSON,
    "bytes": BYTES,
}  # fmt: skip


class Conversions(Resolution):
    """The part of the checker that knows types."""

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
        if target.kind == "decimal" and isinstance(made, ir.Constant | ir.Cast) and _whole(converted or made) > room:
            shown = str(getattr(bare(converted or made), "value", ""))
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

    def ordered(self, made: ir.Expr, place: str) -> ir.Expr:
        """The expression where its values are told apart or put in order: those of some types cannot be."""
        if made.type.kind not in ("json", "interval"):
            return made
        hint = "json has no order: take a part of it, json_get(j, 'a')" if made.type == JSON else ""
        self.report(messages.WrongArgument(place, "a value with an order", article(made.type), hint), made.span)
        return self.poison(made.span)

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

    def _cast(self, made: ir.Expr, target: Type, span: Span, *, implicit: bool = False) -> ir.Expr:
        found = made.type
        if found.is_unknown or target.is_unknown:
            return self.poison(span)
        if found == target or found.kind == "null" or (isinstance(made, ir.Constant) and made.value is None):
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
        if constant.value is None:
            return constant.with_(type=target)
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
        return ir.Constant(target, False, constant.span, value if target.kind != "json" else json_text(value))

    def _number_like(self, text: str, span: Span) -> ir.Expr:
        sign, digits = (text[0], text[1:]) if text[0] in "+-" else ("", text)
        made = self._number(digits if "." in digits else digits + ".0", span)
        if sign == "-" and isinstance(made, ir.Constant) and isinstance(made.value, Decimal):
            return made.with_(value=-made.value)
        return made

    def _as_bool(self, made: ir.Expr) -> ir.Expr:
        converted = self.convert(made, BOOL)
        if converted is None:
            example = "x > 0" if made.type.is_number else "x is not null"
            self.report(messages.NotBool(article(made.type), example), made.span)
            return self.poison(made.span)
        return converted

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


def article(type_: Type) -> str:
    return f"{'an' if str(type_)[0] in 'aeiou' else 'a'} {type_}"


def _digits(value: object) -> int:
    """How many digits a constant has after the point."""
    return -int(value.normalize().as_tuple().exponent) if isinstance(value, Decimal) else 0


def bare(made: ir.Expr) -> ir.Expr:
    """An expression without the casts that the language makes around it."""
    return bare(made.operand) if isinstance(made, ir.Cast) and made.implicit else made


def _whole(made: ir.Expr) -> int:
    """How many digits a constant has before the point; 0 for what is none."""
    value = getattr(bare(made), "value", None)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return 0
    whole = abs(int(value))
    return len(str(whole)) if whole else 0


def _way(found: Type, target: Type) -> str:
    """What to write to make one type of another."""
    if found.is_number and target.kind == "int":
        return "write cast(round(x) as int)"
    if found.kind == "timestamp" and target.kind == "date":
        return "write cast(x as date)"
    if target.kind in ("interval", "unknown") or "bytes" in (found.kind, target.kind):
        return "there is no way from one to the other"
    return f"write cast(x as {target})"
