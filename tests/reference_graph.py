"""What a match finds, worked out by trying everything: a second meaning of patterns, over networkx.

`drawn(random)` makes a graph, as a networkx MultiDiGraph and as rows, and a query over it as data; `text(query)` is the
query as com writes it, `rows(graph, query)` what it must
give. Nothing here knows of tables or joins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

import networkx as nx

SCHEMA = """
create table person (id int primary key, name text not null, age int, home int references place (id));
create table place (id int primary key, name text not null, size int);
create table knows (a int not null references person (id), b int not null references person (id), w int, primary key (a, b));
create table visits (id int primary key, who int not null references person (id), what int references place (id), w int);
create table near (id int primary key, a int not null references place (id), b int not null references place (id), w int);
create property graph g
  vertex tables (person label Person, place label Place)
  edge tables (
    knows source key (a) references person (id) destination key (b) references person (id) label KNOWS properties (w),
    visits source key (who) references person (id) destination key (what) references place (id) label VISITS properties (w),
    near source key (a) references place (id) destination key (b) references place (id) label NEAR properties (w),
    person source key (id) references person (id) destination key (home) references place (id) label LIVES no properties
  );
"""
PROPERTIES = {"Person": ("name", "age"), "Place": ("name", "size")}
NAMES = ("a", "b", "c")


@dataclass
class Condition:
    """`variable.prop op value`; the value is a number or text, or (variable, prop)."""

    variable: str
    prop: str
    op: str
    value: Any


@dataclass
class Node:
    variable: str
    labels: tuple[str, ...]
    given: dict[str, Any]


@dataclass
class Edge:
    variable: str
    labels: tuple[str, ...]
    direction: str
    hops: tuple[int, int] | None
    least: int | None
    """Only edges of more than this `w`."""


@dataclass
class Path:
    variable: str
    shortest: bool
    nodes: list[Node]
    edges: list[Edge]


@dataclass
class Clause:
    optional: bool
    paths: list[Path]
    where: list[Condition]


@dataclass
class Query:
    clauses: list[Clause] = field(default_factory=list)
    returned: list[tuple[str, str]] = field(default_factory=list)


# ---------------------------------------------------------------- drawing


def drawn(random: Random) -> tuple[Any, dict[str, list[tuple[Any, ...]]], Query]:
    """A graph, its rows by table, and a query."""
    graph = nx.MultiDiGraph()
    rows: dict[str, list[tuple[Any, ...]]] = {t: [] for t in ("place", "person", "knows", "visits", "near")}
    small = lambda: random.choice([None, 1, 2, 3])  # noqa: E731
    places, people = random.randint(1, 3), random.randint(1, 4)
    for i in range(1, places + 1):
        name, size = random.choice(NAMES), small()
        graph.add_node(("Place", i), label="Place", name=name, size=size)
        rows["place"].append((i, name, size))
    for i in range(1, people + 1):
        name, age = random.choice(NAMES), small()
        home = random.choice([None, *range(1, places + 1)])
        graph.add_node(("Person", i), label="Person", name=name, age=age)
        rows["person"].append((i, name, age, home))
        if home is not None:
            graph.add_edge(("Person", i), ("Place", home), label="LIVES", w=None)
    for a in range(1, people + 1):
        for b in range(1, people + 1):
            if random.random() < 0.35:
                w = small()
                graph.add_edge(("Person", a), ("Person", b), label="KNOWS", w=w)
                rows["knows"].append((a, b, w))
    for i in range(random.randint(0, 4)):
        who, what, w = random.randint(1, people), random.choice([None, random.randint(1, places)]), small()
        rows["visits"].append((i, who, what, w))
        if what is not None:
            graph.add_edge(("Person", who), ("Place", what), label="VISITS", w=w)
    for i in range(random.randint(0, 4)):
        a, b, w = random.randint(1, places), random.randint(1, places), small()
        rows["near"].append((i, a, b, w))
        graph.add_edge(("Place", a), ("Place", b), label="NEAR", w=w)
    return graph, rows, _Maker(random).query()


class _Maker:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.nodes: dict[str, tuple[str, ...]] = {}
        self.edges: dict[str, tuple[str, ...]] = {}
        self.paths: list[str] = []

    def chance(self, of: float) -> bool:
        return self.random.random() < of

    def query(self) -> Query:
        made = Query()
        for number in range(self.random.choice([1, 1, 1, 2, 2, 3])):
            made.clauses.append(self.clause(optional=self.chance(0.6 if number else 0.05)))
        for name in self.nodes:
            props = ["name", "age", "size"]
            wanted = [p for p in props if any(p in PROPERTIES[la] for la in self.nodes[name] or ("Person", "Place"))]
            made.returned += [(name, p) for p in wanted if self.chance(0.7)]
        made.returned += [(name, "w") for name in self.edges if self.has_weight(name)]
        made.returned += [(name, "length") for name in self.paths]
        if not made.returned:
            made.returned = [(next(iter(self.nodes)), "name")]
        return made

    def has_weight(self, name: str) -> bool:
        return self.edges[name] != ("LIVES",)

    def clause(self, optional: bool) -> Clause:
        paths = [self.path() for _ in range(self.random.choice([1, 1, 1, 2]))]
        where = [self.condition() for _ in range(self.random.choice([0, 0, 1, 2]))]
        return Clause(optional, paths, [w for w in where if w is not None])

    def condition(self) -> Condition | None:
        name = self.random.choice(list(self.nodes))
        labels = self.nodes[name] or ("Person", "Place")
        prop = self.random.choice(PROPERTIES[self.random.choice(labels)])
        op = self.random.choice(["=", "<>", "<", ">="])
        if prop == "name":
            other = self.random.choice(list(self.nodes))
            value: Any = (other, "name") if self.chance(0.3) else self.random.choice(NAMES)
        else:
            value = self.random.randint(1, 3)
        return Condition(name, prop, op, value)

    def path(self) -> Path:
        shortest = self.chance(0.2)
        edges_wanted = 1 if shortest else self.random.choice([0, 1, 1, 2, 2])
        nodes = [self.node()]
        edges = []
        for _ in range(edges_wanted):
            edges.append(self.edge(shortest))
            nodes.append(self.node())
        variable = ""
        if self.chance(0.3) or shortest:
            variable = f"p{len(self.paths)}"
            self.paths.append(variable)
        return Path(variable, shortest, nodes, edges)

    def node(self) -> Node:
        if self.nodes and self.chance(0.25):
            return Node(self.random.choice(list(self.nodes)), (), {})
        name = f"n{len(self.nodes)}"
        labels = self.random.choice([(), ("Person",), ("Person",), ("Place",), ("Person", "Place")])
        given = {}
        if self.chance(0.25):
            given = {"name": self.random.choice(NAMES)}
        if self.nodes and self.chance(0.2) and not given:
            return Node("", labels, given)
        self.nodes[name] = labels
        return Node(name, labels, given)

    def edge(self, shortest: bool) -> Edge:
        labels = self.random.choice(
            [(), ("KNOWS",), ("KNOWS",), ("VISITS",), ("NEAR",), ("KNOWS", "VISITS"), ("LIVES",)]
        )
        direction = self.random.choice(["right", "right", "left", "both"])
        hops = None
        if shortest:
            labels = self.random.choice([("KNOWS",), ("NEAR",)])
            hops = (self.random.choice([0, 1]), self.random.choice([1, 2, 3, 8]))
        elif self.chance(0.25):
            low = self.random.choice([0, 1, 1, 2])
            hops = (low, low + self.random.choice([0, 1, 2]))
        weighed = "LIVES" not in labels and labels
        least = self.random.choice([1, 2]) if weighed and self.chance(0.3) else None
        name = ""
        if hops is None and self.chance(0.5):
            name = f"e{len(self.edges)}"
            self.edges[name] = labels
        return Edge(name, labels, direction, hops, least)


# ---------------------------------------------------------------- as com writes it


def text(query: Query) -> str:
    """The query as a step's operation."""
    lines = []
    numbers = count()
    for clause in query.clauses:
        where = " and ".join(_condition(c) for c in clause.where)
        lines.append(
            ("optional match " if clause.optional else "match ")
            + ", ".join(_path(path, next(numbers)) for path in clause.paths)
            + (f" where {where}" if where else "")
        )
    outputs = [f"length({v})" if p == "length" else f"{v}.{p}" for v, p in query.returned]
    return "\n".join([*lines, "return " + ", ".join(f"{o} as c{i}" for i, o in enumerate(outputs))])


