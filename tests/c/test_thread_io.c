/* A process' own I/O is told from its children's, whatever ends at that moment. */
#include "tap.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "counters/thread_io.h"

#define OWN   100000
#define CHILD 5000

static char buffer[OWN];

static void read_zeros(size_t size)
{
	cleanup_close int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	(void)!read(fd, buffer, size);
}

static void *reader(void *unused)
{
	(void)unused;
	read_zeros(OWN);
	return NULL;
}

static void run_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		read_zeros(CHILD);
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
}

/* Bytes read by the children; `told` is what the function says. */
static int64_t children(struct sy_thread_io *threads, int proc, int *told)
{
	char text[512];
	struct sy_io io = {0};
	cleanup_close int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);

	threads->just_read = sy_read_fd(fd, text, sizeof(text));
	(void)sy_parse_io(text, &io);
	*told = sy_thread_io_take_off(threads, proc, getpid(), &io);
	return io.rchar;
}

int main(void)
{
	static struct sy_thread_io threads, others;
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), told;
	int64_t before = children(&threads, proc, &told), after;
	struct sy_io io = {.rchar = 7};
	pthread_t thread;
	pid_t gone;

	is_int(told, 0, "this process can be read");
	read_zeros(OWN);
	run_child();
	after = children(&threads, proc, &told);
	is_int(told, 0, "no thread has ended");
	is_int(after - before, CHILD, "what a child has read, and nothing of our own");
	ok(pthread_create(&thread, NULL, reader, NULL) == 0, "a thread");
	(void)pthread_join(thread, NULL);
	is_int(children(&threads, proc, &told) - after, OWN,
	       "of a thread that was never looked at nobody knows");
	gone = fork();
	if (gone == 0)
		_exit(0);
	(void)waitpid(gone, NULL, 0);
	is_int(sy_thread_io_take_off(&others, proc, gone, &io), 1,
	       "a process that is gone is no process that may not be read");
	return done_testing();
}
