"""Text to syntax tree.

Takes a source; gives a tree and what is wrong in it. Never raises, whatever the text. After an error the next statement
is read as if nothing had happened, so that several are found in one go; a tree with errors lacks what was not read.

lark reads grammar.lark and makes the LALR(1) tables, once: they are kept as JSON beside the grammar (or in the user's
cache), so that lark itself is loaded only when the grammar has changed. Nodes are built as rules are reduced, and
renaming rules (`?value: expr`) cost nothing: they are passed over without touching the stacks.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from com import diagnostics as messages
from com.compiler import syntax
from com.compiler.build import LISTS, Builder, Token
from com.compiler.slips import Lexed, Trouble, begins_statement, explain, is_else_if, is_graph, read_slip
from com.diagnostics import Diagnostic, has_errors
from com.node import Node, children
from com.source import Source, Span

MAX_SIZE = 1_000_000
"""Characters of a source, at most."""
MAX_DEPTH = 100
"""Levels of nodes in a statement, at most: what walks over trees may recurse. `a + b + c` has one for each term."""
MAX_ERRORS = 20
"""Errors of one source that are told, at most."""

_GRAMMAR = Path(__file__).parent.parent / "grammar.lark"
_TABLES = _GRAMMAR.with_suffix(".tables")
_FORM = "1"
_STARTS = ("start", "schema", "expression")
_UNSAFE = re.compile("[\x00\ud800-\udfff]")
_SHORTEST_DEEP = 2 * MAX_DEPTH


class Tables:
    """What the parser works by: the LALR(1) tables, the rules, the terminals."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.actions: list[dict[str, int]] = data["actions"]
        self.gotos: list[dict[str, int]] = data["gotos"]
        self.starts: dict[str, int] = data["starts"]
        self.keywords: dict[str, str] = data["keywords"]
        self.marks: dict[str, str] = data["marks"]
        self.reserved: frozenset[str] = frozenset(data["reserved"])
        self.soft = frozenset(t for word, t in self.keywords.items() if word not in self.reserved)
        self.origins: list[str] = [rule[0] for rule in data["rules"]]
        self.sizes: list[int] = [rule[1] for rule in data["rules"]]
        self.units: list[bool] = [rule[2] == "unit" for rule in data["rules"]]
        self.makers = [_maker(*rule[1:]) for rule in data["rules"]]
        self.lexer = re.compile(data["lexer"], re.DOTALL | re.MULTILINE)


def _maker(size: int, name: str, kept: list[list[int]]) -> tuple[int, Any, Any]:
    """How a rule's value is made: kind 0 one part, 1 a list that grows, 2 a tuple, 3 a node of all parts, 4 of some."""
    if name in ("", "unit"):
        return 0, kept[0][0], None
    if name == "+":
        return 1, None, kept
    if name in LISTS:
        return 2, None, kept
    function = getattr(Builder, name, None) or getattr(Builder, name + "_")
    return (3 if kept == [[index] for index in range(size)] else 4), function, kept


def _parts(kept: list[list[int]], values: list[Any]) -> list[Any]:
    """A rule's parts that count: [index], [-1] for what is absent, [index, 1] for a list whose items are parts."""
    parts: list[Any] = []
    for entry in kept:
        if len(entry) == 2:
            parts += values[entry[0]]
        else:
            parts.append(values[entry[0]] if entry[0] >= 0 else None)
    return parts


# ---------------------------------------------------------------- tables


def build_tables(path: Path) -> None:
    """Make the tables from the grammar and write them, whole or not at all."""
    _save(path, _make_tables(_GRAMMAR.read_text(encoding="utf-8")))


