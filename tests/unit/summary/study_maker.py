"""Builds a study database run by run, from analysis/store/schema.sql, for synthetic.py."""

from __future__ import annotations

import functools
import hashlib
import json
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from steelyard.analysis.store import database, sample_store, schema

START_UNIX_S = 1_790_000_000.0


class StudyMaker:
    """Collects rows of the tables, then writes a study folder with its database."""

    def __init__(
        self, name: str, factors: Mapping[str, Sequence[object]], baseline: Mapping[str, object]
    ) -> None:
        self.name = name
        self.factors = {factor: list(levels) for factor, levels in factors.items()}
        self.baseline = dict(baseline)
        self.scaling: Mapping[str, object] | None = None  # of the table meta
        self.rows: dict[str, list[dict[str, object]]] = defaultdict(list)
        self.clock = START_UNIX_S
        self.jobs = 100

    def run(
        self,
        benchmark: str,
        parameters: Mapping[str, object],
        condition: Mapping[str, object],
        repeat: int,
        *,
        state: str = "completed",
        elapsed_s: float | None = 10.0,
        nodes: Sequence[str] = ("n1",),
        **more: object,
    ) -> tuple[str, str]:
        """Add a run with one attempt; return (run_id, attempt)."""
        words = " ".join(f"{key}={value}" for key, value in parameters.items())
        key = json.dumps([benchmark, parameters, condition])
        run_id = f"{benchmark}-{hashlib.sha256(key.encode()).hexdigest()[:8]}-{repeat:03}"
        self.jobs += 1
        attempt = f"{self.jobs}.0"
        base = bool(self.baseline) and all(condition[k] == v for k, v in self.baseline.items())
        row = {
            "run_id": run_id,
            "block": repeat,
            "position": len(self.rows["runs"]) + 1,
            "benchmark": benchmark,
            "variant": f"{benchmark} {words}".strip(),
            "parameters": json.dumps(parameters),
            "condition": json.dumps(condition),
            "condition_label": ", ".join(f"{k}={v}" for k, v in condition.items()),
            "is_baseline": base,
            "repeat": repeat,
            "attempts": 0 if state == "planned" else 1,
            "attempt": None if state == "planned" else attempt,
            "state": state,
            "valid": True if state == "completed" else None,
        }
        self.rows["runs"].append(row | more)
        if state != "planned":
            self.attempt(run_id, attempt, state, elapsed_s, nodes)
        return run_id, attempt

    def attempt(
        self, run_id: str, attempt: str, state: str, elapsed_s: float | None, nodes: Sequence[str]
    ) -> None:
        """Add the attempt's row, and advance the time."""
        end = None if elapsed_s is None else self.clock + elapsed_s
        self.rows["attempts"].append(
            {
                "run_id": run_id,
                "attempt": attempt,
                "scheduler": "slurm",
                "cluster": "demo",
                "job_id": attempt.split(".")[0],
                "restart_count": 0,
                "state": state,
                "start_unix_s": self.clock,
                "end_unix_s": end,
                "elapsed_s": elapsed_s,
                "wait_s": 1.5,
                "exit_code": 0 if state == "completed" else 1,
                "clients": 1,
                "nodes": list(nodes),
            }
        )
        self.clock += (elapsed_s or 0) + 2

    def result(
        self,
        run: tuple[str, str],
        metric: str,
        value: float | None,
        unit: str,
        better: str | None = "lower",
        primary: bool = True,
        client: int = 1,
        iteration: int = 1,
    ) -> None:
        """Add one figure of a benchmark."""
        keys = ("run_id", "attempt", "client", "iteration", "metric", "value", "unit", "better")
        values = (*run, client, iteration, metric, value, unit, better)
        self.rows["results"].append(dict(zip(keys, values, strict=True)) | {"is_primary": primary})

    def record(
        self,
        run: tuple[str, str],
        node: str,
        elapsed_s: float,
        *,
        energy_j: float | None = None,
        **more: object,
    ) -> None:
        """Add a node's record; values that are not given are typical."""
        missing = {} if energy_j is not None else {"energy.energy_j": NO_RAPL}
        probe = {"cpu": {"cpus_online": 2}, "memory": {"memory_bytes": 8_000_000_000}}
        row = {
            "run_id": run[0],
            "attempt": run[1],
            "node": node,
            "complete": True,
            "node_type": "physical",
            "vm": "none",
            "container": "none",
            "kernel": "6.1.0-18-amd64",
            "cpu_model": "Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz",
            "exclusive": True,
            "elapsed_s": elapsed_s,
            "energy_j": energy_j,
            "cpu_s": elapsed_s * 0.9,
            "max_memory_bytes": 250_000_000,
            "rchar_bytes": 540_000_000,
            "wchar_bytes": 270_000_000,
            "read_bytes": 4_096,
            "write_bytes": 268_435_456,
            "rx_bytes": 120_000,
            "tx_bytes": 90_000,
            "samples": int(elapsed_s) + 1,
            "samples_lost": 0,
            "missed_deadlines": 0,
            "sampler_cpu_s": 0.004,
            "record": json.dumps({"missing": missing, "probe": probe}),
        }
        self.rows["records"].append(row | more)

    def samples(
        self, run: tuple[str, str], node: str, elapsed_s: float, *, watts: float | None = None
    ) -> None:
        """Add one sample per second, of a job that first reads and then computes."""
        energy = cpu = rx = 0.0
        for second in range(int(elapsed_s) + 1):
            if second:
                busy = 0.4 if second < elapsed_s / 3 else 0.95
                cpu += busy
                rx += 40e6 if second < elapsed_s / 3 else 50e3
                energy += (watts or 0) * (0.6 + 0.4 * busy)
            self.rows["samples"].append(
                {
                    "run_id": run[0],
                    "attempt": run[1],
                    "node": node,
                    "unix_s": self.clock + second,
                    "elapsed_s": second,
                    "cpu_s": cpu,
                    "memory_bytes": 100_000_000 + 1_000_000 * second,
                    "processes": 3,
                    "rx_bytes": int(rx),
                    "tx_bytes": int(rx / 30),
                    "read_bytes": int(rx / 2),
                    "write_bytes": 1000 * second,
                    "energy_j": None if watts is None else energy,
                }
            )

    def gap(
        self, kind: str, reason: str, run: tuple[str | None, str | None] = (None, None)
    ) -> None:
        """Add a gap."""
        row = {"run_id": run[0], "attempt": run[1], "node": None, "kind": kind, "reason": reason}
        self.rows["gaps"].append(row)

    def tag(self, run: tuple[str, str], node: str, key: str, value: str) -> None:
        """Add a tag of a run's script, or of a record."""
        names = ("run_id", "attempt", "node", "key", "value")
        self.rows["tags"].append(dict(zip(names, (*run, node, key, value), strict=True)))

    def write(self, parent: Path) -> Path:
        """Write NAME.study in `parent`; return its path."""
        folder = parent / f"{self.name}.study"
        folder.mkdir(parents=True)
        toml = toml_text(self.name, self.factors, self.baseline)
        (folder / "study.toml").write_text(toml, encoding="utf-8")
        plan = {"format": "steelyard-plan", "version": 1, "runs": []}
        (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        self.rows["meta"] = [
            {
                "schema_version": database.SCHEMA_VERSION,
                "study": self.name,
                "seed": 1,
                "toml": toml,
                "toml_sha256": hashlib.sha256(toml.encode()).hexdigest(),
                "steelyard": "0.1.0",
                "collected_unix_s": self.clock,
                "baseline": json.dumps(self.baseline),
                "factors": json.dumps(self.factors),
                "scaling": self.scaling and json.dumps(self.scaling),
            }
        ]
        (folder / "study.duckdb").write_bytes(empty_database())
        with duckdb.connect(str(folder / "study.duckdb")) as connection:
            connection.begin()  # otherwise each statement waits for the disk
            columns = ", ".join(f"{name} {kind}" for name, kind in sample_store.ALL_COLUMNS.items())
            connection.execute(f"CREATE TEMP TABLE samples ({columns})")
            for table, rows in self.rows.items():
                load(connection, table, rows)
            connection.execute("ALTER TABLE samples RENAME TO sampled")
            sample_store.store_samples(connection, folder, "FROM sampled")
            connection.commit()
        return folder


@functools.cache
def empty_database() -> bytes:
    """Return a database file with the schema only, which takes a tenth of a second to make."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "empty.duckdb")
        with duckdb.connect(str(path)) as connection:
            connection.begin()
            connection.execute(schema.build_schema())
            connection.commit()
        return path.read_bytes()


NO_RAPL = "no RAPL: /sys/class/powercap is absent"


def load(
    connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Mapping[str, object]]
) -> None:
    """Load rows from a JSON file, in seconds where INSERTs take minutes."""
    info = f"SELECT name, type FROM pragma_table_info('{table}')"
    types = dict(connection.execute(info).fetchall())
    # JSON columns are read as text and cast: as JSON they would be quoted again.
    types = {name: "VARCHAR" if kind == "JSON" else kind for name, kind in types.items()}
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = ", ".join(f"\"{name}\": '{types[name]}'" for name in names)
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
        file.flush()
        connection.execute(
            f"INSERT INTO {table} BY NAME SELECT * FROM read_json('{file.name}', "
            f"format='newline_delimited', columns={{{columns}}})"
        )


def toml_text(
    name: str, factors: Mapping[str, Sequence[object]], baseline: Mapping[str, object]
) -> str:
    """Return a matching study file."""
    lines = ["[study]", f'name = "{name}"', "repeat = 5", "seed = 1", "", "[factors]"]
    lines += [f"{factor} = {json.dumps(list(levels))}" for factor, levels in factors.items()]
    lines += ["", "[baseline]"] if baseline else []
    lines += [f"{factor} = {json.dumps(level)}" for factor, level in baseline.items()]
    return "\n".join(lines) + "\n"
