/* Included before every source by `make lint`: what the headers of RHEL 8 (Linux 4.18, glibc 2.28)
 * do not have is not to be had from newer ones, either. */
#include <fcntl.h>
#include <linux/gen_stats.h>
#include <linux/inet_diag.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#undef SYS_pidfd_open
#undef SYS_close_range
#undef SYS_openat2
#pragma GCC poison open_how RESOLVE_IN_ROOT TCA_STATS_PKT64 INET_DIAG_CGROUP_ID
/* Of glibc 2.29 to 2.38. */
#pragma GCC poison gettid tgkill posix_spawn_file_actions_addchdir_np sigabbrev_np
#pragma GCC poison strerrorname_np strerrordesc_np close_range closefrom execveat pidfd_open
#pragma GCC poison arc4random epoll_pwait2 strlcpy strlcat _Fork
