"""Expressions of sqlglot to those of com. Functions have a file of their own.

What com lacks is told once, and becomes `null`.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence

from sqlglot import expressions as exp

from com import diagnostics as messages
from com.compiler import syntax
from com.diagnostics import Diagnostic
from com.importer.dialects import Dialect
from com.importer.places import Places
from com.source import Span
from com.values import read_period

_BINARY: dict[type[exp.Expr], str] = {
    exp.And: "and", exp.Or: "or", exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=",
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Mod: "%", exp.Div: "/", exp.IntDiv: "div", exp.DPipe: "||",
    exp.Xor: "<>",
}  # fmt: skip
_TYPES = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "UINT", "UBIGINT", "USMALLINT"), "int"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "float"),
    **dict.fromkeys(("CHAR", "NCHAR", "VARCHAR", "NVARCHAR", "TEXT", "MEDIUMTEXT", "LONGTEXT", "TINYTEXT"), "text"),
    **dict.fromkeys(("BOOLEAN", "BIT"), "bool"),
    **dict.fromkeys(("TIMESTAMP", "DATETIME", "DATETIME2", "TIMESTAMPNTZ", "SMALLDATETIME"), "timestamp"),
    **dict.fromkeys(("DECIMAL", "BIGDECIMAL", "MONEY"), "decimal"),
    **dict.fromkeys(("JSON", "JSONB"), "json"),
    **dict.fromkeys(("BINARY", "VARBINARY", "BLOB"), "bytes"),
    "DATE": "date",
}  # fmt: skip
WRAPPERS = (
    exp.Paren, exp.TsOrDsToDate, exp.TsOrDsToTimestamp, exp.TimeStrToTime, exp.TsOrDsToDatetime, exp.TimeStrToDate,
    exp.Collate,
)  # fmt: skip
"""What sqlglot (or a person) puts around an expression without changing its value."""


class Expressions:
    """The part of the translation that knows expressions. Queries are known to a subclass."""

    def __init__(self, places: Places, dialect: Dialect) -> None:
        self.places = places
        self.dialect = dialect
        self.diagnostics: list[Diagnostic] = []
        self.parameters: dict[str, Span] = {}
        self.marks = 0  # question marks met
        self.by_type: set[Span] = set()  # divisions and casts whose meaning hangs on types
        self.windows: list[dict[str, exp.Window]] = []

    # ------------------------------------------------------------ what others know

    @abstractmethod
    def query(self, tree: exp.Expr) -> syntax.Query:
        """A query inside an expression."""

    @abstractmethod
    def function(self, tree: exp.Expr) -> syntax.Expr | None:
        """A function, or None if com has none like it."""

    # ------------------------------------------------------------ saying

    def at(self, tree: exp.Expr) -> Span:
        """A new number for a tree's place."""
        return self.places.number(self.places.of(tree))

    def refuse(self, tree: exp.Expr, what: str, instead: str = "") -> syntax.Expr:
        """Say that something cannot be imported."""
        self.diagnostics.append(Diagnostic(messages.NotImported(what, instead), self.places.of(tree)))
        return syntax.Null(self.at(tree))

    # ------------------------------------------------------------ parts

    def name(self, tree: exp.Expr) -> syntax.Name:
        place = self.places.of(tree)
        text = tree.name
        quoted = isinstance(tree, exp.Identifier) and bool(tree.args.get("quoted"))
        return syntax.Name(text, quoted and self.places.text[place.start : place.start + 1] == '"', self.at(tree))

    def named(self, text: str, tree: exp.Expr) -> syntax.Name:
        """A name that does not stand in the SQL."""
        return syntax.Name(text, False, self.at(tree))

    def call(self, name: str, tree: exp.Expr, *args: syntax.Expr) -> syntax.Function:
        return syntax.Function(self.named(name, tree), args, False, False, (), None, None, self.at(tree))

    def number(self, value: int, tree: exp.Expr) -> syntax.Expr:
        made = syntax.Number(str(abs(value)), self.at(tree))
        return made if value >= 0 else syntax.Unary("-", made, self.at(tree))

    def string(self, value: str, tree: exp.Expr) -> syntax.String:
        return syntax.String(value, self.at(tree))

    def binary(self, op: str, left: syntax.Expr, right: syntax.Expr, tree: exp.Expr) -> syntax.Binary:
        return syntax.Binary(op, left, right, self.at(tree))

    def cast(self, operand: syntax.Expr, type_: str, tree: exp.Expr, numbers: tuple[int, ...] = ()) -> syntax.Expr:
        return syntax.Cast(operand, syntax.TypeName(type_, numbers, self.at(tree)), False, self.at(tree))

    def all(self, trees: Sequence[exp.Expr]) -> tuple[syntax.Expr, ...]:
        return tuple(self.expr(t) for t in trees)

    # ------------------------------------------------------------ expressions

    def expr(self, tree: exp.Expr) -> syntax.Expr:
        """The expression of com."""
        while isinstance(tree, WRAPPERS):
            tree = tree.this
        made = type(tree)
        if made in _BINARY:
            return self._binary(tree)
        match tree:
            case exp.Column():
                return self._column(tree)
            case exp.Identifier():
                return syntax.ColumnName(None, self.name(tree), self.at(tree))
            case exp.Literal():
                return self._literal(tree)
            case exp.Boolean():
                return syntax.Truth(bool(tree.this), self.at(tree))
            case exp.Null():
                return syntax.Null(self.at(tree))
            case exp.Neg():
                return syntax.Unary("-", self.expr(tree.this), self.at(tree))
            case exp.Not():
                return self._not(tree)
            case exp.Is():
                return self._is(tree, False)
            case exp.NullSafeEQ() | exp.NullSafeNEQ():
                same = isinstance(tree, exp.NullSafeEQ)
                return syntax.IsDistinct(self.expr(tree.this), self.expr(tree.expression), same, self.at(tree))
            case exp.Between():
                return self._between(tree, False)
            case exp.Like() | exp.ILike():
                return self._like(tree, False)
            case exp.Glob():
                return self._glob(tree, False)
            case exp.In():
                return self._in(tree, False)
            case exp.Exists():
                return syntax.Exists(self.query(tree.this), self.at(tree))
            case exp.Subquery() | exp.Select() | exp.SetOperation():
                return syntax.ScalarQuery(self.query(tree), self.at(tree))
            case exp.Case():
                return self._case(tree)
            case exp.If():
                when = (self.expr(tree.this), self.expr(tree.args["true"]))
                otherwise = tree.args.get("false")
                return syntax.Case(None, (when,), self.expr(otherwise) if otherwise else None, self.at(tree))
            case exp.Cast() | exp.TryCast():
                return self._cast(tree)
            case exp.Interval():
                return self.interval(tree, 1) or self._no_interval(tree)
            case exp.Placeholder() | exp.Parameter():
                return self._parameter(tree)
            case exp.CurrentDate():
                return syntax.Placeholder("today", None, self.at(tree))
            case exp.CurrentTimestamp() | exp.CurrentDatetime() | exp.Localtimestamp():
                return syntax.Placeholder("now", None, self.at(tree))
            case exp.Window():
                return self._window(tree)
            case exp.Filter():
                made_in = self.expr(tree.this)
                where = self.expr(tree.expression.this)
                return made_in.with_(where=where) if isinstance(made_in, syntax.Function) else made_in
            case exp.Any() | exp.All():
                return self.refuse(tree, "any or all (select …)", "write in (select …), or compare with its max or min")
            case exp.Tuple():
                return self.refuse(tree, "a row of values", "compare the values one by one, joined by and")
            case exp.Escape():
                return self.refuse(tree, "like with escape", "write position(part, x) > 0, or starts_with(x, part)")
        found = self.function(tree)
        return found if found is not None else self._unknown(tree)

    def _unknown(self, tree: exp.Expr) -> syntax.Expr:
        for child in tree.iter_expressions():
            if not isinstance(child, exp.DataType | exp.Var):
                self.expr(child)
        if isinstance(tree, exp.Anonymous):
            return self.refuse(tree, f"the function {tree.name.lower()}")
        place = self.places.of(tree)
        written = re.match(r"\w+(?=\s*\()", self.places.text[place.start : place.end])
        what = f"the function {written[0].lower()}" if written else _words(type(tree).__name__)
        return self.refuse(tree, what)

    def _column(self, tree: exp.Column) -> syntax.Expr:
        if tree.args.get("db"):
            return self.refuse(tree, "a column named with its database", f"write {tree.table}.{tree.name}")
        word = tree.name.lower()
        if not tree.table and not tree.this.args.get("quoted"):
            if word in ("current_date", "current_timestamp"):
                return syntax.Placeholder("today" if word == "current_date" else "now", None, self.at(tree))
            if word[:1] == "$":
                return self._parameter(exp.Placeholder(this=word[1:]), self.places.of(tree))
            if word in ("rowid", "oid", "_rowid_", "rownum") and self.dialect.name in ("sqlite", "oracle"):
                self.refuse(tree, word, "name a key of the table")
        table = tree.args.get("table")
        return syntax.ColumnName(self.name(table) if table else None, self.name(tree.this), self.at(tree))

    def _literal(self, tree: exp.Literal) -> syntax.Expr:
        if tree.is_string:
            return syntax.String(tree.name, self.at(tree))
        text = tree.name.replace("_", "")
        if re.fullmatch(r"\d+", text) or re.fullmatch(r"\d+\.\d+", text):
            return syntax.Number(text, self.at(tree))
        if re.fullmatch(r"\d*\.\d*", text):
            whole, _, rest = text.partition(".")
            return syntax.Number(f"{whole or 0}.{rest or 0}", self.at(tree))
        return self.cast(syntax.String(text, self.at(tree)), "float", tree)

    def _binary(self, tree: exp.Expr) -> syntax.Expr:
        op = _BINARY[type(tree)]
        left, right = tree.this, tree.expression
        if op in ("+", "-"):
            found = self._time_arithmetic(op, tree)
            if found is not None:
                return found
        for side in (left, right):
            if isinstance(side, exp.Any | exp.All):
                return self._quantified(op, tree)
            if isinstance(side, exp.Tuple):
                return self._rows_compared(op, tree)
        if op == "+" and self.dialect.name == "tsql" and _is_text(left, right):
            op = "||"
        made = self.binary(op, self.expr(left), self.expr(right), tree)
        if op == "/" and tree.args.get("typed"):
            self.by_type.add(made.span)
        return made

    def _quantified(self, op: str, tree: exp.Expr) -> syntax.Expr:
        side = tree.expression
        inner = side.this
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if isinstance(inner, exp.Array) and (type(side), op) in ((exp.Any, "="), (exp.All, "<>")):
            return syntax.InList(self.expr(tree.this), self.all(inner.expressions), op == "<>", self.at(tree))
        if isinstance(side, exp.Any) and op == "=" and isinstance(side.this, exp.Subquery | exp.Select):
            return syntax.InQuery(self.expr(tree.this), self.query(side.this), False, self.at(tree))
        if isinstance(side, exp.All) and op == "<>" and isinstance(side.this, exp.Subquery | exp.Select):
            return syntax.InQuery(self.expr(tree.this), self.query(side.this), True, self.at(tree))
        return self.refuse(tree, "any or all (select …)", "write in (select …), or compare with its max or min")

    def _rows_compared(self, op: str, tree: exp.Expr) -> syntax.Expr:
        left, right = tree.this, tree.expression
        both = isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple)
        if op == "=" and both and len(left.expressions) == len(right.expressions):
            made: syntax.Expr | None = None
            for mine, its in zip(left.expressions, right.expressions, strict=True):
                equal = self.binary("=", self.expr(mine), self.expr(its), tree)
                made = equal if made is None else self.binary("and", made, equal, tree)
            if made is not None:
                return made
        return self.refuse(tree, "a row of values", "compare the values one by one, joined by and")

    def _time_arithmetic(self, op: str, tree: exp.Expr) -> syntax.Expr | None:
        """`d + interval`, and SQLite's difference of two julian days."""
        if isinstance(tree.expression, exp.Interval):
            made = self.interval(tree.expression, 1)
            if made is not None:
                return self.binary(op, self.expr(tree.this), made, tree)
            return self._no_interval(tree.expression)
        days = [_julian(side) for side in (tree.this, tree.expression)]
        if op == "-" and days[0] is not None and days[1] is not None:
            unit = self.string("day", tree)
            return self.call("date_diff", tree, unit, self.time(days[1]), self.time(days[0]))
        return None

    def time(self, tree: exp.Expr) -> syntax.Expr:
        """A date or timestamp; SQLite's 'now' is the run's clock."""
        if isinstance(tree, exp.Literal) and tree.is_string and tree.name.lower() == "now":
            return syntax.Placeholder("now", None, self.at(tree))
        return self.expr(tree)

    def interval(self, tree: exp.Expr, sign: int) -> syntax.Interval | None:
        """An interval of constants."""
        unit = tree.args.get("unit")
        count = tree.this
        while isinstance(count, exp.Paren):
            count = count.this
        if isinstance(count, exp.Neg):
            count, sign = count.this, -sign
        if not isinstance(count, exp.Literal):
            return None
        text = count.name.strip()
        if unit is not None:
            text = f"{text} {unit.name.lower().removesuffix('s')}"
        try:
            read_period(text)
        except ValueError:
            return None
        if sign < 0:
            text = re.sub(r"(?<![\d-])(\d+)", r"-\1", text)
        return syntax.Interval(text, self.at(tree))

    def _no_interval(self, tree: exp.Expr) -> syntax.Expr:
        return self.refuse(tree, "an interval that is no constant", "write d + interval '3 day', or d + n for days")

    # ------------------------------------------------------------ conditions

    def _not(self, tree: exp.Not) -> syntax.Expr:
        inner = tree.this
        while isinstance(inner, exp.Paren) and isinstance(inner.this, exp.Paren):
            inner = inner.this
        match inner:
            case exp.Is():
                return self._is(inner, True)
            case exp.Between():
                return self._between(inner, True)
            case exp.Like() | exp.ILike():
                return self._like(inner, True)
            case exp.Glob():
                return self._glob(inner, True)
            case exp.In():
                return self._in(inner, True)
            case exp.NullSafeEQ() | exp.NullSafeNEQ():
                same = isinstance(inner, exp.NullSafeNEQ)
                return syntax.IsDistinct(self.expr(inner.this), self.expr(inner.expression), same, self.at(tree))
        return syntax.Unary("not", self.expr(tree.this), self.at(tree))

    def _is(self, tree: exp.Is, negated: bool) -> syntax.Expr:
        operand, what = self.expr(tree.this), tree.expression
        negated ^= bool(tree.args.get("negate"))
        if isinstance(what, exp.Not):
            what, negated = what.this, not negated
        if isinstance(what, exp.Null):
            return syntax.IsNull(operand, negated, self.at(tree))
        return syntax.IsDistinct(operand, self.expr(what), not negated, self.at(tree))

    def _between(self, tree: exp.Between, negated: bool) -> syntax.Expr:
        if tree.args.get("symmetric"):
            return self.refuse(tree, "between symmetric", "order the two bounds")
        negated ^= bool(tree.args.get("negate"))
        low, high = self.expr(tree.args["low"]), self.expr(tree.args["high"])
        return syntax.Between(self.expr(tree.this), low, high, negated, self.at(tree))

    def _like(self, tree: exp.Expr, negated: bool) -> syntax.Expr:
        negated ^= bool(tree.args.get("negate"))
        folds = isinstance(tree, exp.ILike) or self.dialect.folds
        pattern = tree.expression
        if isinstance(pattern, exp.Any | exp.All | exp.Tuple):
            return self.refuse(tree, "like with many patterns", "join the conditions by or")
        if folds and isinstance(pattern, exp.Literal) and not re.search(r"[^\W\d_]", pattern.name):
            folds = isinstance(tree, exp.ILike)
        return syntax.Like(self.expr(tree.this), self.expr(pattern), folds, negated, self.at(tree))

    def _glob(self, tree: exp.Expr, negated: bool) -> syntax.Expr:
        """A glob of stars and question marks is a like that minds case."""
        negated ^= bool(tree.args.get("negate"))
        pattern = tree.expression
        if not isinstance(pattern, exp.Literal) or re.search(r"[\[\]%_\\]", pattern.name):
            return self.refuse(tree, "this glob", "write like, or starts_with(x, part)")
        text = self.string(pattern.name.replace("*", "%").replace("?", "_"), pattern)
        return syntax.Like(self.expr(tree.this), text, False, negated, self.at(tree))

    def _in(self, tree: exp.In, negated: bool) -> syntax.Expr:
        if isinstance(tree.this, exp.Tuple):
            return self.refuse(tree, "a row of values", "write exists (select … where a = x and b = y)")
        negated ^= bool(tree.args.get("negate"))
        operand = self.expr(tree.this)
        query = tree.args.get("query")
        if query is not None:
            return syntax.InQuery(operand, self.query(query), negated, self.at(tree))
        field = tree.args.get("field")
        if field is not None or tree.args.get("unnest"):
            return self.refuse(tree, "in without a list", "write the values, or in (select …)")
        items = tree.expressions
        if len(items) == 1 and isinstance(items[0], exp.Subquery | exp.Select | exp.SetOperation):
            return syntax.InQuery(operand, self.query(items[0]), negated, self.at(tree))
        if not items:
            return syntax.Truth(negated, self.at(tree))
        return syntax.InList(operand, self.all(items), negated, self.at(tree))

    # ------------------------------------------------------------ case, cast, parameters

    def _case(self, tree: exp.Case) -> syntax.Expr:
        operand = self.expr(tree.this) if tree.this is not None else None
        whens = tuple((self.expr(i.this), self.expr(i.args["true"])) for i in tree.args["ifs"])
        default = tree.args.get("default")
        return syntax.Case(operand, whens, self.expr(default) if default is not None else None, self.at(tree))

    def _cast(self, tree: exp.Expr) -> syntax.Expr:
        operand, to = tree.this, tree.args["to"]
        type_, numbers = self.type_name(to)
        if not type_:
            return self.refuse(tree, f"cast to {to.sql().lower()}", "the types are int, float, decimal(p,s), text, …")
        if isinstance(operand, exp.Literal) and operand.is_string and type_ in ("date", "timestamp"):
            return syntax.Moment(type_, operand.name, self.at(tree))
        if type_ == "date" and isinstance(operand, exp.CurrentTimestamp):
            return syntax.Placeholder("today", None, self.at(tree))
        made = self.cast(self.expr(operand), type_, tree, numbers)
        if type_ in ("int", "float"):
            self.by_type.add(made.span)
        return made

    def type_name(self, to: exp.DataType) -> tuple[str, tuple[int, ...]]:
        """com's name for a type with its digits, or nothing."""
        kind = to.this.name if hasattr(to.this, "name") else str(to.this)
        type_ = _TYPES.get(str(kind).upper(), "")
        numbers = tuple(int(p.name) for p in to.expressions if isinstance(p, exp.DataTypeParam) and p.name.isdigit())
        if type_ == "decimal":
            if len(numbers) == 1:
                numbers = (*numbers, 0)
            return ("decimal", numbers) if len(numbers) == 2 else ("float", ())
        return type_, ()

    def _parameter(self, tree: exp.Expr, place: Span | None = None) -> syntax.Expr:
        inner = tree.this
        text = inner.name if isinstance(inner, exp.Expr) else str(inner or "")
        name = re.sub(r"\W", "_", text)
        if not name or name == "_":
            name = f"p{len(self.parameters) + 1}"
        elif name[0].isdigit():
            name = f"p{name}"
        if name.lower() in ("now", "today"):
            name += "_given"
        place = place or self._placed(text, tree)
        self.parameters.setdefault(name, place)
        return syntax.Placeholder(name, None, self.places.number(place))

    def _placed(self, name: str, tree: exp.Expr) -> Span:
        """Where a parameter stands, which sqlglot does not say."""
        text = re.escape(name)
        if name:
            found = re.search(rf"(:|@|\$){text}\b", self.places.text)
        else:
            marks = list(re.finditer(r"\?", re.sub(r"'[^']*'", lambda m: "'" * len(m[0]), self.places.text)))
            found = marks[self.marks] if self.marks < len(marks) else None
            self.marks += 1
        return Span(found.start(), found.end()) if found else self.places.of(tree)

    # ------------------------------------------------------------ windows

    def _window(self, tree: exp.Window) -> syntax.Expr:
        inner = tree.this
        if isinstance(inner, exp.IgnoreNulls | exp.RespectNulls):
            if isinstance(inner, exp.IgnoreNulls):
                return self.refuse(tree, "ignore nulls", "leave such rows out in a step before")
            inner = inner.this
        made = self.expr(inner)
        if not isinstance(made, syntax.Function):
            return made
        spec = self._spec(tree)
        alias = tree.args.get("alias")
        if alias is not None and self.windows:
            known = next((w[alias.name.lower()] for w in reversed(self.windows) if alias.name.lower() in w), None)
            if known is not None:
                base = self._spec(known)
                spec = syntax.Over(
                    spec.partition or base.partition, spec.order or base.order, spec.frame or base.frame, spec.span
                )
        return made.with_(over=spec)

    def _spec(self, tree: exp.Window) -> syntax.Over:
        order = tree.args.get("order")
        spec = tree.args.get("spec")
        return syntax.Over(
            self.all(tree.args.get("partition_by") or ()),
            self.order_keys(order) if order is not None else (),
            self._frame(spec) if spec is not None else None,
            self.at(tree),
        )

    def _frame(self, spec: exp.Expr) -> syntax.Frame | None:
        unit = str(spec.args.get("kind") or "range").lower()
        if unit not in ("rows", "range") or spec.args.get("exclude"):
            self.refuse(spec, f"a frame of {unit}", "write rows or range")
            return None
        end = spec.args.get("end")
        return syntax.Frame(
            unit, self._bound(spec, "start"), self._bound(spec, "end") if end is not None else None, self.at(spec)
        )

    def _bound(self, spec: exp.Expr, which: str) -> syntax.Bound:
        value, side = spec.args.get(which), str(spec.args.get(f"{which}_side") or "").lower()
        if isinstance(value, exp.Expr):
            return syntax.Bound(side, self.expr(value), self.at(spec))
        word = str(value or "").lower()
        return syntax.Bound("current row" if word == "current row" else f"{word} {side}".strip(), None, self.at(spec))

    def order_keys(self, order: exp.Expr) -> tuple[syntax.OrderKey, ...]:
        """Keys with the nulls where the dialect puts them; com puts them last unless said."""
        made = []
        for key in order.expressions:
            tree, descending, first = key, False, False
            if isinstance(key, exp.Ordered):
                tree, descending, first = key.this, bool(key.args.get("desc")), bool(key.args.get("nulls_first"))
            made.append(syntax.OrderKey(self.expr(tree), descending, True if first else None, self.at(key)))
        return tuple(made)


def _words(name: str) -> str:
    """The name of a class as words: `JSONArrayAgg` is `json array agg`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name).lower()


def _is_text(*sides: exp.Expr) -> bool:
    """True if one side of SQL Server's + is surely a text."""
    for side in sides:
        if isinstance(side, exp.Literal) and side.is_string:
            return True
        if isinstance(side, exp.Cast) and side.to.this in exp.DataType.TEXT_TYPES:
            return True
        if isinstance(side, exp.Add) and _is_text(side.this, side.expression):
            return True
    return False


def _julian(tree: exp.Expr) -> exp.Expr | None:
    """What julianday is taken of."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.Anonymous) and tree.name.lower() == "julianday" and len(tree.expressions) == 1:
        found: exp.Expr = tree.expressions[0]
        return found
    return None
