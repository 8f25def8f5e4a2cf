/* The real spank_steelyard.so in a small host: --cache=cold, had or refused, by several steps. */
#include "tap.h"

#if !__has_include(<slurm/spank.h>)
int main(void)
{
	(void)puts("1..0 # SKIP no slurm/spank.h here (Debian: libslurm-dev)");
	return 0;
}
#else

#include "spank_node.h"

/* The sampler's end of the socket, bound here. */
static int listen_as_sampler(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/run/n9.%u.sock", dir, JOB);
	(void)unlink(address.sun_path);
	return bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? fd : -1;
}

/* True when the message is among those that the sampler has received. */
static bool has_received(int sampler, const char *message)
{
	char text[4096];
	bool found = false;
	ssize_t got;

	while ((got = recv(sampler, text, sizeof(text) - 1, 0)) > 0) {
		text[got] = '\0';
		found |= !strcmp(text, message);
	}
	return found;
}

static void *start_cold_step(const char *path)
{
	void *plugin = load(path, S_CTX_REMOTE, 0);

	(void)give("cache", "cold", 1);
	(void)call(plugin, "slurm_spank_init_post_opt");
	return plugin;
}

static void cold_step(const char *path, int code, const char *says, int sampler,
		      const char *message)
{
	char text[1024];
	void *plugin = start_cold_step(path);

	is_int(run_task(plugin, text, sizeof(text)), code, "exit code of a task");
	is_string(text, says, "what it says");
	ok(has_received(sampler, message), "the record: %s", message);
	is_int(dlclose(plugin), 0, "unloads");
}

static void test_cold_caches(const char *path)
{
	static const char refusal[] = "steelyard: --cache=cold: not yours alone\n";
	static const char in_record[] = "unmet cache refused: --cache=cold: not yours alone";
	static const char done[] =
	    "{\"requested\":\"cold\",\"done\":[\"page cache\"],\"refused\":[]}";
	int sampler = listen_as_sampler();
	char program[256];

	write_program("echo 'steelyard-node cache: not yours alone' >&2; exit 4");
	cold_step(path, 4, refusal, sampler, in_record);
	cold_step(path, 4, refusal, sampler, in_record);
	(void)snprintf(program, sizeof(program), "echo '%s'", done);
	write_program(program);
	cold_step(path, 0, "", sampler, "unmet cache asked for, not in place yet: --cache=cold");
	ok(strstr(read_requests(), "cache --cold") != NULL, "what was refused is asked for again");
	write_program("exit 4");
	cold_step(path, 0, "", sampler, "unmet cache asked for, not in place yet: --cache=cold");
	is_string(read_requests(), "", "what was done is not done again");
	(void)close(sampler);
	(void)snprintf(program, sizeof(program), "%s/run/n9.%u.cold", dir, JOB);
	is_int(unlink(program), 0, "a mark");
}

/* Wait for a file, at most `limit_ms`. */
static bool wait_for_file(const char *name, int limit_ms)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	for (; access(path, F_OK) != 0 && limit_ms > 0; limit_ms -= 10)
		(void)usleep(10000);
	return limit_ms > 0;
}

/* A slurmstepd of its own, which makes a file when its step begins. */
static pid_t fork_cold_step(const char *path, const char *name)
{
	pid_t child;

	(void)fflush(stdout);
	child = fork();
	if (child == 0) {
		(void)start_cold_step(path);
		write_text(name, "", 0600);
		_exit(0);
	}
	return child;
}

/* While caches are being dropped for one step, another one does not begin. */
static void test_a_step_beside(const char *path)
{
	char program[512];
	pid_t first, second;

	(void)snprintf(program, sizeof(program),
		       "touch %s/drops; while [ ! -e %s/go ]; do sleep 0.01; done; echo '{}'", dir,
		       dir);
	write_program(program);
	first = fork_cold_step(path, "first");
	ok(wait_for_file("drops", 60000), "caches are being dropped");
	second = fork_cold_step(path, "second");
	ok(!wait_for_file("second", 300), "a step beside waits");
	write_text("go", "", 0600);
	ok(wait_for_file("first", 60000) && wait_for_file("second", 60000), "both begin");
	(void)waitpid(first, NULL, 0);
	(void)waitpid(second, NULL, 0);
	ok(strchr(read_requests(), '\n') && !strchr(read_requests(), '\n')[1],
	   "they were dropped once");
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "build/lib/spank_steelyard.so";
	int step, contain;
	char run[96];

	if (!ok(access(path, R_OK) == 0, "the plugin is at %s", path) || !make_folder())
		return done_testing();
	(void)snprintf(notes, sizeof(notes), "%s/told", dir);
	(void)snprintf(run, sizeof(run), "%s/run", dir);
	(void)mkdir(run, 0700);
	step = listen_as_step(0);
	contain = listen_as_step(SLURM_EXTERN_CONT);
	test_cold_caches(path);
	test_a_step_beside(path);
	(void)close(step);
	(void)close(contain);
	ok(remove_folder(), "tidy");
	return done_testing();
}
#endif
