/* faults HOW CHILDREN PAGES FILE: so many children, each touches so many new pages, and one of FILE
 * that is no longer in memory. Prints the page faults of all of them and of itself, as each has
 * them by getrusage(2) at its last moment.
 *
 * HOW: wait (for each), ignore (SIGCHLD), orphan (its parent ends before it works), reaped (the
 * same, and it goes on only when somebody has waited for them).
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct faults {
	long minor, major;
	pid_t pid;
};

static long page;

static void touch(long pages)
{
	volatile char *new = mmap(NULL, (size_t)(pages * page), PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)madvise((void *)new, (size_t)(pages * page), MADV_NOHUGEPAGE);
	for (long i = 0; i < pages; i++)
		new[i * page] = 1;
}

static void read_cold(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	volatile const char *cold;

	if (ftruncate(fd, page) < 0 || pwrite(fd, path, 1, 0) != 1 || fsync(fd) < 0)
		abort();
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	cold = mmap(NULL, (size_t)page, PROT_READ, MAP_SHARED, fd, 0);
	if (cold == MAP_FAILED || cold[0] != path[0])
		abort();
}

/* The first calls have faults of their own. */
static void tell(int who, struct faults *found)
{
	struct rusage used;

	for (int i = 0; i < 3; i++) {
		(void)getrusage(who, &used);
		found->minor = used.ru_minflt;
		found->major = used.ru_majflt;
	}
}

static void work(struct faults *found, long pages, const char *path)
{
	found->pid = getpid();
	touch(pages);
	read_cold(path);
	tell(RUSAGE_SELF, found);
	_exit(0);
}

static bool makes_orphans(const char *how)
{
	return !strcmp(how, "orphan") || !strcmp(how, "reaped");
}

/* Of an orphan two have worked: its parent, too. */
static void child(const char *how, struct faults *found, long pages, const char *path)
{
	pid_t pid = fork();

	if (pid < 0)
		abort();
	if (pid > 0 && strcmp(how, "ignore") != 0)
		(void)waitpid(pid, NULL, 0);
	if (pid > 0)
		return;
	if (makes_orphans(how) && (pid = fork()) != 0) {
		tell(RUSAGE_SELF, found + 1);
		_exit(pid < 0);
	}
	work(found, pages, path);
}

static void print(int fd, const struct faults *all)
{
	if (dprintf(fd, "{\"minor_faults\": %20ld, \"major_faults\": %20ld}\n", all->minor,
		    all->major) < 0)
		abort();
}

int main(int count, char **word)
{
	long children = count == 5 ? atol(word[2]) : 0;
	struct faults own = {0, 0, 0}, all = {0, 0, 0}, *found;
	int alive[2], null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	char end;

	if (!children || pipe(alive) < 0)
		return 2;
	page = sysconf(_SC_PAGESIZE);
	found = mmap(NULL, (size_t)children * 2 * sizeof(*found), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!strcmp(word[1], "ignore"))
		(void)signal(SIGCHLD, SIG_IGN);
	for (long i = 0; i < children; i++)
		child(word[1], &found[2 * i], atol(word[3]), word[4]);
	(void)close(alive[1]);
	while (read(alive[0], &end, 1) != 0) /* until the last one has closed it */
		;
	for (long i = 0; i < 2 * children; i++) {
		while (!strcmp(word[1], "reaped") && found[i].pid && kill(found[i].pid, 0) == 0)
			(void)usleep(1000);
		all.minor += found[i].minor;
		all.major += found[i].major;
	}
	print(null, &all);
	tell(RUSAGE_SELF, &own);
	all.minor += own.minor;
	all.major += own.major;
	print(1, &all);
	_exit(0);
}
