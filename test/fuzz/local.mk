# What test/fuzz adds to the build: fuzzers, where the compiler has libFuzzer. What they look at is compiled once
# more, with the sanitizers.
EXTRA_DIST += test/fuzz/run test/fuzz/corpus

if HAVE_LIBFUZZER
FUZZ_CFLAGS = $(RWK_WARNINGS) -fno-strict-aliasing -fno-sanitize-recover=undefined -fsanitize=fuzzer,address,undefined
FUZZERS = test/fuzz/fuzz_address test/fuzz/fuzz_connect test/fuzz/fuzz_domain test/fuzz/fuzz_door \
	test/fuzz/fuzz_greeting test/fuzz/fuzz_rc test/fuzz/fuzz_rma test/fuzz/fuzz_shm test/fuzz/fuzz_stream \
	test/fuzz/fuzz_topology test/fuzz/fuzz_uc test/fuzz/fuzz_ud test/fuzz/fuzz_wire
check_PROGRAMS += $(FUZZERS)

# RC's machines, which three of them drive.
check_LTLIBRARIES += test/fuzz/librc.la
test_fuzz_librc_la_SOURCES = \
	transports/rc/ack.c transports/rc/answers.c transports/rc/busy.c transports/rc/early.c transports/rc/loss.c \
	transports/rc/marks.c transports/rc/qp.c transports/rc/reads.c transports/rc/requester.c transports/rc/responder.c \
	transports/rc/sound.c transports/rc/unordered.c transports/rc/window.c transports/wire/segment.c \
	transports/wire/wire.c \
	src/base/copy.c src/base/iov.c
test_fuzz_librc_la_CFLAGS = $(FUZZ_CFLAGS)

test_fuzz_fuzz_address_SOURCES = test/fuzz/fuzz_address.c bindings/libfabric/address.c src/base/log.c \
	src/base/interfaces.c src/base/param.c
test_fuzz_fuzz_address_CPPFLAGS = $(AM_CPPFLAGS) $(LIBFABRIC_CFLAGS)
test_fuzz_fuzz_address_CFLAGS = $(FUZZ_CFLAGS)
test_fuzz_fuzz_address_LDFLAGS = -fsanitize=fuzzer,address,undefined

test_fuzz_fuzz_connect_SOURCES = test/fuzz/fuzz_connect.c src/connect/message.c
test_fuzz_fuzz_connect_CPPFLAGS = $(AM_CPPFLAGS)
test_fuzz_fuzz_connect_CFLAGS = $(FUZZ_CFLAGS)
test_fuzz_fuzz_connect_LDFLAGS = -fsanitize=fuzzer,address,undefined

test_fuzz_fuzz_domain_SOURCES = test/fuzz/fuzz_domain.c \
	transports/shared_rc/answer.c transports/shared_rc/inbox.c transports/shared_rc/layout.c \
	transports/shared_rc/lock.c transports/shared_rc/members.c transports/shared_rc/polling.c \
	transports/shared_rc/reach.c transports/shared_rc/step.c transports/shared_rc/target.c transports/shared_rc/view.c \
	src/base/interfaces.c src/base/log.c src/base/param.c src/base/process.c src/base/shared.c \
	src/base/this_process.c
test_fuzz_fuzz_domain_CPPFLAGS = $(AM_CPPFLAGS) -Dprocess_vm_readv=fuzz_readv -Dprocess_vm_writev=fuzz_writev
test_fuzz_fuzz_domain_CFLAGS = $(FUZZ_CFLAGS)
test_fuzz_fuzz_domain_LDFLAGS = -fsanitize=fuzzer,address,undefined
test_fuzz_fuzz_domain_LDADD = test/fuzz/librc.la -lpthread

test_fuzz_fuzz_door_SOURCES = test/fuzz/fuzz_door.c \
	transports/shared_rc/card.c transports/shared_rc/door.c transports/shared_rc/join.c \
	transports/shared_rc/layout.c transports/shared_rc/lock.c \
	src/base/forked.c src/base/interfaces.c src/base/log.c src/base/param.c src/base/process.c src/base/shared.c
