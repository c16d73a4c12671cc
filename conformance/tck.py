"""openCypher's own scenarios, as far as they are inside the language: on SQLite and on PostgreSQL.

    python conformance/tck.py FOLDER [--engine NAME]… [--show REASON] [--only TEXT]

FOLDER holds `features/**/*.feature` and `graphs/`. Of each scenario a typed schema is derived: a vertex table for each
set of labels, an edge table for each type between two of them, columns for the properties; then its graph is put into a
memory, its query is respelled (quotes, `skip`, a few functions' names), checked, run, and compared: rows, their order
where it counts, side effects, or that it is refused and why. A whole node or edge that is returned is named by a column
`ref` of its table, which tells which one it is; a list that is unwound is a parameter.

An outline counts once for each line of its examples. What is outside has one reason of a closed list. Exit code 1 if
anything inside does not pass.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from click import echo
from cypher import Outside, expected, labels_of, refused, respelled, tree_of, unwound, value_of, valued, values_of
from memories import empty

import com
from com.compiler import syntax
from com.compiler.parse import parse_program
from com.compiler.show import show
from com.node import children, rebuild
from com.source import NOWHERE, Source

# ---------------------------------------------------------------- scenarios


@dataclass
class Scenario:
    name: str
    given: list[str] = field(default_factory=list)
    parameters: list[list[str]] = field(default_factory=list)
    query: str = ""
    rows: list[list[str]] | None = None
    ordered: bool = False
    effects: dict[str, int] | None = None
    error: str = ""
    control: bool = False
    strange: bool = False


GRAPHS: dict[str, str] = {}
"""The graphs that scenarios name, by their names."""


def scenarios(folder: Path) -> Iterator[Scenario]:
    """All scenarios, outlines once for each example."""
    for path in (folder / "graphs").rglob("*.cypher"):
        GRAPHS[path.stem] = path.read_text(encoding="utf-8")
    for path in sorted((folder / "features").rglob("*.feature")):
        background: list[str] = []
        for part in re.split(r"\n(?=  (?:Scenario|Background))", path.read_text(encoding="utf-8"))[1:]:
            head, _, body = part.partition("\n")
            if head.strip().startswith("Background"):
                background = body.split("\n")
                continue
            name = f"{path.stem} {head.partition(':')[2].strip()}"
            text, *tables = re.split(r"\n\s*Examples:[^\n]*\n", body)
            lines = [*background, *text.split("\n")]
            if not tables:
                yield _read(name, lines)
            for table in tables:
                header, *rows = _table(table.split("\n"))
                for number, row in enumerate(rows, 1):
                    changed = lines
                    for column, value in zip(header, row, strict=True):
                        changed = [line.replace(f"<{column}>", value) for line in changed]
                    yield _read(f"{name} #{number}", changed)


def _table(lines: list[str]) -> list[list[str]]:
    rows = [line.strip() for line in lines if line.strip().startswith("|")]
    return [[re.sub(r"\\([|\\])", r"\1", cell.strip()) for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


def _read(name: str, lines: list[str]) -> Scenario:
    made = Scenario(name)
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        at += 1
        text, table = "", []
        if at < len(lines) and lines[at].strip() == '"""':
            end = next(i for i in range(at + 1, len(lines)) if lines[i].strip() == '"""')
            text = "\n".join(lines[at + 1 : end])
            at = end + 1
        start = at
        while at < len(lines) and lines[at].strip().startswith("|"):
            at += 1
        table = _table(lines[start:at])
        if line.endswith("having executed:"):
            made.given.append(text)
        elif line.endswith("executing query:"):
            made.query = text
        elif line.endswith("executing control query:"):
            made.control = True
        elif "parameters are" in line:
            made.parameters = table
        elif "result should be empty" in line:
            made.rows = []
        elif "result should be" in line:
            made.rows, made.ordered = table, "in order" in line
        elif "no side effects" in line:
            made.effects = {}
        elif "side effects should be" in line:
            made.effects = {row[0]: int(row[1]) for row in table}
        elif "should be raised" in line:
            made.error = line.rpartition(":")[2].strip()
        elif found := re.search(r"the (binary-tree-\d) graph", line):
            made.given.append(GRAPHS[found[1]])
        elif "there exists a procedure" in line:
            made.strange = True
    return made


