"""What to say where a text is no com: what was found, what could have stood there, and what was probably meant.

Takes the tokens around an error and what the parser could go on with; gives one message and, where it is plain what
was meant, tokens to go on with as if it had been written.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal

from com import diagnostics as messages
from com.compiler.build import Token
from com.diagnostics import Diagnostic, Edit, Fix, Message
from com.source import Span

RESERVED = frozenset(
    [
        "select",
        "from",
        "where",
        "group",
        "order",
        "by",
        "having",
        "limit",
        "offset",
        "join",
        "left",
        "right",
        "full",
        "inner",
        "cross",
        "outer",
        "on",
        "using",
        "union",
        "intersect",
        "except",
        "and",
        "or",
        "not",
        "in",
        "is",
        "null",
        "between",
        "like",
        "ilike",
        "case",
        "when",
        "then",
        "else",
        "end",
        "as",
        "set",
        "values",
        "into",
        "insert",
        "update",
        "delete",
        "returning",
        "distinct",
        "exists",
        "true",
        "false",
        "for",
        "if",
        "cast",
        "extract",
    ]
)
"""Words that are names only in double quotes, or where nothing but a name can stand."""

Repair = tuple[int, tuple[Token, ...]] | None
"""How to go on: so many tokens replaced by these; -1 takes back the one before; None skips a statement."""
Said = tuple[Diagnostic, Repair]

# What stands where a rule is wanted; the first that is wanted is told.
_WANTED = {
    "operation": "select, insert, update, delete, call or match",
    "graph_name": "the graph's name",
    "vertex_table": "a table's name",
    "edge_table": "a table's name",
    "end": "key (columns) references a vertex table",
    "label_name": "a label",
    "property_name": "a property's name",
    "pattern": "a pattern such as (a:Label)",
    "node_pattern": "a node such as (a:Label)",
    "on_action": "on create set or on match set",
    "variable": "a variable of a pattern",
    "step_name": "the step's name",
    "program_name": "the program's name",
    "parameter_name": "a parameter's name",
    "parameter_type": "a type",
    "loop_name": "a name for the row",
    "loop_rows": "$ and a step's name",
    "call_name": "the name of a function",
    "index_name": "the index's name",
    "shape": "one, maybe or many",
    "block": "{",
    "text": "a text in quotes",
    "table_ref": "a table, $step or (select …)",
    "table_name": "a table's name",
    "table_item": "a column or a key",
    "column_name": "a column's name",
    "column_label": "a column's name",
    "type_name": "a type",
    "count": "a number",
    "returned": "$step, select … or a value",
    "selected": "a column, a value or *",
    "returned_item": "a value",
    "alias": "a name",
    "condition": "a condition",
    "argument": "a value",
    "order_key": "a column or a value",
    "insert_source": "values or select",
    "row": "( and a row's values",
    "frame_bound": "the frame's bound",
    "value": "a value",
    "query": "a value or select",
    "expr": "a value",
    "concat": "a value",
    "sum": "a value",
    "product": "a value",
    "signed": "a value",
    "membership": "a value",
    "comparison": "a value",
    "negation": "a condition",
    "conjunction": "a condition",
    "select": "select",
    "default_value": "a constant",
    "item": "a statement: step, for each, if, assert, return or answer",
    "schema_item": "create table, create index or create property graph",
}

_TEXTS = {
    "SEMICOLON": ";", "COMMA": "a comma", "RPAR": ")", "RBRACE": "}", "COLON": ":", "LBRACE": "{", "LPAR": "(",
    "EQUAL": "=", "RSQB": "]", "PLACE": "$step", "STRING": "a text in single quotes", "NUMBER": "a number",
    "NAME": "a name", "$END": "the end",
}  # fmt: skip
_QUIET = frozenset({
    "QNAME", "PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "DIV", "CONCAT", "LESSTHAN", "MORETHAN", "DOT", "LSQB",
    "DATE", "TIMESTAMP", "INTERVAL",
})  # fmt: skip
"""Kinds that are not told among what was expected: they nearly always could stand."""

_OPERATIONS = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE", "CALL"})
_STATEMENTS = frozenset({"STEP", "FOR", "IF", "ASSERT", "ANSWER", "RETURN", "PROGRAM"})
_GRAPH = frozenset({"match", "optional", "unwind", "merge", "detach"})
_NOT_CYPHER = {
    "with": "end the step with return, and go on in another: match … where c.name in $step.name, or unwind $step as r",
    "remove": "write set c.property = null",
    "foreach": "write unwind $rows as r, or for each r in $rows { … }",
    "call": "make the call a step of its own: step name: call …;",
    "skip": "write limit n offset m",
    "union": "make each part a step, and join them: select … from $a union select … from $b",
    "shortestpath": "write match p = any shortest (a)-[:TYPE*1..8]->(b)",
    "allshortestpaths": "write match p = any shortest (a)-[:TYPE*1..8]->(b)",
    "using": "leave it out: there are no hints",
}
"""What openCypher has and com has not, and what to write there."""
_TABLES_ARE_MADE = "a program changes rows, not tables: tables are made from a schema (com init)"
_ONE_TRANSACTION = "leave it out: a program is one transaction, and assert undoes all of it"
_NOT_STATEMENTS = {
    "with": "write each part as a step of its own (step name: select …;) and read it with from $name",
    "create": _TABLES_ARE_MADE,
    "drop": _TABLES_ARE_MADE,
    "alter": _TABLES_ARE_MADE,
    "truncate": _TABLES_ARE_MADE,
    "rename": _TABLES_ARE_MADE,
    "begin": _ONE_TRANSACTION,
    "commit": _ONE_TRANSACTION,
    "rollback": _ONE_TRANSACTION,
    "start": _ONE_TRANSACTION,
    "savepoint": _ONE_TRANSACTION,
    "grant": "grants are given beside a program, not in it",
    "revoke": "grants are given beside a program, not in it",
    "set": "there are no settings and no variables: a step holds a value",
    "pragma": "leave it out: there are no settings",
    "use": "leave it out: the memory is named when a program is run",
    "declare": "a value that is given is a parameter, one that is found is a step",
    "let": "write step name: select … as column;",
    "var": "write step name: select … as column;",
    "while": "for each x in $step { … } is the only loop",
    "loop": "for each x in $step { … } is the only loop",
    "repeat": "for each x in $step { … } is the only loop",
    "explain": "leave it out: com compile shows a program's statements",
    "print": "write answer 'text {$step.column}';",
    "raise": "write assert condition else 'message';",
    "throw": "write assert condition else 'message';",
    "run": "a program cannot run another: take its steps over",
    "execute": "a program cannot run another: take its steps over",
    "exec": "a program cannot run another: take its steps over",
    "import": "a program cannot use another: take its steps over",
    "upsert": "write insert into t (…) values (…) on conflict (key) do update set …",
    "replace": "write insert into t (…) values (…) on conflict (key) do update set …",
    "copy": "give rows as a parameter, items many {…}",
}
_HELPS = {
    "with": "there is no with: write each part as a step of its own and read it with from $name",
    "fetch": "write limit n",
    "top": "write order by … limit n",
    "for": "leave it out: a program is one transaction",
    "lateral": "write a subquery, or a step",
    "natural": "write join t using (column, …)",
    "window": "write the window in over (…)",
    "qualify": "number the rows in a step, and select from it",
    "pivot": "write sum(x) filter (where …) for each column",
    "ignore": "write on conflict (key) do nothing",
    "constraint": "leave constraint and its name out",
    "autoincrement": "write generated always as identity",
    "auto_increment": "write generated always as identity",
    "collate": "leave it out: text is compared by code point",
    "escape": "there is no escape",
    "similar": "write like",
    "rlike": "write like",
    "regexp": "write like",
    "glob": "write like",
    "mod": "write a % b",
    "xor": "write a <> b",
    "while": "for each x in $step { … } is the only loop",
    "values": "rows in a query are steps or parameters: items many {…}",
    "unsigned": "leave it out, or write check (x >= 0)",
    "temporary": "a step's rows are there without a table",
    "temp": "a step's rows are there without a table",
    "program": "a program cannot call a program: take its steps over",
    "respect": "leave it out",
    "within": "write string_agg(x, ', ' order by y)",
    "array": "a list is a column of a step, or a parameter: names text[]",
    "separator": "write string_agg(x, ', ')",
    "partition": "write over (partition by …)",
    "rollup": "group by each level in a step of its own",
}
_CHARACTERS = {
    "!": "write not",
    "&": "write and",
    "|": "write or, or || to join texts",
    "~": "write like",
    "^": "write power(a, b)",
    "#": "a comment begins with --",
    "@": "a placeholder begins with $",
    "?": "a value is given as a parameter, $name",
    "\\": "a quote in a text is doubled: 'it''s'",
    "[": "a list is a column of a step, or a parameter",
    "]": "a list is a column of a step, or a parameter",
}


_UNIT = re.compile(r"(year|month|week|day|hour|minute|second)s?")


class Lexed:
    """A piece of text that is no token: its kind among the slips, where it stands, the tokens before it."""

    def __init__(self, kind: str, word: str, start: int, end: int, text: str, tokens: list[Token]) -> None:
        self.kind, self.word, self.start, self.end, self.text, self.tokens = kind, word, start, end, text, tokens


def read_slip(lexed: Lexed) -> tuple[Diagnostic | None, Token | None]:
    """A message about what is no token, and the token it was probably meant to be."""
    word, start, end = lexed.word, lexed.start, lexed.end
    span = Span(start, end)
    match lexed.kind:
        case "slip_star":
            name = word[1:-2]
            returned = bool(lexed.tokens) and lexed.tokens[-1][0] == "RETURN"
            help_ = f"write ${name}.column, or from ${name} and {name}.*"
            if returned:
                help_ = f"write return ${name} for all its columns"
            said = _said(messages.BadPlaceholder(f"{word} is no value", help_), span, word[:-2] if returned else None)
            return said, ("PLACE", word[:-2], start, end)
        case "slip_number":
            meant = _number(word)
            said = _said(messages.BadNumber(_short(word), f": {meant}" if meant else ""), span, meant)
            return said, ("NUMBER", meant or "0", start, end)
        case "slip_comment":
            return _comment(lexed), None
        case "slip_fence":
            return _said(messages.Fence(), span, ""), None
        case "slip_word":
            return _respelled(word, span)
        case "slip_open":
            return _open(lexed)
        case "slip_dollar":
            return _said(messages.BadPlaceholder("no name stands after $", "write $parameter or $step.column"), span), (
                "PLACE",
                "$unnamed",
                start,
                end,
            )
    help_ = _CHARACTERS.get(word, "")
    if lexed.start and lexed.text[start - 1] == word:
        return None, None  # one message for a row of them
    if not help_ and not word.isprintable():
        help_ = "leave it out: it cannot be seen"
    return _said(messages.UnknownCharacter(visible(word), help_ or "leave it out"), span), None


def _comment(lexed: Lexed) -> Diagnostic:
    """A comment as other languages write it."""
    word = lexed.word.strip()
    span = Span(lexed.start, lexed.end)
    mark = "#" if word[0] == "#" else word[:2]
    if mark == "/*" and not (word.endswith("*/") and len(word) > 3):
        close = "*/; better, write -- before each of its lines"
        return _said(messages.Unclosed("a comment", close), Span(lexed.start, lexed.start + 2))
    body = word[len(mark) : -2 if mark == "/*" else None].strip()
    rest = lexed.text[lexed.end : (lexed.text + "\n").find("\n", lexed.end)].strip()
    indent = lexed.word[: len(lexed.word) - len(lexed.word.lstrip())]
    new = indent + "\n".join(f"-- {line.strip()}".rstrip() for line in body.split("\n"))
    written = "/* … */" if mark == "/*" else f"{mark} …"
    return _said(messages.Respelled(written, "-- …"), span, None if rest else new)


def _open(lexed: Lexed) -> tuple[Diagnostic, Token]:
    """A quote that nothing closes: it is taken to go on to the line's end, but for a semicolon there."""
    start, quote = lexed.start, lexed.word[0]
    written = lexed.word.rstrip()
    kind = "STRING" if quote == "'" else "QNAME"
    what = "a text" if quote == "'" else "a name in double quotes"
    said = _said(messages.Unclosed(what, quote), Span(start, start + 1))
    if not written.endswith(";"):
        return said, (kind, written + "x" * (len(written) == 1) + quote, start, lexed.end)
    kept = written.rstrip(";").rstrip()
    lexed.tokens.append((kind, kept + "x" * (len(kept) == 1) + quote, start, start + len(kept)))
    return said, ("SEMICOLON", ";", start + len(written) - 1, lexed.end)


