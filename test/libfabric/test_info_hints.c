/* SPDX-License-Identifier: BSD-3-Clause */
/* fi_getinfo: what is asked for in the hints against what is offered, for each type of endpoint. */
#include "fi_test.h"

/* Bits of mr_mode that are left as they are; the others are not needed. */
#define MR_MODES (FI_MR_ALLOCATED | FI_MR_RMA_EVENT)

/* Of those, what FI_EP_MSG leaves, and what it needs for its peers to reach memory. */
#define MSG_NEEDED (FI_MR_VIRT_ADDR | FI_MR_PROV_KEY)
#define MSG_MODES  (MSG_NEEDED | FI_MR_ALLOCATED)

/* One change to the hints each, and whether there is anything for it. */
struct hint_case {
	const char *what;
	void (*set)(struct fi_info *hints);
	bool good;
};

static void rma(struct fi_info *h) { h->caps = FI_RMA; }
static void atomics(struct fi_info *h) { h->caps = FI_MSG | FI_ATOMIC; }
static void ranges_9(struct fi_info *h) { h->tx_attr->rma_iov_limit = 9; }
static void rma_event(struct fi_info *h) { h->caps = FI_RMA | FI_REMOTE_WRITE | FI_RMA_EVENT; }
static void rma_pmem(struct fi_info *h) { h->caps = FI_RMA | FI_RMA_PMEM; }
static void rma_order(struct fi_info *h)
{
	h->tx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW;
}
static void send_order(struct fi_info *h) { h->tx_attr->msg_order = FI_ORDER_SAW; }
static void order_1k(struct fi_info *h) { h->ep_attr->max_order_waw_size = 1024; }
static void order_more(struct fi_info *h) { h->ep_attr->max_order_raw_size = 1025; }
static void order_all(struct fi_info *h) { h->ep_attr->max_order_war_size = SIZE_MAX; }
static void hmem(struct fi_info *h) { h->caps = FI_TAGGED | FI_HMEM; }
static void msg_only(struct fi_info *h) { h->caps = FI_MSG; }
static void send_only(struct fi_info *h) { h->caps = FI_TAGGED | FI_SEND; }
static void multi_recv(struct fi_info *h) { h->caps = FI_MSG | FI_MULTI_RECV | FI_SOURCE; }
static void ep_msg(struct fi_info *h) { h->ep_attr->type = FI_EP_MSG; }
static void ep_dgram(struct fi_info *h) { h->ep_attr->type = FI_EP_DGRAM; }
static void ep_any(struct fi_info *h) { h->ep_attr->type = FI_EP_UNSPEC; }
static void two_contexts(struct fi_info *h) { h->ep_attr->tx_ctx_cnt = 2; }
static void contexts_9(struct fi_info *h) { h->ep_attr->rx_ctx_cnt = 9; }
static void shared_context(struct fi_info *h) { h->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT; }
static void big_messages(struct fi_info *h) { h->ep_attr->max_msg_size = (size_t)1 << 40; }
static void auth_key(struct fi_info *h) { h->ep_attr->auth_key_size = 4; }
static void inject_256(struct fi_info *h) { h->tx_attr->inject_size = 256; }
static void inject_257(struct fi_info *h) { h->tx_attr->inject_size = 257; }
static void inject_4096(struct fi_info *h) { h->tx_attr->inject_size = 4096; }
static void inject_4097(struct fi_info *h) { h->tx_attr->inject_size = 4097; }
static void iov_8(struct fi_info *h) { h->tx_attr->iov_limit = h->rx_attr->iov_limit = 8; }
static void iov_9(struct fi_info *h) { h->tx_attr->iov_limit = 9; }
static void tx_65536(struct fi_info *h) { h->tx_attr->size = 65536; }
static void tx_65537(struct fi_info *h) { h->tx_attr->size = 65537; }
static void strict_order(struct fi_info *h) { h->tx_attr->msg_order = T_ORDER_STRICT; }
static void completion_order(struct fi_info *h) { h->rx_attr->comp_order = T_ORDER_STRICT; }
static void delivery(struct fi_info *h) { h->tx_attr->op_flags = FI_DELIVERY_COMPLETE | FI_COMPLETION; }
static void commit(struct fi_info *h) { h->tx_attr->op_flags = FI_COMMIT_COMPLETE; }
static void auto_data(struct fi_info *h) { h->domain_attr->data_progress = FI_PROGRESS_AUTO; }
static void auto_control(struct fi_info *h) { h->domain_attr->control_progress = FI_PROGRESS_AUTO; }
static void manual(struct fi_info *h)
{
	h->domain_attr->data_progress = h->domain_attr->control_progress = FI_PROGRESS_MANUAL;
}
static void thread_completion(struct fi_info *h) { h->domain_attr->threading = FI_THREAD_COMPLETION; }
static void no_thread_model(struct fi_info *h) { h->domain_attr->threading = (enum fi_threading)77; }
static void data_8(struct fi_info *h) { h->domain_attr->cq_data_size = 8; }
static void data_16(struct fi_info *h) { h->domain_attr->cq_data_size = 16; }
static void other_domain(struct fi_info *h) { h->domain_attr->name = strdup("eth0"); }
static void our_domain(struct fi_info *h) { h->domain_attr->name = strdup("ropewalk"); }
static void other_fabric(struct fi_info *h) { h->fabric_attr->name = strdup("192.168.0.0/24"); }
static void sockaddr(struct fi_info *h) { h->addr_format = FI_SOCKADDR; }
static void sockaddr_in6(struct fi_info *h) { h->addr_format = FI_SOCKADDR_IN6; }
static void native(struct fi_info *h) { h->addr_format = T_NATIVE; }
static void mr_bits(struct fi_info *h) { h->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY; }
static void mr_all_bits(struct fi_info *h) { h->domain_attr->mr_mode = ~(T_MR_BASIC | T_MR_SCALABLE); }
static void mr_mixed(struct fi_info *h) { h->domain_attr->mr_mode = T_MR_BASIC | FI_MR_VIRT_ADDR; }

