/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What fi_info says of a network interface: of devices in a folder like /sys that the test makes, and of what this
 * machine has.
 */
#include "fi_test.h"

#include "bindings/libfabric/nic.h"
#include "bindings/libfabric/provider.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the file under test takes from provider.c. */
int rwk_fi_no_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	(void)fid, (void)other, (void)flags;
	return -FI_ENOSYS;
}

int rwk_fi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	(void)fid, (void)name, (void)flags, (void)ops, (void)context;
	return -FI_ENOSYS;
}

int rwk_fi_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context)
{
	(void)fid, (void)name, (void)flags, (void)ops, (void)context;
	return -FI_ENOSYS;
}

static char root[64];

static void shell(const char *command)
{
	char line[1024];

	snprintf(line, sizeof(line), "unset CDPATH; cd %s && %s", root, command);
	assert_int_equal(system(line), 0); /* the test's own text */
}

static int make_root(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/rwk_nic_XXXXXX");
	assert_non_null(mkdtemp(root));
	shell("mkdir -p sys/class/net sys/devices/pci0001:3a/0001:3a:02.0/0001:3b:1f.5/virtio3/net/fast0 "
	      "sys/devices/virtual/net/veth0 sys/devices/platform/soc/net/soc0 drivers/fastnet");
	shell("cd sys/class/net && ln -s ../../devices/pci0001:3a/0001:3a:02.0/0001:3b:1f.5/virtio3/net/fast0 fast0 && "
	      "ln -s ../../devices/virtual/net/veth0 veth0 && ln -s ../../devices/platform/soc/net/soc0 soc0");
	shell("cd sys/devices/pci0001:3a/0001:3a:02.0/0001:3b:1f.5 && echo 0x1af4 >vendor && echo 0x1041 >device && "
	      "echo 0x01 >revision && ln -s ../../../../../drivers/fastnet driver && cd virtio3/net/fast0 && "
	      "ln -s ../../../virtio3 device && echo 02:00:00:00:00:07 >address && echo 9000 >mtu && "
	      "echo 25000 >speed && echo up >operstate && echo 1 >type");
	shell("ln -s ../.. sys/devices/platform/soc/net/soc0/device");
	return 0;
}

static int remove_root(void **state)
{
	(void)state;
	shell("rm -r sys drivers && rmdir \"$PWD\"");
	return 0;
}

static void assert_fast(const struct fid_nic *nic)
{
	assert_non_null(nic);
	assert_int_equal(nic->fid.fclass, FI_CLASS_NIC);
	assert_string_equal(nic->device_attr->name, "fast0");
	assert_string_equal(nic->device_attr->vendor_id, "0x1af4");
	assert_string_equal(nic->device_attr->device_id, "0x1041");
	assert_string_equal(nic->device_attr->device_version, "0x01");
	assert_string_equal(nic->device_attr->driver, "fastnet");
	assert_null(nic->device_attr->firmware);
	assert_int_equal(nic->bus_attr->bus_type, FI_BUS_PCI);
	assert_int_equal(nic->bus_attr->attr.pci.domain_id, 1);
	assert_int_equal(nic->bus_attr->attr.pci.bus_id, 0x3b);
	assert_int_equal(nic->bus_attr->attr.pci.device_id, 0x1f);
	assert_int_equal(nic->bus_attr->attr.pci.function_id, 5);
	assert_string_equal(nic->link_attr->address, "02:00:00:00:00:07");
	assert_int_equal(nic->link_attr->mtu, 9000);
	assert_int_equal(nic->link_attr->speed, 25000000000);
	assert_int_equal(nic->link_attr->state, FI_LINK_UP);
	assert_string_equal(nic->link_attr->network_type, "Ethernet");
}

/* A device that is a part of a PCI device: the nearest one; and a copy that outlives it. */
static void pci_device(void **state)
{
	struct fid_nic *nic = rwk_fi_nic_read(root, "fast0"), *copy = NULL;
	char text[1024] = "before\n", small[20] = "before\n";

	(void)state;
	assert_fast(nic);
	assert_int_equal(fi_control(&nic->fid, FI_DUP, &copy), 0);
	assert_int_equal(fi_control(&nic->fid, FI_ENABLE, NULL), -FI_ENOSYS);
	assert_int_equal(nic->fid.ops->tostr(&nic->fid, text, sizeof(text) - strlen(text)), 0);
	assert_int_equal(strncmp(text, "before\n    nic:\n", 16), 0); /* it is appended */
	assert_non_null(strstr(text, "name: fast0\n"));
	assert_non_null(strstr(text, "address: 0001:3b:1f.5\n"));
	assert_non_null(strstr(text, "speed: 25000000000\n            state: FI_LINK_UP\n"));
	assert_int_equal(nic->fid.ops->tostr(&nic->fid, small, sizeof(small) - strlen(small)), 0);
	assert_int_equal(strlen(small), sizeof(small) - 1);
	assert_int_equal(fi_close(&nic->fid), 0);
	assert_fast(copy);
	assert_int_equal(fi_close(&copy->fid), 0);
}

