/* Numbers out of text, as the kernel's files have them. */
#ifndef STEELYARD_BASE_NUMBER_H
#define STEELYARD_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What follows the digits, or NULL. strtoll costs three times as much, and there are thousands of
 * these a second. */
static inline const char *sy_number(const char *text, int64_t *value)
{
	int64_t result = 0;

	if (*text < '0' || *text > '9')
		return NULL;
	while (*text >= '0' && *text <= '9') {
		/* Saturated rather than wrapped: "unlimited" of cgroup v1 is near 2^63. */
		if (result > (INT64_MAX - 9) / 10)
			return NULL;
		result = result * 10 + (*text++ - '0');
	}
	*value = result;
	return text;
}

/* A list of numbers ("0-3,8,10-11"), as the kernel and Slurm write CPUs, into `marks` of `size`:
 * how many, or -1 when it is no such list. Numbers from `size` on are counted, not marked. */
int sy_parse_number_list(const char *text, bool *marks, int size);

#endif
