libropewalk_core_la_SOURCES += \
	transports/shared_rc/join.h \
	transports/shared_rc/shared_rc.h
