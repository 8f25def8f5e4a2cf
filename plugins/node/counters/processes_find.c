#include "counters/processes_find.h"

#include "base/file.h"
#include "counters/parse.h"
#include "counters/processes_handed.h"
#include "counters/processes_read.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

/* So many ids are tried one by one, 0.2 µs each; above that /proc is listed, 1 µs a process of the
 * node. */
#define FEW   1024
#define BATCH 512 /* candidates looked at together */

struct candidate {
	pid_t pid, ppid, session;
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

/* Its parent may be one that was added a moment ago, and it may be the parent of such. */
static void add_apart(struct search *search, const struct candidate *c)
{
	bool apart = !sy_process_find(search->all, c->ppid);

	(void)sy_process_add(search->all, c->pid, false);
	if (apart && c->session == c->pid)
		sy_processes_session(search->all, c->session);
	if (apart && search->all->starter.pid && c->ppid != 1)
		sy_processes_head(search->all, c->pid);
	search->all->named = search->all->starter.found = true;
}

/* Whom a step's daemon forks off once its last task has ended is at the daemon's own work (on
 * AdminComment), and no task. */
static bool is_of_the_daemon(struct sy_processes *all, const struct candidate *c)
{
	return sy_process_find(all, c->ppid)->done && sy_process_is_task_to_be(all, c->pid);
}

/* A child may stand before its parent in the list: go through it until nothing is new. */
static void take_children(struct search *search)
{
	bool added = true;

	while (added) {
		added = false;
		for (int i = 0; i < search->count; i++) {
			struct candidate *c = &search->candidate[i];

			if (!c->pid || !sy_process_find(search->all, c->ppid))
				continue;
			added |= !is_of_the_daemon(search->all, c) &&
				 sy_process_add(search->all, c->pid, false) != NULL;
			c->pid = 0;
		}
	}
}

static bool is_apart(struct sy_processes *all, const struct candidate *c)
{
	if (sy_process_is_in_cgroup(all, c->pid, NULL))
		return !sy_process_is_fellow(all, c->pid, c->ppid);
	return sy_process_is_handed(all, c->pid, c->ppid, c->session);
}

/* Those that are the job's whatever their parent is; false: none. */
static bool take_apart(struct search *search)
{
	bool any = false;

	for (int i = 0; i < search->count; i++) {
		struct candidate *c = &search->candidate[i];

		if (!c->pid || !is_apart(search->all, c))
			continue;
		add_apart(search, c);
		c->pid = 0;
		any = true;
	}
	return any;
}

/* Who was taken apart may have children in the same list: on a busy node a task and what it has
 * started are found at once. */
static void resolve(struct search *search)
{
	do {
		take_children(search);
	} while (take_apart(search));
	search->count = 0;
}

/* The daemon of Slurm's extern step lies in the job's cgroup, with a `sleep` that it has started. A
 * daemon that also starts the job's tasks is a root. */
static bool keeps_the_place(struct sy_processes *all, pid_t pid, pid_t ppid)
{
	if (!all->keeper || (pid != all->keeper && ppid != all->keeper) ||
	    sy_process_find(all, all->keeper))
		return false;
	if (ppid == all->keeper)
		all->kept_place = pid;
	return true;
}

static void look_at(struct search *search, pid_t pid)
{
	struct sy_processes *all = search->all;
	struct sy_stat stat;
	char text[1024];

	/* Most new ids are gone again, or are threads: the clock tells at a tenth of the price. */
	if (pid == all->ours[0] || pid == all->ours[1] || sy_process_find(all, pid) ||
	    sy_process_clock_ns(pid) < 0)
		return;
	if (sy_process_file(all, pid, "stat", NULL, text, sizeof(text)) < 0 ||
	    sy_parse_stat(text, &stat) < 0 || keeps_the_place(all, pid, stat.ppid))
		return;
	if (search->count == BATCH)
		resolve(search);
	search->candidate[search->count++] = (struct candidate){pid, stat.ppid, stat.session};
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

/* What the daemon had forked off before has become the user's program. */
static void look_again(struct search *search)
{
	int at = 0;
	pid_t pid;

	while ((pid = sy_process_next_handed(search->all, &at))) {
		struct candidate found = {pid, 0, 0};
		struct sy_stat stat;
		char text[1024];

		if (sy_process_find(search->all, pid) ||
		    sy_process_file(search->all, pid, "stat", NULL, text, sizeof(text)) < 0 ||
		    sy_parse_stat(text, &stat) < 0)
			continue;
		found.session = stat.session;
		add_apart(search, &found);
		search->all->walk_all = true; /* for what it has started meanwhile */
	}
}

/* Ids between the last two samples are looked at once more: a process may have had its id before
 * it could be seen. */
void sy_processes_discover(struct sy_processes *all)
{
	struct search search = {.all = all, .count = 0};
	int64_t last;
	bool everything;

	if (!all->named && !all->starter.pid)
		return;
	look_again(&search);
	last = read_last_pid(all);
	everything = all->walk_all || last < 0;
	search.low = all->last_pid_before;
	search.high = last;
	all->last_pid_before = all->last_pid;
	all->last_pid = last;
	all->walk_all = false;
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

void sy_processes_follow(struct sy_processes *all, pid_t pid)
{
	all->named = true;
	all->walk_all = true;
	(void)sy_process_add(all, pid, false);
}
