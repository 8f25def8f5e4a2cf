#include "base/sampling_rate.h"

#include <stdlib.h>
#include <string.h>

int sy_rate_parse(const char *text, double max_hz, double *hz, struct sy_error *err)
{
	/* No sign, blank, exponent, hexadecimal, inf or nan, all of which strtod() would take. */
	bool plain = text[strspn(text, "0123456789.")] == '\0';
	char *end;
	double value = plain ? strtod(text, &end) : -1;

	if (!plain || end == text || *end || value > max_hz ||
	    (value > 0 && value < SY_MIN_RATE_HZ) || value < 0)
		return sy_fail(err, "expected a rate in Hz: 0 (totals only), or %g to %g",
			       SY_MIN_RATE_HZ, max_hz);
	*hz = value;
	return 0;
}
