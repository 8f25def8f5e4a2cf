/* Small parts of the sampler's parent: its socket, the command, what was reaped. */
#ifndef STEELYARD_SAMPLER_IO_H
#define STEELYARD_SAMPLER_IO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "error.h"
#include "record.h"

#define SY_SAMPLE_UNABLE 3 /* exit code: nothing could be set up */

/* A child that is not told of by SIGCHLD and not found by wait4(-1): the counters of the command's
 * children stay apart from its. */
pid_t sy_fork_apart(void);

/* The control socket, bound with mode 0600, or `given` when that is no -1. Returns -1 without an
 * error when `path` is NULL. */
int sy_control_open(const char *path, int given, struct sy_error *err);

/* Give back stdin, stdout and stderr: whoever reads them must not wait for the sampler. */
void sy_keep_out_of_the_way(void);

/* A descriptor that tells the end of children, and what is passed on to the command. A full disk
 * and a reader that left are errors of writing, not signals; the command gets back what was before.
 */
int sy_take_signals(void);

/* Start a command: its process id, or -1. A command that cannot be executed exits with 127 (not
 * found) or 126, as in a shell. */
pid_t sy_start_command(char **argv);

/* I/O of this process' children that have been waited for: rchar, wchar, read, write. */
int sy_reaped_io(int64_t io[4]);

/* Write the record's path to the descriptor of --print-path. */
void sy_print_path(const struct sy_plan *plan, const char *name);

/* The program's own exit code: the command's, or 128 and its signal. */
int sy_exit_code(const struct sy_exact *exact, bool command);

#endif
