"""Functions of all dialects to those of com: sqlglot gives many of them one class, and the others their names."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import expressions as exp

from com.compiler import syntax
from com.functions import FORMATS, FUNCTIONS, UNITS
from com.importer.expressions import WRAPPERS, Expressions

_PLAIN: dict[type[exp.Expr], str] = {
    exp.Abs: "abs", exp.Sqrt: "sqrt", exp.Sign: "sign", exp.Ln: "ln", exp.Exp: "exp", exp.Ceil: "ceil",
    exp.Floor: "floor", exp.Lower: "lower", exp.Upper: "upper", exp.Length: "length", exp.Sum: "sum", exp.Avg: "avg",
    exp.Min: "min", exp.Max: "max", exp.Stddev: "stddev", exp.StddevSamp: "stddev", exp.RowNumber: "row_number",
    exp.Rank: "rank", exp.DenseRank: "dense_rank", exp.FirstValue: "first_value", exp.LastValue: "last_value",
}  # fmt: skip
_TWO: dict[type[exp.Expr], str] = {
    exp.Pow: "power", exp.Left: "left", exp.Right: "right", exp.StartsWith: "starts_with", exp.Nullif: "nullif",
}  # fmt: skip
_PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "year", exp.Month: "month", exp.Day: "day", exp.DayOfMonth: "day", exp.Hour: "hour",
    exp.Minute: "minute", exp.Second: "second", exp.Quarter: "quarter",
}  # fmt: skip
_NAMES = {
    "len": "length", "char_length": "length", "ucase": "upper", "lcase": "lower", "mean": "avg", "dayofmonth": "day",
    "signum": "sign", "ceiling": "ceil", "pow": "power",
}  # fmt: skip
_CLOCK = {"now": "now", "getdate": "now", "sysdate": "now", "curdate": "today", "today": "today"}
_FIELDS = {"%Y": "year", "%m": "month", "%d": "day", "%H": "hour", "%M": "minute", "%S": "second"}


class Functions(Expressions):
    """The part of the translation that knows functions."""

    def function(self, tree: exp.Expr) -> syntax.Expr | None:
        kind = type(tree)
        if kind in _PLAIN:
            return self._aggregate(_PLAIN[kind], tree)
        if kind in _TWO:
            return self.call(_TWO[kind], tree, self.expr(tree.this), self.expr(tree.expression))
        if kind in _PARTS:
            return self.call(_PARTS[kind], tree, self.time(_bare(tree.this)))
        handle = _HANDLERS.get(kind)
        return handle(self, tree) if handle is not None else None

    def _aggregate(self, name: str, tree: exp.Expr) -> syntax.Expr:
        inner = tree.this
        more = tree.expressions if isinstance(tree, exp.Min | exp.Max) else []
        if more:  # the greatest of some values, and no aggregate
            return self.call({"min": "least", "max": "greatest"}[name], tree, *self.all([inner, *more]))
        if tree.args.get("decimals") is not None or tree.args.get("to") is not None:
            return self.refuse(tree, f"{name} with digits", "write round(x, digits)")
        if inner is None:
            return self.call(name, tree)
        distinct = isinstance(inner, exp.Distinct)
        args = inner.expressions if isinstance(inner, exp.Distinct) else [inner]
        made = self.call(name, tree, *self.all(args))
        return made.with_(distinct=True) if distinct else made

    # ------------------------------------------------------------ aggregates

    def count(self, tree: exp.Expr) -> syntax.Expr:
        inner = tree.this
        if inner is None or isinstance(inner, exp.Star):
            return self.call("count", tree).with_(star=True)
        if isinstance(inner, exp.Distinct):
            if len(inner.expressions) != 1:
                return self.refuse(tree, "count of many columns", "count the rows of a step: select distinct a, b …")
            return self.call("count", tree, self.expr(inner.expressions[0])).with_(distinct=True)
        return self.call("count", tree, self.expr(inner))

    def string_agg(self, tree: exp.Expr) -> syntax.Expr:
        inner, order, distinct = tree.this, (), False
        keys: tuple[syntax.OrderKey, ...] = order
        separator = tree.args.get("separator")
        if isinstance(inner, exp.Order):
            keys, inner = self.order_keys(inner), inner.this
        if isinstance(inner, exp.Distinct):
            distinct, inner = True, inner.expressions[0]
            if isinstance(inner, exp.Order):
                keys, inner = self.order_keys(inner), inner.this
        between = self.expr(separator) if separator is not None else self.string(",", tree)
        return self.call("string_agg", tree, self.expr(inner), between).with_(distinct=distinct, order=keys)

    def within(self, tree: exp.Expr) -> syntax.Expr | None:
        if isinstance(tree.this, exp.GroupConcat) and isinstance(tree.expression, exp.Order):
            made = self.string_agg(tree.this)
            assert isinstance(made, syntax.Function)
            return made.with_(order=self.order_keys(tree.expression))
        return None

    def any_or_all(self, tree: exp.Expr) -> syntax.Expr:
        """Whether a condition holds for any row of a group, or for all."""
        which = "max" if isinstance(tree, exp.LogicalOr) else "min"
        whole = self.cast(self.expr(tree.this), "int", tree)
        return self.binary("=", self.call(which, tree, whole), self.number(1, tree), tree)

    def shift(self, tree: exp.Expr) -> syntax.Expr:
        args = [tree.this, tree.args.get("offset"), tree.args.get("default")]
        name = "lag" if isinstance(tree, exp.Lag) else "lead"
        return self.call(name, tree, *self.all([a for a in args if a is not None]))

    # ------------------------------------------------------------ numbers and texts

    def coalesce(self, tree: exp.Expr) -> syntax.Expr:
        return self.call("coalesce", tree, *self.all([tree.this, *tree.expressions]))

    def extremes(self, tree: exp.Expr) -> syntax.Expr:
        name = "greatest" if isinstance(tree, exp.Greatest) else "least"
        made = self.call(name, tree, *self.all([tree.this, *tree.expressions]))
        if tree.args.get("ignore_nulls") is False:
            self.by_type.add(made.span)
        return made

    def round(self, tree: exp.Expr) -> syntax.Expr:
        digits = tree.args.get("decimals")
        return self.call("round", tree, *self.all([tree.this] + ([digits] if digits is not None else [])))

    def concat(self, tree: exp.Expr) -> syntax.Expr:
        made: syntax.Expr | None = None
        for part in tree.expressions:
            side = self.expr(part)
            if tree.args.get("coalesce") and not isinstance(side, syntax.String):
                side = self.call("coalesce", part, side, self.string("", part))
            made = side if made is None else self.binary("||", made, side, tree)
        return made if made is not None else self.string("", tree)

    def substr(self, tree: exp.Expr) -> syntax.Expr:
        start, length = tree.args.get("start"), tree.args.get("length")
        if isinstance(start, exp.Neg) and length is None:
            return self.call("right", tree, self.expr(tree.this), self.expr(start.this))
        if isinstance(start, exp.Neg):
            return self.refuse(tree, "substr from the end", "write left(right(x, 3), 2)")
        return self.call("substr", tree, *self.all([a for a in (tree.this, start, length) if a is not None]))

    def trim(self, tree: exp.Expr) -> syntax.Expr:
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(tree.args.get("position") or ""), "trim")
        return self.call(name, tree, *self.all([a for a in (tree.this, tree.expression) if a is not None]))

    def replace(self, tree: exp.Expr) -> syntax.Expr:
        new = tree.args.get("replacement")
        last = self.expr(new) if new is not None else self.string("", tree)
        return self.call("replace", tree, self.expr(tree.this), self.expr(tree.expression), last)

    def position(self, tree: exp.Expr) -> syntax.Expr | None:
        if tree.args.get("position") is not None or tree.args.get("occurrence") is not None:
            return None
        return self.call("position", tree, self.expr(tree.args["substr"]), self.expr(tree.this))

    def json_get(self, tree: exp.Expr) -> syntax.Expr | None:
        path = tree.expression
        parts = path.expressions if isinstance(path, exp.JSONPath) else []
        keys = [p.name for p in parts if isinstance(p, exp.JSONPathKey)]
        if not keys or len(keys) != len(parts) - 1 or not all(re.fullmatch(r"\w+", k) for k in keys):
            return None
        return self.call("json_get", tree, self.expr(tree.this), self.string(".".join(keys), tree))

    def decode(self, tree: exp.Expr) -> syntax.Expr:
        operand, *rest = tree.expressions
        whens = []
        while len(rest) > 1:
            same = syntax.IsDistinct(self.expr(operand), self.expr(rest[0]), True, self.at(rest[0]))
            whens.append((same, self.expr(rest[1])))
            rest = rest[2:]
        return syntax.Case(None, tuple(whens), self.expr(rest[0]) if rest else None, self.at(tree))

    def convert(self, tree: exp.Expr) -> syntax.Expr | None:
        if not isinstance(tree.this, exp.DataType) or tree.args.get("style") is not None:
            return None
        type_, numbers = self.type_name(tree.this)
        return self.cast(self.expr(tree.expression), type_, tree, numbers) if type_ else None

    # ------------------------------------------------------------ time

    def weekday(self, tree: exp.Expr) -> syntax.Expr:
        """MySQL counts from Sunday, which is 1; com from Monday."""
        day = self.call("weekday", tree, self.time(_bare(tree.this)))
        rest = self.binary("%", day, self.number(7, tree), tree)
        return self.binary("+", rest, self.number(1, tree), tree)

    def extract(self, tree: exp.Expr) -> syntax.Expr | None:
        field = tree.this.name.lower()
        field = {"dayofmonth": "day", "isodow": "weekday"}.get(field, field)
        made = self.time(_bare(tree.expression))
        if field in ("dow", "dayofweek"):
            return self.binary("%", self.call("weekday", tree, made), self.number(7, tree), tree)
        return self.call(field, tree, made) if field in (*_FIELDS.values(), "quarter", "weekday") else None

    def format(self, tree: exp.Expr) -> syntax.Expr | None:
        form = tree.args.get("format")
        return self._formatted(tree, tree.this, form.name) if isinstance(form, exp.Literal) else None

    def to_char(self, tree: exp.Expr) -> syntax.Expr | None:
        form = tree.args.get("format")
        if not isinstance(form, exp.Literal):
            return None
        text = form.name
        for old, new in (
            ("YYYY", "%Y"), ("MM", "%m"), ("DD", "%d"), ("HH24", "%H"), ("MI", "%M"), ("SS", "%S"),
        ):  # fmt: skip
            text = text.replace(old, new)
        return self._formatted(tree, tree.this, text)

    def _formatted(self, tree: exp.Expr, of: exp.Expr, form: str) -> syntax.Expr:
        known = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S", "%i": "%M", "%s": "%S"}
        if form in ("%w", "%u"):
            day: syntax.Expr = self.call("weekday", tree, self.time(_bare(of)))
            day = self.binary("%", day, self.number(7, tree), tree) if form == "%w" else day
            return self.cast(day, "text", tree)
        form = re.sub(r"%[FTis]", lambda m: known[m[0]], form)
        letters = re.findall(r"%(.?)", form)
        if not letters or any(letter not in FORMATS for letter in letters) or re.search(r"[A-Z]{2}", form):
            return self.refuse(tree, f"the format '{form}'", "format_date knows %Y %m %d %H %M %S")
        time = self.time(_bare(of))
        return self.call("format_date", tree, time, self.string(form, tree))

    def trunc(self, tree: exp.Expr) -> syntax.Expr | None:
        unit = tree.args.get("unit")
        word = unit.name.lower() if unit is not None else ""
        if word not in UNITS and word != "quarter":
            return None
        return self.call("date_trunc", tree, self.string(word, tree), self.time(_bare(tree.this)))

    def difference(self, tree: exp.Expr) -> syntax.Expr | None:
        unit = tree.args.get("unit")
        word = unit.name.lower().removesuffix("s") if unit is not None else "day"
        if word not in UNITS:
            return None
        later, earlier = self.time(_bare(tree.this)), self.time(_bare(tree.expression))
        return self.call("date_diff", tree, self.string(word, tree), earlier, later)

    def shifted(self, tree: exp.Expr) -> syntax.Expr | None:
        sign = -1 if isinstance(tree, exp.DateSub | exp.DatetimeSub | exp.TimestampSub) else 1
        step = tree.expression
        if not isinstance(step, exp.Interval):
            step = exp.Interval(this=step.copy(), unit=tree.args.get("unit"))
        made = self.interval(step, 1)
        if made is None:
            if step.args.get("unit") is not None and step.args["unit"].name.lower() in ("day", "days"):
                days = self.expr(tree.expression.this if isinstance(tree.expression, exp.Interval) else tree.expression)
                return self.binary("-" if sign < 0 else "+", self.time(_bare(tree.this)), days, tree)
            return self._no_interval(tree)
        op = "-" if sign < 0 else "+"
        if made.value.startswith("-"):
            op, made = ("+" if sign < 0 else "-"), made.with_(value=made.value.replace("-", ""))
        return self.binary(op, self.time(_bare(tree.this)), made.with_(span=self.at(tree)), tree)

    def date(self, tree: exp.Expr) -> syntax.Expr | None:
        inner = tree.this if not isinstance(tree, exp.Anonymous) else tree.expressions[0]
        if isinstance(inner, exp.Literal) and inner.is_string:
            if inner.name.lower() == "now":
                return syntax.Placeholder("today", None, self.at(tree))
            return syntax.Moment("date", inner.name, self.at(tree))
        return self.cast(self.expr(inner), "date", tree) if inner is not None else None

    # ------------------------------------------------------------ by name

    def anonymous(self, tree: exp.Expr) -> syntax.Expr | None:
        name, args = tree.name.lower(), tree.expressions
        name = _NAMES.get(name, name)
        if name in _CLOCK and not args:
            return syntax.Placeholder(_CLOCK[name], None, self.at(tree))
        if name in ("date", "datetime", "strftime"):
            return self._sqlite_time(name, tree)
        if name == "total" and len(args) == 1:
            number = self.cast(self.call("sum", tree, self.expr(args[0])), "float", tree)
            return self.call("coalesce", tree, number, self.cast(self.number(0, tree), "float", tree))
        if name in ("ifnull", "nvl", "isnull") and len(args) == 2:
            return self.call("coalesce", tree, *self.all(args))
        if name in ("every", "bool_and", "bool_or") and len(args) == 1:
            made = exp.LogicalOr(this=args[0]) if name == "bool_or" else exp.LogicalAnd(this=args[0])
            return self.any_or_all(made)
        if name == "timestampdiff" and len(args) == 3:
            return self.call("date_diff", tree, self.string(args[0].name.lower(), tree), *self.all(args[1:]))
        if name in FUNCTIONS:
            return self.call(name, tree, *self.all(args))
        return None

    def _sqlite_time(self, name: str, tree: exp.Expr) -> syntax.Expr | None:
        """SQLite's functions of a time with modifiers such as '+1 month'."""
        args = list(tree.expressions)
        form = args.pop(0) if name == "strftime" else None
        if not args and form is None:
            return syntax.Placeholder("now", None, self.at(tree))
        time = args.pop(0) if args else exp.Literal.string("now")
        made = self.time(time)
        if name == "date" and not (isinstance(made, syntax.Placeholder) and made.name == "now"):
            made = self.cast(made, "date", tree)
        elif name == "date":
            made = syntax.Placeholder("today", None, self.at(tree))
        elif isinstance(made, syntax.String) or name == "datetime":
            made = self.cast(made, "timestamp", tree)
        for modifier in args:
            word = modifier.name.lower() if isinstance(modifier, exp.Literal) else ""
            shift = re.fullmatch(r"([+-]?)\s*(\d+) (year|month|day|hour|minute|second)s?", word)
            start = re.fullmatch(r"start of (year|month|day)", word)
            if shift:
                step = syntax.Interval(f"{shift[2]} {shift[3]}", self.at(modifier))
                made = self.binary("-" if shift[1] == "-" else "+", made, step, tree)
            elif start:
                made = self.call("date_trunc", tree, self.string(start[1], modifier), made)
            elif word not in ("localtime", "utc"):
                return None
        if form is None:
            return made
        if not isinstance(form, exp.Literal):
            return None
        if form.name in ("%w", "%u"):
            day: syntax.Expr = self.call("weekday", tree, made)
            day = self.binary("%", day, self.number(7, tree), tree) if form.name == "%w" else day
            return self.cast(day, "text", tree)
        text = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S"}.get(form.name, form.name)
        if any(letter not in FORMATS for letter in re.findall(r"%(.?)", text)):
            return None
        return self.call("format_date", tree, made, self.string(text, tree))


