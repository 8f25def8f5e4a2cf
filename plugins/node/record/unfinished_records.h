/* Records that a sampler has begun and not finished: RUN_DIR/sample/JOB.NODE.START, locked as
 * long as the sampler lives, contains the path of its samples. A later sampler or sweep finishes
 * those whose sampler was killed. */
#ifndef STEELYARD_RECORD_UNFINISHED_RECORDS_H
#define STEELYARD_RECORD_UNFINISHED_RECORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "record/record.h"
#include "record/record_files.h"

/* Leave the mark of a record `file`, whose own name is `mark`: a descriptor that stays open as
 * long as the sampler lives, or -1. */
int sy_unfinished_mark(const struct sy_sampling *sampling, const struct sy_recordfile *file,
		       char *mark, size_t size, struct sy_error *err);

/* The record is finished. */
void sy_unfinished_end(const char *run_dir, const char *name);

/* Take one whose sampler is gone: its name, and the path of its samples. False: there is none. The
 * descriptor, to be closed, keeps others from it. */
bool sy_unfinished_lock_next(const char *run_dir, char *name, char *samples, size_t size, int *fd);

/* Whether there is one whose sampler is gone. */
bool sy_unfinished_exist(const char *run_dir);

/* Whether a job's record on a node, `name` NODE.JOB, has still to be finished, by whomever. */
bool sy_unfinished_has_job(const char *run_dir, const char *name);

#endif
