#define _DEFAULT_SOURCE /* madvise */
#include "npb.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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

	/* The moduli are printed; the distance decides. */
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

/* Large blocks begin on pages of 2 MiB, where the kernel has them: fewer pages to look up. */
static void *allocate(size_t total)
{
	enum { LINE = 64, PAGE = 2 << 20 };
	const size_t align = total < 2 * (size_t)PAGE ? LINE : PAGE;
	const size_t rounded = (total + align) / align * align; /* never 0 */
	void *memory = rounded > total ? aligned_alloc(align, rounded) : NULL;

#ifdef MADV_HUGEPAGE
	if (memory && align == PAGE)
		madvise(memory, rounded, MADV_HUGEPAGE);
#endif
	return memory;
}

void *npb_alloc(size_t count, size_t bytes)
{
	const bool fits = bytes == 0 || count <= SIZE_MAX / bytes;
	void *memory = fits ? allocate(count * bytes) : NULL;

	if (!memory) {
		fprintf(stderr, "npb: no memory for %zu times %zu bytes; use a smaller class\n",
			count, bytes);
		MPI_Abort(MPI_COMM_WORLD, 2);
		exit(2);
	}
	memset(memory, 0, count * bytes);
	blocks++;
	return memory;
}

void npb_free(void *memory)
{
	blocks -= memory != NULL;
	free(memory);
}
