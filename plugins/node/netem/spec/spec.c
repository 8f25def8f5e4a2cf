#include "netem/spec/spec.h"

#include "netem/spec/compound_values.h"
#include "netem/spec/values.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>

#define LETTERS		 "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define SHOWN_CHARACTERS 64 /* of a wrong part in an error */
#define SHOWN_SIZE	 (SHOWN_CHARACTERS * 4 + 4)

_Static_assert(SY_DEVICE_SIZE == IFNAMSIZ, "a device's name fits");

const char *const sy_direction_names[] = {"egress", "ingress", "both", NULL};

static int find_word(const char *const *words, const char *word)
{
	for (int i = 0; words[i]; i++)
		if (!strcmp(words[i], word))
			return i;
	return -1;
}

/* A file's name below a folder of root's: no `.`, no `/`. */
static int parse_file_word(const char *name, const char *what, char *word, struct sy_error *err)
{
	size_t length = strlen(name), good = strspn(name, LETTERS "0123456789_-");

	if (!length || length >= SY_TABLE_SIZE || good != length || strchr("_-", *name))
		return sy_fail(err,
			       "expected the name of %s: at most %d letters, digits, '_' or '-'",
			       what, SY_TABLE_SIZE - 1);
	(void)snprintf(word, SY_TABLE_SIZE, "%s", name);
	return 0;
}

static int parse_trace(char *value, struct sy_netem *spec, struct sy_error *err)
{
	const char *how = sy_cut(value, ':');

	spec->has_trace = true;
	spec->trace_repeats = how != NULL;
	if (how && strcmp(how, "repeat") != 0)
		return sy_fail(err, "expected trace=NAME, which is held at its end, or "
				    "trace=NAME:repeat");
	return parse_file_word(value, "a trace, such as trace=wan", spec->trace, err);
}

static int parse_sites(char *value, struct sy_netem *spec, struct sy_error *err)
{
	spec->has_sites = true;
	return parse_file_word(value, "a file of sites, such as sites=wan", spec->sites, err);
}

static int parse_distribution(char *word, struct sy_netem *spec, struct sy_error *err)
{
	char *table = sy_cut(word, ':');
	int found = find_word(sy_distribution_names, word);

	if (table ? strcmp(word, "table") != 0 : found < 0)
		return sy_fail(err, "expected uniform, normal, pareto, paretonormal or table:NAME "
				    "after the /");
	if (!spec->jitter_us)
		return sy_fail(err, "a distribution needs a jitter, such as delay=50ms~5ms/%s",
			       word);
	if (table)
		return spec->distribution = SY_TABLE,
		       parse_file_word(table, "a delay table, such as table:wan", spec->table, err);
	spec->distribution = (enum sy_distribution)found;
	return 0;
}

static int parse_delay(char *value, struct sy_netem *spec, struct sy_error *err)
{
	char *distribution = sy_cut(value, '/'), *jitter = sy_cut(value, '~');

	spec->has_delay = true;
	if (sy_parse_time(value, SY_DELAY_MAX_US, &spec->delay_us, err) < 0)
		return -1;
	if (jitter && sy_parse_time(jitter, SY_JITTER_MAX_US, &spec->jitter_us, err) < 0)
		return -1;
	if (spec->jitter_us > spec->delay_us)
		return sy_fail(err, "expected a jitter of at most the delay: no packet arrives "
				    "before it was sent, and the mean would be another");
	return distribution ? parse_distribution(distribution, spec, err) : 0;
}

