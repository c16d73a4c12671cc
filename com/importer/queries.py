"""Queries of sqlglot to those of com. A common table expression becomes a step of its own."""

from __future__ import annotations

from sqlglot import expressions as exp

from com.compiler import syntax
from com.importer.dialects import Dialect
from com.importer.functions import Functions
from com.importer.places import Places
from com.schema import Schema, Table

_REFUSED = {
    "pivots": ("pivot", "write sum(case when … then x end) for each column"),
    "laterals": ("lateral", "write a correlated subquery, or a step"),
    "sample": ("tablesample", "the language has no chance"),
    "qualify": ("qualify", "put the window in a derived table, and test its column outside"),
    "connect": ("connect by", "write a bounded number of joins"),
    "match": ("match_recognize", ""),
    "kind": ("select as struct", "select the columns"),
    "cluster": ("cluster by", ""),
    "distribute": ("distribute by", ""),
}


class Queries(Functions):
    """The part of the translation that knows queries. `ctes` are the names of steps by those of the SQL, innermost
    last; `steps` those made so far."""

    def __init__(self, places: Places, dialect: Dialect, schema: Schema | None) -> None:
        super().__init__(places, dialect)
        self.schema = schema
        self.ctes: list[dict[str, str]] = []
        self.steps: list[syntax.Step] = []
        self.names: set[str] = set()

    def free(self, name: str) -> str:
        """A name for a step that is not taken."""
        made, number = name, 2
        while made.lower() in self.names:
            made, number = f"{name}{number}", number + 1
        self.names.add(made.lower())
        return made

    # ------------------------------------------------------------ queries

    def query(self, tree: exp.Expr) -> syntax.Query:
        depth, windows = len(self.ctes), len(self.windows)
        body = tree
        outer: exp.Subquery | None = None
        while isinstance(body, exp.Subquery | exp.Paren):
            if isinstance(body, exp.Subquery) and (body.args.get("order") or body.args.get("limit")):
                outer = body
                break
            self._with(body)
            body = body.this
        self._with(body)
        top = outer if outer is not None else body
        made_body = self._body(top if outer is None else outer.this)
        order = top.args.get("order")
        limit, offset = self._limit(top)
        made = syntax.Query(
            made_body, self.order_keys(order) if order is not None else (), limit, offset, self.at(tree)
        )
        del self.ctes[depth:], self.windows[windows:]
        return made

    def _with(self, tree: exp.Expr) -> None:
        """The common table expressions of a query as steps."""
        clause = tree.args.get("with_")
        if clause is None:
            return
        if clause.args.get("recursive") and any(_names_itself(cte) for cte in clause.expressions):
            self.refuse(clause, "a recursive query", "write a bounded number of joins, or a call")
            return
        self.ctes.append({})
        for cte in clause.expressions:
            query = self.query(cte.this) if not isinstance(cte.this, exp.Values) else self._values(cte.this)
            alias = cte.args["alias"]
            columns = alias.args.get("columns") or []
            if query is None:
                continue
            if columns:
                query = self._renamed(query, [self.name(c) for c in columns], cte)
            name = self.free(cte.alias)
            self.ctes[-1][cte.alias.lower()] = name
            self.steps.append(syntax.Step(self.named(name, alias), None, query, (), self.at(cte)))

    def _renamed(self, query: syntax.Query, names: list[syntax.Name], tree: exp.Expr) -> syntax.Query:
        """The query with names for its columns: those of its first select count."""

        def renamed(body: syntax.QueryBody) -> syntax.QueryBody:
            if isinstance(body, syntax.Select):
                items = [i for i in body.items if isinstance(i, syntax.Item)]
                if len(items) == len(names) == len(body.items):
                    return body.with_(items=tuple(i.with_(alias=n) for i, n in zip(items, names, strict=True)))
                self.refuse(tree, "names for the columns of *", "name the columns in the select")
                return body
            if isinstance(body, syntax.SetOperation):
                return body.with_(left=renamed(body.left))
            return body.with_(body=renamed(body.body))

        return query.with_(body=renamed(query.body))

    def _body(self, tree: exp.Expr) -> syntax.QueryBody:
        if isinstance(tree, exp.SetOperation):
            if tree.args.get("by_name"):
                self.refuse(tree, "union by name", "select the columns in the same order")
            op = {"Union": "union", "Except": "except", "Intersect": "intersect"}[type(tree).__name__]
            distinct = tree.args.get("distinct")
            return syntax.SetOperation(
                op, distinct is False, self._side(tree.this), self._side(tree.expression), self.at(tree)
            )
        if isinstance(tree, exp.Select):
            return self._select(tree)
        if isinstance(tree, exp.Subquery | exp.Paren):
            return self.query(tree)
        if isinstance(tree, exp.Values):
            return self._values(tree) or self._empty(tree)
        self.refuse(tree, f"this query ({type(tree).__name__.lower()})")
        return self._empty(tree)

    def _empty(self, tree: exp.Expr) -> syntax.Select:
        item = syntax.Item(syntax.Null(self.at(tree)), None, self.at(tree))
        return syntax.Select(False, (item,), None, None, (), None, self.at(tree))

    def _side(self, tree: exp.Expr) -> syntax.QueryBody:
        while isinstance(tree, exp.Subquery | exp.Paren) and not _has_tail(tree):
            self._with(tree)
            tree = tree.this
        if isinstance(tree, exp.Select | exp.SetOperation) and not _has_tail(tree) and not tree.args.get("with_"):
            return self._body(tree)
        return self.query(tree)

    def _limit(self, tree: exp.Expr) -> tuple[syntax.Expr | None, syntax.Expr | None]:
        limit, offset = tree.args.get("limit"), tree.args.get("offset")
        made = None
        if isinstance(limit, exp.Fetch):
            options = limit.args.get("limit_options")
            if options is not None and (options.args.get("with_ties") or options.args.get("percent")):
                self.refuse(limit, "fetch with ties or percent", "write limit, or rank() in a derived table")
            count = limit.args.get("count")
            made = self.expr(count) if count is not None else self.number(1, limit)
        elif limit is not None:
            if limit.args.get("limit_options") is not None and limit.args["limit_options"].args.get("percent"):
                self.refuse(limit, "top percent", "write limit with a number")
            count = limit.expression
            if isinstance(count, exp.Neg):
                made = None  # SQLite: no limit
            elif not (isinstance(count, exp.Null | exp.Column | exp.Var) and count.name.lower() in ("", "all")):
                made = self.expr(count)
        start = self.expr(offset.expression) if offset is not None else None
        return made, start

    # ------------------------------------------------------------ select

    def _select(self, tree: exp.Select) -> syntax.Select:
        for arg, (what, instead) in _REFUSED.items():
            if tree.args.get(arg):
                found = tree.args[arg]
                self.refuse(found[0] if isinstance(found, list) else _tree(found, tree), what, instead)
        if tree.args.get("windows"):
            self.windows.append({w.name.lower(): w for w in tree.args["windows"]})
        distinct = tree.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            self.refuse(distinct, "distinct on", "write row_number() over (…) in a derived table, and take number 1")
        source = self._from(tree)
        items = tuple(self.item(i) for i in tree.expressions)
        where = tree.args.get("where")
        having = tree.args.get("having")
        return syntax.Select(
            distinct is not None,
            items,
            source,
            self.expr(where.this) if where is not None else None,
            self._group(tree.args.get("group"), tree),
            self.expr(having.this) if having is not None else None,
            self.at(tree),
        )

    def _group(self, group: exp.Expr | None, tree: exp.Select) -> tuple[syntax.Expr, ...]:
        if group is None:
            return ()
        for arg in ("rollup", "cube", "grouping_sets", "totals"):
            if group.args.get(arg):
                self.refuse(group, arg.replace("_", " "), "join the selects by union all")
        if group.args.get("all"):
            items = [i.this if isinstance(i, exp.Alias) else i for i in tree.expressions]
            return self.all([i for i in items if not i.find(exp.AggFunc)])
        return self.all(group.expressions)

    def item(self, tree: exp.Expr) -> syntax.Item | syntax.Star:
        """A column of a select."""
        if isinstance(tree, exp.Star):
            if tree.args.get("except_") or tree.args.get("replace") or tree.args.get("except"):
                self.refuse(tree, "* except", "name the columns")
            return syntax.Star(None, self.at(tree))
        if isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star):
            return syntax.Star(self.name(tree.args["table"]), self.at(tree))
        if isinstance(tree, exp.Alias):
            return syntax.Item(self.expr(tree.this), self.name(tree.args["alias"]), self.at(tree))
        if isinstance(tree, exp.Aliases):
            self.refuse(tree, "many names for one column")
        return syntax.Item(self.expr(tree), None, self.at(tree))

    # ------------------------------------------------------------ from

    def _from(self, tree: exp.Expr) -> syntax.From | None:
        clause = tree.args.get("from_")
        if clause is None or (isinstance(clause.this, exp.Table) and clause.this.name.lower() == "dual"):
            return None
        first = clause.this
        joins = [*(first.args.get("joins") or ()), *(tree.args.get("joins") or ())]
        made: list[syntax.Join] = []
        known = [self.table(first)]
        for join in joins:
            one = self._join(join)
            if str(join.args.get("method") or "").lower() == "natural":
                one = self._natural(one, known, join)
            known.append(one.right)
            made.append(one)
        return syntax.From(known[0], tuple(made), self.at(clause))

    def _natural(self, join: syntax.Join, left: list[syntax.TableRef], tree: exp.Expr) -> syntax.Join:
        """A natural join by the names of its columns."""
        tables = [self.known(t.name.text) if isinstance(t, syntax.TableName) else None for t in (*left, join.right)]
        if any(t is None for t in tables):
            self.refuse(tree, "natural join", "write using and the columns")
            return join
        before = {c.name.lower() for t in tables[:-1] if t is not None for c in t.columns}
        last = tables[-1]
        common = [c.name for c in last.columns if c.name.lower() in before] if last is not None else []
        if not common:
            return join.with_(kind="cross")
        return join.with_(using=tuple(self.named(c, tree) for c in common))

    def known(self, name: str) -> Table | None:
        """The table of this name, if there is a schema."""
        tables = self.schema.tables if self.schema is not None else ()
        return next((t for t in tables if t.name.lower() == name.lower()), None)

    def _join(self, tree: exp.Join) -> syntax.Join:
        side = str(tree.args.get("side") or "").lower()
        kind = str(tree.args.get("kind") or "").lower()
        method = str(tree.args.get("method") or "").lower()
        if kind in ("semi", "anti", "straight") or side not in ("", "left", "right", "full"):
            instead = "write where exists (select …)" if kind in ("semi", "anti") else "write join"
            self.refuse(tree, f"{side or kind} join".strip(), instead)
        if method not in ("", "natural"):
            self.refuse(tree, f"{method} join", "write join … on")
        right = self.table(tree.this)
        nested = tree.this.args.get("joins") or ()
        if nested:
            self.refuse(nested[0], "a join in parentheses", "write it as a derived table, or a step")
        on, using = tree.args.get("on"), tree.args.get("using")
        name = side or ("cross" if on is None and not using else "inner")
        if method == "natural":
            return syntax.Join(side or "inner", right, None, (), self.at(tree))
        if side and on is None and not using:
            return syntax.Join(side, right, syntax.Truth(True, self.at(tree)), (), self.at(tree))
        condition = self.expr(on) if on is not None else None
        return syntax.Join(name, right, condition, tuple(self.name(u) for u in using or ()), self.at(tree))

    def table(self, tree: exp.Expr) -> syntax.TableRef:
        """What is read: a table, a step, a query."""
        alias = tree.args.get("alias")
        name = self.name(alias.this) if alias is not None and alias.this is not None else None
        columns = list(alias.args.get("columns") or ()) if alias is not None else []
        if isinstance(tree, exp.Subquery):
            if isinstance(tree.this, exp.Table):
                return self.table(tree.this)
            query = self.query(tree.this if not _has_tail(tree) else tree)
            if columns:
                query = self._renamed(query, [self.name(c) for c in columns], tree)
            return syntax.Derived(query, name, self.at(tree))
        if isinstance(tree, exp.Values):
            made = self._values(tree)
            if made is not None:
                if columns:
                    made = self._renamed(made, [self.name(c) for c in columns], tree)
                return syntax.Derived(made, name, self.at(tree))
        if not isinstance(tree, exp.Table) or not isinstance(tree.this, exp.Identifier):
            what = "lateral" if isinstance(tree, exp.Lateral) else "a table made by a function"
            self.refuse(tree, what, "give the rows as a parameter: items many {…}")
            return syntax.TableName(self.named("unknown", tree), name, self.at(tree))
        for arg, what in (("pivots", "pivot"), ("sample", "tablesample"), ("version", "reading an older version")):
            if tree.args.get(arg):
                self.refuse(tree, what)
        if columns:
            self.refuse(tree, "names for a table's columns", "name them in the select, with as")
        return self._table_named(tree, name)

    def _table_named(self, tree: exp.Table, alias: syntax.Name | None) -> syntax.TableRef:
        if not tree.args.get("db"):
            step = next((c[tree.name.lower()] for c in reversed(self.ctes) if tree.name.lower() in c), None)
            if step is not None:
                place = syntax.Placeholder(step, None, self.at(tree))
                if alias is None and step.lower() != tree.name.lower():
                    alias = self.name(tree.this)
                return syntax.TablePlaceholder(place, alias, self.at(tree))
        return syntax.TableName(self.name(tree.this), alias, self.at(tree))

    def _values(self, tree: exp.Values) -> syntax.Query | None:
        """Rows written out, as a union of selects."""
        made: syntax.QueryBody | None = None
        for row in tree.expressions:
            values = row.expressions if isinstance(row, exp.Tuple) else [row]
            items = [
                syntax.Item(self.expr(v), self.named(f"column{n}", v), self.at(v)) for n, v in enumerate(values, 1)
            ]
            select = syntax.Select(False, tuple(items), None, None, (), None, self.at(row))
            made = select if made is None else syntax.SetOperation("union", True, made, select, self.at(tree))
        return syntax.Query(made, (), None, None, self.at(tree)) if made is not None else None


def _tree(found: object, around: exp.Expr) -> exp.Expr:
    return found if isinstance(found, exp.Expr) else around


def _has_tail(tree: exp.Expr) -> bool:
    return bool(tree.args.get("order") or tree.args.get("limit") or tree.args.get("offset"))


def _names_itself(cte: exp.Expr) -> bool:
    name = cte.alias.lower()
    return any(t.name.lower() == name for t in cte.this.find_all(exp.Table))
