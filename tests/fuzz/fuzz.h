/* For the fuzzers: the input as text, as a file, and what must hold of every answer. */
#ifndef STEELYARD_FUZZ_H
#define STEELYARD_FUZZ_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libFuzzer keeps the input of whoever aborts. */
#define must(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			(void)fprintf(stderr, "%s:%d: must hold: %s\n", __FILE__, __LINE__,        \
				      #condition);                                                 \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* In memory of its own size, so that reading behind its end is seen; cut at a NUL as C does. */
__attribute__((unused)) static char *text_of(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);

	must(text);
	return text;
}

/* The first line, which is cut off; what follows begins there. */
__attribute__((unused)) static char *first_line(char *text)
{
	char *end = text + strcspn(text, "\n");

	if (!*end)
		return end;
	*end = '\0';
	return end + 1;
}

/* A file of ours alone with that in it: its path. */
__attribute__((unused)) static const char *file_of(const void *data, size_t size)
{
	static char path[64];
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("input", MFD_CLOEXEC);
		must(fd >= 0 && fchmod(fd, 0600) == 0);
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	must(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
	return path;
}

/* One sentence, fit for a log. */
__attribute__((unused)) static void must_say_why(const struct sy_error *err)
{
	must(err->text[0] && strlen(err->text) < sizeof(err->text));
}

__attribute__((unused)) static bool is_printable(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

#endif
