/* The real spank_steelyard.so in a small host: conditions requested in sbatch, applied or refused
 * on the node. steelyard-node is a stand-in that notes its arguments and prints what the test
 * sets. */
#include "tap.h"

#if !__has_include(<slurm/spank.h>)
int main(void)
{
	(void)puts("1..0 # SKIP no slurm/spank.h here (Debian: libslurm-dev)");
	return 0;
}
#else

#include <poll.h>
#include <sys/syscall.h>

#include "spank_node.h"

/* A test does not wait for what takes minutes. The plugin's time is ahead of the real one: by 25 s
 * once a program has made the file `late`, and by what the next long wait of the plugin then leaves
 * out. */
static char late[96];
static int64_t ahead_ms;
static bool is_brief;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, now);
	int64_t now_ns;

	if (clock != CLOCK_MONOTONIC)
		return rc;
	if (late[0] && access(late, F_OK) == 0) {
		late[0] = '\0';
		ahead_ms = 25000;
		is_brief = true;
	}
	now_ns = now->tv_nsec + ahead_ms * 1000000;
	now->tv_sec += now_ns / 1000000000;
	now->tv_nsec = now_ns % 1000000000;
	return rc;
}

int poll(struct pollfd *fds, nfds_t count, int wait_ms)
{
	bool brief = is_brief && wait_ms > 1000;
	int real_ms = brief ? 500 : wait_ms;
	struct timespec wait = {real_ms / 1000, real_ms % 1000 * 1000000L};
	int ready = (int)syscall(SYS_ppoll, fds, count, wait_ms < 0 ? NULL : &wait, NULL, 0);

	if (brief && ready == 0) {
		ahead_ms += wait_ms - real_ms;
		is_brief = false;
	}
	return ready;
}

static char state[96];

static void refused(const char *option, const char *value, const char *name)
{
	errors = 0;
	last_error[0] = '\0';
	is_int(give(option, value, 0), -1, value);
	ok(errors == 1 && strstr(last_error, name), "names %s: %s", name, last_error);
}

static void test_submission(const char *path)
{
	char longest[4097];
	void *plugin = load(path, S_CTX_ALLOCATOR, 0);

	(void)memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	is_int(give("netem", "delay=50ms,loss=0.1%", 0), 0, "no policy here: the node decides");
	refused("netem", "delay=-5ms", "delay");
	refused("netem", "delay=5ms;reboot", "delay");
	refused("netem", "dev=../../etc/passwd,delay=1ms", "dev");
	refused("netem", "rate=$(id)", "rate");
	refused("netem", longest, "--netem=xxx");
	ok(strlen(last_error) < 600, "and does not repeat all of it");
	refused("netem", "delay=1ms,to=10.1.1.2", "to=10.1.1.2 is an address of the scheduler");
	is_int(give("netem", "delay=1ms,to=10.1.1.3", 0), 0, "another address");
	refused("cache", "hot", "expected cold, warm or cold:cvmfs=MB");
	write_text("netem.conf", "enabled no\n", 0644);
	refused("netem", "delay=50ms", "--netem=delay=50ms");
	refused("cache", "cold", "--cache=cold");
	is_int(give("netem", "none", 0), 0, "none is always allowed");
	is_int(give("cache", "warm", 0), 0, "so is warm");
	write_text("netem.conf", "nonsense\n", 0644);
	refused("netem", "delay=50ms", "netem.conf");
	(void)remove_folder();
	(void)mkdir(dir, 0700);
	is_int(dlclose(plugin), 0, "unloads");
}

static void *start_step(const char *path, const char *spec)
{
	void *plugin = load(path, S_CTX_REMOTE, 0);

	is_int(give("netem", spec, 1), 0, "on the node no option is refused");
	is_int(call(plugin, "slurm_spank_init_post_opt"), 0, "the step starts");
	return plugin;
}

