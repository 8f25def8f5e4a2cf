#include "samples_reader.h"

#include <math.h>
#include <stdbool.h>

/* 10^18 is the largest power whose every number of digits fits into an int64_t. */
#define MAX_DIGITS 18
/* Up to 2^53 a double holds every whole number, and up to 10^22 every power of ten: their quotient
 * is then the double nearest to the decimal number (Clinger, "How to Read Floating Point Numbers
 * Accurately", PLDI 1990). */
#define MAX_MANTISSA (INT64_C(1) << 53)

static const double power_of_ten[MAX_DIGITS + 1] = {1e0,  1e1,	1e2,  1e3,  1e4,  1e5,	1e6,
						    1e7,  1e8,	1e9,  1e10, 1e11, 1e12, 1e13,
						    1e14, 1e15, 1e16, 1e17, 1e18};

/* Digits from `at` on, appended to `value`: where they end. The text must end with something else.
 */
static const char *digits(const char *at, int64_t *value)
{
	const char *begin = at;
	uint64_t sum = (uint64_t)*value;
	unsigned digit;

	while ((digit = (unsigned)(unsigned char)*at - '0') <= 9) {
		sum = sum * 10 + digit; /* too many wrap around: their number shows it */
		at++;
	}
	*value = at - begin > MAX_DIGITS ? -1 : (int64_t)sum;
	return at;
}

/* Each of these reads one cell and returns its end, or NULL when it is odd. */
static const char *read_integer(const char *at, int64_t *out)
{
	const char *begin = at;

	*out = 0;
	at = digits(at, out);
	if (at == begin)
		*out = INT64_MIN;
	else if (*out < 0)
		return NULL;
	return at;
}

static const char *read_real(const char *at, double *out)
{
	const char *begin = at, *point;
	int64_t mantissa = 0;

	at = digits(at, &mantissa);
	if (at == begin) {
		*out = NAN;
		return at; /* ".5" is none of the sampler's: the caller finds no separator here */
	}
	if (*at != '.' || mantissa < 0) {
		*out = (double)mantissa;
		return mantissa < 0 || mantissa > MAX_MANTISSA ? NULL : at;
	}
	point = at;
	at = digits(at + 1, &mantissa);
	if (mantissa < 0 || mantissa > MAX_MANTISSA || at - begin > MAX_DIGITS + 1)
		return NULL;
	*out = (double)mantissa / power_of_ten[at - point - 1];
	return at;
}

static const char *skip(const char *at)
{
	while (*at != ',' && *at != '\n') {
		if (*at < ' ' || *at > '~')
			return NULL;
		at++;
	}
	return at;
}

static const char *read_cell(const char *at, unsigned char kind, void *column, size_t line)
{
	if (kind == SY_INTEGER)
		return read_integer(at, (int64_t *)column + line);
	if (kind == SY_REAL)
		return read_real(at, (double *)column + line);
	return skip(at);
}

int64_t steelyard_read_samples(const char *text, size_t size, size_t columns,
			       const unsigned char *kinds, void *const *out, size_t capacity)
{
	const char *at = text, *end = text + size;
	size_t line = 0;

	if (columns == 0 || (size > 0 && end[-1] != '\n'))
		return SY_ODD;
	for (; at < end; line++) {
		if (line == capacity)
			return SY_FULL;
		for (size_t i = 0; i < columns; i++) {
			at = read_cell(at, kinds[i], out[i], line);
			if (!at || *at != (i + 1 < columns ? ',' : '\n'))
				return SY_ODD;
			at++;
		}
	}
	return (int64_t)line;
}
