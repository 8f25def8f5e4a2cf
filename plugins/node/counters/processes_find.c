#include "counters/processes_find.h"

#include "base/file.h"
#include "counters/parse.h"
#include "counters/processes_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* So many ids are tried one by one, 0.2 µs each; above that /proc is listed, 1 µs a process of the
 * node. */
#define FEW   1024
#define BATCH 512 /* candidates looked at together */

struct candidate {
	pid_t pid, ppid;
};

struct search {
	struct sy_processes *all;
	int64_t low, high; /* ids in (low, high], around the end of the ids when low > high */
	int count;
	struct candidate candidate[BATCH];
};

static bool in_range(const struct search *search, int64_t pid)
{
	if (search->low <= search->high)
		return pid > search->low && pid <= search->high;
	return pid > search->low || pid <= search->high;
}

bool sy_process_is_in_cgroup(struct sy_processes *all, pid_t pid, const char *controller)
{
	char text[4096];

	return all->cgroup && sy_process_file(all, pid, "cgroup", NULL, text, sizeof(text)) > 0 &&
	       sy_parse_in_cgroup(text, all->cgroup, controller) == 0;
}

/* What a process was started with: words, each ended by a NUL. */
static bool has_word(const char *environment, ssize_t length, const char *word)
{
	for (const char *at = environment; at < environment + length; at += strlen(at) + 1)
		if (!strcmp(at, word))
			return true;
	return false;
}

/* Orphaned at birth, it was never seen below the job. Its environment is its user's to write, so
 * only the job's own user is believed. */
static bool is_marked_orphan(struct sy_processes *all, const struct candidate *c)
{
	static char text[65536];
	char name[16];
	struct stat st;
	ssize_t length;

	if (!all->marks.count || c->ppid != 1)
		return false;
	(void)snprintf(name, sizeof(name), "%d", c->pid);
	if (fstatat(all->proc, name, &st, 0) < 0 || st.st_uid != all->marks.owner)
		return false;
	length = sy_process_file(all, c->pid, "environ", NULL, text, sizeof(text));
	for (int i = 0; i < all->marks.count; i++)
		if (!has_word(text, length, all->marks.text[i]))
			return false;
	return true;
}

/* Its parent may be one that was added a moment ago, and it may be the parent of such. */
static void add_apart(struct search *search, const struct candidate *c)
{
	pid_t parent = sy_process_find(search->all, c->ppid) ? c->ppid : 0;

	(void)sy_process_add(search->all, c->pid, parent, false);
	sy_processes_ask_for_parents(search->all);
}

/* A child may stand before its parent in the list: go through it until nothing is new. */
static void resolve(struct search *search)
{
	bool added = true;

	while (added) {
		added = false;
		for (int i = 0; i < search->count; i++) {
			struct candidate *c = &search->candidate[i];

			if (!c->pid || !sy_process_find(search->all, c->ppid))
				continue;
			added |= sy_process_add(search->all, c->pid, c->ppid, false) != NULL;
			c->pid = 0;
		}
	}
	for (int i = 0; i < search->count; i++) {
		pid_t pid = search->candidate[i].pid;

		if (pid && (sy_process_is_in_cgroup(search->all, pid, NULL) ||
			    is_marked_orphan(search->all, &search->candidate[i])))
			add_apart(search, &search->candidate[i]);
		else if (pid && search->all->others_count < SY_MAX_OTHERS)
			search->all->others[search->all->others_count++] = pid;
	}
	search->count = 0;
}

/* Every id is looked at in two samples; whose it is need be found out only once. */
static bool is_known_other(const struct sy_processes *all, pid_t pid)
{
	for (int i = 0; i < all->others_before_count; i++)
		if (all->others_before[i] == pid)
			return true;
	return false;
}

/* The daemon of Slurm's extern step lies in the job's cgroup, with a `sleep` that it has started. A
 * daemon that also starts the job's tasks is a root. */
static bool keeps_the_place(struct sy_processes *all, pid_t pid, pid_t ppid)
{
	return all->keeper && (pid == all->keeper || ppid == all->keeper) &&
	       !sy_process_find(all, all->keeper);
}

static void look_at(struct search *search, pid_t pid)
{
	struct sy_processes *all = search->all;
	struct sy_stat stat;
	char text[1024];

	/* Most new ids are gone again, or are threads: the clock tells at a tenth of the price. */
	if (pid == all->ours[0] || pid == all->ours[1] || sy_process_clock_ns(pid) < 0 ||
	    sy_process_find(all, pid) || is_known_other(all, pid))
		return;
	if (sy_process_file(all, pid, "stat", NULL, text, sizeof(text)) < 0 ||
	    sy_parse_stat(text, &stat) < 0 || keeps_the_place(all, pid, stat.ppid))
		return;
	if (search->count == BATCH)
		resolve(search);
	search->candidate[search->count++] = (struct candidate){pid, stat.ppid};
}

/* List /proc and look at the ids that `wanted` tells. */
static void walk(struct search *search, bool everything)
{
	char buffer[8192] __attribute__((aligned(8)));
	long got;

	(void)lseek(search->all->proc, 0, SEEK_SET);
	while ((got = syscall(SYS_getdents64, search->all->proc, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < got;) {
			const struct sy_entry64 *entry = (const void *)(buffer + at);
			int64_t pid;

			at += entry->length;
			if (sy_parse_number(entry->name, &pid) == 0 &&
			    (everything || in_range(search, pid)))
				look_at(search, (pid_t)pid);
		}
	}
	resolve(search);
}

static int64_t read_last_pid(struct sy_processes *all)
{
	char text[128];
	int64_t last;
	ssize_t got;
	int fd = all->trust_loadavg ? all->loadavg : -1;

	if (fd < 0)
		return -1;
	got = pread(fd, text, sizeof(text) - 1, 0);
	if (got <= 0)
		return -1;
	text[got] = '\0';
	return sy_parse_loadavg(text, &last) < 0 ? -1 : last;
}

/* Ids between the last two samples are looked at once more: a process may have had its id before
 * it could be seen. */
void sy_processes_discover(struct sy_processes *all)
{
	struct search search = {.all = all, .count = 0};
	int64_t last = read_last_pid(all);
	bool everything = all->walk_all || last < 0;

	if (!all->named)
		return;
	search.low = all->last_pid_before;
	search.high = last;
	all->last_pid_before = all->last_pid;
	all->last_pid = last;
	all->walk_all = false;
	/* A new root or cgroup makes others ours. */
	all->others_before_count = everything ? 0 : all->others_count;
	memcpy(all->others_before, all->others, sizeof(pid_t) * (size_t)all->others_before_count);
	all->others_count = 0;
	if (everything || search.low < 0) {
		walk(&search, true);
	} else if (search.low < search.high && search.high - search.low <= FEW) {
		for (int64_t pid = search.low + 1; pid <= search.high; pid++)
			look_at(&search, (pid_t)pid);
		resolve(&search);
	} else if (search.low != search.high) {
		walk(&search, false);
	}
}
