"""Patterns of a `match`: which tables their nodes and edges can be, one way of reading them after another.

Takes the patterns of one clause and the graph; gives its slots and hops, and each typing: a vertex table for every
slot, and for every hop the run of edge tables that it goes through. What cannot be is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from com import diagnostics as messages
from com.compiler import syntax
from com.compiler.names import near_names, spelled
from com.diagnostics import Message
from com.node import Node
from com.schema import EdgeTable, Graph, Vertex
from com.source import Span

MOST_HOPS = 8
MOST_TYPINGS = 150
"""Ways of reading one match, at most."""

Report = Callable[[Message, Span], None]


class Variable(Node):
    """What a name stands for in a graph step. `kind`: node, edge, hops (the edges of a hop with bounds), path or row.
    `alias` is the source that it is read from; `names` of what it is read by there: a property or a key's column
    (table, column) to the source's column; empty where they are the table's own. `length` is a path's."""

    name: str
    kind: str
    choices: tuple[Vertex | EdgeTable, ...]
    alias: str
    names: dict[object, str]
    length: syntax.Expr | None
    span: Span


class Slot:
    """A node of the patterns, met once or more. `bound`: what it is already, from a clause before."""

    def __init__(self, name: str, written: syntax.Name | None, bound: Variable | None, span: Span) -> None:
        self.name, self.written, self.bound, self.span = name, written, bound, span
        self.patterns: list[syntax.NodePattern] = []
        self.choices: list[Vertex] = []

    @property
    def plain(self) -> bool:
        """True if nothing asks for the node but the edges at it."""
        return self.written is None and not any(p.properties or p.where is not None for p in self.patterns)


class Hop:
    """An edge of the patterns, or a run of so many."""

    def __init__(self, name: str, node: syntax.EdgePattern, ends: tuple[Slot, Slot], shortest: bool) -> None:
        self.name, self.node, self.shortest = name, node, shortest
        self.start, self.end = ends
        self.choices: list[EdgeTable] = []
        self.low = self.high = 1
        self.bounds: tuple[syntax.Placeholder | None, syntax.Placeholder | None] = (None, None)


Run = tuple[tuple[EdgeTable, str], ...]
"""Edge tables in turn, each with how it is gone through: right, left, or both."""


class Typing(Node):
    """One way of reading the patterns: the table of each slot, the run of each hop."""

    tables: dict[str, Vertex]
    runs: dict[str, Run]