# ---------------------------------------------------------------- graphs


@dataclass
class Element:
    """A node or an edge of the scenario's graph. `labels` of an edge are its type."""

    ref: int
    labels: tuple[str, ...]
    properties: dict[str, Any]
    ends: tuple[int, int] | None = None


class World:
    """The graph of a scenario, as its setup makes it, and the schema that holds it and what its query may make."""

    def __init__(self) -> None:
        self.nodes: list[Element] = []
        self.edges: list[Element] = []
        self.types: dict[tuple[str, str], set[str]] = {}
        self.sets: dict[tuple[str, ...], None] = {}
        self.kinds: dict[tuple[str, tuple[str, ...], tuple[str, ...]], None] = {}
        self.keys: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        self.together: set[str] = set()

    def make(self, text: str) -> None:
        """What a setup query creates."""
        try:
            graph = tree_of(text)
        except Outside as outside:
            raise Outside("a graph that is made in another way", outside.detail) from None
        scope: dict[str, Element] = {}
        if graph.returned is not None or not all(isinstance(c, syntax.Create) for c in graph.clauses):
            raise Outside("a graph that is made in another way", text)
        for clause in graph.clauses:
            assert isinstance(clause, syntax.Create)
            for pattern in clause.patterns:
                self._pattern(pattern, scope)

    def _pattern(self, pattern: syntax.Pattern, scope: dict[str, Element]) -> None:
        places = []
        for node in pattern.elements[::2]:
            assert isinstance(node, syntax.NodePattern)
            name = node.variable.text if node.variable else ""
            if name not in scope:
                made = Element(len(self.nodes) + 1, labels_of(node), values_of(node))
                self.nodes.append(made)
                scope[name or f" {made.ref}"] = made
                places.append(made)
            else:
                places.append(scope[name])
        for index, edge in enumerate(pattern.elements[1::2]):
            assert isinstance(edge, syntax.EdgePattern)
            a, b = places[index], places[index + 1]
            if edge.direction == "left":
                a, b = b, a
            self.edges.append(Element(len(self.edges) + 1, labels_of(edge), values_of(edge), (a.ref, b.ref)))

    # ------------------------------------------------------------ the schema

    def learn(self) -> None:
        """Tables for what is there."""
        by_ref = {n.ref: n for n in self.nodes}
        for node in self.nodes:
            self.sets.setdefault(node.labels)
            for name, value in node.properties.items():
                self.typed("n", name, value)
        for edge in self.edges:
            assert edge.ends is not None
            self.kinds.setdefault((edge.labels[0], by_ref[edge.ends[0]].labels, by_ref[edge.ends[1]].labels))
            for name, value in edge.properties.items():
                self.typed("e", name, value)

    def typed(self, kind: str, name: str, value: Any) -> None:
        if value is not None:
            self.types.setdefault((kind, name), set()).add(
                {bool: "bool", int: "int", float: "float", str: "text"}[type(value)]
            )

    def type_of(self, kind: str, name: str, otherwise: str) -> str:
        found = self.types.get((kind, name), set())
        if found == {"int", "float"}:
            return "float"
        if len(found) > 1:
            raise Outside("a property of several types, or of a type that com has not", name)
        return next(iter(found), otherwise)

    def schema(self, names: dict[str, set[str]], otherwise: str) -> str:
        """The schema as com text. `names`: of nodes and edges the properties that are named."""
        lines: list[str] = []
        vertices: list[str] = []
        edges: list[str] = []
        columns = {
            kind: [
                f"{quoted(name)} {self.type_of(kind, name, otherwise)}"
                for name in sorted(names[kind] | {n for k, n in self.types if k == kind})
            ]
            for kind in ("n", "e")
        }
        for labels in self.sets:
            uniques = [f"unique ({', '.join(map(quoted, key))})" for key in self.keys.get(labels, [])]
            body = ["com_key int primary key generated always as identity", "ref int", *columns["n"], *uniques]
            lines.append(f"create table {quoted(table_of(labels))} ({', '.join(body)});")
            said = [exact(labels), *labels, *(t for t in sorted(self.together) if set(t.split(":")) <= set(labels))]
            shown = " ".join(f"label {quoted(one)}" for one in dict.fromkeys(said))
            vertices.append(f"{quoted(table_of(labels))} {shown}")
        for number, (type_, source, end) in enumerate(self.kinds):
            one, two = quoted(table_of(source)), quoted(table_of(end))
            body = ["com_key int primary key generated always as identity", "ref int",
                    f"com_from int not null references {one} (com_key)",
                    f"com_to int not null references {two} (com_key)", *columns["e"]]  # fmt: skip
            lines.append(f"create table e{number} ({', '.join(body)});")
            edges.append(
                f"e{number} source key (com_from) references {one} (com_key)"
                f" destination key (com_to) references {two} (com_key) label {quoted(type_)}"
            )
        graph = f"create property graph g vertex tables ({', '.join(vertices)})"
        return "\n".join([*lines, graph + (f" edge tables ({', '.join(edges)})" if edges else "") + ";"])

    def fill(self, memory: Any) -> None:
        """Puts the graph into an empty memory."""
        place: dict[int, tuple[tuple[str, ...], int]] = {}
        counts: Counter[str] = Counter()
        quote = memory.link.quote
        memory.link.begin()

        def put(table: str, row: dict[str, Any]) -> int:
            counts[table] += 1
            row = {"com_key": counts[table], **row}
            names = list(row)
            known = memory.schema.table(table)
            wanted = {c.name: c.type.kind for c in known.columns}
            row = {k: float(v) if wanted[k] == "float" and v is not None else v for k, v in row.items()}
            binds = {f"p{i}": int(v) if isinstance(v, bool) and memory.engine == "sqlite" else v
                     for i, v in enumerate(row.values())}  # fmt: skip
            marks = ", ".join(literal(v, memory.engine) for v in binds.values())
            memory.link.run(f"insert into {quote(table)} ({', '.join(map(quote, names))}) values ({marks})", {})
            return counts[table]

        for node in self.nodes:
            place[node.ref] = node.labels, put(table_of(node.labels), {"ref": node.ref, **node.properties})
        kinds = list(self.kinds)
        for edge in self.edges:
            assert edge.ends is not None
            (a, from_), (b, to) = place[edge.ends[0]], place[edge.ends[1]]
            number = kinds.index((edge.labels[0], a, b))
            put(f"e{number}", {"ref": edge.ref, "com_from": from_, "com_to": to, **edge.properties})
        memory.link.commit()

    def read(self, memory: Any) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """All nodes and edges that a memory holds, by table and key: labels and properties."""
        nodes: dict[Any, Any] = {}
        edges: dict[Any, Any] = {}
        for labels in self.sets:
            nodes.update(self._rows(memory, table_of(labels), labels))
        for number, (type_, _, _) in enumerate(self.kinds):
            edges.update(self._rows(memory, f"e{number}", (type_,)))
        return nodes, edges

    def by_ref(self, memory: Any) -> dict[Any, Any]:
        """Nodes and edges as they are now, by kind and `ref`; those that are gone, as they were."""
        found: dict[Any, Any] = {("n", n.ref): (n.labels, n.properties) for n in self.nodes}
        found.update({("e", e.ref): (e.labels, e.properties) for e in self.edges})
        for kind, held in zip("ne", self.read(memory), strict=True):
            for (table, key), whole in held.items():
                ref = memory.link.ask(f"select ref from {memory.link.quote(table)} where com_key = {key}")[0][0]
                if ref is not None:
                    found[kind, ref] = whole
        return found

    @staticmethod
    def _rows(memory: Any, table: str, labels: tuple[str, ...]) -> Iterator[tuple[Any, Any]]:
        known = memory.schema.table(table)
        kept = [c for c in known.columns if c.name not in ("ref", "com_from", "com_to")]
        names = [c.name for c in kept]
        for row in memory.link.ask(
            f"select {', '.join(map(memory.link.quote, names))} from {memory.link.quote(table)}"
        ):
            values = dict(zip(names, row, strict=True))
            yield (table, values.pop("com_key")), (labels, {k: v for k, v in values.items() if v is not None})


