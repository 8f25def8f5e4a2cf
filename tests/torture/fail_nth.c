/* Linked into a program, it has the n-th call fail that the kernel or malloc(3) may refuse, as
 * curl's torture does. Counted is what our own code calls, by itself or through a library: what a
 * test calls for its own sake may not fail. Without FAIL_NTH in the environment all goes through.
 */
#include "fail_nth.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <netdb.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <syslog.h>
#include <unistd.h>

extern char __executable_start[], etext[];

static struct fail_nth *shared;
static __thread int inside;

/* What the dynamic linker keeps; LeakSanitizer knows it by who called malloc(3), which is us. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:_dl_\n";
}

/* --- whose call it is ------------------------------------------------------------------------- */

/* Functions of tests and of ours, from PROGRAM.functions: addresses and sizes are nm's. */
static struct function {
	char whose; /* 't', 'p' */
	uintptr_t begin, size;
} functions[4096];
static size_t function_count;

static char whose(uintptr_t at)
{
	for (size_t i = 0; i < function_count; i++)
		if (at - functions[i].begin < functions[i].size)
			return functions[i].whose;
	return '\0';
}

static uintptr_t plugin_begin, plugin_end;

/* The plugin is loaded, and again, wherever there is room. */
static bool is_in_plugin(uintptr_t at)
{
	Dl_info info;

	if (at >= plugin_begin && at < plugin_end)
		return true;
	if (!dladdr((void *)at, &info) || !info.dli_fname ||
	    !strstr(info.dli_fname, "spank_steelyard.so"))
		return false;
	plugin_begin = (uintptr_t)info.dli_fbase;
	plugin_end = at + 1;
	return true;
}

/* Frames of ours, innermost first, up to the first of a test: how many; 0: not our call. */
static size_t ours(uint64_t *trace)
{
	void *frames[48];
	int depth = backtrace(frames, 48);
	size_t count = 0;

	for (int i = 0; i < depth && count < FAIL_NTH_DEPTH; i++) {
		uintptr_t at = (uintptr_t)frames[i];
		bool in_program = at >= (uintptr_t)__executable_start && at < (uintptr_t)etext;
		char who = in_program ? whose(at) : '\0';

		if (who == 't')
			break;
		if (who == 'p' || (!in_program && is_in_plugin(at)))
			trace[count++] = at;
	}
	return count;
}

/* --- counting --------------------------------------------------------------------------------- */

static void note_place(uint64_t hash, uint64_t call)
{
	for (uint64_t i = 0; i < FAIL_NTH_PLACES; i++) {
		uint64_t *place = &shared->place[(hash + i) % FAIL_NTH_PLACES], none = 0;

		if (*place == hash)
			return;
		if (__atomic_compare_exchange_n(place, &none, hash, false, __ATOMIC_SEQ_CST,
						__ATOMIC_SEQ_CST)) {
			shared->first[(hash + i) % FAIL_NTH_PLACES] = call;
			return;
		}
	}
}

static uint64_t hash_of(const char *function, const uint64_t *trace, size_t count)
{
	uint64_t hash = 14695981039346656037U; /* FNV-1a */

	for (; *function; function++)
		hash = (hash ^ (unsigned char)*function) * 1099511628211U;
	for (size_t i = 0; i < count; i++)
		hash = (hash ^ trace[i]) * 1099511628211U;
	return hash | 1;
}

static bool is_due(const char *function)
{
	uint64_t trace[FAIL_NTH_DEPTH] = {0}, call;
	size_t count = ours(trace);

	if (count == 0)
		return false;
	call = __atomic_add_fetch(&shared->calls, 1, __ATOMIC_SEQ_CST);
	if (shared->fail_at == 0)
		note_place(hash_of(function, trace, count), call);
	if (call != shared->fail_at)
		return false;
	(void)strncpy(shared->function, function, sizeof(shared->function) - 1);
	memcpy(shared->trace, trace, sizeof(trace));
	shared->failed = 1;
	return true;
}

static bool fails(const char *function, int number)
{
	int saved = errno;
	bool due;

	if (!shared || inside)
		return false;
	inside = 1;
	due = is_due(function);
	inside = 0;
	errno = due ? number : saved;
	return due;
}

/* --- the calls -------------------------------------------------------------------------------- */

