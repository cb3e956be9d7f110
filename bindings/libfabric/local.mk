# The libfabric provider: a module that libfabric loads. It exports fi_prov_ini and nothing else.
provider_LTLIBRARIES += libropewalk-fi.la
libropewalk_fi_la_SOURCES = \
	bindings/libfabric/absent_calls.c bindings/libfabric/absent_calls.h \
	bindings/libfabric/absent_collective.c \
	bindings/libfabric/absent_memory.c \
	bindings/libfabric/absent_message.c \
	bindings/libfabric/address.c bindings/libfabric/address.h \
	bindings/libfabric/alias.c bindings/libfabric/alias.h \
	bindings/libfabric/alias_atomic.c bindings/libfabric/alias_message.c bindings/libfabric/alias_rma.c \
	bindings/libfabric/atomic.c \
	bindings/libfabric/av.c bindings/libfabric/av.h \
	bindings/libfabric/av_insert.c \
	bindings/libfabric/av_shared.c bindings/libfabric/av_shared.h \
	bindings/libfabric/av_table.c bindings/libfabric/av_table.h \
	bindings/libfabric/begin.c \
	bindings/libfabric/bound.c bindings/libfabric/bound.h \
	bindings/libfabric/cntr.c bindings/libfabric/cntr.h \
	bindings/libfabric/completion.c \
	bindings/libfabric/cq.c bindings/libfabric/cq.h \
	bindings/libfabric/deadline.h \
	bindings/libfabric/deferred.c bindings/libfabric/deferred.h \
	bindings/libfabric/device.c bindings/libfabric/device.h \
	bindings/libfabric/dgram.h bindings/libfabric/dgram_ep.c bindings/libfabric/dgram_message.c \
	bindings/libfabric/dgram_name.c \
	bindings/libfabric/disabled.c bindings/libfabric/disabled.h \
	bindings/libfabric/domain.c bindings/libfabric/domain.h \
	bindings/libfabric/engine.c bindings/libfabric/engine.h \
	bindings/libfabric/engine_stats.c \
	bindings/libfabric/ep.c bindings/libfabric/ep.h \
	bindings/libfabric/ep_bind.c \
	bindings/libfabric/ep_peers.c \
	bindings/libfabric/eq.c bindings/libfabric/eq.h \
	bindings/libfabric/fabric.c bindings/libfabric/fabric.h \
	bindings/libfabric/group.c bindings/libfabric/group.h \
	bindings/libfabric/hints.c \
	bindings/libfabric/info.c bindings/libfabric/info.h \
	bindings/libfabric/kind.c \
	bindings/libfabric/message.c \
	bindings/libfabric/legacy.h \
	bindings/libfabric/lock.c bindings/libfabric/lock.h \
	bindings/libfabric/mr.c bindings/libfabric/mr.h \
	bindings/libfabric/msg.h \
	bindings/libfabric/msg_atomic.c \
	bindings/libfabric/msg_cm.c \
	bindings/libfabric/msg_complete.c \
	bindings/libfabric/msg_domain.c bindings/libfabric/msg_domain.h \
	bindings/libfabric/msg_ep.c \
	bindings/libfabric/msg_event.c \
	bindings/libfabric/msg_message.c \
	bindings/libfabric/msg_passive.c \
	bindings/libfabric/msg_post.c \
	bindings/libfabric/msg_rma.c \
	bindings/libfabric/msg_srx.c \
	bindings/libfabric/name.c \
	bindings/libfabric/peer.h bindings/libfabric/peer_cntr.c bindings/libfabric/peer_cq.c \
	bindings/libfabric/peer_entry.c bindings/libfabric/peer_entry.h \
	bindings/libfabric/peer_forms.h \
	bindings/libfabric/peer_lent.c \
	bindings/libfabric/peer_srx.c \
	bindings/libfabric/nic.c bindings/libfabric/nic.h \
	bindings/libfabric/nic_source.c \
	bindings/libfabric/poll_set.c bindings/libfabric/poll_set.h \
	bindings/libfabric/progress.c bindings/libfabric/progress.h \
	bindings/libfabric/provider.c bindings/libfabric/provider.h \
	bindings/libfabric/rma.c bindings/libfabric/rma.h \
	bindings/libfabric/scalable.c bindings/libfabric/scalable.h \
	bindings/libfabric/scalable_context.c \
	bindings/libfabric/shared.h \
	bindings/libfabric/sleepers.c \
	bindings/libfabric/srx.c \
	bindings/libfabric/stx.c \
	bindings/libfabric/tagged.c \
	bindings/libfabric/transfer.c bindings/libfabric/transfer.h \
	bindings/libfabric/trigger.c bindings/libfabric/trigger.h \
	bindings/libfabric/wait.c bindings/libfabric/wait.h \
	bindings/libfabric/wait_set.c bindings/libfabric/wait_set.h \
	bindings/libfabric/waker.c bindings/libfabric/waker.h \
	bindings/libfabric/watched.c bindings/libfabric/watched.h \
	bindings/libfabric/work.h \
	bindings/libfabric/work_queue.c bindings/libfabric/work_queue.h
libropewalk_fi_la_CPPFLAGS = $(LIBRARY_CPPFLAGS) $(LIBFABRIC_CFLAGS)
# It stays mapped once libfabric has closed it: an info has a fi_nic, whose close is ours, and lnx frees its infos after
# that.
libropewalk_fi_la_LDFLAGS = $(AM_LDFLAGS) -Wl,-z,nodelete -module -avoid-version -shared -no-undefined \
	-Wl,--as-needed -export-symbols-regex '^fi_prov_ini$$'
libropewalk_fi_la_LIBADD = libropewalk-core.la $(LIBFABRIC_LIBS) -lpthread

# The tables of README.md, and what of libfabric's own tests is not to be run.
EXTRA_DIST += bindings/libfabric/README.md bindings/libfabric/conformance bindings/libfabric/conformance.notes \
	bindings/libfabric/fabtests.exclude
