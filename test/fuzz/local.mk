# What test/fuzz adds to the build: fuzzers, where the compiler has libFuzzer. What they look at is compiled once more, with the
# sanitizers.
EXTRA_DIST += test/fuzz/run test/fuzz/corpus

if HAVE_LIBFUZZER
FUZZ_CFLAGS = $(RWK_WARNINGS) -fno-strict-aliasing -fno-sanitize-recover=undefined -fsanitize=fuzzer,address,undefined
FUZZERS = test/fuzz/fuzz_connect test/fuzz/fuzz_rc test/fuzz/fuzz_rma test/fuzz/fuzz_stream test/fuzz/fuzz_uc \
	test/fuzz/fuzz_wire
check_PROGRAMS += $(FUZZERS)

test_fuzz_fuzz_connect_SOURCES = test/fuzz/fuzz_connect.c src/connect/message.c
test_fuzz_fuzz_connect_CPPFLAGS = $(AM_CPPFLAGS)
test_fuzz_fuzz_connect_CFLAGS = $(FUZZ_CFLAGS)
test_fuzz_fuzz_connect_LDFLAGS = -fsanitize=fuzzer,address,undefined

test_fuzz_fuzz_rc_SOURCES = test/fuzz/fuzz_rc.c \
	transports/rc/ack.c transports/rc/answers.c transports/rc/early.c transports/rc/loss.c transports/rc/marks.c \
	transports/rc/qp.c transports/rc/reads.c transports/rc/requester.c transports/rc/responder.c \
	transports/rc/unordered.c transports/rc/window.c transports/wire/segment.c transports/wire/wire.c src/base/iov.c
test_fuzz_fuzz_rc_CPPFLAGS = $(AM_CPPFLAGS)
test_fuzz_fuzz_rc_CFLAGS = $(FUZZ_CFLAGS)
test_fuzz_fuzz_rc_LDFLAGS = -fsanitize=fuzzer,address,undefined

test_fuzz_fuzz_rma_SOURCES = test/fuzz/fuzz_rma.c \
	src/engine/atomic.c src/engine/engine.c src/engine/inbound.c src/engine/match.c src/engine/peer.c \
	src/engine/receive.c src/engine/region.c src/engine/rendezvous.c src/engine/rma.c src/engine/rma_choice.c \
	src/engine/rma_direct.c src/engine/rma_request.c src/engine/rma_self.c src/engine/rma_serve.c src/engine/self.c \
	src/engine/send.c src/base/interfaces.c src/base/iov.c src/base/log.c src/base/param.c src/base/pool.c
test_fuzz_fuzz_rma_CPPFLAGS = $(AM_CPPFLAGS)
test_fuzz_fuzz_rma_CFLAGS = $(FUZZ_CFLAGS)
test_fuzz_fuzz_rma_LDFLAGS = -fsanitize=fuzzer,address,undefined

test_fuzz_fuzz_stream_SOURCES = test/fuzz/fuzz_stream.c transports/framing.c
test_fuzz_fuzz_stream_CPPFLAGS = $(AM_CPPFLAGS)
test_fuzz_fuzz_stream_CFLAGS = $(FUZZ_CFLAGS)
test_fuzz_fuzz_stream_LDFLAGS = -fsanitize=fuzzer,address,undefined

test_fuzz_fuzz_uc_SOURCES = test/fuzz/fuzz_uc.c \
	transports/uc/responder.c transports/uc/uc.c transports/wire/segment.c transports/wire/wire.c src/base/iov.c
test_fuzz_fuzz_uc_CPPFLAGS = $(AM_CPPFLAGS)
test_fuzz_fuzz_uc_CFLAGS = $(FUZZ_CFLAGS)
test_fuzz_fuzz_uc_LDFLAGS = -fsanitize=fuzzer,address,undefined

test_fuzz_fuzz_wire_SOURCES = test/fuzz/fuzz_wire.c \
	transports/wire/crc32.c transports/wire/icrc.c transports/wire/segment.c transports/wire/wire.c
test_fuzz_fuzz_wire_CPPFLAGS = $(AM_CPPFLAGS) $(ISAL_CFLAGS)
test_fuzz_fuzz_wire_CFLAGS = $(FUZZ_CFLAGS)
test_fuzz_fuzz_wire_LDFLAGS = -fsanitize=fuzzer,address,undefined
test_fuzz_fuzz_wire_LDADD = $(ISAL_LIBS) -lpthread
endif
