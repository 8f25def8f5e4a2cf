/* The content of test files: a function of file and offset, so that nothing is stored to verify it.
 * Part of fstest.c. */
#ifndef FSTEST_CONTENT_H
#define FSTEST_CONTENT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* splitmix64 (Steele, Lea, Flood 2014): noise that no file system can compress. */
static uint64_t noise(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static void fill(char *buffer, size_t bytes, uint64_t file, uint64_t offset)
{
	for (size_t i = 0; i < bytes;) {
		uint64_t at = offset + i, word = noise((file << 44) ^ (at / 8));
		size_t skip = at % 8, n = 8 - skip < bytes - i ? 8 - skip : bytes - i;

		memcpy(buffer + i, (const char *)&word + skip, n);
		i += n;
	}
}

#endif
