/* Errors travel up as one value with a sentence; leaf functions neither log nor exit.
 *
 * Every function that can fail takes a `struct sy_error *` as its last argument and returns 0, or
 * -1 with the sentence set. The sentence says what was tried on which object, and why it failed. */
#ifndef STEELYARD_BASE_ERROR_H
#define STEELYARD_BASE_ERROR_H

#include <stdbool.h>

struct sy_error {
	char text[512];
};

/* Set the sentence; always -1, so that `return sy_fail(err, …)` reads well. `err` may be NULL. */
__attribute__((format(printf, 2, 3))) int sy_fail(struct sy_error *err, const char *format, ...);

/* The same, followed by ": " and strerror(errnum). */
__attribute__((format(printf, 3, 4))) int sy_fail_errno(struct sy_error *err, int errnum,
							const char *format, ...);

/* Memory and descriptors that could not be had. What was read or built meanwhile may lack a part
 * that nobody misses, so nobody may take it for the whole. */

/* No memory, or no descriptor left: it may be there in the next moment. */
bool sy_is_shortage(int errnum);

/* Count it if it is one; returns -errnum. */
int sy_count_shortage(int errnum);

/* How many there have been in this process: more than before, then what was done lacks something.
 */
unsigned sy_get_shortages(void);

#endif
