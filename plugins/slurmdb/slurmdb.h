/* steelyard-slurmdb, the only program that writes into Slurm's accounting: AdminComment of a job
 * that ends (slurmctld has it), AdminComment and joules of jobs that are over (slurmdbd has them).
 *
 * It promises: only the key `steelyard` of a comment's JSON object is written; other keys stay, and
 * text of others that is no JSON object is left alone (job/comment.c). A comment does not lose
 * what an earlier one knew. At a job's end it tries for at most a minute, outside of slurmstepd,
 * which waits half a second for its line; what was missed, `steelyard publish` writes later. It
 * reads no records: what it writes is in its input.
 *
 * Its main() chooses from these. Each returns the exit code. */
#ifndef STEELYARD_SLURMDB_SLURMDB_H
#define STEELYARD_SLURMDB_SLURMDB_H

enum { SY_SLURMDB_USAGE = 2, SY_SLURMDB_MISSING = 3 };

/* AdminComment of a job that ends, in slurmctld: reads {"job_id": …, "batch": …, "own": "…"} from
 * stdin, merges and writes, and prints one line: `verbose: SENTENCE` of what is no news,
 * `info: SENTENCE` of what belongs into the log. Ends itself after a minute. */
int sy_job_end(void);

/* AdminComment and joules of jobs that are over, in slurmdbd: a line of JSON a job on stdin, an
 * answer each on stdout. */
int sy_publish(void);

/* Ask slurmctld how many cores of a node jobs may have, and print the number; 3 where it is not
 * known. */
int sy_print_cores(const char *node);

#endif
