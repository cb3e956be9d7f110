# What transports/packet adds to the build.
libropewalk_core_la_SOURCES += \
	transports/packet/arrive.c \
	transports/packet/capture.c transports/packet/capture.h \
	transports/packet/channel.c \
	transports/packet/close.c \
	transports/packet/connect.c \
	transports/packet/domain.c \
	transports/packet/evidence.c \
	transports/packet/greeting.c transports/packet/greeting.h \
	transports/packet/inbound.c \
	transports/packet/initiator.c \
	transports/packet/internal.h \
	transports/packet/names.c \
	transports/packet/narrow.c \
	transports/packet/network.c \
	transports/packet/numbers.c \
	transports/packet/outbound.c \
	transports/packet/packet.h \
	transports/packet/pieces.c \
	transports/packet/places.c \
	transports/packet/port.c \
	transports/packet/progress.c \
	transports/packet/pull.c \
	transports/packet/put.c \
	transports/packet/reach.c \
	transports/packet/regions.c \
	transports/packet/requests.c \
	transports/packet/share.c \
	transports/packet/sleep.c \
	transports/packet/streams.c \
	transports/packet/summary.c \
	transports/packet/terms.c \
	transports/packet/vote.c
EXTRA_DIST += transports/packet/FRAME.md transports/packet/HANDSHAKE.md
