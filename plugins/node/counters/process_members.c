#include "counters/process_members.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/kernel_uapi.h"
#include "counters/parse.h"
#include "counters/process_alive.h"
#include "counters/process_table.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* --- one process --- */

#define NO_OWNER ((uid_t)-1)

static uid_t owner_of(const struct sy_processes *all, pid_t pid)
{
	char name[16];
	struct stat st;

	(void)snprintf(name, sizeof(name), "%d", pid);
	return fstatat(all->proc, name, &st, 0) < 0 ? NO_OWNER : st.st_uid;
}

static bool read_name(struct sy_processes *all, pid_t pid, char name[SY_NAME_SIZE])
{
	ssize_t length = sy_process_file(all, pid, "comm", NULL, name, SY_NAME_SIZE);

	if (length <= 0)
		return false;
	name[strcspn(name, "\n")] = '\0';
	return *name;
}

static bool is_named(struct sy_processes *all, pid_t pid, const char *expected)
{
	char name[SY_NAME_SIZE];

	return *expected && read_name(all, pid, name) && !strcmp(name, expected);
}

static bool read_stat(struct sy_processes *all, pid_t pid, struct sy_stat *stat)
{
	char text[1024];

	return sy_process_file(all, pid, "stat", NULL, text, sizeof(text)) > 0 &&
	       sy_parse_stat(text, stat) == 0;
}

bool sy_process_is_in_cgroup(struct sy_processes *all, pid_t pid, const char *controller)
{
	char text[4096];

	return all->cgroup && sy_process_file(all, pid, "cgroup", NULL, text, sizeof(text)) > 0 &&
	       sy_parse_in_cgroup(text, all->cgroup, controller) == 0;
}

/* --- sessions --- */

static bool is_of_session(const struct sy_processes *all, pid_t session)
{
	for (int i = 0; i < all->sessions; i++)
		if (all->session[i] == session)
			return true;
	return false;
}

void sy_processes_add_session(struct sy_processes *all, pid_t session)
{
	if (!is_of_session(all, session) && all->sessions < SY_MAX_SESSIONS)
		all->session[all->sessions++] = session;
}

/* --- daemons of Slurm's steps --- */

void sy_processes_use_extern_daemon(struct sy_processes *all, pid_t pid)
{
	all->extern_daemon = pid;
	if (pid == 0 || !read_name(all, pid, all->daemon_name))
		all->daemon_name[0] = '\0';
}

bool sy_process_has_daemon_name(struct sy_processes *all, pid_t pid)
{
	return is_named(all, pid, all->daemon_name);
}

bool sy_process_is_step_daemon(struct sy_processes *all, pid_t pid, pid_t ppid)
{
	return sy_process_has_daemon_name(all, pid) && owner_of(all, pid) == 0 &&
	       !sy_process_has_daemon_name(all, ppid);
}

/* The extern step's daemon is in the job's cgroup, with a `sleep` that it has started. A daemon
 * that also starts the job's tasks is a root. */
static bool is_extern_step(struct sy_processes *all, pid_t pid, pid_t ppid)
{
	if (!all->extern_daemon || (pid != all->extern_daemon && ppid != all->extern_daemon) ||
	    sy_process_find(all, all->extern_daemon))
		return false;
	if (ppid == all->extern_daemon)
		all->extern_sleep = pid;
	return true;
}

/* What a step's daemon forks once its last task has ended is the daemon's own (AdminComment). */
static bool is_work_of_daemon(struct sy_processes *all, pid_t pid, pid_t ppid)
{
	return sy_process_find(all, ppid)->done && sy_process_has_daemon_name(all, pid);
}

/* --- the daemon that starts tasks of PBS jobs --- */

#define EXPECT_US 10000000 /* between the daemon's fork and the job's program: a prologue */

void sy_processes_use_starter(struct sy_processes *all, pid_t pid, int events_fd)
{
	all->starter.events_fd = events_fd;
	all->fds_after -= SY_MAX_TASKS;
	all->starter.pid = pid;
	all->starter.expect_until_us = all->start_us + EXPECT_US;
	if (!read_name(all, pid, all->starter.name))
		all->starter.name[0] = '\0';
}

bool sy_processes_expect_task(const struct sy_processes *all, int64_t now_us)
{
	return all->starter.pid && now_us < all->starter.expect_until_us &&
	       (all->starter.undecided > 0 || !all->starter.found);
}

/* The daemon, a process it has forked off, or, once it is gone, its successor. While it lives
 * another daemon of its name is another node's, whatever the environment of its tasks has. */
static bool is_starter(struct sy_processes *all, pid_t pid)
{
	struct sy_stat stat;

	if (pid == all->starter.pid)
		return true;
	if (owner_of(all, pid) != 0 || !is_named(all, pid, all->starter.name))
		return false;
	return (read_stat(all, pid, &stat) && stat.ppid == all->starter.pid) ||
	       !is_named(all, all->starter.pid, all->starter.name);
}

enum marked { NOT_MARKED, MARKED, NO_ENVIRONMENT };

