#include "job/record_lookup.h"

#include "base/file.h"
#include "record/record_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENDING	   ".json"
#define RECORD_MAX 1048576 /* bytes */

static void format_folder(char path[SY_RECORD_PATH_SIZE], const char *record_dir,
			  const char *job_id, bool by_day, time_t start)
{
	char job_path[SY_JOB_PATH_SIZE];

	sy_format_job_path(job_path, by_day, job_id, start);
	(void)snprintf(path, SY_RECORD_PATH_SIZE, "%.*s/%s", SY_PATH_SIZE - 1, record_dir,
		       job_path);
}

void sy_record_folder(char path[SY_RECORD_PATH_SIZE], const char *record_dir, const char *job_id,
		      time_t start)
{
	char flat[SY_RECORD_PATH_SIZE];

	format_folder(path, record_dir, job_id, sy_records_by_day(record_dir), start);
	format_folder(flat, record_dir, job_id, false, start);
	/* The mark was put while the job ran. */
	if (access(path, F_OK) < 0 && access(flat, F_OK) == 0)
		(void)snprintf(path, SY_RECORD_PATH_SIZE, "%s", flat);
}

/* Split NODE.START.json; node names may hold dots. */
static bool split_name(const char *file, char *node, size_t size, time_t *start)
{
	size_t length = strlen(file), tail = strlen(ENDING);
	const char *dot, *stop = file + length - tail;
	char *after;

	if (length <= tail || strcmp(stop, ENDING) != 0)
		return false;
	dot = memrchr(file, '.', (size_t)(stop - file));
	if (!dot || dot == file || dot + 1 == stop || (size_t)(dot - file) >= size)
		return false;
	*start = (time_t)strtoll(dot + 1, &after, 10);
	(void)snprintf(node, size, "%.*s", (int)(dot - file), file);
	return after == stop;
}

static json_t *list_starts(const char *record_dir, const char *job_id, const char *node,
			   bool by_day, time_t day, time_t since)
{
	char path[SY_RECORD_PATH_SIZE], name[256];
	json_t *all = json_array();
	struct dirent *entry;
	time_t start;
	cleanup_dir DIR *dir = NULL;

	format_folder(path, record_dir, job_id, by_day, day);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (split_name(entry->d_name, name, sizeof(name), &start) &&
		    strcmp(name, node) == 0 && start >= since)
			(void)json_array_append_new(all, json_integer(start));
	}
	return all;
}

static void add_all(json_t *all, json_t *found)
{
	(void)json_array_extend(all, found);
	json_decref(found);
}

/* Folders by day, from tomorrow backwards since the clock may have been set; then the flat
 * layout. `newest`: only to the first day with any. */
static json_t *find_starts(const char *record_dir, const char *job_id, const char *node,
			   time_t since, bool newest)
{
	time_t day = time(NULL) + SY_DAY_S;
	bool by_day = sy_records_by_day(record_dir);
	json_t *all = json_array();

	for (int i = 0; by_day && i < SY_LOOK_BACK_DAYS && day > since - SY_DAY_S; i++) {
		add_all(all, list_starts(record_dir, job_id, node, true, day, since));
		if (newest && json_array_size(all))
			return all;
		day -= SY_DAY_S;
	}
	add_all(all, list_starts(record_dir, job_id, node, false, 0, since));
	return all;
}

json_t *sy_record_starts(const char *record_dir, const char *job_id, const char *node, time_t since)
{
	return find_starts(record_dir, job_id, node, since, false);
}

time_t sy_record_newest(const char *record_dir, const char *job_id, const char *node)
{
	json_t *all = find_starts(record_dir, job_id, node, 1, true), *start;
	time_t newest = 0;
	size_t i;

	json_array_foreach(all, i, start)
	{
		if (json_integer_value(start) > newest)
			newest = (time_t)json_integer_value(start);
	}
	json_decref(all);
	return newest;
}

char *sy_read_record(int folder, const char *name)
{
	cleanup_close int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t length = -1;
	struct stat st;
	char *text;

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > RECORD_MAX)
		return NULL;
	text = malloc((size_t)st.st_size + 1);
	if (text)
		length = pread(fd, text, (size_t)st.st_size, 0);
	if (length < 0) {
		free(text);
		return NULL;
	}
	text[length] = '\0';
	return text;
}
