#include "netem/kernel/route.h"

#include "base/exec.h"
#include "base/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Whether `word` stands in the line as a word of its own. */
static const char *find_word(const char *line, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = line; (at = strstr(at, word)); at += length)
		if ((at == line || at[-1] == ' ') && (!at[length] || at[length] == ' '))
			return at;
	return NULL;
}

static bool is_over(const char *line, const char *device)
{
	const char *at = find_word(line, "dev");
	size_t length = strlen(device);

	return at && !strncmp(at + 4, device, length) && (!at[4 + length] || at[4 + length] == ' ');
}

static int add_route(json_t *routes, const char *family, const char *line, struct sy_error *err)
{
	if (find_word(line, "expires") || find_word(line, "linkdown") || find_word(line, "dead"))
		return sy_fail(err, "rto_min: the route '%.200s' cannot be put back as it is",
			       line);
	return json_array_append_new(routes,
				     json_pack("{s:s, s:s}", "family", family, "text", line));
}

static int read_family(const char *family, const char *device, json_t *routes, struct sy_error *err)
{
	const char *argv[] = {"ip", family, "route", "show", "table", "main", NULL};
	cleanup_free char *text = sy_run_text(argv, NULL, err);
	char *save = NULL;

	if (!text)
		return -1;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		size_t length = strlen(line);

		while (length && line[length - 1] == ' ')
			line[--length] = '\0';
		if (is_over(line, device) && add_route(routes, family, line, err) < 0)
			return -1;
	}
	return 0;
}

json_t *sy_routes_of(const char *device, struct sy_error *err)
{
	json_t *routes = json_array();

	if (read_family("-4", device, routes, err) == 0 &&
	    read_family("-6", device, routes, err) == 0)
		return routes;
	json_decref(routes);
	return NULL;
}

/* As ip takes it: it prints "rto_min lock 5ms" but reads "rto_min 5ms". `without`: leave it out. */
static void write_route(FILE *out, const char *text, bool without)
{
	const char *at = find_word(text, "rto_min");
	const char *after;

	if (!at) {
		(void)fprintf(out, "route change %s", text);
		return;
	}
	after = at + strlen("rto_min ");
	after += strncmp(after, "lock ", 5) ? 0 : 5;
	(void)fprintf(out, "route change %.*s", (int)(at - text), text);
	if (without)
		(void)fprintf(out, "%s", after + strcspn(after, " "));
	else
		(void)fprintf(out, "rto_min %s", after);
}

static int change(const json_t *routes, const char *family, int64_t rto_min_us,
		  struct sy_error *err)
{
	/* A route that went away meanwhile does not keep the others from coming back. */
	const char *argv[] = {"ip", family, rto_min_us ? family : "-force", "-batch", "-", NULL};
	cleanup_free char *lines = NULL, *said = NULL;
	size_t size = 0, i;
	FILE *out = open_memstream(&lines, &size);
	json_t *route;

	if (!out)
		return sy_fail(err, "out of memory");
	json_array_foreach((json_t *)routes, i, route)
	{
		const char *whose = json_string_value(json_object_get(route, "family"));
		const char *text = json_string_value(json_object_get(route, "text"));

		if (!whose || !text || strcmp(whose, family))
			continue;
		write_route(out, text, rto_min_us > 0);
		if (rto_min_us > 0)
			(void)fprintf(out, " rto_min %" PRId64 "ms", rto_min_us / 1000);
		(void)fputc('\n', out);
	}
	(void)fclose(out);
	if (!size)
		return 0;
	said = sy_run_text(argv, lines, err);
	return said ? 0 : -1;
}

int sy_routes_set(const json_t *routes, int64_t rto_min_us, struct sy_error *err)
{
	return change(routes, "-4", rto_min_us, err) < 0 ? -1
							 : change(routes, "-6", rto_min_us, err);
}

bool sy_routes_restore(const json_t *routes)
{
	bool four = change(routes, "-4", 0, NULL) == 0;

	return change(routes, "-6", 0, NULL) == 0 && four;
}