/* Its environment is its user's to write, so only the job's own user is trusted. In the middle of
 * an exec there is none. A child of the daemon needs the first mark alone: those behind it
 * distinguish daemons that share a machine, and a task that is started by TM from another task
 * (mpirun, pbs_tmrsh) may have the number of that one's node. */
static enum marked read_marks(struct sy_processes *all, pid_t pid, bool is_child)
{
	cleanup_close int fd = -1;
	char path[32];
	int found;

	(void)snprintf(path, sizeof(path), "%d/environ", (int)pid);
	fd = openat(all->proc, path, O_RDONLY | O_CLOEXEC);
	found =
	    fd < 0 ? -1 : sy_environment_has(fd, all->marks.text, is_child ? 1 : all->marks.count);
	if (found < 0)
		return NO_ENVIRONMENT;
	return found ? MARKED : NOT_MARKED;
}

/* Forked off by the daemon, and root's, or the user's already but not yet their program. */
static bool may_become_task(struct sy_processes *all, pid_t pid, uid_t owner, bool is_child)
{
	if (owner == 0 && is_child)
		return true;
	return (owner == 0 || owner == all->marks.owner) && is_named(all, pid, all->starter.name);
}

static void note_undecided(struct sy_processes *all, pid_t pid, bool is_child)
{
	struct sy_starter *starter = &all->starter;

	for (int i = 0; i < starter->undecided; i++)
		if (starter->child[i].pid == pid)
			return;
	if (starter->undecided == SY_MAX_UNDECIDED)
		return;
	starter->child[starter->undecided++] = (struct sy_undecided){pid, is_child};
	starter->expect_until_us = sy_now_us(CLOCK_MONOTONIC) + EXPECT_US;
}

/* Steelyard's programs around a job carry the marks of the daemon that started them. Without
 * this check a job of root's would include them. */
static bool is_own_program(struct sy_processes *all, pid_t pid, uid_t owner)
{
	return owner == 0 &&
	       (is_named(all, pid, "steelyard-node") || is_named(all, pid, all->daemon_name));
}

/* An orphan, or a child of the daemon. */
static bool is_marked_member(struct sy_processes *all, pid_t pid, pid_t ppid)
{
	enum marked marked = NOT_MARKED;
	bool is_orphan = ppid == 1, is_child = !is_orphan && ppid == all->starter.pid;
	uid_t owner;

	if (!is_orphan && (!all->starter.pid || !is_starter(all, ppid)))
		return false;
	owner = owner_of(all, pid);
	if (is_own_program(all, pid, owner))
		return false;
	if (owner == all->marks.owner)
		marked = read_marks(all, pid, is_child);
	if (!is_orphan && marked != MARKED &&
	    (marked == NO_ENVIRONMENT || may_become_task(all, pid, owner, is_child)))
		note_undecided(all, pid, is_child);
	return marked == MARKED;
}

/* The next undecided process that belongs to the job; 0: none. */
static pid_t next_decided(struct sy_processes *all, int *at)
{
	struct sy_starter *starter = &all->starter;

	while (*at < starter->undecided) {
		const struct sy_undecided child = starter->child[*at];
		uid_t owner = owner_of(all, child.pid);
		enum marked marked = owner == all->marks.owner
					 ? read_marks(all, child.pid, child.is_child)
					 : NOT_MARKED;

		if (marked != MARKED &&
		    (marked == NO_ENVIRONMENT || may_become_task(all, child.pid, owner, true))) {
			++*at;
			continue;
		}
		starter->child[*at] = starter->child[--starter->undecided];
		if (marked == MARKED)
			return child.pid;
	}
	return 0;
}

/* Have epoll report the task's end. */
static void watch_task(struct sy_processes *all, pid_t pid)
{
	struct sy_starter *starter = &all->starter;
	struct epoll_event event = {.events = EPOLLIN};
	bool has_room = starter->tasks < SY_MAX_TASKS && sy_process_find(all, pid);
	int fd = has_room ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	event.data.fd = fd;
	if (fd >= 0 && epoll_ctl(starter->events_fd, EPOLL_CTL_ADD, fd, &event) == 0) {
		starter->task[starter->tasks++] = (struct sy_task){pid, fd};
		return;
	}
	starter->lost++;
	if (fd >= 0)
		(void)close(fd);
}

/* A zombie still has its counters. Once the daemon has reaped it they are lost. */
static bool read_ended(struct sy_processes *all, pid_t pid)
{
	struct sy_process *process = sy_process_find(all, pid);

	if (!process || process->gone)
		return false;
	process->force = true;
	sy_process_read(all, process, SY_EVERYTHING);
	process->final = !process->gone;
	return process->final;
}

void sy_processes_read_ended_tasks(struct sy_processes *all)
{
	struct sy_starter *starter = &all->starter;

	for (int i = 0; i < starter->tasks;) {
		struct pollfd ended = {starter->task[i].fd, POLLIN, 0};

		if (poll(&ended, 1, 0) <= 0) {
			i++;
			continue;
		}
		starter->lost += !read_ended(all, starter->task[i].pid);
		(void)close(starter->task[i].fd);
		starter->task[i] = starter->task[--starter->tasks];
	}
}

