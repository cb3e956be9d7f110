# SPDX-License-Identifier: BSD-3-Clause
"""json_is.py FILE BENCHMARK "SIZE ..." REPEATS: whether FILE is a benchmark's complete and plausible result."""
import json
import sys

path, name, sizes, repeats = sys.argv[1], sys.argv[2], [int(s) for s in sys.argv[3].split()], int(sys.argv[4])
with open(path) as f:
    result = json.load(f)
assert result["benchmark"] == name, result["benchmark"]
assert result["ranks"] == 2 and result["library"], result
assert result["unit"] in ("us", "MB/s", "msg/s"), result["unit"]
assert result["data_ok"] is True, result["data_ok"]
assert [row["size"] for row in result["results"]] == sizes, result["results"]
for row in result["results"]:
    assert len(row["samples"]) == repeats, row
    assert 0 < row["min"] <= row["median"] <= row["max"], row
    assert row["min"] in row["samples"] and row["max"] in row["samples"], row
