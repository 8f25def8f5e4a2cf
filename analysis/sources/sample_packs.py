"""Converts samples to rows of a DuckDB table, optionally thinned, and back to text.

`steelyard sweep` packs such a table as Parquet (docs/formats.md part 1). Each line of a file is a
row: `job_id`, `node`, `start_unix_s` and `line` are its key, and each column of the file has its
number, NULL for an empty cell. Seconds and joules are DECIMAL(18,6), as the sampler writes them;
all others are BIGINT. Both print as the sampler printed them. A file that would not print byte for
byte is not converted: it is stored unchanged as the rest of its frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from steelyard.analysis.sources.sample_csv import THINNED_COLUMN
from steelyard.analysis.store.row_files import quote_identifier
from steelyard.facts.quantities import COLUMNS, TOTALS

if TYPE_CHECKING:
    import duckdb

KEYS = {"job_id": "VARCHAR", "node": "VARCHAR", "start_unix_s": "BIGINT"}
LINE, ELAPSED = "line", "elapsed_s"
REAL, WHOLE = "DECIMAL(18,6)", "BIGINT"
CELLS = b"0123456789.,\n"  # all bytes that lines of a file have
# More than any sampler writes: a user's file must not fill a sweep's memory.
MOST_LINES, MOST_CELLS = 1_000_000, 20_000_000  # of one file
MOST_COLUMNS = 1000  # of one table
OF_PARSED = ("number", "places", "text")  # columns that the table `samples` lacks
LARGEST = frozenset(total.column for total in TOTALS.values() if total.is_largest and total.column)

Key = tuple[str, str, int]  # job id, node, start


@dataclass(frozen=True, slots=True)
class Frame:
    """The parts of a file of samples that are in no row."""

    header: str | None = None  # None: the file has no rows
    lines: int = 0
    thinned_s: int | None = None  # seconds between its rows; None: complete
    rest: bytes = b""  # a truncated last line, or a complete file without rows

    @property
    def column_names(self) -> list[str]:
        """The columns of the file, in order."""
        return [] if self.header is None else self.header.split(",")

    def format_content(self, lines: str) -> bytes:
        """Return the file's content, given the lines that its rows print."""
        if self.header is None:
            return self.rest
        end = "\n" if self.lines else ""
        return f"{self.header}\n{lines}{end}".encode() + self.rest


@dataclass(frozen=True, slots=True)
class File:
    """A file of samples before its conversion to rows."""

    key: Key
    frame: Frame
    body: str  # its complete lines, without the last line end
    content: bytes

    @property
    def make_text_frame(self) -> Frame:
        """The frame of the file if it cannot be converted."""
        return Frame(rest=self.content)


def column_type(name: str) -> str:
    """Return the SQL type of a column of samples by its unit; it may be `energy_j:package-0`."""
    base = name.partition(":")[0]
    return REAL if base.endswith(("_s", "_j")) and base != THINNED_COLUMN else WHOLE


def split_file(key: Key, content: bytes) -> File:
    """Split a file into header, lines and rest."""
    head, newline, body = content.partition(b"\n")
    full_lines, end, rest = body.rpartition(b"\n")
    try:
        header = head.decode()
    except UnicodeDecodeError:
        header = ""
    lines = full_lines.count(b"\n") + 1 if end else 0
    is_large = lines > MOST_LINES or lines * (header.count(",") + 1) > MOST_CELLS
    if not newline or not is_header(header) or is_large or full_lines.translate(None, CELLS):
        return File(key, Frame(rest=content), "", content)
    return File(key, Frame(header, lines, rest=rest), full_lines.decode(), content)


def is_header(text: str) -> bool:
    """Whether the names can be columns together, and differ from those of the key."""
    names = text.split(",")
    folded = {name.casefold() for name in names}
    return (
        all(name.isprintable() and name for name in names)
        and len(folded) == len(names)
        and not folded & {*KEYS, LINE, *OF_PARSED}
    )


def find_positions(names: Sequence[str], columns: Sequence[str]) -> list[int | None]:
    """Return the position of each name among the columns, from 1; None: it is missing."""
    places = {name: position for position, name in enumerate(columns, 1)}
    return [places.get(name) for name in names]


def make_line_sql(columns: Sequence[str]) -> str:
    """Return SQL for a row's line of text, of the columns at `places`."""
    cells = ", ".join(f"coalesce({quote_identifier(name)}::VARCHAR, '')" for name in columns)
    return f"array_to_string(list_select([{cells}], places), ',')"


