/* SPDX-License-Identifier: BSD-3-Clause */
#include "fi_test.h"
#include "pattern.h"

#include <time.h>
#include <unistd.h>

#define API FI_VERSION(1, 17)

#ifdef __SANITIZE_ADDRESS__
/*
 * Where a library's thread-local variables lie the sanitizer guesses: at some addresses it takes its own header for the
 * C library's, and the leak check ends the program over what it has read there. It needs no guess, as it looks at all
 * that the dynamic linker has allocated.
 *
 * A cancelled thread leaves the marks around its variables on its stack. The sanitizer stumbles over them itself when
 * it takes down the thread's signal stack: so there is none.
 */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "intercept_tls_get_addr=0:use_sigaltstack=0";
}
#endif

void t_use_provider(void)
{
	setenv("FI_PROVIDER_PATH", RWK_PROVIDER_PATH, 1);
}

struct fi_info *t_hints(void)
{
	struct fi_info *hints = fi_allocinfo();

	assert_non_null(hints);
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("ropewalk");
	return hints;
}

int t_getinfo(const struct fi_info *hints, struct fi_info **info)
{
	*info = NULL;
	return fi_getinfo(API, NULL, NULL, 0, hints, info);
}

void t_domain_open_with(struct t_domain *d, struct fi_info *hints)
{
	t_domain_open_api(d, hints, API);
}

/* Bits of mr_mode that are heeded in the info that a domain is opened with, but not given to who offers them. */
#define UNGRANTED (FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ENDPOINT)

void t_domain_open_api(struct t_domain *d, struct fi_info *hints, uint32_t version)
{
	assert_int_equal(fi_getinfo(version, NULL, NULL, 0, hints, &d->info), 0);
	assert_false(d->info->domain_attr->mr_mode & UNGRANTED);
	d->info->domain_attr->mr_mode |= hints->domain_attr->mr_mode & UNGRANTED;
	fi_freeinfo(hints);
	assert_int_equal(fi_fabric(d->info->fabric_attr, &d->fabric, NULL), 0);
	assert_int_equal(fi_domain(d->fabric, d->info, &d->domain, NULL), 0);
}

void t_domain_open(struct t_domain *d, uint32_t addr_format, enum fi_threading threading)
{
	struct fi_info *hints = t_hints();

	hints->addr_format = addr_format;
	hints->domain_attr->threading = threading;
	t_domain_open_with(d, hints);
}

void t_domain_close(struct t_domain *d)
{
	assert_int_equal(fi_close(&d->domain->fid), 0);
	assert_int_equal(fi_close(&d->fabric->fid), 0);
	fi_freeinfo(d->info);
}

void t_end_open(struct t_end *e, struct t_domain *d, const struct t_options *o)
{
	static const struct t_options defaults;
	struct fi_cq_attr cq_attr = {0};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	uint64_t op_flags = d->info->tx_attr->op_flags;

	if (!o)
		o = &defaults;
	av_attr.flags = o->av_flags;
	*e = (struct t_end){.d = d, .name_len = sizeof(e->name)};
	cq_attr.format = o->format ? o->format : FI_CQ_FORMAT_TAGGED;
	cq_attr.wait_obj = o->wait;
	cq_attr.size = o->cq_size;
	if (o->cq)
		e->cq = o->cq;
	else
		assert_int_equal(fi_cq_open(d->domain, &cq_attr, &e->cq, NULL), 0);
	assert_int_equal(fi_av_open(d->domain, &av_attr, &e->av, NULL), 0);
	d->info->tx_attr->op_flags = o->tx_op_flags;
	assert_int_equal(fi_endpoint(d->domain, d->info, &e->ep, NULL), 0);
	d->info->tx_attr->op_flags = op_flags;
	assert_int_equal(fi_ep_bind(e->ep, &e->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV | o->bind_flags), 0);
	if (o->srx)
		assert_int_equal(fi_ep_bind(e->ep, &o->srx->fid, 0), 0);
	if (o->stx)
		assert_int_equal(fi_ep_bind(e->ep, &o->stx->fid, 0), 0);
	if (o->tx_cntr)
		/* As programs do that count whatever they start. */
		assert_int_equal(fi_ep_bind(e->ep, &o->tx_cntr->fid, FI_SEND | FI_READ | FI_WRITE), 0);
	if (o->rx_cntr)
		assert_int_equal(fi_ep_bind(e->ep, &o->rx_cntr->fid, FI_RECV), 0);
	assert_int_equal(fi_enable(e->ep), 0);
	assert_int_equal(fi_getname(&e->ep->fid, e->name, &e->name_len), 0);
}

