/* The samples that other nodes have left so far in the job's record folder. */
#include "job/totals_files.h"

#include "base/clock.h"
#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CLOCKS_S    10 /* clocks of one cluster may be as far apart */
#define HEADER_SIZE 8192
#define TAIL_SIZE   16384
#define RECORD_MAX  1048576 /* bytes */
#define WHOLE_SIZE  262144  /* up to this size the largest memory is looked for too */

/* A part of a file, NUL-terminated, to be freed; NULL when it cannot be read. */
static char *read_part(int fd, off_t from, size_t size)
{
	char *text = malloc(size + 1);
	ssize_t length = text ? pread(fd, text, size, from) : -1;

	if (length < 0) {
		free(text);
		return NULL;
	}
	text[length] = '\0';
	return text;
}

bool sy_totals_from_csv_file(struct sy_totals *totals, int folder, const char *name)
{
	cleanup_close int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	cleanup_free char *header = NULL, *text = NULL;
	struct stat st;
	bool whole;

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return false;
	whole = st.st_size <= WHOLE_SIZE;
	header = read_part(fd, 0, HEADER_SIZE);
	text = whole ? read_part(fd, 0, (size_t)st.st_size)
		     : read_part(fd, st.st_size - TAIL_SIZE, TAIL_SIZE);
	return header && text && sy_totals_from_csv(totals, header, text, whole);
}

/* Split NODE.START.ENDING; node names may hold dots. */
static bool split_name(const char *file, const char *ending, char *node, size_t size, time_t *start)
{
	size_t length = strlen(file), tail = strlen(ending);
	const char *dot, *stop = file + length - tail;
	char *after;

	if (length <= tail || strcmp(stop, ending) != 0)
		return false;
	dot = memrchr(file, '.', (size_t)(stop - file));
	if (!dot || dot == file || dot + 1 == stop || (size_t)(dot - file) >= size)
		return false;
	*start = (time_t)strtoll(dot + 1, &after, 10);
	(void)snprintf(node, size, "%.*s", (int)(dot - file), file);
	return after == stop;
}

json_t *sy_starts(const char *folder, const char *node, const char *ending, time_t since)
{
	DIR *dir = opendir(folder);
	json_t *all = json_array();
	struct dirent *entry;
	char name[256];
	time_t start;

	while (dir && (entry = readdir(dir))) {
		if (split_name(entry->d_name, ending, name, sizeof(name), &start) &&
		    strcmp(name, node) == 0 && start >= since)
			(void)json_array_append_new(all, json_integer(start));
	}
	if (dir)
		(void)closedir(dir);
	return all;
}

char *sy_read_record(int folder, const char *name)
{
	cleanup_close int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > RECORD_MAX)
		return NULL;
	return read_part(fd, 0, (size_t)st.st_size);
}

struct node_record {
	bool complete;	   /* its samples, too */
	double end_unix_s; /* of a complete one */
	enum sy_exclusive exclusive;
};

/* The record beside NODE.START.csv. */
static struct node_record read_beside(int folder, const char *samples)
{
	struct node_record found = {false, 0, SY_NOT_SAID};
	char name[300];
	cleanup_free char *text = NULL;
	json_t *record;
	const json_t *exclusive, *lost;

	(void)snprintf(name, sizeof(name), "%.*s.json", (int)(strlen(samples) - strlen(".csv")),
		       samples);
	text = sy_read_record(folder, name);
	record = text ? json_loads(text, 0, NULL) : NULL;
	exclusive = json_object_get(json_object_get(record, "job"), "exclusive");
	if (json_is_boolean(exclusive))
		found.exclusive = json_is_true(exclusive) ? SY_ALONE : SY_SHARED;
	lost = json_object_get(json_object_get(record, "sampler"), "samples_lost");
	found.complete =
	    json_is_true(json_object_get(record, "complete")) && json_integer_value(lost) == 0;
	found.end_unix_s = json_number_value(json_object_get(record, "end_unix_s"));
	json_decref(record);
	return found;
}

static time_t written_at(int folder, const char *name)
{
	struct stat st;

	return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mtime : 0;
}

static void add_other(struct sy_job_totals *job, int folder, const char *name,
		      const struct sy_other_nodes *others)
{
	time_t written = written_at(folder, name);
	bool old = written < others->fresh, early = written <= others->own_start;
	struct node_record record = {false, 0, SY_NOT_SAID};
	struct sy_totals totals;

	/* Of a job that shares a node it does not matter any more whether another one is its own.
	 */
	if (old || early || job->nodes_weighed == 0 || job->sum.exclusive == SY_ALONE)
		record = read_beside(folder, name);
	if ((old && !record.complete) ||
	    (early && record.complete && record.end_unix_s <= (double)others->own_start) ||
	    !sy_totals_from_csv_file(&totals, folder, name))
		return;
	totals.exclusive = record.exclusive;
	sy_job_totals_add(job, &totals);
}

time_t sy_begun_at(time_t start, time_t written, double elapsed_s)
{
	time_t begun = written - (time_t)elapsed_s;

	return begun > start + CLOCKS_S ? begun : start;
}

void sy_job_totals_add_others(struct sy_job_totals *job, const struct sy_other_nodes *others)
{
	int64_t end = sy_now_ms(CLOCK_MONOTONIC) + others->limit_ms;
	DIR *dir = opendir(others->folder);
	struct dirent *entry;
	char node[256];
	time_t start;

	while (dir && sy_now_ms(CLOCK_MONOTONIC) < end && (entry = readdir(dir))) {
		if (split_name(entry->d_name, ".csv", node, sizeof(node), &start) &&
		    strcmp(node, others->own_node) != 0 && start >= others->since)
			add_other(job, dirfd(dir), entry->d_name, others);
	}
	if (dir)
		(void)closedir(dir);
}
