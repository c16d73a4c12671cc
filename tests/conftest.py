"""Options and profiles of the tests."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from sqlalchemy import make_url

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=200, deadline=None, derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the expected blocks of the cases")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--update") and os.environ.get("CI"):
        raise pytest.UsageError("--update is not for CI")


@pytest.fixture(autouse=True)
def quiet_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the settings of whoever runs it."""
    for name in list(os.environ):
        if name.startswith("COM_") and not name.startswith("COM_TEST_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return Path(__file__).parent.parent


# ---------------------------------------------------------------- memories of each engine

POSTGRES = os.environ.get("COM_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")
MYSQL = os.environ.get("COM_TEST_MYSQL", "mysql://root@127.0.0.1:3306/mysql")
ENGINES = ("sqlite", "postgres", "duckdb", "mysql")


def _server(engine: str) -> Any:
    """A connection to the server of an engine, as its administrator; skips if there is none."""
    url = make_url(POSTGRES if engine == "postgres" else MYSQL)
    try:
        if engine == "postgres":
            psycopg = pytest.importorskip("psycopg")
            given = url.translate_connect_args(username="user", database="dbname")
            return url, psycopg.connect(autocommit=True, connect_timeout=3, **given)
        pymysql = pytest.importorskip("pymysql")
        return url, pymysql.connect(autocommit=True, connect_timeout=3, **url.translate_connect_args(username="user"))
    except Exception as error:
        variable = "COM_TEST_POSTGRES" if engine == "postgres" else "COM_TEST_MYSQL"
        pytest.skip(f"NOT TESTED: no server of {engine} at {url}, name one in {variable}: {error}")


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Makes an empty memory of an engine; its URL. Databases on servers are dropped in the end."""
    made: list[tuple[str, str]] = []

    def make(engine: str) -> str:
        name = f"com_test_{os.getpid()}_{uuid.uuid4().hex[:12]}"
        if engine == "sqlite":
            return f"sqlite:///{tmp_path}/{name}.db"
        if engine == "duckdb":
            pytest.importorskip("duckdb")
            return f"duckdb:///{tmp_path}/{name}.duckdb"
        url, server = _server(engine)
        more = "template template0 encoding 'UTF8'" if engine == "postgres" else "character set utf8mb4"
        _say(server, f"create database {name} {more}")
        made.append((engine, name))
        return url.set(database=name).render_as_string(hide_password=False)

    yield make
    for engine, name in made:
        _, server = _server(engine)
        if engine == "mysql":  # whoever still has it open would keep it
            with server.cursor() as cursor:
                cursor.execute(f"select id from information_schema.processlist where db = '{name}'")
                for (number,) in cursor.fetchall():
                    cursor.execute(f"kill {number}")
        _say(server, f"drop database {name}" + (" with (force)" if engine == "postgres" else ""))


def _say(server: Any, text: str) -> None:
    with server.cursor() as cursor:
        cursor.execute(text)
    server.close()
