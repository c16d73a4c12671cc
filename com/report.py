"""What com shows: messages with their snippet, rows, row differences, effects; as text or as JSON.

Every function gives lines of styled pieces. `plain` and `coloured` make text of them: the same text, with
or without colours.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, assert_never

from com import plan
from com.compiler import ir
from com.diagnostics import Diagnostic
from com.node import Node
from com.plan import Effect, Parameter
from com.source import Source, Span

Piece = tuple[str, str]
"""A text and its style, in rich's words (`bold red`, or nothing)."""
Line = list[Piece]

_TAB = 4
_STYLES = {"error": "bold red", "warning": "bold yellow"}
_ESCAPES = {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}

# ---------------------------------------------------------------- lines to text


def plain(lines: Iterable[Line]) -> str:
    """The text without colours, each line ended."""
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)


def coloured(lines: Iterable[Line]) -> str:
    """The text with the colours of a terminal, each line ended."""
    from rich.color import ColorSystem
    from rich.style import Style

    def paint(text: str, style: str) -> str:
        return Style.parse(style).render(text, color_system=ColorSystem.STANDARD) if style and text else text

    return "".join("".join(paint(text, style) for text, style in line) + "\n" for line in lines)


def width(text: str) -> int:
    """The cells that a text takes on a terminal."""
    return len(text) if text.isascii() else sum(_cells(char) for char in text)


