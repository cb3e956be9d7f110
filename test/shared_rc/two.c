/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "rwk_test.h"

#include "shared_rc/two.h"

#include <sys/mman.h>
#include <unistd.h>

const struct rwk_src_size two_size = {4, 4, 65536};

struct fixture f;

static int emit_request(void *user, const struct packet *p)
{
	(void)user;
	if (f.queued == 256)
		return -EAGAIN;
	f.queue[f.queued++] = *p;
	return 0;
}

static int emit_answer(void *user, const struct packet *p)
{
	(void)user;
	if (f.answers == f.room)
		return f.refusal;
	f.answer = *p;
	f.answers++;
	return 0;
}

void open_listener(unsigned i)
{
	f.ear[i].member = i;
	assert_int_equal(listener_open(&f.listener[i], f.memory, &f.ear[i]), 0);
	f.listener[i].emit = emit_answer;
	f.speaker.srqn[i] = rwk_src_srqn(f.listener[i].view);
}

void open_speaker(unsigned number)
{
	speaker_open(&f.speaker, number, f.qpn, PMTU);
	f.speaker.emit = emit_request;
}

int two_open(void **state)
{
	struct rwk_src_initiator initiator = speaker_initiator(0, PMTU);

	(void)state;
	f = (struct fixture){.room = 1000, .refusal = -EAGAIN};
	f.memory = shared_memory(rwk_src_segment_size(&two_size), &f.fd);
	assert_int_equal(rwk_src_segment_format(f.memory, &two_size), 0);
	open_listener(0);
	assert_int_equal(rwk_src_target_make(f.listener[0].view, &initiator, &f.qpn), 0);
	open_speaker(0);
	f.speaker.srqn[0] = rwk_src_srqn(f.listener[0].view);
	open_listener(1);
	return 0;
}

int two_close(void **state)
{
	(void)state;
	speaker_close(&f.speaker);
	for (unsigned i = 0; i < MEMBERS; i++)
		if (f.listener[i].view)
			rwk_src_view_close(f.listener[i].view);
	munmap(f.memory, rwk_src_segment_size(&two_size));
	close(f.fd);
	return 0;
}

static int open_with(void **state, uint16_t own)
{
	uint16_t before = speakers_own;
	int rc;

	speakers_own |= own;
	rc = two_open(state);
	speakers_own = before;
	return rc;
}

int two_open_lazy(void **state)
{
	return open_with(state, RWK_RC_LAZY);
}

int two_open_busy(void **state)
{
	return open_with(state, RWK_RC_BUSY);
}

void leave(unsigned i)
{
	rwk_src_view_close(f.listener[i].view);
	f.listener[i].view = NULL;
}

void post(unsigned member, unsigned packets)
{
	for (;;) {
		bool write;
		uint32_t n = message_length(0, member, f.speaker.posted[member], &write);

		if (!write && (n + PMTU - 1) / PMTU == packets)
			break;
		f.speaker.posted[member]++;
		f.ear[member].heard[0]++;
	}
	speaker_post(&f.speaker, member);
	speaker_speak(&f.speaker, 0, 1000);
}

void serve(unsigned member, unsigned packet)
{
	listener_packet(&f.listener[member], &f.queue[packet], 1000);
}

void serve_all(unsigned member)
{
	for (unsigned i = 0; i < f.queued; i++)
		serve(member, i);
	f.queued = 0;
	if (rwk_src_pump(f.listener[member].view, 1000))
		speaker_answer(&f.speaker, &f.answer, 2000);
}

const struct rwk_src_counters *count(unsigned member)
{
	return rwk_src_get_counters(f.listener[member].view);
}

void check_heard(unsigned member)
{
	if (f.ear[member].wrong)
		fail_msg("%s", f.ear[member].why);
	assert_int_equal(f.ear[member].heard[0], f.speaker.posted[member]);
}
