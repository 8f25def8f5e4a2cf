#include "exclusive.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* How many numbers a list like "0-3,8" names. */
static long list_length(const char *at)
{
	long count = 0;

	while (isdigit((unsigned char)*at)) {
		char *end;
		long first = strtol(at, &end, 10);
		long last = *end == '-' ? strtol(end + 1, &end, 10) : first;

		count += last - first + 1;
		at = end + (*end == ',');
	}
	return count;
}

/* Hardware threads of a core; 1 where the kernel does not tell. */
static long threads_per_core(void)
{
	char text[256];
	cleanup_close int fd = open("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
				    O_RDONLY | O_CLOEXEC);

	if (fd < 0 || sy_read_fd(fd, text, sizeof(text)) <= 0 || list_length(text) < 1)
		return 1;
	return list_length(text);
}

enum sy_exclusive sy_exclusive_of(spank_t spank, const char *node)
{
	char host[256] = "";
	char *cores = NULL;

	(void)gethostname(host, sizeof(host) - 1);
	host[strcspn(host, ".")] = '\0';
	if (strcmp(host, node) != 0)
		return SY_NOT_SAID;
	if (spank_get_item(spank, S_JOB_ALLOC_CORES, &cores) != ESPANK_SUCCESS || !cores)
		return SY_NOT_SAID;
	return list_length(cores) * threads_per_core() >= sysconf(_SC_NPROCESSORS_ONLN) ? SY_ALONE
											: SY_SHARED;
}
