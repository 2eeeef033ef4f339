"""Example test: how far a call walks through the source. Whoever makes it longer sees it here."""

from __future__ import annotations

from skyband.study.walks import in_this_process, trace

# Lower these when a walk gets shorter, and write the new numbers into docs/explanation/architecture.md.
FILES, CALLS = 43, 200


def test_an_embedded_top_k_walks_no_further_than_it_did() -> None:
    call = in_this_process()["sb.top_k over a table"]
    call()  # imports, and compiles
    walk = trace(call)
    assert len(walk.files) <= FILES, walk.files
    assert walk.switches <= CALLS, walk.edges.most_common(20)
    assert "problems/rows/algorithms/mintopk/state.py" in walk.files
    asked = [file for file in walk.files if "/algorithms/" in file and "/mintopk/" not in file]
    assert not asked, "an algorithm that does not run has said all that the chooser needs"
