/* What the load counts of itself, in memory that all its processes share. Part of load.c. */
#ifndef LOAD_SHARED_COUNTS_H
#define LOAD_SHARED_COUNTS_H

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define EX_USAGE 2
#define EX_WORK	 1

/* Added to where the work is done, by whichever process does it. */
struct counts {
	_Atomic int64_t read_calls_bytes, write_calls_bytes;  /* what read() and write() returned */
	_Atomic int64_t to_storage_bytes, from_storage_bytes; /* synced; read past the page cache */
	_Atomic int64_t sent_bytes, received_bytes, segments; /* TCP, payload; of this end */
	_Atomic int64_t connect_us; /* until the other end had answered: one round trip */
	_Atomic int64_t
	    unwaited_cpu_ns; /* of processes that nobody waits for, by their own clock */
	_Atomic int64_t unwaited_read_calls_bytes, unwaited_write_calls_bytes;
	_Atomic int64_t unwaited_ended, processes, memory_bytes;
	_Atomic int64_t others_read_calls_bytes, others_write_calls_bytes; /* of programs we ran */
	_Atomic int64_t others_to_storage_bytes, others_from_storage_bytes;
	_Atomic int64_t parent_cpu_us; /* of a shell that waits for us, before it began to */
	_Atomic int64_t parent_read_calls_bytes, parent_write_calls_bytes;
	_Atomic int64_t parent_to_storage_bytes, parent_from_storage_bytes;
};

static struct counts *counts;
static bool unwaited; /* this process is one that nobody waits for */

/* Of /proc/self/io, in its order. */
struct io {
	int64_t rchar, wchar, read_bytes, write_bytes;
};

__attribute__((format(printf, 1, 2))) static _Noreturn void die(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	(void)fprintf(stderr, "steelyard-load: ");
	(void)vfprintf(stderr, format, list);
	(void)fprintf(stderr, "\n");
	va_end(list);
	_exit(EX_WORK);
}

static double seconds_of(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double monotonic_s(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

static double own_cpu_s(void)
{
	return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

static void sleep_s(double seconds)
{
	struct timespec remaining = {.tv_sec = (time_t)seconds};

	remaining.tv_nsec = (long)((seconds - (double)remaining.tv_sec) * 1e9);
	while (nanosleep(&remaining, &remaining) < 0 && errno == EINTR)
		;
}

static size_t counted_read(int fd, void *buffer, size_t bytes)
{
	ssize_t n = read(fd, buffer, bytes);

	if (n < 0)
		die("read: %s", strerror(errno));
	counts->read_calls_bytes += n;
	if (unwaited)
		counts->unwaited_read_calls_bytes += n;
	return (size_t)n;
}

static void counted_write(int fd, const void *buffer, size_t bytes)
{
	ssize_t n = write(fd, buffer, bytes);

	if (n < 0 || (size_t)n != bytes)
		die("write: %s", n < 0 ? strerror(errno) : "no room");
	counts->write_calls_bytes += n;
	if (unwaited)
		counts->unwaited_write_calls_bytes += n;
}

/* A small file of /proc; false: it is not there, or not for us. Counted as any other reading. */
static bool counted_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	text[counted_read(fd, text, size - 1)] = '\0';
	(void)close(fd);
	return true;
}

/* What the kernel has counted for a process and those it has waited for. */
static struct io io_of(const char *path)
{
	char text[512];
	long long r, w, rb, wb;

	if (!counted_text(path, text, sizeof(text)))
		return (struct io){-1, -1, -1, -1};
	if (sscanf(
		text,
		"rchar: %lld wchar: %lld syscr: %*d syscw: %*d read_bytes: %lld write_bytes: %lld",
		&r, &w, &rb, &wb) != 4)
		die("%s: not understood", path);
	return (struct io){r, w, rb, wb};
}

static struct io kernel_io(void)
{
	return io_of("/proc/self/io");
}

/* A process ends: usage that wait() will report to no parent is added to the common counts. */
static _Noreturn void end_process(void)
{
	if (unwaited) {
		counts->unwaited_cpu_ns += (int64_t)(own_cpu_s() * 1e9);
		counts->unwaited_ended++;
	}
	_exit(0);
}

static void share_counts(void)
{
	void *page =
	    mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	counts = page;
}

#endif