class SampleTable:
    """The table `samples` of an engine: rows of many files, in the order they were added."""

    def __init__(self, engine: duckdb.DuckDBPyConnection) -> None:
        """Create the table with every column that the sampler always writes."""
        self.engine = engine
        self.columns = [*(column.name for column in COLUMNS), THINNED_COLUMN]
        self.rows = 0
        kinds = KEYS | {LINE: WHOLE} | {name: column_type(name) for name in self.columns}
        columns = ", ".join(f"{quote_identifier(name)} {kind}" for name, kind in kinds.items())
        engine.execute(f"CREATE TABLE samples ({columns})")

    def insert(self, files: Sequence[File], every_s: int | None) -> list[Frame]:
        """Add the rows of files; return the files' frames, in this order.

        `every_s` None keeps all lines. Otherwise each file keeps one line in so many seconds; 0
        keeps none between the first and the last.
        """
        frames = [self._make_frame(file) for file in files]
        numbers = [number for number, frame in enumerate(frames) if frame.lines]
        if not numbers:
            return frames
        self._parse(files, frames, numbers)
        for (number,) in self.engine.execute(
            f"SELECT DISTINCT number FROM parsed WHERE {make_line_sql(self.columns)} IS DISTINCT FROM text"
        ).fetchall():
            frames[number] = files[number].make_text_frame
            self.engine.execute("DELETE FROM parsed WHERE number = ?", [number])
        chosen = "FROM parsed" if every_s is None else self._thin(frames, every_s)
        added = self.engine.execute(
            f"INSERT INTO samples BY NAME SELECT * EXCLUDE ({', '.join(OF_PARSED)}) {chosen}"
        ).fetchone()
        self.rows += added[0] if added else 0
        return frames

    def _make_frame(self, file: File) -> Frame:
        """Return a file's frame; add the columns that the table lacks."""
        known = {name.casefold(): name for name in self.columns}
        new = [name for name in file.frame.column_names if name.casefold() not in known]
        if len(known) + len(new) > MOST_COLUMNS or any(
            known.get(name.casefold(), name) != name for name in file.frame.column_names
        ):
            return file.make_text_frame  # eth0 and Eth0 cannot be columns of one table
        for name in new:
            self.engine.execute(
                f"ALTER TABLE samples ADD COLUMN {quote_identifier(name)} {column_type(name)}"
            )
        self.columns += new
        return file.frame

    def _parse(
        self, files: Sequence[File], frames: Sequence[Frame], numbers: Sequence[int]
    ) -> None:
        """Write the table `parsed`: the lines of these files as numbers, with their text."""
        mine = [files[number] for number in numbers]
        names = [frames[number].column_names for number in numbers]
        job_ids, nodes, starts = zip(*(file.key for file in mine), strict=True)
        cells = ", ".join(
            f"TRY_CAST(nullif(cells[cell_of[{position}]], '') AS {column_type(name)}) AS {quote_identifier(name)}"
            for position, name in enumerate(self.columns, 1)
        )
        self.engine.execute(
            "CREATE OR REPLACE TEMP TABLE parsed AS WITH texts AS (SELECT "
            "unnest(?::INTEGER[]) AS number, unnest(?::VARCHAR[]) AS job_id, "
            "unnest(?::VARCHAR[]) AS node, unnest(?::BIGINT[]) AS start_unix_s, "
            "unnest(?::INTEGER[][]) AS places, unnest(?::INTEGER[][]) AS cell_of, "
            "string_split(unnest(?::VARCHAR[]), chr(10)) AS texts), "
            "lines AS (SELECT * EXCLUDE (texts), unnest(texts) AS text, "
            "generate_subscripts(texts, 1) AS line FROM texts), "
            "split AS (SELECT *, string_split(text, ',') AS cells FROM lines) "
            f"SELECT number, places, text, job_id, node, start_unix_s, line, {cells} FROM split",
            [
                list(numbers), list(job_ids), list(nodes), list(starts),
                [find_positions(one, self.columns) for one in names],
                [find_positions(self.columns, one) for one in names],
                [file.body for file in mine],
            ],
        )  # fmt: skip

    def _thin(self, frames: list[Frame], every_s: int) -> str:
        """Return SQL for the lines of `parsed` that remain; change the frames of their files.

        Every line that totals are computed from remains: of every column those with its first and
        its last value, and those with the largest one. A file without times, a file that would lose
        no line, and a thinned file stay unchanged.
        """
        self.engine.execute(
            f"CREATE OR REPLACE TEMP TABLE stays AS {self._make_thinned_lines_sql(every_s)}"
        )
        found = self.engine.execute(
            "SELECT number, any_value(stay) FROM parsed "
            "JOIN (SELECT number, count(*) AS stay FROM stays GROUP BY number) USING (number) "
            f"GROUP BY number HAVING count(*) = count({ELAPSED}) AND count(*) > any_value(stay)"
        ).fetchall()
        thinned = [
            number for number, _ in found if THINNED_COLUMN not in frames[number].column_names
        ]
        for number, lines in found:
            if number in thinned:
                header = f"{frames[number].header},{THINNED_COLUMN}"
                frames[number] = replace(
                    frames[number], header=header, lines=lines, thinned_s=every_s
                )
        mine = f"number IN (SELECT unnest({thinned}::INTEGER[]))"
        return (
            f"REPLACE (CASE WHEN {mine} THEN {every_s} ELSE {THINNED_COLUMN} END AS {THINNED_COLUMN}) "
            f"FROM parsed WHERE NOT {mine} OR (number, line) IN (SELECT (number, line) FROM stays)"
        )

    def _make_thinned_lines_sql(self, every_s: int) -> str:
        """Return SQL for number and line of what remains of each file."""
        lines = ["min(line)", "max(line)"]
        for name in self.columns:
            there = f"FILTER ({quote_identifier(name)} IS NOT NULL)"
            lines += [f"min(line) {there}", f"max(line) {there}"]
            if name in LARGEST:
                lines.append(f"arg_max(line, ({quote_identifier(name)}, -line)) {there}")
        ends = f"SELECT number, unnest([{', '.join(lines)}]) AS line FROM parsed GROUP BY number"
        spans = (
            f"UNION ALL SELECT number, min(line) FROM parsed "
            f"GROUP BY number, ({ELAPSED} * 1000000)::BIGINT // {every_s * 1_000_000}"
            if every_s
            else ""
        )
        return f"SELECT DISTINCT number, line FROM ({ends} {spans}) WHERE line IS NOT NULL"