/* AddressSanitizer's own, which ours stand in front of. */
#define GOES_ON(type, function, ...) extern type __interceptor_##function(__VA_ARGS__)

GOES_ON(void *, malloc, size_t);
GOES_ON(void *, calloc, size_t, size_t);
GOES_ON(void *, realloc, void *, size_t);
GOES_ON(char *, strdup, const char *);
GOES_ON(char *, strndup, const char *, size_t);
GOES_ON(FILE *, fopen, const char *, const char *);
GOES_ON(FILE *, fdopen, int, const char *);
GOES_ON(FILE *, open_memstream, char **, size_t *);
GOES_ON(DIR *, opendir, const char *);
GOES_ON(void *, mmap, void *, size_t, int, int, int, off_t);
GOES_ON(ssize_t, write, int, const void *, size_t);
GOES_ON(ssize_t, pwrite, int, const void *, size_t, off_t);

/* One whose failure is `bad`; the arguments twice, with their types and without. */
#define CALL(type, function, number, bad, typed, plain)                                            \
	type function typed                                                                        \
	{                                                                                          \
		return fails(#function, number) ? bad : __interceptor_##function plain;            \
	}

#define NEXT_CALL(type, function, number, bad, typed, plain)                                       \
	type function typed                                                                        \
	{                                                                                          \
		static type(*next) typed;                                                          \
                                                                                                   \
		if (!next)                                                                         \
			*(void **)&next = dlsym(RTLD_NEXT, #function);                             \
		return fails(#function, number) ? bad : next plain;                                \
	}

CALL(void *, malloc, ENOMEM, NULL, (size_t size), (size))
CALL(void *, calloc, ENOMEM, NULL, (size_t count, size_t size), (count, size))
CALL(void *, realloc, ENOMEM, NULL, (void *old, size_t size), (old, size))
CALL(char *, strdup, ENOMEM, NULL, (const char *text), (text))
CALL(char *, strndup, ENOMEM, NULL, (const char *text, size_t size), (text, size))
CALL(FILE *, fopen, EMFILE, NULL, (const char *path, const char *mode), (path, mode))
CALL(FILE *, fdopen, ENOMEM, NULL, (int fd, const char *mode), (fd, mode))
CALL(FILE *, open_memstream, ENOMEM, NULL, (char **text, size_t *size), (text, size))
CALL(DIR *, opendir, EMFILE, NULL, (const char *path), (path))
CALL(void *, mmap, ENOMEM, MAP_FAILED,
     (void *at, size_t size, int protection, int flags, int fd, off_t offset),
     (at, size, protection, flags, fd, offset))

/* What a full, read-only or broken disk refuses. A test with a write of its own goes untortured by
 * this one. */
__attribute__((weak)) ssize_t write(int fd, const void *data, size_t size);
CALL(ssize_t, write, ENOSPC, -1, (int fd, const void *data, size_t size), (fd, data, size))
CALL(ssize_t, pwrite, ENOSPC, -1, (int fd, const void *data, size_t size, off_t at),
     (fd, data, size, at))
NEXT_CALL(int, fsync, EIO, -1, (int fd), (fd))
NEXT_CALL(int, ftruncate, EIO, -1, (int fd, off_t size), (fd, size))
NEXT_CALL(int, renameat, ENOSPC, -1, (int from_dir, const char *from, int to_dir, const char *to),
	  (from_dir, from, to_dir, to))
NEXT_CALL(int, mkdir, ENOSPC, -1, (const char *path, mode_t mode), (path, mode))
NEXT_CALL(int, mkdirat, ENOSPC, -1, (int dir, const char *path, mode_t mode), (dir, path, mode))
NEXT_CALL(int, fchmod, EROFS, -1, (int fd, mode_t mode), (fd, mode))
NEXT_CALL(int, fchown, EPERM, -1, (int fd, uid_t user, gid_t group), (fd, user, group))

NEXT_CALL(int, socket, EMFILE, -1, (int family, int type, int protocol), (family, type, protocol))
NEXT_CALL(int, socketpair, EMFILE, -1, (int family, int type, int protocol, int fds[2]),
	  (family, type, protocol, fds))
NEXT_CALL(int, pipe2, EMFILE, -1, (int fds[2], int flags), (fds, flags))
NEXT_CALL(DIR *, fdopendir, ENOMEM, NULL, (int fd), (fd))
NEXT_CALL(pid_t, fork, EAGAIN, -1, (void), ())
NEXT_CALL(int, memfd_create, EMFILE, -1, (const char *name, unsigned flags), (name, flags))
NEXT_CALL(int, epoll_create1, EMFILE, -1, (int flags), (flags))
NEXT_CALL(int, signalfd, EMFILE, -1, (int fd, const sigset_t *set, int flags), (fd, set, flags))

/* The C library's own look-ups do not survive it (2.36: nss_database.c:402): they fail whole. */
#define LOOK_UP(type, function, number, bad, typed, plain)                                         \
	extern type __interceptor_##function typed;                                                \
	type function typed                                                                        \
	{                                                                                          \
		type answer = bad;                                                                 \
                                                                                                   \
		if (fails(#function, number))                                                      \
			return answer;                                                             \
		inside++;                                                                          \
		answer = __interceptor_##function plain;                                           \
		inside--;                                                                          \
		return answer;                                                                     \
	}

LOOK_UP(struct passwd *, getpwuid, ENOMEM, NULL, (uid_t id), (id))
LOOK_UP(int, getpwnam_r, 0, ENOMEM,
	(const char *name, struct passwd *entry, char *text, size_t size, struct passwd **result),
	(name, entry, text, size, result))
LOOK_UP(int, getgrnam_r, 0, ENOMEM,
	(const char *name, struct group *entry, char *text, size_t size, struct group **result),
	(name, entry, text, size, result))
LOOK_UP(int, getgrouplist, ENOMEM, -1, (const char *user, gid_t group, gid_t *groups, int *count),
	(user, group, groups, count))
LOOK_UP(int, getaddrinfo, 0, EAI_MEMORY,
	(const char *node, const char *service, const struct addrinfo *hints,
	 struct addrinfo **result),
	(node, service, hints, result))

/* Where nothing else can be written it is told there: who started this reads it. */
void syslog(int priority, const char *format, ...)
{
	va_list list;

	(void)priority;
	va_start(list, format);
	(void)vfprintf(stderr, format, list);
	va_end(list);
	(void)fputc('\n', stderr);
}

static mode_t mode_of(int flags, va_list list)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
	va_list list;
	mode_t mode;

	va_start(list, flags);
	mode = mode_of(flags, list);
	va_end(list);
	if (fails("open", EMFILE))
		return -1;
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

__attribute__((weak)) int openat(int dir, const char *path, int flags, ...)
{
	va_list list;
	mode_t mode;

	va_start(list, flags);
	mode = mode_of(flags, list);
	va_end(list);
	if (fails("openat", EMFILE))
		return -1;
	return (int)syscall(SYS_openat, dir, path, flags, mode);
}

__attribute__((weak)) long syscall(long number, ...)
{
	static long (*next)(long, long, long, long, long, long, long);
	long a[6];
	va_list list;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "syscall");
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_openat2 && fails("openat2", EMFILE))
		return -1;
	if (number == SYS_pidfd_open && fails("pidfd_open", EMFILE))
		return -1;
	if (number == SYS_clone && fails("clone", EAGAIN))
		return -1;
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* A test that fails on its way does not tidy up: who started it does. */
char *mkdtemp(char *template)
{
	static char *(*next)(char *);
	char *made;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "mkdtemp");
	made = next(template);
	for (int i = 0; shared && made && made[0] == '/' && i < FAIL_NTH_PATHS; i++) {
		if (shared->made[i][0])
			continue;
		(void)strncpy(shared->made[i], made, sizeof(shared->made[i]) - 1);
		break;
	}
	return made;
}

/* --- the beginning ---------------------------------------------------------------------------- */

static void read_functions(void)
{
	char path[PATH_MAX + 16];
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
	struct function *to = functions;
	FILE *file;

	if (length < 0)
		return;
	(void)strcpy(path + length, ".functions");
	file = fopen(path, "re");
	while (file && to < functions + sizeof(functions) / sizeof(functions[0]) &&
	       fscanf(file, " %c %lx %lx", &to->whose, &to->begin, &to->size) == 3)
		to++;
	function_count = (size_t)(to - functions);
	if (file)
		(void)fclose(file);
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("FAIL_NTH");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *map, *frames[4];

	if (fd < 0)
		return;
	read_functions();
	(void)backtrace(frames, 4); /* loads its library */
	map = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (map != MAP_FAILED)
		shared = map;
}
