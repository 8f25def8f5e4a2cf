#include "netem/kernel/qdisc.h"

#include "base/file.h"
#include "netem/kernel/plan.h"
#include "netem/kernel/rtnl.h"

#include <errno.h>
#include <linux/pkt_sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sy_cleanup_qdiscs(struct sy_qdiscs *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->item[i].options);
	free(list->item);
}

static const struct rtattr *find_attribute(const struct rtattr *first, size_t length, int type,
					   size_t size)
{
	for (; sy_rta_ok(first, length); first = sy_rta_next(first, &length))
		if ((first->rta_type & NLA_TYPE_MASK) == type && RTA_PAYLOAD(first) >= size)
			return first;
	return NULL;
}

static int add_qdisc(struct sy_qdiscs *list, const struct tcmsg *message, size_t length)
{
	const struct rtattr *first = TCA_RTA(message), *kind, *options;
	struct sy_qdisc *more = reallocarray(list->item, list->count + 1, sizeof(*more));
	struct sy_qdisc *qdisc;

	if (!more)
		return -ENOMEM;
	list->item = more;
	qdisc = &more[list->count];
	*qdisc = (struct sy_qdisc){.handle = message->tcm_handle, .parent = message->tcm_parent};
	kind = find_attribute(first, length, TCA_KIND, 1);
	options = find_attribute(first, length, TCA_OPTIONS, 0);
	if (kind)
		(void)snprintf(qdisc->kind, sizeof(qdisc->kind), "%.*s", (int)RTA_PAYLOAD(kind),
			       (const char *)RTA_DATA(kind));
	if (options && RTA_PAYLOAD(options)) {
		qdisc->options_size = RTA_PAYLOAD(options);
		qdisc->options = malloc(qdisc->options_size);
		if (!qdisc->options)
			return -ENOMEM;
		memcpy(qdisc->options, RTA_DATA(options), qdisc->options_size);
	}
	list->count++;
	return 0;
}

struct dump {
	struct sy_qdiscs *list;
	int index;
};

static int take(const struct nlmsghdr *header, void *context)
{
	const struct tcmsg *message = NLMSG_DATA(header);
	struct dump *dump = context;

	if (header->nlmsg_type != RTM_NEWQDISC || message->tcm_ifindex != dump->index)
		return 0;
	return add_qdisc(dump->list, message, TCA_PAYLOAD(header));
}

int sy_qdiscs_read(int index, struct sy_qdiscs *list, struct sy_error *err)
{
	struct sy_rtnl_request request = {
	    .header = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct tcmsg)),
		       .nlmsg_type = RTM_GETQDISC,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
	    .tc = {.tcm_ifindex = index},
	};
	struct dump dump = {list, index};
	int result = sy_rtnl(&request, take, &dump);

	return result ? sy_fail_errno(err, -result, "cannot read the qdiscs") : 0;
}

const struct sy_qdisc *sy_qdisc_by_parent(const struct sy_qdiscs *list, uint32_t parent)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->item[i].parent == parent)
			return &list->item[i];
	return NULL;
}

const struct sy_qdisc *sy_qdisc_by_handle(const struct sy_qdiscs *list, uint32_t handle)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->item[i].handle == handle)
			return &list->item[i];
	return NULL;
}

static bool is_plain(const struct sy_qdisc *qdisc)
{
	static const char *const kinds[] = {"mq",    "fq_codel", "fq",	    "pfifo_fast",
					    "pfifo", "bfifo",	 "sfq",	    "codel",
					    "pie",   "fq_pie",	 "noqueue", "pfifo_head_drop"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(qdisc->kind, kinds[i]))
			return true;
	return false;
}

static bool is_special(const struct sy_qdisc *qdisc)
{
	return qdisc->parent == TC_H_INGRESS; /* clsact too */
}

enum sy_root sy_root_of(const struct sy_qdiscs *list)
{
	const struct sy_qdisc *root = sy_qdisc_by_parent(list, TC_H_ROOT);
	bool named = false;

	if (root && TC_H_MAJ(root->handle) == SY_ROOT_MAJOR << 16 &&
	    (!strcmp(root->kind, "prio") || !strcmp(root->kind, "htb")))
		return SY_ROOT_OURS;
	for (size_t i = 0; i < list->count; i++) {
		const struct sy_qdisc *qdisc = &list->item[i];

		if (is_special(qdisc))
			continue;
		named |= qdisc->handle != 0;
		if (!is_plain(qdisc))
			return SY_ROOT_FOREIGN;
	}
	return named ? SY_ROOT_PLAIN : SY_ROOT_DEFAULT;
}

static json_t *hex(const uint8_t *bytes, size_t size)
{
	cleanup_free char *text = calloc(size + 1, 2);

	for (size_t i = 0; text && i < size; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return text ? json_string(text) : NULL;
}

json_t *sy_qdiscs_keep(const struct sy_qdiscs *list)
{
	json_t *kept = json_array();

	for (size_t i = 0; i < list->count; i++) {
		const struct sy_qdisc *qdisc = &list->item[i];

		if (qdisc->handle && !is_special(qdisc))
			(void)json_array_append_new(
			    kept,
			    json_pack("{s:I, s:I, s:s, s:o}", "parent", (json_int_t)qdisc->parent,
				      "handle", (json_int_t)qdisc->handle, "kind", qdisc->kind,
				      "options", hex(qdisc->options, qdisc->options_size)));
	}
	return kept;
}

static size_t unhex(const char *text, uint8_t *bytes, size_t size)
{
	size_t count = 0;
	unsigned value;

	while (count < size && sscanf(text + 2 * count, "%2x", &value) == 1)
		bytes[count++] = (uint8_t)value;
	return count;
}

static int put_back(int index, const json_t *one, struct sy_error *err)
{
	struct sy_rtnl_request request = {
	    .header = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct tcmsg)),
		       .nlmsg_type = RTM_NEWQDISC,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE},
	    .tc = {.tcm_ifindex = index},
	};
	const char *kind = json_string_value(json_object_get(one, "kind"));
	const char *options = json_string_value(json_object_get(one, "options"));
	uint8_t bytes[1024];
	size_t size;
	int result;

	if (!kind || !options)
		return sy_fail(err, "the state has no kind or options of an earlier qdisc");
	request.tc.tcm_parent = (uint32_t)json_integer_value(json_object_get(one, "parent"));
	request.tc.tcm_handle = (uint32_t)json_integer_value(json_object_get(one, "handle"));
	size = unhex(options, bytes, sizeof(bytes));
	sy_rtnl_add(&request, TCA_KIND, kind, strlen(kind) + 1);
	if (size)
		sy_rtnl_add(&request, TCA_OPTIONS, bytes, size);
	result = sy_rtnl(&request, NULL, NULL);
	return result ? sy_fail_errno(err, -result, "cannot put qdisc %s back", kind) : 0;
}

int sy_qdiscs_restore(int index, const json_t *kept, struct sy_error *err)
{
	size_t i;
	json_t *one;

	json_array_foreach((json_t *)kept, i, one) if (put_back(index, one, err) < 0) return -1;
	return 0;
}

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
