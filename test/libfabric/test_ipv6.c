/* SPDX-License-Identifier: BSD-3-Clause */
/* FI_SOCKADDR_IN6: what fi_getinfo offers, address vectors, and endpoints at ::1 (skipped on a host without IPv6). */
#include "fi_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct t_domain d;

static int open_domain(void **state)
{
	(void)state;
	t_domain_open(&d, FI_SOCKADDR_IN6, FI_THREAD_SAFE);
	return 0;
}

static int close_domain(void **state)
{
	(void)state;
	t_domain_close(&d);
	return 0;
}

static struct sockaddr_in6 address(const char *ip, uint16_t port)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	assert_int_equal(inet_pton(AF_INET6, ip, &in6.sin6_addr), 1);
	return in6;
}

static void check(const void *is, const char *ip, uint16_t port)
{
	struct sockaddr_in6 want = address(ip, port);

	assert_memory_equal(is, &want, sizeof(want));
}

static bool has_ipv6(void)
{
	struct sockaddr_in6 in6 = address("::1", 0);
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	bool has = fd >= 0 && !bind(fd, (struct sockaddr *)&in6, sizeof(in6));

	if (fd >= 0)
		close(fd);
	return has;
}

/* Entries for a node and a format asked for; their number, or what fi_getinfo says. */
static int ask(const char *node, uint32_t format, struct fi_info **info)
{
	struct fi_info *hints = t_hints();
	int n = 0, err;

	hints->addr_format = format;
	err = fi_getinfo(FI_VERSION(1, 17), node, "4711", FI_NUMERICHOST, hints, info);
	fi_freeinfo(hints);
	for (struct fi_info *i = err ? NULL : *info; i; i = i->next)
		n++;
	return err ? err : n;
}

/* A node of IPv6 comes first in its own format, and not at all in that of IPv4. */
static void nodes(void **state)
{
	struct fi_info *info;

	(void)state;
	assert_int_equal(ask("fd00::7", FI_FORMAT_UNSPEC, &info), 2);
	assert_int_equal(info->addr_format, FI_SOCKADDR_IN6);
	assert_int_equal(info->next->addr_format, T_NATIVE);
	assert_int_equal(info->dest_addrlen, sizeof(struct sockaddr_in6));
	check(info->dest_addr, "fd00::7", 4711);
	assert_int_equal(info->src_addrlen, sizeof(struct sockaddr_in6));
	check(info->src_addr, "::", 0);
	fi_freeinfo(info);
	assert_int_equal(ask("fd00::7", FI_SOCKADDR_IN, &info), -FI_ENODATA);
	assert_int_equal(ask("fd00::7", FI_SOCKADDR, &info), 1);
	assert_int_equal(info->addr_format, FI_SOCKADDR_IN6);
	fi_freeinfo(info);
	assert_int_equal(ask("10.0.0.7", FI_SOCKADDR, &info), 1);
	assert_int_equal(info->addr_format, FI_SOCKADDR_IN);
	fi_freeinfo(info);
	assert_int_equal(ask("10.0.0.7", FI_SOCKADDR_IN6, &info), 1);
	check(info->dest_addr, "::ffff:10.0.0.7", 4711);
	fi_freeinfo(info);
}

