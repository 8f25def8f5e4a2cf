#include "netem/kernel/tc_batch.h"

#include "netem/spec/values.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_SPEED_BIT_PER_S 10000000000LL
#define LEAST_LIMIT		1000	 /* tc-netem(8): the default */
#define MOST_LIMIT		10000000 /* 15 GB of packets: a guard */

#define SLOWEST_HZ  100 /* tc-tbf(8): burst ≥ rate / HZ */
#define MOST_BYTES  2000000000LL
#define FRAME_BYTES 18 /* Ethernet header and VLAN tag, which tbf counts too */

enum { TCP = 6, UDP = 17, SSH = 22 };

/* Where the lines of one filter preference go. */
struct rule {
	FILE *out;
	const struct sy_placement *placement;
	unsigned preference; /* of IPv4; IPv6 has the next */
	const char *verdict;
};

int64_t sy_plan_limit(const struct sy_netem *spec, int64_t mtu, int64_t speed_bit_per_s,
		      int64_t window_bytes)
{
	int64_t rate = spec->has_rate ? spec->rate_bit_per_s : speed_bit_per_s;
	double waiting_s = (double)(spec->delay_us + spec->jitter_us) / 1e6;
	double window = spec->has_rate ? 0 : (double)window_bytes / (double)mtu, packets;

	if (spec->has_limit)
		return spec->limit_packets;
	if (rate <= 0)
		rate = DEFAULT_SPEED_BIT_PER_S;
	packets = 1.5 * (double)rate * waiting_s / 8 / (double)mtu;
	if (packets < window)
		packets = window;
	if (packets < LEAST_LIMIT)
		packets = LEAST_LIMIT;
	return packets > MOST_LIMIT ? MOST_LIMIT : (int64_t)(packets + 0.999999);
}

static void write_percent(FILE *out, const char *word, int32_t ppb)
{
	(void)fprintf(out, " %s%" PRId32 ".%07" PRId32 "%%", word, ppb / 10000000, ppb % 10000000);
}

static void write_delay(FILE *out, const struct sy_netem *spec)
{
	(void)fprintf(out, " delay %" PRId64 "us", spec->delay_us);
	if (!spec->jitter_us)
		return;
	(void)fprintf(out, " %" PRId64 "us", spec->jitter_us);
	if (spec->distribution != SY_UNIFORM)
		(void)fprintf(out, " distribution %s",
			      spec->distribution == SY_TABLE
				  ? spec->table
				  : sy_distribution_names[spec->distribution]);
}

static void write_gemodel(FILE *out, const struct sy_gemodel *model)
{
	(void)fputs(" loss gemodel", out);
	write_percent(out, "", model->p_ppb);
	write_percent(out, "", model->r_ppb);
	write_percent(out, "", model->one_minus_h_ppb);
	write_percent(out, "", model->one_minus_k_ppb);
}

static void write_loss_state(FILE *out, const struct sy_loss_state *state)
{
	(void)fputs(" loss state", out);
	write_percent(out, "", state->p13_ppb);
	write_percent(out, "", state->p31_ppb);
	write_percent(out, "", state->p32_ppb);
	write_percent(out, "", state->p23_ppb);
	write_percent(out, "", state->p14_ppb);
}

static void write_rate(FILE *out, const struct sy_netem *spec)
{
	(void)fprintf(out, " rate %" PRId64 "bit", spec->rate_bit_per_s);
	if (spec->has_overhead)
		(void)fprintf(out, " %" PRId32 " %" PRId32 " %" PRId32, spec->overhead.packet_bytes,
			      spec->overhead.cell_bytes, spec->overhead.cell_overhead_bytes);
}

static void write_slot(FILE *out, const struct sy_slot *slot)
{
	if (slot->distribution != SY_UNIFORM)
		(void)fprintf(out, " slot distribution %s %" PRId64 "us %" PRId64 "us",
			      sy_distribution_names[slot->distribution], slot->mean_us,
			      slot->jitter_us);
	else
		(void)fprintf(out, " slot %" PRId64 "us %" PRId64 "us", slot->min_us, slot->max_us);
	if (slot->packets)
		(void)fprintf(out, " packets %" PRId32, slot->packets);
	if (slot->bytes)
		(void)fprintf(out, " bytes %" PRId32, slot->bytes);
}

