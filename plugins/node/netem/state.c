#include "netem/state.h"

#include "base/error.h"
#include "base/exec.h"
#include "base/file.h"
#include "base/json_document.h"
#include "counters/process_alive.h"
#include "counters/process_table.h"
#include "netem/netem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

int sy_state_make_name(char *name, const char *node, const char *job_id, bool done,
		       struct sy_error *err)
{
	int length;

	if (!sy_is_file_word(node) || !sy_is_file_word(job_id))
		return sy_fail(err,
			       "expected a node and a job id that can be part of a file's name");
	length =
	    snprintf(name, SY_STATE_NAME_SIZE, "%s.%s%s.json", node, job_id, done ? ".done" : "");
	if (length >= SY_STATE_NAME_SIZE)
		return sy_fail(err, "the names of node and job are too long for a file");
	return 0;
}

static int open_folder(const char *run_dir, bool make, struct sy_error *err)
{
	cleanup_close int top = open(run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat info;
	int fd;

	if (top < 0 && errno == ENOENT && make && mkdir(run_dir, 0700) == 0)
		top = open(run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return errno == ENOENT && !make
			   ? -2
			   : sy_fail_errno(err, errno, "cannot open the folder %s", run_dir);
	if (sy_folder_check(top, run_dir, err) < 0)
		return -1;
	if (make && mkdirat(top, "netem", 0700) < 0 && errno != EEXIST)
		return sy_fail_errno(err, errno, "cannot make %s/netem", run_dir);
	fd = openat(top, "netem", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT && !make
			   ? -2
			   : sy_fail_errno(err, errno, "cannot open %s/netem", run_dir);
	if (fstat(fd, &info) == 0 && info.st_uid == geteuid() && !(info.st_mode & 077))
		return fd;
	(void)close(fd);
	return sy_fail(err, "%s/netem must belong to root with mode 0700: remove it", run_dir);
}

static int lock_states(int dir, struct sy_error *err)
{
	int fd = openat(dir, ".lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot open the lock of network conditions");
	if (sy_lock(fd, SY_LOCK_PATIENCE_MS))
		return fd;
	(void)close(fd);
	return sy_fail(err, "somebody else has been changing network conditions for %d s",
		       SY_LOCK_PATIENCE_MS / 1000);
}

static json_t *read_state(int dir, const char *name)
{
	cleanup_close int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	json_t *state;

	if (fd < 0)
		(void)sy_count_shortage(errno);
	state = sy_json_read_fd(fd);
	return json_is_object(state) ? state : (json_decref(state), json_null());
}

/* NULL when the folder cannot be read now: a condition without a known state would stay for ever.
 */
static json_t *read_states(int dir)
{
	unsigned shortages = sy_get_shortages();
	cleanup_close int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = copy < 0 ? NULL : fdopendir(copy);
	json_t *all = json_object();
	struct dirent *entry;

	if (folder)
		copy = -1; /* closedir() closes it */
	while (folder && (entry = readdir(folder)))
		if (entry->d_name[0] != '.' && sy_ends_with(entry->d_name, ".json") &&
		    !sy_ends_with(entry->d_name, ".done.json"))
			(void)json_object_set_new(all, entry->d_name,
						  read_state(dir, entry->d_name));
	if (folder && closedir(folder) == 0 && sy_get_shortages() == shortages)
		return all;
	json_decref(all);
	return NULL;
}

int sy_states_open(const char *run_dir, bool make, struct sy_states *states, struct sy_error *err)
{
	*states = SY_STATES_NONE;
	states->dir = open_folder(run_dir, make, err);
	if (states->dir < 0)
		return states->dir == -2 ? 1 : -1;
	states->lock = lock_states(states->dir, err);
	if (states->lock < 0)
		return -1;
	sy_run_pass_descriptor(states->lock);
	states->all = read_states(states->dir);
	if (!states->all)
		return sy_fail(err, "cannot read the states of network conditions in %s/netem",
			       run_dir);
	return 0;
}

void sy_states_close(struct sy_states *states)
{
	sy_run_pass_descriptor(-1);
	if (states->lock >= 0)
		(void)close(states->lock);
	if (states->dir >= 0)
		(void)close(states->dir);
	json_decref(states->all);
	*states = SY_STATES_NONE;
}

int sy_state_save(struct sy_states *states, const char *name, json_t *document,
		  struct sy_error *err)
{
	static const char temporary[] = ".new";
	cleanup_close int fd = openat(states->dir, temporary,
				      O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	cleanup_free char *text =
	    sy_json_dump(document, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15));
	int error;

	if (fd < 0 || !text)
		return sy_fail_errno(err, errno, "cannot write the state %s", name);
	error = sy_write_all(fd, text, strlen(text));
	if (error < 0)
		return sy_fail_errno(err, -error, "cannot write the state %s", name);
	if (fsync(fd) < 0 || renameat(states->dir, temporary, states->dir, name) < 0)
		return sy_fail_errno(err, errno, "cannot write the state %s", name);
	(void)fsync(states->dir);
	if (!sy_ends_with(name, ".done.json"))
		(void)json_object_set(states->all, name, document);
	return 0;
}

int sy_state_remove(struct sy_states *states, const char *name, struct sy_error *err)
{
	if (unlinkat(states->dir, name, 0) < 0 && errno != ENOENT)
		return sy_fail_errno(err, errno, "cannot remove the state %s", name);
	(void)fsync(states->dir);
	(void)json_object_del(states->all, name);
	return 0;
}

void sy_state_remove_private(json_t *state)
{
	static const char *const own[] = {"node",    "job_id",
					  "user_id", "watch_pid",
					  "boot_id", "watch_start_ticks",
					  "marks",   "network_namespace",
					  "undo",    "start_boot_s"};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		(void)json_object_del(state, own[i]);
}

static void read_boot_id(char *text, size_t size)
{
	cleanup_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root < 0)
		(void)sy_count_shortage(errno);
	if (root < 0 || sy_read_line_at(root, BOOT_ID, text, size) < 0)
		text[0] = '\0';
}

static int64_t read_namespace(const char *path)
{
	struct stat info;

	if (stat(path, &info) == 0)
		return (int64_t)info.st_ino;
	(void)sy_count_shortage(errno);
	return 0;
}

/* A namespace lives as long as a process or a mount (ip-netns(8)) holds it. */
static bool is_namespace_alive(const char *folder, const char *tail, int64_t inode)
{
	cleanup_dir DIR *dir = opendir(folder);
	struct dirent *entry;
	bool found = !dir && errno != ENOENT;
	char path[320];

	while (dir && !found && (entry = readdir(dir))) {
		(void)snprintf(path, sizeof(path), "%s/%s%s", folder, entry->d_name, tail);
		found = entry->d_name[0] != '.' && read_namespace(path) == inode;
	}
	return found;
}

int sy_state_set_owner(json_t *state, pid_t watch, struct sy_error *err)
{
	unsigned shortages = sy_get_shortages();
	int64_t inode = read_namespace("/proc/self/ns/net");
	int64_t ticks = watch ? sy_start_ticks(watch) : 0;
	char boot[64];

	read_boot_id(boot, sizeof(boot));
	if (ticks == SY_TICKS_NOT_READ || sy_get_shortages() != shortages)
		return sy_fail(err, "no descriptor or memory is left to read the owner, at whose "
				    "end the conditions would be undone");
	(void)json_object_set_new(state, "boot_id", json_string(boot));
	(void)json_object_set_new(state, "network_namespace", json_integer(inode));
	(void)json_object_set_new(state, "watch_pid", json_integer(watch));
	(void)json_object_set_new(state, "watch_start_ticks",
				  watch ? json_integer(ticks) : json_null());
	return 0;
}

static int64_t read_number(const json_t *state, const char *key)
{
	return json_integer_value(json_object_get(state, key));
}

/* The watched process may have been killed while the job continues. */
static bool is_job_alive(const json_t *state)
{
	const char *mark[SY_MAX_MARKS];
	int count = 0;
	json_t *word;
	size_t i;

	json_array_foreach(json_object_get(state, "marks"), i, word)
	{
		if (json_is_string(word) && count < SY_MAX_MARKS)
			mark[count++] = json_string_value(word);
	}
	return sy_marked_process_lives((uid_t)read_number(state, "user_id"), mark, count);
}

enum sy_owner sy_state_find_owner(const json_t *state)
{
	const char *boot = json_string_value(json_object_get(state, "boot_id"));
	int64_t inode = read_number(state, "network_namespace");
	pid_t watch = (pid_t)read_number(state, "watch_pid");
	char now[64];
	int64_t ticks;

	read_boot_id(now, sizeof(now));
	if (!boot || (now[0] && strcmp(boot, now)))
		return SY_OWNER_AND_KERNEL_GONE;
	if (inode != read_namespace("/proc/self/ns/net"))
		return is_namespace_alive("/proc", "/ns/net", inode) ||
			       is_namespace_alive("/run/netns", "", inode)
			   ? SY_OWNER_NOT_HERE
			   : SY_OWNER_AND_KERNEL_GONE;
	if (!watch)
		return SY_OWNER_LIVES;
	ticks = sy_start_ticks(watch);
	if (ticks == SY_TICKS_NOT_READ ||
	    (ticks >= 0 && ticks == read_number(state, "watch_start_ticks")))
		return SY_OWNER_LIVES;
	return is_job_alive(state) ? SY_OWNER_LIVES : SY_OWNER_GONE;
}

bool sy_netem_has_states(const char *run_dir)
{
	struct dirent *entry;
	bool found = false;
	char path[512];
	cleanup_dir DIR *dir = NULL;

	(void)snprintf(path, sizeof(path), "%s/netem", run_dir);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir))) {
		found = entry->d_name[0] != '.' && sy_ends_with(entry->d_name, ".json") &&
			!sy_ends_with(entry->d_name, ".done.json");
	}
	return found;
}