/* --- new processes --- */

/* So many ids are tried one by one, 0.2 µs each; above that /proc is listed, 1 µs a process of the
 * node. */
#define FEW   1024
#define BATCH 512 /* looked at together */

struct newcomer {
	pid_t pid, ppid, session; /* pid 0: it has been added */
};

struct search {
	struct sy_processes *all;
	int64_t low, high; /* ids in (low, high], around the end of the ids when low > high */
	int count;
	struct newcomer newcomer[BATCH];
};

static bool in_range(const struct search *search, int64_t pid)
{
	if (search->low <= search->high)
		return pid > search->low && pid <= search->high;
	return pid > search->low || pid <= search->high;
}

/* Add a member that does not follow from its parent. The parent may still be a member, added a
 * moment ago. */
static void add_direct_member(struct sy_processes *all, const struct newcomer *c)
{
	bool parent_known = sy_process_find(all, c->ppid) != NULL;

	(void)sy_process_add(all, c->pid, false);
	if (!parent_known && c->session == c->pid)
		sy_processes_add_session(all, c->session);
	if (!parent_known && all->starter.pid && c->ppid != 1)
		watch_task(all, c->pid);
	all->named = all->starter.found = true;
}

/* A child may be before its parent in the list: go through it until nothing is new. */
static void add_children(struct search *search)
{
	bool added = true;

	while (added) {
		added = false;
		for (int i = 0; i < search->count; i++) {
			struct newcomer *c = &search->newcomer[i];

			if (!c->pid || !sy_process_find(search->all, c->ppid))
				continue;
			added |= !is_work_of_daemon(search->all, c->pid, c->ppid) &&
				 sy_process_add(search->all, c->pid, false) != NULL;
			c->pid = 0;
		}
	}
}

static bool is_direct_member(struct sy_processes *all, const struct newcomer *c)
{
	if (sy_process_is_in_cgroup(all, c->pid, NULL))
		return !sy_process_is_step_daemon(all, c->pid, c->ppid);
	return all->marks.count &&
	       (is_of_session(all, c->session) || is_marked_member(all, c->pid, c->ppid));
}

static bool add_members(struct search *search)
{
	bool any = false;

	for (int i = 0; i < search->count; i++) {
		struct newcomer *c = &search->newcomer[i];

		if (!c->pid || !is_direct_member(search->all, c))
			continue;
		add_direct_member(search->all, c);
		c->pid = 0;
		any = true;
	}
	return any;
}

/* Repeated, since members may have children in the same list: on a busy node a task and its
 * children are found at once. */
static void resolve_members(struct search *search)
{
	do {
		add_children(search);
	} while (add_members(search));
	search->count = 0;
}

static void check_process(struct search *search, pid_t pid)
{
	struct sy_processes *all = search->all;
	struct sy_stat stat;

	/* Most new ids are gone again, or are threads: the clock shows it at a tenth of the price.
	 */
	if (pid == all->ours[0] || pid == all->ours[1] || sy_process_find(all, pid) ||
	    sy_process_clock_ns(pid) < 0)
		return;
	if (!read_stat(all, pid, &stat) || is_extern_step(all, pid, stat.ppid))
		return;
	if (search->count == BATCH)
		resolve_members(search);
	search->newcomer[search->count++] = (struct newcomer){pid, stat.ppid, stat.session};
}

/* List /proc and check the ids in range, or all of them. */
static void walk_proc(struct search *search, bool everything)
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
				check_process(search, (pid_t)pid);
		}
	}
	resolve_members(search);
}

static int64_t read_last_pid(struct sy_processes *all)
{
	char text[128];
	int64_t last;

	if (!all->trust_loadavg || sy_read_counters(all->loadavg, text, sizeof(text)) <= 0)
		return -1;
	return sy_parse_loadavg(text, &last) < 0 ? -1 : last;
}

static void add_decided(struct sy_processes *all)
{
	int at = 0;
	pid_t pid;

	while ((pid = next_decided(all, &at))) {
		struct sy_stat stat;

		if (sy_process_find(all, pid) || !read_stat(all, pid, &stat))
			continue;
		add_direct_member(all, &(struct newcomer){pid, 0, stat.session});
		all->walk_all = true; /* for what it has started meanwhile */
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
	add_decided(all);
	last = read_last_pid(all);
	everything = all->walk_all || last < 0;
	search.low = all->last_pid_before;
	search.high = last;
	all->last_pid_before = all->last_pid;
	all->last_pid = last;
	all->walk_all = false;
	if (everything || search.low < 0) {
		walk_proc(&search, true);
	} else if (search.low < search.high && search.high - search.low <= FEW) {
		for (int64_t pid = search.low + 1; pid <= search.high; pid++)
			check_process(&search, (pid_t)pid);
		resolve_members(&search);
	} else if (search.low != search.high) {
		walk_proc(&search, false);
	}
}

void sy_processes_follow(struct sy_processes *all, pid_t pid)
{
	all->named = true;
	all->walk_all = true;
	(void)sy_process_add(all, pid, false);
}
