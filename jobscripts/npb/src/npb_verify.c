/* Figures compared with their official values, and the residuals of iterations. */
#include "npb.h"

#include <math.h>
#include <stdio.h>

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
