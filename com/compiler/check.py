"""Syntax and schema to IR: a whole program, statement by statement.

Takes a syntax tree and the schema it is about (and the signatures of registered calls); gives the checked program
and every diagnostic found. There is IR only if no diagnostic is an error. May assume that the tree came from the
parser; guarantees what com.compiler.ir promises: names found, types and shapes known, orders total.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import assert_never

from com import diagnostics as messages
from com.compiler import ir, syntax
from com.compiler.conversions import bare
from com.compiler.effecting import Effecting
from com.compiler.matching import Matching, read
from com.compiler.names import Block, Entry, Env, near_names
from com.compiler.resolve import CLOCK, present
from com.compiler.writes import Writes
from com.diagnostics import Diagnostic, Edit, Fix, has_errors
from com.functions import RowsField, Signature
from com.node import walk
from com.plan import Constant, Effect, Field, Parameter, Ref, Scalar
from com.schema import UNKNOWN, Schema, Type
from com.source import Span

_DOLLAR = re.compile(r"\$(\w+)")
_CARDS = {"one": 0, "maybe": 1, "many": 2}


def check(
    program: syntax.Program, schema: Schema, calls: Mapping[str, Signature], stem: str = "main"
) -> tuple[ir.Program | None, list[Diagnostic]]:
    """The checked program, or None and why. `stem` is the name to suggest for a program without a header."""
    checker = _Checker(schema, calls)
    made = checker.program(program, stem)
    found = sorted(checker.diagnostics, key=lambda d: (d.span.start, d.span.end))
    return (None if has_errors(found) else made), found


def check_types(program: syntax.Program, schema: Schema) -> tuple[dict[Span, ir.Expr], list[Diagnostic]]:
    """What each expression was found to be, by its span, and every diagnostic: for who makes a program out of parts."""
    checker = _Noting(schema, {})
    checker.program(program, "main")
    return checker.noted, sorted(checker.diagnostics, key=lambda d: (d.span.start, d.span.end))


def check_condition(node: syntax.Expr, schema: Schema, table: str) -> tuple[ir.Expr | None, list[Diagnostic]]:
    """A check constraint of a table."""
    return _alone(node, schema, table, None)


def check_default(node: syntax.Expr, type_: Type) -> tuple[ir.Expr | None, list[Diagnostic]]:
    """A column's default."""
    return _alone(node, Schema(), "", type_)


def _alone(
    node: syntax.Expr, schema: Schema, table: str, type_: Type | None
) -> tuple[ir.Expr | None, list[Diagnostic]]:
    checker = _Checker(schema, {})
    found = schema.table(table)
    env = Env("check" if type_ is None else "default", None, [checker.seen_table(found, found.name)] if found else [])
    places = [n for n in walk(node) if isinstance(n, syntax.Placeholder)]
    for place in places:
        checker.report(messages.NothingOfARun(env.place, place.name), place.span)
    if places:
        return None, checker.diagnostics
    made = checker.condition(node, env) if type_ is None else checker.store(checker.expr(node, env), type_, "default")
    return (None if has_errors(checker.diagnostics) else made), checker.diagnostics


