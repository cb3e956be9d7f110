/* SPDX-License-Identifier: BSD-3-Clause */
#include "bindings/libfabric/nic.h"

#include "base/compiler.h"
#include "bindings/libfabric/provider.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT 64 /* bytes of what a file says, of what is of use */

static void free_parts(struct fid_nic *nic)
{
	struct fi_device_attr *d = nic->device_attr;

	if (d) {
		free(d->name);
		free(d->device_id);
		free(d->device_version);
		free(d->vendor_id);
		free(d->driver);
		free(d->firmware);
	}
	if (nic->link_attr) {
		free(nic->link_attr->address);
		free(nic->link_attr->network_type);
	}
	free(d);
	free(nic->bus_attr);
	free(nic->link_attr);
}

static int nic_close(struct fid *fid)
{
	struct fid_nic *nic = rwk_container_of(fid, struct fid_nic, fid);

	free_parts(nic);
	free(nic);
	return 0;
}

static int nic_control(struct fid *fid, int command, void *arg)
{
	struct fid_nic *again;

	if (command != FI_DUP)
		return -FI_ENOSYS;
	again = rwk_fi_nic_again(rwk_container_of(fid, struct fid_nic, fid));
	if (!again)
		return -FI_ENOMEM;
	*(struct fid_nic **)arg = again;
	return 0;
}

static const char *or_none(const char *text)
{
	return text ? text : "(none)";
}

static const char *state_text(enum fi_link_state state)
{
	return state == FI_LINK_UP ? "FI_LINK_UP" : state == FI_LINK_DOWN ? "FI_LINK_DOWN" : "FI_LINK_UNKNOWN";
}

/* Behind what stands in `buf`, which has room for `len` bytes more: fi_tostr calls it so. */
static int nic_tostr(const struct fid *fid, char *buf, size_t len)
{
	const struct fid_nic *nic = rwk_container_of((struct fid *)(uintptr_t)fid, struct fid_nic, fid);
	const struct fi_pci_attr *pci = &nic->bus_attr->attr.pci;
	const struct fi_device_attr *d = nic->device_attr;
	const struct fi_link_attr *l = nic->link_attr;

	snprintf(buf + strlen(buf), len,
		"    nic:\n"
		"        fi_device_attr:\n"
		"            name: %s\n            device_id: %s\n            device_version: %s\n"
		"            vendor_id: %s\n            driver: %s\n            firmware: %s\n"
		"        fi_bus_attr:\n"
		"            bus_type: FI_BUS_PCI\n            address: %04x:%02x:%02x.%x\n"
		"        fi_link_attr:\n"
		"            address: %s\n            mtu: %zu\n            speed: %zu\n            state: %s\n"
		"            network_type: %s\n",
		or_none(d->name), or_none(d->device_id), or_none(d->device_version), or_none(d->vendor_id),
		or_none(d->driver), or_none(d->firmware), pci->domain_id, pci->bus_id, pci->device_id, pci->function_id,
		or_none(l->address), l->mtu, l->speed, state_text(l->state), or_none(l->network_type));
	return 0;
}

static struct fi_ops nic_ops = {
	.size = RWK_FI_OPS_SIZE(struct fi_ops, ops_set),
	.close = nic_close,
	.bind = rwk_fi_no_bind,
	.control = nic_control,
	.ops_open = rwk_fi_no_ops_open,
	.tostr = nic_tostr,
	.ops_set = rwk_fi_no_ops_set,
};

/* An empty one, each piece by itself and larger than known, as all that is handed out. */
static struct fid_nic *new_nic(void)
{
	struct fid_nic *nic = calloc(1, sizeof(*nic) + RWK_FI_SPARE);

	if (!nic)
		return NULL;
	nic->fid.fclass = FI_CLASS_NIC;
	nic->fid.ops = &nic_ops;
	nic->device_attr = calloc(1, sizeof(*nic->device_attr) + RWK_FI_SPARE);
	nic->bus_attr = calloc(1, sizeof(*nic->bus_attr) + RWK_FI_SPARE);
	nic->link_attr = calloc(1, sizeof(*nic->link_attr) + RWK_FI_SPARE);
	if (nic->device_attr && nic->bus_attr && nic->link_attr)
		return nic;
	nic_close(&nic->fid);
	return NULL;
}

/* The first line of a file, or "". */
static void read_line(const char *folder, const char *file, char line[TEXT])
{
	char path[PATH_MAX];
	FILE *f;

	line[0] = 0;
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(line, TEXT, f))
		line[strcspn(line, "\n")] = 0;
	fclose(f);
}

