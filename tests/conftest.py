"""Options and profiles of the tests."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import servers
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


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """The servers are there before the first test, and before the processes that share the tests."""
    config = session.config
    if not hasattr(config, "workerinput") and not config.getoption("collectonly"):
        config.add_cleanup(servers.provide())


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    yield
    for engine in servers.ENGINES:
        if reason := servers.missing(engine):
            terminalreporter.write_line(f"NOT TESTED: {engine}: {reason}", red=True, bold=True)


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

ENGINES = servers.ENGINES


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Makes an empty memory of an engine; its URL. Databases on servers are dropped in the end."""
    made: list[tuple[str, str]] = []

    def make(engine: str) -> str:
        name = f"com_test_{os.getpid()}_{uuid.uuid4().hex[:12]}"
        if engine == "sqlite":
            return f"sqlite:///{tmp_path}/{name}.db"
        if reason := servers.missing(engine):
            pytest.skip(f"{engine} is not tested: {reason}")
        if engine == "duckdb":
            return f"duckdb:///{tmp_path}/{name}.duckdb"
        server = servers.connect(engine)
        more = "template template0 encoding 'UTF8'" if engine == "postgres" else "character set utf8mb4"
        _say(server, f"create database {name} {more}")
        made.append((engine, name))
        return make_url(servers.address(engine)).set(database=name).render_as_string(hide_password=False)

    yield make
    for engine, name in made:
        server = servers.connect(engine)
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