static int parse_loss(char *value, struct sy_netem *spec, struct sy_error *err)
{
	char *model = sy_cut(value, ':');

	spec->has_gemodel = model && !strcmp(value, "gemodel");
	spec->has_state = model && !strcmp(value, "state");
	spec->has_loss = !spec->has_gemodel && !spec->has_state;
	if (spec->has_gemodel)
		return sy_parse_gemodel(model, &spec->gemodel, err);
	if (spec->has_state)
		return sy_parse_loss_state(model, &spec->state, err);
	if (model || !strcmp(value, "gemodel") || !strcmp(value, "state"))
		return sy_fail(err, "expected loss=0.1%%, loss=gemodel:p:r:1-h:1-k, such as "
				    "loss=gemodel:1%%:10%%, or loss=state:p13:p31:p32:p23:p14");
	return sy_parse_percent(value, &spec->loss_ppb, err);
}

static int parse_ecn(char *value, struct sy_netem *spec, struct sy_error *err)
{
	spec->has_ecn = !strcmp(value, "yes");
	return spec->has_ecn ? 0 : sy_fail(err, "expected yes; without it, leave ecn out");
}

static int parse_rate(char *value, struct sy_netem *spec, struct sy_error *err)
{
	char *overhead = sy_cut(value, ':');

	spec->has_rate = true;
	spec->has_overhead = overhead != NULL;
	if (sy_parse_rate(value, &spec->rate_bit_per_s, err) < 0)
		return -1;
	return overhead ? sy_parse_overhead(overhead, &spec->overhead, err) : 0;
}

static int parse_slot(char *value, struct sy_netem *spec, struct sy_error *err)
{
	spec->has_slot = true;
	return sy_parse_slot(value, &spec->slot, err);
}

static int parse_seed(char *value, struct sy_netem *spec, struct sy_error *err)
{
	spec->has_seed = true;
	return sy_parse_count(value, 0, INT64_MAX, &spec->seed, err);
}

static int parse_to(char *value, struct sy_netem *spec, struct sy_error *err)
{
	struct sy_network network;

	if (sy_parse_network(value, &network, err) < 0)
		return -1;
	for (int i = 0; i < spec->to_count; i++)
		if (!memcmp(&spec->to[i], &network, sizeof(network)))
			return sy_fail(err, "given twice");
	if (spec->to_count == SY_NETEM_TARGETS)
		return sy_fail(err, "expected at most %d of to=", SY_NETEM_TARGETS);
	spec->to[spec->to_count++] = network;
	return 0;
}

static int parse_port(char *value, struct sy_netem *spec, struct sy_error *err)
{
	int64_t port;

	if (sy_parse_count(value, 1, UINT16_MAX, &port, err) < 0)
		return -1;
	for (int i = 0; i < spec->port_count; i++)
		if (spec->port[i] == port)
			return sy_fail(err, "given twice");
	if (spec->port_count == SY_NETEM_TARGETS)
		return sy_fail(err, "expected at most %d of port=", SY_NETEM_TARGETS);
	spec->port[spec->port_count++] = (uint16_t)port;
	return 0;
}

/* Stricter than the kernel's dev_valid_name(), so that no name is taken for an option or a path. */
static int parse_device(char *value, struct sy_netem *spec, struct sy_error *err)
{
	size_t length = strlen(value), good = strspn(value, LETTERS "0123456789._-");

	if (!length || length >= SY_DEVICE_SIZE || good != length || strchr("._-", *value))
		return sy_fail(err,
			       "expected a network device such as eth0: at most %d letters, "
			       "digits, '.', '_' or '-'",
			       SY_DEVICE_SIZE - 1);
	(void)snprintf(spec->device, sizeof(spec->device), "%s", value);
	return 0;
}

static int parse_direction(char *value, struct sy_netem *spec, struct sy_error *err)
{
	int found = find_word(sy_direction_names, value);

	if (found < 0)
		return sy_fail(err, "expected egress, ingress or both");
	spec->direction = (enum sy_direction)found;
	return 0;
}

/* Values that stand alone behind their key, by their kind. */
#define PARSE_TIME(value, us, err)     sy_parse_time(value, SY_DELAY_MAX_US, us, err)
#define PARSE_WHOLE_MS(value, us, err) sy_parse_integer_ms(value, us, err)
#define PARSE_PERCENT(value, ppb, err) sy_parse_percent(value, ppb, err)
/* struct tc_netem_qopt has 32 bits for it; with 0 every packet would be dropped. */
#define PARSE_COUNT(value, packets, err) sy_parse_count(value, 1, UINT32_MAX, packets, err)

