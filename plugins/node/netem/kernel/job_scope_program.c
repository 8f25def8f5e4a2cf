/* In a cgroup_skb program a packet begins with its IP header. Registers: r6 the packet, r7 the
 * protocol, r8 and r9 the ports as on the wire. */
#include "netem/kernel/job_scope.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <stddef.h>
#include <string.h>

enum {
	HEADER = -40, /* on the stack: IPv4 20 bytes, IPv6 40 */
	PORTS = -48,
	TCP = 6,
	UDP = 17,
	SSH = 22,
};

enum label { OUT, V6, WANTED4, WANTED6, STORE, PORT, SET, LABELS = SET + SY_SCOPE_RULES };

struct assembler {
	struct bpf_insn *code;
	int count;
	int placement[LABELS];
	uint8_t label[SY_SCOPE_MOST]; /* 0, or where instruction i jumps to + 1 */
};

static void emit(struct assembler *a, uint8_t code, unsigned to, unsigned from, int16_t off,
		 int32_t imm)
{
	if (a->count < SY_SCOPE_MOST)
		a->code[a->count] = (struct bpf_insn){.code = code,
						      .dst_reg = to & 0xfU,
						      .src_reg = from & 0xfU,
						      .off = off,
						      .imm = imm};
	a->count++;
}

static void jump(struct assembler *a, uint8_t condition, uint8_t reg, int32_t imm, enum label label)
{
	if (a->count < SY_SCOPE_MOST)
		a->label[a->count] = (uint8_t)(label + 1);
	emit(a, BPF_JMP | condition | BPF_K, reg, 0, 0, imm);
}

static void put(struct assembler *a, enum label label)
{
	a->placement[label] = a->count;
}

static void load(struct assembler *a, uint8_t size, uint8_t to, uint8_t from, int offset)
{
	emit(a, (uint8_t)(BPF_LDX | BPF_MEM | size), to, from, (int16_t)offset, 0);
}

/* bpf_skb_load_bytes(r6, r2, r10 + to, size); r2 is set already. */
static void load_packet(struct assembler *a, int to, int size)
{
	emit(a, BPF_ALU64 | BPF_MOV | BPF_X, 1, 6, 0, 0);
	emit(a, BPF_ALU64 | BPF_MOV | BPF_X, 3, 10, 0, 0);
	emit(a, BPF_ALU64 | BPF_ADD | BPF_K, 3, 0, 0, to);
	emit(a, BPF_ALU64 | BPF_MOV | BPF_K, 4, 0, 0, size);
	emit(a, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_skb_load_bytes);
	jump(a, BPF_JNE, 0, 0, OUT);
}

/* Jump when the destination is in the network: masked words, compared as they are in memory. */
static void match_network(struct assembler *a, const struct sy_network *network, int offset,
			  enum label label)
{
	int misses[4], missed = 0;

	for (int bit = 0; bit < network->prefix; bit += 32) {
		int bits = network->prefix - bit < 32 ? network->prefix - bit : 32;
		uint32_t mask = htonl(bits == 32 ? UINT32_MAX : ~(UINT32_MAX >> bits));
		uint32_t word;

		memcpy(&word, network->address + bit / 8, sizeof(word));
		load(a, BPF_W, 1, 10, HEADER + offset + bit / 8);
		emit(a, BPF_ALU | BPF_AND | BPF_K, 1, 0, 0, (int32_t)mask);
		emit(a, BPF_ALU | BPF_MOV | BPF_K, 2, 0, 0, (int32_t)(word & mask));
		misses[missed++] = a->count;
		emit(a, BPF_JMP | BPF_JNE | BPF_X, 1, 2, 0, 0);
	}
	/* Always true, but not seen to be: the kernel refuses code that nothing reaches. */
	jump(a, BPF_JGE, 7, 0, label);
	for (int i = 0; i < missed; i++)
		if (misses[i] < SY_SCOPE_MOST)
			a->code[misses[i]].off = (int16_t)(a->count - misses[i] - 1);
}

static void match_networks(struct assembler *a, const struct sy_network *list, int count,
			   int family, enum label label)
{
	for (int i = 0; i < count; i++)
		if (list[i].family == family)
			match_network(a, &list[i], family == AF_INET ? 16 : 24, label);
}

/* r2 holds where the ports are. */
static void read_ports(struct assembler *a, enum label after)
{
	emit(a, BPF_JMP | BPF_JEQ | BPF_K, 7, 0, 1, TCP);
	jump(a, BPF_JNE, 7, UDP, after);
	load_packet(a, PORTS, 4);
	load(a, BPF_H, 8, 10, PORTS);
	load(a, BPF_H, 9, 10, PORTS + 2);
}

