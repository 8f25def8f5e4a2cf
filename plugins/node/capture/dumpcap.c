#include "capture/dumpcap.h"

#include "base/document.h"
#include "base/file.h"
#include "base/kernel.h"
#include "base/rights.h"
#include "capture/file.h"
#include "counters/netdev.h"
#include "netem/spec/values.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define DUMPCAP	 "/usr/bin/dumpcap"
#define START_MS 5000
#define END_MS	 5000
#define LOOK_MS	 10

/* The kernel hands packets over in blocks, every 250 ms at the latest (CAP_READ_TIMEOUT of
 * dumpcap.c); the last ones would be missing. */
#define LINGER_MS 300

#define DEVICES 8
#define WORDS	(16 + 6 * DEVICES)

/* dumpcap looks at the size after a packet was written. */
#define SLACK_BYTES (1 << 20)

struct run {
	const struct sy_capture *capture;
	int packets_fd, said_fd, signal_fd, watch_fd, held_fd;
	pid_t dumpcap;
	bool ended;
	int status;
	char filter[SY_CAPTURE_FILTER], limit[64], snap[16];
	char devices[DEVICES][SY_DEVICE_SIZE];
	int device_count;
	json_t *document;
};

/* --- what is captured --- */

__attribute__((format(printf, 3, 4))) static size_t add(char *text, size_t used, const char *format,
							...)
{
	va_list args;
	int length;

	if (used >= SY_CAPTURE_FILTER)
		return used;
	va_start(args, format);
	length = vsnprintf(text + used, SY_CAPTURE_FILTER - used, format, args);
	va_end(args);
	return used + (size_t)length;
}

int sy_capture_filter(const struct sy_capture *capture, char *text)
{
	char network[SY_UNIT_SIZE];
	size_t used = add(text, 0, "(ip or ip6) and not tcp port 22");

	for (int i = 0; i < capture->protect_count; i++)
		used = add(text, used, " and not net %s",
			   sy_format_network(&capture->protect[i], network));
	for (int i = 0; i < capture->only_count; i++)
		used = add(text, used, "%snet %s", i ? " or " : " and (",
			   sy_format_network(&capture->only[i], network));
	if (capture->only_count)
		used = add(text, used, ")");
	return used < SY_CAPTURE_FILTER ? 0 : -1;
}

/* Not the device `any`: what passes a bridge or a bond would be in the file twice, and look like
 * retransmissions. */
static int choose_devices(struct run *run, struct sy_error *err)
{
	static struct sy_netdev found[SY_NETDEV_MAX];
	cleanup_close int root = -1;
	int count;

	if (run->capture->device) {
		run->device_count = 1;
		(void)snprintf(run->devices[0], SY_DEVICE_SIZE, "%s", run->capture->device);
		return 0;
	}
	root = sy_root_open("/", err);
	count = root < 0 ? 0 : sy_netdev_find(root, found, SY_NETDEV_MAX, err);
	for (int i = 0; i < count && run->device_count < DEVICES; i++)
		if (found[i].counted)
			memcpy(run->devices[run->device_count++], found[i].name, SY_DEVICE_SIZE);
	if (!run->device_count)
		return sy_fail(err, "capture: this node has no uplink; name one by --device");
	return 0;
}

/* --- dumpcap --- */

static size_t fill_words(struct run *run, const char *words[WORDS])
{
	/* -p: what is not for this node is nobody's business here. -n: pcapng. -w -: stdout. */
	const char *const fixed[] = {"dumpcap", "-q", "-p", "-n", "-w",
				     "-",	"-B", "8",  "-a", run->limit};
	size_t count = sizeof(fixed) / sizeof(fixed[0]);

	memcpy(words, fixed, sizeof(fixed));
	for (int i = 0; i < run->device_count; i++) {
		/* -f and -s hold for the device before them. */
		const char *const each[] = {"-i", run->devices[i], "-f", run->filter,
					    "-s", run->snap};

		memcpy(words + count, each, sizeof(each));
		count += sizeof(each) / sizeof(each[0]);
	}
	words[count] = NULL;
	return count;
}

static void become_dumpcap(struct run *run)
{
	static char *environment[] = {(char *)"LC_ALL=C", NULL};
	const rlim_t most = (rlim_t)(run->capture->max_bytes + SLACK_BYTES);
	const struct rlimit limit = {most, most};
	const char *words[WORDS];
	struct sy_error err;
	sigset_t none;
	int null = open("/dev/null", O_RDONLY);

	(void)fill_words(run, words);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setrlimit(RLIMIT_FSIZE, &limit);
	if (dup2(null, 0) < 0 || dup2(run->packets_fd, 1) < 0 || dup2(run->said_fd, 2) < 0)
		_exit(127);
	if (sy_rights_capture(&err) < 0) {
		(void)sy_write_all(2, err.text, strlen(err.text));
		_exit(127);
	}
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
	(void)execve(DUMPCAP, (char *const *)words, environment);
	_exit(127);
}

static void look_for_end(struct run *run)
{
	if (!run->ended && waitpid(run->dumpcap, &run->status, WNOHANG) == run->dumpcap)
		run->ended = true;
}

/* It says "File: -" once the packets are coming in. */
static int wait_until_started(struct run *run, struct sy_error *err)
{
	char said[1024] = "";

	for (int waited = 0; waited < START_MS; waited += LOOK_MS) {
		look_for_end(run);
		(void)sy_read_fd(run->said_fd, said, sizeof(said));
		if (strstr(said, "\nFile: "))
			return 0;
		if (run->ended)
			return sy_fail(err, "capture: dumpcap ended at once: %.300s", said);
		(void)poll(NULL, 0, LOOK_MS);
	}
	return sy_fail(err, "capture: dumpcap did not begin within %d s: %.300s", START_MS / 1000,
		       said);
}

