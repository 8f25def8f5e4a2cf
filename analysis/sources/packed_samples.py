"""Samples as a pack has them: columns of differences in place of lines of text, docs/formats.md
part 1; and thinned, where the administrator of a sweep said so.

Counters that only grow are small differences, whose bytes lie together by their weight: zstd makes a
half of what it makes of the text. What comes back is the file to the byte, or the text stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from steelyard.analysis.sources.thinned import COLUMN
from steelyard.facts.quantities import TOTALS

FORM = "columns-1"
ELAPSED, THINNED = b"elapsed_s", COLUMN.encode()
PIECE_BYTES = 1 << 20  # cells as Python's objects take eight times as much
PIECE_LINES = 4096
MOST_LINES = 1 << 26  # of a file of 64 MB, the largest that is packed
DIGITS = b"0123456789,"
LARGEST = frozenset(
    total.column.encode()
    for total in TOTALS.values()
    if total.over_time == "LARGEST" and total.column
)

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class Column:
    """The cells of a column: `values`, in units of the last digit, where there are any."""

    digits: int  # behind the point
    values: Numbers
    there: Flags | None = None  # None: in every line

    @property
    def lines(self) -> int:
        """How many, empty cells too."""
        return len(self.values if self.there is None else self.there)


@dataclass(frozen=True, slots=True)
class Samples:
    """A file of samples; `rest`: of a last line that was cut short."""

    names: Sequence[bytes]
    columns: Sequence[Column]
    lines: int
    rest: bytes


def encoded(text: bytes, check: bool = True) -> bytes | None:
    """A file of samples as columns; None: not as the sampler writes it, and the text must do.

    `check`: whether these are the text again.
    """
    samples = parsed(text)
    blob = None if samples is None else packed(samples)
    return blob if blob is None or not check or is_of(blob, text) else None


def thinned(text: bytes, every_s: int) -> bytes | None:
    """A file with one line in `every_s` seconds; 0: no line between the first and the last. None: it
    has no more than that, or is not understood.

    Whatever totals are made of stays: of every column the first and the last value, and the line of
    the largest. Each line says how it was thinned.
    """
    samples = parsed(text)
    if samples is None or THINNED in samples.names:
        return None
    keep = chosen(samples, every_s)
    if keep is None or keep.all():
        return None
    head, *lines = text.split(b"\n")
    mark = b",%d\n" % every_s
    stay = (lines[place] + mark for place in keep.nonzero()[0].tolist())
    return b"".join([head, b",", THINNED, b"\n", *stay, samples.rest])


def is_of(blob: bytes, text: bytes) -> bool:
    """Whether it is the text again, to the byte."""
    begin = 0
    for piece in text_of(unpacked(blob)):
        if not text.startswith(piece, begin):
            return False
        begin += len(piece)
    return begin == len(text)


def decoded(blob: bytes) -> bytes:
    """The file again; ValueError where it is damaged."""
    try:
        return b"".join(text_of(unpacked(blob)))
    except (IndexError, OverflowError) as error:
        raise ValueError(str(error)) from None


# --- text ------------------------------------------------------------------------------------


class OddError(ValueError):
    """Text that is no table of our numbers."""


def parsed(text: bytes) -> Samples | None:
    """The numbers of a file; None where it has other cells. Whether these make the text again is
    not known yet."""
    head, _, body = text.partition(b"\n")
    whole, newline, rest = body.rpartition(b"\n")
    names = head.split(b",")
    try:
        pieces = [piece_of(piece, len(names)) for piece in pieces_of(whole + newline)]
        columns = [joined(parts) for parts in zip(*pieces, strict=True)]
    except OddError:
        return None
    lines = sum(piece[0].lines for piece in pieces)
    return Samples(names, columns, lines, rest) if lines else None


def piece_of(text: bytes, width: int) -> list[Column]:
    """Some lines."""
    cells = text.replace(b"\n", b",").split(b",")
    if len(cells) % width:
        raise OddError
    return [numbers(cells[place::width]) for place in range(width)]


def pieces_of(lines: bytes) -> Iterator[bytes]:
    """Whole lines, without the last one's end."""
    begin = 0
    while begin < len(lines):
        end = lines.find(b"\n", min(begin + PIECE_BYTES, len(lines) - 1))
        yield lines[begin:end]
        begin = end + 1


def numbers(cells: Sequence[bytes]) -> Column:
    """A column's cells, some of them empty maybe."""
    filled = [cell for cell in cells if cell]
    there = None
    if len(filled) < len(cells):
        there = np.fromiter(map(bool, cells), np.bool_, len(cells))
    if not filled:
        return Column(0, np.empty(0, np.int64), there)
    digits = len(filled[0].partition(b".")[2])
    text = b",".join(filled)
    if digits:
        text = text.replace(b".", b"")
    if text.translate(None, DIGITS) or b",," in b",%b," % text:
        raise OddError
    values = np.fromstring(text, np.int64, sep=",")  # too large a number is not the text again
    return Column(digits, values, there)