def literal(value: Any, engine: str) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower() if engine == "postgres" else str(int(value))
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def table_of(labels: tuple[str, ...]) -> str:
    return "n_" + "_".join(labels)


def exact(labels: tuple[str, ...]) -> str:
    return "only " + ":".join(labels)


# ---------------------------------------------------------------- queries


def below(node: Any) -> Iterator[Any]:
    yield node
    for child in children(node):
        yield from below(child)


def prepared(world: World, graph: syntax.Graph) -> tuple[syntax.Graph, list[str], dict[str, set[str]]]:
    """The query with exact labels where it makes nodes and `ref` where it returns wholes; what each column is (value,
    node or edge); and the properties it names. The world learns what it may make."""
    kinds: dict[str, str] = {}
    made: dict[str, tuple[str, ...]] = {}
    matched: dict[str, set[tuple[str, ...]]] = {}
    names: dict[str, set[str]] = {"n": set(), "e": set()}
    for clause in graph.clauses:
        making = isinstance(clause, syntax.Create | syntax.Merge)
        patterns = getattr(clause, "patterns", None) or ((clause.pattern,) if isinstance(clause, syntax.Merge) else ())
        for pattern in patterns:
            if pattern.variable is not None:
                kinds[pattern.variable.text] = "p"
            for element in pattern.elements:
                node = isinstance(element, syntax.NodePattern)
                kind = "n" if node else "e"
                for label in element.labels:
                    if ":" in label.text:
                        world.together.add(label.text)
                for prop in element.properties:
                    names[kind].add(prop.name.text)
                    if making:
                        _learn_value(world, kind, prop)
                name = element.variable.text if element.variable else ""
                if name:
                    kinds.setdefault(name, kind)
                if node and (making and name not in made and name not in matched):
                    world.sets.setdefault(labels_of(element))
                    if name:
                        made[name] = labels_of(element)
                elif node and not making:
                    matched.setdefault(name, set()).add(labels_of(element))
                    if labels_of(element) and not any(set(labels_of(element)) <= set(s) for s in world.sets):
                        world.sets.setdefault(labels_of(element))
    _make_edge_tables(world, graph, made, matched)
    for node in below(graph):
        if isinstance(node, syntax.ColumnName) and node.table is not None and node.table.text in kinds:
            names.setdefault(kinds[node.table.text], set()).add(node.name.text)
        if isinstance(node, syntax.Assignment) and node.table is not None and node.table.text in kinds:
            kind = kinds[node.table.text]
            names.setdefault(kind, set()).add(node.column.text)
            _learn_value(world, kind, syntax.Property(node.column, node.value, NOWHERE))
    columns: list[str] = []
    if graph.returned is not None:
        for item in graph.returned.items:
            if isinstance(item, syntax.Star):
                raise Outside("a list, a map or a path as a value", "*")
            bare = item.expr.name.text if isinstance(item.expr, syntax.ColumnName) and item.expr.table is None else ""
            kind = kinds.get(bare, "")
            if kind == "p":
                raise Outside("a list, a map or a path as a value", "a path")
            if kind and bare in made:
                raise Outside("a whole node or edge that the query makes", bare)
            columns.append(kind or "value")

    def put(node: Any) -> Any:
        expr = node.expr if isinstance(node, syntax.Item) else None
        if isinstance(expr, syntax.ColumnName) and expr.table is None and kinds.get(expr.name.text) in ("n", "e"):
            ref = syntax.ColumnName(expr.name, syntax.Name("ref", False, NOWHERE), NOWHERE)
            return syntax.Item(ref, node.alias or syntax.Name(expr.name.text, True, NOWHERE), NOWHERE)
        if isinstance(node, syntax.Create | syntax.Merge):
            return _with_exact_labels(node, matched)
        return node

    return rebuild(graph, put), columns, names


