#include "base/number.h"

#include <stdlib.h>
#include <string.h>

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
