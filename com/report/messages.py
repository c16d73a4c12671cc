"""Messages with the lines they speak of, or as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import Any

from com.diagnostics import Diagnostic
from com.report.lines import Line, cells, plural, printable, width
from com.source import Source, Span

_TAB = 4
_STYLES = {"error": "bold red", "warning": "bold yellow"}


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
            for number, text in enumerate(_wrapped(diagnostic.help, room - gutter - 9)):
                lead = " " * gutter + " = " if number == 0 else " " * (gutter + 3)
                yield [(lead, "blue"), ("help: " if number == 0 else "      ", "bold"), (text, "")]
        yield []


def _wrapped(text: str, room: int) -> list[str]:
    return [part for line in text.splitlines() for part in wrap(line, room, break_on_hyphens=False) or [""]]


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
    return text if text.isprintable() else "".join(c if printable(c) else "\N{MIDDLE DOT}" for c in text)


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
        if at >= skip and width(kept) + cells(char) <= room - 2:
            begun = begun if kept else at
            kept += char
        elif kept:
            break
        at += cells(char)
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
