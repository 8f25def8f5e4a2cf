#include "counters/tcp_owner.h"

#include "base/file.h"
#include "counters/parse.h"
#include "counters/processes.h"
#include "counters/processes_rest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

/* A connection is looked for twice: its process may be so new that it was not known yet. */
#define TRIES	  2
#define MAX_DEPTH 8   /* of groups within the job's */
#define BATCH	  256 /* connections looked for together */

/* --- by cgroup --- */

void sy_tcp_cgroup(struct sy_tcp *tcp, int root, const char *path)
{
	static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]) && tcp->group_fd < 0; i++) {
		char full[1024];
		struct statfs info;
		int fd;

		(void)snprintf(full, sizeof(full), "%s%s", mounts[i], path);
		fd = sy_open_at(root, full);
		if (fd < 0)
			continue;
		if (fstatfs(fd, &info) == 0 && info.f_type == CGROUP2_SUPER_MAGIC)
			tcp->group_fd = fd;
		else
			(void)close(fd);
	}
}

/* A group's id is its inode number (cgroup-v2.rst; kernfs). */
static bool holds_group(int dir, uint64_t id, int depth)
{
	char buffer[2048] __attribute__((aligned(8)));
	long got;

	(void)lseek(dir, 0, SEEK_SET);
	while ((got = syscall(SYS_getdents64, dir, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < got;) {
			const struct sy_entry64 *entry = (const void *)(buffer + at);
			cleanup_close int inner = -1;

			at += entry->length;
			if (entry->type != 4 || entry->name[0] == '.') /* DT_DIR */
				continue;
			if (entry->inode == id)
				return true;
			if (depth < MAX_DEPTH)
				inner = openat(dir, entry->name,
					       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (inner >= 0 && holds_group(inner, id, depth + 1))
				return true;
		}
	}
	return false;
}

/* Ids are never given twice: what was found out once holds. */
static bool is_our_group(struct sy_tcp *tcp, uint64_t id)
{
	struct sy_group_id *slot;
	struct stat info;

	for (int i = 0; i < tcp->group_ids; i++)
		if (tcp->group_id[i].id == id)
			return tcp->group_id[i].ours;
	slot = &tcp->group_id[tcp->next_group_id];
	tcp->next_group_id = (tcp->next_group_id + 1) % SY_MAX_GROUP_IDS;
	tcp->group_ids += tcp->group_ids < SY_MAX_GROUP_IDS;
	slot->id = id;
	slot->ours = (fstat(tcp->group_fd, &info) == 0 && info.st_ino == id) ||
		     holds_group(tcp->group_fd, id, 0);
	return slot->ours;
}

/* --- by the processes' open files --- */

struct search {
	struct sy_connection *wanted[BATCH];
	int count;
};

static void found(struct search *search, uint32_t inode)
{
	for (int i = 0; i < search->count; i++) {
		if (search->wanted[i]->socket.inode != inode)
			continue;
		search->wanted[i]->whose = SY_WHOSE_OURS;
		search->wanted[i] = search->wanted[--search->count];
		return;
	}
}

/* The text behind a descriptor is "socket:[N]": proc(5), /proc/PID/fd. */
static void look_at(struct search *search, int dir, const char *name)
{
	static const char prefix[] = "socket:[";
	char text[64];
	ssize_t length = readlinkat(dir, name, text, sizeof(text) - 1);
	int64_t inode;

	if (length < (ssize_t)sizeof(prefix) || strncmp(text, prefix, sizeof(prefix) - 1) != 0 ||
	    text[length - 1] != ']')
		return;
	text[length - 1] = '\0';
	if (sy_parse_number(text + sizeof(prefix) - 1, &inode) == 0)
		found(search, (uint32_t)inode);
}

static void look_into(struct search *search, int proc, pid_t pid)
{
	char path[32], buffer[4096] __attribute__((aligned(8)));
	cleanup_close int dir = -1;
	long got;

	(void)snprintf(path, sizeof(path), "%d/fd", pid);
	dir = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (dir >= 0 && search->count &&
	       (got = syscall(SYS_getdents64, dir, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < got && search->count;) {
			const struct sy_entry64 *entry = (const void *)(buffer + at);

			at += entry->length;
			if (entry->name[0] != '.')
				look_at(search, dir, entry->name);
		}
	}
}

static void look_through_processes(struct search *search, struct sy_processes *processes)
{
	processes->wanted |= processes->resting;
	if (processes->wanted) {
		sy_processes_wake(processes);
		sy_processes_refresh(processes, false);
	}
	for (int i = 0; i < processes->count && search->count; i++) {
		const struct sy_process *process = &processes->process[i];

		if (!process->gone && !process->root)
			look_into(search, processes->proc, process->pid);
	}
	for (int i = 0; i < search->count; i++)
		if (++search->wanted[i]->tries >= TRIES)
			search->wanted[i]->whose = SY_WHOSE_OTHERS;
}

void sy_tcp_find_owners(struct sy_tcp *tcp, struct sy_processes *processes)
{
	struct search search = {.count = 0};

	for (int i = 0; i < tcp->count && search.count < BATCH; i++) {
		struct sy_connection *connection = &tcp->connection[i];

		if (connection->whose != SY_WHOSE_UNKNOWN)
			continue;
		if (tcp->group_fd >= 0)
			connection->whose = is_our_group(tcp, connection->socket.cgroup_id)
						? SY_WHOSE_OURS
						: SY_WHOSE_OTHERS;
		else if (connection->socket.inode) /* 0: not accepted yet */
			search.wanted[search.count++] = connection;
	}
	if (search.count)
		look_through_processes(&search, processes);
}
