#include "base/fnv_hash.h"

uint64_t sy_hash(uint64_t hash, const void *bytes, size_t size)
{
	for (const unsigned char *at = bytes; size > 0; size--)
		hash = (hash ^ *at++) * 0x100000001b3ULL;
	return hash;
}
