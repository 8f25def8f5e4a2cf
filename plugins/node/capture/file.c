#include "capture/file.h"

#include "base/document.h"
#include "base/file.h"
#include "base/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define TRIES 100 /* seconds ahead in which a free START is looked for */

static int give(const struct sy_capture *capture, int fd, struct sy_error *err)
{
	if (capture->has_owner && fchown(fd, capture->owner_uid, capture->owner_gid) < 0)
		return sy_fail_errno(err, errno, "cannot give the capture to the job's user");
	return 0;
}

int sy_capture_make(const struct sy_capture *capture, char name[320], struct sy_error *err)
{
	cleanup_close int folder =
	    sy_job_folder_of_record(capture->record_dir, capture->job_id, capture->node, err);
	time_t start = time(NULL);
	int fd = -1;

	if (folder < 0)
		return -1;
	for (int i = 0; i < TRIES && fd < 0; i++) {
		(void)snprintf(name, 320, "%s.%lld.pcapng", capture->node, (long long)start + i);
		/* Not 0440: on many clusters all users are in one group. */
		fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot make %s in the record folder", name);
	if (give(capture, fd, err) < 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static int open_folder(const struct sy_capture *capture, struct sy_error *err)
{
	cleanup_close int top = -1;
	int fd;

	if (mkdir(capture->run_dir, 0755) < 0 && errno != EEXIST)
		return sy_fail_errno(err, errno, "cannot make the folder %s", capture->run_dir);
	top = open(capture->run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return sy_fail_errno(err, errno, "cannot open the folder %s", capture->run_dir);
	if (sy_folder_check(top, capture->run_dir, err) < 0)
		return -1;
	if (mkdirat(top, "capture", 0700) < 0 && errno != EEXIST)
		return sy_fail_errno(err, errno, "cannot make %s/capture", capture->run_dir);
	fd = openat(top, "capture", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? sy_fail_errno(err, errno, "cannot open %s/capture", capture->run_dir) : fd;
}

static void name_state(const struct sy_capture *capture, const char *ending, char name[420])
{
	(void)snprintf(name, 420, "%s.%s.%s", capture->node, capture->job_id, ending);
}

/* `held`: where to put the descriptor, locked; NULL: it is closed. */
static int write_state(int folder, const char *name, const json_t *document, int *held)
{
	cleanup_free char *text = sy_json_dump(document, JSON_COMPACT);
	char temporary[420];
	cleanup_close int fd = -1;

	(void)snprintf(temporary, sizeof(temporary), ".%.400s.tmp", name);
	fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || !text || sy_write_all(fd, text, strlen(text)) < 0)
		return -1;
	if (held && flock(fd, LOCK_EX | LOCK_NB) == 0) {
		*held = fd;
		fd = -1;
	}
	return renameat(folder, temporary, folder, name);
}

bool sy_capture_is_held(int folder, const char *name)
{
	cleanup_close int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;
}

int sy_capture_begin(const struct sy_capture *capture, const json_t *document, int *held,
		     struct sy_error *err)
{
	char name[420];
	cleanup_close int folder = -1;
	json_t *state;
	int written;

	if (!capture->run_dir)
		return 0;
	folder = open_folder(capture, err);
	if (folder < 0)
		return -1;
	name_state(capture, "json", name);
	state = json_copy((json_t *)document);
	(void)json_object_set_new(state, "pid", json_integer(getpid()));
	written = write_state(folder, name, state, held);
	json_decref(state);
	if (written < 0)
		return sy_fail_errno(err, errno, "cannot write %s/capture/%s", capture->run_dir,
				     name);
	return 0;
}

void sy_capture_stop(const char *run_dir, const char *node, const char *job_id)
{
	const struct sy_capture capture = {.run_dir = run_dir, .node = node, .job_id = job_id};
	cleanup_close int folder = -1, fd = -1;
	char path[512], name[420];
	json_t *state;
	pid_t pid;

	(void)snprintf(path, sizeof(path), "%s/capture", run_dir);
	name_state(&capture, "json", name);
	folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	fd = folder < 0 ? -1 : openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || !sy_capture_is_held(folder, name))
		return;
	state = sy_json_read_fd(fd);
	pid = (pid_t)json_integer_value(json_object_get(state, "pid"));
	if (pid > 1)
		(void)kill(pid, SIGTERM);
	json_decref(state);
}

void sy_capture_done(const struct sy_capture *capture, const json_t *document)
{
	cleanup_close int folder = capture->run_dir ? open_folder(capture, NULL) : -1;
	char name[420];

	name_state(capture, "done.json", name);
	if (folder >= 0)
		(void)write_state(folder, name, document, NULL);
	sy_capture_forget(capture);
}

void sy_capture_forget(const struct sy_capture *capture)
{
	cleanup_close int folder = capture->run_dir ? open_folder(capture, NULL) : -1;
	char name[420];

	name_state(capture, "json", name);
	if (folder >= 0)
		(void)unlinkat(folder, name, 0);
}
