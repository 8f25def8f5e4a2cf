#include "base/close_from.h"

#include "base/file.h"
#include "base/kernel.h"

#include <fcntl.h>
#include <sys/resource.h>

#define MOST_BLIND 65536 /* tries where the folder cannot be had */

/* "12"; -1 for "." and "..". */
static int number(const char *name)
{
	int value = *name >= '0' && *name <= '9' ? 0 : -1;

	for (; *name >= '0' && *name <= '9'; name++)
		value = value * 10 + (*name - '0');
	return value;
}

/* The kernel goes through that folder by number: what is closed meanwhile shifts nothing. */
static void close_listed(int folder, int first)
{
	char buffer[2048] __attribute__((aligned(8)));
	long got;

	while ((got = syscall(SYS_getdents64, folder, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < got;) {
			const struct sy_entry64 *entry = (const void *)(buffer + at);
			int fd = number(entry->name);

			if (fd >= first && fd != folder)
				(void)close(fd);
			at += entry->length;
		}
	}
}

static void close_all(int first)
{
	struct rlimit limit = {.rlim_cur = MOST_BLIND};

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	for (int fd = first; fd < MOST_BLIND && (rlim_t)fd < limit.rlim_cur; fd++)
		(void)close(fd);
}

void sy_close_from(int first)
{
	int folder;

	if (syscall(SYS_close_range, (unsigned)first, ~0U, 0) == 0)
		return;
	/* Before Linux 5.9, or a filter of system calls that does not know it. */
	folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0) {
		close_all(first);
		return;
	}
	close_listed(folder, first);
	(void)close(folder);
}
