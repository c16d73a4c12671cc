"""Calls of functions, aggregates and windows: their arguments fitted, their types worked out.

Takes syntax and the scopes it stands in, gives IR.
"""

from __future__ import annotations

import re
from abc import abstractmethod

from com import diagnostics as messages
from com.compiler import ir, syntax
from com.compiler.conversions import Conversions, article
from com.compiler.names import Env, near_names
from com.compiler.resolve import CLOCK_WORDS, columns_in
from com.diagnostics import Edit, Fix
from com.functions import COMMON, FORMATS, FUNCTIONS, UNITS, Function
from com.schema import (
    DATE,
    INT,
    JSON,
    TEXT,
    TIMESTAMP,
    decimal,
)
from com.source import Span

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
    "date_part": "write extract(year from d), or year(d), month(d), day(d), …",
    "julianday": "write date_diff('day', from, to)",
    "date_add": "write d + interval '3 day'",
    "dateadd": "write d + interval '3 day'",
    "date_sub": "write d - interval '3 day'",
    "date": "write cast(x as date); today is $today",
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


class Functions(Conversions):
    """The part of the checker that knows functions. Expressions are known to a subclass."""

    # ------------------------------------------------------------ what subclasses know

    @abstractmethod
    def expr(self, node: syntax.Expr, env: Env) -> ir.Expr:
        """The IR of an expression."""

    @abstractmethod
    def condition(self, node: syntax.Expr, env: Env) -> ir.Expr:
        """An expression that must be true or false."""

    # ------------------------------------------------------------ functions

    def _checked(self, function: Function, shown: str, args: list[ir.Expr], span: Span) -> ir.Expr:
        """A function whose parameters are of fixed kinds."""
        made = []
        for want, arg in zip(parameters_of(function, len(args)), args, strict=True):
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
        self.report(messages.WrongArgument(shown, wanted, article(found), hint), arg.span)
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
                function.name, "a unit such as 'month'", article(arg.type), "write the unit as a text"
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
        self.report(messages.WrongArgument("format_date", "a format", article(arg.type), hint), arg.span)
        return None

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
        way = usage(function)
        if function.name in ("min", "max") and len(node.args) > 1:
            way += f"; of several values in a row, {'least' if function.name == 'min' else 'greatest'}(x, …)"
        self.report(messages.WrongArgumentCount(function.name, f"{wanted} {plural}", found, way), node.span)
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
        """True if a function is over columns of queries around alone: SQL would make it one of theirs."""
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
            if node.distinct or (want == "any" and function.name in ("min", "max")):
                place = f"{function.name}(distinct …)" if node.distinct else function.name
                made = self.ordered(made, place)
                if made.type.is_unknown:
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
        partition = tuple(self.ordered(self.expr(p, inside), "partition by") for p in node.over.partition)
        order = self.order_keys(node.over.order, inside)
        frame = self._frame(node.over.frame, inside) if node.over.frame is not None else None
        if args is None:
            return self.poison(node.span)
        keys = [*partition, *(k.expr for k in order)]
        if self._is_of_outer([*args, *keys, *([] if where is None else [where])], env):
            place = "a query, over columns of the one around it"
            self.report(messages.WindowMisplaced(place), node.span)
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
            found = str(made.value) if isinstance(made, ir.Constant) and made.type.kind == "int" else article(made.type)
            self.report(messages.BadLimit(what, found), made.span)
            return self.poison(made.span)
        return made

    def order_keys(self, keys: tuple[syntax.OrderKey, ...], env: Env) -> tuple[ir.OrderKey, ...]:
        """Keys as written, nulls last unless said."""
        made = [(self.ordered(self.expr(k.expr, env), "order by"), k) for k in keys]
        return tuple(ir.OrderKey(expr, k.descending, bool(k.nulls_first)) for expr, k in made)


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


def parameters_of(function: Function, count: int) -> tuple[str, ...]:
    wanted = function.parameters[:count]
    return wanted + (function.parameters[-1:] * (count - len(wanted)))