static const struct hint_case hint_cases[] = {
	{"RMA", rma, true},
	{"atomics", atomics, true},
	{"9 ranges", ranges_9, false},
	{"events of RMA", rma_event, true},
	{"persistent memory", rma_pmem, false},
	{"reads and writes in order", rma_order, true},
	{"sends after writes in order", send_order, false},
	{"1 KiB in order", order_1k, true},
	{"1 KiB and a byte in order", order_more, false},
	{"everything in order", order_all, false},
	{"device memory", hmem, false},
	{"FI_MSG", msg_only, true},
	{"sends alone", send_only, true},
	{"multi-receive with source", multi_recv, true},
	{"FI_EP_MSG", ep_msg, true},
	{"FI_EP_DGRAM", ep_dgram, true},
	{"any endpoint", ep_any, true},
	{"two contexts", two_contexts, true},
	{"9 contexts", contexts_9, false},
	{"a shared context", shared_context, true},
	{"messages of 1 TiB", big_messages, true},
	{"a key", auth_key, false},
	{"inject 4096", inject_4096, true},
	{"inject 4097", inject_4097, false},
	{"8 pieces", iov_8, true},
	{"9 pieces", iov_9, false},
	{"65536 sends", tx_65536, true},
	{"65537 sends", tx_65537, false},
	{"strict order", strict_order, false},
	{"completion order", completion_order, false},
	{"delivery complete", delivery, true},
	{"commit complete", commit, false},
	{"automatic data progress", auto_data, true},
	{"automatic control progress", auto_control, true},
	{"manual progress", manual, true},
	{"FI_THREAD_COMPLETION", thread_completion, true},
	{"no threading model", no_thread_model, false},
	{"8 bytes of data", data_8, true},
	{"16 bytes of data", data_16, false},
	{"another domain", other_domain, false},
	{"our domain", our_domain, true},
	{"another fabric", other_fabric, false},
	{"FI_SOCKADDR", sockaddr, true},
	{"FI_SOCKADDR_IN6", sockaddr_in6, true},
	{"native addresses", native, true},
	{"mr_mode bits", mr_bits, true},
	{"all mr_mode bits", mr_all_bits, true},
	{"an old mr_mode and a bit", mr_mixed, false},
};

/* An entry has what was asked for; mr_mode has bits beyond that only where no peer could reach memory without. */
static void check_entry(const struct fi_info *hints, const struct fi_info *one)
{
	bool connected = one->ep_attr->type == FI_EP_MSG;
	int asked = hints->domain_attr->mr_mode & (connected ? MSG_MODES : MR_MODES);
	int needed = connected && one->caps & (FI_RMA | FI_ATOMIC) ? MSG_NEEDED : 0;

	assert_int_equal(one->caps & hints->caps, hints->caps);
	assert_int_equal(one->domain_attr->mr_mode, asked | needed);
	if (hints->ep_attr->type != FI_EP_UNSPEC)
		assert_int_equal(one->ep_attr->type, hints->ep_attr->type);
	if (hints->domain_attr->threading)
		assert_int_equal(one->domain_attr->threading, hints->domain_attr->threading);
}

