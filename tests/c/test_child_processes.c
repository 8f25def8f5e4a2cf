/* What a step's daemon reports of its children while its own threads are at work. */
#include "tap.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILD	 5000
#define READINGS 500

static char buffer[CHILD];
static int restless = -1; /* written to whenever counters are read */

static int open_and_write(int folder, const char *path, int flags)
{
	if (restless >= 0)
		(void)!write(restless, buffer, CHILD);
	return openat(folder, path, flags);
}

#define openat open_and_write
#include "../../plugins/node/counters/child_processes.c"
#undef openat

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

static void run_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		_exit(write(null, buffer, CHILD) != CHILD);
	}
	(void)waitpid(pid, NULL, 0);
}

/* A number that may be wrong is none. */
static void test_a_thread_that_never_rests(int64_t before)
{
	struct sy_own_usage usage;

	restless = open("/dev/null", O_WRONLY | O_CLOEXEC);
	run_child();
	ok(sy_own_usage_read(&usage), "CPU time is known");
	ok(!usage.io_known, "the bytes are not");
	(void)close(restless);
	restless = -1;
	ok(sy_own_usage_read(&usage) && usage.io_known, "known again");
	is_int(usage.io[1] - before, CHILD, "and right");
}

int main(void)
{
	struct sy_own_usage usage;
	pthread_t thread;
	int wrong = 0;

	ok(sy_own_usage_read(&usage) && usage.io_known, "this process can be read");
	is_int(usage.io[1], 0, "no child, no bytes");
	ok(pthread_create(&thread, NULL, speak, NULL) == 0, "a thread");
	for (int i = 1; i <= READINGS; i++) {
		run_child();
		wrong += !sy_own_usage_read(&usage) || !usage.io_known ||
			 usage.io[1] != (int64_t)CHILD * i;
	}
	is_int(wrong, 0, "a thread that writes meanwhile changes nothing of the children's bytes");
	test_a_thread_that_never_rests(usage.io[1]);
	enough = true;
	(void)pthread_join(thread, NULL);
	return done_testing();
}
