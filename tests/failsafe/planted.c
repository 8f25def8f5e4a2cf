/* Run by tests/failsafe/run.sh only; it must fail. */
#include "tap.h"

int main(void)
{
	ok(1 + 1 == 3, "planted");
	return done_testing();
}