def _respelled(word: str, span: Span) -> tuple[Diagnostic, Token]:
    start, end = span.start, span.end
    if word[0] == "`":
        name = '"' + word[1:-1].replace('"', '""') + '"'
        return _said(messages.Respelled(word, name), span, name), ("QNAME", name, start, end)
    if word[0] in "‘“":
        text = "'" + word[1:-1].replace("'", "''") + "'"
        return _said(messages.Respelled(_short(word), _short(text)), span, text), ("STRING", text, start, end)
    if word[0] in "$@":
        place = "$" + word.strip("${}@")
        return _said(messages.Respelled(word, place), span, place), ("PLACE", place, start, end)
    meant = {"==": "=", "&&": "and", "≠": "<>", "≤": "<=", "≥": ">="}[word]
    return _said(messages.Respelled(word, meant), span, meant), ("AND" if meant == "and" else "", meant, start, end)


def _number(word: str) -> str | None:
    if re.fullmatch(r"\.[0-9]+", word):
        return "0" + word
    if re.fullmatch(r"[0-9]+\.", word):
        return word[:-1]
    if re.fullmatch(r"[0-9]{1,15}(_[0-9]{1,15}){1,5}", word):
        return word.replace("_", "")
    if re.fullmatch(r"[0-9]{1,15}(\.[0-9]{0,15})?[eE][+-]?(0?[0-9]|1[0-5])", word):
        return f"{Decimal(word):f}"
    return None


