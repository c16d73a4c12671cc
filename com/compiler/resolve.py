"""What a name means where it stands: columns of the tables in scope, and placeholders.

Takes the names of the syntax and the scopes around them, gives columns and bound values of IR. What is not known is
reported with the nearest names and becomes an expression of unknown type, which silences what would only follow.
"""

from __future__ import annotations

from collections.abc import Mapping

from com import diagnostics as messages
from com.compiler import ir, syntax
from com.compiler.names import Block, Entry, Env, Seen, near_names, nearest, spelled
from com.diagnostics import Diagnostic, Edit, Fix, Message
from com.functions import Signature
from com.node import Node, children
from com.plan import Field, Ref
from com.schema import DATE, INT, TIMESTAMP, UNKNOWN, Schema
from com.source import Span

POSITION = "com_n"
"""The pseudo-column that numbers a step's rows."""

CLOCK = {"now": TIMESTAMP, "today": DATE}
"""The placeholders that every program has."""

CLOCK_WORDS = {
    "now": "$now", "current_timestamp": "$now", "localtimestamp": "$now", "getdate": "$now", "sysdate": "$now",
    "current_date": "$today", "curdate": "$today", "today": "$today",
}  # fmt: skip
"""What other dialects call the clock."""


class Resolution:
    """The part of the checker that knows names."""

    def __init__(self, schema: Schema, calls: Mapping[str, Signature]) -> None:
        self.schema = schema
        self.calls = calls
        self.diagnostics: list[Diagnostic] = []
        self.parameters: dict[str, Entry] = {}
        self.block = Block()
        self.reads: dict[str, set[str]] = {}
        self.loose: dict[Span, tuple[str, str]] = {}
        self.windows_met = False

    # ------------------------------------------------------------ reporting

    def report(
        self,
        message: Message,
        span: Span,
        *,
        fix: Fix | None = None,
        notes: tuple[tuple[Span, str], ...] = (),
    ) -> None:
        """Keep a diagnostic."""
        self.diagnostics.append(Diagnostic(message, span, notes, fix))

    def poison(self, span: Span) -> ir.Expr:
        """What stands for an expression that is wrong."""
        return ir.Constant(UNKNOWN, True, span, None)

    # ------------------------------------------------------------ names

    def parameter(self, name: str) -> Entry | None:
        """The parameter of this name, exactly or else but for its case."""
        fits = spelled(name, self.parameters)
        return self.parameters[fits[0]] if len(fits) == 1 else None

    def _column(self, node: syntax.ColumnName, env: Env) -> ir.Expr:
        name = node.name.text
        if node.table is not None:
            return self._qualified(node, node.table, env)
        level: Env | None = env
        while level is not None:
            found = self._unqualified(node, level)
            if found is not None:
                return found
            level = level.outer
        return self._unknown_column(node, name, env)

    def _unqualified(self, node: syntax.ColumnName, env: Env) -> ir.Expr | None:
        name = node.name.text
        merged = spelled(name, env.merged)
        if len(merged) == 1:
            made = env.merged[merged[0]]
            self._read_again(made, env)
            return made.with_(span=node.span)
        visible = [s for s in env.seen if not s.hidden]
        exact = [s for s in visible if any(f.name == name for f in s.fields) or name in s.unusable]
        places = exact or [s for s in visible if spelled(name, [*(f.name for f in s.fields), *s.unusable])]
        if len(places) > 1:
            examples = " or ".join(f"{s.name}.{name}" for s in places)
            tables = ", ".join(s.name for s in places)
            self.report(messages.AmbiguousColumn(name, tables, examples), node.span)
            return self.poison(node.span)
        if places:
            return self._of(places[0], node, env)
        alias = spelled(name, env.aliases)
        if len(alias) == 1:
            return env.aliases[alias[0]].with_(span=node.span)
        return self.poison(node.span) if any(s.open for s in visible) else None

    def _qualified(self, node: syntax.ColumnName, table: syntax.Name, env: Env) -> ir.Expr:
        level: Env | None = env
        while level is not None:
            fits = spelled(table.text, (s.name for s in level.seen))
            if len(fits) == 1:
                return self._of(next(s for s in level.seen if s.name == fits[0]), node, level)
            level = level.outer
        name = table.text
        written = f"{name}.{node.name.text}"
        entry = self.block.find(name) or self.parameter(name)
        if entry is not None and entry.fields:
            fix = Fix((Edit(Span(node.span.start, node.span.start), "$"),), certain=True)
            entry.used = True
            self.report(messages.MissingDollar(written, f"${written}"), node.span, fix=fix)
            return self.poison(node.span)
        tables = [s.name for s in env.seen] + ([s.name for s in env.outer.seen] if env.outer else [])
        help_ = near_names(name, tables) if tables else "no table is read here: a value of a step is $step.column"
        hidden = next((s for s in env.seen if s.table is not None and s.table.name == name), None)
        if hidden is not None:
            help_ = f"it is called {hidden.name} here: write {hidden.name}.{node.name.text}"
        self.report(messages.UnknownTable(name, help_), table.span)
        return self.poison(node.span)

    def _of(self, seen: Seen, node: syntax.ColumnName, env: Env) -> ir.Expr:
        name = node.name.text
        fits = spelled(name, (f.name for f in seen.fields))
        if len(fits) > 1:
            self.report(messages.AmbiguousName(name, ", ".join(fits)), node.name.span)
            return self.poison(node.span)
        if name == POSITION and seen.order == (POSITION,):
            return ir.Column(INT, False, node.span, seen.alias, POSITION)
        if not fits and not seen.open:
            hidden = spelled(name, seen.unusable)
            if hidden:
                type_ = seen.unusable[hidden[0]] or "none is declared"
                self.report(messages.UnknownTypeUsed(hidden[0], type_), node.span)
            else:
                near = near_names(name, [f.name for f in seen.fields])
                self.report(messages.UnknownColumn(name, seen.name, near), node.span)
        if not fits:
            return self.poison(node.span)
        field = next(f for f in seen.fields if f.name == fits[0])
        if seen.table is not None:
            self.reads.setdefault(seen.table.name, set()).add(field.name)
        return ir.Column(field.type, field.nullable, node.span, seen.alias, field.name, seen.adapts(field.name))

    def _read_again(self, made: ir.Expr, env: Env) -> None:
        for column in columns_in(made):
            for seen in env.seen:
                if seen.alias == column.alias and seen.table is not None:
                    self.reads.setdefault(seen.table.name, set()).add(column.name)

    def _unknown_column(self, node: syntax.ColumnName, name: str, env: Env) -> ir.Expr:
        span = node.span
        if name.lower() in CLOCK_WORDS and not node.name.quoted:
            meant = CLOCK_WORDS[name.lower()]
            self.report(messages.RenamedFunction(name, meant), span, fix=Fix((Edit(span, meant),), certain=True))
            return self.poison(span)
        known = env.columns()
        if node.name.quoted:
            text = "'" + name.replace("'", "''") + "'"
            fix = Fix((Edit(span, text),), certain=not nearest(name, known))
            self.report(messages.QuotedString(name, text), span, fix=fix)
            return self.poison(span)
        parameter = self.parameter(name)
        if parameter is not None:
            parameter.used = True
            fix = Fix((Edit(span, f"${name}"),), certain=not nearest(name, known))
            self.report(messages.MissingDollar(name, f"${name}"), span, fix=fix)
            return self.poison(span)
        if not known:
            entry = self.block.find(name)
            hint = f"a column of a step is written $step.{name}"
            if entry is not None:
                entry.used = True
                hint = f"write ${name}.{entry.fields[0].name}" if entry.fields else f"write ${name}"
            self.report(messages.NoColumnHere(name, hint), span)
            return self.poison(span)
        where = ", ".join(s.name for s in env.seen if not s.hidden) or "the tables around it"
        near = near_names(name, known)
        if name in env.later:
            near = "it is named only after where is done: repeat the expression, or make a step before"
        self.report(messages.UnknownColumn(name, where, near), span)
        return self.poison(span)

    # ------------------------------------------------------------ placeholders

    def _placeholder(self, node: syntax.Placeholder) -> ir.Expr:
        name = node.name
        if node.column is None:
            parameter = self.parameter(name)
            if parameter is not None and parameter.parameter is not None:
                return self._parameter(node, parameter)
            if name.lower() in CLOCK:
                return ir.Value(CLOCK[name.lower()], False, node.span, Ref("clock", name.lower()), None)
            entry = self._entry(node)
            if entry is not None:
                self._name_a_column(node, entry)
            return self.poison(node.span)
        entry = self._entry(node)
        if entry is None:
            return self.poison(node.span)
        field = self._field(node, entry)
        if field is None or field.type.is_unknown:
            return self.poison(node.span)
        nullable = field.nullable
        if entry.ref.kind != "row" and entry.card != "one":
            if entry.card == "many":
                declared = f"declare {name} one {{…}}" if entry.ref.kind == "parameter" else f"step {name} -> one:"
                self.report(messages.ListAsValue(f"${name}.{field.name}", name, declared), node.span)
                return self.poison(node.span)
            if not self.block.has_row(entry.ref):
                nullable = True
                self.loose[node.span] = (name, f"${name}.{field.name}")
        return ir.Value(field.type, nullable, node.span, entry.ref, field.name)

    def _parameter(self, node: syntax.Placeholder, entry: Entry) -> ir.Expr:
        parameter = entry.parameter
        assert parameter is not None
        entry.used = True
        if parameter.kind == "value":
            return ir.Value(parameter.type, parameter.nullable, node.span, entry.ref, None)
        if parameter.kind == "list":
            self.report(messages.ListParameterAsValue(node.name), node.span)
        else:
            self._name_a_column(node, entry)
        return self.poison(node.span)

    def _name_a_column(self, node: syntax.Placeholder, entry: Entry) -> None:
        if entry.open:
            return
        examples = ", ".join(f"${node.name}.{f.name}" for f in entry.fields[:6]) or "it has none"
        self.report(messages.MissingColumnName(node.name, examples), node.span)

    def _entry(self, node: syntax.Placeholder) -> Entry | None:
        """The step, loop row or rows parameter that `$name.column` or `from $name` speaks of."""
        entry = self.block.find(node.name)
        if entry is None:
            parameter = self.parameter(node.name)
            if parameter is not None and parameter.parameter is not None:
                parameter.used = True
                if parameter.parameter.kind == "rows":
                    return parameter
                wanted = "rows with columns" if node.column is not None else "rows"
                found = "one value"
                if parameter.parameter.kind == "list":
                    found = "a list"
                    hint = f"it is a list: write in ${node.name}; or declare {node.name} many {{…}}"
                elif node.column is not None:
                    hint = f"write ${node.name}"
                else:
                    hint = f"declare {node.name} many {{…}} to give rows; to test it, write ${node.name} is not null"
                self.report(messages.ValueAsList(node.name, found, wanted, hint), node.span)
                return None
        if entry is None:
            ended = self.block.where_ended(node.name)
            if ended is not None:
                self.report(messages.OutOfBlock(node.name), node.span, notes=((ended, "it stands here"),))
            else:
                names = [*self.block.names(), *self.parameters, *CLOCK]
                self.report(messages.UnknownPlaceholder(node.name, near_names(node.name, names)), node.span)
            return None
        entry.used = True
        return entry

    def rows(self, node: syntax.Placeholder, wanted: str) -> Entry | None:
        """A placeholder where rows stand: `from $x`, `exists $x`, `for each … in $x`, `return $x`."""
        if node.column is not None:
            entry = self._entry(node)
            name = f"{node.name}.{node.column.text}"
            hint = f"write ${node.name}"
            if entry is None or entry.ref.kind == "row":
                hint = f"to test it, write ${name} is not null"
            self.report(messages.ValueAsList(name, "a column", wanted, hint), node.span)
            return None
        entry = self._entry(node)
        if entry is not None and entry.ref.kind == "row":
            column = entry.fields[0].name if entry.fields else "column"
            hint = f"write its columns: ${node.name}.{column}"
            self.report(messages.ValueAsList(node.name, "the one row of a loop", wanted, hint), node.span)
            return None
        return entry

    def _field(self, node: syntax.Placeholder, entry: Entry) -> Field | None:
        assert node.column is not None
        fits = entry.field(node.column.text)
        if len(fits) == 1:
            return fits[0]
        if entry.open:
            return None
        names = [f.name for f in entry.fields]
        near = near_names(node.column.text, names) if names else "it gives no rows: add returning"
        self.report(messages.UnknownPlaceholderColumn(node.name, node.column.text, near), node.column.span)
        return None

    def hidden_maybes(self, made: Node) -> list[tuple[Span, str, str]]:
        """Values of `maybe` steps in an expression whose null would pass silently: (place, step, placeholder)."""
        if isinstance(made, ir.Value) and made.span in self.loose:
            return [(made.span, *self.loose[made.span])]
        if isinstance(made, ir.Apply) and made.name in ("coalesce", "is_null", "is_distinct"):
            return []
        found = [f for child in children(made) for f in self.hidden_maybes(child)]
        if isinstance(made, ir.Apply) and made.name == "and":
            sure = {ref.name for ref in present(made)}
            found = [f for f in found if f[1] not in sure]
        return found

    def values(self, place: syntax.Placeholder) -> ir.Values | None:
        """A placeholder where a list stands."""
        if place.column is None:
            entry = self.parameter(place.name)
            if entry is None or entry.parameter is None:
                self._placeholder(place)
                return None
            entry.used = True
            if entry.parameter.kind == "list":
                return ir.Values(entry.parameter.type, False, place.span, entry.ref, None)
            if entry.parameter.kind == "rows":
                self._name_a_column(place, entry)
                return None
            self.report(
                messages.ValueAsList(
                    place.name,
                    "one value",
                    "a list",
                    f"write = ${place.name}, or declare {place.name} {entry.parameter.type}[]",
                ),
                place.span,
            )
            return None
        entry = self._entry(place)
        if entry is None:
            return None
        field = self._field(place, entry)
        if field is None:
            return None
        if entry.ref.kind == "row":
            name = f"{place.name}.{field.name}"
            self.report(messages.ValueAsList(name, "one value", "a list", f"write = ${name}"), place.span)
            return None
        return ir.Values(field.type, field.nullable, place.span, entry.ref, field.name)

    def is_list(self, place: syntax.Placeholder, *, few: bool = False) -> bool:
        """True if a placeholder stands for a list; `few`: also a column of a step that has one row at most."""
        if place.column is None:
            entry = self.parameter(place.name)
            return entry is not None and entry.parameter is not None and entry.parameter.kind == "list"
        entry = self.block.find(place.name) or self.parameter(place.name)
        return entry is not None and (few or entry.card == "many") and entry.ref.kind != "row"


def columns_in(made: Node) -> list[ir.Column]:
    if isinstance(made, ir.Column):
        return [made]
    return [c for child in children(made) for c in columns_in(child)]


def present(condition: ir.Expr, *, negated: bool = False) -> set[Ref]:
    """The steps that surely have a row where the condition holds (or, negated, where it is false)."""
    match condition:
        case ir.Present(ref=ref):
            return set() if negated else {ref}
        case ir.Apply(name="not", args=(ir.Apply(name="is_null", args=(ir.Value(ref=ref),)),)):
            return set() if negated else {ref}
        case ir.Apply(name="is_null", args=(ir.Value(ref=ref),)):
            return {ref} if negated else set()
        case ir.Apply(name="not", args=(arg,)):
            return (
                present(arg, negated=not negated)
                if isinstance(arg, ir.Present | ir.Apply) and not arg.nullable
                else set()
            )
        case ir.Apply(name="and" | "or" as name, args=args):
            if (name == "and") != negated:
                return {ref for arg in args for ref in present(arg, negated=negated)}
            return set()
        case _:
            return set()
