/* A first sample that comes in the second after the record's name is of that second all the same.
 */
#include "tap.h"

#include "base/clock.h"

#include <jansson.h>
#include <stdlib.h>

int main(void)
{
	int64_t now_s = sy_now_us(CLOCK_REALTIME) / 1000000, first_us;
	json_t *number;
	struct sy_wall wall;
	char *text;

	sy_wall_begin(&wall, now_s - 1);
	first_us = sy_wall_first_us(&wall);
	number = json_real((double)first_us / 1e6);
	text = json_dumps(number, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
	is_int((int64_t)strtod(text, NULL), now_s - 1, "as a record tells it");
	is_int(first_us, now_s * 1000000 - 1000, "its last millisecond");
	free(text);
	json_decref(number);
	return done_testing();
}