def _said(message: Message, span: Span, replacement: str | None = None, certain: bool = True) -> Diagnostic:
    fix = None if replacement is None else Fix((Edit(span, replacement),), certain)
    return Diagnostic(message, span, (), fix)


def visible(character: str) -> str:
    """A character as it can be shown."""
    if character.isprintable() and not character.isspace():
        return character
    name = unicodedata.name(character, "")
    return f"U+{ord(character):04X}" + (f" ({name.lower()})" if name else "")


def _short(text: str) -> str:
    text = "".join(c if c.isprintable() else " " for c in text)
    return text if len(text) <= 30 else text[:29] + "…"


class Trouble:
    """Where the parser stands: the tokens, the one that does not fit, what would fit, where its statement begins."""

    def __init__(
        self,
        text: str,
        tokens: list[Token],
        at: int,
        first: int,
        start: str,
        wanted: set[str],
        fits: Callable[..., bool],
        fits_without: Callable[..., bool],
        kinds: list[tuple[str, str]],
    ) -> None:
        self.text, self.tokens, self.at, self.first, self.start = text, tokens, at, first, start
        self.wanted, self.fits, self.fits_without, self.kinds = wanted, fits, fits_without, kinds
        self.token = tokens[at]
        self.kind, self.word, self.begin, self.end = self.token
        self.lower = self.word.lower()
        self.before = tokens[at - 1] if at else ("", "", self.begin, self.begin)
        self.after = tokens[at + 1] if at + 1 < len(tokens) else self.token
        self.head = tokens[first]

    @property
    def span(self) -> Span:
        """Of the token; at the end of the text, of the last one there was."""
        if self.kind == "$END" and self.at:
            return Span(self.before[2], self.before[3])
        return Span(self.begin, max(self.end, self.begin))

    def new(self, kind: str, word: str = "") -> Token:
        return (kind, word, self.begin, self.begin)

    def unmatched(self, opening: str, closing: str, first: int) -> Token | None:
        """The last token of an opening kind that nothing closes."""
        opened: list[Token] = []
        for token in self.tokens[first : self.at]:
            if token[0] == opening:
                opened.append(token)
            elif token[0] == closing and opened:
                opened.pop()
        return opened[-1] if opened else None


