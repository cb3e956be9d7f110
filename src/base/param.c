/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/param.h"

#include "base/interfaces.h"
#include "base/log.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const log_choices[] = {"warn", "info", "debug", NULL};
static const char *const service_choices[] = {"auto", "rc", "uc", "src", NULL};
static const char *const link_choices[] = {"auto", "shm", "udp", "tcp", NULL};
static const char *const auto_choices[] = {"auto", "on", "off", NULL};
static const char *const pmtu_choices[] = {"auto", "256", "512", "1024", "2048", "4096", NULL};
static const char *const rendezvous_choices[] = {"auto", "read", "write", NULL};

#define AT(member) offsetof(struct rwk_params, member)

const struct rwk_param rwk_param_table[] = {
	{"explain", "print, for each kind of peer, the transport chosen and why each other one lost", "no",
		RWK_PARAM_BOOL, .offset = AT(explain)},
	{"stats", "print a summary when an endpoint is closed: counters, copies within the node, connections to others",
		"no", RWK_PARAM_BOOL, .offset = AT(stats)},
	{"visible", "let rwk_info --pid of the same user show the endpoints of a running process", "yes",
		RWK_PARAM_BOOL, .offset = AT(visible)},
	{"log", "the most talkative level of ropewalk's own log lines", "warn", RWK_PARAM_CHOICE, .offset = AT(log),
		.choices = log_choices},
	{"service", "force the service towards every other process", "auto", RWK_PARAM_CHOICE, .offset = AT(service),
		.choices = service_choices},
	{"link", "force the link towards every other process", "auto", RWK_PARAM_CHOICE, .offset = AT(link),
		.choices = link_choices},
	{"src_limit",
		"connections to other nodes that each process may have by RC; of more the processes of a node share "
		"theirs (SRC); 0: as many as take a 1024th of the node's memory",
		"0", RWK_PARAM_SIZE, .offset = AT(src_limit), .min = 0, .max = (size_t)1 << 24},
	{"pmix",
		"take the job map from PMIx: auto asks only where the host program has initialised it, on initialises "
		"it",
		"auto", RWK_PARAM_CHOICE, .offset = AT(pmix), .choices = auto_choices},
	{"job_file", "file with a job map to use in place of the launcher's", NULL, RWK_PARAM_TEXT,
		.offset = AT(job_file)},
	{"eager_max", "largest message, in bytes, that is sent within the node before the receiver has asked for it",
		"128K", RWK_PARAM_SIZE, .offset = AT(eager_max), .min = 256, .max = 1 << 20},
	{"eager_max_network",
		"largest message, in bytes, that is sent to another node before the receiver has asked for it; by SRC "
		"and by TCP 64K at most",
		"256K", RWK_PARAM_SIZE, .offset = AT(eager_max_network), .min = 256, .max = 256 << 10},
	{"eager_credit",
		"bytes of unreceived payload that a peer may have at a receiver, up to four times as much as long as "
		"its messages find their receives posted; more waits at the sender",
		"1M", RWK_PARAM_SIZE, .offset = AT(eager_credit), .min = 4096, .max = (size_t)1 << 30},
	{"cma",
		"copy large messages across address spaces (process_vm_readv): auto measures whether that or shared "
		"memory is faster, on does it wherever it is not denied, off never does it; unless off, ranks that "
		"share connections carry out what comes from other nodes for the memory of one that computes",
		"auto", RWK_PARAM_CHOICE, .offset = AT(cma), .choices = auto_choices},
	{"ptracer", "where the Yama module restricts it, allow processes of the same job to copy (PR_SET_PTRACER)",
		"yes", RWK_PARAM_BOOL, .offset = AT(ptracer)},
	{"connect_wait",
		"seconds to wait for an endpoint that is known by IP and port alone while nobody is there, so that a "
		"client may be started before its server",
		"10", RWK_PARAM_SIZE, .offset = AT(connect_wait), .min = 0, .max = 86400},
	{"ring_lines", "largest ring towards a peer on the node, in cache lines", "4096", RWK_PARAM_SIZE,
		.offset = AT(ring_lines), .min = 64, .max = 65536},
	{"spin", "empty polls before a process yields its core when ranks or threads outnumber cores", "200",
		RWK_PARAM_SIZE, .offset = AT(spin), .min = 0, .max = (size_t)1 << 30},
	{"interfaces",
		"the network interfaces to use, by name or network; with ! in front: not to use; if none is "
		"named to be used: all others",
		NULL, RWK_PARAM_TEXT, .offset = AT(interfaces), .form = RWK_INTERFACES_EXAMPLE,
		.check = rwk_interfaces_check},
	{"ports", "the UDP and TCP ports that endpoints may take for themselves, as a firewall leaves them open", "any",
		RWK_PARAM_PORTS, .offset = AT(ports)},
	{"udp", "use UDP towards other nodes; no: as if none of its packets got through", "yes", RWK_PARAM_BOOL,
		.offset = AT(udp)},
	{"tcp", "use TCP towards other nodes where UDP does not get through; no: as if nothing listened", "yes",
		RWK_PARAM_BOOL, .offset = AT(tcp)},
	{"pmtu",
		"bytes of payload in a packet between nodes, at most; auto: as many as the path carries whole",
		"auto", RWK_PARAM_CHOICE, .offset = AT(pmtu), .choices = pmtu_choices},
	{"receive_buffer",
		"bytes of buffer to ask of the kernel for each socket (SO_RCVBUF), at least 65536, which may give less; "
		"0: 4 MiB",
		"0",
		RWK_PARAM_SIZE, .offset = AT(receive_buffer), .min = 0, .max = (size_t)1 << 30},
	{"window",
		"packets to have under way to a peer on another node, at most; 0: as many as its receive buffer allows",
		"0", RWK_PARAM_SIZE, .offset = AT(window), .min = 0, .max = 256},
	{"rendezvous",
		"how a long message from another node is fetched: read by its receiver or written by its sender; auto: "
		"several at once of the longest are written, others read",
		"auto", RWK_PARAM_CHOICE, .offset = AT(rendezvous), .choices = rendezvous_choices},
	{"job_key",
		"the secret of those that may connect, the same for all of them, in place of the launcher's; keep it "
		"from others as a password",
		NULL, RWK_PARAM_TEXT, .offset = AT(job_key), .secret = true},
	{"pcap",
		"file to write the packets of all links to, in pcapng; %p in its name is the process's number, %r its "
		"rank, %% a percent sign",
		NULL, RWK_PARAM_TEXT, .offset = AT(pcap)},
};

