libropewalk_core_la_SOURCES += transports/transport.h transports/link.h transports/machine.h
EXTRA_DIST += transports/README.md
