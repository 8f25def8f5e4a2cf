/* Files of samples into columns: what the sampler writes is read to the bit, all else is refused.
 */
#include "tap.h"

/* The library is one file, and is loaded by Python only. */
#include "../../plugins/reader/samples_reader.c"

#include <stdlib.h>

enum { LINES = 3 };

static int64_t integers[LINES];
static double reals[LINES];

/* Lines of an integer, a skipped cell and a real, out of a block that ends where the text does: the
 * sanitizers see whoever reads behind it. */
static int64_t read_text(const char *text)
{
	static const unsigned char kinds[] = {SY_INTEGER, SY_SKIP, SY_REAL};
	void *const out[] = {integers, NULL, reals};
	size_t size = strlen(text);
	char *block = malloc(size + !size);
	int64_t lines;

	memcpy(block, text, size);
	lines = steelyard_read_samples(block, size, 3, kinds, out, LINES);
	free(block);
	return lines;
}

static void test_lines(void)
{
	is_int(read_text("1,a b,2.5\n,,\n999999999999999999,x,1795251583.123456\n"), 3, "lines");
	is_int(integers[0], 1, "an integer");
	is_int(integers[1], INT64_MIN, "an empty cell");
	is_int(integers[2], 999999999999999999, "the largest integer");
	ok(reals[0] == 2.5, "a real");
	ok(isnan(reals[1]), "an empty real");
	ok(reals[2] == 1795251583.123456, "a time to the µs");
	is_int(read_text(""), 0, "no line");
	is_int(read_text("1,,2\n2,,3\n3,,4\n4,,5\n"), SY_FULL, "more lines than there is room for");
}

/* As strtod has it, which rounds to the nearest. */
static void test_reals(void)
{
	static const char *const same[] = {"0",
					   "0.000001",
					   "0.1",
					   "123456.000001",
					   "1.",
					   "9007199254740992",
					   "9007199254.740991",
					   "007.5"};
	static const char *const odd[] = {"9007199254740993",
					  "0.0000000000000000001",
					  ".5",
					  "-1",
					  "1e3",
					  "nan",
					  "1.2.3",
					  " 1",
					  "+1",
					  "9999999999999999999999999999999999999999"};
	char line[128];

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		(void)snprintf(line, sizeof(line), "1,,%s\n", same[i]);
		ok(read_text(line) == 1 && reals[0] == strtod(same[i], NULL), "%s", same[i]);
	}
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		(void)snprintf(line, sizeof(line), "1,,%s\n", odd[i]);
		is_int(read_text(line), SY_ODD, odd[i]);
	}
}

static void test_odd_lines(void)
{
	static const char *const odd[] = {
	    "1,,2",	"1,2\n",    "1,,2,3\n",	      "\n",
	    "1,,2\n\n", "1,,2\r\n", "-1,,2\n",	      "1.0,,2\n",
	    "x,,2\n",	"1,\t,2\n", "1,\xc3\xa4,2\n", "1000000000000000000,,2\n",
	};

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		ok(read_text(odd[i]) == SY_ODD, "odd line %zu", i);
}

/* Whatever the text is, nothing behind it is read: for the sanitizers. */
static void test_spoilt(void)
{
	static const char good[] = "1,x,2.5\n77,,0.000001\n";
	int64_t most = 0;

	srand(1);
	for (int n = 0; n < 20000; n++) {
		char text[sizeof(good)];
		int64_t lines;

		memcpy(text, good, sizeof(good));
		for (int k = 0; k < 3; k++)
			text[(size_t)rand() % (sizeof(good) - 1)] =
			    "0123456789,.\n\r -x\x80"[rand() % 18];
		lines = read_text(text);
		most = lines > most ? lines : most;
	}
	ok(most >= 2, "spoilt texts, some of them still lines");
}

int main(void)
{
	test_lines();
	test_reals();
	test_odd_lines();
	test_spoilt();
	return done_testing();
}
