/* Tiny TAP producer: `ok(x == 3, "x of %s", name);` … `return done_testing();` */
#ifndef STEELYARD_TAP_H
#define STEELYARD_TAP_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_run, tap_failed;

/* One test point, on one line; returns the condition, so that more may hang on it. Under
 * tests/torture what comes after one that failed stands on nothing. */
__attribute__((format(printf, 2, 3), unused)) static bool ok(bool condition, const char *format,
							     ...)
{
	char name[4096], *end;
	va_list args;

	tap_run++;
	tap_failed += !condition;
	va_start(args, format);
	(void)vsnprintf(name, sizeof(name), format, args);
	va_end(args);
	for (end = name; *end; end++)
		if (*end == '\n' || *end == '\r')
			*end = ' ';
	(void)printf("%sok %d - %s\n", condition ? "" : "not ", tap_run, name);
	if (!condition && getenv("FAIL_NTH"))
		exit(1);
	return condition;
}

/* Equal whole numbers; prints both when they differ. */
__attribute__((unused)) static bool is_int(int64_t got, int64_t expected, const char *name)
{
	if (got == expected)
		return ok(true, "%s", name);
	return ok(false, "%s: got %" PRId64 ", expected %" PRId64, name, got, expected);
}

/* Equal strings; NULL equals only NULL. */
__attribute__((unused)) static bool is_string(const char *got, const char *expected,
					      const char *name)
{
	if (got == expected || (got && expected && !strcmp(got, expected)))
		return ok(true, "%s", name);
	return ok(false, "%s: got \"%s\", expected \"%s\"", name, got ? got : "(null)",
		  expected ? expected : "(null)");
}

/* The plan and the exit code of the test program: 0 only when every point passed. */
__attribute__((unused)) static int done_testing(void)
{
	(void)printf("1..%d\n", tap_run);
	return tap_failed || !tap_run;
}

#endif
