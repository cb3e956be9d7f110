# The link on streams that it is given.
libropewalk_core_la_SOURCES += \
	transports/links/stream/stream.c transports/links/stream/stream.h \
	transports/links/stream/internal.h \
	transports/links/stream/frames.c
EXTRA_DIST += transports/links/stream/STREAM.md
