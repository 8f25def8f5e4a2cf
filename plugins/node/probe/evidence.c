#include "probe/evidence.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void sy_add_evidence(struct sy_layer *layer, int weight, const char *name, const char *source,
		     const char *value)
{
	struct sy_evidence *evidence;

	if (layer->count == SY_EVIDENCE_MAX)
		return;
	evidence = &layer->evidence[layer->count++];
	evidence->weight = weight;
	evidence->name = name;
	(void)snprintf(evidence->source, sizeof(evidence->source), "%s", source);
	(void)snprintf(evidence->value, sizeof(evidence->value), "%s", value);
}

static bool is_kind_of(const struct sy_refinement *refinements, const char *special,
		       const char *general)
{
	for (; refinements->general; refinements++)
		if (!strcmp(refinements->special, special) &&
		    !strcmp(refinements->general, general))
			return true;
	return false;
}

static int sum_own_weight(const struct sy_layer *layer, const char *name)
{
	int weight = 0;

	for (size_t i = 0; i < layer->count; i++)
		if (!strcmp(layer->evidence[i].name, name))
			weight += layer->evidence[i].weight;
	return weight;
}

/* The weight of all evidence for a name: the name itself, its general kind, and the unspecific
 * one. */
static int sum_support(const struct sy_layer *layer, const char *name, const char *other,
		       const struct sy_refinement *refinements)
{
	int weight = 0;

	for (size_t i = 0; i < layer->count; i++) {
		const char *candidate = layer->evidence[i].name;

		if (!strcmp(candidate, name) || !strcmp(candidate, other) ||
		    is_kind_of(refinements, name, candidate))
			weight += layer->evidence[i].weight;
	}
	return weight;
}

/* The name with the most support; among a general and a special one, the special. */
static const char *best_name(const struct sy_layer *layer, const char *other,
			     const struct sy_refinement *refinements)
{
	const char *best = NULL;

	for (size_t i = 0; i < layer->count; i++) {
		const char *candidate = layer->evidence[i].name;
		int more;

		if (!strcmp(candidate, "none") || !strcmp(candidate, other))
			continue;
		more = best ? sum_support(layer, candidate, other, refinements) -
				  sum_support(layer, best, other, refinements)
			    : 1;
		if (more > 0 || (more == 0 && is_kind_of(refinements, candidate, best)))
			best = candidate;
	}
	return best;
}

/* The weight of evidence for other names that this name does not imply. */
static int sum_contradiction(const struct sy_layer *layer, const char *name, const char *other,
			     const struct sy_refinement *refinements)
{
	int all = 0;

	for (size_t i = 0; i < layer->count; i++)
		all += layer->evidence[i].weight;
	return all - sum_support(layer, name, other, refinements);
}

static enum sy_confidence rate_confidence(int pro, int contra)
{
	if (pro >= 4 && contra == 0)
		return SY_CERTAIN;
	if (pro >= 3 && pro >= contra + 2)
		return SY_LIKELY;
	return SY_WEAK;
}

void sy_decide_layer(struct sy_layer *layer, const char *other,
		     const struct sy_refinement *refinements)
{
	const char *best = best_name(layer, other, refinements);
	int against = sum_own_weight(layer, "none");
	int total = 0;

	for (size_t i = 0; i < layer->count; i++)
		total += layer->evidence[i].weight;
	layer->name = NULL;
	layer->confidence = SY_WEAK;
	if (total == 0)
		return;
	if (total - against <= against) {
		layer->name = "none";
		layer->confidence = rate_confidence(against, total - against);
		return;
	}
	/* There is one; but a single stale witness does not give it its name against others. */
	if (best && against > 0 &&
	    sum_support(layer, best, other, refinements) - sum_own_weight(layer, other) < 3)
		best = NULL;
	layer->name = best ? best : other;
	layer->confidence = rate_confidence(
	    best ? sum_support(layer, best, other, refinements) : sum_own_weight(layer, other),
	    sum_contradiction(layer, layer->name, other, refinements));
}

const char *sy_confidence_name(enum sy_confidence confidence)
{
	static const char *const names[] = {"weak", "likely", "certain"};

	return names[confidence];
}
