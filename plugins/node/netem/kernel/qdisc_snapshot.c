#include "netem/kernel/qdisc_snapshot.h"

#include "base/file.h"
#include "base/kernel_uapi.h"
#include "netem/kernel/rtnl.h"
#include "netem/kernel/tc_batch.h"
#include "netem/spec/spec.h"

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sy_cleanup_qdiscs(struct sy_qdiscs *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->item[i].options);
	free(list->item);
}

static int add_qdisc(struct sy_qdiscs *list, const struct nlmsghdr *header)
{
	const struct tcmsg *message = mnl_nlmsg_get_payload(header);
	const char *first = mnl_nlmsg_get_payload_offset(header, sizeof(*message));
	size_t length = mnl_nlmsg_get_payload_len(header) - sizeof(*message);
	const struct nlattr *kind = sy_rtnl_find(first, length, TCA_KIND, 1);
	const struct nlattr *options = sy_rtnl_find(first, length, TCA_OPTIONS, 1);
	struct sy_qdisc *more = reallocarray(list->item, list->count + 1, sizeof(*more));
	struct sy_qdisc *qdisc;

	if (!more)
		return MNL_CB_ERROR;
	list->item = more;
	qdisc = &more[list->count];
	*qdisc = (struct sy_qdisc){.handle = message->tcm_handle, .parent = message->tcm_parent};
	if (kind)
		(void)snprintf(qdisc->kind, sizeof(qdisc->kind), "%.*s",
			       (int)mnl_attr_get_payload_len(kind), mnl_attr_get_str(kind));
	if (options) {
		qdisc->options_size = mnl_attr_get_payload_len(options);
		qdisc->options = malloc(qdisc->options_size);
		if (!qdisc->options)
			return MNL_CB_ERROR;
		memcpy(qdisc->options, mnl_attr_get_payload(options), qdisc->options_size);
	}
	list->count++;
	return MNL_CB_OK;
}

struct dump {
	struct sy_qdiscs *list;
	int index;
};

static int parse_qdisc(const struct nlmsghdr *header, void *context)
{
	const struct tcmsg *message = mnl_nlmsg_get_payload(header);
	struct dump *dump = context;

	if (header->nlmsg_type != RTM_NEWQDISC || message->tcm_ifindex != dump->index)
		return MNL_CB_OK;
	return add_qdisc(dump->list, header);
}

