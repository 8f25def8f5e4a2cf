#include "sampler/open_roots.h"

#include "base/kernel.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

bool sy_lives(pid_t pid)
{
	struct pollfd ended = {(int)syscall(SYS_pidfd_open, pid, 0), POLLIN, 0};
	bool gone;

	if (ended.fd < 0)
		return errno != ESRCH && (kill(pid, 0) == 0 || errno != ESRCH);
	gone = poll(&ended, 1, 0) > 0;
	(void)close(ended.fd);
	return !gone;
}

static void forget_the_dead(struct sy_open_roots *roots)
{
	int kept = 0;

	for (int i = 0; i < roots->count; i++)
		if (sy_lives(roots->pid[i]))
			roots->pid[kept++] = roots->pid[i];
	roots->count = kept;
}

void sy_open_roots_add(struct sy_open_roots *roots, pid_t pid)
{
	if (roots->count == SY_MAX_OPEN_ROOTS)
		forget_the_dead(roots);
	for (int i = 0; i < roots->count; i++)
		if (roots->pid[i] == pid)
			return;
	if (roots->count < SY_MAX_OPEN_ROOTS)
		roots->pid[roots->count++] = pid;
}

pid_t sy_open_roots_living(struct sy_open_roots *roots)
{
	forget_the_dead(roots);
	return roots->count ? roots->pid[0] : 0;
}