def _learn_value(world: World, kind: str, prop: syntax.Property) -> None:
    try:
        world.typed(kind, prop.name.text, value_of(prop.value))
    except Outside:
        return


def _with_exact_labels(clause: Any, matched: dict[str, Any]) -> Any:
    seen = set(matched)

    def of(pattern: syntax.Pattern) -> syntax.Pattern:
        elements = []
        for element in pattern.elements:
            if isinstance(element, syntax.NodePattern):
                name = element.variable.text if element.variable else ""
                if not name or name not in seen:
                    label = syntax.Name(exact(labels_of(element)), True, NOWHERE)
                    element = element.with_(labels=(label,))
                seen.add(name)
                matched.setdefault(name, set()) if name else None
            elements.append(element)
        return pattern.with_(elements=tuple(elements))

    if isinstance(clause, syntax.Merge):
        return clause.with_(pattern=of(clause.pattern))
    return clause.with_(patterns=tuple(of(p) for p in clause.patterns))


def _make_edge_tables(world: World, graph: syntax.Graph, made: Any, matched: Any) -> None:
    """Tables for the edges that the query may make, and for types that it only asks for."""
    for clause in graph.clauses:
        patterns = getattr(clause, "patterns", None) or ((clause.pattern,) if isinstance(clause, syntax.Merge) else ())
        for pattern in patterns:
            nodes = pattern.elements[::2]
            for index, edge in enumerate(pattern.elements[1::2]):
                ends = [_could_be(world, nodes[index + i], made, matched) for i in (0, 1)]
                if edge.direction == "left":
                    ends.reverse()
                for label in edge.labels:
                    if isinstance(clause, syntax.Match) and any(k[0] == label.text for k in world.kinds):
                        continue
                    for a in ends[0]:
                        for b in ends[1]:
                            world.kinds.setdefault((label.text, a, b))
        if isinstance(clause, syntax.Merge) and len(clause.pattern.elements) == 1:
            node = clause.pattern.elements[0]
            key = tuple(p.name.text for p in node.properties)
            labels = labels_of(node)
            seen = [tuple(n.properties.get(k) for k in key) for n in world.nodes if n.labels == labels]
            others = [n for n in world.nodes if n.labels != labels and set(labels) <= set(n.labels)]
            if not key or len(set(seen)) < len(seen) or others:
                raise Outside("a merge that is not by a key, or of more than an edge", str(key))
            world.keys.setdefault(labels, []).append(key)


