#include "netem/kernel/job_scope.h"

#include "base/cvmfs.h"
#include "base/file.h"
#include "base/json_document.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#define PROGRAM_NAME "sy_netem"
#define MOST_OTHERS  64
#define REMOVE_TRIES 200 /* of 5 ms */

static int call_bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* Where cgroup2 is mounted with its root; proc(5): /proc/PID/mountinfo. */
static bool find_mounted(char *where, size_t size)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char line[4096], root[512], point[512];
	bool found = false;

	while (mounts && !found && fgets(line, sizeof(line), mounts))
		if (strstr(line, " - cgroup2 ") &&
		    sscanf(line, "%*s %*s %*s %511s %511s", root, point) == 2 && !strcmp(root, "/"))
			found = snprintf(where, size, "%s", point) < (int)size;
	if (mounts)
		(void)fclose(mounts);
	return found;
}

static int find_hierarchy(const char *run_dir, char *where, size_t size, struct sy_error *err)
{
	if (find_mounted(where, size))
		return 0;
	(void)snprintf(where, size, "%s/netem/cgroup2", run_dir);
	if (mkdir(where, 0700) < 0 && errno != EEXIST)
		return sy_fail_errno(err, errno, "cannot make %s", where);
	if (mount("none", where, "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return sy_fail_errno(err, errno,
				     "one job's traffic alone cannot be shaped: this kernel has no "
				     "cgroup2 (Linux 4.5 and later have it), or it cannot be "
				     "mounted at %s",
				     where);
	return 0;
}

int sy_scope_folder(const char *run_dir, const char *cgroup, const char *name, char *folder,
		    bool *own, struct sy_error *err)
{
	char where[512];
	struct stat info;

	if (cgroup[0] != '/' || strstr(cgroup, "/.."))
		return sy_fail(err, "expected a cgroup as in /proc/PID/cgroup, such as "
				    "/system.slice/job_7");
	if (find_hierarchy(run_dir, where, sizeof(where), err) < 0)
		return -1;
	*own = false;
	if (cgroup[1] && snprintf(folder, PATH_MAX, "%s%s", where, cgroup) < PATH_MAX &&
	    stat(folder, &info) == 0 && S_ISDIR(info.st_mode))
		return 0;
	*own = true;
	(void)snprintf(folder, PATH_MAX, "%s/steelyard", where);
	if (mkdir(folder, 0755) < 0 && errno != EEXIST)
		return sy_fail_errno(err, errno, "cannot make the cgroup %s", folder);
	(void)snprintf(folder, PATH_MAX, "%s/steelyard/%s", where, name);
	if (mkdir(folder, 0755) < 0 && errno != EEXIST)
		return sy_fail_errno(err, errno, "cannot make the cgroup %s", folder);
	return 0;
}

static int load_program(const struct bpf_insn *code, int count)
{
	union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_CGROUP_SKB};

	attr.insns = (uint64_t)(uintptr_t)code;
	attr.insn_cnt = (uint32_t)count;
	attr.license = (uint64_t)(uintptr_t) "Apache-2.0";
	attr.expected_attach_type = BPF_CGROUP_INET_EGRESS;
	strcpy(attr.prog_name, PROGRAM_NAME);
	return call_bpf(BPF_PROG_LOAD, &attr);
}

static int attach_program(int command, int cgroup, int program)
{
	union bpf_attr attr = {.target_fd = (uint32_t)cgroup};

	attr.attach_bpf_fd = (uint32_t)program;
	attr.attach_type = BPF_CGROUP_INET_EGRESS;
	attr.attach_flags = command == BPF_PROG_ATTACH ? BPF_F_ALLOW_MULTI : 0;
	return call_bpf(command, &attr);
}

int sy_scope_attach(const char *folder, const struct bpf_insn *code, int count,
		    struct sy_error *err)
{
	cleanup_close int cgroup = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_close int program = -1;

	if (cgroup < 0)
		return sy_fail_errno(err, errno, "cannot open the cgroup %s", folder);
	program = load_program(code, count);
	if (program < 0)
		return sy_fail_errno(err, errno,
				     "one job's traffic alone cannot be shaped: the kernel "
				     "refuses a program on its cgroup (it needs Linux 4.20 and "
				     "CONFIG_CGROUP_BPF)");
	if (attach_program(BPF_PROG_ATTACH, cgroup, program) < 0)
		return sy_fail_errno(err, errno, "cannot put a program on the cgroup %s", folder);
	return 0;
}

static bool is_ours(int program)
{
	struct bpf_prog_info info = {0};
	union bpf_attr attr = {0};

	attr.info.bpf_fd = (uint32_t)program;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uint64_t)(uintptr_t)&info;
	return call_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) == 0 && !strcmp(info.name, PROGRAM_NAME);
}

/* How many programs are on it; -1: unknown. */
static int list_programs(int cgroup, uint32_t ids[MOST_OTHERS])
{
	union bpf_attr query = {0};

	query.query.target_fd = (uint32_t)cgroup;
	query.query.attach_type = BPF_CGROUP_INET_EGRESS;
	query.query.prog_ids = (uint64_t)(uintptr_t)ids;
	query.query.prog_cnt = MOST_OTHERS;
	return call_bpf(BPF_PROG_QUERY, &query) < 0 ? -1 : (int)query.query.prog_cnt;
}

static int detach_all(int cgroup, struct sy_error *err)
{
	uint32_t ids[MOST_OTHERS];
	int count = list_programs(cgroup, ids);

	if (count < 0)
		return sy_fail_errno(err, errno, "cannot list the programs of the job's cgroup");
	for (int i = 0; i < count; i++) {
		union bpf_attr by_id = {.prog_id = ids[i]};
		cleanup_close int program = call_bpf(BPF_PROG_GET_FD_BY_ID, &by_id);

		if (program >= 0 && is_ours(program) &&
		    attach_program(BPF_PROG_DETACH, cgroup, program) < 0)
			return sy_fail_errno(err, errno, "cannot take our program off the cgroup");
	}
	return 0;
}

