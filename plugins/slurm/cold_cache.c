#include "cold_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "job/conditions.h"
#include "options.h"
#include "sampler_launch.h"

static void mark_path(char *path, size_t size, const struct sy_config *config,
		      const struct sy_step *step)
{
	(void)snprintf(path, size, "%s/%s.%u.cold", config->node.run_dir, step->node, step->job_id);
}

/* Locked: another step waits until the caches are dropped, else it would begin with warm ones. */
static int open_mark(const struct sy_config *config, const struct sy_step *step, int64_t until_ms,
		     struct sy_error *err)
{
	char path[2 * SY_PATH_SIZE];
	int fd, limit_ms;

	mark_path(path, sizeof(path), config, step);
	fd = open(path, O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot open %s", path);
	limit_ms = sy_command_limit_ms(until_ms, SY_COLD_LIMIT_MS);
	if (sy_lock(fd, limit_ms))
		return fd;
	(void)close(fd);
	return sy_fail(err, "another step of the job has been dropping caches for %d s",
		       limit_ms / 1000);
}

void sy_cold_cache_forget(const struct sy_config *config, const struct sy_step *step)
{
	char path[2 * SY_PATH_SIZE];

	mark_path(path, sizeof(path), config, step);
	(void)unlink(path);
}

int sy_cold_cache_make(const struct sy_config *config, const struct sy_step *step,
		       const struct sy_job_facts *facts, int64_t until_ms,
		       struct sy_message_queue *queue, struct sy_error *err)
{
	cleanup_close int mark = open_mark(config, step, until_ms, err);
	char done;
	struct sy_command_job job = sy_slurm_command_job(config, step, facts);

	if (mark < 0)
		return -1;
	if (read(mark, &done, 1) == 1)
		return 0;
	job.until_ms = until_ms;
	if (sy_conditions_drop_caches(&job, sy_options.cvmfs_mb, queue, err) < 0)
		return -1;
	if (write(mark, "1", 1) != 1)
		return sy_fail_errno(err, errno, "cannot note that caches were dropped");
	return 0;
}
