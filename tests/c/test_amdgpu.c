/* Tables of AMD's driver: sizes and offsets are those of the kernel's declarations
 * (drivers/gpu/drm/amd/include/kgd_pp_interface.h, in ROCm/amdgpu up to 1.8). */
#include "tap.h"

#include "meters/readers.h"

static unsigned char table[4096];

static void put(size_t offset, size_t bytes, uint64_t value)
{
	for (size_t i = 0; i < bytes; i++)
		table[offset + i] = (unsigned char)(value >> 8 * i);
}

static void make(size_t size, unsigned format, unsigned revision)
{
	memset(table, 0, sizeof(table));
	put(0, 2, size);
	table[2] = (unsigned char)format;
	table[3] = (unsigned char)revision;
}

static int64_t joules(size_t size)
{
	const char *reason;

	return sy_amdgpu_energy_uj(table, size, &reason);
}

/* All other bytes hold what would be other joules. */
static int64_t joules_of(size_t size, unsigned format, unsigned revision, size_t offset)
{
	make(size, format, revision);
	memset(table + 4, 0x11, size - 4);
	put(offset, 8, 5ULL << 16);
	return joules(size);
}

static void test_layouts(void)
{
	is_int(joules_of(96, 1, 1, 24), 5000000, "1.1");
	is_int(joules_of(104, 1, 2, 24), 5000000, "1.2");
	is_int(joules_of(120, 1, 3, 24), 5000000, "1.3");
	is_int(joules_of(288, 1, 4, 24), 5000000, "1.4");
	is_int(joules_of(360, 1, 5, 88), 5000000, "1.5");
	is_int(joules_of(1664, 1, 6, 16), 5000000, "1.6 as released");
	is_int(joules_of(384, 1, 6, 88), 5000000, "1.6 as it was in the kernel before");
	is_int(joules_of(352, 1, 6, 88), 5000000, "1.6 in an earlier layout");
	is_int(joules_of(2208, 1, 7, 24), 5000000, "1.7");
	is_int(joules_of(3360, 1, 8, 24), 5000000, "1.8");
	is_int(joules_of(1000, 1, 6, 88), -1, "1.6 of another size");
	is_int(joules_of(64, 1, 9, 24), -1, "1.9 is a list");
	is_int(joules_of(96, 1, 0, 24), -1, "1.0 is not aligned");
	is_int(joules_of(120, 2, 3, 24), -1, "a processor with graphics");
}

/* As a released driver writes it: 28 units of PCIe bandwidth where another 1.6 had its joules. */
static void test_pcie_is_no_energy(void)
{
	make(1664, 1, 6);
	put(16, 8, 9ULL << 16);
	put(80, 8, 4444444);
	put(88, 8, 28ULL << 16);
	is_int(joules(1664), 9000000, "PCIe bandwidth is no energy");
}

static void test_counts(void)
{
	const char *reason;

	make(120, 1, 3);
	is_int(sy_amdgpu_energy_uj(table, 120, &reason), -1,
	       "a GPU that never counts has no joules");
	is_string(reason, "the GPU does not count its energy", "and it says so");
	is_int(sy_amdgpu_power_uw(table, 120), -1, "nor has it watts");
	put(22, 2, 20);
	is_int(sy_amdgpu_power_uw(table, 120), 20000000, "but it may have those");
	put(22, 2, 0xffff);
	is_int(sy_amdgpu_power_uw(table, 120), -1, "all ones are no watts");
	put(24, 8, UINT64_MAX);
	is_int(joules(120), -1, "all ones: it does not count");
	put(24, 8, (3ULL << 16) + 1);
	is_int(joules(120), 3000015, "one unit is 15.3 µJ");
	put(24, 8, (1ULL << 33) << 8);
	is_int(joules(120), 33554432LL * 1000000, "of years: nothing is rounded");
	is_int(joules(119), -1, "cut short");
	is_int(joules(3), -1, "shorter than its head");
	is_int(joules(0), -1, "empty");
	make(1664, 1, 6);
	put(10, 2, 350);
	is_int(sy_amdgpu_power_uw(table, 1664), 350000000, "watts of 1.6");
}

int main(void)
{
	test_layouts();
	test_pcie_is_no_energy();
	test_counts();
	return done_testing();
}
