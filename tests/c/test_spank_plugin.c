/* The real spank_steelyard.so in a small host that plays slurmstepd and sbatch: no Slurm needed.
 * argv[1]: the plugin. Without Slurm's headers there is nothing to load, and that is said. */
#include "tap.h"

#if !__has_include(<slurm/spank.h>)
int main(void)
{
	(void)puts("1..0 # SKIP no slurm/spank.h here (Debian: libslurm-dev)");
	return 0;
}
#else

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "spank_host.h"

static char control[96], notes[96], complaints[96];

/* The plugin's clock: a test does not wait for a step to be long. */
static int skipped_s;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, now);

	now->tv_sec += skipped_s;
	return rc;
}

/* --- tests ------------------------------------------------------------------------------------ */

static void test_client(const char *path)
{
	void *plugin = load(path, S_CTX_ALLOCATOR, 0);

	if (!ok(plugin != NULL, "loads: %s", plugin ? "" : dlerror()))
		return;
	is_int((int64_t)option_count, 4, "four options in sbatch");
	for (size_t i = 0; i < option_count; i++)
		ok(strstr(options[i]->usage, "[steelyard]") == options[i]->usage,
		   "--%s says whose it is", options[i]->name);
	is_int(give("tag", "net=50ms", 0), 0, "a good tag");
	is_int(give("tag", "cache=cold", 0), 0, "another");
	is_string(getenv("SLURM_STEELYARD_TAGS"),
		  "net=50ms\x1f"
		  "cache=cold",
		  "all tags go to the job");
	is_int(errors, 0, "no complaint");
	is_int(give("tag", "nonsense", 0), -1, "a bad tag is refused");
	ok(strstr(last_error, "--tag=nonsense: expected KEY=VALUE") != NULL, "and told");
	is_int(give("sample-rate", "51", 0), -1, "a rate above max_rate is refused");
	ok(strstr(last_error, "0.001 to 50") != NULL, "the message names the limit");
	is_int(give("sample-rate", NULL, 0), -1, "a rate that is not there is refused");
	is_int(give("sample-rate", "0", 0), 0, "0 is a rate");
	is_int(call(plugin, "slurm_spank_init_post_opt"), 0, "init_post_opt returns 0");
	is_int(call(plugin, "slurm_spank_exit"), 0, "exit returns 0");
	is_int(comments(), 0, "sbatch writes no AdminComment");
	is_int(dlclose(plugin), 0, "unloads");
	(void)unsetenv("SLURM_STEELYARD_TAGS");
}

static void write_sampler(void)
{
	char path[96];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/node", dir);
	file = fopen(path, "w");
	if (!file)
		return;
	(void)fprintf(file,
		      "#!/bin/sh\necho 'job 4711: no\tspace' >&2\necho \"$@\" > %s.new\nfor f in 0 "
		      "1 2 3 4 5 6 7 8 9; do "
		      "[ -e /proc/$$/fd/$f ] && echo \"fd $f $(readlink /proc/$$/fd/$f)\"; done >> "
		      "%s.new\necho \"session $(cut -d' ' -f6 /proc/$$/stat)\" >> %s.new\nenv >> "
		      "%s.new\nmv %s.new %s\n",
		      notes, notes, notes, notes, notes, notes);
	(void)fclose(file);
	(void)chmod(path, 0700);
}

/* What the sampler's stand-in wrote, or "" after a minute. */
static void wait_for_sampler(char *text, size_t size)
{
	struct timespec pause = {.tv_nsec = 10000000};
	FILE *file = NULL;
	size_t length = 0;

	for (int i = 0; i < 6000 && !file; i++) {
		(void)nanosleep(&pause, NULL);
		file = fopen(notes, "r");
	}
	if (file) {
		length = fread(text, 1, size - 1, file);
		(void)fclose(file);
	}
	text[length] = '\0';
}

/* The program in the sampler's place has the socket as long as it runs. */
static void wait_until_nobody_listens(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timespec pause = {0, 10000000};

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", control);
	for (int i = 0; i < 6000; i++) {
		int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
		int refused = connect(fd, (struct sockaddr *)&address, sizeof(address));

		(void)close(fd);
		if (refused)
			return;
		(void)nanosleep(&pause, NULL);
	}
}

