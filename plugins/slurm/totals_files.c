/* The samples that other nodes have left so far in the job's record folder. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "file.h"
#include "totals.h"

#define HEADER_SIZE 8192
#define TAIL_SIZE   16384
#define WHOLE_SIZE  262144 /* up to this size the largest memory is looked for too */

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

time_t sy_newest_start(const char *folder, const char *node, const char *ending)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char name[256];
	time_t newest = 0, start;

	while (dir && (entry = readdir(dir))) {
		if (split_name(entry->d_name, ending, name, sizeof(name), &start) &&
		    strcmp(name, node) == 0 && start > newest)
			newest = start;
	}
	if (dir)
		(void)closedir(dir);
	return newest;
}

static double milliseconds(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

void sy_job_totals_add_others(struct sy_job_totals *job, const char *folder, const char *own_node,
			      time_t since, int limit_ms)
{
	double end = milliseconds() + limit_ms;
	DIR *dir = opendir(folder);
	struct dirent *entry;
	struct sy_totals totals;
	char node[256];
	time_t start;

	while (dir && milliseconds() < end && (entry = readdir(dir))) {
		if (!split_name(entry->d_name, ".csv", node, sizeof(node), &start))
			continue;
		if (strcmp(node, own_node) == 0 || start < since)
			continue;
		if (sy_totals_from_csv_file(&totals, dirfd(dir), entry->d_name))
			sy_job_totals_add(job, &totals);
	}
	if (dir)
		(void)closedir(dir);
}
