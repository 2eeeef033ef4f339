"""An algorithm for rows: what it takes and gives is in `core/operator.py`."""

from __future__ import annotations

from skyband.core.operator import ObjectOperator, Spec
from skyband.core.registry import Algorithm

RowAlgorithm = Algorithm[Spec, ObjectOperator]
