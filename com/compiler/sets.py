"""Loops to sets: a loop whose steps only write, each to rows of its own, becomes one script a step for all rows.

Takes a loop's IR; gives its steps as they are for all rows at once, or None where that might not mean the same.
"""

from __future__ import annotations

from collections.abc import Callable

from com.compiler import ir
from com.node import Node, children, rebuild, walk
from com.plan import Ref
from com.schema import INT, Table

LOOP = "com_loop"
"""The alias of a loop's rows."""


class SetStep(Node):
    """A step for all rows of a loop. `rows` are the loop's, and None for an insert, which holds them in its query."""

    step: ir.Step
    rows: ir.RowsSource | None


def as_sets(loop: ir.ForEach) -> tuple[tuple[str, ...], tuple[SetStep, ...]] | None:
    """The loop's columns that must tell its rows apart, and its steps; None if it has to run row by row."""
    steps = [s for s in loop.body if isinstance(s, ir.Step)]
    if len(steps) != len(loop.body) or not steps or any(not _fits(s, loop) for s in steps):
        return None
    tables = [_operation(s).table for s in steps]
    names = {t.name for t in tables}
    own = {s.ref for s in steps}
    if len(names) < len(tables) or any(_reads(s, names, own) for s in steps) or _linked(steps):
        return None
    distinct: tuple[str, ...] = ()
    made: list[SetStep] = []
    for step in steps:
        found = _as_set(step, loop)
        if found is None:
            return None
        pins, set_step = found
        if pins and (not distinct or set(pins) < set(distinct)):
            distinct = pins
        if pins and not set(distinct) <= set(pins):
            return None  # two ways to tell rows apart: left to the loop
        made.append(set_step)
    return distinct, tuple(made)


def _operation(step: ir.Step) -> ir.Insert | ir.Update | ir.Delete:
    assert isinstance(step.operation, ir.Insert | ir.Update | ir.Delete)
    return step.operation


def _fits(step: ir.Step, loop: ir.ForEach) -> bool:
    """A write without rows for others, of a form that has a set-based twin."""
    if step.needed:
        return False
    match step.operation:
        case ir.Insert(source=ir.Tuples(rows=(_,)), table=table, conflict=conflict, returning=returning):
            keys = {c for key in table.keys for c in key}
            changed = conflict.assignments if conflict is not None else ()
            return not _names_itself(table) and not returning and not any(name in keys for name, _ in changed)
        case ir.Update(source=None, table=table, assignments=assignments):
            keys = {c for key in table.keys for c in key}
            return not any(name in keys for name, _ in assignments)
        case ir.Delete(table=table):
            return bool(table.primary_key) and not _names_itself(table)
        case _:
            return False


def _names_itself(table: Table) -> bool:
    return any(k.table == table.name for k in table.foreign_keys)


def _linked(steps: list[ir.Step]) -> bool:
    """True if the order of rows may matter to a foreign key between two of the tables."""
    for step in steps:
        for other in steps:
            if step is other or isinstance(other.operation, ir.Update):
                continue
            operation, target = _operation(step), _operation(other).table.name
            for key in operation.table.foreign_keys:
                if key.table != target:
                    continue
                if not isinstance(operation, ir.Update) or any(c in key.columns for c, _ in operation.assignments):
                    return True
    return False


def _reads(step: ir.Step, names: set[str], own: set[Ref]) -> bool:
    """True if an expression of the step reads a table that the loop writes, or rows of one of its steps."""

    def found(node: Node) -> bool:
        if isinstance(node, ir.TableSource) and (node.table.name in names or node.table.is_view):
            return True
        if isinstance(node, ir.Value | ir.Values | ir.Present | ir.RowsSource) and node.ref in own:
            return True
        return any(found(child) for child in children(node) if not isinstance(child, Table))

    return found(step.operation)


