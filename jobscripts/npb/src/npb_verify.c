#include "npb_verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool note(struct npb_run *run, struct npb_check check, const char *name)
{
	check.passed = check.error <= check.limit; /* false for NaN */
	if (!check.passed)
		run->failed_checks++;
	if (run->checks < NPB_MAX_CHECKS) { /* all of them count, the first ones are kept */
		snprintf(check.name, sizeof(check.name), "%s", name);
		run->check[run->checks++] = check;
	}
	return check.passed;
}

bool npb_check(struct npb_run *run, const char *name, double value, double expected, double limit)
{
	const double error = fabs((value - expected) / expected);

	return note(run,
		    (struct npb_check){
			.value = value, .expected = expected, .error = error, .limit = limit},
		    name);
}

bool npb_check_complex(struct npb_run *run, const char *name, const double value[2],
		       const double expected[2], double limit)
{
	const double error =
	    hypot(value[0] - expected[0], value[1] - expected[1]) / hypot(expected[0], expected[1]);

	/* Told: the moduli. Decides: the distance. */
	return note(run,
		    (struct npb_check){.value = hypot(value[0], value[1]),
				       .expected = hypot(expected[0], expected[1]),
				       .error = error,
				       .limit = limit},
		    name);
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