test_fuzz_fuzz_door_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS) -Dclock_gettime=fuzz_clock_gettime
test_fuzz_fuzz_door_CFLAGS = $(FUZZ_CFLAGS)
test_fuzz_fuzz_door_LDFLAGS = -fsanitize=fuzzer,address,undefined
test_fuzz_fuzz_door_LDADD = test/fuzz/librc.la $(SODIUM_LIBS) -lpthread

test_fuzz_fuzz_greeting_SOURCES = test/fuzz/fuzz_greeting.c transports/packet/greeting.c transports/links/tcp/hello.c
test_fuzz_fuzz_greeting_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS)
test_fuzz_fuzz_greeting_CFLAGS = $(FUZZ_CFLAGS)
test_fuzz_fuzz_greeting_LDFLAGS = -fsanitize=fuzzer,address,undefined
test_fuzz_fuzz_greeting_LDADD = $(SODIUM_LIBS)

test_fuzz_fuzz_rc_SOURCES = test/fuzz/fuzz_rc.c
test_fuzz_fuzz_rc_CPPFLAGS = $(AM_CPPFLAGS)
test_fuzz_fuzz_rc_CFLAGS = $(FUZZ_CFLAGS)
test_fuzz_fuzz_rc_LDFLAGS = -fsanitize=fuzzer,address,undefined
test_fuzz_fuzz_rc_LDADD = test/fuzz/librc.la

test_fuzz_fuzz_rma_SOURCES = test/fuzz/fuzz_rma.c \
	src/engine/atomic.c src/engine/credit.c src/engine/directory.c src/engine/engine.c src/engine/foreign.c \
	src/engine/guest.c src/engine/inbound.c src/engine/inbox.c \
	src/engine/late.c src/engine/match.c src/engine/merge.c src/engine/peer.c \
	src/engine/receive.c src/engine/region.c src/engine/rendezvous.c src/engine/rma.c src/engine/rma_choice.c \
	src/engine/rma_direct.c src/engine/rma_met.c src/engine/rma_peer.c src/engine/rma_piece.c src/engine/rma_request.c \
	src/engine/rma_self.c src/engine/rma_serve.c src/engine/room.c src/engine/self.c \
	src/engine/send.c src/engine/status.c \
	src/base/copy.c src/base/hash_table.c src/base/interfaces.c src/base/iov.c src/base/log.c src/base/param.c \
	src/base/pool.c src/base/process.c src/base/shared.c src/base/spares.c src/base/this_process.c
test_fuzz_fuzz_rma_CPPFLAGS = $(AM_CPPFLAGS)
test_fuzz_fuzz_rma_CFLAGS = $(FUZZ_CFLAGS)
test_fuzz_fuzz_rma_LDFLAGS = -fsanitize=fuzzer,address,undefined

test_fuzz_fuzz_shm_SOURCES = test/fuzz/fuzz_shm.c \
	transports/shm/attach.c transports/shm/deliver.c transports/shm/evidence.c transports/shm/fill.c \
	transports/shm/note.c \
	transports/shm/port.c transports/shm/ring.c transports/shm/segment.c transports/shm/send.c transports/shm/slab.c \
	transports/shm/answer.c transports/shm/arrival.c transports/shm/transfer.c transports/shm/transfer_border.c transports/shm/transfer_both.c transports/shm/transfer_choice.c \
	transports/shm/transfer_direct.c transports/shm/transfer_guard.c transports/shm/transfer_help.c \
	transports/shm/transfer_least.c transports/shm/transfer_proof.c transports/shm/transfer_pull.c transports/shm/transfer_reach.c \
	transports/shm/transfer_region.c transports/shm/transfer_stage.c transports/shm/transfer_summary.c \
	transports/shm/wake.c \
	src/base/copy.c src/base/forked.c src/base/interfaces.c src/base/iov.c src/base/log.c src/base/param.c \
	src/base/pool.c src/base/process.c src/base/shared.c
