/* States on disk: half written, of another boot, of another namespace, of a process number used
 * again; and what nobody has taken. Nothing of the kernel's is touched. */
#include "tap.h"

#include "netem/netem.h"
#include "netem/state.h"
#include "record/unfinished_records.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DAY_S 86400

static char run_dir[] = "/tmp/sy-state-XXXXXX";

static void write_file(const char *name, const char *text, time_t age_s)
{
	const struct timespec times[2] = {{.tv_sec = time(NULL) - age_s},
					  {.tv_sec = time(NULL) - age_s}};
	char path[200];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", run_dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ok(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) &&
	       futimens(fd, times) == 0,
	   "wrote %s", name);
	(void)close(fd);
}

static bool exists(const char *name)
{
	char path[200];

	(void)snprintf(path, sizeof(path), "%s/%s", run_dir, name);
	return access(path, F_OK) == 0;
}

/* A state that was interrupted before any device was touched. */
static json_t *state_of(pid_t watch)
{
	json_t *state = json_pack("{s:s,s:s,s:s,s:{s:[]}}", "requested", "delay=50ms", "node", "n",
				  "job_id", "7", "undo", "places");

	(void)sy_state_set_owner(state, watch, NULL);
	return state;
}

static pid_t ended_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	(void)waitpid(pid, NULL, 0);
	return pid;
}

static void is_owner(json_t *state, enum sy_owner owner, const char *name)
{
	is_int(sy_state_find_owner(state), owner, name);
	json_decref(state);
}

static json_t *state_with(const char *key, json_t *value)
{
	json_t *state = state_of(getpid());

	(void)json_object_set_new(state, key, value);
	return state;
}

static void test_owner(void)
{
	is_owner(state_of(getpid()), SY_OWNER_LIVES, "its process lives");
	is_owner(state_of(0), SY_OWNER_LIVES, "nobody is watched: until it is cleared");
	is_owner(state_of(ended_process()), SY_OWNER_GONE, "its process has ended");
	is_owner(state_with("watch_start_ticks", json_integer(1)), SY_OWNER_GONE,
		 "its number belongs to another process now");
	is_owner(state_with("boot_id", json_string("0")), SY_OWNER_AND_KERNEL_GONE, "another boot");
	is_owner(state_with("boot_id", json_null()), SY_OWNER_AND_KERNEL_GONE, "no boot is said");
	is_owner(state_with("network_namespace", json_integer(1)), SY_OWNER_AND_KERNEL_GONE,
		 "a namespace that is gone");
}

/* Another namespace as long as a process holds it. */
static void test_namespace(void)
{
	struct stat info = {0};
	char path[64], ready;
	int channel[2];
	pid_t pid;

	ok(pipe(channel) == 0, "a pipe");
	pid = fork();
	if (pid == 0) {
		bool made =
		    unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;

		(void)!write(channel[1], made ? "y" : "n", 1);
		(void)pause();
		_exit(0);
	}
	(void)!read(channel[0], &ready, 1);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	if (ready == 'y' && stat(path, &info) == 0)
		is_owner(state_with("network_namespace", json_integer((json_int_t)info.st_ino)),
			 SY_OWNER_NOT_HERE, "a namespace that another process is in");
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	if (info.st_ino)
		is_owner(state_with("network_namespace", json_integer((json_int_t)info.st_ino)),
			 SY_OWNER_AND_KERNEL_GONE, "which then ends");
}

static void test_folder(void)
{
	struct sy_states states;
	struct sy_error err;
	char path[200], name[SY_STATE_NAME_SIZE];

	is_int(sy_states_open(run_dir, false, &states, &err), 1, "no folder, none is made");
	is_int(sy_netem_undo_stale(run_dir, "hand", &err), 0, "nothing to undo");
	ok(sy_states_open(run_dir, true, &states, &err) == 0, "a folder is made");
	sy_states_close(&states);
	(void)snprintf(path, sizeof(path), "%s/netem", run_dir);
	(void)chmod(path, 0755);
	ok(sy_states_open(run_dir, true, &states, &err) < 0 && strstr(err.text, "mode 0700"),
	   "one that others can read is distrusted: %s", err.text);
	sy_states_close(&states);
	(void)chmod(path, 0700);
	ok(sy_state_make_name(name, "n/..", "7", false, &err) < 0, "no node of that name");
	ok(sy_state_make_name(name, "n", "7", true, &err) == 0, "a name");
	is_string(name, "n.7.done.json", "of a finished one");
}

