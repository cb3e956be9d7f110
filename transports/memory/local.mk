libropewalk_core_la_SOURCES += \
	transports/memory/keys.h transports/memory/keys.c
