/* The loads: of one process, of several and other programs, and TCP. Part of load.c. */
#ifndef LOAD_WORK_H
#define LOAD_WORK_H

#include <arpa/inet.h>
#include <linux/magic.h>
#include <linux/tcp.h> /* tcpi_segs_out: glibc's own struct ends before it */
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "load_shared_counts.h"

/* --- the loads of one process: CPU, bytes read and written, memory --- */

#define BLOCK	   65536
#define STORE_NAME "load.%d.%d.data"

static char block[BLOCK];

/* By this process' own CPU clock, whatever else the machine does. */
static void burn(double seconds)
{
	double end = own_cpu_s() + seconds;

	while (own_cpu_s() < end)
		;
}

static void read_calls(int64_t bytes)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	for (int64_t remaining = bytes; remaining > 0;)
		remaining -= (int64_t)counted_read(fd, block,
						   (size_t)(remaining < BLOCK ? remaining : BLOCK));
	(void)close(fd);
}

static void write_calls(int64_t bytes)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	for (int64_t remaining = bytes; remaining > 0; remaining -= BLOCK)
		counted_write(fd, block, (size_t)(remaining < BLOCK ? remaining : BLOCK));
	(void)close(fd);
}

/* tmpfs and ramfs are memory: nothing goes to storage. */
static bool has_storage(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC;
}

/* The kernel counts what goes to storage by pages. */
static int64_t page_bytes(void)
{
	return sysconf(_SC_PAGESIZE);
}

/* A file of these bytes in the working folder, on its disk; the open descriptor. */
static int store(int64_t bytes)
{
	static int number;
	char name[64];
	int fd;

	(void)snprintf(name, sizeof(name), STORE_NAME, (int)getpid(), number++);
	fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		die("%s: %s", name, strerror(errno));
	for (int64_t remaining = bytes; remaining > 0; remaining -= BLOCK)
		counted_write(fd, block, (size_t)(remaining < BLOCK ? remaining : BLOCK));
	if (fsync(fd) < 0)
		die("fsync: %s", strerror(errno));
	if (has_storage(fd))
		counts->to_storage_bytes +=
		    (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
	(void)unlink(name);
	return fd;
}

static void to_storage(int64_t bytes)
{
	(void)close(store(bytes));
}

/* From the disk, not from the page cache: the kernel is asked to forget the pages first. */
static void from_storage(int64_t bytes)
{
	int fd = store(bytes);

	if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
		die("posix_fadvise: not taken");
	if (lseek(fd, 0, SEEK_SET) < 0)
		die("lseek: %s", strerror(errno));
	for (int64_t remaining = bytes; remaining > 0;)
		remaining -= (int64_t)counted_read(fd, block,
						   (size_t)(remaining < BLOCK ? remaining : BLOCK));
	counts->from_storage_bytes += has_storage(fd) ? bytes : 0;
	(void)close(fd);
}

static void memory(int64_t bytes, double seconds)
{
	char *area =
	    mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	for (int64_t at = 0; at < bytes; at += 4096)
		area[at] = 1;
	if (bytes > counts->memory_bytes)
		counts->memory_bytes = bytes;
	sleep_s(seconds);
	(void)munmap(area, (size_t)bytes);
}

/* --- the loads of several processes and threads, and of other programs --- */

#define AT_ONCE 8 /* processes side by side */

static pid_t counted_fork(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (pid > 0)
		counts->processes++;
	return pid;
}

static _Noreturn void child_work(double cpu_s, int64_t bytes, double life_s)
{
	double start = monotonic_s(), remaining;

	read_calls(bytes);
	write_calls(bytes);
	burn(cpu_s);
	remaining = start + life_s - monotonic_s();
	if (remaining > 0)
		sleep_s(remaining);
	end_process();
}

static void wait_one(void)
{
	int status;

	if (wait(&status) > 0 && status != 0)
		die("a process of the load failed");
}

/* `n` processes that are waited for, each with its share of the CPU seconds. */
static void processes(long n, double cpu_s, int64_t bytes, double life_s)
{
	long running = 0;

	for (long i = 0; i < n; i++) {
		if (running == AT_ONCE) {
			wait_one();
			running--;
		}
		if (counted_fork() == 0)
			child_work(cpu_s / (double)n, bytes, life_s);
		running++;
	}
	for (; running > 0; running--)
		wait_one();
}

static void wait_unwaited(long n)
{
	while (counts->unwaited_ended < n)
		sleep_s(0.005);
	sleep_s(0.01); /* their last instructions */
}

/* Double fork and setsid, as daemons do: nobody waits, and the parent is init from the start. */
static void orphans(long n, double cpu_s, int64_t bytes, double life_s)
{
	int64_t before = counts->unwaited_ended;

	for (long i = 0; i < n; i++) {
		if (counted_fork() == 0) {
			if (counted_fork() > 0)
				_exit(0);
			(void)setsid();
			unwaited = true;
			child_work(cpu_s / (double)n, bytes, life_s);
		}
		wait_one();
	}
	wait_unwaited(before + n);
}

/* The kernel reaps the children of a parent that ignores SIGCHLD, and adds nothing to it. */
static void ignored(long n, double cpu_s, int64_t bytes, double life_s)
{
	int64_t before = counts->unwaited_ended;

	(void)signal(SIGCHLD, SIG_IGN);
	for (long i = 0; i < n; i++) {
		if (counted_fork() == 0) {
			unwaited = true;
			child_work(cpu_s / (double)n, bytes, life_s);
		}
		sleep_s(life_s / AT_ONCE);
	}
	wait_unwaited(before + n);
	(void)signal(SIGCHLD, SIG_DFL);
}

static void *thread_work(void *argument)
{
	double seconds = *(double *)argument, end = seconds_of(CLOCK_THREAD_CPUTIME_ID) + seconds;

	while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < end)
		;
	return NULL;
}