def is_else_if(word: str) -> bool:
    """True for what other languages write for `else if`."""
    return word.lower() in ("elseif", "elif", "elsif")


def begins_statement(text: str, tokens: list[Token], at: int, schema: bool) -> bool:
    """True if a statement surely begins with this token: it is the first on its line, and goes on like one."""
    kind, _, start, _ = tokens[at]
    if text[text.rfind("\n", 0, start) + 1 : start].strip():
        return False
    if schema:
        return kind == "CREATE"
    after = tokens[at + 1][0] if at + 1 < len(tokens) else "$END"
    match kind:
        case "STEP" | "PROGRAM":
            return bool(re.match(r"[^\W\d]", tokens[at + 1][1])) if at + 1 < len(tokens) else False
        case "ANSWER":
            return after in ("STRING", "QNAME")
        case "FOR" | "IF" | "ASSERT" | "RETURN":
            return True
    return False


def explain(t: Trouble) -> Said:
    """The message about the token that does not fit, and how to go on."""
    for rule in (_quotes, _statement, _blocks, _steps, _commas, _ends, _spellings, _operations, _schemas):
        said = rule(t)
        if said is not None:
            return said
    return _generic(t)


def _at(t: Trouble, message: Message) -> Said:
    return _said(message, t.span), None


def _odd(t: Trouble, expected: str, instead: str, found: str = "", repair: Repair = None) -> Said:
    return _said(messages.Unexpected(found or _found(t), expected, instead), t.span), repair


def _quotes(t: Trouble) -> Said | None:
    kind, word, start, end = t.before
    if kind in ("STRING", "QNAME") and "\n" in word and end == t.begin and t.kind != "SEMICOLON":
        return _said(messages.Unclosed("a text", "'"), Span(start, start + 1)), None
    for number in range(t.first, min(t.at + 1, len(t.tokens) - 1)):
        one, two = t.tokens[number], t.tokens[number + 1]
        if one[0] == two[0] == "MINUS" and one[3] == two[2]:
            line_end = (t.text + "\n").find("\n", one[2])
            message = messages.Respelled(_short(t.text[one[2] : line_end]), _short("-- " + t.text[two[3] : line_end]))
            diagnostic = _said(message, Span(one[2], two[3]), "-- ")
            if number < t.at:
                return diagnostic, None
            last = t.at
            while t.tokens[last][0] != "$END" and t.tokens[last][2] < line_end:
                last += 1
            return diagnostic, (last - t.at, ())
    return None


