libropewalk_core_la_SOURCES += \
	transports/memory/keys.h