#define TELL_TIME(out, word, us)      (void)fprintf(out, " %s %" PRId64 "us", word, us)
#define TELL_WHOLE_MS(out, word, us)  TELL_TIME(out, word, us)
#define TELL_PERCENT(out, word, ppb)  write_percent(out, word " ", ppb)
#define TELL_RATE(out, word, rate)    write_rate(out, spec)
#define TELL_COUNT(out, word, number) (void)fprintf(out, " %s %" PRId64, word, number)

static void write_netem(FILE *out, const struct sy_netem *spec,
			const struct sy_placement *placement)
{
	(void)fprintf(out, " netem limit %" PRId64, placement->limit_packets);
	if (spec->has_delay)
		write_delay(out, spec);
	if (spec->has_gemodel)
		write_gemodel(out, &spec->gemodel);
	if (spec->has_state)
		write_loss_state(out, &spec->state);
	if (spec->has_ecn)
		(void)fputs(" ecn", out);
	if (spec->has_slot)
		write_slot(out, &spec->slot);
#define TELL_NUMBER(id, role, kind, word)                                                          \
	if (*(word) && SY_ASKED_##role(spec, id))                                                  \
		TELL_##kind(out, word, spec->SY_FIELD_##kind(id));
#define VALUE(id, key, role, kind, grammar, json, example, packets, needs, bound, policy, most,    \
	      word, ...)                                                                           \
	SY_IF_NUMBER_##kind(TELL_NUMBER(id, role, kind, word))
#include "facts/netem_keys.def"
	(void)fputc('\n', out);
}

static int64_t clamp_to(int64_t value, int64_t most)
{
	return value < most ? value : most;
}

static void write_tbf(FILE *out, const struct sy_netem *spec, const struct sy_placement *placement)
{
	int64_t frame = placement->mtu + FRAME_BYTES;
	int64_t burst = spec->rate_bit_per_s / 8 / SLOWEST_HZ;

	if (burst < 2 * frame)
		burst = 2 * frame;
	burst = clamp_to(burst, MOST_BYTES / 2);
	(void)fprintf(out, " tbf rate %" PRId64 "bit burst %" PRId64 "b limit %" PRId64 "b\n",
		      spec->rate_bit_per_s, burst,
		      clamp_to(placement->limit_packets * frame + burst, MOST_BYTES));
}

/* The words of tc-netem(8) and tc-tbf(8) for a specification. A seed is not among them: tc has it
 * only since iproute2 6.6 (sy_qdisc_seed() of qdisc_snapshot.h). */
static void write_shaper(FILE *out, const struct sy_netem *spec,
			 const struct sy_placement *placement)
{
	if (placement->tbf)
		write_tbf(out, spec, placement);
	else
		write_netem(out, spec, placement);
}

static void write_root(FILE *out, const struct sy_placement *placement)
{
	(void)fprintf(out, "qdisc replace dev %s root handle %x: ", placement->device,
		      SY_ROOT_MAJOR);
	if (placement->htb)
		(void)fputs("htb default 0\n", out); /* 0: past all classes, unshaped */
	else
		(void)fputs("prio bands 16 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", out);
}

/* htb wants a rate for every class; ours is beyond any device, the child does the shaping. */
static void write_class(FILE *out, const struct sy_placement *placement)
{
	(void)fprintf(out,
		      "class replace dev %s parent %x: classid %x:%x htb rate 1000gbit ceil "
		      "1000gbit burst 10mb cburst 10mb quantum 200000\n",
		      placement->device, SY_ROOT_MAJOR, SY_ROOT_MAJOR, placement->band);
}

/* Fragments and packets with IP options have no port at the usual place: they do not match. */
static void match_port(FILE *out, int family, int protocol, const char *end, uint16_t port)
{
	if (family == AF_INET)
		(void)fprintf(out,
			      " match ip protocol %d 0xff match u8 0x05 0x0f at 0"
			      " match u16 0 0x1fff at 6 match ip %s %u 0xffff",
			      protocol, end, port);
	else
		(void)fprintf(out, " match ip6 protocol %d 0xff match ip6 %s %u 0xffff", protocol,
			      end, port);
}

static void match_network(FILE *out, const struct sy_placement *placement,
			  const struct sy_network *network)
{
	char text[SY_UNIT_SIZE];

	if (network->prefix == 0)
		(void)fputs(" match u32 0 0", out);
	else
		(void)fprintf(out, " match %s %s %s", network->family == AF_INET ? "ip" : "ip6",
			      placement->direction == SY_INGRESS ? "src" : "dst",
			      sy_format_network(network, text));
}

