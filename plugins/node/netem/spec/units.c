#include "netem/spec/units.h"

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
