#include "exclusive.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aside.h"
#include "base/file.h"
#include "base/number.h"

#define ENDING	   ".cores"
#define ANSWER_MS  1000 /* some ms; else the job's start would wait for slurmctld */
#define QUESTION_S 60
#define NAME_SIZE  300

/* How many numbers a list like "0-3,8" names. */
static long list_length(const char *at)
{
	long count = 0;

	while (isdigit((unsigned char)*at)) {
		char *end;
		long first = strtol(at, &end, 10);
		long last = *end == '-' ? strtol(end + 1, &end, 10) : first;

		count += last - first + 1;
		at = end + (*end == ',');
	}
	return count;
}

/* slurm.conf may count a core as one CPU, or each of its threads. */
long sy_allocatable_cores(const node_info_t *node)
{
	long cores = (long)node->sockets * node->cores;

	if (cores == 0 || node->cpus == 0 || node->cpus_efctv > node->cpus)
		return 0;
	return cores * node->cpus_efctv / node->cpus;
}

struct question {
	const char *run_dir, *node;
	long cores;
};

static void file_name(char name[NAME_SIZE], const struct question *question, const char *ending)
{
	(void)snprintf(name, NAME_SIZE, "%.200s" ENDING "%s", question->node, ending);
}

/* Renamed into place: two jobs may begin at once. */
static void write_answer(const struct question *question)
{
	cleanup_close int folder = open(question->run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_SIZE], part[NAME_SIZE], number[32], ending[32];
	int fd;

	(void)snprintf(ending, sizeof(ending), ".%d", (int)getpid());
	file_name(name, question, "");
	file_name(part, question, ending);
	fd = openat(folder, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	(void)snprintf(number, sizeof(number), "%ld\n", question->cores);
	if (sy_write_all(fd, number, strlen(number)) < 0 ||
	    renameat(folder, part, folder, name) < 0)
		(void)unlinkat(folder, part, 0);
	(void)close(fd);
}

/* In a process of its own: where slurmctld is away the job's start does not wait for it. */
static void ask_slurmctld(void *context, int tell)
{
	struct question *question = context;
	node_info_msg_t *found = NULL;

	if (slurm_load_node_single(&found, (char *)question->node, 0) == SLURM_SUCCESS && found &&
	    found->record_count > 0)
		question->cores = sy_allocatable_cores(&found->node_array[0]);
	if (question->cores > 0)
		write_answer(question);
	(void)sy_write_all(tell, (const char *)&question->cores, sizeof(question->cores));
}

static void wait_for_answer(struct question *question)
{
	const struct sy_aside_work work = {
	    .work = ask_slurmctld, .context = question, .keep = -1, .limit_s = QUESTION_S};
	struct sy_aside aside;
	struct pollfd ready = {.events = POLLIN};
	long cores;

	sy_aside_start(&aside, &work, ANSWER_MS);
	if (aside.fd < 0)
		return;
	ready.fd = aside.fd;
	if (poll(&ready, 1, ANSWER_MS) > 0 &&
	    read(aside.fd, &cores, sizeof(cores)) == (ssize_t)sizeof(cores))
		question->cores = cores;
	(void)close(aside.fd);
}

static void read_answer(struct question *question)
{
	cleanup_close int folder = open(question->run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_SIZE], text[32];
	int64_t cores;

	file_name(name, question, "");
	if (folder >= 0 && sy_read_at(folder, name, text, sizeof(text)) > 0 &&
	    sy_number(text, &cores))
		question->cores = (long)cores;
}

enum sy_exclusive sy_exclusive_of(spank_t spank, const char *run_dir, const char *node)
{
	struct question question = {.run_dir = run_dir, .node = node};
	char host[256] = "";
	char *cores = NULL;

	(void)gethostname(host, sizeof(host) - 1);
	host[strcspn(host, ".")] = '\0';
	if (strcmp(host, node) != 0)
		return SY_NOT_SAID;
	if (spank_get_item(spank, S_JOB_ALLOC_CORES, &cores) != ESPANK_SUCCESS || !cores)
		return SY_NOT_SAID;
	read_answer(&question);
	if (question.cores == 0)
		wait_for_answer(&question);
	if (question.cores == 0)
		return SY_NOT_SAID;
	return list_length(cores) >= question.cores ? SY_ALONE : SY_SHARED;
}

void sy_exclusive_forget(const char *run_dir)
{
	DIR *dir = opendir(run_dir);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		const char *ending = strstr(entry->d_name, ENDING);

		if (ending && strspn(ending + strlen(ENDING), ".0123456789") ==
				  strlen(ending + strlen(ENDING)))
			(void)unlinkat(dirfd(dir), entry->d_name, 0);
	}
	if (dir)
		(void)closedir(dir);
}
