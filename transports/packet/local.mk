# What transports/packet adds to the build.
libropewalk_core_la_SOURCES += \
	transports/packet/arrive.c \
	transports/packet/capture.c transports/packet/capture.h \
	transports/packet/channel.c transports/packet/channel.h \
	transports/packet/close.c \
	transports/packet/connect.c \
	transports/packet/domain.c transports/packet/domain.h \
	transports/packet/evidence.c \
	transports/packet/greeting.c transports/packet/greeting.h \
	transports/packet/handshake.h \
	transports/packet/inbound.c transports/packet/inbound.h \
	transports/packet/initiator.c transports/packet/initiator.h \
	transports/packet/names.c \
	transports/packet/narrow.c transports/packet/narrow.h \
	transports/packet/network.c \
	transports/packet/numbers.c transports/packet/numbers.h \
	transports/packet/outbound.c \
	transports/packet/packet.h \
	transports/packet/path.h \
	transports/packet/pieces.c \
	transports/packet/places.c \
	transports/packet/port.c transports/packet/port.h \
	transports/packet/progress.c \
	transports/packet/pull.c transports/packet/pull.h \
	transports/packet/put.c \
	transports/packet/reach.c transports/packet/reach.h \
	transports/packet/regions.c transports/packet/regions.h \
	transports/packet/request.h \
	transports/packet/requests.c \
	transports/packet/share.c \
	transports/packet/sleep.c \
	transports/packet/streams.c transports/packet/streams.h \
	transports/packet/summary.c \
	transports/packet/terms.c \
	transports/packet/vote.c
EXTRA_DIST += transports/packet/FRAME.md transports/packet/HANDSHAKE.md