static void read_v4(struct assembler *a)
{
	emit(a, BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 0);
	load_packet(a, HEADER, 20);
	load(a, BPF_B, 7, 10, HEADER + 9);
	load(a, BPF_H, 1, 10, HEADER + 6); /* a later fragment has no ports */
	emit(a, BPF_ALU | BPF_AND | BPF_K, 1, 0, 0, htons(0x1fff));
	jump(a, BPF_JNE, 1, 0, WANTED4);
	load(a, BPF_B, 2, 10, HEADER);
	emit(a, BPF_ALU | BPF_AND | BPF_K, 2, 0, 0, 0xf);
	emit(a, BPF_ALU | BPF_LSH | BPF_K, 2, 0, 0, 2);
	read_ports(a, WANTED4);
}

static void read_v6(struct assembler *a)
{
	emit(a, BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 0);
	load_packet(a, HEADER, 40);
	load(a, BPF_B, 7, 10, HEADER + 6);
	emit(a, BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 40);
	read_ports(a, WANTED6);
}

static void write_rules(struct assembler *a, const struct sy_scope_rule *rule, int rules,
			const struct sy_network *protect, int count, int family)
{
	bool everywhere = rules == 1 && !rule->spec->to_count;

	emit(a, BPF_JMP | BPF_JNE | BPF_K, 7, 0, 2, TCP);
	jump(a, BPF_JEQ, 8, htons(SSH), OUT);
	jump(a, BPF_JEQ, 9, htons(SSH), OUT);
	match_networks(a, protect, count, family, OUT);
	for (int i = 0; i < rules; i++)
		match_networks(a, rule[i].spec->to, rule[i].spec->to_count, family,
			       rules == 1 ? PORT : (enum label)(SET + i));
	/* One way on, or the kernel refuses the program for instructions nobody reaches. */
	jump(a, BPF_JA, 0, 0, everywhere ? PORT : OUT);
}

static void match_ports(struct assembler *a, const struct sy_netem *spec)
{
	put(a, PORT);
	for (int i = 0; i < spec->port_count; i++) {
		jump(a, BPF_JEQ, 8, htons(spec->port[i]), SET);
		jump(a, BPF_JEQ, 9, htons(spec->port[i]), SET);
	}
	if (spec->port_count)
		jump(a, BPF_JA, 0, 0, OUT);
}

static void write_end(struct assembler *a, const struct sy_scope_rule *rule, int rules)
{
	if (rules == 1)
		match_ports(a, rule->spec);
	for (int i = 0; i < rules; i++) {
		put(a, (enum label)(SET + i));
		emit(a, BPF_ALU | BPF_MOV | BPF_K, 1, 0, 0, (int32_t)rule[i].priority);
		if (i < rules - 1)
			jump(a, BPF_JA, 0, 0, STORE);
	}
	put(a, STORE);
	emit(a, BPF_STX | BPF_MEM | BPF_W, 6, 1, offsetof(struct __sk_buff, priority), 0);
	put(a, OUT);
	emit(a, BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1); /* let it go */
	emit(a, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static int resolve(struct assembler *a)
{
	if (a->count > SY_SCOPE_MOST)
		return -1;
	for (int i = 0; i < a->count; i++)
		if (a->label[i])
			a->code[i].off = (int16_t)(a->placement[a->label[i] - 1] - i - 1);
	return a->count;
}

int sy_scope_program(const struct sy_scope_rule *rule, int rules, const struct sy_network *protect,
		     int count, struct bpf_insn *code)
{
	struct assembler a = {.code = code};

	emit(&a, BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0);
	emit(&a, BPF_ALU64 | BPF_MOV | BPF_K, 8, 0, 0, 0);
	emit(&a, BPF_ALU64 | BPF_MOV | BPF_K, 9, 0, 0, 0);
	load(&a, BPF_W, 7, 6, offsetof(struct __sk_buff, protocol));
	jump(&a, BPF_JEQ, 7, htons(ETH_P_IPV6), V6);
	jump(&a, BPF_JNE, 7, htons(ETH_P_IP), OUT);
	read_v4(&a);
	put(&a, WANTED4);
	write_rules(&a, rule, rules, protect, count, AF_INET);
	put(&a, V6);
	read_v6(&a);
	put(&a, WANTED6);
	write_rules(&a, rule, rules, protect, count, AF_INET6);
	write_end(&a, rule, rules);
	return resolve(&a);
}
