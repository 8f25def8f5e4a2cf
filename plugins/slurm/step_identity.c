#include "step_identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <slurm/slurm.h>

#include "base/file.h"

#define HIGHEST_FD 64 /* slurmstepd opens its socket among its first descriptors */

/* slurmstepd listens on SPOOL/NODE_JOBID.STEPID. Where several slurmd run on one host, this path
 * is the only source of the node's name for an extern step, whose environment is empty. */
static bool find_own_socket(char *path, size_t size)
{
	for (int fd = 3; fd < HIGHEST_FD; fd++) {
		struct sockaddr_un address = {0};
		socklen_t length = sizeof(address);

		if (getsockname(fd, (struct sockaddr *)&address, &length) != 0)
			continue;
		if (address.sun_family != AF_UNIX || address.sun_path[0] != '/')
			continue;
		(void)snprintf(path, size, "%.*s", (int)sizeof(address.sun_path), address.sun_path);
		return true;
	}
	return false;
}

/* True when another step of this job has or had its socket in the same folder. */
static bool has_other_step(const char *prefix, uint32_t step_id)
{
	char path[300];

	(void)snprintf(path, sizeof(path), "%s.%u", prefix, step_id);
	return access(path, F_OK) == 0;
}

/* The node and other steps, from the path of slurmstepd's own socket; false: another form of
 * path. */
static bool read_node_from_socket(struct sy_step *step)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1], mark[32];
	char *name, *end;

	if (!find_own_socket(path, sizeof(path)))
		return false;
	(void)snprintf(mark, sizeof(mark), "_%u.", step->job_id);
	name = strrchr(path, '/') + 1;
	end = strstr(name, mark);
	if (!end || end == name)
		return false;
	(void)snprintf(step->node, sizeof(step->node), "%.*s", (int)(end - name), name);
	*strrchr(end, '.') = '\0';
	step->extern_runs = has_other_step(path, SLURM_EXTERN_CONT);
	step->batch_runs = has_other_step(path, SLURM_BATCH_SCRIPT);
	return true;
}

/* The job's environment, else the host's name. */
static void read_node_from_environment(spank_t spank, struct sy_step *step)
{
	if (sy_step_variable(spank, "SLURMD_NODENAME", step->node, sizeof(step->node)))
		return;
	if (gethostname(step->node, sizeof(step->node) - 1) != 0)
		(void)snprintf(step->node, sizeof(step->node), "unknown");
	step->node[strcspn(step->node, ".")] = '\0';
}

pid_t sy_step_extern_pid(const struct sy_step *step)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char own[sizeof(address.sun_path) + 1];
	struct ucred owner = {0};
	socklen_t length = sizeof(owner);
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (step->extern_step)
		return getpid();
	if (fd < 0 || !find_own_socket(own, sizeof(own)) || !strrchr(own, '.'))
		return 0;
	*strrchr(own, '.') = '\0';
	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%.*s.%u",
			     (int)sizeof(address.sun_path), own,
			     SLURM_EXTERN_CONT) >= sizeof(address.sun_path) ||
	    connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &length) != 0 || owner.uid != geteuid())
		return 0;
	return owner.pid;
}

int sy_step_identify(spank_t spank, struct sy_step *step)
{
	*step = (struct sy_step){0};
	if (spank_get_item(spank, S_JOB_ID, &step->job_id) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_STEPID, &step->step_id) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_UID, &step->uid) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_GID, &step->gid) != ESPANK_SUCCESS)
		return -1;
	(void)snprintf(step->id, sizeof(step->id), "%u", step->job_id);
	if (spank_get_item(spank, S_JOB_NODEID, &step->node_index) != ESPANK_SUCCESS)
		step->node_index = UINT32_MAX;
	step->extern_step = step->step_id == SLURM_EXTERN_CONT;
	step->batch_step = step->step_id == SLURM_BATCH_SCRIPT;
	if (!read_node_from_socket(step))
		read_node_from_environment(spank, step);
	step->extern_runs |= step->extern_step;
	step->batch_runs |= step->batch_step;
	return 0;
}

bool sy_step_variable(spank_t spank, const char *name, char *value, size_t size)
{
	return spank_getenv(spank, name, value, (int)size) == ESPANK_SUCCESS && value[0] != '\0';
}

/* Of a step over several components of a heterogeneous job, the variables of the job have all of
 * them; those of this component end in "_HET_GROUP_1" or, of a step, in "_PACK_GROUP_1". */
static bool find_component(spank_t spank, const struct sy_step *step, char *end, size_t size)
{
	static const char *const words[] = {"HET", "PACK"};
	char name[64], id[16], components[16];
	long count = sy_step_variable(spank, "SLURM_HET_SIZE", components, sizeof(components))
			 ? strtol(components, NULL, 10)
			 : 0;

	for (long i = 0; i < 2 * count; i++) {
		(void)snprintf(end, size, "_%s_GROUP_%ld", words[i % 2], i / 2);
		(void)snprintf(name, sizeof(name), "SLURM_JOB_ID%s", end);
		if (sy_step_variable(spank, name, id, sizeof(id)) && strcmp(id, step->id) == 0)
			return true;
	}
	return false;
}

bool sy_step_list_nodes(spank_t spank, const struct sy_step *step, char *list, size_t size)
{
	char end[32] = "", name[64];

	(void)snprintf(name, sizeof(name), "SLURM_JOB_NODELIST%s",
		       find_component(spank, step, end, sizeof(end)) ? end : "");
	return sy_step_variable(spank, name, list, size);
}

long sy_step_count_nodes(spank_t spank, const struct sy_step *step)
{
	char nodes[32], list[256];

	if (find_component(spank, step, nodes, sizeof(nodes)))
		return sy_step_list_nodes(spank, step, list, sizeof(list)) && !strpbrk(list, "[,")
			   ? 1
			   : -1;
	return sy_step_variable(spank, "SLURM_JOB_NUM_NODES", nodes, sizeof(nodes))
		   ? strtol(nodes, NULL, 10)
		   : -1;
}
