"""What a query means in its dialect, where com asks for more: types brought together, first rows, parameters' types.

Takes a translated program and a schema. Checks it, mends what the check tells where the dialect leaves no doubt, and
checks again, until nothing is left to mend. What is left is told as it is.
"""

from __future__ import annotations

from com import diagnostics as messages
from com.compiler import ir, syntax
from com.compiler.check import check_types
from com.diagnostics import Diagnostic, Message, has_errors
from com.importer.bare import row_of_extreme
from com.importer.dialects import Dialect
from com.importer.places import Places
from com.importer.tree import Tree
from com.node import Node, rebuild, walk
from com.schema import BOOL, DATE, FLOAT, INT, TEXT, TIMESTAMP, UNKNOWN, Schema, Type
from com.source import Span

_ROUNDS = 200
_EQUALITIES = ("=", "<>")
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
_SECONDS = ("hour", "minute", "second")


class Mender:
    """One program being mended. `by_type`: divisions that give an int of two ints, and casts to numbers."""

    def __init__(self, places: Places, dialect: Dialect, schema: Schema, by_type: set[Span]) -> None:
        self.places = places
        self.dialect = dialect
        self.schema = schema
        self.by_type = by_type
        self.said: dict[tuple[Message, Span], Diagnostic] = {}
        self.typed: set[str] = set()
        self.noted: dict[Span, ir.Expr] = {}
        self.edits: dict[Span, Node] = {}
        self.refused: dict[Span, Message] = {}
        self.tree: Tree

    def mend(self, program: syntax.Program) -> tuple[syntax.Program, list[Diagnostic]]:
        """The program in the end, and what is to be told."""
        found: list[Diagnostic] = []
        for _ in range(_ROUNDS):
            self.tree, self.edits = Tree(program), {}
            self.noted, found = check_types(program, self.schema)
            errors = [d for d in found if d.severity == "error"]
            for told in errors:
                self._answer(told)
            if not errors:
                self._by_types()
            if not self.edits:
                break
            program = self.tree.with_(self.edits)
        if not has_errors(found) and not has_errors(list(self.said.values())):
            self._untyped(program)
        told_all = [self.places.told(self._told(d)) for d in found] + list(self.said.values())
        return program, sorted(told_all, key=lambda d: (d.span.start, d.span.end))

    def _told(self, found: Diagnostic) -> Diagnostic:
        message = self.refused.get(found.span)
        return found.with_(message=message) if message is not None else found

    # ------------------------------------------------------------ making

    def say(self, message: Message, at: Span) -> None:
        place = self.places.place(at)
        self.said[message, place] = Diagnostic(message, place)

    def type(self, node: syntax.Expr) -> Type:
        made = self.noted.get(node.span)
        return made.type if made is not None else UNKNOWN

    def cast(self, node: syntax.Expr, type_: str) -> syntax.Expr:
        if type_ == "text" and isinstance(node, syntax.Number):
            return syntax.String(node.text, node.span)
        again = self.places.again
        return syntax.Cast(node, syntax.TypeName(type_, (), again(node.span)), False, again(node.span))

    def _call(self, name: str, *args: syntax.Expr) -> syntax.Function:
        at = self.places.again(args[0].span)
        return syntax.Function(syntax.Name(name, False, at), args, False, False, (), None, None, at)

    def _number(self, node: syntax.Expr, type_: str = "float") -> syntax.Expr:
        """A text as a number: 0 if it does not begin as one."""
        self.say(messages.ReadAsNumber(self.dialect.title), node.span)
        again = self.places.again

        def test(op: str, sign: str) -> syntax.Binary:
            return syntax.Binary(op, node, syntax.String(sign, again(node.span)), again(node.span))

        other = syntax.Binary("or", test("<", "+"), test(">=", ":"), again(node.span))
        zero = syntax.Number("0", again(node.span))
        return syntax.Case(None, ((other, zero),), self.cast(node, type_), again(node.span))

    def _answer(self, told: Diagnostic) -> None:
        node = self.tree.nodes.get(told.span)
        match told.message:
            case messages.QuotedString() if self.dialect.strings and isinstance(node, syntax.ColumnName):
                self.edits[node.span] = syntax.String(node.name.text, node.span)
            case messages.UnknownColumn() if isinstance(node, syntax.ColumnName) and node.table is None:
                self._alias(node)
            case messages.TypeMismatch() if node is not None:
                self._mismatch(node, told.span)
            case messages.BadLiteral(wanted=wanted) if isinstance(node, syntax.String):
                self._bad_literal(node, wanted)
            case messages.WrongArgument(function=function, wanted=wanted) if node is not None:
                self._argument(node, function, wanted)
            case messages.NotBool() if node is not None:
                self._not_bool(node)
            case messages.QueryAsValue(found="any number of rows") if isinstance(node, syntax.ScalarQuery):
                self._first_row(node)
            case messages.CannotStore(wanted=wanted) if node is not None:
                self._store(node, wanted)
            case messages.BadLimit() if isinstance(node, syntax.Placeholder):
                self._parameter(node, INT)
            case messages.NotGrouped(column=column) if node is not None and self.dialect.any_row:
                self.refused[told.span] = messages.AnyRow(column, self.dialect.title)
                if self.dialect.loose == "sqlite":
                    self._bare(node, told.span, column)

    def _alias(self, node: syntax.ColumnName) -> None:
        """Where a dialect lets a column's alias stand, com wants what it stands for."""
        select = self.tree.around(node, syntax.Select)
        for item in select.items if select is not None else ():
            if (
                not isinstance(item, syntax.Item)
                or item.alias is None
                or item.alias.text.lower() != node.name.text.lower()
            ):
                continue
            if all(n is not node for n in walk(item)):
                self.edits[node.span] = rebuild(item.expr, self._again)

    def _again(self, node: Node) -> Node:
        span = getattr(node, "span", None)
        return node.with_(span=self.places.again(span)) if span is not None else node

    # ------------------------------------------------------------ parameters

    def _parameter(self, node: Node, type_: Type) -> bool:
        """Gives a parameter of the program its type, if the node is one that has none yet."""
        header = self.tree.program.header
        if not isinstance(node, syntax.Placeholder) or node.column is not None or header is None:
            return False
        declared = next((p for p in header.parameters if p.name.text == node.name), None)
        if declared is None or node.name in self.typed or type_.kind in ("unknown", "null", "interval"):
            return False
        self.typed.add(node.name)
        numbers = (type_.precision, type_.scale) if type_.kind == "decimal" else ()
        old = declared.type
        self.edits[old.span] = syntax.TypeName(type_.kind, numbers, old.span)
        return True

    def _untyped(self, program: syntax.Program) -> None:
        """Tells the parameters that could as well be of any other type."""
        if program.header is None:
            return
        for declared in program.header.parameters:
            name = declared.name.text
            if name in self.typed:
                continue
            other = syntax.TypeName("bool", (), declared.type.span)
            _, found = check_types(Tree(program).with_({declared.type.span: other}), self.schema)
            if not has_errors(found):
                self.say(messages.UntypedParameter(name, ""), declared.name.span)

    # ------------------------------------------------------------ comparisons and sums

    def _mismatch(self, node: Node, at: Span) -> None:
        match node:
            case syntax.Binary(op=op, left=left, right=right) if op in _COMPARISONS:
                self._compared([left, right], op in _EQUALITIES, node.span)
            case syntax.IsDistinct(left=left, right=right):
                self._compared([left, right], True, node.span)
            case syntax.Between(operand=operand, low=low, high=high):
                self._compared([operand, low, high], False, node.span)
            case syntax.InList(operand=operand, items=items):
                self._compared([operand, *items], True, node.span)
            case syntax.InQuery(operand=operand, query=query):
                self._in_query(node, operand, query)
            case syntax.Binary(op="+", left=left, right=right) if self.dialect.name == "tsql":
                self.edits[node.span] = node.with_(op="||", span=self.places.again(node.span))
            case syntax.Binary(left=left, right=right):
                self._summed(left, right)
            case syntax.Name():
                self._using(node)
            case _:
                parent = self.tree.parents.get(at)
                if isinstance(parent, syntax.Case) and parent.operand is not None:
                    self._compared([parent.operand, *(w for w, _ in parent.whens)], True, at)

    def _summed(self, left: syntax.Expr, right: syntax.Expr) -> None:
        for side, other in ((left, right), (right, left)):
            kind = self.type(side).kind
            if self._parameter(side, self.type(other)):
                continue
            if kind == "bool":
                self.edits[side.span] = self.cast(side, "int")
            elif kind == "text" and self.dialect.loose:
                self.edits[side.span] = self._number(side)

    def _using(self, name: syntax.Name) -> None:
        """`using` over columns of two types becomes `on`, if it joins the first two tables."""
        join = self.tree.parents.get(name.span)
        source = self.tree.parents.get(join.span) if isinstance(join, syntax.Join) else None
        if not isinstance(join, syntax.Join) or not isinstance(source, syntax.From) or source.joins[0] is not join:
            return
        again = self.places.again
        sides = [_called(ref) for ref in (source.first, join.right)]
        on: syntax.Expr | None = None
        for column in join.using:
            mine, its = (
                syntax.ColumnName(side.with_(span=again(name.span)), column, again(name.span)) for side in sides
            )
            equal = syntax.Binary("=", mine, its, again(name.span))
            on = equal if on is None else syntax.Binary("and", on, equal, again(name.span))
        self.edits[join.span] = join.with_(on=on, using=())

    def _compared(self, sides: list[syntax.Expr], equality: bool, at: Span) -> None:
        """Brings the sides of a comparison to one type, by the rules of the dialect."""
        types = [self.type(s) for s in sides]
        known = [t for s, t in zip(sides, types, strict=True) if not self._is_untyped(s)]
        if len(known) < len(sides):
            other = next((t for t in known if t.kind not in ("null", "unknown")), None)
            if other is not None:
                for side in sides:
                    self._parameter(side, other)
                return
        kinds = {t.kind for t in types} - {"null"}
        if "bool" in kinds and kinds & {"int", "float", "decimal"}:
            self._bools(sides)
        elif kinds & {"date", "timestamp"} and "text" in kinds and self.dialect.loose == "sqlite":
            self._as_text(sides, at)
        elif "text" in kinds and kinds & {"int", "float", "decimal"} and self.dialect.loose:
            self._text_with_number(sides, equality, at)

    def _is_untyped(self, node: syntax.Expr) -> bool:
        header = self.tree.program.header
        return (
            isinstance(node, syntax.Placeholder)
            and node.column is None
            and node.name not in self.typed
            and header is not None
            and any(p.name.text == node.name for p in header.parameters)
        )

    def _bools(self, sides: list[syntax.Expr]) -> None:
        """1 and 0 are true and false."""
        numbers = [s for s in sides if self.type(s).is_number]
        if all(isinstance(s, syntax.Number) and s.text in ("0", "1") for s in numbers):
            for side in numbers:
                assert isinstance(side, syntax.Number)
                self.edits[side.span] = syntax.Truth(side.text == "1", side.span)
            return
        for side in sides:
            if self.type(side) == BOOL:
                self.edits[side.span] = self.cast(side, "int")

    def _as_text(self, sides: list[syntax.Expr], at: Span) -> None:
        kinds = [str(self.type(s)) for s in sides]
        caution = "a number or date meets its text: 5 is '5', and '05' another"
        self.say(messages.ComparedAs(kinds[0], kinds[-1], "texts", self.dialect.title, caution), at)
        for side in sides:
            if self.type(side) != TEXT and self.type(side).kind not in ("null", "unknown"):
                self.edits[side.span] = self.cast(side, "text")

    def _as_numbers(self, sides: list[syntax.Expr], at: Span) -> None:
        kinds = [str(self.type(s)) for s in sides]
        mysql = self.dialect.loose == "mysql"
        if not mysql:
            caution = "a text that is no number fails the run"
            self.say(messages.ComparedAs(kinds[0], kinds[-1], "numbers", self.dialect.title, caution), at)
        for side in sides:
            if self.type(side) == TEXT and not isinstance(side, syntax.String):
                self.edits[side.span] = self._number(side) if mysql else self.cast(side, "float")

    def _text_with_number(self, sides: list[syntax.Expr], equality: bool, at: Span) -> None:
        """SQLite compares as texts unless the number is a column's; then the text is read as a number if it is one, and
        that two are equal is the same said of texts. MySQL compares as numbers."""
        numbers = [s for s in sides if self.type(s).is_number]
        ints = all(self.type(s).kind == "int" for s in numbers)
        if self.dialect.loose == "sqlite" and (not any(map(_has_affinity, numbers)) or (equality and ints)):
            self._as_text(sides, at)
        else:
            self._as_numbers(sides, at)

    def _in_query(self, node: syntax.InQuery, operand: syntax.Expr, query: syntax.Query) -> None:
        body = query.body
        while isinstance(body, syntax.Query):
            body = body.body
        item = body.items[0] if isinstance(body, syntax.Select) and len(body.items) == 1 else None
        if isinstance(item, syntax.Item):
            self._compared([operand, item.expr], True, node.span)

    def _bad_literal(self, node: syntax.String, wanted: str) -> None:
        """In SQLite a text that is no number is compared as a text."""
        parent = self.tree.parents.get(node.span)
        if self.dialect.loose != "sqlite" or wanted not in ("int", "float", "decimal"):
            return
        match parent:
            case syntax.Binary(op=op, left=left, right=right) if op in _EQUALITIES:
                self._as_text([left, right], parent.span)
            case syntax.InList(operand=operand, items=items):
                self._as_text([operand, *items], parent.span)

    # ------------------------------------------------------------ arguments, conditions, values

    def _argument(self, node: Node, function: str, wanted: str) -> None:
        if not isinstance(node, syntax.Expr):
            return
        found = self.type(node)
        if self._parameter(node, {"a number": FLOAT, "an int": INT, "a date or timestamp": DATE}.get(wanted, UNKNOWN)):
            return
        if wanted == "a number" and found == BOOL:
            self.edits[node.span] = self.cast(node, "int")
        elif wanted == "a number" and found == TEXT and self.dialect.loose:
            self.edits[node.span] = self._number(node)
        elif wanted == "a number" and found.is_time and self.dialect.loose == "sqlite":
            self.say(messages.ReadAsYear(str(found)), node.span)
            self.edits[node.span] = self._call("year", node)
        elif wanted == "a text" and not found.is_unknown:
            self.edits[node.span] = self.cast(node, "text")
        elif wanted == "a date or timestamp" and found == TEXT and self.dialect.loose:
            parent = self.tree.parents.get(node.span)
            fine = function in _SECONDS or (isinstance(parent, syntax.Function) and _shows_seconds(parent))
            self.edits[node.span] = self.cast(node, "timestamp" if fine else "date")

    def _not_bool(self, node: Node) -> None:
        if isinstance(node, syntax.Number) and node.text in ("0", "1"):
            self.edits[node.span] = syntax.Truth(node.text == "1", node.span)
        elif isinstance(node, syntax.Expr) and self.type(node).is_number and self.dialect.loose:
            again = self.places.again
            zero = syntax.Number("0", again(node.span))
            self.edits[node.span] = syntax.Binary("<>", node, zero, again(node.span))

    def _first_row(self, node: syntax.ScalarQuery) -> None:
        errs = f"{self.dialect.title} fails then, com takes the first"
        what = f"{self.dialect.title} takes the first" if self.dialect.loose == "sqlite" else errs
        self.say(messages.FirstRow(what), node.span)
        query = node.query.with_(limit=syntax.Number("1", self.places.again(node.span)))
        self.edits[node.span] = node.with_(query=query)

    def _store(self, node: Node, wanted: str) -> None:
        type_ = _read(wanted)
        if self._parameter(node, type_) or not isinstance(node, syntax.Expr):
            return
        if type_ == BOOL and isinstance(node, syntax.Number) and node.text in ("0", "1"):
            self.edits[node.span] = syntax.Truth(node.text == "1", node.span)
        elif type_ == TEXT and self.dialect.loose and not self.type(node).is_unknown:
            self.edits[node.span] = self.cast(node, "text")

    def _bare(self, node: Node, at: Span, column: str) -> None:
        select = self.tree.around(node, syntax.Select)
        query = self.tree.parents.get(select.span) if select is not None else None
        if isinstance(query, syntax.SetOperation) and select is not None:
            query = syntax.Query(select, (), None, None, select.span)
        if select is None or not isinstance(query, syntax.Query) or query.span in self.edits:
            return
        made = row_of_extreme(query, select, self.places)
        if made is not None:
            query_made, which = made
            self.say(messages.RowOfExtreme(column, which, self.dialect.title), at)
            self.edits[query.span] = query_made

    # ------------------------------------------------------------ what only types tell

    def _by_types(self) -> None:
        for node in walk(self.tree.program):
            match node:
                case syntax.Binary(op="/", left=left, right=right, span=span) if span in self.by_type:
                    if self.type(left) == INT == self.type(right):
                        self.edits[span] = node.with_(op="div", span=self.places.again(span))
                case syntax.Function(args=args, span=span) if span in self.by_type:
                    self._null_wins(node, args)
                case syntax.OrderKey(nulls_first=True, expr=expr, span=span):
                    made = self.noted.get(self._ordered(node, expr).span)
                    if made is not None and not made.nullable:
                        self.edits[span] = node.with_(nulls_first=None)
                case syntax.Cast(type=syntax.TypeName(name="text"), operand=operand, span=span):
                    if self.type(operand) == TEXT:
                        self.edits[span] = operand
                case syntax.Cast(type=syntax.TypeName(name="int"), operand=operand, span=span):
                    if span in self.by_type and self.type(operand).kind in ("float", "decimal") and self.dialect.cuts:
                        self.edits[span] = self._cut(node, operand)
                    elif span in self.by_type and self.type(operand) == TEXT and self.dialect.loose:
                        self.edits[span] = self._number(operand, "int")
                case syntax.Cast(type=syntax.TypeName(name="float"), operand=operand, span=span):
                    if span in self.by_type and self.type(operand) == TEXT and self.dialect.loose:
                        self.edits[span] = self._number(operand)
                case syntax.Binary(op=op, left=left, right=right) if op in _COMPARISONS:
                    for side, other in ((left, right), (right, left)):
                        if self._is_untyped(side) and self.type(other) == TEXT and not self._is_untyped(other):
                            assert isinstance(side, syntax.Placeholder)
                            self.typed.add(side.name)
                        if self.dialect.loose == "sqlite" and isinstance(side, syntax.String):
                            self._never(side, other, node.span)

    def _null_wins(self, node: syntax.Function, args: tuple[syntax.Expr, ...]) -> None:
        """The greatest of some values is null if one of them is; com leaves nulls out."""
        again = self.places.again
        loose = [a for a in args if (made := self.noted.get(a.span)) is not None and made.nullable]
        test: syntax.Expr | None = None
        for arg in loose:
            one = syntax.IsNull(arg, False, again(node.span))
            test = one if test is None else syntax.Binary("or", test, one, again(node.span))
        if test is not None:
            whens = ((test, syntax.Null(again(node.span))),)
            self.edits[node.span] = syntax.Case(None, whens, node.with_(span=again(node.span)), again(node.span))

    def _ordered(self, key: syntax.OrderKey, expr: syntax.Expr) -> syntax.Expr:
        """What a key speaks of, if it is a column of the select by number or name."""
        query = self.tree.parents.get(key.span)
        if not isinstance(query, syntax.Query) or not isinstance(query.body, syntax.Select):
            return expr
        items = query.body.items
        if isinstance(expr, syntax.Number) and all(isinstance(i, syntax.Item) for i in items):
            at = int(expr.text) - 1 if expr.text.isdigit() else -1
            item = items[at] if 0 <= at < len(items) else None
            return item.expr if isinstance(item, syntax.Item) else expr
        name = expr.name.text.lower() if isinstance(expr, syntax.ColumnName) and expr.table is None else None
        for item in items:
            if isinstance(item, syntax.Item) and item.alias is not None and item.alias.text.lower() == name:
                return item.expr
        return expr

    def _never(self, text: syntax.String, other: syntax.Expr, at: Span) -> None:
        """To SQLite a number that is computed is less than any text; com would read the text."""
        if self.type(other).is_number and not _has_affinity(other) and not isinstance(other, syntax.Number):
            what = f"a computed number compared with the text '{text.value}' (SQLite takes it for less, always)"
            message = messages.NotImported(what, "write the number without quotes")
            self.say(message, at)

    def _cut(self, node: syntax.Cast, operand: syntax.Expr) -> syntax.Expr:
        """A cast that cuts off what is behind the point."""
        again = self.places.again
        floor = self._call("floor", self._call("abs", operand))
        cut = syntax.Binary("*", self._call("sign", operand), floor, again(node.span))
        return node.with_(operand=cut, span=again(node.span))


