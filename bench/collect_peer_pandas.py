"""A script with pandas for the same files: the peer of bench/collect.py.

It reads the accounting, every result.json, record and file of samples, joins them to the runs, and
writes the tables as Parquet. It stores nothing between two calls and checks nothing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd

from steelyard.analysis.sources.sacct import DELIMITER, FIELDS

FILES_AT_ONCE = 200


def records_of(folder: Path, runs: pd.DataFrame, out: Path) -> pd.DataFrame:
    """Return all records; write their samples to `out`, some files at a time: all need 20 GB."""
    records, samples = [], []
    paths = sorted(folder.glob("*/*.json"))
    for done, path in enumerate(paths, 1):
        record = json.loads(path.read_bytes())
        key = {"job_id": path.parent.name, "node": record["node"]}
        records.append(key | pd.json_normalize(record, max_level=1).iloc[0].to_dict())
        samples.append(pd.read_csv(path.with_suffix(".csv")).assign(**key))
        if len(samples) == FILES_AT_ONCE or done == len(paths):
            frame = pd.concat(samples, ignore_index=True).merge(runs, on="job_id")
            frame["day"] = pd.to_datetime(frame["unix_s"], unit="s").dt.strftime("%Y-%m-%d")
            frame.to_parquet(out, partition_cols=["day"])
            samples.clear()
    return pd.DataFrame(records)


def main(study_dir: Path, record_dir: Path, accounting_dir: Path, out: Path) -> None:
    """Write all tables to `out`."""
    out.mkdir()
    plan = pd.DataFrame(json.loads((study_dir / "plan.json").read_bytes())["runs"])
    results = pd.DataFrame(
        json.loads(path.read_bytes()) for path in sorted(study_dir.glob("runs/*/*/result.json"))
    )
    accounting = pd.concat(
        [
            pd.read_csv(path, sep=DELIMITER, names=list(FIELDS), dtype=str, engine="c")
            for path in sorted(accounting_dir.glob("[0-9]*.txt"))
        ]
    )
    records = records_of(record_dir, results[["job_id", "run_id"]], out / "samples")
    runs = plan.merge(results, on="run_id").merge(records, on="job_id", suffixes=("", "_record"))
    accounting.to_parquet(out / "accounting.parquet")
    runs.astype(str).to_parquet(out / "runs.parquet")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:5]))
