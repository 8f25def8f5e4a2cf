#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

int sy_fail(struct sy_error *err, const char *format, ...)
{
	va_list args;

	if (!err)
		return -1;
	va_start(args, format);
	(void)vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return -1;
}

int sy_fail_errno(struct sy_error *err, int errnum, const char *format, ...)
{
	va_list args;
	size_t used;

	if (!err)
		return -1;
	va_start(args, format);
	(void)vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	used = strlen(err->text);
	(void)snprintf(err->text + used, sizeof(err->text) - used, ": %s", strerror(errnum));
	return -1;
}

static atomic_uint shortages;

bool sy_is_shortage(int errnum)
{
	return errnum == ENOMEM || errnum == EMFILE || errnum == ENFILE;
}

int sy_count_shortage(int errnum)
{
	if (sy_is_shortage(errnum))
		atomic_fetch_add(&shortages, 1);
	return -errnum;
}

unsigned sy_get_shortages(void)
{
	return atomic_load(&shortages);
}