def _statement(t: Trouble) -> Said | None:
    """Where a statement should begin."""
    if t.at != t.first or not ({"item", "schema_item"} & t.wanted or t.fits("STEP")):
        return None
    if t.start == "schema":
        return None
    if t.kind == "RBRACE":
        return _odd(t, "a statement", "leave it out: no { is open here", "}", (1, ()))
    if t.kind == "$END":
        return None
    if t.kind == "PROGRAM":
        return _at(t, messages.SecondHeader("keep one program in a file; its header stands before all else"))
    if t.lower in ("end", "endif", "fi", "done") and t.fits("RBRACE"):
        count = 2 if t.after[1].lower() in ("if", "for", "loop", "while") else 1
        if t.tokens[min(t.at + count, len(t.tokens) - 1)][0] == "SEMICOLON":
            count += 1
        span = Span(t.begin, t.tokens[t.at + count - 1][3])
        return _said(messages.Respelled(t.text[span.start : span.end], "}"), span, "}"), (
            count,
            (t.new("RBRACE", "}"),),
        )
    if t.lower in ("foreach", "foreach_row"):
        return _said(messages.Respelled(t.word, "for each"), t.span, "for each"), (1, (t.new("FOR"), t.new("EACH")))
    if t.kind in _OPERATIONS:
        return (
            _said(messages.OutsideStep(t.lower), t.span),
            (0, (t.new("STEP"), t.new("NAME", "unnamed"), t.new("COLON"))),
        )
    if t.lower in _GRAPH:
        return _at(t, messages.OutsideStep(t.lower))
    if t.kind == "ELSE":
        return _odd(t, "a statement", "else stands directly behind the } of an if", "else")
    if t.lower in _NOT_STATEMENTS and t.after[1] not in (":", "->"):
        return _at(t, messages.NotInLanguage(t.lower, _NOT_STATEMENTS[t.lower]))
    if t.kind == "NAME" and t.after[1] in (":", "->") and t.fits("STEP"):
        message = messages.StepForm(f"{t.word} is a step without the word step", "expected step")
        return _said(message, Span(t.begin, t.begin), "step "), (0, (t.new("STEP"),))
    return None


def _blocks(t: Trouble) -> Said | None:
    """Braces of for and if."""
    if t.kind == "$END" and t.fits("RBRACE"):
        opened = t.unmatched("LBRACE", "RBRACE", 0)
        if opened is not None:
            return _said(messages.Unclosed("a block", "}"), Span(opened[2], opened[3])), (0, (t.new("RBRACE"),))
    if t.before[0] == "RBRACE" and t.fits("ELSE") and is_else_if(t.word):
        return _said(messages.Respelled(t.word, "else if"), t.span, "else if"), (1, (t.new("ELSE"), t.new("IF")))
    if "block" in t.wanted or t.fits("LBRACE"):
        if t.lower in (":", "do", "then", "loop", "begin") and t.head[0] in ("FOR", "IF", "ELSE"):
            return _said(messages.Respelled(t.word, "{"), t.span, "{"), (1, (t.new("LBRACE"),))
        if "block" in t.wanted and t.kind == "IF":
            return None
    if "loop_rows" in t.wanted:
        if t.kind == "NAME":
            what = f"{t.word} lacks its $: for each goes through a step's rows"
            said = _said(messages.BadPlaceholder(what, f"write ${t.word}"), t.span, f"${t.word}")
            return said, (1, (("PLACE", f"${t.word}", t.begin, t.end),))
        if t.kind in ("LPAR", "SELECT"):
            help_ = "make it a step: step name: select …; and write for each x in $name"
            return _odd(t, "$ and a step's name", help_, "a query")
    return None


def _steps(t: Trouble) -> Said | None:
    """The head of a step, and what begins its operation."""
    if "step_name" in t.wanted and (t.word in (":", "->") or t.kind in _OPERATIONS):
        said = _said(messages.StepForm("a step has a name", "expected the step's name"), t.span)
        return said, (0, (t.new("NAME", "unnamed"),))
    if t.head[0] == "STEP" and t.fits("COLON") and t.first + 1 < t.at:
        if t.kind in _OPERATIONS or t.lower in _GRAPH or t.kind == "LPAR":
            place = Span(t.before[3], t.before[3])
            said = _said(messages.StepForm("a : stands before the operation", "expected : here"), place, ":")
            return said, (0, (t.new("COLON"),))
        if t.kind == "EQUAL" or t.lower in ("as", "is", ":="):
            return _said(messages.Respelled(t.word, ":"), t.span, ":"), (1, (t.new("COLON"),))
        if t.kind == "COLON":
            return None
        return _at(t, messages.StepForm(f"{_found(t)} cannot stand here", "expected :"))
    if "shape" in t.wanted and "operation" not in t.wanted:
        return _odd(t, "one, maybe or many", "")
    if "operation" not in t.wanted:
        return None
    if t.lower == "detach" or t.kind == "SET":
        written = "detach delete" if t.lower == "detach" else "set"
        return _odd(t, _WANTED["operation"], f"write match (c:Label) where … {written} …")
    if t.lower in _NOT_STATEMENTS and t.after[0] != "LPAR":
        return _at(t, messages.NotInLanguage(t.lower, _NOT_STATEMENTS[t.lower]))
    if t.kind == "NAME" and t.after[0] == "LPAR":
        message = messages.Unexpected(t.word, "select, insert, update, delete or call", f"write call {t.word}(…)")
        fix = Fix((Edit(Span(t.begin, t.begin), "call "),), True)
        return Diagnostic(message, t.span, (), fix), (0, (t.new("CALL"),))
    if t.kind == "PLACE":
        name = t.word.partition(".")[0]
        help_ = f"write select … from {name}, or select {t.word} as column"
        return _odd(t, "select, insert, update, delete or call", help_)
    if t.lower in ("if", "case"):
        help_ = "write if condition { step …; }, or select case when … then … else … end as column"
        return _odd(t, "select, insert, update, delete or call", help_)
    return None


