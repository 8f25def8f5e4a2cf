/* Around the sampler's parent: its socket, its child, what it prints. */
#ifndef STEELYARD_SAMPLER_IO_H
#define STEELYARD_SAMPLER_IO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "record/file.h"
#include "record/record.h"

#define SY_SAMPLE_UNABLE 3 /* exit code: nothing could be set up */

/* A child that is not told of by SIGCHLD and not found by wait4(-1): the counters of the command's
 * children stay apart from its. */
pid_t sy_fork_apart(void);

/* The control socket, bound with mode 0600, or `given` when that is no -1. Returns -1 without an
 * error when `path` is NULL. */
int sy_control_open(const char *path, int given, struct sy_error *err);

/* When its name was made, which tells it from another one of that name; 0: there is none. */
unsigned long long sy_control_made_ns(const char *path);

/* Remove the name of that socket, unless another one stands there by now. */
void sy_control_remove(const struct sy_sampling *sampling);

/* Whoever started us has been killed, the job ended by others, who could not wait for us: the name
 * of the socket was removed before we came to it, or is that of the job's next start. */
bool sy_control_is_given_up(const struct sy_sampling *sampling);

/* Give back stdin, stdout and stderr: whoever reads them must not wait for the sampler. */
void sy_keep_out_of_the_way(void);

/* Write the record's path to the descriptor of --print-path. */
void sy_print_path(const struct sy_sampling *sampling, const struct sy_recordfile *file);

#endif
