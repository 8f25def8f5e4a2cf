/* `steelyard-bpf`: the kernel counts what jobs use. Started by samplers and by hand, as root. */
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "base/descriptors.h"
#include "base/file.h"
#include "base/number.h"
#include "bpf/job.h"
#include "bpf/pins.h"
#include "loader.h"

#define LOOKS	   4 /* a second, while it lingers */
#define MOST_COUNT 1000000

enum { DONE, FAILED, USAGE };

static const char usage_text[] =
    "usage: steelyard-bpf COMMAND [OPTION]... [-- PROGRAM [ARGUMENT]...]\n"
    "\n"
    "Lets the kernel count what jobs use; samplers read the counts.\n"
    "\n"
    "  load    load the counting program into the kernel and pin it\n"
    "  hold    load it and keep it loaded until this program ends, so that no job waits for\n"
    "          the loading: for nodes of PBS (slurmd does it itself)\n"
    "  status  print what this kernel supports, and whether the program is loaded\n"
    "  sweep   forget jobs whose samplers are gone; when none is left, unload\n"
    "  unload  unpin it, even while samplers use it: those keep their own copy\n"
    "  count   run a program and print what it and its descendants have used\n"
    "\n"
    "  --base DIR  a folder in a bpf filesystem (" SY_BPF_BASE ")\n"
    "  --after S   sweep: after S seconds without any job; a job that begins cancels it\n"
    "  --json      status: print JSON\n"
    "  --tasks N   load: the most tasks of jobs that can be counted at once\n"
    "  --cgroup P  count: also processes moved into cgroup P, as in /proc/PID/cgroup\n";

struct options {
	const char *base;
	unsigned tasks;
	unsigned after_s;
	bool json;
	const char *cgroup;
	char **command;
};

static int complain(const struct sy_error *err)
{
	(void)fprintf(stderr, "steelyard-bpf: %s\n", err->text);
	return FAILED;
}

static int load(const struct options *options)
{
	struct sy_error err;
	cleanup_close int lock = sy_bpf_lock(options->base, true, SY_BPF_PATIENCE_MS, &err);

	return lock < 0 || sy_loader_pin(options->base, options->tasks, &err) < 0 ? complain(&err)
										  : DONE;
}

/* Clear the base folder; without such a folder nothing is left over. */
static int clear(const struct options *options, bool unpin)
{
	struct sy_error err;
	cleanup_close int lock = -1;

	if (access(options->base, F_OK) < 0)
		return DONE;
	lock = sy_bpf_lock(options->base, false, SY_BPF_PATIENCE_MS, &err);
	if (lock < 0)
		return complain(&err);
	if (unpin)
		sy_bpf_unpin(options->base, sy_bpf_folder());
	sy_bpf_sweep(options->base);
	return DONE;
}

/* False: a job has come. The sampler that ends it finds no process that lingers: this one gives
 * that up with the lock held. Where the lock cannot be had, the next look decides. */
static bool is_idle(const struct options *options, int *lingers)
{
	struct sy_error err;
	cleanup_close int lock = sy_bpf_lock(options->base, false, SY_BPF_PATIENCE_MS, &err);

	if (lock == SY_BPF_BUSY || (lock >= 0 && sy_bpf_forget_dead(options->base) == 0))
		return true;
	(void)close(*lingers);
	*lingers = -1;
	return false;
}

/* The next job finds it there and need not wait until it is loaded. */
static bool linger(const struct options *options)
{
	const struct timespec pause = {.tv_nsec = 1000000000 / LOOKS};
	cleanup_close int lingers = sy_bpf_linger(options->base);

	for (unsigned i = 0; lingers >= 0 && i < options->after_s * LOOKS; i++) {
		(void)nanosleep(&pause, NULL);
		if (!is_idle(options, &lingers))
			return false;
	}
	return lingers >= 0;
}

static int sweep(const struct options *options)
{
	if (options->after_s && !linger(options))
		return DONE;
	return clear(options, false);
}