class _Checker(Writes):
    """The part of the checker that knows statements."""

    def __init__(self, schema: Schema, calls: Mapping[str, Signature]) -> None:
        super().__init__(schema, calls)
        self.slots = 0
        self.loops = 0
        self.returned = False
        self.steps: list[tuple[Entry, syntax.Step]] = []
        self.effects: dict[tuple[str, str], dict[str, None]] = {}

    # ------------------------------------------------------------ program

    def program(self, node: syntax.Program, stem: str) -> ir.Program:
        """The whole."""
        if node.header is None:
            at = node.body[0].span.start if node.body else 0
            fix = Fix((Edit(Span(at, at), f"program {stem};\n\n"),), certain=True)
            span = Span(at, min(at + 1, node.span.end))
            self.report(messages.MissingHeader(stem), span, fix=fix)
        parameters = self._parameters(node.header) if node.header is not None else ()
        body, _ = self._body(node.body, (False, False))
        result = self._result(node.body)
        if not has_errors(self.diagnostics):  # what was not read uses nothing
            self._unused(result)
        effects = tuple(Effect(verb, name, tuple(columns)) for (verb, name), columns in self.effects.items())
        name = node.header.name.text if node.header is not None else stem
        needed = {e.ref for e, _ in self.steps if e.used} | ({result} if result is not None else set())
        return ir.Program(name, parameters, _marked(body, needed), effects, result)

    def _result(self, body: tuple[syntax.Statement, ...]) -> Ref | None:
        """The last step that reads, when no path returns rows."""
        if self.returned:
            return None
        here = {id(s) for s in body}
        last = [entry for entry, step in self.steps if id(step) in here and _reads(step.operation)]
        return last[-1].ref if last else None

    def _unused(self, result: Ref | None) -> None:
        for entry, step in self.steps:
            reads = _reads(step.operation)
            asserts = step.shape is not None and step.shape.card != "many"
            if reads and not entry.used and not asserts and entry.ref != result and entry.fields:
                self.report(messages.UnusedStep(step.name.text), step.name.span)
        for name, entry in self.parameters.items():
            if not entry.used:
                self.report(messages.UnusedParameter(name), entry.span)

    # ------------------------------------------------------------ parameters

    def _parameters(self, header: syntax.Header) -> tuple[Parameter, ...]:
        made = []
        for node in header.parameters:
            name = node.name.text
            if name.lower() in ("now", "today"):
                self.report(messages.ReservedName(name), node.name.span)
            if name in self.parameters:
                self.report(messages.DuplicateName("parameter", name), node.name.span)
            parameter = self._parameter_of(node)
            made.append(parameter)
            entry = Entry(Ref("parameter", name), parameter.fields, parameter.card, node.name.span, parameter=parameter)
            self.parameters[name] = entry
        return tuple(made)

    def _parameter_of(self, node: syntax.Parameter) -> Parameter:
        name = node.name.text
        match node.type:
            case syntax.Shape(card=card, fields=fields):
                if node.default is not None and not isinstance(node.default, syntax.Null):
                    self.report(messages.NotConstant(name), node.default.span)
                return Parameter(name, "rows", UNKNOWN, self._declared_fields(fields), card, False, None)
            case syntax.ListType(element=element):
                if node.default is not None:
                    self.report(messages.NotConstant(name), node.default.span)
                return Parameter(name, "list", self.type_of(element), (), "many", False, None)
            case syntax.TypeName() as written:
                type_ = self.type_of(written)
                nullable = isinstance(node.default, syntax.Null)
                default = self._default(node.default, type_, name) if node.default is not None else None
                return Parameter(name, "value", type_, (), "one", nullable, default)
            case _:
                assert_never(node.type)

    def _default(self, node: syntax.Expr, type_: Type, name: str) -> Constant | Scalar | None:
        made = self.expr(node, Env("a default"))
        if isinstance(made, ir.Value) and made.ref.kind == "clock":
            if made.ref.name == "now" and type_.kind == "date":
                self.report(messages.CannotStore(name, str(type_), "timestamp", "write $today"), node.span)
            elif not type_.is_time:
                self.report(messages.CannotStore(name, str(type_), str(made.type), f"declare {name} date"), node.span)
            return Scalar(made.ref, None, made.type)
        stored = bare(self.store(made, type_, name))
        if isinstance(stored, ir.Constant):
            return Constant(stored.value, type_)
        self.report(messages.NotConstant(name), node.span)
        return None

    def _declared_fields(self, fields: tuple[syntax.Field, ...]) -> tuple[Field, ...]:
        seen: set[str] = set()
        for field in fields:
            if field.name.text in seen:
                self.report(messages.DuplicateName("column", field.name.text), field.name.span)
            seen.add(field.name.text)
        return tuple(Field(f.name.text, self.type_of(f.type), False) for f in fields)

    # ------------------------------------------------------------ statements

    def _body(
        self, body: tuple[syntax.Statement, ...], met: tuple[bool, bool]
    ) -> tuple[tuple[ir.Statement, ...], tuple[bool, bool]]:
        """Statements in the current block. `met`: whether a return and an answer may have been met before."""
        made: list[ir.Statement] = []
        for node in body:
            self.reads = {}
            match node:
                case syntax.Step(operation=syntax.Graph() as graph):
                    made += self._graph_step(node, graph)
                case syntax.Step():
                    step = self._step(node)
                    if step is not None:
                        made.append(step)
                case syntax.ForEach():
                    made.extend(self._for_each(node, met))
                case syntax.If():
                    branch, met = self._if(node, met)
                    made.append(branch)
                case syntax.Assert():
                    made.append(self._assert(node))
                case syntax.ReturnRows() | syntax.ReturnQuery() | syntax.ReturnValues():
                    self._once("return", node.span, met[0])
                    self.returned = True
                    met = (True, met[1])
                    returned = self._return(node)
                    if returned is not None:
                        made.append(returned)
                case syntax.Answer():
                    self._once("answer", node.span, met[1])
                    met = (met[0], True)
                    made.append(ir.Answer(self._template(node.text), node.span))
                case _:
                    assert_never(node)
            self._account(())
        return tuple(made), met

    def _once(self, what: str, span: Span, met: bool) -> None:
        if self.loops:
            self.report(messages.ReturnInLoop(what), span)
        elif met:
            self.report(messages.SecondReturn(what), span)

    def _account(self, writes: tuple[Effect, ...]) -> tuple[Effect, ...]:
        """The effects of what was checked since the last account."""
        reads = tuple(Effect("read", table, tuple(sorted(columns))) for table, columns in self.reads.items())
        self.reads = {}
        for effect in (*reads, *writes):
            columns = self.effects.setdefault((effect.verb, effect.name), {})
            columns.update(dict.fromkeys(effect.columns))
        return (*reads, *writes)

    def _inside(
        self, body: tuple[syntax.Statement, ...], block: Block, met: tuple[bool, bool]
    ) -> tuple[tuple[ir.Statement, ...], tuple[bool, bool]]:
        """Statements in a block of their own."""
        self.block = block
        made = self._body(body, met)
        outer = block.outer
        assert outer is not None
        for name, entry in block.entries.items():
            outer.ended.setdefault(name, entry.span)
        outer.ended.update({n: s for n, s in block.ended.items() if n not in outer.ended})
        self.block = outer
        return made

    def _for_each(self, node: syntax.ForEach, met: tuple[bool, bool]) -> list[ir.Statement]:
        over = self.rows(node.over, "rows")
        block = Block(self.block)
        fields = over.fields if over is not None else ()
        self.slots += 1
        variable = Ref("row", node.variable.text, self.slots)
        is_open = over is None or over.open
        block.entries[node.variable.text] = Entry(variable, fields, "one", node.variable.span, open=is_open)
        self.loops += 1
        body, _ = self._inside(node.body, block, met)
        self.loops -= 1
        if over is None:
            return []
        return [ir.ForEach(variable, over.ref, fields, body, _title(node.title), node.span)]

    def _if(self, node: syntax.If, met: tuple[bool, bool]) -> tuple[ir.Statement, tuple[bool, bool]]:
        condition = self.condition(node.condition, Env("a condition"))
        self._account(())
        then_block, else_block = Block(self.block), Block(self.block)
        then_block.present = present(condition)
        else_block.present = present(condition, negated=True)
        then, met_then = self._inside(node.then, then_block, met)
        otherwise, met_else = self._inside(node.otherwise, else_block, met)
        met = (met_then[0] or met_else[0], met_then[1] or met_else[1])
        return ir.If(condition, then, otherwise, _title(node.title), node.span), met

    def _assert(self, node: syntax.Assert) -> ir.Statement:
        condition = self.condition(node.condition, Env("a condition"))
        message = self._template(node.message)
        self.block.present |= present(condition)
        return ir.Assert(condition, message, _title(node.title), node.span)

    def _template(self, node: syntax.Template) -> ir.Template:
        parts: list[str | ir.Expr] = []
        for part in node.parts:
            if isinstance(part, str):
                parts.append(part)
                for place in _DOLLAR.findall(part):
                    if self.block.find(place) is not None or self.parameter(place) is not None:
                        self.report(messages.DollarInText(place), node.span)
            elif isinstance(part, syntax.Placeholder) and self.is_list(part):
                values = self.values(part)
                parts.append(values if values is not None else self.poison(part.span))
            else:
                parts.append(self.expr(part, Env("a text")))
        return ir.Template(tuple(parts))

    def _return(self, node: syntax.ReturnRows | syntax.ReturnQuery | syntax.ReturnValues) -> ir.Statement | None:
        if isinstance(node, syntax.ReturnRows) and self._is_value(node.place.name):
            item = syntax.Item(node.place, None, node.place.span)
            node = syntax.ReturnValues((item,), node.span)
        if isinstance(node, syntax.ReturnRows):
            entry = self.rows(node.place, "rows")
            return ir.Return(entry.ref, entry.fields, node.span) if entry is not None else None
        if isinstance(node, syntax.ReturnQuery):
            query = node.query
        else:
            body = syntax.Select(False, node.items, None, None, (), None, node.span)
            query = syntax.Query(body, (), None, None, node.span)
        made = self.query(query, None, observed=True)
        return ir.Return(made.query, made.fields, node.span)

    def _is_value(self, name: str) -> bool:
        """True if `$name` alone is a value: a parameter, or the clock."""
        if self.block.find(name) is not None:
            return False
        entry = self.parameter(name)
        if entry is not None and entry.parameter is not None:
            return entry.parameter.kind == "value"
        return name.lower() in CLOCK

    # ------------------------------------------------------------ steps

    def _graph_step(self, node: syntax.Step, graph: syntax.Graph) -> list[ir.Statement]:
        """A step on the graph, as the SQL steps that mean the same; those before the last are seen by it alone."""
        known = len(self.steps)
        statements: list[syntax.Statement] = []
        if _reads(graph):
            work = Matching(self.schema, graph)
            operation = read(work)
            if operation is not None:
                statements = [*work.asserts(), node.with_(operation=operation)]
        else:
            work = Effecting(self.schema, graph, node)
            statements = work.statements()
        self.diagnostics += work.found
        if not statements or has_errors(work.found):
            for place in (n for n in walk(graph) if isinstance(n, syntax.Placeholder)):
                self._mark_used(place)
            self._enter(node, Entry(self._ref(node), (), "many", node.name.span, open=True))
            return []
        made, _ = self._body(tuple(statements), (False, False))
        self.steps[known:] = [(entry, node) for entry, _ in self.steps[known:]]
        for name in [n for n in self.block.entries if n.startswith(f"{node.name.text}.")]:
            del self.block.entries[name]
        return list(made)

    def _mark_used(self, place: syntax.Placeholder) -> None:
        """What a step that could not be read names is no less used for it."""
        entry = self.block.find(place.name) or self.parameter(place.name)
        if entry is not None:
            entry.used = True

    def _ref(self, node: syntax.Step) -> Ref:
        self.slots += 1
        return Ref("step", node.name.text, self.slots)

    def _enter(self, node: syntax.Step, entry: Entry) -> None:
        """Make a step known to those that follow."""
        name = node.name.text
        if name.lower() in ("now", "today"):
            self.report(messages.ReservedName(name), node.name.span)
        if name in self.block.entries and self.block.entries[name].ref.kind == "step":
            first = self.block.entries[name].span
            self.report(messages.DuplicateStep(name), node.name.span, notes=((first, "the first one"),))
        self.block.entries[name] = entry
        self.steps.append((entry, node))

    def _step(self, node: syntax.Step) -> ir.Step | None:
        name = node.name.text
        operation: ir.Operation | None = None
        keys: tuple[tuple[str, ...], ...] = ()
        effects: tuple[Effect, ...] = ()
        fields: tuple[Field, ...] = ()
        card = "many"
        is_open = False
        match node.operation:
            case syntax.Query() as query:
                relation = self.query(query, None, observed=True)
                operation, fields, card, keys = ir.Read(relation.query), relation.fields, relation.card, relation.keys
                if (
                    name.endswith(".match")
                    and isinstance(relation.query, ir.Select)
                    and relation.query.where is not None
                ):
                    for place, step, shown in self.hidden_maybes(relation.query.where):
                        self.report(messages.MaybeMissing(shown, step, "the match of this write"), place)
                is_open = relation.open
            case syntax.Insert() | syntax.Update() | syntax.Delete() as write:
                if isinstance(write, syntax.Insert):
                    written = self.insert(write)
                elif isinstance(write, syntax.Update):
                    written = self.update(write)
                else:
                    written = self.delete(write)
                if written is not None:
                    operation, fields, card, keys = written.operation, written.fields, written.card, written.keys
                    effects = written.effects
            case syntax.Call() as call:
                operation, fields, card = self._call(node, call)
                effects = (Effect("call", call.name.text),)
            case syntax.Graph():
                raise AssertionError("it has become other steps")
            case _:
                assert_never(node.operation)
        shape = node.shape.card if node.shape is not None else card
        if node.shape is not None and node.shape.fields and not isinstance(node.operation, syntax.Call):
            fields = self._as_declared(node, node.shape, fields)
        ref = self._ref(node)
        entry = Entry(ref, fields, shape, node.name.span, keys, open=is_open or operation is None)
        self._enter(node, entry)
        done = self._account(effects)
        if operation is None:
            return None
        return ir.Step(ref, _title(node.title), operation, fields, card, shape, True, done, node.span)

    def _as_declared(self, node: syntax.Step, shape: syntax.Shape, found: tuple[Field, ...]) -> tuple[Field, ...]:
        """The step's fields, which must be those that its shape declares."""
        declared = self._declared_fields(shape.fields)
        by_name = {f.name: f for f in found}
        for field, written in zip(declared, shape.fields, strict=True):
            real = by_name.get(field.name)
            if real is None:
                names = ", ".join(by_name) or "no columns"
                wrong = messages.ShapeDiffers(node.name.text, field.name, names, f"name the column: … as {field.name}")
                self.report(wrong, written.span)
            elif real.type != field.type and not real.type.is_unknown and not field.type.is_unknown:
                help_ = f"declare {field.name} {real.type}, or write cast({field.name} as {field.type})"
                wrong = messages.ShapeDiffers(
                    node.name.text, f"{field.name} {field.type}", f"{real.name} {real.type}", help_
                )
                self.report(wrong, written.span)
        known = {d.name for d in declared}
        extra = [f.name for f in found if f.name not in known]
        if extra and known <= by_name.keys():
            named, given = ", ".join(d.name for d in declared), ", ".join(by_name)
            hint = f"declare {', '.join(extra)} too"
            self.report(messages.ShapeDiffers(node.name.text, named, given, hint), shape.span)
        return found

    # ------------------------------------------------------------ calls

    def _call(self, node: syntax.Step, call: syntax.Call) -> tuple[ir.Operation | None, tuple[Field, ...], str]:
        name = call.name.text
        signature = self.calls.get(name)
        declared = self._declared_fields(node.shape.fields) if node.shape is not None else ()
        if signature is None:
            for argument in call.arguments:
                if not isinstance(argument.value, syntax.Placeholder):
                    self.expr(argument.value, Env("an argument"))
                elif (entry := self.block.find(argument.value.name) or self.parameter(argument.value.name)) is not None:
                    entry.used = True
            self.report(messages.UnknownCall(name, near_names(name, self.calls, "call")), call.name.span)
            return None, declared, "many"
        fields, card = signature.fields, signature.card
        if not fields:
            if not declared or node.shape is None:
                self.report(messages.NoCallShape(name, node.name.text), call.span)
            fields, card = declared, node.shape.card if node.shape is not None else "many"
        elif declared:
            self._as_declared(node, node.shape or syntax.Shape("many", (), node.span), fields)
        arguments = self._arguments(call, signature)
        return ir.Call(name, arguments), fields, card

    def _arguments(self, call: syntax.Call, signature: Signature) -> tuple[tuple[str, ir.Expr | ir.RowsArgument], ...]:
        names = [p.name for p in signature.parameters]
        given: dict[str, syntax.Argument] = {}
        misnamed = False
        for index, argument in enumerate(call.arguments):
            name = argument.name.text if argument.name is not None else names[index] if index < len(names) else None
            if name is None:
                usage = f"call {signature.name}({', '.join(names)})"
                wrong = messages.WrongArgumentCount(signature.name, _count(len(names)), str(len(call.arguments)), usage)
                self.report(wrong, call.span)
                return ()
            span = argument.name.span if argument.name is not None else argument.span
            if name not in names:
                self.report(messages.UnknownArgument(signature.name, name, near_names(name, names)), span)
                misnamed = True
            elif name in given:
                self.report(messages.DuplicateName("argument", name), span)
            given[name] = argument
        made: list[tuple[str, ir.Expr | ir.RowsArgument]] = []
        for parameter in signature.parameters:
            found = given.get(parameter.name)
            if found is not None:
                made.append((parameter.name, self._argument_value(signature, parameter, found.value)))
            elif not misnamed and (isinstance(parameter, RowsField) or not parameter.nullable):
                usage = f"call {signature.name}({', '.join(names)})"
                wrong = messages.WrongArgumentCount(signature.name, _count(len(names)), str(len(call.arguments)), usage)
                self.report(wrong, call.span)
        return tuple(made)

    def _argument_value(
        self, signature: Signature, parameter: Field | RowsField, node: syntax.Expr
    ) -> ir.Expr | ir.RowsArgument:
        if isinstance(parameter, Field):
            made = self.expr(node, Env("an argument"))
            return self.store(made, parameter.type, f"{signature.name}'s {parameter.name}")
        wanted = "a list" if parameter.is_list else "rows"
        if not isinstance(node, syntax.Placeholder):
            made = self.expr(node, Env("an argument"))
            hint = "write $step.column" if parameter.is_list else "write $step"
            self.report(messages.WrongArgument(signature.name, wanted, str(made.type), hint), node.span)
            return self.poison(node.span)
        if parameter.is_list:
            return self.values(node) or self.poison(node.span)
        entry = self.rows(node, "rows")
        if entry is None:
            return self.poison(node.span)
        known = {f.name: f for f in entry.fields}
        for field in parameter.fields:
            if entry.open:
                continue
            if field.name not in known:
                near = near_names(field.name, known)
                self.report(messages.UnknownPlaceholderColumn(node.name, field.name, near), node.span)
            elif known[field.name].type != field.type and not known[field.name].type.is_unknown:
                found, want = str(known[field.name].type), str(field.type)
                what = f"{signature.name}'s {field.name}"
                self.report(messages.CannotStore(what, want, found, f"cast it in a step: cast(x as {want})"), node.span)
        return ir.RowsArgument(entry.ref, parameter.fields)


