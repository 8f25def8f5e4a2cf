/* What a step's daemon tells of its children while its own threads are at work. */
#include "tap.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "counters/thread_io.h"

#define CHILD	 5000
#define READINGS 500

static char buffer[CHILD];
static int restless = -1; /* where a thread of ours writes whenever we look at it */

static int take_off(struct sy_thread_io *threads, int proc, pid_t pid, struct sy_io *io)
{
	if (restless >= 0)
		(void)!write(restless, buffer, CHILD);
	return sy_thread_io_take_off(threads, proc, pid, io);
}

#define sy_thread_io_take_off take_off
#include "../../plugins/slurm/own_usage.c"

static atomic_bool enough;

/* As slurmstepd's thread that speaks with srun: a few bytes, time and again. */
static void *speak(void *unused)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	const struct timespec pause = {.tv_nsec = 2000000};

	(void)unused;
	while (!enough) {
		(void)!write(null, buffer, 10);
		(void)nanosleep(&pause, NULL);
	}
	(void)close(null);
	return NULL;
}

/* To be joined a thread need not have ended: its last bytes become the process's a moment later. */
static void until_alone(void)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct stat tasks;

	/* Two entries of its own, and one for each thread (proc(5)). */
	while (stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 3)
		(void)nanosleep(&pause, NULL);
}

static void run_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		_exit(write(null, buffer, CHILD) != CHILD);
	}
	(void)waitpid(pid, NULL, 0);
}

/* The children's bytes, and by how many they may be wrong at most. */
static void test_a_thread_that_never_rests(void)
{
	struct sy_own_usage usage;
	long long before, off;

	(void)sy_own_usage_read(&usage);
	before = usage.io[1];
	restless = open("/dev/null", O_WRONLY | O_CLOEXEC);
	run_child();
	ok(sy_own_usage_read(&usage), "this process can be read");
	off = llabs(usage.io[1] - before - CHILD);
	ok(off > 0 && usage.unsure_bytes > 0, "it is not sure: %lld bytes", usage.unsure_bytes);
	ok(off <= usage.unsure_bytes, "wrong by %lld of %lld bytes", off, usage.unsure_bytes);
	(void)close(restless);
	restless = -1;
	run_child();
	ok(sy_own_usage_read(&usage) && usage.unsure_bytes == 0, "sure again");
	is_int(usage.io[1] - before, 2 * CHILD, "and right");
}

int main(void)
{
	struct sy_own_usage usage;
	pthread_t thread;
	int wrong = 0;

	ok(sy_own_usage_read(&usage), "this process can be read");
	is_int(usage.io[1], 0, "no child, no bytes");
	ok(pthread_create(&thread, NULL, speak, NULL) == 0, "a thread");
	for (int i = 1; i <= READINGS; i++) {
		run_child();
		wrong += !sy_own_usage_read(&usage) || usage.io[1] != (long long)CHILD * i;
	}
	is_int(usage.unsure_bytes, 0, "and it is sure");
	is_int(wrong, 0, "a thread that writes meanwhile changes nothing of the children's bytes");
	enough = true;
	(void)pthread_join(thread, NULL);
	until_alone();
	test_a_thread_that_never_rests();
	return done_testing();
}
