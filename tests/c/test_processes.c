/* Processes that end while a sample is being taken, played by real ones: nothing counts twice. */
#include "tap.h"

#include "actors.h"
#include "counters/process_members.h"
#include "counters/process_table.h"
#include "counters/processes.h"

#include <sys/syscall.h>

#define MB	(1 << 20)
#define BURN_MS 200
#define TICKS	40000000 /* ns: times of reaped children are reported in ticks, rounded down */

/* What happens right after the sampler has looked at the CPU clock of one process. */
static struct {
	pid_t pid;
	void (*happens)(void);
} then;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, now);
	void (*happens)(void) = then.happens;

	if (happens && clock == (clockid_t)((~(unsigned)then.pid << 3) | 2)) {
		then.happens = NULL;
		happens();
	}
	return rc;
}

static struct sy_processes *all;

static void start_sampler(void)
{
	struct sy_error err;

	all = calloc(1, sizeof(*all));
	if (!ok(all && sy_processes_init(all, 0, 0, 64, &err) == 0, "a sampler"))
		exit(done_testing());
}

static void end_sampler(void)
{
	free(all);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* Bytes written: `times` megabytes and the few bytes of the actors' answers. */
static void is_written(int64_t times, const char *name)
{
	int64_t bytes = sy_processes_total(all).use[SY_USE_WCHAR];

	ok(bytes >= times * MB && bytes < times * MB + 4096, "%s: %lld bytes", name,
	   (long long)bytes);
}

/* A sample may lack what ends while it is taken; it never has it twice. */
static void is_not_twice(const char *name)
{
	struct sy_usage total = sy_processes_total(all);

	ok(total.use[SY_USE_WCHAR] < MB + 4096, "%s: %lld bytes", name,
	   (long long)total.use[SY_USE_WCHAR]);
	ok(total.use[SY_USE_CPU_NS] < BURN_MS * 1250000 + TICKS, "%s: %lld ns of CPU", name,
	   (long long)total.use[SY_USE_CPU_NS]);
}

static void is_burnt(int64_t times, const char *name)
{
	int64_t ns = sy_processes_total(all).use[SY_USE_CPU_NS], truth = times * BURN_MS * 1000000;

	ok(ns >= truth - TICKS && ns < truth + truth / 4 + TICKS, "%s: %lld ns of CPU", name,
	   (long long)ns);
}

/* So many samples that no process is new any more. */
static void get_acquainted(void)
{
	for (int i = 0; i < 3; i++)
		sy_processes_refresh(all, false);
}

static void work(int which)
{
	(void)send_order(which, ACT_BURN_MS, BURN_MS);
	(void)send_order(which, ACT_WRITE, MB);
}

/* --- 0: a child of the root; 1, 2: its children */

static void both_end(void)
{
	reap(0, 1);
	reap(0, 2);
}

static void test_a_child_that_ends_after_it_was_looked_at(void)
{
	start_sampler();
	sy_processes_root(all, getpid());
	enter(0, -1);
	enter(1, 0);
	enter(2, 0);
	work(1);
	get_acquainted();
	is_burnt(1, "while it lives");
	then.pid = actor[1];
	then.happens = both_end;
	sy_processes_refresh(all, false);
	ok(!then.happens, "it ended within the sample, and so did its sibling");
	is_not_twice("in the sample in which it ends");
	sy_processes_refresh(all, false);
	is_burnt(1, "in the next");
	is_written(1, "in the next");
	(void)send_order(0, ACT_END, 0);
	(void)waitpid(actor[0], NULL, 0);
	sy_processes_refresh(all, true);
	is_burnt(1, "the root has waited for its parent");
	end_sampler();
}

static void one_ends(void)
{
	reap(0, 1);
}

/* As one that was found by its cgroup before its parent was named. */
static void test_a_child_that_stands_before_its_parent(bool within_a_sample)
{
	const char *name = within_a_sample ? "found first, ends within a sample"
					   : "found first, ends between samples";

	start_sampler();
	enter(0, -1);
	enter(1, 0);
	(void)sy_process_add(all, actor[1], false);
	sy_processes_root(all, actor[0]);
	work(1);
	get_acquainted();
	if (within_a_sample) {
		then.pid = actor[1];
		then.happens = one_ends;
	} else {
		one_ends();
	}
	sy_processes_refresh(all, true);
	is_not_twice(name);
	sy_processes_refresh(all, true);
	is_burnt(1, name);
	is_not_twice(name);
	(void)send_order(0, ACT_END, 0);
	(void)waitpid(actor[0], NULL, 0);
	end_sampler();
}

/* 0 stays, 1 ends, its child 2 goes to the root and ends there, all between two samples. */
static void test_an_orphan_that_ends_with_its_parent(void)
{
	start_sampler();
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	sy_processes_root(all, getpid());
	enter(0, -1);
	enter(1, 0);
	enter(2, 1);
	work(2);
	sy_processes_refresh(all, true);
	is_burnt(1, "the orphan-to-be");
	reap(0, 1);
	(void)send_order(2, ACT_END, 0);
	(void)waitpid(actor[2], NULL, 0);
	sy_processes_refresh(all, true);
	is_burnt(1, "the root has waited for it");
	is_not_twice("the root has waited for it");
	(void)prctl(PR_SET_CHILD_SUBREAPER, 0);
	(void)send_order(0, ACT_END, 0);
	(void)waitpid(actor[0], NULL, 0);
	end_sampler();
}

/* Each uses less than the rounding of ticks: counted by the parent, not beside it. */
static void test_small_children_that_are_waited_for(void)
{
	int64_t ns, truth = 0;

	start_sampler();
	sy_processes_root(all, getpid());
	enter(0, -1);
	for (int i = 0; i < 10; i++) {
		enter(1, 0);
		(void)send_order(1, ACT_BURN_MS, 15);
		sy_processes_refresh(all, false);
		truth += 15000000;
		reap(0, 1);
		sy_processes_refresh(all, false);
	}
	ns = sy_processes_total(all).use[SY_USE_CPU_NS];
	ok(ns >= truth - TICKS && ns < truth + truth / 4, "children waited for: %lld of %lld ns",
	   (long long)ns, (long long)truth);
	(void)send_order(0, ACT_END, 0);
	(void)waitpid(actor[0], NULL, 0);
	end_sampler();
}

/* A step's daemon that was found in the job's group has used something before it reports itself
 * as a root, and continues: none of it is the job's, all of its child's is. */
static void test_a_daemon_that_is_found_before_it_is_named(void)
{
	start_sampler();
	enter(0, -1);
	(void)sy_process_add(all, actor[0], false);
	work(0);
	sy_processes_refresh(all, false);
	sy_processes_root(all, actor[0]);
	is_burnt(0, "named by now");
	is_written(0, "named by now");
	enter(1, 0);
	work(0);
	work(1);
	get_acquainted();
	is_burnt(1, "its child works");
	reap(0, 1);
	sy_processes_refresh(all, false);
	sy_processes_done(all, actor[0], &(struct sy_usage){{BURN_MS * 1000000, MB, MB, 0, 0}});
	sy_processes_refresh(all, true);
	is_burnt(1, "reported at its end");
	is_written(1, "reported at its end");
	(void)send_order(0, ACT_END, 0);
	(void)waitpid(actor[0], NULL, 0);
	end_sampler();
}

/* 0 is in the job's group; 1 is a step's daemon, 2 its fork, 3 another job's. */
static void test_daemons_of_steps_are_known_by_name(void)
{
	char own[17];

	start_sampler();
	(void)prctl(PR_GET_NAME, own);
	enter(0, -1);
	enter(1, -1);
	enter(2, 1);
	(void)prctl(PR_SET_NAME, "another");
	enter(3, -1);
	ok(!sy_process_is_step_daemon(all, actor[1], getpid()), "nobody keeps a place");
	sy_processes_use_extern_daemon(all, actor[0]);
	ok(sy_process_is_step_daemon(all, actor[1], getpid()) == (geteuid() == 0),
	   "of that name, and root's");
	ok(!sy_process_is_step_daemon(all, actor[2], actor[1]),
	   "a task that is not yet the user's");
	ok(!sy_process_is_step_daemon(all, actor[3], getpid()), "of another name");
	(void)prctl(PR_SET_NAME, own);
	reap(1, 2);
	for (int i = 0; i < 4; i++) {
		if (i != 2)
			(void)send_order(i, ACT_END, 0);
		(void)waitpid(actor[i], NULL, 0); /* 2 is not ours */
	}
	end_sampler();
}

/* The step's last task has ended and its counters are reported: later forks of the daemon are no
 * tasks. */
static void test_what_a_daemon_starts_after_its_tasks(void)
{
	start_sampler();
	sy_processes_use_extern_daemon(all, getpid());
	enter(0, -1);
	sy_processes_root(all, actor[0]);
	sy_processes_done(all, actor[0], &(struct sy_usage){{0}});
	sy_processes_refresh(all, false);
	enter(1, 0);
	work(1);
	get_acquainted();
	is_burnt(0, "it lives");
	reap(0, 1);
	sy_processes_refresh(all, true);
	is_burnt(0, "it was waited for");
	is_written(0, "it was waited for");
	(void)send_order(0, ACT_END, 0);
	(void)waitpid(actor[0], NULL, 0);
	end_sampler();
}

int main(void)
{
	open_stage();
	test_what_a_daemon_starts_after_its_tasks();
	test_a_daemon_that_is_found_before_it_is_named();
	test_daemons_of_steps_are_known_by_name();
	test_a_child_that_ends_after_it_was_looked_at();
	test_a_child_that_stands_before_its_parent(false);
	test_a_child_that_stands_before_its_parent(true);
	test_an_orphan_that_ends_with_its_parent();
	test_small_children_that_are_waited_for();
	return done_testing();
}