/* What still runs there (a process that outlived its job) goes up to where nothing is shaped. */
static void move_processes_out(const char *folder)
{
	char path[PATH_MAX + 32], pid[32];
	FILE *processes;

	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
	processes = fopen(path, "re");
	(void)snprintf(path, sizeof(path), "%s/../../cgroup.procs", folder);
	while (processes && fgets(pid, sizeof(pid), processes)) {
		cleanup_close int fd = open(path, O_WRONLY | O_CLOEXEC);

		if (fd >= 0)
			(void)sy_write_all(fd, pid, strlen(pid));
	}
	if (processes)
		(void)fclose(processes);
}

/* A process that is ending cannot be moved any longer, and occupies its cgroup until it is gone. */
static void remove_folder(const char *folder)
{
	const struct timespec pause = {.tv_nsec = 5000000};

	for (int remaining = REMOVE_TRIES; remaining; remaining--) {
		move_processes_out(folder);
		if (rmdir(folder) == 0 || errno != EBUSY)
			return;
		(void)nanosleep(&pause, NULL);
	}
}

int sy_scope_detach(const char *folder, bool own, struct sy_error *err)
{
	cleanup_close int cgroup = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (cgroup < 0)
		return errno == ENOENT ? 0 : sy_fail_errno(err, errno, "cannot open %s", folder);
	if (detach_all(cgroup, err) < 0)
		return -1;
	if (own) {
		char above[PATH_MAX];

		remove_folder(folder);
		(void)snprintf(above, sizeof(above), "%s", folder);
		*strrchr(above, '/') = '\0';
		(void)rmdir(above); /* stays while it has others */
	}
	return 0;
}

/* NODE.JOB without a state. One with a program is in force: of a node whose name begins as ours. */
static bool is_leftover(int above, const char *name, const char *node, const json_t *states)
{
	size_t length = strlen(node);
	char state[NAME_MAX + sizeof(".json")];
	cleanup_close int cgroup = -1;
	uint32_t ids[MOST_OTHERS];

	(void)snprintf(state, sizeof(state), "%s.json", name);
	if (strncmp(name, node, length) != 0 || name[length] != '.' ||
	    json_object_get(states, state))
		return false;
	cgroup = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return cgroup >= 0 && list_programs(cgroup, ids) == 0;
}

int sy_scope_sweep(const char *own, const char *node, const json_t *states)
{
	char above[PATH_MAX], where[512];
	struct dirent *entry;
	int count = 0;
	cleanup_dir DIR *dir = NULL;

	if (own)
		(void)snprintf(above, sizeof(above), "%.*s", (int)(strrchr(own, '/') - own), own);
	else if (find_mounted(where, sizeof(where)))
		(void)snprintf(above, sizeof(above), "%s/steelyard", where);
	else
		return 0;
	dir = opendir(above);
	/* Only what is empty goes: whose last process is still there waits for the next time. */
	while (dir && (entry = readdir(dir)))
		count += is_leftover(dirfd(dir), entry->d_name, node, states) &&
			 unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR) == 0;
	if (count)
		(void)rmdir(above); /* stays while it has others */
	return count;
}

#define SHOWN_SIZE 200

/* In Linux (fs/Kconfig, "Network File Systems"), and those of vendors and of FUSE. */
static const char *const types[] = {
    "nfs",    "nfs4",	   "cifs",	 "smb3",	   "ceph",	    "lustre",	"afs",
    "beegfs", "gpfs",	   "9p",	 "panfs",	   "pvfs2",	    "orangefs", "coda",
    "wekafs", "fuse.ceph", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph-fuse"};

static bool is_networked(const struct mntent *mount)
{
	if (sy_is_cvmfs_mount(mount->mnt_type, mount->mnt_fsname))
		return true;
	/* Of other plain FUSE mounts only the source shows a network: HOST:PATH, or
	 * pvfs2fuse#tcp://HOST:PORT/NAME. */
	if (!strcmp(mount->mnt_type, "fuse"))
		return strchr(mount->mnt_fsname, ':');
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(mount->mnt_type, types[i]))
			return true;
	return false;
}

/* As many as there is room for. */
static int list_mounts(FILE *file, char *text)
{
	char line[4096];
	struct mntent mount;
	size_t used = 0;
	int count = 0;

	while (getmntent_r(file, &mount, line, sizeof(line))) {
		size_t length = strlen(mount.mnt_dir) + strlen(mount.mnt_type) + 5;

		if (!is_networked(&mount))
			continue;
		count++;
		if (used + length >= SHOWN_SIZE - 8)
			continue;
		used += (size_t)snprintf(text + used, SHOWN_SIZE - used, "%s%s (%s)",
					 used ? ", " : "", mount.mnt_dir, mount.mnt_type);
	}
	return count;
}

void sy_netem_note_mounts(json_t *document, const char *mounts)
{
	char text[SHOWN_SIZE] = "";
	FILE *file = setmntent(mounts, "re");

	if (!file) {
		sy_json_note(document,
			     "only the job's own sockets were shaped; whether file systems of the "
			     "network are mounted, which do not use them, is not known: %s: %s",
			     mounts, strerror(errno));
		return;
	}
	if (list_mounts(file, text) > 0)
		sy_json_note(document,
			     "only the job's own sockets were shaped: file systems that the kernel "
			     "or a daemon reads over the network were not: %s; ask for the node "
			     "exclusively",
			     *text ? text : "names too long to list");
	(void)endmntent(file);
}
