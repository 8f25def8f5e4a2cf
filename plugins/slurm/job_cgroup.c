#include "job_cgroup.h"

#include <stdio.h>
#include <string.h>

size_t sy_job_cgroup_length(const char *path, unsigned job_id)
{
	char mark[32];
	const char *job;
	size_t length;

	length = (size_t)snprintf(mark, sizeof(mark), "/job_%u", job_id);
	job = strstr(path, mark);
	if (!job || (job[length] != '/' && job[length] != '\0' && job[length] != '\n'))
		return 0;
	return (size_t)(job - path) + length;
}

const char *sy_job_cgroup_find(const char *cgroups, unsigned job_id, size_t *length)
{
	for (const char *at = cgroups; at && (at = strstr(at, ":/")); at = strchr(at, '\n')) {
		*length = sy_job_cgroup_length(at + 1, job_id);
		if (*length > 0 && !memchr(at, '\n', *length + 1))
			return at + 1;
	}
	return NULL;
}
