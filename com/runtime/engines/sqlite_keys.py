"""The keys, checks and indexes of SQLite's tables, read through SQLAlchemy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlalchemy import Inspector, create_engine, inspect
from sqlalchemy.pool import StaticPool

from com.runtime.engines import Keys
from com.schema import ForeignKey, Index

if TYPE_CHECKING:
    from com.runtime.engines.sqlite import SqliteLink


def inspected(link: SqliteLink) -> dict[str, Keys]:
    """What SQLAlchemy finds of each table."""
    engine = create_engine("sqlite://", creator=lambda: _Steady(link.driver), poolclass=StaticPool)
    tables = link.run("select name from pragma_table_list where schema = 'main' and type = 'table'", {})
    with warnings.catch_warnings(), engine.connect() as connection:
        warnings.simplefilter("ignore")
        inspector = inspect(connection)
        return {name: _keys(inspector, name) for (name,) in tables if not name.lower().startswith("com_")}


class _Steady:
    """A driver's connection whose transaction SQLAlchemy leaves alone."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def commit(self) -> None:
        """Is com's own to say."""

    begin = rollback = close = commit


def _keys(inspector: Inspector, table: str) -> Keys:
    key = tuple(_tried(lambda: inspector.get_pk_constraint(table)["constrained_columns"]))
    uniques, indexes = [], []
    for index in _tried(lambda: inspector.get_indexes(table, include_auto_indexes=True)):
        named = tuple(index["column_names"])
        partial = any(option.endswith("_where") for option in index.get("dialect_options", {}))
        if None in named or partial:
            continue
        if index["unique"]:
            uniques.append(named)
        else:
            indexes.append(Index(index["name"], named))
    foreign = [
        ForeignKey(tuple(k["constrained_columns"]), k["referred_table"], tuple(k["referred_columns"]))
        for k in _tried(lambda: inspector.get_foreign_keys(table))
    ]
    checks = [c["sqltext"] for c in _tried(lambda: inspector.get_check_constraints(table))]
    return Keys(key, tuple(uniques), tuple(foreign), tuple(checks), tuple(indexes))


def _tried(read: Callable[[], Any]) -> list[Any]:
    """What the inspector finds; nothing where it stumbles over a table that only SQLite understands."""
    try:
        return list(read())
    except Exception:
        return []