def _cells(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _printable(char: str) -> bool:
    """False for what would move the cursor, or turn the direction of writing."""
    return char.isprintable() or unicodedata.category(char) in ("Zs", "Co") or char in "\u200c\u200d"


# ---------------------------------------------------------------- diagnostics


def diagnostics_lines(found: Iterable[Diagnostic], source: Source, room: int = 110) -> Iterator[Line]:
    """Each message with its place, the line it speaks of, and what would help. `room`: the width of a line."""
    for diagnostic in found:
        style = _STYLES[diagnostic.severity]
        line, column = source.place(diagnostic.span.start)
        yield [(f"{diagnostic.severity}[{diagnostic.code}]", style), (f": {diagnostic.text}", "bold")]
        marks = [_Mark(source, diagnostic.span, diagnostic.label, "^", style)]
        marks += [_Mark(source, span, text, "-", "bold blue") for span, text in diagnostic.notes]
        gutter = len(str(max(mark.last for mark in marks)))
        yield [(" " * gutter + "--> ", "blue"), (f"{source.name}:{line}:{column}", "")]
        yield from _snippet(source, marks, gutter, room)
        if diagnostic.help:
            for number, text in enumerate(diagnostic.help.splitlines()):
                lead = " " * gutter + " = " if number == 0 else " " * (gutter + 3)
                yield [(lead, "blue"), ("help: " if number == 0 else "      ", "bold"), (text, "")]
        yield []


class _Mark:
    """A span to underline, by lines and columns (from 0)."""

    def __init__(self, source: Source, span: Span, label: str, sign: str, style: str) -> None:
        self.first, self.start = source.place(min(span.start, len(source.text)))
        self.last, self.end = source.place(min(max(span.end, span.start), len(source.text)))
        self.start -= 1
        self.end -= 1
        if self.last > self.first and self.end == 0:
            self.last -= 1
            self.end = len(source.line(self.last))
        self.label = label
        self.sign = sign
        self.style = style

    def on(self, number: int, text: str) -> tuple[int, int] | None:
        """The columns of its first or last line that it underlines."""
        if number not in (self.first, self.last):
            return None
        indent = len(text) - len(text.lstrip())
        start = self.start if number == self.first else indent
        end = self.end if number == self.last else len(text)
        return start, max(end, start + 1)


def _snippet(source: Source, marks: list[_Mark], gutter: int, room: int) -> Iterator[Line]:
    bar: Line = [(" " * gutter + " |", "blue")]
    yield bar
    before = 0
    for number in sorted({n for mark in marks for n in (mark.first, mark.last)}):
        if before and number == before + 2:
            yield [
                (f"{before + 1:>{gutter}} | ", "blue"),
                (_window(source.line(before + 1), 0, 0, room - gutter)[0], ""),
            ]
        elif before and number > before + 2:
            yield [("." * max(gutter, 3), "blue")]
        before = number
        text = source.line(number)
        here = [(mark, columns) for mark in marks if (columns := mark.on(number, text))]
        shown, shift = _window(text, here[0][1][0], here[0][1][1], room - gutter - 3)
        yield [(f"{number:>{gutter}} | ", "blue"), (shown, "")]
        for mark, (start, end) in here:
            left, right = shift(start), shift(end)
            line = [*bar, (" " * (left + 1) + mark.sign * max(right - left, 1), mark.style)]
            yield [*line, (f" {mark.label}", mark.style)] if mark.label and number == mark.last else line
    yield bar


class _Shift:
    """From a column of the source to a cell of the shown line."""

    def __init__(self, text: str, skipped: int, lead: int, most: int) -> None:
        self.text, self.skipped, self.lead, self.most = text, skipped, lead, most

    def __call__(self, column: int) -> int:
        past_end = max(column - len(self.text), 0)
        return min(max(width(_clean(self.text[:column])) + past_end - self.skipped, 0) + self.lead, self.most)


def _clean(text: str) -> str:
    """A line as it can be shown: tabs as blanks, and nothing that moves the cursor."""
    if "\t" in text:
        made = ""
        for char in text:
            made += " " * (_TAB - width(made) % _TAB) if char == "\t" else char
        text = made
    return text if text.isprintable() else "".join(c if _printable(c) else "\N{MIDDLE DOT}" for c in text)


def _window(text: str, start: int, end: int, room: int) -> tuple[str, _Shift]:
    """The part of a line that fits, with the columns from `start` to `end` in it."""
    shown = _clean(text)
    if width(shown) <= room:
        return shown, _Shift(text, 0, 0, room + 1)
    left, right = width(_clean(text[:start])), width(_clean(text[:end]))
    skip = max(
        0, min(left - room // 4, max(right - room * 3 // 4, 0) if right - left < room // 2 else left - room // 4)
    )
    kept, at, begun = "", 0, 0
    for char in shown:
        if at >= skip and width(kept) + _cells(char) <= room - 2:
            begun = begun if kept else at
            kept += char
        elif kept:
            break
        at += _cells(char)
    lead = "…" if begun else ""
    tail = "…" if begun + width(kept) < width(shown) else ""
    return lead + kept + tail, _Shift(text, begun, len(lead), len(lead) + width(kept))


def count_line(found: Sequence[Diagnostic]) -> Line:
    """`2 errors, 1 warning`."""
    pieces: Line = []
    for severity in ("error", "warning"):
        number = sum(d.severity == severity for d in found)
        if number:
            pieces += [(", ", "")] if pieces else []
            pieces.append((plural(number, severity), _STYLES[severity]))
    return pieces


def plural(number: int, noun: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def diagnostic_json(diagnostic: Diagnostic, source: Source) -> dict[str, Any]:
    """A message as JSON-able data. Lines and columns count from 1, offsets from 0; spans are half open."""

    def place(offset: int) -> dict[str, int]:
        line, column = source.place(offset)
        return {"line": line, "column": column, "offset": offset}

    def span(of: Span) -> dict[str, dict[str, int]]:
        return {"start": place(of.start), "end": place(of.end)}

    fix = diagnostic.fix
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "text": diagnostic.text,
        "label": diagnostic.label,
        "help": diagnostic.help,
        "file": source.name,
        "span": span(diagnostic.span),
        "notes": [{"text": text, "span": span(of)} for of, text in diagnostic.notes],
        "fix": fix and {"certain": fix.certain, "edits": [{"span": span(e.span), "text": e.text} for e in fix.edits]},
    }


# ---------------------------------------------------------------- values, rows, differences


def value_text(value: object) -> str:
    """A value as a cell: null, true, 1.50, 2024-01-31, text in quotes only where it would be misread."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            short = f"{value:.15g}"
            return short if any(c in short for c in ".en") else short + ".0"
        case Decimal():
            return f"{value:f}"
        case datetime():
            return value.isoformat(sep=" ")
        case date():
            return value.isoformat()
        case bytes():
            return f"x'{value.hex()}'"
        case str():
            text = value.translate(_ESCAPES)
            text = text if text.isprintable() else "".join(c if _printable(c) else f"\\u{ord(c):04x}" for c in text)
            misread = text != text.strip() or text in ("", "null", "true", "false")
            return f"'{text}'" if misread else text
        case list() | tuple():
            return ", ".join(value_text(item) for item in value) or "none"
        case _:
            return str(value)


def json_value(value: object) -> object:
    """A value as JSON has it: decimals, dates and times as text, bytes as hexadecimal text."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return value.hex()
        case list() | tuple():
            return [json_value(item) for item in value]
        case dict():
            return {key: json_value(item) for key, item in value.items()}
        case _:
            return value_text(value)


def table_lines(names: Sequence[str], rows: Iterable[Sequence[object]], room: int = 0) -> Iterator[Line]:
    """Rows in aligned columns under their names, numbers to the right. Cells are cut so that a line keeps to `room`."""
    values = [list(row) for row in rows]
    cells = [[value_text(value) for value in row] for row in values]
    columns = range(len(names))
    right = [all(_is_number(row[i]) for row in values) and any(row[i] is not None for row in values) for i in columns]
    widths = [max([width(names[i]), *(width(row[i]) for row in cells)]) for i in columns]
    if room:
        widths = _squeeze(widths, room)
    yield _row(list(names), widths, right, ["bold"] * len(names))
    yield [("  ".join("─" * w for w in widths), "dim")]
    for row, texts in zip(values, cells, strict=True):
        yield _row(texts, widths, right, ["dim" if value is None else "" for value in row])


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float | Decimal) and not isinstance(value, bool))


