"""Values, rows and row differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import groupby
from typing import Any

from com.report.lines import Line, cut, printable, width
from com.runtime.outcome import Change
from com.schema import Schema

_ESCAPES = {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}


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
            text = text if text.isprintable() else "".join(c if printable(c) else f"\\u{ord(c):04x}" for c in text)
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
        firm = [not any(isinstance(row[i], str) for row in values) for i in columns]
        widths = _squeeze(widths, room, firm)
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


def _squeeze(widths: list[int], room: int, firm: list[bool]) -> list[int]:
    """The widest columns made narrower until all of them fit, none below 6 cells; those of numbers and times last."""
    widths = list(widths)
    for chosen in ([i for i, f in enumerate(firm) if not f], [i for i, f in enumerate(firm) if f]):
        while chosen and sum(widths) + 2 * (len(widths) - 1) > room:
            widest = max(chosen, key=lambda i: widths[i])
            if widths[widest] <= 6:
                break
            widths[widest] -= 1
    return widths


def change_lines(changes: Iterable[Change], schema: Schema) -> Iterator[Line]:
    """Changed rows, table by table: `+` added, `-` removed, `~` changed, with old and new values."""
    for name, group in groupby(sorted(changes, key=lambda change: change.table), key=lambda change: change.table):
        table = schema.table(name)
        rows = list(group)
        keys = table.primary_key if table else ()
        names = keys if len(keys) == len(rows[0].key) else tuple(f"key {n}" for n in range(1, len(rows[0].key) + 1))
        yield [(name, "bold")]
        yield from (_change(change, dict(zip(names, change.key, strict=True))) for change in rows)


_SIGNS = {"inserted": ("+", "green"), "deleted": ("-", "red"), "updated": ("~", "yellow")}


def _change(change: Change, key: dict[str, object]) -> Line:
    sign, style = _SIGNS[change.verb]
    line: Line = [(f"  {sign} ", style), (", ".join(f"{n} {value_text(v)}" for n, v in key.items()), style)]
    before, after = change.before or {}, change.after or {}
    shown = [n for n in (after or before) if n not in key]
    if change.verb == "updated":
        shown = [n for n in shown if before.get(n) != after.get(n)]
    for number, name in enumerate(shown):
        line += [(", " if number else ": ", ""), (f"{name} ", "")]
        match change.verb:
            case "updated":
                old, new = value_text(before.get(name)), value_text(after.get(name))
                line += [(old, "red"), (" → ", "dim"), (new, "green")]
            case "inserted":
                line.append((value_text(after[name]), style))
            case _:
                line.append((value_text(before[name]), style))
    return line


def change_json(change: Change) -> dict[str, Any]:
    """A changed row as JSON-able data."""
    return {
        "table": change.table,
        "verb": change.verb,
        "key": json_value(change.key),
        "before": json_value(change.before),
        "after": json_value(change.after),
    }
