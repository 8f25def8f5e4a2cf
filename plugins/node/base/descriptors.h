/* Open descriptors: which of them a started process inherits, the standard streams, and pipes that
 * are read within a time limit. */
#ifndef STEELYARD_BASE_DESCRIPTORS_H
#define STEELYARD_BASE_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>

/* The reading end of a pipe. What comes is in `text`, cut at `size` and ended by NUL. */
struct sy_pipe {
	int fd;
	char *text;
	size_t size, length;
};

#define SY_PIPES_MAX 2

/* Read pipes until their writers have closed all of them, for `limit_ms` at most; then they are
 * closed. False: one was still open. A writer never waits for us: what has no room is dropped. */
bool sy_read_pipes(struct sy_pipe *pipes, int count, int limit_ms);

/* For the moment between fork and exec, hence system calls only: fds[i] becomes descriptor i (-1:
 * /dev/null), every other one is closed. `count`: SY_KEPT_MAX at most. */
#define SY_KEPT_MAX 6
void sy_keep_descriptors(const int *fds, int count);

/* By system calls only, too: close every descriptor from `first` on. */
void sy_close_from(int first);

/* At a program's start: no file of ours becomes a standard stream that our parent has closed. */
void sy_open_streams(void);

/* Point descriptors 0 to `last` to /dev/null: who waits for their end does not wait for us. */
void sy_silence_streams(int last);

/* Raise the limit of open files; returns how many may be kept open, a few held back. */
int sy_raise_file_limit(void);

#endif
