"""Study databases for tests: made from analysis/schema.sql, seeded, no cluster needed.

`python synthetic.py FOLDER` writes demo.study, demo-energy.study, thesis-filesystem.study,
thesis-hpc.study and large.study there, to look at their reports.
"""

from __future__ import annotations

import csv
import hashlib
import importlib.resources
import json
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import duckdb

DATA = Path(__file__).parents[2] / "data" / "jungels2012"
START_UNIX_S = 1_790_000_000.0


class StudyMaker:
    """Collects rows of the tables, then writes a study folder with its database."""

    def __init__(
        self, name: str, factors: Mapping[str, Sequence[object]], baseline: Mapping[str, object]
    ) -> None:
        self.name = name
        self.factors = {factor: list(levels) for factor, levels in factors.items()}
        self.baseline = dict(baseline)
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
        """One run with one attempt; returns (run_id, attempt)."""
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
        """The attempt's row; time goes on."""
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
        """One figure of a benchmark."""
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
        """A node's record; whatever is not given is typical."""
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
        """One sample a second, a job that reads first and computes then."""
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
        self, what: str, reason: str, run: tuple[str | None, str | None] = (None, None)
    ) -> None:
        """Something missing."""
        row = {"run_id": run[0], "attempt": run[1], "node": None, "what": what, "reason": reason}
        self.rows["gaps"].append(row)

    def write(self, parent: Path) -> Path:
        """NAME.study in `parent`; returns its path."""
        folder = parent / f"{self.name}.study"
        folder.mkdir(parents=True)
        toml = toml_text(self.name, self.factors, self.baseline)
        (folder / "study.toml").write_text(toml, encoding="utf-8")
        plan = {"format": "steelyard-plan", "version": 1, "runs": []}
        (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        self.rows["meta"] = [
            {
                "schema_version": 1,
                "study": self.name,
                "seed": 1,
                "toml": toml,
                "toml_sha256": hashlib.sha256(toml.encode()).hexdigest(),
                "steelyard": "0.1.0",
                "collected_unix_s": self.clock,
                "baseline": json.dumps(self.baseline),
                "factors": json.dumps(self.factors),
            }
        ]
        with duckdb.connect(str(folder / "study.duckdb")) as connection:
            sql = importlib.resources.files("steelyard.analysis").joinpath("schema.sql")
            connection.execute(sql.read_text(encoding="utf-8"))
            for table, rows in self.rows.items():
                load(connection, table, rows)
        return folder


NO_RAPL = "no RAPL: /sys/class/powercap is absent"


def load(
    connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Mapping[str, object]]
) -> None:
    """Rows by way of a JSON file, in seconds where INSERTs take minutes."""
    info = f"SELECT name, type FROM pragma_table_info('{table}')"
    types = dict(connection.execute(info).fetchall())
    # Text of JSON is cast on the way in; read as JSON it would be quoted once more.
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
    """A study file that fits."""
    lines = ["[study]", f'name = "{name}"', "repeat = 5", "seed = 1", "", "[factors]"]
    lines += [f"{factor} = {json.dumps(list(levels))}" for factor, levels in factors.items()]
    lines += ["", "[baseline]"] if baseline else []
    lines += [f"{factor} = {json.dumps(level)}" for factor, level in baseline.items()]
    return "\n".join(lines) + "\n"


TESTS = {"large_file_copy": 0.8, "small_file_copy": 0.12, "small_file_write": 0.1}


def demo(name: str = "demo", energy: bool = False, repeat: int = 5) -> StudyMaker:
    """HPL and the three file-system tests with 1 and 2 clients, as `make demo` runs them.

    One run failed, one is an outlier; large file copies get slower with 2 clients, HPL does not.
    """
    maker = StudyMaker(name, {"clients": [1, 2]}, {"clients": 1})
    chance = random.Random(7)
    for number in range(1, repeat + 1):
        for clients in chance.sample([1, 2], 2):
            for test, seconds in TESTS.items():
                demo_filesystem(maker, chance, test, seconds, clients, number, energy)
            demo_hpl(maker, chance, clients, number, energy)
    return maker


def demo_filesystem(
    maker: StudyMaker,
    chance: random.Random,
    test: str,
    seconds: float,
    clients: int,
    number: int,
    energy: bool,
) -> None:
    node = f"n{chance.randint(1, 4)}"
    failed = test == "small_file_copy" and clients == 2 and number == 3
    run = maker.run(
        "filesystem",
        {"test": test},
        {"clients": clients},
        number,
        nodes=(node,),
        elapsed_s=seconds * 20,
        state="failed" if failed else "completed",
        reason="output of client 1: line 3 is cut short" if failed else None,
    )
    if failed:
        maker.gap("output", "client 1: line 3 is cut short", run)
    else:
        slower = 1.35 if clients == 2 and test == "large_file_copy" else 1.0
        level = seconds * slower * chance.gauss(1, 0.02)
        if test == "small_file_write" and clients == 1 and number == 4:
            level *= 1.6
        for client in range(1, clients + 1):
            for iteration in range(1, 6):
                value = level * chance.gauss(1, 0.01)
                maker.result(run, "seconds", value, "s", client=client, iteration=iteration)
                rate = 268_435_456 / value
                maker.result(
                    run, "throughput", rate, "bytes_per_s", "higher", False, client, iteration
                )
    demo_record(maker, chance, run, node, seconds * 20, energy)


