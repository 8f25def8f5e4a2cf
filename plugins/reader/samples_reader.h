/* Files of samples (docs/formats.md part 2) into columns of numbers, for `steelyard collect`.
 *
 * A shared library, called by analysis/sources/sample_library.py; where it does not exist, DuckDB
 * reads the files. It has one function, allocates nothing, opens no file, and writes into the
 * caller's columns.
 *
 * Reads only what the sampler writes: unsigned decimal numbers, empty cells, each line with as many
 * cells as the header and an end. Any other file is left to a reader that can report what is wrong
 * with it. A number with a fraction is the double nearest to its text, or the file is refused. */
#ifndef STEELYARD_SAMPLES_READER_H
#define STEELYARD_SAMPLES_READER_H

#include <stddef.h>
#include <stdint.h>

enum sy_column_kind {
	SY_SKIP,    /* printable ASCII, not looked into */
	SY_INTEGER, /* int64_t; an empty cell becomes INT64_MIN */
	SY_REAL,    /* double, the one nearest to the text; an empty cell becomes NaN */
};

enum {
	SY_ODD = -1,  /* not as the sampler writes it */
	SY_FULL = -2, /* more than `capacity` lines */
};

/* The lines of `text`, of `size` bytes and without the header, into `out[column][line]`; `kinds`
 * and `out` have an entry for each of `columns`, that of a skipped one is not used. Returns the
 * number of lines, or SY_ODD or SY_FULL; then what is in `out` means nothing. */
__attribute__((visibility("default"))) int64_t
steelyard_read_samples(const char *text, size_t size, size_t columns, const unsigned char *kinds,
		       void *const *out, size_t capacity);

#endif