static void begin_filter(const struct rule *rule, int family)
{
	bool four = family == AF_INET;

	(void)fprintf(rule->out, "filter add dev %s parent %s protocol %s pref %u u32",
		      rule->placement->device,
		      rule->placement->direction == SY_INGRESS ? "ffff:" : "57e1:",
		      four ? "ip" : "ipv6", rule->preference + !four);
}

static void end_filter(const struct rule *rule)
{
	(void)fprintf(rule->out, " %s\n", rule->verdict);
}

static void write_port(const struct rule *rule, const struct sy_network *network, int protocol,
		       uint16_t port)
{
	static const char *const ends[] = {"sport", "dport"};

	for (int i = 0; i < 2; i++) {
		begin_filter(rule, network->family);
		match_network(rule->out, rule->placement, network);
		match_port(rule->out, network->family, protocol, ends[i], port);
		end_filter(rule);
	}
}

static void write_network(const struct rule *rule, const struct sy_network *network)
{
	begin_filter(rule, network->family);
	match_network(rule->out, rule->placement, network);
	end_filter(rule);
}

static const struct sy_network everything[] = {{.family = AF_INET}, {.family = AF_INET6}};

static void write_protected(const struct rule *rule, const struct sy_network *protect, int count)
{
	for (int i = 0; i < count; i++)
		write_network(rule, &protect[i]);
	for (int i = 0; i < 2; i++)
		write_port(rule, &everything[i], TCP, SSH);
}

/* What this node answers to another one's verification passes: a round trip meets the conditions of
 * the node that measures, and of no other, also when both are nodes of one job. Requests come in,
 * answers go out; icmp(7), RFC 4443, RFC 9293 (RST: port= measures connections). */
static void write_answers(const struct rule *rule)
{
	bool in = rule->placement->direction == SY_INGRESS;

	begin_filter(rule, AF_INET);
	(void)fprintf(rule->out,
		      " match ip protocol 1 0xff match ip tos %#x 0xfc match u8 0x05 0x0f at 0"
		      " match u8 %d 0xff at 20",
		      SY_ECHO_TOS, in ? 8 : 0);
	end_filter(rule);
	begin_filter(rule, AF_INET6);
	(void)fprintf(
	    rule->out,
	    " match ip6 protocol 58 0xff match ip6 priority %#x 0xfc match u8 %d 0xff at 40",
	    SY_ECHO_TOS, in ? 128 : 129);
	end_filter(rule);
	begin_filter(rule, AF_INET);
	(void)fprintf(rule->out,
		      " match ip protocol 6 0xff match ip tos %#x 0xfc match u8 0x05 0x0f at 0"
		      " match u8 %s at 33",
		      SY_ECHO_TOS, in ? "0x02 0x12" : "0x04 0x04");
	end_filter(rule);
	begin_filter(rule, AF_INET6);
	(void)fprintf(rule->out,
		      " match ip6 protocol 6 0xff match ip6 priority %#x 0xfc match u8 %s at 53",
		      SY_ECHO_TOS, in ? "0x02 0x12" : "0x04 0x04");
	end_filter(rule);
}

static void write_wanted(const struct rule *rule, const struct sy_netem *spec)
{
	const struct sy_network *network = spec->to_count ? spec->to : everything;
	int count = spec->to_count ? spec->to_count : 2;

	for (int i = 0; i < count; i++) {
		if (!spec->port_count)
			write_network(rule, &network[i]);
		for (int j = 0; j < spec->port_count; j++) {
			write_port(rule, &network[i], TCP, spec->port[j]);
			write_port(rule, &network[i], UDP, spec->port[j]);
		}
	}
}

/* All protected networks of all conditions come before all that is shaped. */
static unsigned find_preference(const struct sy_placement *placement, bool protects)
{
	return (protects ? 100 : 200) + 2 * placement->band;
}

