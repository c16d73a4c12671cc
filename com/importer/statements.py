"""Statements of sqlglot to the steps of a program."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import expressions as exp

from com.compiler import syntax
from com.importer.queries import Queries
from com.source import Span

_WORDS = {
    "create": "a table is declared in a schema",
    "drop": "",
    "alter": "",
    "truncatetable": "write delete from t where true",
}

_PARTS = frozenset([
    "action", "alias", "all", "alternative", "big_int", "by_name", "casts_non_integer_decimals", "catalog",
    "clamp_position", "cluster", "coalesce", "columns", "conflict", "conflict_keys", "connect", "constraint",
    "count", "cube", "date_part_boundary", "db", "decimals", "default", "default_date", "delimiter", "desc",
    "direction", "distinct", "distribute", "duplicate", "end", "end_side", "except_", "exclude", "expression",
    "expressions", "false", "field", "fields", "fill_pattern", "format", "from_", "group", "grouping_sets",
    "having", "high", "hint", "hints", "ifs", "ignore", "ignore_nulls", "is_function", "is_left", "is_null",
    "is_nvl", "is_string", "joins", "json_subtype", "kind", "laterals", "length", "limit", "limit_options", "locks",
    "low", "match", "materialized", "method", "negate", "nulls_first", "occurrence", "offset", "on",
    "only_json_types", "order", "over", "overwrite", "partition_by", "percent", "pivot_column_naming", "pivots",
    "position", "qualify", "query", "quoted", "recursive", "replace", "replacement", "returning", "rollup", "rows",
    "safe", "sample", "scalar_only", "separator", "side", "spec", "start", "start_side", "stored", "style",
    "substr", "symmetric", "sysdate", "table", "tables", "this", "to", "totals", "true", "typed", "unit", "unnest",
    "using", "version", "where", "windows", "with_", "with_ties",
])  # fmt: skip
"""The parts of sqlglot's trees that the translation looks at, or may leave out."""
_NEGATED = (exp.Like, exp.ILike, exp.Is, exp.In, exp.Between, exp.Glob)