/* SIGTERM and SIGINT end it. After any other end the next sweep unloads the program. */
static void wait_for_signal(void)
{
	sigset_t ends;
	int which;

	(void)sigemptyset(&ends);
	(void)sigaddset(&ends, SIGTERM);
	(void)sigaddset(&ends, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &ends, NULL);
	(void)sigwait(&ends, &which);
}

/* A descriptor that keeps it loaded; -1. */
static int load_and_keep(const struct options *options)
{
	struct sy_error err;
	cleanup_close int lock = sy_bpf_lock(options->base, true, SY_BPF_PATIENCE_MS, &err);
	int program_fd = -1;

	if (lock < 0 || sy_loader_pin(options->base, options->tasks, &err) < 0)
		(void)complain(&err);
	else
		program_fd = sy_bpf_use(options->base);
	if (program_fd >= 0)
		sy_bpf_sweep(options->base);
	return program_fd;
}

static int hold_program(const struct options *options)
{
	int program_fd = load_and_keep(options);

	if (program_fd < 0)
		return FAILED;
	(void)puts("steelyard-bpf: held until SIGTERM");
	(void)fflush(stdout);
	wait_for_signal();
	(void)close(program_fd);
	return sweep(options);
}

static int unload(const struct options *options)
{
	return clear(options, true);
}

