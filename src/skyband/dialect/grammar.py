"""The language: Spark's SQL, with windows on streams. A dialect of sqlglot, not a parser of our own.

    SELECT … FROM trades [WINDOW 10 MINUTES EVERY 1 MINUTE ON ts] ORDER BY price * volume DESC LIMIT 10 EMIT WINDOWS

It adds to Spark's: a window in brackets behind an input or, for all inputs, at the end; |x| for the absolute value; **
for power; EMIT, WITH ERROR and WITH RECALL at the end; EXPLAIN [ANALYZE] in front.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from skyband.core.emit import MODES
from skyband.dialect.nodes import TABLE_FUNCTIONS, Continuous, Span, Stream, StreamWindow, TableFunction
from skyband.expressions.grammar import CALLED, DOUBLED_QUOTES

EMITS = [mode.upper() for mode in MODES]
# To Spark these are names, wherever a value may stand. So is every other word there; those of SELECT itself, such as
# FROM, are none here, so that a statement in which something is missing is not read as another one.
NAMES = frozenset(
    {
        *(TokenType.ALTER, TokenType.ANY, TokenType.CREATE, TokenType.DROP, TokenType.GLOB, TokenType.GRANT),
        *(TokenType.ILIKE, TokenType.INSERT, TokenType.INTO, TokenType.NOTNULL, TokenType.PARTITION_BY),
        *(TokenType.RETURNING, TokenType.REVOKE, TokenType.RLIKE, TokenType.ROLLBACK, TokenType.SERDE_PROPERTIES),
        *(TokenType.UNCACHE, TokenType.VALUES, TokenType.XOR),
    }
)


class SkybandSql(Spark):
    """Spark's SQL, and windows."""

    SAFE_DIVISION = False
    TYPED_DIVISION = False

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar = DOUBLED_QUOTES
        # Spark's EXPLAIN is a command, whose words nobody reads; SESSION is a window here.
        KEYWORDS: ClassVar = {
            **{word: token for word, token in Spark.Tokenizer.KEYWORDS.items() if word not in ("EXPLAIN", "SESSION")},
            "**": TokenType.DSTAR,
        }

    class Parser(SparkParser):
        EXPONENT: ClassVar = {TokenType.DSTAR: exp.Pow}
        ID_VAR_TOKENS: ClassVar = SparkParser.ID_VAR_TOKENS | NAMES
        NO_PAREN_FUNCTION_PARSERS: ClassVar = {
            word: parse for word, parse in SparkParser.NO_PAREN_FUNCTION_PARSERS.items() if word != "ANY"
        }
        FUNCTIONS: ClassVar = {**SparkParser.FUNCTIONS, **CALLED}
        _per: Sequence[exp.Expr | None] = ()  # what stands behind PARTITION BY in a table function
        _is_inside = False  # a statement: the one behind WITH has its ending read there

        def _parse_statement(self) -> exp.Expr | None:
            if self._is_inside:
                return super()._parse_statement()
            explain = None
            if self._match_texts(("EXPLAIN",)):
                explain = exp.var("ANALYZE" if self._match_texts(("ANALYZE",)) else "PLAN")
            self._is_inside = True
            try:
                statement = super()._parse_statement()
            finally:
                self._is_inside = False
            if statement is None or not isinstance(statement, exp.Query):
                return statement
            parts: dict[str, Any] = {"explain": explain}
            while self._parse_ending(parts):
                pass
            return self.expression(Continuous(this=statement, **parts))

        def _parse_ending(self, parts: dict[str, Any]) -> bool:
            """One of the things that may follow a statement; False: there is none."""
            token = self._curr
            name: str
            value: exp.Expr | None
            if self._curr.token_type == TokenType.WINDOW and self._next.token_type == TokenType.L_BRACKET:
                self._advance(2)
                name, value = "window", self._parse_stream_window()
                self._match_r_bracket()
            elif self._match_texts(("EMIT",)):
                name, value = "emit", self._parse_var(any_token=True, upper=True)
                if value is None:
                    self.raise_error(f"Expected {', '.join(EMITS[:-1])} or {EMITS[-1]} after EMIT")
            elif self._match_text_seq("WITH", "ERROR"):
                name, value = "error", self._parse_number()
            elif self._match_text_seq("WITH", "RECALL"):
                name, value = "recall", self._parse_number()
            elif self._match_text_seq("WITH", "BOUNDS"):
                name, value = "bounds", self._parse_bounds()
            else:
                return False
            if value is None:
                self.raise_error("Expected a number", token=token)
            if parts.get(name) is not None:
                self.raise_error(f"Found {name.upper()} twice", token=token)
            parts[name] = value
            return True

        def _parse_derived_table_values(self, *args: Any, **options: Any) -> exp.Values | None:
            tokens = [token.token_type for token in self._tokens[self._index : self._index + 3]]
            rows = tokens[tokens.index(TokenType.VALUES) + 1 :] if TokenType.VALUES in tokens else []
            # VALUES (1, 2) is a table; without the rows, values is a name.
            if rows[:1] != [TokenType.L_PAREN]:
                return None
            return super()._parse_derived_table_values(*args, **options)

        def _parse_bounds(self) -> exp.Tuple:
            bounds = self._parse_wrapped_csv(self._parse_unary)
            numbers = [bound.this if isinstance(bound, exp.Neg) else bound for bound in bounds]
            if len(bounds) != 2 or not all(isinstance(one, exp.Literal) and one.is_number for one in numbers):
                self.raise_error("Expected the smallest and the largest value after BOUNDS: (0, 1)")
            return self.expression(exp.Tuple(expressions=bounds))

        def _parse_window_clause(self) -> list[exp.Expr] | None:
            # WINDOW name AS (…) is Spark's; WINDOW […] is ours, and read behind the statement.
            return None if self._next.token_type == TokenType.L_BRACKET else super()._parse_window_clause()

        def _at_stream_window(self) -> bool:
            return self._curr.token_type == TokenType.L_BRACKET and self._next.token_type == TokenType.WINDOW

        def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
            if not self._at_stream_window():
                return super()._parse_bracket(this)
            if not isinstance(this, exp.Table):
                self.raise_error("A window belongs after an input, in FROM")
            return this

        def _parse_table_alias(self, alias_tokens: Any = None) -> exp.TableAlias | None:
            if self._curr.text.upper() == "EMIT" and self._next.text.upper() in EMITS:
                return None
            return super()._parse_table_alias(alias_tokens=alias_tokens)

        def _parse_table(self, *args: Any, **options: Any) -> exp.Expr | None:
            if (windowed := self._parse_table_function()) is not None:
                return windowed
            table = super()._parse_table(*args, **options)
            if not self._at_stream_window():
                return table
            self._advance(2)
            window = self._parse_stream_window()
            self._match_r_bracket()
            alias = self._parse_table_alias(alias_tokens=self.TABLE_ALIAS_TOKENS)
            if alias is not None and table is not None:
                if table.args.get("alias"):
                    self.raise_error(f"This input is called {table.alias!r} already", token=self._prev)
                table.set("alias", alias)
            return self.expression(Stream(this=table, window=window))

        def _parse_table_function(self) -> TableFunction | None:
            """`TUMBLE(bid, ts, INTERVAL 10 SECONDS)`, Flink's `TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), …))`."""
            start, is_wrapped = self._index, self._curr.text.upper() == "TABLE"
            if is_wrapped and self._next.token_type == TokenType.L_PAREN:
                self._advance(2)
            name = self._curr
            if name.text.upper() not in TABLE_FUNCTIONS or self._next.token_type != TokenType.L_PAREN:
                self._retreat(start)
                return None
            self._advance(2)
            self._per = ()
            arguments = self._parse_csv(self._parse_table_argument)
            self._match_r_paren()
            if is_wrapped:
                self._match_r_paren()
            alias = self._parse_table_alias(alias_tokens=self.TABLE_ALIAS_TOKENS)
            function = exp.var(name.text.upper()).update_positions(name)
            return self.expression(
                TableFunction(this=function, expressions=arguments, alias=alias, per=list(self._per))
            )

        def _parse_table_argument(self) -> exp.Expr | None:
            """An argument, by its place or as `SIZE => …`."""
            named = None
            if self._next.token_type == TokenType.FARROW:
                named = self._curr.text.upper()
                self._advance(2)
            value: exp.Expr | None
            if self._match_texts(("TABLE",)):
                value = self.expression(exp.Column(this=self._parse_id_var(any_token=False)))
            elif self._curr.token_type == TokenType.L_PAREN:
                value = super()._parse_table()
            else:
                value = self._parse_unary()
            if self._match(TokenType.PARTITION_BY):
                is_list = self._curr.token_type == TokenType.L_PAREN
                self._per = self._parse_wrapped_csv(self._parse_id_var) if is_list else [self._parse_id_var()]
            return value if named is None else self.expression(exp.Kwarg(this=exp.var(named), expression=value))

        def _parse_group(self, *args: Any, **options: Any) -> exp.Group | None:
            following = self._tokens[self._index + 1 : self._index + 3]
            is_function = [one.token_type for one in following] == [TokenType.WINDOW, TokenType.L_PAREN]
            if self._curr.token_type != TokenType.GROUP_BY or not is_function:
                return super()._parse_group(*args, **options)
            self._advance()  # the parser would take WINDOW for the clause of that name
            return self.expression(exp.Group(expressions=self._parse_csv(self._parse_disjunction)))

        def _parse_stream_window(self) -> StreamWindow:
            """What stands between the brackets, behind WINDOW where that is inside."""
            parts: dict[str, Any] = {}
            if not self._match_text_seq("UNTIL", "NOW"):
                parts["column"] = self._parse_column_before("UP", "TO")
                parts["this"] = self._parse_span()
            if self._match_texts(("EVERY",)):
                parts["often"] = self._parse_column_before("DOWN", "TO")
                parts["every"] = self._parse_span()
            if self._match(TokenType.ON):
                parts["on"] = self._parse_id_var()
            if self._match(TokenType.ORDER_BY):
                parts["order"] = self._parse_id_var()
            if self._match_texts(("LATENESS",)):
                parts["lateness"] = self._parse_span()
            if self._match_text_seq("FORGET", "AFTER"):
                parts["forget"] = self._parse_span()
            return self.expression(StreamWindow(**parts))

        def _parse_column_before(self, *words: str) -> exp.Column | None:
            """`q.size UP TO`, `q.often DOWN TO`: how far each query looks back, or how often it is answered, is a
            column of the queries."""
            if self._next.token_type != TokenType.DOT:
                return None
            table = self._parse_id_var()
            self._advance()
            name = self._parse_id_var()
            if not isinstance(table, exp.Identifier) or not isinstance(name, exp.Identifier):
                self.raise_error("Expected a column of the queries: q.size")
                return None
            column = exp.column(name, table)
            if not self._match_text_seq(*words):
                self.raise_error(f"Expected {' '.join(words)} and the limit for all queries after the column")
            return column

        def _parse_span(self) -> Span:
            number = self._parse_number()
            if number is None:
                self.raise_error(
                    "Expected a size: 10 MINUTES, 1000 ROWS, or a number in the unit of the column after ON"
                )
            unit = None
            if self._curr.text.upper() not in ("EVERY", "LATENESS", "FORGET") and self._curr.token_type in (
                TokenType.VAR,
                TokenType.ROWS,
                TokenType.ROW,
            ):
                unit = exp.var(self._curr.text.upper()).update_positions(self._curr)
                self._advance()
            return self.expression(Span(this=number, unit=unit))

        def _match_r_bracket(self) -> None:
            if not self._match(TokenType.R_BRACKET):
                self.raise_error("Expected ] after the window")

        def _parse_ordered(self, parse_method: Any = None) -> exp.Ordered | None:
            ordered = super()._parse_ordered(parse_method)
            said = self._tokens[max(self._index - 2, 0) : self._index]
            # The tree tells NULLS FIRST that was written from what a dialect implies only so.
            if ordered is not None and [token.text.upper() for token in said[:1]] == ["NULLS"]:
                ordered.set("nulls", exp.var(said[1].text.upper()).update_positions(said[0]))
            return ordered

        def _parse_unary(self) -> exp.Expr | None:
            if not self._match(TokenType.PIPE):
                return super()._parse_unary()
            # Nothing below the level of a sum takes | for an operator, so the next one closes this.
            inside = self._parse_term()
            if not self._match(TokenType.PIPE):
                self.raise_error("Expected | to close the absolute value")
            return self.expression(exp.Abs(this=inside))

    class Generator(SparkGenerator):
        # As it was written: Spark would have QUALIFY rewritten as a subquery, and FETCH as LIMIT.
        LIMIT_FETCH = "ALL"
        TRANSFORMS: ClassVar = {
            **{kind: write for kind, write in SparkGenerator.TRANSFORMS.items() if kind is not exp.Select},
            Span: lambda self, node: " ".join(self.sql(node, name) for name in ("this", "unit") if node.args.get(name)),
            StreamWindow: lambda self, node: _window_text(self, node),
            Stream: lambda self, node: f"{self.sql(node, 'this')} [WINDOW {self.sql(node, 'window')}]",
            TableFunction: lambda self, node: _function_text(self, node),
            Continuous: lambda self, node: _statement_text(self, node),
            exp.Cast: lambda self, node: _cast_text(self, node),
        }


