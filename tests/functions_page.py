"""docs/functions.md: each function and operator as a person needs it, made of com/functions.py and of the examples."""

from __future__ import annotations

import com
from com import plan
from com.compiler.functions import usage
from com.functions import FUNCTIONS, OPERATORS
from com.node import walk
from tests.functions import SCHEMA, Example, pages

PAGES = ("operators", "numbers", "texts", "times", "conversions", "rows")
SHOWN = 2
"""So many examples each function has on the page."""
_WRITTEN = {
    "negate": "-a", "between": "a between a and a", "is_distinct": "a is distinct from a", "is_null": "a is null",
    "not": "not a", "add_period": "a + interval '3 day'", "add_days": "a + 7",
}  # fmt: skip
_COLUMNS = {
    "number": {"int": "i", "decimal(6,2)": "d", "float": "f"},
    "time": {"date": "day", "timestamp": "at"},
    "same": {"int": "i", "text": "s", "date": "day"},
}
_COLUMNS["any"] = _COLUMNS["same"]
_NULLS = dict.fromkeys(("and", "or", "between"), "unknown")
"""What is told of operators that are true or false for some nulls."""
_OTHERS = {"int": "1", "text": "s", "unit": "'day'", "format": "'%Y'", "json": "cast(s as json)"}
"""What is given to a parameter that the result's type does not hang on."""


def written(name: str) -> str:
    """How an operator is written."""
    return _WRITTEN.get(name, f"a {name} a")


def shown(name: str) -> str:
    """How a function or an operator is used."""
    if name in FUNCTIONS:
        return usage(FUNCTIONS[name])
    return _lettered(written(name))


def _lettered(text: str) -> str:
    """Operands `a`, `b`, `c` in place of several `a`."""
    letters = iter("abc")
    return " ".join(next(letters) if word == "a" else word for word in text.split(" "))


def _call(name: str, column: str) -> str:
    """The function or operator with a column wherever its type may change the result's."""
    if name in OPERATORS:
        return " ".join(word[:-1] + column if word in ("a", "-a") else word for word in written(name).split(" "))
    function = FUNCTIONS[name]
    args = [_OTHERS.get(p, column) for p in function.parameters[: max(function.least, 1 if name == "count" else 0)]]
    called = f"{name}({', '.join(args)})"
    return f"{called} over (order by id)" if function.kind == "window" else called


def _type(expression: str) -> str:
    made = com.compile(f"program p; return select {expression} as x from t;", SCHEMA, engine="sqlite")
    return str(next(n for n in walk(made) if isinstance(n, plan.Statement)).fields[0].type)


def result(name: str) -> str:
    """The types that a function gives."""
    parameters = {**FUNCTIONS, **OPERATORS}[name].parameters
    kind = next((p for p in parameters if p in _COLUMNS), "")
    columns = _COLUMNS.get(kind, {"": "b" if "bool" in parameters else "s"})
    found = {given: _type(_call(name, column)) for given, column in columns.items()}
    kinds = set(found.values())
    if len(kinds) == 1:
        return kinds.pop()
    if all(given == made for given, made in found.items()):
        return "as given"
    return ", ".join(f"{given} → {made}" for given, made in found.items())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _example(example: Example) -> str:
    return f"`{_cell(example.text)}` → `{_cell(example.value)}`"


def page() -> str:
    """All of docs/functions.md behind its first lines."""
    lines: list[str] = []
    for found in pages(PAGES):
        lines += [f"## {found.title}", "", *([found.text, ""] if found.text else [])]
        casts = found.sections[0].name.startswith("cast ")
        head = ["cast", "meaning", "for example"] if casts else ["function", "gives", "null", "meaning", "for example"]
        lines += [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
        for name, text, examples in found.sections:
            cells = (
                [f"`cast(… as …)` of {name[5:]}"]
                if casts
                else [
                    f"`{_cell(shown(name))}`",
                    result(name),
                    _NULLS.get(name) or {**FUNCTIONS, **OPERATORS}[name].nulls,
                ]
            )
            lines.append(f"| {' | '.join([*cells, text, '; '.join(map(_example, examples[:SHOWN]))])} |")
        lines.append("")
    return "\n".join(lines)
