/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of transfers: stale, forged and stretched ones are refused, and what is concealed is not touched. */
#include "rwk_test.h"

#include "transfer_roles.h"

#include <sys/mman.h>

static int keys_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	struct tp_side *mine = tp_side(ch, true);
	static unsigned char buf[8192];
	struct iovec iov[2] = {{buf, 4000}, {buf + 4000, 4192}};

	(void)arg;
	tp_fill(buf, sizeof(buf), 0);
	CHECK(rwk_shm_expose(ch, iov, 0, RWK_EXPOSE_READ, &mine->key[0]) == -EINVAL);
	CHECK(rwk_shm_expose(ch, iov, RWK_EXPOSE_IOV_MAX + 1, RWK_EXPOSE_READ, &mine->key[0]) == -EINVAL);
	/* the first two are concealed again; the third takes the place of the second */
	CHECK(!rwk_shm_expose(ch, iov, 2, RWK_EXPOSE_READ, &mine->key[0]));
	CHECK(!rwk_shm_expose(ch, iov, 1, RWK_EXPOSE_READ, &mine->key[1]));
	rwk_shm_conceal(ch, &mine->key[0]);
	rwk_shm_conceal(ch, &mine->key[1]);
	rwk_shm_conceal(ch, &mine->key[1]);
	CHECK(!rwk_shm_expose(ch, iov, 1, RWK_EXPOSE_READ, &mine->key[2]));
	CHECK(!rwk_shm_expose(ch, iov, 2, RWK_EXPOSE_READ, &mine->key[3]));
	tp_say(ch, 1, 1);
	CHECK(tp_wait(ch, 2, 1));
	return 0;
}

/* Reads `length` bytes at `offset` by a key and returns the status, or post's refusal. */
static int try_key(
	struct rwk_shm_channel *ch, struct rwk_rkey key, unsigned word, uint64_t flip, uint64_t offset, size_t length)
{
	unsigned char buf[8192];
	struct iovec iov = {buf, sizeof(buf)};
	struct tp_op o;
	int rc;

	key.word[word] ^= flip;
	rc = tp_read(ch, &o, &key, offset, &iov, 1, length);
	if (rc)
		return rc;
	rc = tp_finish(ch, &o, 20000);
	if (!rc && !tp_same(buf, length, offset, 0))
		return 1;
	return rc;
}

static int keys_reader(struct rwk_shm_channel *ch, const void *arg)
{
	const struct rwk_rkey *key = tp_side(ch, false)->key;

	tp_force(ch, *(const int *)arg);
	CHECK(tp_wait(ch, 1, 1));
	CHECK(try_key(ch, key[2], 0, 0, 0, 4000) == 0);
	CHECK(try_key(ch, key[3], 0, 0, 100, 8092) == 0);
	CHECK(try_key(ch, key[3], 0, 0, 8192, 0) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(try_key(ch, key[i], 0, 0, 0, 4000) == -EACCES);
	CHECK(try_key(ch, key[2], 0, 1ull << 30, 0, 4000) == -EACCES);
	CHECK(try_key(ch, key[3], 0, 1ull << 50, 0, 4000) == -EACCES);
	CHECK(try_key(ch, key[2], 0, 1ull << 20, 0, 4000) == -EACCES); /* an index beyond the table */
	CHECK(try_key(ch, key[2], 3, 1ull << 60, 0, 4000) == -EINVAL); /* another transport's mark */
	CHECK(try_key(ch, key[2], 0, 0, 0, 4001) == -EINVAL);
	CHECK(try_key(ch, key[2], 0, 0, UINT64_MAX, 2) == -EINVAL);
	CHECK(!tp_protocol_error(ch));
	tp_say(ch, 2, 1);
	return 0;
}

/* Keys that were concealed, forged or stretched are refused; good ones still work beside them. */
static void keys(void **state)
{
	static const int methods[] = {RWK_SHM_STAGE, RWK_SHM_PULL, RWK_SHM_BOTH};

	(void)state;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		tp_run(keys_exposer, keys_reader, &methods[i]);
}

static int concealing_exposer(struct rwk_shm_channel *ch, const void *arg)
{
	char *buf = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov = {buf, LARGE};
	struct tp_side *mine = tp_side(ch, true);

	(void)arg;
	CHECK(buf != MAP_FAILED);
	CHECK(!rwk_shm_expose(ch, &iov, 1, RWK_EXPOSE_READ, &mine->key[0]));
	tp_say(ch, 1, 1);
	while (!tp_counts(ch)->staged && !tp_counts(ch)->pushed && !tp_heard(ch, 2))
		tp_progress(ch);
	rwk_shm_conceal(ch, &mine->key[0]);
	CHECK(!munmap(buf, LARGE)); /* an access now would be fatal */
	CHECK(tp_wait(ch, 2, 1));
	return 0;
}

static int concealed_reader(struct rwk_shm_channel *ch, const void *arg)
{
	unsigned char *buf = malloc(LARGE);
	struct iovec iov = {buf, LARGE};
	int method = *(const int *)arg, status;
	struct tp_op o;

	CHECK(buf && tp_wait(ch, 1, 1));
	tp_force(ch, method);
	CHECK(!tp_read(ch, &o, &tp_side(ch, false)->key[0], 0, &iov, 1, LARGE));
	status = tp_finish(ch, &o, 20000);
	if (status != -EACCES)
		fprintf(stderr, "reader: method %d, status %d\n", method, status);
	/* where both copy, the reader may have had the rest before, or be at it when the memory goes away */
	CHECK(status == -EACCES || (method == RWK_SHM_BOTH && (status == 0 || status == -EFAULT)));
	CHECK(!tp_protocol_error(ch));
	free(buf);
	tp_say(ch, 2, 1);
	return 0;
}

/* Concealed while it is being copied: the read ends with an error, the channel goes on. */
static void concealed_in_the_middle(void **state)
{
	static const int methods[] = {RWK_SHM_STAGE, RWK_SHM_BOTH};

	(void)state;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		tp_run(concealing_exposer, concealed_reader, &methods[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys),
		cmocka_unit_test(concealed_in_the_middle),
	};

	return cmocka_run_group_tests_name("shm/transfer_keys", tests, NULL, NULL);
}