def _could_be(world: World, node: Any, made: Any, matched: Any) -> list[tuple[str, ...]]:
    name = node.variable.text if node.variable else ""
    if name in made:
        return [made[name]]
    wanted = set(labels_of(node)).union(*(matched.get(name, ()) if name else ()))
    return [s for s in world.sets if wanted <= set(s)]


# ---------------------------------------------------------------- what comes out

_CODES = {
    "CM401": "a number of more digits than an engine keeps exactly",
    "CM344": "nothing in the graph could ever match, which com refuses",
    "CM345": "hops without a bound, or of more than 8",
    "CM346": "a property of several types, or of a type that com has not",
    "CM106": "a function or operator that com has not",
    "CM204": "a function or operator that com has not",
    "CM301": "types that do not fit, which com refuses",
    "CM302": "types that do not fit, which com refuses",
    "CM304": "types that do not fit, which com refuses",
    "CM305": "types that do not fit, which com refuses",
    "CM306": "types that do not fit, which com refuses",
    "CM310": "types that do not fit, which com refuses",
    "CM326": "types that do not fit, which com refuses",
    "CM231": "a list, a map or a path as a value",
    "CM228": "a label that is set, removed, or tested in an expression",
}
_CLAUSES = (
    ("is named before", "an edge that is bound, and matched again"),
    ("several tables", "a node or edge of several tables is written"),
    ("gives nothing", "a match that returns nothing"),
    ("equals null", "types that do not fit, which com refuses"),
    ("more than", "nothing in the graph could ever match, which com refuses"),
    ("merged", "a merge that is not by a key, or of more than an edge"),
    ("merge", "a merge that is not by a key, or of more than an edge"),
)
_ERRORS = {
    "UndefinedVariable": "CM230 ",
    "VariableAlreadyBound": "CM347 .*(is there already|is named before)|CM210 ",
    "VariableTypeConflict": "CM347 .*(stands for a node here|is named before)",
    "RelationshipUniquenessViolation": "CM347 .*is named before",
    "NoSingleRelationshipType": "CM347 an edge is made with one label",
    "RequiresDirectedRelationship": "CM347 an edge is made in one direction",
    "CreatingVarLength": "CM347 an edge is made in one direction, by itself",
    "AmbiguousAggregationExpression": "CM311 ",
    "InvalidAggregation": "CM312 ",
    "IntegerOverflow": "CM304 .*int",
    "NegativeIntegerArgument": "CM322 |CM509 ",
    "ColumnNameConflict": "CM210 ",
    "DeleteConnectedNode": "CM506 ",
}
"""Errors that are com's too, and how its own begin."""


