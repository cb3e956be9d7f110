/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that connect two endpoints; what is for connections alone is asked of others too. */
#include "try.h"

static void called(struct t_target *t, const char *name, long err)
{
	t_report(t, "call", name, "call", err);
}

static void try_without(struct t_target *t, struct fid_pep *pep)
{
	unsigned char name[64] = {0};
	size_t len = sizeof(name);

	called(t, "fi_passive_ep", t_opened(fi_passive_ep(t->fabric, t->info, &pep, NULL), &pep));
	called(t, "fi_getpeer", fi_getpeer(t->ep, name, &len));
	called(t, "fi_connect", fi_connect(t->ep, t->end.name, NULL, 0));
	called(t, "fi_accept", fi_accept(t->ep, NULL, 0));
	called(t, "fi_shutdown", fi_shutdown(t->ep, 0));
}

/* One connection is refused, the next one taken, used by nobody, and ended. */
static void try_with(struct t_target *t)
{
	struct t_side client, server;
	struct t_event e;
	unsigned char name[T_CM_DATA];
	size_t len = sizeof(name);

	t_side_open(&client, NULL);
	t_side_open(&server, NULL);
	t_side_listen(&server); /* fails unless these calls return 0 */
	called(t, "fi_passive_ep", 0);
	called(t, "fi_pep_bind", 0);
	called(t, "fi_listen", 0);
	t_side_endpoint(&client, NULL);
	called(t, "fi_connect", fi_connect(client.ep, &server.name, NULL, 0));
	e = t_side_event(&server, &client, FI_CONNREQ);
	called(t, "fi_reject", fi_reject(server.pep, e.info->handle, NULL, 0));
	fi_freeinfo(e.info);
	t_side_error(&client, &server, name);
	t_opened(0, &client.ep);
	t_opened(0, &client.cq);
	t_side_endpoint(&client, NULL);
	assert_int_equal(fi_connect(client.ep, &server.name, NULL, 0), 0);
	e = t_side_event(&server, &client, FI_CONNREQ);
	t_side_endpoint(&server, e.info);
	fi_freeinfo(e.info);
	called(t, "fi_accept", fi_accept(server.ep, NULL, 0));
	t_side_event(&client, &server, FI_CONNECTED);
	t_side_event(&server, &client, FI_CONNECTED);
	called(t, "fi_getpeer", fi_getpeer(client.ep, name, &len));
	called(t, "fi_shutdown", fi_shutdown(client.ep, 0));
	t_sides_close(&client, &server);
}

void t_try_connection(struct t_target *t)
{
	if (t->type == FI_EP_MSG)
		try_with(t);
	else
		try_without(t, NULL);
}
