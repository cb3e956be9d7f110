/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registry of parameters: the one place that knows names, types, ranges, defaults and help. Values come from the
 * environment (FI_ROPEWALK_<NAME>); the provider mirrors the table into libfabric's own registry, so that `fi_info -e`
 * lists it. Read on the fast path through rwk_params directly: it is plain memory, set once by rwk_param_load.
 */
#ifndef RWK_BASE_PARAM_H
#define RWK_BASE_PARAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rwk_param_type {
	RWK_PARAM_BOOL,   /* 0 1 yes no true false on off */
	RWK_PARAM_SIZE,   /* bytes or a count, decimal or 0x...; K, M, G multiply by 1024 and its powers */
	RWK_PARAM_CHOICE, /* one of `choices`; the value is its index */
	RWK_PARAM_TEXT,   /* any text, or one that `check` takes; NULL if unset */
	RWK_PARAM_PORTS,  /* a port, first-last, or any */
};

/** UDP or TCP ports first to last; both 0: any. */
struct rwk_param_ports {
	uint16_t first, last;
};

/** The values in force. One member for each row of the table in param.c. */
struct rwk_params {
	bool explain;
	bool stats;
	bool visible;
	int log;
	int service;
	int link;
	size_t src_limit;
	int pmix;
	const char *job_file;
	size_t eager_max;
	size_t eager_max_network;
	size_t eager_credit;
	int cma;
	bool ptracer;
	size_t connect_wait;
	size_t ring_lines;
	size_t spin;
	const char *interfaces;
	struct rwk_param_ports ports;
	bool udp;
	bool tcp;
	int pmtu;
	size_t receive_buffer;
	size_t window;
	int rendezvous;
	const char *job_key;
	const char *pcap;
};

enum rwk_param_service { RWK_SERVICE_AUTO, RWK_SERVICE_RC, RWK_SERVICE_UC, RWK_SERVICE_SRC };
enum rwk_param_link { RWK_LINK_AUTO, RWK_LINK_SHM, RWK_LINK_UDP, RWK_LINK_TCP };
enum rwk_param_auto { RWK_AUTO, RWK_ON, RWK_OFF };
enum rwk_param_rendezvous { RWK_RENDEZVOUS_AUTO, RWK_RENDEZVOUS_READ, RWK_RENDEZVOUS_WRITE };

/** The bytes of what the parameter pmtu says, 256 to 4096; 0: auto. */
static inline unsigned rwk_param_pmtu(const struct rwk_params *v)
{
	return v->pmtu ? 128u << v->pmtu : 0;
}

/** Is UDP open towards other nodes? UC goes there by TCP alone. */
static inline bool rwk_param_opens_udp(const struct rwk_params *v)
{
	return v->udp && v->link != RWK_LINK_TCP && v->service != RWK_SERVICE_UC;
}

struct rwk_param {
	const char *name;    /* lower case; the variable is FI_ROPEWALK_ and this in upper case */
	const char *help;    /* one sentence */
	const char *initial; /* the default, as a user would write it; NULL for no text */
	enum rwk_param_type type;
	size_t offset;              /* of the member in struct rwk_params */
	size_t min, max;            /* RWK_PARAM_SIZE */
	const char *const *choices; /* RWK_PARAM_CHOICE, ends with NULL */
	/* RWK_PARAM_TEXT: */
	bool secret;                                           /* shown to nobody */
	const char *form;                                      /* what a good one looks like; NULL: any text */
	int (*check)(const char *text, char *why, size_t len); /* as rwk_param_set; NULL: any text */
};

extern const struct rwk_param rwk_param_table[];
extern const size_t rwk_param_count;
extern struct rwk_params rwk_params;

/**
 * Reads every parameter from the environment into rwk_params.
 * A value that is not valid leaves the default in force and is logged as a warning that names the variable, the value
 * and what would be right. Idempotent; not thread-safe against itself. Returns the number of values refused.
 */
int rwk_param_load(void);

/**
 * Sets one parameter from text into `out`, by the rules of its type.
 * Returns 0, or -EINVAL with the reason ("not one of: auto shm udp tcp") in `why` (at most `len` bytes, terminated);
 * then nothing was set. The text of an RWK_PARAM_TEXT is not copied: it must stay.
 */
int rwk_param_set(struct rwk_params *out, const struct rwk_param *p, const char *text, char *why, size_t len);

/** Whether the value in force of `p` is the environment's. One that was refused is not. */
bool rwk_param_is_set(const struct rwk_param *p);

/** Writes the value in force of `p` as a user would write it into `buf`, of a secret "(set)"; returns `buf`. */
const char *rwk_param_show(const struct rwk_params *v, const struct rwk_param *p, char *buf, size_t len);

/** Writes the name of the variable that sets `p` into `buf`; returns `buf`. */
const char *rwk_param_variable(const struct rwk_param *p, char *buf, size_t len);

/** Writes the good values of `p` into `buf`, as "yes no", "256 to 1048576", "auto on off", "text" and so on; returns
 * `buf`. */
const char *rwk_param_good(const struct rwk_param *p, char *buf, size_t len);

/** The row of that name (lower case), or NULL. */
const struct rwk_param *rwk_param_find(const char *name);

#endif
