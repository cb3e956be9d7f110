/* SPDX-License-Identifier: BSD-3-Clause */
#include "rwk_test.h"

#include "pcap.h"

/* A file's head and each record's, as the machine that captured wrote them: little-endian. */
enum { FILE_HEAD = 24, RECORD_HEAD = 16, ETHERNET = 14, IPV4 = 20, IPV6 = 40, UDP = 8 };

const char *const pcap_names[] = {"golden-core-6.1", "golden-core-6.12", "rc_loss_mix-6.1", NULL};

static uint32_t little32(const uint8_t *p)
{
	return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
}

static unsigned big16(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

void pcap_open(struct pcap_file *f, const char *name)
{
	const char *top = getenv("srcdir");
	char path[512];
	FILE *in;
	long len;

	snprintf(path, sizeof(path), "%s/test/wire/pcap/%s.pcap", top ? top : ".", name);
	in = fopen(strchr(name, '/') ? name : path, "rb");
	if (!in)
		fail_msg("%s cannot be opened", path);
	assert_int_equal(fseek(in, 0, SEEK_END), 0);
	len = ftell(in);
	assert_true(len > FILE_HEAD);
	rewind(in);
	f->bytes = malloc(len);
	assert_non_null(f->bytes);
	assert_int_equal(fread(f->bytes, 1, len, in), len);
	fclose(in);
	assert_int_equal(little32(f->bytes), 0xa1b2c3d4);
	assert_int_equal(little32(f->bytes + 20), 1); /* Ethernet */
	f->len = len;
	f->at = FILE_HEAD;
}

void pcap_close(struct pcap_file *f)
{
	free(f->bytes);
}

/* Masks what routers change; returns the number of bytes of the IP header. */
static size_t mask_ip(struct pcap_packet *p, const uint8_t *ip, unsigned type)
{
	uint8_t *out = p->pseudo + 8;

	memset(p->pseudo, 0xff, 8);
	p->is_v6 = type == 0x86dd;
	if (p->is_v6) {
		assert_int_equal(ip[6], 17);
		memcpy(out, ip, IPV6);
		memcpy(out, "\x6f\xff\xff\xff", 4);
		out[7] = 0xff;
		return IPV6;
	}
	assert_int_equal(type, 0x0800);
	assert_int_equal(ip[0], 0x45);
	assert_int_equal(ip[9], 17);
	memcpy(out, ip, IPV4);
	p->id = big16(ip + 4);
	out[1] = out[8] = out[10] = out[11] = 0xff;
	return IPV4;
}

bool pcap_next(struct pcap_file *f, struct pcap_packet *p)
{
	const uint8_t *frame = f->bytes + f->at + RECORD_HEAD, *udp;
	size_t len, ip_len;

	if (f->at == f->len)
		return false;
	assert_true(f->len - f->at > RECORD_HEAD + ETHERNET + IPV4 + UDP);
	len = little32(frame - 8);
	assert_int_equal(len, little32(frame - 4));
	assert_true(len <= f->len - f->at - RECORD_HEAD);
	memset(p, 0, sizeof(*p));
	ip_len = mask_ip(p, frame + ETHERNET, big16(frame + 12));
	udp = frame + ETHERNET + ip_len;
	assert_int_equal(big16(udp + 2), 4791);
	memcpy(p->pseudo + 8 + ip_len, udp, UDP);
	memset(p->pseudo + 8 + ip_len + 6, 0xff, 2);
	p->pseudo_len = 8 + ip_len + UDP;
	p->bytes = udp + UDP;
	p->len = big16(udp + 4) - UDP;
	assert_true(ETHERNET + ip_len + UDP + p->len <= len);
	f->at += RECORD_HEAD + len;
	return true;
}