def _value(value: Any) -> str:
    return (
        f"{value[0]}.{value[1]}" if isinstance(value, tuple) else f"'{value}'" if isinstance(value, str) else str(value)
    )


def _condition(c: Condition) -> str:
    return f"{c.variable}.{c.prop} {c.op} {_value(c.value)}"


def _path(path: Path, number: int) -> str:
    made = (f"{path.variable} = " if path.variable else "") + ("any shortest " if path.shortest else "")
    for index, node in enumerate(path.nodes):
        if index:
            edge = path.edges[index - 1]
            hops = f"*{edge.hops[0]}..{edge.hops[1]}" if edge.hops else ""
            name = edge.variable or ("x" + str(index) + str(id(edge)) if edge.least is not None else "")
            where = f" where {name}.w > {edge.least}" if edge.least is not None else ""
            inner = name + (":" + "|".join(edge.labels) if edge.labels else "") + hops + where
            made += ("<-" if edge.direction == "left" else "-") + f"[{inner}]"
            made += "->" if edge.direction == "right" else "-"
        given = ", ".join(f"{k}: {_value(v)}" for k, v in node.given.items())
        labels = ":" + "|".join(node.labels) if node.labels else ""
        made += f"({node.variable}{labels}" + (f" {{{given}}}" if given else "") + ")"
    return made


# ---------------------------------------------------------------- what it gives

Row = dict[str, Any]


def rows(graph: Any, query: Query) -> list[tuple[Any, ...]]:
    """What the query returns, in any order."""
    found: list[Row] = [{}]
    for clause in query.clauses:
        found = [made for row in found for made in _clause(graph, clause, row)]
    return [tuple(_read(graph, row, v, p) for v, p in query.returned) for row in found]


