"""Calls: Python functions that programs may call, and how their results are checked."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from inspect import signature
from typing import Any, TypeVar, overload

from com import diagnostics
from com.diagnostics import CallFailed, CallNotMade, CallResult, CallUnknown, Message
from com.functions import RowsField, Signature
from com.node import Node
from com.plan import Call, Field, Step
from com.runtime.arguments import nearest
from com.runtime.canon import Unfit, canonical_rows, fit, restore_rows, types_of
from com.runtime.engines import Row
from com.runtime.journal import CallRow
from com.runtime.outcome import RunError
from com.schema import BOOL, BYTES, DATE, FLOAT, INT, TEXT, TIMESTAMP, Type, decimal

_TYPES: dict[Any, Type] = {
    bool: BOOL,
    int: INT,
    float: FLOAT,
    str: TEXT,
    bytes: BYTES,
    date: DATE,
    datetime: TIMESTAMP,
    Decimal: decimal(38, 10),
}


class Registered(Node):
    """A function with its signature. `makers`: of rows parameters, the class that each row becomes."""

    signature: Signature
    function: Callable[..., Any]
    makers: dict[str, Callable[..., Any]]


Registry = Mapping[str, Registered]
REGISTRY: dict[str, Registered] = {}
"""Every function that was registered with `call`."""

_F = TypeVar("_F", bound=Callable[..., Any])


@overload
def call(function: _F) -> _F: ...


@overload
def call(*, name: str) -> Callable[[_F], _F]: ...


def call(function: _F | None = None, *, name: str = "") -> _F | Callable[[_F], _F]:
    """Registers a typed function as a call. Parameters: int, float, Decimal, str, bool, date, datetime, bytes, lists of
    those, and lists of a NamedTuple, dataclass or TypedDict for rows. It returns one of those classes (one row), a list
    of it (many rows), or a value (one row with the column `value`); without an annotation, the rows that a step's
    shape declares. A Decimal is decimal(38,10), or what `Annotated[Decimal, decimal(10, 2)]` says."""

    def register(function: _F) -> _F:
        made = registered(function, name or function.__name__)
        REGISTRY[made.signature.name] = made
        return function

    return register if function is None else register(function)


def registered(function: Callable[..., Any], name: str) -> Registered:
    """A function with the signature that its annotations say. TypeError if com has no type for one."""
    hints = typing.get_type_hints(function, include_extras=True)
    parameters: list[Field | RowsField] = []
    makers = {}
    for parameter in signature(function).parameters.values():
        hint = hints.get(parameter.name)
        if hint is None:
            raise TypeError(f"{name}: parameter {parameter.name} has no annotation")
        bare, nullable = _optional(hint)
        if typing.get_origin(bare) is list:
            (item,) = typing.get_args(bare)
            columns = _columns(item)
            if columns is None:
                inner, _ = _optional(item)
                parameters.append(RowsField(parameter.name, (Field("value", _type(inner, name), False),), True))
            else:
                parameters.append(RowsField(parameter.name, columns, False))
                makers[parameter.name] = item
        else:
            parameters.append(Field(parameter.name, _type(bare, name), nullable))
    result, card = _result(hints.get("return"), name)
    return Registered(Signature(name, tuple(parameters), result, card), function, makers)


def _result(hint: Any, name: str) -> tuple[tuple[Field, ...], str]:
    bare, nullable = _optional(hint)
    if hint is None or bare in (Any, dict, list, type(None)) or bare == list[dict[str, Any]]:
        return (), "many"
    card = "maybe" if nullable and _columns(bare) is not None else "one"
    if typing.get_origin(bare) is list:
        card = "many"
        bare, nullable = _optional(typing.get_args(bare)[0])
    columns = _columns(bare)
    return columns or (Field("value", _type(bare, name), nullable),), card


def _optional(hint: Any) -> tuple[Any, bool]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        rest = [a for a in typing.get_args(hint) if a is not type(None)]
        if len(rest) == 1:
            return rest[0], True
    return hint, False


def _type(hint: Any, name: str) -> Type:
    if typing.get_origin(hint) is typing.Annotated:
        return next((a for a in typing.get_args(hint) if isinstance(a, Type)), _type(typing.get_args(hint)[0], name))
    if hint in _TYPES:
        return _TYPES[hint]
    raise TypeError(f"{name}: com has no type for {hint}")


def _columns(hint: Any) -> tuple[Field, ...] | None:
    """The columns of a row's class; None if it is none."""
    if not isinstance(hint, type) or hint in _TYPES:
        return None
    if is_dataclass(hint):
        names = [f.name for f in fields(hint)]
    elif hasattr(hint, "_fields") or typing.is_typeddict(hint):
        names = list(getattr(hint, "_fields", hint.__annotations__))
    else:
        return None
    hints = typing.get_type_hints(hint, include_extras=True)
    found = [(n, *_optional(hints[n])) for n in names]
    return tuple(Field(n, _type(bare, hint.__name__), nullable) for n, bare, nullable in found)