static void check_hints(const struct hint_case *cases, size_t count, enum fi_ep_type type)
{
	for (size_t i = 0; i < count; i++) {
		const struct hint_case *c = &cases[i];
		struct fi_info *hints = t_hints(), *info;
		int err;

		hints->ep_attr->type = type;
		c->set(hints);
		err = t_getinfo(hints, &info);
		if (err != (c->good ? 0 : -FI_ENODATA))
			fail_msg("%s: fi_getinfo says %d", c->what, err);
		for (struct fi_info *one = info; one; one = one->next)
			check_entry(hints, one);
		if (info)
			fi_freeinfo(info);
		fi_freeinfo(hints);
	}
}

static void hint_table(void **state)
{
	(void)state;
	check_hints(hint_cases, sizeof(hint_cases) / sizeof(hint_cases[0]), FI_EP_RDM);
}

/* The same for FI_EP_MSG. */
static void tagged(struct fi_info *h) { h->caps = FI_TAGGED; }
static void directed(struct fi_info *h) { h->caps = FI_MSG | FI_DIRECTED_RECV; }
static void ranges_1(struct fi_info *h) { h->tx_attr->rma_iov_limit = 1; }
static void ranges_2(struct fi_info *h) { h->tx_attr->rma_iov_limit = 2; }
static void war(struct fi_info *h) { h->tx_attr->msg_order = FI_ORDER_WAR; }
static void order_2g(struct fi_info *h) { h->ep_attr->max_order_waw_size = (size_t)1 << 31; }
static void messages_2g(struct fi_info *h) { h->ep_attr->max_msg_size = (size_t)1 << 31; }
static void tx_8192(struct fi_info *h) { h->tx_attr->size = 8192; }
static void tx_8193(struct fi_info *h) { h->tx_attr->size = 8193; }
static void data_4(struct fi_info *h) { h->domain_attr->cq_data_size = 4; }
static void buffered(struct fi_info *h) { h->rx_attr->total_buffered_recv = 1; }
static void one_sided_with(struct fi_info *h, int mr_mode)
{
	h->caps = FI_MSG | FI_RMA;
	h->domain_attr->mr_mode = mr_mode;
}
static void rma_bare(struct fi_info *h) { one_sided_with(h, 0); }
static void rma_bits(struct fi_info *h) { one_sided_with(h, FI_MR_LOCAL | MSG_NEEDED); }
static void atomics_bits(struct fi_info *h)
{
	atomics(h);
	h->domain_attr->mr_mode = MSG_NEEDED;
}
static void rma_no_key(struct fi_info *h) { one_sided_with(h, FI_MR_LOCAL | FI_MR_VIRT_ADDR); }
static void rma_scalable(struct fi_info *h) { one_sided_with(h, T_MR_SCALABLE); }
static void local_bit(struct fi_info *h) { h->domain_attr->mr_mode = FI_MR_LOCAL; }

static const struct hint_case msg_cases[] = {
	{"messages", msg_only, true},
	{"tags", tagged, false},
	{"directed receives", directed, false},
	{"multi-receive with source", multi_recv, false},
	{"RMA, with nothing that it needs", rma_bare, false},
	{"RMA, with what it needs", rma_bits, true},
	{"RMA, with less", rma_no_key, false},
	{"RMA, with the keys of a scalable mr_mode", rma_scalable, false},
	{"whatever goes without mr_mode's bits", local_bit, true},
	{"atomics, with what they need", atomics_bits, true},
	{"events of RMA", rma_event, false},
	{"one range", ranges_1, true},
	{"two ranges", ranges_2, false},
	{"sends after writes in order", send_order, true},
	{"writes after reads in order", war, false},
	{"2 GiB in order", order_2g, true},
	{"messages of 2 GiB", messages_2g, true},
	{"messages of 1 TiB", big_messages, false},
	{"a shared context", shared_context, true},
	{"inject 256", inject_256, true},
	{"inject 257", inject_257, false},
	{"8 pieces", iov_8, true},
	{"9 pieces", iov_9, false},
	{"8192 sends", tx_8192, true},
	{"8193 sends", tx_8193, false},
	{"delivery complete", delivery, true},
	{"automatic data progress", auto_data, true},
	{"4 bytes of data", data_4, true},
	{"8 bytes of data", data_8, false},
	{"buffered receives", buffered, false},
	{"FI_SOCKADDR", sockaddr, true},
	{"FI_SOCKADDR_IN6", sockaddr_in6, true},
	{"native addresses", native, false},
};

