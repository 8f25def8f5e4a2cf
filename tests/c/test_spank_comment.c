/* AdminComment by the real spank_steelyard.so, with a program in the place of steelyard-slurmdb.
 * argv[1]: the plugin. */
#include "tap.h"

#if !__has_include(<slurm/spank.h>)
int main(void)
{
	(void)puts("1..0 # SKIP no slurm/spank.h here (Debian: libslurm-dev)");
	return 0;
}
#else

#include <poll.h>

#include "spank_node.h"

/* A batch step, with a program that does `then`. */
static void end_of_step(const char *path, const char *then)
{
	void *plugin;

	accounting = then;
	plugin = load(path, S_CTX_REMOTE, SLURM_BATCH_SCRIPT);
	is_int(call(plugin, "slurm_spank_init_post_opt"), 0, "the batch step starts");
	is_int(call(plugin, "slurm_spank_exit"), 0, "and ends");
	is_int(dlclose(plugin), 0, "unloads");
}

static void test_request(const char *path)
{
	end_of_step(path, "echo 'info: AdminComment of job 4711: left as it is'");
	is_int(comments(), 1, "the program is started once");
	ok(strncmp(requests_text, "{\"job_id\":4711,\"batch\":true,\"own\":\"{",
		   strlen("{\"job_id\":4711,\"batch\":true,\"own\":\"{")) == 0,
	   "whose, and whether others may follow: %s", requests_text);
	ok(strncmp(last_request("own"), "{\"nodes\":1,", 11) == 0, "our value alone: %s",
	   last_request("own"));
	is_string(last_info, "steelyard: AdminComment of job 4711: left as it is",
		  "what it says is logged");
	end_of_step(path, "echo 'verbose: AdminComment of job 4711: written'");
	is_string(last_info, "", "and what is no news is not");
}

/* In a step over several components of a heterogeneous job, variables of the job name all nodes. */
static void test_component(const char *path)
{
	component_nodes = "n5";
	end_of_step(path, "true");
	ok(strncmp(last_request("own"), "{\"nodes\":1,", 11) == 0, "the component's one node: %s",
	   last_request("own"));
	component_nodes = "n[2-5]";
	end_of_step(path, "true");
	ok(!strstr(last_request("own"), "\"nodes\":5"), "and never those of all: %s",
	   last_request("own"));
	component_nodes = NULL;
}

static void test_program_that_hangs(const char *path)
{
	char mark[96], program[256];

	(void)snprintf(mark, sizeof(mark), "%s/ended", dir);
	/* It ends after a minute, so that a step that waits for it ends, too. */
	(void)snprintf(program, sizeof(program),
		       "for i in $(seq 600); do [ ! -e %s/go ] || break; sleep 0.1; done; : >%s",
		       dir, mark);
	end_of_step(path, program);
	ok(access(mark, F_OK) != 0, "no step waits for it");
	write_text("go", "", 0600);
	for (int i = 0; i < 6000 && access(mark, F_OK) != 0; i++)
		(void)poll(NULL, 0, 10);
	ok(access(mark, F_OK) == 0, "and it goes on by itself");
}

static void test_no_program(const char *path)
{
	void *plugin;
	char program[96];

	accounting = "";
	plugin = load(path, S_CTX_REMOTE, SLURM_BATCH_SCRIPT);
	(void)snprintf(program, sizeof(program), "%s/steelyard-slurmdb", dir);
	(void)unlink(program);
	is_int(call(plugin, "slurm_spank_init_post_opt"), 0, "the batch step starts");
	is_int(call(plugin, "slurm_spank_exit"), 0, "and ends");
	ok(strstr(last_info, "steelyard: AdminComment of job 4711: not written: cannot run ") ==
	       last_info,
	   "the log has it: %s", last_info);
	is_int(dlclose(plugin), 0, "unloads");
}

/* Nothing of the job's is open in it, and it is below none of its processes. */
static void test_what_it_has_of_the_job(const char *path)
{
	int open_file = open("/dev/zero", O_RDONLY), high = dup2(open_file, 8); /* as its pipes */
	char script[400], expected[64], text[200] = "";
	FILE *file;

	(void)snprintf(
	    script, sizeof(script),
	    "for f in 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$f ] && readlink /proc/$$/fd/$f; "
	    "done >%s/open; echo \"$PPID $(cut -d' ' -f6 /proc/$$/stat)\" >>%s/open; "
	    "echo late >&2; echo 'verbose: x'",
	    dir, dir);
	end_of_step(path, script);
	(void)snprintf(script, sizeof(script), "%s/open", dir);
	file = fopen(script, "r");
	if (file) {
		text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
		(void)fclose(file);
	}
	(void)snprintf(expected, sizeof(expected), "%d ", (int)getpid());
	ok(*text >= '0' && *text <= '9' && strncmp(text, expected, strlen(expected)) != 0,
	   "no descriptor of ours, and not our child: %s", text);
	ok(atoi(strchr(text, ' ') + 1) != getsid(0), "in a session of its own");
	(void)snprintf(script, sizeof(script), "grep -q late %s/run/n9.log", dir);
	is_int(system(script), 0, "its complaints are where the next job logs them");
	(void)close(open_file);
	(void)close(high);
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "build/lib/spank_steelyard.so";
	char run[96];

	if (!ok(access(path, R_OK) == 0, "the plugin is at %s", path) || !make_folder())
		return done_testing();
	(void)snprintf(run, sizeof(run), "%s/run", dir);
	(void)mkdir(run, 0700);
	test_request(path);
	test_component(path);
	test_program_that_hangs(path);
	test_no_program(path);
	test_what_it_has_of_the_job(path);
	ok(remove_folder(), "tidy");
	return done_testing();
}
#endif