def _commas(t: Trouble) -> Said | None:
    if t.before[0] == "COMMA" and t.fits_without(t.kind):
        span = Span(t.before[2], t.before[3])
        return _said(messages.TrailingComma(_found(t)), span, ""), (-1, ())
    return None


def _ends(t: Trouble) -> Said | None:
    """The end of a statement that has not been finished."""
    schema = t.start == "schema"
    ends = t.kind in ("SEMICOLON", "$END", "RBRACE") or begins_statement(t.text, t.tokens, t.at, schema)
    opened = t.unmatched("LPAR", "RPAR", t.first)
    if ends and opened is not None and t.at > t.first:
        return (
            _said(messages.Unclosed("a parenthesis", ")"), Span(opened[2], opened[3])),
            (0, (t.new("RPAR"),)) if t.fits("RPAR") else None,
        )
    if opened is not None and t.kind not in ("RPAR", "NAME", "VBAR", "RANGE") and t.fits("RPAR", t.kind):
        return _said(messages.Unclosed("a parenthesis", ")"), Span(opened[2], opened[3])), (0, (t.new("RPAR"),))
    if t.kind == "RPAR" and opened is None and t.at > t.first:
        return _odd(t, _expected(t), "leave it out: no ( is open here", ")")
    if ends and t.kind != "SEMICOLON" and t.fits("SEMICOLON") and t.at > t.first:
        place = Span(t.before[3], t.before[3])
        after = _short(t.before[1])
        if t.before[0] == "RBRACE":
            return None
        return _said(messages.MissingSemicolon(after), place, ";"), (0, (t.new("SEMICOLON"),))
    return None


def _spellings(t: Trouble) -> Said | None:
    """What other languages write so."""
    if t.head[0] == "ASSERT" and t.fits("ELSE") and t.kind in ("COMMA", "STRING", "COLON"):
        if t.kind == "STRING":
            return _odd(t, "else", "write else before the message", "the message", (0, (t.new("ELSE"),)))
        meant = " else" if t.before[3] == t.begin else "else"
        return _said(messages.Respelled(t.word, "else"), t.span, meant), (1, (t.new("ELSE"),))
    if t.before[0] == "AS" and t.kind == "STRING" and "alias" in t.wanted and len(t.word) > 2 and "\n" not in t.word:
        name = '"' + t.word[1:-1].replace("''", "'").replace('"', '""') + '"'
        said = _said(messages.Respelled(_short(t.word), _short(name)), t.span, name)
        return said, (1, (("QNAME", name, t.begin, t.end),))
    if t.head[0] == "PROGRAM":
        if t.lower == "default" and t.fits("EQUAL"):
            return _said(messages.Respelled("default", "="), t.span, "="), (1, (t.new("EQUAL"),))
        if t.kind == "PLACE" and "parameter_name" in t.wanted and "." not in t.word:
            said = _said(messages.Respelled(t.word, t.word[1:]), t.span, t.word[1:])
            return said, (1, (("NAME", t.word[1:], t.begin, t.end),))
        if t.kind == "COLON" and "parameter_type" in t.wanted:
            said = _said(messages.Unexpected(":", "a type", "leave the colon out"), t.span, "")
            return said, (1, ())
        if t.kind == "LBRACE":
            return _odd(t, ";", "write ; behind the header: what follows stands without braces")
    if t.lower == "value" and t.fits("VALUES"):
        return _said(messages.Respelled(t.word, "values"), t.span, "values"), (1, (t.new("VALUES"),))
    if t.before[1].lower() == "interval" and t.kind == "NUMBER":
        return _odd(t, "a text in quotes", f"write interval '{t.word} {t.after[1]}'")
    point = t.kind in ("PLACE", "STRING", "TIMESTAMP", "DATE")
    if point and t.before[1].lower() == "of" and t.at > 1 and t.tokens[t.at - 2][0] == "AS":
        return _said(messages.NotYet("as of", "read the table as it is now"), Span(t.tokens[t.at - 2][2], t.end)), None
    if t.head[0] in ("ANSWER", "ASSERT") and "text" in t.wanted:
        help_ = "write the text in quotes, and values in braces: 'text {$step.column}'"
        return _odd(t, "a text in quotes", help_)
    return None


