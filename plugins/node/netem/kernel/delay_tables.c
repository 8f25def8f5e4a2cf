#include "netem/kernel/delay_tables.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_table(const char *path, const char *what, const char *maker, int most,
		      struct sy_error *err)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat info;

	if (fd < 0)
		return sy_fail_errno(err, errno,
				     "%s %s: cannot be opened; on each node root puts it there%s",
				     what, path, maker);
	if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
	    (info.st_uid == 0 || info.st_uid == geteuid()) &&
	    !(info.st_mode & (S_IWGRP | S_IWOTH)) && info.st_size < most)
		return fd;
	(void)close(fd);
	return sy_fail(err,
		       "%s %s: expected a file of root's, writable by root alone, of less than %d "
		       "bytes",
		       what, path, most);
}

char *sy_table_read(const char *path, const char *what, const char *maker, int most, size_t *length,
		    struct sy_error *err)
{
	cleanup_free char *room = malloc((size_t)most);
	cleanup_close int fd =
	    room ? open_table(path, what, maker, most, err) : sy_fail(err, "out of memory");
	ssize_t got = fd < 0 ? -1 : sy_read_fd(fd, room, (size_t)most);
	char *text = room;

	if (fd >= 0 && got < 0)
		(void)sy_fail(err, "%s %s: cannot be read", what, path);
	if (got < 0)
		return NULL;
	*length = (size_t)got;
	room = NULL;
	return text;
}

#define MOST_BYTES (16 * SY_DELAY_TABLE_MOST)
#define Z_999	   3.290526731491926 /* of the normal distribution, two-sided */

struct values {
	int count;
	int16_t *item; /* SY_DELAY_TABLE_MOST of them */
};

/* One line: numbers, or a comment. */
static int add_line(char *line, struct values *values)
{
	char *end = line;

	if (*line == '#')
		return 0;
	for (;;) {
		long value;

		line += strspn(line, " \t");
		if (!*line)
			return 0;
		errno = 0;
		value = strtol(line, &end, 10);
		if (end == line || errno || value < INT16_MIN || value > INT16_MAX ||
		    values->count == SY_DELAY_TABLE_MOST)
			return -1;
		values->item[values->count++] = (int16_t)value;
		line = end;
	}
}

static int parse(char *text, struct values *values, const char *path, struct sy_error *err)
{
	int number = 0;

	for (char *line; (line = strsep(&text, "\n"));) {
		number++;
		if (add_line(line, values) < 0)
			return sy_fail(err,
				       "delay table %s, line %d: expected whole numbers from %d to "
				       "%d, at most %d in all",
				       path, number, INT16_MIN, INT16_MAX, SY_DELAY_TABLE_MOST);
	}
	return values->count ? 0 : sy_fail(err, "delay table %s: has no numbers", path);
}

static int compare(const void *a, const void *b)
{
	return *(const int16_t *)a - *(const int16_t *)b;
}

static double quantile(const struct values *values, double share)
{
	int at = (int)(share * values->count);

	at = at < 0 ? 0 : at >= values->count ? values->count - 1 : at;
	return (double)values->item[at] / SY_DELAY_TABLE_UNIT;
}

/* How many of n lie below the median is binomial: sd of its share 1 / (2 sqrt n). */
static json_t *describe(const char *name, struct values *values, int answers)
{
	double half = Z_999 / 2 / sqrt(answers);

	qsort(values->item, (size_t)values->count, sizeof(*values->item), compare);
	return json_pack("{s:s, s:i, s:f, s:f, s:f, s:f, s:f}", "name", name, "values",
			 values->count, "least", quantile(values, 0), "low",
			 quantile(values, 0.5 - half), "median", quantile(values, 0.5), "high",
			 quantile(values, 0.5 + half), "most", quantile(values, 1));
}

json_t *sy_delay_table_read(const char *folder, const struct sy_netem *spec, int answers,
			    struct sy_error *err)
{
	cleanup_free int16_t *room = calloc(SY_DELAY_TABLE_MOST, sizeof(*room));
	struct values values = {.item = room};
	cleanup_free char *text = NULL;
	char path[PATH_MAX];
	size_t length;

	if (spec->distribution != SY_TABLE)
		return json_null();
	if (!room)
		return (void)sy_fail(err, "out of memory"), NULL;
	(void)snprintf(path, sizeof(path), "%s/%s.dist", folder, spec->table);
	text = sy_table_read(path, "delay table", "; its format is in docs/netem.md", MOST_BYTES,
			     &length, err);
	return !text || parse(text, &values, path, err) < 0
		   ? NULL
		   : describe(spec->table, &values, answers);
}
