/* The files of a job below RECORD_DIR (docs/formats.md part 1): NODE.START.json and .csv in its
 * folder JOB, or, where the folder's owner has put the mark into it, in YYYY-MM/DD/JOB, by the day
 * in UTC of the record's START. One folder with a million names is slow to list and cannot be swept
 * by age.
 *
 * Nothing a user names is followed: the folder must be ours or root's, writable by nobody else,
 * and no link; files are made new (O_EXCL). The temporary file of the record is made at the job's
 * start with room enough, so that a disk that is full at the end cannot lose the record. */
#ifndef STEELYARD_RECORD_RECORD_FILES_H
#define STEELYARD_RECORD_RECORD_FILES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/error.h"
#include "record/record.h"

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

/* The job's folder below RECORD_DIR for a record that starts now. It is made when only RECORD_DIR
 * exists. Returns a descriptor, or -1; `job_path` is the path below RECORD_DIR. */
int sy_open_job_folder(const char *record_dir, const char *job_id, const char *node,
		       char job_path[SY_JOB_PATH_SIZE], struct sy_error *err);

/* The files of one job on one node. */
struct sy_recordfile {
	int dir;			 /* the job's folder, or -1 */
	char job_path[SY_JOB_PATH_SIZE]; /* the existing folder below RECORD_DIR */
	char name[300];			 /* NODE.START */
	int64_t start_unix_s;
	bool has_owner;
	uid_t uid;
	gid_t gid;
};

/* Make the file of samples: a descriptor for appending, or -1. */
int sy_recordfile_samples(const struct sy_recordfile *file, struct sy_error *err);

/* Write the record, whole or not at all. */
int sy_recordfile_write(const struct sy_recordfile *file, const json_t *record,
			struct sy_error *err);

/* Remove the temporary file that was kept for the next writing, and names that were taken and never
 * written to: a disk was full. Samples that could be written stay. */
void sy_recordfile_close(struct sy_recordfile *file);

/* Records that their folder cannot have now: it is not mounted, or root may not write there. They
 * go to a folder of this node, if the administrator has made it; contrib/spool sends them on. */

#define SY_SPOOL_DIR "/var/spool/steelyard"

bool sy_has_spool(const char *spool_dir);

/* Make the folders and find a free START, the second of now or one soon after. Where a spool exists
 * the record folder must have its mark; without the mark, or when the folder is not writable, the
 * record is made in the spool, record_dir of `sampling` is the spool, and `complain` gets the
 * reason. */
int sy_recordfile_open_or_spool(struct sy_recordfile *file, struct sy_sampling *sampling,
				void (*complain)(const struct sy_sampling *,
						 const struct sy_error *),
				struct sy_error *err);

#endif
