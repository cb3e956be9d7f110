/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of CONNECT.md: what is packed is unpacked; what is no message is none, as early as that can be seen. */
#include "rwk_test.h"

#include "connect/message.h"

static uint8_t private_data[RWK_PRIVATE_MAX];

static const struct rwk_cm messages[] = {
	{.type = RWK_CM_REQUEST, .reads = 16, .udp_port = 4791, .pmtu = 1024, .qpn = 0xfffffe, .psn = 0xffffff},
	{.type = RWK_CM_REQUEST,
		.service = RWK_QP_SRC,
		.unordered = true,
		.reads = 1,
		.udp_port = 1,
		.pmtu = 256,
		.qpn = 2,
		.private_length = RWK_PRIVATE_MAX,
		.private_data = private_data},
	{.type = RWK_CM_ACCEPT,
		.service = RWK_QP_UC,
		.transport = RWK_TRANSPORT_STREAM,
		.deferred = true,
		.pmtu = 4096,
		.qpn = 77,
		.psn = 1,
		.private_length = 1,
		.private_data = private_data},
	{.type = RWK_CM_GREETING, .transport = RWK_TRANSPORT_STREAM, .reads = 3, .pmtu = 2048, .qpn = 0x123456},
	{.type = RWK_CM_REJECT, .private_length = 100, .private_data = private_data},
	{.type = RWK_CM_REJECT},
	{.type = RWK_CM_READY},
};

#define COUNT (sizeof(messages) / sizeof(messages[0]))

static void same(const struct rwk_cm *a, const struct rwk_cm *b)
{
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->service, b->service);
	assert_int_equal(a->transport, b->transport);
	assert_int_equal(a->deferred, b->deferred);
	assert_int_equal(a->unordered, b->unordered);
	assert_int_equal(a->reads, b->reads);
	assert_int_equal(a->udp_port, b->udp_port);
	assert_int_equal(a->pmtu, b->pmtu);
	assert_int_equal(a->qpn, b->qpn);
	assert_int_equal(a->psn, b->psn);
	assert_int_equal(a->private_length, b->private_length);
	if (a->private_length)
		assert_memory_equal(a->private_data, b->private_data, a->private_length);
}

/* Each message, and each beginning of it: as long as it is not whole, it says how much is needed, never too much. */
static void whole_and_half(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(private_data); i++)
		private_data[i] = (uint8_t)(i * 5 + 1);
	for (size_t i = 0; i < COUNT; i++) {
		uint8_t bytes[RWK_CM_MAX];
		size_t len = rwk_cm_pack(&messages[i], bytes), whole = 0;
		struct rwk_cm m;

		assert_int_equal(len, RWK_CM_HEAD + messages[i].private_length);
		for (size_t n = 0; n < len; n++) {
			assert_int_equal(rwk_cm_unpack(&m, bytes, n, &whole), -EAGAIN);
			assert_int_equal(whole, n < RWK_CM_HEAD ? RWK_CM_HEAD : len);
		}
		assert_int_equal(rwk_cm_unpack(&m, bytes, len, &whole), 0);
		assert_int_equal(whole, len);
		same(&m, &messages[i]);
	}
}

/* One byte of a good message is another: what it must lead to. */
static const struct {
	size_t message, at;
	uint8_t byte;
	int expected;
} wrong[] = {
	{0, 0, 'R', -EPROTO},
	{0, 7, 0, -EPROTO},
	{0, 8, 0, -EPROTONOSUPPORT},
	{0, 8, 2, -EPROTONOSUPPORT},
	{0, 9, 0, -EPROTO},
	{0, 9, 6, -EPROTO},
	{0, 10, 3, -EPROTO},    /* a service that does not exist */
	{0, 10, 1, -EPROTO},    /* UC keeps no Reads */
	{0, 11, 2, -EPROTO},    /* a transport that does not exist */
	{0, 11, 1, -EPROTO},    /* a stream has no UDP port */
	{0, 12, 1, -EPROTO},    /* deferred by UDP */
	{0, 12, 4, -EPROTO},    /* a flag that does not exist */
	{0, 13, 0, -EPROTO},    /* RC keeps at least one */
	{0, 13, 17, -EPROTO},   /* Reads */
	{0, 17, 0, -EPROTO},    /* PMTU 0 */
	{0, 16, 1, -EPROTO},    /* 1025 */
	{0, 17, 0x20, -EPROTO}, /* 8192 */
	{0, 17, 6, -EPROTO},    /* 1536 */
	{0, 23, 1, -EPROTO},    /* a QPN of 25 bits */
	{0, 20, 0xff, -EPROTO}, /* 0xffffff */
	{0, 27, 1, -EPROTO},    /* a PSN of 25 bits */
	{0, 28, 1, -EPROTO},    /* what is zero */
	{0, 31, 1, -EPROTO},
	{1, 18, 1, -EPROTO}, /* 257 bytes of private data */
	{1, 14, 0, -EPROTO}, /* no port */
	{1, 11, 1, -EPROTO}, /* SRC on a stream */
	{1, 20, 1, -EPROTO}, /* QPN 1 */
	{2, 14, 1, -EPROTO}, /* a port on a stream */
	{2, 11, 0, -EPROTO}, /* UDP without a port */
	{2, 13, 1, -EPROTO}, /* UC's Reads */
	{2, 12, 3, -EPROTO}, /* UC's un-ordered types */
	{3, 12, 1, -EPROTO}, /* a greeting that is deferred */
	{4, 10, 1, -EPROTO}, /* REJECT has no terms */
	{4, 12, 2, -EPROTO},
	{4, 17, 1, -EPROTO},
	{4, 20, 1, -EPROTO},
	{4, 27, 1, -EPROTO},
	{4, 19, 1, -EPROTO}, /* 356 bytes */
	{6, 18, 1, -EPROTO}, /* READY has no private data */
	{6, 10, 1, -EPROTO},
	{6, 31, 1, -EPROTO},
};

static void out_of_range(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint8_t bytes[RWK_CM_MAX] = {0};
		size_t whole = 0;
		struct rwk_cm m;

		rwk_cm_pack(&messages[wrong[i].message], bytes);
		bytes[wrong[i].at] = wrong[i].byte;
		if (rwk_cm_unpack(&m, bytes, sizeof(bytes), &whole) != wrong[i].expected)
			print_message("row %zu\n", i);
		assert_int_equal(rwk_cm_unpack(&m, bytes, sizeof(bytes), &whole), wrong[i].expected);
		/* What can be seen in the beginning is seen there: nobody waits for the rest of it. */
		if (wrong[i].at < 9)
			assert_int_equal(rwk_cm_unpack(&m, bytes, wrong[i].at + 1, &whole), wrong[i].expected);
		assert_int_equal(rwk_cm_unpack(&m, bytes, RWK_CM_HEAD, &whole), wrong[i].expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_and_half),
		cmocka_unit_test(out_of_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