def joined(parts: Sequence[Column]) -> Column:
    """Pieces of a column together."""
    digits = {part.digits for part in parts if len(part.values)} or {0}
    if len(digits) > 1:
        raise OddError
    there = None
    if any(part.there is not None for part in parts):
        flags = (
            np.ones(part.lines, np.bool_) if part.there is None else part.there for part in parts
        )
        there = np.concatenate(list(flags))
    return Column(digits.pop(), np.concatenate([part.values for part in parts]), there)


def text_of(samples: Samples) -> Iterator[bytes]:
    """The file, some lines at a time."""
    yield b",".join(samples.names) + b"\n"
    for begin in range(0, samples.lines, PIECE_LINES):
        some = np.zeros(samples.lines, np.bool_)
        some[begin : begin + PIECE_LINES] = True
        columns = (cells_of(of_lines(column, some)) for column in samples.columns)
        yield "".join(",".join(line) + "\n" for line in zip(*columns, strict=True)).encode()
    yield samples.rest


def cells_of(column: Column) -> list[str]:
    """As the sampler writes them."""
    if column.digits:
        form = f"%d.%0{column.digits}d"
        pairs = np.divmod(column.values, 10**column.digits)
        texts = [form % pair for pair in zip(*(part.tolist() for part in pairs), strict=True)]
    else:
        texts = list(map(str, column.values.tolist()))
    if column.there is None:
        return texts
    left = iter(texts)
    return [next(left) if is_there else "" for is_there in column.there.tolist()]


# --- lines chosen ----------------------------------------------------------------------------


def of_lines(column: Column, keep: Flags) -> Column:
    """A column of fewer lines."""
    if column.there is None:
        return replace(column, values=column.values[keep])
    return Column(column.digits, column.values[keep[column.there]], column.there[keep])


def chosen(samples: Samples, every_s: int) -> Flags | None:
    """The lines that stay; None: they have no times."""
    if ELAPSED not in samples.names:
        return None
    time = samples.columns[samples.names.index(ELAPSED)]
    if time.there is not None:
        return None
    keep = np.zeros(samples.lines, np.bool_)
    keep[[0, -1]] = True
    if every_s:
        span = time.values // (every_s * 10**time.digits)
        keep[1:] |= span[1:] != span[:-1]
    for name, column in zip(samples.names, samples.columns, strict=True):
        places = np.arange(samples.lines) if column.there is None else column.there.nonzero()[0]
        if len(places):
            keep[places[[0, -1]]] = True
            if name in LARGEST:
                keep[places[column.values.argmax()]] = True
    return keep


# --- bytes -----------------------------------------------------------------------------------


def packed(samples: Samples) -> bytes:
    """The header; a line that says how many lines there are and of each column `DIGITS:WIDTH:FIRST`,
    and `:some` where cells are empty; a line end; then column by column."""
    words, parts = [str(samples.lines)], []
    for column in samples.columns:
        values, flags = column.values, column.there
        steps = np.diff(values)
        weights = ((steps << 1) ^ (steps >> 63)).astype("<u8")
        width = (int(weights.max()).bit_length() + 7) // 8 if len(steps) else 0
        first = int(values[0]) if len(values) else 0
        words.append(f"{column.digits}:{width}:{first}{'' if flags is None else ':some'}")
        if flags is not None:
            parts.append(np.packbits(flags).tobytes())
        parts.append(weights.view(np.uint8).reshape(-1, 8)[:, :width].T.tobytes())
    head = b",".join(samples.names) + b"\n" + " ".join(words).encode() + b"\n"
    return b"".join([head, *parts, samples.rest])


def unpacked(blob: bytes) -> Samples:
    """The other way round."""
    head, _, body = blob.partition(b"\n")
    words, _, body = body.partition(b"\n")
    count, *told = words.decode().split(" ")
    lines, at, columns = int(count), 0, []
    if not 0 < lines <= MOST_LINES:
        raise ValueError(f"{lines} lines")
    for word in told:
        digits, width, first, *some = word.split(":")
        there = None
        if some:
            size = (lines + 7) // 8
            there = np.unpackbits(np.frombuffer(body, np.uint8, size, at), count=lines).astype(bool)
            at += size
        values = lines if there is None else int(there.sum())
        steps = max(values - 1, 0)
        planes = np.frombuffer(body, np.uint8, int(width) * steps, at).reshape(int(width), steps)
        at += int(width) * steps
        wide = np.zeros((steps, 8), np.uint8)
        wide[:, : int(width)] = planes.T
        weights = wide.view("<u8")[:, 0]
        differences = (weights >> 1).astype(np.int64) ^ -(weights & 1).astype(np.int64)
        whole = np.concatenate([[np.int64(int(first))], differences]).cumsum()[:values]
        columns.append(Column(int(digits), whole, there))
    return Samples(head.split(b","), columns, lines, body[at:])
