#include "netem/job_conditions.h"

#include "netem/kernel/delay_tables.h"

#include <stdio.h>
#include <stdlib.h>

/* A condition that does not change: one step. */
static int add_condition(struct sy_conditions *conditions, const char *to_site,
			 const struct sy_netem *spec, struct sy_error *err)
{
	struct sy_condition *condition = &conditions->item[conditions->count];

	condition->requested = *spec;
	condition->steps = (struct sy_steps){.step = calloc(1, sizeof(struct sy_step))};
	if (!condition->steps.step)
		return sy_fail(err, "out of memory");
	condition->steps.count = 1;
	condition->steps.step[0].spec = *spec;
	condition->spec = &condition->steps.step[0].spec;
	(void)snprintf(condition->to_site, sizeof(condition->to_site), "%s", to_site);
	conditions->count++;
	return 0;
}

static int add_trace(struct sy_conditions *conditions, struct sy_error *err)
{
	struct sy_condition *condition = &conditions->item[0];
	const struct sy_netem_request *request = conditions->request;

	condition->requested = *request->spec;
	if (sy_trace_read(SY_TABLES, request->spec, &condition->steps, err) < 0)
		return -1;
	condition->spec = &condition->steps.step[0].spec;
	conditions->count = 1;
	return sy_trace_check_policy(&condition->steps, request->policy, err);
}

static int add_links(struct sy_conditions *conditions, struct sy_error *err)
{
	const struct sy_netem_request *request = conditions->request;
	struct sy_own_addresses own;
	struct sy_sites sites;

	if (sy_own_addresses_read(&own, err) < 0 ||
	    sy_sites_read(SY_TABLES, request->spec->sites, &own, &sites, err) < 0 ||
	    sy_sites_check_policy(&sites, request->policy, err) < 0)
		return -1;
	(void)snprintf(conditions->own_site, sizeof(conditions->own_site), "%s", sites.own_site);
	(void)snprintf(conditions->sha256, sizeof(conditions->sha256), "%s", sites.sha256);
	for (int i = 0; i < sites.count; i++)
		if (add_condition(conditions, sites.link[i].to, &sites.link[i].spec, err) < 0)
			return -1;
	return 0;
}

int sy_conditions_expand(struct sy_conditions *conditions, struct sy_error *err)
{
	const struct sy_netem *spec = conditions->request->spec;

	if (spec->has_sites)
		return add_links(conditions, err);
	return spec->has_trace ? add_trace(conditions, err)
			       : add_condition(conditions, "", spec, err);
}

void sy_conditions_free(struct sy_conditions *conditions)
{
	for (int i = 0; i < conditions->count; i++)
		sy_steps_free(&conditions->item[i].steps);
	conditions->count = 0;
	json_decref(conditions->document);
	conditions->document = NULL;
}
