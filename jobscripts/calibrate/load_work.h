/* The loads of one process: CPU, bytes read and written, memory. Part of load.c. */
#ifndef LOAD_WORK_H
#define LOAD_WORK_H

#include <linux/magic.h>
#include <sys/vfs.h>

#include "load_shared_counts.h"

#define BLOCK	   65536
#define STORE_NAME "load.%d.%d.data"

static char block[BLOCK];

/* By this process' own CPU clock, whatever else the machine does. */
static void burn(double seconds)
{
	double end = own_cpu_s() + seconds;

	while (own_cpu_s() < end)
		;
}

static void read_calls(int64_t bytes)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	for (int64_t remaining = bytes; remaining > 0;)
		remaining -= (int64_t)counted_read(fd, block,
						   (size_t)(remaining < BLOCK ? remaining : BLOCK));
	(void)close(fd);
}

static void write_calls(int64_t bytes)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	for (int64_t remaining = bytes; remaining > 0; remaining -= BLOCK)
		counted_write(fd, block, (size_t)(remaining < BLOCK ? remaining : BLOCK));
	(void)close(fd);
}

/* tmpfs and ramfs are memory: nothing goes to storage. */
static bool has_storage(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC;
}

/* The kernel counts what goes to storage by pages. */
static int64_t page_bytes(void)
{
	return sysconf(_SC_PAGESIZE);
}

/* A file of these bytes in the working folder, on its disk; the open descriptor. */
static int store(int64_t bytes)
{
	static int number;
	char name[64];
	int fd;

	(void)snprintf(name, sizeof(name), STORE_NAME, (int)getpid(), number++);
	fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		die("%s: %s", name, strerror(errno));
	for (int64_t remaining = bytes; remaining > 0; remaining -= BLOCK)
		counted_write(fd, block, (size_t)(remaining < BLOCK ? remaining : BLOCK));
	if (fsync(fd) < 0)
		die("fsync: %s", strerror(errno));
	if (has_storage(fd))
		counts->to_storage_bytes +=
		    (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
	(void)unlink(name);
	return fd;
}

static void to_storage(int64_t bytes)
{
	(void)close(store(bytes));
}

/* From the disk, not from the page cache: the kernel is asked to forget the pages first. */
static void from_storage(int64_t bytes)
{
	int fd = store(bytes);

	if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
		die("posix_fadvise: not taken");
	if (lseek(fd, 0, SEEK_SET) < 0)
		die("lseek: %s", strerror(errno));
	for (int64_t remaining = bytes; remaining > 0;)
		remaining -= (int64_t)counted_read(fd, block,
						   (size_t)(remaining < BLOCK ? remaining : BLOCK));
	counts->from_storage_bytes += has_storage(fd) ? bytes : 0;
	(void)close(fd);
}

static void memory(int64_t bytes, double seconds)
{
	char *area =
	    mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	for (int64_t at = 0; at < bytes; at += 4096)
		area[at] = 1;
	if (bytes > counts->memory_bytes)
		counts->memory_bytes = bytes;
	sleep_s(seconds);
	(void)munmap(area, (size_t)bytes);
}

#endif
