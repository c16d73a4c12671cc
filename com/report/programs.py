"""What a program may do, and what each stage of the compiler makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any, assert_never

from com import plan
from com.compiler import ir
from com.node import Node
from com.plan import Effect, Parameter
from com.report.lines import Line, width
from com.report.rows import value_text

_VERBS = {"read": "reads", "insert": "inserts into", "update": "updates", "delete": "deletes from", "call": "calls"}
_VERB_STYLES = {"read": "green", "insert": "yellow", "update": "yellow", "delete": "red", "call": "magenta"}


def signature(name: str, parameters: Iterable[Parameter]) -> str:
    """A program's name and parameters, as they are declared."""
    return f"{name}({', '.join(_parameter(p) for p in parameters)})"


def _parameter(parameter: Parameter) -> str:
    match parameter.kind:
        case "rows":
            fields = ", ".join(f"{f.name} {f.type}" for f in parameter.fields)
            text = f"{parameter.name} {parameter.card} {{{fields}}}"
        case "list":
            text = f"{parameter.name} {parameter.type}[]"
        case _:
            text = f"{parameter.name} {parameter.type}"
    return text + (f" = {binding_text(parameter.default)}" if parameter.default is not None else "")


def program_lines(program: ir.Program) -> Iterator[Line]:
    """What a program may do: each step, the number of rows it gives, and its effects."""
    steps = list(_steps(program.body, ""))
    yield [(signature(program.name, program.parameters), "bold")]
    wide = max((width(path) for path, _ in steps), default=0)
    for path, step in steps:
        line: Line = [(f"  {path}{' ' * (wide - width(path))}  ", "cyan"), (f"{step.shape:<5}  ", "dim")]
        for number, effect in enumerate(step.effects):
            line += [("; ", "")] if number else []
            line += [(_VERBS[effect.verb], _VERB_STYLES[effect.verb]), (f" {_effect(effect)}", "")]
        yield line if step.effects else [*line, ("touches nothing", "dim")]
    besides = _besides(program, steps)
    if besides:
        text = "; ".join(f"{_VERBS[effect.verb]} {_effect(effect)}" for effect in besides)
        yield [("  besides: ", "dim"), (text, "")]


def _besides(program: ir.Program, steps: list[tuple[str, ir.Step]]) -> list[Effect]:
    """What conditions, answers and return do, beyond the steps."""
    done: dict[tuple[str, str], set[str]] = {}
    for _, step in steps:
        for effect in step.effects:
            done.setdefault((effect.verb, effect.name), set()).update(effect.columns)
    more = []
    for effect in program.effects:
        known = done.get((effect.verb, effect.name))
        columns = tuple(c for c in effect.columns if c not in (known or ()))
        if known is None or columns:
            more.append(effect.with_(columns=columns))
    return more


def _effect(effect: Effect) -> str:
    return effect.name + (f" ({', '.join(effect.columns)})" if effect.columns else "")


def _steps(body: Iterable[ir.Statement], path: str) -> Iterator[tuple[str, ir.Step]]:
    for statement in body:
        match statement:
            case ir.Step():
                yield path + statement.ref.name, statement
            case ir.ForEach():
                yield from _steps(statement.body, f"{path}{statement.variable.name}.")
            case ir.If():
                yield from _steps(statement.then, path)
                yield from _steps(statement.otherwise, path)
            case _:
                pass


def program_json(program: ir.Program) -> dict[str, Any]:
    """What a program may do, as JSON-able data."""
    return {
        "name": program.name,
        "signature": signature(program.name, program.parameters),
        "steps": [
            {"path": path, "shape": step.shape, "effects": [_effect_json(e) for e in step.effects]}
            for path, step in _steps(program.body, "")
        ],
        "effects": [_effect_json(e) for e in program.effects],
    }


def _effect_json(effect: Effect) -> dict[str, Any]:
    return {"verb": effect.verb, "name": effect.name, "columns": list(effect.columns)}


# ---------------------------------------------------------------- stages


def tree_lines(value: object, name: str = "", depth: int = 0) -> Iterator[Line]:
    """A node as an indented tree: plain fields on its own line, nodes below it."""
    lead: Line = [("  " * depth, ""), (f"{name} " if name else "", "dim")]
    match value:
        case Node():
            shallow = [(f, v) for f in value._fields if f not in value._silent and _is_plain(v := getattr(value, f))]
            fields = "".join(f" {f}={v!r}" for f, v in shallow)
            yield [*lead, (type(value).__name__, "bold cyan"), (fields, "")]
            for field in value._fields:
                inner = getattr(value, field)
                if field not in value._silent and not _is_plain(inner):
                    yield from tree_lines(inner, field, depth + 1)
        case tuple():
            for item in value:
                yield from tree_lines(item, name, depth)
        case _:
            yield [*lead, (repr(value), "")]