def _as_set(step: ir.Step, loop: ir.ForEach) -> tuple[tuple[str, ...], SetStep] | None:
    variable = loop.variable
    rows = ir.RowsSource(variable, LOOP, loop.fields)
    nullable = {f.name: f.nullable for f in loop.fields}

    def put(node: Node) -> Node:
        if isinstance(node, ir.Value) and node.ref == variable and node.column is not None:
            return ir.Column(node.type, nullable.get(node.column, True), node.span, LOOP, node.column)
        return node

    if any(isinstance(n, ir.RowsSource | ir.Values) and n.ref == variable for n in walk(step.operation)):
        return None
    op = _operation(step)
    if isinstance(op, ir.Insert):
        assert isinstance(op.source, ir.Tuples)
        values = rebuild(op.source.rows[0], put)
        outputs = tuple(ir.Output(c, e) for c, e in zip(op.columns, values, strict=True))
        key = ir.OrderKey(ir.Column(INT, False, step.span, LOOP, "com_n"), False, False)
        pins: tuple[str, ...] = ()
        if op.conflict is not None:
            found = _proposed_pins(op, op.conflict, variable)
            if found is None:
                return None
            pins = found if op.conflict.assignments else ()  # of rows that are left alone any number may be one
            op, outputs = _carrying(op, op.conflict, outputs, put)
        query = ir.Select(False, outputs, rows, None, (), None, (key,), None, None)
        return pins, SetStep(step.with_(operation=op.with_(source=query), inferred="many"), None)
    met = _pins(op, variable)
    if met is None:
        return None
    if isinstance(op, ir.Update):
        assigned = tuple((c, rebuild(e, put)) for c, e in op.assignments)
        op = op.with_(assignments=assigned)
    op = op.with_(where=rebuild(op.where, put))
    return met, SetStep(step.with_(operation=op, inferred="many"), rows)


def _proposed_pins(op: ir.Insert, conflict: ir.Conflict, variable: Ref) -> tuple[str, ...] | None:
    """The columns of the loop's row that are the key which conflicts; None unless they tell its rows apart."""
    assert isinstance(op.source, ir.Tuples)
    known = dict(zip(op.columns, op.source.rows[0], strict=True))
    pins = []
    for name in conflict.columns:
        value = known.get(name)
        place = _place(value, variable) if value is not None else None
        if place is not None:
            pins.append(place)
        elif not isinstance(value, ir.Value | ir.Constant):
            return None
    return tuple(dict.fromkeys(pins)) or None


def _carrying(
    op: ir.Insert, conflict: ir.Conflict, outputs: tuple[ir.Output, ...], put: Callable[[Node], Node]
) -> tuple[ir.Insert, tuple[ir.Output, ...]]:
    """The insert with the loop's values that its assignments take as columns of the proposed rows."""
    extra: dict[ir.Column, str] = {}

    def carry(node: Node) -> Node:
        made = put(node)
        if made is node or not isinstance(made, ir.Column):
            return made
        name = extra.setdefault(made, f"com_x{len(extra) + 1}")
        return made.with_(alias="excluded", name=name)

    assigned = tuple((c, rebuild(e, carry)) for c, e in conflict.assignments)
    more = tuple(ir.Output(name, made) for made, name in extra.items())
    return op.with_(conflict=conflict.with_(assignments=assigned)), (*outputs, *more)


def _pins(op: ir.Update | ir.Delete, variable: Ref) -> tuple[str, ...] | None:
    """The columns of the loop's row that pick, by a key, the one row of the target that is met."""
    pinned: dict[str, str | None] = {}
    for condition in ir.conjuncts(op.where):
        if not isinstance(condition, ir.Apply) or condition.name != "=":
            continue
        for mine, other in (condition.args, condition.args[::-1]):
            if isinstance(mine, ir.Column) and mine.alias == op.alias:
                place = _place(other, variable)
                if place is not None or isinstance(other, ir.Value | ir.Constant):
                    pinned.setdefault(mine.name, place)
    for key in op.table.keys:
        if all(c in pinned for c in key):
            pins = tuple(dict.fromkeys(p for c in key if (p := pinned[c]) is not None))
            if pins:
                return pins
    return None


def _place(e: ir.Expr, variable: Ref) -> str | None:
    """The loop's column that an expression is, for certain without making equal what differs."""
    if isinstance(e, ir.Cast) and (e.operand.type.kind, e.type.kind) in (("int", "decimal"), ("date", "timestamp")):
        e = e.operand
    return e.column if isinstance(e, ir.Value) and e.ref == variable else None
