# What src/engine adds to the build.
libropewalk_core_la_SOURCES += \
	src/engine/atomic.c src/engine/atomic.h \
	src/engine/credit.c \
	src/engine/engine.c src/engine/engine.h \
	src/engine/foreign.c src/engine/foreign.h \
	src/engine/guest.c src/engine/guest.h \
	src/engine/inbound.c \
	src/engine/inbox.c \
	src/engine/internal.h \
	src/engine/job.c src/engine/job.h \
	src/engine/late.c \
	src/engine/match.c src/engine/match.h \
	src/engine/merge.c \
	src/engine/directory.c \
	src/engine/peer.c \
	src/engine/receive.c \
	src/engine/region.c src/engine/region.h \
	src/engine/rendezvous.c \
	src/engine/rma.c src/engine/rma.h \
	src/engine/rma_choice.c src/engine/rma_choice.h \
	src/engine/rma_direct.c \
	src/engine/rma_met.c \
	src/engine/rma_peer.c \
	src/engine/rma_piece.c \
	src/engine/rma_request.c \
	src/engine/rma_self.c \
	src/engine/rma_serve.c \
	src/engine/rma_state.h \
	src/engine/room.c \
	src/engine/self.c \
	src/engine/send.c \
	src/engine/status.c src/engine/status.h