class Patterns:
    """The patterns of one clause."""

    def __init__(
        self,
        graph: Graph,
        nodes: tuple[syntax.Pattern, ...],
        scope: dict[str, Variable],
        report: Report,
        fresh: Callable[[str], str],
    ) -> None:
        self.graph, self.report, self.fresh = graph, report, fresh
        self.slots: dict[str, Slot] = {}
        self.hops: list[Hop] = []
        self.paths: list[tuple[syntax.Name, list[Hop]]] = []
        self.tasks: list[Slot | Hop] = []
        self.sound = True
        for node in nodes:
            self._pattern(node, scope)
        for slot in self.slots.values():
            self._choose(slot)

    def wrong(self, message: Message, span: Span) -> None:
        self.sound = False
        self.report(message, span)

    def _pattern(self, node: syntax.Pattern, scope: dict[str, Variable]) -> None:
        elements = node.elements
        slots = [self._slot(e, scope) for e in elements[::2] if isinstance(e, syntax.NodePattern)]
        if node.shortest and len(slots) != 2:
            help_ = "write any shortest (a)-[:TYPE*1..8]->(b)"
            self.wrong(messages.BadHops("any shortest is for two nodes and the hops between them", help_), node.span)
        self.tasks.append(slots[0])
        made: list[Hop] = []
        for index, element in enumerate(elements[1::2]):
            assert isinstance(element, syntax.EdgePattern)
            hop = self._hop(element, (slots[index], slots[index + 1]), node.shortest, scope)
            made.append(hop)
            self.tasks.append(hop)
        self.hops += made
        if node.variable is not None:
            if node.variable.text in {*scope, *self.slots, *(p.text for p, _ in self.paths)}:
                self.wrong(messages.DuplicateName("variable", node.variable.text), node.variable.span)
            self.paths.append((node.variable, made))

    def _slot(self, node: syntax.NodePattern, scope: dict[str, Variable]) -> Slot:
        name = node.variable.text if node.variable is not None else self.fresh("v")
        fits = spelled(name, {**scope, **self.slots}) if node.variable is not None else []
        name = fits[0] if len(fits) == 1 else name
        slot = self.slots.get(name)
        if slot is None:
            bound = scope.get(name)
            if bound is not None and bound.kind == "lost":
                self.sound, bound = False, None
            if bound is not None and bound.kind != "node":
                help_ = "give the node another name"
                what = "an edge" if bound.kind == "edge" else "no node"
                self.wrong(messages.BadClause(f"{name} is {what}, and stands for a node here", help_), node.span)
                bound = None
            slot = self.slots[name] = Slot(name, node.variable, bound, node.span)
        slot.patterns.append(node)
        return slot

    def _hop(self, node: syntax.EdgePattern, ends: tuple[Slot, Slot], shortest: bool, scope: object) -> Hop:
        name = node.variable.text if node.variable is not None else self.fresh("e")
        assert isinstance(scope, dict)
        if node.variable is not None and (name in scope or name in self.slots or name in {h.name for h in self.hops}):
            help_ = "an edge is named once; give this one another name, and compare properties in where"
            self.wrong(messages.BadClause(f"{name} is named before", help_), node.variable.span)
        hop = Hop(name, node, ends, shortest)
        names = {label for e in self.graph.edges for label in e.labels}
        wanted = self._labels(node.labels, names, "edge")
        hop.choices = [e for e in self.graph.edges if not wanted or wanted & set(e.labels)]
        keys = {p.name.text for p in node.properties}
        hop.choices = self._having(hop.choices, keys, node)  # type: ignore[assignment]
        if node.hops is not None:
            self._bounds(hop, node.hops)
        elif shortest:
            help_ = "write how far at most: *1..8"
            self.wrong(messages.BadHops("any shortest needs bounds", help_), node.span)
        return hop

    def _bounds(self, hop: Hop, node: syntax.Hops) -> None:
        if node.high is None:
            help_ = f"write the most hops, at most {MOST_HOPS}: *1..{MOST_HOPS}"
            self.wrong(messages.BadHops("hops need a bound", help_), node.span)
            return
        places = []
        for bound in (node.low, node.high):
            places.append(bound if isinstance(bound, syntax.Placeholder) else None)
            if isinstance(bound, syntax.Number) and (not bound.text.isdigit() or int(bound.text) > MOST_HOPS):
                help_ = f"write a whole number up to {MOST_HOPS}"
                self.wrong(messages.BadHops(f"a bound of hops is at most {MOST_HOPS}", help_), bound.span)
                return
        hop.low = int(node.low.text) if isinstance(node.low, syntax.Number) else 0 if places[0] is not None else 1
        hop.high = int(node.high.text) if isinstance(node.high, syntax.Number) else MOST_HOPS
        hop.bounds = places[0], places[1]
        if hop.low > hop.high:
            help_ = "write the lesser bound first"
            self.wrong(messages.BadHops(f"no hops are from {hop.low} to {hop.high}", help_), node.span)
        if hop.shortest and (places[0] is not None or hop.low > 1):
            help_ = "begin at 0 or 1, and test length(p) in a step of its own"
            self.wrong(messages.BadHops("the shortest path begins at 0 or 1 hops", help_), node.span)

    def _labels(self, labels: tuple[syntax.Name, ...], known: set[str], kind: str) -> set[str]:
        wanted: set[str] = set()
        for label in labels:
            fits = spelled(label.text, known)
            if len(fits) != 1:
                near = near_names(label.text, known, f"{kind} label")
                self.wrong(messages.UnknownLabel("vertex" if kind == "node" else kind, label.text, near), label.span)
            else:
                wanted.add(fits[0])
        return wanted

    def _choose(self, slot: Slot) -> None:
        """The tables that a node can be of: those of all its labels, with all its properties."""
        names = {label for v in self.graph.vertices for label in v.labels}
        found = list(slot.bound.choices if slot.bound is not None else self.graph.vertices)
        for node in slot.patterns:
            wanted = self._labels(node.labels, names, "node")
            left = [v for v in found if not wanted or wanted & set(v.labels)]
            if found and not left and self.sound:
                shown = "|".join(label.text for label in node.labels)
                self.wrong(messages.NeverMatches(f"{slot.name} is no {shown}", "give it one label"), node.span)
            found = self._having(left, {p.name.text for p in node.properties}, node)
        slot.choices = [v for v in found if isinstance(v, Vertex)]

    def _having(
        self,
        choices: list[Vertex | EdgeTable] | list[EdgeTable],
        names: set[str],
        node: syntax.NodePattern | syntax.EdgePattern,
    ) -> list[Vertex | EdgeTable]:
        """Those that have all these properties."""
        made: list[Vertex | EdgeTable] = list(choices)
        for prop in node.properties:
            left = [c for c in made if spelled(prop.name.text, dict(c.properties))]
            if made and not left and self.sound:
                known = sorted({name for c in made for name, _ in c.properties})
                shown = shown_element(node)
                near = near_names(prop.name.text, known, "property")
                self.wrong(messages.UnknownProperty(shown, prop.name.text, near), prop.name.span)
            made = left
        return made

    # ------------------------------------------------------------ typings

    def typings(self) -> list[Typing]:
        """Every way of reading the patterns; none after a message."""
        if not self.sound:
            return []
        found = list(islice(self._typings(0, {}, {}), MOST_TYPINGS + 1))
        first = next(iter(self.slots.values()))
        if len(found) > MOST_TYPINGS:
            detail = f"this can be read in more than {MOST_TYPINGS} ways"
            self.wrong(messages.BadClause(detail, "give the nodes and edges labels, and less hops"), first.span)
            return []
        if not found:
            self._tell_why(first)
        return found

    def _typings(self, at: int, tables: dict[str, Vertex], runs: dict[str, Run]) -> Iterator[Typing]:
        if at == len(self.tasks):
            yield Typing(dict(tables), dict(runs))
            return
        task = self.tasks[at]
        if isinstance(task, Slot):
            known = tables.get(task.name)
            for vertex in [known] if known is not None else task.choices:
                yield from self._typings(at + 1, {**tables, task.name: vertex}, runs)
            return
        known = tables.get(task.end.name)
        ends = [known] if known is not None else task.end.choices
        for table, run in self.runs(task, tables[task.start.name].table):
            for vertex in ends:
                if vertex.table == table:
                    yield from self._typings(at + 1, {**tables, task.end.name: vertex}, {**runs, task.name: run})

    def runs(self, hop: Hop, start: str) -> Iterator[tuple[str, Run]]:
        """The runs of a hop from a vertex table, each with the table where it ends."""
        if hop.shortest:
            run = tuple((e, hop.node.direction) for e in hop.choices if e.source.table == e.destination.table == start)
            if run or hop.low == 0:
                yield start, run
            return
        level: list[tuple[str, Run]] = [(start, ())]
        for count in range(hop.high + 1):
            if count >= hop.low:
                yield from level
            if count < hop.high:
                level = [
                    (end, (*run, (edge, way)))
                    for table, run in level[: MOST_TYPINGS + 1]
                    for edge, way, end in self._steps(hop, table)
                ]

    def _steps(self, hop: Hop, table: str) -> Iterator[tuple[EdgeTable, str, str]]:
        direction = hop.node.direction
        for edge in hop.choices:
            source, end = edge.source.table, edge.destination.table
            if direction == "both" and source == end == table:
                yield edge, "both", table
                continue
            if direction in ("right", "both") and source == table:
                yield edge, "right", end
            if direction in ("left", "both") and end == table:
                yield edge, "left", source

    def _tell_why(self, first: Slot) -> None:
        for hop in self.hops:
            starts, ends = {v.table for v in hop.start.choices}, {v.table for v in hop.end.choices}
            if not any(end in ends for start in starts for end, _ in self.runs(hop, start)):
                labels = "|".join(label.text for label in hop.node.labels)
                what = f"no {labels} edge" if labels else "no edge"
                if hop.shortest:
                    what = f"no hop of {labels}" if labels else "no hop"
                known = [
                    f"(:{_label(self.graph, e.source.table)})-[:{'|'.join(e.labels)}]->"
                    f"(:{_label(self.graph, e.destination.table)})"
                    for e in (hop.choices or self.graph.edges)
                ]
                detail = f"{what} leads from {_names(hop.start)} to {_names(hop.end)}"
                help_ = f"there are {', '.join(known[:6])}" if known else "there are no edges"
                self.wrong(messages.NeverMatches(detail, help_), hop.node.span)
                return
        detail = "no tables fit all of this pattern"
        self.wrong(messages.NeverMatches(detail, "give the nodes and edges labels"), first.span)


def shown_element(node: syntax.NodePattern | syntax.EdgePattern) -> str:
    """A node or edge in words: its variable, or its labels."""
    if node.variable is not None:
        return node.variable.text
    labels = "|".join(label.text for label in node.labels)
    return f":{labels}" if labels else "a node" if isinstance(node, syntax.NodePattern) else "an edge"


def _names(slot: Slot) -> str:
    return " or ".join(v.labels[0] for v in slot.choices[:4]) or "here"


def _label(graph: Graph, table: str) -> str:
    return next((v.labels[0] for v in graph.vertices if v.table == table), table)
