"""The questions one can ask, as frozen values that are checked once, when they are made."""

from skyband.queries.checks import Emit, Order
from skyband.queries.joins import JoinAggregate, Relation, StreamInput, relation, stream_input
from skyband.queries.objects import TopK

__all__ = ["Emit", "JoinAggregate", "Order", "Relation", "StreamInput", "TopK", "relation", "stream_input"]
