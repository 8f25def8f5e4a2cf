/*
 * What a run prints: a heading, and the closing block of NPB, which programs read; and the same
 * with more figures as JSON.
 */
#ifndef NPB_OUTPUT_H
#define NPB_OUTPUT_H

#include "npb_comm.h"

/* Of all ranks; on rank 0 after npb_gather_times. */
struct npb_times {
	double seconds; /* of the slowest rank */
	double compute_mean_s, compute_max_s;
	struct {
		const char *name;
		int64_t calls; /* of rank 0 */
		double mean_s, max_s;
	} call[NPB_CALLS];
};

void npb_print_heading(const struct npb_kernel *kernel, const struct npb_run *run);
void npb_gather_times(const struct npb_run *run, struct npb_times *times);
bool npb_verified(const struct npb_run *run);
double npb_mops(const struct npb_run *run, const struct npb_times *times);
void npb_print_closing(const struct npb_kernel *kernel, const struct npb_run *run,
		       const struct npb_times *times);
/* Whole or not at all; false, with errno, when it could not be written. */
bool npb_write_json(const char *path, const struct npb_kernel *kernel, const struct npb_run *run,
		    const struct npb_times *times);

#endif
