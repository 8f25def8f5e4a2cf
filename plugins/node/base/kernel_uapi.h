/* What we ask of the kernel and the headers of RHEL 8 (Linux 4.18, glibc 2.28) do not name yet; it
 * may run a newer kernel, and what that refuses is seen by ENOSYS. The numbers are the same on
 * every architecture since 5.1 (linux: arch/<any>/tools/syscall.tbl), the rest is in
 * include/uapi/linux. */
#ifndef STEELYARD_BASE_KERNEL_UAPI_H
#define STEELYARD_BASE_KERNEL_UAPI_H

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

/* openat2.h */
struct sy_open_how {
	uint64_t flags, mode, resolve;
};
#define SY_RESOLVE_IN_ROOT 0x10

/* inet_diag.h, gen_stats.h, pkt_sched.h (Linux 6.6) */
#define SY_TCA_NETEM_PRNG_SEED 14
#define SY_INET_DIAG_CGROUP_ID 21
#define SY_TCA_STATS_PKT64     8

#endif