def _bare(tree: exp.Expr) -> exp.Expr:
    """What stands inside conversions that sqlglot adds."""
    while isinstance(tree, WRAPPERS):
        tree = tree.this
    return tree


_HANDLERS: dict[type[exp.Expr], Callable[[Functions, exp.Expr], syntax.Expr | None]] = {
    exp.Count: Functions.count,
    exp.GroupConcat: Functions.string_agg,
    exp.WithinGroup: Functions.within,
    exp.LogicalOr: Functions.any_or_all,
    exp.LogicalAnd: Functions.any_or_all,
    exp.Lag: Functions.shift,
    exp.Lead: Functions.shift,
    exp.Coalesce: Functions.coalesce,
    exp.Greatest: Functions.extremes,
    exp.Least: Functions.extremes,
    exp.Round: Functions.round,
    exp.Concat: Functions.concat,
    exp.Substring: Functions.substr,
    exp.Trim: Functions.trim,
    exp.Replace: Functions.replace,
    exp.StrPosition: Functions.position,
    exp.JSONExtract: Functions.json_get,
    exp.JSONExtractScalar: Functions.json_get,
    exp.DecodeCase: Functions.decode,
    exp.Convert: Functions.convert,
    exp.DayOfWeek: Functions.weekday,
    exp.Extract: Functions.extract,
    exp.TimeToStr: Functions.format,
    exp.ToChar: Functions.to_char,
    exp.TimestampTrunc: Functions.trunc,
    exp.DateTrunc: Functions.trunc,
    exp.DateDiff: Functions.difference,
    exp.TimestampDiff: Functions.difference,
    exp.DatetimeDiff: Functions.difference,
    exp.DateAdd: Functions.shifted,
    exp.DateSub: Functions.shifted,
    exp.DatetimeAdd: Functions.shifted,
    exp.DatetimeSub: Functions.shifted,
    exp.TimestampAdd: Functions.shifted,
    exp.TimestampSub: Functions.shifted,
    exp.TsOrDsAdd: Functions.shifted,
    exp.Date: Functions.date,
    exp.Anonymous: Functions.anonymous,
}