def _row(cells: list[str], widths: list[int], right: list[bool], styles: list[str]) -> Line:
    line: Line = []
    for i, cell in enumerate(cells):
        text = cut(cell, widths[i])
        blanks = " " * (widths[i] - width(text))
        line.append((blanks + text if right[i] else text + blanks, styles[i]))
        line.append(("  ", ""))
    return line[:-1]


def _squeeze(widths: list[int], room: int) -> list[int]:
    """The widest columns made narrower until all of them fit, none below 6 cells."""
    widths = list(widths)
    while sum(widths) + 2 * (len(widths) - 1) > room and max(widths, default=0) > 6:
        widths[widths.index(max(widths))] -= 1
    return widths


def cut(text: str, room: int) -> str:
    """A text that takes at most `room` cells."""
    if width(text) <= room:
        return text
    kept, taken = "", 0
    for char in text:
        taken += _cells(char)
        if taken >= room:
            break
        kept += char
    return kept + "…"


def change_lines(
    table: str, key: Mapping[str, object], before: Mapping[str, object] | None, after: Mapping[str, object] | None
) -> Line:
    """One changed row: `+` added, `-` removed, `~` changed, with old and new values."""
    named = ", ".join(f"{name} {value_text(value)}" for name, value in key.items())
    if before is None or after is None:
        sign, style, row = ("+", "green", after) if before is None else ("-", "red", before)
        rest = ", ".join(f"{n} {value_text(v)}" for n, v in (row or {}).items() if n not in key)
        return [(f"{sign} {table} {named}", style), (f": {rest}" if rest else "", style)]
    line: Line = [(f"~ {table} {named}", "yellow"), (": ", "")]
    for name, new in after.items():
        old = before.get(name)
        if old != new:
            line += [] if line[-1][0] == ": " else [(", ", "")]
            line += [(f"{name} ", ""), (value_text(old), "red"), (" → ", "dim"), (value_text(new), "green")]
    return line


# ---------------------------------------------------------------- programs and their effects

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
    return text + (" = …" if parameter.default is not None else "")


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


# ---------------------------------------------------------------- stages of the compiler


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
            return repr(binding.value) if isinstance(binding.value, str) else value_text(binding.value)
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
