"""SQL of other dialects to programs of com: the one room, beside the compiler's SQL, that knows sqlglot.

Takes the text of one statement or more, its dialect, and the schema it is about; gives a syntax tree, and what was
decided or could not be. With a schema the program is one that checks; without it, only the words are translated.
"""

from __future__ import annotations

import re

from sqlglot import parse
from sqlglot.dialects.dialect import Dialect as Sqlglot
from sqlglot.errors import ParseError, SqlglotError

from com import diagnostics as messages
from com.compiler import syntax
from com.diagnostics import Diagnostic, has_errors
from com.importer.dialects import SQLGLOT, dialect
from com.importer.mend import Mender
from com.importer.places import Places
from com.importer.statements import Statements
from com.schema import Schema
from com.source import Span

__all__ = ["DIALECTS", "import_query"]

DIALECTS = tuple(sorted({d for d in Sqlglot.classes if d} | set(SQLGLOT)))
"""The dialects that can be read."""


def import_query(
    text: str, dialect_name: str, schema: Schema | None = None, name: str = "main"
) -> tuple[syntax.Program | None, list[Diagnostic]]:
    """A program that does what the SQL does, or None and why; spans are places in the SQL. `name` is the program's."""
    known = dialect(dialect_name)
    try:
        trees = [t for t in parse(text, read=SQLGLOT.get(known.name, known.name)) if t is not None]
    except SqlglotError as error:
        return None, [_unreadable(text, known.title, error)]
    if not trees:
        message = messages.NotSql(known.title, "there is no statement", "write select …")
        return None, [Diagnostic(message, Span(0, len(text)))]
    places = Places(text)
    translation = Statements(places, known, schema)
    program = translation.program(trees, name)
    found = translation.diagnostics
    if has_errors(found):
        return None, _sorted(found)
    if schema is None:
        more = "; with --schema com finds it"
        for parameter, span in translation.parameters.items():
            found.append(Diagnostic(messages.UntypedParameter(parameter, more), span))
    else:
        program, told = Mender(places, known, schema, translation.by_type).mend(program)
        found = _sorted([*found, *told])
        if has_errors(found):
            return None, found
    made: syntax.Program = places.placed(program)
    return made, found


def _sorted(found: list[Diagnostic]) -> list[Diagnostic]:
    return sorted(found, key=lambda d: (d.span.start, d.span.end))


def _unreadable(text: str, title: str, error: SqlglotError) -> Diagnostic:
    """What sqlglot says, and where."""
    if isinstance(error, ParseError) and error.errors:
        first = error.errors[0]
        said = re.sub(r"<class '[\w.]*?(\w+)'>", r"\1", str(first["description"] or "it does not parse"))
        lines = text.split("\n")
        line, column = int(first["line"] or 1), int(first["col"] or 1)
        word = str(first["highlight"] or "")
        end = sum(len(one) + 1 for one in lines[: line - 1]) + column
        start = max(end - max(len(word), 1), 0)
        said = said[:1].lower() + said[1:]
        return Diagnostic(
            messages.NotSql(title, said, "name its dialect with --dialect"), Span(start, min(end, len(text)))
        )
    said = "a quote or comment is not closed"
    return Diagnostic(messages.NotSql(title, said, "close it"), Span(0, len(text.rstrip())))
