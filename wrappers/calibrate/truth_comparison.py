"""Compares what loads counted with what was measured of their job, as cells of the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from steelyard.analysis.sources.records import find_number
from steelyard.wrappers.calibrate import known_loads, limits, table
from steelyard.wrappers.calibrate.job_system import (
    JobSystem,
    LaunchMethod,
    Record,
    Start,
    is_same_node,
)
from steelyard.wrappers.calibrate.known_loads import KnownLoad, Result
from steelyard.wrappers.calibrate.limits import LimitTable
from steelyard.wrappers.calibrate.table import Cell, Limit, Quantity

SHELL = "the login shell before the script: what it has used from when the sampler knows it"


def record_cell(
    method: str,
    load: KnownLoad,
    quantity: Quantity,
    record: Record,
    results: Sequence[Result],
    limit: Limit,
    node: str | None = None,
) -> Cell:
    """Return a cell that compares a record's figure with the loads on its node."""
    return Cell(
        method,
        load.name,
        quantity.name,
        quantity.unit,
        where=table.RECORD,
        truth=known_loads.true_value(quantity, results),
        measured=find_number(record, quantity.path),
        limit=limit,
        node=node,
        reason=missing_reason(record, quantity) or table.find_unseen_reason(record, load.unwaited),
    )


def missing_reason(record: Record, quantity: Quantity) -> str | None:
    """Return why a figure of a record is null or incomplete, or None."""
    return table.reason_at(record, quantity.path, quantity.key) or table.incomplete_reason(record)


def count_missed_ends(record: Record) -> int | None:
    """Return the number of processes whose end the kernel did not report; None if it did not
    count."""
    counted = record.get("io", {}).get("source") == "bpf"
    return record["bpf"]["missed_ends"] if counted else None


def load_limit(
    quantity: Quantity, load: KnownLoad, missed: int | None, *beside: LimitTable
) -> Limit:
    """Return the limit for every quantity except time. `missed`: see count_missed_ends; `beside`:
    limits of what runs in the job besides the load."""
    limit = limits.load_limit(quantity, *beside)
    if missed is None:
        return limit
    limit = limits.counted_limit(quantity, limit, load.unwaited, missed, beside.count(limits.SRUN))
    tasks = limits.PBSDSH in beside
    return limit + limits.TASK.get(quantity.name, Limit()) if tasks else limit


PARTIAL = "the first node's alone: `steelyard publish` adds the others"


def is_partial(totals: Record | None) -> bool:
    """Return whether the totals cover only some nodes of the job."""
    return bool(totals and totals.get("partial") and totals.get("nodes_measured"))


@dataclass(frozen=True)
class StartCells:
    """The cells of one start of a job."""

    system: JobSystem
    method: LaunchMethod
    start: Start

    def list_cells(self) -> Iterator[Cell]:
        """Yield a cell for every quantity: of each node's record and, for the last start, of the
        scheduler's totals."""
        report = self.start.report
        totals = report.totals or {} if self.start.is_last else {}
        for quantity in self.method.load.quantities:
            for record in self.start.records:
                yield self.record_cell(quantity, record)
            for host, found in totals.items():
                yield self.totals_cell(quantity, host, found)

    def record_cell(self, quantity: Quantity, record: Record) -> Cell:
        """Return a cell for one node's record."""
        node, report = str(record.get("node")), self.start.report
        results = [result for result in self.start.results if result.node == node]
        ended_s = report.elapsed_s if report.extern_s is None else report.extern_s
        limit = self.find_limit(quantity, results, ended_s, count_missed_ends(record))
        return record_cell(
            self.method.name, self.method.load, quantity, record, results, limit, node
        )

    def totals_cell(self, quantity: Quantity, host: str | None, totals: Record | None) -> Cell:
        """Return a cell that compares the scheduler's totals with the loads of that host, or of all
        hosts."""
        results = [
            one for one in self.start.results if host is None or is_same_node(one.node, host)
        ]
        nodes = sorted({one.node for one in results})
        by_node = [[one for one in results if one.node == node] for node in nodes] or [[]]
        missed = [
            count_missed_ends(one) for one in self.start.records
            if host is None or is_same_node(str(one.get("node")), host)
        ]  # fmt: skip
        counted = None if not missed or None in missed else sum(one or 0 for one in missed)
        elapsed_s, limit = self.start.report.elapsed_s, Limit()
        truths = [known_loads.true_value(quantity, each) for each in by_node]
        for each in by_node:
            one = self.find_limit(quantity, each, elapsed_s, counted)
            limit = one if quantity.largest else limit + one
        return Cell(
            self.method.name,
            self.method.load.name,
            quantity.name,
            quantity.unit,
            where=self.system.where,
            truth=max(truths) if quantity.largest else sum(truths),
            measured=None if is_partial(totals) else find_number(totals or {}, quantity.key),
            limit=limit,
            node=host,
            reason=PARTIAL if is_partial(totals) else self.totals_reason(quantity, host, totals),
        )

    def totals_reason(
        self, quantity: Quantity, host: str | None, totals: Record | None
    ) -> str | None:
        """Return why a total is null: from the totals, else from the host's records, or from all
        records if no node has the figure."""
        missed = self.method.no_totals or self.system.no_totals
        known = self.start.report is not self.system.no_report  # to the scheduler
        if missed and known and (not totals or not totals.get("nodes_measured")):
            return missed
        if totals is None:
            return None
        own = table.reason_at(totals, quantity.key, quantity.path)
        own = own or table.find_unseen_reason(totals, self.method.load.unwaited)
        records = self.start.records
        if host is not None:
            records = [one for one in records if is_same_node(str(one.get("node")), host)]
        elif any(find_number(one, quantity.path) is not None for one in records):
            records = []
        reasons = (missing_reason(record, quantity) for record in records)
        return own or next(filter(None, reasons), None)

    def find_limit(
        self,
        quantity: Quantity,
        results: Sequence[Result],
        scheduler_s: float | None,
        missed: int | None,
    ) -> Limit:
        """Return the limit for one node's loads. `scheduler_s`: the job's duration for its
        scheduler; `missed`: see count_missed_ends."""
        truth = known_loads.true_value(quantity, results)
        if quantity is table.ELAPSED:
            return self.system.elapsed_limit(truth, scheduler_s)
        limit = load_limit(quantity, self.method.load, missed, *self.method.beside)
        if quantity is table.CPU and missed is None:  # a cgroup counts the ends of processes, too
            limit += limits.multiply_limit(limits.EXIT, self.method.load.unwaited)
        if (shells := known_loads.used_by_parents(quantity, results)) > 0:
            limit += Limit(0, shells, SHELL)
        if self.method.interrupt and not self.start.is_last:
            limit += limits.KILLED.get(quantity.name, Limit())
        if quantity is table.MEMORY:
            together = sum(result.values["memory_bytes"] for result in results)
            if together > truth:
                limit += Limit(0, together - truth, "loads side by side")
        return limit
