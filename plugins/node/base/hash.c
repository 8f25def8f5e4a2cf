#include "base/hash.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BLOCK  64
#define ROUNDS 64

/* FIPS 180-4, 4.2.2: of the cube roots of the first 64 primes. */
static const uint32_t constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t word, unsigned bits)
{
	return word >> bits | word << (32 - bits);
}

static uint32_t big_endian(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
	       bytes[3];
}

/* 6.2.2, step 1. */
static void schedule(const uint8_t *block, uint32_t word[ROUNDS])
{
	for (int i = 0; i < 16; i++)
		word[i] = big_endian(block + 4 * i);
	for (int i = 16; i < ROUNDS; i++) {
		uint32_t a = word[i - 15], b = word[i - 2];

		word[i] = (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10) + word[i - 7] +
			  (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + word[i - 16];
	}
}

/* 6.2.2, steps 2 to 4; v: a to h. */
static void add_block(uint32_t state[8], const uint8_t *block)
{
	uint32_t word[ROUNDS], v[8];

	schedule(block, word);
	memcpy(v, state, sizeof(v));
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t one = v[7] + (rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25)) +
			       ((v[4] & v[5]) ^ (~v[4] & v[6])) + constants[i] + word[i];
		uint32_t two = (rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22)) +
			       ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof(*v));
		v[4] += one;
		v[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		state[i] += v[i];
}

/* 5.1.1: a 1, zeros, and the length in bits. */
static void add_end(uint32_t state[8], const uint8_t *rest, size_t length)
{
	uint8_t last[2 * BLOCK] = {0};
	size_t used = length % BLOCK, size = used < BLOCK - 8 ? BLOCK : sizeof(last);

	memcpy(last, rest, used);
	last[used] = 0x80;
	for (size_t i = 0; i < 8; i++)
		last[size - 1 - i] = (uint8_t)((uint64_t)length * 8 >> 8 * i);
	for (size_t at = 0; at < size; at += BLOCK)
		add_block(state, last + at);
}

const char *sy_sha256(const void *bytes, size_t length, char text[SY_SHA256_SIZE])
{
	/* 5.3.3: of the square roots of the first eight primes. */
	uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
			     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	const uint8_t *at = bytes;

	for (size_t remaining = length; remaining >= BLOCK; remaining -= BLOCK, at += BLOCK)
		add_block(state, at);
	add_end(state, at, length);
	for (int i = 0; i < 8; i++)
		(void)snprintf(text + 8 * (size_t)i, 9, "%08x", state[i]);
	return text;
}

uint64_t sy_hash(uint64_t hash, const void *bytes, size_t size)
{
	for (const unsigned char *at = bytes; size > 0; size--)
		hash = (hash ^ *at++) * 0x100000001b3ULL;
	return hash;
}
