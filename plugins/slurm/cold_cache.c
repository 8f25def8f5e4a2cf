#include "cold_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "node_command.h"

#define LIMIT_MS 30000 /* dropping 100 GB of page cache takes some 10 s */

static void mark_path(char *path, size_t size, const struct sy_config *config,
		      const struct sy_step *step)
{
	(void)snprintf(path, size, "%s/%s.%u.cold", config->run_dir, step->node, step->job_id);
}

/* Locked: a step beside the one that drops them waits, else it would begin before they are cold. */
static int open_mark(const struct sy_config *config, const struct sy_step *step,
		     struct sy_error *err)
{
	static const struct timespec pause = {.tv_nsec = 10000000};
	char path[2 * SY_PATH_SIZE];
	int fd;

	mark_path(path, sizeof(path), config, step);
	fd = open(path, O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot open %s", path);
	for (int waited_ms = 0; waited_ms < LIMIT_MS; waited_ms += 10) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return fd;
		(void)nanosleep(&pause, NULL);
	}
	(void)close(fd);
	return sy_fail(err, "another step of the job has been dropping caches for %d s",
		       LIMIT_MS / 1000);
}

void sy_cold_cache_forget(const struct sy_config *config, const struct sy_step *step)
{
	char path[2 * SY_PATH_SIZE];

	mark_path(path, sizeof(path), config, step);
	(void)unlink(path);
}

/* Of the answer, what the record has (docs/formats.md part 1). */
static int tell_sampler(const char *text, struct sy_outbox *outbox, struct sy_error *err)
{
	static const char *const fields[] = {"requested", "done", "refused"};
	json_t *answer = json_loads(text, 0, NULL), *told = json_object();
	cleanup_free char *line = NULL;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		json_t *value = json_object_get(answer, fields[i]);

		if (value)
			(void)json_object_set(told, fields[i], value);
	}
	line = json_dumps(told, JSON_COMPACT | JSON_ENSURE_ASCII);
	if (line && answer)
		sy_outbox_send(outbox, "cache %s", line);
	json_decref(told);
	if (!answer)
		return sy_fail(err, "what steelyard-node said is no JSON: %.80s", text);
	json_decref(answer);
	return 0;
}

static int drop(const struct sy_config *config, const struct sy_step *step,
		const struct sy_job_facts *facts, struct sy_outbox *outbox, struct sy_error *err)
{
	static struct sy_command command;
	char out[SY_MESSAGE_MAX];

	sy_command_begin(&command, config, "cache", "--cold");
	sy_command_asker(&command, config, step, facts);
	if (sy_command_run(&command, LIMIT_MS, out, sizeof(out), err) < 0)
		return -1;
	return tell_sampler(out, outbox, err);
}

int sy_cold_cache_make(const struct sy_config *config, const struct sy_step *step,
		       const struct sy_job_facts *facts, struct sy_outbox *outbox,
		       struct sy_error *err)
{
	cleanup_close int mark = open_mark(config, step, err);
	char done;

	if (mark < 0)
		return -1;
	if (read(mark, &done, 1) == 1)
		return 0;
	if (drop(config, step, facts, outbox, err) < 0)
		return -1;
	if (write(mark, "1", 1) != 1)
		return sy_fail_errno(err, errno, "cannot note that caches were dropped");
	return 0;
}