def _save(path: Path, data: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        new.write_text(json.dumps(data, separators=(",", ":")), encoding="utf-8")
        os.replace(new, path)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def _cache() -> Path:
    return Path(os.path.expanduser("~"), ".cache", "com", "grammar.tables")


@cache
def tables() -> Tables:
    """The tables of the grammar as it now is."""
    text = _GRAMMAR.read_text(encoding="utf-8")
    stamp = _stamp(text)
    for place in (_TABLES, _cache()):
        try:
            data = json.loads(place.read_bytes())
            if data["stamp"] == stamp:
                return Tables(data)
        except (OSError, ValueError, LookupError, TypeError, AttributeError, re.error):
            continue  # not there, or not whole
    data = _make_tables(text)
    for place in (_TABLES, _cache()):
        try:
            _save(place, data)
            break
        except OSError:
            continue
    return Tables(data)


def _stamp(text: str) -> str:
    return hashlib.sha256((_FORM + text).encode()).hexdigest()


def _make_tables(text: str) -> dict[str, Any]:
    import lark  # a tenth of a second to load, and only a changed grammar needs it
    from lark.parsers.lalr_analysis import Shift

    made = lark.Lark(text, parser="lalr", start=list(_STARTS), maybe_placeholders=True)
    table = made.parser.parser._parse_table
    rules = {rule: number for number, rule in enumerate(made.rules)}
    actions: list[dict[str, int]] = []
    gotos: list[dict[str, int]] = []
    for state in range(len(table.states)):
        row = table.states[state]
        gotos.append({name: to for name, (_, to) in row.items() if not name.isupper() and name[0] != "$"})
        actions.append({
            name: (arg if kind is Shift else ~rules[arg])
            for name, (kind, arg) in row.items() if name.isupper() or name == "$END"
        })  # fmt: skip
    strings = {t.name: t.pattern.value.lower() for t in made.terminals if t.pattern.type == "str"}
    patterns = {t.name: t.pattern.to_regexp() for t in made.terminals if t.pattern.type == "re"}
    keywords = {value: name for name, value in strings.items() if value.isalpha()}
    marks = {value: name for name, value in strings.items() if not value.isalpha()}
    return {
        "stamp": _stamp(text),
        "starts": table.start_states,
        "actions": actions,
        "gotos": gotos,
        "rules": [_rule(rule) for rule in made.rules],
        "keywords": keywords,
        "marks": marks,
        "reserved": [word for word in keywords if not re.fullmatch(patterns["NAME"], word)],
        "lexer": _lexer(patterns, marks),
    }


def _rule(rule: Any) -> tuple[str, int, str, list[list[int]]]:
    """A rule's origin, size, what makes its value, and the parts that count, as lark's own trees would have them."""
    empty = "".join("1" if absent else "0" for absent in rule.options.empty_indices or ())
    absent = [len(ones) for ones in empty.split("0")] if empty else [0] * (len(rule.expansion) + 1)
    kept: list[list[int]] = []
    for index, symbol in enumerate(rule.expansion):
        kept += [[-1]] * absent[index]
        if rule.options.keep_all_tokens or not (symbol.is_term and symbol.filter_out):
            inline = not symbol.is_term and symbol.name.startswith("_")
            kept.append([index, 1] if inline else [index])
    kept += [[-1]] * absent[-1]
    origin = rule.origin.name
    if origin.startswith("_"):
        return origin, len(rule.expansion), "+", kept
    if rule.options.expand1 and not rule.alias and len(kept) == 1 and len(kept[0]) == 1 and kept[0][0] >= 0:
        return origin, len(rule.expansion), "unit" if len(rule.expansion) == 1 else "", kept
    return origin, len(rule.expansion), rule.alias or origin, kept


def _lexer(patterns: dict[str, str], marks: Iterable[str]) -> str:
    """One expression for all tokens; what is in it but not in the grammar are slips, each with its own message."""
    mark = "|".join(re.escape(text) for text in sorted(marks, key=len, reverse=True))
    name = r"[^\W\d]\w*"
    kinds = [
        ("SPACE", patterns["SPACE"]),
        ("WORD", name),
        ("slip_star", rf"\${name}\.\*"),
        ("PLACE", patterns["PLACE"]),
        ("COMMENT", patterns["COMMENT"]),
        ("slip_number", rf"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?{name}|[0-9]+(?:\.[0-9]*)?[eE][+-]?[0-9]+"
            r"|[0-9]+\.(?![0-9.])|(?<!\.)\.[0-9]+"),
        ("NUMBER", patterns["NUMBER"]),
        ("STRING", patterns["STRING"]),
        ("QNAME", patterns["QNAME"]),
        ("slip_comment", r"/\*.*?(?:\*/|\Z)|^[ \t]*(?://|#)[^\n]*"),
        ("slip_fence", r"^[ \t]*(?:```|~~~)[^\n]*"),
        ("slip_word", r"==|&&|`[^`\n]+`|\$\{[^\W\d]\w*(?:\.[^\W\d]\w*)?\}|@[^\W\d]\w*|‘[^’\n]*’|“[^”\n]*”|≠|≤|≥"),
        ("MARK", mark),
        ("slip_open", r"'[^\n]*|\"[^\n]*"),
        ("slip_dollar", r"\$"),
        ("slip_char", r"."),
    ]  # fmt: skip
    return "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in kinds)


# ---------------------------------------------------------------- reading


def parse_program(source: Source) -> tuple[syntax.Program, list[Diagnostic]]:
    """A program. Comments that are no title are in it, in their order."""
    tree, comments, found = _parse(source, "start")
    if not isinstance(tree, syntax.Program):
        tree = syntax.Program(None, (), (), Span(0, len(source.text)))
    return tree.with_(comments=comments), found


def parse_schema(source: Source) -> tuple[syntax.SchemaFile, list[Diagnostic]]:
    """A schema: `create table` and `create index` statements."""
    tree, comments, found = _parse(source, "schema")
    if not isinstance(tree, syntax.SchemaFile):
        tree = syntax.SchemaFile((), (), Span(0, len(source.text)))
    return tree.with_(comments=comments), found


def parse_expression(source: Source) -> tuple[syntax.Expr | None, list[Diagnostic]]:
    """An expression alone; None if it could not be read."""
    tree, _, found = _parse(source, "expression")
    return tree, found


def _parse(source: Source, start: str) -> tuple[Any, tuple[syntax.Comment, ...], list[Diagnostic]]:
    text = source.text
    if len(text) > MAX_SIZE:
        return None, (), [Diagnostic(messages.TooLong(len(text), MAX_SIZE), Span(0, 1))]
    reading = _Reading(source, tables())
    tree = reading.read(start, reading.lex(1 if text[:1] == "\ufeff" else 0, len(text)))
    if isinstance(tree, syntax.Program | syntax.SchemaFile):
        tree = reading.without_deep(tree)
    elif tree is not None and _is_deep(tree, len(text)):
        reading.too_deep(tree)
        tree = None
    for bad in _UNSAFE.finditer(text):
        reading.builder.report(messages.UnknownCharacter(f"U+{ord(bad[0]):04X}", ""), Span(bad.start(), bad.end()))
    found = reading.builder.found
    if _UNSAFE.search(text):
        found = [_printable(diagnostic) for diagnostic in found]
    if has_errors(found):
        found.sort(key=lambda diagnostic: diagnostic.span.start)
    return tree, tuple(reading.comments.values()), found[:MAX_ERRORS]


def _printable(diagnostic: Diagnostic) -> Diagnostic:
    """The message without characters that cannot be printed."""
    message = diagnostic.message
    words = {
        field: _UNSAFE.sub("?", value) for field in message._fields if isinstance(value := getattr(message, field), str)
    }
    return Diagnostic(message.with_(**words), diagnostic.span, diagnostic.notes)


class _Reading:
    """One source being read."""

    def __init__(self, source: Source, tables: Tables) -> None:
        self.source = source
        self.tables = tables
        self.comments: dict[int, syntax.Comment] = {}
        self.builder = Builder(source, self.comments, self.inner)
        self.troubles = 0
        self.orphans = 0

    def lex(self, start: int, end: int) -> list[Token]:
        """The tokens of a part of the text, with an end token; comments go to `comments`."""
        text = self.source.text
        keywords, marks = self.tables.keywords, self.tables.marks
        tokens: list[Token] = []
        at = start
        for match in self.tables.lexer.finditer(text, start, end):
            kind = match.lastgroup
            if kind == "SPACE":
                continue
            word = match[0]
            at = match.start()
            if kind == "WORD":
                if word.isascii():
                    tokens.append((keywords.get(word.lower(), "NAME"), word, at, match.end()))
                else:
                    tokens.append(("NAME", word, at, match.end()))
            elif kind == "MARK":
                tokens.append((marks[word], word, at, match.end()))
            elif kind == "COMMENT":
                own = not text[text.rfind("\n", 0, at) + 1 : at].strip("\ufeff \t\r\f\v")
                self.comments[match.end()] = syntax.Comment(word.rstrip(), own, Span(at, match.end()))
            elif kind in ("PLACE", "NUMBER", "STRING", "QNAME"):
                tokens.append((kind, word, at, match.end()))
            else:
                assert kind is not None
                self._slip(Lexed(kind, word, at, match.end(), text, tokens))
        tokens.append(("$END", "", end, end))
        return tokens

    def _slip(self, lexed: Lexed) -> None:
        diagnostic, token = read_slip(lexed)
        if diagnostic is not None and not (lexed.kind == "slip_char" and _UNSAFE.match(lexed.word)):
            self.builder.found.append(diagnostic)
        if token is not None:
            lexed.tokens.append((token[0] or self.tables.marks[token[1]], *token[1:]))

    def inner(self, start: int, end: int) -> syntax.Expr | None:
        """The expression that stands in a part of the text."""
        tokens = self.lex(start, end)
        tree = self.read("expression", tokens)
        return tree  # type: ignore[no-any-return]

    # ------------------------------------------------------------ the loop

    def read(self, start: str, tokens: list[Token]) -> Any:
        """The tree of the tokens, or None. What the rules build is on `values`, what began them on `begins`."""
        tables = self.tables
        actions, gotos, origins, sizes, units = (
            tables.actions, tables.gotos, tables.origins, tables.sizes, tables.units,
        )  # fmt: skip
        makers, soft, builder = tables.makers, tables.soft, self.builder
        states = [tables.starts[start]]
        values: list[Any] = [None]
        begins = [tokens[0][2]]
        at = 0
        last_end = begins[0]
        token = tokens[0]
        kind = token[0]
        fresh = True
        while True:
            row = actions[states[-1]]
            act = row.get(kind)
            if fresh and kind in soft and "NAME" in row and self._is_name(states, act, tokens, at):
                token = tokens[at] = ("NAME", *token[1:])
                kind = "NAME"
                act = row["NAME"]
            fresh = False
            if act is None:
                act = self._finishing(row, tokens, at)
            if act is None:
                at = self._mend(start, states, values, begins, tokens, at)
                if at < 0:
                    return None
                token = tokens[at]
                kind = token[0]
                fresh = True
                continue
            if act >= 0:
                states.append(act)
                values.append(token)
                begins.append(token[2])
                last_end = token[3]
                at += 1
                token = tokens[at]
                kind = token[0]
                fresh = True
                continue
            rule = ~act
            origin = origins[rule]
            size = sizes[rule]
            how, function, kept = makers[rule]
            if how == 0:
                value = values[function - size]
            else:
                parts = values[-size:] if size else []
                if how >= 3:
                    begin = begins[-size] if size else token[2]
                    span = Span(begin, last_end if size else begin)
                    value = function(builder, span, *(parts if how == 3 else _parts(kept, parts)))
                elif how == 2:
                    value = tuple(_parts(kept, parts))
                elif len(kept[0]) == 2:
                    value = parts[kept[0][0]]
                    value += _parts(kept[1:], parts)
                else:
                    value = _parts(kept, parts)
            if size:
                if size > 1:
                    begin = begins[-size]
                    del states[-size:], values[-size:], begins[-size:]
                    begins.append(begin)
                else:
                    del states[-1], values[-1]
            else:
                begins.append(token[2])
            goto = gotos[states[-1]]
            while True:
                state = goto[origin]
                act = actions[state].get(kind)
                if act is None or act >= 0 or not units[~act]:
                    break
                origin = origins[~act]
            if origin == start and len(states) == 1:
                return value
            states.append(state)
            values.append(value)

    def fits(self, states: list[int], *kinds: str) -> bool:
        """True if tokens of these kinds can come next: their reductions are tried without being made."""
        tables = self.tables
        depth = len(states)
        above: list[int] = []
        ahead = iter(kinds)
        kind = next(ahead)
        while True:
            act = tables.actions[above[-1] if above else states[depth - 1]].get(kind)
            if act is None:
                return False
            if act >= 0:
                above.append(act)
                following = next(ahead, None)
                if following is None:
                    return True
                kind = following
                continue
            size = tables.sizes[~act]
            if size:
                from_above = min(size, len(above))
                if from_above:
                    del above[-from_above:]
                depth -= size - from_above
            to = tables.gotos[above[-1] if above else states[depth - 1]][tables.origins[~act]]
            if kind == "$END" and depth == 1 and not above and tables.origins[~act] in _STARTS:
                return True
            above.append(to)

    def _is_name(self, states: list[int], act: int | None, tokens: list[Token], at: int) -> bool:
        """True if a word of the language is a name here; an alias that looks like the next statement is none."""
        kind = tokens[at][0]
        if act is not None and (act >= 0 or self.fits(states, kind)):
            return False
        if begins_statement(self.source.text, tokens, at, False) and self.fits(states, "SEMICOLON"):
            return False
        return self.fits(states, "NAME")

    # ------------------------------------------------------------ after an error

    def _finishing(self, row: dict[str, int], tokens: list[Token], at: int) -> int | None:
        """The one reduction that can come here, whatever the token: what is complete is no part of the error."""
        acts = set(row.values())
        if len(acts) == 1 and min(acts) < 0:
            return min(acts)
        if at and tokens[at - 1][0] in ("SEMICOLON", "RBRACE") and not is_else_if(tokens[at][1]):
            reductions = {act for act in acts if act < 0}
            if len(reductions) == 1 and all(act < 0 or kind == "ELSE" for kind, act in row.items()):
                return reductions.pop()
        return None

    def _mend(
        self, start: str, states: list[int], values: list[Any], begins: list[int], tokens: list[Token], at: int
    ) -> int:
        """Say what is wrong with the token at hand, and where to go on: -1 for nowhere."""
        self.troubles += 1
        base = self._base(start, states)
        if self.orphans and tokens[at][0] == "RBRACE" and base == len(states) - 1:
            self.orphans -= 1
            return self._after_orphan(tokens, at + 1)
        first = at
        if 0 <= base < len(states) - 1:
            while first > 0 and tokens[first - 1][2] >= begins[base + 1]:
                first -= 1
        elif base < 0:
            first = 0
        top = states[-1]
        texts = {kind: text for text, kind in (*self.tables.keywords.items(), *self.tables.marks.items())}
        trouble = Trouble(
            self.source.text,
            tokens,
            at,
            first,
            start,
            set(self.tables.gotos[top]),
            lambda *kinds: self.fits(states, *kinds),
            lambda *kinds: len(states) > 1 and self.fits(states[:-1], *kinds),
            [(kind, texts.get(kind, kind)) for kind in self.tables.actions[top]],
        )
        diagnostic, repair = explain(trouble)
        if not self._follows(diagnostic, tokens[first][2], tokens[at]):
            self.builder.found.append(diagnostic)
        if self.troubles > 3 * MAX_ERRORS:
            return -1
        if repair is not None:
            count, new = repair
            marks = self.tables.marks
            if count < 0:
                del states[-1], values[-1], begins[-1]
                return at
            tokens[at : at + count] = [
                (marks.get(new_word, kind), new_word, begin, end) for kind, new_word, begin, end in new
            ]
            if count or self.fits(states, *(token[0] for token in tokens[at : at + len(new) + 1])):
                return at
            del tokens[at : at + len(new)]
        if base < 0:
            return -1
        if isinstance(diagnostic.message, messages.NotYet) or is_graph(tokens, first):
            while tokens[at][0] not in ("SEMICOLON", "$END"):  # its clauses are no statements, even `return`
                at += 1
        del states[base + 1 :], values[base + 1 :], begins[base + 1 :]
        return self._skip(states, tokens, first, at, start == "schema")

    def _follows(self, diagnostic: Diagnostic, start: int, token: Token) -> bool:
        """True if an error in the same statement probably made this one, or all is at its end."""
        if token[0] == "$END" and self.troubles > 1:
            return bool(self.builder.found)
        return isinstance(diagnostic.message, messages.Unexpected) and any(
            start <= said.span.start <= token[2] for said in self.builder.found
        )

    def _base(self, start: str, states: list[int]) -> int:
        """Where on the stack a statement can begin, the innermost; -1 in an expression."""
        if start == "expression":
            return -1
        kind = "CREATE" if start == "schema" else "STEP"
        base = len(states) - 1
        while base >= 0 and self.tables.actions[states[base]].get(kind, -1) < 0:
            base -= 1
        return base

    def _skip(self, states: list[int], tokens: list[Token], first: int, at: int, schema: bool) -> int:
        """Past the statement that could not be read; into a block whose head could not."""
        depth = sum((token[0] == "LBRACE") - (token[0] == "RBRACE") for token in tokens[first:at])
        block = tokens[first][0] in ("FOR", "IF", "ELSE", "PROGRAM")
        text = self.source.text
        while tokens[at][0] != "$END":
            kind = tokens[at][0]
            if kind == "SEMICOLON" and depth <= 0:
                return at + 1
            if kind == "LBRACE":
                if block and depth == 0:
                    self.orphans += 1
                    return at + 1
                depth += 1
            elif kind == "RBRACE":
                if depth > 0:
                    depth -= 1
                elif self.orphans or self.fits(states, "RBRACE"):
                    return at
            elif at > first and begins_statement(text, tokens, at, schema):
                return at
            at += 1
        return at

    def _after_orphan(self, tokens: list[Token], at: int) -> int:
        """Past the } of a block whose head could not be read, and into its else."""
        if tokens[at][0] == "ELSE":
            ahead = at
            while tokens[ahead][0] not in ("LBRACE", "SEMICOLON", "RBRACE", "$END"):
                ahead += 1
            if tokens[ahead][0] == "LBRACE":
                self.orphans += 1
                return ahead + 1
        return at

    # ------------------------------------------------------------ depth

    def without_deep(self, tree: Any) -> Any:
        """The tree without the statements that are too deep for what comes after."""
        field = "body" if isinstance(tree, syntax.Program) else "items"
        kept = []
        for statement in getattr(tree, field):
            if _is_deep(statement, statement.span.end - statement.span.start):
                self.too_deep(statement)
            else:
                kept.append(statement)
        header = getattr(tree, "header", None)
        if header is not None and _is_deep(header, header.span.end - header.span.start):
            self.too_deep(header)
            tree = tree.with_(header=None)
        return tree.with_(**{field: tuple(kept)})

    def too_deep(self, node: Node) -> None:
        self.builder.report(messages.TooDeep(MAX_DEPTH), Span(node.span.start, node.span.start + 1))  # type: ignore[attr-defined]


def _is_deep(node: Node, length: int) -> bool:
    """True if nodes are nested deeper than allowed; a short text cannot be."""
    if length < _SHORTEST_DEEP:
        return False
    level = [node]
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in children(parent)]
        if not level:
            return False
    return True


if __name__ == "__main__":
    build_tables(_TABLES)
