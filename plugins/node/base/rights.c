/* The raw system calls, so that libcap is not needed. */
#include "base/rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOBODY 65534

#ifndef CAP_BPF
#define CAP_BPF 39 /* from Linux 5.8 on */
#endif

#define RIGHT(capability) (1ULL << (capability))

/* /proc/PID/io of another user's process needs both: to open it and to read it. */
#define NEEDED (RIGHT(CAP_SYS_PTRACE) | RIGHT(CAP_DAC_READ_SEARCH))

struct rights {
	uint64_t effective, permitted, inheritable;
};

/* The kernel's two halves. */
static int set_rights(uint64_t effective, uint64_t permitted, uint64_t inheritable)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {
	    {(uint32_t)effective, (uint32_t)permitted, (uint32_t)inheritable},
	    {(uint32_t)(effective >> 32), (uint32_t)(permitted >> 32),
	     (uint32_t)(inheritable >> 32)},
	};

	return (int)syscall(SYS_capset, &header, data);
}

/* The needed rights that this process has: in a container some may be missing. */
static struct rights read_rights(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0, 0, 0}, {0, 0, 0}};

	if (syscall(SYS_capget, &header, data) < 0)
		return (struct rights){0};
	return (struct rights){data[0].effective | (uint64_t)data[1].effective << 32,
			       data[0].permitted | (uint64_t)data[1].permitted << 32,
			       data[0].inheritable | (uint64_t)data[1].inheritable << 32};
}

/* Where a user namespace has no such id (EINVAL), its root is an ordinary user outside, and without
 * capabilities no more than that. */
static int change_ids(void)
{
	return setresgid(NOBODY, NOBODY, NOBODY) == 0 && setgroups(0, NULL) == 0 &&
		       setresuid(NOBODY, NOBODY, NOBODY) == 0
		   ? 0
		   : -errno;
}

static int become_nobody(uint64_t needed, struct sy_error *err)
{
	int failure;
	uint64_t needed_rights = read_rights().permitted & needed;

	for (int c = 0; prctl(PR_CAPBSET_READ, c, 0, 0, 0) >= 0; c++)
		(void)prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
	failure = prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 ? -errno : change_ids();
	if (failure < 0 && failure != -EINVAL)
		return sy_fail_errno(err, -failure, "cannot become uid %d", NOBODY);
	if (set_rights(needed_rights, needed_rights, 0) < 0)
		return sy_fail_errno(err, errno, "cannot give up capabilities");
	return 0;
}

static int drop_to(uint64_t needed, struct sy_error *err)
{
	if (geteuid() == 0 && become_nobody(needed, err) < 0)
		return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return sy_fail_errno(err, errno, "cannot fence in the sampler");
	return 0;
}

int sy_rights_drop(bool bpf, struct sy_error *err)
{
	return drop_to(bpf ? NEEDED | RIGHT(CAP_BPF) : NEEDED, err);
}

bool sy_needs_rights(int (*call)(const void *context), const void *context)
{
	struct rights own = read_rights();
	int result;

	if (set_rights(0, own.permitted, own.inheritable) < 0)
		return false;
	result = call(context);
	(void)set_rights(own.effective, own.permitted, own.inheritable);
	return result == -EPERM;
}

/* True when /proc shows a process of another user: init. */
static bool can_see_other_users(void)
{
	return access("/proc/1/stat", R_OK) == 0;
}

bool sy_rights_drop_ptrace(void)
{
	uint64_t all = read_rights().permitted, needed_rights = all & RIGHT(CAP_BPF);

	if (geteuid() != NOBODY || set_rights(needed_rights, all, 0) < 0)
		return false;
	if (!can_see_other_users()) {
		(void)set_rights(all, all, 0);
		return false;
	}
	return set_rights(needed_rights, needed_rights, 0) == 0;
}

int sy_rights_drop_all(struct sy_error *err)
{
	return drop_to(0, err);
}