def read_texts(
    cursor: duckdb.DuckDBPyConnection, table: str, keys: Sequence[Key], frames: Sequence[Frame]
) -> Iterator[bytes]:
    """Yield the files' content from a table of their rows; `table` is SQL.

    Raises ValueError when rows are missing.
    """
    wanted = [number for number, frame in enumerate(frames) if frame.lines]
    found: dict[int, tuple[int, str]] = {}
    if wanted:
        columns = [one[0] for one in cursor.execute(f"FROM {table} LIMIT 0").description or ()]
        columns = [name for name in columns if name not in KEYS and name != LINE]
        job_ids, nodes, starts = zip(*(keys[number] for number in wanted), strict=True)
        places = [find_positions(frames[number].column_names, columns) for number in wanted]
        found = {
            number: (lines, text)
            for number, lines, text in cursor.execute(
                "WITH wanted AS (SELECT unnest(?::INTEGER[]) AS number, "
                "unnest(?::VARCHAR[]) AS job_id, unnest(?::VARCHAR[]) AS node, "
                "unnest(?::BIGINT[]) AS start_unix_s, unnest(?::INTEGER[][]) AS places) "
                f"SELECT number, count(*), string_agg({make_line_sql(columns)}, chr(10) ORDER BY line) "
                f"FROM {table} JOIN wanted USING (job_id, node, start_unix_s) "
                "WHERE job_id BETWEEN ? AND ? GROUP BY number",
                [
                    wanted, list(job_ids), list(nodes), list(starts), places, min(job_ids),
                    max(job_ids),
                ],
            ).fetchall()
        }  # fmt: skip
    for number, frame in enumerate(frames):
        lines, text = found.get(number, (0, ""))
        if lines != frame.lines:
            raise ValueError(f"{lines} of {frame.lines} lines of {keys[number]} are there")
        yield frame.format_content(text)


def thin(content: bytes, every_s: int) -> bytes:
    """Return a file's content as a pack with this thinning would return it."""
    import duckdb

    key = ("", "", 0)
    with duckdb.connect() as engine:
        engine.execute("SET threads = 1")
        frames = SampleTable(engine).insert([split_file(key, content)], every_s)
        (text,) = read_texts(engine, "samples", [key], frames)
    return text