/* Addresses in hints, which by their length, or their family, are of IPv6. */
static void hinted(void **state)
{
	struct sockaddr_in6 source = address("fd00::1", 4000), dest = address("fd00::2", 5000);
	struct fi_info *hints = t_hints(), *info;

	(void)state;
	hints->src_addr = malloc(sizeof(source));
	hints->dest_addr = malloc(sizeof(dest));
	memcpy(hints->src_addr, &source, hints->src_addrlen = sizeof(source));
	memcpy(hints->dest_addr, &dest, hints->dest_addrlen = sizeof(dest));
	for (int asked = 0; asked < 3; asked++) {
		hints->addr_format = (const uint32_t[]){FI_FORMAT_UNSPEC, FI_SOCKADDR_IN6, FI_SOCKADDR}[asked];
		assert_int_equal(t_getinfo(hints, &info), 0);
		for (struct fi_info *i = info; i; i = i->next) {
			assert_int_not_equal(i->addr_format, FI_SOCKADDR_IN);
			if (i->addr_format != FI_SOCKADDR_IN6)
				continue;
			check(i->src_addr, "fd00::1", 4000);
			check(i->dest_addr, "fd00::2", 5000);
		}
		fi_freeinfo(info);
	}
	((struct sockaddr_in6 *)hints->src_addr)->sin6_family = AF_INET;
	hints->addr_format = FI_SOCKADDR_IN6;
	assert_int_equal(t_getinfo(hints, &info), -FI_ENODATA);
	hints->src_addrlen = sizeof(struct sockaddr_in);
	assert_int_equal(t_getinfo(hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
}

static void check_lookup(struct fid_av *av, fi_addr_t number, const char *ip, uint16_t port)
{
	struct sockaddr_in6 out;
	size_t len = sizeof(out);

	assert_int_equal(fi_av_lookup(av, number, &out, &len), 0);
	assert_int_equal(len, sizeof(out));
	check(&out, ip, port);
}

/* An address comes back as it was inserted, this host's own too; it can be shown; names are resolved and counted on. */
static void vector(void **state)
{
	static const char *const ips[] = {"fd00::1", "::1", "::ffff:10.0.0.1", "fd00::1"};
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	struct sockaddr_in6 in[4];
	fi_addr_t number[6];
	char text[64];
	struct fid_av *av;
	size_t len = sizeof(text);

	(void)state;
	assert_int_equal(fi_av_open(d.domain, &attr, &av, NULL), 0);
	for (uint16_t i = 0; i < 4; i++)
		in[i] = address(ips[i], 5000 + i);
	in[3].sin6_family = AF_INET;
	assert_int_equal(fi_av_insert(av, in, 4, number, 0, NULL), 3);
	assert_int_equal(number[3], FI_ADDR_NOTAVAIL);
	for (uint16_t i = 0; i < 3; i++)
		check_lookup(av, number[i], ips[i], 5000 + i);
	assert_string_equal(fi_av_straddr(av, &in[0], text, &len), "fi_sockaddr_in6://[fd00::1]:5000");
	assert_int_equal(len, strlen(text) + 1);
	assert_int_equal(fi_av_remove(av, number, 3, 0), 0);
	assert_int_equal(fi_av_insertsvc(av, "fd00::9", "6000", number, 0, NULL), 1);
	check_lookup(av, number[0], "fd00::9", 6000);
	assert_int_equal(fi_av_insertsym(av, "fd00::ffff", 3, "7000", 2, number, 0, NULL), 6);
	check_lookup(av, number[1], "fd00::ffff", 7001);
	check_lookup(av, number[4], "fd00::1:1", 7000);
	assert_int_equal(fi_close(&av->fid), 0);
}

/* An endpoint at ::1 says so; a message between two of them names its sender. */
static void endpoints(void **state)
{
	struct sockaddr_in6 *source = d.info->src_addr, before = *source, name;
	size_t len = sizeof(name);
	struct t_end a, b;
	fi_addr_t to_b, to_a, from;
	char in = 0;

	(void)state;
	if (!has_ipv6())
		skip();
	source->sin6_addr = in6addr_loopback;
	t_end_open(&a, &d, NULL);
	t_end_open(&b, &d, NULL);
	*source = before;
	assert_int_equal(fi_getname(&b.ep->fid, &name, &len), 0);
	assert_int_equal(len, sizeof(name));
	check(&name, "::1", ntohs(name.sin6_port));
	assert_int_not_equal(name.sin6_port, 0);
	assert_int_equal(fi_av_insert(a.av, &name, 1, &to_b, 0, NULL), 1);
	assert_int_equal(fi_getname(&a.ep->fid, &name, &len), 0);
	assert_int_equal(fi_av_insert(b.av, &name, 1, &to_a, 0, NULL), 1);
	assert_int_equal(fi_trecv(b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 0, 0, &in), 0);
	t_post(fi_tinject(a.ep, "x", 1, to_b, 0), a.cq, b.cq);
	t_wait(b.cq, a.cq, &from);
	assert_int_equal(in, 'x');
	assert_int_equal(from, to_a);
	t_end_close(&a);
	t_end_close(&b);
}

/* Enables an endpoint of that domain and asks for its name: what fi_getname says. */
static int name_of(struct t_domain *of)
{
	struct fi_cq_attr cq_attr = {0};
	struct fi_av_attr av_attr = {0};
	struct sockaddr_in6 name;
	size_t len = sizeof(name);
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	int err;

	assert_int_equal(fi_endpoint(of->domain, of->info, &ep, NULL), 0);
	assert_int_equal(fi_cq_open(of->domain, &cq_attr, &cq, NULL), 0);
	assert_int_equal(fi_av_open(of->domain, &av_attr, &av, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_ep_bind(ep, &av->fid, 0), 0);
	assert_int_equal(fi_enable(ep), 0);
	err = fi_getname(&ep->fid, &name, &len);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&av->fid), 0);
	return err;
}

/*
 * On a host that has IPv6 alone (as far as it is told) a program that speaks FI_SOCKADDR_IN cannot be told its address,
 * and hears so; one that speaks FI_SOCKADDR_IN6 can.
 */
static void no_form(void **state)
{
	static const struct {
		uint32_t format;
		int says;
	} cases[] = {{FI_SOCKADDR_IN, -FI_EADDRNOTAVAIL}, {FI_SOCKADDR_IN6, 0}};

	(void)state;
	if (!has_ipv6())
		skip();
	for (int i = 0; i < 2; i++) {
		struct t_domain of;

		t_domain_open(&of, cases[i].format, FI_THREAD_SAFE);
		assert_int_equal(name_of(&of), cases[i].says);
		t_domain_close(&of);
	}
}

/* Parameters are read once: a process of its own for other ones. */
static int with_ipv6_alone(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(no_form)};
	pid_t child = fork();
	int status;

	if (!child) {
		setenv("FI_ROPEWALK_INTERFACES", "::1/128", 1);
		t_use_provider();
		status = cmocka_run_group_tests_name("IPv6 alone", tests, NULL, NULL);
		fflush(NULL);
		_exit(status); /* libfabric itself loses some bytes, which a leak check at exit would find */
	}
	return waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : 1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes),
		cmocka_unit_test(hinted),
		cmocka_unit_test(vector),
		cmocka_unit_test(endpoints),
	};
	int failed = with_ipv6_alone();

	t_use_provider();
	return failed + cmocka_run_group_tests(tests, open_domain, close_domain);
}
