"""The catalogue: every message that com gives, in the order of its code.

Bands: CM1xx syntax, CM2xx names, CM3xx types and shapes, CM4xx what an engine cannot express, CM5xx
execution, CM6xx journal and replay, CM7xx grants, CM8xx planner, CM9xx our own bug. A code is used for
one thing and never again for another. `text` says what is true, `label` marks the place, `help` says
what would work; each is a template over the message's fields. Every code has a page in docs/diagnostics.
"""

from __future__ import annotations

from typing import ClassVar

from com.node import Node
from com.source import Span


class Message(Node):
    """One kind of message. A subclass a code; its fields fill the templates."""

    code: ClassVar[str] = ""
    severity: ClassVar[str] = "error"
    text: ClassVar[str] = ""
    label: ClassVar[str] = ""
    help: ClassVar[str] = ""

    def fill(self, template: str) -> str:
        """A template with this message's fields in it."""
        return template.format(**{field: getattr(self, field) for field in self._fields})


class Edit(Node):
    """A replacement of a span by a text."""

    span: Span
    text: str


class Fix(Node):
    """Edits that would mend the program; `certain` when it can only be meant this way."""

    edits: tuple[Edit, ...]
    certain: bool = False


class Diagnostic(Node):
    """A message at a place. `notes` mark further places in the same source."""

    message: Message
    span: Span
    notes: tuple[tuple[Span, str], ...] = ()
    fix: Fix | None = None

    @property
    def code(self) -> str:
        return self.message.code

    @property
    def severity(self) -> str:
        return self.message.severity

    @property
    def text(self) -> str:
        return self.message.fill(self.message.text)

    @property
    def label(self) -> str:
        return self.message.fill(self.message.label)

    @property
    def help(self) -> str:
        return self.message.fill(self.message.help)


def has_errors(diagnostics: tuple[Diagnostic, ...] | list[Diagnostic]) -> bool:
    """True if one of them is an error rather than a warning."""
    return any(d.severity == "error" for d in diagnostics)


class Error(Exception):
    """The root of all that com raises: it carries the message that says why."""

    def __init__(self, message: Message) -> None:
        super().__init__(f"{message.code}: {message.fill(message.text)}")
        self.message = message


def near(names: list[str], what: str = "") -> str:
    """Words for a help: the one name that is near, or the names there are."""
    if not names:
        return "there is none" + (f" {what}" if what else "")
    if len(names) == 1:
        return f"did you mean {names[0]}?"
    return "there are " + ", ".join(names)


# ---------------------------------------------------------------- CM1xx syntax


class Unexpected(Message):
    code = "CM101"
    text = "{found} cannot stand here"
    label = "expected {expected}"
    help = "{instead}"
    found: str
    expected: str
    instead: str


class MissingSemicolon(Message):
    code = "CM102"
    text = "a statement ends with ;"
    label = "expected ; here"
    help = "write ; after {after}"
    after: str


class Unclosed(Message):
    code = "CM103"
    text = "{what} is never closed"
    label = "opened here"
    help = "close it with {close}"
    what: str
    close: str


class UnknownCharacter(Message):
    code = "CM104"
    text = "{character} is no part of the language"
    label = "not known"
    help = "{instead}"
    character: str
    instead: str


class TrailingComma(Message):
    code = "CM105"
    text = "nothing stands between the comma and {before}"
    label = "one comma too many"
    help = "leave the comma out"
    before: str


class NotInLanguage(Message):
    code = "CM106"
    text = "{what} is not in the language"
    label = "not in com"
    help = "{instead}"
    what: str
    instead: str


class NotYet(Message):
    code = "CM107"
    text = "{what} cannot be used in this version of com yet"
    label = "not yet"
    help = "{instead}"
    what: str
    instead: str


class OutsideStep(Message):
    code = "CM108"
    text = "{word} stands outside a step"
    label = "an operation is part of a step"
    help = "write step name: {word} …;"
    word: str


class StepForm(Message):
    code = "CM109"
    text = "{what}"
    label = "{lacking}"
    help = "a step is written step name: operation;"
    what: str
    lacking: str


class Respelled(Message):
    code = "CM110"
    text = "{written} is written {meant} in com"
    label = "another language's spelling"
    help = "write {meant}"
    written: str
    meant: str


