/* Where the files of a job lie below the folder of records (docs/formats.md part 1): in JOB, or,
 * where the folder's owner has put the mark into it, in YYYY-MM/DD/JOB, by the day in UTC of the
 * record's START. One folder with a million names is slow to list and cannot be swept by age. */
#ifndef STEELYARD_RECORD_RECORD_FOLDER_H
#define STEELYARD_RECORD_RECORD_FOLDER_H

#include <stdbool.h>
#include <time.h>

#include "base/error.h"

#define SY_RECORDS_MARK	 ".steelyard-records"
#define SY_JOB_PATH_SIZE 256
#define SY_DAY_S	 86400

/* Whether the folder bears the mark: a regular file of root's or ours. */
bool sy_records_are_marked(int top);

/* The same by its path; what cannot be opened is not marked. */
bool sy_records_by_day(const char *record_dir);

/* True when the folder has a mark of its owner, whoever the owner is: with root_squash root may
 * be mapped to nobody, and other users write. */
bool sy_records_are_marked_by_owner(const char *record_dir);

/* `2026-11/23/4711`, or `4711`: below the folder of records. */
void sy_format_job_path(char job_path[SY_JOB_PATH_SIZE], bool by_day, const char *job_id,
			time_t start);

/* Open `job_path` below `top`, each level made where it is not there, no link followed, nobody
 * else's folder gone through: a descriptor, or -1. */
int sy_open_job_path(int top, const char *job_path, struct sy_error *err);

/* The job's folder below RECORD_DIR for a record that starts now. It is made when only RECORD_DIR
 * exists. Returns a descriptor, or -1; `job_path` is the path below RECORD_DIR. */
int sy_open_job_folder(const char *record_dir, const char *job_id, const char *node,
		       char job_path[SY_JOB_PATH_SIZE], struct sy_error *err);

#endif
