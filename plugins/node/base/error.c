#include "base/error.h"

#include <stdarg.h>
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