# ---------------------------------------------------------------- making calls


def make(registry: Registry, call: Call, step: Step, arguments: dict[str, Any]) -> list[Row]:
    """Calls the function; its rows, typed as the step's fields. `Refusal` says what went wrong."""
    known = registry.get(call.function)
    if known is None:
        raise Refusal(CallUnknown(call.function, nearest(call.function, list(registry), "call")))
    given = {
        name: [known.makers[name](**row) for row in value] if name in known.makers else value
        for name, value in arguments.items()
    }
    try:
        result = known.function(**given)
    except Exception as error:
        raise Refusal(CallFailed(call.function, f"{type(error).__name__}: {error}")) from error
    return typed_rows(result, call.function, step)


def typed_rows(result: Any, name: str, step: Step) -> list[Row]:
    """What a function gave (or a fixture holds) as the step's rows."""
    if result is None:
        result = []
    elif isinstance(result, str | bytes | Mapping) or not isinstance(result, Sequence) or hasattr(result, "_fields"):
        result = [result]
    return [_row(row, name, step.fields) for row in result]


def _row(row: Any, name: str, wanted: tuple[Field, ...]) -> Row:
    if is_dataclass(row) and not isinstance(row, type):
        row = asdict(row)
    elif hasattr(row, "_asdict"):
        row = row._asdict()
    shape = ", ".join(f"{f.name} {f.type}" for f in wanted)
    if isinstance(row, Mapping):
        if set(row) != {f.name for f in wanted}:
            raise Refusal(CallResult(name, "the columns " + ", ".join(map(str, row)), shape))
        row = [row[f.name] for f in wanted]
    elif not isinstance(row, list | tuple):
        row = [row]
    if len(row) != len(wanted):
        raise Refusal(CallResult(name, f"{len(row)} columns", shape))
    values = []
    for field, value in zip(wanted, row, strict=True):
        try:
            values.append(fit(value, field.type))
        except Unfit as unfit:
            raise Refusal(CallResult(name, f"{value!r} as {field.name}", f"{field.type}: {unfit}")) from None
        if value is None and not field.nullable:
            raise Refusal(CallResult(name, f"null as {field.name}", str(field.type)))
    return tuple(values)


class Refusal(Exception):
    """A call that cannot be answered, and why."""

    def __init__(self, message: Message) -> None:
        super().__init__(message.code)
        self.message = message


class NeedCall(Exception):
    """A run has come to a call whose result is not recorded yet."""

    def __init__(self, path: str, step: Step, call: Call, arguments: dict[str, Any], inputs: str) -> None:
        super().__init__(path)
        self.path = path
        self.step = step
        self.call = call
        self.arguments = arguments
        self.inputs = inputs


Answered = tuple[str, Any, Message | None]
"""The hash of a call's inputs, and its canonical result, or why it failed."""


class Recorded:
    """Answers from what is recorded, by path. What is not recorded is taken from fixtures (by the function's name:
    rows, or a function), or asked for with `NeedCall`, or refused."""

    def __init__(
        self,
        results: Mapping[str, Answered] | None = None,
        fixtures: Mapping[str, Any] | None = None,
        may_call: bool = True,
    ) -> None:
        self.results: dict[str, Answered] = dict(results or {})
        self.fixtures = fixtures or {}
        self.may_call = may_call

    def answer(self, path: str, step: Step, call: Call, arguments: dict[str, Any], inputs: str) -> list[Row]:
        recorded = self.results.get(path)
        if recorded is not None and recorded[0] == inputs:
            if recorded[2] is not None:
                raise RunError(recorded[2], step.span, path)
            return list(restore_rows(recorded[1], types_of(step.fields)))
        try:
            if call.function in self.fixtures:
                fixture = self.fixtures[call.function]
                return typed_rows(fixture(**arguments) if callable(fixture) else fixture, call.function, step)
        except Refusal as refusal:
            raise RunError(refusal.message, step.span, path) from None
        if self.may_call:
            raise NeedCall(path, step, call, arguments, inputs)
        raise RunError(CallNotMade(call.function), step.span, path)

    def record(self, need: NeedCall, rows: list[Row]) -> Any:
        """Keeps a result; its canonical JSON data."""
        data = canonical_rows(rows, types_of(need.step.fields))
        self.results[need.path] = (need.inputs, data, None)
        return data


def recorded(calls: Iterable[CallRow], may_call: bool = True) -> Recorded:
    """What answers from the calls of a journal."""
    return Recorded({call.path: answered(call) for call in calls}, may_call=may_call)


def answered(call: CallRow) -> Answered:
    """A recorded call's inputs, result and failure. ValueError if the record is none."""
    if call.failure is None:
        return call.inputs, json.loads(call.result or ""), None
    data = json.loads(call.failure)
    kind = vars(diagnostics).get(data.pop("is"))
    if not (isinstance(kind, type) and issubclass(kind, Message) and set(data) == set(kind._fields)):
        raise ValueError(call.failure)
    return call.inputs, [], kind(**data)
