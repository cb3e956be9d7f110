/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of captures share: a folder for files, packets to write, and a parser of pcapng of our own, which
 * accepts whole blocks alone. CAPTURED is a test with a file name of its own and the log's warnings in mind.
 */
#ifndef TEST_PACKET_CAPTURED_H
#define TEST_PACKET_CAPTURED_H

#include "rwk_test.h"

#include "packet/capture.h"

#include <sys/types.h>

#define T0      UINT64_C(1700000000123456789)
#define SECOND  UINT64_C(1000000000)
#define RECORDS 20000

extern char folder[32];    /* of this program */
extern char path[64];      /* of the test's file in it, removed at its end */
extern int warnings;       /* since the test began */
extern char warning[1024]; /* the last one */
extern uint8_t content[100000];

struct record {
	uint32_t interface, kept, length, flags;
	uint64_t time;
	const uint8_t *bytes;
	char comment[32];
};

struct file {
	uint8_t *bytes;
	size_t len;
	unsigned interfaces;
	char name[8][8];
	unsigned count;
	struct record record[RECORDS];
};

#define CAPTURED(name) cmocka_unit_test_setup_teardown(name, captured_begin, captured_end)

int captured_begin(void **state);
int captured_end(void **state);
/** Of the group: makes the folder and the content, and takes the folder away. */
int captured_open(void **state);
int captured_close(void **state);

struct rwk_capture_end end_at(const char *ip, uint16_t port);
/** Reads a whole file; every block must be whole. To be forgotten. */
struct file *parse(const char *name);
void forget(struct file *f);
/** A packet of `len` bytes of content, whose first word is `number`. */
void write_packet(struct rwk_capture *c, uint32_t number, size_t len, uint64_t time);
uint32_t number_of(const struct record *r);
/** The status of a child that has run `body`. */
int in_child(void (*body)(void));

#endif