def can_match(graph: Any, query: Query) -> bool:
    """True if the patterns of all clauses, without `where`, match somewhere together."""
    found: list[Row] = [{}]
    for clause in query.clauses:
        found = [made for row in found for made in _paths(graph, clause.paths, row, frozenset())]
    return bool(found)


def _clause(graph: Any, clause: Clause, row: Row) -> Iterator[Row]:
    met = False
    for made in _paths(graph, clause.paths, row, frozenset()):
        if all(_holds(graph, c, made) for c in clause.where):
            met = True
            yield made
    if clause.optional and not met:
        names = [n.variable for p in clause.paths for n in p.nodes] + [
            e.variable for p in clause.paths for e in p.edges
        ]
        names += [p.variable for p in clause.paths]
        yield {**{n: None for n in names if n}, **row}


def _paths(graph: Any, paths: list[Path], row: Row, used: frozenset[Any]) -> Iterator[Row]:
    if not paths:
        yield row
        return
    for made, more in _one_path(graph, paths[0], row, used):
        yield from _paths(graph, paths[1:], made, used | more)


def _one_path(graph: Any, path: Path, row: Row, used: frozenset[Any]) -> Iterator[tuple[Row, frozenset[Any]]]:
    def go(index: int, at: Any, known: Row, mine: frozenset[Any], length: int) -> Iterator[tuple[Row, frozenset[Any]]]:
        if index == len(path.edges):
            yield ({**known, path.variable: length} if path.variable else known), mine
            return
        edge, node = path.edges[index], path.nodes[index + 1]
        for end, walked in _nearest(graph, edge, at) if path.shortest else _trails(graph, edge, at, used | mine):
            named = {**known, edge.variable: walked[0]} if edge.variable else known
            here = _named(graph, node, end, named)
            if here is not None:
                gone = walked if isinstance(walked, int) else len(walked)
                more = frozenset() if isinstance(walked, int) else frozenset(walked)
                yield from go(index + 1, end, here, mine | more, length + gone)

    for start in graph.nodes:
        here = _named(graph, path.nodes[0], start, row)
        if here is not None:
            yield from go(0, start, here, frozenset(), 0)


def _named(graph: Any, node: Node, place: Any, row: Row) -> Row | None:
    """The row with a node in it, if it can be that one."""
    data = graph.nodes[place]
    if node.labels and data["label"] not in node.labels:
        return None
    if any(data.get(k) != v for k, v in node.given.items()):
        return None
    if not node.variable:
        return row
    if node.variable in row:
        return row if row[node.variable] == place else None
    return {**row, node.variable: place}


def _steps(graph: Any, edge: Edge, at: Any) -> Iterator[tuple[Any, Any]]:
    """The edges that can be gone along from a node: where they lead, and which."""
    if edge.direction in ("right", "both"):
        for _, end, key, data in graph.out_edges(at, keys=True, data=True):
            if _fits(edge, data):
                yield end, (at, end, key)
    if edge.direction in ("left", "both"):
        for start, _, key, data in graph.in_edges(at, keys=True, data=True):
            if _fits(edge, data) and not (edge.direction == "both" and start == at):
                yield start, (start, at, key)


def _fits(edge: Edge, data: dict[str, Any]) -> bool:
    if edge.labels and data["label"] not in edge.labels:
        return False
    return edge.least is None or (data["w"] is not None and data["w"] > edge.least)


def _trails(graph: Any, edge: Edge, at: Any, used: frozenset[Any]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    low, high = edge.hops or (1, 1)
    waiting: list[tuple[Any, tuple[Any, ...]]] = [(at, ())]
    while waiting:
        place, walked = waiting.pop()
        if len(walked) >= low:
            yield place, walked
        if len(walked) < high:
            waiting += [
                (end, (*walked, e)) for end, e in _steps(graph, edge, place) if e not in used and e not in walked
            ]


def _nearest(graph: Any, edge: Edge, at: Any) -> Iterator[tuple[Any, int]]:
    assert edge.hops is not None
    seen = nx.DiGraph() if edge.direction != "both" else nx.Graph()
    seen.add_nodes_from(graph.nodes)
    for start, end, data in graph.edges(data=True):
        if _fits(edge, data):
            seen.add_edge(*((end, start) if edge.direction == "left" else (start, end)))
    for end, far in nx.single_source_shortest_path_length(seen, at, cutoff=edge.hops[1]).items():
        if far >= edge.hops[0]:
            yield end, far


def _read(graph: Any, row: Row, variable: str, prop: str) -> Any:
    place = row[variable]
    if place is None or prop == "length":
        return place
    if prop == "w":
        return graph.edges[place]["w"]
    return graph.nodes[place].get(prop)


def _holds(graph: Any, c: Condition, row: Row) -> bool:
    left = _read(graph, row, c.variable, c.prop)
    right = _read(graph, row, *c.value) if isinstance(c.value, tuple) else c.value
    if left is None or right is None:
        return False
    return bool({"=": left == right, "<>": left != right, "<": left < right, ">=": left >= right}[c.op])