def _cast_text(self: Any, node: exp.Cast) -> str:
    is_time = node.to.is_type(*exp.DataType.TEMPORAL_TYPES) and node.this.is_string
    return f"{self.sql(node, 'to')} {self.sql(node, 'this')}" if is_time else str(self.cast_sql(node))


def _window_text(self: Any, node: StreamWindow) -> str:
    said = [f"{self.sql(node, 'column')} UP TO"] if node.args.get("column") else []
    said.append(self.sql(node, "this") if node.this else "UNTIL NOW")
    for name, words in (
        *(("every", "EVERY"), ("on", "ON"), ("order", "ORDER BY")),
        *(("lateness", "LATENESS"), ("forget", "FORGET AFTER")),
    ):
        if node.args.get(name):
            said.append(f"{words} {self.sql(node, name)}")
    return " ".join(said)


def _function_text(self: Any, node: TableFunction) -> str:
    given, *others = (self.sql(argument) for argument in node.expressions)
    per = ", ".join(self.sql(column) for column in node.args.get("per") or ())
    said = ", ".join([f"{given} PARTITION BY ({per})" if per else given, *others])
    alias = node.args.get("alias")
    return f"{node.this.name}({said}){f' AS {self.sql(alias)}' if alias else ''}"


def _statement_text(self: Any, node: Continuous) -> str:
    explain = node.args.get("explain")
    said = [] if explain is None else ["EXPLAIN ANALYZE" if explain.name == "ANALYZE" else "EXPLAIN"]
    said.append(self.sql(node, "this"))
    if node.args.get("window"):
        said.append(f"WINDOW [{self.sql(node, 'window')}]")
    for name, words in (
        ("bounds", "WITH BOUNDS"),
        ("error", "WITH ERROR"),
        ("recall", "WITH RECALL"),
        ("emit", "EMIT"),
    ):
        if node.args.get(name):
            said.append(f"{words} {self.sql(node, name)}")
    return " ".join(said)
