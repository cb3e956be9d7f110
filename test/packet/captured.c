/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/captured.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <sys/wait.h>
#include <unistd.h>

char folder[32] = "/tmp/rwk-test-capture-XXXXXX";
char path[64];
int warnings;
char warning[1024];
uint8_t content[100000];

static void keep_warning(enum rwk_log_level level, const char *file, int line, const char *text)
{
	(void)file;
	(void)line;
	if (level != RWK_LOG_WARN)
		return;
	warnings++;
	snprintf(warning, sizeof(warning), "%s", text);
}

int captured_begin(void **state)
{
	(void)state;
	warnings = 0;
	rwk_log_set_sink(keep_warning);
	snprintf(path, sizeof(path), "%s/capture", folder);
	return 0;
}

int captured_end(void **state)
{
	(void)state;
	rwk_log_set_sink(NULL);
	unlink(path);
	return 0;
}

int captured_open(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (uint8_t)(i * 7 + i / 251);
	return mkdtemp(folder) ? 0 : -1;
}

int captured_close(void **state)
{
	(void)state;
	return rmdir(folder);
}

struct rwk_capture_end end_at(const char *ip, uint16_t port)
{
	struct rwk_capture_end e = {.port = port};

	if (inet_pton(AF_INET, ip, e.ip + 12) == 1)
		e.ip[10] = e.ip[11] = 0xff;
	else
		assert_int_equal(inet_pton(AF_INET6, ip, e.ip), 1);
	return e;
}

static uint32_t word(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

/* Finds an option between `at` and `stop`; the list must end as it should. */
static const uint8_t *option(const uint8_t *at, const uint8_t *stop, uint16_t code, uint16_t *len)
{
	const uint8_t *found = NULL;
	uint16_t head[2];

	for (;;) {
		assert_true(at + 4 <= stop);
		memcpy(head, at, 4);
		at += 4;
		if (!head[0])
			break;
		assert_true(at + head[1] <= stop);
		if (head[0] == code) {
			found = at;
			*len = head[1];
		}
		at += (head[1] + 3) & ~3;
	}
	assert_ptr_equal(at, stop);
	return found;
}

static void parse_interface(struct file *f, const uint8_t *body, const uint8_t *stop)
{
	const uint8_t *o;
	uint16_t len;

	assert_int_equal(body[0] | body[1] << 8, 101);
	assert_int_equal(word(body + 4), 65535);
	o = option(body + 8, stop, 9, &len);
	assert_non_null(o);
	assert_int_equal(*o, 9);
	o = option(body + 8, stop, 2, &len);
	assert_non_null(o);
	assert_true(f->interfaces < 8 && len < 8);
	memcpy(f->name[f->interfaces], o, len);
	f->name[f->interfaces++][len] = 0;
}

static void parse_packet(struct file *f, const uint8_t *body, const uint8_t *stop)
{
	struct record *r = &f->record[f->count++];
	const uint8_t *o;
	uint16_t len;

	assert_true(f->count < RECORDS);
	memset(r, 0, sizeof(*r));
	r->interface = word(body);
	assert_true(r->interface < f->interfaces);
	r->time = (uint64_t)word(body + 4) << 32 | word(body + 8);
	r->kept = word(body + 12);
	r->length = word(body + 16);
	r->bytes = body + 20;
	assert_true(r->kept <= r->length && r->bytes + r->kept <= stop);
	body = r->bytes + ((r->kept + 3) & ~3u);
	o = option(body, stop, 2, &len);
	assert_non_null(o);
	assert_int_equal(len, 4);
	r->flags = word(o);
	o = option(body, stop, 1, &len);
	if (o) {
		assert_true(len < sizeof(r->comment));
		memcpy(r->comment, o, len);
	}
}

struct file *parse(const char *name)
{
	struct file *f = calloc(1, sizeof(*f));
	FILE *in = fopen(name, "r");
	size_t at = 0;

	assert_non_null(f);
	assert_non_null(in);
	f->bytes = malloc(64 << 20);
	assert_non_null(f->bytes);
	f->len = fread(f->bytes, 1, 64 << 20, in);
	assert_true(feof(in));
	fclose(in);
	while (at < f->len) {
		const uint8_t *b = f->bytes + at;
		uint32_t len;

		assert_true(f->len - at >= 12);
		len = word(b + 4);
		assert_true(len >= 12 && len % 4 == 0 && len <= f->len - at);
		assert_int_equal(word(b + len - 4), len);
		assert_true(at || word(b) == 0x0a0d0d0a);
		if (word(b) == 1) {
			parse_interface(f, b + 8, b + len - 4);
		} else if (word(b) == 6) {
			parse_packet(f, b + 8, b + len - 4);
		} else {
			assert_int_equal(word(b), 0x0a0d0d0a);
			assert_int_equal(at, 0);
			assert_int_equal(word(b + 8), 0x1a2b3c4d);
			assert_int_equal(word(b + 12), 1); /* version 1.0 */
		}
		at += len;
	}
	return f;
}

void forget(struct file *f)
{
	free(f->bytes);
	free(f);
}

void write_packet(struct rwk_capture *c, uint32_t number, size_t len, uint64_t time)
{
	struct rwk_capture_end from = end_at("10.0.0.1", 40000), to = end_at("10.0.0.2", 4791);
	struct iovec iov[2] = {{&number, sizeof(number)}, {content, len - sizeof(number)}};

	rwk_capture_packet(c, RWK_CAPTURE_UDP, true, &from, &to, iov, 2, time);
}

uint32_t number_of(const struct record *r)
{
	return word(r->bytes + 28);
}

int in_child(void (*body)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}
