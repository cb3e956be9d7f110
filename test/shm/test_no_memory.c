/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that a store would end by a signal for is not there: no slab is minted of it, and no ring grows into it. Here
 * it is the mapping's part behind the end of its file.
 */
#include "rwk_test.h"

#include "shm/ring.h"
#include "shm/slab.h"

#include "base/shared.h"

#include <sys/mman.h>
#include <unistd.h>

enum { SLABS = 2 };

static unsigned char *mapped(size_t there, size_t size)
{
	int fd = rwk_shared_make("test", there);
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	close(fd);
	return at;
}

static void no_slab(void **state)
{
	size_t there = SLABS * RWK_SHM_SLAB_STRIDE / RWK_SHM_PAGE * RWK_SHM_PAGE + RWK_SHM_PAGE;
	unsigned char *at = mapped(there, 2 * RWK_SHM_HOME_BYTES);
	struct rwk_shm_slabs s;

	(void)state;
	rwk_shm_slabs_init(&s, at, 0);
	for (unsigned i = 0; i < SLABS; i++)
		assert_int_equal(rwk_shm_slab_take(&s), i);
	assert_int_equal(rwk_shm_slab_take(&s), RWK_SHM_NO_SLAB);
	assert_false(rwk_shm_slabs_reserve(&s, 1));
	munmap(at, 2 * RWK_SHM_HOME_BYTES);
}

/* The ring stays as it is, and is used up to its last line. */
static void no_growth(void **state)
{
	size_t least = RWK_SHM_RING_MIN * sizeof(struct rwk_shm_line);
	unsigned char *at = mapped(least, 2 * least);
	static struct rwk_shm_side other;
	struct rwk_shm_tx tx = {.shut = 0};

	(void)state;
	rwk_publish32(&other.consumed, RWK_SHM_STAMP_FIRST);
	rwk_shm_tx_init(&tx, (void *)at, 2 * RWK_SHM_RING_MIN, &other);
	for (unsigned i = 0; i < RWK_SHM_RING_MIN; i++) {
		assert_int_equal(rwk_shm_tx_look(&tx), RWK_SHM_RING_MIN - i);
		rwk_shm_tx_line(&tx, 0, 0);
	}
	assert_int_equal(rwk_shm_tx_look(&tx), 0);
	assert_int_equal(tx.growths, 0);
	munmap(at, 2 * least);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_slab),
		cmocka_unit_test(no_growth),
	};

	return cmocka_run_group_tests_name("shm/no_memory", tests, NULL, NULL);
}
