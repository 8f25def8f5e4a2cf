/* The sampling child reads the job: where its counters begin, each sample, and its end.
 *
 * Two ways, one at a time. While the kernel counts all of the job, its sums are the sample; no
 * process is looked at but roots (for what they report) and, once, one that shows whether the
 * job is in its cgroup. Else the cgroup gives CPU and memory, and its processes the rest: all of
 * them at each sample, or once a second where the cgroup gives most. A job goes from the first way
 * to the second when the kernel's count is given up, and never back. */
#ifndef STEELYARD_SAMPLER_JOB_READING_H
#define STEELYARD_SAMPLER_JOB_READING_H

#include "sampler/job_usage.h"

/* The job's processes are the descendants of `pid`. `faults`, `since_ns`: as in
 * sy_kernel_count_add_root. */
void sy_job_add_root(struct sy_job *job, pid_t pid, int64_t faults, int64_t since_ns);

/* The cgroup's files have been opened: what its processes have used is the job's, the rest that it
 * has counted is not. */
void sy_job_start_counting(struct sy_job *job, int root);

/* A step has announced the cgroup: its daemon is in there now. */
void sy_job_add_step(struct sy_job *job);

void sy_job_read(struct sy_job *job, enum sy_reading reading, struct sy_line *line,
		 struct sy_status *status);

/* User and system time of the job's CPU, where known. */
void sy_job_split(struct sy_job *job, struct sy_status *status);

/* --- samples that a timer in the kernel takes --- */

/* One of them, into a line that repeats the last one. */
void sy_job_set_tick(struct sy_job *job, const struct sy_bpf_tick *tick, struct sy_line *line,
		     struct sy_status *status);

/* What the timer does not read, once a second. */
void sy_job_read_with_ticks(struct sy_job *job, struct sy_line *line, struct sy_status *status);

/* The kernel still counts all of the job, as far as is known without reading. */
bool sy_job_is_counted_by_kernel(struct sy_job *job);

/* Whose sockets the job's are, or SY_ANY_USER: a command that root starts may become any user. */
uid_t sy_job_user(const struct sy_sampling *sampling);

#endif