static void threads(long n, double cpu_s)
{
	pthread_t all[64];
	double each = cpu_s / (double)n;

	if (n > (long)(sizeof(all) / sizeof(*all)))
		die("threads: at most %zu", sizeof(all) / sizeof(*all));
	for (long i = 0; i < n; i++)
		if (pthread_create(&all[i], NULL, thread_work, &each) != 0)
			die("pthread_create failed");
	for (long i = 0; i < n; i++)
		(void)pthread_join(all[i], NULL);
}

/* Another program, such as srun or mpirun: its CPU is in RUSAGE_CHILDREN, its bytes are what the
 * kernel's count of this process grew by meanwhile. The exit code is the program's. */
static int run_other(char **argv)
{
	int64_t reads = counts->read_calls_bytes, writes = counts->write_calls_bytes;
	struct io before = kernel_io(), after;
	int64_t own; /* the first reading: it is not in its own figure */
	int status = 0;
	pid_t pid = counted_fork();

	if (pid == 0) {
		(void)execvp(argv[0], argv);
		die("%s: %s", argv[0], strerror(errno));
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	own = counts->read_calls_bytes - reads;
	after = kernel_io();
	counts->others_read_calls_bytes += after.rchar - before.rchar - own;
	counts->others_write_calls_bytes +=
	    after.wchar - before.wchar - (counts->write_calls_bytes - writes);
	counts->others_from_storage_bytes += after.read_bytes - before.read_bytes;
	counts->others_to_storage_bytes += after.write_bytes - before.write_bytes;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* --- TCP both ways, by send() and recv(), which are no read and write calls --- */

#define CONNECT_TRIES 100

/* `sends` first, then the other way round: no buffer is ever full on both sides. */
static void exchange(int fd, int64_t bytes, bool sends, bool counted)
{
	for (int turn = 0; turn < 2; turn++) {
		bool sending = sends == (turn == 0);

		for (int64_t remaining = bytes; remaining > 0;) {
			size_t most = (size_t)(remaining < BLOCK ? remaining : BLOCK);
			ssize_t n = sending ? send(fd, block, most, MSG_NOSIGNAL)
					    : recv(fd, block, most, 0);

			if (n <= 0)
				die("TCP: %s", n < 0 ? strerror(errno) : "the other end has left");
			remaining -= n;
			if (counted && sending)
				counts->sent_bytes += n;
			else if (counted)
				counts->received_bytes += n;
		}
	}
}

/* Segments of this connection in both directions, acknowledgements and all: each has headers. */
static void count_segments(int fd)
{
	struct tcp_info info = {0};
	socklen_t size = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0)
		counts->segments += info.tcpi_segs_out + info.tcpi_segs_in;
}

static int listener(uint16_t port, struct sockaddr_in *bound)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port)};
	socklen_t size = sizeof(*bound);
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	any.sin_addr.s_addr = htonl(port ? INADDR_ANY : INADDR_LOOPBACK);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0 || listen(fd, 8) < 0 ||
	    getsockname(fd, (struct sockaddr *)bound, &size) < 0)
		die("cannot listen on port %d: %s", port, strerror(errno));
	return fd;
}

static int connected(const struct sockaddr_in *to)
{
	for (int i = 0; i < CONNECT_TRIES; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		double start = monotonic_s();

		if (fd >= 0 && connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0) {
			counts->connect_us = (int64_t)((monotonic_s() - start) * 1e6);
			return fd;
		}
		(void)close(fd);
		sleep_s(0.05); /* the server may not be there yet */
	}
	die("TCP: cannot connect: %s", strerror(errno));
}

/* One connection: receives, then sends. */
static void take_one(int at, int64_t bytes)
{
	int fd = accept(at, NULL, NULL);

	if (fd < 0)
		die("accept: %s", strerror(errno));
	exchange(fd, bytes, false, true);
	(void)close(fd);
	(void)close(at);
}

/* The same, from elsewhere. */
static void serve(uint16_t port, int64_t bytes)
{
	struct sockaddr_in bound;

	take_one(listener(port, &bound), bytes);
}

static void tcp_to(const char *host, uint16_t port, int64_t bytes)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd;

	if (inet_pton(AF_INET, host, &to.sin_addr) != 1)
		die("tcp: %s is no IPv4 address", host);
	fd = connected(&to);
	exchange(fd, bytes, true, true);
	count_segments(fd);
	(void)close(fd);
}

/* Both ends are ours, over the loopback device: each byte is sent once and received once. */
static void run_tcp_in_process(int64_t bytes)
{
	struct sockaddr_in bound;
	int at = listener(0, &bound);

	if (counted_fork() == 0) {
		int fd = connected(&bound);

		exchange(fd, bytes, true, false);
		(void)close(fd);
		end_process();
	}
	take_one(at, bytes);
	wait_one();
}

#endif
