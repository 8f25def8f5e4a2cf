#include "loader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "bpf/pins.h"
#include "job_usage_object.h"

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
