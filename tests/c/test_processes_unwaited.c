/* Processes that are gone and that nobody of the job has waited for, played by real ones: what they
 * did after they were seen last nobody shows. 0 is the root, 1 its child, 2 that one's; whom 1
 * leaves this test adopts, who is none of the job's. */
#include "tap.h"

#include "actors.h"
#include "base/clock.h"
#include "counters/parse.h"
#include "counters/processes.h"
#include "counters/processes_read.h"
#include "counters/processes_settle.h"

#include <fcntl.h>
#include <stdio.h>

#define MB	(1 << 20)
#define BURN_MS 50
#define PAGES	1000 /* touched by far more than an actor touches by itself */

static struct sy_processes *all;

static int64_t faults_waited_for(pid_t pid)
{
	char path[32], text[1024];
	struct sy_stat stat = {0};
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "r");
	if (!file || !fgets(text, sizeof(text), file) || sy_parse_stat(text, &stat) < 0)
		exit(ok(false, "stat of process %d", pid));
	(void)fclose(file);
	return stat.cminflt;
}

static void refresh(int times)
{
	for (int i = 0; i < times; i++)
		sy_processes_refresh(all, false);
}

static void start_sampler(void)
{
	struct sy_error err;

	all = calloc(1, sizeof(*all));
	if (!all || sy_processes_init(all, 0, 0, 64, &err) < 0)
		exit(ok(false, "a sampler"));
}

static void begin(void)
{
	start_sampler();
	enter(0, -1);
	enter(1, 0);
	enter(2, 1);
	sy_processes_root(all, actor[0]);
	refresh(3);
}

static void work(enum act act, int64_t number)
{
	(void)tell(2, act, number);
	refresh(1);
}

/* A child of ours, by now at least. */
static void end_ours(int which)
{
	(void)kill(actor[which], SIGKILL);
	(void)waitpid(actor[which], NULL, 0);
}

/* The child of the one that was killed, now ours: it ends after some more work. */
static void end_orphan(void)
{
	(void)tell(2, ACT_BURN_MS, BURN_MS);
	end_ours(2);
}