class Fence(Message):
    code = "CM111"
    text = "a Markdown fence is no part of a program"
    label = "not com"
    help = "leave this line out"


class InsertColumns(Message):
    code = "CM112"
    text = "insert names the columns that it fills"
    label = "expected ( and the columns"
    help = "write insert into {table} (column, …) {word} …"
    table: str
    word: str


class BadTemplate(Message):
    code = "CM113"
    text = "{what}"
    label = "in this text"
    help = "braces hold an expression, as in {{$step.column}}; a brace itself is written {{{{ or }}}}"
    what: str


class TooLong(Message):
    code = "CM114"
    text = "the text has {size} characters, and {most} is the most"
    label = "too long"
    help = "rows do not belong in a program: give them as a parameter, items many {{…}}"
    size: int
    most: int


class TooDeep(Message):
    code = "CM115"
    text = "this is nested deeper than {most} levels"
    label = "too deep"
    help = "write x in (a, b, …) for a long chain of or; else do a part of it in a step of its own"
    most: int


class BadPlaceholder(Message):
    code = "CM116"
    text = "{what}"
    label = "not a placeholder"
    help = "{instead}"
    what: str
    instead: str


class BadNumber(Message):
    code = "CM117"
    text = "{written} is no number"
    label = "not a number"
    help = "a number is written as digits, or as digits, a point and digits{meant}"
    written: str
    meant: str


class SecondHeader(Message):
    code = "CM118"
    text = "a program begins with its header, and has only one"
    label = "a header in the middle"
    help = "{instead}"
    instead: str


# ---------------------------------------------------------------- CM2xx names


class UnknownTable(Message):
    code = "CM201"
    text = "no table is named {name}"
    label = "not in the schema"
    help = "{near}"
    name: str
    near: str


class UnknownColumn(Message):
    code = "CM202"
    text = "no column {name} here"
    label = "not a column of {where}"
    help = "{near}"
    name: str
    where: str
    near: str


class UnknownPlaceholder(Message):
    code = "CM203"
    text = "${name} is no parameter, earlier step or loop row"
    label = "not known here"
    help = "{near}"
    name: str
    near: str


class UnknownFunction(Message):
    code = "CM204"
    text = "no function is named {name}"
    label = "not in the language"
    help = "{near}"
    name: str
    near: str


class UnknownCall(Message):
    code = "CM205"
    text = "no call is registered as {name}"
    label = "not registered"
    help = "{near}"
    name: str
    near: str


class UnknownPlaceholderColumn(Message):
    code = "CM206"
    text = "${name} has no column {column}"
    label = "not one of its columns"
    help = "{near}"
    name: str
    column: str
    near: str


class AmbiguousColumn(Message):
    code = "CM207"
    text = "column {name} could be of {tables}"
    label = "in more than one table"
    help = "write {examples}"
    name: str
    tables: str
    examples: str


class DuplicateStep(Message):
    code = "CM208"
    text = "a step {name} stands already in this block"
    label = "the same name again"
    help = "give one of the two another name"
    name: str


class DuplicateAlias(Message):
    code = "CM209"
    text = "two tables are called {name} in this from"
    label = "the same name again"
    help = "give this one another alias: as {name}2"
    name: str


class DuplicateName(Message):
    code = "CM210"
    text = "{what} {name} is named twice"
    label = "the same name again"
    help = "name each {what} once"
    what: str
    name: str


class MissingDollar(Message):
    code = "CM211"
    text = "{written} is a column of no table here, but {meant} is a value"
    label = "lacks its $"
    help = "write {meant}"
    written: str
    meant: str


class MissingHeader(Message):
    code = "CM212"
    text = "the program has no header"
    label = "a program begins with its name"
    help = "begin with: program {name};"
    name: str


class QuotedString(Message):
    code = "CM213"
    text = 'no column is named "{name}": double quotes are for names, not for texts'
    label = "read as a column's name"
    help = "for a text write {text_}"
    name: str
    text_: str


class RenamedFunction(Message):
    code = "CM214"
    text = "{written} is written {meant} in com"
    label = "another dialect's word"
    help = "write {meant}"
    written: str
    meant: str


