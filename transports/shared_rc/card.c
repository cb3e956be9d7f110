/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* memfd_create, F_ADD_SEALS */
#include "shared_rc/card.h"

#include "base/compiler.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	VERSION = 1,
	MAC = 32,
	NAME_MAX_BYTES = 64, /* of a card's name, with what the kernel writes around it */
	SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL,
};

/* Without padding: the MAC covers every byte before it. */
struct card {
	char role[8];
	uint32_t version, uid;
	uint64_t id;
	struct rwk_src_size size;
	int32_t fd[RWK_SRC_THINGS];
	uint64_t inode[RWK_SRC_THINGS];
	uint8_t mac[MAC];
};
_Static_assert(offsetof(struct card, mac) == 24 + 12 + 4 * RWK_SRC_THINGS + 8 * RWK_SRC_THINGS, "no padding");

static const char role[8] = "card";

static void make_mac(const struct rwk_src_secret *secret, const struct card *c, uint8_t mac[MAC])
{
	crypto_generichash(mac, MAC, (const uint8_t *)c, offsetof(struct card, mac), secret->key, sizeof(secret->key));
}

static void name_of(const struct rwk_src_secret *secret, char name[NAME_MAX_BYTES])
{
	char hex[2 * sizeof(secret->name) + 1];

	sodium_bin2hex(hex, sizeof(hex), secret->name, sizeof(secret->name));
	snprintf(name, NAME_MAX_BYTES, "ropewalk card %s", hex);
}

static int inode_of(int fd, uint64_t *inode)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*inode = st.st_ino;
	return 0;
}

int rwk_src_card_make(const struct rwk_src_secret *secret, const struct rwk_src_holding *holding)
{
	struct card c = {.version = VERSION, .uid = secret->uid, .id = holding->id, .size = holding->size};
	char name[NAME_MAX_BYTES];
	int fd, rc = 0;

	memcpy(c.role, role, sizeof(role));
	for (int i = 0; !rc && i < RWK_SRC_THINGS; i++) {
		c.fd[i] = holding->fd[i];
		rc = inode_of(c.fd[i], &c.inode[i]);
	}
	if (rc)
		return rc;
	make_mac(secret, &c, c.mac);
	name_of(secret, name);
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (pwrite(fd, &c, sizeof(c), 0) == sizeof(c) && !fcntl(fd, F_ADD_SEALS, SEALS))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/*
 * Taking.
 */

static bool is_good(const struct card *c, const struct rwk_src_secret *secret)
{
	uint8_t expected[MAC];

	make_mac(secret, c, expected);
	return !memcmp(c->role, role, sizeof(role)) && c->version == VERSION && c->uid == secret->uid &&
	       !sodium_memcmp(c->mac, expected, MAC);
}

static bool read_card(int folder, const char *entry, const struct rwk_src_secret *secret, struct card *c)
{
	int fd = openat(folder, entry, O_RDONLY | O_CLOEXEC);
	bool good = fd >= 0 && pread(fd, c, sizeof(*c), 0) == sizeof(*c) && is_good(c, secret);

	if (fd >= 0)
		close(fd);
	return good;
}

static bool has_name(int folder, const char *entry, const char *wanted)
{
	char to[NAME_MAX_BYTES + 32];
	ssize_t n = readlinkat(folder, entry, to, sizeof(to) - 1);

	if (n <= 0)
		return false;
	to[n] = 0;
	return !strcmp(to, wanted);
}

/* Among the descriptors of a process. */
static int find(pid_t member, const struct rwk_src_secret *secret, struct card *c)
{
	char path[32], name[NAME_MAX_BYTES], wanted[NAME_MAX_BYTES + 32];
	const struct dirent *e;
	int rc = -ENOENT;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)member);
	name_of(secret, name);
	snprintf(wanted, sizeof(wanted), "/memfd:%s (deleted)", name);
	d = opendir(path);
	if (!d)
		return errno == EACCES ? -EPERM : errno == EMFILE ? -EMFILE : -ESRCH;
	while (rc && (e = readdir(d))) {
		if (has_name(dirfd(d), e->d_name, wanted) && read_card(dirfd(d), e->d_name, secret, c))
			rc = 0;
	}
	closedir(d);
	return rc;
}

/* A number may be another thing's by now, if the program closes what is not its own. */
static int take_thing(int process, const struct card *c, int i, int *out)
{
	uint64_t inode = 0;

	*out = (int)syscall(SYS_pidfd_getfd, process, c->fd[i], 0);
	if (*out < 0)
		return errno == EBADF ? -EACCES : errno == ENOSYS ? -EPERM : -errno;
	return inode_of(*out, &inode) || inode != c->inode[i] ? -EACCES : 0;
}

int rwk_src_card_take(pid_t member, const struct rwk_src_secret *secret, struct rwk_src_holding *holding)
{
	/* Before the card is read: what is taken is of the process that had it, or nothing is. */
	int process = member > 0 ? (int)syscall(SYS_pidfd_open, member, 0) : -1, rc;
	struct card c;

	if (process < 0)
		return errno == EMFILE ? -EMFILE : -ESRCH;
	rc = find(member, secret, &c);
	for (int i = 0; !rc && i < RWK_SRC_THINGS; i++)
		rc = take_thing(process, &c, i, &holding->fd[i]);
	close(process);
	if (rc) {
		rwk_src_holding_close(holding);
		return rc;
	}
	holding->id = c.id;
	holding->size = c.size;
	return 0;
}
