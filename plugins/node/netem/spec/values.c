#include "netem/spec/values.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PPB_STEP 10 /* six decimals of a percent */

/* Largest first; the last has factor 1 or is the only one. */
struct unit {
	const char *name;
	int64_t factor; /* a power of ten */
};

static const struct unit times[] = {{"s", 1000000}, {"ms", 1000}, {"us", 1}, {NULL, 0}};
static const struct unit rates[] = {
    {"gbit", 1000000000}, {"mbit", 1000000}, {"kbit", 1000}, {"bit", 1}, {NULL, 0}};
static const struct unit percents[] = {{"%", SY_WHOLE_PPB / 100 / PPB_STEP}, {NULL, 0}};

enum outcome { GOOD, NO_NUMBER, TOO_FINE, TOO_LARGE };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits, perhaps with a point among them: what follows them, or NULL. */
static const char *read_number(const char *text, int64_t *digits, int *decimals, bool *overflow)
{
	bool point = false;

	*digits = 0;
	*decimals = 0;
	*overflow = false;
	if (!is_digit(*text))
		return NULL;
	for (; is_digit(*text) || (*text == '.' && !point && is_digit(text[1])); text++) {
		if (*text == '.') {
			point = true;
			continue;
		}
		*overflow |= __builtin_mul_overflow(*digits, 10, digits) ||
			     __builtin_add_overflow(*digits, *text - '0', digits);
		*decimals += point;
	}
	return text;
}

static enum outcome scale(int64_t digits, int decimals, int64_t factor, int64_t *value)
{
	for (; decimals > 0; decimals--) {
		if (factor % 10 == 0)
			factor /= 10;
		else if (digits % 10 == 0)
			digits /= 10;
		else
			return TOO_FINE;
	}
	return __builtin_mul_overflow(digits, factor, value) ? TOO_LARGE : GOOD;
}

static enum outcome read_quantity(const char *text, const struct unit *units, int64_t *value)
{
	int64_t digits;
	int decimals;
	bool overflow;
	const char *rest = read_number(text, &digits, &decimals, &overflow);

	for (; rest && units->name; units++)
		if (!strcmp(rest, units->name))
			return overflow ? TOO_LARGE : scale(digits, decimals, units->factor, value);
	return NO_NUMBER;
}

int sy_parse_time(const char *text, int64_t max_us, int64_t *us, struct sy_error *err)
{
	enum outcome outcome = read_quantity(text, times, us);
	char most[SY_UNIT_SIZE];

	if (!strcmp(text, "0")) {
		*us = 0;
		return 0;
	}
	if (outcome == NO_NUMBER && *text == '-')
		return sy_fail(err, "a time cannot be negative; expected one such as 50ms");
	if (outcome == NO_NUMBER)
		return sy_fail(err, "expected a time with unit us, ms or s, such as 50ms");
	if (outcome == TOO_FINE)
		return sy_fail(err, "expected a time in whole microseconds, such as 1.5ms");
	if (outcome == TOO_LARGE || *us > max_us)
		return sy_fail(err, "expected a time of at most %s", sy_format_time(max_us, most));
	return 0;
}

int sy_parse_integer_ms(const char *text, int64_t *us, struct sy_error *err)
{
	if (sy_parse_time(text, SY_RTO_MAX_US, us, err) < 0)
		return -1;
	if (!*us || *us % SY_RTO_STEP_US)
		return sy_fail(err, "expected whole milliseconds, at least 1ms, since the kernel "
				    "keeps no less");
	return 0;
}

int sy_parse_rate(const char *text, int64_t *bit_per_s, struct sy_error *err)
{
	enum outcome outcome = read_quantity(text, rates, bit_per_s);

	if (outcome == NO_NUMBER)
		return sy_fail(
		    err, "expected a rate with unit bit, kbit, mbit or gbit, such as 100mbit");
	if (outcome == TOO_LARGE || (outcome == GOOD && *bit_per_s > SY_RATE_MAX_BIT))
		return sy_fail(err, "expected a rate of at most 1000gbit");
	if (outcome == TOO_FINE || *bit_per_s % SY_RATE_STEP_BIT || !*bit_per_s)
		return sy_fail(err,
			       "expected whole bytes a second, at least one: a multiple of 8bit, "
			       "since the kernel counts bytes");
	return 0;
}

int sy_parse_percent(const char *text, int32_t *ppb, struct sy_error *err)
{
	int64_t steps;
	enum outcome outcome = read_quantity(text, percents, &steps);

	if (outcome == TOO_FINE)
		return sy_fail(err, "expected at most six decimals, such as 0.000001%%");
	if (outcome != GOOD || steps > SY_WHOLE_PPB / PPB_STEP)
		return sy_fail(err, "expected a percentage from 0%% to 100%%, such as 0.1%%");
	*ppb = (int32_t)(steps * PPB_STEP);
	return 0;
}

