/* The files of one job on one node: NODE.START.json and .csv in its folder
 * below RECORD_DIR (record_folder.h).
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

#include "base/error.h"
#include "record/record.h"
#include "record/record_folder.h"

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
