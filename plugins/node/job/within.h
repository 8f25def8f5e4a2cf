/* What a folder on a shared file system tells, in a process of its own: one that does not answer
 * holds up neither a prologue nor an epilogue. For programs without threads. */
#ifndef STEELYARD_JOB_WITHIN_H
#define STEELYARD_JOB_WITHIN_H

#include <jansson.h>

/* The document that `make` makes of `context`; NULL: none within `limit_ms`. A process that does
 * not come back is killed, and nobody waits for that. */
json_t *sy_within(int limit_ms, json_t *(*make)(const void *context), const void *context);

#endif
