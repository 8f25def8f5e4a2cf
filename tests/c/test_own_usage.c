/* What a step's daemon tells of its children while its own threads are at work. */
#include "tap.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../plugins/slurm/own_usage.c"

#define CHILD	 5000
#define READINGS 500

static char buffer[CHILD];
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
	is_int(wrong, 0, "a thread that writes meanwhile changes nothing of the children's bytes");
	enough = true;
	(void)pthread_join(thread, NULL);
	return done_testing();
}
