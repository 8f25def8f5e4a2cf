/* steelyard-load: a known load for `steelyard calibrate` (wrappers/calibrate). Its help lists the
 * actions; load_work.h does them and adds to load_shared_counts.h.
 *
 * It counts where the work is done, in memory that all its processes share: what read(), write(),
 * send() and recv() returned, and what was synced or read past the page cache. CPU is that of
 * getrusage(2), and by its own clock of processes that no process waits for (unwaited_*). What a
 * measurement may or may not contain is in separate fields: what happened before main() (before_*),
 * what programs used that it ran (others_*), and what a shell that waits for it had used
 * (parent_*). Bytes of these, and kernel_*, are from /proc/PID/io, since no call of its own returns
 * them.
 *
 * The result is one line of JSON, complete or absent; the bytes of that line are counted, too. It
 * prints nothing, and does not compare itself with a record. */
#include "load_work.h"

static const char help[] =
    "usage: steelyard-load RESULT ACTION… [-- COMMAND…]\n"
    "\n"
    "A known load, which counts itself what it did: `steelyard calibrate` measures it.\n"
    "\n"
    "Does the actions in their order (files in the current folder), prints nothing, and leaves "
    "one\n"
    "line of JSON in RESULT, a path in which %j becomes the job, %n the node (on PBS its number "
    "in\n"
    "the job), %p the process.\n"
    "\n"
    "  cpu=S                          seconds of CPU in this process\n"
    "  threads=N:S                    in N threads\n"
    "  processes=N:S:BYTES:LIFE       in N processes, each reading and writing BYTES by calls and\n"
    "                                 living LIFE seconds; waited for, 8 side by side\n"
    "  orphans=N:S:BYTES:LIFE         the same, double fork and setsid: nobody waits\n"
    "  ignored=N:S:BYTES:LIFE         the same, SIGCHLD ignored\n"
    "  read=BYTES, write=BYTES        by calls, from /dev/zero and to /dev/null\n"
    "  store=BYTES, fetch=BYTES       to storage (fsync); to it and back past the page cache\n"
    "  memory=BYTES:S                 touched, and held for S seconds\n"
    "  tcp=BYTES                      there and back over loopback; tcp=BYTES:HOST:PORT elsewhere\n"
    "  serve=BYTES:PORT               the other end\n"
    "  sleep=S, until=FILE            time; until a file is there (a minute at most)\n"
    "  meet=MINE:OTHER                makes a file, and waits for the other one\n"
    "  note                           RESULT as it is so far, in case this is killed\n"
    "  parent                         what shells that wait for this have used until now\n"
    "  -- COMMAND…                    another program, whose CPU and bytes count as others'\n";

#define FIELDS	4
#define UNTIL_S 60

struct action {
	double number[FIELDS];
	const char *text[FIELDS];
	int fields;
};

static const char *result_path;
static struct io at_start, at_end;
static int64_t
    before_us; /* CPU of this process before main(): a shell that became it, the linker */
static double started_s, started_unix_s;

static const char *first_of(const char *slurm, const char *pbs)
{
	const char *found = getenv(slurm);

	return found ? found : getenv(pbs);
}

static void make_path(char *path, size_t size)
{
	const char *job = first_of("SLURM_JOB_ID", "PBS_JOBID");
	const char *node = first_of("SLURMD_NODENAME", "PBS_NODENUM");
	size_t used = 0;

	for (const char *at = result_path; *at && used + 1 < size; at++) {
		int n = 1;

		if (at[0] != '%' || !strchr("jnp", at[1]) || !at[1]) {
			path[used] = *at;
		} else if (*++at == 'p') {
			n = snprintf(path + used, size - used, "%d", (int)getpid());
		} else {
			const char *word = *at == 'j' ? job : node;

			n = snprintf(path + used, size - used, "%s", word ? word : "none");
		}
		used += (size_t)n;
	}
	if (used + 1 >= size)
		die("%s: too long", result_path);
	path[used] = '\0';
}

