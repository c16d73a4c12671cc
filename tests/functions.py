"""The examples of functions and operators: tables in tests/functions/*.md, worked out from the language's rules.

A section `## round` is about a function or an operator (by its name in com/functions.py), or about casts from a type.
An example is an expression, its type, and its value, or the code of the message that the run fails with; `but` names
the engines that give another. In rows.md
expressions stand over the rows of the table `t`, which the page shows; a window's values are in order of `id`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import com
from com.runtime.canon import canonical, to_json
from com.schema import Type

FOLDER = Path(__file__).parent / "functions"
GIVEN = {"newline": "\n", "tab": "\t", "empty": ""}
"""What expressions may name as `$newline`, …: characters that Markdown has no room for, and a text that is no literal."""
CLOCK = datetime(2024, 2, 29, 13, 5)
_ROW = re.compile(
    r"\| `(?P<text>(?:[^`\\]|\\.)+)` \| (?P<type>[^|]+) \| (?:`(?P<value>[^`]+)`|(?P<code>CM\d+)) \|(?: (?P<but>\w.*) \|)?"
)
_COLUMNS = re.compile(r"(?<=^\| )`.*`(?= \|$)")
_ATOM = re.compile(
    r"(?P<kept>interval '[^']*'|::json|decimal\(\d+,\s*\d+\)"
    r"|(?:date_trunc|date_diff)\('\w+'|\$\w+|\"[^\"]*\"|[A-Za-z_]\w*(?!\s*'|\w))"
    r"|(?P<atom>(?:(?:date|timestamp) )?'(?:[^']|'')*'(?:::\w+)?|(?P<sign>-?)\d+(?:\.\d+)?(?:::\w+)?)"
)
_CONSTANT_LAST = ("round", "format_date", "json_get")
"""Functions whose last argument some engines want to be written in the program."""


class Example(NamedTuple):
    """`value`: as canonical JSON shows it, texts in quotes, a window's values joined by `, `; or a code."""

    name: str
    text: str
    type: str
    value: str
    others: dict[str, str]

    def on(self, engine: str) -> str:
        """The value, or what an engine gives instead: docs/engines.md tells why."""
        return self.others.get(engine, self.value)

    @property
    def is_over_rows(self) -> bool:
        return self.name in OVER_ROWS


class Section(NamedTuple):
    """What a page tells of a function, an operator, or the casts from a type."""

    name: str
    text: str
    examples: list[Example]


class Page(NamedTuple):
    """A page of the tables: its title, what stands below it, its sections."""

    title: str
    text: str
    sections: list[Section]


def _examples(name: str, lines: list[str]) -> Iterator[Example]:
    for line in lines:
        if line.startswith("| `"):
            found = _ROW.fullmatch(line)
            assert found, line
            text = found["text"].replace("\\|", "|")
            others = dict(part.replace("`", "").split(": ") for part in (found["but"] or "").split("; ") if part)
            yield Example(name, text, found["type"], found["value"] or found["code"], others)


def _read(path: Path) -> Page:
    head, *parts = re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    title, _, text = head.removeprefix("# ").partition("\n")
    sections = []
    for part in parts:
        name, _, meaning, *lines = part.splitlines()
        sections.append(Section(name, meaning, list(_examples(name, lines))))
    return Page(title, text.strip(), sections)


@cache
def pages(names: tuple[str, ...] = ()) -> list[Page]:
    """The pages of these names, or all."""
    return [_read(FOLDER / f"{name}.md") for name in names or sorted(p.stem for p in FOLDER.glob("*.md"))]


def tables() -> dict[str, list[Example]]:
    """All examples, by the name of their section."""
    return {section.name: section.examples for page in pages() for section in page.sections}


OVER_ROWS = frozenset(section.name for section in _read(FOLDER / "rows.md").sections)

# ---------------------------------------------------------------- the rows that aggregates and windows are over

SCHEMA = com.read_schema(
    "create table t (id int primary key, i int, d decimal(6,2), f float, s text, b bool, day date, at timestamp, g text);"
)


def filling() -> str:
    """A program that puts the rows of `t` into it."""
    table = (FOLDER / "rows.md").read_text(encoding="utf-8").partition("\n## ")[0]
    names, _, *lines = [line.strip("|").replace("`", "").split("|") for line in table.splitlines() if line[:1] == "|"]
    values = ", ".join(f"({', '.join(map(_literal, line))})" for line in lines)
    return f"program fill; step s: insert into t ({', '.join(names)}) values {values};"


def _literal(value: str) -> str:
    return f"'{value.strip()}'" if value.count("-") > 1 else value


# ---------------------------------------------------------------- how examples are run


class Way(NamedTuple):
    """A way to run expressions: a program of some of them, and its parameters."""

    text: str
    given: dict[str, Any]


_HEAD = ", ".join(f"{name} text" for name in GIVEN)


