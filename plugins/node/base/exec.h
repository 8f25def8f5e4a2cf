/* Programs and functions that are run and waited for: how long they may take, what they wrote.
 *
 * A program is run without a shell, from fixed folders, with an environment of one variable or two.
 * A function is run in a process of its own where it may hang (a file system that does not answer)
 * or die (a broken library). Either is killed when its time is up, and nobody waits long for a
 * process that even SIGKILL does not end. What they write goes into a file in memory, not into a
 * pipe: neither side can block, and no SIGPIPE reaches the program that loaded us.
 *
 * Processes that outlive the one that starts them are in job/spawn.h; what they write comes through
 * pipes (descriptors.h). */
#ifndef STEELYARD_BASE_EXEC_H
#define STEELYARD_BASE_EXEC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define SY_EXEC_TIMEOUT_MS 10000

struct sy_output {
	int status;    /* exit code; 128 + the signal's number */
	bool missing;  /* there is no such program */
	char *out;     /* what it wrote to stdout: free it */
	char *problem; /* what it wrote to stderr: free it */
};

/* Run argv[0] (a plain name, looked for in /usr/sbin, /sbin, /usr/bin, /bin; or a whole path that
 * no user has named) with `input` as its stdin (NULL: none). 0 when it ran and ended by itself
 * within SY_EXEC_TIMEOUT_MS, whatever its exit code; else -1. */
int sy_run(const char *const *argv, const char *input, struct sy_output *output,
	   struct sy_error *err);

/* The same with another limit. */
int sy_run_within(int limit_ms, const char *const *argv, const char *input,
		  struct sy_output *output, struct sy_error *err);

/* The same, but a program that is not done within the limit is left to itself, not killed. */
int sy_run_or_leave(int limit_ms, const char *const *argv, struct sy_output *output,
		    struct sy_error *err);

/* Programs run from now on keep this descriptor open (-1: none): so a lock lasts as long as a tc
 * that outlives us when we are killed. */
void sy_run_pass_descriptor(int fd);

/* Programs run from now on get this variable too (NAME=VALUE, kept by the caller); NULL: none. */
void sy_run_pass_variable(const char *variable);

void sy_cleanup_output(struct sy_output *output);

#define cleanup_output __attribute__((cleanup(sy_cleanup_output)))

/* The same where only exit code 0 is good: its stdout (free it), or NULL with a sentence that has
 * the first line of stderr. */
char *sy_run_text(const char *const *argv, const char *input, struct sy_error *err);

/* Run a function in a process of its own, with no descriptor but `out` and /dev/null as stdin,
 * stdout and stderr: what it wrote to `out` (free it). NULL with a sentence when it returned no 0,
 * died, or was not done within `limit_ms` and was killed. For programs without threads. */
char *sy_run_function(int limit_ms, int (*function)(const void *context, int out),
		      const void *context, struct sy_error *err);

/* The program of that name in the folder of another one; false: that one's path has no folder, or
 * it is too long. */
bool sy_program_beside(const char *program, const char *name, char *path, size_t size);

#endif
