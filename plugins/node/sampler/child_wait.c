#include "sampler/child_wait.h"

#include "base/kernel_uapi.h"
#include "counters/process_alive.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

/* Linux before 5.3 has no pidfd: a watched process is looked for that often. */
#define WATCH_US 1000000

/* One descriptor to sleep on: a wait queue for each of three costs 5 µs more a sample. */
int sy_wakeup_open(struct sy_wakeup *wakeup)
{
	int fds[] = {wakeup->parent_fd, wakeup->control_fd, wakeup->watch_fd};

	wakeup->events_fd = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; i < 3; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.fd = fds[i]};

		if (fds[i] >= 0 && epoll_ctl(wakeup->events_fd, EPOLL_CTL_ADD, fds[i], &event) < 0)
			return -1;
	}
	return 0;
}

void sy_wakeup_watch(struct sy_wakeup *wakeup, pid_t pid)
{
	struct epoll_event event = {.events = EPOLLIN};

	if (wakeup->watch_fd >= 0)
		(void)close(wakeup->watch_fd);
	wakeup->watch = pid;
	wakeup->watch_fd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	event.data.fd = wakeup->watch_fd;
	if (wakeup->watch_fd >= 0 &&
	    epoll_ctl(wakeup->events_fd, EPOLL_CTL_ADD, wakeup->watch_fd, &event) < 0) {
		(void)close(wakeup->watch_fd);
		wakeup->watch_fd = -1;
	}
}

static unsigned read_events(const struct sy_wakeup *wakeup)
{
	struct epoll_event events[3];
	int count = epoll_wait(wakeup->events_fd, events, 3, 0);
	unsigned woken = 0;

	for (int i = 0; i < count; i++) {
		bool ended = events[i].events & (EPOLLHUP | EPOLLERR);

		if (events[i].data.fd == wakeup->control_fd)
			woken |= SY_WOKEN_CONTROL;
		else if (events[i].data.fd == wakeup->watch_fd)
			woken |= SY_WOKEN_WATCH;
		else if (events[i].data.fd != wakeup->parent_fd)
			woken |= SY_WOKEN_TASK;
		else if (ended)
			woken |= SY_WOKEN_END;
		if (events[i].data.fd == wakeup->parent_fd && (events[i].events & EPOLLIN))
			woken |= SY_WOKEN_PARENT;
	}
	return woken;
}

unsigned sy_wakeup_sleep(const struct sy_wakeup *wakeup, int64_t remaining_us)
{
	struct pollfd events = {wakeup->events_fd, POLLIN, 0};
	bool must_check = wakeup->watch && wakeup->watch_fd < 0;
	struct timespec timeout;
	sigset_t none;

	if (must_check && (remaining_us < 0 || remaining_us > WATCH_US))
		remaining_us = WATCH_US;
	timeout = (struct timespec){remaining_us / 1000000, remaining_us % 1000000 * 1000};
	(void)sigemptyset(&none);
	if (ppoll(&events, 1, remaining_us < 0 ? NULL : &timeout, &none) > 0)
		return read_events(wakeup);
	return must_check && kill(wakeup->watch, 0) < 0 && errno == ESRCH ? SY_WOKEN_WATCH : 0;
}

void sy_wakeup_signals(void (*on_term)(int))
{
	struct sigaction end = {.sa_handler = on_term};
	sigset_t term;

	(void)sigemptyset(&term);
	(void)sigaddset(&term, SIGTERM);
	(void)sigaction(SIGTERM, &end, NULL);
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGQUIT, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)sigprocmask(SIG_SETMASK, &term, NULL);
	(void)setpgid(0, 0);
}

static void remove_ended_roots(struct sy_lifetime *life)
{
	int count = 0;

	for (int i = 0; i < life->roots; i++)
		if (sy_process_lives(life->root[i]))
			life->root[count++] = life->root[i];
	life->roots = count;
}

void sy_lifetime_add_root(struct sy_lifetime *life, pid_t pid)
{
	if (life->roots == SY_MAX_WATCHED_ROOTS)
		remove_ended_roots(life);
	for (int i = 0; i < life->roots; i++)
		if (life->root[i] == pid)
			return;
	if (life->roots < SY_MAX_WATCHED_ROOTS)
		life->root[life->roots++] = pid;
}

static pid_t find_survivor(struct sy_lifetime *life, const struct sy_processes *all)
{
	remove_ended_roots(life);
	/* Where no step has a daemon of its own (PBS) the job is the children of the node's. */
	if (life->roots || life->leaving || !all->starter.pid)
		return life->roots ? life->root[0] : 0;
	return sy_processes_find_living(all, sy_process_lives);
}

bool sy_lifetime_continues(struct sy_lifetime *life, const struct sy_processes *all,
			   struct sy_wakeup *wakeup, int64_t now_us)
{
	pid_t survivor = find_survivor(life, all);

	life->check_survivors = false;
	if (survivor) {
		life->until_us = 0;
		sy_wakeup_watch(wakeup, survivor);
		return true;
	}
	if (life->leaving || !life->linger_us)
		return false;
	if (!life->until_us) {
		life->until_us = now_us + life->linger_us;
		sy_wakeup_watch(wakeup, 0);
	}
	return now_us < life->until_us;
}

int64_t sy_lifetime_sleep_us(const struct sy_lifetime *life, int64_t next_us, int64_t now_us)
{
	if (life->until_us && (!next_us || life->until_us < next_us))
		next_us = life->until_us;
	if (!next_us)
		return -1;
	return next_us > now_us ? next_us - now_us : 0;
}
