/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/startup/startup.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h *peer;

static const char *ucx_find(const char *name)
{
	const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
	ucs_status_t err = ucp_init(&params, NULL, &context);

	(void)name;
	return err ? ucs_status_string(err) : NULL;
}

static const char *ucx_open(struct startup_address *own)
{
	const ucp_worker_params_t worker_params = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE, .thread_mode = UCS_THREAD_MODE_SINGLE};
	ucp_address_t *address;
	ucs_status_t err = ucp_worker_create(context, &worker_params, &worker);

	if (!err)
		err = ucp_worker_get_address(worker, &address, &own->len);
	if (err)
		return ucs_status_string(err);
	if (own->len > sizeof(own->bytes))
		return "its address is longer than there is room";
	memcpy(own->bytes, address, own->len);
	ucp_worker_release_address(worker, address);
	return NULL;
}

/* An ucp endpoint is a connection, and begins to be made here. */
static const char *ucx_meet(const struct startup_address *all, unsigned n)
{
	peer = calloc(n, sizeof(*peer));
	if (!peer)
		return "out of memory";
	for (unsigned i = 0; i < n; i++) {
		const ucp_ep_params_t params = {
			.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = (const void *)all[i].bytes};
		ucs_status_t err = ucp_ep_create(worker, &params, &peer[i]);

		if (err)
			return ucs_status_string(err);
	}
	return NULL;
}

static const char *wait_for(ucs_status_ptr_t request)
{
	ucs_status_t err = UCS_PTR_STATUS(request);

	if (!UCS_PTR_IS_PTR(request))
		return err ? ucs_status_string(err) : NULL;
	while ((err = ucp_request_check_status(request)) == UCS_INPROGRESS) {
		if (!ucp_worker_progress(worker))
			sched_yield();
	}
	ucp_request_free(request);
	return err ? ucs_status_string(err) : NULL;
}

static const char *ucx_exchange(unsigned to)
{
	static const ucp_request_param_t param;
	static char out[8], in[8];
	ucs_status_ptr_t receive = ucp_tag_recv_nbx(worker, in, sizeof(in), 1, UINT64_MAX, &param);
	const char *why = wait_for(ucp_tag_send_nbx(peer[to], out, sizeof(out), 1, &param));

	return why ? why : wait_for(receive);
}

const struct startup_stack startup_ucx = {ucx_find, ucx_open, ucx_meet, ucx_exchange, NULL};
