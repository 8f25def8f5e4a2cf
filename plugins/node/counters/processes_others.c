#include "counters/processes_others.h"

#include "counters/parse.h"
#include "counters/processes_read.h"

#include <string.h>
#include <unistd.h>

/* Sessions tell only where descent alone makes a process the job's. */
static bool sessions_tell(const struct sy_processes *all)
{
	return !all->cgroup && !all->starter.pid;
}

static bool is_new(int64_t low, int64_t high, pid_t id)
{
	return low <= high ? id > low && id <= high : id > low || id <= high;
}

/* The number of a session that has ended may be given anew. */
static void drop_new_ones(struct sy_others *others, int64_t low, int64_t high)
{
	for (int i = 0; i < SY_MAX_OTHER_SESSIONS; i++)
		if (is_new(low, high, others->session[i].id))
			others->session[i].id = 0;
}

void sy_others_begin(struct sy_processes *all, bool everything, int64_t low, int64_t high)
{
	struct sy_others *others = &all->others;

	others->before_count = everything ? 0 : others->count;
	memcpy(others->before, others->pid, sizeof(pid_t) * (size_t)others->before_count);
	others->count = 0;
	if (everything)
		memset(others->session, 0, sizeof(others->session));
	else
		drop_new_ones(others, low, high);
}

static const struct sy_session *session_of(const struct sy_others *others, pid_t id)
{
	for (int i = 0; i < SY_MAX_OTHER_SESSIONS; i++)
		if (others->session[i].id == id)
			return &others->session[i];
	return NULL;
}

static bool holds_one_of_ours(const struct sy_processes *all, pid_t session)
{
	for (int i = 0; i < all->count; i++)
		if (getsid(all->process[i].pid) == session)
			return true;
	return false;
}

/* Nobody joins a session but by being born in it. So when its leader was there before us, and no
 * root and no process of the job is in it, all that come in it are others'. */
static bool is_others(struct sy_processes *all, pid_t session)
{
	struct sy_stat leader;
	char text[1024];

	return sy_process_file(all, session, "stat", NULL, text, sizeof(text)) > 0 &&
	       sy_parse_stat(text, &leader) == 0 && leader.starttime < all->start_ticks &&
	       !holds_one_of_ours(all, session);
}

void sy_others_add(struct sy_processes *all, pid_t pid, pid_t session)
{
	struct sy_others *others = &all->others;

	if (others->count < SY_MAX_OTHERS)
		others->pid[others->count++] = pid;
	if (!sessions_tell(all) || session <= 0 || session_of(others, session))
		return;
	others->session[others->next] = (struct sy_session){session, is_others(all, session)};
	others->next = (others->next + 1) % SY_MAX_OTHER_SESSIONS;
}

bool sy_others_have(const struct sy_processes *all, pid_t pid)
{
	const struct sy_session *session;
	pid_t id;

	for (int i = 0; i < all->others.before_count; i++)
		if (all->others.before[i] == pid)
			return true;
	if (!sessions_tell(all))
		return false;
	id = getsid(pid);
	session = id > 0 ? session_of(&all->others, id) : NULL;
	return id < 0 || (session && session->others);
}