int sy_qdiscs_read(int index, struct sy_qdiscs *list, struct sy_error *err)
{
	struct dump dump = {list, index};
	struct sy_rtnl room;
	struct tcmsg *body;
	struct nlmsghdr *request =
	    sy_rtnl_new(&room, RTM_GETQDISC, NLM_F_DUMP, sizeof(*body), (void **)&body);
	int result;

	body->tcm_ifindex = index;
	result = sy_rtnl_request(request, parse_qdisc, &dump);
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

enum sy_root sy_qdiscs_find_root(const struct sy_qdiscs *list)
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

json_t *sy_qdiscs_to_json(const struct sy_qdiscs *list)
{
	json_t *saved = json_array();

	for (size_t i = 0; i < list->count; i++) {
		const struct sy_qdisc *qdisc = &list->item[i];

		if (qdisc->handle && !is_special(qdisc))
			(void)json_array_append_new(
			    saved,
			    json_pack("{s:I, s:I, s:s, s:o}", "parent", (json_int_t)qdisc->parent,
				      "handle", (json_int_t)qdisc->handle, "kind", qdisc->kind,
				      "options", sy_rtnl_hex(qdisc->options, qdisc->options_size)));
	}
	return saved;
}

static int restore_qdisc(int index, const json_t *one, struct sy_error *err)
{
	const char *kind = json_string_value(json_object_get(one, "kind"));
	const json_t *options = json_object_get(one, "options");
	struct sy_rtnl room;
	struct tcmsg *body;
	struct nlmsghdr *request = sy_rtnl_new(&room, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE,
					       sizeof(*body), (void **)&body);
	uint8_t bytes[1024];
	size_t size;
	int result;

	if (!kind || !json_is_string(options))
		return sy_fail(err, "the state has no kind or options of an earlier qdisc");
	body->tcm_ifindex = index;
	body->tcm_parent = (uint32_t)json_integer_value(json_object_get(one, "parent"));
	body->tcm_handle = (uint32_t)json_integer_value(json_object_get(one, "handle"));
	size = sy_rtnl_unhex(options, bytes, sizeof(bytes));
	mnl_attr_put_strz(request, TCA_KIND, kind);
	if (size)
		mnl_attr_put(request, TCA_OPTIONS, size, bytes);
	result = sy_rtnl_request(request, NULL, NULL);
	return result ? sy_fail_errno(err, -result, "cannot put qdisc %s back", kind) : 0;
}

int sy_qdiscs_restore(int index, const json_t *saved, struct sy_error *err)
{
	size_t i;
	json_t *one;

	json_array_foreach((json_t *)saved, i,
			   one) if (restore_qdisc(index, one, err) < 0) return -1;
	return 0;
}

int sy_qdisc_seed(int index, const struct sy_qdisc *qdisc, int64_t seed, struct sy_error *err)
{
	struct sy_rtnl room;
	struct tcmsg *body;
	struct nlmsghdr *request =
	    sy_rtnl_new(&room, RTM_NEWQDISC, 0, sizeof(*body), (void **)&body);
	struct nlattr *options;
	int result;

	if (qdisc->options_size > sizeof(room) / 2)
		return sy_fail(err, "the options of qdisc %s are longer than expected",
			       qdisc->kind);
	body->tcm_ifindex = index;
	body->tcm_parent = qdisc->parent;
	body->tcm_handle = qdisc->handle;
	mnl_attr_put_strz(request, TCA_KIND, qdisc->kind);
	options = mnl_attr_nest_start(request, TCA_OPTIONS);
	memcpy(mnl_nlmsg_get_payload_tail(request), qdisc->options, qdisc->options_size);
	request->nlmsg_len += (uint32_t)RTA_ALIGN(qdisc->options_size);
	mnl_attr_put_u64(request, SY_TCA_NETEM_PRNG_SEED, (uint64_t)seed);
	mnl_attr_nest_end(request, options);
	result = sy_rtnl_request(request, NULL, NULL);
	return result ? sy_fail_errno(err, -result, "the kernel refused the seed") : 0;
}

/* The kernel counts chances in 2^-32, tc through a double: 1e-9 is below either. */
static int32_t read_chance(uint32_t chance, int32_t requested)
{
	int32_t ppb = (int32_t)((double)chance / 4294967295.0 * SY_WHOLE_PPB + 0.5);

	return abs(ppb - requested) <= 2 ? requested : ppb;
}

static void read_loss_state(const struct nlattr *loss, struct sy_loss_state *state)
{
	struct tc_netem_gimodel got;
	const struct nlattr *inner = sy_rtnl_find(
	    mnl_attr_get_payload(loss), mnl_attr_get_payload_len(loss), NETEM_LOSS_GI, sizeof(got));

	if (!inner)
		return;
	memcpy(&got, mnl_attr_get_payload(inner), sizeof(got));
	state->p13_ppb = read_chance(got.p13, state->p13_ppb);
	state->p31_ppb = read_chance(got.p31, state->p31_ppb);
	state->p32_ppb = read_chance(got.p32, state->p32_ppb);
	state->p23_ppb = read_chance(got.p23, state->p23_ppb);
	state->p14_ppb = read_chance(got.p14, state->p14_ppb);
}

static void read_gemodel(const struct nlattr *loss, struct sy_gemodel *model)
{
	struct tc_netem_gemodel got;
	const struct nlattr *inner = sy_rtnl_find(
	    mnl_attr_get_payload(loss), mnl_attr_get_payload_len(loss), NETEM_LOSS_GE, sizeof(got));

	if (!inner)
		return;
	memcpy(&got, mnl_attr_get_payload(inner), sizeof(got));
	model->p_ppb = read_chance(got.p, model->p_ppb);
	model->r_ppb = read_chance(got.r, model->r_ppb);
	/* The kernel keeps h and 1 - k: man tc-netem and netem.c of iproute2. */
	model->one_minus_h_ppb =
	    SY_WHOLE_PPB - read_chance(got.h, SY_WHOLE_PPB - model->one_minus_h_ppb);
	model->one_minus_k_ppb = read_chance(got.k1, model->one_minus_k_ppb);
}

/* Values that an attribute has by itself; tc goes through a double, hence the rounding. */
#define FROM_CHANCE(id, kind, which)                                                               \
	if (type == (which) && size >= sizeof(uint32_t))                                           \
		spec->SY_FIELD_##kind(id) =                                                        \
		    read_chance(mnl_attr_get_u32(attribute), spec->SY_FIELD_##kind(id));
#define FROM_NS(id, kind, which)                                                                   \
	if (type == (which) && size >= sizeof(uint64_t))                                           \
		spec->SY_FIELD_##kind(id) = ((int64_t)mnl_attr_get_u64(attribute) + 500) / 1000;
#define FROM_QOPT(...)
#define FROM_OWN(...)
#define FROM_NO(...)

static void read_rate(const struct nlattr *attribute, struct sy_netem *spec)
{
	struct tc_netem_rate rate;

	memcpy(&rate, mnl_attr_get_payload(attribute), sizeof(rate));
	if (rate.rate != UINT32_MAX)
		spec->rate_bit_per_s = (int64_t)rate.rate * 8;
	spec->overhead = (struct sy_rate_overhead){
	    .packet_bytes = rate.packet_overhead,
	    .cell_bytes = (int32_t)rate.cell_size,
	    .cell_overhead_bytes = rate.cell_overhead,
	};
}

/* The kernel does not report the distribution. */
static void read_slot(const struct nlattr *attribute, struct sy_netem *spec)
{
	enum sy_distribution requested = spec->slot.distribution;
	struct tc_netem_slot slot;

	memcpy(&slot, mnl_attr_get_payload(attribute), sizeof(slot));
	spec->has_slot = true;
	spec->slot = (struct sy_slot){
	    .min_us = (slot.min_delay + 500) / 1000,
	    .max_us = (slot.max_delay + 500) / 1000,
	    .packets = slot.max_packets,
	    .bytes = slot.max_bytes,
	    .distribution = slot.dist_jitter ? requested : SY_UNIFORM,
	    .mean_us = (slot.dist_delay + 500) / 1000,
	    .jitter_us = (slot.dist_jitter + 500) / 1000,
	};
}

static int read_attribute(const struct nlattr *attribute, void *context)
{
	struct sy_netem *spec = context;
	size_t size = mnl_attr_get_payload_len(attribute);
	int type = mnl_attr_get_type(attribute);

#define VALUE(id, key, role, kind, grammar, json, example, packets, needs, bound, policy, most,    \
	      word, back, which, ...)                                                              \
	FROM_##back(id, kind, which)
#include "facts/netem_keys.def"
	if (type == TCA_NETEM_RATE && size >= sizeof(struct tc_netem_rate))
		read_rate(attribute, spec);
	else if (type == TCA_NETEM_RATE64 && size >= sizeof(uint64_t))
		spec->rate_bit_per_s = (int64_t)mnl_attr_get_u64(attribute) * 8;
	else if (type == TCA_NETEM_LOSS && spec->has_gemodel)
		read_gemodel(attribute, &spec->gemodel);
	else if (type == TCA_NETEM_LOSS && spec->has_state)
		read_loss_state(attribute, &spec->state);
	else if (type == TCA_NETEM_SLOT && size >= sizeof(struct tc_netem_slot))
		read_slot(attribute, spec);
	else if (type == TCA_NETEM_ECN && size >= sizeof(uint32_t))
		spec->has_ecn = mnl_attr_get_u32(attribute) != 0;
	else if (type == SY_TCA_NETEM_PRNG_SEED && size >= sizeof(uint64_t) && spec->has_seed)
		spec->seed = (int64_t)mnl_attr_get_u64(attribute);
	return MNL_CB_OK;
}

/* Chances that stand in the queue's first struct. */
#define BASIC_QOPT(id, kind, which)                                                                \
	spec->SY_FIELD_##kind(id) = read_chance(basic.which, spec->SY_FIELD_##kind(id));
#define BASIC_CHANCE(...)
#define BASIC_NS(...)
#define BASIC_OWN(...)
#define BASIC_NO(...)

static void read_netem(const struct sy_qdisc *qdisc, struct sy_netem *spec)
{
	size_t head = RTA_ALIGN(sizeof(struct tc_netem_qopt));
	struct tc_netem_qopt basic;

	if (qdisc->options_size < head)
		return;
	memcpy(&basic, qdisc->options, sizeof(basic));
	if (spec->has_limit)
		spec->limit_packets = basic.limit;
	/* Reported only where they are set. */
	spec->has_ecn = spec->has_slot = false;
	if (spec->has_seed)
		spec->has_seed = sy_rtnl_find(qdisc->options + head, qdisc->options_size - head,
					      SY_TCA_NETEM_PRNG_SEED, sizeof(uint64_t)) != NULL;
#define VALUE(id, key, role, kind, grammar, json, example, packets, needs, bound, policy, most,    \
	      word, back, which, ...)                                                              \
	BASIC_##back(id, kind, which)
#include "facts/netem_keys.def"
	(void)mnl_attr_parse_payload(qdisc->options + head, qdisc->options_size - head,
				     read_attribute, spec);
}