static void test_extern_step(const char *path)
{
	char text[8192], session[32], watch[32];
	struct stat st;
	int open_file = open("/dev/zero", O_RDONLY), high = dup2(open_file, 8); /* as its pipes */
	void *plugin = load(path, S_CTX_REMOTE, SLURM_EXTERN_CONT);

	is_int(call(plugin, "slurm_spank_init_post_opt"), 0, "the extern step starts");
	ok(stat(control, &st) == 0 && (st.st_mode & 0777) == 0600, "the socket is there at once");
	wait_for_sampler(text, sizeof(text));
	ok(strncmp(text, "sample --record-dir ", 20) == 0, "the sampler is started");
	ok(strstr(text, "--job-id 4711 --node n9 --rate 2 ") != NULL, "with job, node and rate");
	ok(strstr(text, "--control-fd 3 ") != NULL, "and the socket");
	ok(strstr(text, "array_") == NULL, "no array ids in a job that is no array's");
	(void)snprintf(watch, sizeof(watch), "--watch %d ", (int)getpid());
	ok(strstr(text, watch) != NULL, "it watches this process");
	ok(strstr(text, "fd 0 /dev/null") && strstr(text, "/run/n9.log"),
	   "no terminal; what it complains about is kept");
	ok(strstr(text, "fd 3 socket") != NULL && strstr(text, "/dev/zero") == NULL,
	   "none of our descriptors but the socket");
	(void)snprintf(session, sizeof(session), "session %d\n", (int)getsid(0));
	ok(strstr(text, "session ") && !strstr(text, session), "a session of its own");
	ok(strstr(text, "HOME=") == NULL, "an environment of its own");
	wait_until_nobody_listens();
	is_int(call(plugin, "slurm_spank_exit"), 0, "the extern step ends");
	ok(access(control, F_OK) != 0, "the socket of a sampler that is gone is removed");
	is_int(comments(), 0, "no AdminComment: Slurm refuses it there");
	is_int(errors, 1, "one line in slurmd's log:");
	is_string(last_error, "steelyard: job 4711: no?space", "what the sampler complained about");
	ok(stat(complaints, &st) == 0 && st.st_size == 0 && (st.st_mode & 0777) == 0600,
	   "which is told once");
	(void)unlink(complaints);
	(void)close(open_file);
	(void)close(high);
	is_int(dlclose(plugin), 0, "unloads");
}

/* A sampler that listens, answers `totals`, and hands every message on through a pipe. */
static pid_t listen_as_sampler(int pipe_fd, bool answers)
{
	char answer[300];
	struct sockaddr_un address = {.sun_family = AF_UNIX}, from;
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	char text[600];
	pid_t child;

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", control);
	(void)unlink(control);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		return -1;
	child = fork();
	while (child == 0) {
		socklen_t length = sizeof(from);
		ssize_t got =
		    recvfrom(fd, text, sizeof(text) - 1, 0, (struct sockaddr *)&from, &length);

		text[got > 0 ? got : 0] = '\n';
		if (got <= 0 || write(pipe_fd, text, (size_t)got + 1) < 0)
			_exit(1);
		if (!answers || strncmp(text, "totals ", 7) != 0)
			continue;
		(void)snprintf(
		    answer, sizeof(answer),
		    "{\"question\":%d,\"elapsed_s\":2,\"cpu_s\":1.5,\"max_memory_bytes\":7,"
		    "\"probe\":{\"node_type\":\"virtual\",\"virtualization\":{\"vm\":{\"name\":"
		    "\"kvm\"},"
		    "\"container\":{\"name\":\"none\"}}}}",
		    atoi(text + 7));
		(void)sendto(fd, answer, strlen(answer), 0, (struct sockaddr *)&from, length);
	}
	(void)close(fd);
	return child;
}

static void read_until(const char *wanted, int fd, char *text, size_t size)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	for (size_t length = 0; !strstr(text, wanted) && poll(&ready, 1, 60000) == 1;) {
		ssize_t got = read(fd, text + length, size - length - 1);

		if (got <= 0)
			return;
		length += (size_t)got;
		text[length] = '\0';
	}
}

static void test_batch_step(const char *path, bool answers)
{
	const char *tagged =
	    answers
		? "{\"node_type\":\"virtual\",\"vm\":\"kvm\",\"tags\":{\"a\":\"1\",\"b\":\"2\"},"
		: "{\"tags\":{\"a\":\"1\",\"b\":\"2\"},";
	char text[8192] = "";
	const char *done;
	int fds[2];
	pid_t sampler;
	void *plugin;

	if (pipe(fds) != 0)
		return;
	sampler = listen_as_sampler(fds[1], answers);
	(void)snprintf(tags_variable, sizeof(tags_variable),
		       "a=1\x1f"
		       "b=2");
	plugin = load(path, S_CTX_REMOTE, SLURM_BATCH_SCRIPT);
	is_int(give("tag", "b=2", 1), 0, "the option's last value comes again");
	is_int(give("tag", "nonsense", 1), 0, "a wrong value from the environment stops no job");
	is_int(give("sample-rate", "5", 1), 0, "a rate");
	is_int(call(plugin, "slurm_spank_init_post_opt"), 0, "the batch step starts");
	is_int(call(plugin, "slurm_spank_task_post_fork"), 0, "a task starts");
	is_int(call(plugin, "slurm_spank_exit"), 0, "the batch step ends");
	read_until("totals 1\n", fds[0], text, sizeof(text));
	ok(strstr(text, "rate 5\ntag a=1\ntag b=2\njob name a name\n") != NULL,
	   "rate, tags in their order, the job's name");
	done = strstr(text, "\ndone ");
	ok(strncmp(text, "root ", 5) == 0 && done && strstr(done, "\ntotals 1\n"),
	   "its processes first, its end before the totals");
	is_int(comments(), 1, "AdminComment is set, once");
	ok(strncmp(last_request("own"), tagged, strlen(tagged)) == 0,
	   "with the node's kind and tags: %s", last_request("own"));
	ok(strstr(last_request("own"),
		  answers ? "\"nodes\":1,\"elapsed_s\":2.0,\"cpu_s\":1.5"
			  : "\"nodes\":1,\"nodes_measured\":0,\"partial\":true,\"missing\":"),
	   "%s", answers ? "and the totals" : "without totals when the sampler does not answer");
	is_int(dlclose(plugin), 0, "unloads");
	tags_variable[0] = '\0';
	(void)kill(sampler, SIGKILL);
	(void)waitpid(sampler, NULL, 0);
	(void)close(fds[0]);
	(void)close(fds[1]);
	(void)unlink(control);
}