bool sy_netem_is_live(const char *run_dir, const char *node, const char *job_id)
{
	cleanup_states struct sy_states states = SY_STATES_NONE;
	char name[SY_STATE_NAME_SIZE];
	json_t *state;

	if (sy_state_make_name(name, node, job_id, false, NULL) < 0 ||
	    sy_states_open(run_dir, false, &states, NULL))
		return false;
	state = json_object_get(states.all, name);
	return json_is_object(state) && sy_state_find_owner(state) == SY_OWNER_LIVES;
}

json_t *sy_netem_list_states(const char *run_dir, struct sy_error *err)
{
	cleanup_states struct sy_states states = SY_STATES_NONE;
	json_t *list = json_array(), *state;
	const char *name;
	int result = sy_states_open(run_dir, false, &states, err);

	if (result < 0) {
		json_decref(list);
		return NULL;
	}
	json_object_foreach(states.all, name, state)
	{
		enum sy_owner owner = sy_state_find_owner(state);
		json_t *copy = json_is_object(state) ? json_deep_copy(state) : json_object();

		(void)json_object_set_new(
		    copy, "stale",
		    json_boolean(owner == SY_OWNER_GONE || owner == SY_OWNER_AND_KERNEL_GONE));
		(void)json_object_del(copy, "undo");
		(void)json_array_append_new(list, copy);
	}
	return list;
}
