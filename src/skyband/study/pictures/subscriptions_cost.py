"""Subscriptions against the published competitors, and against only computing distances."""

from __future__ import annotations

from typing import Final

from skyband.study.pictures.limits import against

SHOWN: Final = {
    "subscriptions-cpmw-9": "400 queries, top 9, against CPM/w",
    "subscriptions-cpmw-81": "400 queries, top 81, against CPM/w",
    "subscriptions-snn-9": "400 queries, top 9, against SNN",
    "subscriptions-snn-81": "400 queries, top 81, against SNN",
    "subscriptions-10000": "10,000 queries, top 9, against only computing distances",
}


def draw() -> str:
    """A bar for each competitor."""
    return against("Subscriptions against their references", SHOWN)
