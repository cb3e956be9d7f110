/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registrations: the modes that a program can choose, what addresses and keys mean in each, memory in pieces and all
 * memory at once, and the rules of binding and closing.
 */
#include "fi_target.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* One write, one read back, and one refusal. */
static void works(struct t_user *u)
{
	uint64_t out = 0x1122334455667788, in = 0;
	struct t_answer a;
	char byte;

	t_post(fi_write(u->e.ep, &out, 8, NULL, u->to, u->base + 4096, u->key, &out), u->e.cq, NULL);
	t_done(u);
	a = t_ask(u, T_COPY, 4096, 0, 0);
	assert_int_equal(a.word[0], out);
	t_post(fi_read(u->e.ep, &in, 8, NULL, u->to, u->base + 4096, u->key, &in), u->e.cq, NULL);
	t_done(u);
	assert_int_equal(in, out);
	t_post(fi_read(u->e.ep, &byte, 1, NULL, u->to, u->base + T_MEMORY, u->key, &byte), u->e.cq, NULL);
	assert_int_equal(t_failed(u).err, FI_EACCES);
}

static void named_by_address(struct t_user *u)
{
	assert_int_equal(u->base, t_ask(u, T_ADDRESS, 0, 0, 0).word[0]);
	works(u);
}

static void key_is_own(struct t_user *u)
{
	assert_int_equal(u->base, 0);
	assert_int_equal(u->key, 0x1000);
	works(u);
}

static void address_and_own_key(struct t_user *u)
{
	assert_int_equal(u->key, 0x1000);
	named_by_address(u);
}

static void key_is_given(struct t_user *u)
{
	assert_int_equal(u->base, 0);
	assert_int_not_equal(u->key, 0x1000);
	works(u);
}

static void address_and_given_key(struct t_user *u)
{
	assert_int_not_equal(u->key, 0x1000);
	named_by_address(u);
}

static void modes(void **state)
{
	static const struct {
		int mode;
		uint32_t version;
		void (*run)(struct t_user *);
	} cases[] = {
		{0, 0, key_is_own},
		{T_MR_SCALABLE, 0, key_is_own},
		{T_MR_BASIC, 0, address_and_given_key},
		{FI_MR_LOCAL | FI_MR_ALLOCATED, 0, key_is_own},
		{FI_MR_VIRT_ADDR, 0, address_and_own_key},
		{FI_MR_PROV_KEY, 0, key_is_given},
		{FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY, 0, address_and_given_key},
		{FI_MR_RMA_EVENT, 0, key_is_own},
		{FI_MR_ENDPOINT, 0, key_is_own},
		{FI_MR_ENDPOINT | FI_MR_RMA_EVENT | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR, 0, address_and_given_key},
		{0, FI_VERSION(1, 4), address_and_given_key},
		{T_MR_SCALABLE, FI_VERSION(1, 4), key_is_own},
		{T_MR_BASIC, FI_VERSION(1, 4), address_and_given_key},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct t_setup setup = {.mr_mode = cases[i].mode, .version = cases[i].version};

		t_with_target("shm", &setup, cases[i].run);
		t_with_target("self", &setup, cases[i].run);
	}
}

/* An endpoint that writes to itself, in the test's process. */
struct own {
	struct t_domain d;
	struct t_end e;
	fi_addr_t me;
};

static void own_open(struct own *o, int mr_mode)
{
	struct fi_info *hints = t_hints();

	hints->domain_attr->mr_mode = mr_mode;
	t_domain_open_with(&o->d, hints);
	t_end_open(&o->e, &o->d, NULL);
	o->me = t_insert(&o->e, o->e.name);
}

static void own_close(struct own *o)
{
	t_end_close(&o->e);
	t_domain_close(&o->d);
}

