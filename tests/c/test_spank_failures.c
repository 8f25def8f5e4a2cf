/* The real spank_steelyard.so with everything broken around it: no callback fails, no node is
 * drained. argv[1]: the plugin. Without Slurm's headers there is nothing to load. */
#include "tap.h"

#if !__has_include(<slurm/spank.h>)
int main(void)
{
	(void)puts("1..0 # SKIP no slurm/spank.h here (Debian: libslurm-dev)");
	return 0;
}
#else

#include "spank_node.h"

/* Whatever is broken, the job continues. */
static void test_broken(const char *path)
{
	void *plugin;

	(void)snprintf(arg_node, sizeof(arg_node), "node_program=/nonexistent/node");
	plugin = load(path, S_CTX_REMOTE, SLURM_EXTERN_CONT);
	is_int(call(plugin, "slurm_spank_init_post_opt"), 0, "no node program: the job goes on");
	ok(errors == 1 && strstr(last_error, "cannot run node_program=/nonexistent/node"),
	   "one line in the log");
	is_int(call(plugin, "slurm_spank_exit"), 0, "and ends");
	is_int(dlclose(plugin), 0, "unloads");

	(void)snprintf(arg_node, sizeof(arg_node), "node_program=%s/node", dir);
	(void)snprintf(arg_run, sizeof(arg_run), "run_dir=/proc/nonexistent");
	plugin = load(path, S_CTX_REMOTE, SLURM_EXTERN_CONT);
	is_int(call(plugin, "slurm_spank_init_post_opt"), 0, "no run_dir: the job goes on");
	ok(errors == 1 && strstr(last_error, "/proc/nonexistent"), "one line in the log");
	is_int(call(plugin, "slurm_spank_exit"), 0, "and ends");
	is_int(dlclose(plugin), 0, "unloads");

	slurm_answers = false;
	plugin = load(path, S_CTX_REMOTE, 0);
	is_int(call(plugin, "slurm_spank_init_post_opt"), 0,
	       "Slurm tells nothing: the job goes on");
	is_int(call(plugin, "slurm_spank_task_post_fork"), 0, "a task starts");
	is_int(call(plugin, "slurm_spank_exit"), 0, "and ends");
	is_int(dlclose(plugin), 0, "unloads");
	slurm_answers = true;
}

/* What Slurm may call after slurm_spank_init: spank_syms of its src/common/spank.c. */
static const char *const callbacks[] = {
    "slurm_spank_job_prolog",
    "slurm_spank_init_post_opt",
    "slurm_spank_local_user_init",
    "slurm_spank_user_init",
    "slurm_spank_task_init_privileged",
    "slurm_spank_task_init",
    "slurm_spank_task_post_fork",
    "slurm_spank_task_exit",
    "slurm_spank_job_epilog",
    "slurm_spank_slurmd_exit",
    "slurm_spank_exit",
};

/* From 25.05 on any value but 0 is an error, that of init drains the node. With Slurm telling
 * nothing, our program and folders missing, wrong options from the user: 0 everywhere. */
static void test_never_drains(const char *path)
{
	static const enum spank_context all[] = {S_CTX_ERROR,	  S_CTX_LOCAL,	S_CTX_REMOTE,
						 S_CTX_ALLOCATOR, S_CTX_SLURMD, S_CTX_JOB_SCRIPT};
	int wrong = 0, called = 0;
	const int *mode;
	void *plugin;

	slurm_answers = false;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		plugin = load(path, all[i], SLURM_BATCH_SCRIPT);
		for (size_t at = 0; all[i] == S_CTX_REMOTE && at < option_count; at++)
			wrong += give(options[at]->name, "nonsense", 1) != 0;
		for (size_t at = 0; at < sizeof(callbacks) / sizeof(callbacks[0]); at++) {
			int rc = dlsym(plugin, callbacks[at]) ? call(plugin, callbacks[at]) : 0;

			called += dlsym(plugin, callbacks[at]) != NULL;
			wrong += rc != 0;
			if (rc != 0)
				(void)printf("# %s in context %d: %d\n", callbacks[at], all[i], rc);
		}
		(void)dlclose(plugin);
	}
	slurm_answers = true;
	is_int(called, 6 * 7, "seven more callbacks in every context");
	is_int(wrong, 0, "none of them fails, whatever is missing");
	plugin = load(path, S_CTX_REMOTE, 0);
	mode = dlsym(plugin, "slurm_spank_init_failure_mode");
	is_int(mode ? *mode : 0, 3012, "a failing init would be the job's fault, not the node's");
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
	is_int(mode ? *mode : 0, ESPANK_JOB_FAILURE, "as Slurm's own header has it");
#endif
	(void)dlclose(plugin);
}

/* The requests that the sampler's stand-in received, or "" after a minute. */
static const char *await_requests(void)
{
	const struct timespec pause = {.tv_nsec = 10000000};

	for (int i = 0; i < 6000 && !*read_requests(); i++)
		(void)nanosleep(&pause, NULL);
	return read_requests();
}

/* A thread of slurmstepd's takes the user's rights for a moment, and with it all (24.11, 26.05):
 * nothing can be opened below a run_dir that is root's. */
static void test_leave_as_user(const char *path)
{
	char program[300];
	void *plugin;

	if (geteuid() != 0) {
		ok(true, "leaves with the user's rights # SKIP needs root");
		return;
	}
	(void)snprintf(notes, sizeof(notes), "%s/heard", dir);
	(void)snprintf(arg_run, sizeof(arg_run), "run_dir=%s/run", dir);
	(void)snprintf(program, sizeof(program),
		       "#!/bin/sh\n[ \"$1\" = sample ] && exec timeout 20 dd bs=64 count=1 <&3 "
		       ">%s 2>/dev/null\n",
		       notes);
	write_text("node", program, 0700);
	plugin = load(path, S_CTX_REMOTE, SLURM_EXTERN_CONT);
	is_int(call(plugin, "slurm_spank_init_post_opt"), 0, "the extern step starts");
	is_int(setegid(65534) | seteuid(65534), 0, "somebody takes the user's rights");
	is_int(call(plugin, "slurm_spank_exit"), 0, "and it ends");
	is_int(seteuid(0) | setegid(0), 0, "and gives them back");
	is_string(await_requests(), "leave", "the sampler hears of it");
	is_int(dlclose(plugin), 0, "unloads");
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "build/lib/spank_steelyard.so";

	if (!ok(access(path, R_OK) == 0, "the plugin is at %s", path) || !make_folder())
		return done_testing();
	test_broken(path);
	test_never_drains(path);
	test_leave_as_user(path);
	ok(remove_folder(), "tidy");
	return done_testing();
}
#endif