/* The same for what is kept: NULL, if there is no such line. */
static char *read_text(const char *folder, const char *file)
{
	char line[TEXT];

	read_line(folder, file, line);
	return line[0] ? strdup(line) : NULL;
}

/* A number that is not negative; else 0. */
static size_t read_number(const char *folder, const char *file)
{
	char line[TEXT];
	long long n;

	read_line(folder, file, line);
	n = strtoll(line, NULL, 10);
	return n > 0 ? (size_t)n : 0;
}

static char *driver_of(const char *device)
{
	char path[PATH_MAX + sizeof("/driver")], to[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/driver", device);
	n = readlink(path, to, sizeof(to) - 1);
	if (n < 0)
		return NULL;
	to[n] = 0;
	return strdup(strrchr(to, '/') ? strrchr(to, '/') + 1 : to);
}

/*
 * The interface's device, or what that is a part of, as a virtio device is: cuts `path` to the last part that is a PCI
 * address, and reads that.
 */
static bool find_pci(char *path, struct fi_pci_attr *pci)
{
	unsigned domain, bus, device, function;
	char *last;
	int end;

	while ((last = strrchr(path, '/'))) {
		end = 0;
		if (sscanf(last + 1, "%x:%x:%x.%x%n", &domain, &bus, &device, &function, &end) == 4 && !last[1 + end]) {
			*pci = (struct fi_pci_attr){.domain_id = (uint16_t)domain,
				.bus_id = (uint8_t)bus,
				.device_id = (uint8_t)device,
				.function_id = (uint8_t)function};
			return true;
		}
		*last = 0;
	}
	return false;
}

static enum fi_link_state state_of(const char *interface)
{
	char line[TEXT];

	read_line(interface, "operstate", line);
	return !strcmp(line, "up") ? FI_LINK_UP : !strcmp(line, "down") ? FI_LINK_DOWN : FI_LINK_UNKNOWN;
}

static void read_link(const char *interface, struct fi_link_attr *l)
{
	l->address = read_text(interface, "address");
	l->mtu = read_number(interface, "mtu");
	l->speed = read_number(interface, "speed") * 1000000; /* Mbit/s there; -1: it does not know */
	l->state = state_of(interface);
	l->network_type = read_number(interface, "type") == 1 ? strdup("Ethernet") : NULL; /* ARPHRD_ETHER */
}

static void read_device(const char *device, const char *name, struct fi_device_attr *d)
{
	d->name = strdup(name);
	d->device_id = read_text(device, "device");
	d->device_version = read_text(device, "revision");
	d->vendor_id = read_text(device, "vendor");
	d->driver = driver_of(device);
}

struct fid_nic *rwk_fi_nic_read(const char *root, const char *name)
{
	char interface[PATH_MAX], path[PATH_MAX + sizeof("/device")], device[PATH_MAX];
	struct fi_pci_attr pci;
	struct fid_nic *nic;

	if (snprintf(interface, sizeof(interface), "%s/sys/class/net/%s", root, name) >= (int)sizeof(interface))
		return NULL;
	snprintf(path, sizeof(path), "%s/device", interface);
	if (!realpath(path, device) || !find_pci(device, &pci))
		return NULL;
	nic = new_nic();
	if (!nic)
		return NULL;
	read_device(device, name, nic->device_attr);
	nic->bus_attr->bus_type = FI_BUS_PCI;
	nic->bus_attr->attr.pci = pci;
	read_link(interface, nic->link_attr);
	return nic;
}

static char *copy_text(const char *text)
{
	return text ? strdup(text) : NULL;
}

struct fid_nic *rwk_fi_nic_again(const struct fid_nic *old)
{
	struct fid_nic *nic = old ? new_nic() : NULL;

	if (!nic)
		return NULL;
	nic->device_attr->name = copy_text(old->device_attr->name);
	nic->device_attr->device_id = copy_text(old->device_attr->device_id);
	nic->device_attr->device_version = copy_text(old->device_attr->device_version);
	nic->device_attr->vendor_id = copy_text(old->device_attr->vendor_id);
	nic->device_attr->driver = copy_text(old->device_attr->driver);
	*nic->bus_attr = *old->bus_attr;
	*nic->link_attr = *old->link_attr;
	nic->link_attr->address = copy_text(old->link_attr->address);
	nic->link_attr->network_type = copy_text(old->link_attr->network_type);
	return nic;
}
