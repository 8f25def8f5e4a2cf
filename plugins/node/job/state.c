#include "job/state.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json_document.h"
#include "counters/process_alive.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define SIZE 8192

static int open_folder(const char *run_dir, bool make, struct sy_error *err)
{
	return sy_folder_below(run_dir, "job", make, err);
}

/* Lock the file. Its previous owner may have removed it meanwhile. */
static int lock_file(struct sy_job_state *state, bool make, int patience_ms, time_t *written_unix_s,
		     struct sy_error *err)
{
	int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (make ? O_CREAT : 0);
	struct stat info;

	for (;;) {
		state->fd = openat(state->folder, state->name, flags, 0600);
		if (state->fd < 0 && errno == ENOENT && !make)
			return 1;
		if (state->fd < 0)
			return sy_fail_errno(err, errno, "cannot open the state %s", state->name);
		if (!sy_lock(state->fd, patience_ms))
			return sy_fail(err, "somebody else has been at work for this job for %d ms",
				       patience_ms);
		if (fstat(state->fd, &info) == 0 && info.st_nlink > 0)
			break;
		(void)close(state->fd);
	}
	*written_unix_s = info.st_mtime;
	return 0;
}

static json_t *read_json(int fd)
{
	char text[SIZE];
	json_t *json = sy_read_fd(fd, text, sizeof(text)) > 0
			   ? json_loads(text, JSON_DISABLE_EOF_CHECK, NULL)
			   : NULL;

	if (json_is_object(json))
		return json;
	json_decref(json);
	return json_object();
}

/* By a clock that nobody sets. One of before the last boot is at least as old as that. */
static double age_s(const json_t *json, time_t written_unix_s)
{
	const json_t *written = json_object_get(json, "written_boot_s");
	double now_s = sy_now_s(CLOCK_BOOTTIME);

	if (!json_is_number(written))
		return (double)(time(NULL) - written_unix_s);
	return now_s < json_number_value(written) ? now_s : now_s - json_number_value(written);
}

int sy_job_state_open(struct sy_job_state *state, const char *run_dir, const char *node,
		      const char *job_id, bool make, int patience_ms, struct sy_error *err)
{
	int length = snprintf(state->name, sizeof(state->name), "%s.%s.json", node, job_id), result;

	time_t written_unix_s = 0;

	state->folder = state->fd = -1;
	state->json = NULL;
	if (length > 250 || !sy_is_file_word(node) || !sy_is_file_word(job_id))
		return sy_fail(err,
			       "expected a node and a job id that can be part of a file's name");
	state->folder = open_folder(run_dir, make, err);
	if (state->folder < 0)
		return errno == ENOENT && !make ? 1 : -1;
	result = lock_file(state, make, patience_ms, &written_unix_s, err);
	if (result == 0)
		state->json = read_json(state->fd);
	state->age_s = age_s(state->json, written_unix_s);
	return result;
}

/* Written over the old text first, then cut: at every moment it begins with a complete object. */
int sy_job_state_save(struct sy_job_state *state, struct sy_error *err)
{
	double now_s = sy_now_s(CLOCK_BOOTTIME);
	int unknown = json_object_set_new(state->json, "written_boot_s", json_real(now_s));
	cleanup_free char *text =
	    unknown ? NULL : sy_json_dump(state->json, JSON_COMPACT | JSON_ENSURE_ASCII);
	size_t length = text ? strlen(text) : 0;

	if (!text || length >= SIZE)
		return sy_fail(err, "the state %s is too large", state->name);
	if (pwrite(state->fd, text, length, 0) != (ssize_t)length ||
	    ftruncate(state->fd, (off_t)length) != 0)
		return sy_fail_errno(err, errno, "cannot write the state %s", state->name);
	return 0;
}

void sy_job_state_remove(struct sy_job_state *state)
{
	if (state->fd >= 0)
		(void)unlinkat(state->folder, state->name, 0);
}

void sy_job_state_close(struct sy_job_state *state)
{
	if (state->fd >= 0)
		(void)close(state->fd);
	if (state->folder >= 0)
		(void)close(state->folder);
	json_decref(state->json);
	*state = SY_JOB_STATE_NONE;
}

void sy_job_state_set_process(struct sy_job_state *state, const char *key, pid_t pid)
{
	(void)json_object_set_new(state->json, key,
				  json_pack("{sIsI}", "pid", (json_int_t)pid, "start_ticks",
					    pid ? (json_int_t)sy_start_ticks(pid) : 0));
}

pid_t sy_job_state_process(const struct sy_job_state *state, const char *key)
{
	const json_t *process = json_object_get(state->json, key);
	pid_t pid = (pid_t)json_integer_value(json_object_get(process, "pid"));
	int64_t ticks = pid > 0 ? sy_start_ticks(pid) : -1;

	return ticks == SY_TICKS_NOT_READ ||
		       (ticks >= 0 &&
			ticks == json_integer_value(json_object_get(process, "start_ticks")))
		   ? pid
		   : 0;
}

bool sy_job_state_is_process(const struct sy_job_state *state, const char *key, pid_t pid)
{
	return pid == sy_job_state_process(state, key);
}

/* By the job's own mark: one that TM has started for another node's process has that node's number.
 */
bool sy_job_state_job_lives(const struct sy_job_state *state)
{
	const json_t *uid = json_object_get(state->json, "user_id");
	const char *mark =
	    json_string_value(json_array_get(json_object_get(state->json, "marks"), 0));

	return mark && json_is_integer(uid) &&
	       sy_marked_process_lives((uid_t)json_integer_value(uid), &mark, 1);
}

json_t *sy_job_states(const char *run_dir, const char *node)
{
	int folder = open_folder(run_dir, false, NULL);
	cleanup_dir DIR *dir = folder < 0 ? NULL : fdopendir(folder);
	json_t *list = json_array();
	size_t length = strlen(node);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		const char *name = entry->d_name;

		if (strncmp(name, node, length) == 0 && name[length] == '.' &&
		    strlen(name) > length + 6 && sy_ends_with(name, ".json"))
			(void)json_array_append_new(
			    list, json_stringn(name + length + 1, strlen(name) - length - 6));
	}
	return list;
}