/* What becomes of a write of 8 bytes: 0, or the error entry's. */
static int write_to(struct own *o, uint64_t address, uint64_t key, uint64_t word)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry e = {0};
	int64_t end = t_now() + T_PATIENCE;
	ssize_t n;

	t_post(fi_write(o->e.ep, &word, 8, NULL, o->me, address, key, &word), o->e.cq, NULL);
	while ((n = fi_cq_read(o->e.cq, &entry, 1)) == -FI_EAGAIN)
		assert_true(t_now() < end);
	if (n == 1)
		return 0;
	assert_int_equal(fi_cq_readerr(o->e.cq, &e, 0), 1);
	return e.err;
}

#define BOTH (FI_REMOTE_READ | FI_REMOTE_WRITE)

/*
 * A key that is in use is refused, one of local memory alone is not in use, and a closed one is free again. But none
 * that was drawn is drawn again, for who still has it would reach what is not meant.
 */
static void keys(struct t_process *p)
{
	uint64_t a = 0, b = 0, keys[100];
	struct fid_mr *first, *second, *many[50];
	struct own o;

	(void)p;
	own_open(&o, 0);
	assert_int_equal(fi_mr_reg(o.d.domain, &a, 8, BOTH, 0, UINT64_MAX - 1, 0, &first, NULL), 0);
	assert_int_equal(fi_mr_key(first), UINT64_MAX - 1);
	assert_int_equal(fi_mr_reg(o.d.domain, &b, 8, BOTH, 0, UINT64_MAX - 1, 0, &second, NULL), -FI_ENOKEY);
	assert_int_equal(fi_mr_reg(o.d.domain, &b, 8, FI_READ | FI_WRITE | FI_SEND | FI_RECV, 0, UINT64_MAX - 1, 0,
				 &second, NULL),
		0);
	assert_int_equal(fi_mr_key(second), UINT64_MAX - 1);
	assert_int_equal(write_to(&o, 0, UINT64_MAX - 1, 5), 0);
	assert_int_equal(a, 5);
	assert_int_equal(fi_close(&second->fid), 0);
	assert_int_equal(fi_mr_reg(o.d.domain, &b, 8, BOTH | FI_MULTI_RECV, 0, 1, 0, &second, NULL), -FI_EINVAL);
	assert_int_equal(fi_mr_reg(o.d.domain, &b, 8, BOTH | FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC, 0, 1, 0, &second,
				 NULL),
		0);
	assert_int_equal(write_to(&o, 0, 1, 4), 0);
	assert_int_equal(b, 4);
	assert_int_equal(fi_close(&second->fid), 0);
	assert_int_equal(fi_close(&o.d.domain->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&first->fid), 0);
	assert_int_equal(fi_mr_reg(o.d.domain, &b, 8, BOTH, 0, UINT64_MAX - 1, 0, &second, NULL), 0);
	assert_int_equal(write_to(&o, 0, UINT64_MAX - 1, 6), 0);
	assert_int_equal(a, 5);
	assert_int_equal(b, 6);
	assert_int_equal(fi_close(&second->fid), 0);
	assert_int_equal(write_to(&o, 0, UINT64_MAX - 1, 7), FI_EACCES);
	assert_int_equal(b, 6);
	own_close(&o);
	own_open(&o, FI_MR_PROV_KEY);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(fi_mr_reg(o.d.domain, &a, 8, BOTH, 0, 1, 0, &many[i % 50], NULL), 0);
		keys[i] = fi_mr_key(many[i % 50]);
		for (int j = 0; j < i; j++)
			assert_int_not_equal(keys[i], keys[j]);
		if (i < 50)
			assert_int_equal(fi_close(&many[i]->fid), 0);
	}
	for (int i = 0; i < 50; i++)
		assert_int_equal(fi_close(&many[i]->fid), 0);
	own_close(&o);
}