def told(scenario: Scenario, found: list[Any]) -> bool:
    """True if one of com's messages is the error that is expected."""
    return any(re.match(_ERRORS[scenario.error], f"{d.code} {d.text}") for d in found)


def outside(diagnostic: Any) -> Outside:
    if diagnostic.code == "CM347":
        for words, reason in _CLAUSES:
            if words in diagnostic.text:
                return Outside(reason, diagnostic.text)
        return Outside("a query that writes before it reads, or writes one thing twice", diagnostic.text)
    if diagnostic.code == "CM231" and "run of edges" in diagnostic.text:
        return Outside("the variable of several hops", diagnostic.text)
    reason = _CODES.get(diagnostic.code)
    if reason is None:
        return Outside("other syntax", f"{diagnostic.code} {diagnostic.text}")
    return Outside(reason, f"{diagnostic.code} {diagnostic.text}")


def run(scenario: Scenario, engine: str, whole: Counter[str]) -> str:
    """Runs a scenario; what is wrong, or nothing. `Outside` if it is not in the language."""
    if scenario.strange or scenario.control:
        raise Outside("with, call, union, foreach or several queries", "procedures, control queries")
    header, given = parameters_of(scenario)
    world = World()
    for text in scenario.given:
        world.make(text)
    world.learn()
    if scenario.error and scenario.error not in _ERRORS:
        raise Outside("another error is expected than com has", scenario.error)
    if re.search(r"[^/]/[^/]", re.sub(r"'[^']*'", "", scenario.query)):
        raise Outside("int division, which com does in reals", scenario.query)
    only = re.match(r"\s*RETURN\b", scenario.query, re.IGNORECASE) is not None
    if only and re.search(r"(['\"])-?\d+(\.\d+)?\1", scenario.query):
        raise Outside("a text that com reads as the number it is compared with", scenario.query)
    if re.search(r"[=<>]\s*\w+\s+IS\s+(NOT\s+)?NULL", scenario.query, re.IGNORECASE):
        raise Outside("is null behind a comparison, which binds looser in SQL", scenario.query)
    if only:
        text, columns = returned(scenario.query)
        names: dict[str, set[str]] = {"n": set(), "e": set()}
    else:
        query, row, values = unwound(scenario.query)
        graph, columns, names = prepared(world, valued(tree_of(query), row))
        step = syntax.Step(syntax.Name("s", False, NOWHERE), None, graph, (), NOWHERE)
        if row:
            kind = {bool: "bool", int: "int", float: "float", str: "text"}[type(values[0])]
            header.append(f"given many {{{quoted(row)} {kind}}}")
            given["given"] = [{row: v} for v in values]
        text = "program p;\n" + show(step) + "\n" + ("return $s;\n" if columns else "")
    text = text.replace("program p;", f"program p({', '.join(header)});" if header else "program p;", 1)
    if not world.sets:
        world.sets.setdefault(())
    found: list[Any] = []
    for otherwise in ("text", "int", "bool", "float"):
        schema = com.read_schema(world.schema(names, otherwise))
        found = [d for d in com.check(text, schema) if d.severity == "error"]
        if not found:
            break
    if scenario.error and scenario.error != "DeleteConnectedNode":
        if told(scenario, found):
            return ""
        shown = ", ".join(f"{d.code} {d.text}" for d in found)
        raise Outside("another error is expected than com has", f"{scenario.error}: {shown}")
    if found:
        raise outside(found[0])
    with tempfile.TemporaryDirectory() as folder, empty(engine, Path(folder)) as url, com.create(url, schema) as memory:
        world.fill(memory)
        before = world.read(memory)
        try:
            program = com.compile(text, memory.schema, engine=engine)
        except com.CheckError as refused:
            raise outside(refused.diagnostics[0]) from None
        try:
            outcome = memory.execute(program, given)
        except com.RunError as failed:
            if scenario.error and told(scenario, [failed.diagnostic]):
                return ""
            return f"it fails: {failed}"
        if scenario.error:
            return "it does not fail"
        after = world.read(memory)
        wrong = _rows_differ(scenario, world.by_ref(memory), columns, outcome)
        if wrong:
            return wrong
        whole["whole"] += any(c != "value" for c in columns)
        whole["only"] += only
        return _effects_differ(scenario, before, after)


