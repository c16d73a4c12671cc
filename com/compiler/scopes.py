"""What the names in a graph operation stand for, and its expressions in SQL's words.

Takes expressions over variables and properties, gives the same over aliases and columns; reports what the graph lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from com import diagnostics as messages
from com.compiler import syntax
from com.compiler.made import aliases_in, conjuncts, used_properties
from com.compiler.names import near_names, spelled
from com.compiler.patterns import Variable
from com.compiler.syntax import Name
from com.diagnostics import Diagnostic, Message
from com.functions import FUNCTIONS
from com.node import Node
from com.schema import EdgeTable, Schema, Table, Vertex
from com.source import Span

_NO_VALUES = {
    "collect": "write string_agg(x, ', ' order by x), or return the rows as they are",
    "size": "write length(x) of a text, count(*) of rows",
    "labels": "a label is a table: name it in the pattern",
    "type": "a type is a table: name it in the pattern",
    "id": "name the key's property",
    "elementid": "name the key's property",
    "keys": "the properties are those of the schema",
    "properties": "name the properties one by one",
    "nodes": "name the nodes of the pattern",
    "relationships": "name the edges of the pattern",
    "startnode": "name the node in the pattern",
    "endnode": "name the node in the pattern",
    "exists": "write x.property is not null",
}
"""Functions of Cypher that take or give wholes and lists."""


class Scopes:
    """The variables of one graph step. `known`: of each what holds for it alone; `used`: its properties, as named;
    `optional`: those that may be null."""

    def __init__(self, schema: Schema, node: syntax.Graph) -> None:
        self.schema, self.graph, self.node = schema, schema.graph, node
        self.found: list[Diagnostic] = []
        self.scope: dict[str, Variable] = {}
        self.numbers: dict[str, int] = {}
        self.known: dict[str, list[syntax.Expr]] = {}
        self.optional: set[str] = set()
        self.used = used_properties(node)

    # ------------------------------------------------------------ words

    def report(self, message: Message, span: Span) -> None:
        self.found.append(Diagnostic(message, span))

    def fresh(self, kind: str) -> str:
        """A name that nobody writes."""
        self.numbers[kind] = self.numbers.get(kind, 0) + 1
        return f"com_{kind}{self.numbers[kind]}"

    def table(self, element: Vertex | EdgeTable) -> Table:
        found = self.schema.table(element.table)
        assert found is not None
        return found

    # ------------------------------------------------------------ expressions

    def put(
        self, expr: Any, scope: dict[str, Variable], hidden: frozenset[str] = frozenset(), inner: bool = False
    ) -> Any:
        """An expression in SQL's words: properties have become columns. `inner` in a subquery, which has sources of its
        own, with aliases that hide variables."""
        match expr:
            case syntax.ColumnName(table=Name() as table, name=name):
                fits = [] if table.text in hidden else spelled(table.text, scope)
                if len(fits) == 1:
                    return self.property(scope[fits[0]], name, expr.span)
                if not inner:
                    self.unknown(table, scope)
                return expr
            case syntax.ColumnName(name=name) if not inner:
                fits = spelled(name.text, scope)
                if len(fits) == 1:
                    self.whole(scope[fits[0]], expr.span)
                else:
                    self.unknown(name, scope)
                return expr
            case syntax.Function(name=function, args=args) if not inner and args and function.text.lower() != "extract":
                lower = function.text.lower()
                bare = args[0] if len(args) == 1 and isinstance(args[0], syntax.ColumnName) else None
                fits = spelled(bare.name.text, scope) if bare is not None and bare.table is None else []
                variable = scope[fits[0]] if len(fits) == 1 else None
                if variable is not None and variable.kind == "lost":
                    return expr
                if lower == "length" and variable is not None and variable.kind == "path":
                    assert variable.length is not None
                    return variable.length.with_(span=expr.span)
                if lower == "count" and variable is not None and variable.kind in ("node", "edge"):
                    return self._counted(expr, variable, scope)
                if lower in _NO_VALUES and (lower not in FUNCTIONS):
                    self.report(messages.NotInLanguage(f"{lower}()", _NO_VALUES[lower]), expr.span)
                    return expr
            case syntax.Query():
                return self._mapped(expr, lambda e: self.put(e, scope, hidden | aliases_in(expr), True))
        return self._mapped(expr, lambda e: self.put(e, scope, hidden, inner))

    def _mapped(self, node: Any, change: Callable[[Any], Any]) -> Any:
        """A node with its children changed."""

        def over(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(over(item) for item in value)
            return change(value) if isinstance(value, Node) and not isinstance(value, Name | syntax.TypeName) else value

        if isinstance(node, syntax.Placeholder | syntax.TableName):
            return node
        return node.with_(
            **{f: over(getattr(node, f)) for f in node._fields if isinstance(getattr(node, f), Node | tuple)}
        )

    def unknown(self, name: Name, scope: dict[str, Variable]) -> None:
        known = [n for n, v in scope.items() if not n.startswith("com_") and v.kind != "path"]
        self.report(messages.UnknownVariable(name.text, near_names(name.text, known, "variable")), name.span)

    def whole(self, variable: Variable, span: Span) -> None:
        if variable.kind == "lost":
            return
        names = [name for choice in variable.choices for name, _ in choice.properties]
        shown = ", ".join(f"{variable.name}.{n}" for n in list(dict.fromkeys(names))[:6]) or "it has none"
        what, help_ = {
            "node": ("a whole node", f"name its properties: {shown}"),
            "edge": ("a whole edge", f"name its properties: {shown}"),
            "hops": ("a run of edges", "their where stands in the pattern: -[r:TYPE*1..3 where r.x = 1]->"),
            "path": ("a path", f"its length is length({variable.name})"),
            "row": ("a row", f"name its column: {variable.name}.column"),
        }[variable.kind]
        self.report(messages.WholeElement(variable.name, what, help_), span)

    def _counted(self, node: syntax.Function, variable: Variable, scope: dict[str, Variable]) -> syntax.Expr:
        choices = variable.choices
        keys = self.keys(variable, choices[0])
        if node.distinct and (len(keys) > 1 or len(choices) > 1):
            help_ = "count one of its properties, or return distinct rows and count those in a step of their own"
            self.report(messages.WholeElement(variable.name, "no single value to count", help_), node.span)
        if len(choices) > 1:
            keys = [self._missing_as(variable, node.span)]
        return node.with_(args=(keys[0],))

    def _missing_as(self, variable: Variable, span: Span) -> syntax.Expr:
        """What is null just where an element of several tables is missing."""
        return self.at(variable, variable.names["there"], span)

    def property(self, variable: Variable, name: Name, span: Span) -> syntax.Expr:
        """A property as the column that holds it."""
        if variable.kind == "row":
            held = variable.names.get(name.text.casefold(), name.text)
            return self.at(variable, held, span, name)
        if variable.kind in ("path", "hops", "lost"):
            self.whole(variable, span)
            return syntax.Null(span)
        found = self._property_name(variable, name)
        if found is None:
            return syntax.Null(span)
        if variable.names:
            return self.at(variable, variable.names.get(found, found), span)
        return self.at(variable, dict(variable.choices[0].properties)[found], span)

    @staticmethod
    def at(variable: Variable, column: str, span: Span, written: Name | None = None) -> syntax.Expr:
        """A column of what a variable is read from: a source, or with `$` the one row of a step or a loop."""
        name = Name(column, True, written.span if written is not None else span)
        if variable.alias.startswith("$"):
            return syntax.Placeholder(variable.alias[1:], name, span)
        return syntax.ColumnName(Name(variable.alias, False, span), name, span)

    def _property_name(self, variable: Variable, name: Name) -> str | None:
        known = list(dict.fromkeys(n for c in variable.choices for n, _ in c.properties))
        fits = spelled(name.text, known)
        if len(fits) != 1:
            near = near_names(name.text, known, "property")
            self.report(messages.UnknownProperty(shown(variable), name.text, near), name.span)
            return None
        types: dict[str, str] = {}
        for choice in variable.choices:
            column = dict(choice.properties).get(fits[0])
            found = self.table(choice).column(column) if column is not None else None
            if found is not None:
                types.setdefault(str(found.type), choice.labels[0])
        if len(types) > 1:
            wrong = messages.PropertyTypes(
                f"{shown(variable)}.{fits[0]}", ", ".join(types), " or ".join(types.values())
            )
            self.report(wrong, name.span)
            return None
        return fits[0]

    def keys(self, variable: Variable, choice: Vertex | EdgeTable) -> list[syntax.Expr]:
        """The key of an element, if it is one of this table."""
        columns = self.table(choice).primary_key
        return [self.at(variable, variable.names.get((choice.table, c), c), variable.span) for c in columns]

    def own_conditions(self, name: str, element: syntax.NodePattern | syntax.EdgePattern) -> list[syntax.Expr]:
        made: list[syntax.Expr] = []
        for prop in element.properties:
            if isinstance(prop.value, syntax.Null):
                help_ = f"write where {name}.{prop.name.text} is null"
                self.report(messages.BadClause("nothing equals null", help_), prop.span)
                continue
            column = syntax.ColumnName(Name(name, False, prop.name.span), prop.name, prop.name.span)
            made.append(syntax.Binary("=", column, prop.value, prop.span))
        return made + (list(conjuncts(element.where)) if element.where is not None else [])


def shown(variable: Variable) -> str:
    if not variable.name.startswith("com_"):
        return variable.name
    return ":" + "|".join(dict.fromkeys(label for c in variable.choices for label in c.labels[:1]))
