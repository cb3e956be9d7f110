/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* F_ADD_SEALS */
#include "shm/segment.h"

#include "base/param.h"
#include "base/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
	DESCRIPTORS_TAKEN = 2, /* that a datagram of a peer may bring: must always be free */
};

int rwk_shm_segment_make(const char *name, size_t size)
{
	int fd = rwk_shared_make(name, size), rc;

	if (fd < 0 || !fcntl(fd, F_ADD_SEALS, SEALS))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

void *rwk_shm_segment_map(int fd, size_t *size)
{
	struct stat st;
	void *at;

	if (fstat(fd, &st) || fcntl(fd, F_GET_SEALS) < 0 || (fcntl(fd, F_GET_SEALS) & SEALS) != SEALS ||
		(*size && st.st_size != (off_t)*size) || st.st_size < (off_t)RWK_SHM_PAGE || st.st_size > 1 << 30) {
		errno = EPROTO;
		return NULL;
	}
	at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return NULL;
	madvise(at, (size_t)st.st_size, MADV_DONTFORK);
	*size = (size_t)st.st_size;
	return at;
}

struct rwk_shm_inbox *rwk_shm_inbox_map(int fd)
{
	size_t size = sizeof(struct rwk_shm_inbox);
	struct rwk_shm_inbox *inbox = rwk_shm_segment_map(fd, &size);

	if (inbox && (rwk_glance(&inbox->magic) != RWK_SHM_INBOX_MAGIC ||
			rwk_glance(&inbox->layout) != RWK_SHM_LAYOUT_VERSION)) {
		munmap(inbox, size);
		errno = EPROTO;
		return NULL;
	}
	return inbox;
}

/* Sets up this side's view of a mapped pair. */
static void use_pair(
	struct rwk_shm_channel *ch, struct rwk_shm_pair_header *pair, size_t size, uint32_t ring_lines, unsigned side)
{
	unsigned char *base = (unsigned char *)pair;

	ch->pair = pair;
	ch->pair_size = size;
	ch->ring_lines = ring_lines;
	ch->side = side;
	rwk_shm_tx_init(&ch->tx, (void *)(base + rwk_shm_ring_at(ring_lines, side)), ring_lines, &pair->side[!side]);
	rwk_shm_rx_init(&ch->rx, (void *)(base + rwk_shm_ring_at(ring_lines, !side)), ring_lines, &pair->side[side]);
	rwk_shm_slabs_init(&ch->slabs, base + rwk_shm_slabs_at(ring_lines), side);
}

static uint32_t wanted_ring_lines(void)
{
	uint32_t lines = RWK_SHM_RING_MIN;

	while (lines * 2 <= rwk_params.ring_lines && lines < RWK_SHM_RING_MAX)
		lines *= 2;
	return lines;
}

/* Is the limit of descriptors so near that what the peers send could not be taken any more? `fd` is the newest one. */
static bool near_limit(int fd)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) && (rlim_t)fd + DESCRIPTORS_TAKEN >= limit.rlim_cur;
}

/* Memory for as much of it as is in use at first. */
static bool populate_ring(struct rwk_shm_pair_header *pair, uint32_t lines, unsigned side)
{
	return rwk_shared_populate(
		(char *)pair + rwk_shm_ring_at(lines, side), RWK_SHM_RING_MIN * sizeof(struct rwk_shm_line));
}

/* What was exposed before there was a pair has made a state already; else transfer.c asks for it with the first. */
static bool populate_transfers(const struct rwk_shm_channel *ch, struct rwk_shm_pair_header *pair, uint32_t lines)
{
	for (unsigned side = 0; side < 2 && ch->transfer; side++)
		if (!rwk_shared_populate(
			    (char *)pair + rwk_shm_transfer_at(lines, side), RWK_SHM_TRANSFER_BEGIN))
			return false;
	return true;
}

