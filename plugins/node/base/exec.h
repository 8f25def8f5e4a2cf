/* Running tc and the like: no shell, fixed folders, an environment of one variable or two, a
 * time-out.
 */
#ifndef STEELYARD_BASE_EXEC_H
#define STEELYARD_BASE_EXEC_H

#include <stdbool.h>

#include "base/error.h"

#define SY_EXEC_TIMEOUT_S 10

struct sy_output {
	int status;    /* exit code; 128 + the signal's number */
	bool missing;  /* there is no such program */
	char *out;     /* what it wrote to stdout: free it */
	char *problem; /* what it wrote to stderr: free it */
};

/* Run argv[0] (a plain name, looked for in /usr/sbin, /sbin, /usr/bin, /bin; or a whole path that
 * no user has named) with `input` as its
 * stdin (NULL: none). 0 when it ran and ended by itself, whatever its exit code; else -1. */
int sy_run(const char *const *argv, const char *input, struct sy_output *output,
	   struct sy_error *err);

/* Programs run from now on keep this descriptor open (-1: none): so a lock lasts as long as a tc
 * that outlives us when we are killed. */
void sy_run_holding(int fd);

/* Programs run from now on get this variable too (NAME=VALUE, kept by the caller); NULL: none. */
void sy_run_telling(const char *variable);

void sy_cleanup_output(struct sy_output *output);

#define cleanup_output __attribute__((cleanup(sy_cleanup_output)))

/* The same where only exit code 0 is good: its stdout (free it), or NULL with a sentence that has
 * the first line of stderr. */
char *sy_run_text(const char *const *argv, const char *input, struct sy_error *err);

#endif
