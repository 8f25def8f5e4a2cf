/* Records that a sampler has begun and not finished, and those that it cannot begin because their
 * folder does not answer.
 *
 * RUN_DIR/sample/JOB.NODE.START, locked as long as the sampler lives, contains the path of its
 * samples. A later sampler or sweep finishes those whose sampler was killed. */
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

/* --- samplers that are opening their record: RUN_DIR/sample/.opening.PID, locked meanwhile. On a
 * file system that does not answer that takes as long as it hangs, and each job would leave one
 * more such process. --- */

/* So many may wait on a node: some 25 MB of memory of their own, and more than most nodes have jobs
 * at a time, so that an outage of minutes costs few of them their record. */
#define SY_OPENING_MAX 64
#define SY_OPENING_S   10 /* a sampler that takes so long to open its record waits for the folder */

/* This process begins to open its record: a descriptor for sy_opening_end(), or -1. */
int sy_opening_begin(const char *run_dir);

/* It has opened it, or cannot. */
void sy_opening_end(const char *run_dir, int fd);

/* How many living samplers of this machine have waited for SY_OPENING_S seconds or longer. Removes
 * the files of those that were killed. */
int sy_opening_count(const char *run_dir);

/* Finished documents of network conditions in the run folder whose job's record was never written,
 * older than a day or than the last boot. How many there are: one readdir; or, if `removes`, how
 * many have been removed. */
int sy_stale_files(const char *run_dir, bool removes);

#endif
