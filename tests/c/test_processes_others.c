/* Processes of others that come while a job runs cost next to nothing, and none of the job's is
 * taken for one of them. */
#include "tap.h"

#include "actors.h"
#include "counters/processes.h"

#include <dirent.h>
#include <stdarg.h>
#include <sys/syscall.h>

#define A_TICK_US 30000 /* three of them */
#define SOME	  5

static int opens, clocks; /* of actors 4 and above */

static bool is_watched(int pid)
{
	for (int i = 4; i < ACTORS; i++)
		if (pid && actor[i] == pid)
			return true;
	return false;
}

int openat(int dir, const char *path, int flags, ...)
{
	opens += is_watched(atoi(path));
	return (int)syscall(SYS_openat, dir, path, flags, 0);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	clocks += clock < 0 && is_watched((int)~((unsigned)clock >> 3 | 7u << 29));
	return (int)syscall(SYS_clock_gettime, clock, now);
}

static struct sy_processes *all;

static void enter_some(int first, int parent)
{
	for (int i = 0; i < SOME; i++)
		enter(first + i, parent);
}

static void reap_some(int first, int parent)
{
	for (int i = 0; i < SOME; i++) {
		reap(parent, first + i);
		actor[first + i] = 0;
	}
}

static int alive_after_a_sample(void)
{
	sy_processes_refresh(all, false);
	return sy_processes_alive(all);
}

/* 0: the root; 1: its child; 2: somebody else, who was there before, as 3 was, a child of his. */
static void begin(void)
{
	struct sy_error err;

	enter(0, -1);
	enter(2, -1);
	(void)tell(2, ACT_LEAVE, 0);
	enter(3, 2);
	(void)usleep(A_TICK_US);
	all = calloc(1, sizeof(*all));
	if (!ok(all && sy_processes_init(all, 0, 0, 64, &err) == 0, "a sampler"))
		exit(done_testing());
	sy_processes_root(all, actor[0]);
	enter(1, 0);
	is_int(alive_after_a_sample(), 1, "a child of the root");
}

static void end(void)
{
	reap(2, 3);
	reap(0, 1);
	for (int i = 0; i < 3; i += 2) {
		(void)tell(i, ACT_END, 0);
		(void)waitpid(actor[i], NULL, 0);
	}
	free(all);
}

static int processes_here(void)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	int count = 0;

	while (proc && (entry = readdir(proc)))
		count += atoi(entry->d_name) > 0;
	if (proc)
		(void)closedir(proc);
	return count;
}

static void test_others_of_a_known_session_cost_nothing(void)
{
	begin();
	enter_some(4, 2);
	is_int(alive_after_a_sample(), 1, "others are not the job's");
	ok(opens >= SOME, "whose they are was looked up: %d files", opens);
	reap_some(4, 2);
	opens = clocks = 0;
	enter_some(4, 2);
	is_int(alive_after_a_sample(), 1, "nor are others of the same session");
	is_int(alive_after_a_sample(), 1, "looked at once more");
	/* So many are remembered, and no more: a busier machine's are looked up at each sample. */
	if (processes_here() < SY_MAX_OTHERS) {
		is_int(opens, 0, "files of those opened");
		is_int(clocks, 0, "clocks of those read");
	}
	reap_some(4, 2);
	end();
}

static void test_who_leaves_a_session_is_the_jobs_all_the_same(void)
{
	begin();
	enter_some(4, 2);
	(void)alive_after_a_sample();
	enter(14, 1);
	(void)tell(14, ACT_LEAVE, 0);
	enter(15, 14);
	is_int(alive_after_a_sample(), 3, "a session of the job's own");
	reap(14, 15);
	reap(1, 14);
	reap_some(4, 2);
	end();
}

static void test_a_root_in_a_session_of_others(void)
{
	begin();
	enter_some(4, 3);
	is_int(alive_after_a_sample(), 1, "others");
	sy_processes_root(all, actor[3]);
	is_int(alive_after_a_sample(), 1 + SOME, "their parent becomes a root");
	enter_some(9, 3);
	is_int(alive_after_a_sample(), 1 + 2 * SOME, "and has more");
	reap_some(9, 3);
	reap_some(4, 3);
	end();
}

int main(void)
{
	open_stage();
	test_others_of_a_known_session_cost_nothing();
	test_who_leaves_a_session_is_the_jobs_all_the_same();
	test_a_root_in_a_session_of_others();
	return done_testing();
}
