/* The sampler: what a command, or a job on this node, uses while it runs. It writes samples (CSV)
 * and a record (JSON); docs/sampler.md has the rules, docs/formats.md the formats.
 *
 * Two processes, one page of shared memory between them (struct sy_shared, child_state.h), and a
 * socket pair:
 * - The parent (parent.h) keeps the rights it was started with. It opens files and counters, has
 *   the kernel count if it can (kernel_count.h), starts the child, and writes the record at the
 *   start, at every message about the job, and at the end.
 * - The child (child.c) gives up its rights before it reads anything. It takes samples at absolute
 *   deadlines (sample_taking.c), sleeps between them (child_wait.c), acts on messages (messages.c),
 *   and leaves the last totals in the shared page, so that a record can be written whatever happens
 *   to it. It allocates nothing.
 *
 * Two ways to sample, each a parent's whole life:
 * - a command is started (measured_command.c), and waited for with its exact counters.
 * - a job is started by others (attended_job.c), who name its steps, its cgroup and its end on the
 *   control socket. The child decides when it is over (child_wait.h).
 *
 * A sample of a job (job_reading.h) comes from the kernel's count while that holds, and CPU is
 * compared with the cgroup's once all steps have reported. Else it comes from the cgroup and the
 * job's processes. A count that is given up is not used again.
 *
 * It promises: totals in samples never go down. If the child is killed, the parent writes the
 * record. If the parent is killed, the child takes a last sample and ends, and the end of the job
 * writes the record from the samples (job/end.c). If both are, the last second of samples is lost.
 * Whatever fails, a command runs, and a job is left alone. It does not know any scheduler, nor what
 * happens on other nodes.
 */
#ifndef STEELYARD_SAMPLER_SAMPLER_H
#define STEELYARD_SAMPLER_SAMPLER_H

#include "record/record.h"

#define SY_SAMPLE_UNABLE 3 /* exit code: nothing could be set up */

/* Returns the command's exit code. */
int sy_measure_command(struct sy_sampling *sampling);

/* Returns the sampler's exit code. */
int sy_attend_job(struct sy_sampling *sampling);

#endif
