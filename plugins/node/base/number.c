#include "base/number.h"

#include <stdlib.h>
#include <string.h>

uint64_t sy_hash(uint64_t hash, const void *bytes, size_t size)
{
	for (const unsigned char *at = bytes; size > 0; size--)
		hash = (hash ^ *at++) * 0x100000001b3ULL;
	return hash;
}

int sy_parse_number_list(const char *text, bool *marks, int size)
{
	int count = 0;

	while (*text && *text != '\n') {
		char *end;
		long first = strtol(text, &end, 10), last = first;

		if (end == text || first < 0)
			return -1;
		if (*end == '-') {
			text = end + 1;
			last = strtol(text, &end, 10);
		}
		if (end == text || last < first || last > 1 << 20 || !strchr(",\n", *end))
			return -1;
		for (long at = first; at <= last; at++, count++)
			if (at < size)
				marks[at] = true;
		text = *end == ',' ? end + 1 : end;
	}
	return count;
}

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