/* What /sys does not know is not made up. */
static void unknown_parts(void **state)
{
	struct fid_nic *nic;

	(void)state;
	shell("cd sys/class/net/fast0 && echo -1 >speed && echo unknown >operstate && rm address && echo 772 >type && "
	      "rm ../../driver ../../../driver 2>/dev/null; true");
	nic = rwk_fi_nic_read(root, "fast0");
	assert_non_null(nic);
	assert_int_equal(nic->link_attr->speed, 0);
	assert_int_equal(nic->link_attr->state, FI_LINK_UNKNOWN);
	assert_null(nic->link_attr->address);
	assert_null(nic->link_attr->network_type);
	assert_int_equal(fi_close(&nic->fid), 0);
}

/* No device, a device that is on no PCI bus, no such interface. */
static void no_pci_device(void **state)
{
	(void)state;
	assert_null(rwk_fi_nic_read(root, "veth0"));
	assert_null(rwk_fi_nic_read(root, "soc0"));
	assert_null(rwk_fi_nic_read(root, "eth9"));
	assert_null(rwk_fi_nic_again(NULL));
}

/*
 * The name of the one interface that leads out of this machine; "": there are several or none, or it is
 * no PCI device.
 */
static void only_interface(char name[IF_NAMESIZE])
{
	char path[128], to[4096];
	struct ifaddrs *all;
	unsigned n = 0;

	name[0] = 0;
	assert_int_equal(getifaddrs(&all), 0);
	for (struct ifaddrs *i = all; i; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family == AF_PACKET || i->ifa_flags & IFF_LOOPBACK ||
			!(i->ifa_flags & IFF_UP) || !strcmp(name, i->ifa_name))
			continue;
		strncpy(name, i->ifa_name, IF_NAMESIZE - 1);
		n++;
	}
	freeifaddrs(all);
	snprintf(path, sizeof(path), "/sys/class/net/%s/device", name);
	if (n != 1 || !realpath(path, to) || !strstr(to, "/pci"))
		name[0] = 0;
}

/* Each entry has what its copy has, if there is a device; an endpoint of loopback has none. */
static void of_this_machine(void **state)
{
	struct fi_info *hints = t_hints(), *info, *copy;
	char path[128], only[IF_NAMESIZE] = "";

	(void)state;
	only_interface(only);
	print_message("the interface that must be found: %s\n", only[0] ? only : "none");
	assert_int_equal(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &info), 0);
	assert_null(info->nic);
	fi_freeinfo(info);
	assert_int_equal(t_getinfo(hints, &info), 0);
	fi_freeinfo(hints);
	for (struct fi_info *i = info; i; i = i->next) {
		copy = fi_dupinfo(i);
		assert_non_null(copy);
		assert_int_equal(!i->nic, !info->nic);
		assert_int_equal(!copy->nic, !i->nic);
		if (only[0])
			assert_string_equal(i->nic ? i->nic->device_attr->name : "none", only);
		if (i->nic)
			assert_string_equal(copy->nic->device_attr->name, info->nic->device_attr->name);
		if (i->nic) {
			snprintf(path, sizeof(path), "/sys/class/net/%s/device", i->nic->device_attr->name);
			assert_int_equal(access(path, F_OK), 0);
			assert_non_null(strstr(fi_tostr(i, FI_TYPE_INFO), "FI_LINK_"));
			assert_int_equal(strncmp(fi_tostr(i, FI_TYPE_INFO), "fi_info:", 8), 0);
		}
		fi_freeinfo(copy);
	}
	fi_freeinfo(info);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pci_device),
		cmocka_unit_test(unknown_parts),
		cmocka_unit_test(no_pci_device),
		cmocka_unit_test(of_this_machine),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, make_root, remove_root);
}