def _columns(texts: list[str]) -> str:
    return ", ".join(f"{text} as x{i}" for i, text in enumerate(texts))


def _parameters(used: str, more: str = "") -> tuple[str, dict[str, Any]]:
    """A header with those of `GIVEN` that a text uses."""
    names = [name for name in GIVEN if f"${name}" in used]
    head = ", ".join([*(f"{name} text" for name in names), *([more] if more else [])])
    return f"program p({head});\n", {name: GIVEN[name] for name in names}


def written(examples: list[Example]) -> Way:
    """The expressions as they are written; those over rows over the table."""
    columns = _columns([e.text for e in examples])
    head, given = _parameters(columns)
    end = " from t order by t.id" if " over (" in columns else " from t"
    return Way(f"{head}return {f'select {columns}{end}' if examples[0].is_over_rows else columns};", given)


def apart(examples: list[Example], column: Callable[[int], str]) -> tuple[list[str], list[tuple[str, Any]]]:
    """The expressions with values in place of their literals, and those values' types and texts."""
    found: list[tuple[str, Any]] = []
    made = []
    for example in examples:
        text = example.text

        def put(match: re.Match[str], text: str = text, example: Example = example) -> str:
            atom = match["atom"]
            if atom is None or _stays(example, text, match):
                return match[0]
            sign = ""
            if match["sign"] and re.search(r"[\w)]\s*$", text[: match.start()]):
                sign, atom = "-", atom[1:]
            found.append(_typed(atom))
            return sign + column(len(found))

        made.append(_ATOM.sub(put, text))
    return made, found


def _stays(example: Example, text: str, match: re.Match[str]) -> bool:
    last = text[match.end() :].startswith(")") and text[: match.start()].endswith(", ")
    return last and any(f"{name}(" in text for name in _CONSTANT_LAST)


def _typed(atom: str) -> tuple[str, Any]:
    """A literal's type and value."""
    plain, _, to = atom.partition("::") if not atom.startswith("'") or "'::" in atom else (atom, "", "")
    word, quote, rest = plain.partition("'")
    value = rest[:-1].replace("''", "'") if quote else plain
    if to:
        return to, json.loads(value) if to == "json" else value
    if quote:
        return word.strip() or "text", value
    whole, point, digits = value.lstrip("-").partition(".")
    if not point:
        return "int", int(value)
    return f"decimal({max(len((whole + digits).lstrip('0')), len(digits), 1)},{len(digits)})", value


def as_parameters(examples: list[Example]) -> Way:
    """The expressions with parameters in place of literals; those over rows over those of a step."""
    if examples[0].is_over_rows:
        step = written(examples).text.replace(" from t", " from $t as t")
        return Way(step.replace("return", "step t: select * from t;\nreturn", 1), {})
    texts, values = apart(examples, lambda n: f"$p{n}")
    columns = _columns(texts)
    head, given = _parameters(columns, ", ".join(f"p{n} {type_}" for n, (type_, _) in enumerate(values, 1)))
    return Way(f"{head}return {columns};", given | {f"p{n}": value for n, (_, value) in enumerate(values, 1)})


def as_columns(examples: list[Example]) -> Way:
    """The expressions with columns of a bound row in place of literals."""
    texts, values = apart(examples, lambda n: f"v.c{n}")
    columns = _columns(texts)
    fields = ", ".join(f"c{n} {type_}" for n, (type_, _) in enumerate(values, 1)) or "c0 int"
    head, given = _parameters(columns, f"v many {{{fields}}}")
    row = {f"c{n}": value for n, (_, value) in enumerate(values, 1)} or {"c0": 0}
    return Way(f"{head}return select {columns} from $v as v;", given | {"v": [row]})


WAYS: dict[str, Callable[[list[Example]], Way]] = {
    "written": written,
    "as parameters": as_parameters,
    "as columns": as_columns,
}


def told(memory: com.Memory, way: Way) -> list[tuple[str, str]] | str:
    """The type and value of each expression, or the code that the run fails with."""
    try:
        made = com.compile(way.text, memory.schema, engine=memory.engine)
        done = memory.dry_run(made, way.given, clock=CLOCK)
    except com.RunError as failed:
        return failed.message.code
    except com.CheckError as failed:
        codes = {d.code for d in failed.diagnostics if d.severity == "error"}
        assert codes == {"CM401"}, failed
        return "CM401"
    values = zip(*done.rows, strict=True)
    return [
        (str(field.type), ", ".join(shown(v, field.type) for v in column))
        for field, column in zip(done.fields, values, strict=True)
    ]


def shown(value: Any, type_: Type) -> str:
    """A value as the tables show it."""
    if type_.kind == "text" and value is not None:
        return "'" + value.replace("\n", "\\n") + "'"
    found = canonical(value, type_)
    return found if isinstance(found, str) and type_.kind != "json" else to_json(found)
