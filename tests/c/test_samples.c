/* Lines of samples: written, read back, summed up. */
#include "tap.h"

#include "base/samples.h"

#include <stdlib.h>

static struct sy_labels labels;
static struct sy_columns columns;
static char text[SY_LINE_SIZE + 64];

static void test_labels(void)
{
	labels.zones = 3;
	labels.devices = 1;
	sy_label_set(labels.zone, 0, "package-0");
	sy_label_set(labels.zone, 1, "dram");
	sy_label_set(labels.zone, 2, "dram");
	sy_label_set(labels.device, 0, "eth,0 \"x\"");
	is_string(labels.zone[1].text, "dram", "a zone's name");
	is_string(labels.zone[2].text, "dram#1", "a name that comes twice");
	is_string(labels.device[0].text, "eth_0__x_", "what breaks a CSV is replaced");
	text[sy_format_header(&labels, text)] = '\0';
	ok(!strncmp(text, "unix_s,elapsed_s,cpu_s,", 23) &&
	       strstr(text, ",rtt_s,energy_j:package-0,energy_j:dram,energy_j:dram#1,"
			    "rx_bytes:eth_0__x_,tx_bytes:eth_0__x_\n") != NULL,
	   "the first line: %s", text);
	sy_columns_init(&columns, &labels);
}

/* The cell of `text` at this place, from 0. */
static const char *cell_text(int place)
{
	static char cell[64];
	const char *at = text;

	while (place-- > 0)
		at += strcspn(at, ",") + 1;
	(void)snprintf(cell, sizeof(cell), "%.*s", (int)strcspn(at, ","), at);
	return cell;
}

static void test_write(void)
{
	struct sy_line line;

	sy_line_clear(&line);
	line.cell[SY_UNIX] = 1795251150006470;
	line.cell[SY_ELAPSED] = 0;
	line.cell[SY_CPU] = 12;
	line.cell[SY_RCHAR] = 9007199254740993; /* no float holds it */
	line.cell[SY_ENERGY] = 10500000;
	line.cell[SY_ZONE + 1] = 1500000;
	text[sy_format_line(&columns, &line, text)] = '\0';
	is_string(cell_text(SY_UNIX), "1795251150.006470", "µs as seconds");
	is_string(cell_text(SY_ELAPSED), "0.000000", "0 is known");
	is_string(cell_text(SY_CPU), "0.000012", "12 µs");
	is_string(cell_text(SY_MEMORY), "", "what is not known is empty");
	is_string(cell_text(SY_RCHAR), "9007199254740993", "bytes are whole");
	is_string(cell_text(SY_ENERGY), "10.500000", "µJ as joules");
	is_string(cell_text(SY_FIXED), "", "the first zone");
	is_string(cell_text(SY_FIXED + 1), "1.500000", "the second");
	is_string(cell_text(columns.count - 1), "\n", "and the line ends");
}

static int64_t random_value(void)
{
	int64_t value = (int64_t)random() << (random() % 22);

	return random() % 5 ? value : SY_UNKNOWN;
}

static void test_round_trip(void)
{
	int wrong = 0;

	for (int round = 0; round < 500; round++) {
		struct sy_line line, again;

		sy_line_clear(&line);
		for (int i = 0; i < columns.count; i++)
			line.cell[columns.cell[i]] = random_value();
		text[sy_format_line(&columns, &line, text)] = '\0';
		wrong += sy_parse_line(text, &columns, &again) < 0 ||
			 memcmp(&line, &again, sizeof(line)) != 0;
	}
	is_int(wrong, 0, "500 lines are read as they were written");
}

static void test_read(void)
{
	struct sy_columns found;
	struct sy_error err;
	struct sy_line line;

	ok(sy_parse_header("new_thing,elapsed_s,energy_j:dram#1,cpu_s\n", &labels, &found, &err) ==
	       0,
	   "columns in another order, one unknown");
	ok(sy_parse_line("abc,1.5,2.000001,3\n", &found, &line) == 0, "a line of them");
	is_int(line.cell[SY_ELAPSED], 1500000, "elapsed_s");
	is_int(line.cell[SY_ZONE + 2], 2000001, "energy_j:dram#1");
	is_int(line.cell[SY_CPU], 3000000, "cpu_s without decimals");
	is_int(line.cell[SY_RX], SY_UNKNOWN, "a column that is not there");
	ok(sy_parse_line("abc,1.5,2\n", &found, &line) < 0, "too few cells");
	ok(sy_parse_line("abc,1.5,2,3,4\n", &found, &line) < 0, "too many cells");
	ok(sy_parse_line("abc,1.5,x,3\n", &found, &line) < 0, "no number");
	ok(sy_parse_line("abc,1.5,1.1234567,3\n", &found, &line) < 0, "seven decimals");
	ok(sy_parse_line("abc,1.5,99999999999999999999,3\n", &found, &line) < 0, "too large");
	ok(sy_parse_header("a,b\n", &labels, &found, &err) < 0, "no file of samples: %s", err.text);
}

static void test_sums(void)
{
	struct sy_sums sums;
	struct sy_line line;

	sy_sums_init(&sums);
	is_int(sums.largest[SY_MAX_MEMORY_BYTES], SY_UNKNOWN, "no sample, no maximum");
	for (int i = 0; i < 4; i++) {
		sy_line_clear(&line);
		line.cell[SY_UNIX] = 100 + i;
		if (i != 3)
			line.cell[SY_MEMORY] = i == 1 ? 50 : 10;
		sy_sums_add(&sums, &line);
	}
	is_int(sums.samples, 4, "samples");
	is_int(sums.first_unix, 100, "the first sample's time");
	is_int(sums.largest[SY_MAX_MEMORY_BYTES], 50, "the largest memory");
	is_int(sums.largest[SY_MOST_PROCESSES], SY_UNKNOWN, "never known stays unknown");
	is_int(sums.last.cell[SY_UNIX], 103, "the last sample");
}

int main(void)
{
	test_labels();
	test_write();
	test_round_trip();
	test_read();
	test_sums();
	return done_testing();
}
