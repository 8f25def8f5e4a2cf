"""`sacct` of a month that bench/month.py made: rows out of its files, chosen by the same options."""

import argparse
import datetime
import json
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1]


def unix_s(text: str) -> float:
    """A time as sacct takes it, in UTC, or seconds since 1970."""
    if text.isdigit():
        return float(text)
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC).timestamp()


def options() -> argparse.Namespace:
    """Those that choose; all others say how sacct is to print, and it prints so anyway."""
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
    """Print the rows."""
    head = json.loads((FOLDER / "head.json").read_bytes())
    asked, fields, mark = options(), head["fields"], head["delimiter"]
    if asked.helpformat:
        print(*fields)
        return
    ids = set(filter(None, asked.jobs.split(",")))
    chunks = {int(one.partition("_")[0]) // head["chunk"] for one in ids}
    # The tasks of an array follow its own id, and may lie in the next file.
    near = sorted(chunks | {n + 1 for n in chunks})
    names = near if ids else in_time(head["spans"], asked.starttime, asked.endtime)
    users = set(filter(None, asked.user.split(",")))
    at = {name: place for place, name in enumerate(fields)}
    # Behind a row's fields an empty one: of what the month does not tell.
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
    """The numbers of files that have a job of that time: 30 days are not to be 30 times a month."""
    return sorted(
        int(name)
        for name, (first, last) in spans.items()
        if first < until_unix_s and last >= since_unix_s
    )


def lines(names: list[int]) -> Iterator[str]:
    """Of files that are there, without their ends."""
    for name in names:
        path = FOLDER / "accounting" / f"{name}.txt"
        if path.is_file():
            with path.open(encoding="utf-8", newline="\n") as file:
                yield from (line.rstrip("\n") for line in file)


if __name__ == "__main__":
    main()
