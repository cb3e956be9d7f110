libropewalk_core_la_SOURCES += transports/transport.h transports/link.h transports/machine.h \
	transports/framing.c transports/framing.h
EXTRA_DIST += transports/README.md
