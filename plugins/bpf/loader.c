#include "loader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "bpf/pins.h"
#include "job_usage_object.h"

#define MOST_LINKS 8

struct loaded {
	struct bpf_object *object;
	struct bpf_link *link[MOST_LINKS];
	int links;
};

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

static void unload(struct loaded *loaded)
{
	for (int i = 0; i < loaded->links; i++)
		(void)bpf_link__destroy(loaded->link[i]);
	loaded->links = 0;
	bpf_object__close(loaded->object);
	loaded->object = NULL;
}

static const char *const called[] = {"read_job", "join", "set_ticks"};
#define CALLED (sizeof(called) / sizeof(called[0]))

static int load(struct loaded *loaded, const struct sy_bpf_limits *limits, struct sy_error *err)
{
	LIBBPF_OPTS(bpf_object_open_opts, named, .object_name = "steelyard");
	int result = -EINVAL;

	libbpf_set_print(keep_first_message);
	first_message[0] = '\0';
	loaded->object = bpf_object__open_mem(sy_object, sizeof(sy_object), &named);
	if (loaded->object) {
		if (limits->tasks)
			(void)bpf_map__set_max_entries(
			    bpf_object__find_map_by_name(loaded->object, "tasks"), limits->tasks);
		result = bpf_object__load(loaded->object);
	}
	if (result == 0)
		return 0;
	unload(loaded);
	return sy_fail(err, "the kernel does not take the program that counts: %s: %s",
		       strerror(-result), first_message);
}

/* What ends a life before what begins one: nothing is counted of which the end is not seen. */
static int attach(struct loaded *loaded, const char *name, struct sy_error *err)
{
	struct bpf_program *program = bpf_object__find_program_by_name(loaded->object, name);
	struct bpf_link *link = bpf_program__attach(program);

	if (!link)
		return sy_fail_errno(err, errno, "cannot attach %s: %s", name, first_message);
	loaded->link[loaded->links++] = link;
	return 0;
}

static const char *const attached[] = {"adopt",	 "on_free",	"on_exit",   "on_exec",
				       "on_new", "adopt_group", "on_attach", "on_handed"};
#define ATTACHED (sizeof(attached) / sizeof(attached[0]))

static int attach_all(struct loaded *loaded, struct sy_error *err)
{
	for (size_t i = 0; i < ATTACHED; i++)
		if (attach(loaded, attached[i], err) < 0)
			return -1;
	return 0;
}

/* --- pinned --- */

static int pin_maps(const struct loaded *loaded, const char *folder)
{
	static const char *const maps[] = {"tasks",  "jobs",  "queues", "lists",  "requests",
					   "groups", "marks", "unread", "tickers"};
	size_t count = sizeof(maps) / sizeof(maps[0]);
	char path[SY_BPF_PATH + 32];

	for (size_t i = 0; i < count; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, maps[i]);
		if (bpf_map__pin(bpf_object__find_map_by_name(loaded->object, maps[i]), path) < 0)
			return -1;
	}
	return 0;
}

static int pin_program(const struct loaded *loaded, const char *folder, const char *name)
{
	char path[SY_BPF_PATH + 32];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	return bpf_program__pin(bpf_object__find_program_by_name(loaded->object, name), path);
}

/* As attach_all has them. */
static int pin_links(const struct loaded *loaded, const char *folder)
{
	char path[SY_BPF_PATH + 32];

	for (int i = 0; i < loaded->links; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, attached[i]);
		if (bpf_link__pin(loaded->link[i], path) < 0)
			return -1;
	}
	return 0;
}

static int pin_programs(const struct loaded *loaded, const char *folder)
{
	if (pin_links(loaded, folder) < 0)
		return -1;
	for (size_t i = 0; i < CALLED; i++)
		if (pin_program(loaded, folder, called[i]) < 0)
			return -1;
	return 0;
}

/* All of it appears at once, under its name. */
static int pin(struct loaded *loaded, const char *base, struct sy_error *err)
{
	char loading[SY_BPF_PATH], folder[SY_BPF_PATH];

	(void)snprintf(loading, sizeof(loading), "%s/" SY_BPF_LOADING, base);
	(void)snprintf(folder, sizeof(folder), "%s/%s", base, sy_bpf_folder());
	sy_bpf_unpin(base, SY_BPF_LOADING);
	if (mkdir(loading, 0700) < 0)
		return sy_fail_errno(err, errno, "cannot make %s", loading);
	if (pin_maps(loaded, loading) == 0 && attach_all(loaded, err) == 0 &&
	    pin_programs(loaded, loading) == 0 && rename(loading, folder) == 0)
		return 0;
	(void)sy_fail_errno(err, errno, "cannot pin into %s: %s", loading, first_message);
	sy_bpf_unpin(base, SY_BPF_LOADING);
	return -1;
}

int sy_loader_pin(const char *base, const struct sy_bpf_limits *limits, struct sy_error *err)
{
	struct loaded loaded = {0};
	int result;

	if (sy_bpf_count_jobs(base) >= 0)
		return 0;
	result = load(&loaded, limits, err);
	if (result == 0)
		result = pin(&loaded, base, err);
	unload(&loaded);
	return result;
}
