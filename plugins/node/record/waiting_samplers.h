/* Samplers that are opening their record: RUN_DIR/sample/.opening.PID, locked meanwhile. On a file
 * system that does not answer that takes as long as it hangs, and each job would leave one more
 * such process. */
#ifndef STEELYARD_RECORD_WAITING_SAMPLERS_H
#define STEELYARD_RECORD_WAITING_SAMPLERS_H

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

#endif