class Statements(Queries):
    """The part of the translation that knows statements."""

    def program(self, trees: Sequence[exp.Expr], name: str) -> syntax.Program:
        """The whole: its last query is what it returns, all else are steps."""
        body: list[syntax.Statement] = []
        for number, tree in enumerate(trees):
            made = self._statement(tree)
            body += self.steps
            self.steps = []
            if made is None:
                continue
            last = number == len(trees) - 1
            if isinstance(made, syntax.Query) and last:
                body.append(syntax.ReturnQuery(made, self.at(tree)))
                continue
            word = {"Insert": "inserted", "Update": "updated", "Delete": "deleted"}.get(type(made).__name__, "found")
            body.append(syntax.Step(self.named(self.free(word), tree), None, made, (), self.at(tree)))
        place = self.places.number(Span(0, 0))
        parameters = tuple(self._parameter_node(n, p) for n, p in self.parameters.items())
        header = syntax.Header(syntax.Name(name, False, place), parameters, (), self.places.number(Span(0, 0)))
        return syntax.Program(header, tuple(body), (), self.places.number(Span(0, len(self.places.text))))

    def _parameter_node(self, name: str, place: Span) -> syntax.Parameter:
        type_ = syntax.TypeName("text", (), self.places.number(place))
        return syntax.Parameter(
            syntax.Name(name, False, self.places.number(place)), type_, None, self.places.number(place)
        )

    def _overlooked(self, tree: exp.Expr) -> None:
        """Tells what would be left out silently: parts that the translation does not know."""
        for node in tree.walk():
            for part, value in node.args.items():
                if not value or (part in _PARTS and (part != "negate" or isinstance(node, _NEGATED))):
                    continue
                place = self.places.of(node)
                told = any(d.span.start <= place.start and place.end <= d.span.end for d in self.diagnostics)
                if not told and not isinstance(node, exp.DataType | exp.Identifier):
                    self.refuse(node, f"{part.strip('_').replace('_', ' ')} ({type(node).__name__.lower()})")

    def _statement(self, tree: exp.Expr) -> syntax.Operation | None:
        made = self._operation(tree)
        if made is not None:
            self._overlooked(tree)
        return made

    def _operation(self, tree: exp.Expr) -> syntax.Operation | None:
        match tree:
            case exp.Insert():
                return self._insert(tree)
            case exp.Update():
                return self._update(tree)
            case exp.Delete():
                return self._delete(tree)
            case exp.Select() | exp.SetOperation() | exp.Subquery() | exp.Values():
                return self.query(tree)
        word = type(tree).__name__.lower()
        if isinstance(tree, exp.Command):
            word = str(tree.this).lower()
        if not isinstance(tree, exp.Command | exp.DDL | exp.Merge | exp.Drop | exp.Alter | exp.TruncateTable):
            self.refuse(tree, "what is no statement", "write select …, insert …, update … or delete …")
            return None
        self.refuse(tree, word, _WORDS.get(word, "a program holds select, insert, update and delete"))
        return None

    # ------------------------------------------------------------ insert

    def _insert(self, tree: exp.Insert) -> syntax.Operation | None:
        self._with(tree)
        target = tree.this
        columns: tuple[syntax.Name, ...] = ()
        if isinstance(target, exp.Schema):
            columns = tuple(self.name(c) for c in target.expressions)
            target = target.this
        name = self.name(target.this)
        word = str(tree.args.get("alternative") or ("overwrite" if tree.args.get("overwrite") else "")).lower()
        word = "ignore" if tree.args.get("ignore") else word
        known = self.known(target.name)
        ignored: syntax.Conflict | None = None
        if word == "ignore" and known is not None and len(known.keys) == 1:
            key = tuple(self.named(c, target) for c in known.keys[0])
            ignored = syntax.Conflict(key, (), self.at(tree))
        elif word:
            self.refuse(tree, f"insert {word}", "write on conflict (key) do nothing, or do update set …")
        if not columns:
            if known is None:
                self.refuse(target, "insert without its columns", "write insert into t (column, …)")
            else:
                columns = tuple(self.named(c.name, target) for c in known.columns)
        source = tree.expression
        made: syntax.Values | syntax.Query
        if isinstance(source, exp.Values):
            rows = [r.expressions if isinstance(r, exp.Tuple) else [r] for r in source.expressions]
            made = syntax.Values(tuple(self.all(r) for r in rows), self.at(source))
        elif source is not None:
            made = self.query(source)
        else:
            self.refuse(tree, "insert of default values", "write the values")
            return None
        conflict = self._conflict(tree.args.get("conflict")) or ignored
        return syntax.Insert(name, columns, made, conflict, self._returning(tree), self.at(tree))

    def _conflict(self, tree: exp.Expr | None) -> syntax.Conflict | None:
        if tree is None:
            return None
        keys = [k.this if isinstance(k, exp.Ordered) else k for k in tree.args.get("conflict_keys") or ()]
        if not keys or tree.args.get("duplicate") or tree.args.get("constraint") or tree.args.get("where"):
            what = "on duplicate key update" if tree.args.get("duplicate") else "on conflict without columns"
            self.refuse(tree, what, "write on conflict (key) do update set c = excluded.c")
            return None
        names = tuple(self.name(k.this if isinstance(k, exp.Column) else k) for k in keys)
        assignments = tuple(self._assignment(a) for a in tree.expressions)
        return syntax.Conflict(names, assignments, self.at(tree))

    # ------------------------------------------------------------ update, delete

    def _update(self, tree: exp.Update) -> syntax.Operation:
        self._with(tree)
        target = tree.this
        if target.args.get("joins") or tree.args.get("limit") or tree.args.get("order"):
            self.refuse(tree, "this form of update", "write update t set … from u where …")
        alias = target.args.get("alias")
        source = self._from(tree)
        where = tree.args.get("where")
        return syntax.Update(
            self.name(target.this),
            self.name(alias.this) if alias is not None else None,
            tuple(self._assignment(a) for a in tree.expressions),
            source,
            self.expr(where.this) if where is not None else syntax.Truth(True, self.at(tree)),
            self._returning(tree),
            self.at(tree),
        )

    def _assignment(self, tree: exp.Expr) -> syntax.Assignment:
        column = tree.this
        if isinstance(column, exp.Tuple) or not isinstance(column, exp.Column):
            self.refuse(tree, "an assignment to many columns", "set them one by one")
            return syntax.Assignment(None, self.named("unknown", tree), syntax.Null(self.at(tree)), self.at(tree))
        return syntax.Assignment(None, self.name(column.this), self.expr(tree.expression), self.at(tree))

    def _delete(self, tree: exp.Delete) -> syntax.Operation:
        self._with(tree)
        target = tree.this
        if tree.args.get("tables") or tree.args.get("using") or tree.args.get("limit"):
            self.refuse(tree, "this form of delete", "write where key in (select …)")
        alias = target.args.get("alias")
        where = tree.args.get("where")
        return syntax.Delete(
            self.name(target.this),
            self.name(alias.this) if alias is not None else None,
            self.expr(where.this) if where is not None else syntax.Truth(True, self.at(tree)),
            self._returning(tree),
            self.at(tree),
        )

    def _returning(self, tree: exp.Expr) -> tuple[syntax.Item | syntax.Star, ...]:
        clause = tree.args.get("returning")
        return tuple(self.item(i) for i in clause.expressions) if clause is not None else ()
