"""What happens when the driver fails at any moment: memory is as it was, or as the run left it, and com knows which."""

from __future__ import annotations

import shutil
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from com.runtime import run
from com.runtime.memory import Memory, connect, create
from com.runtime.outcome import RunError
from tests.plans import DDL, DELIVER, GOODS_GIVEN, PRICE, SELL, SHOP
from tests.test_runtime import DAY


class Faulty:
    """A driver's connection that fails at its n-th statement, before it is carried out or after."""

    def __init__(self, real: Any, at: int, after: bool, error: Exception, only: str = "") -> None:
        self.real = real
        self.at = at
        self.after = after
        self.error = error
        self.only = only
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def execute(self, sql: str, *values: Any) -> Any:
        return self._do(self.real.execute, sql, *values)

    def executemany(self, sql: str, *values: Any) -> Any:
        return self._do(self.real.executemany, sql, *values)

    def _do(self, do: Any, sql: str, *values: Any) -> Any:
        if sql in ("rollback", "pragma schema_version") or not sql.startswith(self.only):
            return do(sql, *values)
        self.count += 1
        if self.count == self.at:
            if self.after:
                do(sql, *values)
            raise self.error
        return do(sql, *values)


def shop(path: Path) -> Memory:
    memory = create(f"sqlite:///{path}", SHOP, DDL)
    memory.execute(DELIVER, {"goods": GOODS_GIVEN}, clock=DAY)
    return memory


def given() -> dict[str, Any]:
    return {"items": [["apple", 3], ["pear", 1]]}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("name", ["SQLITE_IOERR", "SQLITE_FULL", "SQLITE_BUSY", ""])
def test_every_statement_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool, name: str) -> None:
    monkeypatch.setattr(run, "WAITS", (0, 0, 0))
    first = shop(tmp_path / "first.db")
    clean = first.digest()
    first.close()
    at, ends = 0, set()
    while True:
        at += 1
        shutil.copy(tmp_path / "first.db", tmp_path / "shop.db")
        memory = connect(str(tmp_path / "shop.db"))
        assert memory.schema == SHOP
        error = sqlite3.OperationalError("bad luck")
        error.sqlite_errorname = name
        real = memory.link.driver
        faulty = memory.link.driver = Faulty(real, at, after, error)
        try:
            outcome = memory.execute(SELL, given(), clock=DAY)
            ends.add("done")
            assert outcome.answer == "Sale 1: 6.90, 1.25."
            assert outcome.run_id == 2
        except RunError as failed:
            outcome = None
            ends.add(failed.message.code)
        if memory.link.driver is faulty:
            memory.link.driver = real
        assert not memory.link.in_transaction
        if outcome is None:
            assert memory.digest() == clean
        else:
            assert memory.outcome(2).changes == outcome.changes
        sales = memory.link.run("select count(*) from sales", {})[0][0]
        done = [r.run for r in memory.log() if r.status == "done"]
        assert done == ([1, 2] if sales else [1])
        assert memory.verify() == []
        memory.close()
        real.close()
        if faulty.count < at:
            break
    assert at > 15
    assert (
        ends
        == {
            "SQLITE_IOERR": {"CM519", "done"},
            "SQLITE_FULL": {"CM518", "done"},
            "SQLITE_BUSY": {"done"},
            "": {"CM515", "done"},
        }[name]
    )


def test_a_lost_commit_that_did_not_happen(tmp_path: Path) -> None:
    memory = shop(tmp_path / "shop.db")
    clean = memory.digest()
    real = memory.link.driver

    class Lost(Faulty):
        def _do(self, do: Any, sql: str, *values: Any) -> Any:
            if sql == "commit":
                self.real.execute("rollback")
                raise self.error
            return do(sql, *values)

    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = "SQLITE_IOERR"
    memory.link.driver = Lost(real, 0, False, error)
    with pytest.raises(RunError) as failed:
        memory.execute(SELL, given(), clock=DAY)
    assert failed.value.message.code == "CM519"
    assert memory.digest() == clean
    memory.close()


def test_a_run_waits_while_somebody_else_writes(tmp_path: Path) -> None:
    memory = shop(tmp_path / "shop.db")
    other = sqlite3.connect(tmp_path / "shop.db", isolation_level=None, check_same_thread=False)
    other.execute("begin immediate")
    threading.Timer(0.2, lambda: other.execute("commit")).start()
    assert memory.execute(SELL, given(), clock=DAY).run_id == 2
    memory.close()
    other.close()


def test_a_run_gives_up_when_the_lock_stays(tmp_path: Path) -> None:
    shop(tmp_path / "shop.db").close()
    memory = connect(str(tmp_path / "shop.db"), timeout=0.01)
    other = sqlite3.connect(tmp_path / "shop.db", isolation_level=None)
    other.execute("begin immediate")
    with pytest.raises(RunError) as failed:
        memory.execute(SELL, given(), clock=DAY)
    assert failed.value.message.code == "CM516"
    other.execute("commit")
    assert memory.execute(SELL, given(), clock=DAY).run_id == 2
    memory.close()
    other.close()


def test_a_statement_that_takes_too_long(tmp_path: Path) -> None:
    from com.plan import Field
    from com.schema import INT
    from tests.test_runtime import statement_plan

    shop(tmp_path / "shop.db").close()
    memory = connect(str(tmp_path / "shop.db"), seconds=0.1)
    endless = (
        "with recursive t(n) as (select 1 union all select n + 1 from t) select max(n) from t where n < 1000000000"
    )
    start = time.monotonic()
    with pytest.raises(RunError) as failed:
        memory.execute(statement_plan(endless, Field("n", INT)))
    assert failed.value.message.code == "CM517"
    assert time.monotonic() - start < 5
    assert memory.execute(SELL, given(), clock=DAY).run_id is not None
    memory.close()


def test_ctrl_c_rolls_back(tmp_path: Path) -> None:
    memory = shop(tmp_path / "shop.db")
    clean = memory.digest()
    real = memory.link.driver
    memory.link.driver = Faulty(real, 9, True, KeyboardInterrupt())  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        memory.execute(SELL, given(), clock=DAY)
    memory.link.driver = real
    assert not memory.link.in_transaction
    assert memory.digest() == clean
    assert len(memory.log()) == 1
    memory.close()


@pytest.mark.slow
def test_four_threads_on_the_same_rows(tmp_path: Path) -> None:
    """Each run is alone: what four of them sell at once is what is missing in the end."""
    path = tmp_path / "shop.db"
    with shop(path) as memory:
        memory.execute(DELIVER, {"goods": [["plum", 1, 1000]]}, clock=DAY)
    failures: list[Exception] = []

    def sell() -> None:
        try:
            with connect(str(path), timeout=30) as own:
                for _ in range(10):
                    own.execute(SELL, {"items": [["plum", 2]]}, clock=DAY)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=sell) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with connect(str(path)) as memory:
        assert memory.link.run("select stock from fruits where fruit_name = 'plum'", {}) == [(920,)]
        assert [r.run for r in memory.log()] == list(range(1, 43))
        ids = memory.link.run("select sale_id from sales order by 1", {})
        assert ids == [(n,) for n in range(1, 41)]
        assert memory.verify() == []
        assert PRICE is not None
