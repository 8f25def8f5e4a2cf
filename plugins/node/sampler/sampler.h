/* The sampler: what a command, or a job on this node, uses while it runs. It writes samples (CSV)
 * and a record (JSON); docs/sampler.md has the rules, docs/formats.md the formats.
 *
 * Two processes, one page of shared memory between them (shared.h), and a socket pair:
 * - The parent (parent.h) keeps the rights it was started with. It opens files and counters, has
 *   the kernel count if it can (kernel_count.h), starts the child, and writes the record at the
 *   start, at every message about the job, and at the end.
 * - The child (child.h) gives up its rights before it reads anything. It takes samples at absolute
 *   deadlines (samples.c), acts on messages (messages.c), and leaves the last totals in the shared
 *   page, so that a record can be written whatever happens to it. It allocates nothing.
 *
 * Two ways to sample, each a parent's whole life:
 * - a command (measured_command.c) is started, waited for with its exact counters, and left alone
 *   otherwise: it runs even if nothing can be measured.
 * - a job (attended_job.c) is started by others, who name its steps, its cgroup and its end on the
 *   control socket. The child decides when it is over (lifetime.h).
 *
 * A sample of a job (job.h) comes from the kernel's count while that holds, else from the cgroup
 * and the job's processes. Where the kernel's count is given up, it is not used again.
 *
 * Promises: no callback of a scheduler waits for a sampler; killed processes lose a second of
 * samples at most; totals in samples never go down. */
#ifndef STEELYARD_SAMPLER_SAMPLER_H
#define STEELYARD_SAMPLER_SAMPLER_H

#include "record/record.h"

#define SY_SAMPLE_UNABLE 3 /* exit code: nothing could be set up */

/* Returns the command's exit code. */
int sy_measure_command(struct sy_sampling *sampling);

/* Returns the sampler's exit code. */
int sy_attend_job(struct sy_sampling *sampling);

#endif
