#include "loader.h"

#include "base/file.h"
#include "base/rights.h"
#include "bpf/job.h"
#include "bpf/pins.h"
#include "job_usage_object.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char
    first_message[256]; /* libbpf's first message of this attempt: later ones follow from it */

__attribute__((format(printf, 2, 0))) static int
keep_first_message(enum libbpf_print_level level, const char *format, va_list list)
{
	if (level == LIBBPF_WARN && !first_message[0])
		(void)vsnprintf(first_message, sizeof(first_message), format, list);
	first_message[strcspn(first_message, "\n")] = '\0';
	return 0;
}

static const char *const called[] = {"read_job", "join", "set_ticks"};
#define CALLED (sizeof(called) / sizeof(called[0]))

/* The object, or NULL. */
static struct bpf_object *load(unsigned tasks, struct sy_error *err)
{
	LIBBPF_OPTS(bpf_object_open_opts, named, .object_name = "steelyard");
	struct bpf_object *object;
	int result = -EINVAL;

	libbpf_set_print(keep_first_message);
	first_message[0] = '\0';
	object = bpf_object__open_mem(sy_object, sizeof(sy_object), &named);
	if (object) {
		if (tasks)
			(void)bpf_map__set_max_entries(
			    bpf_object__find_map_by_name(object, "tasks"), tasks);
		result = bpf_object__load(object);
	}
	if (result == 0)
		return object;
	bpf_object__close(object);
	(void)sy_fail(err, "the kernel does not take the program that counts: %s: %s",
		      strerror(-result), first_message);
	return NULL;
}

/* What ends a life before what begins one: nothing is counted of which the end is not seen. */
static const char *const attached[] = {"adopt",	 "on_free",	"on_exit",   "on_exec",
				       "on_new", "adopt_group", "on_attach", "on_handed"};
#define ATTACHED (sizeof(attached) / sizeof(attached[0]))

/* --- pinned --- */

static int pin_maps(const struct bpf_object *object, const char *folder)
{
	static const char *const maps[] = {"tasks",  "jobs",  "queues", "lists",  "requests",
					   "groups", "marks", "unread", "tickers"};
	char path[SY_BPF_PATH + 32];

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, maps[i]);
		if (bpf_map__pin(bpf_object__find_map_by_name(object, maps[i]), path) < 0)
			return -1;
	}
	return 0;
}

/* A pinned link stays attached when it is closed. */
static int attach_and_pin(const struct bpf_object *object, const char *name, const char *path)
{
	struct bpf_link *link = bpf_program__attach(bpf_object__find_program_by_name(object, name));
	int result = link ? bpf_link__pin(link, path) : -1, error = errno;

	(void)bpf_link__destroy(link);
	errno = error;
	return result;
}

static int pin_programs(const struct bpf_object *object, const char *folder)
{
	char path[SY_BPF_PATH + 32];

	for (size_t i = 0; i < ATTACHED; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, attached[i]);
		if (attach_and_pin(object, attached[i], path) < 0)
			return -1;
	}
	for (size_t i = 0; i < CALLED; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, called[i]);
		if (bpf_program__pin(bpf_object__find_program_by_name(object, called[i]), path) < 0)
			return -1;
	}
	return 0;
}

/* All of it appears at once, under its name. */
static int pin(const struct bpf_object *object, const char *base, struct sy_error *err)
{
	char loading[SY_BPF_PATH], folder[SY_BPF_PATH];

	(void)snprintf(loading, sizeof(loading), "%s/" SY_BPF_LOADING, base);
	(void)snprintf(folder, sizeof(folder), "%s/%s", base, sy_bpf_folder());
	sy_bpf_unpin(base, SY_BPF_LOADING);
	if (mkdir(loading, 0700) < 0)
		return sy_fail_errno(err, errno, "cannot make %s", loading);
	if (pin_maps(object, loading) == 0 && pin_programs(object, loading) == 0 &&
	    rename(loading, folder) == 0)
		return 0;
	(void)sy_fail_errno(err, errno, "cannot pin into %s: %s", loading, first_message);
	sy_bpf_unpin(base, SY_BPF_LOADING);
	return -1;
}