char *sy_cut(char *text, char separator)
{
	char *found = strchr(text, separator);

	if (found)
		*found++ = '\0';
	return found;
}

int sy_parse_count(const char *text, int64_t min, int64_t max, int64_t *count, struct sy_error *err)
{
	int decimals;
	bool overflow;
	const char *rest = read_number(text, count, &decimals, &overflow);

	if (!rest || *rest || decimals || overflow || *count < min || *count > max)
		return sy_fail(err, "expected a whole number from %" PRId64 " to %" PRId64, min,
			       max);
	return 0;
}

static const char *write_quantity(int64_t value, const struct unit *units, char *text)
{
	while (value % units->factor)
		units++;
	(void)snprintf(text, SY_UNIT_SIZE, "%" PRId64 "%s", value / units->factor, units->name);
	return text;
}

const char *sy_format_time(int64_t us, char *text)
{
	return us ? write_quantity(us, times, text) : strcpy(text, "0");
}

const char *sy_format_rate(int64_t bit_per_s, char *text)
{
	return write_quantity(bit_per_s, rates, text);
}

const char *sy_format_percent(int32_t ppb, char *text)
{
	int one_percent = SY_WHOLE_PPB / 100;
	int length = snprintf(text, SY_UNIT_SIZE, "%d.%06d", ppb / one_percent,
			      ppb % one_percent / PPB_STEP);

	while (text[length - 1] == '0')
		length--;
	length -= text[length - 1] == '.';
	(void)strcpy(text + length, "%");
	return text;
}

const char *sy_format_kind(enum sy_kind kind, int64_t value, char *text)
{
	switch (kind) {
	case SY_KIND_TIME:
	case SY_KIND_WHOLE_MS:
		return sy_format_time(value, text);
	case SY_KIND_PERCENT:
		return sy_format_percent((int32_t)value, text);
	case SY_KIND_RATE:
		return sy_format_rate(value, text);
	case SY_KIND_COUNT:
		break;
	}
	(void)snprintf(text, SY_UNIT_SIZE, "%" PRId64, value);
	return text;
}

static int address_bits(const struct sy_network *network)
{
	return network->family == AF_INET ? 32 : 128;
}

/* Set the bits after the prefix to 0: whether any was not. */
static bool clear_host_bits(struct sy_network *network)
{
	bool any = false;

	for (int bit = network->prefix; bit < address_bits(network); bit++) {
		uint8_t mask = (uint8_t)(0x80 >> bit % 8);

		any |= network->address[bit / 8] & mask;
		network->address[bit / 8] &= (uint8_t)~mask;
	}
	return any;
}

/* ::ffff:a.b.c.d is never on the wire: such packets are IPv4. */
static bool is_mapped(const struct sy_network *network)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return network->family == AF_INET6 && network->prefix >= 96 &&
	       !memcmp(network->address, mapped, sizeof(mapped));
}

int sy_parse_network(const char *text, struct sy_network *network, struct sy_error *err)
{
	size_t length = strcspn(text, "/");
	char address[SY_UNIT_SIZE];
	int64_t prefix;

	memset(network, 0, sizeof(*network));
	(void)snprintf(address, sizeof(address), "%.*s", (int)length, text);
	network->family = memchr(text, ':', length) ? AF_INET6 : AF_INET;
	if (length >= sizeof(address) || inet_pton(network->family, address, network->address) != 1)
		return sy_fail(
		    err, "expected an address or a network, such as 10.0.0.0/8 or 2001:db8::1");
	network->prefix = address_bits(network);
	if (text[length] &&
	    (sy_parse_count(text + length + 1, 0, network->prefix, &prefix, err) < 0 ||
	     (text[length + 1] == '0' && text[length + 2])))
		return sy_fail(err, "expected a prefix length from 0 to %d after the /",
			       network->prefix);
	if (text[length])
		network->prefix = (int)prefix;
	if (is_mapped(network))
		return sy_fail(err, "expected the IPv4 address itself: such packets are IPv4");
	if (clear_host_bits(network))
		return sy_fail(err, "bits after the prefix are set; the network is %s",
			       sy_format_network(network, address));
	return 0;
}

const char *sy_format_network(const struct sy_network *network, char *text)
{
	size_t length;

	if (!inet_ntop(network->family, network->address, text, SY_UNIT_SIZE))
		return strcpy(text, "?");
	length = strlen(text);
	if (network->prefix < address_bits(network))
		(void)snprintf(text + length, SY_UNIT_SIZE - length, "/%d", network->prefix);
	return text;
}

bool sy_network_contains(const struct sy_network *outer, const struct sy_network *inner)
{
	struct sy_network cut = *inner;

	if (outer->family != inner->family || outer->prefix > inner->prefix)
		return false;
	cut.prefix = outer->prefix;
	(void)clear_host_bits(&cut);
	return !memcmp(cut.address, outer->address, sizeof(cut.address));
}