class UnknownType(Message):
    code = "CM215"
    text = "no type is named {name}"
    label = "not a type"
    help = "the types are int, float, decimal(p,s), text, bool, date, timestamp, json, bytes"
    name: str


class UnusedStep(Message):
    code = "CM216"
    severity = "warning"
    text = "nothing uses the rows of step {name}"
    label = "read in vain"
    help = "use ${name}, return it, or leave the step out"
    name: str


class UnusedParameter(Message):
    code = "CM217"
    severity = "warning"
    text = "parameter {name} is not used"
    label = "given in vain"
    help = "use ${name}, or leave it out"
    name: str


class OutOfBlock(Message):
    code = "CM218"
    text = "step {name} stands inside a block that has ended"
    label = "not seen here"
    help = "a step is seen only in its block: use it there, or put the step before the block"
    name: str


class UnknownArgument(Message):
    code = "CM219"
    text = "{function} has no parameter {name}"
    label = "not a parameter"
    help = "{near}"
    function: str
    name: str
    near: str


class ReservedName(Message):
    code = "CM220"
    text = "{name} is taken: ${name} is the run's clock"
    label = "cannot be used as a name here"
    help = "give it another name"
    name: str


class AmbiguousName(Message):
    code = "CM221"
    text = "{name} fits {names}, which differ only in case"
    label = "could be either"
    help = "write it exactly, in double quotes if need be"
    name: str
    names: str


class MissingColumnName(Message):
    code = "CM222"
    text = "${name} is rows, not a value"
    label = "which column?"
    help = "name a column: {examples}"
    name: str
    examples: str


class NoColumnHere(Message):
    code = "CM223"
    text = "{name} is a column, but no table is read here"
    label = "no table to take it from"
    help = "{near}"
    name: str
    near: str


class DecimalDigits(Message):
    code = "CM225"
    text = "decimal needs its digits"
    label = "how many digits, and how many of them after the point?"
    help = "write decimal(10,2): at most 38 digits in all"


class JournalName(Message):
    code = "CM226"
    text = "{name} cannot be made: names that begin with com_ are the journal's"
    label = "taken"
    help = "give the table another name"
    name: str


class DollarInText(Message):
    code = "CM227"
    severity = "warning"
    text = "${name} stands in this text as it is"
    label = "not filled in"
    help = "values stand in braces: 'text {{${name}}}'"
    name: str


class UnknownLabel(Message):
    code = "CM228"
    text = "no {kind} of the graph has the label {name}"
    label = "not in the graph"
    help = "{near}"
    kind: str
    name: str
    near: str


class UnknownProperty(Message):
    code = "CM229"
    text = "{variable} has no property {name}"
    label = "not in the graph"
    help = "{near}"
    variable: str
    name: str
    near: str


class UnknownVariable(Message):
    code = "CM230"
    text = "no pattern before names {name}"
    label = "not known here"
    help = "{near}"
    name: str
    near: str


class WholeElement(Message):
    code = "CM231"
    text = "{name} is {what}, and no value"
    label = "a whole"
    help = "{instead}"
    name: str
    what: str
    instead: str


# ---------------------------------------------------------------- CM3xx types and shapes


class TypeMismatch(Message):
    code = "CM301"
    text = "{operator} takes no {left} with {right}"
    label = "{left} and {right}"
    help = "{help_}"
    operator: str
    left: str
    right: str
    help_: str


class WrongArgument(Message):
    code = "CM302"
    text = "{function} wants {wanted} here, not {found}"
    label = "this is {found}"
    help = "{help_}"
    function: str
    wanted: str
    found: str
    help_: str


class WrongArgumentCount(Message):
    code = "CM303"
    text = "{function} takes {wanted}, not {found}"
    label = "{found} given"
    help = "it is written {usage}"
    function: str
    wanted: str
    found: str
    usage: str


class BadLiteral(Message):
    code = "CM304"
    text = "{value} is no {wanted}"
    label = "cannot be read as {wanted}"
    help = "{help_}"
    value: str
    wanted: str
    help_: str


class CannotStore(Message):
    code = "CM305"
    text = "{target} holds {wanted}, not {found}"
    label = "this is {found}"
    help = "{help_}"
    target: str
    wanted: str
    found: str
    help_: str


