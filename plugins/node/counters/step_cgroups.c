#include "counters/step_cgroups.h"

#include "counters/process_list.h"
#include "counters/process_reading.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TRIES	 3 /* a daemon enters its group at its start, or never */
#define DAEMON	 "/slurm"
#define OF_TASKS "user"

static struct sy_step_group *find(struct sy_step_groups *groups, pid_t daemon)
{
	for (int i = 0; i < groups->count; i++)
		if (groups->step[i].daemon == daemon)
			return &groups->step[i];
	return NULL;
}

/* If the step's cgroup splits its CPU time, add that time to `split` and its user time to
 * `user`. */
static void add_split(const struct sy_step_group *step, double *split, double *user)
{
	double parts = (double)step->parts.user_us + (double)step->parts.system_us;

	if (step->parts.user_us == SY_UNKNOWN || parts <= 0)
		return;
	*split += (double)step->cpu_us;
	*user += (double)step->cpu_us * ((double)step->parts.user_us / parts);
}

/* As late as possible: the end of one may be reported twice. */
static void make_room(struct sy_step_groups *groups)
{
	for (int i = 0; i < groups->count; i++) {
		if (!groups->step[i].done || groups->step[i].fd >= 0)
			continue;
		groups->ended_us += groups->step[i].cpu_us;
		add_split(&groups->step[i], &groups->split_us, &groups->user_us);
		groups->count--;
		memmove(&groups->step[i], &groups->step[i + 1],
			sizeof(groups->step[0]) * (size_t)(groups->count - i));
		return;
	}
}

static void add(struct sy_step_groups *groups, pid_t daemon, bool is_extern)
{
	struct sy_step_group *old = find(groups, daemon);

	if (old && !old->done)
		return;
	if (old)
		old->daemon = 0; /* its id was given again */
	if (groups->count == SY_MAX_STEPS)
		make_room(groups);
	if (groups->count < SY_MAX_STEPS)
		groups->step[groups->count++] =
		    (struct sy_step_group){.daemon = daemon,
					   .fd = -1,
					   .is_extern = is_extern,
					   .parts = {SY_UNKNOWN, SY_UNKNOWN}};
}

void sy_step_groups_init(struct sy_step_groups *groups, struct sy_processes *all, int root,
			 pid_t extern_daemon)
{
	*groups = (struct sy_step_groups){.all = all, .root = root};
	all->fds_after -= SY_MAX_STEPS;
	if (extern_daemon > 0)
		add(groups, extern_daemon, true);
}

void sy_step_groups_add(struct sy_step_groups *groups, pid_t daemon)
{
	add(groups, daemon, false);
}

/* Of "0::JOB/step_X/slurm" the group of the step's tasks. */
static bool tasks_group(const char *text, const char *job, char *path, size_t size)
{
	const char *at = strstr(text, "0::"), *end;
	size_t length = strlen(job);

	if (!at || (at > text && at[-1] != '\n') || strncmp(at + 3, job, length) != 0 ||
	    at[3 + length] != '/')
		return false;
	at += 3;
	end = at + strcspn(at, "\n");
	if ((size_t)(end - at) <= length + strlen(DAEMON) ||
	    strncmp(end - strlen(DAEMON), DAEMON, strlen(DAEMON)) != 0)
		return false;
	return (size_t)snprintf(path, size, "%.*s/" OF_TASKS, (int)(end - at) - (int)strlen(DAEMON),
				at) < size;
}

/* What its group has counted, less the extern step's `sleep`, which may still be starting. */
static int64_t counted_us(struct sy_step_groups *groups, struct sy_step_group *step)
{
	struct sy_cpu_parts parts;
	int64_t counted = step->fd < 0 ? SY_UNKNOWN : sy_cgroup2_cpu_us(step->fd, &parts), clock;

	if (counted != SY_UNKNOWN)
		step->parts = parts;

	if (!step->is_extern || counted == SY_UNKNOWN)
		return counted;
	clock =
	    groups->all->extern_sleep ? sy_process_clock_ns(groups->all->extern_sleep) / 1000 : 0;
	if (clock > groups->sleep_us)
		groups->sleep_us = clock;
	return counted - groups->sleep_us;
}

static void read_one(struct sy_step_groups *groups, struct sy_step_group *step)
{
	int64_t counted = counted_us(groups, step);

	if (counted == SY_UNKNOWN) {
		if (step->fd >= 0)
			(void)close(step->fd);
		step->fd = -1;
		return;
	}
	if (counted - step->zero_us > step->cpu_us)
		step->cpu_us = counted - step->zero_us;
}

static void find_one(struct sy_step_groups *groups, struct sy_step_group *step)
{
	char text[4096], path[600];
	int64_t counted;

	step->tries++;
	if (sy_process_file(groups->all, step->daemon, "cgroup", NULL, text, sizeof(text)) <= 0 ||
	    !tasks_group(text, groups->all->cgroup, path, sizeof(path)))
		return;
	step->fd = sy_cgroup2_open_cpu(groups->root, path);
	counted = counted_us(groups, step);
	if (step->is_extern && counted != SY_UNKNOWN)
		step->zero_us = counted;
	groups->known |= counted != SY_UNKNOWN;
	read_one(groups, step);
}

void sy_step_groups_find(struct sy_step_groups *groups)
{
	if (!groups->all || !groups->all->cgroup)
		return;
	for (int i = 0; i < groups->count; i++) {
		struct sy_step_group *step = &groups->step[i];

		if (step->daemon > 0 && step->fd < 0 && !step->done && step->tries < TRIES)
			find_one(groups, step);
	}
}

void sy_step_groups_done(struct sy_step_groups *groups, pid_t daemon, int64_t reported_us)
{
	struct sy_step_group *step = find(groups, daemon);

	if (!step)
		return;
	read_one(groups, step);
	step->done = true;
	if (reported_us > step->cpu_us)
		step->cpu_us = reported_us;
}

int64_t sy_step_groups_cpu_us(struct sy_step_groups *groups)
{
	int64_t sum = groups->ended_us;

	if (!groups->known)
		return SY_UNKNOWN;
	for (int i = 0; i < groups->count; i++) {
		read_one(groups, &groups->step[i]);
		sum += groups->step[i].cpu_us;
	}
	return sum;
}

#define UNSPLIT 0.01

int sy_step_groups_split_us(struct sy_step_groups *groups, int64_t *user, int64_t *system)
{
	int64_t total = sy_step_groups_cpu_us(groups);
	double split = groups->split_us, in_programs = groups->user_us;

	for (int i = 0; i < groups->count; i++)
		add_split(&groups->step[i], &split, &in_programs);
	if (total == SY_UNKNOWN || split <= 0 || split < (double)total * (1 - UNSPLIT))
		return -1;
	*user = (int64_t)((double)total * (in_programs / split) + 0.5);
	*system = total - *user;
	return 0;
}

void sy_step_groups_count_from(struct sy_step_groups *groups, int64_t counted_us, int64_t used_us)
{
	groups->ended_us += used_us - counted_us;
}
