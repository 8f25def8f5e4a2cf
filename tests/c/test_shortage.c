/* No descriptor left for a moment: what was read then is not taken for the whole, and what is still
 * in force is not forgotten. Recorded trees; nothing of the kernel's is touched. */
#include "tap.h"

#include "base/file.h"
#include "counters/child_processes.h"
#include "counters/netdev_inventory.h"
#include "counters/process_alive.h"
#include "meters/meters.h"
#include "netem/netem.h"
#include "netem/state.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* --- a moment without descriptors ------------------------------------------------------------- */

static int until_refused; /* openat2 calls; 0: none is refused */

/* In the C library's place. */
long syscall(long number, ...)
{
	static long (*next)(long, long, long, long, long);
	long a[4];
	va_list list;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "syscall");
	va_start(list, number);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number != SYS_openat2 || !until_refused || --until_refused > 0)
		return next(number, a[0], a[1], a[2], a[3]);
	errno = EMFILE;
	return -1;
}

/* `more` descriptors and no other; -1: as many as before. */
static void allow(int more)
{
	static struct rlimit before;
	struct rlimit now;
	int next = dup(0);

	if (!before.rlim_cur)
		(void)getrlimit(RLIMIT_NOFILE, &before);
	now = before;
	if (more >= 0)
		now.rlim_cur = (rlim_t)(next + more);
	(void)close(next);
	(void)setrlimit(RLIMIT_NOFILE, &now);
}

/* --- what is counted -------------------------------------------------------------------------- */

static void test_zones(int root)
{
	static struct sy_meters all, some;
	int partly = 0, calls = 0;

	sy_meters_find(&all, root);
	ok(all.count > 2, "%d meters", all.count);
	do {
		until_refused = ++calls;
		sy_meters_find(&some, root);
		partly += some.count != 0 && some.count != all.count;
		for (int i = 0; i < some.count && some.count == all.count; i++)
			partly += strcmp(all.meter[i].name, some.meter[i].name) != 0 ||
				  all.meter[i].counted != some.meter[i].counted;
	} while (!until_refused && calls < 1000);
	until_refused = 0;
	ok(calls > all.count, "%d times one file could not be opened", calls - 1);
	is_int(partly, 0, "a part of the meters is never taken for all");
}

static void test_devices(int root)
{
	static struct sy_netdev all[SY_NETDEV_MAX], some[SY_NETDEV_MAX];
	struct sy_error err;
	int count = sy_netdev_find(root, all, SY_NETDEV_MAX, &err), partly = 0, calls = 0;

	ok(count > 2, "%d devices", count);
	do {
		int found;

		until_refused = ++calls;
		found = sy_netdev_find(root, some, SY_NETDEV_MAX, &err);
		partly += found != 0 && found != count;
		for (int i = 0; i < found && found == count; i++)
			partly += all[i].counted != some[i].counted;
	} while (!until_refused && calls < 10000);
	until_refused = 0;
	ok(calls > count, "%d times one file could not be opened", calls - 1);
	is_int(partly, 0, "a part of the devices is never taken for all");
}

/* --- what is in force ------------------------------------------------------------------------- */

static char run_dir[] = "/tmp/steelyard-test-XXXXXX";

static bool exists(const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/netem/%s", run_dir, name);
	return access(path, F_OK) == 0;
}

static void put_state(void)
{
	cleanup_states struct sy_states states = SY_STATES_NONE;
	json_t *state = json_pack("{s:s,s:s,s:s,s:{s:[]}}", "requested", "delay=50ms", "node", "n",
				  "job_id", "7", "undo", "places");
	struct sy_error err = {0};

	is_int(sy_state_set_owner(state, getpid(), &err), 0, "its owner is read");
	ok(sy_states_open(run_dir, true, &states, &err) == 0 &&
	       sy_state_save(&states, "n.7.json", state, &err) == 0,
	   "a condition is in force%s", err.text);
	allow(0);
	is_int(sy_state_find_owner(state), SY_OWNER_LIVES,
	       "whose owner lives, though none can look");
	is_int(sy_start_ticks(getpid()), SY_TICKS_NOT_READ, "not read is not gone");
	allow(-1);
	json_decref(state);
}

/* Written down without its owner it would be taken for nobody's, or for one of another boot. */
static void test_owner(void)
{
	for (int more = 0; more < 3; more++) {
		json_t *state = json_object();
		struct sy_error err = {0};
		int result;

		allow(more);
		result = sy_state_set_owner(state, getpid(), &err);
		allow(-1);
		ok(result < 0 ? json_object_size(state) == 0 && strstr(err.text, "no descriptor")
			      : sy_state_find_owner(state) == SY_OWNER_LIVES,
		   "%d descriptors: its owner is written down, or nothing is: %s", more, err.text);
		ok(more || result < 0, "without any it is refused");
		json_decref(state);
	}
}

/* Without each of the four that it needs at once. */
static void test_state(void)
{
	struct sy_error err = {0};

	if (!ok(mkdtemp(run_dir) != NULL, "a folder"))
		return;
	test_owner();
	put_state();
	for (int more = 0; more < 4; more++) {
		allow(more);
		is_int(sy_netem_finish(run_dir, "n", "7", "job", &err), -1, "not taken for undone");
		allow(-1);
		ok(exists("n.7.json"), "and it is still known: %s", err.text);
	}
	is_int(sy_netem_finish(run_dir, "n", "7", "job", &err), 0, "undone the next time");
	ok(!exists("n.7.json") && exists("n.7.done.json"), "and told");
}

/* A command's sampler closes its own stdout. */
static int run(char **argv)
{
	int out, code;

	(void)fflush(stdout);
	out = dup(STDOUT_FILENO);
	code = sy_run_unmeasured(argv);
	(void)dup2(out, STDOUT_FILENO);
	(void)close(out);
	return code;
}

static void test_unweighed(void)
{
	char *exits[] = {(char *)"sh", (char *)"-c", (char *)"exit 7", NULL};
	char *dies[] = {(char *)"sh", (char *)"-c", (char *)"kill -9 $$", NULL};

	is_int(run(exits), 7, "a command that cannot be measured still runs");
	is_int(run(dies), 128 + 9, "and its signal is told");
}

int main(void)
{
	struct sy_error err;
	int root = sy_root_open("tests/data/trees/physical", &err);
	char command[64];

	if (!ok(root >= 0, "a recorded tree"))
		return done_testing();
	test_zones(root);
	test_devices(root);
	test_state();
	(void)snprintf(command, sizeof(command), "rm -rf %s", run_dir);
	ok(system(command) == 0, "tidy");
	(void)close(root);
	test_unweighed();
	return done_testing();
}
