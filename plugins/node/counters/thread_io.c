#include "counters/thread_io.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void add(struct sy_io *sum, const struct sy_io *more, int sign)
{
	sum->rchar += sign * more->rchar;
	sum->wchar += sign * more->wchar;
	sum->read += sign * more->read;
	sum->write += sign * more->write;
}

/* The place of a thread, or a free one; -1 when there is none. */
static int place_of(const struct sy_thread_io *threads, pid_t id)
{
	int found = -1;

	for (int i = 0; i < SY_MAX_THREADS; i++) {
		if (threads->thread[i].id == id)
			return i;
		if (threads->thread[i].id == 0 && found < 0)
			found = i;
	}
	return found;
}

/* 0 also where the thread is gone by now; -1 when it may not be read. */
static int look_at(struct sy_thread_io *threads, int folder, const char *name)
{
	char path[300], text[512];
	int place = place_of(threads, atoi(name));
	struct sy_io io;
	ssize_t length;
	cleanup_close int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/io", name);
	fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	if (place < 0 || (fd < 0 && (errno == ENOENT || errno == ESRCH)))
		return 0;
	if (fd < 0)
		return -1;
	length = sy_read_fd(fd, text, sizeof(text));
	if (length == -ESRCH)
		return 0;
	errno = 0;
	if (length <= 0 || sy_parse_io(text, &io) < 0)
		return -1;
	if (atoi(name) == (int)syscall(SYS_gettid))
		io.rchar -= threads->just_read;
	threads->just_read += length;
	threads->thread[place].id = atoi(name);
	threads->thread[place].alive = true;
	threads->thread[place].io = io;
	return 0;
}

/* Reads the folder without allocating. */
static int look_at_all(struct sy_thread_io *threads, int folder)
{
	char buffer[2048] __attribute__((aligned(8)));
	long got;

	for (int i = 0; i < SY_MAX_THREADS; i++)
		threads->thread[i].alive = false;
	while ((got = syscall(SYS_getdents64, folder, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < got;) {
			const struct sy_entry64 *entry = (const void *)(buffer + at);

			if (entry->name[0] != '.' && look_at(threads, folder, entry->name) < 0)
				return -1;
			at += entry->length;
		}
	}
	return got < 0 ? -1 : 0;
}

static bool end_threads(struct sy_thread_io *threads)
{
	bool any = false;

	for (int i = 0; i < SY_MAX_THREADS; i++) {
		if (threads->thread[i].id == 0 || threads->thread[i].alive)
			continue;
		any = true;
		add(&threads->ended, &threads->thread[i].io, 1);
		threads->thread[i].id = 0;
	}
	return any;
}

int sy_thread_io_take_off(struct sy_thread_io *threads, int proc, pid_t pid, struct sy_io *io)
{
	char path[64];
	bool any_ended;
	cleanup_close int folder = -1;

	(void)snprintf(path, sizeof(path), "%d/task", (int)pid);
	folder = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0 || look_at_all(threads, folder) < 0)
		return errno == ENOENT || errno == ESRCH ? 1 : -1; /* it ends at this moment */
	any_ended = end_threads(threads);
	for (int i = 0; i < SY_MAX_THREADS; i++)
		if (threads->thread[i].id != 0)
			add(io, &threads->thread[i].io, -1);
	add(io, &threads->ended, -1);
	return any_ended;
}
