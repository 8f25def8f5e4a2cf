/* Writes and copies a test file by this process. Part of fstest.c. */
#ifndef FSTEST_WRITE_COPY_H
#define FSTEST_WRITE_COPY_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "fstest_content.h"
#include "fstest_run_state.h"

static int create(const struct work *w, int folder_fd, uint64_t file)
{
	char name[NAME_BYTES];

	return openat(folder_fd, name_of(name, file),
		      O_WRONLY | O_CREAT | (w->o.keep ? O_TRUNC : O_EXCL) | O_CLOEXEC |
			  (w->o.direct ? O_DIRECT : 0),
		      0600);
}

static int write_file(const struct work *w, int folder_fd, uint64_t file, bool sync)
{
	int fd = create(w, folder_fd, file);

	if (fd < 0)
		return -1;
	for (uint64_t at = 0; at < w->bytes_per_file;) {
		uint64_t rest = w->bytes_per_file - at;
		size_t n = rest < w->o.buffer ? (size_t)rest : (size_t)w->o.buffer;

		fill(w->buffer, n, file, at);
		if (write_all(fd, w->buffer, n) < 0) {
			sync_and_close(fd, false);
			return -1;
		}
		at += n;
	}
	return sync_and_close(fd, sync);
}

static int copy_file(const struct work *w, uint64_t file, bool sync)
{
	char name[NAME_BYTES];
	ssize_t n = -1;
	int out, in = openat(w->source_fd, name_of(name, file),
			     O_RDONLY | O_CLOEXEC | (w->o.direct ? O_DIRECT : 0));

	if (in < 0)
		return -1;
	out = create(w, w->target_fd, file);
	while (out >= 0 && (n = read_some(in, w->buffer, (size_t)w->o.buffer)) > 0) {
		if (write_all(out, w->buffer, (size_t)n) < 0) {
			n = -1;
			break;
		}
	}
	if (out >= 0 && sync_and_close(out, sync && n == 0) < 0)
		n = -1;
	sync_and_close(in, false);
	return n == 0 ? 0 : -1;
}

#endif
