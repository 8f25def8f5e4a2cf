#include "counters/processes_handed.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/kernel.h"
#include "counters/parse.h"
#include "counters/process_alive.h"
#include "counters/processes_read.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NOBODY_KNOWN ((uid_t)-1)
#define SOON_US	     10000000 /* between a daemon's fork and the job's program: a prologue */

/* Whose it is. */
static uid_t owner_of(const struct sy_processes *all, pid_t pid)
{
	char name[16];
	struct stat st;

	(void)snprintf(name, sizeof(name), "%d", pid);
	return fstatat(all->proc, name, &st, 0) < 0 ? NOBODY_KNOWN : st.st_uid;
}

static bool read_name(struct sy_processes *all, pid_t pid, char name[SY_NAME_SIZE])
{
	ssize_t length = sy_process_file(all, pid, "comm", NULL, name, SY_NAME_SIZE);

	if (length <= 0)
		return false;
	name[strcspn(name, "\n")] = '\0';
	return *name;
}

void sy_processes_starter(struct sy_processes *all, pid_t pid, int events_fd)
{
	all->starter.events_fd = events_fd;
	all->fds_left -= SY_MAX_HEADS;
	all->starter.pid = pid;
	all->starter.soon_until_us = all->start_us + SOON_US;
	if (!read_name(all, pid, all->starter.name))
		all->starter.name[0] = '\0';
}

void sy_processes_keeper(struct sy_processes *all, pid_t pid)
{
	all->keeper = pid;
	if (pid == 0 || !read_name(all, pid, all->keeper_name))
		all->keeper_name[0] = '\0';
}

bool sy_process_is_task_to_be(struct sy_processes *all, pid_t pid)
{
	char name[SY_NAME_SIZE];

	return all->keeper_name[0] && read_name(all, pid, name) && !strcmp(name, all->keeper_name);
}

bool sy_process_is_fellow(struct sy_processes *all, pid_t pid, pid_t ppid)
{
	return sy_process_is_task_to_be(all, pid) && owner_of(all, pid) == 0 &&
	       !sy_process_is_task_to_be(all, ppid);
}

void sy_processes_session(struct sy_processes *all, pid_t session)
{
	struct sy_starter *starter = &all->starter;

	for (int i = 0; i < starter->sessions; i++)
		if (starter->session[i] == session)
			return;
	if (starter->sessions < SY_MAX_SESSIONS)
		starter->session[starter->sessions++] = session;
}

enum marked { NOT_MARKED, MARKED, NOT_YET_TOLD };

/* Its environment is its user's to write, so only the job's own user is believed. In the middle of
 * an exec there is none. `own`: started by this very daemon, so the first mark tells: those behind
 * it part daemons that share a machine, and who starts a task by TM with his own environment
 * (mpirun, pbs_tmrsh) gives it the number of the node that he is on. */
static enum marked look_for_marks(struct sy_processes *all, pid_t pid, bool own)
{
	cleanup_close int fd = -1;
	char path[32];
	int found;

	(void)snprintf(path, sizeof(path), "%d/environ", (int)pid);
	fd = openat(all->proc, path, O_RDONLY | O_CLOEXEC);
	found = fd < 0 ? -1 : sy_environment_has(fd, all->marks.text, own ? 1 : all->marks.count);
	if (found < 0)
		return NOT_YET_TOLD;
	return found ? MARKED : NOT_MARKED;
}

static bool is_named_as_starter(struct sy_processes *all, pid_t pid)
{
	char name[SY_NAME_SIZE];

	return all->starter.name[0] && read_name(all, pid, name) &&
	       !strcmp(name, all->starter.name);
}

static pid_t parent_of(struct sy_processes *all, pid_t pid)
{
	char text[1024];
	struct sy_stat stat;

	return sy_process_file(all, pid, "stat", NULL, text, sizeof(text)) > 0 &&
		       sy_parse_stat(text, &stat) == 0
		   ? stat.ppid
		   : 0;
}

/* The daemon, a process it has forked off, or, once it is gone, the one that has come after it. As
 * long as it is there another one is another node's, whatever its tasks' environment says. */
static bool is_starter(struct sy_processes *all, pid_t pid)
{
	if (pid == all->starter.pid)
		return true;
	if (owner_of(all, pid) != 0 || !is_named_as_starter(all, pid))
		return false;
	return parent_of(all, pid) == all->starter.pid ||
	       !is_named_as_starter(all, all->starter.pid);
}

static bool is_of_session(const struct sy_processes *all, pid_t session)
{
	for (int i = 0; i < all->starter.sessions; i++)
		if (all->starter.session[i] == session)
			return true;
	return false;
}

