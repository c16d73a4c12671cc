"""The wheel: built without a network, installed alone with the packages it names, and used."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.slow

SCHEMA = "create table fruits (fruit_id int primary key generated always as identity, fruit_name text not null unique);"
PROGRAM = """program add(name text);

step put: insert into fruits (fruit_name) values ($name) returning fruit_id;
answer 'Fruit {$put.fruit_id} is {$name}.';
"""


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--wheel-dir", folder, root], check=True)
    (made,) = folder.glob("com-*.whl")
    return made


def needed(wheel: Path) -> set[str]:
    """The packages that the wheel names, and those that they name."""
    with zipfile.ZipFile(wheel) as packed:
        (metadata,) = [name for name in packed.namelist() if name.endswith("METADATA")]
        lines = packed.read(metadata).decode().splitlines()
    open_ = [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")]
    found: set[str] = set()
    while open_:
        requirement = Requirement(open_.pop())
        if requirement.name not in found and (not requirement.marker or requirement.marker.evaluate({"extra": ""})):
            found.add(requirement.name)
            open_ += distribution(requirement.name).requires or []
    return found


def lend(package: str, site: Path) -> None:
    """Link what a package has installed here into another environment."""
    installed = distribution(package)
    for top in {file.parts[0] for file in installed.files or [] if file.parts[0] != ".."}:
        if not (site / top).exists():
            (site / top).symlink_to(Path(str(installed.locate_file(top))))


def test_it_ships_the_grammar_and_its_tables(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    assert {"com/grammar.lark", "com/grammar.tables", "com/py.typed", "com/__init__.pyi"} <= names
    assert not any(name.startswith("tests/") for name in names)


@pytest.fixture
def alone(wheel: Path, tmp_path: Path) -> Path:
    """The Python of an environment that has the wheel, and what it needs without an extra."""
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    for package in needed(wheel):
        lend(package, site)
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    return tmp_path / "venv" / "bin" / "python"


@pytest.mark.parametrize(
    ("url", "driver", "extra"),
    [
        ("postgresql://me@127.0.0.1/shop", "psycopg", "postgres"),
        ("duckdb:///shop.duckdb", "duckdb", "duckdb"),
        ("mysql://me@127.0.0.1/shop", "PyMySQL", "mysql"),
    ],
)
def test_it_names_the_extra_of_a_driver(alone: Path, tmp_path: Path, url: str, driver: str, extra: str) -> None:
    (tmp_path / "shop.duckdb").touch()
    words = [alone, "-I", "-m", "com", "log", "--memory", url]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    told = done.stdout + done.stderr
    assert done.returncode and "CM593" in told
    assert f"its driver {driver} is not installed" in told and f"pip install 'com[{extra}]'" in told


def test_it_checks_and_runs_a_program(alone: Path, tmp_path: Path) -> None:
    (tmp_path / "schema.com").write_text(SCHEMA)
    (tmp_path / "add.com").write_text(PROGRAM)

    def com(*words: str) -> str:
        done = subprocess.run([alone, "-I", "-m", "com", *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert com("--version").startswith("com 0.")
    com("check", "add.com", "--schema", "schema.com")
    com("init", "--schema", "schema.com", "--memory", "sqlite:///fruits.db")
    told = com("run", "add.com", "--memory", "sqlite:///fruits.db", "--param", "name=Durian")
    assert "Fruit 1 is Durian." in told
