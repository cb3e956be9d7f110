libropewalk_core_la_SOURCES += \
	transports/uc/uc.h