def _operations(t: Trouble) -> Said | None:
    """Inside an operation."""
    tokens, at = t.tokens, t.at
    if is_graph(tokens, t.first) and t.kind not in ("STRING", "QNAME") and (found := _graphs(t)) is not None:
        return found
    kinds = [token[0] for token in tokens[max(t.first, at - 4) : at]]
    if kinds[-3:-1] == ["INSERT", "INTO"] and t.kind in ("VALUES", "SELECT"):
        columns = (t.new("LPAR"), t.new("NAME", "columns"), t.new("RPAR"))
        return _said(messages.InsertColumns(_short(t.before[1]), t.lower), t.span), (0, columns)
    if kinds[-2:] == ["ON", "CONFLICT"] and t.lower == "do":
        return _odd(t, "( and the key's columns", "write on conflict (column, …) do …", "do")
    if t.kind == "STAR" and t.head[0] == "RETURN":
        return _odd(t, "$step, select … or a value", "return $step gives all its columns", "*")
    if t.kind == "DOT" and t.before[0] == "PLACE":
        return _odd(t, _expected(t), "a placeholder is $parameter or $step.column", ".")
    if t.kind == "DOT" and t.before[0] in ("NAME", "QNAME"):
        return _odd(t, _expected(t), "a table has one name: leave out what stands before the point", ".")
    if t.fits("ON") and t.fits("USING") and "JOIN" in [token[0] for token in tokens[t.first : at]]:
        return _odd(t, "on or using", "write on condition, using (column), or cross join")
    if t.before[0] == "IS" or kinds[-2:] == ["IS", "NOT"]:
        return _odd(t, "null, true, false or distinct from", "compare values with =")
    if t.kind == "COLON" and t.after[0] == "EQUAL":
        return _odd(t, _expected(t), "compare and set with =", ":=")
    if t.kind == "LSQB":
        return _odd(t, _expected(t), "a list is a column of a step, or a parameter: names text[]", "[")
    if kinds[-1:] == ["INSERT"] and t.kind == "OR":
        action = "nothing" if t.after[1].lower() == "ignore" else "update set …"
        help_ = f"write insert into t (…) values (…) on conflict (key) do {action}"
        return _at(t, messages.NotInLanguage(f"insert or {t.after[1].lower()}", help_))
    if kinds[-2:] == ["LIMIT", "NUMBER"] and t.kind == "COMMA" and t.after[0] == "NUMBER":
        skipped, most = t.before[1], t.after[1]
        span = Span(tokens[at - 2][2], t.after[3])
        meant = f"limit {most} offset {skipped}"
        return _said(messages.Respelled(f"limit {skipped}, {most}", meant), span, meant), (2, ())
    for number, unit, repair in ((at - 1, at, (1, ())), (at - 2, at - 1, None)):  # or it was taken for an alias
        if number >= t.first and tokens[number][0] == "NUMBER" and _UNIT.fullmatch(tokens[unit][1].lower()):
            span = Span(tokens[number][2], tokens[unit][3])
            written = t.text[span.start : span.end]
            meant = f"interval '{written}'"
            return _said(messages.Respelled(written, meant), span, meant), repair
    if t.kind == "COLON" and t.after[0] == "NAME" and t.fits("PLACE"):
        place = "$" + t.after[1]
        said = _said(messages.Respelled(":" + t.after[1], place), Span(t.begin, t.after[3]), place)
        return said, (2, (("PLACE", place, t.begin, t.after[3]),))
    return None


def is_graph(tokens: list[Token], first: int) -> bool:
    """True if a statement is a step whose operation is one on the graph."""
    for token in tokens[first : first + 20]:
        if token[0] in ("MATCH", "UNWIND", "MERGE", "OPTIONAL", "DETACH"):
            return True
        if token[0] == "CREATE" or token[0] in _OPERATIONS:
            return token[0] == "CREATE"
        if token[0] in ("SEMICOLON", "$END"):
            return False
    return False