class NotBool(Message):
    code = "CM306"
    text = "a condition is wanted here, not {found}"
    label = "this is {found}"
    help = "compare it with something: {example}"
    found: str
    example: str


class ListAsValue(Message):
    code = "CM307"
    text = "{place} is a list, not a value"
    label = "${name} may have many rows"
    help = (
        "write in {place} to test against all of them, for each x in ${name} {{ … }} to go through them,"
        " or {declared} if there can only be one row"
    )
    place: str
    name: str
    declared: str


class ListParameterAsValue(Message):
    code = "CM308"
    text = "${name} is a list, not a value"
    label = "declared as a list"
    help = "write in ${name}"
    name: str


class ValueAsList(Message):
    code = "CM309"
    text = "${name} is {found}, not {wanted}"
    label = "wanted here: {wanted}"
    help = "{help_}"
    name: str
    found: str
    wanted: str
    help_: str


class MaybeMissing(Message):
    code = "CM310"
    text = "{place} is null when step {name} finds no row, and {where} would hide that"
    label = "step {name} gives no row or one"
    help = (
        "say what is meant: step {name} -> one: … to fail without a row, assert exists ${name} else '…'; before this,"
        " or if exists ${name} {{ … }} around it"
    )
    place: str
    name: str
    where: str


class NotGrouped(Message):
    code = "CM311"
    text = "{column} is neither grouped nor aggregated"
    label = "has many values in a group"
    help = "add it to group by, or aggregate it: min({column}), max({column}), …"
    column: str


class AggregateMisplaced(Message):
    code = "CM312"
    text = "{function} is an aggregate, and cannot stand in {where}"
    label = "no group is formed here"
    help = "{help_}"
    function: str
    where: str
    help_: str


class WindowMisplaced(Message):
    code = "CM313"
    text = "a window function can stand only in the columns and the order of a select"
    label = "in {where}"
    help = "compute it in a step of its own, and use its column in the next"
    where: str


class QueryAsValue(Message):
    code = "CM314"
    text = "a query in a value's place gives {found}, not one value"
    label = "{found}"
    help = "{help_}"
    found: str
    help_: str


class SidesDiffer(Message):
    code = "CM315"
    text = "the two sides of {op} do not fit: {detail}"
    label = "{detail}"
    help = "select the same number of columns, of the same types, in the same order"
    op: str
    detail: str


class MissingColumn(Message):
    code = "CM316"
    text = "{columns} of {table} must be given: not null, without a default"
    label = "leaves out {columns}"
    help = "add {columns} to the columns and its value to the values"
    columns: str
    table: str


class NullIntoNotNull(Message):
    code = "CM317"
    text = "{target} cannot be null"
    label = "null"
    help = "give a value"
    target: str


class NotAKey(Message):
    code = "CM318"
    text = "({columns}) is no primary or unique key of {table}"
    label = "rows cannot be told apart by this"
    help = "{near}"
    columns: str
    table: str
    near: str


class NoWhere(Message):
    code = "CM319"
    text = "{verb} has no where"
    label = "would touch every row of {table}"
    help = "say which rows: where {example}; or, to mean all of them, where true"
    verb: str
    table: str
    example: str


class GeneratedColumn(Message):
    code = "CM320"
    text = "{column} is generated: nobody gives its values"
    label = "cannot be given"
    help = "leave it out; returning {column} gives it"
    column: str


class KeyAssigned(Message):
    code = "CM321"
    text = "{column} is of the primary key of {table}, which does not change"
    label = "cannot be set"
    help = "delete the row and insert another"
    column: str
    table: str


class BadLimit(Message):
    code = "CM322"
    text = "{what} wants a whole number that does not depend on the rows"
    label = "this is {found}"
    help = "write a number or a parameter of type int"
    what: str
    found: str


class OrderNotSelected(Message):
    code = "CM323"
    text = "{what} can be ordered only by its columns"
    label = "not among the columns"
    help = "select it too, or order by one of the columns"
    what: str


class ValueCount(Message):
    code = "CM324"
    text = "{table} gets {columns} but {values}"
    label = "{values}"
    help = "give one value for each column, in their order"
    table: str
    columns: str
    values: str


class ShapeDiffers(Message):
    code = "CM325"
    text = "step {name} declares {declared}, but gives {found}"
    label = "declared {declared}"
    help = "{help_}"
    name: str
    declared: str
    found: str
    help_: str


