/* What file system a folder is on, as JSON. Part of fstest.c. */
#ifndef FSTEST_MOUNT_H
#define FSTEST_MOUNT_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* How many bytes the UTF-8 character at `s` has; 0: it is none (RFC 3629). */
static int utf8_length(const unsigned char *s)
{
	unsigned char low = 0x80, high = 0xbf;
	int n = *s < 0x80 ? 1 : *s < 0xc2 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf5 ? 4 : 0;

	if (*s == 0xe0 || *s == 0xf0)
		low = *s == 0xe0 ? 0xa0 : 0x90; /* shorter forms exist */
	if (*s == 0xed || *s == 0xf4)
		high = *s == 0xed ? 0x9f : 0x8f; /* surrogates; beyond U+10FFFF */
	for (int i = 1; i < n; i++, low = 0x80, high = 0xbf)
		if (s[i] < low || s[i] > high)
			return 0;
	return n;
}

/* A JSON string; bytes that are no UTF-8 become U+FFFD. */
static void print_json(FILE *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	fputc('"', out);
	while (*s) {
		int n = utf8_length(s);

		if (n == 0)
			fputs("\\ufffd", out);
		else if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if (*s < 0x20)
			fprintf(out, "\\u%04x", *s);
		else
			fwrite(s, 1, (size_t)n, out);
		s += n ? n : 1;
	}
	fputc('"', out);
}

/* /proc/self/mountinfo writes blank, tab, newline, backslash as 3 octal digits. In place. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		if (from[0] == '\\' && from[1] && from[2] && from[3]) {
			*to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

struct mount {
	char *point, *type, *source;
};

/* One line of mountinfo: `id parent major:minor root point options [fields…] - type source …`. */
static int parse_mount(char *line, struct mount *m)
{
	char *rest = strstr(line, " - "), *save = NULL;

	if (!rest)
		return -1;
	*rest = '\0';
	strtok_r(line, " ", &save);
	for (int i = 0; i < 3; i++)
		strtok_r(NULL, " ", &save);
	m->point = strtok_r(NULL, " ", &save);
	m->type = strtok_r(rest + 3, " ", &save);
	m->source = strtok_r(NULL, " ", &save);
	return m->point && m->type && m->source ? 0 : -1;
}

static void print_mount(FILE *out, struct mount *m)
{
	unescape(m->point);
	unescape(m->source);
	fputs("{\"mount_point\":", out);
	print_json(out, m->point);
	fputs(",\"type\":", out);
	print_json(out, m->type);
	fputs(",\"source\":", out);
	print_json(out, m->source);
	fputc('}', out);
}

/* The mount by its id, or null. Ids come from statx(2) since Linux 5.8. */
static void print_mount_by_id(FILE *out, uint64_t id)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t room = 0;
	bool found = false;
	struct mount m;

	while (file && !found && getline(&line, &room, file) > 0)
		found = strtoull(line, NULL, 10) == id && parse_mount(line, &m) == 0;
	if (found)
		print_mount(out, &m);
	else
		fputs("null", out);
	free(line);
	if (file)
		fclose(file);
}

/* `"filesystem":{…}`: the magic number of statfs(2), and the mount where mountinfo has it. */
static void print_filesystem(FILE *out, int fd)
{
	struct statfs fs;
	struct statx stx;

	fputs("\"filesystem\":{\"magic\":", out);
	if (fstatfs(fd, &fs) == 0)
		fprintf(out, "\"0x%lx\"", (unsigned long)fs.f_type);
	else
		fputs("null", out);
	fputs(",\"mount\":", out);
	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &stx) == 0 && (stx.stx_mask & STATX_MNT_ID))
		print_mount_by_id(out, stx.stx_mnt_id);
	else
		fputs("null", out);
	fputc('}', out);
}

#endif
