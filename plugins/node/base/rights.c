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

/* /proc/PID/io of another user's process asks for both: to open it and to read it. */
#define NEEDED (1U << CAP_SYS_PTRACE | 1U << CAP_DAC_READ_SEARCH)

static int set_capabilities(uint32_t effective, uint32_t permitted, uint32_t inheritable)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{effective, permitted, inheritable}, {0, 0, 0}};

	return (int)syscall(SYS_capset, &header, data);
}

/* Of what this process has, the needed ones: in a container some may be missing already. */
static uint32_t permitted_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0, 0, 0}, {0, 0, 0}};

	if (syscall(SYS_capget, &header, data) < 0)
		return 0;
	return data[0].permitted;
}

static int become_nobody(uint32_t needed, uint32_t inheritable, struct sy_error *err)
{
	uint32_t keep = permitted_capabilities() & needed;

	for (int c = 0; prctl(PR_CAPBSET_READ, c, 0, 0, 0) >= 0; c++)
		if (c > 31 || !(inheritable & 1U << c))
			(void)prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0 ||
	    setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
		return sy_fail_errno(err, errno, "cannot become uid %d", NOBODY);
	if (set_capabilities(keep, keep, keep & inheritable) < 0)
		return sy_fail_errno(err, errno, "cannot give up capabilities");
	return 0;
}

static int drop_to(uint32_t needed, struct sy_error *err)
{
	if (geteuid() == 0 && become_nobody(needed, 0, err) < 0)
		return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return sy_fail_errno(err, errno, "cannot fence in the sampler");
	return 0;
}

int sy_rights_drop(struct sy_error *err)
{
	return drop_to(NEEDED, err);
}

/* Of init, who is another user. */
static bool others_are_seen(void)
{
	return access("/proc/1/stat", R_OK) == 0;
}

bool sy_rights_drop_ptrace(void)
{
	uint32_t all = permitted_capabilities();

	if (geteuid() != NOBODY || set_capabilities(0, all, 0) < 0)
		return false;
	if (!others_are_seen()) {
		(void)set_capabilities(all, all, 0);
		return false;
	}
	return set_capabilities(0, 0, 0) == 0;
}

int sy_rights_none(struct sy_error *err)
{
	return drop_to(0, err);
}

/* Ambient rights stay over exec (capabilities(7)). */
int sy_rights_capture(struct sy_error *err)
{
	const uint32_t raw = 1U << CAP_NET_RAW;

	if (geteuid() == 0 && become_nobody(raw, raw, err) < 0)
		return -1;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_RAW, 0, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return sy_fail_errno(err, errno, "capture: needs the right CAP_NET_RAW");
	return 0;
}
