"""Parameters as given, checked against the plan's and made typed values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from difflib import get_close_matches
from typing import Any

from com.diagnostics import BadParameter, Error, MissingParameter, UnknownParameter, near
from com.plan import Field, Parameter, Plan, Scalar
from com.runtime.bind import Frame, Relation
from com.runtime.canon import Unfit, canonical, canonical_rows, fit, restore, restore_rows, types_of
from com.values import FORMS


class Given:
    """Typed parameters: values and lists by name, rows as relations. Those left to their defaults are not here."""

    __slots__ = ("values", "relations")

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.relations: dict[str, Relation] = {}

    def json(self, plan: Plan) -> dict[str, Any]:
        """Canonical JSON data, by name."""
        made: dict[str, Any] = {}
        for p in plan.parameters:
            if p.name in self.relations:
                made[p.name] = canonical_rows(self.relations[p.name].rows, types_of(p.fields))
            elif p.name in self.values:
                value = self.values[p.name]
                made[p.name] = [canonical(v, p.type) for v in value] if p.kind == "list" else canonical(value, p.type)
        return made

    def put(self, plan: Plan, frame: Frame, default: Callable[[Frame, Scalar], Any]) -> None:
        """Puts the parameters and the defaults of the others into a frame."""
        for p in plan.parameters:
            if p.name in self.relations:
                frame.relations["parameter", p.name, 0] = self.relations[p.name]
            elif p.name in self.values:
                frame.values[p.name] = self.values[p.name]
            elif isinstance(p.default, Scalar):
                frame.values[p.name] = fit(default(frame, p.default), p.type)
            elif p.kind == "rows":
                frame.relations["parameter", p.name, 0] = Relation(p.fields, ())
            else:
                frame.values[p.name] = fit(p.default.value if p.default else None, p.type)
            if p.kind == "value":
                fields = (Field(p.name, p.type, p.nullable),)
                frame.relations["parameter", p.name, 0] = Relation(fields, ((frame.values[p.name],),))


def restored(plan: Plan, data: Mapping[str, Any]) -> Given:
    """The parameters whose canonical JSON data this is. `Error` if they are not this plan's."""
    given = Given()
    for p in plan.parameters:
        if p.name not in data:
            if p.default is None:
                raise Error(MissingParameter(p.name, _example(p)))
        elif p.kind == "rows":
            given.relations[p.name] = Relation(p.fields, restore_rows(data[p.name], types_of(p.fields)))
        elif p.kind == "list":
            given.values[p.name] = [restore(value, p.type) for value in data[p.name]]
        else:
            given.values[p.name] = restore(data[p.name], p.type)
    _known(plan, data)
    return given


def take(plan: Plan, data: Mapping[str, Any]) -> Given:
    """Checks parameters given from outside. `Error` names the one that does not fit."""
    given = Given()
    _known(plan, data)
    for p in plan.parameters:
        if p.name not in data:
            if p.default is None:
                raise Error(MissingParameter(p.name, _example(p)))
        elif p.kind == "rows":
            given.relations[p.name] = Relation(p.fields, _rows(p, data[p.name]))
        elif p.kind == "list":
            given.values[p.name] = _list(p, data[p.name])
        else:
            given.values[p.name] = _value(p.name, data[p.name], Field(p.name, p.type, p.nullable))
    return given


def _known(plan: Plan, given: Iterable[str]) -> None:
    names = [p.name for p in plan.parameters]
    for name in given:
        if name not in names:
            raise Error(UnknownParameter(name, nearest(name, names, "parameter")))


def nearest(name: str, names: Sequence[str], what: str) -> str:
    """A help: the one name that is near, else all there are."""
    folded = {n.casefold(): n for n in names}
    close = get_close_matches(name.casefold(), folded, n=1)
    return near([folded[close[0]]] if close else sorted(names), what) if names else f"there is no {what}"


def _example(p: Parameter) -> str:
    if p.kind == "rows":
        return "[{" + ", ".join(f'"{f.name}": …' for f in p.fields) + "}]"
    return "[…]" if p.kind == "list" else "…"


def _cut(value: Any) -> str:
    text = "null" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _value(name: str, value: Any, field: Field) -> Any:
    if value is None:
        if field.nullable:
            return None
        help_ = f"give a value; or declare it with = null: {name}"
        if "[" in name:  # there is no way to declare that a field of rows may be null
            help_ = "give a value: rows that a program is given hold no null"
        raise Error(BadParameter(name, "null", _wanted(field), help_))
    try:
        return fit(value, field.type)
    except Unfit as unfit:
        form = FORMS.get(field.type.kind, str(field.type)) if field.type.kind != "text" else "characters other than NUL"
        help_ = f"{name} is {field.type}, written as {form}"
        raise Error(BadParameter(name, _cut(value), str(unfit), help_)) from None


def _wanted(field: Field) -> str:
    return f"a value of type {field.type}"


def _list(p: Parameter, value: Any) -> list[Any]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence | set | frozenset):
        raise Error(BadParameter(p.name, _cut(value), f"a list of {p.type}", f"write [{_cut(value)}]"))
    items = sorted(value) if isinstance(value, set | frozenset) else value
    return [_value(f"{p.name}[{i}]", item, Field(p.name, p.type, False)) for i, item in enumerate(items, 1)]


def _rows(p: Parameter, value: Any) -> tuple[tuple[Any, ...], ...]:
    if value is None and p.card == "maybe":
        value = []
    if isinstance(value, Mapping) or is_dataclass(value):
        value = [value]
    shape = ", ".join(f"{f.name} {f.type}" for f in p.fields)
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise Error(BadParameter(p.name, _cut(value), "a list of rows", f"each row has {shape}"))
    rows = tuple(_row(f"{p.name}[{i}]", p, row, shape) for i, row in enumerate(value, 1))
    wanted = {"one": "exactly one row", "maybe": "no row or one"}.get(p.card)
    if wanted and len(rows) != 1 and (p.card == "one" or rows):
        raise Error(BadParameter(p.name, f"{len(rows)} rows", wanted, f"{p.name} is declared {p.card}"))
    return rows


def _row(name: str, p: Parameter, row: Any, shape: str) -> tuple[Any, ...]:
    if is_dataclass(row) and not isinstance(row, type):
        row = asdict(row)
    elif hasattr(row, "_asdict"):
        row = row._asdict()
    if isinstance(row, Mapping):
        names = [f.name for f in p.fields]
        for column in row:
            if column not in names:
                raise Error(UnknownParameter(f"{name}.{column}", nearest(str(column), names, "column")))
        for f in p.fields:
            if f.name not in row and not f.nullable:
                raise Error(MissingParameter(f"{name}.{f.name}", _example(p)))
        return tuple(_value(f"{name}.{f.name}", row.get(f.name), f) for f in p.fields)
    if isinstance(row, str | bytes) or not isinstance(row, Sequence) or len(row) != len(p.fields):
        raise Error(BadParameter(name, _cut(row), "a row", f"each row has {shape}"))
    return tuple(_value(f"{name}.{f.name}", item, f) for f, item in zip(p.fields, row, strict=True))
