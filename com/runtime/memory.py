"""A memory: opened by URL, its schema, its runs, its journal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from com.diagnostics import (
    BadParameter,
    ChainBroken,
    Error,
    OtherSchema,
    ReadOnlyMemory,
    TablesThere,
    UnknownMemory,
    UnseenChanges,
)
from com.plan import Plan
from com.runtime import journal, replay
from com.runtime.arguments import Given, take
from com.runtime.bind import Program
from com.runtime.calls import REGISTRY, Recorded, Registry
from com.runtime.canon import hash_text
from com.runtime.digest import digest
from com.runtime.engines import EngineError, Link, engine_of, open_link, patiently
from com.runtime.failures import explain
from com.runtime.journal import Flaw, RunRow
from com.runtime.outcome import Outcome
from com.runtime.reflect import Reflection, merged, reflect
from com.runtime.replay import Compile, Create, Progress, Rebuilt, Replayed
from com.runtime.run import Order, Runner, local_time, read_outcome, real_time
from com.runtime.verify import verify
from com.schema import Schema, dump_schema, load_schema, schema_hash, without_keys

PROGRAMS = 256
"""So many plans are kept ready."""


def connect(
    url: str,
    *,
    read_only: bool = False,
    history: bool = True,
    zone: str = "UTC",
    timeout: float = 5.0,
    seconds: float | None = None,
    calls: Registry | None = None,
) -> Memory:
    """Opens a memory. `url` is SQLAlchemy's (`sqlite:///shop.db`, `sqlite://` in RAM), or the path of a SQLite file.

    `history`: whether row images are kept. `zone`: of $now and $today. `timeout`: seconds to wait for a lock.
    `seconds`: how long one statement may take. `calls`: the functions programs may call, else all that are registered.
    """
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise Error(BadParameter("zone", repr(zone), "a time zone", "write it as Europe/Madrid or UTC")) from None
    address = read_url(url)
    in_file = engine_of(address) in ("sqlite", "duckdb") and address.database not in (None, "", ":memory:")
    if read_only and in_file and not Path(address.database or "").exists():
        raise Error(UnknownMemory(url, "there is no such file", "look at its path, or create it first"))
    link = open_link(address, read_only=read_only, timeout=timeout, seconds=seconds)
    return Memory(link, address, history=history, zone=zone, calls=REGISTRY if calls is None else calls)


def create(url: str, schema: Schema, statements: Iterable[str], **options: Any) -> Memory:
    """Makes a new memory that holds the tables of a schema: `statements` are their DDL. Error if it has tables."""
    memory = connect(url, **options)
    try:
        there = [t.name for t in memory.schema.tables]
        if there:
            raise Error(TablesThere(", ".join(there)))
        memory.make_tables(schema, statements)
    except BaseException:
        memory.close()
        raise
    return memory


def read_url(url: str) -> URL:
    """The URL of a memory; a bare path is that of a SQLite file."""
    if "\0" in url:
        raise Error(UnknownMemory(repr(url), "it holds NUL", "write it as sqlite:///shop.db, or name a file"))
    help_ = "write it as sqlite:///shop.db, or name a file"
    if "://" not in url:
        if url.startswith(("sqlite:", "duckdb:")):
            raise Error(UnknownMemory(url, "it is no URL", help_))
        return URL.create("sqlite", database=url)
    try:
        made = make_url(url)
    except (ArgumentError, ValueError):
        raise Error(UnknownMemory(url, "it is no URL", help_)) from None
    if made.host and made.get_backend_name() in ("sqlite", "duckdb"):
        file = f"{made.get_backend_name()}:///{made.host}"
        raise Error(UnknownMemory(url, f"{made.host} stands where a server would", f"write {file} for a file"))
    return made


class Memory:
    """An open memory. Not to be shared by threads."""

    def __init__(self, link: Link, url: URL, *, history: bool, zone: str, calls: Registry) -> None:
        self.link = link
        self.url = url
        self.history = history
        self.zone = zone
        self.calls = calls
        self._runner = Runner(link, calls)
        self._programs: dict[int, Program] = {}
        self._reflection: Reflection | None = None
        self._stamp: Any = None
        self._hash = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection."""
        self.link.close()

    # ------------------------------------------------------------ schema

    @property
    def engine(self) -> str:
        """The engine's name: sqlite, postgres, duckdb or mysql."""
        return self.link.name

    @property
    def schema(self) -> Schema:
        """The tables and views that the memory holds now, com's own left out."""
        return self._reflected().schema

    @property
    def schema_hash(self) -> str:
        """The hash of the schema, as plans name it."""
        self._reflected()
        return self._hash

    def _reflected(self) -> Reflection:
        stamp = patiently(self.link.stamp, self.link)
        if self._reflection is None or stamp != self._stamp:
            stamp, found = patiently(self._read_structure, self.link)
            self._stamp = stamp
            if self._reflection is None or found.schema != self._reflection.schema:
                self._hash = schema_hash(found.schema)
                self._reflection = found
            else:
                self._reflection = self._reflection.with_(computed=found.computed, rules=found.rules)
        return self._reflection

    def _read_structure(self) -> tuple[Any, Reflection]:
        """The structure and its stamp, read in one transaction: nobody can change it or lock it meanwhile."""
        link = self.link
        own = not link.in_transaction
        if own:
            link.begin(write=False)
        try:
            stamp = link.stamp()
            found = reflect(link)
            declared, made = self._declared("schema"), self._declared("made")
        finally:
            if own:
                link.rollback()
        if declared is not None and made is not None:
            found = found.with_(schema=merged(declared, made, found.schema))
        return stamp, found

    @property
    def _known(self) -> Reflection:
        """The structure as it was last read."""
        return self._reflection or self._reflected()

    def _declared(self, name: str) -> Schema | None:
        """The schema that com made the memory with (`schema`), or what was read of it then (`made`)."""
        if not journal.exists(self.link):
            return None
        hash_ = journal.meta(self.link, name)
        text = journal.read_text(self.link, "com_schema", hash_) if hash_ else None
        return load_schema(text) if isinstance(text, str) and hash_text(text) == hash_ else None

    def make_tables(self, schema: Schema, statements: Iterable[str], **known: str) -> None:
        """Makes a schema's tables by their DDL, and keeps the schema as declared, and as it is read back. `known`: what
        the journal's com_meta shall hold besides."""
        made_by = tuple(statements)
        try:
            patiently(lambda: self._make(schema, made_by, known))
        except EngineError as error:
            raise Error(explain(error, schema, None)) from None
        self.link.refresh()
        self._reflection = None

    def _make(self, schema: Schema, statements: tuple[str, ...], known: Mapping[str, str]) -> None:
        link = self.link
        there = set(link.engine_types())
        try:
            link.begin()
            for statement in statements:
                link.run(statement, {})
            made = reflect(link).schema
            journal.create(link, {"schema": schema_hash(schema), "made": schema_hash(made), **known})
            for kept in (schema, made):
                journal.keep(link, "com_schema", schema_hash(kept), dump_schema(kept))
            link.commit()
        except EngineError:
            link.rollback()
            if link.ddl_commits:
                self._drop(set(link.engine_types()) - there)
            raise
        finally:
            link.rollback()

    def _drop(self, tables: Iterable[str]) -> None:
        """Takes back tables that were made, where the engine does not."""
        link = self.link
        link.set_keys_checked(False)
        for name in tables:
            link.run(f"drop table if exists {link.quote(name)}", {})
        link.set_keys_checked(True)

    # ------------------------------------------------------------ running

    def execute(
        self,
        plan: Plan,
        parameters: Mapping[str, Any] | None = None,
        *,
        clock: datetime | None = None,
        key: str | None = None,
        history: bool | None = None,
        approve: str | None = None,
    ) -> Outcome:
        """Runs a plan: everything or nothing. RunError if it fails.

        `clock` is $now, in the memory's zone; the real time if not given. `key`: a second run with the same key gives
        the first one's outcome. `approve`: the id of a preview; the run is refused if it would change other rows.
        """
        program, order = self._order(plan, parameters, clock, history, key, approve)
        schema = self._known.schema
        if self.link.read_only:
            if program.writes:
                raise Error(ReadOnlyMemory(", ".join(program.writes)))
            return self._runner.read(program, schema, order).with_(preview="")
        return self._runner.run(program, schema, order)

    def dry_run(
        self,
        plan: Plan,
        parameters: Mapping[str, Any] | None = None,
        *,
        clock: datetime | None = None,
        calls: Mapping[str, Any] | None = None,
        make_calls: bool = False,
    ) -> Outcome:
        """What a run would do; memory stays as it is. `calls`: rows (or functions) that answer calls by name;
        without them, calls are refused unless `make_calls`."""
        program, order = self._order(plan, parameters, clock, None)
        order = order.with_(history=True)
        recorded = Recorded({}, calls, make_calls)
        schema = self._known.schema
        if not self.link.read_only:
            return self._runner.preview(program, schema, order, recorded)
        copy = self.link.copy()
        try:
            return Runner(copy, self.calls).preview(Program(plan, copy), schema, order, recorded)
        finally:
            copy.close()

    def _order(
        self,
        plan: Plan,
        parameters: Mapping[str, Any] | None,
        clock: datetime | None,
        history: bool | None,
        key: str | None = None,
        approve: str | None = None,
    ) -> tuple[Program, Order]:
        if plan.engine != self.engine:
            raise Error(OtherSchema("engine", plan.engine, self.engine))
        if plan.schema != self.schema_hash:
            raise Error(OtherSchema("schema", plan.schema[:12], self._hash[:12]))
        given: Given = take(plan, parameters or {})
        now = self._local(clock) if clock is not None else local_time(real_time(), self.zone)
        program, schema = self._ready(plan), self._known.schema
        keyed = all((table := schema.table(name)) and table.primary_key for name in program.writes)
        history = self.history if history is None else history
        self._refuse_unseen(plan, history)
        history = history and keyed  # a row without a key has no image
        return program, Order(given, now, self.zone, history, key, approve=approve)

    def _local(self, clock: Any) -> datetime:
        """A clock as it was given, as the wall clock of the memory's zone."""
        if isinstance(clock, datetime):
            try:
                return clock.astimezone(ZoneInfo(self.zone)).replace(tzinfo=None) if clock.tzinfo else clock
            except OverflowError:
                pass
        help_ = "write datetime(2024, 5, 6, 7, 8): in the memory's zone, or with a zone of its own"
        raise Error(BadParameter("clock", repr(clock), "a datetime", help_))

    def _refuse_unseen(self, plan: Plan, history: bool) -> None:
        """Error if something in the memory would change rows that com does not see."""
        for effect in plan.effects:
            for rule in self._known.rules.get(effect.name.lower(), ()):
                met = effect.verb in rule.verbs and (not rule.columns or set(rule.columns) & set(effect.columns))
                if met and (history or rule.hidden):
                    ways = "drop it and let programs do what it does"
                    help_ = ways if rule.hidden else f"{ways}; or keep no history: --no-history"
                    raise Error(UnseenChanges(effect.name, rule.cause, help_))

    def _ready(self, plan: Plan) -> Program:
        known = self._programs.get(id(plan))
        if known is None or known.plan is not plan:
            if len(self._programs) >= PROGRAMS:
                self._programs.clear()
            known = self._programs[id(plan)] = Program(plan, self.link)
        return known

    # ------------------------------------------------------------ the journal

    def log(self) -> list[RunRow]:
        """All runs of the journal, in order of number."""
        return patiently(lambda: journal.read_runs(self.link) if journal.exists(self.link) else [], self.link)

    def run(self, number: int) -> RunRow:
        """The journal's row of a run. Error if there is none."""
        return patiently(lambda: replay.run_of(self.link, number), self.link)

    def outcome(self, number: int) -> Outcome:
        """The outcome of a run, as the journal holds it."""
        row = self.run(number)
        try:
            schema = self.schema
            return patiently(lambda: read_outcome(self.link, schema, row), self.link)
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, StopIteration):
            raise Error(ChainBroken(f"the record of run {number} cannot be read")) from None

    def digest(self) -> str:
        """A hash over all rows of all tables: the same for the same rows on every engine."""
        schema = self.schema
        return patiently(lambda: digest(self.link, schema), self.link)

    def verify(self) -> list[Flaw]:
        """Where the journal is not as it was written: nothing if all fits."""
        schema = self.schema
        return verify(self.link, schema) if patiently(lambda: journal.exists(self.link), self.link) else []

    def replay(self, number: int, compile: Compile) -> Replayed:
        """Runs a recorded run again, on a copy of the memory as it was; says what is not the same."""
        return replay.replay(self.link, self._reflected(), number, compile)

    def replay_all(
        self, into: str, compile: Compile, create: Create | None = None, progress: Progress | None = None
    ) -> Rebuilt:
        """Builds a memory from the journal alone; it must hold the same rows in the end. `create` gives the DDL of a
        schema; without it the tables are made by the same statements as here."""
        target = connect(into, zone=self.zone, calls=self.calls)
        try:
            if target.schema.tables or journal.exists(target.link):
                raise Error(TablesThere(", ".join(t.name for t in target.schema.tables) or "a journal"))
            wanted = self.schema if target.link.keeps_keys else without_keys(self.schema)
            statements = create(wanted, target.engine) if create else self.link.structure()
            target.make_tables(self.schema, statements, rebuilt="1")
            return replay.rebuild(self.link, self.schema, target.link, compile, progress)
        finally:
            target.close()
