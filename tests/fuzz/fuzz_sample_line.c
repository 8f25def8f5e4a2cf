/* A file of samples as `steelyard-node record` reads it: a header, and lines. What is read of a
 * line can be written, and is then read as the same. */
#include "fuzz.h"

#include "base/samples.h"

static void say_again(const struct sy_columns *columns, const struct sy_line *line)
{
	static char text[SY_LINE_SIZE + 1];
	struct sy_line again;
	size_t length = sy_format_line(columns, line, text);

	must(length > 0 && length <= SY_LINE_SIZE && text[length - 1] == '\n');
	text[length] = '\0';
	must(sy_parse_line(text, columns, &again) == 0);
	for (int i = 0; i < columns->count; i++)
		if (columns->cell[i] != SY_NO_CELL)
			must(again.cell[columns->cell[i]] == line->cell[columns->cell[i]]);
}

/* A file of another version has columns that this one cannot write. */
static bool can_be_written(const struct sy_columns *columns)
{
	bool seen[SY_CELLS + 1] = {false};

	for (int i = 0; i < columns->count; i++) {
		if (columns->cell[i] == SY_NO_CELL || seen[columns->cell[i]])
			return false;
		seen[columns->cell[i]] = true;
	}
	return columns->count > 1;
}

static void read_lines(char *text, const struct sy_columns *columns)
{
	struct sy_sums sums;
	struct sy_line line;
	char *next;

	sy_sums_init(&sums);
	for (; *text; text = next) {
		next = text + strcspn(text, "\n");
		next += *next == '\n';
		if (sy_parse_line(text, columns, &line) < 0)
			continue;
		for (int i = 0; i < SY_CELLS; i++)
			must(line.cell[i] >= 0 || line.cell[i] == SY_UNKNOWN);
		sy_sums_add(&sums, &line);
		if (can_be_written(columns))
			say_again(columns, &line);
	}
	for (int i = 0; i < SY_TOTALS; i++)
		must(sy_sums_total(&sums, (enum sy_total)i) >= 0 ||
		     sy_sums_total(&sums, (enum sy_total)i) == SY_UNKNOWN);
}

/* The first two lines: names of a zone and of a device. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size), *device = first_line(text), *file = first_line(device);
	static struct sy_labels labels;
	struct sy_columns columns;
	struct sy_error err = {0};

	labels = (struct sy_labels){.zones = 2, .devices = 1};
	sy_label_set(labels.zone, 0, text);
	sy_label_set(labels.zone, 1, text);
	sy_label_set(labels.device, 0, device);
	must(strcmp(labels.zone[0].text, labels.zone[1].text) != 0);
	if (sy_parse_header(file, &labels, &columns, &err) == 0)
		read_lines(first_line(file), &columns);
	else
		must_say_why(&err);
	free(text);
	return 0;
}
