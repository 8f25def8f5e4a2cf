/* The reader of samples for `collect`: every number that it takes is strtoll's and strtod's. */
#include "fuzz.h"

#include <math.h>

#include "../../plugins/reader/samples_reader.c"

enum { LINES = 64, COLUMNS = 4 };

static const unsigned char kinds[COLUMNS] = {SY_INTEGER, SY_REAL, SY_SKIP, SY_REAL};
static int64_t integers[LINES];
static double reals[2][LINES];

static void must_be_number(const char *cell, size_t length, int column, size_t line)
{
	double real = column == 1 ? reals[0][line] : reals[1][line];
	char text[64], *end;

	must(length < sizeof(text));
	memcpy(text, cell, length);
	text[length] = '\0';
	if (column == 0)
		must(length ? integers[line] == strtoll(text, &end, 10) && !*end
			    : integers[line] == INT64_MIN);
	else
		must(length ? real == strtod(text, &end) && !*end : isnan(real));
}

static void must_be_same(const char *at, size_t lines)
{
	for (size_t line = 0; line < lines; line++) {
		for (int column = 0; column < COLUMNS; column++) {
			size_t length = strcspn(at, ",\n");

			if (column != 2)
				must_be_number(at, length, column, line);
			must(at[length] == (column + 1 < COLUMNS ? ',' : '\n'));
			at += length + 1;
		}
	}
	must(!*at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	void *const out[COLUMNS] = {integers, reals[0], NULL, reals[1]};
	char *block = malloc(size + !size), *text;
	int64_t lines;

	must(block);
	memcpy(block, data, size);
	lines = steelyard_read_samples(block, size, COLUMNS, kinds, out, LINES);
	must(lines == SY_ODD || lines == SY_FULL || (lines >= 0 && lines <= LINES));
	if (lines >= 0) {
		text = text_of(data, size);
		must(strlen(text) == size);
		must_be_same(text, (size_t)lines);
		free(text);
	}
	free(block);
	return 0;
}
