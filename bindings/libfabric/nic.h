/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What fi_info says of the network interface that carries what goes to other nodes, if it is a PCI device. It is read
 * from where hwloc has it, too, /sys: a dozen small files, where hwloc would look at the whole machine.
 */
#ifndef RWK_FI_NIC_H
#define RWK_FI_NIC_H

#include <rdma/fabric.h>
#include <stdint.h>

/**
 * The interface of that name: to be freed by its own close, or by the program with the info that it is in. NULL: it is
 * no PCI device, or there is no memory. `root` is "", or a test's folder in which /sys is looked for.
 */
struct fid_nic *rwk_fi_nic_read(const char *root, const char *interface);

/**
 * The interface with that IP of this host's (as in struct rwk_address), or for an address of no IP the one that others
 * are told of, as rwk_fi_nic_read; NULL too if there is none. In nic_source.c.
 */
struct fid_nic *rwk_fi_nic_of(const uint8_t ip[16]);

/** Another one like that: NULL: no memory, or there was none. */
struct fid_nic *rwk_fi_nic_again(const struct fid_nic *nic);

#endif
