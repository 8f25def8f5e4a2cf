#include "slurmctld_query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include "slurm_releases.h"

bool sy_scheduler_addresses(struct sy_addresses *addresses)
{
	slurm_conf_t *conf = NULL;

	addresses->count = 0;
	if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS || !conf)
		return false;
	for (uint32_t i = 0; i < conf->control_cnt; i++)
		sy_addresses_add_host(addresses, conf->control_addr[i]);
	sy_addresses_add_host(addresses, conf->accounting_storage_host);
	sy_addresses_add_host(addresses, conf->accounting_storage_backup_host);
	sy_free_conf(conf);
	return true;
}

bool sy_node_is_host(const char *node)
{
	char host[256] = "";

	(void)gethostname(host, sizeof(host) - 1);
	host[strcspn(host, ".")] = '\0';
	return strcmp(host, node) == 0;
}

/* The first address of a node; it has none when its name is not known. */
static void add_peer(const char *name, struct sy_addresses *peers)
{
	node_info_msg_t *found = NULL;

	if (slurm_load_node_single(&found, (char *)name, 0) == SLURM_SUCCESS && found &&
	    found->record_count > 0 && found->node_array[0].node_addr) {
		struct sy_addresses addresses = {.count = 0};

		sy_addresses_add_host(&addresses, found->node_array[0].node_addr);
		if (addresses.count > 0)
			(void)snprintf(peers->text[peers->count++], SY_ADDRESS_SIZE, "%s",
				       addresses.text[0]);
	}
	slurm_free_node_info_msg(found);
}

/* The addresses of the first of `nodes` that are not ours. */
static void find_peers(const char *nodes, const char *own, int most, struct sy_addresses *peers)
{
	__auto_type list = slurm_hostlist_create(nodes);
	char *name;

	if (!list)
		return;
	for (int tried = 0; tried < most && (name = slurm_hostlist_shift(list)); free(name)) {
		if (strcmp(name, own) == 0)
			continue;
		add_peer(name, peers);
		tried++;
	}
	slurm_hostlist_destroy(list);
}

/* From the credential that slurmctld signed, not from what the job can change. */
static void find_groups(spank_t spank, gid_t own, struct sy_job_facts *facts)
{
	gid_t *list = NULL;
	int count = 0;

	facts->groups[facts->group_count++] = own;
	if (spank_get_item(spank, S_JOB_SUPPLEMENTARY_GIDS, &list, &count) != ESPANK_SUCCESS)
		return;
	for (int i = 0; i < count && facts->group_count < SY_GROUPS_MAX; i++) {
		if (list[i] != own)
			facts->groups[facts->group_count++] = list[i];
	}
}

int sy_job_facts_get(spank_t spank, const struct sy_step *step, int peers,
		     struct sy_job_facts *facts, struct sy_error *err)
{
	job_info_msg_t *found = NULL;
	const job_info_t *job;

	*facts = (struct sy_job_facts){.group_count = 0};
	find_groups(spank, step->gid, facts);
	if (!sy_scheduler_addresses(&facts->protect) ||
	    sy_load_job(&found, step->job_id, SHOW_LOCAL) != SLURM_SUCCESS || !found ||
	    found->record_count == 0) {
		slurm_free_job_info_msg(found);
		return sy_fail(err, "slurmctld does not give the job's partition and nodes: %s",
			       slurm_strerror(errno));
	}
	job = &found->job_array[0];
	(void)snprintf(facts->partition, sizeof(facts->partition), "%s",
		       job->partition ? job->partition : "");
	facts->exclusive = job->shared == JOB_SHARED_NONE;
	facts->has_whole_host = facts->exclusive && sy_node_is_host(step->node);
	sy_addresses_add_host(&facts->protect, job->alloc_node);
	if (job->nodes)
		find_peers(job->nodes, step->node, peers, &facts->peers);
	slurm_free_job_info_msg(found);
	return 0;
}
