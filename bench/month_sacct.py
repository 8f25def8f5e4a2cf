"""`sacct` of a month of bench/month_generator.py: rows of its files, by the same options."""

import argparse
import datetime
import json
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1]


def unix_s(text: str) -> float:
    """Return a time of sacct's options, in UTC, or seconds since 1970."""
    if text.isdigit():
        return float(text)
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC).timestamp()


def options() -> argparse.Namespace:
    """Parse the options that select rows; the format of the output is constant."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("-j", "--jobs", default="")
    parser.add_argument("-X", "--allocations", action="store_true")
    parser.add_argument("-u", "--user", default="")
    parser.add_argument("-S", "--starttime", type=unix_s, default=0.0)
    parser.add_argument("-E", "--endtime", type=unix_s, default=float("inf"))
    parser.add_argument("-o", "--format", default="")
    parser.add_argument("--delimiter", default="|")
    parser.add_argument("--helpformat", action="store_true")
    return parser.parse_known_args()[0]


def main() -> None:
    """Print the selected rows."""
    head = json.loads((FOLDER / "head.json").read_bytes())
    asked, fields, mark = options(), head["fields"], head["delimiter"]
    if asked.helpformat:
        print(*fields)
        return
    ids = set(filter(None, asked.jobs.split(",")))
    chunks = {int(one.partition("_")[0]) // head["chunk"] for one in ids}
    # The tasks of an array have ids after the array's own, and may be in the next file.
    near = sorted(chunks | {n + 1 for n in chunks})
    names = near if ids else in_time(head["spans"], asked.starttime, asked.endtime)
    users = set(filter(None, asked.user.split(",")))
    at = {name: place for place, name in enumerate(fields)}
    # The additional empty cell stands for fields that the month does not have.
    wanted = [at.get(name, len(fields)) for name in (asked.format or ",".join(fields)).split(",")]
    job, raw, start, end, user = (at[n] for n in ("JobID", "JobIDRaw", "Start", "End", "User"))
    keep = False
    for line in lines(names):
        cells = [*line.split(mark), ""]
        name = cells[job]
        if "." not in name:
            began = cells[start] if cells[start].isdigit() else cells[end]
            keep = float(began) < asked.endtime and float(cells[end]) >= asked.starttime
            keep = keep and (not users or cells[user] in users)
            keep = keep and (not ids or bool(ids & {name, name.partition("_")[0], cells[raw]}))
        if keep and not (asked.allocations and "." in name):
            print(asked.delimiter.join(cells[n] for n in wanted))


def in_time(spans: dict[str, list[int]], since_unix_s: float, until_unix_s: float) -> list[int]:
    """Return the numbers of files with a job in that time.

    So reading 30 single days does not read the month 30 times.
    """
    return sorted(
        int(name)
        for name, (first, last) in spans.items()
        if first < until_unix_s and last >= since_unix_s
    )


def lines(names: list[int]) -> Iterator[str]:
    """Yield the lines of existing files, without their ends."""
    for name in names:
        path = FOLDER / "accounting" / f"{name}.txt"
        if path.is_file():
            with path.open(encoding="utf-8", newline="\n") as file:
                yield from (line.rstrip("\n") for line in file)


if __name__ == "__main__":
    main()