/* A job of srun alone: srun ends it when it hears of the last task's end. */
static void test_step_alone(const char *path, bool tagged, bool is_long)
{
	int sent_early = tagged || is_long;
	void *plugin;

	(void)snprintf(tags_variable, sizeof(tags_variable), "%s", tagged ? "a=1" : "");
	plugin = load(path, S_CTX_REMOTE, 0);
	is_int(call(plugin, "slurm_spank_init_post_opt"), 0, "a step starts");
	skipped_s = is_long ? 5 : 0;
	is_int(call(plugin, "slurm_spank_task_exit"), 0, "its first task ends");
	is_int(comments(), 0, "nothing is told while another one runs");
	is_int(call(plugin, "slurm_spank_task_exit"), 0, "its last task ends");
	is_int(comments(), sent_early, "what is worth it is told before srun hears of it");
	is_int(call(plugin, "slurm_spank_exit"), 0, "the step ends");
	is_int(comments(), 1, "and nothing once more that is known");
	skipped_s = 0;
	is_int(dlclose(plugin), 0, "unloads");
	tags_variable[0] = '\0';
}

/* One of salloc: the comment of the step before has its part only. */
static void test_short_later_step(const char *path)
{
	void *plugin = load(path, S_CTX_REMOTE, 1);

	is_int(call(plugin, "slurm_spank_init_post_opt"), 0, "a second step starts");
	is_int(call(plugin, "slurm_spank_task_exit"), 0, "its first task ends");
	is_int(call(plugin, "slurm_spank_task_exit"), 0, "its last task ends");
	is_int(comments(), 1, "its part is told before srun hears of its end");
	ok(strstr(last_request("own"), ",\"so_far\":true,") != NULL, "and more may come: %s",
	   last_request("own"));
	is_int(dlclose(plugin), 0, "unloads");
}

/* Files in another user's folder are not trusted. */
static void test_open_run_dir(const char *path)
{
	char folder[48], has_socket[96];
	void *plugin;

	(void)snprintf(folder, sizeof(folder), "%s/open", dir);
	(void)snprintf(arg_run, sizeof(arg_run), "run_dir=%s", folder);
	(void)snprintf(has_socket, sizeof(has_socket), "%s/n9.%u.sock", folder, JOB);
	(void)mkdir(folder, 0700);
	(void)chmod(folder, 0777);
	plugin = load(path, S_CTX_REMOTE, SLURM_EXTERN_CONT);
	is_int(call(plugin, "slurm_spank_init_post_opt"), 0, "the job goes on");
	ok(errors == 1 && strstr(last_error, "may be written by others (mode 0777)"),
	   "a run_dir that others may write to is refused: %s", last_error);
	ok(access(has_socket, F_OK) != 0, "and nothing is put there");
	is_int(call(plugin, "slurm_spank_exit"), 0, "and ends");
	is_int(dlclose(plugin), 0, "unloads");
	(void)snprintf(arg_run, sizeof(arg_run), "run_dir=%s/run", dir);
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "build/lib/spank_steelyard.so";

	if (!ok(access(path, R_OK) == 0, "the plugin is at %s", path) || !make_folder())
		return done_testing();
	(void)snprintf(control, sizeof(control), "%s/run/n9.%u.sock", dir, JOB);
	(void)snprintf(notes, sizeof(notes), "%s/told", dir);
	(void)snprintf(complaints, sizeof(complaints), "%s/run/n9.log", dir);
	write_sampler();
	test_client(path);
	test_extern_step(path);
	test_batch_step(path, true);
	test_batch_step(path, false);
	test_step_alone(path, true, false);
	test_step_alone(path, false, false);
	test_step_alone(path, false, true);
	test_short_later_step(path);
	test_open_run_dir(path);
	ok(remove_folder(), "tidy");
	return done_testing();
}
#endif
