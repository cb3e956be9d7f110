# What transports/packet adds to the build.
libropewalk_core_la_SOURCES += \
	transports/packet/greeting.c transports/packet/greeting.h
EXTRA_DIST += transports/packet/HANDSHAKE.md
