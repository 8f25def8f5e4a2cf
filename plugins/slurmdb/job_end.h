/* AdminComment of a job that ends, in slurmctld. */
#ifndef STEELYARD_SLURMDB_JOB_END_H
#define STEELYARD_SLURMDB_JOB_END_H

/* Reads {"job_id": …, "batch": …, "own": "…"} from stdin, merges and writes, and prints one line:
 * `verbose: SENTENCE` of what is no news, `info: SENTENCE` of what belongs into the log. Ends
 * itself after a minute. The exit code. */
int sy_job_end(void);

#endif
