import pytest, pyarrow as pa
import skyband as sb
from spark.streams import *
from skyband.engines.spark import top_k
pytestmark = pytest.mark.spark

def test_one(spark, tmp_path):
    table = trades(2000)
    window = sb.sliding("60 seconds", every="10 seconds", on="ts")
    q = dict(k=3, by="price * 2", window=window)
    expected = sb.top_k(table, **q)
    got = top_k(spark.createDataFrame(table), **q)
    print(got.schema)
    assert got.columns == expected.column_names
    assert sorted(lines(got.toArrow())) == sorted(lines(expected))
    folder = write_batches(tmp_path / "in", split(table, 4))
    out = run_stream(spark, folder, lambda df: top_k(df, **q))
    last = table["ts"][-1].value
    assert out.lines == [l for l in lines(expected) if l[1] <= last]
    assert out.observed("rows_in") == 2000
