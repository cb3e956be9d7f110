# What transports/packet adds to the build.
libropewalk_core_la_SOURCES += \
	transports/packet/greeting.h
