#include "base/sample_totals.h"

#include "base/quantities.h"
#include "base/sample_line.h"

void sy_sums_init(struct sy_sums *sums)
{
	*sums = (struct sy_sums){.first_unix = SY_UNKNOWN};
	for (int i = 0; i < SY_TOTALS; i++)
		sums->largest[i] = SY_UNKNOWN;
	sy_line_clear(&sums->last);
}

/* Nothing that runs has none: 0 is of no process, or only of one that has ended. */
static bool is_peak(struct sy_sums *sums, enum sy_total which, int64_t value)
{
	if (value <= 0 || value <= sums->largest[which])
		return false;
	sums->largest[which] = value;
	return true;
}

bool sy_sums_peak(struct sy_sums *sums, int64_t bytes)
{
	return is_peak(sums, SY_MAX_MEMORY_BYTES, bytes);
}

void sy_sums_add(struct sy_sums *sums, const struct sy_line *line)
{
	if (sums->samples++ == 0)
		sums->first_unix = line->cell[SY_UNIX];
	for (int i = 0; i < SY_TOTALS; i++)
		if (sy_total_facts[i].over_time == SY_OVER_LARGEST)
			(void)is_peak(sums, (enum sy_total)i, line->cell[sy_total_facts[i].cell]);
	sums->last = *line;
}

int64_t sy_sums_total(const struct sy_sums *sums, enum sy_total which)
{
	const struct sy_total_fact *fact = &sy_total_facts[which];

	if (sums->unsure[which])
		return SY_UNKNOWN;
	if (fact->over_time == SY_OVER_LARGEST)
		return sums->largest[which];
	return fact->cell == SY_NO_CELL ? SY_UNKNOWN : sums->last.cell[fact->cell];
}