def _marked(body: tuple[ir.Statement, ...], needed: set[Ref]) -> tuple[ir.Statement, ...]:
    """The statements, each step with whether anything reads its rows."""
    made: list[ir.Statement] = []
    for node in body:
        match node:
            case ir.Step(ref=ref):
                made.append(node.with_(needed=ref in needed))
            case ir.ForEach(body=inner):
                made.append(node.with_(body=_marked(inner, needed)))
            case ir.If(then=then, otherwise=otherwise):
                made.append(node.with_(then=_marked(then, needed), otherwise=_marked(otherwise, needed)))
            case _:
                made.append(node)
    return tuple(made)


def _reads(operation: syntax.Operation) -> bool:
    """True if a step is there for its rows."""
    if isinstance(operation, syntax.Graph):
        return all(isinstance(c, syntax.Unwind | syntax.Match) for c in operation.clauses)
    return isinstance(operation, syntax.Query | syntax.Call)


def _title(lines: tuple[str, ...]) -> str:
    return " ".join(line.strip() for line in lines)


def _count(number: int) -> str:
    return f"{number} argument{'' if number == 1 else 's'}"


class _Noting(_Checker):
    """A checker that keeps what it finds each expression to be."""

    def __init__(self, schema: Schema, calls: Mapping[str, Signature]) -> None:
        super().__init__(schema, calls)
        self.noted: dict[Span, ir.Expr] = {}

    def expr(self, node: syntax.Expr, env: Env) -> ir.Expr:
        made = super().expr(node, env)
        self.noted[node.span] = made
        return made
