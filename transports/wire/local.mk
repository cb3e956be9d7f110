# What transports/wire adds to the build.
libropewalk_core_la_SOURCES += \
	transports/wire/crc32.c transports/wire/crc32.h \
	transports/wire/icrc.c transports/wire/icrc.h \
	transports/wire/psn.h \
	transports/wire/segment.c transports/wire/segment.h \
	transports/wire/wire.c transports/wire/wire.h
EXTRA_DIST += transports/wire/FORMAT.md
