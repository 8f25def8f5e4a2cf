/* The totals of all samples of a file: its last line, the largest value of some columns. */
#ifndef STEELYARD_BASE_SAMPLE_TOTALS_H
#define STEELYARD_BASE_SAMPLE_TOTALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/quantities.h"
#include "base/sample_line.h"

/* The totals of a file, line by line; `largest` is never 0, and of such totals only. `unsure`:
 * there may have been more. */
struct sy_sums {
	int64_t samples, first_unix, largest[SY_TOTALS];
	bool unsure[SY_TOTALS];
	struct sy_line last;
};

void sy_sums_init(struct sy_sums *sums);
void sy_sums_add(struct sy_sums *sums, const struct sy_line *line);

/* SY_UNKNOWN also for a total without a column, and for one that is unsure. */
int64_t sy_sums_total(const struct sy_sums *sums, enum sy_total which);

/* Memory that was in use at some time, between two samples maybe: whether it is the most so far. */
bool sy_sums_peak(struct sy_sums *sums, int64_t bytes);

#endif