class NullComparison(Message):
    code = "CM326"
    text = "a comparison with null is never true"
    label = "compared with null"
    help = "write {meant}"
    meant: str


class SecondReturn(Message):
    code = "CM327"
    text = "a second {what} on one path"
    label = "the first may have been met"
    help = "keep one {what} on each path: put one in if and the other in else"
    what: str


class ReturnInLoop(Message):
    code = "CM328"
    text = "{what} cannot stand in a loop"
    label = "would be met for each row"
    help = "put it behind the loop"
    what: str


class ReadOnly(Message):
    code = "CM329"
    text = "{table} is a view: it can only be read"
    label = "not a table"
    help = "write to the table that it is made of"
    table: str


class UnknownTypeUsed(Message):
    code = "CM330"
    text = "column {column} has a type that com has no name for: {engine_type}"
    label = "cannot be used"
    help = "leave it out of the program"
    column: str
    engine_type: str


class NotConstant(Message):
    code = "CM331"
    text = "the default of {name} must be a constant, null, $today or $now"
    label = "not a constant"
    help = "give it in the call of the program, or compute it in a step"
    name: str


class BadUnit(Message):
    code = "CM332"
    text = "{function} knows no unit {unit}"
    label = "not a unit"
    help = "the units are {units}"
    function: str
    unit: str
    units: str


class ReturnedElsewhere(Message):
    code = "CM333"
    text = "returning speaks only of {table}, the table that is written"
    label = "of another table"
    help = "select it in a step before"
    table: str


class NoCallShape(Message):
    code = "CM334"
    text = "{name} can give any columns: the step must say which"
    label = "no columns declared"
    help = "write step {step} -> one {{text text}}: call {name}(…)"
    name: str
    step: str


class ExtraDigits(Message):
    code = "CM335"
    text = "{value} has more digits after the point than {target} keeps ({wanted})"
    label = "would be rounded silently"
    help = "write round({value}, {scale}), or a shorter number"
    value: str
    target: str
    wanted: str
    scale: int


class NoRowImages(Message):
    code = "CM337"
    severity = "warning"
    text = "{table} has no primary key: what this changes is not kept row by row"
    label = "cannot be previewed, replayed or taken back by rows"
    help = "give {table} a primary key"
    table: str


class EscapesNothing(Message):
    code = "CM338"
    text = "this pattern ends in a backslash, which escapes nothing"
    label = "a letter must follow"
    help = "write \\\\ to look for a backslash itself"


class NothingOfARun(Message):
    code = "CM339"
    text = "a {place} belongs to the table, and knows no ${name}"
    label = "only a run knows it"
    help = "leave it out here, and write ${name} in the insert"
    place: str
    name: str


# schemas


class BadReference(Message):
    code = "CM340"
    text = "({columns}) references no key: {detail}"
    label = "{detail}"
    help = "{near}"
    columns: str
    detail: str
    near: str


class TwoPrimaryKeys(Message):
    code = "CM341"
    text = "{table} has two primary keys"
    label = "the second"
    help = "write one: primary key (a, b) for a key of several columns"
    table: str


class BadGenerated(Message):
    code = "CM342"
    text = "{column} cannot be generated: {detail}"
    label = "{detail}"
    help = "write {column} int primary key generated always as identity"
    column: str
    detail: str


class BadGraph(Message):
    code = "CM343"
    text = "{element} cannot be part of the graph: {detail}"
    label = "so not"
    help = "{instead}"
    element: str
    detail: str
    instead: str


class NeverMatches(Message):
    code = "CM344"
    text = "nothing can match: {detail}"
    label = "not in the graph"
    help = "{instead}"
    detail: str
    instead: str


class BadHops(Message):
    code = "CM345"
    text = "{detail}"
    label = "here"
    help = "{instead}"
    detail: str
    instead: str


class PropertyTypes(Message):
    code = "CM346"
    text = "{name} has several types: {types}"
    label = "of which type?"
    help = "name one label: {labels}"
    name: str
    types: str
    labels: str


class BadClause(Message):
    code = "CM347"
    text = "{detail}"
    label = "so not"
    help = "{instead}"
    detail: str
    instead: str


