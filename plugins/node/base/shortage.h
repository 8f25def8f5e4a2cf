/* Memory and descriptors that could not be had. What was read or built meanwhile may lack a part
 * that nobody misses, so nobody may take it for the whole. */
#ifndef STEELYARD_BASE_SHORTAGE_H
#define STEELYARD_BASE_SHORTAGE_H

#include <stdbool.h>

/* No memory, or no descriptor left: it may be there in the next moment. */
bool sy_is_shortage(int errnum);

/* Count it if it is one; returns -errnum. */
int sy_short(int errnum);

/* How many there have been in this process: more than before, then what was done lacks something.
 */
unsigned sy_shortages(void);

#endif
