/* SPDX-License-Identifier: BSD-3-Clause */
/* Loading, parameters, and what fi_getinfo lists: for whom, under which names and formats of addresses. */
#include "fi_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ONE_SIDED ((uint64_t)(FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE))

static int count_infos(const struct fi_info *info)
{
	int n = 0;

	for (; info; info = info->next)
		n++;
	return n;
}

/* Runs in a process that has not loaded the provider yet. */
static void ask_with_wrong_parameter(int err_fd)
{
	struct fi_info *hints = t_hints(), *info;

	dup2(err_fd, STDERR_FILENO);
	setenv("FI_ROPEWALK_LINK", "carrier-pigeon", 1);
	unsetenv("FI_LOG_LEVEL");
	if (!t_getinfo(hints, &info))
		fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* A wrong value is told to the user although libfabric's log is off, once, and with the values that would be right. */
static void wrong_parameter(void **state)
{
	static const char want[] = "FI_ROPEWALK_LINK=carrier-pigeon is not one of: auto shm udp tcp; auto is used";
	char text[4096];
	size_t at = 0;
	ssize_t n;
	char *found;
	int fds[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		ask_with_wrong_parameter(fds[1]);
		_exit(0);
	}
	close(fds[1]);
	while (at < sizeof(text) - 1 && (n = read(fds[0], text + at, sizeof(text) - 1 - at)) > 0)
		at += (size_t)n;
	text[at] = 0;
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	found = strstr(text, want);
	assert_non_null(found);
	assert_null(strstr(found + 1, want));
}

/* Every parameter is in libfabric's registry, with its values and default. */
static void parameters_listed(void **state)
{
	struct fi_info *hints = t_hints(), *info;
	struct fi_param *params;
	int count, ours = 0;
	bool link = false;

	(void)state;
	assert_int_equal(t_getinfo(hints, &info), 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	assert_int_equal(fi_getparams(&params, &count), 0);
	for (int i = 0; i < count; i++) {
		if (strncmp(params[i].name, "FI_ROPEWALK_", 12))
			continue;
		ours++;
		assert_non_null(strstr(params[i].help_string, "default: "));
		if (!strcmp(params[i].name, "FI_ROPEWALK_LINK")) {
			link = true;
			assert_non_null(strstr(params[i].help_string, "(auto shm udp tcp; default: auto)"));
		}
	}
	fi_freeparams(params);
	assert_true(link);
	assert_true(ours >= 10);
}

/* The entries of FI_EP_DGRAM, the last ones: for all addresses, with messages alone. */
static void check_datagrams(const struct fi_info *at)
{
	static const uint32_t formats[] = {T_NATIVE, FI_SOCKADDR_IN, FI_SOCKADDR_IN6};

	for (int i = 0; i < 3; i++, at = at->next) {
		assert_string_equal(at->fabric_attr->prov_name, "ropewalk");
		assert_int_equal(at->ep_attr->type, FI_EP_DGRAM);
		assert_int_equal(at->addr_format, formats[i]);
		assert_int_equal(at->mode, 0);
		assert_int_equal(at->caps, FI_MSG | FI_SEND | FI_RECV | FI_SOURCE | FI_LOCAL_COMM | FI_REMOTE_COMM |
							FI_SHARED_AV | FI_AV_USER_ID);
		assert_int_equal(at->ep_attr->max_msg_size, 1024);
		assert_int_equal(at->ep_attr->msg_prefix_size, 0);
		assert_int_equal(at->tx_attr->msg_order | at->rx_attr->msg_order, 0);
		assert_int_equal(at->domain_attr->cq_data_size, 4);
	}
	assert_null(at);
}

/* The entries of FI_EP_MSG that follow: for sockets' addresses, with no more than works for who offers no mr_mode. */
static void check_connected(const struct fi_info *at)
{
	static const uint32_t formats[] = {FI_SOCKADDR_IN, FI_SOCKADDR_IN6};

	for (int i = 0; i < 2; i++, at = at->next) {
		assert_string_equal(at->fabric_attr->prov_name, "ropewalk");
		assert_int_equal(at->ep_attr->type, FI_EP_MSG);
		assert_int_equal(at->addr_format, formats[i]);
		assert_int_equal(at->mode, 0);
		assert_false((at->tx_attr->caps | at->rx_attr->caps) & ~at->caps);
		assert_int_equal(at->domain_attr->mr_mode, 0);
		assert_int_equal(at->domain_attr->cq_data_size, 4);
		assert_int_equal(at->caps & ONE_SIDED, 0);
		assert_false(at->caps & (FI_TAGGED | FI_MULTI_RECV | FI_SOURCE | FI_RMA_EVENT));
	}
	check_datagrams(at);
}

/* Without hints there is an entry for each address format, those of FI_EP_RDM first, and no utility provider on top. */
static void no_hints(void **state)
{
	static const uint32_t formats[] = {T_NATIVE, FI_SOCKADDR_IN, FI_SOCKADDR_IN6};
	static const size_t lengths[] = {40, sizeof(struct sockaddr_in), sizeof(struct sockaddr_in6)};
	struct fi_info *hints = fi_allocinfo(), *info, *at;

	(void)state;
	hints->fabric_attr->prov_name = strdup("ropewalk");
	assert_int_equal(t_getinfo(hints, &info), 0);
	at = info;
	assert_int_equal(count_infos(info), 8);
	for (int i = 0; i < 3; i++, at = at->next) {
		assert_int_equal(at->ep_attr->type, FI_EP_RDM);
		assert_int_equal(at->addr_format, formats[i]);
		assert_int_equal(at->src_addrlen, lengths[i]);
	}
	check_connected(at);
	for (struct fi_info *i = info; i != at; i = i->next) {
		assert_string_equal(i->fabric_attr->prov_name, "ropewalk");
		assert_int_equal(i->mode, 0);
		assert_false((i->tx_attr->caps | i->rx_attr->caps) & ~i->caps);
		assert_int_equal(i->domain_attr->mr_mode, 0);
		assert_int_equal(i->tx_attr->inject_size, 4096);
		assert_int_equal(i->domain_attr->cq_data_size, 8);
		assert_true(i->caps & FI_TAGGED);
		assert_true(i->caps & FI_REMOTE_COMM);
		/* no thread for who does not ask */
		assert_int_equal(i->domain_attr->data_progress, FI_PROGRESS_MANUAL);
		assert_int_equal(i->caps & ONE_SIDED, ONE_SIDED);
		assert_false(i->caps & FI_HMEM);
	}
	fi_freeinfo(info);
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
	hints->ep_attr->type = FI_EP_MSG;
	assert_int_equal(t_getinfo(hints, &info), 0);
	assert_int_equal(info->caps & ONE_SIDED, ONE_SIDED);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/*
 * libfabric's layers that make FI_EP_RDM of FI_EP_MSG or FI_EP_DGRAM have nothing of ours: no provider but ropewalk
 * itself is there.
 */
static void no_layer(void **state)
{
	struct fi_info *hints = t_hints(), *info;

	(void)state;
	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = NULL;
	for (int type = 0; type < 2; type++) {
		bool found = false;

		hints->ep_attr->type = type ? FI_EP_UNSPEC : FI_EP_RDM;
		assert_int_equal(t_getinfo(hints, &info), 0);
		for (struct fi_info *i = info; i; i = i->next) {
			found |= !strcmp(i->fabric_attr->prov_name, "ropewalk");
			assert_null(strstr(i->fabric_attr->prov_name, "ropewalk;"));
		}
		assert_true(found);
		fi_freeinfo(info);
	}
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("ropewalk;ofi_rxm");
	assert_int_equal(t_getinfo(hints, &info), -FI_ENODATA);
	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = strdup("ropewalk;ofi_rxd");
	assert_int_equal(t_getinfo(hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
}

/* What Open MPI's mtl/ofi asks for is there, and so is what it looks at. */
static void open_mpi(void **state)
{
	struct fi_info *hints = t_hints(), *info;

	(void)state;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->caps = FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->av_type = FI_AV_MAP;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	assert_int_equal(t_getinfo(hints, &info), 0);
	assert_int_equal(info->caps & hints->caps, hints->caps);
	assert_int_equal(info->mode, 0);
	assert_int_equal(info->domain_attr->av_type, FI_AV_MAP);
	assert_int_equal(info->domain_attr->threading, FI_THREAD_DOMAIN);
	assert_true(info->domain_attr->cq_data_size >= 4);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* FI_SOCKADDR is answered with FI_SOCKADDR_IN alone, unless an address of IPv6 is named. */
static void generic_sockaddr(void **state)
{
	struct fi_info *hints = t_hints(), *info;

	(void)state;
	hints->addr_format = FI_SOCKADDR;
	assert_int_equal(t_getinfo(hints, &info), 0);
	assert_int_equal(count_infos(info), 1);
	assert_int_equal(info->addr_format, FI_SOCKADDR_IN);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/*
 * An address of a format that is another provider's is no address here, and not looked at: it may be shorter than any
 * of ours, and lie where memory ends.
 */
static void foreign_format(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fi_info *hints = t_hints(), *info;

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(mprotect(memory + page, page, PROT_NONE), 0);
	hints->addr_format = FI_ADDR_STR;
	hints->src_addr = memory + page - 2;
	hints->src_addrlen = 2;
	strcpy(hints->src_addr, "x");
	assert_int_equal(t_getinfo(hints, &info), -FI_ENODATA);
	hints->src_addr = NULL;
	fi_freeinfo(hints);
	munmap(memory, 2 * page);
}

/* A node and a service are a destination, with FI_SOURCE a source; a duplicate of the entry has them too. */
static void node_and_service(void **state)
{
	struct fi_info *hints = t_hints(), *info, *dup;
	const struct sockaddr_in *in;

	(void)state;
	assert_int_equal(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", "4711", 0, hints, &info), 0);
	dup = fi_dupinfo(info);
	assert_non_null(dup);
	assert_int_equal(dup->addr_format, FI_SOCKADDR_IN);
	assert_int_equal(dup->dest_addrlen, sizeof(*in));
	in = dup->src_addr;
	assert_int_equal(ntohs(in->sin_port), 0); /* from any port */
	in = dup->dest_addr;
	assert_int_equal(in->sin_family, AF_INET);
	assert_int_equal(ntohs(in->sin_port), 4711);
	assert_int_equal(ntohl(in->sin_addr.s_addr), INADDR_LOOPBACK);
	fi_freeinfo(dup);
	fi_freeinfo(info);
	assert_int_equal(fi_getinfo(FI_VERSION(1, 17), NULL, "4712", FI_SOURCE, hints, &info), 0);
	in = info->src_addr;
	assert_int_equal(ntohs(in->sin_port), 4712);
	assert_null(info->dest_addr);
	fi_freeinfo(info);
	assert_int_equal(fi_getinfo(FI_VERSION(1, 17), "no.such.host.invalid", "1", FI_NUMERICHOST, hints, &info),
		-FI_ENODATA);
	fi_freeinfo(hints);
}

/* Programs for an API before 1.5 name a registration mode and get it back. */
static void old_api(void **state)
{
	static const int modes[][2] = {
		{T_MR_BASIC, T_MR_BASIC}, {T_MR_SCALABLE, T_MR_SCALABLE}, {0, T_MR_BASIC}};

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct fi_info *hints = t_hints(), *info;

		hints->domain_attr->mr_mode = modes[i][0];
		assert_int_equal(fi_getinfo(FI_VERSION(1, 1), NULL, NULL, 0, hints, &info), 0);
		assert_int_equal(info->domain_attr->mr_mode, modes[i][1]);
		fi_freeinfo(info);
		fi_freeinfo(hints);
	}
}

/* What is asked for is completed as the man page has it, and no more than that is there. */
static void completed_caps(void **state)
{
	static const struct {
		uint64_t asked, granted;
	} cases[] = {
		{FI_MSG, FI_MSG | FI_SEND | FI_RECV},
		{FI_TAGGED | FI_SEND, FI_TAGGED | FI_SEND},
		{FI_RMA, FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE},
		{FI_ATOMIC | FI_READ, FI_ATOMIC | FI_READ},
		{FI_TAGGED | FI_RMA | FI_REMOTE_WRITE, FI_TAGGED | FI_SEND | FI_RECV | FI_RMA | FI_REMOTE_WRITE},
	};
	const uint64_t ends = FI_LOCAL_COMM | FI_REMOTE_COMM;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fi_info *hints = t_hints(), *info;

		hints->caps = cases[i].asked;
		assert_int_equal(t_getinfo(hints, &info), 0);
		assert_int_equal(info->caps, cases[i].granted | ends);
		assert_int_equal(info->tx_attr->caps | info->rx_attr->caps, cases[i].granted);
		assert_int_equal(info->domain_attr->data_progress,
			cases[i].granted & (FI_RMA | FI_ATOMIC) ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL);
		assert_int_equal(info->tx_attr->rma_iov_limit, cases[i].granted & (FI_RMA | FI_ATOMIC) ? 8 : 0);
		fi_freeinfo(info);
		fi_freeinfo(hints);
	}
}

/* FI_SOCKADDR is of either family: that of the domain, also for an address of IPv4, which has a form in both. */
static void check_domain_sockaddr(const struct t_domain *d, struct fi_info *hints)
{
	static const char *const nodes[] = {NULL, "10.0.0.7", "fd00::7"};
	struct fi_info *info;

	hints->addr_format = FI_SOCKADDR;
	for (int i = 0; i < 3; i++) {
		bool has_form =
			d->info->addr_format == FI_SOCKADDR_IN6 || (d->info->addr_format == FI_SOCKADDR_IN && i < 2);
		int err = fi_getinfo(FI_VERSION(1, 17), nodes[i], NULL, FI_NUMERICHOST, hints, &info);

		assert_int_equal(err, has_form ? 0 : -FI_ENODATA);
		if (err)
			continue;
		assert_int_equal(count_infos(info), 1);
		assert_int_equal(info->addr_format, d->info->addr_format);
		fi_freeinfo(info);
	}
}

/* Asks for what can be opened on that domain: all that there is can be, and nothing of another type is. */
static void check_domain(const struct t_domain *d)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_ep *ep;

	hints->fabric_attr->prov_name = strdup("ropewalk");
	hints->domain_attr->domain = d->domain;
	assert_int_equal(t_getinfo(hints, &info), 0);
	for (struct fi_info *i = info; i; i = i->next) {
		assert_ptr_equal(i->domain_attr->domain, d->domain);
		assert_int_equal(i->ep_attr->type, d->info->ep_attr->type);
		assert_int_equal(i->addr_format, d->info->addr_format);
		assert_int_equal(fi_endpoint(d->domain, i, &ep, NULL), 0);
		assert_int_equal(fi_close(&ep->fid), 0);
	}
	fi_freeinfo(info);
	hints->ep_attr->type = d->info->ep_attr->type == FI_EP_RDM ? FI_EP_MSG : FI_EP_RDM;
	assert_int_equal(t_getinfo(hints, &info), -FI_ENODATA);
	hints->ep_attr->type = d->info->ep_attr->type;
	hints->addr_format = d->info->addr_format == FI_SOCKADDR_IN ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	assert_int_equal(t_getinfo(hints, &info), -FI_ENODATA);
	check_domain_sockaddr(d, hints);
	fi_freeinfo(hints);
}

/* An open domain in the hints restricts the answer to its type of endpoint and its format of addresses. */
static void named_domain(void **state)
{
	static const enum fi_ep_type types[] = {FI_EP_RDM, FI_EP_MSG, FI_EP_DGRAM};
	static const uint32_t formats[] = {T_NATIVE, FI_SOCKADDR_IN, FI_SOCKADDR_IN6};

	(void)state;
	for (int i = 0; i < 9; i++) {
		struct fi_info *hints = t_hints();
		struct t_domain domain;

		hints->ep_attr->type = types[i / 3];
		hints->addr_format = formats[i % 3];
		if (hints->ep_attr->type == FI_EP_MSG && hints->addr_format == T_NATIVE) {
			fi_freeinfo(hints);
			continue;
		}
		t_domain_open_with(&domain, hints);
		check_domain(&domain);
		t_domain_close(&domain);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_parameter), /* first: it forks before the provider is loaded */
		cmocka_unit_test(parameters_listed),
		cmocka_unit_test(no_hints),
		cmocka_unit_test(open_mpi),
		cmocka_unit_test(no_layer),
		cmocka_unit_test(completed_caps),
		cmocka_unit_test(generic_sockaddr),
		cmocka_unit_test(foreign_format),
		cmocka_unit_test(node_and_service),
		cmocka_unit_test(old_api),
		cmocka_unit_test(named_domain),
	};

	t_use_provider();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