static void read_tbf(const struct sy_qdisc *qdisc, struct sy_netem *spec)
{
	struct tc_tbf_qopt basic;
	uint64_t rate;
	const struct nlattr *plain =
	    sy_rtnl_find(qdisc->options, qdisc->options_size, TCA_TBF_PARMS, sizeof(basic));
	const struct nlattr *wide =
	    sy_rtnl_find(qdisc->options, qdisc->options_size, TCA_TBF_RATE64, sizeof(rate));

	if (plain) {
		memcpy(&basic, mnl_attr_get_payload(plain), sizeof(basic));
		if (basic.rate.rate != UINT32_MAX)
			spec->rate_bit_per_s = (int64_t)basic.rate.rate * 8;
	}
	if (wide) {
		memcpy(&rate, mnl_attr_get_payload(wide), sizeof(rate));
		spec->rate_bit_per_s = (int64_t)rate * 8;
	}
}

void sy_qdisc_read_spec(const struct sy_qdisc *qdisc, struct sy_netem *spec)
{
	if (!strcmp(qdisc->kind, "netem"))
		read_netem(qdisc, spec);
	else if (!strcmp(qdisc->kind, "tbf"))
		read_tbf(qdisc, spec);
}

bool sy_qdisc_has_spec(int index, uint32_t handle, const struct sy_netem *spec)
{
	cleanup_qdiscs struct sy_qdiscs list = {0};
	char requested[SY_NETEM_SIZE], got[SY_NETEM_SIZE];
	struct sy_netem found = *spec;
	const struct sy_qdisc *qdisc;

	if (sy_qdiscs_read(index, &list, NULL) < 0)
		return false;
	qdisc = sy_qdisc_by_handle(&list, handle);
	if (!qdisc)
		return false;
	sy_qdisc_read_spec(qdisc, &found);
	(void)sy_netem_format(spec, requested);
	(void)sy_netem_format(&found, got);
	return !strcmp(requested, got);
}
