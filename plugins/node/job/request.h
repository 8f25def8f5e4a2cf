/* A user's wishes as one word that any scheduler carries (docs/formats.md part 11):
 * netem=delay%3D50ms:tag=a%3Db, of a value every byte but A-Z a-z 0-9 . _ - as %XX. */
#ifndef STEELYARD_JOB_REQUEST_H
#define STEELYARD_JOB_REQUEST_H

#include <stddef.h>

#include "base/error.h"
#include "job/wishes.h"

#define SY_REQUEST_MAX 16384 /* bytes: more is no request of ours */

/* Append one wish; -1 when it does not fit. `text` is not looked at. */
int sy_request_add(char *request, size_t size, enum sy_wish which, const char *text,
		   struct sy_error *err);

/* Hand over every wish of a request with its value as it was before; -1 with what is wrong, also
 * when `take` says so. */
int sy_request_read(const char *request,
		    int (*take)(void *context, enum sy_wish which, const char *text,
				struct sy_error *err),
		    void *context, struct sy_error *err);

#endif