const size_t rwk_param_count = sizeof(rwk_param_table) / sizeof(rwk_param_table[0]);

struct rwk_params rwk_params;

static int parse_bool(const char *text, bool *out)
{
	static const char *const words[][2] = {{"1", "0"}, {"yes", "no"}, {"true", "false"}, {"on", "off"}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		for (int no = 0; no < 2; no++) {
			if (!strcasecmp(text, words[i][no])) {
				*out = !no;
				return 0;
			}
		}
	}
	return -EINVAL;
}

static int parse_size(const char *text, size_t *out)
{
	static const char units[] = "KMG";
	unsigned long long v;
	const char *unit;
	int shift = 0, base = !strncasecmp(text, "0x", 2) ? 16 : 10;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, base);
	if (errno)
		return -EINVAL;
	if (*end) {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit || end[1])
			return -EINVAL;
		shift = 10 * (int)(unit - units + 1);
	}
	if (v > SIZE_MAX >> shift)
		return -EINVAL;
	*out = (size_t)v << shift;
	return 0;
}

static int parse_choice(const char *text, const char *const *choices, int *out)
{
	for (int i = 0; choices[i]; i++) {
		if (!strcasecmp(text, choices[i])) {
			*out = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_port(const char **at, uint16_t *out)
{
	unsigned v = 0;

	if (**at < '1' || **at > '9')
		return -EINVAL;
	for (; isdigit((unsigned char)**at); ++*at) {
		v = 10 * v + (unsigned)(**at - '0');
		if (v > UINT16_MAX)
			return -EINVAL;
	}
	*out = (uint16_t)v;
	return 0;
}

static int parse_ports(const char *text, struct rwk_param_ports *out)
{
	struct rwk_param_ports v = {0};

	if (strcasecmp(text, "any") != 0) {
		if (parse_port(&text, &v.first))
			return -EINVAL;
		v.last = v.first;
		if (*text == '-') {
			text++;
			if (parse_port(&text, &v.last))
				return -EINVAL;
		}
		if (*text || v.last < v.first)
			return -EINVAL;
	}
	*out = v;
	return 0;
}

static void list_choices(const char *const *choices, char *buf, size_t len)
{
	size_t at = 0;

	for (int i = 0; choices[i] && at < len; i++)
		at += (size_t)snprintf(buf + at, len - at, "%s%s", i ? " " : "", choices[i]);
}

const char *rwk_param_good(const struct rwk_param *p, char *buf, size_t len)
{
	switch (p->type) {
	case RWK_PARAM_BOOL:
		snprintf(buf, len, "yes no");
		break;
	case RWK_PARAM_SIZE:
		snprintf(buf, len, "%zu to %zu", p->min, p->max);
		break;
	case RWK_PARAM_CHOICE:
		list_choices(p->choices, buf, len);
		break;
	case RWK_PARAM_TEXT:
		snprintf(buf, len, "%s%s", p->form ? "text as " : "text", p->form ? p->form : "");
		break;
	case RWK_PARAM_PORTS:
		snprintf(buf, len, "any, or first-last from 1 to 65535");
		break;
	}
	return buf;
}

int rwk_param_set(struct rwk_params *out, const struct rwk_param *p, const char *text, char *why, size_t len)
{
	void *member = (char *)out + p->offset;
	char good[100];
	size_t v;

	switch (p->type) {
	case RWK_PARAM_BOOL:
		if (!parse_bool(text, member))
			return 0;
		snprintf(why, len, "not one of: yes no true false on off 1 0");
		return -EINVAL;
	case RWK_PARAM_SIZE:
		if (!parse_size(text, &v) && v >= p->min && v <= p->max) {
			*(size_t *)member = v;
			return 0;
		}
		snprintf(why, len, "not a number from %s (K, M and G may follow it)",
			rwk_param_good(p, good, sizeof(good)));
		return -EINVAL;
	case RWK_PARAM_CHOICE:
		if (!parse_choice(text, p->choices, member))
			return 0;
		snprintf(why, len, "not one of: %s", rwk_param_good(p, good, sizeof(good)));
		return -EINVAL;
	case RWK_PARAM_TEXT:
		if (p->check && p->check(text, why, len))
			return -EINVAL;
		*(const char **)member = text;
		return 0;
	case RWK_PARAM_PORTS:
		if (!parse_ports(text, member))
			return 0;
		snprintf(why, len, "no range of ports; %s would be right", rwk_param_good(p, good, sizeof(good)));
		return -EINVAL;
	}
	return -EINVAL;
}

const char *rwk_param_variable(const struct rwk_param *p, char *buf, size_t len)
{
	snprintf(buf, len, "FI_ROPEWALK_%s", p->name);
	for (char *c = buf; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	return buf;
}

int rwk_param_load(void)
{
	struct rwk_params v = {0};
	int refused = 0;
	char name[64], why[160];

	for (size_t i = 0; i < rwk_param_count; i++) {
		const struct rwk_param *p = &rwk_param_table[i];
		const char *text;

		if (p->initial)
			rwk_param_set(&v, p, p->initial, why, sizeof(why));
		text = getenv(rwk_param_variable(p, name, sizeof(name)));
		if (text && rwk_param_set(&v, p, text, why, sizeof(why))) {
			rwk_warn("%s=%s is %s; %s is used", name, text, why, p->initial ? p->initial : "nothing");
			refused++;
		}
	}
	rwk_params = v;
	return refused;
}

bool rwk_param_is_set(const struct rwk_param *p)
{
	struct rwk_params scratch;
	char name[64], why[160];
	const char *text = getenv(rwk_param_variable(p, name, sizeof(name)));

	return text && !rwk_param_set(&scratch, p, text, why, sizeof(why));
}

static void show_ports(const struct rwk_param_ports *v, char *buf, size_t len)
{
	if (!v->first)
		snprintf(buf, len, "any");
	else if (v->first == v->last)
		snprintf(buf, len, "%u", v->first);
	else
		snprintf(buf, len, "%u-%u", v->first, v->last);
}

const char *rwk_param_show(const struct rwk_params *v, const struct rwk_param *p, char *buf, size_t len)
{
	const void *member = (const char *)v + p->offset;
	const char *text;

	switch (p->type) {
	case RWK_PARAM_BOOL:
		snprintf(buf, len, "%s", *(const bool *)member ? "yes" : "no");
		break;
	case RWK_PARAM_SIZE:
		snprintf(buf, len, "%zu", *(const size_t *)member);
		break;
	case RWK_PARAM_CHOICE:
		snprintf(buf, len, "%s", p->choices[*(const int *)member]);
		break;
	case RWK_PARAM_TEXT:
		text = *(const char *const *)member;
		snprintf(buf, len, "%s", !text ? "" : p->secret ? "(set)" : text);
		break;
	case RWK_PARAM_PORTS:
		show_ports(member, buf, len);
		break;
	}
	return buf;
}

const struct rwk_param *rwk_param_find(const char *name)
{
	for (size_t i = 0; i < rwk_param_count; i++) {
		if (!strcmp(rwk_param_table[i].name, name))
			return &rwk_param_table[i];
	}
	return NULL;
}
