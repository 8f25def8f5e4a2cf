/* What samplers have counted so far, on one node or summed over several. Pure: no Slurm in here. */
#ifndef STEELYARD_SLURM_TOTALS_H
#define STEELYARD_SLURM_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

enum sy_total {
	SY_ELAPSED_S,
	SY_ENERGY_J,
	SY_CPU_S,
	SY_MAX_MEMORY_BYTES,
	SY_RCHAR_BYTES,
	SY_WCHAR_BYTES,
	SY_READ_BYTES,
	SY_WRITE_BYTES,
	SY_RX_BYTES,
	SY_TX_BYTES,
	SY_TOTALS,
};

struct sy_totals {
	bool known[SY_TOTALS]; /* false: null, never 0 */
	double value[SY_TOTALS];
};

struct sy_job_totals {
	unsigned nodes_weighed;
	struct sy_totals sum; /* elapsed and memory: of the largest node */
};

/* The name of a total in JSON; whether it is a count of bytes. */
const char *sy_total_name(enum sy_total which);
bool sy_total_is_bytes(enum sy_total which);

/* The sampler's answer to `totals`. False when it is not that. */
bool sy_totals_from_json(struct sy_totals *totals, const char *text);

/* A CSV of samples: its header line, and text that ends with its last line. The largest memory is
 * not in one line: unknown, unless `text` is the whole file. */
bool sy_totals_from_csv(struct sy_totals *totals, const char *header, const char *text,
			bool whole_file);

/* The same from a file that is still written to. */
bool sy_totals_from_csv_file(struct sy_totals *totals, int folder, const char *name);

/* One more node: a total is known only as long as every node knows it. */
void sy_job_totals_add(struct sy_job_totals *job, const struct sy_totals *node);

/* Add every other node that has samples NODE.START.csv in the folder, of this start of the job:
 * START at least `since`. Gives up after `limit_ms`: a shared file system may be slow. */
void sy_job_totals_add_others(struct sy_job_totals *job, const char *folder, const char *own_node,
			      time_t since, int limit_ms);

/* START of the newest NODE.START.csv (or .json: `ending`) of a node; 0: there is none. */
time_t sy_newest_start(const char *folder, const char *node, const char *ending);

#endif