/* Killed while writing, or a disk that was full: neither is a reason to stop. */
static void test_half_written(void)
{
	struct sy_states states;
	struct sy_error err;
	char path[200];

	write_file("netem/n.7.json", "{\"requested\":\"dela", 0);
	write_file("netem/n.8.json", "", 0);
	write_file("netem/n.9.json", "[1]", 0);
	write_file("netem/.new", "{", 0);
	(void)snprintf(path, sizeof(path), "%s/netem/n.10.json", run_dir);
	ok(symlink("/proc/self/status", path) == 0, "a link");
	ok(sy_states_open(run_dir, true, &states, &err) == 0, "opened");
	is_int((int64_t)json_object_size(states.all), 4, "four states, the temporary one is none");
	ok(json_is_null(json_object_get(states.all, "n.7.json")), "which cannot be read");
	sy_states_close(&states);
	is_int(sy_netem_finish(run_dir, "n", "8", "job", &err), 1, "nothing to finish");
	ok(!exists("netem/n.8.json"), "and it is gone");
	is_int(sy_netem_undo_stale(run_dir, "slurmd", &err), 0, "reaped, none of them was undone");
	ok(!exists("netem/n.7.json") && !exists("netem/n.9.json"), "they are gone");
	ok(!exists("netem/n.10.json"), "the link, too");
}

static void test_reaped(void)
{
	struct sy_states states;
	struct sy_error err = {{0}};
	json_t *state = state_with("boot_id", json_string("0")), *done;

	ok(sy_states_open(run_dir, true, &states, &err) == 0 &&
	       sy_state_save(&states, "n.7.json", state, &err) == 0,
	   "a state of another boot");
	sy_states_close(&states);
	json_decref(state);
	is_int(sy_netem_undo_stale(run_dir, "slurmd", &err), 1, "is undone");
	done = sy_netem_consume_document(run_dir, "n", "7");
	ok(json_is_true(json_object_get(done, "undone")), "for the reboot has done it");
	is_string(json_string_value(json_object_get(done, "undone_by")), "slurmd", "by whom");
	ok(!json_object_get(done, "boot_id"), "its owner is nobody's business in the record");
	json_decref(done);
	done = sy_netem_consume_document(run_dir, "n", "7");
	ok(!done, "taken once");
	json_decref(done);
}

static void test_stale_files(void)
{
	write_file("netem/n.1.done.json", "{}", DAY_S - 60);
	ok(!sy_stale_files(run_dir, false) || sy_stale_files(run_dir, true) == 1,
	   "what is young stays, but for what is older than the boot");
	write_file("netem/n.1.done.json", "{}", DAY_S + 60);
	write_file("netem/n.2.done.json", "{}", 0);
	ok(sy_stale_files(run_dir, false), "there is something to remove");
	is_int(sy_stale_files(run_dir, true), 1, "what is old goes");
	ok(!exists("netem/n.1.done.json"), "a finished one of yesterday goes");
	ok(exists("netem/n.2.done.json"), "that of today stays");
}

/* A clock that was set forward makes it old, but the record of a running job still needs it. */
static void test_stale_files_of_a_job(void)
{
	struct sy_sampling sampling = {
	    .run_dir = run_dir, .record_dir = "/r", .job_id = "7.srv", .node = "n.b"};
	struct sy_error err = {{0}};
	char mark[512];
	const struct sy_recordfile file = {.job_path = "7.srv", .name = "n.b.100"};
	int fd = sy_unfinished_mark(&sampling, &file, mark, sizeof(mark), &err);

	ok(fd >= 0, "a record goes on %s", err.text);
	write_file("netem/n.b.7.srv.done.json", "{}", 2 * DAY_S);
	write_file("netem/n.7.srv.done.json", "{}", 2 * DAY_S);
	write_file("netem/n.b.7.done.json", "{}", 2 * DAY_S);
	is_int(sy_stale_files(run_dir, true), 2, "those of other jobs and nodes go");
	ok(exists("netem/n.b.7.srv.done.json"), "what it has still to take stays");
	sy_unfinished_end(run_dir, mark);
	(void)close(fd);
	is_int(sy_stale_files(run_dir, true), 1, "until it is finished");
}

int main(void)
{
	char remove[80];

	ok(mkdtemp(run_dir) != NULL, "a run folder");
	test_owner();
	test_namespace();
	test_folder();
	test_half_written();
	test_reaped();
	test_stale_files();
	test_stale_files_of_a_job();
	(void)snprintf(remove, sizeof(remove), "rm -r %s", run_dir);
	return system(remove) != 0 || done_testing();
}
