#include "counters/job_connections.h"

#include "base/clock.h"
#include "base/file.h"
#include "counters/parse.h"
#include "counters/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>

#define READ_US	   1000000  /* from one reading to the next */
#define LIST_US	   10000000 /* a listing at least that often: counts may change and be the same */
#define SLACK_US   1000	    /* a sample that comes a little early is in time */
#define BORING_US  8000000  /* longest wait while listings show nothing new of ours */
#define FREE_LISTS 8	    /* the first ones: cold, and a job connects at its start */
#define SHARE	   4000	    /* a listing may take 1/4000 of a CPU: 25 µs of each 0.1 s */

/* A connection is looked for twice: its process may be so new that it was not known yet. */
#define TRIES	  2
#define MAX_DEPTH 8   /* of groups within the job's */
#define BATCH	  256 /* connections looked for together */

void sy_tcp_init(struct sy_tcp *tcp, uid_t uid, struct sy_tcp_counts *counts)
{
	tcp->uid = uid;
	tcp->counts = counts;
	tcp->group_fd = -1;
	tcp->must_list = true;
	tcp->listed_at_us = tcp->inuse = tcp->allocated = -1;
	tcp->diag_fd = sy_diag_open(NULL);
	if (tcp->diag_fd < 0)
		tcp->status.failure = errno;
	tcp->sockstat_fd = open("/proc/net/sockstat", O_RDONLY | O_CLOEXEC);
}

void sy_tcp_recheck(struct sy_tcp *tcp)
{
	tcp->must_list = true;
	tcp->group_ids = tcp->next_group_id = 0;
	for (int i = 0; i < tcp->count; i++) {
		if (tcp->connection[i].whose != SY_WHOSE_OTHERS)
			continue;
		tcp->connection[i].whose = SY_WHOSE_UNKNOWN;
		tcp->connection[i].tries = 0;
	}
}

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
	struct sy_connection *candidate[BATCH];
	int count;
};

static void mark_ours(struct search *search, uint32_t inode)
{
	for (int i = 0; i < search->count; i++) {
		if (search->candidate[i]->socket.inode != inode)
			continue;
		search->candidate[i]->whose = SY_WHOSE_OURS;
		search->candidate[i] = search->candidate[--search->count];
		return;
	}
}

/* The link text of a socket's descriptor is "socket:[N]": proc(5), /proc/PID/fd. */
static void check_descriptor(struct search *search, int dir, const char *name)
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
		mark_ours(search, (uint32_t)inode);
}

static void search_process(struct search *search, int proc, pid_t pid)
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
				check_descriptor(search, dir, entry->name);
		}
	}
}

static void search_processes(struct search *search, struct sy_processes *processes)
{
	processes->find_sockets |= processes->roots_only;
	if (processes->find_sockets) {
		sy_processes_keep_all(processes);
		sy_processes_refresh(processes, false);
	}
	for (int i = 0; i < processes->count && search->count; i++) {
		const struct sy_process *process = &processes->process[i];

		if (!process->gone && !process->root)
			search_process(search, processes->proc, process->pid);
	}
	for (int i = 0; i < search->count; i++)
		if (++search->candidate[i]->tries >= TRIES)
			search->candidate[i]->whose = SY_WHOSE_OTHERS;
}

/* Find out whose the unknown connections are. */
static void find_owners(struct sy_tcp *tcp, struct sy_processes *processes)
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
			search.candidate[search.count++] = connection;
	}
	if (search.count)
		search_processes(&search, processes);
}

/* --- readings --- */

static void update_connection(struct sy_connection *connection, const struct sy_tcp_socket *now)
{
	bool acked = now->acked_bytes != connection->socket.acked_bytes;
	bool received = now->received_bytes != connection->socket.received_bytes;

	connection->listed = true;
	connection->fresh |= acked && connection->whose == SY_WHOSE_OURS;
	connection->moved |= (acked || received) && connection->whose == SY_WHOSE_OURS;
	connection->socket = *now;
}

/* The kernel lists in an order that stays: mostly it is the one behind the last. */
static struct sy_connection *find(struct sy_tcp *tcp, const struct sy_tcp_socket *socket)
{
	for (int i = 0; i < tcp->count; i++) {
		int at = (tcp->next + i) % tcp->count;

		if (memcmp(&tcp->connection[at].socket.id, &socket->id, sizeof(socket->id)) != 0)
			continue;
		tcp->next = at + 1;
		return &tcp->connection[at];
	}
	return NULL;
}