static void stop(struct run *run)
{
	for (int waited = 0; !run->ended && waited < END_MS; waited += LOOK_MS) {
		if (!waited)
			(void)kill(run->dumpcap, SIGTERM);
		(void)poll(NULL, 0, LOOK_MS);
		look_for_end(run);
	}
	if (run->ended)
		return;
	(void)kill(run->dumpcap, SIGKILL);
	(void)waitpid(run->dumpcap, &run->status, 0);
	run->ended = true;
}

/* --- the run --- */

static int open_all(struct run *run, char name[320], struct sy_error *err)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	run->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (run->capture->watch) {
		run->watch_fd = (int)syscall(SYS_pidfd_open, run->capture->watch, 0);
		if (run->watch_fd < 0)
			return sy_fail_errno(err, errno, "capture: cannot watch process %d",
					     run->capture->watch);
	}
	run->said_fd = memfd_create("dumpcap", MFD_CLOEXEC);
	if (run->said_fd < 0)
		return sy_fail_errno(err, errno, "capture: cannot make a file in memory");
	run->packets_fd = sy_capture_make(run->capture, name, err);
	return run->packets_fd < 0 ? -1 : 0;
}

static int start(struct run *run, struct sy_error *err)
{
	run->dumpcap = fork();
	if (run->dumpcap == 0)
		become_dumpcap(run);
	if (run->dumpcap < 0) {
		run->ended = true;
		return sy_fail_errno(err, errno, "capture: cannot start dumpcap");
	}
	return wait_until_started(run, err);
}

/* Whether somebody told us to end; else dumpcap has ended by itself. */
static bool wait_for_end(struct run *run)
{
	struct pollfd wait[] = {{run->signal_fd, POLLIN, 0}, {run->watch_fd, POLLIN, 0}};
	struct signalfd_siginfo info;

	for (;;) {
		(void)poll(wait, 2, -1);
		while (read(run->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
			if (info.ssi_signo != SIGCHLD)
				return true;
		look_for_end(run);
		if (run->ended || wait[1].revents)
			return !run->ended;
	}
}

/* "Packets received/dropped on interface 'eth0': 6/0 (…": a line for each device. */
static json_t *dropped_packets(const struct run *run)
{
	char said[8192] = "";
	long long sum = 0, dropped;
	const char *at = said;
	bool any = false;

	(void)sy_read_fd(run->said_fd, said, sizeof(said));
	while ((at = strstr(at, "Packets received/dropped"))) {
		at = strstr(at, "': ");
		if (!at || sscanf(at, "': %*d/%lld", &dropped) != 1)
			break;
		sum += dropped;
		any = true;
	}
	return any ? json_integer(sum) : json_null();
}

static void finish(struct run *run, bool truncated)
{
	struct stat info = {0};

	(void)fstat(run->packets_fd, &info);
	(void)fsync(run->packets_fd);
	(void)json_object_set_new(run->document, "bytes", json_integer(info.st_size));
	(void)json_object_set_new(run->document, "truncated", json_boolean(truncated));
	(void)json_object_set_new(run->document, "dropped_packets", dropped_packets(run));
	sy_capture_done(run->capture, run->document);
}

static int prepare(struct run *run, struct sy_error *err)
{
	const struct sy_capture *capture = run->capture;

	if (sy_capture_filter(capture, run->filter) < 0)
		return sy_fail(err, "capture: more networks than a filter of %d bytes holds",
			       SY_CAPTURE_FILTER);
	/* Units of 1000 bytes, and no less than one. */
	(void)snprintf(run->limit, sizeof(run->limit), "filesize:%lld",
		       (long long)capture->max_bytes / 1000);
	(void)snprintf(run->snap, sizeof(run->snap), "%d", capture->snap_bytes);
	return choose_devices(run, err);
}

static int capture_until_end(struct run *run, void (*ready)(const char *document),
			     struct sy_error *err)
{
	cleanup_free char *text = NULL;
	char name[320];
	bool told;

	if (open_all(run, name, err) < 0 || start(run, err) < 0)
		return -1;
	run->document = json_pack("{s:s,s:n,s:b,s:s}", "file", name, "bytes", "truncated", 0,
				  "filter", run->filter);
	if (sy_capture_begin(run->capture, run->document, &run->held_fd, err) < 0)
		return -1;
	text = sy_json_dump(run->document, JSON_COMPACT);
	if (ready && text)
		ready(text);
	told = wait_for_end(run);
	if (told)
		(void)poll(NULL, 0, LINGER_MS);
	stop(run);
	finish(run, !told);
	return 0;
}

static void close_all(const struct run *run)
{
	const int fds[] = {run->packets_fd, run->said_fd, run->signal_fd, run->watch_fd,
			   run->held_fd};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
}

int sy_capture_run(const struct sy_capture *capture, void (*ready)(const char *document),
		   bool *missing, struct sy_error *err)
{
	struct run run = {.capture = capture,
			  .packets_fd = -1,
			  .said_fd = -1,
			  .signal_fd = -1,
			  .watch_fd = -1,
			  .held_fd = -1};
	int result;

	*missing = access(DUMPCAP, X_OK) < 0;
	if (*missing)
		return sy_fail(err, "capture: there is no " DUMPCAP
				    " (Debian: wireshark-common, RHEL: wireshark-cli)");
	if (prepare(&run, err) < 0)
		return -1;
	result = capture_until_end(&run, ready, err);
	if (run.dumpcap > 0)
		stop(&run);
	json_decref(run.document);
	close_all(&run);
	return result;
}