static void test_had(const char *path)
{
	char text[1024];
	void *plugin;

	write_program("echo '{\"valid\":true}'");
	plugin = start_step(path, "loss=0.1%,delay=50000us");
	ok(strncmp(read_requests(), "netem apply --run-dir ", 22) == 0, "steelyard-node is asked");
	ok(strstr(read_requests(), " --node n9 --job-id 4711 ") != NULL,
	   "for this job on this node");
	ok(strstr(read_requests(), " --uid 0 --gid 0 --partition main --exclusive no ") != NULL,
	   "who and where, from slurmctld");
	(void)snprintf(text, sizeof(text), " --watch %d ", (int)getpid());
	ok(strstr(read_requests(), text) != NULL, "it watches the extern step");
	ok(strstr(read_requests(), " --peer 10.1.1.8 --protect 10.1.1.1 --protect 10.1.1.2 ") !=
	       NULL,
	   "the first other node; slurmctld and slurmdbd, each once");
	ok(strstr(read_requests(), " -- delay=50ms,loss=0.1%\n") != NULL, "the canonical text");
	is_int(run_task(plugin, text, sizeof(text)), 0, "the tasks run");
	is_string(text, "", "in silence");
	is_int(errors, 0, "no complaint");
	is_int(dlclose(plugin), 0, "unloads");
}

static void test_not_had(const char *path, const char *spec, const char *program,
			 const char *message)
{
	char text[1024];
	void *plugin;

	write_program(program);
	plugin = start_step(path, spec);
	is_int(run_task(plugin, text, sizeof(text)), 4, "the tasks end with exit code 4");
	ok(strncmp(text, "steelyard: --netem=", 19) == 0 && strstr(text, message),
	   "and one line: %.100s", text);
	is_int(errors, 1, "one line in the log");
	is_int(dlclose(plugin), 0, "unloads");
}

static void test_peer(const char *path)
{
	void *plugin;

	write_program("echo '{}'");
	plugin = start_step(path, "delay=1ms,to=10.1.1.77");
	ok(strstr(read_requests(), " --peer 10.1.1.77 ") != NULL, "the one host that `to` names");
	is_int(dlclose(plugin), 0, "unloads");
}

/* Slurm drains a node whose step does not end within 60 s. */
static void test_all_conditions_together(const char *path)
{
	const char *given_up;
	char text[1024], program[256];
	void *plugin;
	int limit_s;

	(void)snprintf(late, sizeof(late), "%s/late", dir);
	(void)snprintf(program, sizeof(program),
		       "[ $1 = netem ] && : >%s && echo '{}' && exit; exec sleep 60", late);
	write_program(program);
	plugin = load(path, S_CTX_REMOTE, 0);
	is_int(give("netem", "delay=1ms", 1), 0, "a condition that takes 25 s");
	is_int(give("cache", "cold", 1), 0, "and one that never ends");
	is_int(call(plugin, "slurm_spank_init_post_opt"), 0, "the step starts");
	ok(!late[0] && !is_brief, "its time has passed");
	ahead_ms = 0;
	is_int(run_task(plugin, text, sizeof(text)), 4, "the tasks end with exit code 4");
	given_up = strstr(text, " is not done within ");
	limit_s = given_up ? atoi(given_up + strlen(" is not done within ")) : 0;
	ok(limit_s > 0 && limit_s <= 15, "the second has what the first has left of 40 s: %s",
	   text);
	is_int(dlclose(plugin), 0, "unloads");
}

/* A task that has to join the job's own traffic. */
static void test_join(const char *path)
{
	char text[1024], program[256];
	void *plugin;

	(void)snprintf(program, sizeof(program), "echo '{\"join_path\":\"%s/procs\"}'", dir);
	write_program(program);
	plugin = start_step(path, "delay=1ms");
	is_int(run_task(plugin, text, sizeof(text)), 4, "where it cannot, it does not run");
	ok(strstr(text, "/procs: No such file") != NULL, "and says why");
	write_text("procs", "", 0600);
	is_int(run_task(plugin, text, sizeof(text)), 0, "where it can, it runs");
	is_int(dlclose(plugin), 0, "unloads");
}

