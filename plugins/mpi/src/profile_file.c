#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "profile.h"

#define SY_NAME(arity, Name, ...) "MPI_" #Name,
static const char *const names[] = {ALL_CALLS(SY_NAME)};

static void put_text(FILE *file, const char *key, const char *text)
{
	fprintf(file, "\"%s\":\"", key);
	for (; *text; text++)
		fputc(*text < ' ' || *text == '"' || *text == '\\' ? ' ' : *text, file);
	fputc('"', file);
}

static void put_count(FILE *file, const char *name, const struct sy_count *count, double seconds)
{
	fprintf(file, "\"%s\":{\"calls\":%" PRIu64 ",\"messages\":", name, count->calls);
	if (count->uncounted)
		fputs("null,\"bytes\":null", file);
	else
		fprintf(file, "%" PRIu64 ",\"bytes\":%" PRIu64, count->messages, count->bytes);
	fprintf(file, ",\"seconds\":%.9f}", seconds);
}

static void put_calls(FILE *file, const struct sy_count *count, const double *seconds)
{
	const char *comma = "";

	fputs("\"calls\":{", file);
	for (int i = 0; i < SY_CALLS; i++) {
		if (count[i].calls == 0)
			continue;
		fputs(comma, file);
		put_count(file, names[i], &count[i], seconds[i]);
		comma = ",";
	}
	fputc('}', file);
}

/* Class 0 is no bytes, class k is 2^(k-1) to 2^k - 1. */
static void put_sizes(FILE *file, const uint64_t *sizes)
{
	const char *comma = "";

	fputs("\"sizes\":[", file);
	for (int k = 0; k < SY_SIZES; k++) {
		const uint64_t least = k ? UINT64_C(1) << (k - 1) : 0;

		if (sizes[k] == 0)
			continue;
		fprintf(file,
			"%s{\"least_bytes\":%" PRIu64 ",\"most_bytes\":%" PRIu64
			",\"messages\":%" PRIu64 "}",
			comma, least, k ? least - 1 + least : 0, sizes[k]);
		comma = ",";
	}
	fputc(']', file);
}

struct sums {
	double init_s, communication_s, calls_s, total_s;
	uint64_t messages, bytes, uncounted;
};

static struct sums sum_of(const struct sy_profile *rank, double *seconds)
{
	struct sums sum = {.init_s = rank->init_s, .total_s = rank->total_s};

	for (int i = 0; i < SY_CALLS; i++) {
		seconds[i] = (double)rank->count[i].ticks * rank->seconds_per_tick;
		sum.calls_s += seconds[i];
		sum.messages += rank->count[i].messages;
		sum.bytes += rank->count[i].bytes;
		sum.uncounted += rank->count[i].uncounted;
	}
	sum.communication_s =
	    rank->many_threads ? (double)rank->inside_ticks * rank->seconds_per_tick : sum.calls_s;
	return sum;
}

static void put_sums(FILE *file, const struct sums *sum)
{
	fprintf(file,
		"\"init_s\":%.9f,\"communication_s\":%.9f,\"computation_s\":%.9f,\"total_s\":%.9f,"
		"\"calls_s\":%.9f,"
		"\"messages\":%" PRIu64 ",\"message_bytes\":%" PRIu64
		",\"calls_without_size\":%" PRIu64,
		sum->init_s, sum->communication_s,
		sum->total_s - sum->init_s - sum->communication_s, sum->total_s, sum->calls_s,
		sum->messages, sum->bytes, sum->uncounted);
}

static void add_sums(struct sums *total, const struct sums *sum)
{
	total->init_s += sum->init_s;
	total->communication_s += sum->communication_s;
	total->calls_s += sum->calls_s;
	total->total_s += sum->total_s;
	total->messages += sum->messages;
	total->bytes += sum->bytes;
	total->uncounted += sum->uncounted;
}

static void add_rank(struct sy_profile *total, double *total_s, const struct sy_profile *rank,
		     const double *seconds)
{
	for (int i = 0; i < SY_CALLS; i++) {
		total_s[i] += seconds[i];
		total->count[i].calls += rank->count[i].calls;
		total->count[i].messages += rank->count[i].messages;
		total->count[i].uncounted += rank->count[i].uncounted;
		total->count[i].bytes += rank->count[i].bytes;
	}
	for (int k = 0; k < SY_SIZES; k++)
		total->sizes[k] += rank->sizes[k];
}

static void put_rank(FILE *file, int number, const struct sy_profile *rank, const struct sums *sum,
		     const double *seconds)
{
	fprintf(file, "%s\n{\"rank\":%d,", number ? "," : "", number);
	put_text(file, "node", rank->node);
	fputc(',', file);
	put_sums(file, sum);
	fputc(',', file);
	put_calls(file, rank->count, seconds);
	fputs("}", file);
}

static void put_all(FILE *file, const struct sy_profile *rank, int ranks)
{
	static struct sy_profile total; /* 6 KB: not on the stack */
	double total_s[SY_CALLS] = {0}, seconds[SY_CALLS];
	struct sums sums = {0};

	fputs("\"ranks\":[", file);
	for (int i = 0; i < ranks; i++) {
		const struct sums sum = sum_of(&rank[i], seconds);

		put_rank(file, i, &rank[i], &sum, seconds);
		add_sums(&sums, &sum);
		add_rank(&total, total_s, &rank[i], seconds);
	}
	fputs("\n],\"total\":{", file);
	put_sums(file, &sums);
	fputc(',', file);
	put_calls(file, total.count, total_s);
	fputc(',', file);
	put_sizes(file, total.sizes);
	fputs("}}\n", file);
}

/* Whole or not at all: a reader never sees half a profile. */
int sy_write(const char *path, const struct sy_profile *rank, int ranks, const char *clock,
	     const char *mpi)
{
	char temporary[4096];
	FILE *file;
	int broken;

	if (snprintf(temporary, sizeof(temporary), "%s.part", path) >= (int)sizeof(temporary))
		return -1;
	file = fopen(temporary, "w");
	if (!file)
		return -1;
	fputs("{\"format\":\"steelyard-mpiprof\",\"version\":2,", file);
	put_text(file, "mpi", mpi);
	fputc(',', file);
	put_text(file, "clock", clock);
	fputc(',', file);
	put_all(file, rank, ranks);
	broken = ferror(file);
	if (fclose(file) || broken || rename(temporary, path)) {
		remove(temporary);
		return -1;
	}
	return 0;
}