/* A connection that is older than the sampler has retransmissions that are not the job's. */
static void note_listed(void *context, int index, const struct sy_tcp_socket *socket)
{
	struct sy_tcp *tcp = context;
	struct sy_connection *known;

	(void)index;
	if (socket->same_node || (tcp->uid != SY_ANY_USER && socket->uid != tcp->uid))
		return;
	known = find(tcp, socket);
	if (known) {
		update_connection(known, socket);
		return;
	}
	if (tcp->count == SY_MAX_CONNECTIONS) {
		tcp->status.overflowed = true;
		return;
	}
	tcp->connection[tcp->count++] = (struct sy_connection){
	    .socket = *socket,
	    .counted = tcp->listed_at_us < 0 ? socket->retransmitted : 0,
	    .fresh = true,
	    .moved = true,
	    .listed = true,
	};
}

/* --- is a listing needed? --- */

static int64_t parse_number_after(const char *text, const char *word)
{
	const char *at = strstr(text, word);
	int64_t value;

	return at && sy_parse_number(at + strlen(word), &value) == 0 ? value : -1;
}

/* "inuse" are IPv4 sockets of this namespace, "allocated" those of both families and of all
 * namespaces: proc(5), /proc/net/sockstat. */
static bool has_count_changed(struct sy_tcp *tcp)
{
	char text[512];
	int64_t inuse, allocated;

	if (sy_read_counters(tcp->sockstat_fd, text, sizeof(text)) <= 0)
		return true; /* not known: as if it had */
	inuse = parse_number_after(text, "TCP: inuse ");
	allocated = parse_number_after(text, " alloc ");
	if (inuse == tcp->inuse && allocated == tcp->allocated)
		return false;
	tcp->inuse = inuse;
	tcp->allocated = allocated;
	return true;
}

static bool must_list(struct sy_tcp *tcp, int64_t now_us, bool now)
{
	int64_t age = now_us - tcp->listed_at_us;
	bool changed = has_count_changed(tcp);

	tcp->must_list |= changed || now || tcp->listed_at_us < 0 || age >= LIST_US - SLACK_US;
	return tcp->must_list && (now || tcp->listed_at_us < 0 || age >= tcp->wait_us - SLACK_US);
}

/* --- reading --- */

/* What is gone leaves its place to the last one; its figures have been added up. */
static void sweep(struct sy_tcp *tcp)
{
	for (int i = 0; i < tcp->count;) {
		if (tcp->connection[i].listed)
			i++;
		else
			tcp->connection[i] = tcp->connection[--tcp->count];
	}
}

/* Others may open sockets all the time: as long as none is ours, wait longer and longer. */
static void set_wait(struct sy_tcp *tcp, int64_t cost_us)
{
	int64_t wait_us = 2 * tcp->wait_us < BORING_US ? 2 * tcp->wait_us : BORING_US;
	bool looks_again = false;

	if (tcp->listings < FREE_LISTS) {
		tcp->listings++;
		cost_us = 0;
	}
	for (int i = 0; i < tcp->count; i++) {
		const struct sy_connection *connection = &tcp->connection[i];

		looks_again |= connection->whose == SY_WHOSE_UNKNOWN;
		if (connection->whose == SY_WHOSE_OURS && !connection->known)
			wait_us = READ_US;
	}
	tcp->must_list = looks_again;
	tcp->wait_us = wait_us > cost_us * SHARE && !looks_again ? wait_us : cost_us * SHARE;
	if (tcp->wait_us < READ_US)
		tcp->wait_us = READ_US;
}

static int list_sockets(struct sy_tcp *tcp, struct sy_processes *processes, int64_t now_us)
{
	int64_t before = sy_now_us(CLOCK_THREAD_CPUTIME_ID);
	int result;

	for (int i = 0; i < tcp->count; i++)
		tcp->connection[i].listed = false;
	result = sy_diag_list(tcp->diag_fd, note_listed, tcp);
	if (result < 0)
		return result;
	sweep(tcp);
	find_owners(tcp, processes);
	tcp->listed_at_us = now_us;
	set_wait(tcp, sy_now_us(CLOCK_THREAD_CPUTIME_ID) - before);
	return 0;
}

struct query {
	struct sy_connection *connection[SY_DIAG_QUERY_MAX];
	int count;
};

static void note_queried(void *context, int index, const struct sy_tcp_socket *socket)
{
	struct query *query = context;

	if (index >= 0 && index < query->count)
		update_connection(query->connection[index], socket);
}