static void look_again(struct sy_processes *all, pid_t pid, bool own)
{
	struct sy_starter *starter = &all->starter;

	for (int i = 0; i < starter->waiting; i++)
		if (starter->wait[i].pid == pid)
			return;
	if (starter->waiting == SY_MAX_WAITING)
		return;
	starter->wait[starter->waiting++] = (struct sy_waiting){.pid = pid, .own = own};
	starter->soon_until_us = sy_now_us(CLOCK_MONOTONIC) + SOON_US;
}

bool sy_processes_soon(const struct sy_processes *all, int64_t now_us)
{
	return all->starter.pid && now_us < all->starter.soon_until_us &&
	       (all->starter.waiting > 0 || !all->starter.found);
}

/* Forked off by the daemon, and root's, or the user's already but not yet his program. */
static bool may_become(struct sy_processes *all, pid_t pid, uid_t owner, bool child)
{
	if (owner == 0 && child)
		return true;
	return (owner == 0 || owner == all->marks.owner) && is_named_as_starter(all, pid);
}

/* What Steelyard starts around a job has the marks of the daemon that has started it; a job of
 * root's would be told from it by nothing else. */
static bool is_our_own(struct sy_processes *all, pid_t pid, uid_t owner)
{
	char name[SY_NAME_SIZE];

	return owner == 0 && read_name(all, pid, name) &&
	       (!strcmp(name, "steelyard-node") || !strcmp(name, all->keeper_name));
}

bool sy_process_is_handed(struct sy_processes *all, pid_t pid, pid_t ppid, pid_t session)
{
	enum marked marked = NOT_MARKED;
	bool own = ppid != 1 && ppid == all->starter.pid;
	uid_t owner;

	if (!all->marks.count)
		return false;
	if (is_of_session(all, session))
		return true;
	if (!all->starter.pid && ppid != 1)
		return false;
	if (ppid != 1 && !is_starter(all, ppid))
		return false;
	owner = owner_of(all, pid);
	if (is_our_own(all, pid, owner))
		return false;
	if (owner == all->marks.owner)
		marked = look_for_marks(all, pid, own);
	if (marked == MARKED)
		return true;
	if (ppid != 1 && (marked == NOT_YET_TOLD || may_become(all, pid, owner, own)))
		look_again(all, pid, own);
	return false;
}

void sy_processes_head(struct sy_processes *all, pid_t pid)
{
	struct sy_starter *starter = &all->starter;
	struct sy_process *process = sy_process_find(all, pid);
	struct epoll_event event = {.events = EPOLLIN};

	if (!process)
		return;
	if (!starter->events_fd || starter->heads == SY_MAX_HEADS)
		return;
	event.data.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (event.data.fd < 0)
		return;
	if (epoll_ctl(starter->events_fd, EPOLL_CTL_ADD, event.data.fd, &event) < 0) {
		(void)close(event.data.fd);
		return;
	}
	starter->head_fd[starter->heads] = event.data.fd;
	starter->head[starter->heads++] = pid;
}

/* A zombie still has its counters; once the daemon has waited for it they are gone. */
static void read_at_its_end(struct sy_processes *all, pid_t pid)
{
	struct sy_process *process = sy_process_find(all, pid);

	if (!process || process->gone)
		return;
	process->force = true;
	sy_process_read(all, process, SY_EVERYTHING);
	process->final = !process->gone;
}

void sy_processes_heads_ended(struct sy_processes *all)
{
	struct sy_starter *starter = &all->starter;

	for (int i = 0; i < starter->heads;) {
		struct pollfd ended = {.fd = starter->head_fd[i], .events = POLLIN};

		if (poll(&ended, 1, 0) <= 0) {
			i++;
			continue;
		}
		read_at_its_end(all, starter->head[i]);
		(void)close(starter->head_fd[i]);
		starter->heads--;
		starter->head_fd[i] = starter->head_fd[starter->heads];
		starter->head[i] = starter->head[starter->heads];
	}
}

pid_t sy_process_next_handed(struct sy_processes *all, int *at)
{
	struct sy_starter *starter = &all->starter;

	while (*at < starter->waiting) {
		const pid_t pid = starter->wait[*at].pid;
		uid_t owner = owner_of(all, pid);
		enum marked marked = owner == all->marks.owner
					 ? look_for_marks(all, pid, starter->wait[*at].own)
					 : NOT_MARKED;

		if (marked != MARKED &&
		    (marked == NOT_YET_TOLD || may_become(all, pid, owner, true))) {
			++*at;
			continue;
		}
		starter->wait[*at] = starter->wait[--starter->waiting];
		if (marked == MARKED)
			return pid;
	}
	return 0;
}
