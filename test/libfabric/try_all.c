/* SPDX-License-Identifier: BSD-3-Clause */
#include "try.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define NAMES_MAX 4096

static unsigned char memory[8192];

void t_report(const struct t_target *t, const char *group, const char *name, const char *place, long result)
{
	printf("%s\t%s\t%s\t%s\t%ld\n", group, name, t->kind, place, result);
	fflush(stdout);
}

long t_opened(long result, const void *object)
{
	struct fid *fid;

	memcpy(&fid, object, sizeof(fid));
	if (!result)
		assert_int_equal(fi_close(fid), 0);
	return result;
}

struct fi_info *t_kind_hints(enum fi_ep_type type)
{
	struct fi_info *hints = type == FI_EP_MSG ? t_msg_hints() : t_hints();

	hints->ep_attr->type = type;
	return hints;
}

/* Memory that the endpoint itself, or its peer, may reach. */
static void expose(struct t_target *t, struct fid_domain *domain)
{
	bool by_address = t->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;

	t->remote = by_address ? (uintptr_t)memory : 0;
	if (t->info->caps & (FI_RMA | FI_ATOMIC)) {
		assert_int_equal(fi_mr_reg(domain, memory, sizeof(memory), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0,
					 &t->mr, NULL),
			0);
		t->key = fi_mr_key(t->mr);
	}
}

static void open_connected(struct t_target *t)
{
	t_sides_open(&t->client, &t->server, NULL);
	t->info = t->client.info;
	t->fabric = t->client.fabric;
	t->domain = t->client.domain;
	t->eq = t->client.eq;
	t->ep = t->client.ep;
	t->cq = t->client.cq;
	for (int i = 0; i < 256; i++)
		assert_int_equal(fi_recv(t->server.ep, memory, sizeof(memory), NULL, 0, NULL), 0);
	expose(t, t->server.domain);
}

static void open_connectionless(struct t_target *t)
{
	struct fi_eq_attr eq = {.wait_obj = FI_WAIT_UNSPEC};

	t_domain_open_with(&t->d, t_kind_hints(t->type));
	t_end_open(&t->end, &t->d, &(struct t_options){.wait = FI_WAIT_UNSPEC});
	t->to = t_insert(&t->end, t->end.name);
	t->info = t->d.info;
	t->fabric = t->d.fabric;
	t->domain = t->d.domain;
	t->ep = t->end.ep;
	t->cq = t->end.cq;
	t->av = t->end.av;
	assert_int_equal(fi_eq_open(t->fabric, &eq, &t->eq, NULL), 0);
	expose(t, t->domain);
}

static void close_target(struct t_target *t)
{
	if (t->type == FI_EP_MSG) {
		assert_int_equal(fi_close(&t->cntr->fid), 0);
		if (t->mr)
			assert_int_equal(fi_close(&t->mr->fid), 0);
		t_sides_close(&t->client, &t->server);
		return;
	}
	t_end_close(&t->end); /* what waits for the counter ends with it */
	assert_int_equal(fi_close(&t->cntr->fid), 0);
	if (t->mr)
		assert_int_equal(fi_close(&t->mr->fid), 0);
	assert_int_equal(fi_close(&t->eq->fid), 0);
	t_domain_close(&t->d);
}

/* Everything, with endpoints of one kind. */
static void try_kind(struct t_target *t, const struct t_name *names, size_t count)
{
	struct fi_info *hints = t_kind_hints(t->type), *info = NULL;
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	int err = t_getinfo(hints, &info);

	fi_freeinfo(hints);
	t_report(t, "kind", t->kind, "fi_getinfo", err);
	if (err)
		return;
	fi_freeinfo(info);
	if (t->type == FI_EP_MSG)
		open_connected(t);
	else
		open_connectionless(t);
	assert_int_equal(fi_cntr_open(t->domain, &attr, &t->cntr, NULL), 0);
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(names[i].group, "flag"))
			t_try_flag(t, &names[i]);
		else if (!t_try_hint(t, &names[i]))
			t_try_object(t, &names[i]);
	}
	t_try_transfers(t);
	t_try_calls(t);
	t_try_connection(t);
	close_target(t);
}

int main(void)
{
	static struct t_name names[NAMES_MAX];
	struct t_target kinds[] = {
		{.kind = "RDM", .type = FI_EP_RDM},
		{.kind = "MSG", .type = FI_EP_MSG},
		{.kind = "DGRAM", .type = FI_EP_DGRAM},
	};
	size_t count = 0;

	setenv("CMOCKA_TEST_ABORT", "1", 1); /* there is no test around a failed assertion: it ends the program */
	alarm(T_PATIENCE / 1000);
	t_use_provider();
	while (count < NAMES_MAX &&
		scanf("%31s %63s %" SCNu64, names[count].group, names[count].name, &names[count].value) == 3)
		count++;
	assert_true(count && feof(stdin));
	for (int i = 0; i < 3; i++)
		try_kind(&kinds[i], names, count);
	return 0;
}