# ---------------------------------------------------------------- CM4xx what an engine cannot express


class EngineLacks(Message):
    code = "CM401"
    text = "{engine} cannot express {what}"
    label = "not on {engine}"
    help = "{instead}"
    engine: str
    what: str
    instead: str


class KeyNotGiven(Message):
    code = "CM402"
    text = "{engine} cannot tell which rows of {table} are inserted: {columns} is not given"
    label = "without {columns}"
    help = "name {columns} among the inserted columns, and give its values"
    engine: str
    table: str
    columns: str


class MaybeNoKey(Message):
    code = "CM403"
    text = "{engine} cannot give back rows of {table} whose {columns} is null"
    label = "{columns} may be null"
    help = "leave such rows out in a step before, or leave out returning"
    engine: str
    table: str
    columns: str


# what cannot be imported from SQL


class NotSql(Message):
    code = "CM410"
    text = "this cannot be read as SQL of {dialect}: {said}"
    label = "here"
    help = "{instead}"
    dialect: str
    said: str
    instead: str


class NotImported(Message):
    code = "CM411"
    text = "{what} cannot be imported"
    label = "com has nothing like it"
    help = "{instead}"
    what: str
    instead: str


class AnyRow(Message):
    code = "CM412"
    text = "{column} has many values in a group: {dialect} shows that of any row"
    label = "neither grouped nor aggregated"
    help = "group by {column} too, or write which is meant: min({column}), max({column}), …"
    column: str
    dialect: str


class ComparedAs(Message):
    code = "CM413"
    severity = "warning"
    text = "{left} and {right} are compared as {meant}, as {dialect} does"
    label = "{left} and {right}"
    help = "{caution}; if another comparison is meant, write the cast"
    left: str
    right: str
    meant: str
    dialect: str
    caution: str


class FirstRow(Message):
    code = "CM414"
    severity = "warning"
    text = "this query may give many rows where one value stands: {what}"
    label = "imported with limit 1"
    help = "aggregate it (max, sum, …), or look it up by a whole key"
    what: str


class RowOfExtreme(Message):
    code = "CM415"
    severity = "warning"
    text = "{column} is taken from the row that has the {which}, as {dialect} does"
    label = "beside {which}"
    help = "if many rows have it, com takes the first by key, and {dialect} any"
    column: str
    which: str
    dialect: str


class UntypedParameter(Message):
    code = "CM416"
    severity = "warning"
    text = "nothing says what type parameter {name} has: text is assumed"
    label = "of which type?"
    help = "write its type in the header of the program{more}"
    name: str
    more: str


class ReadAsNumber(Message):
    code = "CM417"
    severity = "warning"
    text = "a text is used as a number: what does not begin as one counts as 0, as in {dialect}"
    label = "text, where a number is wanted"
    help = "a text that begins as a number and is none fails the run; give the column a type of numbers"
    dialect: str


class ReadAsYear(Message):
    code = "CM418"
    severity = "warning"
    text = "a {found} is used as a number: its year, as in SQLite"
    label = "{found}, where a number is wanted"
    help = "write what is meant: year(d), date_diff('day', from, to)"
    found: str


# ---------------------------------------------------------------- CM5xx execution


class AssertionFailed(Message):
    code = "CM501"
    text = "{said}"
    label = "does not hold"
    help = "nothing was changed"
    said: str


class WrongCount(Message):
    code = "CM502"
    text = "step {name} {verb} {found}, but is declared {declared}"
    label = "{wanted} wanted"
    help = "{help_}"
    name: str
    verb: str
    found: str
    declared: str
    wanted: str
    help_: str


class NotUnique(Message):
    code = "CM503"
    text = "{table} holds a row with this {columns} already"
    label = "{columns} must be unique"
    help = "keep the old row with on conflict ({columns}) do nothing, or change it with … do update set …"
    table: str
    columns: str


class RowMetTwice(Message):
    code = "CM504"
    text = "a row of {table} is met by two source rows: {value}"
    label = "which of the two should it get?"
    help = "make the source rows unique first: group by the key in a step before, with sum, max or what is meant"
    table: str
    value: str


