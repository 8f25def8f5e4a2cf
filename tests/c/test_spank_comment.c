/* AdminComment in the real spank_steelyard.so, with a slurmctld that is late, refuses, or holds
 * what others wrote. argv[1]: the plugin. */
#include "tap.h"

#if !__has_include(<slurm/spank.h>)
int main(void)
{
	(void)puts("1..0 # SKIP no slurm/spank.h here (Debian: libslurm-dev)");
	return 0;
}
#else

#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "spank_host.h"

/* Who tells a process id is slow, as on a busy node: no word may overtake it (one did, and the log
 * had a line without its first letters). */
ssize_t write(int fd, const void *data, size_t size)
{
	const struct timespec slow = {.tv_nsec = 20000000};

	if (size == sizeof(pid_t))
		(void)nanosleep(&slow, NULL);
	return syscall(SYS_write, fd, data, size);
}

static double now_s(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *batch_step(const char *path)
{
	void *plugin = load(path, S_CTX_REMOTE, SLURM_BATCH_SCRIPT);

	is_int(call(plugin, "slurm_spank_init_post_opt"), 0, "the batch step starts");
	return plugin;
}

static double end_of(void *plugin)
{
	double began = now_s();

	is_int(call(plugin, "slurm_spank_exit"), 0, "and ends");
	return now_s() - began;
}

static void test_what_others_wrote(const char *path)
{
	void *plugin = batch_step(path);

	(void)snprintf(slurmctld->admin_comment, sizeof(slurmctld->admin_comment),
		       "{\"site\":[1.50]}");
	(void)end_of(plugin);
	wait_for_comments(1);
	ok(strstr(slurmctld->admin_comment, "{\"site\":[1.50],\"steelyard\":{\"nodes\":1,") ==
	       slurmctld->admin_comment,
	   "stays, and ours is beside it: %s", slurmctld->admin_comment);
	is_int(dlclose(plugin), 0, "unloads");

	plugin = batch_step(path);
	(void)snprintf(slurmctld->admin_comment, sizeof(slurmctld->admin_comment), "JS1:text");
	(void)end_of(plugin);
	is_int(slurmctld->comments, 0, "text that is no object has no room for ours");
	is_string(slurmctld->admin_comment, "JS1:text", "and stays");
	ok(strstr(last_info, "steelyard: AdminComment of job 4711: left as it is: there is text of "
			     "somebody else") != NULL,
	   "slurmd's log tells it: %s", last_info);
	is_int(dlclose(plugin), 0, "unloads");
}

/* Slurm refuses then, and logs an error each time. */
static void test_job_that_is_over(const char *path)
{
	void *plugin = batch_step(path);

	slurmctld->state = JOB_COMPLETE | JOB_COMPLETING;
	slurmctld->refusal = ESLURM_ALREADY_DONE;
	slurmctld->refusals = 9;
	(void)end_of(plugin);
	is_int(slurmctld->comments, 0, "a job that is over is left alone");
	is_int(slurmctld->refusals, 9, "and slurmctld not bothered");
	is_int(dlclose(plugin), 0, "unloads");
}

static void test_refused_once(const char *path)
{
	void *plugin = batch_step(path);

	slurmctld->refusal = SLURM_COMMUNICATIONS_CONNECTION_ERROR;
	slurmctld->refusals = 1;
	ok(end_of(plugin) < 1.9, "the step's end waits a little for the comment");
	wait_for_comments(1);
	is_int(slurmctld->comments, 1, "which is written a second later");
	is_int(dlclose(plugin), 0, "unloads, though it is still being written");
}

/* What was known at the start must not come after what was known at the end. */
static void test_late_slurmctld(const char *path)
{
	void *plugin;

	(void)snprintf(tags_variable, sizeof(tags_variable), "a=1");
	plugin = load(path, S_CTX_REMOTE, SLURM_BATCH_SCRIPT);
	slurmctld->delay_s = 60;
	ok(call(plugin, "slurm_spank_init_post_opt") == 0, "the batch step starts");
	slurmctld->delay_s = 3;
	ok(end_of(plugin) < 2.8, "and ends before slurmctld has answered");
	wait_for_comments(1);
	ok(strstr(slurmctld->admin_comment, "\"missing\":") != NULL,
	   "the last word is the end's: %s", slurmctld->admin_comment);
	is_int(slurmctld->comments, 1, "the start's was given up");
	is_int(dlclose(plugin), 0, "unloads");
	tags_variable[0] = '\0';
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "build/lib/spank_steelyard.so";

	if (!ok(access(path, R_OK) == 0, "the plugin is at %s", path) || !make_folder())
		return done_testing();
	test_what_others_wrote(path);
	test_job_that_is_over(path);
	test_refused_once(path);
	test_late_slurmctld(path);
	ok(remove_folder(), "tidy");
	return done_testing();
}
#endif
