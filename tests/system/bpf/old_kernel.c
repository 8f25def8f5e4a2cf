/* Preloaded: bpf(2) as older kernels refuse it. Before Linux 5.19, where
 * kernel.unprivileged_bpf_disabled is not 0, every call of who has neither CAP_BPF nor
 * CAP_SYS_ADMIN. tests/guests/kernels has such kernels themselves. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HALF  32
#define BPF   (39 - HALF)
#define WORDS 6

typedef long call(long number, ...);

static int is_able(call *real)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	(void)real(SYS_capget, &header, data);
	return data[0].effective & 1U << CAP_SYS_ADMIN || data[1].effective & 1U << BPF;
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
	if (number == SYS_bpf && !is_able(real)) {
		errno = EPERM;
		return -1;
	}
	return real(number, word[0], word[1], word[2], word[3], word[4], word[5]);
}
