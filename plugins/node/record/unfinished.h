/* Records that a sampler has begun and not finished: RUN_DIR/sample/JOB.NODE.START, locked as long
 * as the sampler lives, holds the path of its samples. Whoever comes next finishes those whose
 * sampler was killed. */
#ifndef STEELYARD_RECORD_UNFINISHED_H
#define STEELYARD_RECORD_UNFINISHED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "record/file.h"
#include "record/sampling.h"

/* Leave the mark of a record `file`, whose own name is `mark`: a descriptor that stays open as
 * long as the sampler lives, or -1. */
int sy_unfinished_mark(const struct sy_sampling *sampling, const struct sy_recordfile *file,
		       char *mark, size_t size, struct sy_error *err);

/* The record is finished. */
void sy_unfinished_end(const char *run_dir, const char *name);

/* Take one whose sampler is gone: its name, and the path of its samples. False: there is none. The
 * descriptor, to be closed, keeps others from it. */
bool sy_unfinished_take(const char *run_dir, char *name, char *samples, size_t size, int *fd);

/* Whether a job's record on a node, `name` NODE.JOB, has still to be finished, by whomever. */
bool sy_unfinished_of(const char *run_dir, const char *name);

/* Whether there is one whose sampler is gone. */
bool sy_unfinished_any(const char *run_dir);

#endif
