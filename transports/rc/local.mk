libropewalk_core_la_SOURCES += \
	transports/rc/rc.h