def _is_plain(value: object) -> bool:
    return all(_is_plain(v) for v in value) if isinstance(value, tuple) else not isinstance(value, Node)


def sql_lines(made: plan.Plan, images: bool = True) -> Iterator[Line]:
    """A plan's statements in order, each under its step's path, with its bindings; `images`: also those that keep
    the journal's row images."""
    first = True
    for path, statement in _statements(made.body, "", images):
        if not first:
            yield []
        first = False
        yield [(f"-- {path}", "cyan")]
        yield from ([(text, "")] for text in f"{statement.sql};".splitlines())
        for bind, binding in statement.binds:
            yield [(f"--   :{bind} = {binding_text(binding)}", "dim")]


def sql_json(made: plan.Plan) -> list[dict[str, Any]]:
    """A plan's statements in order: the path of each, its text and its bindings."""
    return [
        {"path": path, "sql": statement.sql, "binds": {n: binding_text(b) for n, b in statement.binds}}
        for path, statement in _statements(made.body, "", True)
    ]


def _statements(body: Iterable[plan.Instruction], path: str, images: bool) -> Iterator[tuple[str, plan.Statement]]:
    for instruction in body:
        match instruction:
            case plan.Step():
                for what, statement in _operation(instruction.operation, images):
                    yield f"{path}{instruction.ref.name}{what}", statement
            case plan.Loop():
                if instruction.batch is not None:
                    yield from _statements(instruction.batch.steps, f"{path}{instruction.variable.name}[*].", images)
                yield from _statements(instruction.body, f"{path}{instruction.variable.name}[n].", images)
            case plan.Branch():
                if isinstance(instruction.condition, plan.Statement):
                    yield f"{path}if", instruction.condition
                yield from _statements(instruction.then, path, images)
                yield from _statements(instruction.otherwise, path, images)
            case plan.Assertion():
                if isinstance(instruction.condition, plan.Statement):
                    yield f"{path}assert", instruction.condition
                if instruction.message.statement is not None:
                    yield f"{path}assert: message", instruction.message.statement
            case plan.Return():
                if isinstance(instruction.rows, plan.Statement):
                    yield f"{path}return", instruction.rows
            case plan.Answer():
                if instruction.text.statement is not None:
                    yield f"{path}answer", instruction.text.statement
            case _:
                assert_never(instruction)


def _operation(operation: plan.Operation, images: bool) -> Iterator[tuple[str, plan.Statement]]:
    match operation:
        case plan.Read():
            yield "", operation.statement
        case plan.Call():
            if operation.statement is not None:
                yield ": arguments", operation.statement
        case plan.Write():
            if operation.source is not None:
                yield ": source", operation.source
            yield from ((": guard", guard.statement) for guard in operation.guards)
            if images:
                yield from ((": before", statement) for statement in operation.before)
            yield from (("", statement) for statement in operation.main)
            if images:
                yield from ((": after", statement) for statement in operation.after)
            if operation.rows is not None:
                yield ": rows", operation.rows
        case _:
            assert_never(operation)


def binding_text(binding: plan.Binding) -> str:
    """Where a bound value comes from, in com's own words."""
    match binding:
        case plan.Constant():
            quoted = isinstance(binding.value, str | date)
            return "'" + str(binding.value).replace("'", "''") + "'" if quoted else value_text(binding.value)
        case plan.Scalar():
            return f"${binding.ref.name}" + (f".{binding.column}" if binding.column else "")
        case plan.Many():
            return f"all ${binding.ref.name}" + (f".{binding.column}" if binding.column else "")
        case plan.Rows():
            return f"rows ${binding.ref.name or '(source)'} ({', '.join(f.name for f in binding.fields)})"
        case plan.Present():
            return f"exists ${binding.ref.name}"
        case plan.RunNumber():
            return "this run"
        case plan.StepNumber():
            return "this step"
        case plan.LastId():
            return f"last id of {binding.table}"
        case plan.Written():
            return "rows written"
        case _:
            assert_never(binding)
