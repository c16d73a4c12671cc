"""The schema of a live memory, read through SQLAlchemy; what com has no word for is kept as unknown, never refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from sqlalchemy import URL, Inspector, create_engine, inspect
from sqlalchemy.pool import StaticPool

from com.node import Node
from com.runtime.engines import Declared, Link, Rule
from com.schema import INT, UNKNOWN, Check, Column, ForeignKey, Index, Schema, Table

HIDDEN = ("com_", "sqlite_")
"""Tables that begin so are com's or the engine's own, and no part of the memory."""


class Reflection(Node):
    """A schema as it was read. `computed`: of each table the columns that the engine fills; `rules`: of each table what
    changes rows behind a program's back."""

    schema: Schema
    computed: dict[str, frozenset[str]]
    rules: dict[str, tuple[Rule, ...]]


def reflect(link: Link, url: URL) -> Reflection:
    """Reads the tables and views of a memory."""
    link.refresh()
    more: dict[str, Any] = {"use_native_hstore": False} if link.name == "postgres" else {}
    engine = create_engine(_dialect(url), creator=lambda: _Steady(link), poolclass=StaticPool, **more)
    with warnings.catch_warnings(), engine.connect() as connection:
        warnings.simplefilter("ignore")
        inspector = inspect(connection)
        types = link.engine_types()
        tables, computed = [], {}
        for name in sorted(types):
            if name.lower().startswith(HIDDEN):
                continue
            written, columns = types[name]
            tables.append(_table(link, inspector, name, not written, columns))
            computed[name] = frozenset(c.name for c in columns if c.computed)
    link.refresh()  # SQLAlchemy leaves some connections otherwise than it found them
    names = {t.name.lower(): t.name for t in tables}
    return Reflection(Schema(tuple(_linked(t, tables, names) for t in tables)), computed, link.rules())


class _Steady:
    """A driver's connection whose transaction SQLAlchemy leaves alone."""

    def __init__(self, link: Link) -> None:
        self._driver = link.driver
        if link.name == "duckdb":  # whose cursors are connections of their own, blind to an open transaction
            self.cursor = lambda: self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def commit(self) -> None:
        """Is com's own to say."""

    begin = rollback = close = commit


_DIALECTS = {"postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql"}
_DIALECTS |= {"mariadb": "mariadb+pymysql"}


def _dialect(url: URL) -> URL:
    """The URL with the driver that com uses."""
    return url.set(drivername=_DIALECTS.get(url.get_backend_name(), url.drivername))


def _table(link: Link, inspector: Inspector, name: str, is_view: bool, types: list[Declared]) -> Table:
    found = {c["name"]: c for c in _tried(lambda: inspector.get_columns(name))}
    key = () if is_view else tuple(_tried(lambda: inspector.get_pk_constraint(name)["constrained_columns"]))
    columns = []
    for column in types:
        type_ = link.read_type(column.type)
        about = found.get(column.name, {})
        takes_ids = key == (column.name,) and type_ == INT and link.takes_ids(column, about)
        columns.append(
            Column(
                column.name,
                type_,
                bool(about.get("nullable", True)) and not takes_ids,  # other keys may be null on SQLite
                _default(about) if not (column.computed or takes_ids or is_view) else None,
                takes_ids,
                column.type if type_ == UNKNOWN else "",
                column.computed,
            )
        )
    if is_view:
        return Table(name, tuple(columns), is_view=True)
    uniques, indexes = [], []
    for index in _indexes(link, inspector, name):
        named = tuple(index["column_names"])
        partial = any(option.endswith("_where") for option in index.get("dialect_options", {}))
        if None in named or partial:
            continue
        if index["unique"] and named != key and named not in uniques:
            uniques.append(named)
        elif not index["unique"]:
            indexes.append(Index(index["name"], named))
    return Table(
        name,
        tuple(columns),
        key,
        tuple(sorted(uniques)),
        tuple(
            ForeignKey(tuple(k["constrained_columns"]), k["referred_table"], tuple(k["referred_columns"]))
            for k in _tried(lambda: inspector.get_foreign_keys(name))
        ),
        tuple(Check(text, False) for text in _checks(link, inspector, name)),
        tuple(sorted(indexes, key=lambda index: index.name)),
    )


def _checks(link: Link, inspector: Inspector, name: str) -> list[str]:
    known = link.checks(name)
    return [c["sqltext"] for c in _tried(lambda: inspector.get_check_constraints(name))] if known is None else known


def _indexes(link: Link, inspector: Inspector, name: str) -> list[Any]:
    """Indexes and unique constraints."""
    if link.name == "sqlite":
        return _tried(lambda: inspector.get_indexes(name, include_auto_indexes=True))
    uniques = _tried(lambda: inspector.get_unique_constraints(name))
    return [{**u, "unique": True} for u in uniques] + _tried(lambda: inspector.get_indexes(name))


def _default(about: dict[str, Any]) -> str | None:
    default = about.get("default")
    return str(default) if default is not None else None


def _tried(read: Callable[[], Any]) -> list[Any]:
    """What the inspector finds; nothing where it stumbles over a table that only this engine understands."""
    try:
        return list(read())
    except Exception:
        return []


def _linked(table: Table, tables: list[Table], names: dict[str, str]) -> Table:
    """The foreign keys with their targets spelled as they are; those to tables that are not there are left out."""
    keys = []
    for key in table.foreign_keys:
        name = names.get(key.table.lower())
        if name is None:
            continue
        target = next(t for t in tables if t.name == name)
        columns = {c.name.lower(): c.name for c in target.columns}
        wanted = key.target or target.primary_key
        if len(wanted) == len(key.columns) and all(c.lower() in columns for c in wanted):
            keys.append(ForeignKey(key.columns, name, tuple(columns[c.lower()] for c in wanted)))
    return table.with_(foreign_keys=tuple(sorted(keys, key=lambda k: (k.columns, k.table))))


def merged(declared: Schema, made: Schema, found: Schema) -> Schema:
    """The tables as declared where the memory is still as it was made, but for its indexes; else as found."""
    known = {t.name: t for t in declared.tables}
    then = {t.name: t.with_(indexes=()) for t in made.tables}
    return Schema(
        tuple(known[t.name] if t.name in known and t.with_(indexes=()) == then.get(t.name) else t for t in found.tables)
    )
