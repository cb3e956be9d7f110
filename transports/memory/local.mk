libropewalk_core_la_SOURCES += \
	transports/memory/keys.h transports/memory/keys.c \
	transports/memory/puzzle.h transports/memory/puzzle.c
