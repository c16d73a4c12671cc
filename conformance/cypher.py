"""openCypher's spelling, and what of it com has: queries and values as com's syntax trees, or why not."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from com.compiler import syntax
from com.compiler.parse import parse_program
from com.compiler.show import show
from com.node import rebuild
from com.source import NOWHERE, Source

REASONS = (
    "with, call, union, foreach or several queries",
    "a list, a map or a path as a value",
    "a function or operator that com has not",
    "a function of whole nodes and edges",
    "a pattern or a query inside an expression",
    "hops without a bound, or of more than 8",
    "the variable of several hops",
    "a label that is set, removed, or tested in an expression",
    "a property that is removed, or set by a map",
    "a property of several types, or of a type that com has not",
    "types that do not fit, which com refuses",
    "a text that com reads as the number it is compared with",
    "a number of more digits than an engine keeps exactly",
    "is null behind a comparison, which binds looser in SQL",
    "int division, which com does in reals",
    "a query that writes before it reads, or writes one thing twice",
    "a merge that is not by a key, or of more than an edge",
    "a node or edge of several tables is written",
    "a whole node or edge that the query makes",
    "an edge that is bound, and matched again",
    "nothing in the graph could ever match, which com refuses",
    "a parameter that is a list or a map",
    "rows that no table holds: unwind of a list",
    "another error is expected than com has",
    "a match that returns nothing",
    "a graph that is made in another way",
    "other syntax",
)
"""Why a scenario is outside."""


class Outside(Exception):
    """A scenario that the language does not cover."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}")
        assert reason in REASONS, reason
        self.reason = reason
        self.detail = detail


# ---------------------------------------------------------------- openCypher's spelling

_TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<text>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|(?P<tick>`[^`]*`)"""
    r"""|(?P<number>0x[0-9a-fA-F]+|0o[0-7]+|\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+|\d+)"""
    r"""|(?P<word>[^\W\d]\w*)|(?P<place>\$\w+)|(?P<mark><>|<=|>=|=~|\+=|\.\.|.)""",
    re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_RENAMED = {
    "toupper": "upper", "tolower": "lower", "log": "ln", "ltrim": "ltrim", "rtrim": "rtrim",
}  # fmt: skip
_LACKING = frozenset(
    re.findall(
        r"\w+",
        """
        range head last tail reverse keys properties nodes relationships reduce extract any all none single
        exists size tointeger tofloat toboolean tostring rand percentilecont percentiledisc stdevp stdev split
        substring acos asin atan atan2 cos cot degrees haversin pi radians sin tan e log10 date time datetime
        localtime localdatetime duration point distance timestamp isempty
        """,
    )
)
_OF_WHOLES = frozenset({"labels", "type", "id", "elementid", "startnode", "endnode"})


def tokens(text: str) -> list[tuple[str, str]]:
    return [(m.lastgroup or "", m[0]) for m in _TOKEN.finditer(text) if m.lastgroup not in ("space", "comment")]


def respelled(text: str) -> str:
    """A query in com's spelling. `Outside` for what there is no spelling of."""
    found = tokens(text)
    out: list[str] = []
    depth: list[str] = []
    number = 0
    while number < len(found):
        kind, word = found[number]
        lower = word.lower()
        before = found[number - 1][1] if number else ""
        after = found[number + 1][1] if number + 1 < len(found) else ""
        number += 1
        name = before in (".", ":", "|") or (after == ":" and before in ("{", ",") and "{" in depth)
        if kind == "text":
            body = re.sub(r"\\(u[0-9a-fA-F]{4}|.)", unescaped, word[1:-1], flags=re.DOTALL)
            out.append("'" + body.replace("'", "''") + "'")
        elif kind == "tick":
            out.append('"' + word[1:-1].replace('"', '""') + '"')
        elif kind == "number":
            if re.search(r"[xoeE]", word) and not re.fullmatch(r"\d+\.?\d*[eE][+-]?\d+", word):
                raise Outside("other syntax", word)
            out.append(f"{Decimal(word):f}")
        elif kind == "word" and not name:
            if lower in ("with", "call", "union", "foreach", "load") and not (
                lower == "with" and before.lower() in ("starts", "ends")
            ):
                raise Outside("with, call, union, foreach or several queries", lower)
            if lower == "remove":
                raise Outside("a property that is removed, or set by a map", "remove")
            if lower in ("xor", "starts", "ends", "contains"):
                raise Outside("a function or operator that com has not", lower)
            if lower == "unwind" and (number > 1 or after[:1] != "$"):
                raise Outside("rows that no table holds: unwind of a list", "unwind")
            if after == "(" and lower in _OF_WHOLES:
                raise Outside("a function of whole nodes and edges", lower)
            if after == "(" and lower in _LACKING:
                raise Outside("a function or operator that com has not", lower)
            if lower in ("shortestpath", "allshortestpaths"):
                raise Outside("a function or operator that com has not", lower)
            if lower == "skip":
                out.append("offset")
            elif lower in ("descending", "ascending"):
                out.append("desc nulls first" if lower[0] == "d" else "asc")
            elif lower == "desc":
                out.append("desc nulls first")
            elif after == "(" and lower in _RENAMED:
                out.append(_RENAMED[lower])
            elif lower == "end" and "case" not in [w.lower() for _, w in found[: number - 1]]:
                out.append('"end"')
            elif (
                lower in ("from", "to", "by", "values", "for", "group", "inner", "left", "right", "full")
                and after != "("
                and (before.lower() != "order")
            ):
                out.append(f'"{word}"')
            else:
                out.append(word)
        elif kind == "word":
            out.append(word)
        elif word == "[" and before not in ("-", "<-"):
            out.append(_listed(found, number, out, before))
            number = _close(found, number)
        elif word == "{" and not (depth and depth[-1] == "(") and before not in (")",):
            if before == "=" or before.lower() in ("return", "in", ",", "(", "[", "where", "="):
                raise Outside("a list, a map or a path as a value", "a map")
            depth.append(word)
            out.append(word)
        elif word == "^" or word == "=~":
            raise Outside("a function or operator that com has not", word)
        elif word == "+=":
            raise Outside("a property that is removed, or set by a map", word)
        else:
            if word in "({[":
                depth.append(word)
            elif word in ")}]" and depth:
                depth.pop()
            out.append(word)
    return _spaced(out)


def unescaped(m: re.Match[str]) -> str:
    return chr(int(m[1][1:], 16)) if m[1][0] == "u" and len(m[1]) == 5 else _ESCAPES.get(m[1], m[1])


def _close(found: list[tuple[str, str]], start: int) -> int:
    depth = 1
    while start < len(found) and depth:
        depth += (found[start][1] == "[") - (found[start][1] == "]")
        start += 1
    return start


def _listed(found: list[tuple[str, str]], number: int, out: list[str], before: str) -> str:
    """`in [1, 2]` is `in (1, 2)`; other lists are none of com's."""
    inner = found[number : _close(found, number) - 1]
    if before.lower() != "in" or any(w in ("[", "|", "{", "..") for _, w in inner) or not inner:
        raise Outside("a list, a map or a path as a value", "a list")
    text = respelled(" ".join(w for _, w in inner))
    return f"({text})"


def _spaced(words: list[str]) -> str:
    """Words with blanks between, but where they are parts of one: `a.b`, `->`."""
    made = ""
    for word in words:
        tight = (
            not made
            or made[-1] in ".$"
            or word in (".", ",")
            or (made[-1] in "-<>=!" and word in "->=[(")
            or (made[-1] in ")]" and word == "-")
        )
        made += word if tight or word == ".." or made.endswith("..") else " " + word
    return made


_UNWIND = re.compile(r"\s*UNWIND\s+(\[[^\[\]{}|]*\]|range\(\s*-?\d+\s*,\s*-?\d+\s*\))\s+AS\s+(\w+)\b", re.IGNORECASE)


def unwound(text: str) -> tuple[str, str, list[Any]]:
    """A query that unwinds a list of plain values, as one that unwinds a parameter's rows: its text, the row's name,
    and the values."""
    found = _UNWIND.match(text)
    if found is None:
        return text, "", []
    if found[1][0] == "[":
        cells = [w for k, w in tokens(found[1][1:-1]) if w != ","]
        signs = [i for i, w in enumerate(cells) if w == "-"]
        joined = [("-" if i - 1 in signs else "") + w for i, w in enumerate(cells) if i not in signs]
        values = [expected(re.sub('^"(.*)"$', r"'\1'", w)) for w in joined]
    else:
        low, high = map(int, re.findall(r"-?\d+", found[1]))
        values = list(range(low, high + 1))
    kinds = {type(v) for v in values if v is not None}
    if not values or len(kinds) != 1 or None in values:
        raise Outside("rows that no table holds: unwind of a list", "no rows, or of several types")
    return f"UNWIND $given AS {found[2]}{text[found.end() :]}", found[2], values


def valued(graph: syntax.Graph, name: str) -> syntax.Graph:
    """The query with the row's only column where the row was named."""

    def put(node: Any) -> Any:
        if isinstance(node, syntax.ColumnName) and node.table is None and node.name.text == name:
            return syntax.ColumnName(node.name, node.name, NOWHERE)
        if isinstance(node, syntax.Item) and node.alias is None and isinstance(node.expr, syntax.ColumnName):
            return node.with_(alias=node.expr.name) if node.expr.table == node.expr.name else node
        return node

    return rebuild(graph, put) if name else graph


def tree_of(text: str) -> syntax.Graph:
    """The syntax tree of a query, respelled."""
    bare = re.sub(r"(\(\s*\w*\s*)((?::\s*\w+\s*){2,})", _together, respelled(text))
    program = f"program p;\nstep s: {bare.strip().rstrip(';')};\n"
    tree, found = parse_program(Source(program))
    errors = [d for d in found if d.severity == "error"]
    if errors:
        raise refused(errors[0], program)
    step = tree.body[0] if tree.body else None
    if len(tree.body) != 1 or not isinstance(step, syntax.Step) or not isinstance(step.operation, syntax.Graph):
        raise Outside("other syntax", program)
    return step.operation


def _together(m: re.Match[str]) -> str:
    """Several labels of one node, as one name."""
    return m[1] + ':"' + ":".join(sorted(re.findall(r"\w+", m[2]))) + '"'


def refused(error: Any, program: str) -> Outside:
    told = f"{error.code} {error.text}; {program[error.span.start : error.span.start + 30]!r}"
    rest = program[error.span.start :]
    if re.match(r"[-<(\[]", rest) or "exists" in told:
        return Outside("a pattern or a query inside an expression", told)
    if rest.startswith(":"):
        return Outside("a label that is set, removed, or tested in an expression", told)
    if rest.startswith("{") or "BadPlaceholder" in told:
        return Outside("a list, a map or a path as a value", told)
    return Outside("other syntax", told)


def labels_of(node: Any) -> tuple[str, ...]:
    return tuple(sorted(part for label in node.labels for part in label.text.split(":")))


def values_of(node: Any) -> dict[str, Any]:
    return {p.name.text: value for p in node.properties if (value := value_of(p.value)) is not None}


def value_of(expr: Any) -> Any:
    match expr:
        case syntax.Number(text=text):
            return float(text) if "." in text else int(text)
        case syntax.String(value=value) | syntax.Truth(value=value):
            return value
        case syntax.Null():
            return None
        case syntax.Unary(op="-", operand=syntax.Number() as operand):
            return -value_of(operand)
    raise Outside("a graph that is made in another way", show(expr))


def expected(cell: str) -> Any:
    """A value as a scenario writes it."""
    if cell in ("null", "true", "false"):
        return {"null": None, "true": True, "false": False}[cell]
    if re.fullmatch(r"-?\d+", cell):
        return int(cell)
    if re.fullmatch(r"-?\d*\.\d+(E-?\d+)?", cell, re.IGNORECASE):
        return float(cell)
    if cell[:1] == "'":
        return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", unescaped, cell[1:-1], flags=re.DOTALL)
    whole = re.fullmatch(r"\((?P<labels>[:\w\s]*)(?P<props>\{.*\})?\)|\[(?P<type>:\w+)\s*(?P<more>\{.*\})?\]", cell)
    if whole is None:
        raise Outside("a list, a map or a path as a value", cell)
    labels = tuple(sorted(re.findall(r"\w+", whole["labels"] or whole["type"] or "")))
    pattern = "({})" if whole["type"] is None else "()-[:x {}]->()"
    made = tree_of("create " + pattern.replace("{}", whole["props"] or whole["more"] or ""))
    clause = made.clauses[0]
    assert isinstance(clause, syntax.Create)
    element = clause.patterns[0].elements[0 if whole["type"] is None else 1]
    try:
        values = values_of(element)
    except Outside as problem:
        raise Outside("a property of several types, or of a type that com has not", problem.detail) from None
    return ("n" if whole["type"] is None else "e", labels, frozenset(values.items()))
