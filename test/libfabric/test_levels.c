/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Levels of completion of sends, on each link: FI_TRANSMIT_COMPLETE that is asked for by name, by the endpoint's
 * default flags or by a call's own, means that the peer's end has the message, though nobody there receives it;
 * FI_INJECT_COMPLETE, and what asks for nothing, that the buffer is free; FI_DELIVERY_COMPLETE that the peer has looked
 * at it, too, and FI_MATCH_COMPLETE that it is received.
 */
#include "fi_pair.h"

#include <string.h>

static const char *const links[] = {"shm", "udp", "tcp"};

static void open_end(struct t_domain *d, struct t_end *e, uint64_t tx_op_flags)
{
	t_domain_open(d, 0, FI_THREAD_DOMAIN);
	t_end_open(e, d, &(struct t_options){.tx_op_flags = tx_op_flags});
}

static void close_end(struct t_domain *d, struct t_end *e)
{
	t_end_close(e);
	t_domain_close(d);
}

/* A byte with that tag; flags 0: by a call without flags. */
static void send_byte(struct t_end *e, fi_addr_t to, char *byte, uint64_t tag, uint64_t flags)
{
	const struct iovec iov = {byte, 1};
	const struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1, .addr = to, .tag = tag, .context = byte};

	if (flags)
		t_post(fi_tsendmsg(e->ep, &msg, flags), e->cq, NULL);
	else
		t_post(fi_tsend(e->ep, byte, 1, NULL, to, tag, byte), e->cq, NULL);
}

static void told(struct t_end *e, const char *byte)
{
	assert_ptr_equal(t_wait(e->cq, NULL, NULL).op_context, byte);
}

/* arg: the default flags of an endpoint, and a call's own. */
struct levels {
	uint64_t by_default, of_call;
};

/* Is it for a message to be in the peer's memory, as shared memory is? */
static bool writing_is_enough(const struct levels *levels)
{
	return !((levels->by_default | levels->of_call) & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE));
}

/* A byte of which it is told in the end, and before that two that are free at once. */
static void sends(struct t_process *p)
{
	const struct levels *levels = p->arg;
	bool matched = (levels->by_default | levels->of_call) & FI_MATCH_COMPLETE;
	bool arrived = writing_is_enough(levels) && !strcmp(p->link, "shm");
	struct t_domain d;
	struct t_end e;
	char byte[3];
	fi_addr_t to;

	open_end(&d, &e, levels->by_default);
	to = t_greet(p, &e);
	send_byte(&e, to, &byte[0], 1, 0);
	t_meet(p, e.cq);
	told(&e, &byte[0]);
	t_meet(p, e.cq);
	t_meet(p, NULL);
	send_byte(&e, to, &byte[1], 2, FI_INJECT_COMPLETE | FI_COMPLETION);
	told(&e, &byte[1]);
	send_byte(&e, to, &byte[2], 3, levels->of_call);
	if (!arrived) {
		t_nothing(e.cq, NULL);
		t_say(p, "", 1);
	}
	if (!matched) {
		told(&e, &byte[2]);
	} else {
		t_meet(p, e.cq);
		t_meet(p, e.cq); /* the peer has looked at it, and has said so */
		t_nothing(e.cq, NULL);
	}
	t_say(p, "", 1);
	if (matched)
		told(&e, &byte[2]);
	t_meet(p, e.cq);
	close_end(&d, &e);
}

/* Does nothing for its peer at first, then all but receive. */
static void receives(struct t_process *p)
{
	const struct levels *levels = p->arg;
	bool matched = (levels->by_default | levels->of_call) & FI_MATCH_COMPLETE;
	bool arrived = writing_is_enough(levels) && !strcmp(p->link, "shm");
	struct t_domain d;
	struct t_end e;
	char in, byte;

	open_end(&d, &e, 0);
	t_greet(p, &e);
	for (uint64_t tag = 1; tag <= 3; tag++) {
		if (tag == 2) {
			t_meet(p, e.cq);
			t_meet(p, e.cq); /* it has been told of the first: what was lost has come by now */
			t_meet(p, NULL);
			if (!arrived)
				t_hear(p, &byte, 1);
			for (int i = 0; matched && i < 2; i++)
				t_meet(p, e.cq);
			t_hear_driving(p, &byte, 1, e.cq);
		}
		t_post(fi_trecv(e.ep, &in, 1, NULL, FI_ADDR_UNSPEC, tag, 0, &in), e.cq, NULL);
		t_wait(e.cq, NULL, NULL);
	}
	t_meet(p, e.cq);
	close_end(&d, &e);
}

static void each_link(const struct levels *levels)
{
	for (unsigned i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		t_two(links[i], sends, receives, levels);
}

static void transmitted_by_default(void **state)
{
	(void)state;
	each_link(&(struct levels){.by_default = FI_TRANSMIT_COMPLETE});
	each_link(&(struct levels){.by_default = FI_TRANSMIT_COMPLETE, .of_call = FI_COMPLETION});
}

static void transmitted_by_call(void **state)
{
	(void)state;
	each_link(&(struct levels){.of_call = FI_TRANSMIT_COMPLETE | FI_COMPLETION});
}

static void delivered(void **state)
{
	(void)state;
	each_link(&(struct levels){.by_default = FI_DELIVERY_COMPLETE});
	each_link(&(struct levels){.by_default = FI_TRANSMIT_COMPLETE, .of_call = FI_DELIVERY_COMPLETE});
}

static void matched(void **state)
{
	(void)state;
	each_link(&(struct levels){.by_default = FI_MATCH_COMPLETE});
	each_link(&(struct levels){.by_default = FI_TRANSMIT_COMPLETE, .of_call = FI_MATCH_COMPLETE});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(transmitted_by_default),
		cmocka_unit_test(transmitted_by_call),
		cmocka_unit_test(delivered),
		cmocka_unit_test(matched),
	};

	return cmocka_run_group_tests_name("levels of completion", tests, NULL, NULL);
}
