#include "job/request.h"

#include <stdio.h>
#include <string.h>

static bool is_plain(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

int sy_request_add(char *request, size_t size, enum sy_wish which, const char *text,
		   struct sy_error *err)
{
	size_t used = strlen(request);
	int length = snprintf(request + used, size - used, "%s%s=", used ? ":" : "",
			      sy_wish_words[which].name);

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

static int hex(char c)
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
		high = *at == '%' ? hex(at[1]) : -1;
		low = high < 0 ? -1 : hex(at[2]);
		if (low < 0 || high * 16 + low == 0)
			return NULL;
		*text = (char)(high * 16 + low);
		at += 3;
	}
	*text = '\0';
	return at;
}

/* Which wish begins at `at`, which is set behind its '='; SY_WISHES: none. */
static enum sy_wish wish_at(const char **at)
{
	for (int i = 0; i < SY_WISHES; i++) {
		size_t length = strlen(sy_wish_words[i].name);

		if (strncmp(*at, sy_wish_words[i].name, length) == 0 && (*at)[length] == '=') {
			*at += length + 1;
			return (enum sy_wish)i;
		}
	}
	return SY_WISHES;
}

static int faulty(const char *at, struct sy_error *err)
{
	char shown[41];

	(void)snprintf(shown, sizeof(shown), "%s", at);
	for (char *c = shown; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return sy_fail(err,
		       "the request '%s': expected KEY=VALUE:KEY=VALUE…, KEY one of tag, "
		       "sample-rate, netem, cache, of VALUE every byte but A-Z a-z 0-9 . "
		       "_ - as %%XX: say it with steelyard-node job encode",
		       shown);
}

int sy_request_read(const char *request,
		    int (*take)(void *context, enum sy_wish which, const char *text,
				struct sy_error *err),
		    void *context, struct sy_error *err)
{
	char text[SY_REQUEST_MAX];

	if (strlen(request) >= sizeof(text))
		return sy_fail(err, "the request is longer than %d bytes", SY_REQUEST_MAX - 1);
	for (const char *at = request; *at;) {
		const char *part = at;
		enum sy_wish which = wish_at(&at);

		at = which == SY_WISHES ? NULL : decode(at, text);
		if (!at || (*at == ':' && !at[1]))
			return faulty(part, err);
		if (take(context, which, text, err) < 0)
			return -1;
		at += *at == ':';
	}
	return 0;
}
