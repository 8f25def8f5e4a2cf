#include "job/record_folder.h"

#include "base/place.h"
#include "job/totals_files.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static void folder_of(char path[SY_RECORD_PATH_SIZE], const char *record_dir, const char *job_id,
		      bool by_day, time_t start)
{
	char place[SY_PLACE_SIZE];

	sy_place(place, by_day, job_id, start);
	(void)snprintf(path, SY_RECORD_PATH_SIZE, "%.*s/%s", SY_PATH_SIZE - 1, record_dir, place);
}

void sy_record_folder(char path[SY_RECORD_PATH_SIZE], const char *record_dir, const char *job_id,
		      time_t start)
{
	char flat[SY_RECORD_PATH_SIZE];

	folder_of(path, record_dir, job_id, sy_records_by_day(record_dir), start);
	folder_of(flat, record_dir, job_id, false, start);
	/* The mark was put while the job ran. */
	if (access(path, F_OK) < 0 && access(flat, F_OK) == 0)
		(void)snprintf(path, SY_RECORD_PATH_SIZE, "%s", flat);
}

static json_t *starts_of(const char *record_dir, const char *job_id, const char *node, bool by_day,
			 time_t day, time_t since)
{
	char path[SY_RECORD_PATH_SIZE];

	folder_of(path, record_dir, job_id, by_day, day);
	return sy_starts(path, node, ".json", since);
}

static void add(json_t *all, json_t *found)
{
	(void)json_array_extend(all, found);
	json_decref(found);
}

/* By day from tomorrow on backwards, for a clock may have been set; then those that lie flat.
 * `newest`: no further than to the first day with any. */
static json_t *look(const char *record_dir, const char *job_id, const char *node, time_t since,
		    bool newest)
{
	time_t day = time(NULL) + SY_DAY_S;
	bool by_day = sy_records_by_day(record_dir);
	json_t *all = json_array();

	for (int i = 0; by_day && i < SY_LOOK_BACK_DAYS && day > since - SY_DAY_S; i++) {
		add(all, starts_of(record_dir, job_id, node, true, day, since));
		if (newest && json_array_size(all))
			return all;
		day -= SY_DAY_S;
	}
	add(all, starts_of(record_dir, job_id, node, false, 0, since));
	return all;
}

json_t *sy_record_starts(const char *record_dir, const char *job_id, const char *node, time_t since)
{
	return look(record_dir, job_id, node, since, false);
}

time_t sy_record_newest(const char *record_dir, const char *job_id, const char *node)
{
	json_t *all = look(record_dir, job_id, node, 1, true), *start;
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