def _graphs(t: Trouble) -> Said | None:
    """Inside an operation on the graph."""
    if t.lower in _NOT_CYPHER:
        return _at(t, messages.NotInLanguage(t.lower, _NOT_CYPHER[t.lower]))
    if t.kind == "VBAR":
        return _odd(t, "] or )", "labels stand before hops: -[r:A|B*1..3]->, and or joins conditions")
    if t.before[1].lower() == "skip" and t.kind in ("NUMBER", "PLACE"):
        return _said(messages.NotInLanguage("skip", _NOT_CYPHER["skip"]), Span(t.before[2], t.before[3])), None
    if t.lower == "as" and t.after[1].lower() == "of":
        return _at(t, messages.NotInLanguage("as of in a match", "read the table in a SQL step"))
    if t.kind == "LSQB" and t.fits("PLACE"):
        help_ = "a list is a column of a step, or a parameter: names text[]; each row of it: unwind $step as r"
        return _at(t, messages.NotInLanguage("a list in brackets", help_))
    if t.kind == "LBRACE" and t.before[0] == "EXISTS":
        help_ = "write optional match … and test a property of it with is not null, or exists (select …)"
        return _at(t, messages.NotInLanguage("exists { … }", help_))
    if t.kind == "PLUS" and t.after[0] == "EQUAL":
        return _odd(t, "=", "set each property by name: set c.a = …, c.b = …", "+=")
    if t.kind == "COLON" and t.before[0] in ("NAME", "QNAME") and "SET" in [k[0] for k in t.tokens[t.first : t.at]]:
        return _at(t, messages.NotInLanguage("a label that is set", "a label is a table: create another node"))
    return None


def _schemas(t: Trouble) -> Said | None:
    if t.start != "schema":
        return None
    if t.lower in ("auto_increment", "autoincrement") and t.fits("GENERATED"):
        meant = "generated always as identity"
        tokens = (t.new("GENERATED"), t.new("ALWAYS"), t.new("AS"), t.new("IDENTITY"))
        return _said(messages.Respelled(t.word, meant), t.span, meant), (1, tokens)
    if t.before[0] == "GENERATED" and t.lower == "by":
        return _odd(t, "always", "write generated always as identity", "by")
    if t.before[0] == "CREATE":
        return _at(
            t,
            messages.NotInLanguage(
                f"create {t.lower}", "a schema holds create table, create index and create property graph"
            ),
        )
    if t.before[0] == "TABLE" and t.kind == "IF":
        return _at(t, messages.NotInLanguage("if not exists", "leave it out"))
    if t.at == t.first and t.kind in _STATEMENTS:
        return _odd(t, "create table or create index", "a program stands in a file of its own", t.lower)
    if t.at == t.first and t.kind in _OPERATIONS:
        return _at(t, messages.NotInLanguage(f"{t.lower} in a schema", "a schema holds tables; a program changes rows"))
    if t.at == t.first and t.kind != "$END":
        return _odd(t, "create table or create index", "")
    return None


def _generic(t: Trouble) -> Said:
    if t.kind in ("VBAR", "RANGE"):
        help_ = _CHARACTERS.get(t.word, "a range is written between a and b")
        return _at(t, messages.UnknownCharacter(t.word, help_))
    named = {"alias", "column_name", "table_name", "table_ref", "step_name", "parameter_name", "column_label"}
    help_ = _HELPS.get(t.lower, "") if t.kind not in ("STRING", "QNAME") else ""
    if not help_ and t.lower in RESERVED and t.wanted & named:
        help_ = f'{t.lower} is a word of the language: as a name it stands in double quotes, "{t.word}"'
    if not help_ and t.kind == "STRING" and t.wanted & named:
        help_ = "names stand in double quotes, or without quotes"
    if not help_ and t.before[0] == "STRING" and t.before[3] == t.begin:
        help_ = "a quote inside a text is doubled: 'it''s'"
    if not help_ and t.before[1].lower() in _HELPS and t.before[0] == "NAME":
        help_ = f"{t.before[1].lower()}: {_HELPS[t.before[1].lower()]}"
    return _odd(t, _expected(t), help_)


def _found(t: Trouble) -> str:
    if t.kind == "$END":
        return "}" if t.text[t.begin : t.begin + 1] == "}" else "the end of the text"
    return _short(t.word)


def _expected(t: Trouble) -> str:
    for rule, words in _WANTED.items():
        if rule in t.wanted:
            return words
    could = {kind: _TEXTS.get(kind, text) for kind, text in t.kinds if kind not in _QUIET and t.fits(kind)}
    if len(could) > 1:
        could.pop("NAME", None)
    if t.fits("PLUS") and could.keys() - _OPERATORS:
        could = {kind: text for kind, text in could.items() if kind not in _OPERATORS and kind[:2] != "__"}
    told = [could.pop(kind) for kind in _FIRST if kind in could] + sorted(could.values())
    if len(told) > 7:
        told = [*told[:6], "…"]
    return " or ".join(filter(None, (", ".join(told[:-1]), told[-1]))) if told else "something else"


_OPERATORS = frozenset({"EQUAL", "AND", "OR", "IS", "NOT", "IN", "BETWEEN", "LIKE", "ILIKE"})
"""Kinds that could follow any value; they are not told where something else could too."""
_FIRST = (
    "SEMICOLON", "COMMA", "RPAR", "RBRACE", "COLON", "LBRACE", "LPAR", "EQUAL", "AS", "FROM", "JOIN", "ON", "USING",
    "SET", "VALUES", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "RETURNING", "AND", "WHEN", "THEN", "ELSE", "END",
)  # fmt: skip
"""Kinds in the order in which they are told; the others follow."""
