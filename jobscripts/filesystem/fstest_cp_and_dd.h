/* One process per file, as scripts do: cp or dd, found by PATH. Part of fstest.c. */
#ifndef FSTEST_CP_AND_DD_H
#define FSTEST_CP_AND_DD_H

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fstest_run_state.h"

enum { FILE_PATH = PATH_MAX + 64 };

/* 0 when it exits with 0; else -1 with errno. */
static int run_program(char *const argv[])
{
	int status, rc;
	pid_t pid;

	if (stopped_by) {
		errno = EINTR;
		return -1;
	}
	rc = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
	if (rc != 0) {
		errno = rc;
		return -1;
	}
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
		if (stopped_by)
			kill(pid, SIGTERM);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	errno = EIO;
	return -1;
}

/* cp -f SOURCE TARGET, or dd if=/dev/urandom of=TARGET bs=BYTES count=1. */
static int spawn_file(const struct work *w, uint64_t file)
{
	char source[FILE_PATH + 3], target[FILE_PATH + 3], bytes[32], name[NAME_BYTES];
	char *const cp[] = {"cp", "-f", source, target, NULL};
	char *const dd[] = {"dd", source, target, bytes, "count=1", "status=none", NULL};
	bool copies = w->o.test != SMALL_WRITE;

	name_of(name, file);
	snprintf(target, sizeof(target), "%s%s/target/%s", copies ? "" : "of=", target_path(w),
		 name);
	if (copies) {
		snprintf(source, sizeof(source), "%s/source/%s", source_path(w), name);
		return run_program(cp);
	}
	snprintf(source, sizeof(source), "if=/dev/urandom");
	snprintf(bytes, sizeof(bytes), "bs=%" PRIu64, w->bytes_per_file);
	return run_program(dd);
}

#endif
