"""The questions one can ask, as frozen values that are checked once, when they are made."""

from skyband.queries.across import Bounds, Repeat, TopKAcross
from skyband.queries.checks import Emit, Order
from skyband.queries.joins import JoinAggregate, Relation, StreamInput, relation, stream_input
from skyband.queries.many import TopKForEach
from skyband.queries.objects import TopK
from skyband.queries.pairs import TopKPairs

__all__ = [
    "Bounds",
    "Emit",
    "JoinAggregate",
    "Order",
    "Relation",
    "Repeat",
    "StreamInput",
    "TopK",
    "TopKAcross",
    "TopKForEach",
    "TopKPairs",
    "relation",
    "stream_input",
]
