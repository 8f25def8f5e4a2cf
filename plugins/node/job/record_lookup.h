/* Where records of a job lie, found without a listing of all of them (record/record_files.h). */
#ifndef STEELYARD_JOB_RECORD_LOOKUP_H
#define STEELYARD_JOB_RECORD_LOOKUP_H

#include <jansson.h>
#include <time.h>

#include "job/config.h"

#define SY_RECORD_PATH_SIZE (SY_PATH_SIZE + 256)

/* The folder of records of the job that start at `start`. */
void sy_record_folder(char path[SY_RECORD_PATH_SIZE], const char *record_dir, const char *job_id,
		      time_t start);

/* START of every record of the node from `since` on, and by day of no more than SY_LOOK_BACK_DAYS.
 */
json_t *sy_record_starts(const char *record_dir, const char *job_id, const char *node,
			 time_t since);

/* The largest START of the latest day that has any; 0: there is none. Where a clock was set back
 * the newest file need not have it. */
time_t sy_record_newest(const char *record_dir, const char *job_id, const char *node);

/* A record NODE.START.json, to be freed; NULL: none, or not a file of a bounded size. It belongs to
 * the job's user, the folder to root: no link, no pipe. */
char *sy_read_record(int folder, const char *name);

#define SY_LOOK_BACK_DAYS 60 /* few jobs may run for longer, and their start is mostly known */

#endif
