#include "job/within.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/close_from.h"
#include "base/file.h"

#define OUT 3

/* Neither a lock nor who reads what we say waits for this process. */
static void keep_only(int fd)
{
	int null = open("/dev/null", O_RDWR);

	for (int i = 0; i < OUT; i++)
		(void)dup2(null, i);
	(void)dup2(fd, OUT);
	sy_close_from(OUT + 1);
}

__attribute__((noreturn)) static void answer(json_t *(*make)(const void *context),
					     const void *context)
{
	json_t *made = make(context);
	char *text = made ? json_dumps(made, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	_exit(text && sy_write_all(OUT, text, strlen(text)) == 0 ? 0 : 1);
}

/* Read until the only writer has closed its end; false: not within `limit_ms`. */
static bool read_all(int fd, char **text, size_t *length, int limit_ms)
{
	int64_t end = sy_now_ms(CLOCK_MONOTONIC) + limit_ms, left;

	while ((left = end - sy_now_ms(CLOCK_MONOTONIC)) > 0) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		char *more = realloc(*text, *length + 4096);
		ssize_t got;

		if (!more)
			return false;
		*text = more;
		if (poll(&ready, 1, (int)left) <= 0)
			continue;
		got = read(fd, *text + *length, 4096);
		if (got <= 0)
			return got == 0;
		*length += (size_t)got;
	}
	return false;
}

json_t *sy_within(int limit_ms, json_t *(*make)(const void *context), const void *context)
{
	cleanup_free char *text = NULL;
	cleanup_close int out = -1;
	size_t length = 0;
	int pipes[2];
	pid_t child;

	if (pipe2(pipes, O_CLOEXEC) != 0)
		return NULL;
	out = pipes[0];
	child = fork();
	if (child == 0) {
		keep_only(pipes[1]);
		answer(make, context);
	}
	(void)close(pipes[1]);
	if (child < 0)
		return NULL;
	if (!read_all(out, &text, &length, limit_ms)) {
		(void)kill(child, SIGKILL);
		(void)waitpid(child, NULL, WNOHANG);
		return NULL;
	}
	(void)waitpid(child, NULL, 0);
	return json_loadb(text, length, JSON_DECODE_ANY, NULL);
}
