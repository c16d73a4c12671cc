"""What `import com` offers: the compiler and the runtime put together."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from com import report
from com.compiler import check_program, compile_program, create_statements
from com.compiler import read_schema as _read_schema
from com.compiler.engines import NAMES as ENGINES
from com.diagnostics import Diagnostic, Error, UnknownMemory, has_errors
from com.functions import Signature
from com.plan import Plan
from com.runtime import journal, memory
from com.runtime.calls import REGISTRY, Registry
from com.runtime.engines import engine_of
from com.runtime.outcome import Outcome
from com.runtime.replay import Compile, Create, Progress, Rebuilt, Replayed
from com.schema import Schema, without_keys
from com.source import Source


class CheckError(Error):
    """A text that does not check. `diagnostics` says why, errors and warnings in order of place, in `source`."""

    def __init__(self, diagnostics: list[Diagnostic], source: Source) -> None:
        super().__init__(next(d.message for d in diagnostics if d.severity == "error"))
        self.diagnostics = diagnostics
        self.source = source

    def __str__(self) -> str:
        return f"{self.source.name} does not check\n\n" + report.plain(
            report.diagnostics_lines(self.diagnostics, self.source)
        )


def signatures(calls: Registry = REGISTRY) -> Mapping[str, Signature]:
    """The signatures of registered functions, by name."""
    return {name: known.signature for name, known in calls.items()}


def check(text: str, schema: Schema, *, name: str = "<text>") -> list[Diagnostic]:
    """All that is wrong in a program, and what may be; nothing if it is fine."""
    return check_program(Source(text, name), schema, signatures())[1]


def compile(text: str, schema: Schema | Memory, *, engine: str = "", name: str = "<text>") -> Plan:
    """A program made ready for a memory, or for a schema and an engine (SQLite). CheckError if it does not check."""
    if isinstance(schema, Memory):
        engine, schema = engine or schema.engine, schema.schema
    engine = engine or "sqlite"
    if engine not in ENGINES:
        known = f"the engines are {', '.join(ENGINES)}"
        raise Error(UnknownMemory(engine, f"com knows no engine {engine}", known))
    source = Source(text, name)
    made, found = compile_program(source, schema, engine, signatures())
    if made is None:
        raise CheckError(found, source)
    return made


def read_schema(text: str, name: str = "<text>") -> Schema:
    """The schema that `create table` statements declare. CheckError if they do not check."""
    source = Source(text, name)
    made, found = _read_schema(source)
    if made is None or has_errors(found):
        raise CheckError(found, source)
    return made


class Memory(memory.Memory):
    """An open memory. Not to be shared by threads."""

    def dry_run(
        self,
        plan: Plan,
        parameters: Mapping[str, Any] | None = None,
        *,
        clock: datetime | None = None,
        calls: Mapping[str, Any] | None = None,
        make_calls: bool = False,
        **more: Any,
    ) -> Outcome:
        """What a run would do; memory stays as it is. Parameters are given by name, or as a mapping. `calls`: rows (or
        functions) that answer calls by name; without them, calls are refused unless `make_calls`."""
        given = {**(parameters or {}), **more}
        return super().dry_run(plan, given, clock=clock, calls=calls, make_calls=make_calls)

    def replay(self, number: int, compile: Compile | None = None) -> Replayed:
        """Runs a recorded run again, on a copy of the memory as it was; says what is not the same."""
        return super().replay(number, compile or self._compile)

    def replay_all(
        self,
        into: str,
        compile: Compile | None = None,
        create: Create | None = create_statements,
        progress: Progress | None = None,
    ) -> Rebuilt:
        """Builds a new memory, at the URL `into`, from the journal alone; it must hold the same rows in the end."""
        return super().replay_all(into, compile or self._compile, create, progress)

    def _compile(self, text: str, schema: Schema, engine: str) -> Plan:
        source = Source(text)
        made, found = compile_program(source, schema, engine, signatures(self.calls))
        if made is None:
            raise CheckError(found, source)
        return made

    def program_text(self, run: int) -> str:
        """The text of the program that a run was of."""
        return journal.read_text(self.link, "com_program", self.run(run).program) or ""

    def program_names(self) -> dict[str, str]:
        """The names of all programs that were run, by their hashes."""
        return dict(self.link.ask("select hash, name from com_program")) if journal.exists(self.link) else {}


def _own(opened: memory.Memory) -> Memory:
    return Memory(opened.link, opened.url, history=opened.history, zone=opened.zone, calls=opened.calls)


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
    return _own(
        memory.connect(
            url, read_only=read_only, history=history, zone=zone, timeout=timeout, seconds=seconds, calls=calls
        )
    )


def create(url: str, schema: Schema, **options: Any) -> Memory:
    """Makes a new memory that holds the tables of a schema, and opens it. `options` are those of `connect`."""
    engine = engine_of(memory.read_url(url))
    made = without_keys(schema) if engine == "duckdb" else schema  # com checks them: see its engine
    return _own(memory.create(url, schema, create_statements(made, engine), **options))


def execute(program: Plan, memory: memory.Memory, /, **parameters: Any) -> Outcome:
    """Runs a program: everything or nothing. RunError if it fails. `Memory.execute` takes options too."""
    return memory.execute(program, parameters)
