/* Delay tables: files that are read, files that are refused, and what a measurement is judged by.
 */
#include "netem_documents.h"

#include "netem/kernel/delay_tables.h"
#include "netem/verify/verify.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/steelyard-table-XXXXXX";
static char path[64];

static void write_file(const char *text, mode_t mode)
{
	FILE *file = fopen(path, "w");

	(void)fputs(text, file);
	(void)fclose(file);
	(void)chmod(path, mode);
}

static json_t *read_table(struct sy_error *err)
{
	struct sy_netem spec;

	(void)sy_netem_parse("delay=50ms~10ms/table:wan", &spec, err);
	return sy_delay_table_read(folder, &spec, SY_MEASURE_COUNT, err);
}

static double value(const json_t *table, const char *key)
{
	return json_real_value(json_object_get(table, key));
}

static void refused(const char *text, mode_t mode, const char *reason)
{
	struct sy_error err = {{0}};

	if (text)
		write_file(text, mode);
	ok(!read_table(&err) && strstr(err.text, reason), "refused, %s: %s", reason, err.text);
}

static void test_files(void)
{
	struct sy_error err = {{0}};
	json_t *table;

	refused(NULL, 0, "wan.dist: cannot be opened; on each node root puts it there");
	write_file("# a comment\n -8192 -4096\n\n 0 8192\t16384\n", 0644);
	table = read_table(&err);
	is_int(json_integer_value(json_object_get(table, "values")), 5, "values");
	is_string(json_string_value(json_object_get(table, "name")), "wan", "its name");
	ok(value(table, "least") == -1 && value(table, "median") == 0 && value(table, "most") == 2,
	   "in jitters");
	json_decref(table);
	refused("1 2\n3 x\n", 0644, "line 2: expected whole numbers from -32768 to 32767");
	refused("32768\n", 0644, "line 1: expected whole numbers");
	refused("# nothing\n", 0644, "has no numbers");
	refused("1 2\n", 0666, "expected a file of root's, writable by root alone");
	(void)unlink(path);
	ok(symlink("/dev/null", path) == 0, "a link");
	refused(NULL, 0, "cannot be opened");
	(void)unlink(path);
}

/* 0.5 -+ 3.29 / 2 / sqrt 25 of 1000 equal steps. */
static void test_quantiles(void)
{
	char *text = calloc(1000, 8), *at = text;
	struct sy_error err = {{0}};
	json_t *table;

	for (int i = 0; i < 1000; i++)
		at += sprintf(at, "%d\n", 8 * (i - 500));
	write_file(text, 0644);
	free(text);
	table = read_table(&err);
	ok(fabs(value(table, "low") * 8192 - 8 * (170.9 - 500)) <= 8, "low");
	ok(fabs(value(table, "high") * 8192 - 8 * (829.0 - 500)) <= 8, "high");
	ok(value(table, "median") == 0, "median");
	json_decref(table);
	(void)unlink(path);
}

static void test_without_a_table(void)
{
	struct sy_error err = {{0}};
	struct sy_netem spec;

	(void)sy_netem_parse("delay=50ms~10ms/normal", &spec, &err);
	ok(json_is_null(sy_delay_table_read(folder, &spec, 25, &err)), "nothing to read");
}

static json_t *with_table(double before_ms, double during_ms)
{
	json_t *conditions = document(before_ms, during_ms, before_ms, 100, 0);

	(void)json_object_set_new(conditions, "delay_table",
				  json_pack("{s:f,s:f,s:f,s:f,s:f}", "least", -2.0, "low", -1.0,
					    "median", -0.8, "high", 0.5, "most", 3.0));
	return conditions;
}

/* 40 to 55 ms by the table, 5 ms or 10 % of tolerance. */
static void test_verdict(void)
{
	const char *requested = "delay=50ms~10ms/table:wan";

	judge_new(with_table(0.2, 40.3), requested, NULL);
	judge_new(with_table(0.2, 36.5), requested, NULL);
	judge_new(with_table(0.2, 35.9), requested,
		  "asked were 40.00 ms and more, by the delay table, tolerance 4.02 ms");
	judge_new(with_table(0.2, 55.2), requested, NULL);
	judge_new(with_table(0.2, 60.0), requested, "asked were 40.00 ms and more");
	judge_new(with_table(0.2, 100.2), "delay=50ms~10ms/table:wan,direction=both", NULL);
	judge_new(with_table(0.2, 60.2), "delay=50ms~10ms/table:wan,direction=both",
		  "asked were 80.00 ms");
}

int main(void)
{
	if (!mkdtemp(folder))
		return 1;
	(void)snprintf(path, sizeof(path), "%s/wan.dist", folder);
	test_files();
	test_quantiles();
	test_without_a_table();
	test_verdict();
	(void)rmdir(folder);
	return done_testing();
}