int sy_loader_pin(const char *base, unsigned tasks, struct sy_error *err)
{
	struct bpf_object *object;
	int result;

	if (sy_bpf_count_jobs(base) >= 0)
		return 0;
	object = load(tasks, err);
	if (!object)
		return -1;
	result = pin(object, base, err);
	bpf_object__close(object);
	return result;
}

#define ABOVE	  "/sys/fs/bpf"
#define PERIOD_US 1000000

/* A bpf filesystem that disappears with this process, however the process ends. */
static int mount_private_bpffs(struct sy_error *err)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return sy_fail_errno(err, errno, "cannot be tried in a mount namespace of its own");
	if (mount("bpf", ABOVE, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700") < 0)
		return sy_fail_errno(err, errno, "cannot mount a bpf filesystem on " ABOVE);
	return 0;
}

static int load_privately(unsigned tasks, struct sy_error *err)
{
	cleanup_close int lock = sy_bpf_lock(SY_BPF_BASE, true, SY_BPF_PATIENCE_MS, err);

	return lock < 0 ? -1 : sy_loader_pin(SY_BPF_BASE, tasks, err);
}

/* All requests that a sampler makes while a job runs. */
static int run_requests(struct sy_bpf *bpf, struct sy_error *err)
{
	struct sy_bpf_answer answer;
	int result = sy_bpf_adopt(bpf, getppid(), SY_BPF_ROOT, -1, err);

	if (result < 0)
		return -1;
	result = sy_bpf_set_ticks(bpf, PERIOD_US);
	if (result == 0)
		result = sy_bpf_read(bpf, SY_BPF_BRIEF, &answer);
	return result < 0 ? sy_fail_errno(err, -result, "a job cannot be read") : 0;
}

static int run_as_sampler(struct sy_bpf_trial *trial)
{
	struct sy_error reason;
	struct sy_bpf bpf;

	if (sy_bpf_begin(&bpf, SY_BPF_BASE, 0, SY_BPF_KEEPER, SY_BPF_PATIENCE_MS, &trial->message) <
	    0)
		return -1;
	trial->right = sy_bpf_needs_right(&bpf);
	if (sy_rights_drop(trial->right, &trial->message) < 0)
		return -1;
	if (run_requests(&bpf, &reason) < 0)
		return sy_fail(&trial->message, "%s, with no more rights than a sampler keeps",
			       reason.text);
	return 0;
}

static void set_summary(struct sy_bpf_trial *trial)
{
	(void)sy_fail(&trial->message, "the kernel counts what jobs use%s",
		      trial->right ? "; samplers keep the right CAP_BPF, without which this kernel "
				     "refuses bpf(2) (kernel.unprivileged_bpf_disabled)"
				   : "");
}

static int run_trial(unsigned tasks, struct sy_bpf_trial *trial)
{
	if (mount_private_bpffs(&trial->message) < 0 ||
	    load_privately(tasks, &trial->message) < 0 || run_as_sampler(trial) < 0)
		return -1;
	set_summary(trial);
	return 0;
}

/* The result of a child that has dropped its rights. */
static int read_trial(pid_t child, int from, struct sy_bpf_trial *trial)
{
	bool complete = read(from, trial, sizeof(*trial)) == (ssize_t)sizeof(*trial);
	int status = -1;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	if (!complete)
		(void)sy_fail(&trial->message,
			      "it was tried, and the trial ended before it reported");
	return complete && status == 0 ? 0 : -1;
}

int sy_bpf_try(unsigned tasks, struct sy_bpf_trial *trial)
{
	int ends[2], result;
	pid_t child;

	*trial = (struct sy_bpf_trial){0};
	if (pipe(ends) < 0)
		return sy_fail_errno(&trial->message, errno, "cannot make a pipe");
	child = fork();
	if (child == 0) {
		result = run_trial(tasks, trial) < 0;
		result |= write(ends[1], trial, sizeof(*trial)) < 0;
		_exit(result);
	}
	(void)close(ends[1]);
	result = child < 0 ? sy_fail_errno(&trial->message, errno, "cannot fork")
			   : read_trial(child, ends[0], trial);
	(void)close(ends[0]);
	return result;
}
