# What transports/packet adds to the build.
libropewalk_core_la_SOURCES += \
	transports/packet/capture.c transports/packet/capture.h \
	transports/packet/greeting.c transports/packet/greeting.h
EXTRA_DIST += transports/packet/HANDSHAKE.md