class NoSuchTarget(Message):
    code = "CM505"
    text = "a row of {table} would name, in {columns}, a row of {target} that is not there"
    label = "refers to {target}"
    help = "insert the row of {target} first, or find its key in a step declared -> one"
    table: str
    columns: str
    target: str


class StillNamed(Message):
    code = "CM506"
    text = "a row of {table} cannot go: rows of {by} name it"
    label = "still named by {by}"
    help = "delete or change those rows of {by} in a step before"
    table: str
    by: str


class CheckFailed(Message):
    code = "CM507"
    text = "a row of {table} would break its check {check}"
    label = "not allowed by the table"
    help = "assert it before, with a message of your own: assert not exists (select …) else '…'"
    table: str
    check: str


class NullStored(Message):
    code = "CM508"
    text = "{table}.{column} would be null, and must not be"
    label = "a value is missing"
    help = "give a value, coalesce({column}, …), or filter the rows: where … is not null"
    table: str
    column: str


class Overflow(Message):
    code = "CM509"
    text = "a number left its range: {detail}"
    label = "too large"
    help = "cast to decimal or float before the arithmetic: cast(x as float)"
    detail: str


class Inexact(Message):
    code = "CM510"
    text = "{value} has more digits than {engine} keeps exactly: 15"
    label = "digits would be lost"
    help = "round it to fewer digits, or keep the memory on an engine with exact decimals"
    value: str
    engine: str


class CannotConvert(Message):
    code = "CM511"
    text = "{value} cannot be read as {wanted}"
    label = "fails for this value"
    help = "{wanted} is written as {form}; leave such rows out with where"
    value: str
    wanted: str
    form: str


class BadStored(Message):
    code = "CM512"
    text = "{column} holds {value}, which is no {wanted}"
    label = "read here"
    help = "mend that value in the memory; nothing in the program is wrong"
    column: str
    value: str
    wanted: str


class CannotHold(Message):
    code = "CM513"
    text = "no memory can hold {value}: {cause}"
    label = "this value"
    help = "{help_}"
    value: str
    cause: str
    help_: str


class FunctionFailed(Message):
    code = "CM514"
    text = "{function} cannot take {value}"
    label = "fails for this value"
    help = "{help_}"
    function: str
    value: str
    help_: str


class EngineRefused(Message):
    code = "CM515"
    text = "the engine refuses a statement: {said}"
    label = "refused"
    help = "com compile --show sql shows the statements; if they are not what you mean, it is a bug of com"
    said: str


class Busy(Message):
    code = "CM516"
    text = "the memory is locked by somebody else, after {tries} tries"
    label = "waited here"
    help = "run it again when the other run is over, or connect with a longer timeout"
    tries: int


class Interrupted(Message):
    code = "CM517"
    text = "stopped: {cause}"
    label = "was running"
    help = "nothing was changed; {help_}"
    cause: str
    help_: str


class CannotWrite(Message):
    code = "CM518"
    text = "the memory cannot be written: {cause}"
    label = "was writing"
    help = "nothing was changed; {help_}"
    cause: str
    help_: str


class Lost(Message):
    code = "CM519"
    text = "the connection to the memory was lost, and the run {state}"
    help = "{help_}"
    state: str
    help_: str


class MustChange(Message):
    code = "CM520"
    text = "memory has changed since the preview {wanted}: the run would now be {found}"
    help = "look at a new preview, and approve that"
    wanted: str
    found: str


class Violated(Message):
    code = "CM521"
    text = "the memory forbids this change of {table}: {said}"
    label = "forbidden by a rule of the memory"
    help = "a trigger or constraint of the database says so; the program must keep to it"
    table: str
    said: str


class UnseenChanges(Message):
    code = "CM522"
    text = "{table} has {cause}: com would not see all that a run changes"
    help = "{help_}"
    table: str
    cause: str
    help_: str


class CallUnknown(Message):
    code = "CM530"
    text = "no function is registered as {name}"
    label = "cannot be called"
    help = "{near}"
    name: str
    near: str


class CallFailed(Message):
    code = "CM531"
    text = "{name} failed: {said}"
    label = "this call"
    help = "nothing was changed; mend the function or its arguments, and run again"
    name: str
    said: str


class CallResult(Message):
    code = "CM532"
    text = "{name} gave {found}, not {wanted}"
    label = "this call"
    help = "mend the function: its result must be as its signature says"
    name: str
    found: str
    wanted: str