/* All memory: what is there can be written to, the rest is an error and no more. Both ways to ask for it. */
static void all_memory(struct t_process *p)
{
	long page = sysconf(_SC_PAGESIZE);
	static uint64_t global;
	uint64_t local = 0;
	struct fid_mr *mr;
	struct own o;

	(void)p;
	for (int i = 0; i < 2; i++) {
		char *hole = mmap(NULL, (size_t)(2 * page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		assert_true(hole != MAP_FAILED);
		assert_int_equal(mprotect(hole + page, (size_t)page, PROT_NONE), 0);
		own_open(&o, i ? FI_MR_VIRT_ADDR : 0);
		assert_int_equal(
			fi_mr_reg(o.d.domain, i ? 0 : NULL, i ? UINTPTR_MAX : UINT64_MAX, BOTH, 0, 3, 0, &mr, NULL), 0);
		assert_int_equal(write_to(&o, (uintptr_t)&global, 3, 100 + i), 0);
		assert_int_equal(write_to(&o, (uintptr_t)&local, 3, 200 + i), 0);
		assert_int_equal(write_to(&o, (uintptr_t)hole + page - 8, 3, 300), 0);
		assert_int_equal(global, 100 + i);
		assert_int_equal(local, 200 + i);
		assert_int_equal(write_to(&o, (uintptr_t)hole + page, 3, 1), FI_EFAULT);
		assert_int_equal(write_to(&o, 8, 3, 1), FI_EFAULT);
		assert_int_equal(write_to(&o, UINT64_MAX - 3, 3, 1), FI_EACCES);
		assert_int_equal(fi_close(&mr->fid), 0);
		own_close(&o);
		munmap(hole, (size_t)(2 * page));
	}
}

/* Pieces are one range to peers. */
static void pieces(struct t_process *p)
{
	static const int mode[] = {0, FI_MR_VIRT_ADDR};
	uint64_t word[16] = {0};
	struct iovec iov[9];
	struct fid_mr *mr;
	struct own o;

	(void)p;
	for (int i = 0; i < 9; i++)
		iov[i] = (struct iovec){&word[15 - i], 8};
	for (int m = 0; m < 2; m++) {
		uint64_t base = m ? (uintptr_t)&word[15] : 0;
		struct fi_mr_attr attr = {.mr_iov = iov, .iov_count = 8, .access = BOTH, .requested_key = 4};

		own_open(&o, mode[m]);
		assert_int_equal(fi_mr_regv(o.d.domain, iov, 9, BOTH, 0, 4, 0, &mr, NULL), -FI_EINVAL);
		assert_int_equal(fi_mr_regattr(o.d.domain, &attr, 0, &mr), 0);
		for (unsigned i = 0; i < 8; i++)
			assert_int_equal(write_to(&o, base + 8 * i, 4, i + 1), 0);
		assert_int_equal(write_to(&o, base + 60, 4, 9), FI_EACCES);
		for (unsigned i = 0; i < 16; i++)
			assert_int_equal(word[i], i < 8 ? 0 : 16 - i);
		assert_int_equal(fi_close(&mr->fid), 0);
		own_close(&o);
	}
}

/* With FI_MR_ENDPOINT a region is the endpoint's that it is bound to, and of no use before. */
static void of_an_endpoint(struct t_process *p)
{
	struct fid_mr *mr, *none;
	struct own o, other;
	struct t_end second;
	uint64_t word = 0;

	(void)p;
	own_open(&o, FI_MR_ENDPOINT);
	own_open(&other, 0);
	t_end_open(&second, &o.d, NULL);
	assert_int_equal(fi_mr_reg(o.d.domain, &word, 8, BOTH, 0, 5, 0, &mr, NULL), 0);
	assert_int_equal(write_to(&o, 0, 5, 1), FI_EACCES);
	assert_int_equal(fi_mr_enable(mr), -FI_EOPBADSTATE);
	assert_int_equal(fi_mr_bind(mr, &other.e.ep->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_mr_bind(mr, &o.e.ep->fid, FI_RECV), -FI_EBADFLAGS);
	assert_int_equal(fi_mr_bind(mr, &o.e.cq->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_mr_bind(mr, &o.e.ep->fid, 0), 0);
	assert_int_equal(fi_mr_bind(mr, &second.ep->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_mr_enable(mr), 0);
	assert_int_equal(fi_mr_bind(mr, &second.ep->fid, 0), -FI_EOPBADSTATE);
	assert_int_equal(write_to(&o, 0, 5, 2), 0);
	assert_int_equal(word, 2);
	o.me = t_insert(&o.e, second.name); /* the same domain's other endpoint */
	t_post(fi_write(o.e.ep, &o.me, 8, NULL, o.me, 0, 5, NULL), o.e.cq, second.cq);
	assert_int_equal(t_wait_error(o.e.cq, second.cq).err, FI_EACCES);
	assert_int_equal(word, 2);
	assert_int_equal(fi_close(&o.e.ep->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_mr_reg(other.d.domain, &word, 8, BOTH, 0, 5, 0, &none, NULL), 0);
	assert_int_equal(fi_mr_bind(none, &other.e.ep->fid, 0), -FI_EINVAL); /* it is the domain's */
	assert_int_equal(fi_mr_enable(none), 0);
	assert_int_equal(fi_mr_refresh(none, NULL, 0, 0), 0);
	assert_int_equal(fi_close(&none->fid), 0);
	t_end_close(&second);
	own_close(&other);
	own_close(&o);
}

/* Counters: one for each kind, which waits by itself although no endpoint has it, and is in use until the region goes.
 */
static void with_counters(struct t_process *p)
{
	struct fid_cntr *cntr, *more;
	uint64_t word = 0, out = 7;
	struct t_end second;
	struct fid_mr *mr;
	struct own o;

	(void)p;
	own_open(&o, 0);
	assert_int_equal(fi_cntr_open(o.d.domain, NULL, &cntr, NULL), 0);
	assert_int_equal(fi_cntr_open(o.d.domain, NULL, &more, NULL), 0);
	assert_int_equal(fi_mr_reg(o.d.domain, &word, 8, BOTH, 0, 5, FI_RMA_EVENT, &mr, NULL), 0);
	assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_SEND), -FI_EBADFLAGS);
	assert_int_equal(fi_mr_bind(mr, &cntr->fid, BOTH), 0);
	assert_int_equal(fi_mr_bind(mr, &more->fid, FI_REMOTE_WRITE), -FI_EINVAL);
	assert_int_equal(fi_close(&cntr->fid), -FI_EBUSY);
	t_end_open(&second, &o.d, NULL); /* after the counter: it drives this one too */
	o.me = t_insert(&o.e, second.name);
	t_post(fi_inject_write(o.e.ep, &out, 8, o.me, 0, 5), o.e.cq, second.cq);
	t_post(fi_fetch_atomic(o.e.ep, &out, 1, NULL, &out, NULL, o.me, 0, 5, FI_UINT64, FI_SUM, NULL), o.e.cq,
		second.cq);
	assert_int_equal(fi_cntr_wait(cntr, 2, T_PATIENCE), 0);
	assert_int_equal(fi_cntr_read(cntr), 2); /* what fetches and changes is one */
	t_wait(o.e.cq, NULL, NULL);
	assert_int_equal(word, 14);
	t_end_close(&second);
	assert_int_equal(fi_cntr_read(cntr), 2);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_cntr_read(cntr), 2);
	assert_int_equal(fi_close(&cntr->fid), 0);
	assert_int_equal(fi_close(&more->fid), 0);
	own_close(&o);
}

/* With FI_MR_RMA_EVENT a region that will have counters is of no use before it is enabled; others are at once. */
static void with_events(struct t_process *p)
{
	struct fid_cntr *cntr;
	struct fid_mr *mr, *plain;
	uint64_t word = 0;
	struct own o;

	(void)p;
	own_open(&o, FI_MR_RMA_EVENT);
	assert_int_equal(fi_cntr_open(o.d.domain, NULL, &cntr, NULL), 0);
	assert_int_equal(fi_mr_reg(o.d.domain, &word, 8, BOTH, 0, 6, 0, &plain, NULL), 0);
	assert_int_equal(write_to(&o, 0, 6, 1), 0);
	assert_int_equal(fi_mr_reg(o.d.domain, &word, 8, BOTH, 0, 5, FI_RMA_EVENT, &mr, NULL), 0);
	assert_int_equal(write_to(&o, 0, 5, 2), FI_EACCES);
	assert_int_equal(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	assert_int_equal(fi_mr_enable(mr), 0);
	assert_int_equal(write_to(&o, 0, 5, 3), 0);
	assert_int_equal(fi_cntr_read(cntr), 1);
	assert_int_equal(word, 3);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_close(&plain->fid), 0);
	assert_int_equal(fi_close(&cntr->fid), 0);
	own_close(&o);
}

/* Keys as bytes are the same keys. */
static void raw_keys(struct t_process *p)
{
	uint64_t word = 0, base = 1, key = 0;
	uint8_t raw[16];
	size_t size = 4;
	struct fid_mr *mr;
	struct own o;

	(void)p;
	own_open(&o, FI_MR_VIRT_ADDR | FI_MR_PROV_KEY);
	assert_int_equal(fi_mr_reg(o.d.domain, &word, 8, BOTH, 0, 0, 0, &mr, NULL), 0);
	assert_int_equal(fi_mr_raw_attr(mr, &base, raw, &size, 0), -FI_ETOOSMALL);
	assert_int_equal(size, 8);
	size = sizeof(raw);
	assert_int_equal(fi_mr_raw_attr(mr, &base, raw, &size, 0), 0);
	assert_int_equal(base, (uintptr_t)&word);
	assert_int_equal(fi_mr_map_raw(o.d.domain, base, raw, size, &key, 0), 0);
	assert_int_equal(key, fi_mr_key(mr));
	assert_int_equal(fi_mr_unmap_key(o.d.domain, key), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	own_close(&o);
}

/* Who offers modes that nobody needs names offsets and keys of its own all the same, as libfabric's own providers have
 * it: programs take a mode that is left set as one that they cannot do without. */
static void offered_modes(struct t_process *p)
{
	enum { KEYS = 4 };
	static const uint64_t keys[KEYS] = {0, 1, 0xc0de, UINT64_MAX - 1};
	struct fi_info *hints = t_hints();
	unsigned char memory[KEYS];
	struct fid_mr *mr[KEYS];
	struct t_domain d;

	(void)p;
	hints->caps = FI_RMA | FI_RMA_EVENT | FI_MSG;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	assert_int_equal(t_getinfo(hints, &d.info), 0);
	fi_freeinfo(hints);
	assert_int_equal(d.info->domain_attr->mr_mode, FI_MR_ALLOCATED);
	assert_int_equal(fi_fabric(d.info->fabric_attr, &d.fabric, NULL), 0);
	assert_int_equal(fi_domain(d.fabric, d.info, &d.domain, NULL), 0);
	for (int i = 0; i < KEYS; i++) {
		assert_int_equal(
			fi_mr_reg(d.domain, &memory[i], 1, FI_REMOTE_WRITE, 0, keys[i], 0, &mr[i], NULL), 0);
		assert_int_equal(fi_mr_key(mr[i]), keys[i]);
	}
	for (int i = 0; i < KEYS; i++)
		assert_int_equal(fi_close(&mr[i]->fid), 0);
	t_domain_close(&d);
}

static void idle(struct t_process *p)
{
	(void)p;
}

static void rules(void **state)
{
	static void (*const all[])(struct t_process *) = {
		keys, all_memory, pieces, of_an_endpoint, with_counters, with_events, raw_keys, offered_modes};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		t_two(NULL, all[i], idle, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modes),
		cmocka_unit_test(rules),
	};

	return cmocka_run_group_tests_name("libfabric/mr", tests, NULL, NULL);
}