static void test_end(const char *path)
{
	void *plugin;

	write_program("");
	plugin = load(path, S_CTX_REMOTE, SLURM_EXTERN_CONT);
	is_int(call(plugin, "slurm_spank_init_post_opt"), 0, "the extern step starts");
	is_int(call(plugin, "slurm_spank_exit"), 0, "and ends");
	is_string(read_requests(), "", "a job without conditions runs no program");
	is_int(dlclose(plugin), 0, "unloads");

	(void)mkdir(state, 0700);
	write_text("run/netem/n9.4711.json", "{}", 0600);
	plugin = load(path, S_CTX_REMOTE, SLURM_EXTERN_CONT);
	is_int(call(plugin, "slurm_spank_init_post_opt"), 0, "a job after a crash");
	ok(strstr(read_requests(), "netem reap ") == read_requests() &&
	       strstr(read_requests(), " --by next job\n"),
	   "cleans up first");
	is_int(call(plugin, "slurm_spank_exit"), 0, "the job ends");
	ok(strstr(read_requests(), " --node n9 --job-id 4711 --by job\n") != NULL,
	   "and undoes its own");
	is_int(dlclose(plugin), 0, "unloads");

	write_program("");
	plugin = load(path, S_CTX_SLURMD, 0);
	ok(strstr(read_requests(), " --by slurmd\n") != NULL, "slurmd cleans up at its start");
	is_int(dlclose(plugin), 0, "unloads");
	write_text("run/netem/n9.4711.json", "{}", 0600);
	test_not_had(path, "none", "", "already");
}

/* As a thread of slurmstepd's does for a moment, for all of them (24.11, 26.05). */
static void test_end_as_user(const char *path)
{
	void *plugin;

	if (geteuid() != 0) {
		ok(true, "ends with the user's rights # SKIP needs root");
		return;
	}
	write_program("");
	plugin = load(path, S_CTX_REMOTE, SLURM_EXTERN_CONT);
	is_int(call(plugin, "slurm_spank_init_post_opt"), 0, "the extern step starts");
	(void)unlink(notes);
	is_int(setegid(65534) | seteuid(65534), 0, "somebody takes the user's rights");
	is_int(call(plugin, "slurm_spank_exit"), 0, "and it ends");
	is_int(seteuid(0) | setegid(0), 0, "and gives them back");
	ok(strstr(read_requests(), " --node n9 --job-id 4711 --by job\n") != NULL,
	   "root undoes it");
	is_int(dlclose(plugin), 0, "unloads");
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "build/lib/spank_steelyard.so";
	int step, contain;

	if (!ok(access(path, R_OK) == 0, "the plugin is at %s", path) || !make_folder())
		return done_testing();
	(void)snprintf(notes, sizeof(notes), "%s/told", dir);
	(void)snprintf(state, sizeof(state), "%s/run/netem", dir);
	test_submission(path);
	step = listen_as_step(0);
	test_not_had(path, "delay=1ms", "echo '{}'", "PrologFlags=Contain");
	contain = listen_as_step(SLURM_EXTERN_CONT);
	test_had(path);
	test_peer(path);
	test_join(path);
	test_all_conditions_together(path);
	test_not_had(path, "delay=1ms", "echo 'steelyard-node netem: no sch_netem' >&2; exit 4",
		     ": no sch_netem\n");
	test_not_had(path, "delay=1ms", "exit 139", "without a word");
	test_not_had(path, "delay=-1ms", "echo '{}'", "delay");
	test_not_had(path, "delay=1ms,to=10.1.1.1", "echo '{}'", "an address of the scheduler");
	(void)close(step);
	step = contain; /* the one socket that an extern step has */
	test_end(path);
	test_end_as_user(path);
	(void)close(step);
	ok(remove_folder(), "tidy");
	return done_testing();
}
#endif
