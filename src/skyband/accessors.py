"""`df.skyband`: the questions of Skyband as methods of DataFrames of Spark, pandas and polars.

    import skyband.accessors

    df.skyband.top_k(k=10, by="price", window=sb.tumbling("1 minute", on="ts"))

Importing this module registers them with each of the three libraries that is installed. `import skyband` does not,
since it would have to import all three.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from inspect import Parameter, signature
from typing import Any, Final

from skyband import api
from skyband.sql.run import answer_found
from skyband.sql.variables import Variables

NAME: Final = "skyband"
SELF: Final = "self"  # what a statement calls the frame, as in polars


class Questions:
    """The questions about one DataFrame."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def sql(self, text: str, /, **inputs: Any) -> Any:
        """The answer of a statement, which calls this DataFrame `self`; other inputs are given by name, or found in the
        caller's variables as by `skyband.sql`.

        Examples
        --------
        >>> import polars as pl, skyband.accessors
        >>> df = pl.DataFrame({"minute": [0, 1, 3], "price": [10, 20, 5]})
        >>> statement = "SELECT price FROM self [WINDOW 2 EVERY 2 ON minute] ORDER BY price DESC LIMIT 1"
        >>> df.skyband.sql(statement)["score"].to_list()
        [20, 5]
        """
        variables = Variables(sys._getframe(1), write="df.skyband.sql(text, {name}=…)")
        return answer_found(text, {SELF: self._frame, **inputs}, variables)


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as a method: its first argument is the frame, which a person need not give."""

    @wraps(function)
    def ask(self: Questions, **options: Any) -> Any:
        return function(self._frame, **options)

    shown = signature(function)
    (_, *options) = shown.parameters.values()
    ask.__signature__ = shown.replace(parameters=[Parameter("self", Parameter.POSITIONAL_ONLY), *options])  # type: ignore[attr-defined]
    return ask


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "top_k": api.top_k,
    "top_k_pairs": api.top_k_pairs,
    "join_aggregate": api.join_aggregate,
}
for _name, _function in _FUNCTIONS.items():
    setattr(Questions, _name, _method(_function))


def register_spark() -> None:
    """For DataFrames of Spark, classic and Connect."""
    from pyspark.sql import DataFrame

    setattr(DataFrame, NAME, property(Questions))


def _register_pandas() -> None:
    import pandas as pd

    if not hasattr(pd.DataFrame, NAME):
        pd.api.extensions.register_dataframe_accessor(NAME)(Questions)


def _register_polars() -> None:
    import polars as pl

    if not hasattr(pl.DataFrame, NAME):
        pl.api.register_dataframe_namespace(NAME)(Questions)
        pl.api.register_lazyframe_namespace(NAME)(Questions)


_LIBRARIES: Final = {"pyspark": register_spark, "pandas": _register_pandas, "polars": _register_polars}
for _library, _register in _LIBRARIES.items():
    if find_spec(_library) is not None:
        _register()