class CallNotMade(Message):
    code = "CM533"
    text = "{name} is not called here, and no result of it is recorded"
    label = "not called"
    help = "a dry run takes fixtures for calls: dry_run(…, calls={{'{name}': rows}}), or make_calls=True"
    name: str


class CallUnsettled(Message):
    code = "CM534"
    text = "what {name} is asked changed during the call, {times} times"
    label = "this call"
    help = "somebody else writes what its arguments are read from: run it again when they have done"
    name: str
    times: int


class TablesThere(Message):
    code = "CM540"
    text = "the memory has tables already: {tables}"
    help = "create needs an empty memory: name a new file"
    tables: str


class OtherSchema(Message):
    code = "CM541"
    text = "the program was compiled for {what} {wanted}, and this memory has {found}"
    help = "compile it for this memory: com.compile(text, memory)"
    what: str
    wanted: str
    found: str


class ReadOnlyMemory(Message):
    code = "CM542"
    text = "the memory is opened for reading, and the program writes {tables}"
    help = "open it for writing, or only preview the program: dry_run"
    tables: str


# CM59x: why a run cannot begin


class CannotRead(Message):
    code = "CM591"
    text = "{file} cannot be read: {cause}"
    help = "{help_}"
    file: str
    cause: str
    help_: str = ""


class BadSettings(Message):
    code = "CM592"
    text = "{file} is no settings file of com: {cause}"
    help = "it is TOML with the keys {keys}"
    file: str
    cause: str
    keys: str


class UnknownMemory(Message):
    code = "CM593"
    text = "{url} names no memory: {cause}"
    help = "{help_}"
    url: str
    cause: str
    help_: str


class NothingNamed(Message):
    code = "CM595"
    text = "no {what} is named"
    help = "name it with {option}, in {variable}, or as {key} in com.toml"
    what: str
    option: str
    variable: str
    key: str


class BadParameter(Message):
    code = "CM596"
    text = "{name} cannot take {value}: it wants {wanted}"
    help = "{help_}"
    name: str
    value: str
    wanted: str
    help_: str


class UnknownParameter(Message):
    code = "CM597"
    text = "the program has no parameter {name}"
    help = "{near}"
    name: str
    near: str


class MissingParameter(Message):
    code = "CM598"
    text = "parameter {name} is not given"
    help = "give it: --param {name}={example}"
    name: str
    example: str


class CannotWriteFile(Message):
    code = "CM599"
    text = "{file} cannot be written: {cause}"
    help = "look at its folder and its permissions"
    file: str
    cause: str


# ---------------------------------------------------------------- CM6xx journal and replay


class KeyReused(Message):
    code = "CM601"
    text = "the key {key} was used for run {run}, of another program or other parameters"
    help = "a key names one request: use a new key for a new request"
    key: str
    run: int


class NoSuchRun(Message):
    code = "CM602"
    text = "the journal has no run {run}"
    help = "{near}"
    run: int
    near: str


class CannotGoBack(Message):
    code = "CM603"
    text = "memory cannot be taken back to before run {run}: {cause}"
    help = "{help_}"
    run: int
    cause: str
    help_: str


class JournalVersion(Message):
    code = "CM604"
    text = "the journal is of version {found}, and this com knows {known}"
    help = "use the com that wrote it, or a newer one"
    found: str
    known: str


class NotFromStart(Message):
    code = "CM605"
    text = "the journal does not tell the whole memory: {cause}"
    help = "{help_}"
    cause: str
    help_: str


class ChainBroken(Message):
    code = "CM607"
    text = "the journal was changed: {detail}"
    help = "trust it only up to there"
    detail: str


class RunPending(Message):
    code = "CM608"
    text = "run {run} was never finished"
    help = "{help_}"
    run: int
    help_: str


class TakenUp(Message):
    code = "CM609"
    text = "run {run} was taken up by somebody else, and {state}"
    help = "nothing was changed here; run it again with the same key"
    run: int
    state: str


# ---------------------------------------------------------------- CM9xx our own bug


class OwnBug(Message):
    code = "CM901"
    text = "com itself has failed: {cause}"
    help = "this is a bug of com, not of your program; --debug shows where"
    cause: str
