/* steelyard-node job, its pure parts: requests, where to leave cgroups for, sockets' names, keys.
 */
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

#include "base/clock.h"
#include "base/file.h"
#include "job/conditions.h"
#include "job/config.h"
#include "job/job_options.h"
#include "job/samplers.h"
#include "job/spawn.h"
#include "sampler/control_socket.h"

struct told {
	enum sy_user_option which;
	char text[1024];
	int count;
};

static int keep(void *context, enum sy_user_option which, const char *text, struct sy_error *err)
{
	struct told *notes = context;

	(void)err;
	notes->which = which;
	(void)snprintf(notes->text, sizeof(notes->text), "%s", text);
	notes->count++;
	return 0;
}

/* Every byte that a text can have comes back. */
static void test_round_trip(void)
{
	char text[256], request[1024] = "";
	struct told notes = {.count = 0};
	struct sy_error err;

	for (int i = 1; i < 256; i++)
		text[i - 1] = (char)i;
	text[255] = '\0';
	ok(sy_request_add(request, sizeof(request), SY_USER_OPTION_TAG, text, &err) == 0,
	   "it fits");
	ok(sy_request_read(request, keep, &notes, &err) == 0, "it is read");
	ok(notes.which == SY_USER_OPTION_TAG && notes.count == 1, "one tag");
	ok(!strcmp(notes.text, text), "all bytes come back");
	ok(strspn(request + 4,
		  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-%") ==
	       strlen(request + 4),
	   "and none of them is special on its way");
}

static void test_no_room(void)
{
	char request[16] = "";
	struct sy_error err;

	ok(sy_request_add(request, sizeof(request), SY_USER_OPTION_NETEM, "delay=50ms", &err) < 0,
	   "too long");
	ok(strstr(err.text, "longer than 16 bytes") != NULL, "says how long");
	ok(strlen(request) < sizeof(request), "and stays in its place");
}

/* Any bytes at all: read, or refused. */
static void test_random(void)
{
	static const char pool[] = "netem=tag=cache=:%3D%zz%0=:rate=yes a\n\xff";
	char request[64];
	int taken = 0, refused = 0;

	srandom(1);
	for (int i = 0; i < 200000; i++) {
		struct told notes = {.count = 0};
		struct sy_error err;
		int length = (int)(random() % 40);

		for (int c = 0; c < length; c++)
			request[c] = pool[(size_t)random() % (sizeof(pool) - 1)];
		request[length] = '\0';
		if (i % 3 == 0)
			memcpy(request, "tag=", 4);
		*(sy_request_read(request, keep, &notes, &err) == 0 ? &taken : &refused) += 1;
	}
	ok(taken > 100 && refused > 100, "both happen: %d, %d", taken, refused);
}

static void test_egress(void)
{
	static struct sy_egress way;
	static char long_path[sizeof(way.paths[0])] = "/";

	sy_egress_read(&way,
		       "9:name=systemd:/system.slice/pbs_mom.service\n"
		       "4:memory:/torque/7.srv\n2:cpu,cpuacct:/\n"
		       "0::/pbs_jobs.service/jobid/7.srv\n",
		       sy_egress_to_top);
	ok(way.count == 4, "four ways: %zu", way.count);
	ok(!strcmp(way.paths[0], "/sys/fs/cgroup/systemd/cgroup.procs"), "%s", way.paths[0]);
	ok(!strcmp(way.paths[1], "/sys/fs/cgroup/memory/cgroup.procs"), "%s", way.paths[1]);
	ok(!strcmp(way.paths[2], "/sys/fs/cgroup/cgroup.procs"), "%s", way.paths[2]);
	ok(!strcmp(way.paths[3], "/sys/fs/cgroup/unified/cgroup.procs"), "%s", way.paths[3]);
	sy_egress_read(&way, "0::/\n", sy_egress_to_top);
	ok(way.count == 0, "at the top: nowhere to go");
	sy_egress_read(&way, "0:\n::\n0::torque\n\nx", sy_egress_to_top);
	ok(way.count == 0, "no line of /proc/PID/cgroup: %zu", way.count);
	memset(long_path + 1, 'x', sizeof(long_path) - 2);
	sy_egress_add(&way, "/memory", long_path, strlen(long_path), "");
	ok(way.count == 0, "a path that has no room is none, not one that is cut");
}

static void test_control(void)
{
	struct sockaddr_un one, two;
	char name[201];

	memset(name, 'x', 200);
	name[200] = '\0';
	ok(sy_control_address(&one, "/run/steelyard", "n1", "7.srv"), "a short one");
	ok(!strcmp(one.sun_path, "/run/steelyard/n1.7.srv.sock"), "%s", one.sun_path);
	ok(sy_control_address(&one, "/run/steelyard", "n1", name), "a long one");
	ok(strlen(one.sun_path) == strlen("/run/steelyard/job-0123456789abcdef.sock"), "%s",
	   one.sun_path);
	ok(sy_control_address(&two, "/run/steelyard", "n2", name) &&
	       strcmp(one.sun_path, two.sun_path) != 0,
	   "another node's is another");
	ok(!sy_control_address(&one, name, "n1", "7"), "no room even for a number");
}

static int masks; /* how often the mask of all threads was changed */

mode_t umask(mode_t mask)
{
	masks++;
	return (mode_t)syscall(SYS_umask, mask);
}

/* slurmstepd has other threads, which make files. */
static void test_socket_is_roots_alone(void)
{
	char folder[] = "/tmp/steelyard-test-XXXXXX";
	struct sockaddr_un address;
	struct sy_error err;
	struct stat info;
	int fd;

	(void)syscall(SYS_umask, 0);
	if (!ok(mkdtemp(folder) && sy_control_address(&address, folder, "n1", "7"), "a folder"))
		return;
	fd = sy_control_bind(&address, &err);
	ok(fd >= 0 && lstat(address.sun_path, &info) == 0, "a socket");
	is_int(info.st_mode & 0777, 0600, "is its owner's alone");
	is_int(masks, 0, "without the mask of all threads");
	(void)close(fd);
	(void)unlink(address.sun_path);
	(void)rmdir(folder);
}

#define HUNG 100 /* one after another: 10 s */

/* A folder of records that hangs leaves samplers that read nothing: their full queues together hold
 * up a job's start as long as one does. */
static void test_samplers_that_hang_hold_up_a_start_once(void)
{
	char folder[] = "/tmp/steelyard-test-XXXXXX", id[8];
	struct sockaddr_un address[HUNG], own;
	int fd[HUNG];
	int64_t begun_ms;

	if (!ok(mkdtemp(folder) && sy_control_address(&own, folder, "n1", "own"), "a folder"))
		return;
	for (int i = 0; i < HUNG; i++) {
		int from = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		(void)snprintf(id, sizeof(id), "%d", i);
		(void)sy_control_address(&address[i], folder, "n1", id);
		fd[i] = sy_control_bind(&address[i], NULL);
		while (sendto(from, "x", 1, MSG_DONTWAIT, (const struct sockaddr *)&address[i],
			      sizeof(address[i])) > 0)
			;
		(void)close(from);
	}
	begun_ms = sy_now_ms(CLOCK_MONOTONIC);
	ok(sy_control_meet_other_jobs(folder, "n1", &own), "samplers of other jobs");
	ok(sy_now_ms(CLOCK_MONOTONIC) - begun_ms < 5000, "not one after another");
	for (int i = 0; i < HUNG; i++) {
		(void)close(fd[i]);
		(void)unlink(address[i].sun_path);
	}
	(void)rmdir(folder);
}

/* What a job's own containers send is not shaped on a shared node. */
static void test_condition_of_containers(const char *scope, bool other_networks, int expected)
{
	char folder[] = "/tmp/steelyard-test-XXXXXX", path[64];
	struct sy_command_job job = {.node = "n1", .job_id = "7"};
	FILE *file;

	if (!ok(mkdtemp(folder) != NULL, "a folder"))
		return;
	job.program.run_dir = folder;
	(void)snprintf(path, sizeof(path), "%s/netem", folder);
	(void)mkdir(path, 0700);
	(void)snprintf(path, sizeof(path), "%s/netem/n1.7.json", folder);
	file = fopen(path, "w");
	(void)fprintf(file, "{\"valid\":true,\"scope\":\"%s\"}", scope);
	(void)fclose(file);
	is_int(sy_conditions_are_valid(&job, other_networks), expected, scope);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/netem", folder);
	(void)rmdir(path);
	(void)rmdir(folder);
}

static int read_config(const char *text, struct sy_job_config *config, struct sy_error *err)
{
	char path[] = "/tmp/steelyard-test-XXXXXX";
	cleanup_close int fd = mkstemp(path);
	int result;

	sy_job_config_init(config);
	(void)sy_write_all(fd, text, strlen(text));
	result = sy_job_config_read(config, path, true, err);
	(void)unlink(path);
	return result;
}

static void test_config(void)
{
	static struct sy_job_config config;
	struct sy_error err;

	ok(read_config("# x\n\n rate = 5 \r\nrun_dir=/run/x\nprotect=a\nprotect=b,c\n", &config,
		       &err) == 0,
	   "keys, blanks, comments");
	ok(config.rate_hz == 5 && !strcmp(config.run_dir, "/run/x"), "are taken");
	ok(!strcmp(config.protect, "a,b,c"), "hosts add up: %s", config.protect);
	ok(read_config("rate=5\nrat=6\nmax_rate=7\n", &config, &err) < 0, "an unknown key");
	ok(strstr(err.text, "line 2: rat=6: unknown; known: record_dir") != NULL, "%s", err.text);
	ok(config.rate_hz == 5 && config.max_rate_hz == 100, "what stands before it counts");
	ok(read_config("rate\n", &config, &err) < 0, "no value");
	ok(read_config("run_dir=run\n", &config, &err) < 0, "no absolute path");
	ok(sy_job_config_read(&config, "/no/such/file", false, &err) == 0, "no file");
	ok(sy_job_config_read(&config, "/no/such/file", true, &err) < 0, "one that must be there");
}

int main(void)
{
	test_round_trip();
	test_no_room();
	test_random();
	test_egress();
	test_control();
	test_socket_is_roots_alone();
	test_samplers_that_hang_hold_up_a_start_once();
	test_condition_of_containers("job", true, 0);
	test_condition_of_containers("job", false, 1);
	test_condition_of_containers("node", true, 1);
	test_config();
	return done_testing();
}
