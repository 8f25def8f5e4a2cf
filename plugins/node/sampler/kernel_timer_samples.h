/* Samples that a timer in the kernel takes: above 2 Hz, while the kernel counts all of the job. The
 * child wakes up once a second and makes their lines, each with the time of its own reading. What
 * is not the job's (node, meters, TCP) is read then, for the last of them. */
#ifndef STEELYARD_SAMPLER_KERNEL_TIMER_SAMPLES_H
#define STEELYARD_SAMPLER_KERNEL_TIMER_SAMPLES_H

#include "sampler/child_state.h"

/* Let the kernel take samples, where it can. */
void sy_kernel_samples_start(struct sy_sampler *s);

/* Write the kernel's samples: true when it continues. */
bool sy_kernel_samples_continue(struct sy_sampler *s);

/* Write the kernel's samples and stop it. */
void sy_kernel_samples_stop(struct sy_sampler *s);

#endif
