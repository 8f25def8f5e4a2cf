#include "job/job_options.h"

#include "base/samples.h"
#include "netem/spec/values.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SEPARATOR '\x1f' /* ASCII "unit separator": not printable, so in no tag */

/* Not <ctype.h>: what is a letter must not depend on the user's locale. */
static bool is_letter(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_key_char(char c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

static size_t key_length(const char *text)
{
	size_t length = 0;

	if (!is_letter(text[0]))
		return 0;
	while (is_key_char(text[length]))
		length++;
	return length;
}

static int fail_tag(struct sy_error *err, const char *found)
{
	return sy_fail(err,
		       "expected KEY=VALUE, KEY a letter and up to %d more of A-Z a-z 0-9 _ . -, "
		       "VALUE 1 to %d printable ASCII characters; found %s",
		       SY_TAG_KEY_MAX - 1, SY_TAG_VALUE_MAX, found);
}

static int fail_too_long(struct sy_error *err, const char *which, size_t length)
{
	char found[48];

	(void)snprintf(found, sizeof(found), "a %s of %zu bytes", which, length);
	return fail_tag(err, found);
}

int sy_tag_check(const char *text, struct sy_error *err)
{
	size_t key = key_length(text);
	const char *value = text + key + 1;

	if (!strchr(text, '='))
		return fail_tag(err, "no '='");
	if (key == 0 || text[key] != '=')
		return fail_tag(err, "another character in KEY");
	if (key > SY_TAG_KEY_MAX)
		return fail_too_long(err, "KEY", key);
	if (*value == '\0')
		return fail_tag(err, "no VALUE");
	if (strlen(value) > SY_TAG_VALUE_MAX)
		return fail_too_long(err, "VALUE", strlen(value));
	for (const char *c = value; *c; c++) {
		if (*c < ' ' || *c > '~')
			return fail_tag(err, "another character in VALUE");
	}
	return 0;
}

int sy_tags_add(struct sy_tags *tags, const char *text, struct sy_error *err)
{
	size_t length, at;

	if (sy_tag_check(text, err) < 0)
		return -1;
	length = key_length(text) + 1;
	for (at = 0; at < tags->count; at++) {
		if (strncmp(tags->items[at], text, length) == 0)
			break;
	}
	if (at == SY_TAGS_MAX)
		return sy_fail(err, "expected at most %d tags; found one more", SY_TAGS_MAX);
	(void)snprintf(tags->items[at], sizeof(tags->items[at]), "%s", text);
	if (at == tags->count)
		tags->count++;
	return 0;
}

int sy_tags_join(const struct sy_tags *tags, char *text, size_t size)
{
	size_t used = 0;

	if (size == 0)
		return -1;
	text[0] = '\0';
	for (size_t i = 0; i < tags->count; i++) {
		size_t length = strlen(tags->items[i]);

		if (used + length + 2 > size)
			return -1;
		if (i > 0)
			text[used++] = SEPARATOR;
		memcpy(text + used, tags->items[i], length + 1);
		used += length;
	}
	return (int)used;
}

void sy_tags_add_joined(struct sy_tags *tags, const char *text)
{
	char item[sizeof(tags->items[0])];

	while (*text) {
		const char *end = strchrnul(text, SEPARATOR);
		size_t length = (size_t)(end - text);

		if (length < sizeof(item)) {
			memcpy(item, text, length);
			item[length] = '\0';
			(void)sy_tags_add(tags, item, NULL);
		}
		text = *end ? end + 1 : end;
	}
}

#define SHOWN_MAX 80 /* how much of a faulty value a message repeats */

const struct sy_user_option_fact sy_user_option_facts[SY_USER_OPTIONS] = {
    {"tag", "KEY=VALUE", "note a condition with the job's record; repeatable", false},
    {"sample-rate", "HZ", "samples of energy, CPU, I/O and network a second; 0: totals only",
     false},
    {"netem", "SPEC", "network conditions, say delay=50ms,loss=0.1%; none: as they are", true},
    {"cache", "cold|warm|cold:cvmfs=MB",
     "cold: drop the nodes' page caches before the job, and limit CVMFS' own", true},
};

static int parse_netem(struct sy_user_options *options, const char *text, struct sy_error *err)
{
	options->has_netem = false;
	if (sy_netem_parse(text, &options->netem, err) < 0)
		return -1;
	options->has_netem = true;
	return 0;
}

static int parse_cache(struct sy_user_options *options, const char *text, struct sy_error *err)
{
	static const char limited[] = "cold:cvmfs=";
	int64_t limit_mb = 0;

	if (strncmp(text, limited, strlen(limited)) == 0) {
		if (sy_parse_count(text + strlen(limited), 1, SY_CVMFS_MB_MAX, &limit_mb, err) < 0)
			return -1;
	} else if (strcmp(text, "cold") != 0 && strcmp(text, "warm") != 0) {
		return sy_fail(err, "expected cold, warm or cold:cvmfs=MB");
	}
	options->cache = text[0] == 'c' ? SY_CACHE_COLD : SY_CACHE_WARM;
	options->cvmfs_mb = limit_mb;
	return 0;
}

int sy_user_option_parse(struct sy_user_options *options, enum sy_user_option which,
			 const char *text, double max_rate_hz, struct sy_error *err)
{
	switch (which) {
	case SY_USER_OPTION_TAG:
		return sy_tags_add(&options->tags, text, err);
	case SY_USER_OPTION_RATE:
		if (sy_rate_parse(text, max_rate_hz, &options->rate_hz, err) < 0)
			return -1;
		options->has_rate = true;
		return 0;
	case SY_USER_OPTION_NETEM:
		return parse_netem(options, text, err);
	case SY_USER_OPTION_CACHE:
		return parse_cache(options, text, err);
	default:
		return sy_fail(err, "unknown");
	}
}

void sy_tag_cache_option(struct sy_user_options *options)
{
	char limit[64];

	if (options->cache == SY_CACHE_AS_IT_IS)
		return;
	(void)snprintf(limit, sizeof(limit), "cache=cold:cvmfs=%" PRId64, options->cvmfs_mb);
	(void)sy_tags_add(&options->tags,
			  options->cvmfs_mb		    ? limit
			  : options->cache == SY_CACHE_COLD ? "cache=cold"
							    : "cache=warm",
			  NULL);
}

bool sy_user_options_change_node(const struct sy_user_options *options)
{
	return (options->has_netem && !options->netem.none) || options->cache == SY_CACHE_COLD;
}

static void replace_unprintable(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

void sy_format_option_fault(char *to, size_t size, enum sy_user_option which, const char *text,
			    const struct sy_error *err)
{
	const struct sy_user_option_fact *word = &sy_user_option_facts[which];
	char printable[SHOWN_MAX + 4];

	(void)snprintf(printable, sizeof(printable), "%.*s%s", SHOWN_MAX, text,
		       strlen(text) > SHOWN_MAX ? "..." : "");
	replace_unprintable(printable);
	(void)snprintf(to, size, "--%s=%s: %.*s", word->name, printable, (int)size - SHOWN_MAX - 32,
		       err->text);
}

static bool is_plain(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

int sy_request_add(char *request, size_t size, enum sy_user_option which, const char *text,
		   struct sy_error *err)
{
	size_t used = strlen(request);
	int length = snprintf(request + used, size - used, "%s%s=", used ? ":" : "",
			      sy_user_option_facts[which].name);

	used += (size_t)length;
	for (; *text && used + 4 < size; text++) {
		if (is_plain(*text))
			length = snprintf(request + used, size - used, "%c", *text);
		else
			length =
			    snprintf(request + used, size - used, "%%%02X", (unsigned char)*text);
		used += (size_t)length;
	}
	if (*text)
		return sy_fail(err, "the request is longer than %zu bytes: fewer tags", size);
	return 0;
}

static int parse_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A value that ends at ':' or at the end, into `text`: where it ended, or NULL. */
static const char *decode(const char *at, char *text)
{
	for (; *at && *at != ':'; text++) {
		int high, low;

		if (is_plain(*at)) {
			*text = *at++;
			continue;
		}
		high = *at == '%' ? parse_hex(at[1]) : -1;
		low = high < 0 ? -1 : parse_hex(at[2]);
		if (low < 0 || high * 16 + low == 0)
			return NULL;
		*text = (char)(high * 16 + low);
		at += 3;
	}
	*text = '\0';
	return at;
}

/* The option that begins at `at`, which is then set behind its '='; SY_USER_OPTIONS: none. */
static enum sy_user_option find_option(const char **at)
{
	for (int i = 0; i < SY_USER_OPTIONS; i++) {
		size_t length = strlen(sy_user_option_facts[i].name);

		if (strncmp(*at, sy_user_option_facts[i].name, length) == 0 &&
		    (*at)[length] == '=') {
			*at += length + 1;
			return (enum sy_user_option)i;
		}
	}
	return SY_USER_OPTIONS;
}

static int fail_request(const char *at, struct sy_error *err)
{
	char printable[41];

	(void)snprintf(printable, sizeof(printable), "%s", at);
	replace_unprintable(printable);
	return sy_fail(err,
		       "the request '%s': expected KEY=VALUE:KEY=VALUE…, KEY one of tag, "
		       "sample-rate, netem, cache, of VALUE every byte but A-Z a-z 0-9 . "
		       "_ - as %%XX: say it with steelyard-node job encode",
		       printable);
}

int sy_request_read(const char *request,
		    int (*accept)(void *context, enum sy_user_option which, const char *text,
				  struct sy_error *err),
		    void *context, struct sy_error *err)
{
	char text[SY_REQUEST_MAX];

	if (strlen(request) >= sizeof(text))
		return sy_fail(err, "the request is longer than %d bytes", SY_REQUEST_MAX - 1);
	for (const char *at = request; *at;) {
		const char *item = at;
		enum sy_user_option which = find_option(&at);

		at = which == SY_USER_OPTIONS ? NULL : decode(at, text);
		if (!at || (*at == ':' && !at[1]))
			return fail_request(item, err);
		if (accept(context, which, text, err) < 0)
			return -1;
		at += *at == ':';
	}
	return 0;
}

static int check_option(const struct sy_policy *policy, const struct sy_requester *requester,
			enum sy_user_option which, const struct sy_user_options *options,
			struct sy_error *err)
{
	switch (which) {
	case SY_USER_OPTION_NETEM:
		return sy_policy_allows_netem(policy, &options->netem, requester, err);
	case SY_USER_OPTION_CACHE:
		return sy_policy_allows_cache(policy, requester, err);
	default:
		return 0;
	}
}

static bool needs_no_permission(enum sy_user_option which, const struct sy_user_options *options)
{
	return !sy_user_option_facts[which].condition ||
	       (which == SY_USER_OPTION_NETEM && options->netem.none) ||
	       (which == SY_USER_OPTION_CACHE && options->cache != SY_CACHE_COLD);
}

int sy_check_policy(const char *policy_path, const struct sy_requester *requester,
		    enum sy_user_option which, const struct sy_user_options *options,
		    struct sy_error *err)
{
	struct sy_policy *policy;
	int rc;

	if (needs_no_permission(which, options) || access(policy_path, R_OK) != 0)
		return 0;
	policy = sy_policy_read(policy_path, true, err);
	if (!policy)
		return -1;
	rc = check_option(policy, requester, which, options, err);
	sy_policy_free(policy);
	return rc;
}
