"""Runs of plans made by hand: what they give, what they change, how they fail."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from com.diagnostics import Error
from com.plan import Answer, Call, Computed, Constant, Field, Parameter, Plan, Read, Ref, Scalar, Statement, Template
from com.runtime import run as run_module
from com.runtime.calls import registered
from com.runtime.memory import Memory, connect, create
from com.runtime.outcome import RunError
from com.schema import BOOL, DATE, FLOAT, INT, JSON, TEXT, TIMESTAMP, Schema, decimal, schema_hash
from com.source import NOWHERE
from tests import plans
from tests.plans import DDL, DELIVER, DROP, GOODS_GIVEN, PRICE, SELL, SHOP, STOCK, TWICE

DAY = datetime(2023, 1, 15, 9, 30)


@pytest.fixture
def memory() -> Iterator[Memory]:
    with create("sqlite://", SHOP, DDL) as made:
        made.execute(DELIVER, {"goods": GOODS_GIVEN}, clock=DAY)
        yield made


def sell(memory: Memory, *items: Any, **options: Any) -> Any:
    return memory.execute(SELL, {"items": list(items)}, clock=DAY, **options)


def test_a_program_reads_writes_loops_and_answers(memory: Memory) -> None:
    outcome = sell(memory, ["apple", 3], ["pear", 1])
    assert outcome.columns == ("fruit_id", "qty", "total")
    assert outcome.rows == ((1, 3, Decimal("6.90")), (2, 1, Decimal("1.25")))
    assert outcome.to_dicts()[1] == {"fruit_id": 2, "qty": 1, "total": Decimal("1.25")}
    assert outcome.answer == "Sale 1: 6.90, 1.25."
    assert [(c.table, c.key, c.verb) for c in outcome.changes] == [
        ("sales", (1,), "inserted"),
        ("fruits", (1,), "updated"),
        ("fruits", (2,), "updated"),
    ]
    assert outcome.changes[0].after == {"sale_id": 1, "day": date(2023, 1, 15), "total": Decimal("8.15")}
    assert outcome.changes[1].before is not None and outcome.changes[1].before["stock"] == 10
    assert [(s.number, s.path, s.kind, s.count) for s in outcome.steps] == [
        (1, "lines", "read", 2),
        (2, "sale", "insert", 1),
        (3, "line[*].take", "update", 2),
    ]
    assert outcome.run_id == 2


def test_a_loop_whose_rows_meet_goes_row_by_row(memory: Memory) -> None:
    outcome = sell(memory, ["apple", 3], ["apple", 1])
    assert [s.path for s in outcome.steps] == ["lines", "sale", "line[1].take", "line[2].take"]
    assert [c.key for c in outcome.changes if c.table == "fruits"] == [(1,)]
    assert outcome.changes[-1].after is not None and outcome.changes[-1].after["stock"] == 6


def test_batch_and_loop_give_the_same() -> None:
    states = []
    for items in ([["apple", 3], ["pear", 1]], [["apple", 3], ["pear", 1], ["apple", 0]]):
        with create("sqlite://", SHOP, DDL) as memory:
            memory.execute(DELIVER, {"goods": GOODS_GIVEN})
            states.append((memory.execute(SELL, {"items": items}, clock=DAY).changes, memory.digest()))
    assert states[0] == states[1]


def test_a_failure_in_a_batch_names_its_row(memory: Memory) -> None:
    before = memory.digest()
    with pytest.raises(RunError) as failed:
        sell(memory, ["pear", 1], ["apple", 30])
    error = failed.value
    assert (error.message.code, error.path, error.run_id) == ("CM507", "line[2].take", 2)
    assert error.row == {"fruit_id": 1, "qty": 30, "total": Decimal("69.00")}
    assert memory.digest() == before
    assert [(r.run, r.status, r.code, r.path) for r in memory.log()][1:] == [(2, "failed", "CM507", "line[2].take")]


@pytest.mark.parametrize(
    ("plan", "given", "code", "text"),
    [
        (SELL, {"items": [["kiwi", 1]]}, "CM501", "Not sold here: kiwi."),
        (PRICE, {"name": "kiwi", "price": 1}, "CM502", "step set wrote no row, but is declared one"),
        (DELIVER, {"goods": [["apple", 1, 1]]}, "CM503", "fruits holds a row with this fruit_name already"),
        (TWICE, {}, "CM504", "a row of fruits is met by two source rows: apple"),
    ],
)
def test_failures_have_a_code_and_change_nothing(
    memory: Memory, plan: Plan, given: dict[str, Any], code: str, text: str
) -> None:
    before = memory.digest()
    with pytest.raises(RunError) as failed:
        memory.execute(plan, given)
    assert (failed.value.message.code, failed.value.diagnostic.text) == (code, text)
    assert memory.digest() == before


def statement_plan(sql: str, *fields: Field, table: str = "", verb: str = "insert") -> Plan:
    if table:
        write = plans.Write(verb, table, None, None, (), (), (Statement(sql, ()),), (), None)
        return plans.program("made", (), plans.step("s", write))
    return plans.program("made", (), plans.read("s", sql, fields), result=Ref("step", "s"))


@pytest.mark.parametrize(
    ("sql", "table", "verb", "code"),
    [
        ("insert into lines values (99, 1, 1)", "lines", "insert", "CM505"),
        ("delete from fruits where fruit_id = 1", "fruits", "delete", "CM506"),
        ("update fruits set stock = null where fruit_id = 1", "fruits", "update", "CM508"),
        ("update fruits set stock = com_int(9223372036854775807 + stock)", "fruits", "update", "CM509"),
        ("update fruits set stock = com_cast('int', fruit_name)", "fruits", "update", "CM511"),
        ("update fruits set fruit_id = 'x'", "fruits", "update", "CM521"),
        ("update fruits set nothing = 1", "fruits", "update", "CM515"),
    ],
)
def test_engine_failures_in_our_words(memory: Memory, sql: str, table: str, verb: str, code: str) -> None:
    sell(memory, ["apple", 1])
    memory.link.run("insert into lines values (1, 1, 1)", {})
    with pytest.raises(RunError) as failed:
        memory.execute(statement_plan(sql, table=table, verb=verb))
    assert failed.value.message.code == code, failed.value


@pytest.mark.parametrize(
    ("sql", "type_", "code"),
    [
        ("select 9223372036854775807 + 1", INT, "CM509"),
        ("select 1e308 * 10", FLOAT, "CM509"),
        ("select 1234567890123456.5", decimal(20, 1), "CM510"),
        ("select 'abc'", INT, "CM512"),
        ("select 2.5", INT, "CM512"),
        ("select '2023-02-30'", DATE, "CM512"),
        ("select 'yes'", BOOL, "CM512"),
        ("select '{'", JSON, "CM512"),
    ],
)
def test_what_cannot_be_read(memory: Memory, sql: str, type_: Any, code: str) -> None:
    with pytest.raises(RunError) as failed:
        memory.execute(statement_plan(sql, Field("x", type_)))
    assert failed.value.message.code == code


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ({}, "CM598", "items"),
        ({"items": [], "dya": "2023-01-01"}, "CM597", "did you mean day?"),
        ({"items": [], "day": None}, "CM596", "day cannot take null"),
        ({"items": [], "day": "2023-02-30"}, "CM596", "day cannot take '2023-02-30'"),
        ({"items": [{"fruit": "a", "qyt": 1}]}, "CM597", "did you mean qty?"),
        ({"items": [{"fruit": "a"}]}, "CM598", "items[1].qty"),
        ({"items": [["a", None]]}, "CM596", "items[1].qty cannot take null"),
        ({"items": [["a", 1.5]]}, "CM596", "a whole number"),
        ({"items": [["a", 1, 2]]}, "CM596", "items[1]"),
        ({"items": [["a\0", 1]]}, "CM596", "a text without NUL"),
        ({"items": "apple"}, "CM596", "a list of rows"),
    ],
)
def test_parameters_are_checked(memory: Memory, given: dict[str, Any], code: str, words: str) -> None:
    with pytest.raises(Error) as failed:
        memory.execute(SELL, given)
    message = failed.value.message
    assert message.code == code
    assert words in message.fill(message.text) + " " + message.fill(message.help)


@pytest.mark.parametrize("price", [2.3, "2.3", Decimal("2.3"), Decimal("2.300")])
def test_decimals_are_taken_as_they_are_written(memory: Memory, price: Any) -> None:
    (change,) = memory.execute(PRICE, {"name": "pear", "price": price}).changes
    assert change.after is not None and str(change.after["price"]) == "2.30"


@pytest.mark.parametrize("price", [2.345, "2.345", 1e9, "x", float("nan"), True])
def test_decimals_that_do_not_fit(memory: Memory, price: Any) -> None:
    with pytest.raises(Error) as failed:
        memory.execute(PRICE, {"name": "pear", "price": price})
    assert failed.value.message.code == "CM596"


def test_ids_have_no_gaps_after_failures(memory: Memory) -> None:
    for _ in range(3):
        with pytest.raises(RunError):
            sell(memory, ["apple", 1000])
    assert sell(memory, ["apple", 1]).answer.startswith("Sale 1:")
    assert sell(memory, ["apple", 1]).answer.startswith("Sale 2:")
    memory.execute(DROP, {"name": "fig"})
    memory.execute(DELIVER, {"goods": [["plum", 1, 1]]})
    assert memory.execute(STOCK).run_id == 9
    ids = memory.link.run("select fruit_id from fruits where fruit_name = 'plum'", {})
    assert ids == [(4,)]  # 3 was given out once


def test_a_dry_run_leaves_no_trace(memory: Memory, tmp_path: Path) -> None:
    copy = tmp_path / "shop.db"
    target = sqlite3.connect(copy)
    memory.link.driver.backup(target)
    target.close()
    before = copy.read_bytes()
    with connect(str(copy)) as opened:
        preview = opened.dry_run(SELL, {"items": [["apple", 2]]}, clock=DAY)
    assert copy.read_bytes() == before
    assert preview.run_id is None and preview.answer == "Sale 1: 4.60."
    assert any("update fruits" in s.sql for s in preview.statements)
    with connect(str(copy), read_only=True) as opened:
        assert opened.dry_run(SELL, {"items": [["apple", 2]]}, clock=DAY).preview == preview.preview
        assert opened.execute(STOCK).rows[0] == ("apple", 10)
        with pytest.raises(Error) as failed:
            opened.execute(PRICE, {"name": "pear", "price": 1})
        assert failed.value.message.code == "CM542"
    assert copy.read_bytes() == before


def test_an_approved_preview_is_what_is_run(memory: Memory) -> None:
    preview = memory.dry_run(SELL, {"items": [["apple", 2]]}, clock=DAY)
    memory.execute(PRICE, {"name": "apple", "price": 9})
    with pytest.raises(RunError) as failed:
        sell(memory, ["apple", 2], approve=preview.preview)
    assert failed.value.message.code == "CM520"
    again = memory.dry_run(SELL, {"items": [["apple", 2]]}, clock=DAY)
    assert sell(memory, ["apple", 2], approve=again.preview).changes == again.changes


def test_without_history_nothing_is_kept(memory: Memory) -> None:
    outcome = sell(memory, ["apple", 2], history=False)
    assert outcome.changes == ()
    assert memory.link.run("select count(*) from com_change where run = 2", {}) == [(0,)]
    assert memory.digest() != ""


def test_a_key_gives_the_first_outcome(memory: Memory) -> None:
    first = sell(memory, ["apple", 2], key="k1")
    again = sell(memory, ["apple", 2], key="k1")
    assert again.repeated and not first.repeated
    assert again.with_(repeated=False) == first
    with pytest.raises(Error) as failed:
        sell(memory, ["apple", 3], key="k1")
    assert failed.value.message.code == "CM601"
    with pytest.raises(Error) as failed:
        memory.execute(STOCK, key="k1")
    assert failed.value.message.code == "CM601"


def test_a_failed_run_does_not_hold_its_key(memory: Memory) -> None:
    with pytest.raises(RunError):
        sell(memory, ["kiwi", 2], key="k1")
    memory.execute(DELIVER, {"goods": [["kiwi", 1, 9]]})
    assert not sell(memory, ["kiwi", 2], key="k1").repeated


def test_values_as_answers_show_them(memory: Memory) -> None:
    shown = [
        (Decimal("1.50"), decimal(5, 2)),
        (0.1 + 0.2, FLOAT),
        (1e20, FLOAT),
        (True, BOOL),
        (None, TEXT),
        (date(2023, 1, 2), DATE),
        (datetime(2023, 1, 2, 3, 4, 5), TIMESTAMP),
        ("a", TEXT),
    ]
    parts: list[Any] = []
    for value, type_ in shown:
        parts += [Constant(value, type_), " "]
    parts.append(Computed(0, decimal(9, 2)))
    template = Template(tuple(parts), Statement("select 7.5", ()))
    outcome = memory.execute(plans.program("shown", (), Answer(template, NOWHERE)))
    assert outcome.answer == "1.50 0.3 1e20 true nothing 2023-01-02 2023-01-02 03:04:05 a 7.50"


def test_defaults_lists_and_the_clock(memory: Memory) -> None:
    names = plans.Many(Ref("parameter", "names"), None, TEXT)
    fields = (Field("n", INT), Field("t", TIMESTAMP))
    plan = plans.program(
        "found",
        (
            Parameter("names", "list", TEXT, (), "many", False, None),
            plans.value("at", TIMESTAMP, Scalar(Ref("clock", "now"), None, TIMESTAMP)),
        ),
        plans.read(
            "s",
            "select count(*), :at from fruits where fruit_name in (select value from json_each(:names))",
            fields,
            ("names", names),
            ("at", plans.parameter("at", TIMESTAMP)),
        ),
        result=Ref("step", "s"),
    )
    assert memory.execute(plan, {"names": ["apple", "fig", "x"]}, clock=DAY).rows == ((2, DAY),)
    assert memory.execute(plan, {"names": []}, clock=DAY).rows == ((0, DAY),)
    many = [str(i) for i in range(100_000)]
    assert memory.execute(plan, {"names": many}, clock=DAY).rows == ((0, DAY),)


# ---------------------------------------------------------------- calls


def call_plan(function: str = "double") -> Plan:
    """Reads, calls, writes what came back."""
    call = Call(
        function, (("x", Computed(0, INT)),), Statement("select stock from fruits where fruit_name = 'apple'", ())
    )
    doubled = plans.step("doubled", call, (Field("value", INT),))  # type: ignore[arg-type]
    set_ = plans.update(
        "set",
        "fruits",
        "stock = :x",
        "fruit_name = 'apple'",
        ("x", Scalar(Ref("step", "doubled"), "value", INT)),
    )
    return plans.program(function, (), doubled, set_)


class Double:
    def __init__(self) -> None:
        self.calls = 0
        self.during: Any = None

    def __call__(self, x: int) -> int:
        self.calls += 1
        if self.during:
            self.during()
        if x > 1000:
            raise RuntimeError("too much")
        return 2 * x


def shop(path: Path, double: Double) -> Memory:
    def function(x: int) -> int:
        return double(x)

    calls = {"double": registered(function, "double")}
    if not path.exists():
        create(str(path), SHOP, DDL).close()
    memory = connect(str(path), calls=calls)
    if not memory.log():
        memory.execute(DELIVER, {"goods": GOODS_GIVEN}, clock=DAY)
    return memory


def test_a_call_is_made_once_outside_of_any_transaction(tmp_path: Path) -> None:
    double = Double()
    with shop(tmp_path / "a.db", double) as memory:

        def during() -> None:
            assert not memory.link.in_transaction
            with connect(str(tmp_path / "a.db")) as other:
                other.execute(PRICE, {"name": "pear", "price": 7})

        double.during = during
        outcome = memory.execute(call_plan())
        assert double.calls == 1
        assert outcome.changes[0].after is not None and outcome.changes[0].after["stock"] == 20
        assert [r.status for r in memory.log()] == ["done", "done", "done"]
        assert [s.kind for s in outcome.steps] == ["call", "update"]
        found = memory.replay(outcome.run_id or 0, lambda *_: call_plan())
        assert found.same, found.differences
        assert double.calls == 1


def test_a_run_that_was_cut_off_goes_on_with_its_calls(tmp_path: Path) -> None:
    double = Double()
    with shop(tmp_path / "a.db", double) as memory:
        real = memory.link.driver

        class Cut:
            def __getattr__(self, name: str) -> Any:
                return getattr(real, name)

            def execute(self, sql: str, *values: Any) -> Any:
                if sql.startswith("update fruits"):
                    raise KeyboardInterrupt
                return real.execute(sql, *values)

        memory.link.driver = Cut()
        with pytest.raises(KeyboardInterrupt):
            memory.execute(call_plan(), key="once")
        memory.link.driver = real
        assert [r.status for r in memory.log()] == ["done", "pending"]
    with shop(tmp_path / "a.db", double) as memory:
        outcome = memory.execute(call_plan(), key="once")
        assert (outcome.run_id, double.calls) == (2, 1)
        assert [r.status for r in memory.log()] == ["done", "done"]


def test_a_call_that_fails_fails_the_run(tmp_path: Path) -> None:
    double = Double()
    with shop(tmp_path / "a.db", double) as memory:
        for _ in range(7):
            memory.execute(call_plan())
        with pytest.raises(RunError) as failed:
            memory.execute(call_plan())
        assert failed.value.message.code == "CM531"
        assert "RuntimeError: too much" in str(failed.value)
        assert memory.log()[-1].status == "failed"
        with pytest.raises(RunError) as failed:
            memory.execute(call_plan("duoble"))
        assert failed.value.message.code == "CM530"
        assert "did you mean double?" in failed.value.diagnostic.help


def test_calls_of_a_dry_run(tmp_path: Path) -> None:
    double = Double()
    with shop(tmp_path / "a.db", double) as memory:
        with pytest.raises(RunError) as failed:
            memory.dry_run(call_plan())
        assert failed.value.message.code == "CM533"
        assert memory.dry_run(call_plan(), calls={"double": 5}).changes[0].after["stock"] == 5  # type: ignore[index]
        with pytest.raises(RunError) as failed:
            memory.dry_run(call_plan(), calls={"double": "much"})
        assert failed.value.message.code == "CM532"
        assert double.calls == 0
        assert memory.dry_run(call_plan(), make_calls=True).changes[0].after["stock"] == 20  # type: ignore[index]
        assert double.calls == 1


def test_a_live_run_that_was_taken_up_gives_the_others_outcome(tmp_path: Path) -> None:
    double, others = Double(), Double()
    with shop(tmp_path / "a.db", double) as memory:

        def during() -> None:
            with shop(tmp_path / "a.db", others) as other:
                assert not other.execute(call_plan(), key="once").repeated

        double.during = during
        outcome = memory.execute(call_plan(), key="once")
        assert outcome.repeated and outcome.run_id == 2
        assert (double.calls, others.calls) == (1, 1)
        assert memory.link.run("select stock from fruits where fruit_name = 'apple'", {}) == [(20,)]
        assert [(r.status, r.attempt) for r in memory.log()] == [("done", 0), ("done", 2)]
        assert memory.verify() == []


def test_a_live_run_loses_cleanly_to_one_that_fails(tmp_path: Path) -> None:
    double, others = Double(), Double()
    with shop(tmp_path / "a.db", double) as memory:
        before = memory.digest()

        def during() -> None:
            with shop(tmp_path / "a.db", others) as other, pytest.raises(RunError):
                other.execute(call_plan(), key="once")

        def broken() -> None:
            raise ValueError("broken")

        double.during, others.during = during, broken
        with pytest.raises(RunError) as failed:
            memory.execute(call_plan(), key="once")
        assert failed.value.message.code == "CM609"
        assert "CM531 double failed: ValueError: broken" in failed.value.diagnostic.text
        assert memory.digest() == before
        assert [(r.status, r.code) for r in memory.log()] == [("done", None), ("failed", "CM531")]
        assert memory.verify() == []
        double.during = None
        assert not memory.execute(call_plan(), key="once").repeated


def test_a_failure_does_not_overwrite_what_the_other_has_done(tmp_path: Path) -> None:
    double, others = Double(), Double()
    with shop(tmp_path / "a.db", double) as memory:

        def during() -> None:
            with shop(tmp_path / "a.db", others) as other:
                other.execute(call_plan(), key="once")
            raise ValueError("too late")

        double.during = during
        assert memory.execute(call_plan(), key="once").repeated
        assert [r.status for r in memory.log()] == ["done", "done"]


def test_a_key_used_before_the_run_is_reserved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    double, others = Double(), Double()
    with shop(tmp_path / "a.db", double) as memory:
        call = run_module._Attempts._call

        def late(self: Any, need: Any) -> None:
            monkeypatch.setattr(run_module._Attempts, "_call", call)
            with shop(tmp_path / "a.db", others) as other:
                other.execute(call_plan(), key="once")
            call(self, need)

        monkeypatch.setattr(run_module._Attempts, "_call", late)
        assert memory.execute(call_plan(), key="once").repeated
        assert (double.calls, others.calls) == (0, 1)


def test_a_call_is_made_again_when_its_inputs_have_changed(tmp_path: Path) -> None:
    double = Double()
    with shop(tmp_path / "a.db", double) as memory:
        left = [2]

        def during() -> None:
            if left[0]:
                left[0] -= 1
                with connect(str(tmp_path / "a.db")) as other:
                    other.execute(SELL, {"items": [["apple", 1]]}, clock=DAY)

        double.during = during
        outcome = memory.execute(call_plan())
        assert double.calls == 3
        assert outcome.changes[0].after is not None and outcome.changes[0].after["stock"] == 16
        assert memory.verify() == []
        left[0] = 100
        with pytest.raises(RunError) as failed:
            memory.execute(call_plan())
        assert failed.value.message.code == "CM534"
        number = failed.value.run_id or 0
        plans_by_text = {p.text: p for p in (call_plan(), SELL)}
        found = memory.replay(number, lambda text, *_: plans_by_text[text])
        assert found.same, found.differences


# ---------------------------------------------------------------- memories


def test_create_wants_an_empty_memory(tmp_path: Path) -> None:
    create(f"sqlite:///{tmp_path}/a.db", SHOP, DDL).close()
    with pytest.raises(Error) as failed:
        create(f"sqlite:///{tmp_path}/a.db", SHOP, DDL)
    assert failed.value.message.code == "CM540"
    assert Read is not None


@pytest.mark.parametrize("url", ["nosuch://x", "://", "/nowhere/at/all/x.db"])
def test_urls_that_name_nothing(url: str) -> None:
    with pytest.raises(Error) as failed:
        connect(url)
    assert failed.value.message.code == "CM593"


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("not a database, but long enough to be looked at" * 100)
    with pytest.raises(Error) as failed:
        connect(str(tmp_path / "x.db"))
    assert failed.value.message.code == "CM593"
    with pytest.raises(Error):
        connect(str(tmp_path / "none.db"), read_only=True)
    assert not (tmp_path / "none.db").exists()


def test_a_plan_is_for_one_schema(memory: Memory) -> None:
    memory.link.run("create table more (a integer primary key)", {})
    assert memory.schema.table("more") is not None
    with pytest.raises(Error) as failed:
        memory.execute(STOCK)
    assert failed.value.message.code == "CM541"
    plan = STOCK.with_(schema=schema_hash(memory.schema))
    assert memory.execute(plan).rows[0] == ("apple", 10)
    assert memory.schema != Schema(SHOP.tables)


@pytest.mark.parametrize(
    ("column", "now"),
    [
        ("stock integer not null default 0", "stock text not null default 0"),
        ("stock integer not null default 0", "stock integer not null default 1"),
        ("stock >= 0", "stock >= 1"),
        ("decimal(10,2)", "decimal(12,2)"),
    ],
)
def test_a_schema_changed_outside_is_noticed(tmp_path: Path, column: str, now: str) -> None:
    create(str(tmp_path / "a.db"), SHOP, DDL).close()
    with connect(str(tmp_path / "a.db")) as memory:
        assert memory.schema == SHOP
        before = memory.schema_hash
        memory.link.run("create index by_price on fruits (price)", {})
        assert memory.schema == SHOP
        text = memory.link.run("select sql from sqlite_master where name = 'fruits'", {})[0][0]
        assert column in text
        memory.link.run("drop table fruits", {})
        memory.link.run(text.replace(column, now), {})
        assert memory.schema != SHOP and memory.schema_hash != before
        assert memory.schema.table("sales") == SHOP.table("sales")


def test_an_older_or_newer_journal(memory: Memory) -> None:
    memory.link.run("update com_meta set value = '99' where name = 'journal'", {})
    with pytest.raises(Error) as failed:
        memory.log()
    assert failed.value.message.code == "CM604"
