"""Who is called what, where: block scopes for steps and rows, query scopes for tables, and the nearest names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from com.compiler import ir
from com.diagnostics import near
from com.plan import Field, Parameter, Ref
from com.schema import Table
from com.source import Span

FEW = 8
"""So many names are listed whole in a help; of more only the nearest."""


def spelled(name: str, names: Iterable[str]) -> list[str]:
    """The names that `name` fits: itself if it is there, else all that differ from it only in case."""
    known = list(names)
    if name in known:
        return [name]
    folded = name.casefold()
    return [k for k in known if k.casefold() == folded]


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """The known names that look like `name`, best first: at most three."""
    from rapidfuzz import fuzz, process, utils  # only when somebody mistyped: a start must not wait for it

    found = process.extract(
        name, sorted(set(names)), scorer=fuzz.ratio, processor=utils.default_process, limit=3, score_cutoff=64
    )
    return [match for match, _, _ in found]


def near_names(name: str, names: Iterable[str], what: str = "") -> str:
    """A help: the nearest names, or all of them if they are few."""
    known = sorted(set(names))
    found = nearest(name, known)
    if found:
        return near(found[:1]) + (f" There are: {', '.join(known)}." if len(known) <= FEW and len(known) > 1 else "")
    if not known:
        return f"there is no {what}" if what else "there is none"
    shown = known[: 3 * FEW]
    return "there are: " + ", ".join(shown) + (", …" if len(known) > len(shown) else "")


# ---------------------------------------------------------------- blocks


class Entry:
    """What a placeholder may name. `card` is the shape its readers see; `keys` are column sets without duplicates;
    `open` when its columns are not known for a mistake already told, so that any column may be one of it."""

    __slots__ = ("ref", "fields", "card", "keys", "span", "parameter", "used", "open")

    def __init__(
        self,
        ref: Ref,
        fields: tuple[Field, ...],
        card: str,
        span: Span,
        keys: tuple[tuple[str, ...], ...] = (),
        parameter: Parameter | None = None,
        open: bool = False,
    ) -> None:
        self.ref = ref
        self.fields = fields
        self.card = card
        self.keys = keys
        self.span = span
        self.parameter = parameter
        self.used = False
        self.open = open

    def field(self, name: str) -> list[Field]:
        """The fields that the name fits."""
        fits = spelled(name, (f.name for f in self.fields))
        return [f for f in self.fields if f.name in fits]


class Block:
    """The steps and rows that are seen at one place, innermost first; and which of them are known to have a row."""

    __slots__ = ("outer", "entries", "present", "ended")

    def __init__(self, outer: Block | None = None) -> None:
        self.outer = outer
        self.entries: dict[str, Entry] = {}
        self.present: set[Ref] = set()
        self.ended: dict[str, Span] = {}

    def find(self, name: str) -> Entry | None:
        """The step or row of this name, exactly or else but for its case."""
        block: Block | None = self
        while block is not None:
            if name in block.entries:
                return block.entries[name]
            block = block.outer
        fits = spelled(name, self.names())
        return self.find(fits[0]) if len(fits) == 1 else None

    def names(self) -> list[str]:
        """All names seen here."""
        outer = self.outer.names() if self.outer else []
        return outer + [n for n in self.entries if n not in outer]

    def has_row(self, ref: Ref) -> bool:
        """True if a condition around this place has made sure that the step has a row."""
        return ref in self.present or (self.outer is not None and self.outer.has_row(ref))

    def where_ended(self, name: str) -> Span | None:
        """Where a step of this name stands in a block that has ended."""
        if name in self.ended:
            return self.ended[name]
        return self.outer.where_ended(name) if self.outer else None


# ---------------------------------------------------------------- queries


class Seen:
    """A table, step or subquery in a `from`, as its columns are seen. `name` is how it is called there, `alias` the
    same, or another where a query around has that name too. `hidden` columns need their alias; `fixed` when
    there is at most one row; `order` are columns to order by if there is something better than a key; `open` when it
    is not known, so that any column may be one of it."""

    __slots__ = ("name", "alias", "fields", "table", "keys", "order", "fixed", "hidden", "unusable", "open", "loose")

    def __init__(
        self,
        name: str,
        fields: tuple[Field, ...],
        *,
        alias: str = "",
        table: Table | None = None,
        keys: tuple[tuple[str, ...], ...] = (),
        order: tuple[str, ...] = (),
        fixed: bool = False,
        hidden: bool = False,
        unusable: Mapping[str, str] | None = None,
        open: bool = False,
    ) -> None:
        self.open = open
        self.loose = False
        self.name = name
        self.alias = alias or name
        self.fields = fields
        self.table = table
        self.keys = keys
        self.order = order
        self.fixed = fixed
        self.hidden = hidden
        self.unusable = unusable or {}

    def may_be_null(self, name: str) -> bool:
        """True if a row of the table may have null in this column (not only for want of a partner)."""
        column = self.table.column(name) if self.table is not None else None
        return column is not None and column.nullable

    def adapts(self, name: str) -> bool:
        """True if the column is cast wherever it is read."""
        return self.table is not None and any(c.adapted and c.name == name for c in self.table.columns)

    def nullable(self) -> None:
        """All columns may be null from here on: the other side of an outer join may have no partner."""
        self.fields = tuple(f.with_(nullable=True) for f in self.fields)
        self.fixed = False
        self.loose = True


class Env:
    """Where an expression stands: the tables in scope, those around them, and what may be written here.
    `place` is in a person's words. `aggregates` keeps those met; it is None where none may stand. `merged` are the
    columns that `using` made one, `aliases` output columns that may be named here, `later` those that may not yet."""

    __slots__ = ("seen", "outer", "place", "aggregates", "windows", "merged", "aliases", "later")

    def __init__(self, place: str, outer: Env | None = None, seen: list[Seen] | None = None) -> None:
        self.place = place
        self.outer = outer
        self.seen: list[Seen] = seen if seen is not None else []
        self.aggregates: list[ir.Expr] | None = None
        self.windows = False
        self.merged: dict[str, ir.Expr] = {}
        self.aliases: dict[str, ir.Expr] = {}
        self.later: frozenset[str] = frozenset()

    def at(self, place: str, *, aggregates: list[ir.Expr] | None = None, windows: bool = False) -> Env:
        """The same tables at another place of the query."""
        env = Env(place, self.outer, self.seen)
        env.merged = self.merged
        env.aggregates = aggregates
        env.windows = windows
        return env

    def unused(self, name: str) -> str:
        """The name, or one like it that no query around has."""
        taken, level = set[str](), self.outer
        while level is not None:
            taken |= {s.alias for s in level.seen}
            level = level.outer
        made, number = name, 1
        while made in taken or (number > 1 and any(made in (s.name, s.alias) for s in self.seen)):
            number += 1
            made = f"{name}_{number}"
        return made

    def columns(self) -> list[str]:
        """Every column that can be named here."""
        own = [f.name for s in self.seen for f in s.fields]
        return own + (self.outer.columns() if self.outer else [])
