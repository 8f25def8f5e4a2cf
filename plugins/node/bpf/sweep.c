#include "bpf/pins.h"

#include "base/file.h"
#include "bpf/job.h"
#include "bpf/system_call.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The remaining processes that have to do with a job. */
struct holders {
	uint64_t tasks, keepers;
};

/* A job's map can be opened only by its number. 0; 1: there is none; -1: it cannot be read. */
static int read_job(int jobs, uint64_t id, struct holders *holders)
{
	uint32_t number;
	cleanup_close int map = -1;
	struct sy_bpf_job *job;

	if (sy_bpf_lookup(jobs, &id, &number) < 0)
		return 1;
	map = sy_bpf_get_by_number(number);
	job = map < 0 ? MAP_FAILED : mmap(NULL, sizeof(*job), PROT_READ, MAP_SHARED, map, 0);
	if (job == MAP_FAILED)
		return -1;
	*holders = (struct holders){job->tasks, job->keepers};
	(void)munmap(job, sizeof(*job));
	return 0;
}

static bool has_keeper(int jobs, uint64_t id)
{
	struct holders job = {.keepers = 1};

	return read_job(jobs, id, &job) != 1 && job.keepers > 0;
}

/* --- the end --- */

/* A map whose values begin with their job. */
struct entries {
	const char *name;
	size_t key_size;
};

static void forget_in(const char *base, const struct entries *of, uint64_t job)
{
	char key[sizeof(struct sy_bpf_mark)], next[sizeof(key)];
	uint64_t value[sizeof(struct sy_bpf_member) / sizeof(uint64_t)]; /* the largest */
	cleanup_close int map = sy_bpf_open(base, of->name);
	bool more = map >= 0 && sy_bpf_next_key(map, NULL, key) == 0;

	while (more) {
		more = sy_bpf_next_key(map, key, next) == 0;
		if (sy_bpf_lookup(map, key, value) == 0 && value[0] == job)
			(void)sy_bpf_delete(map, key);
		memcpy(key, next, of->key_size);
	}
}

void sy_bpf_forget(const char *base, uint64_t job)
{
	/* First stop counting, then the timer, then what the timer reads. */
	static const char *const maps[] = {"jobs", "tickers", "queues", "lists"};
	/* Tasks whose ends the kernel did not show would be known until another has their address.
	 */
	static const struct entries others[] = {{"groups", sizeof(struct sy_bpf_group)},
						{"marks", sizeof(struct sy_bpf_mark)},
						{"tasks", sizeof(uint64_t)}};
	struct holders known = {.tasks = 1}; /* may have some */

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		cleanup_close int map = sy_bpf_open(base, maps[i]);

		if (map >= 0 && i == 0)
			(void)read_job(map, job, &known);
		if (map >= 0)
			(void)sy_bpf_delete(map, &job);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (i < 2 || known.tasks || known.keepers)
			forget_in(base, &others[i], job);
}

static void forget_jobs(const char *base, int jobs)
{
	uint64_t id, *after = NULL, previous;

	while (sy_bpf_next_key(jobs, after, &id) == 0) {
		if (has_keeper(jobs, id)) {
			previous = id;
			after = &previous;
			continue;
		}
		sy_bpf_forget(base, id);
	}
}

/* How many there are in a map with such keys; -1: it is not there. */
static int count_keys(int map)
{
	uint64_t key, *after = NULL;
	int count = 0;

	for (; map >= 0 && sy_bpf_next_key(map, after, &key) == 0; after = &key)
		count++;
	return map < 0 ? -1 : count;
}

int sy_bpf_count_jobs(const char *base)
{
	cleanup_close int jobs = sy_bpf_open(base, "jobs");

	return count_keys(jobs);
}

int sy_bpf_count_tasks(const char *base)
{
	cleanup_close int tasks = sy_bpf_open(base, "tasks");

	return count_keys(tasks);
}

static long long memory_of(int map)
{
	char path[64], text[1024];
	const char *found;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", map);
	found = sy_read_path(path, text, sizeof(text)) > 0 ? strstr(text, "memlock:") : NULL;
	return found ? strtoll(found + strlen("memlock:"), NULL, 10) : 0;
}

/* Of the maps of each job, which a map of maps has. */
static long long memory_within(int outer)
{
	uint64_t id, *after = NULL;
	uint32_t number;
	long long sum = 0;

	for (; sy_bpf_next_key(outer, after, &id) == 0; after = &id) {
		cleanup_close int map =
		    sy_bpf_lookup(outer, &id, &number) < 0 ? -1 : sy_bpf_get_by_number(number);

		sum += map < 0 ? 0 : memory_of(map);
	}
	return sum;
}

long long sy_bpf_memory(const char *base)
{
	static const char *const maps[] = {"jobs",  "queues",	"lists", /* of maps */
					   "tasks", "requests", "groups",
					   "marks", "unread",	"tickers"};
	long long sum = 0;

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		cleanup_close int map = sy_bpf_open(base, maps[i]);

		sum += map < 0 ? 0 : memory_of(map);
		sum += map >= 0 && i < SY_BPF_MAPS ? memory_within(map) : 0;
	}
	return sum;
}

/* An older layout of ours continues for its jobs. A leftover of an interrupted load is removed
 * at once. */
static void sweep_other_layouts(const char *base)
{
	const struct dirent *entry;
	cleanup_dir DIR *all = opendir(base);

	while (all && (entry = readdir(all))) {
		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, sy_bpf_folder()))
			continue;
		if (!sy_bpf_is_used(base, entry->d_name))
			sy_bpf_unpin(base, entry->d_name);
	}
}

int sy_bpf_forget_dead(const char *base)
{
	cleanup_close int jobs = sy_bpf_open(base, "jobs");

	if (jobs < 0)
		return 0;
	forget_jobs(base, jobs);
	return count_keys(jobs);
}

void sy_bpf_sweep(const char *base)
{
	if (sy_bpf_forget_dead(base) == 0 && !sy_bpf_is_used(base, sy_bpf_folder()))
		sy_bpf_unpin(base, sy_bpf_folder());
	sweep_other_layouts(base);
}