static void print(json_t *value)
{
	(void)json_dumpf(value, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
	(void)putchar('\n');
	json_decref(value);
}

static int status(const struct options *options)
{
	struct sy_bpf_trial trial;
	bool able = sy_bpf_try(options->tasks, &trial) == 0;
	int jobs = sy_bpf_count_jobs(options->base), tasks = sy_bpf_count_tasks(options->base);
	long long bytes = sy_bpf_memory(options->base);

	if (options->json)
		print(json_pack("{sb sb sb sb si si sI ss}", "supported", able, "needs_cap_bpf",
				trial.right, "root", geteuid() == 0, "loaded", jobs >= 0, "jobs",
				jobs < 0 ? 0 : jobs, "tasks", tasks < 0 ? 0 : tasks, "memory_bytes",
				(json_int_t)bytes, "message", trial.message.text));
	else
		(void)printf("%s\n%s, %d jobs, %d tasks, %.1f MB\n", trial.message.text,
			     jobs < 0 ? "not loaded" : "loaded", jobs < 0 ? 0 : jobs,
			     tasks < 0 ? 0 : tasks, (double)bytes / 1e6);
	return able ? DONE : FAILED;
}

/* --- count --- */

static long long waited_cpu_us(void)
{
	struct rusage usage;

	(void)getrusage(RUSAGE_CHILDREN, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000LL +
	       usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static int wait_for(pid_t command)
{
	int how;

	while (waitpid(command, &how, 0) < 0)
		;
	return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

static void print_answer(const struct sy_bpf_answer *answer, long long waited_us, int code)
{
	const struct sy_bpf_usage *used = &answer->used;
	int64_t cpu_ns = (int64_t)used->cpu_ns, user_ns = sy_bpf_split_user(used, cpu_ns);

	print(json_pack("{sI sI sI sI sI sI sI sI sI sI sI sI sI sI sI sI sI si}", "cpu_ns",
			(json_int_t)cpu_ns, "user_ns", (json_int_t)user_ns, "system_ns",
			(json_int_t)(cpu_ns - user_ns), "rchar_bytes", (json_int_t)used->rchar,
			"wchar_bytes", (json_int_t)used->wchar, "read_bytes",
			(json_int_t)used->read_bytes, "write_bytes", (json_int_t)used->write_bytes,
			"minor_faults", (json_int_t)used->minflt, "major_faults",
			(json_int_t)used->majflt, "threads", (json_int_t)used->threads, "processes",
			(json_int_t)used->processes, "alive", (json_int_t)answer->tasks, "lost",
			(json_int_t)answer->lost, "missed", (json_int_t)answer->missed, "unread",
			(json_int_t)answer->unread, "settled", (json_int_t)answer->settled,
			"waited_cpu_us", (json_int_t)waited_us, "exit_code", code));
}

/* The child waits until it is counted. It polls, since a read(2) would be counted. */
static pid_t start_command(char **argv, int *gate)
{
	struct pollfd open_gate = {.events = POLLIN};
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		(void)close(ends[1]);
		open_gate.fd = ends[0];
		(void)poll(&open_gate, 1, -1);
		(void)execvp(argv[0], argv);
		_exit(127);
	}
	(void)close(ends[0]);
	*gate = ends[1];
	return pid;
}

static int add_cgroup(struct sy_bpf *bpf, const char *path, struct sy_error *err)
{
	cleanup_close int root = sy_root_open("/", err);

	return root < 0 ? -1 : sy_bpf_group(bpf, root, path, err);
}

static int run_command(struct sy_bpf *bpf, const struct options *options, struct sy_error *err)
{
	const long long before_us = waited_cpu_us();
	struct sy_bpf_answer answer;
	int code, result, gate = -1;
	pid_t command = start_command(options->command, &gate);

	if (command < 0)
		return complain((sy_fail(err, "cannot fork"), err));
	result = sy_bpf_adopt(bpf, command, SY_BPF_MEMBER, -1, err);
	if (result >= 0 && options->cgroup)
		result = add_cgroup(bpf, options->cgroup, err);
	(void)close(gate);
	code = wait_for(command);
	if (result < 0)
		return complain(err);
	result = sy_bpf_read(bpf, SY_BPF_LAST, &answer);
	if (result < 0)
		return complain((sy_fail_errno(err, -result, "cannot read"), err));
	print_answer(&answer, waited_cpu_us() - before_us, code);
	return DONE;
}

static int count_command(const struct options *options)
{
	struct sy_bpf bpf;
	struct sy_error err;
	int result = load(options);

	if (result != DONE)
		return result;
	if (sy_bpf_begin(&bpf, options->base, 0, SY_BPF_KEEPER, SY_BPF_PATIENCE_MS, &err) < 0)
		return complain(&err);
	result = run_command(&bpf, options, &err);
	(void)sy_bpf_end(&bpf);
	(void)sweep(options);
	return result;
}

static const struct {
	const char *name;
	int (*run)(const struct options *options);
} commands[] = {
    {"load", load},   {"hold", hold_program}, {"status", status},
    {"sweep", sweep}, {"unload", unload},     {"count", count_command},
};

/* False, with a message, for anything else. */
static bool read_count(const char *option, const char *text, unsigned *count)
{
	int64_t value;
	const char *end = sy_number(text, &value);

	if (!end || *end || value > MOST_COUNT) {
		(void)fprintf(stderr, "steelyard-bpf: --%s %s: expected a whole number up to %d\n",
			      option, text, MOST_COUNT);
		return false;
	}
	*count = (unsigned)value;
	return true;
}

static int parse(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {
	    {"base", required_argument, NULL, 'b'},   {"after", required_argument, NULL, 'a'},
	    {"json", no_argument, NULL, 'j'},	      {"tasks", required_argument, NULL, 't'},
	    {"cgroup", required_argument, NULL, 'c'}, {0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "+", known, NULL)) != -1) {
		if (option == 'b')
			options->base = optarg;
		else if (option == 'a' && read_count("after", optarg, &options->after_s))
			continue;
		else if (option == 'j')
			options->json = true;
		else if (option == 't' && read_count("tasks", optarg, &options->tasks))
			continue;
		else if (option == 'c')
			options->cgroup = optarg;
		else
			return -1;
	}
	options->command = argv + optind;
	return 0;
}

int main(int argc, char **argv)
{
	struct options options = {.base = SY_BPF_BASE};
	const char *name = argc > 1 ? argv[1] : "";

	sy_open_streams();
	/* A parent that ignores it leaves us children that cannot be waited for. */
	(void)signal(SIGCHLD, SIG_DFL);
	if (!strcmp(name, "--help")) {
		(void)fputs(usage_text, stdout);
		return DONE;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		bool counts = commands[i].run == count_command;

		if (strcmp(name, commands[i].name) != 0)
			continue;
		if (parse(argc - 1, argv + 1, &options) < 0 || counts != (*options.command != NULL))
			break;
		return commands[i].run(&options);
	}
	(void)fputs(usage_text, stderr);
	return USAGE;
}
