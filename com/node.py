"""Frozen, slotted records: the material of every tree and message.

As `@dataclass(frozen=True, slots=True)`, at a twentieth of its cost at import: a hundred node classes
must not be felt by somebody who types `com check`. Fields named in `_silent` (spans, comments) take no
part in equality, so two trees are equal when they mean the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self, dataclass_transform, get_origin

_MISSING: Any = object()


@dataclass_transform(frozen_default=True)
class NodeType(type):
    """The class of node classes: turns annotations into slots."""

    def __new__(mcls, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> NodeType:
        inherited: dict[str, Any] = {}
        for base in reversed(bases):
            inherited.update(getattr(base, "_defaults", {}))
        own: dict[str, Any] = {}
        for field, annotation in space.get("__annotations__", {}).items():
            if _is_class_variable(annotation):
                continue
            own[field] = space.pop(field, _MISSING)
        space["__slots__"] = tuple(field for field in own if field not in inherited)
        defaults = {**inherited, **own}
        space["_defaults"] = defaults
        space["_fields"] = space["__match_args__"] = tuple(defaults)
        space.setdefault("_dumped", space["_fields"])
        space["_made"] = 0
        made = super().__new__(mcls, name, bases, space)
        made._setters = tuple(getattr(made, field).__set__ for field in defaults)  # type: ignore[attr-defined]
        return made


def _is_class_variable(annotation: object) -> bool:
    if isinstance(annotation, str):
        return annotation.startswith(("ClassVar", "typing.ClassVar"))
    return annotation is ClassVar or get_origin(annotation) is ClassVar


class Node(metaclass=NodeType):
    """The root of all records. Fields are given by position or by name, once."""

    _fields: ClassVar[tuple[str, ...]]
    _dumped: ClassVar[tuple[str, ...]]
    _defaults: ClassVar[dict[str, Any]]
    _setters: ClassVar[tuple[Any, ...]]
    _made: ClassVar[int] = 0
    _whole: ClassVar[bool] = False
    _silent: ClassVar[frozenset[str]] = frozenset({"span", "comments"})

    def __init__(self, *args: Any, **named: Any) -> None:
        cls = type(self)
        cls._made += 1
        if cls._made == _OFTEN:
            cls.__init__ = _initialiser(cls)  # type: ignore[method-assign]
        setters = cls._setters
        for setter, value in zip(setters, args, strict=False):
            setter(self, value)
        given = len(args)
        if given < len(setters):
            for index in range(given, len(setters)):
                field = cls._fields[index]
                value = named.pop(field, _MISSING)
                if value is _MISSING:
                    value = cls._defaults[field]
                    if value is _MISSING:
                        raise TypeError(f"{cls.__name__} lacks {field}")
                setters[index](self, value)
        if named or given > len(setters):
            raise TypeError(f"{cls.__name__} takes {cls._fields}, not {args[len(setters) :]} {named}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, f) == getattr(other, f) for f in self._fields if f not in self._silent)

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, f) for f in self._fields if f not in self._silent)))

    def __repr__(self) -> str:
        shown = ", ".join(f"{f}={getattr(self, f)!r}" for f in self._fields if f not in self._silent)
        return f"{type(self).__name__}({shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f) for f in self._fields)

    def with_(self, **changes: Any) -> Self:
        """A copy in which the named fields are others."""
        values = [changes.pop(f) if f in changes else getattr(self, f) for f in self._fields]
        return type(self)(*values, **changes)


_OFTEN = 50
"""After so many instances a class gets an initialiser of its own: slower to make than to do without, at first."""


def _initialiser(cls: type[Node]) -> Callable[..., None]:
    """`__init__` as somebody would write it by hand for these fields."""
    known: dict[str, Any] = {}
    taken, lines = ["self"], []
    for index, (field, default) in enumerate(cls._defaults.items()):
        known[f"_set{index}"] = cls._setters[index]
        lines.append(f"    _set{index}(self, {field})")
        if default is _MISSING:
            taken.append(field)
        else:
            known[f"_default{index}"] = default
            taken.append(f"{field}=_default{index}")
    exec(f"def __init__({', '.join(taken)}):\n" + "\n".join(lines or ["    pass"]), known)  # names of fields only
    made: Callable[..., None] = known["__init__"]
    return made


def children(node: Node) -> Iterator[Node]:
    """The nodes directly inside a node, in the order of its fields."""
    for field in node._fields:
        value = getattr(node, field)
        if isinstance(value, Node):
            yield value
        elif type(value) is tuple and value:
            yield from _nodes(value)


def _nodes(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)


def walk(node: Node) -> Iterator[Node]:
    """A node and all nodes below it, parents first; what is whole is not looked into."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        if not node._whole:
            waiting.extend(reversed(list(children(node))))


def rebuild(value: Any, change: Callable[[Node], Node], within: tuple[type[Node], ...] = ()) -> Any:
    """A node with `change` applied to it and all below it, children first; nodes that do not change are kept, and so is
    what lies in nodes of the types `within`."""
    if isinstance(value, tuple):
        made = tuple(rebuild(item, change, within) for item in value)
        return made if any(a is not b for a, b in zip(made, value, strict=True)) else value
    if not isinstance(value, Node) or isinstance(value, within):
        return value
    old = [getattr(value, field) for field in value._fields]
    new = [rebuild(item, change, within) for item in old]
    return change(type(value)(*new) if any(a is not b for a, b in zip(new, old, strict=True)) else value)


def dump(value: Any, spans: bool = False) -> Any:
    """A node as JSON-able data, the same for equal nodes. Values other than JSON's become {"kind": text}."""
    if isinstance(value, Node):
        kept = {f: dump(getattr(value, f), spans) for f in value._dumped if spans or f not in value._silent}
        return {"is": type(value).__name__, **kept}
    if isinstance(value, tuple | list):
        return [dump(item, spans) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    return {type(value).__name__.lower(): str(value)}


def digest(value: Any) -> str:
    """SHA-256 over the canonical JSON of a node or of JSON-able data, hexadecimal. Spans do not count."""
    text = json.dumps(dump(value), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
