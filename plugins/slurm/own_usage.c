#include "own_usage.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "file.h"

bool sy_own_usage_read(struct sy_own_usage *usage)
{
	static const char *const names[] = {"rchar:", "wchar:", "\nread_bytes:", "\nwrite_bytes:"};
	struct rusage children;
	char text[1024];
	cleanup_close int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || sy_read_fd(fd, text, sizeof(text)) <= 0 ||
	    getrusage(RUSAGE_CHILDREN, &children) != 0)
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *at = strstr(text, names[i]);

		if (!at)
			return false;
		usage->io[i] = strtoll(at + strlen(names[i]), NULL, 10);
	}
	usage->cpu_us = (long long)(children.ru_utime.tv_sec + children.ru_stime.tv_sec) * 1000000 +
			children.ru_utime.tv_usec + children.ru_stime.tv_usec;
	return true;
}