#define DEFINE_OWN(id, kind)
#define DEFINE_PLAIN(id, kind)                                                                     \
	static int parse_##id(char *value, struct sy_netem *spec, struct sy_error *err)            \
	{                                                                                          \
		spec->has_##id = true;                                                             \
		return PARSE_##kind(value, &spec->SY_FIELD_##kind(id), err);                       \
	}
#define KEY(id, key, role, kind, grammar, ...) DEFINE_##grammar(id, kind)
#include "facts/netem_keys.def"

enum role { FLAG, PLACE, PLACES };

/* The keys of a specification, in the order of the canonical text. */
static const struct field {
	const char *name;
	/* Read a value, which may be cut up, into `spec`: 0, or -1 with what was expected. */
	int (*parse)(char *value, struct sy_netem *spec, struct sy_error *err);
	const char *example;
	enum role role; /* PLACES: may be there more than once */
} fields[] = {
#define KEY(id, key, role, kind, grammar, json, example, ...) {key, parse_##id, example, role},
#include "facts/netem_keys.def"
    {NULL, NULL, NULL, FLAG},
};

/* A byte as an error shows it: its length. */
static size_t format_byte(unsigned char byte, char *to, size_t size)
{
	bool is_printable = byte >= ' ' && byte <= '~';

	return (size_t)(is_printable ? snprintf(to, size, "%c", byte)
				     : snprintf(to, size, "\\x%02x", byte));
}

/* A part as an error shows it; long ones are cut. */
static const char *copy_printable(const char *field, char *printable)
{
	size_t used = 0, length = strcspn(field, ",");

	for (size_t i = 0; i < length && i < SHOWN_CHARACTERS; i++)
		used += format_byte((unsigned char)field[i], printable + used, SHOWN_SIZE - used);
	(void)snprintf(printable + used, SHOWN_SIZE - used, "%s",
		       length > SHOWN_CHARACTERS ? "..." : "");
	return printable;
}

