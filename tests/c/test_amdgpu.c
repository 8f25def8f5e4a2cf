/* Tables of AMD's driver, made after the kernel's own declarations, which the compiler lays out. */
#include "tap.h"

#include "meters/amdgpu.h"

struct head {
	uint16_t structure_size;
	uint8_t format_revision, content_revision;
};

/* gpu_metrics_v1_1 to v1_3, up to the clock behind the counter. */
struct v1_3 {
	struct head head;
	uint16_t temperature[6], activity[3], average_socket_power;
	uint64_t energy_accumulator, system_clock_counter;
};

struct v1_4 {
	struct head head;
	uint16_t temperature[3], curr_socket_power, activity[2], vcn_activity[4];
	uint64_t energy_accumulator, system_clock_counter;
};

/* gpu_metrics_v1_5 and v1_6 */
struct v1_6 {
	struct head head;
	uint16_t temperature[3], curr_socket_power, activity[2], vcn_activity[4], jpeg_activity[32];
	uint64_t energy_accumulator, system_clock_counter;
};

static int64_t told(const void *table, size_t size)
{
	const char *why;

	return sy_amdgpu_energy_uj(table, size, &why);
}

static void test_forms(void)
{
	struct v1_3 early = {.head = {sizeof(early), 1, 3}, .energy_accumulator = 5ULL << 16};
	struct v1_4 mi300 = {.head = {sizeof(mi300), 1, 4}, .energy_accumulator = 7ULL << 16};
	struct v1_6 late = {.head = {sizeof(late), 1, 6}, .energy_accumulator = 9ULL << 16};

	memset(early.temperature, 0x11, sizeof(early.temperature));
	memset(late.jpeg_activity, 0x22, sizeof(late.jpeg_activity));
	early.system_clock_counter = late.system_clock_counter = 12345;
	is_int(told(&early, sizeof(early)), 5000000, "revision 3");
	early.head.content_revision = 1;
	is_int(told(&early, sizeof(early)), 5000000, "revision 1");
	is_int(told(&mi300, sizeof(mi300)), 7000000, "revision 4");
	is_int(told(&late, sizeof(late)), 9000000, "revision 6");
	late.head.content_revision = 5;
	is_int(told(&late, sizeof(late)), 9000000, "revision 5");
	late.head.content_revision = 7;
	is_int(told(&late, sizeof(late)), -1, "one that is not known");
	early.head.content_revision = 0;
	is_int(told(&early, sizeof(early)), -1, "the first, which is not aligned");
	early.head = (struct head){sizeof(early), 2, 1};
	is_int(told(&early, sizeof(early)), -1, "that of a processor with graphics");
}

static void test_counts(void)
{
	struct v1_3 table = {.head = {sizeof(table), 1, 3}, .energy_accumulator = UINT64_MAX};

	is_int(told(&table, sizeof(table)), -1, "all ones: it does not count");
	table.energy_accumulator = (3ULL << 16) + 1;
	is_int(told(&table, sizeof(table)), 3000015, "one unit is 15.3 µJ");
	table.energy_accumulator = (1ULL << 33) << 8;
	is_int(told(&table, sizeof(table)), 33554432LL * 1000000, "of years: nothing is rounded");
	is_int(told(&table, 31), -1, "cut short");
	is_int(told(&table, 3), -1, "shorter than its head");
	is_int(told(&table, 0), -1, "empty");
}

int main(void)
{
	test_forms();
	test_counts();
	return done_testing();
}