test_fuzz_fuzz_shm_CPPFLAGS = $(AM_CPPFLAGS) -Dmmap=fuzz_mmap -Dmunmap=fuzz_munmap -Dprocess_vm_readv=fuzz_readv \
	-Dprocess_vm_writev=fuzz_writev -Dclock_gettime=fuzz_clock_gettime -Dnanosleep=fuzz_nanosleep
test_fuzz_fuzz_shm_CFLAGS = $(FUZZ_CFLAGS)
test_fuzz_fuzz_shm_LDFLAGS = -fsanitize=fuzzer,address,undefined

test_fuzz_fuzz_stream_SOURCES = test/fuzz/fuzz_stream.c transports/framing.c
test_fuzz_fuzz_stream_CPPFLAGS = $(AM_CPPFLAGS)
test_fuzz_fuzz_stream_CFLAGS = $(FUZZ_CFLAGS)
test_fuzz_fuzz_stream_LDFLAGS = -fsanitize=fuzzer,address,undefined

test_fuzz_fuzz_topology_SOURCES = test/fuzz/fuzz_topology.c \
	src/topology/file.c src/topology/job_key.c src/topology/job_map.c src/topology/launchers.c src/topology/count.c \
	src/topology/machine.c \
	src/topology/node_map.c src/topology/pmix.c src/topology/slurm.c src/topology/source.c src/base/interfaces.c \
	src/base/log.c src/base/param.c
test_fuzz_fuzz_topology_CPPFLAGS = $(AM_CPPFLAGS) $(HWLOC_CFLAGS) $(PMIX_CFLAGS) $(SODIUM_CFLAGS)
test_fuzz_fuzz_topology_CFLAGS = $(FUZZ_CFLAGS)
test_fuzz_fuzz_topology_LDFLAGS = -fsanitize=fuzzer,address,undefined
test_fuzz_fuzz_topology_LDADD = $(HWLOC_LIBS) $(SODIUM_LIBS) -ldl -lpthread

test_fuzz_fuzz_uc_SOURCES = test/fuzz/fuzz_uc.c \
	transports/uc/responder.c transports/uc/uc.c transports/wire/segment.c transports/wire/wire.c \
	src/base/copy.c src/base/iov.c
test_fuzz_fuzz_uc_CPPFLAGS = $(AM_CPPFLAGS)
test_fuzz_fuzz_uc_CFLAGS = $(FUZZ_CFLAGS)
test_fuzz_fuzz_uc_LDFLAGS = -fsanitize=fuzzer,address,undefined

test_fuzz_fuzz_ud_SOURCES = test/fuzz/fuzz_ud.c transports/ud/ud.c \
	transports/wire/crc32.c transports/wire/icrc.c transports/wire/wire.c src/base/copy.c src/base/iov.c
test_fuzz_fuzz_ud_CPPFLAGS = $(AM_CPPFLAGS) $(ISAL_CFLAGS)
test_fuzz_fuzz_ud_CFLAGS = $(FUZZ_CFLAGS)
test_fuzz_fuzz_ud_LDFLAGS = -fsanitize=fuzzer,address,undefined
test_fuzz_fuzz_ud_LDADD = $(ISAL_LIBS) -lpthread

test_fuzz_fuzz_wire_SOURCES = test/fuzz/fuzz_wire.c \
	transports/wire/crc32.c transports/wire/icrc.c transports/wire/segment.c transports/wire/wire.c
test_fuzz_fuzz_wire_CPPFLAGS = $(AM_CPPFLAGS) $(ISAL_CFLAGS)
test_fuzz_fuzz_wire_CFLAGS = $(FUZZ_CFLAGS)
test_fuzz_fuzz_wire_LDFLAGS = -fsanitize=fuzzer,address,undefined
test_fuzz_fuzz_wire_LDADD = $(ISAL_LIBS) -lpthread
endif