static int fail_unknown(const char *printable, struct sy_error *err)
{
	char known[256];
	size_t used = 0;

	for (const struct field *field = fields; field->name; field++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s, ", field->name);
	return sy_fail(err, "netem: %s: unknown part; known are %sor none alone", printable, known);
}

static const struct field *find_field(const char *name, size_t length)
{
	for (const struct field *field = fields; field->name; field++)
		if (strlen(field->name) == length && !memcmp(field->name, name, length))
			return field;
	return NULL;
}

/* Errors of a field that do not depend on its value. */
static int check_field(const char *text, const struct field *field, unsigned int given,
		       const char *printable, struct sy_error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-=~/:%";
	size_t good = strspn(text, allowed);
	char wrong[8];

	if (!*text)
		return sy_fail(err, "netem: an empty part: expected one such as delay=50ms between "
				    "commas, and no comma at either end");
	(void)format_byte((unsigned char)text[good], wrong, sizeof(wrong));
	if (text[good])
		return sy_fail(err, "netem: %s: character '%s' has no place in a specification",
			       printable, wrong);
	if (!strcmp(text, "none"))
		return sy_fail(err, "netem: none: stands alone, expected no other part beside it");
	if (!field)
		return fail_unknown(printable, err);
	if (!strchr(text, '='))
		return sy_fail(err, "netem: %s: expected a value, such as %s", printable,
			       field->example);
	if (given & 1U << (field - fields) && field->role != PLACES)
		return sy_fail(err, "netem: %s: %s was given already, expected it once", printable,
			       field->name);
	return 0;
}

static int parse_field(char *text, unsigned int *given, struct sy_netem *spec, struct sy_error *err)
{
	size_t length = strcspn(text, "=");
	const struct field *field = find_field(text, length);
	char printable[SHOWN_SIZE];
	struct sy_error reason;

	(void)copy_printable(text, printable);
	if (check_field(text, field, *given, printable, err) < 0)
		return -1;
	*given |= 1U << (field - fields);
	if (field->parse(text + length + 1, spec, &reason) < 0)
		return sy_fail(err, "netem: %s: %s", printable, reason.text);
	return 0;
}

/* Rules about several fields. */
static int check_spec(const char *text, const struct sy_netem *spec, struct sy_error *err)
{
	bool shapes = false;

#define VALUE(id, key, role, ...) shapes |= SY_ASKED_##role(spec, id);
#include "facts/netem_keys.def"

	/* tc-netem(8): "to use reordering, a delay option must be specified". */
	if (spec->reorder_ppb && !spec->delay_us)
		return sy_fail(err, "netem: reorder: needs a delay that the others wait, such as "
				    "delay=10ms,reorder=1%%");
	if (spec->has_ecn && !spec->has_loss && !spec->has_gemodel && !spec->has_state)
		return sy_fail(err, "netem: ecn: needs a loss whose packets are marked, such as "
				    "loss=1%%,ecn=yes");
	if (spec->has_trace && (spec->has_delay || spec->has_loss || spec->has_gemodel ||
				spec->has_state || spec->has_rate || spec->has_seed))
		return sy_fail(err, "netem: trace: says itself what delay, loss and rate are, and "
				    "takes no seed: leave these out");
	if (spec->has_sites && strchr(text, ','))
		return sy_fail(err, "netem: sites: says itself what each link has: leave the other "
				    "parts out");
	if (!shapes) {
		char printable[SHOWN_SIZE];

		return sy_fail(err,
			       "netem: %s: says where but not what; expected a part such as "
			       "delay=50ms too",
			       copy_printable(text, printable));
	}
	return 0;
}

static int parse_fields(const char *text, struct sy_netem *spec, struct sy_error *err)
{
	char copy[SY_NETEM_SIZE], *next = copy;
	unsigned int given = 0;

	(void)snprintf(copy, sizeof(copy), "%s", text);
	while (next) {
		char *field = strsep(&next, ",");

		if (parse_field(field, &given, spec, err) < 0)
			return -1;
	}
	return check_spec(text, spec, err);
}

int sy_netem_parse(const char *text, struct sy_netem *spec, struct sy_error *err)
{
	size_t length = strlen(text);

	memset(spec, 0, sizeof(*spec));
	if (length >= SY_NETEM_SIZE)
		return sy_fail(err, "netem: a specification of %zu characters: expected at most %d",
			       length, SY_NETEM_SIZE - 1);
	if (!length)
		return sy_fail(err, "netem: an empty specification: expected parts such as "
				    "delay=50ms,loss=0.1%%, or none");
	spec->none = !strcmp(text, "none");
	if (spec->none || parse_fields(text, spec, err) == 0)
		return 0;
	memset(spec, 0, sizeof(*spec));
	return -1;
}

enum packets { ANY, ONE_BY_ONE };
enum needs { NOTHING, EITHER, TBF, NETEM };

/* A loss of 0 % too: the baseline of a study of losses has its offloads off as well. */
bool sy_netem_needs_single_packets(const struct sy_netem *spec)
{
	bool found = false;

#define VALUE(id, key, role, kind, grammar, json, example, packets, ...)                           \
	found |= packets == ONE_BY_ONE && SY_ASKED_##role(spec, id);
#include "facts/netem_keys.def"
	return found;
}

bool sy_netem_needs_netem(const struct sy_netem *spec)
{
	enum needs most = NOTHING;

#define VALUE(id, key, role, kind, grammar, json, example, packets, needs, ...)                    \
	most = SY_ASKED_##role(spec, id) && needs > most ? needs : most;
#include "facts/netem_keys.def"
	return most != TBF;
}
