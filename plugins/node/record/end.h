/* What goes into a record at the job's end, beside the totals of the samples. */
#ifndef STEELYARD_RECORD_END_H
#define STEELYARD_RECORD_END_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "counters/command_usage.h"
#include "record/complete.h"
#include "record/record.h"
#include "record/status.h"

/* Put in what else the child knew, and what the parent does. */
void sy_record_status(json_t *record, const struct sy_status *status);
void sy_record_exact(json_t *record, const struct sy_exact *exact, const struct sy_status *status);
void sy_record_dropped(json_t *record, const struct sy_head *head);

/* Of a job that the kernel was to count: how well, or why not. */
void sy_record_in_kernel(json_t *record, const struct sy_status *status);

/* The job's own TCP connections, as far as the child got. */
void sy_record_tcp(json_t *record, const struct sy_tcp_status *tcp,
		   const struct sy_tcp_counts *counts);

/* What only samples can tell is null where sampling was switched off; a maximum of two moments is
 * none. Before what is known exactly is put in. */
void sy_record_off(json_t *record, const struct sy_status *status);

#endif