def _has_affinity(node: syntax.Expr) -> bool:
    """True if SQLite gives an expression the affinity of a column or type."""
    if isinstance(node, syntax.ScalarQuery):
        body = node.query.body
        if isinstance(body, syntax.Select) and len(body.items) == 1 and isinstance(body.items[0], syntax.Item):
            return _has_affinity(body.items[0].expr)
    return isinstance(node, syntax.ColumnName | syntax.Cast)


def _shows_seconds(node: syntax.Function) -> bool:
    return any(isinstance(a, syntax.String) and ("%H" in a.value or ":" in a.value) for a in node.args)


def _called(ref: syntax.TableRef) -> syntax.Name:
    """The name under which a table is known in its query."""
    if ref.alias is not None:
        return ref.alias
    if isinstance(ref, syntax.TableName):
        return ref.name
    return syntax.Name(ref.place.name if isinstance(ref, syntax.TablePlaceholder) else "", False, ref.span)


def _read(wanted: str) -> Type:
    """The type that a message names."""
    kind, _, rest = wanted.partition("(")
    if kind == "decimal" and rest:
        precision, scale = rest[:-1].split(",")
        return Type("decimal", int(precision), int(scale))
    return {"int": INT, "float": FLOAT, "text": TEXT, "bool": BOOL, "date": DATE, "timestamp": TIMESTAMP}.get(
        kind, UNKNOWN
    )
