/* Preloaded: bpf(2) as older kernels refuse it. Before Linux 5.19, where
 * kernel.unprivileged_bpf_disabled is not 0, every call of who has neither CAP_BPF nor
 * CAP_SYS_ADMIN; before 5.11 every map that is more than may be locked in memory (here any; the
 * limit is one of our own, since root of a container may not lift the kernel's).
 * tests/guests/kernels has such kernels themselves. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HALF	   32
#define BPF	   (39 - HALF)
#define MAP_CREATE 0
#define WORDS	   6

typedef long call(long number, ...);

static int is_able(call *real)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	(void)real(SYS_capget, &header, data);
	return data[0].effective & 1U << CAP_SYS_ADMIN || data[1].effective & 1U << BPF;
}

static struct rlimit locked = {8 << 20, 8 << 20}; /* as systemd has it */

int getrlimit(__rlimit_resource_t which, struct rlimit *limit)
{
	if (which != RLIMIT_MEMLOCK)
		return prlimit(0, which, NULL, limit);
	*limit = locked;
	return 0;
}

int setrlimit(__rlimit_resource_t which, const struct rlimit *limit)
{
	if (which != RLIMIT_MEMLOCK)
		return prlimit(0, which, limit, NULL);
	locked = *limit;
	return 0;
}

/* The names of both where files may be large (_FILE_OFFSET_BITS=64); the structures are the same.
 */
int getrlimit64(__rlimit_resource_t which, struct rlimit64 *limit)
{
	return getrlimit(which, (struct rlimit *)limit);
}

int setrlimit64(__rlimit_resource_t which, const struct rlimit64 *limit)
{
	return setrlimit(which, (const struct rlimit *)limit);
}

static int is_refused(call *real, int command)
{
	return !is_able(real) || (command == MAP_CREATE && locked.rlim_cur != RLIM_INFINITY);
}

long syscall(long number, ...)
{
	call *real = (call *)dlsym(RTLD_NEXT, "syscall");
	long word[WORDS];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < WORDS; i++)
		word[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_bpf && is_refused(real, (int)word[0])) {
		errno = EPERM;
		return -1;
	}
	return real(number, word[0], word[1], word[2], word[3], word[4], word[5]);
}