def demo_hpl(
    maker: StudyMaker, chance: random.Random, clients: int, number: int, energy: bool
) -> None:
    node = f"n{chance.randint(1, 4)}"
    seconds = chance.gauss(21, 0.2)
    run = maker.run(
        "hpl", {"N": 4000}, {"clients": clients}, number, nodes=(node,), elapsed_s=seconds
    )
    maker.result(run, "gflops", chance.gauss(38.2, 0.3), "Gflop/s", "higher")
    demo_record(maker, chance, run, node, seconds, energy)


def demo_record(
    maker: StudyMaker,
    chance: random.Random,
    run: tuple[str, str],
    node: str,
    elapsed_s: float,
    energy: bool,
) -> None:
    virtual = node in ("n3", "n4")
    maker.record(
        run,
        node,
        elapsed_s,
        energy_j=elapsed_s * chance.gauss(96, 1) if energy else None,
        node_type="virtual" if virtual else "physical",
        vm="kvm" if virtual else "none",
    )
    maker.samples(run, node, elapsed_s, watts=110 if energy else None)


def thesis_rows(file: str) -> Iterator[dict[str, str]]:
    with (DATA / file).open(newline="", encoding="utf-8") as lines:
        yield from csv.DictReader(lines)


def thesis_filesystem() -> StudyMaker:
    """Iteration i of all nodes of a series is run i; node types, file systems, nodes at once."""
    runs: dict[tuple[str, ...], list[tuple[int, float]]] = defaultdict(list)
    for row in thesis_rows("jungels2012_filesystem.csv"):
        names = ("test", "node_type", "filesystem", "concurrent_nodes", "iteration")
        key = tuple(row[name] for name in names)
        runs[key].append((int(row["node_index"]), float(row["seconds"])))
    factors = {
        "node_type": ["physical", "virtual"],
        "filesystem": ["Lustre", "NFS", "PVFS"],
        "concurrent_nodes": ["1", "2", "3", "4"],
    }
    maker = StudyMaker("thesis-filesystem", factors, {"node_type": "physical"})
    for (test, node_type, filesystem, nodes, iteration), values in runs.items():
        condition = {
            "node_type": node_type,
            "filesystem": filesystem,
            "concurrent_nodes": nodes,
        }
        run = maker.run(
            "filesystem",
            {"test": test},
            condition,
            int(iteration),
            elapsed_s=max(seconds for _, seconds in values),
            nodes=[f"oscarnode{index}" for index, _ in values],
        )
        for client, seconds in values:
            maker.result(run, "seconds", seconds, "s", client=client)
    return maker


def thesis_hpc() -> StudyMaker:
    """NPB and XHPL, an iteration a run."""
    maker = StudyMaker(
        "thesis-hpc", {"node_type": ["physical", "virtual"]}, {"node_type": "physical"}
    )
    for row in thesis_rows("jungels2012_hpc.csv"):
        kernel = {"kernel": row["benchmark"]}
        run = maker.run("hpc", kernel, {"node_type": row["node_type"]}, int(row["iteration"]))
        maker.result(run, "total", float(row["total"]), row["unit"], "higher")
    return maker


def large(runs: int = 10_000, conditions: int = 100) -> StudyMaker:
    """As many runs as the budget of the report speaks of."""
    levels = [f"delay={5 * index}ms" if index else "none" for index in range(conditions)]
    maker = StudyMaker("large", {"network": levels}, {"network": "none"})
    chance = random.Random(11)
    for number in range(1, runs // conditions + 1):
        for index, level in enumerate(levels):
            seconds = (10 + index / 10) * chance.gauss(1, 0.03)
            node = f"n{chance.randint(1, 40):02}"
            run = maker.run(
                "xrootd", {}, {"network": level}, number, elapsed_s=seconds, nodes=(node,)
            )
            maker.result(run, "seconds", seconds * 0.9, "s")
            sampled = number == 50
            energy = seconds * chance.gauss(90, 2)
            samples = int(seconds) + 1 if sampled else 2
            maker.record(run, node, seconds, energy_j=energy, samples=samples)
            if sampled:
                maker.samples(run, node, seconds, watts=100)
    return maker


def main(folder: Path) -> None:
    """All of them, for people's eyes."""
    for maker in (demo(), demo("demo-energy", True), thesis_filesystem(), thesis_hpc(), large()):
        sys.stdout.write(f"{maker.write(folder)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