int rwk_shm_pair_make(struct rwk_shm_channel *ch)
{
	uint32_t lines = wanted_ring_lines();
	size_t size = rwk_shm_pair_size(lines);
	struct rwk_shm_pair_header *pair;
	int fd = rwk_shm_segment_make("ropewalk pair", size), rc;

	if (fd < 0)
		return fd;
	if (near_limit(fd)) {
		close(fd);
		return -EMFILE;
	}
	pair = rwk_shm_segment_map(fd, &size);
	if (!pair)
		goto err_close;
	/* What is needed at once is asked for now, so that a lack of memory is an answer and not a signal. */
	if (!rwk_shared_populate(pair, RWK_SHM_PAGE) || !populate_ring(pair, lines, 0) ||
		!populate_ring(pair, lines, 1) || !populate_transfers(ch, pair, lines))
		goto err_unmap;
	pair->magic = RWK_SHM_PAIR_MAGIC;
	pair->layout = RWK_SHM_LAYOUT_VERSION;
	pair->ring_lines = lines;
	pair->slabs = RWK_SHM_SLABS;
	pair->slab_bytes = RWK_SHM_SLAB_BYTES;
	pair->slab_stride = RWK_SHM_SLAB_STRIDE;
	pair->transfer_bytes = RWK_SHM_TRANSFER_BYTES;
	pair->size = size;
	pair->nonce_port[0] = ch->base.port->address.nonce_port;
	pair->nonce_port[1] = ch->to.nonce_port;
	for (int i = 0; i < 2; i++)
		rwk_publish32(&pair->side[i].consumed, RWK_SHM_STAMP_FIRST);
	use_pair(ch, pair, size, lines, 0);
	ch->pair_fd = fd;
	ch->base.port->offers++;
	return 0;

err_unmap:
	rc = -errno;
	munmap(pair, size);
	close(fd);
	return rc;
err_close:
	rc = -errno;
	close(fd);
	return rc;
}

static int map_pair(struct rwk_shm_channel *ch, int fd)
{
	size_t size = 0;
	struct rwk_shm_pair_header *pair = rwk_shm_segment_map(fd, &size);
	struct rwk_shm_pair_header h;

	if (!pair)
		return -errno;
	memcpy(&h, pair, sizeof(h));
	if (h.magic != RWK_SHM_PAIR_MAGIC || h.layout != RWK_SHM_LAYOUT_VERSION || h.ring_lines < RWK_SHM_RING_MIN ||
		h.ring_lines > RWK_SHM_RING_MAX || (h.ring_lines & (h.ring_lines - 1)) || h.slabs != RWK_SHM_SLABS ||
		h.slab_bytes != RWK_SHM_SLAB_BYTES || h.slab_stride != RWK_SHM_SLAB_STRIDE ||
		h.transfer_bytes != RWK_SHM_TRANSFER_BYTES || size != rwk_shm_pair_size(h.ring_lines) ||
		h.nonce_port[0] != ch->to.nonce_port || h.nonce_port[1] != ch->base.port->address.nonce_port) {
		munmap(pair, size);
		return -EPROTO;
	}
	if (!populate_transfers(ch, pair, h.ring_lines)) {
		munmap(pair, size);
		return -ENOMEM;
	}
	use_pair(ch, pair, size, h.ring_lines, 1);
	return 0;
}

int rwk_shm_offer_map(struct rwk_shm_channel *ch, int pair_fd, int inbox_fd)
{
	struct rwk_shm_inbox *inbox = rwk_shm_inbox_map(inbox_fd);
	int rc;

	if (!inbox)
		return -errno;
	rc = map_pair(ch, pair_fd);
	if (rc)
		munmap(inbox, sizeof(*inbox));
	else
		ch->inbox = inbox;
	return rc;
}

int rwk_shm_inbox_make(struct rwk_port *port)
{
	size_t size = sizeof(*port->inbox);

	port->inbox_fd = rwk_shm_segment_make("ropewalk inbox", size);
	if (port->inbox_fd < 0)
		return port->inbox_fd;
	port->inbox = rwk_shm_segment_map(port->inbox_fd, &size);
	if (!port->inbox)
		return -errno;
	if (!rwk_shared_populate(port->inbox, size))
		return -ENOMEM;
	port->inbox->magic = RWK_SHM_INBOX_MAGIC;
	port->inbox->layout = RWK_SHM_LAYOUT_VERSION;
	return 0;
}
