/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that came before their turn, where both ends have agreed on the un-ordered types: whole, or the headers of
 * what is done already. By their numbers modulo the window, so at most RWK_RC_WINDOW_MAX of them.
 */
#include "channel_adapter/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct early_packet {
	struct rwk_wire w;
	size_t len;
	uint8_t bytes[];
};

int rwk_ca_open_early(struct rwk_qp *qp, bool agreed)
{
	rwk_ca_close_early(qp);
	if (!agreed)
		return 0;
	qp->early = calloc(RWK_RC_WINDOW_MAX, sizeof(struct early_packet *));
	return qp->early ? 0 : -ENOMEM;
}

void rwk_ca_close_early(struct rwk_qp *qp)
{
	free(qp->early);
	qp->early = NULL;
}

int rwk_ca_keep(void *user, uint32_t slot, const struct rwk_wire *w, const void *bytes, size_t len)
{
	struct rwk_qp *qp = user;
	struct early_packet *p = malloc(sizeof(*p) + len);

	if (!p)
		return -ENOMEM;
	p->w = *w;
	p->len = len;
	if (len)
		memcpy(p->bytes, bytes, len);
	qp->early[slot] = p;
	return 0;
}

const void *rwk_ca_kept(void *user, uint32_t slot, struct rwk_wire *w, size_t *len)
{
	const struct rwk_qp *qp = user;
	const struct early_packet *p = qp->early[slot];

	*w = p->w;
	*len = p->len;
	return p->bytes;
}

void rwk_ca_drop(void *user, uint32_t slot)
{
	struct rwk_qp *qp = user;

	free(qp->early[slot]);
	qp->early[slot] = NULL;
}

void rwk_ca_mark(void *user, uint32_t slot, const struct rwk_wire *w)
{
	struct rwk_qp *qp = user;

	qp->early[slot]->w = *w;
}
