#include "npb_verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool npb_check(struct npb_run *run, const char *name, double value, double expected, double limit)
{
	const double error = fabs((value - expected) / expected);
	const bool passed = error <= limit; /* false for NaN */
	struct npb_check *check;

	if (!passed)
		run->failed_checks++;
	if (run->checks == NPB_MAX_CHECKS) /* all of them count, the first ones are kept */
		return passed;
	check = &run->check[run->checks++];
	snprintf(check->name, sizeof(check->name), "%s", name);
	check->value = value;
	check->expected = expected;
	check->error = error;
	check->limit = limit;
	check->passed = passed;
	return passed;
}

void npb_residual(struct npb_run *run, double residual)
{
	if (run->residuals < NPB_MAX_RESIDUALS)
		run->residual[run->residuals++] = residual;
}

static long blocks;

long npb_blocks(void)
{
	return blocks;
}

void *npb_alloc(size_t count, size_t bytes)
{
	enum { ALIGN = 64 };
	void *memory = NULL;
	size_t total;

	if (bytes != 0 && count > (SIZE_MAX - ALIGN) / bytes)
		total = 0;
	else
		total = (count * bytes + ALIGN) / ALIGN * ALIGN;
	if (total != 0)
		memory = aligned_alloc(ALIGN, total);
	if (!memory) {
		fprintf(stderr, "npb: no memory for %zu times %zu bytes; use a smaller class\n",
			count, bytes);
		MPI_Abort(MPI_COMM_WORLD, 2);
		exit(2);
	}
	memset(memory, 0, total);
	blocks++;
	return memory;
}

void npb_free(void *memory)
{
	blocks -= memory != NULL;
	free(memory);
}
