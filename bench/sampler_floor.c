/* The least that a sample can cost here, for bench/sampler.py: a process that wakes HZ times a
 * second and reads the same small files by one pread each, of files that stay open, and does
 * nothing with them. `clock:PID` reads a process' CPU clock instead. No FILE: it only wakes.
 * usage: sampler_floor HZ [FILE | clock:PID]... */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST 4096

struct reading {
	int fd; /* -1: a clock */
	clockid_t clock;
};

static int open_reading(const char *name, struct reading *reading)
{
	reading->fd = -1;
	if (!strncmp(name, "clock:", 6))
		return clock_getcpuclockid((pid_t)atol(name + 6), &reading->clock);
	reading->fd = open(name, O_RDONLY | O_CLOEXEC);
	return reading->fd < 0 ? -1 : 0;
}

static void read_once(const struct reading *reading)
{
	struct timespec time;
	char text[1024];

	if (reading->fd < 0)
		(void)clock_gettime(reading->clock, &time);
	else
		(void)!pread(reading->fd, text, sizeof(text), 0);
}

static void sleep_until(struct timespec *next, long hz)
{
	next->tv_nsec += 1000000000 / hz;
	if (next->tv_nsec >= 1000000000) {
		next->tv_nsec -= 1000000000;
		next->tv_sec++;
	}
	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL);
}

int main(int argc, char **argv)
{
	static struct reading readings[MOST];
	long hz = argc > 1 ? atol(argv[1]) : 0;
	int count = argc - 2;
	struct timespec next;

	if (hz < 1 || count > MOST)
		return 2;
	for (int i = 0; i < count; i++) {
		if (open_reading(argv[i + 2], &readings[i]) == 0)
			continue;
		(void)fprintf(stderr, "sampler_floor: cannot read %s\n", argv[i + 2]);
		return 3;
	}
	(void)clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		sleep_until(&next, hz);
		for (int i = 0; i < count; i++)
			read_once(&readings[i]);
	}
}
