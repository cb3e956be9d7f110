/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of endpoints, side by side. */
#include "bindings/libfabric/info.h"
#include "bindings/libfabric/mr.h"
#include "bindings/libfabric/msg.h"
#include "ud/ud.h"

/* What rma.h promises of reads and writes among themselves, up to RWK_FI_MAX_ORDER; nothing of sends towards them. */
#define RDM_ORDER                                                                                                      \
	(FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_RMA_RAR |                 \
		FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW |   \
		FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)

/* What ropewalk.h promises of a qp: each waits for the one before, but a send or write for no read or atomic. */
#define MSG_ORDER                                                                                                      \
	(FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAS | FI_ORDER_WAW | FI_ORDER_RAS | FI_ORDER_RAW | FI_ORDER_RAR |      \
		FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAW)

#define LEVELS                                                                                                         \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE |                \
		FI_MATCH_COMPLETE)

const struct rwk_fi_kind rwk_fi_rdm = {
	.type = FI_EP_RDM,
	.name = "FI_EP_RDM",
	.tx_caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE | FI_FENCE | FI_TRIGGER |
		   FI_NAMED_RX_CTX,
	.rx_caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RMA_EVENT |
		   FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV | FI_TRIGGER,
	.domain_caps = FI_PEER | RWK_FI_AV_CAPS,
	.tx_op_flags = LEVELS,
	.rx_op_flags = FI_COMPLETION | FI_MULTI_RECV,
	.msg_order = RDM_ORDER,
	.mr_granted = RWK_FI_MR_GRANTED,
	.protocol = RWK_FI_PROTO,
	.inject_size = RWK_INJECT_MAX,
	.iov_limit = RWK_ENGINE_IOV_MAX,
	.rma_iov_limit = RWK_ENGINE_IOV_MAX,
	.mr_iov_limit = RWK_ENGINE_IOV_MAX,
	.tx_size = 1024,
	.tx_size_max = 65536,
	.rx_size = 8192, /* a promise only: the number of receives posted is not limited */
	.rx_size_max = (size_t)1 << 20,
	.max_buffered = RWK_FI_MAX_MSG,
	.max_msg_size = RWK_FI_MAX_MSG,
	.max_order_raw = RWK_FI_MAX_ORDER,
	.max_order_war = RWK_FI_MAX_ORDER,
	.max_order_waw = RWK_FI_MAX_ORDER,
	.tag_format = RWK_FI_TAG_FORMAT,
	.data_size = 8,
	.key_size = sizeof(uint64_t),
	.ep_cnt = RWK_FI_OBJECTS,
	.mr_cnt = RWK_FI_OBJECTS,
	.srx_cnt = RWK_FI_OBJECTS,
	.stx_cnt = RWK_FI_OBJECTS,
	.contexts = RWK_ROOMS,
	.native = true,
};

#define MSG_MAX ((size_t)1 << 31) /* bytes of a request */

const struct rwk_fi_kind rwk_fi_msg = {
	.type = FI_EP_MSG,
	.name = "FI_EP_MSG",
	.tx_caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE | FI_FENCE,
	.rx_caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE,
	.tx_op_flags = LEVELS,
	.rx_op_flags = FI_COMPLETION,
	.msg_order = MSG_ORDER,
	.mode = FI_RX_CQ_DATA,
	.mr_needed = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY,
	.mr_granted = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED,
	.protocol = RWK_FI_PROTO + 1,
	.inject_size = RWK_FI_MSG_INJECT,
	.iov_limit = RWK_FI_MSG_IOV,
	.rma_iov_limit = 1,
	.mr_iov_limit = 1,
	.tx_size = 256,
	.tx_size_max = 8192,
	.rx_size = 512,
	.rx_size_max = 8192,
	.max_msg_size = MSG_MAX,
	.max_order_raw = MSG_MAX,
	.max_order_waw = MSG_MAX,
	.data_size = sizeof(uint32_t),
	.key_size = sizeof(uint32_t),
	/* A fabric's, and a registration of each domain's is its own. */
	.ep_cnt = RWK_QPS_MAX,
	.mr_cnt = RWK_MRS_MAX - 1,
	.srx_cnt = RWK_SRQS_MAX,
	.stx_cnt = RWK_FI_OBJECTS,
	.contexts = 1,
};

/* A send is done once the kernel has it: nobody tells of more. Nothing is ordered. */
const struct rwk_fi_kind rwk_fi_dgram = {
	.type = FI_EP_DGRAM,
	.name = "FI_EP_DGRAM",
	.domain_caps = RWK_FI_AV_CAPS,
	.tx_caps = FI_MSG | FI_SEND,
	.rx_caps = FI_MSG | FI_RECV | FI_SOURCE,
	.tx_op_flags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE,
	.rx_op_flags = FI_COMPLETION,
	.mr_granted = RWK_FI_MR_GRANTED,
	.protocol = FI_PROTO_IB_UD,
	.inject_size = RWK_UD_MTU_LEAST,
	.iov_limit = RWK_UD_IOV,
	.mr_iov_limit = RWK_ENGINE_IOV_MAX,
	.tx_size = 256, /* a promise only: no send is under way when its call returns */
	.tx_size_max = 8192,
	.rx_size = 512,
	.rx_size_max = 8192,
	.data_size = sizeof(uint32_t),
	.key_size = sizeof(uint64_t),
	.ep_cnt = RWK_FI_OBJECTS,
	.mr_cnt = RWK_FI_OBJECTS,
	.contexts = 1,
	.native = true,
};

size_t rwk_fi_kind_max_msg(const struct rwk_fi_kind *k)
{
	return k->max_msg_size ? k->max_msg_size : rwk_ud_mtu();
}
