/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What src/connect needs of the device layer beside ropewalk.h: streams of an adapter's. A stream is a connected TCP
 * socket to one peer. It tells of the peer's end, whatever the packets go by, and may carry those of a qp.
 */
#ifndef RWK_CHANNEL_ADAPTER_STREAM_H
#define RWK_CHANNEL_ADAPTER_STREAM_H

#include "include/ropewalk.h"
#include "link.h"

/** A stream and the qp to which it belongs; part of an object of its owner's, who zeroes it and sets the upcalls. */
struct rwk_ca_stream {
	struct rwk_adapter *adapter;
	struct rwk_qp *qp; /* NULL: none, or none any more */
	bool open;
	struct rwk_link_address at;
	/**
	 * Set by the owner: where a peer is that will take the qp's packets, by UDP, only from where they would come
	 * now, though the qp is in INIT still; NULL: there is none.
	 */
	const uint8_t *peer_ip;
	/**
	 * From the adapter's work: the stream has ended (links/stream/stream.h says by what), and is none any more. Who
	 * is told sends the qp to ERR, and may part from it.
	 */
	void (*ended)(struct rwk_ca_stream *s, int status);
	/**
	 * The qp failed with this errno, or (-ECANCELED) is being reset or destroyed and belongs to the stream no more.
	 * It calls no function of the adapter's.
	 */
	void (*failed)(struct rwk_ca_stream *s, int err);
};

/** Once for an adapter, before anything else here: 0 (it may be open); -EMFILE, -ENOMEM. Closed with the adapter. */
int rwk_ca_streams_open(struct rwk_adapter *a);
/** Readable when there is something on a stream; rwk_ca_work takes it. */
int rwk_ca_streams_fd(const struct rwk_adapter *a);
/** Is there something that has been read and waits for the next rwk_ca_work? The descriptor does not tell of that. */
bool rwk_ca_streams_busy(const struct rwk_adapter *a);

/** The socket is the stream's from now on; errors as rwk_streams_take, and it is the caller's then. */
int rwk_ca_stream_take(struct rwk_ca_stream *s, struct rwk_adapter *a, int fd, bool alone);
/**
 * As if it had not been taken, nor its qp's packets gone by it: the socket is the caller's again. Its qp is in INIT or
 * ERR, and the adapter has done no work since.
 */
void rwk_ca_stream_give_back(struct rwk_ca_stream *s);
/** In good order. Nothing, if it is not open. Its qp, if it has one, stays as it is. */
void rwk_ca_stream_leave(struct rwk_ca_stream *s);

/** The stream, which need not be open yet, and the qp belong together. 0; -EBUSY: the qp has one. */
int rwk_ca_stream_join(struct rwk_ca_stream *s, struct rwk_qp *qp);
/** No more. A qp whose packets went by the stream stays without a link until its RESET: so it is in ERR. */
void rwk_ca_stream_part(struct rwk_ca_stream *s);
/**
 * From now on the packets of its qp, which is in INIT, go by the (open) stream; the peer_ip and peer_port of its RTR do
 * not matter. Until the qp's RESET.
 */
void rwk_ca_stream_carry(struct rwk_ca_stream *s);
/**
 * The largest PMTU of which a packet fits a segment of that TCP connection's; the smallest there is, if none does. 0:
 * it is no TCP socket.
 */
uint32_t rwk_ca_stream_pmtu(int fd);

/** What its creator has chosen. */
enum rwk_qp_type rwk_ca_qp_type(const struct rwk_qp *qp);
struct rwk_adapter *rwk_ca_qp_adapter(const struct rwk_qp *qp);
const uint8_t *rwk_ca_adapter_ip(const struct rwk_adapter *a);
/** May a peer's qp have that number? 0 and 1 are other qps, the last one is nobody's. */
static inline bool rwk_ca_may_be_qp(uint32_t number)
{
	return number > 1 && number < 0xffffff;
}

/** What rwk_cq_poll does before it takes completions: takes what the links have, and pumps. */
void rwk_ca_work(struct rwk_adapter *a);
/** So many objects of src/connect belong to the adapter more, or less: with some it is not closed. */
void rwk_ca_count_channels(struct rwk_adapter *a, int change);

#endif