static void msg_hint_table(void **state)
{
	(void)state;
	check_hints(msg_cases, sizeof(msg_cases) / sizeof(msg_cases[0]), FI_EP_MSG);
}

/* The same for FI_EP_DGRAM. */
static void with_source(struct fi_info *h) { h->caps = FI_MSG | FI_SOURCE; }
static void messages_1k(struct fi_info *h) { h->ep_attr->max_msg_size = 1024; }
static void messages_more(struct fi_info *h) { h->ep_attr->max_msg_size = 1025; }
static void by_ud(struct fi_info *h) { h->ep_attr->protocol = FI_PROTO_IB_UD; }
static void by_rdma(struct fi_info *h) { h->ep_attr->protocol = FI_PROTO_RDMA_CM_IB_RC; }
static void transmitted(struct fi_info *h) { h->tx_attr->op_flags = FI_TRANSMIT_COMPLETE | FI_INJECT; }
static void in_order(struct fi_info *h) { h->tx_attr->msg_order = FI_ORDER_SAS; }
static void prefix(struct fi_info *h) { h->ep_attr->msg_prefix_size = 40; }

static const struct hint_case dgram_cases[] = {
	{"messages", msg_only, true},
	{"with source", with_source, true},
	{"tags", tagged, false},
	{"RMA", rma_bare, false},
	{"atomics", atomics, false},
	{"directed receives", directed, false},
	{"multi-receive", multi_recv, false},
	{"1 KiB", messages_1k, true},
	{"1 KiB and a byte", messages_more, false},
	{"a prefix", prefix, false},
	{"UD", by_ud, true},
	{"RC", by_rdma, false},
	{"in order", in_order, false},
	{"with the kernel", transmitted, true},
	{"delivery complete", delivery, false},
	{"inject 256", inject_256, true},
	{"inject 257", inject_257, false},
	{"8 pieces", iov_8, true},
	{"9 pieces", iov_9, false},
	{"4 bytes of data", data_4, true},
	{"8 bytes of data", data_8, false},
	{"a shared context", shared_context, false},
	{"automatic data progress", auto_data, true},
	{"FI_SOCKADDR", sockaddr, true},
	{"FI_SOCKADDR_IN6", sockaddr_in6, true},
	{"native addresses", native, true},
	{"mr_mode bits", mr_bits, true},
};

static void dgram_hint_table(void **state)
{
	(void)state;
	check_hints(dgram_cases, sizeof(dgram_cases) / sizeof(dgram_cases[0]), FI_EP_DGRAM);
}

/* Without the bits of mr_mode that reaching memory needs there are messages alone; a mode is given to who has it. */
static void msg_modes(void **state)
{
	struct fi_info *hints = t_hints(), *info;

	(void)state;
	hints->ep_attr->type = FI_EP_MSG;
	local_bit(hints);
	hints->mode = FI_RX_CQ_DATA | FI_CONTEXT;
	for (int offered = 0; offered < 2; offered++) { /* nothing, and not enough */
		if (!offered)
			hints->domain_attr->mr_mode = 0;
		else
			local_bit(hints);
		hints->caps = FI_RMA;
		assert_int_equal(t_getinfo(hints, &info), -FI_ENODATA);
		hints->caps = 0;
		assert_int_equal(t_getinfo(hints, &info), 0);
		assert_int_equal(info->domain_attr->mr_mode, 0);
		assert_false(info->caps & FI_RMA);
		fi_freeinfo(info);
	}
	assert_int_equal(t_getinfo(hints, &info), 0);
	assert_int_equal(info->caps, FI_MSG | FI_SEND | FI_RECV | FI_FENCE | FI_LOCAL_COMM | FI_REMOTE_COMM);
	assert_int_equal(info->mode, 0);
	fi_freeinfo(info);
	rma_bits(hints);
	assert_int_equal(t_getinfo(hints, &info), 0);
	assert_int_equal(info->mode, FI_RX_CQ_DATA);
	assert_int_equal(info->rx_attr->mode, FI_RX_CQ_DATA);
	fi_freeinfo(info);
	hints->domain_attr->mr_mode = T_MR_BASIC;
	assert_int_equal(fi_getinfo(FI_VERSION(1, 1), NULL, NULL, 0, hints, &info), 0);
	assert_int_equal(info->domain_attr->mr_mode, T_MR_BASIC);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hint_table),
		cmocka_unit_test(msg_hint_table),
		cmocka_unit_test(dgram_hint_table),
		cmocka_unit_test(msg_modes),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