static void write_filters(FILE *out, const struct sy_netem *spec,
			  const struct sy_placement *placement, const struct sy_network *protect,
			  int count)
{
	char ours[80], free_pass[16];
	struct rule rule = {
	    .out = out, .placement = placement, .preference = find_preference(placement, true)};

	if (placement->direction == SY_INGRESS) {
		/* A match without an action lets the packet pass as it is. */
		(void)snprintf(free_pass, sizeof(free_pass), "flowid :1");
		(void)snprintf(ours, sizeof(ours), "flowid :1 action mirred egress redirect dev %s",
			       placement->ifb);
	} else {
		(void)snprintf(free_pass, sizeof(free_pass), "flowid %x:%x", SY_ROOT_MAJOR,
			       !placement->htb);
		(void)snprintf(ours, sizeof(ours), "flowid %x:%x", SY_ROOT_MAJOR, placement->band);
	}
	rule.verdict = free_pass;
	write_protected(&rule, protect, count);
	write_answers(&rule);
	rule.preference = find_preference(placement, false);
	rule.verdict = ours;
	write_wanted(&rule, spec);
}

static void write_egress(FILE *out, const struct sy_netem *spec,
			 const struct sy_placement *placement)
{
	if (placement->first)
		write_root(out, placement);
	if (placement->htb)
		write_class(out, placement);
	(void)fprintf(out, "qdisc replace dev %s parent %x:%x handle %x:", placement->device,
		      SY_ROOT_MAJOR, placement->band, SY_CHILD_MAJOR + placement->band);
	write_shaper(out, spec, placement);
}

static void write_ingress(FILE *out, const struct sy_netem *spec,
			  const struct sy_placement *placement)
{
	(void)fprintf(out, "qdisc replace dev %s root handle %x:", placement->ifb,
		      SY_CHILD_MAJOR + placement->band);
	write_shaper(out, spec, placement);
	(void)fprintf(out, "qdisc replace dev %s ingress\n", placement->device);
}

char *sy_plan_apply(const struct sy_netem *spec, const struct sy_placement *placement,
		    const struct sy_network *protect, int protected_count)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (placement->direction == SY_INGRESS)
		write_ingress(out, spec, placement);
	else
		write_egress(out, spec, placement);
	if (!placement->by_cgroup)
		write_filters(out, spec, placement, protect, protected_count);
	(void)fclose(out);
	return text;
}

char *sy_plan_change(const struct sy_netem *spec, const struct sy_placement *placement)
{
	bool ingress = placement->direction == SY_INGRESS;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	(void)fprintf(out, "qdisc change dev %s ", ingress ? placement->ifb : placement->device);
	if (ingress)
		(void)fprintf(out, "root handle %x:", SY_CHILD_MAJOR + placement->band);
	else
		(void)fprintf(out, "parent %x:%x handle %x:", SY_ROOT_MAJOR, placement->band,
			      SY_CHILD_MAJOR + placement->band);
	write_shaper(out, spec, placement);
	(void)fclose(out);
	return text;
}

static void undo_band(FILE *out, const struct sy_placement *placement)
{
	for (int protects = 0; protects < 2; protects++) {
		unsigned number = find_preference(placement, protects);

		(void)fprintf(out, "filter del dev %s parent %x: protocol ip pref %u\n",
			      placement->device, SY_ROOT_MAJOR, number);
		(void)fprintf(out, "filter del dev %s parent %x: protocol ipv6 pref %u\n",
			      placement->device, SY_ROOT_MAJOR, number + 1);
	}
	(void)fprintf(out, "qdisc del dev %s parent %x:%x\n", placement->device, SY_ROOT_MAJOR,
		      placement->band);
	if (placement->htb)
		(void)fprintf(out, "class del dev %s classid %x:%x\n", placement->device,
			      SY_ROOT_MAJOR, placement->band);
}

char *sy_plan_undo(const struct sy_placement *placement, bool last)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (placement->direction == SY_INGRESS)
		(void)fprintf(out, "qdisc del dev %s ingress\n", placement->device);
	else if (last)
		(void)fprintf(out, "qdisc del dev %s root\n", placement->device);
	else
		undo_band(out, placement);
	(void)fclose(out);
	return text;
}

static bool have_same_network(const struct sy_network *a, const struct sy_network *b)
{
	int bits = a->prefix < b->prefix ? a->prefix : b->prefix;

	if (a->family != b->family || memcmp(a->address, b->address, (size_t)bits / 8) != 0)
		return false;
	return bits % 8 == 0 || !((a->address[bits / 8] ^ b->address[bits / 8]) >> (8 - bits % 8));
}

bool sy_plan_overlap(const struct sy_netem *a, const struct sy_netem *b)
{
	if (!a->to_count || !b->to_count)
		return true;
	for (int i = 0; i < a->to_count; i++)
		for (int j = 0; j < b->to_count; j++)
			if (have_same_network(&a->to[i], &b->to[j]))
				return true;
	return false;
}