static int query_batch(struct sy_tcp *tcp, struct query *query)
{
	const struct sy_tcp_socket *sockets[SY_DIAG_QUERY_MAX];
	int result;

	for (int i = 0; i < query->count; i++) {
		query->connection[i]->listed = false;
		sockets[i] = &query->connection[i]->socket;
	}
	result = sy_diag_query(tcp->diag_fd, sockets, query->count, note_queried, query);
	for (int i = 0; i < query->count; i++) {
		if (query->connection[i]->listed)
			continue;
		tcp->must_list = true; /* another one may have taken its place */
		tcp->wait_us = READ_US;
	}
	query->count = 0;
	return result;
}

static int query_known(struct sy_tcp *tcp)
{
	struct query query = {.count = 0};
	int64_t before = tcp->ours > SY_DIAG_QUERY_MAX ? sy_now_us(CLOCK_THREAD_CPUTIME_ID) : 0;
	int64_t wait_us;
	int result = 0;

	for (int i = 0; i < tcp->count && result == 0; i++) {
		if (tcp->connection[i].whose == SY_WHOSE_OURS)
			query.connection[query.count++] = &tcp->connection[i];
		if (query.count == SY_DIAG_QUERY_MAX)
			result = query_batch(tcp, &query);
	}
	if (query.count && result == 0)
		result = query_batch(tcp, &query);
	wait_us = before ? (sy_now_us(CLOCK_THREAD_CPUTIME_ID) - before) * SHARE : 0;
	if (wait_us > READ_US)
		tcp->next_us += wait_us - READ_US;
	return result;
}

/* A closing connection reports no values (0): its last values stay. */
static uint32_t resend(struct sy_connection *connection)
{
	uint32_t reported = connection->socket.retransmitted, before = connection->counted;

	if (reported <= before)
		return 0;
	connection->counted = reported;
	return reported - before;
}

/* One that is closing has no windows. */
static void count_windows(struct sy_tcp *tcp, struct sy_connection *connection)
{
	const struct sy_tcp_socket *socket = &connection->socket;

	if (!connection->moved || !socket->snd_cwnd)
		return;
	connection->moved = false;
	sy_rtt_add(&tcp->status.snd_cwnd, &tcp->counts->snd_cwnd, socket->snd_cwnd);
	sy_rtt_add(&tcp->status.rcv_space_bytes, &tcp->counts->rcv_space_bytes,
		   socket->rcv_space_bytes);
}

/* A connection of ours: its segments, and its round-trip time when there is a new one. */
static void count(struct sy_tcp *tcp, struct sy_connection *connection, struct sy_rtt *reading)
{
	const struct sy_tcp_socket *socket = &connection->socket;
	struct sy_tcp_status *status = &tcp->status;

	status->retransmitted += resend(connection);
	count_windows(tcp, connection);
	if (!connection->fresh || !socket->rtt_us)
		return;
	connection->fresh = false;
	sy_rtt_add(&status->rtt, &tcp->counts->rtt, socket->rtt_us);
	reading->readings++;
	reading->mean_us += (double)socket->rtt_us;
	if (socket->min_rtt_us && (!status->floor_us || socket->min_rtt_us < status->floor_us))
		status->floor_us = socket->min_rtt_us;
}

static int64_t count_all(struct sy_tcp *tcp)
{
	struct sy_rtt reading = {0};

	tcp->ours = 0;
	for (int i = 0; i < tcp->count; i++) {
		struct sy_connection *connection = &tcp->connection[i];

		if (connection->whose != SY_WHOSE_OURS)
			continue;
		tcp->ours++;
		tcp->status.connections += !connection->known;
		connection->known = true;
		count(tcp, connection, &reading);
	}
	return reading.readings ? (int64_t)(reading.mean_us / (double)reading.readings + 0.5)
				: SY_UNKNOWN;
}

int64_t sy_tcp_read(struct sy_tcp *tcp, struct sy_processes *processes, int64_t now_us, bool now)
{
	int result;

	if (tcp->diag_fd < 0 || !processes->named || (!now && now_us < tcp->next_us - SLACK_US))
		return SY_UNKNOWN;
	tcp->next_us = now_us + READ_US;
	result =
	    must_list(tcp, now_us, now) ? list_sockets(tcp, processes, now_us) : query_known(tcp);
	if (result < 0) {
		tcp->status.failure = -result;
		(void)close(tcp->diag_fd);
		tcp->diag_fd = -1;
		return SY_UNKNOWN;
	}
	tcp->status.has_answered = true;
	return count_all(tcp);
}