static void are_unwaited(int64_t count, const char *name)
{
	is_int(all->unwaited.at_work, count, name);
	free(all);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static int64_t cpu_ns(void)
{
	return sy_processes_total(all).use[SY_USE_CPU_NS];
}

/* As a batch script that is killed -9 while its child works, which a sample sees, then ends it. */
static void test_seen_as_an_orphan(void)
{
	int64_t lacking_us, most_us, truth_ns;

	begin();
	work(ACT_BURN_MS, BURN_MS);
	reap(0, 1);
	work(ACT_BURN_MS, BURN_MS);
	work(ACT_BURN_MS, BURN_MS);
	(void)tell(2, ACT_BURN_MS, BURN_MS);
	truth_ns = sy_process_clock_ns(actor[2]);
	end_ours(2);
	refresh(1);
	lacking_us = (truth_ns - cpu_ns()) / 1000;
	most_us = all->unwaited.most_us;
	ok(lacking_us >= BURN_MS * 900 && lacking_us <= most_us,
	   "of %lld µs at most %lld are said to lack", (long long)lacking_us, (long long)most_us);
	end_ours(0);
	are_unwaited(1, "killed after its parent, at work");
}

/* Both are gone at the next sample, and the root has waited for the parent alone. */
static void test_gone_with_its_parent(enum act act, int64_t number, const char *name)
{
	begin();
	work(act, number);
	reap(0, 1);
	end_orphan();
	refresh(2);
	end_ours(0);
	are_unwaited(1, name);
}

/* The root has waited for one of its own, too, which no sample has seen and which has more page
 * faults than the one at work had. */
static void test_hidden_by_one_of_the_daemon(void)
{
	begin();
	work(ACT_BURN_MS, 2 * BURN_MS);
	enter(3, 0);
	(void)tell(3, ACT_TOUCH, PAGES);
	reap(0, 3);
	reap(0, 1);
	end_orphan();
	refresh(2);
	end_ours(0);
	are_unwaited(1, "page faults of a daemon's own child hide nobody");
}

static void test_at_rest(bool seen)
{
	begin();
	work(ACT_WRITE, MB);
	refresh(2);
	reap(0, 1);
	refresh(2 * seen);
	end_ours(2);
	refresh(2);
	end_ours(0);
	are_unwaited(0, seen ? "an orphan at rest" : "at rest, gone with its parent");
}

/* Its parent was at work, and was waited for: it hides nobody, and nobody hides it. */
static void test_a_parent_at_work(bool child_too)
{
	begin();
	(void)tell(1, ACT_BURN_MS, BURN_MS);
	if (child_too)
		(void)tell(2, ACT_WRITE, MB);
	refresh(1);
	reap(0, 1);
	end_ours(2);
	refresh(2);
	end_ours(0);
	are_unwaited(child_too, child_too ? "both at work" : "only the one that was waited for");
}

static void test_waited_for(void)
{
	begin();
	work(ACT_BURN_MS, BURN_MS);
	reap(1, 2);
	reap(0, 1);
	refresh(2);
	end_ours(0);
	are_unwaited(0, "each was waited for by its parent");
}

static void test_adopted_by_the_root(void)
{
	int64_t ns;

	start_sampler();
	sy_processes_root(all, getpid());
	enter(1, -1);
	enter(2, 1);
	refresh(3);
	work(ACT_BURN_MS, BURN_MS);
	ns = cpu_ns();
	end_ours(1);
	end_orphan();
	refresh(2);
	ok(cpu_ns() >= ns, "nothing is lost");
	are_unwaited(0, "adopted and waited for by the root");
}

/* Gone before it was asked: its last word tells. */
static void test_a_root_that_tells(bool orphaned, bool told)
{
	int64_t faults;

	begin();
	work(ACT_BURN_MS, BURN_MS);
	if (!orphaned)
		reap(1, 2);
	reap(0, 1);
	if (orphaned)
		end_orphan();
	faults = faults_waited_for(actor[0]);
	end_ours(0);
	refresh(2);
	if (told)
		sy_processes_done(all, actor[0], &(struct sy_usage){{1000000000, MB, MB, 0, 0}},
				  faults);
	refresh(1);
	are_unwaited(orphaned && told, !told	  ? "a root that is gone without a word"
				       : orphaned ? "a root that did not wait for it"
						  : "a root that did");
}

/* As srun, at work, in a script: it has forked one that rests until its end, for whom nobody of the
 * job's waits. All of them are gone at the next sample. */
static void test_one_that_leaves_one_at_rest(bool waited_for)
{
	begin();
	enter(3, 2);
	(void)tell(2, ACT_TOUCH, PAGES);
	refresh(3);
	work(ACT_WRITE, MB);
	if (waited_for) {
		reap(1, 2);
		end_ours(3);
		reap(0, 1);
	} else {
		reap(2, 3);
		reap(0, 1);
		end_ours(2);
	}
	refresh(2);
	end_ours(0);
	are_unwaited(!waited_for, waited_for ? "it was waited for, and the one at rest was not"
					     : "the one at rest was waited for, and it was not");
}

/* Its own parent waits for it after its stat was read and before its io is: what it has waited for
 * would be told twice, by it and by those who are gone with it. */
static void test_gone_between_two_files(void)
{
	char path[32];
	struct sy_process *parent;
	int64_t faults, cpu;

	begin();
	enter(3, 0);
	(void)snprintf(path, sizeof(path), "/proc/%d/io", actor[3]);
	work(ACT_BURN_MS, BURN_MS);
	parent = sy_process_find(all, actor[1]);
	faults = parent->faults;
	cpu = parent->now.use[SY_USE_CPU_NS];
	if (parent->io_fd >= 0)
		(void)close(parent->io_fd);
	parent->io_fd = open(path, O_RDONLY | O_CLOEXEC);
	reap(0, 3); /* to read it is an error from now on, as of one that is waited for */
	reap(1, 2);
	parent->force = true;
	sy_process_read(all, parent, SY_EVERYTHING);
	ok(parent->gone, "found gone by its io");
	is_int(parent->faults, faults, "its page faults are those of before");
	ok(parent->now.use[SY_USE_CPU_NS] - cpu < BURN_MS * 500000,
	   "its CPU holds no child's: %lld ns more",
	   (long long)parent->now.use[SY_USE_CPU_NS] - cpu);
	reap(0, 1);
	end_ours(0);
	free(all);
}

/* Its parent is read when it has waited for it, and is gone itself when it is to be read once more
 * for the sake of its child: seen on slow nodes as one that nobody waits for. Else nobody has. */
static void test_its_parent_goes_right_after(bool waited_for)
{
	begin();
	(void)tell(2, ACT_TOUCH, PAGES);
	work(ACT_BURN_MS, BURN_MS);
	if (waited_for)
		reap(1, 2);
	sy_process_read(all, sy_process_find(all, actor[1]), SY_EVERYTHING);
	reap(0, 1);
	if (!waited_for)
		end_ours(2);
	sy_process_find(all, actor[2])->gone = true;
	sy_processes_settle(all);
	refresh(2);
	end_ours(0);
	are_unwaited(!waited_for, waited_for
				      ? "waited for by one that goes before it is asked again"
				      : "left by one that goes before it is asked again");
}

/* It may have been given another's ticks. */
static void test_a_coarse_clock(int64_t ms, int64_t count)
{
	begin();
	all->coarse_clock = true;
	refresh(2);
	work(ACT_BURN_MS, ms);
	reap(0, 1);
	end_orphan();
	refresh(2);
	end_ours(0);
	are_unwaited(count, count ? "more than a tick" : "no more than a tick");
}

/* Of one that was seen once, right after it had begun. `ms`: of CPU; a machine that keeps it
 * waiting for ten times as long knows no better. */
static void test_seen_once(int64_t ms, int64_t bytes, int64_t count, const char *name)
{
	int64_t began_us, us;

	begin();
	began_us = sy_now_us(CLOCK_MONOTONIC);
	enter(3, 1);
	(void)tell(3, ACT_BURN_MS, ms);
	(void)tell(3, ACT_WRITE, bytes);
	refresh(1);
	us = sy_now_us(CLOCK_MONOTONIC) - began_us;
	reap(1, 2);
	reap(0, 1);
	end_ours(3);
	refresh(2);
	end_ours(0);
	if (us / 1000 >= 9 * ms && !bytes && count)
		count = all->unwaited.at_work;
	are_unwaited(count, name);
}

static void test_seen_once_running(void)
{
	struct order order = {ACT_BURN_MS, 10000};

	begin();
	enter(3, 1);
	(void)send(stage[3][0], &order, sizeof(order), 0);
	while (sy_process_clock_ns(actor[3]) < 1000000)
		(void)usleep(1000);
	refresh(1);
	reap(1, 2);
	reap(0, 1);
	end_ours(3);
	refresh(2);
	end_ours(0);
	are_unwaited(1, "seen once, running");
}

static void test_living_on(void)
{
	begin();
	refresh(2);
	is_int(sy_processes_at_work(all), 0, "nobody at work");
	work(ACT_WRITE, MB);
	is_int(sy_processes_at_work(all), 1, "one at work");
	reap(1, 2);
	reap(0, 1);
	refresh(1);
	end_ours(0);
	are_unwaited(0, "and then waited for");
}

int main(void)
{
	open_stage();
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	test_seen_as_an_orphan();
	test_gone_with_its_parent(ACT_BURN_MS, BURN_MS, "gone with its parent, by CPU");
	test_gone_with_its_parent(ACT_WRITE, MB, "gone with its parent, by bytes");
	test_hidden_by_one_of_the_daemon();
	test_at_rest(true);
	test_at_rest(false);
	test_a_parent_at_work(false);
	test_a_parent_at_work(true);
	test_waited_for();
	test_adopted_by_the_root();
	test_a_root_that_tells(false, true);
	test_a_root_that_tells(true, true);
	test_a_root_that_tells(true, false);
	test_one_that_leaves_one_at_rest(true);
	test_one_that_leaves_one_at_rest(false);
	test_gone_between_two_files();
	test_its_parent_goes_right_after(true);
	test_its_parent_goes_right_after(false);
	test_a_coarse_clock(5, 0);
	test_a_coarse_clock(BURN_MS, 1);
	test_seen_once(BURN_MS, 0, 1, "seen once, after work");
	test_seen_once(0, MB, 1, "seen once, after it had written");
	test_seen_once(0, 0, 0, "seen once, at rest");
	test_seen_once_running();
	test_living_on();
	return done_testing();
}