def parameters_of(scenario: Scenario) -> tuple[list[str], dict[str, Any]]:
    """The parameters of a scenario as a program declares them, and their values."""
    header: list[str] = []
    given: dict[str, Any] = {}
    for name, cell in scenario.parameters:
        if cell[:1] in "[{" or cell == "null":
            raise Outside("a parameter that is a list or a map", cell)
        value = expected(cell)
        header.append(f"{name} { ({bool: 'bool', int: 'int', float: 'float', str: 'text'}[type(value)]) }")
        given[name] = value
    return header, given


def returned(text: str) -> tuple[str, list[str]]:
    """A query that only returns, as the statement that com has for it."""
    program = f"program p;\n{respelled(text).strip().rstrip(';')};\n"
    tree, found = parse_program(Source(program))
    errors = [d for d in found if d.severity == "error"]
    if errors:
        raise refused(errors[0], program)
    if len(tree.body) != 1 or not isinstance(tree.body[0], syntax.ReturnValues):
        raise Outside("other syntax", program)
    return program, ["value"] * len(tree.body[0].items)


def _rows_differ(scenario: Scenario, wholes: dict[Any, Any], columns: list[str], outcome: Any) -> str:
    if scenario.rows is None or not columns:
        return ""
    wanted = [tuple(expected(cell) for cell in row) for row in scenario.rows[1:]]
    got = [tuple(_given(wholes, kind, value) for kind, value in zip(columns, row, strict=True)) for row in outcome.rows]
    if scenario.ordered:
        return "" if wanted == got else f"wanted {wanted}, got {got}"
    return "" if Counter(wanted) == Counter(got) else f"wanted {wanted}, got {got}"


def _given(wholes: dict[Any, Any], kind: str, value: Any) -> Any:
    if kind == "value" or value is None:
        return float(value) if isinstance(value, Decimal) else value
    labels, properties = wholes[kind, value]
    return (kind, labels, frozenset(properties.items()))


def _effects_differ(scenario: Scenario, before: Any, after: Any) -> str:
    if scenario.effects is None:
        return ""
    made: dict[str, int] = {}

    def note(name: str, old: set[Any], new: set[Any]) -> None:
        for sign, number in (("+", len(new - old)), ("-", len(old - new))):
            if number:
                made[sign + name] = number

    note("nodes", set(before[0]), set(after[0]))
    note("relationships", set(before[1]), set(after[1]))
    note("labels", {x for v in before[0].values() for x in v[0]}, {x for v in after[0].values() for x in v[0]})
    note("properties", *({(k, *p) for part in side for k, v in part.items() for p in v[1].items()}
                         for side in (before, after)))  # fmt: skip
    return "" if made == scenario.effects else f"effects wanted {scenario.effects}, got {made}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engine", action="append")
    parser.add_argument("--show", help="print the scenarios that are outside for this reason")
    parser.add_argument("--only", default="", help="only scenarios with this in their name")
    given = parser.parse_args()
    bad = 0
    for engine in given.engine or ["sqlite", "postgres"]:
        reasons: Counter[str] = Counter()
        whole: Counter[str] = Counter()
        inside: set[str] = set()
        known: set[str] = set()
        passed = failed = number = 0
        for scenario in scenarios(given.folder):
            if given.only not in scenario.name:
                continue
            number += 1
            known.add(scenario.name.partition(" #")[0])
            try:
                wrong = run(scenario, engine, whole)
            except Outside as problem:
                reasons[problem.reason] += 1
                if given.show and given.show in problem.reason:
                    echo(f"{scenario.name}: {problem.detail}")
                continue
            inside.add(scenario.name.partition(" #")[0])
            if wrong:
                failed += 1
                echo(f"FAILED {scenario.name}: {wrong}\n{scenario.query}")
            else:
                passed += 1
        echo(f"{engine}: {number} cases: {passed} passed, {failed} failed, {sum(reasons.values())} outside;")
        echo(f"  {len(inside)} of {len(known)} scenarios and outlines are inside, if one example is enough;")
        echo(f"  {whole['only']} cases only return values, {whole['whole']} return whole nodes or edges")
        for reason, count in reasons.most_common():
            echo(f"  {count:5} outside: {reason}")
        bad += failed
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
