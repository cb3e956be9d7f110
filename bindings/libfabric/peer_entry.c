/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/peer_forms.h"

/* Of the headers that we see, whichever they are. */
#if FI_MAJOR_VERSION < 2
#define SEEN_ENTRY struct rwk_fi_first_entry
#define SEEN_OWNER struct rwk_fi_first_owner
#else
#if FI_MINOR_VERSION < 3
#define SEEN_ENTRY struct rwk_fi_second_entry
#else
#define SEEN_ENTRY struct rwk_fi_third_entry
#endif
#define SEEN_OWNER struct rwk_fi_second_owner
#endif
_Static_assert(sizeof(SEEN_ENTRY) == sizeof(struct fi_peer_rx_entry) &&
		       offsetof(SEEN_ENTRY, message.tag) == offsetof(struct fi_peer_rx_entry, tag) &&
		       offsetof(SEEN_ENTRY, receive.flags) == offsetof(struct fi_peer_rx_entry, flags) &&
		       offsetof(SEEN_ENTRY, receive.peer_context) == offsetof(struct fi_peer_rx_entry, peer_context) &&
		       offsetof(SEEN_ENTRY, receive.iov) == offsetof(struct fi_peer_rx_entry, iov) &&
		       sizeof(SEEN_OWNER) == sizeof(struct fi_ops_srx_owner) &&
		       offsetof(SEEN_OWNER, free_entry) == offsetof(struct fi_ops_srx_owner, free_entry),
	"the form is that of the headers");

bool rwk_fi_peer_known(void)
{
	return FI_MAJOR(fi_version()) > 1 || fi_version() == FI_VERSION(1, 17);
}

static const struct rwk_fi_first_owner *first_of(const struct fid_peer_srx *srx)
{
	return (const struct rwk_fi_first_owner *)srx->owner_ops;
}

static const struct rwk_fi_second_owner *second_of(const struct fid_peer_srx *srx)
{
	return (const struct rwk_fi_second_owner *)srx->owner_ops;
}

struct rwk_fi_receive *rwk_fi_entry_receive(struct fi_peer_rx_entry *entry)
{
	union rwk_fi_any_entry *any = (union rwk_fi_any_entry *)entry;

	if (rwk_fi_is_first())
		return &any->first.receive;
	return rwk_fi_is_linked() ? &any->second.receive : &any->third.receive;
}

struct rwk_fi_message *rwk_fi_entry_message(struct fi_peer_rx_entry *entry)
{
	union rwk_fi_any_entry *any = (union rwk_fi_any_entry *)entry;

	if (rwk_fi_is_first())
		return &any->first.message;
	return rwk_fi_is_linked() ? &any->second.message : &any->third.message;
}

uint64_t *rwk_fi_entry_data(struct fi_peer_rx_entry *entry)
{
	union rwk_fi_any_entry *any = (union rwk_fi_any_entry *)entry;

	if (rwk_fi_is_first())
		return NULL;
	return rwk_fi_is_linked() ? &any->second.data : &any->third.data;
}

bool rwk_fi_entry_owner_is_whole(const struct fid_peer_srx *srx)
{
	size_t whole = rwk_fi_is_first() ? sizeof(struct rwk_fi_first_owner) : sizeof(struct rwk_fi_second_owner);

	return srx->owner_ops && first_of(srx)->size >= whole;
}

int rwk_fi_entry_get(
	struct fid_peer_srx *srx, const struct rwk_offer *m, fi_addr_t from, struct fi_peer_rx_entry **entry)
{
	struct rwk_fi_second_match match = {
		.addr = from, .size = m->length, .tag = m->space == RWK_TAGGED ? m->tag : 0};

	if (!rwk_fi_is_first())
		return (m->space == RWK_TAGGED ? second_of(srx)->get_tag : second_of(srx)->get_msg)(srx, &match, entry);
	if (m->space == RWK_TAGGED)
		return first_of(srx)->get_tag(srx, from, m->tag, entry);
	return first_of(srx)->get_msg(srx, from, m->length, entry);
}

int rwk_fi_entry_queue(struct fid_peer_srx *srx, enum rwk_space space, struct fi_peer_rx_entry *entry)
{
	/* The same place in all forms. */
	return (space == RWK_TAGGED ? first_of(srx)->queue_tag : first_of(srx)->queue_msg)(entry);
}

void rwk_fi_entry_tell_data(struct fi_peer_rx_entry *entry, const struct rwk_offer *m)
{
	uint64_t *data = rwk_fi_entry_data(entry);

	if (!m->has_data)
		return;
	rwk_fi_entry_receive(entry)->flags |= FI_REMOTE_CQ_DATA;
	if (data)
		*data = m->data;
}

void rwk_fi_entry_ask_unknown(struct fid_peer_srx *srx, fi_addr_t (*number)(struct fi_peer_rx_entry *entry))
{
	if (!rwk_fi_is_first())
		second_of(srx)->foreach_unspec_addr(srx, number);
}

void rwk_fi_entry_free(struct fid_peer_srx *srx, struct fi_peer_rx_entry *entry)
{
	if (rwk_fi_is_first())
		first_of(srx)->free_entry(entry);
	else
		second_of(srx)->free_entry(entry);
}
