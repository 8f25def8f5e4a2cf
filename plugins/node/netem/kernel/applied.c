/* What the kernel reports of a netem or tbf qdisc, as a specification (linux/pkt_sched.h). */
#include "netem/kernel/qdisc.h"

#include "netem/kernel/rtnl.h"

#include <linux/pkt_sched.h>
#include <stdlib.h>
#include <string.h>

/* The kernel counts chances in 2^-32, tc through a double: 1e-9 is below either. */
static int32_t from_chance(uint32_t chance, int32_t asked)
{
	int32_t ppb = (int32_t)((double)chance / 4294967295.0 * SY_WHOLE_PPB + 0.5);

	return abs(ppb - asked) <= 2 ? asked : ppb;
}

static void read_attribute(const struct rtattr *attribute, struct sy_netem *spec)
{
	const void *data = RTA_DATA(attribute);
	size_t size = RTA_PAYLOAD(attribute);
	struct tc_netem_corrupt corrupt;
	struct tc_netem_reorder reorder;
	struct tc_netem_rate rate;
	int64_t wide;

	if (attribute->rta_type == TCA_NETEM_LATENCY64 && size >= sizeof(wide)) {
		memcpy(&wide, data, sizeof(wide));
		spec->delay_us = (wide + 500) / 1000; /* tc goes through a double */
	} else if (attribute->rta_type == TCA_NETEM_JITTER64 && size >= sizeof(wide)) {
		memcpy(&wide, data, sizeof(wide));
		spec->jitter_us = (wide + 500) / 1000;
	} else if (attribute->rta_type == TCA_NETEM_CORRUPT && size >= sizeof(corrupt)) {
		memcpy(&corrupt, data, sizeof(corrupt));
		spec->corrupt_ppb = from_chance(corrupt.probability, spec->corrupt_ppb);
	} else if (attribute->rta_type == TCA_NETEM_REORDER && size >= sizeof(reorder)) {
		memcpy(&reorder, data, sizeof(reorder));
		spec->reorder_ppb = from_chance(reorder.probability, spec->reorder_ppb);
	} else if (attribute->rta_type == TCA_NETEM_RATE && size >= sizeof(rate)) {
		memcpy(&rate, data, sizeof(rate));
		if (rate.rate != UINT32_MAX)
			spec->rate_bit_per_s = (int64_t)rate.rate * 8;
	} else if (attribute->rta_type == TCA_NETEM_RATE64 && size >= sizeof(wide)) {
		memcpy(&wide, data, sizeof(wide));
		spec->rate_bit_per_s = wide * 8;
	}
}

static void read_gemodel(const struct rtattr *loss, struct sy_gemodel *model)
{
	const struct rtattr *inner = RTA_DATA(loss);
	size_t length = RTA_PAYLOAD(loss);
	struct tc_netem_gemodel got;

	if (!sy_rta_ok(inner, length) || (inner->rta_type & NLA_TYPE_MASK) != NETEM_LOSS_GE ||
	    RTA_PAYLOAD(inner) < sizeof(got))
		return;
	memcpy(&got, RTA_DATA(inner), sizeof(got));
	model->p_ppb = from_chance(got.p, model->p_ppb);
	model->r_ppb = from_chance(got.r, model->r_ppb);
	/* The kernel keeps h and 1 - k: man tc-netem and netem.c of iproute2. */
	model->one_minus_h_ppb =
	    SY_WHOLE_PPB - from_chance(got.h, SY_WHOLE_PPB - model->one_minus_h_ppb);
	model->one_minus_k_ppb = from_chance(got.k1, model->one_minus_k_ppb);
}

static void read_netem(const struct sy_qdisc *qdisc, struct sy_netem *spec)
{
	const struct rtattr *attribute;
	struct tc_netem_qopt basic;
	size_t length;

	if (qdisc->options_size < sizeof(basic))
		return;
	memcpy(&basic, qdisc->options, sizeof(basic));
	if (spec->has_limit)
		spec->limit_packets = basic.limit;
	spec->loss_ppb = from_chance(basic.loss, spec->loss_ppb);
	spec->duplicate_ppb = from_chance(basic.duplicate, spec->duplicate_ppb);
	attribute = (const struct rtattr *)(qdisc->options + RTA_ALIGN(sizeof(basic)));
	length = qdisc->options_size - RTA_ALIGN(sizeof(basic));
	for (; sy_rta_ok(attribute, length); attribute = sy_rta_next(attribute, &length)) {
		read_attribute(attribute, spec);
		if ((attribute->rta_type & NLA_TYPE_MASK) == TCA_NETEM_LOSS && spec->has_gemodel)
			read_gemodel(attribute, &spec->gemodel);
	}
}

static void read_tbf(const struct sy_qdisc *qdisc, struct sy_netem *spec)
{
	const struct rtattr *attribute = (const struct rtattr *)qdisc->options;
	size_t length = qdisc->options_size;
	struct tc_tbf_qopt basic;
	uint64_t rate;

	for (; sy_rta_ok(attribute, length); attribute = sy_rta_next(attribute, &length))
		if (attribute->rta_type == TCA_TBF_PARMS &&
		    RTA_PAYLOAD(attribute) >= sizeof(basic)) {
			memcpy(&basic, RTA_DATA(attribute), sizeof(basic));
			if (basic.rate.rate != UINT32_MAX)
				spec->rate_bit_per_s = (int64_t)basic.rate.rate * 8;
		} else if (attribute->rta_type == TCA_TBF_RATE64 &&
			   RTA_PAYLOAD(attribute) >= sizeof(rate)) {
			memcpy(&rate, RTA_DATA(attribute), sizeof(rate));
			spec->rate_bit_per_s = (int64_t)rate * 8;
		}
}

void sy_qdisc_spec(const struct sy_qdisc *qdisc, struct sy_netem *spec)
{
	if (!strcmp(qdisc->kind, "netem"))
		read_netem(qdisc, spec);
	else if (!strcmp(qdisc->kind, "tbf"))
		read_tbf(qdisc, spec);
}
