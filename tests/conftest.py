"""Options and profiles of the tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

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