static int64_t usage_us(int who)
{
	struct rusage used;

	(void)getrusage(who, &used);
	return ((int64_t)used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
	       used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

/* Numbers of a fixed width: so that the line's own length is known before it is counted. */
static int print_result(char *text, size_t size)
{
	struct {
		const char *name;
		int64_t value;
	} fields[] = {
	    {"cpu_us", usage_us(RUSAGE_SELF) + usage_us(RUSAGE_CHILDREN)},
	    {"before_cpu_us", before_us},
	    {"unwaited_cpu_us", counts->unwaited_cpu_ns / 1000},
	    {"read_calls_bytes", counts->read_calls_bytes},
	    {"write_calls_bytes", counts->write_calls_bytes},
	    {"unwaited_read_calls_bytes", counts->unwaited_read_calls_bytes},
	    {"unwaited_write_calls_bytes", counts->unwaited_write_calls_bytes},
	    {"to_storage_bytes", counts->to_storage_bytes},
	    {"from_storage_bytes", counts->from_storage_bytes},
	    {"before_read_calls_bytes", at_start.rchar},
	    {"before_write_calls_bytes", at_start.wchar},
	    {"before_from_storage_bytes", at_start.read_bytes},
	    {"before_to_storage_bytes", at_start.write_bytes},
	    {"others_read_calls_bytes", counts->others_read_calls_bytes},
	    {"others_write_calls_bytes", counts->others_write_calls_bytes},
	    {"others_from_storage_bytes", counts->others_from_storage_bytes},
	    {"others_to_storage_bytes", counts->others_to_storage_bytes},
	    {"parent_cpu_us", counts->parent_cpu_us},
	    {"parent_read_calls_bytes", counts->parent_read_calls_bytes},
	    {"parent_write_calls_bytes", counts->parent_write_calls_bytes},
	    {"parent_from_storage_bytes", counts->parent_from_storage_bytes},
	    {"parent_to_storage_bytes", counts->parent_to_storage_bytes},
	    {"kernel_from_storage_bytes", at_end.read_bytes},
	    {"kernel_to_storage_bytes", at_end.write_bytes},
	    {"memory_bytes", counts->memory_bytes},
	    {"processes", counts->processes},
	    {"sent_bytes", counts->sent_bytes},
	    {"received_bytes", counts->received_bytes},
	    {"segments", counts->segments},
	    {"connect_us", counts->connect_us},
	};
	int used = snprintf(text, size,
			    "{\"format\": \"steelyard-load\", \"version\": 1, "
			    "\"start_unix_s\": %17.6f, \"elapsed_s\": %14.6f",
			    started_unix_s, monotonic_s() - started_s);

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		used += snprintf(text + used, size - (size_t)used, ", \"%s\": %15lld",
				 fields[i].name, (long long)fields[i].value);
	return used + snprintf(text + used, size - (size_t)used, "}\n");
}

/* Under another name first: who finds the result finds all of it. Its bytes are the load's, too,
 * and its page goes to storage. */
static void leave_result(void)
{
	char text[2048], path[4096], part[4100];
	int fd, length;

	make_path(path, sizeof(path));
	(void)snprintf(part, sizeof(part), "%s.new", path);
	fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		die("%s: %s", part, strerror(errno));
	at_end = kernel_io(); /* the file system's own pages for the new file included */
	length = print_result(text, sizeof(text));
	counts->write_calls_bytes += length;
	counts->to_storage_bytes += has_storage(fd) ? page_bytes() : 0;
	at_end.write_bytes += has_storage(fd) ? page_bytes() : 0;
	length = print_result(text, sizeof(text));
	if (write(fd, text, (size_t)length) != length || close(fd) < 0 || rename(part, path) < 0)
		die("%s: %s", path, strerror(errno));
}

static void until(const char *file)
{
	double end = monotonic_s() + UNTIL_S;

	while (access(file, F_OK) < 0 && monotonic_s() < end)
		sleep_s(0.02);
}

/* Two loads side by side: each says that it is there, and waits for the other. */
static void meet(const char *mine, const char *other)
{
	int fd = open(mine, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0)
		die("%s: %s", mine, strerror(errno));
	(void)close(fd);
	until(other);
}

static void add_parent(pid_t pid)
{
	char path[64], text[128];
	long long on_cpu_ns;
	struct io io;

	(void)snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
	io = io_of(path);
	(void)snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	if (io.rchar < 0 || !counted_text(path, text, sizeof(text)) ||
	    sscanf(text, "%lld", &on_cpu_ns) != 1)
		die("%s: cannot be read", path);
	counts->parent_cpu_us += on_cpu_ns / 1000;
	counts->parent_read_calls_bytes += io.rchar;
	counts->parent_write_calls_bytes += io.wchar;
	counts->parent_from_storage_bytes += io.read_bytes;
	counts->parent_to_storage_bytes += io.write_bytes;
}

/* For schedulers that begin a shell around the job's script: our parent and its parents in the
 * same session, which wait for us. CPU from the kernel's scheduler (schedstat, ns on a processor),
 * of their children none. */
static void count_parents(void)
{
	pid_t session = getsid(getppid());

	for (pid_t pid = getppid(), next = 0; pid > 1 && getsid(pid) == session; pid = next) {
		char path[64], text[512];

		add_parent(pid);
		(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
		if (!counted_text(path, text, sizeof(text)) || !strrchr(text, ')') ||
		    sscanf(strrchr(text, ')'), ") %*c %d", &next) != 1)
			die("%s: not understood", path);
	}
}

/* Our program into the page cache: not page by page later on, as "from storage" of a load. Whatever
 * is read here is in `before`. */
static void warm_up(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && read(fd, block, sizeof(block)) > 0)
		;
	if (fd >= 0)
		(void)close(fd);
}

static struct action parse(char *word)
{
	struct action action = {0};
	char *at = strchr(word, '=');

	if (at)
		*at++ = '\0';
	for (; at && action.fields < FIELDS; action.fields++) {
		char *colon = strchr(at, ':');

		if (colon)
			*colon++ = '\0';
		action.text[action.fields] = at;
		action.number[action.fields] = strtod(at, NULL);
		at = colon;
	}
	return action;
}

static bool do_processes(const char *name, const struct action *a)
{
	void (*start)(long, double, int64_t, double) = !strcmp(name, "processes") ? processes
						       : !strcmp(name, "orphans") ? orphans
						       : !strcmp(name, "ignored") ? ignored
										  : NULL;

	if (start && a->fields == FIELDS)
		start((long)a->number[0], a->number[1], (int64_t)a->number[2], a->number[3]);
	return start && a->fields == FIELDS;
}

static bool do_bytes(const char *name, const struct action *a)
{
	static const struct {
		const char *name;
		void (*work)(int64_t);
	} table[] = {{"read", read_calls},
		     {"write", write_calls},
		     {"store", to_storage},
		     {"fetch", from_storage}};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (a->fields == 1 && !strcmp(name, table[i].name)) {
			table[i].work((int64_t)a->number[0]);
			return true;
		}
	return false;
}

static bool do_tcp(const char *name, const struct action *a)
{
	int64_t bytes = (int64_t)a->number[0];

	if (!strcmp(name, "tcp") && a->fields == 1)
		run_tcp_in_process(bytes);
	else if (!strcmp(name, "tcp") && a->fields == 3)
		tcp_to(a->text[1], (uint16_t)a->number[2], bytes);
	else if (!strcmp(name, "serve") && a->fields == 2)
		serve((uint16_t)a->number[1], bytes);
	else
		return false;
	return true;
}

static bool do_rest(const char *name, const struct action *a)
{
	if (!strcmp(name, "cpu") && a->fields == 1)
		burn(a->number[0]);
	else if (!strcmp(name, "threads") && a->fields == 2)
		threads((long)a->number[0], a->number[1]);
	else if (!strcmp(name, "memory") && a->fields == 2)
		memory((int64_t)a->number[0], a->number[1]);
	else if (!strcmp(name, "sleep") && a->fields == 1)
		sleep_s(a->number[0]);
	else if (!strcmp(name, "until") && a->fields == 1)
		until(a->text[0]);
	else if (!strcmp(name, "meet") && a->fields == 2)
		meet(a->text[0], a->text[1]);
	else if (!strcmp(name, "note") && a->fields == 0)
		leave_result();
	else if (!strcmp(name, "parent") && a->fields == 0)
		count_parents();
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	int code = 0;

	started_s = monotonic_s();
	started_unix_s = seconds_of(CLOCK_REALTIME);
	before_us = (int64_t)(own_cpu_s() * 1e6);
	if (argc < 2) {
		(void)fputs(help, stderr);
		return EX_USAGE;
	}
	if (!strcmp(argv[1], "--help"))
		return fputs(help, stdout) < 0;
	share_counts();
	warm_up();
	at_start = kernel_io();
	result_path = argv[1];
	for (int i = 2; i < argc; i++) {
		struct action action;

		if (!strcmp(argv[i], "--")) {
			code = run_other(argv + i + 1);
			break;
		}
		action = parse(argv[i]);
		if (do_processes(argv[i], &action) || do_bytes(argv[i], &action) ||
		    do_tcp(argv[i], &action) || do_rest(argv[i], &action))
			continue;
		(void)fprintf(stderr,
			      "steelyard-load: %s: no such action, or not so many numbers\n",
			      argv[i]);
		return EX_USAGE;
	}
	leave_result();
	return code;
}
