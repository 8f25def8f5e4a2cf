/* Processes that execute a test's orders: fork, burn CPU, write, kill and wait for a child, end. */
#ifndef STEELYARD_ACTORS_H
#define STEELYARD_ACTORS_H

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ACTORS 16

enum act {
	ACT_FORK,
	ACT_BURN_MS,
	ACT_WRITE,
	ACT_TOUCH,
	ACT_WAIT_FOR,
	ACT_IGNORE,
	ACT_LEAVE,
	ACT_END
};

struct order {
	enum act act;
	int64_t number;
};

static int stage[ACTORS][2]; /* socket pairs: the test's end, the actor's */
static pid_t actor[ACTORS];

/* A pair for each actor there will ever be, so that grandchildren have theirs. */
__attribute__((unused)) static void open_stage(void)
{
	for (int i = 0; i < ACTORS; i++)
		if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, stage[i]) < 0)
			abort();
}

static int64_t cpu_of_mine_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t run_order(const struct order *order);

__attribute__((noreturn)) static void play(int which)
{
	struct order order;

	for (int i = 0; i < ACTORS; i++)
		(void)close(stage[i][0]); /* so that all end with the test */
	while (recv(stage[which][1], &order, sizeof(order), 0) == (ssize_t)sizeof(order)) {
		int64_t answer = order.act == ACT_END ? 0 : run_order(&order);

		(void)send(stage[which][1], &answer, sizeof(answer), 0);
		if (order.act == ACT_END)
			break;
	}
	_exit(0);
}

static pid_t fork_actor(int which)
{
	pid_t pid = fork();

	if (pid == 0)
		play(which);
	return pid;
}

static int64_t write_null(int64_t bytes)
{
	static const char zeros[65536];
	int null = open("/dev/null", O_WRONLY);

	for (int64_t remaining = bytes; remaining > 0;) {
		ssize_t done = write(null, zeros, remaining < 65536 ? (size_t)remaining : 65536);

		remaining -= done > 0 ? done : remaining;
	}
	(void)close(null);
	return bytes;
}

/* So many pages, each a page fault. */
static int64_t touch(int64_t pages)
{
	size_t size = (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
	volatile char *memory =
	    mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || madvise((void *)memory, size, MADV_NOHUGEPAGE) < 0)
		return -1;
	for (size_t at = 0; at < size; at += (size_t)sysconf(_SC_PAGESIZE))
		memory[at] = 1;
	return munmap((void *)memory, size);
}

static int64_t run_order(const struct order *order)
{
	int64_t end = cpu_of_mine_ns() + order->number * 1000000;

	switch (order->act) {
	case ACT_FORK:
		return fork_actor((int)order->number);
	case ACT_BURN_MS:
		while (cpu_of_mine_ns() < end)
			;
		return 0;
	case ACT_WRITE:
		return write_null(order->number);
	case ACT_TOUCH:
		return touch(order->number);
	case ACT_WAIT_FOR:
		(void)kill((pid_t)order->number, SIGKILL);
		return waitpid((pid_t)order->number, NULL, 0);
	case ACT_IGNORE: /* children then end without anyone's waiting */
		return signal(SIGCHLD, SIG_IGN) == SIG_ERR;
	case ACT_LEAVE: /* for a session of its own */
		return setsid();
	default:
		return 0;
	}
}

/* Wait until the process sleeps or has ended: its usage does not change then. */
static void await_sleep(pid_t pid)
{
	char path[32], text[512];
	bool runs = true;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	while (runs) {
		FILE *file = fopen(path, "r");
		const char *name_end;

		if (!file)
			return;
		name_end = fgets(text, sizeof(text), file) ? strrchr(text, ')') : NULL;
		runs = name_end && name_end[2] == 'R';
		(void)fclose(file);
		if (runs)
			(void)usleep(100);
	}
}

/* Send an order and wait until it is done and the actor sleeps. */
static int64_t send_order(int which, enum act act, int64_t number)
{
	struct order order = {act, number};
	int64_t answer = -1;

	if (send(stage[which][0], &order, sizeof(order), 0) < 0 ||
	    recv(stage[which][0], &answer, sizeof(answer), 0) < 0)
		abort();
	await_sleep(actor[which]);
	return answer;
}

/* Actor `which`, a child of `parent`, -1: of the test. */
__attribute__((unused)) static void enter(int which, int parent)
{
	actor[which] = parent < 0 ? fork_actor(which) : (pid_t)send_order(parent, ACT_FORK, which);
	if (actor[which] <= 0)
		exit(1); /* whoever kills -1 kills everybody */
	await_sleep(actor[which]);
}

/* `parent` ends its child `which` and waits for it. */
__attribute__((unused)) static void reap(int parent, int which)
{
	(void)send_order(parent, ACT_WAIT_FOR, actor[which]);
}

#endif