/* A shared queue is its opener's: close refuses it while another endpoint is bound. */
void t_end_close(struct t_end *e)
{
	int err;

	assert_int_equal(fi_close(&e->ep->fid), 0);
	assert_int_equal(fi_close(&e->av->fid), 0);
	err = fi_close(&e->cq->fid);
	assert_true(err == 0 || err == -FI_EBUSY);
}

fi_addr_t t_insert(struct t_end *e, const void *name)
{
	fi_addr_t number = FI_ADDR_UNSPEC;

	assert_int_equal(fi_av_insert(e->av, name, 1, &number, 0, NULL), 1);
	return number;
}

int t_set_user_id(struct fid_av *av, fi_addr_t number, fi_addr_t user, uint64_t flags)
{
#if FI_MAJOR_VERSION >= 2
	return fi_av_set_user_id(av, number, user, flags);
#else
	const struct {
		struct fi_ops_av ops;
		void (*auth_key[2])(void);
		int (*set_user_id)(struct fid_av *av, fi_addr_t number, fi_addr_t user, uint64_t flags);
	} *ops = (const void *)av->ops;

	assert_true(av->ops->size >= sizeof(*ops));
	return ops->set_user_id(av, number, user, flags);
#endif
}

int64_t t_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void t_drive(struct fid_cq *cq)
{
	if (cq)
		fi_cq_read(cq, NULL, 0);
}

static void explain_error(struct fid_cq *cq)
{
	struct fi_cq_err_entry err = {0};

	if (fi_cq_readerr(cq, &err, 0) == 1)
		print_error("error entry: err %d (%s), flags %#llx\n", err.err, fi_strerror(err.err),
			(unsigned long long)err.flags);
}

struct fi_cq_tagged_entry t_wait(struct fid_cq *cq, struct fid_cq *other, fi_addr_t *source)
{
	struct fi_cq_tagged_entry entry = {0};
	int64_t end = t_now() + T_PATIENCE;
	fi_addr_t from;
	ssize_t n;

	while ((n = fi_cq_readfrom(cq, &entry, 1, &from)) == -FI_EAGAIN) {
		t_drive(other);
		if (t_now() > end)
			fail_msg("no completion");
	}
	if (n == -FI_EAVAIL)
		explain_error(cq);
	assert_int_equal(n, 1);
	if (source)
		*source = from;
	return entry;
}

struct fi_cq_err_entry t_wait_error(struct fid_cq *cq, struct fid_cq *other)
{
	struct fi_cq_err_entry err = {0};
	struct fi_cq_tagged_entry entry;
	int64_t end = t_now() + T_PATIENCE;
	ssize_t n;

	while ((n = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN) {
		t_drive(other);
		if (t_now() > end)
			fail_msg("no error entry");
	}
	assert_int_equal(n, -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(cq, &err, 0), 1);
	return err;
}

void t_nothing(struct fid_cq *cq, struct fid_cq *other)
{
	struct fi_cq_tagged_entry entry;

	for (int i = 0; i < 200; i++) {
		assert_int_equal(fi_cq_read(cq, &entry, 1), -FI_EAGAIN);
		t_drive(other);
	}
}

/* The pattern comes again after 256 bytes: the next piece begins otherwise. */
enum { PIECE = 256 };

void t_fill(void *buf, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i += PIECE, seed++)
		pattern_fill((char *)buf + i, len - i < PIECE ? len - i : PIECE, (uint8_t)seed);
}

void t_check(const void *buf, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i += PIECE, seed++) {
		size_t n = len - i < PIECE ? len - i : PIECE;
		size_t right = pattern_right((const char *)buf + i, n, (uint8_t)seed);

		if (right < n)
			fail_msg("byte %zu of %zu is wrong", i + right, len);
	}
}
